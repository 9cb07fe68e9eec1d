"""Eager code where it is easy to get wrong: records apart, states, traces, threads, aliases."""

import copy
import gc
import pickle
import threading
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import registry
import symop as so
from registry.errors import DTypeError, GradientError, KindError
from symop import autograd, nd
from symop.eager import assignment
from symop.eager.recording import flush
from symop.eager.segments import local
from symop.eager.tape_nodes import Custom, TapeNode
from symop.eager.trace_cache import tree

pytestmark = pytest.mark.usefixtures("way")


def attached(value, req="write"):
    x = nd.array(value)
    x.attach_grad(req)
    return x


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

    @pytest.mark.parametrize("transform", [jax.jit, jax.grad])
    def test_gradients_of_arrays_from_outside_do_not_leak(self, transform):
        w, v = attached([1.0, 2.0]), attached([1.0, 2.0])
        with autograd.record():
            before = (v * v).sum()
        before.backward()

        @transform
        def step(x):
            with autograd.record():
                loss = (w * v * nd.array(x)).sum()
            loss.backward()
            return loss.value

        with jax.checking_leaks(), pytest.raises(GradientError, match="marked outside"):
            step(jnp.array([3.0, 4.0]))
        np.testing.assert_allclose(w.grad, [0.0, 0.0])
        np.testing.assert_allclose(v.grad, [2.0, 4.0])

    def test_nor_do_those_of_an_inner_trace(self):
        @jax.jit
        def outer(w):
            w.attach_grad()

            def inner(x):
                with autograd.record():
                    loss = (w * nd.array(x)).sum()
                loss.backward()
                return loss.value

            with pytest.raises(GradientError, match="marked outside"):
                jax.grad(inner)(jnp.array([3.0, 4.0]))
            return w.grad

        np.testing.assert_allclose(outer(nd.array([1.0, 2.0])), [0.0, 0.0])

    def test_gradients_of_arrays_from_outside_can_be_returned(self):
        w = attached([1.0, 2.0])

        @jax.jit
        def slope(x):
            with autograd.record():
                loss = (w * w * nd.array(x)).sum()
            return autograd.grad(loss, w)[0]

        np.testing.assert_allclose(slope(jnp.array([3.0, 4.0])), [6.0, 16.0])
        np.testing.assert_allclose(w.grad, [0.0, 0.0])

    def test_what_a_trace_reads_and_sets_of_a_gradient_does_not_stay(self):
        w = attached([1.0, 2.0])
        found = jax.jit(lambda x: x + w.grad.value)(jnp.ones(2))
        np.testing.assert_allclose(found, [1.0, 1.0])
        assert not isinstance(w.grad.value, jax.core.Tracer)

        def set_gradient(x):
            w.grad = nd.array(x)

        with pytest.raises(GradientError, match="marked outside"):
            jax.jit(set_gradient)(jnp.ones(2))
        np.testing.assert_allclose(w.grad, [0.0, 0.0])

    def test_what_is_marked_in_a_trace_has_a_gradient_there(self):
        fixed = jnp.array([1.0, 2.0])

        @jax.jit
        def slope(x):
            w = nd.array(fixed)
            w.attach_grad("add")
            for _ in range(2):
                with autograd.record():
                    loss = (w * nd.array(x)).sum()
                loss.backward()
            return w.grad

        np.testing.assert_allclose(slope(jnp.array([3.0, 4.0])), [6.0, 8.0])


@pytest.fixture
def look_up(temporary_operators):
    """A table's rows, whose gradient are rows, too."""

    @registry.op
    def table_gradient(
        ids: registry.Array, cotangent: registry.Array, *, height: int
    ) -> registry.Array:
        """The rows that were looked up."""
        return registry.SelectedRows(ids, cotangent, height)

    @table_gradient.kind
    def table_gradient_kind(ids: registry.VarKind, cotangent: registry.VarKind) -> registry.VarKind:
        return registry.VarKind.SELECTED_ROWS

    @registry.op
    def look_up(table: registry.Array, ids: registry.Array) -> registry.Array:
        """Rows of a table."""
        return table[ids]

    @look_up.gradient
    def look_up_gradient(table, ids, d_out):
        return {"table": table_gradient(ids, d_out, height=table.shape[0])}

    return look_up


class TestRows:
    """Row-sparse gradients: as their makers return them, where nothing is added to them."""

    IDS = np.array([1, 4, 1], np.int32)
    DENSE = ([0.0, 0.0], [2.0, 2.0], [0.0, 0.0], [0.0, 0.0], [1.0, 1.0])

    def table(self, req="write"):
        return attached(np.arange(10, dtype=np.float32).reshape(5, 2), req)

    def backward(self, table, look_up):
        with autograd.record():
            loss = look_up(table, nd.array(self.IDS)).sum()
        loss.backward()

    def test_a_gradient_is_rows(self, look_up):
        table = self.table()
        for _ in range(2):  # run by parts, then compiled
            self.backward(table, look_up)
            assert isinstance(table.grad.value, registry.SelectedRows)
            assert table.grad.value.rows.tolist() == [1, 4, 1]
            np.testing.assert_array_equal(table.grad, self.DENSE)
        with autograd.record():
            loss = look_up(table, nd.array(self.IDS)).sum()
        (found,) = autograd.grad(loss, table)
        assert found.tolist() == list(map(list, self.DENSE))
        assert pickle.loads(pickle.dumps(found)).tolist() == found.tolist()

    def test_they_update_an_array(self, look_up):
        table = self.table()
        self.backward(table, look_up)
        table -= 0.5 * table.grad.to_dense()
        expected = np.arange(10).reshape(5, 2) - 0.5 * np.array(self.DENSE)
        np.testing.assert_allclose(table, expected)
        dense = nd.array([1.0])
        assert dense.to_dense() is dense

    def test_they_accumulate(self, look_up):
        table = self.table("add")
        for k in (1, 2, 3):
            self.backward(table, look_up)
            np.testing.assert_allclose(table.grad, k * np.array(self.DENSE))

    @pytest.mark.parametrize("apart", [False, True])
    def test_they_flow_through_what_takes_them(self, look_up, apart):
        """In one segment of the record or in several."""

        def through(table, ids):
            value = nd.tanh(table / 4)  # the gradient of tanh multiplies rows by its output
            if apart:
                value.wait_to_read()
            first = look_up(value, ids).sum()
            if apart:
                first.wait_to_read()
            return first + look_up(value, ids * 0).sum()

        table = self.table()
        for _ in range(2):
            with autograd.record():
                loss = through(table, nd.array(self.IDS))
            loss.backward()
            assert isinstance(table.grad.value, registry.SelectedRows)
            hits = np.array(self.DENSE) + np.array([[3.0], [0], [0], [0], [0]])
            slope = 1 / (4 * np.cosh(np.arange(10).reshape(5, 2) / 4) ** 2)
            np.testing.assert_allclose(table.grad, hits * slope, rtol=1e-4, atol=1e-6)

    @pytest.mark.parametrize("apart", [False, True])
    def test_operators_that_take_dense_arrays_refuse_them(self, look_up, apart):
        flat = attached(np.arange(10, dtype=np.float32))
        with autograd.record():
            value = nd.reshape(flat, shape=(5, 2))
            if apart:
                value.wait_to_read()
            loss = look_up(value, nd.array(self.IDS)).sum()
        with pytest.raises(KindError, match="reshape: slot 'x' must hold a dense array"):
            loss.backward()

    def test_they_cannot_be_assigned_to(self, look_up):
        table = self.table()
        self.backward(table, look_up)
        with pytest.raises(KindError, match="must be dense, got selected_rows"):
            table.grad[0] = 1

    def test_functions_of_ones_own_may_return_them(self, look_up):
        class Rows(autograd.Function):
            def forward(self, table):
                return look_up(table, nd.array(TestRows.IDS))

            def backward(self, d_rows):
                return registry.SelectedRows(jnp.asarray(TestRows.IDS), d_rows.value, 5)

        table = self.table()
        self.backward(table, lambda x, _: Rows()(x))
        np.testing.assert_array_equal(table.grad, self.DENSE)


class TestCopies:
    @pytest.mark.parametrize(
        "copied",
        [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)), nd.NDArray.copy],
    )
    def test_they_have_no_gradient_of_their_own(self, copied):
        x = attached([1.0, 2.0])
        with autograd.record():
            y = x * x
        y.backward()
        for one, entries in ((x, [1.0, 2.0]), (x.grad, [2.0, 4.0]), (y, [1.0, 4.0])):
            twin = copied(one)
            np.testing.assert_allclose(twin, entries)
            assert twin.grad is None
            assert not twin.is_recorded
            twin += 1
            np.testing.assert_allclose(one, entries)


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
        local.state.rest = 0  # run by itself nothing is pending
        x = nd.array([1.0, 2.0])
        y = nd.exp(x)

        def interrupted(program, values):
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr("symop.eager.segments.run_program", interrupted)
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

    @pytest.mark.thorough
    def test_a_loop_leaves_nothing_behind(self):
        x = attached([1.0, 2.0])

        def step():
            with autograd.record():
                (slope,) = autograd.grad((x * x * x).sum(), x, create_graph=True)
                loss = (slope * slope).sum()
            loss.backward()

        def living():
            gc.collect()
            kinds = (so.NDArray, TapeNode, Custom, jax.Array)
            return tree.count, sum(isinstance(one, kinds) for one in gc.get_objects())

        for _ in range(30):
            step()
        before = living()
        for _ in range(100):
            step()
        assert living() == before

    @pytest.mark.thorough
    def test_a_tape_needs_no_collector(self):
        x = attached([1.0, 2.0])

        def step():
            with autograd.record():
                y = (x * x).sum()
                (slope,) = autograd.grad(y, x, create_graph=True)
                z = slope.sum()
            flush()
            return [weakref.ref(one) for one in (y, slope, z)]

        gc.collect()
        gc.disable()
        try:
            assert [one() for one in step()] == [None] * 3
            x.grad = None
            kept = sum(isinstance(one, (TapeNode, Custom)) for one in gc.get_objects())
            step()
            now = sum(isinstance(one, (TapeNode, Custom)) for one in gc.get_objects())
        finally:
            gc.enable()
        assert now == kept

    @pytest.mark.sampled(2)
    def test_records_that_always_change_run_one_by_one(self):
        local.state.rest = 0  # what is noticed are programs of several calls
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
        local.state.rest = 0


def test_an_array_of_a_jax_array_has_memory_of_its_own():
    given = jnp.array([1.0, 2.0])
    copied, shared = nd.array(given), nd.asarray(given)
    assert shared.value is given
    assert nd.asarray(given, copy=True).value is not given
    jax.jit(lambda x: x + 1, donate_argnums=0)(given)
    assert copied.tolist() == [1.0, 2.0]


def test_dtypes_that_are_not_promoted():
    with (
        jax.numpy_dtype_promotion("strict"),
        pytest.raises(DTypeError, match=r"add: .*promotion"),
    ):
        nd.array([1], dtype="int32") + nd.array([1.0])


@pytest.mark.parametrize("leave", [jnp.sin, jax.jit(jnp.sin), lambda x: np.sin(np.asarray(x))])
def test_what_leaves_the_record_is_a_constant(leave):
    """JAX and NumPy are not recorded; ``docs/eager.md`` says so."""
    x = attached([1.0, 2.0])
    with autograd.record():
        y = leave(x) * x
        z = nd.sin(x) * x
    (constant,) = autograd.grad(y, x)
    (whole,) = autograd.grad(z, x)
    np.testing.assert_allclose(constant, np.sin([1.0, 2.0]), rtol=1e-6)
    np.testing.assert_allclose(
        whole, np.sin([1.0, 2.0]) + np.array([1.0, 2.0]) * np.cos([1.0, 2.0]), rtol=1e-6
    )
