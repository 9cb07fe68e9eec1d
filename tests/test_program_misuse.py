"""Programs that are used wrongly, or unluckily: nothing is lost, and nothing silently wrong."""

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import symop as so
from registry.errors import (
    ArgumentError,
    FeedError,
    FormatError,
    KindError,
    NotDifferentiableError,
    ProgramError,
    UnknownTypeError,
)
from symop.io.serialize import decode


def trained():
    """A program with an optimizer, and its loss."""
    program = so.Program()
    w, x = program.parameter("w", (2,), initial=1.0), program.data("x", (2,))
    loss = so.sum(so.square(w * x))
    so.optim.Adam(0.1).minimize(loss)
    return program, loss


class TestTransformations:
    @pytest.mark.parametrize(
        "transform",
        [
            lambda f: jax.vmap(f)(jnp.ones((3, 2))),
            lambda f: jax.grad(f)(jnp.ones(2)),
            lambda f: jax.jvp(f, (jnp.ones(2),), (jnp.ones(2),)),
            lambda f: jax.jit(f)(jnp.ones(2)),
            lambda f: jax.jit(lambda: f(np.ones(2, "f")))(),
        ],
        ids=["vmap", "grad", "jvp", "jit", "jit of a constant"],
    )
    @pytest.mark.parametrize("warm", [False, True])
    def test_leave_the_state_as_it_is(self, transform, warm):
        program, loss = trained()
        ones = np.ones(2, "f")
        before = [program.run({"x": ones}, loss)] if warm else program.initialize(0)
        held = {name: np.asarray(one) for name, one in program.values().items()}
        with pytest.raises(ProgramError, match="must not run inside of a JAX transformation"):
            transform(lambda x: program.run({"x": x}, loss))
        for name, one in program.values().items():
            np.testing.assert_array_equal(one, held[name])
        program.run({"x": ones}, loss)
        del before


class TestTwins:
    """Variables that are one node of the graph, but not one variable."""

    @pytest.mark.parametrize("enter", ["closure", "operand"])
    def test_in_control_flow(self, enter):
        program = so.Program()
        w = program.parameter("w", (), initial=3.0)
        free, held = w * w, w * w
        held.stop_gradient = True
        if enter == "closure":
            y = so.cond(w > 0, lambda: held * w, lambda: w)
        else:
            y = so.cond(w > 0, lambda h: h * w, lambda h: w, held)
        ((_, slope),) = so.append_backward(y)
        assert float(program.run(fetch=slope)) == 9.0
        assert free.name != held.name

    def test_by_one_that_entered_control_flow(self):
        program = so.Program()
        w = program.parameter("w", (), initial=3.0)
        first, second = w * w, w * w
        y = so.cond(w > 0, lambda: first * second, lambda: w)
        ((_, slope),) = so.append_backward(y, [second])
        assert float(program.run(fetch=slope)) == 9.0

    def test_what_is_built_inside_of_bodies(self):
        program = so.Program()
        w, xs = program.parameter("w", (), initial=3.0), program.data("xs", (2,))

        def row(x):
            return so.cond(x > 0, lambda: x * w, lambda: w)

        total = so.sum(so.scan(lambda c, x: (c, row(x)), 0.0, xs)[1])
        ((_, slope),) = so.append_backward(total)
        assert float(program.run({"xs": [2.0, -1.0]}, slope)) == 3.0

    def test_of_a_gradient(self):
        program = so.Program()
        w = program.parameter("w", (), initial=3.0)
        held, free = so.sin(w), so.sin(w)
        ((_, slope),) = so.append_backward(free * w)
        ((_, second),) = so.append_backward(slope, no_grad_set=[held])
        expected = 2 * np.cos(3.0) - 3 * np.sin(3.0)
        assert float(program.run(fetch=second)) == pytest.approx(expected, rel=1e-6)


class TestStops:
    @pytest.mark.parametrize("how", ["stop_gradient", "no_grad_set"])
    def test_parameters_behind_one_are_not_trained(self, how):
        with so.program_guard(so.Program()) as program:
            x = so.data("x", (4, 3))
            frozen = so.parameter("frozen", (3, 3), initial=1.0)
            v = so.parameter("v", (3,), initial=1.0)
            features = so.tanh(so.matmul(x, frozen))
            loss = so.mean(so.matmul(features, v))
        features.stop_gradient = how == "stop_gradient"
        passed = [features] if how == "no_grad_set" else None
        pairs = so.optim.AdamW(0.1, weight_decay=0.5).minimize(loss, no_grad_set=passed)
        assert [one.name for one, _ in pairs] == ["v"]
        program.run({"x": np.ones((4, 3), "f")})
        np.testing.assert_array_equal(program.scope["frozen"], np.ones((3, 3)))

    def test_zeros_for_those_that_are_asked_for(self):
        program = so.Program()
        w = program.parameter("w", (), initial=3.0)
        held = w * w
        held.stop_gradient = True
        ((_, slope),) = so.append_backward(held * 2.0, [w])
        assert float(program.run(fetch=slope)) == 0.0

    def test_a_symbol_keeps_them(self):
        program = so.Program()
        w = program.parameter("w", (), initial=2.0)
        held = w * w
        held.stop_gradient = True
        loss = held * w
        ((_, slope),) = so.append_backward(loss)
        assert float(program.run(fetch=slope)) == 4.0
        function = program.to_symbol(loss).to_jax()
        assert float(jax.grad(lambda w: function(w=w))(2.0)) == 4.0
        assert float(program.to_symbol(held).eval(w=2.0)) == 4.0

    def test_one_variable_or_name_is_a_list_of_it(self):
        program = so.Program()
        w, ww = program.parameter("w", (2,)), program.parameter("ww", (2,))
        loss = so.sum(w * ww)
        for parameters, stopped in ((w, "ww"), ("w", ww)):
            pairs = so.append_backward(loss, parameters, stopped)
            assert [one.name for one, _ in pairs] == ["w"]

    def test_undefined_is_not_zero(self):
        program = so.Program()
        w = program.parameter("w", ())
        with pytest.raises(NotDifferentiableError, match="cast, which makes int32"):
            so.append_backward(so.cast(so.cast(w, dtype="int32"), dtype="float32"), [w])


class TestFeeds:
    def test_a_number_is_of_the_declared_type(self):
        program = so.Program()
        x, half = program.data("x", ()), program.data("half", (2,), "float16")
        program.outputs = x * half
        ones = np.ones(2, np.float16)
        for given in (1e6, np.float32(1e6), jnp.float32(1e6)):
            (found,) = program.run({"x": given, "half": ones})
            assert found.dtype == np.float32
            np.testing.assert_array_equal(found, [1e6, 1e6])

    @pytest.mark.parametrize(
        "ids",
        [np.array([2**40 + 1]), [2**40], [1.7], np.array([2**31], np.uint32), [2**70]],
        ids=["wide", "wide list", "fraction", "unsigned", "huge"],
    )
    @pytest.mark.parametrize("warm", [False, True])
    def test_ids_that_do_not_fit(self, ids, warm):
        program = so.Program()
        table, i = program.parameter("table", (4, 2)), program.data("i", (1,), "int32")
        program.outputs = so.lookup_table(table, i)
        if warm:
            program.run({"i": np.array([1])})
        with pytest.raises(FeedError, match=r"i: (whole numbers must be fed|numbers must fit)"):
            program.run({"i": ids})
        assert program.run({"i": np.array([3])})[0].shape == (1, 2)

    def test_unsigned_ids_name_rows(self):
        program = so.Program()
        table = program.parameter("table", (5, 2), initial=1.0)
        ids = program.data("ids", (3,), "uint32")
        so.optim.SGD(0.5).minimize(so.sum(so.lookup_table(table, ids, sparse=True)))
        found = program.run({"ids": np.array([1, 3, 1], np.uint32)}, "table")
        np.testing.assert_array_equal(found[:, 0], [1.0, 0.0, 1.0, 0.5, 1.0])

    def test_an_array_that_is_kept(self):
        program, loss = trained()
        program.run({"x": np.ones(2, "f")}, loss)
        for _ in range(2):
            kept = np.asarray(program.scope["w"])
            found = program.run({"x": program.scope["w"]}, loss)
            np.testing.assert_allclose(found, np.sum(kept**4), rtol=1e-6)

    @pytest.mark.parametrize(
        ("call", "error", "message"),
        [
            (lambda p, x: p.run([1, 2]), FeedError, "a dict of arrays must be fed"),
            (lambda p, x: p.run({x: 1.0}), FeedError, "must be named by str"),
            (lambda p, x: p.run({}, 3), ArgumentError, "variables or their names must be given"),
            (lambda p, x: setattr(p, "outputs", None), ArgumentError, "must be given"),
            (lambda p, x: p.update("w", x), ProgramError, "is updated already"),
        ],
    )
    def test_messages(self, call, error, message):
        program, _ = trained()
        with pytest.raises(error, match=message):
            call(program, program["x"])

    def test_a_symbol_without_shapes(self):
        with pytest.raises(UnknownTypeError, match=r"to_program: .* pass them, x=\(\.\.\.\)"):
            so.sin(so.var("x")).to_program()


def test_a_list_of_fetches_is_remembered():
    program, loss = trained()
    ones = np.ones(2, "f")
    program.run({"x": ones}, [loss])
    first = program._last[2]
    program.run({"x": ones}, [loss])
    assert program._last[2] is first
    both = program.run({"x": ones}, [loss, "w"])
    assert len(both) == 2
    assert program._last[2] is not first


def test_adamw_has_the_decay_of_its_operator():
    program = so.Program()
    w = program.parameter("w", (3,), initial=2.0)
    so.optim.AdamW(0.1).minimize(so.sum(so.sin(w)))
    optimizer = optax.adamw(0.1)
    held = jnp.full(3, 2.0)
    state = optimizer.init(held)
    for _ in range(10):
        program.run()
        change, state = optimizer.update(jnp.cos(held), state, held)
        held = optax.apply_updates(held, change)
    np.testing.assert_allclose(program.scope["w"], held, rtol=1e-6)


class TestLossScale:
    def stepped(self, scale, feeds):
        program = so.Program()
        w, x = program.parameter("w", (2,), initial=1.0), program.data("x", (2,))
        so.optim.SGD(0.1, loss_scale=scale).minimize(so.sum(so.relu(w * x)))
        for one in feeds:
            program.run({"x": np.array([one, one], "f")})
        return program

    def test_it_does_not_grow_for_ever(self):
        program = self.stepped(so.optim.LossScale(2.0**20, interval=1), [-1.0] * 12 + [1.0] * 3)
        assert float(program.scope["loss_scale"]) == 2.0**24
        np.testing.assert_allclose(program.scope["w"], 0.7, rtol=1e-5)

    def test_it_does_not_vanish(self):
        program = self.stepped(so.optim.LossScale(4.0, interval=1), [np.nan] * 8 + [1.0])
        np.testing.assert_allclose(program.scope["w"], 0.9, rtol=1e-6)
        assert float(program.scope["loss_scale"]) == 2.0

    def test_bounds(self):
        with pytest.raises(ArgumentError, match="lowest <= initial <= highest"):
            so.optim.LossScale(2.0**30)

    def test_gradients_that_are_given_are_not_scaled(self):
        pairs = so.append_backward(trained()[1])
        with pytest.raises(ArgumentError, match="there must be no loss_scale"):
            so.optim.SGD(0.1, loss_scale=so.optim.LossScale()).apply_gradients(pairs)


@pytest.mark.parametrize(
    "again",
    [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_copies_and_pickles(again):
    program, loss = trained()
    ones = np.ones(2, "f")
    program.run({"x": ones}, loss)
    other = again(program)
    assert other == program
    losses = [
        [float(one.run({"x": ones}, loss.name)) for _ in range(3)] for one in (program, other)
    ]
    assert losses[0] == losses[1]


def test_a_dtype_that_is_none_is_told_as_damage():
    program, _ = trained()
    text = program.tojson().replace('"float32"', '"floaty"', 1)
    with pytest.raises(FormatError, match="floaty"):
        so.Program.from_desc(decode(text))


class TestControlFlow:
    @pytest.mark.parametrize(
        "call",
        [
            lambda w, a: so.scan(lambda h, x: (h + x, None), w, a),
            lambda w, a: so.scan(lambda h, x: (h * x, None), a[0], w),
            lambda w, a: so.scan(lambda h, x: (h + x + a[0], None), w[0], w),
        ],
        ids=["series", "carry", "closure"],
    )
    def test_eager_arrays_do_not_enter_a_program(self, call):
        w = so.Program().parameter("w", (2,))
        with pytest.raises(ArgumentError, match="must not be mixed, got a NDArray"):
            call(w, so.nd.zeros((2, 2)))

    def test_a_loop_of_no_steps_passes_gradients_on(self):
        w = so.var("w", shape=(3,))
        y = so.while_loop(lambda h: so.sum(h) < 10.0, lambda h: h * w, w * 2.0, max_steps=0)
        slope = so.grad(so.sum(y), w)
        np.testing.assert_array_equal(slope.eval(w=np.ones(3, "f")), 2.0 * np.ones(3))

    def test_no_steps_on_eager_arrays(self):
        x = so.nd.array(np.ones(2, "f"))
        x.attach_grad()
        with so.autograd.record():
            last, rows = so.scan(lambda c, s: (c * s, {"a": c + s}), x * 3.0, so.nd.zeros((0, 2)))
            total = so.sum(last)
        total.backward()
        assert rows["a"].shape == (0, 2)
        assert x.grad.value.tolist() == [3.0, 3.0]

    @pytest.mark.parametrize("flow", ["scan", "cond", "while_loop"])
    def test_rows_do_not_leave_a_body_unseen(self, flow):
        program = so.Program()
        table, ids = program.parameter("table", (50, 4)), program.data("ids", (5, 3), "int32")

        def looked(i):
            return so.sum(so.square(so.lookup_table(table, i, sparse=True)))

        if flow == "scan":
            total, _ = so.scan(lambda c, i: (c + looked(i), None), 0.0, ids)
        elif flow == "cond":
            total = so.cond(so.sum(ids) > 0, lambda: looked(ids), lambda: so.sum(table) * 0.0)
        else:
            zero = so.sum(table) * 0.0
            total = so.while_loop(lambda c: c < 9.0, lambda c: c + looked(ids), zero, max_steps=2)
        with pytest.raises(KindError, match=r"look the rows up before, or .* sparse=False"):
            so.append_backward(total)
