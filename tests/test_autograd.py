"""Eager gradients: what is recorded, what a backward pass leaves, and every order of it."""

import asyncio
import itertools
import operator
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from registry.errors import ArgumentError, DisconnectedError, GradientError, ShapeError
from symop import autograd, nd


def attached(value, req="write", dtype=None):
    x = nd.array(value, dtype)
    x.attach_grad(req)
    return x


def slopes(function, x, step=1e-3):
    """Central differences of fourth order of the sum of ``function``, in float64."""
    x = np.asarray(x, np.float64)
    found = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        for k, weight in ((-2, 1 / 12), (-1, -2 / 3), (1, 2 / 3), (2, -1 / 12)):
            moved = x.copy()
            moved[place] += k * step
            found[place] += weight * float(np.sum(np.asarray(function(nd.array(moved)))))
    return found / step


@pytest.mark.usefixtures("way")
class TestOrders:
    def test_the_snippet_of_every_order(self):
        x = attached([1.0, 2.0, 3.0])
        with autograd.record():
            y = nd.sin(x)
            y_grad = autograd.grad(y, x, create_graph=True, retain_graph=True)[0]
        y_grad.backward()
        np.testing.assert_allclose(y_grad.asnumpy(), np.cos([1, 2, 3]), rtol=1e-6)
        np.testing.assert_allclose(x.grad.asnumpy(), -np.sin([1, 2, 3]), rtol=1e-6)

    @pytest.mark.usefixtures("x64")
    @pytest.mark.parametrize(
        "function",
        [
            lambda x: x * x * x,
            lambda x: x**2,
            lambda x: x**3,
            lambda x: nd.exp(2 * x),
            lambda x: nd.sum(nd.sin(x)),
            nd.silu,
            lambda x: nd.log_softmax(x) * nd.array([1.0, -2.0, 0.5]),
            lambda x: nd.tanh(x) / (1 + x * x),
        ],
    )
    @pytest.mark.sampled(4)
    def test_orders_one_to_three_against_differences(self, function):
        x = attached([0.3, -0.7, 1.1])

        def derivative(order):
            def run(point):
                at = point.copy()
                at.attach_grad()
                with autograd.record():
                    value = function(at)
                    for _ in range(order):
                        (value,) = autograd.grad(value, at, create_graph=True)
                return value

            return run

        for order in (1, 2, 3):
            found = derivative(order)(x).asnumpy()
            expected = slopes(derivative(order - 1), x)
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)

    @pytest.mark.usefixtures("x64")
    def test_mixed_partials(self):
        x, y = attached(0.4), attached(1.3)
        with autograd.record():
            z = nd.sin(x) * nd.cos(y)
            (by_x,) = autograd.grad(z, x, create_graph=True)
            (by_both,) = autograd.grad(by_x, y, create_graph=True)
            (further,) = autograd.grad(by_both, x, create_graph=True)
        assert by_both.item() == pytest.approx(-np.cos(0.4) * np.sin(1.3))
        assert further.item() == pytest.approx(np.sin(0.4) * np.sin(1.3))

    def test_first_gradients_are_those_of_jax(self):
        w, b = attached(np.ones((3, 4), np.float32) * 0.3), attached(np.zeros(4, np.float32))
        x = nd.array(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))

        def loss(w, b, x, of):
            return of.sum(of.tanh(of.matmul(x, w) + b) ** 2)

        with autograd.record():
            value = loss(w, b, x, nd)
        value.backward()
        expected = jax.grad(lambda w, b: loss(w, b, x.value, jnp), (0, 1))(w.value, b.value)
        np.testing.assert_allclose(w.grad, expected[0], rtol=1e-5)
        np.testing.assert_allclose(b.grad, expected[1], rtol=1e-5, atol=1e-6)

    def test_head_gradients_have_gradients(self):
        x, v = attached([1.0, 2.0]), attached([3.0, 4.0])
        with autograd.record():
            y = x * x
            (pulled,) = autograd.grad(y, x, head_grads=v, create_graph=True)
        pulled.backward()
        np.testing.assert_allclose(v.grad, [2.0, 4.0])
        np.testing.assert_allclose(x.grad, [6.0, 8.0])

    def test_dropout_is_the_same_in_both_passes(self):
        so.random.seed(3)
        x = attached(np.ones(100, np.float32))
        with autograd.record():
            y = nd.dropout(x, rate=0.5)
        y.backward()
        np.testing.assert_allclose(x.grad, y.asnumpy())
        assert 10 < np.count_nonzero(y.asnumpy()) < 90


@pytest.mark.usefixtures("way")
class TestBackward:
    def test_write_replaces_and_add_accumulates(self):
        x, y = attached([1.0, 2.0]), attached([1.0, 2.0], "add")
        for _ in range(3):
            with autograd.record():
                z = x * 2 + y * 3
            z.backward()
        np.testing.assert_allclose(x.grad, [2.0, 2.0])
        np.testing.assert_allclose(y.grad, [9.0, 9.0])
        y.zero_grad()
        np.testing.assert_allclose(y.grad, [0.0, 0.0])

    def test_null_has_no_gradient(self):
        x = attached([1.0], "null")
        assert x.grad is None
        with autograd.record():
            y = x * 2
        with pytest.raises(GradientError, match="attach_grad"):
            y.backward()

    @pytest.mark.parametrize("req", ["null", nd.OpReqType.NULL, ["null"]])
    def test_a_null_request_leaves_the_gradient_that_is_given(self, req):
        x, room = nd.array([1.0]), nd.array([5.0])
        autograd.mark_variables([x], [room], req)
        assert (x.grad, room.tolist()) == (None, [5.0])
        y, more = nd.array([2.0]), nd.array([7.0])
        autograd.mark_variables([x, y], [room, more], ["null", "add"])
        with autograd.record():
            z = x * y
        z.backward()
        assert x.grad is None
        assert (y.grad.tolist(), more.tolist(), room.tolist()) == ([8.0], [8.0], [5.0])

    @pytest.mark.parametrize("req", ["wrte", "write_inplace", nd.OpReqType.WRITE_INPLACE, 3, []])
    def test_requests_that_are_none(self, req):
        x = attached([1.0], "add")
        with pytest.raises(
            ArgumentError, match=r"attach_grad: req must be one of null, write, add"
        ):
            x.attach_grad(req)
        assert x.grad_req == "add"
        with pytest.raises(ArgumentError, match="got 'wrte'; did you mean 'write'"):
            autograd.mark_variables([x], [x], "wrte")

    def test_a_gradient_that_was_handed_out_is_written(self):
        x, held = attached([1.0, 2.0]), nd.array([7.0, 7.0])
        autograd.mark_variables(x, held)
        with autograd.record():
            y = x * x
        y.backward()
        np.testing.assert_allclose(held, [2.0, 4.0])
        assert x.grad is held

    def test_a_second_backward_pass_needs_the_record(self):
        x = attached([1.0])
        with autograd.record():
            y = nd.exp(x)
        y.backward(retain_graph=True)
        y.backward()
        with pytest.raises(GradientError, match="retain_graph=True"):
            y.backward()

    def test_several_heads_and_one_variable_many_times(self):
        x = attached([2.0])
        with autograd.record():
            heads = [x * x, x * x * x, x + x]
        autograd.backward(heads, [None, nd.array([10.0]), None])
        np.testing.assert_allclose(x.grad, [4 + 120 + 2])

    def test_what_is_not_reached_is_left(self):
        x, y = attached([1.0]), attached([1.0])
        y.grad[:] = 5
        with autograd.record():
            z = x * 2
        z.backward()
        np.testing.assert_allclose(y.grad, [5.0])

    def test_attach_grad_cuts_history(self):
        x = attached([3.0])
        with autograd.record():
            y = x * x
            y.attach_grad()
            z = y * 2
        z.backward()
        np.testing.assert_allclose(y.grad, [2.0])
        np.testing.assert_allclose(x.grad, [0.0])

    def test_detach_and_pause_cut_history(self):
        x = attached([3.0])
        with autograd.record():
            y = x * x
            with autograd.pause():
                factor = x * 10
            z = y + y.detach() + factor
        z.backward()
        np.testing.assert_allclose(x.grad, [6.0])

    def test_grad_by_a_recorded_value(self):
        x = attached([3.0])
        with autograd.record():
            y = x * x
            z = y * y
        by_y, by_x = autograd.grad(z, [y, x])
        np.testing.assert_allclose(by_y, [18.0])
        np.testing.assert_allclose(by_x, [108.0])

    def test_in_place_updates_of_what_is_recorded_are_refused(self):
        x = attached([1.0])
        with autograd.record():
            y = x * 2
            for array in (x, y):
                with pytest.raises(GradientError, match="in place"):
                    operator.iadd(array, 1)
                with pytest.raises(GradientError, match="in place"):
                    array[0] = 1
            fresh = nd.array([1.0])
            fresh += 1
            z = y * fresh
        z.backward()
        np.testing.assert_allclose(x.grad, [4.0])

    def test_updates_between_passes(self):
        x = attached([1.0])
        for _ in range(3):
            with autograd.record():
                y = x * x
            y.backward()
            x -= 0.25 * x.grad
        np.testing.assert_allclose(x, [0.125])

    def test_wrong_calls(self):
        x = attached([1.0, 2.0])
        with autograd.record():
            y = x * 2
        with pytest.raises(ShapeError, match=r"must be \(2,\), that of the head, got \(3,\)"):
            y.backward(nd.array([1.0, 2.0, 3.0]))
        with pytest.raises(ArgumentError, match="one head gradient for each of 1"):
            autograd.backward([y], [None, None])
        with pytest.raises(DisconnectedError, match="no path connects"):
            autograd.grad(y, attached([1.0]))
        with pytest.raises(GradientError, match="must have a gradient of its own"):
            autograd.grad(y, nd.array([1.0]))
        with pytest.raises(GradientError, match=r"inside autograd\.record"):
            (x * 2).backward()
        with pytest.raises(GradientError, match="floating"):
            nd.array([1, 2]).attach_grad()
        with pytest.raises(ArgumentError, match="eager arrays, got ndarray"):
            autograd.backward(np.ones(2))


class TestModes:
    def test_scopes_nest(self):
        assert (autograd.is_recording(), autograd.is_training()) == (False, False)
        with autograd.record():
            assert (autograd.is_recording(), autograd.is_training()) == (True, True)
            with autograd.pause():
                assert (autograd.is_recording(), autograd.is_training()) == (False, False)
                with autograd.train_mode():
                    assert (autograd.is_recording(), autograd.is_training()) == (False, True)
            with autograd.predict_mode():
                assert (autograd.is_recording(), autograd.is_training()) == (True, False)
        assert (autograd.is_recording(), autograd.is_training()) == (False, False)

    def test_an_error_leaves_a_clean_state(self):
        x = attached([1.0, 2.0])
        with pytest.raises(ShapeError), autograd.record():
            nd.matmul(x, nd.array([1.0, 2.0, 3.0]))
        assert (autograd.is_recording(), autograd.is_training()) == (False, False)
        with autograd.record():
            y = x * 2
        y.backward()
        np.testing.assert_allclose(x.grad, [2.0, 2.0])

    def test_threads_have_tapes_of_their_own(self):
        found = {}

        def work(number):
            x = attached([float(number)])
            with autograd.record():
                y = x
                for _ in range(100):
                    y = y * 1.01
            y.backward()
            found[number] = (autograd.is_recording(), x.grad.item())

        with autograd.record():
            threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
            for one in threads:
                one.start()
            for one in threads:
                one.join()
        assert set(found) == set(range(8))
        for recording, slope in found.values():
            assert not recording
            assert slope == pytest.approx(1.01**100, rel=1e-5)

    def test_a_value_that_another_thread_recorded(self):
        made = []
        thread = threading.Thread(target=lambda: made.append(nd.exp(nd.array([0.0, 1.0]))))
        thread.start()
        thread.join()
        np.testing.assert_allclose(made[0], np.exp([0.0, 1.0]), rtol=1e-6)

    def test_dropout_and_batch_norm_follow_the_mode(self):
        x = nd.array(np.random.default_rng(0).normal(3, 2, (50, 4)).astype(np.float32))
        mean, variance = nd.array(np.zeros(4)), nd.array(np.ones(4))
        gamma, beta = nd.array(np.ones(4)), nd.array(np.zeros(4))
        out = so.batch_norm(x, gamma, beta, mean, variance)
        np.testing.assert_allclose(mean, np.zeros(4))
        assert abs(out.asnumpy().mean()) > 1
        with autograd.record():
            out = so.batch_norm(x, gamma, beta, mean, variance)
        assert abs(out.asnumpy().mean()) < 1e-5
        assert np.all(mean.asnumpy() > 0)
        assert np.array_equal(nd.dropout(x, rate=0.5), x.asnumpy())


class TestTasks:
    """Tasks of asyncio that interleave have each a mode and a record of their own."""

    @staticmethod
    def run(*tasks):
        async def main():
            return await asyncio.gather(*tasks)

        return asyncio.run(main())

    def test_scopes_that_interleave(self):
        async def slope(factor, turns):
            x = nd.array([1.0, 2.0])
            x.attach_grad()
            with autograd.record():
                y = x * nd.array(factor)
                for _ in range(turns):
                    await asyncio.sleep(0)
                    assert autograd.is_recording()
                    y = y * x
            assert not autograd.is_recording()
            await asyncio.sleep(0)
            y.backward()
            return x.grad.tolist()

        async def bystander():
            for _ in range(6):
                x = nd.array(1.0)
                x.attach_grad()
                assert not autograd.is_recording()
                assert not (x * 2).is_recorded
                await asyncio.sleep(0)

        for _ in range(3):
            found = self.run(slope(1.0, 4), slope(2.0, 1), bystander(), slope(3.0, 2))
            assert found[0] == [5.0, 80.0]
            assert found[1] == [4.0, 8.0]
            assert found[3] == [9.0, 36.0]
            assert not autograd.is_recording()
            assert not autograd.is_training()

    def test_a_switch_is_the_task_s(self):
        async def switched():
            autograd.set_recording(True)
            autograd.set_training(True)
            await asyncio.sleep(0)
            return autograd.is_recording(), autograd.is_training()

        async def other():
            await asyncio.sleep(0)
            return autograd.is_recording(), autograd.is_training()

        assert self.run(switched(), other()) == [(True, True), (False, False)]
        assert not autograd.is_recording()

    def test_a_task_inherits_the_scope_in_which_it_begins(self):
        x = nd.array([2.0])
        x.attach_grad()

        async def square():
            await asyncio.sleep(0)
            return x * x

        async def main():
            with autograd.record():
                first, second = await asyncio.gather(square(), square())
                return first + second

        asyncio.run(main()).backward()
        assert x.grad.tolist() == [8.0]

    def test_values_go_from_task_to_task(self):
        x = nd.array([2.0])
        x.attach_grad()

        async def record(queue):
            with autograd.record():
                await queue.put(x * x)
                await asyncio.sleep(0)
                await asyncio.sleep(0)

        async def use(queue):
            y = await queue.get()
            assert (y + 1).tolist() == [5.0]
            y.backward()

        async def main():
            queue = asyncio.Queue()
            await asyncio.gather(record(queue), use(queue))

        asyncio.run(main())
        assert x.grad.tolist() == [4.0]

    def test_what_other_tasks_record_runs_before_an_array_is_handed_out(self):
        x = nd.array(np.arange(4.0, dtype=np.float32))

        async def waiting():
            with autograd.record():
                y = x * 3
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            return y

        async def donates():
            await asyncio.sleep(0)
            jax.jit(lambda a: a + 1, donate_argnums=0)(x.asjax())

        assert self.run(waiting(), donates())[0].tolist() == [0.0, 3.0, 6.0, 9.0]

    def test_a_thread_with_a_copy_of_the_context_records_by_itself(self):
        x = nd.array([2.0])
        x.attach_grad()

        def work():
            modes = [autograd.is_recording()]
            with autograd.record():
                y = x * x * x
            (slope,) = autograd.grad(y, x)
            return [*modes, slope.tolist()]

        async def main():
            with autograd.record():
                y = x * x
                found = await asyncio.gather(*[asyncio.to_thread(work) for _ in range(4)])
                y = y * x
            y.backward()
            return found

        assert asyncio.run(main()) == [[False, [12.0]]] * 4
        assert x.grad.tolist() == [12.0]


@pytest.mark.parametrize("scope", [autograd.pause, autograd.record, nd.direct])
def test_an_error_of_a_call_that_waited_does_not_hide_the_user_s(scope):
    def fail():
        nonlocal waiting
        with autograd.record(), scope():
            waiting = nd.broadcast_to(nd.array([[1.0, 2.0]]), shape=(1 << 42, 2))
            raise KeyError("the user's")

    waiting = None
    with pytest.raises((KeyError, jax.errors.JaxRuntimeError)) as caught:
        fail()
    if scope is not nd.direct:  # which raised it at the call
        assert caught.type is KeyError
        with pytest.raises(
            jax.errors.JaxRuntimeError, match=r"RESOURCE_EXHAUSTED|[Oo]ut of memory"
        ):
            waiting.wait_to_read()
    assert not autograd.is_recording()


@pytest.mark.usefixtures("way")
class TestFunction:
    class Sigmoid(autograd.Function):
        def forward(self, x):
            y = 1 / (1 + nd.exp(-x))
            self.save_for_backward(y)
            return y

        def backward(self, d_y):
            (y,) = self.saved_tensors
            return d_y * y * (1 - y)

    def test_first_and_second_order(self):
        x = attached([0.0, 1.0])
        with autograd.record():
            y = self.Sigmoid()(x)
            (slope,) = autograd.grad(y, x, create_graph=True)
        slope.backward()
        s = 1 / (1 + np.exp(-np.array([0.0, 1.0])))
        np.testing.assert_allclose(slope, s * (1 - s), rtol=1e-5)
        np.testing.assert_allclose(x.grad, s * (1 - s) * (1 - 2 * s), rtol=1e-5, atol=1e-7)

    def test_several_inputs_and_outputs(self):
        class Both(autograd.Function):
            def forward(self, a, b):
                return a + b, a * 2

            def backward(self, d_sum, d_twice):
                return d_sum + 2 * d_twice, d_sum

        a, b = attached([1.0]), attached([2.0])
        with autograd.record():
            total, twice = Both()(a, b)
        autograd.backward([total, twice], [nd.array([5.0]), None])
        np.testing.assert_allclose(a.grad, [7.0])
        np.testing.assert_allclose(b.grad, [5.0])

    def test_only_what_is_saved_moves(self):
        class Cube(autograd.Function):
            def __init__(self, saves):
                super().__init__()
                self.saves = saves

            def forward(self, x):
                self.x = x
                self.save_for_backward(x)
                return x * x * x

            def backward(self, d_y):
                x = self.saved_tensors[0] if self.saves else self.x
                return 3 * x * x * d_y

        for saves, second in ((True, 12.0), (False, 0.0)):
            x = attached([2.0])
            with autograd.record():
                y = Cube(saves)(x)
                (slope,) = autograd.grad(y, x, create_graph=True)
                total = slope + 0 * x
            total.backward()
            np.testing.assert_allclose(slope, [12.0])
            np.testing.assert_allclose(x.grad, [second])


class TestForward:
    @pytest.mark.usefixtures("x64")
    def test_of_a_function(self):
        x, v = nd.array([0.3, 0.5]), nd.array([1.0, -2.0])
        value, moved = autograd.jvp(lambda x: nd.sin(x) * x, x, v)
        at = np.array([0.3, 0.5])
        np.testing.assert_allclose(value, np.sin(at) * at)
        np.testing.assert_allclose(moved, (np.cos(at) * at + np.sin(at)) * np.array([1.0, -2.0]))


class TestInsideJax:
    def test_a_step_with_a_record_under_jit(self):
        def step(w, x):
            w.attach_grad()
            with autograd.record():
                loss = nd.sum((x * w) ** 2)
            loss.backward()
            return w - 0.1 * w.grad, loss

        w, x = nd.array([1.0, 2.0]), nd.array([3.0, 4.0])
        updated, loss = jax.jit(step)(w, x)
        assert isinstance(updated, so.NDArray)
        np.testing.assert_allclose(updated, [1 - 0.1 * 18, 2 - 0.1 * 64], rtol=1e-6)
        assert loss.item() == pytest.approx(9 + 64)

    def test_jax_grad_of_eager_code(self):
        found = jax.grad(lambda x: nd.sum(nd.silu(x)).value)(nd.array([0.5, -1.0]))
        expected = jax.grad(lambda x: jnp.sum(jax.nn.silu(x)))(jnp.array([0.5, -1.0]))
        np.testing.assert_allclose(found, expected, rtol=1e-6)

    def test_what_was_pending_is_computed_inside_of_a_trace(self):
        pending = nd.exp(nd.array([0.0, 1.0]))

        @jax.jit
        def run(y):
            return y + pending.value

        np.testing.assert_allclose(run(jnp.ones(2)), 1 + np.exp([0.0, 1.0]), rtol=1e-6)
        np.testing.assert_allclose(pending, np.exp([0.0, 1.0]), rtol=1e-6)


ARITHMETIC = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.matmul, divmod,
]  # fmt: skip
OTHERS = [
    operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, operator.lt,
    operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
]  # fmt: skip


@pytest.mark.usefixtures("way")
class TestOnTheRight:
    """An eager array answers for an operator whose left operand is another library's array."""

    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("left", [jnp.asarray, np.asarray], ids=["jax", "numpy"])
    @pytest.mark.parametrize("function", ARITHMETIC, ids=lambda one: one.__name__)
    def test_the_gradient_is_kept(self, function, left):
        data = np.array([[1.5, 2.5], [0.5, 3.5]], np.float32)
        x, other = nd.array(data[::-1] + 0.25), left(data)
        x.attach_grad()

        def total(found):
            return found[1].sum() if isinstance(found, tuple) else found.sum()

        with autograd.record():
            y = total(function(other, x)) + (x * x).sum()
        y.backward()
        by_jax = jax.grad(lambda a: total(function(jnp.asarray(data), a)) + (a * a).sum())
        np.testing.assert_allclose(x.grad, by_jax(x.asjax()), rtol=1e-5)

    @pytest.mark.parametrize("left", [jnp.asarray, np.asarray], ids=["jax", "numpy"])
    @pytest.mark.parametrize("function", [*ARITHMETIC, *OTHERS], ids=lambda one: one.__name__)
    def test_the_result_is_eager(self, function, left):
        data = np.array([[3, 2], [1, 3]], np.int32 if function in OTHERS else np.float32)
        found, expected = function(left(data), nd.array(data)), function(data, data)
        kinds = set(map(type, found)) if function is divmod else {type(found)}
        assert kinds == {nd.NDArray}
        np.testing.assert_array_equal(found, expected)

    def test_in_place_it_becomes_eager(self):
        p = nd.array([2.0])
        p.attach_grad()
        w = jnp.array([3.0])
        with autograd.record():
            w *= p
            w = w + p
        w.backward()
        assert p.grad.tolist() == [4.0]

    def test_inside_of_jax_it_stays_jax_unless_recorded(self):
        constant = nd.array([2.0, 3.0])
        slope = jax.grad(lambda w: (w * constant).sum())(jnp.ones(2))
        assert slope.tolist() == [2.0, 3.0]

        @jax.jit
        def run(w, v):
            p = nd.array(v)
            p.attach_grad()
            with autograd.record():
                y = w * p
            y.backward()
            return p.grad.asjax()

        assert run(jnp.array([5.0]), jnp.array([1.0])).tolist() == [5.0]

    def test_what_neither_knows_is_refused(self):
        class Other:
            pass

        with pytest.raises(TypeError):
            jnp.ones(1) + Other()
        assert (jnp.ones(2) == nd.array([1.0, 2.0])).tolist() == [True, False]


@pytest.mark.usefixtures("way")
class TestCopies:
    def test_casts_to_the_same_dtype_are_copies(self):
        x = attached([1.0, 2.0])
        other = x.astype("float32")
        assert other is not x
        other += 1
        assert x.tolist() == [1.0, 2.0]
        with autograd.record():
            y = x * 2
            z, itself = y.astype("float32"), y.astype("float32", copy=False)
            loss = (z * x.astype("float32")).sum()
        assert z is not y
        assert itself is y
        loss.backward()
        assert x.grad.tolist() == [4.0, 8.0]

    @pytest.mark.parametrize(
        "copied",
        [
            nd.array,
            lambda x: nd.array(x, dtype="float16"),
            lambda x: nd.asarray(x, copy=True),
            lambda x: nd.asarray(x, dtype="float16"),
        ],
    )
    def test_copies_are_recorded(self, copied):
        x = attached([1.0, 2.0])
        with autograd.record():
            y = x * x
            loss = (copied(y) * 2 + copied(x)).sum()
        loss.backward()
        assert x.grad.tolist() == [5.0, 9.0]
        assert copied(x) is not x
        assert not copied(x).is_recorded

    @pytest.mark.parametrize("made", [nd.array, nd.asarray])
    def test_lists_of_recorded_arrays_are_refused(self, made):
        x, constant = attached(1.0), nd.array(2.0)
        with autograd.record():
            y = x * 2
            assert made([constant, 3.0]).tolist() == [2.0, 3.0]
            for data in ([x, y], [constant, y], [[1.0], (y,)]):
                with pytest.raises(GradientError, match=r"recorded arrays would lose .* use stack"):
                    made(data)
            with pytest.raises(GradientError, match=r"recorded arrays would lose .* use stack"):
                nd.zeros(2)[:] = [y, 1.0]
        assert made([x, y]).tolist() == [1.0, 2.0]


@pytest.mark.usefixtures("way")
class TestSymbols:
    def test_a_recorded_computation_is_a_graph(self):
        x, w = attached([0.5, 1.0]), nd.array([2.0, 3.0])
        with autograd.record():
            y = nd.sin(x) * w
            for _ in range(100):
                y = y * 0.99
        symbol = autograd.get_symbol(y)
        assert symbol.list_arguments() == ["var0", "var1"]
        found = symbol.eval(var0=x.asnumpy(), var1=w.asnumpy())
        np.testing.assert_allclose(found, y.asnumpy(), rtol=1e-5)
        slope = so.grad(symbol, symbol.get_internals()["var0"])
        expected = np.cos([0.5, 1.0]) * np.array([2, 3]) * 0.99**100
        np.testing.assert_allclose(slope.eval(var0=x.asnumpy(), var1=w.asnumpy()), expected, 1e-5)

    def test_numbers_are_part_of_it_however_many_there_were(self):
        """Numbers that vary become inputs of the program; what is recorded does not change."""

        def recorded(number):
            x = attached([0.5, 1.0])
            with autograd.record():
                y = number - nd.cos(x) * number
                (slope,) = autograd.grad(y, x, create_graph=True)
            return autograd.get_symbol([y, slope])

        for number in (0.11, 0.12, 0.13, 0.14, 0.15, 0.16, 0.99, 2, True):
            symbol = recorded(number)
            assert symbol.list_arguments() == ["var0"]
            value, slope = symbol.eval(var0=np.array([0.5, 1.0], np.float32))
            np.testing.assert_allclose(value, number - np.cos([0.5, 1.0]) * number, rtol=1e-5)
            np.testing.assert_allclose(slope, np.sin([0.5, 1.0]) * number, rtol=1e-5)

    def test_gradients_are_part_of_it(self):
        x = attached([0.5, 1.0])
        with autograd.record():
            y = nd.sin(x) * x
            (slope,) = autograd.grad(y, x, create_graph=True)
            z = slope * 2
        found = autograd.get_symbol(z).eval(var0=np.array([0.2, 0.3], np.float32))
        at = np.array([0.2, 0.3])
        np.testing.assert_allclose(found, 2 * (np.cos(at) * at + np.sin(at)), rtol=1e-6)

    @pytest.mark.parametrize("freed", [False, True])
    def test_a_constant_is_one_variable_in_all_of_the_record(self, freed):
        x, w = attached([0.5, 1.0]), nd.array([2.0, 3.0])
        with autograd.record():
            y = nd.sin(x) * w
            y.wait_to_read()
            y = y * w
        if freed:
            y.backward()
        symbol = autograd.get_symbol(y)
        assert symbol.list_arguments() == ["var0", "var1"]
        found = symbol.eval(var0=x.asnumpy(), var1=np.array([5.0, 7.0], np.float32))
        np.testing.assert_allclose(found, np.sin(x.asnumpy()) * [25.0, 49.0], rtol=1e-6)

    def test_a_constant_that_changed_is_another_variable(self):
        x, w = attached([0.5, 1.0]), nd.array([2.0, 3.0])
        with autograd.record():
            y = x * w
            with autograd.pause():
                w += 1
            y = y * w
        found = autograd.get_symbol(y).eval(var0=x.asnumpy(), var1=[2.0, 3.0], var2=[10.0, 100.0])
        np.testing.assert_allclose(found, x.asnumpy() * [20.0, 300.0], rtol=1e-6)

    def test_gradients_share_constants(self):
        x, w = attached([0.5, 1.0]), nd.array([2.0, 3.0])
        with autograd.record():
            y = nd.sin(x) * w * w
            (slope,) = autograd.grad(y, x, create_graph=True)
            z = slope * y
        symbol = autograd.get_symbol(z)
        assert sorted(symbol.list_arguments()) == ["var0", "var1"]
        at, c = np.array([0.2, 0.3], np.float32), np.array([0.4, 0.1], np.float32)
        expected = np.sin(at) * np.cos(at) * c**4
        np.testing.assert_allclose(symbol.eval(var0=at, var1=c), expected, rtol=1e-5)

    def test_several_values_are_a_group(self):
        x, w = attached([0.5, 1.0]), nd.array([2.0, 3.0])
        with autograd.record():
            y = nd.sin(x)
            y.wait_to_read()
            z = y * w
        symbol = autograd.get_symbol([z, x, y])
        assert symbol.list_arguments() == ["var0", "var1"]
        assert len(symbol.list_outputs()) == 3
        found = symbol.eval(var0=x.asnumpy(), var1=w.asnumpy())
        for one, other in zip(found, (z, x, y), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)
        with pytest.raises(ArgumentError, match="at least one array"):
            autograd.get_symbol([])
        with pytest.raises(ArgumentError, match="takes eager arrays, got int"):
            autograd.get_symbol([z, 3])

    def test_an_array_with_a_gradient_is_a_variable(self):
        symbol = autograd.get_symbol(attached([[1.0, 2.0]], dtype="float16"))
        assert symbol.list_arguments() == symbol.list_outputs() == ["var0"]
        assert (symbol.type.shape, symbol.type.dtype) == ((1, 2), np.float16)

    @pytest.mark.parametrize("times", [1, 2])
    def test_moving_statistics_are_auxiliary_states(self, times, way):
        def layer(data, *rest):
            for _ in range(times):
                data = so.batch_norm(data, *rest)
            return data

        x = attached(np.random.default_rng(0).normal(3, 2, (6, 2)).astype(np.float32))
        parameters = [attached([1.5, 0.5]), attached([0.1, 0.2])]
        states = [nd.zeros(2), nd.ones(2)]
        fed = {"var0": x.asnumpy()} | {f"var{i + 1}": p.asnumpy() for i, p in enumerate(parameters)}
        aux = {f"var{i + 3}": state.asnumpy() for i, state in enumerate(states)}
        with autograd.record():
            loss = (layer(x, *parameters, *states) ** 2).sum()
        symbol = autograd.get_symbol(loss)
        loss.backward()
        assert symbol.list_arguments() == [*fed]
        if (way, times) == ("direct", 2):  # from one part of the record to the next it is another
            assert symbol.list_auxiliary_states() == ["var3", "var4", "var5", "var6"]
            return
        assert symbol.list_auxiliary_states() == [*aux]
        shapes = [so.var(name, shape=one.shape) for name, one in fed.items()]
        held = [so.var(name, shape=one.shape, state=True) for name, one in aux.items()]
        for one in (symbol, (layer(*shapes, *held) ** 2).sum()):
            bound = one.simple_bind()
            bound.copy_params_from(fed, aux)
            (found,) = bound.forward(is_train=True)
            np.testing.assert_allclose(found, loss, rtol=1e-6)
            bound.backward()
            for name, array in zip(fed, (x, *parameters), strict=True):
                np.testing.assert_allclose(bound.grad_dict[name], array.grad, rtol=1e-3, atol=1e-4)
            for name, state in zip(aux, states, strict=True):
                np.testing.assert_allclose(bound.aux_dict[name], state, rtol=1e-6)

    def test_what_is_no_graph_is_refused(self):
        with pytest.raises(GradientError, match="must be recorded"):
            autograd.get_symbol(nd.array([1.0]))
        x = attached([0.0])
        with autograd.record():
            y = TestFunction.Sigmoid()(x) * 2
        with pytest.raises(GradientError, match="Function lies on the way"):
            autograd.get_symbol(y)


def mlp(x, layers, activation):
    for w, b in layers[:-1]:
        x = activation(nd.matmul(x, w) + b)
    w, b = layers[-1]
    return nd.matmul(x, w) + b


def drawn_layers(sizes, seed=0):
    generator = np.random.default_rng(seed)
    return [
        (attached(generator.normal(0, 0.6, (m, n))), attached(generator.normal(0, 0.3, n)))
        for m, n in itertools.pairwise(sizes)
    ]


def along(run, arrays, seed=5, step=1e-4):
    """The slope of a number along a random direction of several arrays, and that direction."""
    generator = np.random.default_rng(seed)
    ways = [generator.normal(size=one.shape) for one in arrays]
    starts = [one.asnumpy() for one in arrays]
    total = 0.0
    for k, weight in ((-2, 1 / 12), (-1, -2 / 3), (1, 2 / 3), (2, -1 / 12)):
        for one, start, way in zip(arrays, starts, ways, strict=True):
            one[...] = start + k * step * way
        total += weight * run()
    for one, start in zip(arrays, starts, strict=True):
        one[...] = start
    return total / step, ways


@pytest.mark.usefixtures("x64")
class TestWhereOthersFail:
    """Losses that hold gradients, against finite differences."""

    def check(self, loss, arrays):
        with autograd.record():
            value = loss()
        autograd.backward(value)
        found = [one.grad.asnumpy() for one in arrays]

        def run():
            with autograd.record():
                return loss().item()

        slope, ways = along(run, arrays)
        exact = sum(float(np.sum(g * way)) for g, way in zip(found, ways, strict=True))
        assert exact == pytest.approx(slope, rel=1e-6, abs=1e-9)
        assert abs(exact) > 1e-6

    @pytest.mark.parametrize("name", ["sin", "tanh", "sigmoid", "relu", "leaky_relu"])
    def test_gradient_penalty(self, name):
        layers = drawn_layers([3, 8, 8, 1])
        points = np.random.default_rng(1).normal(size=(5, 3))

        def loss():
            x = attached(points)
            score = mlp(x, layers, getattr(nd, name))
            (slope,) = autograd.grad(score, x, create_graph=True)
            length = nd.sqrt(nd.sum(slope * slope, axis=1))
            return nd.mean((length - 1) ** 2)

        self.check(loss, [one for layer in layers[:-1] for one in layer][::2])

    def test_gradient_penalty_of_a_convolutional_critic(self):
        generator = np.random.default_rng(2)
        kernel = attached(generator.normal(0, 0.5, (4, 3, 3, 2)))
        dense = attached(generator.normal(0, 0.5, (4 * 4 * 4, 1)))
        images = generator.normal(size=(2, 2, 6, 6))

        def loss():
            x = attached(images)
            features = nd.leaky_relu(
                nd.convolution(
                    x, nd.permute_dims(kernel, axes=(0, 3, 1, 2)), channels=4, kernel=(3, 3),
                    use_bias=False,
                )
            )  # fmt: skip
            score = nd.matmul(nd.reshape(features, shape=(2, -1)), dense)
            (slope,) = autograd.grad(score, x, create_graph=True)
            length = nd.sqrt(nd.sum(slope * slope, axis=(1, 2, 3)))
            return nd.mean((length - 1) ** 2)

        self.check(loss, [kernel, dense])

    def test_second_derivatives_of_a_physics_informed_network(self):
        layers = drawn_layers([2, 10, 10, 1], seed=3)
        points = np.random.default_rng(4).uniform(-1, 1, (6, 2))

        def loss():
            x, t = attached(points[:, :1]), attached(points[:, 1:])
            u = mlp(nd.concat([x, t], axis=1), layers, nd.tanh)
            u_x, u_t = autograd.grad(u, [x, t], create_graph=True)
            (u_xx,) = autograd.grad(u_x, x, create_graph=True)
            return nd.mean((u_t + u * u_x - 0.01 * u_xx) ** 2)

        self.check(loss, [one for layer in layers[:-1] for one in layer])

    def test_hessian_vector_products_of_log_softmax_both_ways(self):
        x, weights = nd.array([0.3, -1.2, 0.8]), nd.array([1.0, -2.0, 0.5])
        v = nd.array([0.5, 1.0, -0.25])

        def slope(x):
            x.attach_grad()
            with autograd.record():
                y = nd.sum(nd.log_softmax(x) * weights)
                return autograd.grad(y, x, create_graph=True)[0]

        point = x.copy()
        product = autograd.grad(slope(point), point, head_grads=v)[0].asnumpy()
        _, forward = autograd.jvp(slope, x, v)
        s = np.exp(x.asnumpy()) / np.exp(x.asnumpy()).sum()
        hessian = -weights.asnumpy().sum() * (np.diag(s) - np.outer(s, s))
        np.testing.assert_allclose(product, hessian @ v.asnumpy(), rtol=1e-9)
        np.testing.assert_allclose(forward, hessian @ v.asnumpy(), rtol=1e-9)


# Zeros stay on the record


def repeated(function, x, order, by=None):
    """The derivative of ``function`` of that order, by recorded gradients and one backward pass."""
    by = x if by is None else by
    with autograd.record():
        y = function(x)
        for _ in range(order - 1):
            (y,) = autograd.grad(y, [by], create_graph=True)
    y.backward()
    return by.grad.tolist()


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("order", range(1, 7))
def test_a_derivative_that_is_zero_has_derivatives(order):
    assert repeated(nd.relu, attached([-1.0, 2.0]), order) == [[0.0, 1.0], [0.0, 0.0]][order > 1]
    expected = {1: [6.0], 2: [2.0]}.get(order, [0.0])
    assert repeated(lambda x: x * x, attached([3.0]), order) == expected
    other = attached([5.0])
    scaled = {1: [30.0], 2: [10.0]}.get(order, [0.0])
    assert repeated(lambda x: x * x * other, attached([3.0]), order) == scaled
    assert repeated(lambda x: x * other, attached([3.0]), order) == ([5.0] if order == 1 else [0.0])


@pytest.mark.usefixtures("way")
def test_a_zero_is_an_array_as_others():
    x, z = attached([3.0]), attached([2.0])
    with autograd.record():
        zero = x * x * z
        for _ in range(3):
            (zero,) = autograd.grad(zero, [x], create_graph=True)
        by_x, by_z = autograd.grad(zero * x + z, [x, z], create_graph=True)
        together = zero + z
    assert autograd.get_symbol(together).list_arguments() == ["var0"]
    zero.backward()
    zero.backward()
    assert [one.tolist() for one in (zero, by_x, by_z, x.grad)] == [[0.0], [0.0], [1.0], [0.0]]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("ran", ["nothing", "value", "gradient"])
@pytest.mark.parametrize("inside", [False, True])
def test_a_gradient_is_a_function_of_what_its_head_reads(ran, inside):
    """Though the gradient does not read it: the next derivative is zero, not missing."""
    x, w, other = attached([1.0, 2.0]), attached([3.0, 4.0]), attached([5.0])
    with autograd.record():
        h = w * 2.0
        z = x * x + h
        if ran == "value":
            z.wait_to_read()
        (slope,) = autograd.grad(z, x, create_graph=True)
        if ran == "gradient":
            slope.wait_to_read()
        twice = slope * 3.0
        if inside:
            found = autograd.grad(twice, [x, w, h, z], create_graph=True)
            (third,) = autograd.grad(found[1], w, create_graph=True)
            assert third.tolist() == [0.0, 0.0]
    if not inside:
        found = autograd.grad(twice, [x, w, h, z], retain_graph=True)
    assert [one.tolist() for one in found] == [[6.0, 6.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    with pytest.raises(DisconnectedError):
        autograd.grad(twice, other, retain_graph=True)
    w.grad = nd.ones(2)
    twice.backward()
    assert (x.grad.tolist(), w.grad.tolist()) == ([6.0, 6.0], [0.0, 0.0])


@pytest.mark.usefixtures("way")
def test_what_is_not_a_function_of_the_variable_is_refused():
    x, z = attached([3.0]), attached([2.0])
    with autograd.record():
        y = z * z
        (slope,) = autograd.grad(y, [z], create_graph=True)
    for one in (y, slope):
        with pytest.raises(DisconnectedError):
            autograd.grad(one, [x], create_graph=True)
