"""Each array on the tape is a value of its own; both ways of running tell the same."""

import gc
import threading

import jax
import numpy as np
import pytest

from registry.errors import DisconnectedError, GradientError
from symop import autograd, nd
from symop.segments import local

pytestmark = pytest.mark.usefixtures("way")


def attached(value):
    made = nd.array(value)
    made.attach_grad()
    return made


class TestOwnValues:
    @pytest.mark.parametrize(
        "same",
        [
            lambda x: x.copy(),
            lambda x: x * 1,
            lambda x: x + 0,
            nd.identity,
            lambda x: x.reshape((1, 2)),
            lambda x: nd.cast(x, dtype="float32"),
        ],
    )
    def test_what_leaves_a_value_as_it_is(self, same):
        x = attached([[1.0, 2.0]])
        with autograd.record():
            y = same(x)
            z = y * x
        assert autograd.grad(z, y, retain_graph=True)[0].tolist() == [[1.0, 2.0]]
        assert autograd.grad(z, x)[0].tolist() == [[2.0, 4.0]]

    @pytest.mark.parametrize("read", [False, True])
    def test_equal_calls(self, read):
        x = attached([0.5, 2.0])
        with autograd.record():
            a, b = nd.sin(x), nd.sin(x)
            total = (a * 3 + b).sum()
        if read:
            total.wait_to_read()
        assert autograd.grad(total, a, retain_graph=True)[0].tolist() == [3.0, 3.0]
        assert autograd.grad(total, b, retain_graph=True)[0].tolist() == [1.0, 1.0]
        np.testing.assert_allclose(autograd.grad(total, x)[0], 4 * np.cos([0.5, 2.0]), rtol=1e-6)

    def test_a_value_that_another_one_equals_is_not_on_its_way(self):
        x, w = attached(2.0), attached(3.0)
        with autograd.record():
            y, q = x * w * 2, x * w
        assert q.item() == 6.0
        with pytest.raises(DisconnectedError):
            autograd.grad(y, q)

    @pytest.mark.parametrize("read", [False, True])
    def test_two_passes_of_one_network_are_freed_one_by_one(self, read):
        x, w = attached(0.2), attached(3.0)
        with autograd.record():
            first, second = (nd.tanh(x * w).sum() * scale for scale in (1, 3))
        if read:
            first.wait_to_read()
        first.backward()
        slope = w.grad.item()
        second.backward()
        np.testing.assert_allclose(w.grad.item(), 3 * slope, rtol=1e-6)

    def test_a_new_state_is_no_function_of_what_is_differentiated(self):
        x, gamma, beta = attached(np.ones((4, 3))), attached(np.ones(3)), attached(np.zeros(3))
        mean, variance = nd.zeros((3,)), nd.ones((3,))
        with autograd.record():
            nd.batch_norm(x, gamma, beta, mean, variance)
            head = (mean * 3).sum()
            moved = mean * 2
            moved += 1
        with pytest.raises(GradientError, match="a head must be computed"):
            head.backward()


class TestMemory:
    def test_losses_that_are_kept_hold_no_inputs(self):
        x, losses = attached(np.ones(777, np.float32)), []
        for i in range(20):
            data = nd.array(np.full(777, i, np.float32))
            with autograd.record():
                loss = nd.tanh(x * data).sum()
            loss.backward()
            x -= 0.001 * x.grad
            losses.append(loss)
        x.wait_to_read()
        del data
        gc.collect()
        assert [one.shape for one in jax.live_arrays()].count((777,)) < 10
        assert np.isfinite(sum(one.item() for one in losses))


class TestThreads:
    def test_what_another_thread_did_not_compute(self, way):
        x, made = attached(3.0), []

        def work():
            local.state.rest = -1 if way == "direct" else 0
            with autograd.record():
                made.append(x * x)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        (y,) = made
        if way == "fused":
            with pytest.raises(GradientError, match="recorded by the thread that asks"):
                y.backward()
        else:
            y.backward()
            assert x.grad.item() == 6.0


class TestInsideJax:
    def test_a_value_from_outside_is_no_tracer(self):
        x, kept = nd.array(3.0), []

        @jax.jit
        def function(v):
            kept.append(x * 2)
            return v * float((x * 2).sum())

        assert function(1.0) == 6.0
        assert kept[0].item() == 6.0

    def test_the_wide_flag_changes_on_the_way(self):
        y = nd.array([1.0]) / 3
        with jax.enable_x64(True):
            z = (y * 2).astype("float64")
        assert z.dtype == z.asnumpy().dtype == np.float64

    def test_another_thread_reads_a_wide_value(self):
        found = []
        with jax.enable_x64(True):
            y = nd.array(np.float64(1.0)) / 3
        thread = threading.Thread(target=lambda: found.append(y.asnumpy()))
        thread.start()
        thread.join()
        assert found[0].dtype == np.float64
        assert found[0] == 1 / 3

    def test_a_second_head_of_a_wide_record(self):
        with jax.enable_x64(True):
            x = attached(np.array([1.0, 2.0]))
            with autograd.record():
                first, second = nd.sum(x * x), nd.sum(x * x * x)
            first.backward()
        second.backward()
        assert x.grad.tolist() == [3.0, 12.0]

    def test_what_is_handed_out_may_be_donated(self):
        x = nd.array([1.0, 2.0])
        y = x * 2
        jax.jit(lambda v: v + 1, donate_argnums=0)(x.asjax())
        assert y.tolist() == [2.0, 4.0]
        z = nd.array([1.0, 2.0])
        y = z * 3
        jax.jit(lambda v: v + 1, donate_argnums=0)(z)
        assert y.tolist() == [3.0, 6.0]


class TestInPlace:
    def test_what_no_derivative_flows_through_may_change(self):
        c, m = nd.ones((3,)), nd.zeros((2,))
        with autograd.record():
            b = c * 2
            b += 1
            b *= 2
            m[0] = (c * 2).sum()
        assert b.tolist() == [6.0, 6.0, 6.0]
        assert m.tolist() == [6.0, 0.0]

    def test_what_one_flows_through_may_not(self):
        x = attached([1.0, 2.0])
        with autograd.record():
            b = x * 2
            with pytest.raises(GradientError, match="must not be changed in place"):
                b += 1


def test_an_error_says_where_the_call_stands():
    with pytest.raises(Exception, match=r"built at .*test_eager_values\.py"):
        nd.dot(nd.ones((1, 2)), nd.ones((1, 2)))
