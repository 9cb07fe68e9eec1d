"""Eager code where it is easy to get wrong: records apart, states, traces, threads, aliases."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from registry.errors import GradientError
from symop import assignment, autograd, nd
from symop.recording import local, settle
from symop.steps import tree


def attached(value, req="write"):
    x = nd.array(value)
    x.attach_grad(req)
    return x


@pytest.fixture(params=["fused", "direct"], autouse=True)
def way(request):
    settle()
    local.direct, local.surprise = request.param == "direct", 0
    yield request.param
    settle()
    local.direct = False


class TestRecords:
    def test_heads_are_freed_one_by_one(self):
        x, w = attached([1.0, 2.0]), attached([1.0, 2.0])
        with autograd.record():
            y, z = nd.exp(x), nd.sin(w)
        y.backward()
        z.backward()
        np.testing.assert_allclose(x.grad, np.exp([1.0, 2.0]), rtol=1e-6)
        np.testing.assert_allclose(w.grad, np.cos([1.0, 2.0]), rtol=1e-6)
        with pytest.raises(GradientError, match="freed"):
            y.backward()

    def test_what_two_heads_share_is_freed(self):
        x = attached([1.0])
        with autograd.record():
            shared = nd.exp(x)
            y, z = nd.sin(shared), nd.cos(shared)
        y.backward()
        with pytest.raises(GradientError, match="freed"):
            z.backward()

    def test_training_goes_on_with_batch_norm(self):
        generator = np.random.default_rng(0)
        x = nd.array(generator.normal(2, 3, (16, 3)).astype(np.float32))
        gamma, beta = attached(np.ones(3, np.float32)), attached(np.zeros(3, np.float32))
        mean, variance = nd.array(np.zeros(3, np.float32)), nd.array(np.ones(3, np.float32))
        for _ in range(3):
            with autograd.record():
                loss = (so.batch_norm(x, gamma, beta, mean, variance) ** 3).sum()
            loss.backward()
        expected = x.asnumpy().mean(0) * (1 - 0.9**3)
        np.testing.assert_allclose(mean, expected, rtol=1e-3)
        with autograd.record(train_mode=False):
            loss = so.batch_norm(x, gamma, beta, mean, variance).sum()
        loss.backward()
        np.testing.assert_allclose(beta.grad, [16.0] * 3, rtol=1e-5)

    def test_copies_keep_history_and_assignment_does_not_lose_it(self):
        x, b = attached([1.0, 2.0]), nd.array([0.0, 0.0])
        with autograd.record():
            y = x * x
            with pytest.raises(GradientError, match="assignment has no gradient"):
                b[:] = y
            with pytest.raises(GradientError, match="moved"):
                y.to_device("cpu:0")
            z = y.copy() * 3 + x
        z.backward()
        np.testing.assert_allclose(x.grad, [7.0, 13.0])

    def test_gradients_are_arrays_of_their_own(self):
        x, y, head = attached([1.0, 2.0]), attached([3.0, 4.0]), nd.array([1.0, 1.0])
        autograd.backward([x, y], [head, head])
        x.grad[:] = 0
        np.testing.assert_allclose(head, [1.0, 1.0])
        np.testing.assert_allclose(y.grad, [1.0, 1.0])
        assert autograd.grad(x, x, head)[0] is not head

    def test_the_gradient_can_be_set(self):
        x = attached([1.0, 2.0], "add")
        x.grad += 1
        np.testing.assert_allclose(x.grad, [1.0, 1.0])
        x.grad = None
        np.testing.assert_allclose(x.grad, [0.0, 0.0])
        with pytest.raises(GradientError, match="must be of type"):
            x.grad = nd.array([1.0])
        with pytest.raises(GradientError, match="must be of type"):
            autograd.mark_variables(x, nd.array([1.0]))

    def test_a_constant_of_recorded_arrays_has_the_gradient_zero(self):
        x = attached([1.0, 2.0])
        with autograd.record():
            y = x**0
        y.backward()
        np.testing.assert_allclose(x.grad, [0.0, 0.0])


class TestFunction:
    def made(self, gradient):
        class Own(autograd.Function):
            def forward(self, x):
                return x * 2

            def backward(self, d_y):
                return gradient

        return Own()

    @pytest.mark.parametrize("kind", [np.asarray, jnp.asarray, nd.array])
    def test_gradients_of_any_kind(self, kind):
        x = attached([1.0, 2.0])
        for inner in (lambda x: x, lambda x: x * 1):
            with autograd.record():
                y = self.made(kind(np.array([5.0, 7.0], np.float32)))(inner(x))
            y.backward()
            np.testing.assert_allclose(x.grad, [5.0, 7.0])

    @pytest.mark.parametrize(
        "gradient", [np.ones(3, np.float32), np.ones(2, np.float16), (None, None)]
    )
    def test_gradients_that_do_not_fit(self, gradient):
        x = attached([1.0, 2.0])
        with autograd.record():
            y = self.made(gradient)(x)
        with pytest.raises(GradientError, match="Own: "):
            y.backward()


class TestTraces:
    def test_jit_inside_of_a_record_leaves_pending_values_alone(self):
        x = attached([1.0, 2.0])
        with autograd.record():
            y = x * 2
            inner = jax.jit(lambda a: (nd.array(a) * 3).value)(jnp.ones(2))
            z = y + nd.array(inner)
        assert z.tolist() == [5.0, 7.0]
        z.backward()
        np.testing.assert_allclose(x.grad, [2.0, 2.0])

    def test_the_mode_holds_under_jit(self):
        ones, key = nd.array(np.ones(200, np.float32)), jax.random.key(0)
        with autograd.train_mode():
            dropped = jax.jit(lambda a: nd.dropout(a, rate=0.5, key=key))(ones)
        assert 20 < np.count_nonzero(dropped.asnumpy()) < 180
        kept = jax.jit(lambda a: nd.dropout(a, rate=0.5, key=key))(ones)
        assert np.count_nonzero(kept.asnumpy()) == 200

    def test_the_wide_flag_of_a_record_stays_with_it(self):
        with jax.enable_x64(True):
            x = attached([1.0, 2.0])
            with autograd.record():
                y = x * x + 0.1
        assert y.dtype == y.value.dtype == np.float64
        y.backward()
        assert x.grad.dtype == np.float64
        np.testing.assert_allclose(x.grad, [2.0, 4.0])


class TestThreads:
    def test_a_reader_does_not_cut_history(self):
        x, seen = attached([1.0, 2.0]), []
        with autograd.record():
            y = x * x
            reader = threading.Thread(target=lambda: seen.append(y.asnumpy()))
            reader.start()
            reader.join()
            z = y * 2 + x
        z.backward()
        np.testing.assert_allclose(seen[0], [1.0, 4.0])
        np.testing.assert_allclose(x.grad, [5.0, 9.0])


class TestErrors:
    def test_a_computation_that_fails_leaves_no_mode_behind(self):
        x = attached([1.0, 2.0])

        def fail():
            with autograd.record():
                y = nd.broadcast_to(nd.reshape(x, shape=(1, 2)), shape=(1 << 42, 2))
            y.wait_to_read()

        with pytest.raises(Exception, match=r"(?i)memory|exceeds|allocat|RESOURCE"):
            fail()
        assert not autograd.is_recording()
        assert not autograd.is_training()

    def test_an_interrupt_loses_nothing(self, monkeypatch):
        local.direct = False  # run by itself nothing is pending
        x = nd.array([1.0, 2.0])
        y = nd.exp(x)

        def interrupted(program, values):
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr("symop.recording.called", interrupted)
            with pytest.raises(KeyboardInterrupt):
                y.wait_to_read()
        np.testing.assert_allclose(y, np.exp([1.0, 2.0]), rtol=1e-6)

    def test_places_out_of_range(self):
        x = nd.array([1.0, 2.0, 3.0])
        for index in (5, -4, [0, 3]):
            with pytest.raises(IndexError, match="must be in"):
                x[index] = 1
        assert x.tolist() == [1.0, 2.0, 3.0]

    def test_numbers_that_only_bits_tell_apart(self):
        x = nd.array(1 + 0j)
        for number in (complex(-1, 0.0), complex(-1, -0.0)):
            expected = np.complex64(1) * np.complex64(number)
            assert str((x * number).item()) == str(complex(expected))
        large = nd.array([1.0, 2.0]) ** 3_000_000_000
        np.testing.assert_array_equal(large, [1.0, np.inf])


class TestCost:
    def test_slices_that_move_are_compiled_once(self):
        x = nd.array(np.arange(200, dtype=np.float32))

        def step(i):
            x[i : i + 3] = 1
            assert x[i : i + 5].sum().item() >= 3

        for i in range(10):
            step(i)
        before = tree.count, assignment._compiled.cache_info().misses
        for i in range(100):
            step(i)
        assert (tree.count, assignment._compiled.cache_info().misses) == before
        expected = np.arange(200)
        expected[:102] = 1
        np.testing.assert_array_equal(x, expected)

    def test_records_that_always_change_run_one_by_one(self):
        local.direct = False  # what is noticed are programs of several calls
        x = attached(np.full(3, 0.5, np.float32))
        generator = np.random.default_rng(0)
        before = tree.count
        for _ in range(80):
            with autograd.record():
                y = x
                for choice in generator.integers(0, 3, 20):
                    y = (nd.sin, nd.cos, nd.tanh)[choice](y)
            y.backward()
        assert tree.count - before < 40 * 100  # steps; a program counts for a hundred
        local.rest = 0
