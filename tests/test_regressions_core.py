"""Defects that were found in graphs, rules and feeds, and must not come back."""

import gc
import threading
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from registry import Array, op
from registry.errors import ArgumentError, FeedError, NotDifferentiableError
from registry.types import VarType
from symop import random


class TestX64:
    def test_rules_made_before_the_flag_was_set(self):
        def derivative():
            total = lambda v: jnp.sum(so.cast(v, dtype="float64"))  # noqa: E731
            return jax.grad(total)(np.ones(2, np.float32))

        assert derivative().tolist() == [1.0, 1.0]
        with jax.enable_x64(True):
            assert derivative().tolist() == [1.0, 1.0]
        assert derivative().tolist() == [1.0, 1.0]

    def test_held_arrays_have_the_dtype_that_was_declared(self):
        x = so.var("x", (2,))
        y = x + np.ones(2)
        with jax.enable_x64(True):
            out = y.to_jax()(np.ones(2, np.float32))
        assert (out.dtype, out.tolist()) == (np.float32, [2.0, 2.0])


class TestDeclaredDerivatives:
    def test_a_declared_zero_is_zero_everywhere(self, temporary_operators):
        @op(name="declared_flat")
        def declared_flat(x: Array) -> Array:
            """A square, declared constant."""
            return x * x

        declared_flat.zero_gradient("it is declared so")
        x = so.var("x", ())
        y = declared_flat(x) * x
        assert float(so.grad(y, x).eval(x=3.0)) == 9.0
        for function in (y.to_jax(), lambda v: declared_flat(v) * v):
            assert float(jax.grad(function)(3.0)) == 9.0
            assert float(jax.jvp(function, (3.0,), (1.0,))[1]) == 9.0
            assert float(jax.grad(jax.grad(function))(3.0)) == 0.0
        assert float(jax.grad(so.grad(y, x).to_jax())(3.0)) == 0.0

    @pytest.mark.parametrize("declared", [True, False])
    def test_no_derivative_is_refused_when_asked_for(self, declared, temporary_operators):
        @op(name="underived")
        def underived(x: Array) -> Array:
            """A square without derivative."""
            return x * x

        if declared:
            underived.no_gradient("it is a secret")
        reason = "a secret" if declared else "no gradient maker is registered"
        function = underived(so.var("x", ())).to_jax()
        for f in (function, underived):
            assert float(f(3.0)) == 9.0
            assert jax.vmap(f)(jnp.ones(2)).tolist() == [1.0, 1.0]
            with pytest.raises(NotDifferentiableError, match=f"underived: .*{reason}"):
                jax.grad(f)(3.0)
            with pytest.raises(NotDifferentiableError, match=reason):
                jax.jit(jax.jvp, static_argnums=0)(f, (3.0,), (1.0,))
        kept = jax.grad(lambda v, w: function(v) * w, argnums=1)
        assert float(kept(3.0, 1.0)) == 9.0

    def test_outputs_that_carry_no_derivative_need_none(self, temporary_operators):
        @op(name="how_many")
        def how_many(x: Array) -> Array:
            """How many entries are positive."""
            return jnp.sum(x > 0)

        x = so.var("x", (2,))
        function = so.sum(x * how_many(x)).to_jax()
        assert jax.grad(function)(np.ones(2, np.float32)).tolist() == [2.0, 2.0]
        assert "custom_jvp" not in str(jax.make_jaxpr(how_many(x).to_jax())(np.ones(2, "f")))

    def test_stop_gradient_and_sign(self):
        x = so.var("x", ())
        y = so.stop_gradient(x) * x + so.sign(x) * x
        for function in (y.to_jax(), y.to_jax(rules=False)):
            assert float(jax.grad(function)(3.0)) == 4.0
        assert "custom_jvp" not in str(jax.make_jaxpr(so.stop_gradient(x).to_jax())(1.0))

    def test_a_maker_that_differs_from_jax_is_kept_in_gradients(self, temporary_operators):
        @op(name="straight_through")
        def straight_through(x: Array) -> Array:
            """Rounding, differentiated as the identity."""
            return jnp.round(x)

        @straight_through.gradient
        def straight_through_gradient(d_out):
            return {"x": d_out}

        x = so.var("x", ())
        y = straight_through(x) * straight_through(x) * x
        first = so.grad(y, x)
        expected = float(so.grad(first, x).eval(x=1.6))
        assert float(jax.grad(first.to_jax())(1.6)) == pytest.approx(expected)
        assert expected == pytest.approx(2 * 1.6 + 2 * 2 * 2)

    def test_only_the_catalogue_is_native_by_default(self, temporary_operators):
        def plain_copy(x: Array) -> Array:
            """``x``."""
            return x

        assert so.sin.native
        assert not op(plain_copy).native
        assert op(name="declared_native", native=True)(plain_copy).native


class TestConstants:
    def test_arrays_are_copied(self):
        x = so.var("x", (3,))
        given = np.ones(3, np.float32)
        frozen = np.broadcast_to(given, (3,))
        y, z = x + given, x + frozen
        given[:] = 5
        assert y.eval(x=[0, 0, 0]).tolist() == [1.0] * 3
        assert z.eval(x=[0, 0, 0]).tolist() == [1.0] * 3

    @pytest.mark.parametrize(
        "number", [2**31, -(2**31) - 1, [2**40], np.int64(2**40), np.full(1, 2**40)]
    )
    def test_integers_that_do_not_fit_are_refused(self, number):
        x = so.var("x", (1,), "int32")
        with pytest.raises(ArgumentError, match=r"must fit int32(?s:.*)test_regressions_core"):
            x + number
        with jax.enable_x64(True):
            assert (so.var("x", (1,), "int64") + number).dtype == np.int64

    def test_integers_that_fit(self):
        x = so.var("x", (1,), "int32")
        assert (x + (2**31 - 1)).eval(x=[0]).tolist() == [2**31 - 1]
        assert so.add(x, [-(2**31)]).eval(x=[0]).tolist() == [-(2**31)]
        assert (x + np.arange(1)).dtype == np.int32
        assert so.add(so.var("f", (1,)), [1e300]).eval(f=[0]).tolist() == [np.inf]


class TestFeeds:
    def test_numbers_that_overflow(self):
        y = so.var("x", (1,), "int32") + 1
        with pytest.raises(FeedError, match="x: numbers must fit"):
            y.eval(x=[2**40])

    @pytest.mark.parametrize("key", [0, 1.5, np.zeros(2), np.uint32(3), "key"])
    def test_what_is_no_key(self, key):
        function = so.dropout(so.var("x", (4,)), training=True).to_jax(is_train=True)
        with pytest.raises(FeedError, match="must be a JAX random key"):
            function(np.ones(4, np.float32), key=key)

    def test_keys(self):
        function = so.dropout(so.var("x", (4,))).to_jax(is_train=True)
        ones = np.ones(4, np.float32)
        new, old = jax.random.key(3), np.asarray(jax.random.PRNGKey(3))
        assert np.array_equal(function(ones, key=new), function(ones, key=old))


class TestSeed:
    def test_no_draw_inside_a_trace(self):
        ones = np.ones(4, np.float32)
        with pytest.raises(ArgumentError, match=r"dropout: key= must be given inside a JAX"):
            jax.jit(lambda: so.dropout(ones, training=True))()
        y = so.dropout(so.var("x", (4,)), training=True)
        with pytest.raises(ArgumentError, match=r"key= must be given inside a JAX"):
            jax.jit(lambda: y.eval(x=ones))()
        assert jax.jit(lambda: so.dropout(ones))().tolist() == [1.0] * 4
        assert so.dropout(ones, training=True).shape == (4,)

    def test_the_root_does_not_leak_from_a_trace(self, monkeypatch):
        source = random._Source()
        jax.jit(lambda: source.draw(1)[1])()
        assert not isinstance(source.root, jax.core.Tracer)


class TestMemory:
    def test_an_old_output_keeps_no_other_graph_alive(self):
        x = so.var("memory_x", (2,))
        kept = []
        for i in range(3):
            y = so.sin(x * float(i + 2))
            so.Group([x, y]).eval(memory_x=[1.0, 2.0])
            kept.append(weakref.ref(y.node))
        del y
        gc.collect()
        assert [one() for one in kept] == [None] * 3

    def test_equal_types_are_one_object_in_all_threads(self):
        barrier = threading.Barrier(8)
        made = [[] for _ in range(8)]

        def make(own):
            barrier.wait()
            own.extend(VarType((n, 7919), np.dtype(np.float32)) for n in range(500))

        threads = [threading.Thread(target=make, args=(own,)) for own in made]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert all(len({id(one) for one in same}) == 1 for same in zip(*made, strict=True))
