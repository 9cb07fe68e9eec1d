"""Eager calls that cannot run together: other devices, flags and threads, and calls that fail."""

import threading

import jax
import numpy as np
import pytest

import symop as so
from registry.errors import ArgumentError, GradientError
from symop import autograd, nd, random

pytestmark = pytest.mark.usefixtures("way")


def on(device, *numbers):
    return nd.array(numbers).to_device(f"cpu:{device}")


class TestDevices:
    def test_calls_on_two_devices_in_turn(self):
        for _ in range(3):  # unknown steps, known steps, known programs
            a, b = on(0, 1.0, 2.0), on(1, 3.0)
            doubled, tripled = a * 2, b * 3
            more = doubled + 1
            assert (doubled.tolist(), tripled.tolist(), more.tolist()) == ([2, 4], [9], [3, 5])
            assert [str(one.device) for one in (more, tripled)] == ["cpu:0", "cpu:1"]

    @pytest.mark.parametrize("order", [(0, 1), (1, 0)])
    def test_calls_of_arrays_that_jax_may_move_stay(self, order):
        """An uncommitted array moves only in a call with one that is committed elsewhere."""
        for _ in range(3):
            loose, far = nd.array([1.0, 2.0]), on(1, 3.0)
            calls = [lambda loose=loose: loose * 2, lambda far=far: far * 3]
            made = {i: calls[i]() for i in order}
            both = loose + far
            more, again = made[0] + 1, loose * 2
            assert [made[0].tolist(), made[1].tolist(), both.tolist()] == [[2, 4], [9], [4, 5]]
            places = [str(one.device) for one in (made[0], made[1], both, more, again)]
            assert places == ["cpu:0", "cpu:1", "cpu:1", "cpu:0", "cpu:0"]

    @pytest.mark.parametrize("order", [(0, 1), (1, 0)])
    def test_draws_are_on_the_default_device(self, order):
        far = on(1, 3.0)
        for _ in range(3):
            calls = [lambda: nd.random_uniform(shape=(2,)), lambda: far * 3]
            made = {i: calls[i]() for i in order}
            assert [str(made[i].device) for i in (0, 1)] == ["cpu:0", "cpu:1"]

    def test_draws_follow_the_default_device(self):
        far = on(1, 3.0)
        with jax.default_device(jax.devices()[1]):
            made = [far * 3, nd.random_uniform(shape=(2,)) + 1]
        assert [str(one.device) for one in made] == ["cpu:1", "cpu:1"]

    def test_a_constant_joins_the_calls_of_another_device(self):
        """It moves, as in JAX, and the calls still run together."""
        far = on(1, 3.0)
        first = far * 2
        second = first + nd.array([1.0])
        assert second._segment is first._segment
        assert (str(second.device), second.tolist()) == ("cpu:1", [7.0])

    def test_gradients_on_two_devices(self):
        a, b = on(0, 1.0, 2.0), on(1, 3.0)
        a.attach_grad()
        b.attach_grad()
        assert str(b.grad.device) == "cpu:1"
        for _ in range(3):
            with autograd.record():
                squares, cubes = a * a, b * b * b
            autograd.backward([squares, cubes])
            assert (a.grad.tolist(), b.grad.tolist()) == ([2.0, 4.0], [27.0])
            assert str(b.grad.device) == "cpu:1"

    def test_one_call_on_two_devices(self):
        a, b = on(0, 1.0), on(1, 3.0)
        good = a * 2 + 1
        with pytest.raises(ArgumentError, match="add: the inputs must lie on the same devices"):
            a + b
        assert good.tolist() == [3.0]

    def test_the_default_device_of_the_call(self):
        earlier = nd.array([1.0]) + 1
        with jax.default_device(jax.devices()[1]):
            later = nd.array([1.0]) * 2
        assert [str(one.device) for one in (earlier, later)] == ["cpu:0", "cpu:1"]


class TestCallsThatFail:
    def test_a_number_too_large_is_told_at_once(self):
        x = nd.array([1, 2])
        good = x * 2
        with pytest.raises(OverflowError):
            x + 2**40
        assert good.tolist() == [2, 4]

    def test_a_large_number_that_fits(self):
        with jax.enable_x64(True):
            assert (nd.array([1, 2]) + 2**40).tolist() == [2**40 + 1, 2**40 + 2]

    @pytest.mark.usefixtures("temporary_operators")
    def test_what_does_not_depend_on_it_is_computed(self, way):
        @so.registry.op(name="fails_later", opaque=True)
        def fails_later(x: so.registry.Array) -> so.registry.Array:
            """Nothing: it raises when it runs."""

            def refuse(_):
                raise RuntimeError("it cannot be computed")

            return jax.pure_callback(refuse, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

        x = nd.array([1.0, 2.0])
        before = x * 2
        if way == "fused":
            failing = so.registry.get("fails_later")(x)
            after, behind = before + 1, failing + 1
            for lost in (failing, behind):
                with pytest.raises(Exception, match="it cannot be computed"):
                    lost.tolist()
            assert after.tolist() == [3.0, 5.0]
        assert before.tolist() == [2.0, 4.0]


class TestFlags:
    def test_keys_are_drawn_once(self):
        so.random.seed(0)
        x = nd.ones((8,)) + 1
        before = random._source.drawn
        with autograd.train_mode(), jax.enable_x64(True):
            nd.dropout(x)
        assert random._source.drawn == before + 1

    def test_new_arrays_tell_that_a_flag_has_changed(self):
        y = nd.array([2**30] * 3) + 0
        with jax.enable_x64(True):
            z = y + nd.array([2**30] * 3, dtype="int64")
        assert z.tolist() == [2**31] * 3


class TestThreads:
    def recorded_elsewhere(self, x, wait=None):
        made, done = [], threading.Event()

        def work():
            with autograd.record():
                made.append(x * 5 * x)
            done.set()
            if wait is not None:
                wait.wait()

        thread = threading.Thread(target=work)
        thread.start()
        done.wait()
        return made[0], thread

    def test_of_a_thread_that_has_ended(self):
        x = nd.array([1.0, 2.0])
        x.attach_grad()
        y, thread = self.recorded_elsewhere(x)
        thread.join()
        with autograd.record():
            z = y * x
        z.backward()
        assert x.grad.tolist() == [15.0, 60.0]

    def test_of_a_thread_that_goes_on(self, way):
        x = nd.array([1.0, 2.0])
        x.attach_grad()
        wait = threading.Event()
        y, thread = self.recorded_elsewhere(x, wait)
        try:
            with autograd.record(), pytest.raises(GradientError, match="another thread recorded"):
                y * x
            assert y.tolist() == [5.0, 20.0]
        finally:
            wait.set()
            thread.join()


class Square(autograd.Function):
    def forward(self, x):
        self.save_for_backward(x)
        return x * x

    def backward(self, d_y):
        (x,) = self.saved_tensors
        return 2 * x * d_y


class Rounded(autograd.Function):
    """A straight-through estimator."""

    def forward(self, x):
        return nd.round(x)

    def backward(self, d_y):
        return d_y


class TestFunctions:
    def test_a_change_in_place_comes_too_late(self):
        w = nd.array([3.0])
        w.attach_grad()
        with autograd.record():
            y = Square()(w)
        y.backward(retain_graph=True)
        w -= 1.0
        y.backward(retain_graph=True)
        assert w.grad.tolist() == [6.0]
        (slope,) = autograd.grad(y, w, create_graph=True)
        slope.backward()
        assert w.grad.tolist() == [2.0]

    def test_an_object_serves_one_call(self):
        square = Square()
        square(nd.array(1.0))
        with pytest.raises(ArgumentError, match="Square: an object must be called once"):
            square(nd.array(2.0))

    def test_a_list_of_results(self):
        class Both(autograd.Function):
            def forward(self, x):
                return [x * x, x + 1]

            def backward(self, d_square, d_next):
                return 10 * d_square + d_next

        x = nd.array([1.0, 2.0])
        x.attach_grad()
        with autograd.record():
            square, following = Both()(x)
        autograd.backward([square, following])
        assert x.grad.tolist() == [11.0, 11.0]

    def test_the_record_is_freed(self):
        x = nd.array([1.0])
        x.attach_grad()
        with autograd.record():
            y = Square()(x)
        y.backward()
        with pytest.raises(GradientError, match="freed"):
            y.backward()

    def test_inside_of_jax(self):
        x = nd.array([1.2, 2.0])

        def total(function):
            return lambda x: function()(x).sum().asjax()

        np.testing.assert_allclose(jax.grad(total(Rounded))(x), [1.0, 1.0])
        slopes = jax.jit(jax.grad(total(Square)))
        np.testing.assert_allclose(slopes(x), [2.4, 4.0], rtol=1e-6)
        np.testing.assert_allclose(jax.vmap(jax.grad(total(Square)))(x), [2.4, 4.0], rtol=1e-6)
        twice = jax.grad(lambda x: jax.grad(total(Square))(x).sum().asjax())
        np.testing.assert_allclose(twice(x), [2.0, 2.0])
        np.testing.assert_allclose(jax.jit(Square())(x), [1.44, 4.0], rtol=1e-6)
        with pytest.raises(TypeError, match="custom_vjp"):
            so.jvp(Rounded(), x, x)
