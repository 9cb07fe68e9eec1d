"""Rematerialization: gradients stay what they are, and memory falls."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from remat_models import chain, resnet, transformer, values

import symop as so
from registry.errors import ArgumentError, GradientError
from registry.table import operators
from symop import train
from symop.testing.trial import compiled, trials

remat = so.remat
POLICIES = {
    "keep_all": remat.keep_all(),
    "keep_none": remat.keep_none(),
    "keep_costly": remat.keep_costly(),
    "segments": remat.segments(),
    "segments(3)": remat.segments(3),
    "keep": remat.keep(lambda value: value.operator in {"relu", "gelu"}),
}
SCOPES = {
    "scope": remat.scope,
    "costly scope": lambda: remat.scope(remat.keep_costly()),
    "cut scope": lambda: remat.scope(remat.segments(2)),
    "open scope": lambda: remat.scope(remat.keep_all()),
}
MODELS = {"chain": chain, "transformer": transformer, "resnet": resnet}
KEY = jax.random.key(3)


def close(found, expected, rtol=1e-5, atol=1e-7):
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=rtol, atol=atol), found, expected
    )


def once(function, arrays):
    """One run of what is compiled for it in the least time."""
    return compiled(function, arrays)(arrays)


def by_graph(loss, arrays, policy=None):
    """Value, gradients and new states by symop's gradients."""
    function = so.value_and_grad(loss, is_train=True, remat=policy)
    result = once(lambda given: function(key=KEY, **given), arrays)
    return result if len(result) == 3 else (*result, {})


def by_jax(loss, arrays, policy=None):
    """The same by JAX's gradients of the lowered graph."""
    states = {n: arrays[n] for n in loss.list_auxiliary_states()}
    arguments = {n: arrays[n] for n in loss.list_arguments()}
    function = loss.to_jax(is_train=True, remat=policy)

    def run(given):
        found = function(key=KEY, **given, **states)
        return found if states else (found, {})

    (value, new), gradients = once(jax.value_and_grad(run, has_aux=True), arguments)
    return value, gradients, new


def by_executor(loss, arrays, policy=None):
    """The same by an executor, whose key is that of the seed."""
    states = {n: arrays[n] for n in loss.list_auxiliary_states()}
    arguments = {n: arrays[n] for n in loss.list_arguments()}
    executor = loss.bind(arguments, aux_states=states, remat=policy)
    so.random.seed(5)
    value = executor.forward(is_train=True)[0]
    executor.backward()
    return value, executor.grad_dict, executor.aux_dict


# Gradients stay equal ----------------------------------------------------------------------------


@pytest.mark.parametrize("way", [by_graph, by_jax])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.sampled(6)
def test_policies_change_no_number(model, way):
    with jax.enable_x64(True):
        loss = MODELS[model](2)
        arrays = values(loss)
        expected = way(loss, arrays)
        for policy in POLICIES.values():
            close(way(loss, arrays, policy), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("way", [by_graph, by_jax])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.sampled(6)
def test_policies_change_no_number_of_repeated_layers(model, way, few_convolutions_roll):
    """So many layers that they become a loop."""
    layers = 12 if model == "chain" else 5
    with jax.enable_x64(True):
        loss = MODELS[model](layers)
        arrays = values(loss)
        with so.rolling(False):
            expected = way(loss, arrays)
        jaxpr = jax.make_jaxpr(so.value_and_grad(loss, is_train=True))(key=KEY, **arrays)
        assert " scan[" in str(jaxpr)
        for policy in (remat.segments(2), remat.keep_costly()):
            close(way(loss, arrays, policy), expected, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("model", ["chain", "resnet"])
@pytest.mark.sampled(2)
def test_policies_change_no_number_of_executors(model):
    with jax.enable_x64(True):
        loss = MODELS[model](2)
        arrays = values(loss)
        expected = by_executor(loss, arrays)
        for policy in (remat.segments(3), remat.keep_costly()):
            close(by_executor(loss, arrays, policy), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.thorough
def test_policies_change_no_number_of_executors_of_repeated_layers():
    loss = chain(12)
    arrays = values(loss)
    with so.rolling(False):
        expected = by_executor(loss, arrays)
    for policy in (None, remat.segments(), remat.keep_costly(), remat.keep("h3", "h7")):
        close(by_executor(loss, arrays, policy), expected)


@pytest.mark.parametrize("way", [by_graph, by_jax])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.sampled(6)
def test_scopes_change_no_number(model, way):
    with jax.enable_x64(True):
        plain = MODELS[model](2)
        arrays = values(plain)
        expected = way(plain, arrays)
        for scope in SCOPES.values():
            close(way(MODELS[model](2, scope=scope), arrays), expected, rtol=1e-9, atol=1e-12)


def test_a_policy_and_scopes_go_together():
    with jax.enable_x64(True):
        plain, scoped = transformer(2), transformer(2, scope=remat.scope)
        arrays = values(plain)
        for way in (by_graph, by_jax):
            found = way(scoped, arrays, remat.segments(2))
            close(found, way(plain, arrays), rtol=1e-9, atol=1e-12)


def test_gradients_are_those_of_plain_jax():
    loss = chain(6)
    arrays = values(loss)

    def by_hand(x, **w):
        for i in range(6):
            x = jnp.tanh(x @ w[f"w{i}"])
        return jnp.mean(x * x)

    expected = jax.value_and_grad(lambda given: by_hand(**given))(arrays)
    for way in (by_graph, by_jax, by_executor):
        close(way(loss, arrays, remat.segments(3))[:2], expected)


def test_the_mask_of_dropout_is_drawn_again_as_it_was():
    x, w = so.var("x", shape=(400,)), so.var("w", shape=(400,))
    with remat.scope():
        y = so.dropout(so.sin(x) * w, rate=0.5)
        z = so.dropout(y * w, rate=0.5)
    loss = so.sum(z)
    arrays = {"x": np.full(400, 0.5, np.float32), "w": np.ones(400, np.float32)}
    outputs = so.Group([z, so.grad(loss, w)])
    kept, gradient = jax.jit(outputs.to_jax(is_train=True))(key=KEY, **arrays)
    assert 50 < int((np.asarray(kept) != 0).sum()) < 150
    np.testing.assert_array_equal(np.asarray(kept) != 0, np.asarray(gradient) != 0)
    by_jax_gradient = jax.grad(lambda w: loss.to_jax(is_train=True)(key=KEY, x=arrays["x"], w=w))
    np.testing.assert_array_equal(
        np.asarray(by_jax_gradient(arrays["w"])) != 0, np.asarray(kept) != 0
    )


@pytest.mark.thorough
def test_every_order_and_both_modes():
    with jax.enable_x64(True):
        plain, scoped = chain(3), chain(3, scope=remat.scope)
        arrays = values(plain)

        def derivatives(loss):
            x = loss.get_internals()["x"]
            first = so.grad(loss, x)
            second = so.grad(so.sum(first * first), x)
            third = so.jvp(second, x, so.sin(x))
            return so.Group([first, second, third]).eval(**arrays)

        close(derivatives(scoped), derivatives(plain), rtol=1e-9)
        names = plain.list_arguments()
        given = [arrays[name] for name in names]
        expected = jax.hessian(plain.to_jax())(*given)
        for policy in (remat.segments(2), remat.keep_costly()):
            function = plain.to_jax(remat=policy)
            close(jax.hessian(function)(*given), expected, rtol=1e-9)
            close(jax.jacrev(jax.jacrev(function))(*given), expected, rtol=1e-9)
            ways = [np.ones_like(one) for one in given]
            close(jax.jvp(function, given, ways), jax.jvp(plain.to_jax(), given, ways), rtol=1e-9)
        several = np.stack([given[0], 2 * given[0]])
        found = jax.vmap(jax.grad(plain.to_jax(remat=remat.segments(2))), (0, *[None] * 3))
        expected = jax.vmap(jax.grad(plain.to_jax()), (0, *[None] * 3))
        close(found(several, *given[1:]), expected(several, *given[1:]), rtol=1e-9)


def test_infinite_gradients_stay_infinite():
    x = so.var("x", shape=(3,))
    with remat.scope():
        y = so.sqrt(x * x) * so.sin(x)
    slopes = so.value_and_grad(so.sum(so.log(x * 0.0 + y)))(x=np.array([0.0, 1.0, 2.0], np.float32))
    again = so.value_and_grad(so.sum(so.log(x * 0.0 + so.sqrt(x * x) * so.sin(x))))
    close(slopes, again(x=np.array([0.0, 1.0, 2.0], np.float32)))


# Memory falls ------------------------------------------------------------------------------------


def temporary(function, arrays):
    """What XLA takes beside arguments and results, and how often it multiplies matrices."""
    program = jax.jit(function).lower(arrays).compile()
    return program.memory_analysis().temp_size_in_bytes, program.as_text().count(" dot(")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("given", ["policy", "scope"])
def test_the_compiled_peak_falls_and_xla_merges_nothing(given):
    with so.rolling(False):
        _compare_peaks(given)


def test_the_compiled_peak_of_loops_of_layers_falls():
    loss = chain(64, rows=256, width=16)
    arrays, size = values(loss), 256 * 16 * 4
    rows = remat.report(loss, arrays, [remat.keep_all(), remat.segments()], repeats=1)
    assert rows[0].temporary >= 64 * size
    assert rows[1].temporary <= 40 * size
    assert 0.5 * rows[1].temporary <= rows[1].estimate.peak <= 2 * rows[1].temporary
    policy = remat.segments()
    by_jax_too = jax.value_and_grad(lambda given: loss.to_jax(remat=policy)(**given))
    assert temporary(by_jax_too, arrays)[0] <= 40 * size


def _compare_peaks(given):
    plain = chain(36, rows=256, width=16)
    scoped = given == "scope"
    loss = chain(36, rows=256, width=16, scope=remat.scope) if scoped else plain
    policy = None if scoped else remat.segments()
    arrays = values(plain)
    size = 256 * 16 * 4
    ways = [
        lambda loss, policy: lambda given: so.value_and_grad(loss, remat=policy)(**given),
        lambda loss, policy: jax.value_and_grad(lambda given: loss.to_jax(remat=policy)(**given)),
    ]
    for way in ways:
        before, products = temporary(way(plain, None), arrays)
        after, more = temporary(way(loss, policy), arrays)
        assert before >= 36 * size
        if scoped:
            # Each layer keeps its input: so much is kept as before, and the products come again.
            assert after <= 40 * size
        else:
            assert after <= 16 * size
            assert products + 24 <= more <= products + 36


def test_a_scope_of_several_layers_keeps_their_inputs_alone():
    x = h = so.var("x", shape=(256, 16))
    with remat.scope():
        for i in range(6):
            h = so.tanh(so.matmul(h, so.var(f"w{i}", shape=(16, 16))))
    found = remat.estimate(so.sum(h))
    size = 256 * 16 * 4
    assert found.kept == size  # the output, which the gradient of tanh reads
    assert found.again == 5 * size
    executor = so.sum(h).simple_bind()
    executor.forward(is_train=True)
    assert sum(one.nbytes for one in executor._kept.residuals) <= size
    del x


def test_what_executors_keep_between_their_halves():
    loss = chain(36, rows=64)
    sizes = {}
    for name in ("keep_all", "segments"):
        executor = loss.simple_bind(remat=POLICIES[name])
        executor.forward(is_train=True)
        sizes[name] = sum(one.nbytes for one in executor._kept.residuals)
    assert sizes["segments"] < sizes["keep_all"] / 3


def test_costly_results_are_kept():
    layers, size = 8, 64 * 16 * 4
    h = so.var("x", shape=(64, 16))
    for i in range(layers):
        w = so.var(f"w{i}", shape=(16, 16))
        product = so.matmul(h, w)
        h = so.sin(so.tanh(product) * so.exp(product * 0.5))
    with so.rolling(False):
        _compare_costly(so.sum(h), layers, size)


def _compare_costly(loss, layers, size):
    everything = remat.estimate(loss).kept
    costly = remat.estimate(loss, remat=remat.keep_costly())
    assert everything == (4 * layers - 1) * size
    assert layers * size <= costly.kept <= 2 * layers * size + everything / 4
    arrays = values(loss)
    way = lambda policy: lambda given: so.value_and_grad(loss, remat=policy)(**given)  # noqa: E731
    before, products = temporary(way(None), arrays)
    after, same = temporary(way(remat.keep_costly()), arrays)
    assert after < before * 0.8
    assert same <= products  # no product is computed again


def test_an_operator_is_costly_if_its_kernel_multiplies_matrices():
    heavy = {"dot_general", "conv_general_dilated", "fft", "cholesky", "eigh", "svd", "qr", "lu",
             "triangular_solve", "custom_linear_solve"}  # fmt: skip
    wrong = {}
    for operator in operators():
        if not operator.catalogued or any(c.values.get("body") for c in operator.cases):
            continue
        found = set().union(*map(_primitives_of, operator.cases[:1] or [], [operator] * 1))
        if operator.costly != bool(found & heavy):
            wrong[operator.name] = sorted(found & heavy)
    assert not wrong


def _primitives_of(case, operator):
    found = set()
    for trial in trials(operator, case, case.dtypes[0]):
        places = [i for i, one in enumerate(trial.inputs) if isinstance(one, jax.Array)]
        function = trial.function("kernel", places)
        jaxpr = jax.make_jaxpr(function)(*[trial.inputs[i] for i in places])
        found |= set(_primitives(jaxpr))
    return found


def _primitives(jaxpr):
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        yield equation.primitive.name
        for one in jax.tree.leaves(equation.params, is_leaf=lambda one: hasattr(one, "eqns")):
            if hasattr(one, "eqns") or hasattr(one, "jaxpr"):
                yield from _primitives(one)


# Estimates ---------------------------------------------------------------------------------------


def test_an_estimate_counts_what_is_kept():
    x = so.var("x", shape=(1000,))
    y = x
    for _ in range(9):
        y = so.sin(y)
    everything = remat.estimate(so.sum(y))
    assert everything == (8 * 4000, 0)  # x itself is there anyway
    cut = remat.estimate(so.sum(y), remat=remat.segments(3))
    assert cut.kept < everything.kept
    assert cut.again > 0
    assert str(everything) == "32 kB kept, 0 B computed again at a time"


def test_an_estimate_is_near_to_what_is_compiled():
    loss = chain(30, rows=256, width=16)
    for row in remat.report(loss, values(loss), repeats=1):
        assert 0.5 * row.temporary <= row.estimate.peak <= 2 * row.temporary, row


def test_a_report_is_a_table():
    loss = chain(4)
    report = remat.report(loss, values(loss), [remat.keep_all(), remat.segments(2)], repeats=1)
    lines = str(report).splitlines()
    assert lines[0].split() == ["policy", "kept", "again", "compiled", "time"]
    assert [line.split()[0] for line in lines[1:]] == ["keep_all", "segments(2)"]


# Scopes ------------------------------------------------------------------------------------------


def test_scopes_nest():
    with jax.enable_x64(True):
        x = so.var("x", shape=(4,))
        with remat.scope():
            y = so.sin(x)
            with remat.scope():
                y = so.exp(so.cos(y) * y)
            y = so.tanh(y) * y
        plain = so.sin(x)
        plain = so.exp(so.cos(plain) * plain)
        plain = so.tanh(plain) * plain
        arrays = {"x": np.linspace(0.1, 1, 4)}
        for way in (by_graph, by_jax, by_executor):
            close(way(so.sum(y), arrays), way(so.sum(plain), arrays), rtol=1e-10)
        assert remat.estimate(so.sum(y)).kept <= 4 * 8


def test_a_scope_that_is_left_and_entered_by_its_values():
    with jax.enable_x64(True):
        x = so.var("x", shape=(4,))
        with remat.scope():
            first = so.sin(x) * x
            other = so.cos(x) * x
            with remat.scope(remat.keep_all()):
                outside = so.exp(first)  # between two values of the scope
            second = so.tanh(outside * other) * other
        plain = so.tanh(so.exp(so.sin(x) * x) * (so.cos(x) * x)) * (so.cos(x) * x)
        arrays = {"x": np.linspace(0.1, 1, 4)}
        for way in (by_graph, by_jax):
            close(way(so.sum(second), arrays), way(so.sum(plain), arrays), rtol=1e-10)


def kept_of(layers, every):
    """What a chain keeps whose scopes hold ``every`` layers, in layers."""
    h = so.var("x", shape=(256, 16))
    for i in range(layers // every):
        with remat.scope():
            for j in range(every):
                h = so.tanh(so.matmul(h, so.var(f"w{i}_{j}", shape=(16, 16))))
    return remat.estimate(so.sum(h)).kept / (256 * 16 * 4)


def test_a_loop_of_layers_does_not_break_the_scopes_around_them():
    # The weights of a loop are stacked, which takes 1/16 of a layer each.
    assert 11 <= kept_of(12, every=1) <= 14
    assert 5 <= kept_of(60, every=10) <= 11
    assert kept_of(30, every=30) <= 3


def test_what_is_equal_outside_of_a_scope_is_not_in_it():
    x = so.var("x", shape=(1000,))
    outside = so.sum(so.sin(so.sin(so.sin(x))))
    with remat.scope():
        inside = so.sin(so.sin(so.sin(x)))
    assert remat.estimate(so.sum(inside)).kept == 0
    assert remat.estimate(outside).kept == 8000


def test_a_gradient_by_a_value_inside_of_a_scope():
    x = so.var("x", shape=(3,))
    with remat.scope():
        middle = so.sin(x)
        y = so.exp(middle) * middle
    found = so.grad(so.sum(y), [middle, x])
    m = np.sin(np.array([0.1, 0.2, 0.3]))
    expected = np.exp(m) * (1 + m)
    close(found[0].eval(x=[0.1, 0.2, 0.3]), expected.astype(np.float32))
    slope = expected * np.cos([0.1, 0.2, 0.3])
    close(found[1].eval(x=[0.1, 0.2, 0.3]), slope.astype(np.float32))


def test_a_scope_holds_when_types_come_later():
    x = so.var("x")
    with remat.scope():
        y = so.sin(so.sin(so.sin(x)))
    executor = so.sum(y).simple_bind(x=(500,))
    executor.forward(is_train=True)
    executor.backward()
    assert sum(one.nbytes for one in executor._kept.residuals) == 0
    waiting = so.grad(so.sum(y), x)
    close(waiting.eval(x=np.zeros(5, np.float32)), np.ones(5, np.float32))


def test_two_calls_that_share_a_state_stay_apart():
    shape = (3,)
    names = ["gain", "bias"]
    x, gain, bias = so.var("x", shape=(4, 3)), *(so.var(n, shape=shape) for n in names)
    mean = so.var("mean", shape=shape, state=True)
    variance = so.var("variance", shape=shape, state=True)

    def model(scope):
        h = x
        for _ in range(2):
            with scope():
                h = so.batch_norm(so.sin(h), gain, bias, mean, variance)
        return so.sum(h * h * h)

    arrays = {"x": np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32),
              "gain": np.ones(3, np.float32), "bias": np.zeros(3, np.float32),
              "mean": np.zeros(3, np.float32), "variance": np.ones(3, np.float32)}  # fmt: skip
    plain = model(lambda: remat.scope(remat.keep_all()))
    for way in (by_graph, by_jax, by_executor):
        close(way(model(remat.scope), arrays), way(plain, arrays))


def test_rows_stay_rows():
    table, ids = so.var("table", shape=(50, 4)), so.var("ids", shape=(3,), dtype="int32")
    with remat.scope():
        loss = so.sum(so.square(so.sin(so.lookup_table(table, ids, sparse=True))))
    arrays = {"table": np.ones((50, 4), np.float32), "ids": np.array([3, 7, 3], np.int32)}
    for policy in (None, remat.segments(2)):
        _, slopes = so.value_and_grad(loss, ["table"], remat=policy)(**arrays)
        assert slopes["table"].rows.tolist() == [3, 7, 3]


# Front doors -------------------------------------------------------------------------------------


def test_a_trainer_takes_the_same_steps():
    x, y = so.var("x", shape=(16, 4)), so.var("y", shape=(16,))
    h = x
    for i in range(6):
        h = so.dropout(so.tanh(so.matmul(h, so.var(f"w{i}", shape=(4, 4)))), rate=0.1)
    loss = so.mean(so.square(so.sum(h, axis=1) - y))
    draw = np.random.default_rng(0).normal
    batch = {"x": draw(size=(16, 4)).astype("f"), "y": draw(size=16).astype("f")}
    found = []
    for policy in (None, remat.segments(3), remat.keep_costly()):
        trainer = train.Trainer(loss, optax.adam(0.01), inputs=["x", "y"], remat=policy)
        state = trainer.init(0)
        for _ in range(3):
            state, _ = trainer.step(state, batch)
        found.append(state.params)
    close(found[1], found[0])
    close(found[2], found[0])


def test_what_is_not_a_policy_is_refused():
    loss = chain(2)
    with pytest.raises(ArgumentError, match=r"bind: remat must be a policy.*got 'segments'"):
        loss.simple_bind(remat="segments")
    with pytest.raises(ArgumentError, match="value_and_grad: remat must be a policy"):
        so.value_and_grad(loss, remat=3)
    with pytest.raises(ArgumentError, match="to_jax: remat must go with gradient makers"):
        loss.to_jax(rules=False, remat=remat.segments())
    with pytest.raises(ArgumentError, match="segments: n must be an integer of at least 2, got 1"):
        remat.segments(1)
    with pytest.raises(ArgumentError, match="keep: names or functions of a value must be given"):
        remat.keep()
    with pytest.raises(ArgumentError, match="scope: remat must be a policy"), remat.scope(4):
        pass


def test_a_name_that_no_value_has_is_refused():
    with pytest.raises(ArgumentError, match="must have the name, got 'h9'"):
        so.value_and_grad(chain(2), remat=remat.keep("h0", "h9"))


def test_named_values_are_kept():
    loss = so.sum(chain(12, rows=256, width=16).get_internals()["h11_output"])
    size = 256 * 16 * 4
    found = remat.estimate(loss, remat=remat.keep("h3", "h7"))
    # The two, and those of the segment behind them, which comes first on the way back.
    assert found.kept == 6 * size
    chosen = remat.keep(lambda value: value.name in ("h3", "h7"))
    assert remat.estimate(loss, remat=chosen) == found


def test_a_gradient_whose_types_are_not_known_takes_no_policy():
    x = so.var("x")
    from symop.symbol.building import grad  # noqa: PLC0415  # the public one has no policy

    with pytest.raises(GradientError, match="remat= needs the shapes"):
        grad(so.sum(so.sin(x)), x, remat=remat.segments())
