"""Optimizers of programs: their steps are optax's, with rows those of dense gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import symop as so
from registry import SelectedRows
from registry.errors import ArgumentError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(16, 4)).astype(np.float32)
Y = RNG.normal(size=(16, 3)).astype(np.float32)
HEIGHT = 50


def regression(optimizer):
    """A program that trains a linear regression."""
    program = so.Program()
    x, y = program.data("x", (16, 4)), program.data("y", (16, 3))
    w, b = program.parameter("w", (4, 3)), program.parameter("b", (3,), initial=0)
    loss = so.mean(so.square(so.matmul(x, w) + b - y))
    optimizer.minimize(loss)
    program.initialize(0)
    return program


def by_hand(params):
    return jnp.mean((X @ params["w"] + params["b"] - Y) ** 2)


def halving(step):
    return so.exponential_decay(step, init_value=0.1, transition_steps=3, decay_rate=0.5)


PAIRS = {
    "sgd": (so.optim.SGD(0.1), optax.sgd(0.1)),
    "nesterov": (
        so.optim.Momentum(0.1, mu=0.9, nesterov=True),
        optax.sgd(0.1, momentum=0.9, nesterov=True),
    ),
    "adagrad": (so.optim.Adagrad(0.1), optax.adagrad(0.1)),
    "rmsprop": (so.optim.RMSProp(0.01), optax.rmsprop(0.01)),
    "rmsprop with momentum": (
        so.optim.RMSProp(0.01, mu=0.8), optax.rmsprop(0.01, momentum=0.8),
    ),
    "rmsprop centered": (
        so.optim.RMSProp(0.01, centered=True), optax.rmsprop(0.01, centered=True),
    ),
    "adam": (so.optim.Adam(0.01), optax.adam(0.01)),
    "adamw": (so.optim.AdamW(0.01, weight_decay=0.1), optax.adamw(0.01, weight_decay=0.1)),
    "adamax": (so.optim.Adamax(0.01), optax.adamax(0.01)),
    "adadelta": (so.optim.Adadelta(1.0), optax.adadelta(1.0)),
    "lamb": (so.optim.Lamb(0.01, weight_decay=0.01), optax.lamb(0.01, weight_decay=0.01)),
    "a schedule and clipping": (
        so.optim.Adam(halving, clip=so.optim.ClipByGlobalNorm(0.3)),
        optax.chain(
            optax.clip_by_global_norm(0.3), optax.adam(optax.exponential_decay(0.1, 3, 0.5))
        ),
    ),
    "clipping of entries": (
        so.optim.SGD(0.1, clip=so.optim.ClipByValue(0.02)),
        optax.chain(optax.clip(0.02), optax.sgd(0.1)),
    ),
    "coupled decay": (
        so.optim.Momentum(0.1, weight_decay=0.05),
        optax.chain(optax.add_decayed_weights(0.05), optax.sgd(0.1, momentum=0.9)),
    ),
    "accumulation": (
        so.optim.Adam(0.01, accumulate=3), optax.MultiSteps(optax.adam(0.01), 3),
    ),
    "loss scaling": (
        so.optim.Adam(0.01, loss_scale=so.optim.LossScale()), optax.adam(0.01),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.sampled(4)
def test_steps_are_those_of_optax(name):
    ours, theirs = PAIRS[name]
    program = regression(ours)
    params = {one: jnp.array(program.scope[one]) for one in "wb"}
    state = theirs.init(params)
    for _ in range(7):
        program.run({"x": X, "y": Y})
        moves, state = theirs.update(jax.grad(by_hand)(params), state, params)
        params = optax.apply_updates(params, moves)
    for one, value in params.items():
        np.testing.assert_allclose(program.scope[one], value, rtol=1e-5, atol=3e-7)


def embedding(optimizer, *, sparse):
    """A program that trains a table of which each run reads some rows."""
    program = so.Program()
    table, w = program.parameter("table", (HEIGHT, 4)), program.parameter("w", (4,))
    ids = program.data("ids", (16,), "int32")
    rows = so.lookup_table(table, ids, sparse=sparse)
    optimizer.minimize(so.mean(so.square(so.matmul(rows, w) - 1)))
    program.initialize(0)
    return program


def trained(optimizer, *, sparse, steps=7):
    program = embedding(optimizer, sparse=sparse)
    generator = np.random.default_rng(1)
    for _ in range(steps):
        program.run({"ids": generator.integers(0, HEIGHT, 16).astype(np.int32)})
    return program


@pytest.mark.parametrize(
    "make",
    [
        lambda: so.optim.SGD(0.1),
        lambda: so.optim.Adagrad(0.1),
        lambda: so.optim.Momentum(0.1),
        lambda: so.optim.Adam(0.1),
        lambda: so.optim.Ftrl(0.1),
        lambda: so.optim.SGD(0.1, clip=so.optim.ClipByGlobalNorm(0.01)),
        lambda: so.optim.SGD(0.1, clip=so.optim.ClipByNorm(0.01)),
        lambda: so.optim.Adam(0.1, clip=so.optim.ClipByValue(0.001)),
        lambda: so.optim.Adam(0.1, weight_decay=0.1),
        lambda: so.optim.SGD(0.1, accumulate=3),
        lambda: so.optim.Adam(0.1, accumulate=2),
        lambda: so.optim.SGD(0.1, loss_scale=so.optim.LossScale()),
        lambda: so.optim.Adagrad(0.1, accumulate=2, loss_scale=so.optim.LossScale()),
    ],
    ids=[
        "sgd", "adagrad", "momentum", "adam", "ftrl", "global norm", "norm", "value", "decay",
        "accumulated", "adam accumulated", "scaled", "scaled and accumulated",
    ],
)  # fmt: skip
@pytest.mark.sampled(4)
def test_rows_give_what_dense_gradients_give(make):
    rows, dense = trained(make(), sparse=True), trained(make(), sparse=False)
    assert str(rows["table@GRAD"].kind) == "selected_rows"
    assert str(dense["table@GRAD"].kind) == "lod_tensor"
    for name in ("table", "w"):
        np.testing.assert_allclose(rows.scope[name], dense.scope[name], rtol=1e-5, atol=1e-6)
    assert so.Program.parse(str(rows)) == rows


def test_lazy_updates_touch_their_rows_alone():
    program = embedding(so.optim.Adam(0.1, lazy=True), sparse=True)
    ids = np.array([3, 3, 7, 9] * 4, np.int32)
    program.run({"ids": ids})
    before = {name: np.array(value) for name, value in program.scope.items()}
    program.run({"ids": np.full(16, 5, np.int32)})
    for name in ("table", "table.moment1", "table.moment2"):
        changed = np.flatnonzero((program.scope[name] != before[name]).any(axis=1))
        assert changed.tolist() == [5]


def test_lazy_accumulation_touches_its_rows_alone():
    program = embedding(so.optim.Adam(0.1, lazy=True, accumulate=2), sparse=True)
    start = np.array(program.scope["table"])
    program.run({"ids": np.full(16, 5, np.int32)})
    np.testing.assert_array_equal(program.scope["table"], start)
    program.run({"ids": np.full(16, 8, np.int32)})
    changed = np.flatnonzero((program.scope["table"] != start).any(axis=1))
    assert changed.tolist() == [5, 8]
    assert int(program.scope["adam.step"]) == 1


@pytest.mark.parametrize(
    "optimizer",
    [
        so.optim.SGD(0.1), so.optim.Adagrad(0.1), so.optim.Adam(0.1, lazy=True),
        so.optim.Momentum(0.1, lazy=True, accumulate=2),
        so.optim.Adam(0.1, lazy=True, clip=so.optim.ClipByGlobalNorm(1.0)),
    ],
)  # fmt: skip
def test_no_array_of_the_tables_height_is_made(optimizer):
    height = 12_345
    program = so.Program()
    table, ids = program.parameter("table", (height, 4)), program.data("ids", (16,), "int32")
    loss = so.sum(so.square(so.lookup_table(table, ids, sparse=True)))
    optimizer.minimize(loss)
    given = {"ids": jnp.arange(16, dtype=jnp.int32)}
    for _ in range(2):  # totals have their room from the second run on
        program.run(given)
    (runner,) = program._runners.values()
    written, rest = runner._kept_values(program)
    text = runner._compiled.lower(written, *given.values(), *rest).compile().as_text()
    calls = [line for line in text.splitlines() if " = " in line and not line.endswith("{")]
    made = [line for line in calls if f"[{height},4]" in line.partition(" = ")[2][:60]]
    inplace = ("parameter(", "scatter", "element", "tuple(", "while", "bitcast", "fusion(")
    strange = [line for line in made if not any(one in line for one in inplace)]
    assert made
    assert not strange
    assert " copy(" not in "".join(made)


def test_a_step_that_is_not_finite_is_left_out():
    program = so.Program()
    w, x = program.parameter("w", (), initial=1), program.data("x", ())
    scale = so.optim.LossScale(initial=1024.0, interval=2)
    so.optim.Adam(0.5, loss_scale=scale).minimize(w * x)
    held = []
    for given in (1.0, np.inf, np.nan, 1.0, 1.0):
        program.run({"x": np.float32(given)})
        held.append((float(program.scope["w"]), float(program.scope["loss_scale"])))
    weights, scales = zip(*held, strict=True)
    np.testing.assert_allclose(weights, [0.5, 0.5, 0.5, 0.0, -0.5], atol=5e-5)
    assert scales == (1024, 512, 256, 256, 512)
    assert int(program.scope["adam.step"]) == 3


def test_half_precision_forward_with_scaling_trains():
    program = so.Program()
    x, y = program.data("x", (16, 4)), program.data("y", (16, 3))
    w = program.parameter("w", (4, 3))
    half = so.matmul(so.cast(x, dtype="float16"), so.cast(w, dtype="float16"))
    loss = so.mean(so.square(so.cast(half, dtype="float32") - y))
    so.optim.Adam(0.05, loss_scale=so.optim.LossScale()).minimize(loss)
    losses = [float(program.run({"x": X, "y": Y}, loss)) for _ in range(40)]
    assert losses[-1] < 0.7 * losses[0]
    assert program.scope["w"].dtype == np.float32


def test_several_tables_and_a_shared_one():
    def build(sparse):
        program = so.Program()
        first, second = program.parameter("first", (9, 4)), program.parameter("second", (7, 4))
        ids = program.data("ids", (5,), "int32")
        rows = so.lookup_table(first, ids, sparse=sparse) + so.lookup_table(
            second, ids, sparse=sparse
        )
        again = so.lookup_table(first, ids[::-1], sparse=sparse)
        scores = so.matmul(again, first, transpose_b=True) if sparse is None else again
        so.optim.SGD(0.1).minimize(so.sum(so.square(rows * scores)))
        program.initialize(0)
        return program

    rows, dense = build(True), build(False)
    for _ in range(3):
        for one in (rows, dense):
            one.run({"ids": np.array([1, 1, 6, 0, 2], np.int32)})
    assert str(rows["first@GRAD"].kind) == str(rows["second@GRAD"].kind) == "selected_rows"
    for name in ("first", "second"):
        np.testing.assert_allclose(rows.scope[name], dense.scope[name], rtol=1e-5, atol=1e-6)


def test_a_table_that_is_also_multiplied_has_a_dense_gradient():
    def build(sparse):
        program = so.Program()
        table, ids = program.parameter("table", (9, 4)), program.data("ids", (5,), "int32")
        rows = so.lookup_table(table, ids, sparse=sparse)
        scores = so.matmul(rows, so.permute_dims(table, axes=(1, 0)))
        ((_, slope),) = so.optim.SGD(0.1).minimize(so.sum(so.square(scores)))
        program.initialize(0)
        return program, slope

    (rows, slope), (dense, _) = build(True), build(False)
    assert str(slope.kind) == "lod_tensor"
    for one in (rows, dense):
        one.run({"ids": np.array([1, 1, 6, 0, 2], np.int32)})
    np.testing.assert_allclose(rows.scope["table"], dense.scope["table"], rtol=1e-5)


def test_the_second_order_through_an_embedding():
    program = so.Program()
    table, ids = program.parameter("table", (9, 4)), program.data("ids", (5,), "int32")
    loss = so.sum(so.exp(so.lookup_table(table, ids, sparse=True)))
    ((_, slope),) = so.append_backward(loss)
    ((_, second),) = so.append_backward(so.sum(so.square(so.get_tensor_from_selected_rows(slope))))
    given = np.array([1, 1, 6, 0, 2], np.int32)
    program.initialize(0)

    def steepness(table):
        return jnp.sum(jax.grad(lambda t: jnp.sum(jnp.exp(t[given])))(table) ** 2)

    found = program.run({"ids": given}, second)
    found = found.to_dense() if isinstance(found, SelectedRows) else found
    np.testing.assert_allclose(found, jax.grad(steepness)(program.scope["table"]), rtol=1e-4)


def test_rows_that_an_operator_does_not_take_are_refused_when_it_is_built():
    program = so.Program()
    table, ids = program.parameter("table", (9, 4)), program.data("ids", (5,), "int32")
    ((_, slope),) = so.append_backward(so.sum(so.lookup_table(table, ids, sparse=True)))
    with pytest.raises(
        TypeError, match=r"(?s)softmax.*selected_rows.*get_tensor_from_selected_rows"
    ):
        so.softmax(slope)


def test_rows_from_plain_jax():
    """A user's own jitted loop takes rows from ``so.value_and_grad``."""
    table, w = so.var("table", shape=(HEIGHT, 4)), so.var("w", shape=(4,))
    ids = so.var("ids", shape=(16,), dtype="int32")
    loss = so.mean(so.square(so.matmul(so.lookup_table(table, ids, sparse=True), w) - 1))
    function = so.value_and_grad(loss)

    @jax.jit
    def step(params, ids):
        value, slopes = function(**params, ids=ids)
        moved = {name: so.sgd(params[name], slopes[name], 0.1) for name in params}
        return moved, value, slopes["table"]

    def dense(params, ids):
        return jnp.mean((params["table"][ids] @ params["w"] - 1) ** 2)

    ours = {"table": jnp.asarray(RNG.normal(size=(HEIGHT, 4)), jnp.float32), "w": jnp.ones(4)}
    theirs = dict(ours)
    for i in range(3):
        given = jnp.asarray(np.random.default_rng(i).integers(0, HEIGHT, 16), jnp.int32)
        ours, value, rows = step(ours, given)
        other, slopes = jax.value_and_grad(dense)(theirs, given)
        theirs = {name: theirs[name] - 0.1 * slopes[name] for name in theirs}
        assert isinstance(rows, SelectedRows)
        np.testing.assert_allclose(value, other, rtol=1e-5)
    for name, one in ours.items():
        np.testing.assert_allclose(one, theirs[name], rtol=1e-5, atol=1e-6)


def test_misuse():
    with pytest.raises(ArgumentError, match="the attributes must be among b1"):
        so.optim.Adam(0.1, beta1=0.9)
    with pytest.raises(ArgumentError, match="the states must be among moment"):
        so.optim.Adagrad(0.1, initial={"square": 1})
    with pytest.raises(ArgumentError, match="at least 1, got 0"):
        so.optim.SGD(0.1, accumulate=0)
    program = so.Program()
    with pytest.raises(ArgumentError, match="must depend on a parameter"):
        so.optim.SGD(0.1).minimize(so.sum(program.data("x", (2,))))
