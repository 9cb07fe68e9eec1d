"""Rematerialization of loops, in programs, and the parts that it is made of."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_remat import KEY, by_graph, by_jax, close

import symop as so
from registry.errors import ArgumentError, ProgramError
from registry.ops.control_flow.recomputing import held_back
from registry.table import get
from symop.graph.nodes import topological
from symop.passes.remat.nesting import ScanSplit, cut_of
from symop.passes.remat.runs import gather_runs, segments

remat = so.remat
POLICIES = [
    remat.keep_none(),
    remat.keep_costly(),
    remat.segments(),
    remat.segments(3),
    remat.keep("hidden"),
]


def recurrence(steps, *, reverse=False, rate=0.0, scope=False):
    """A scan with a carry, a series, a constant, and a result of each step."""
    x, w = so.var("x", shape=(3, 4)), so.var("w", shape=(steps, 4, 4))
    u, extra = so.var("u", shape=(4,)), so.var("extra", shape=(steps, 3, 4))

    def step(h, given):
        weights, more = given
        if scope:
            with remat.scope():
                return body(h, weights, more)
        return body(h, weights, more)

    def body(h, weights, more):
        hidden = so.tanh(so.matmul(h, weights) * u + more, name="hidden")
        if rate:
            hidden = so.dropout(hidden, rate=rate)
        h = so.sin(hidden + h)
        return h, so.sum(h * hidden)

    last, sums = so.scan(step, x, (w, extra), reverse=reverse)
    return so.sum(last * last) + so.sum(so.cos(sums))


def arrays_of(steps):
    draw = np.random.default_rng(steps).standard_normal
    shapes = {"x": (3, 4), "w": (steps, 4, 4), "u": (4,), "extra": (steps, 3, 4)}
    return {name: draw(shape) * 0.5 for name, shape in shapes.items()}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("steps", [3, 7, 12])
def test_policies_of_loops_change_no_number(steps, reverse):
    with jax.enable_x64(True):
        arrays = arrays_of(steps)
        loss = recurrence(steps, reverse=reverse)

        def by_hand(given):
            h, total = given["x"], 0.0
            for i in range(steps)[:: -1 if reverse else 1]:
                hidden = jnp.tanh(h @ given["w"][i] * given["u"] + given["extra"][i])
                h = jnp.sin(hidden + h)
                total = total + jnp.cos((h * hidden).sum())
            return (h * h).sum() + total

        expected = jax.value_and_grad(by_hand)(arrays)
        for policy in POLICIES:
            close(by_graph(loss, arrays, policy)[:2], expected, rtol=1e-9)
        for policy in (remat.segments(), remat.keep_costly()):
            close(by_jax(loss, arrays, policy)[:2], expected, rtol=1e-9)


def test_scopes_in_steps_change_no_number():
    with jax.enable_x64(True):
        arrays = arrays_of(5)
        expected = by_graph(recurrence(5), arrays)
        for way in (by_graph, by_jax):
            close(way(recurrence(5, scope=True), arrays), expected, rtol=1e-9)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("reverse", [False, True])
def test_steps_draw_what_they_drew(reverse):
    with jax.enable_x64(True):
        loss, arrays = recurrence(7, reverse=reverse, rate=0.5), arrays_of(7)
        expected = by_graph(loss, arrays)
        for policy in (remat.segments(), remat.segments(2), remat.keep_costly()):
            close(by_graph(loss, arrays, policy), expected, rtol=1e-9)
        close(by_jax(loss, arrays, remat.segments(2)), expected, rtol=1e-9)


def test_second_order_through_scans_of_scans():
    with jax.enable_x64(True):
        loss, arrays = recurrence(6), arrays_of(6)

        def second(symbol):
            x = symbol.get_internals()["x"]
            first = so.grad(symbol, x)
            return so.Group([so.grad(so.sum(first * first), x), so.jvp(first, x, x)]).eval(**arrays)

        nested = loss.with_memory(remat.segments())
        names = [node.op.name for node in topological(nested.nodes)]
        assert names.count("scan") == 1
        close(second(nested), second(loss), rtol=1e-8)


def test_while_loops_keep_what_is_said():
    with jax.enable_x64(True):
        x, w = so.var("x", shape=(4,)), so.var("w", shape=(4,))

        def step(carry):
            h, i = carry
            return so.tanh(so.sin(h * w) * so.exp(h)), i + 1

        h, _ = so.while_loop(lambda carry: carry[1] < 5, step, (x, 0), max_steps=8)
        arrays = {"x": np.linspace(0.1, 0.5, 4), "w": np.linspace(1, 2, 4)}
        loss = so.sum(h)
        expected = by_graph(loss, arrays)
        for policy in POLICIES[:-1]:
            close(by_graph(loss, arrays, policy), expected, rtol=1e-9)
        kept = [remat.estimate(loss, remat=one).kept for one in (None, remat.keep_none())]
        assert kept[1] < kept[0]


def deep(steps, rows=64, width=8):
    x, w = so.var("x", shape=(rows, width)), so.var("w", shape=(steps, width, width))
    last, _ = so.scan(lambda h, w: (so.tanh(so.matmul(h, w)), None), x, w)
    return so.mean(last * last)


def test_a_scan_of_scans_takes_a_fraction_of_the_memory():
    loss, size = deep(400), 64 * 8 * 4
    arrays = {"x": np.ones((64, 8), "f"), "w": np.ones((400, 8, 8), "f")}
    rows = remat.report(loss, arrays, [remat.keep_all(), remat.segments()], repeats=1)
    assert rows[0].temporary >= 400 * size
    assert rows[1].temporary <= rows[0].temporary / 8
    assert rows[1].estimate.peak <= 80 * size
    by_jax_too = jax.jit(
        jax.grad(lambda x: loss.to_jax(remat=remat.segments())(x=x, w=arrays["w"]))
    )
    taken = by_jax_too.lower(arrays["x"]).compile().memory_analysis().temp_size_in_bytes
    assert taken <= rows[0].temporary / 8


def test_a_scope_in_a_step_holds_for_gradients_of_jax():
    def loss(scope):
        x, w = so.var("x", shape=(64, 8)), so.var("w", shape=(8, 8))

        def step(h, _):
            with remat.scope(None if scope else remat.keep_all()):
                for _ in range(6):
                    h = so.tanh(so.matmul(h, w))
            return h, None

        last, _ = so.scan(step, x, None, length=30)
        return so.sum(last)

    given = {"x": np.ones((64, 8), "f"), "w": np.ones((8, 8), "f")}
    taken = []
    for scope in (False, True):
        function = loss(scope).to_jax()
        program = jax.jit(jax.grad(lambda given, f=function: f(**given))).lower(given).compile()
        taken.append(program.memory_analysis().temp_size_in_bytes)
    assert taken[1] < taken[0] / 3


def test_how_steps_are_cut():
    assert cut_of(1000, None) == ScanSplit(25, 40, 0)
    assert cut_of(101, None) == ScanSplit(10, 10, 1)
    assert cut_of(10, 3) == ScanSplit(3, 3, 1)
    assert cut_of(5, 9) == ScanSplit(5, 1, 0)


# Programs ----------------------------------------------------------------------------------------


def program_of(policy, scope=None):
    with so.program_guard(so.Program()) as program:
        h = x = so.data("x", (8, 4))
        for i in range(6):
            if scope:
                with scope():
                    h = so.tanh(so.matmul(h, so.parameter(f"w{i}", (4, 4))), name=f"h{i}")
            else:
                h = so.tanh(so.matmul(h, so.parameter(f"w{i}", (4, 4))), name=f"h{i}")
        loss = so.mean(h * h)
        del x
    pairs = so.append_backward(loss, remat=policy)
    return program, loss, pairs


def test_programs_compute_again(tmp_path):
    feed = {"x": np.random.default_rng(0).normal(size=(8, 4)).astype("f")}
    found, calls = [], []
    for policy, scope in ((None, None), (remat.segments(2), None), (None, remat.scope)):
        program, loss, pairs = program_of(policy, scope)
        program.initialize(0)
        fetched = [loss, *(gradient for _, gradient in pairs)]
        found.append(program.run(feed, fetched))
        calls.append([op.type for op in program.desc().blocks[0].ops])
        program.save(tmp_path / "program.json")
        again = so.Program.load(tmp_path / "program.json")
        again.initialize(0)
        close(again.run(feed, [one.name for one in fetched]), found[-1])
    assert "recompute" not in calls[0]
    assert calls[1].count("recompute") == 1  # of two segments the last stays
    assert calls[2].count("recompute") == 6
    assert calls[1].count("matmul") < calls[0].count("matmul")
    close(found[1], found[0])
    close(found[2], found[0])


def test_programs_compute_layers_with_keys_and_states_again(tmp_path):
    def made(scope):
        with so.program_guard(so.Program()) as program:
            h = so.data("x", (8, 4))
            for i in range(2):
                with remat.scope(None if scope else remat.keep_all()):
                    h = so.matmul(h, so.parameter(f"w{i}", (4, 4), initial="normal(0.5)"))
                    gain, bias = (so.parameter(f"{n}{i}", (4,), initial="1.0") for n in "gb")
                    states = (
                        program.state(f"m{i}", (4,)),
                        program.state(f"v{i}", (4,), initial="1.0"),
                    )
                    h = so.dropout(so.tanh(so.batch_norm(h, gain, bias, *states)), rate=0.3)
            loss = so.mean(h * h)
        pairs = so.append_backward(loss)
        program.initialize(0)
        return program, [loss.name, *(gradient.name for _, gradient in pairs)]

    feed = {"x": np.random.default_rng(0).normal(size=(8, 4)).astype("f")}
    found = []
    for scope in (False, True):
        program, names = made(scope)
        program.save(tmp_path / "program.json")
        again = so.Program.load(tmp_path / "program.json")
        again.initialize(0)
        for one in (program, again):
            so.random.seed(7)
            found.append([one.run(feed, names, training=True), dict(one.scope)])
    for one in found[1:]:
        close(one, found[0])


def test_programs_know_variables_by_name():
    _, _, pairs = program_of(None)
    assert len(pairs) == 6
    with pytest.raises(ProgramError, match="got 'other'"):
        program_of(remat.keep("other"))


# Parts -------------------------------------------------------------------------------------------


def test_what_is_held_back_is_what_it_was():
    given = [
        jnp.asarray([1.0, np.nan, np.inf]),
        jnp.asarray([1, -2], jnp.int8),
        jnp.asarray([True, False]),
        jnp.asarray([1 + 2j]),
        jnp.asarray([0.5], jnp.bfloat16),
        jnp.zeros((0, 3)),
        KEY,
    ]
    everything = tuple(range(len(given)))
    found = jax.jit(lambda values: held_back(values, everything, everything))(given)
    for one, other in zip(found, given, strict=True):
        if one.dtype == KEY.dtype:
            one, other = jax.random.key_data(one), jax.random.key_data(other)  # noqa: PLW2901
        np.testing.assert_array_equal(np.asarray(one, "c8"), np.asarray(other, "c8"))
    assert held_back(given, everything, (5, 6))[0] is given[0]  # nothing to wait for


def test_every_bit_pattern_of_a_byte_is_never_three():
    for pattern in range(256):
        values = [jnp.asarray([7.0]), jnp.asarray([pattern], jnp.uint8)]
        assert float(held_back(values, (0,), (1,))[0][0]) == 7.0


def test_a_body_that_draws_must_take_its_keys():
    body = so.body(so.dropout, ((3,), "float32"))
    with pytest.raises(ArgumentError, match="must take the random keys that it uses as operands"):
        get("recompute")(so.var("x", shape=(3,)), body=body)


def test_runs_stand_together_in_an_order_that_runs():
    x = so.var("x", shape=(2,))
    values = [x]
    for i in range(30):
        values.append(so.sin(values[-1]) * so.cos(values[max(0, i - 7)]))
    order = topological([so.add_n(*values).node])
    runs = gather_runs(order, lambda node: (node.serial // 5) % 3 or None)
    done = set()
    for _, run in runs:
        for node in run:
            assert all(one in done for one in node.operands if one.operands)
            done.add(node)
    assert len(done) == sum(bool(node.operands) for node in order)
    names = [name for name, _ in runs]
    assert all(one != other for one, other in itertools.pairwise(names))


def test_segments_are_cut_where_little_passes():
    """Wide values inside, narrow ones between: cuts fall on the narrow ones."""
    h = so.var("x", shape=(4,))
    for _ in range(4):
        wide = so.broadcast_to(so.reshape(h, shape=(1, 4)), shape=(100, 4))
        h = so.sum(so.sin(so.sin(wide)), axis=0)
    calls = [node for node in topological([h.node]) if node.operands]
    runs = segments(calls, [h.node], 4, lambda node: False)
    assert [run[-1].op.name for run in runs] == ["sum"] * 4


def unread(kind, a, d, rows, which):
    """Control flow whose body does not read what it carries, or of which a part is not read."""
    inner = so.tanh(d) * 0.6

    def still(v):
        return so.sum(v * v) > 0.3

    cases = {
        "while": lambda: so.while_loop(still, lambda v: so.tanh(d) * 0.6, a, max_steps=5),
        "while constant": lambda: so.while_loop(still, lambda v: d * 0.0, a, max_steps=5),
        "while of two": lambda: so.while_loop(
            lambda v: still(v[0]),
            lambda v: [so.tanh(v[0] + d) * 0.6, so.tanh(d) * 0.6],
            [a, d * 1.0],
            max_steps=5,
        )[which],
        "scan": lambda: so.scan(lambda v, one: (so.tanh(d) * 0.6, one * d), a, rows)[which],
        "scan that stays": lambda: so.scan(lambda v, one: (v, one * d), a, rows)[which],
        "foreach": lambda: so.foreach(lambda one, v: (one * d, so.tanh(d) * 0.6), rows, a)[which],
        "cond": lambda: so.cond(so.sum(a) > which, lambda v: inner, lambda v: d * 2.0, a),
    }
    return cases[kind]()


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "kind",
    ["while", "while constant", "while of two", "scan", "scan that stays", "foreach", "cond"],
)
def test_what_a_body_does_not_read_stops_no_policy(kind):
    a, d, rows = (so.var(n, shape=s) for n, s in (("a", (2,)), ("d", (2,)), ("rows", (6, 2))))
    given = {"a": np.ones(2), "d": np.full(2, 0.7), "rows": np.full((6, 2), 0.3)}
    given = {name: one.astype(np.float32) for name, one in given.items()}
    for which in (0, 1):
        y = so.sum(so.square(unread(kind, a, d, rows, which)) * d)
        fed = {name: given[name] for name in y.list_arguments()}
        value, slopes = so.value_and_grad(y, ["d"])(**fed)
        for rolls, policy in itertools.product((True, False), POLICIES[:4]):
            with so.rolling(rolls):
                found, again = so.value_and_grad(y, ["d"], remat=policy)(**fed)
            close(found, value)
            close(again["d"], slopes["d"])
        assert remat.estimate(y, remat=POLICIES[0]).kept >= 0
