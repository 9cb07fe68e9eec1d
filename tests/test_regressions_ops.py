"""Defects that were found in operators, where a case beside the operator cannot tell of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from registry import var
from registry.errors import ArgumentError


class TestMeansOfManyEntries:
    N = 70_000
    """More than float16 can count."""

    @pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
    @pytest.mark.parametrize("head", [1.0, 3.0, 1000.0])
    def test_mean(self, dtype, head):
        x = so.var("x", (self.N,), dtype)
        fed = jnp.ones(self.N, dtype)
        by_jax = jax.grad(lambda v: (head * jnp.mean(v)).astype(dtype))(fed)
        grad = so.grad(head * so.mean(x), x)
        for found in (grad.eval(x=fed), jax.grad(lambda v: head * so.mean(v))(fed)):
            assert found.dtype == by_jax.dtype == dtype
            np.testing.assert_array_equal(found, by_jax)

    def test_average_pooling(self):
        x = so.var("x", (1, 1, self.N), "float16")
        grad = so.grad(1000.0 * so.sum(so.average_pooling(x, global_pool=True)), x)
        found = grad.eval(x=np.ones((1, 1, self.N), np.float16))
        np.testing.assert_allclose(found[0, 0, 0], 1000.0 / self.N, rtol=1e-3)

    def test_batch_norm(self):
        rng = np.random.default_rng(0)
        x = rng.standard_normal((self.N, 1))
        arrays = [x, np.ones(1), np.zeros(1), np.zeros(1), np.ones(1)]
        weights = np.where(x > 0, 1.0, 0.0)

        def slope(dtype):
            values = [jnp.asarray(one, dtype) for one in arrays]
            names = ["data", "gamma", "beta", "moving_mean", "moving_var"]
            inputs = [
                so.var(name, one.shape, dtype, state=name.startswith("moving"))
                for name, one in zip(names, values, strict=True)
            ]
            out = so.batch_norm(*inputs) * so.var("weights", x.shape, dtype)
            grad = so.grad(so.sum(out), inputs[0])
            fed = dict(zip(names, values, strict=True)) | {"weights": jnp.asarray(weights, dtype)}
            wanted = grad.list_inputs()
            found = grad.eval(**{name: fed[name] for name in wanted}, is_train=True)
            return np.asarray(found[0] if isinstance(found, tuple) else found, np.float64)

        np.testing.assert_allclose(slope("float16"), slope("float32"), atol=5e-3)


class TestDropoutDraws:
    @pytest.mark.parametrize("rate", [0.0, 1.0])
    def test_every_rate_draws_a_key(self, rate):
        fed = np.ones(64, np.float32)
        so.random.seed(5)
        so.dropout(fed, rate=rate, training=True)
        eager = so.dropout(fed, rate=0.5, training=True)
        x = so.var("x", (64,))
        so.random.seed(5)
        _, symbolic = so.Group([so.dropout(x, rate=rate), so.dropout(x, rate=0.5)]).eval(
            x=fed, is_train=True
        )
        np.testing.assert_array_equal(eager, symbolic)

    def test_a_rate_of_zero_is_the_identity(self):
        x = so.var("x", (3,))
        y = so.dropout(x, rate=0.0)
        assert y.eval(x=[1.0, 2.0, 3.0], is_train=True).tolist() == [1.0, 2.0, 3.0]
        assert so.grad(so.sum(y), x).eval(x=np.ones(3), is_train=True).tolist() == [1.0] * 3


class TestNotANumber:
    @pytest.mark.parametrize("reduction", ["max", "min"])
    def test_gradients_of_extrema(self, reduction):
        fed = np.array([[1.0, np.nan, 2.0], [1.0, 3.0, 3.0]], np.float32)
        of_jax, ours = getattr(jnp, reduction), getattr(so, reduction)
        expected = jax.grad(lambda v: of_jax(v, axis=1).sum())(jnp.asarray(fed))
        x = so.var("x", fed.shape)
        grad = so.grad(so.sum(ours(x, axis=1)), x)
        rules = jax.grad(lambda v: ours(v, axis=1).sum())
        for found in (grad.eval(x=fed), rules(fed), jax.jit(rules)(fed)):
            np.testing.assert_array_equal(found, expected)


class TestPythonOperators:
    def test_division_with_a_remainder(self):
        x = so.var("x", (4,))
        fed = np.array([7.5, -7.5, 3.0, -0.5], np.float32)
        for build in (lambda v: v // 2, lambda v: v % 2, lambda v: -9 // v, lambda v: 9.0 % v):
            assert build(x).eval(x=fed).tolist() == build(fed).tolist()

    def test_whole_numbers_stay_whole(self):
        n = so.var("n", (3,), "int32")
        fed = np.array([7, -7, 6], np.int32)
        assert (n // 2).dtype == (n % 2).dtype == np.int32
        assert ((n // 2) * 2 + n % 2).eval(n=fed).tolist() == fed.tolist()

    def test_an_operator_that_nobody_declares(self, monkeypatch):
        monkeypatch.delitem(var.infix, "//")
        with pytest.raises(TypeError, match="//"):
            so.var("x", (4,)) // 2


class TestNothing:
    @pytest.mark.parametrize(
        "call",
        [
            lambda x: x + None,
            lambda x: None * x,
            lambda x: so.add(None, None),
            lambda x: so.sin(None),
            lambda x: so.where(x, None, x),
            lambda x: so.add_n(x, None),
            lambda x: so.concat(x, None, axis=0),
        ],
    )
    def test_none_is_no_input(self, call):
        with pytest.raises(ArgumentError, match="must be filled, got None"):
            call(so.var("x", (2,)))

    def test_none_is_no_array(self):
        for call in (lambda: so.sin(None), lambda: so.add(np.ones(2), None)):
            with pytest.raises(ArgumentError, match="must be filled, got None"):
                call()
