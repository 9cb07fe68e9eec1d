"""Gradients of what did not run yet: one program for a record and its backward passes."""

import jax
import numpy as np
import pytest

from registry.errors import DisconnectedError, GradientError
from symop import autograd, nd
from symop.eager import segments
from symop.eager.programs import SegmentProgram
from symop.eager.recording import flush
from symop.eager.segments import local


def attached(value, req="write"):
    made = nd.array(value)
    made.attach_grad(req)
    return made


@pytest.fixture
def runs(monkeypatch):
    """The programs that ran."""
    found = []
    run = SegmentProgram.__call__

    def counted(self, values):
        found.append(self)
        return run(self, values)

    monkeypatch.setattr(SegmentProgram, "__call__", counted)
    return found


@pytest.fixture(autouse=True)
def _nothing_waits():
    flush()
    local.state.rest = local.state.surprise = 0
    yield
    flush()


class TestOneProgram:
    def test_a_record_and_its_backward_pass(self, runs):
        x = attached([1.0, 2.0])
        with autograd.record():
            y = nd.sin(x) * x
        y.backward()
        assert runs == []
        np.testing.assert_allclose(x.grad.asnumpy(), np.cos([1, 2]) * [1, 2] + np.sin([1, 2]), 1e-6)
        np.testing.assert_allclose(y.asnumpy(), np.sin([1, 2]) * [1, 2], 1e-6)
        assert len(runs) == 1

    def test_three_orders(self, runs):
        x = attached(0.7)
        with autograd.record():
            value = nd.sin(x)
            for _ in range(3):
                (value,) = autograd.grad(value, x, create_graph=True)
        np.testing.assert_allclose(value.item(), -np.cos(0.7), 1e-6)
        assert len(runs) == 1

    def test_it_saves_no_residuals(self, runs):
        x = attached([1.0, 2.0])
        with autograd.record():
            h = nd.sin(x)
            loss = nd.sum(h * h)
        loss.backward()
        x.grad.wait_to_read()
        assert [len(one.outputs) for one in runs] == [3]  # h, the loss and the gradient
        assert h._link is not None

    def test_values_that_are_asked_for_first(self, runs):
        x = attached([1.0, 2.0])
        with autograd.record():
            y = nd.sum(x * x * x)
        assert y.item() == 9.0
        y.backward()
        assert x.grad.tolist() == [3.0, 12.0]
        assert len(runs) == 2


class TestTheSameAsAfterwards:
    @pytest.mark.parametrize("ran", [False, True])
    def test_a_record_is_freed(self, ran):
        x = attached([1.0, 2.0])
        with autograd.record():
            y = x * x
        if ran:
            y.wait_to_read()
        y.backward()
        with pytest.raises(GradientError, match="an earlier backward pass freed it"):
            y.backward()
        assert x.grad.tolist() == [2.0, 4.0]
        assert y.tolist() == [1.0, 4.0]

    @pytest.mark.parametrize("ran", [False, True])
    def test_a_second_pass_is_refused_where_no_maker_reads_a_value(self, ran):
        x = attached([1.0, 2.0])
        with autograd.record():
            y = x + 1
            apart = y * 2
        if ran:
            y.wait_to_read()
        y.backward()
        with pytest.raises(GradientError, match="an earlier backward pass freed it"):
            y.backward()
        apart.backward()
        assert x.grad.tolist() == [2.0, 2.0]

    @pytest.mark.parametrize("ran", [False, True])
    def test_heads_that_share_calls(self, ran):
        x = attached(0.5)
        with autograd.record():
            h = nd.sin(x)
            one, other, apart = h * 2, nd.exp(h), nd.cos(x)
        if ran:
            one.wait_to_read()
        one.backward()
        with pytest.raises(GradientError, match="freed"):
            other.backward()
        apart.backward()
        np.testing.assert_allclose(x.grad.item(), -np.sin(0.5), 1e-6)
        np.testing.assert_allclose(other.item(), np.exp(np.sin(0.5)), 1e-6)

    def test_a_kept_record(self):
        x = attached(2.0)
        with autograd.record():
            y = x * x * x
        for keep in (True, True, False):
            x.zero_grad()
            y.backward(retain_graph=keep)
            assert x.grad.item() == 12.0
        with pytest.raises(GradientError, match="freed"):
            y.backward()

    def test_a_gradient_that_was_not_asked_to_move(self):
        x = attached(2.0)
        with autograd.record():
            (slope,) = autograd.grad(x * x, x, retain_graph=True)
            y = slope * x  # 4 x
        y.backward()
        assert x.grad.item() == 4.0
        assert not slope.is_recorded

    def test_derivatives_by_cotangents(self):
        x, v = attached(2.0), attached(5.0)
        with autograd.record():
            (slope,) = autograd.grad(x * x * x, x, head_grads=v, create_graph=True)
        slope.backward()
        assert (v.grad.item(), x.grad.item()) == (12.0, 60.0)

    def test_a_cotangent_from_an_earlier_record(self):
        x, v = attached(2.0), attached(5.0)
        with autograd.record():
            u = v * v
        u.wait_to_read()
        with autograd.record():
            (slope,) = autograd.grad(x * x * x, x, head_grads=u, create_graph=True)
        slope.backward()
        assert (v.grad.item(), x.grad.item()) == (120.0, 300.0)

    def test_by_a_value_on_the_way(self):
        x = attached(0.5)
        with autograd.record():
            h = nd.sin(x)
            (by_h,) = autograd.grad(h * h, h, create_graph=True)
            (by_x,) = autograd.grad(by_h, x)
        np.testing.assert_allclose(by_h.item(), 2 * np.sin(0.5), 1e-6)
        np.testing.assert_allclose(by_x.item(), 2 * np.cos(0.5), 1e-6)

    def test_a_variable_that_is_not_connected(self):
        x, other = attached(2.0), attached(3.0)
        with autograd.record():
            y, _ = x * x, other * other
        with pytest.raises(DisconnectedError):
            autograd.grad(y, other)
        y.backward()
        assert (x.grad.item(), other.grad.item()) == (4.0, 0.0)

    def test_gradients_are_added(self):
        x = attached(2.0, "add")
        for _ in range(3):
            with autograd.record():
                y = x * x
            y.backward()
        assert x.grad.item() == 12.0

    def test_an_array_that_changes_before_it_runs(self):
        x = attached(2.0)
        with autograd.record():
            y = x * x
        x[...] = 7.0
        y.backward()
        assert (x.grad.item(), y.item()) == (4.0, 4.0)

    @pytest.mark.parametrize("wide", [False, True])
    def test_the_wide_flag(self, wide):
        with jax.enable_x64(wide):
            x = attached(np.float64(2.0))
            with autograd.record():
                y = nd.sin(x)
            (slope,) = autograd.grad(y, x, create_graph=True)
        assert slope.asnumpy().dtype == (np.float64 if wide else np.float32)
        np.testing.assert_allclose(slope.item(), np.cos(2.0), 1e-12 if wide else 1e-6)


def test_an_array_that_takes_another_value_before_it_runs():
    x = attached(2.0)
    with autograd.record():
        y = x * x
        z = y * 3
    assert local.state.parked is not None
    nd.square(nd.array(3.0), out=y)
    assert y.item() == 9.0
    z.backward()
    flush()
    assert (y.item(), z.item(), x.grad.item()) == (9.0, 12.0, 12.0)


def test_two_records_wait_at_most_one():
    x = attached(2.0)
    with autograd.record():
        first = x * x
    with autograd.record():
        second = first + x * x * x
    assert first._value is not None  # the second one needed it
    second.backward()
    assert x.grad.item() == 16.0
    assert local.state.parked is None


def test_an_error_leaves_nothing_waiting():
    x = attached(2.0)
    made = []

    def fail():
        with autograd.record():
            made.append(x * x)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    (y,) = made
    assert not autograd.is_recording()
    y.backward()
    assert x.grad.item() == 4.0


def test_a_scope_that_cannot_be_entered():
    waiting = nd.broadcast_to(nd.array([[1.0, 2.0]]), shape=(1 << 42, 2))
    scope = autograd.record()
    with pytest.raises(Exception, match=r"RESOURCE_EXHAUSTED|[Oo]ut of memory"):
        scope.__enter__()
    assert not autograd.is_recording()
    assert not autograd.is_training()
    assert waiting.shape == (1 << 42, 2)


def test_an_interrupt_loses_no_record(monkeypatch):
    x = attached(3.0)
    with autograd.record():
        y = x * x

    def interrupt(program, values):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(segments, "run_program", interrupt)
        with pytest.raises(KeyboardInterrupt):
            y.wait_to_read()
    assert y.item() == 9.0
    y.backward()
    assert x.grad.item() == 6.0
