"""Repeated blocks: how they are found, what becomes of them, and what must not become a loop."""

import random
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import jaxprs_in_params

import symop as so
from registry.errors import ArgumentError, FeedError
from registry.operator.signature import Array
from registry.table import op
from symop.graph.nodes import user_origin
from symop.passes.roll_loops.sequences import Repeat, maximal_repeats
from symop.runtime.array_store import Holdings
from symop.train import initialize


def repeats_by_definition(word):
    """All maximal repetitions, tried one by one."""
    n, found = len(word), []
    for period in range(1, n // 2 + 1):
        agree = [word[i] == word[i + period] for i in range(n - period)]
        start = 0
        while start < len(agree):
            stop = start
            while stop < len(agree) and agree[stop]:
                stop += 1
            root = word[start : start + period]
            smaller = any(
                period % d == 0 and root == root[:d] * (period // d) for d in range(1, period)
            )
            if stop - start >= period and not smaller:
                found.append(Repeat(start, stop + period, period))
            start = stop + 1
    return sorted(found)


@pytest.mark.parametrize("letters", [1, 2, 3, 5])
def test_all_maximal_repetitions_are_found(letters):
    generator = random.Random(letters)
    for _ in range(300):
        word = [generator.randrange(letters) for _ in range(generator.randrange(30))]
        assert maximal_repeats(word) == repeats_by_definition(word), word


def chain(x, count):
    for _ in range(count):
        x = so.sin(x)
    return x


def scans(function, *args):
    """How many loops there are in what ``function`` traces, at any depth."""

    def count(jaxpr):
        inner = sum(count(one) for eqn in jaxpr.eqns for one in jaxprs_in_params(eqn.params))
        return inner + sum(eqn.primitive.name == "scan" for eqn in jaxpr.eqns)

    return count(jax.make_jaxpr(function)(*args).jaxpr)


def same(symbol, *, is_train=False, rtol=2e-6, **shapes):
    """``symbol`` computes the same with and without loops; what was rolled."""
    arrays = initialize(symbol, jax.random.key(1), **shapes)
    key = jax.random.key(2)
    rolled = symbol.to_jax(is_train=is_train)(**arrays, key=key)
    with so.rolling(False):
        unrolled = symbol.to_jax(is_train=is_train)(**arrays, key=key)
    pairs = zip(jax.tree.leaves(rolled), jax.tree.leaves(unrolled), strict=True)
    for got, wanted in pairs:
        assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(got, wanted, rtol=rtol, atol=1e-6)
    return so.loops(symbol, is_train=is_train, **shapes)


class TestWhatRolls:
    def test_results_of_all_steps_in_any_order(self):
        x = so.var("x", shape=(3,))
        values = [x]
        for _ in range(30):
            values.append(so.tanh(values[-1] * 1.5))
        assert same(so.Group([values[7], values[2], values[30], values[7]])).made
        assert same(so.stack(*values[::-1], axis=1)).made
        assert same(so.concat(*values[1:], values[0])).made
        assert same(so.add_n(*values, *values[3:9])).made
        assert same(so.add_n(*values[1:])).made

    def test_two_values_of_the_steps_before(self):
        a, b = so.var("a", shape=(2,)), so.var("b", shape=(2,))
        for _ in range(40):
            a, b = b, so.sin(a) + b * 0.5
        (one,) = same(so.Group([a, b])).made
        assert one.run.period * one.run.times >= 100

    def test_values_of_the_step_before_the_last(self):
        terms = [so.var("a", shape=()), so.var("b", shape=())]
        for _ in range(60):
            terms.append(so.sin(terms[-1] + terms[-2]))
        assert same(terms[-1]).made

    def test_pieces_in_every_order(self):
        x = so.var("x", shape=(2, 24, 3))

        def summed(places):
            h = so.var("h", shape=(2, 3))
            for t in places:
                h = so.tanh(h + x[:, t])
            return h

        for places, copied in [
            (range(24), False),
            (range(23, -1, -1), False),
            (range(0, 24, 2), False),
            (range(4, 20), False),
            ([3, 1, 4, 15, 9, 2, 6, 5, 8, 13, 7, 0], True),
        ]:
            (one,) = same(summed(places)).made
            assert bool(one.counts["copied"]) == copied

    def test_pieces_of_several_entries(self):
        x, h = so.var("x", shape=(40, 3)), so.var("h", shape=(4, 3))
        for part in so.split(x, sections=10):
            h = so.tanh(h * part) + h
        (one,) = same(h).made
        assert one.counts["series"] == 1
        assert not one.counts["copied"]

    def test_numbers_that_differ_by_step(self):
        x = so.var("x", shape=(3,))
        for i in range(20):
            x = so.sin(x) * (0.5 + i / 40) + x * 0.5
        assert same(x, rtol=1e-4).made

    def test_nothing_carried_is_computed_at_once(self):
        x = so.var("x", shape=(30, 4))
        found = same(so.stack(*(so.tanh(so.sin(row)) for row in so.unstack(x))))
        (one,) = found.made
        assert one.loop.op.name == "vmap"
        assert scans(found.symbol.to_jax(), np.ones((30, 4), "float32")) == 0

    def test_loops_within_a_step(self):
        x = so.var("x", shape=(3,))
        for i in range(6):
            x = so.exp(-x) * so.var(f"w{i}", shape=())
            x = chain(x, 40) + x
        made = same(x).made
        assert [(one.depth, one.run.times) for one in made] == [(1, 40), (0, 6)]

    def test_states_are_updated(self):
        x = so.var("x", shape=(5, 3))
        for i in range(10):
            x = so.batch_norm(x, *(so.var(f"{part}{i}", shape=(3,)) for part in ("g", "b"))) * 1.5
            x = so.tanh(x) + 0.1
        assert same(x, is_train=True).made
        assert x.list_auxiliary_states()

    def test_a_state_of_all_steps_is_left_alone(self):
        x = so.var("x", shape=(5, 3))
        g, b = so.var("g", shape=(3,)), so.var("b", shape=(3,))
        moving = [so.var(n, shape=(3,), state=True) for n in ("mean", "variance")]
        for _ in range(12):
            x = so.tanh(so.batch_norm(x, g, b, *moving) * 1.5)
        same(x, is_train=True)

    def test_draws_are_those_of_the_unrolled_graph(self):
        x = so.var("x", shape=(50,))
        for _ in range(12):
            x = so.dropout(so.dropout(x, rate=0.1) * 1.2, rate=0.2) + x * 0.1
        assert same(x, is_train=True).made
        for on in (True, False):
            so.random.seed(5)
            with so.rolling(on):
                drawn = x.eval(is_train=True, x=np.ones(50))
                more = so.dropout(so.var("y", shape=(9,)), rate=0.5).eval(
                    is_train=True, y=np.ones(9)
                )
            if on:
                first, second = drawn, more
        np.testing.assert_array_equal(first == 0, drawn == 0)
        np.testing.assert_array_equal(second, more)

    def test_integers_and_empty_arrays(self):
        x = so.var("x", shape=(3,), dtype="int32")
        for _ in range(15):
            x = x * 3 + 1
        assert same(x).made
        assert same(chain(so.var("e", shape=(0, 2)), 40)).made

    def test_graphs_that_contain_their_gradient(self):
        x, w = so.var("x", shape=(3,)), so.var("w", shape=(3,))
        y = x
        for _ in range(12):
            y = so.tanh(y * w + x)
        first = so.grad(so.sum(y), [x, w])
        second = so.grad(so.sum(first[1]), w)
        found = same(so.Group([y, *first, second]), rtol=1e-4)
        assert len(found.made) > 2

    @pytest.mark.thorough
    def test_a_gradient_of_more_steps_than_a_call_has_outputs(self):
        """A user's call has at most 65,536 outputs; the parts of a loop's results are no call."""
        x = so.var("x", shape=())
        gradient = so.grad(chain(x, 66_000), x)
        assert len(jax.make_jaxpr(gradient.to_jax())(0.5).eqns) < 30

    def test_a_hundred_thousand_operators(self):
        x = so.var("x", shape=())
        value, slopes = so.value_and_grad(chain(x, 100_000))(0.5)
        here, slope = 0.5, 1.0
        for _ in range(100_000):
            here, slope = np.sin(here), slope * np.cos(here)
        np.testing.assert_allclose([value, slopes["x"]], [here, slope], rtol=1e-2)


class TestWhatDoesNot:
    def test_too_little(self):
        x = so.var("x", shape=())
        assert not so.loops(chain(x, 20)).made
        (one,) = so.loops(x + so.exp(x) * so.sin(x) - so.cos(so.tanh(x))).left or [None]
        assert one is None

    def test_steps_that_are_not_wired_alike(self):
        values = [so.var(name, shape=()) for name in "xyz"]
        generator = random.Random(0)
        for i in range(60):
            w = so.var(f"w{i}", shape=())
            values.append(so.sin(values[-1] * w) + generator.choice(values[-3:]))
        found = same(values[-1])
        assert any("wired alike" in one.reason for one in found.left)
        assert not any(one.run.times > 20 for one in found.made)

    def test_rows_do_not_leave_a_step(self):
        table = so.var("table", shape=(50, 4))
        h = so.var("h", shape=(4,))
        for t in range(12):
            ids = so.var(f"ids{t}", shape=(3,), dtype="int32")
            h = so.tanh(h + so.sum(so.lookup_table(table, ids, sparse=True), axis=0))
        loss = so.sum(h)
        arrays = {f"ids{t}": np.array([t, t, 2 * t]) for t in range(12)}
        arrays |= {"table": np.ones((50, 4), "float32") / 9, "h": np.zeros(4, "float32")}
        value, slopes = so.value_and_grad(loss, ["table"])(**arrays)
        with so.rolling(False):
            wanted, rows = so.value_and_grad(loss, ["table"])(**arrays)
        np.testing.assert_allclose(value, wanted, rtol=1e-6)
        np.testing.assert_allclose(slopes["table"].to_dense(), rows["table"].to_dense(), rtol=1e-5)

    def test_a_loop_knows_what_it_is_made_of(self):
        x = so.var("x", shape=(3,))
        found = so.loops(chain(x, 100))
        text = str(found)
        assert "loop of 100 steps of 1 operators (sin) at " in text
        assert __file__ in text
        assert "scan" in str(found.symbol)
        assert found._repr_html_().count("<svg") == 2
        assert "100 times" in found._repr_html_()


def step(h, w):
    return so.tanh(h * w + 1.0)


def part(h):
    return so.sin(h) * 2.0


def steps_and_parts(name):
    """A state that each step changes, and a part of the result that is read of it."""
    h, w = so.var(f"{name}_h", shape=(3,)), so.var(f"{name}_w", shape=(3,))
    parts = []
    for _ in range(20):
        h = step(h, w)
        parts.append(part(h))
    return so.stack(*parts)


def steps_alone(name, count):
    h, w = so.var(f"{name}_h", shape=(3,)), so.var(f"{name}_w", shape=(3,))
    states = [h]
    for _ in range(count):
        states.append(step(states[-1], w))
    return states[1:]


class TestOtherGraphs:
    """A loop is the same whatever other graphs, which share nodes with it, exist already."""

    @staticmethod
    def report(graph, name):
        found = so.loops(graph)
        return f"{found}\n{found.symbol}".replace(f"{name}_", "")

    @pytest.fixture
    def alone(self):
        return self.report(steps_and_parts("alone"), "alone")

    @pytest.mark.parametrize(
        "others",
        [
            lambda name: steps_alone(name, 20),
            lambda name: steps_alone(name, 7),
            lambda name: [part(h) for h in steps_alone(name, 20)],
            lambda name: [part(h) for h in steps_alone(name, 13)[::-1]],
            lambda name: so.grad(so.sum(steps_and_parts(name)), so.var(f"{name}_h", shape=(3,))),
        ],
        ids=["states", "some_states", "parts_after_all_states", "parts_backwards", "gradient"],
    )
    def test_before_it(self, alone, others, request):
        name = request.node.callspec.id
        alive = others(name)
        assert self.report(steps_and_parts(name), name) == alone
        assert alive is not None

    def test_after_it(self, alone):
        graph = steps_and_parts("later")
        alive = [part(h) for h in steps_alone("later", 20)]
        assert self.report(graph, "later") == alone
        assert alive is not None

    def test_on_other_lines(self):
        """A step is reported where the user's loop is, not where an equal one was before."""
        x = so.var("of_other_lines", shape=(3,))
        alive = so.sin(so.sin(x))
        assert alive.node.origin.line == user_origin().line - 1
        y = chain(x, 100)
        (loop,) = so.loops(y).made
        assert loop.origin.line == chain.__code__.co_firstlineno + 2
        assert alive.node.origin.line == chain.__code__.co_firstlineno + 2


class TestSwitch:
    def test_it_holds_for_a_thread(self):
        seen = []
        with so.rolling(False):
            worker = threading.Thread(
                target=lambda: seen.append(scans(chain(so.var("x", shape=()), 99).to_jax(), 0.5))
            )
            worker.start()
            worker.join()
            inside = scans(chain(so.var("x", shape=()), 99).to_jax(), 0.5)
        assert (seen, inside) == ([1], 0)

    def test_an_evaluation_looks_at_it(self):
        y = chain(so.var("x", shape=()), 50)
        with so.rolling(False):
            unrolled = y.eval(x=0.5)
        np.testing.assert_allclose(y.eval(x=0.5), unrolled, rtol=1e-6)

    def test_derivatives_by_jax(self):
        y, x = chain(so.var("x", shape=()), 40).to_jax(), jnp.float32(0.7)

        def plain(x):
            for _ in range(40):
                x = jnp.sin(x)
            return x

        for _ in range(3):
            y, plain = jax.grad(y), jax.grad(plain)
            np.testing.assert_allclose(y(x), plain(x), rtol=1e-5)
        batch = jnp.linspace(0.1, 1.0, 4)
        np.testing.assert_allclose(jax.vmap(y)(batch), jax.vmap(plain)(batch), rtol=1e-4)


# Stacks ------------------------------------------------------------------------------------------


def layers(count, *, normalize=False):
    x = so.var("x", shape=(5, 4))
    for i in range(count):
        y = x @ so.var(f"w{i}", shape=(4, 4)) + so.var(f"b{i}", shape=(4,))
        if normalize:
            y = so.batch_norm(y, so.var(f"g{i}", shape=(4,)), so.var(f"s{i}", shape=(4,)))
        x = x + so.tanh(y) * 0.5
    return so.mean(so.square(x))


class TestStacks:
    def test_value_and_grad(self):
        loss = layers(10)
        arrays = initialize(loss, jax.random.key(0))
        function, plain = so.value_and_grad(loss, stacked=True), so.value_and_grad(loss)
        assert function.arguments == ["x", "w0..w9", "b0..b9"]
        assert function.stacks["w0..w9"] == tuple(f"w{i}" for i in range(10))
        value, slopes = function(**function.stack(arrays))
        wanted, expected = plain(**arrays)
        np.testing.assert_allclose(value, wanted, rtol=1e-6)
        found = function.unstack(slopes)
        assert found.keys() == expected.keys()
        for name, one in expected.items():
            np.testing.assert_allclose(found[name], one, rtol=1e-5, atol=1e-7)

    def test_part_of_a_stack_cannot_be_asked_for(self):
        with pytest.raises(ArgumentError, match="all must be in wrt or none, got no w1, w2"):
            so.value_and_grad(
                layers(10), ["w0", "b0", *[f"b{i}" for i in range(3, 10)]], stacked=True
            )

    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("request_", ["write", "add", "write_inplace"])
    def test_executor(self, request_):
        loss = layers(8, normalize=True)
        arrays = initialize(loss, jax.random.key(0))
        found = []
        for stacked in (True, False):
            executor = loss.simple_bind(request_, stacked=stacked)
            executor.copy_params_from(
                {n: arrays[n] for n in executor.arg_dict}, {n: arrays[n] for n in executor.aux_dict}
            )
            for _ in range(2):
                executor.forward(is_train=True)
                executor.backward()
            executor.arg_dict["w3"] = executor.arg_dict["w3"] * 2.0
            executor.forward(is_train=True, b2=np.ones(4))
            executor.backward()
            found.append((executor.outputs, *map(dict, _dicts(executor))))
            assert executor.forward()[0].shape == ()
        assert list(found[0][1]) == list(found[1][1])
        for got, wanted in zip(*map(jax.tree.leaves, found), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1e-6)

    def test_a_step_copies_nothing(self):
        executor = layers(8).simple_bind(stacked=True)
        executor.forward(is_train=True)
        held = {id(one) for one in executor.arg_dict.arrays()}
        assert len(held) == 3
        executor.forward(is_train=True)
        executor.backward()
        assert {id(one) for one in executor.arg_dict.arrays()} == held
        assert len(executor.grad_dict.arrays()) == 3

    def test_different_requests_keep_variables_apart(self):
        names = {f"w{i}": "write" if i % 2 else "null" for i in range(8)}
        executor = layers(8).simple_bind(names, stacked=True)
        executor.forward(is_train=True)
        executor.backward()
        assert list(executor.grad_dict) == ["w1", "w3", "w5", "w7"]

    def test_what_is_put_there_is_checked(self):
        executor = layers(8).simple_bind(stacked=True)
        executor.forward()
        executor.arg_dict["w3"] = np.ones((4, 5), "float32")
        with pytest.raises(FeedError, match="w3: an array of shape"):
            executor.forward()
        executor.arg_dict["w3"] = np.ones((4, 4), "float32")
        executor.forward()
        del executor.arg_dict["w5"]
        with pytest.raises(FeedError, match="must be held for each of w5"):
            executor.forward()


def _dicts(executor):
    return executor.arg_dict, executor.grad_dict, executor.aux_dict


def test_holdings_are_a_dict():
    arrays = {name: np.full(2, i) for i, name in enumerate("abc")}
    held = Holdings(arrays, {"a..b": ("a", "b")})
    assert held.whole("a..b").tolist() == [[0, 0], [1, 1]]
    assert list(held) == ["a", "b", "c"]
    held["b"] = np.full(2, 9)
    assert held.touched == {"b"}
    assert held.whole("a..b").tolist() == [[0, 0], [9, 9]]
    assert held["a"].tolist() == [0, 0]
    del held["a"]
    assert sorted(held) == ["b", "c"]
    assert held["b"].tolist() == [9, 9]
    with pytest.raises(KeyError):
        held["a"]


def test_an_error_names_the_line_that_built_the_step():
    @op(shape=lambda x: x, dtype=lambda x: x.dtype)
    def failing_when_lowered(x: Array) -> Array:
        """Its kernel fails."""
        raise RuntimeError("no luck")

    x = so.var("x", shape=(3,))
    for _ in range(30):
        x = so.sin(failing_when_lowered(x))
    with pytest.raises(RuntimeError, match="no luck") as caught:
        x.eval(x=np.ones(3))
    first, second = caught.value.__notes__[:2]
    assert "in failing_when_lowered" in first
    assert __file__ in first
    assert "in scan of 30 steps" in second
    assert __file__ in second


def mixed_chain(n):
    """Three kinds of operators in turn."""
    x = y = so.var("x", shape=(2,))
    for i in range(n):
        y = [so.sin, so.tanh, so.cos][i % 3](y)
    return so.sum(y), [x]


def residual_blocks(n):
    """Blocks with weights of their own."""
    x = h = so.var("x", shape=(4, 8))
    weights = []
    for i in range(n):
        w, b, v = (
            so.var(f"{k}{i}", shape=s) for k, s in zip("wbv", [(8, 8), (8,), (8, 8)], strict=True)
        )
        weights += [w, b, v]
        h = h + so.tanh(h @ w + b) @ v
    return so.mean(so.square(h)), [x, *weights]


def tied_blocks(n):
    """Blocks that share their weights."""
    x = h = so.var("x", shape=(4, 8))
    w = so.var("w", shape=(8, 8))
    for _ in range(n):
        h = so.tanh(h @ w) + so.sin(h)
    return so.mean(so.square(h)), [x, w]


def sine_chain(n):
    x = so.var("x", shape=(2,))
    return so.sum(chain(x, n)), [x]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("model", [sine_chain, mixed_chain, residual_blocks, tied_blocks])
def test_a_graph_that_contains_its_gradient_rolls_at_every_length(model, order):
    """Whatever shorter and longer ones of its kind live beside it."""
    alive, equations = [], {}
    for n in (60, 150, 30, 90):
        y, xs = model(n)
        if order == 2:
            y = so.sum(so.square(so.grad(y, xs[0])))
        gradients = so.Group(so.grad(y, xs))
        alive.append(gradients)
        shapes = zip(gradients.list_arguments(), gradients.infer_shape()[0], strict=True)
        feed = {name: np.full(shape, 0.1, np.float32) for name, shape in shapes}
        equations[n] = len(jax.make_jaxpr(gradients.to_jax())(**feed).eqns)
    assert max(equations.values()) <= 1.2 * min(equations.values()) + 12, equations
    for n, gradients in zip((60, 150, 30, 90), alive, strict=True):
        # Nor does what was built after it.
        feed = {
            name: jax.ShapeDtypeStruct(s, np.float32)
            for name, s in zip(gradients.list_arguments(), gradients.infer_shape()[0], strict=True)
        }
        assert len(jax.make_jaxpr(gradients.to_jax())(**feed).eqns) <= 1.2 * equations[n] + 12


def test_second_derivatives_of_several_functions_roll_at_every_length():
    """Their products are one word, repeated, whose steps are known by their wires alone."""

    def equations(n):
        x = y = so.var("x", shape=())
        for i in range(n):
            y = (so.sin, so.cos, so.tanh)[i % 3](y)
        found = so.grad(so.grad(y, x), x)
        return len(jax.make_jaxpr(found.to_jax())(0.5).eqns)

    assert equations(180) <= equations(90)


def test_few_parts_of_the_results_of_a_loop_are_slices():
    """An operator that takes all of them out would be traced and differentiated for each."""
    y, (x,) = sine_chain(200)
    found = so.loops(so.grad(y, x)).symbol
    assert "unstack" not in [node.op.name for node in found.nodes[0].operands[0].operands]
    assert "unstack" not in str(found)
