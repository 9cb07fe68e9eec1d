"""Each array on the tape is a value of its own; both ways of running tell the same."""

import contextlib
import gc
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import registry
from registry.errors import DisconnectedError, GradientError
from symop import autograd, nd
from symop.eager.segments import local

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
    @pytest.mark.sampled(2)
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

    @pytest.mark.parametrize("view", [np.asarray, lambda x: np.asarray(x.asjax()), np.from_dlpack])
    def test_views_of_numpy_outlive_a_donation(self, view):
        x = nd.array(np.arange(1000.0, dtype=np.float32))
        seen = view(x)
        donated = jax.jit(lambda v: v + 1, donate_argnums=0)(x.asjax())
        assert np.array_equal(seen, np.arange(1000.0))
        assert np.array_equal(donated, np.arange(1000.0) + 1)
        assert np.array_equal(x.asnumpy(), np.arange(1000.0))

    def test_what_shares_the_buffer_ends_with_a_donation(self):
        x = nd.array(np.arange(1000.0, dtype=np.float32))
        shared = [x.detach(), x.to_device(x.device), jnp.asarray(x)]
        jax.jit(lambda v: v + 1, donate_argnums=0)(x.asjax())
        for one in shared:
            with pytest.raises(RuntimeError, match="deleted"):
                np.asarray(one)

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


class TestSettings:
    """What a call computes follows the settings of JAX when it was made."""

    @staticmethod
    def begun(*values):
        """Values that wait."""
        return [nd.array(np.asarray(one, np.float32)) + 0 for one in values]

    @pytest.mark.parametrize("taped", [False, True])
    @pytest.mark.parametrize("repeats", [1, 3])
    def test_nan_is_found_where_it_is_made(self, repeats, taped):
        def run(scope):
            x = nd.array([1.0, 0.0])
            x.attach_grad()
            with autograd.record() if taped else contextlib.nullcontext():
                y = x - 1
                with scope:
                    z = nd.log(y)
            return z

        for _ in range(repeats):  # the structure is known from the second time on
            assert np.isnan(run(contextlib.nullcontext()).asnumpy()).any()
        with pytest.raises(FloatingPointError, match="nan"):
            run(jax.debug_nans(True))
        assert np.isnan(run(contextlib.nullcontext()).asnumpy()).any()

    def test_infinities_are_found(self):
        for _ in range(2):
            (x,) = self.begun([1.0, 0.0])
            (1 / x).wait_to_read()
        (x,) = self.begun([1.0, 0.0])
        with pytest.raises(FloatingPointError), jax.debug_infs(True):
            (1 / x).wait_to_read()

    def test_what_waits_is_not_looked_at(self):
        (x,) = self.begun([-1.0])
        y = nd.log(x)
        with jax.debug_nans(True):
            assert np.isnan(y.asnumpy()).all()

    def test_products_have_the_precision_of_their_scope(self, temporary_operators):
        seen = []

        @registry.op(name="seeing", costly=True)
        def seeing(x: registry.Array) -> registry.Array:
            """``x`` itself."""
            seen.append(jax.config.jax_default_matmul_precision)
            return x

        for precision in (None, "highest", "bfloat16"):
            for _ in range(2):  # by parts, and compiled
                (x,) = self.begun([1.0])
                with jax.default_matmul_precision(precision):
                    z = seeing(x)
                z.wait_to_read()
            assert seen[-1] == precision
        (x,) = self.begun([1.0])
        with jax.default_matmul_precision("highest"):
            z = seeing(x)
        del seen[:]
        z.wait_to_read()
        assert seen == []  # known

    def test_strict_promotion_refuses_at_the_call(self):
        def run():
            x, y = self.begun([1.0]), nd.array([1], dtype="int32")
            return x[0] * y

        for _ in range(2):
            assert run().tolist() == [1.0]
        with jax.numpy_dtype_promotion("strict"), pytest.raises((TypeError, ValueError)):
            run().wait_to_read()
        assert run().tolist() == [1.0]
        with jax.numpy_dtype_promotion("strict"):
            x, y = self.begun([1.0], [2.0])
            z = x * y
        assert z.tolist() == [2.0]

    @pytest.mark.parametrize("taped", [False, True])
    @pytest.mark.parametrize("within", [False, True])
    def test_ranks_are_promoted_or_refused_at_the_call(self, within, taped):
        def run(scope, axes):
            x, y = attached(np.ones((2, 3), np.float32)), attached(np.ones(3, np.float32))
            with autograd.record() if taped else contextlib.nullcontext():
                if within:
                    with scope:
                        return x * 2 + nd.ones((2, 3)[axes:])
                x, y = x * 2, y * 2  # of the same segment
                with scope:
                    return (x + x if axes == 0 else x + y) * 2

        for _ in range(3):
            assert run(contextlib.nullcontext(), 1).shape == (2, 3)
            assert run(jax.numpy_rank_promotion("raise"), 0).shape == (2, 3)
        with pytest.raises(ValueError, match="rank_promotion"):
            run(jax.numpy_rank_promotion("raise"), 1)
        promoted = run(contextlib.nullcontext(), 1)
        with jax.numpy_rank_promotion("raise"):
            assert promoted.sum() == promoted.asnumpy().sum()

    def test_the_wide_flag_of_a_known_structure(self):
        def run(wide):
            (x,) = self.begun([1.0, 2.0])
            count = (x > 1).sum()
            with jax.enable_x64(wide):
                total = count.sum()
                long = x.astype("float64")
            return total.dtype, long.dtype, total.asnumpy().dtype, long.asnumpy().dtype

        narrow, wide = run(False), run(True)
        assert narrow == (np.int32, np.float32) * 2
        assert wide[1] == wide[3] == np.float64
        assert run(False) == narrow
        assert run(True) == wide

    def test_a_backward_pass_has_those_of_its_own_call(self):
        x = nd.array([0.0])
        x.attach_grad()

        def run(scope):
            with autograd.record():
                y = nd.sqrt(x) * 0  # whose slope is infinite, times zero
            with scope:
                y.backward()
                x.grad.wait_to_read()

        run(contextlib.nullcontext())
        assert np.isnan(x.grad.asnumpy()).all()
        with pytest.raises(FloatingPointError):
            run(jax.debug_nans(True))
