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


class TestHalfPrecision:
    def test_gradient_of_batch_norm_sums_in_the_dtype_of_its_statistics(self):
        x = jax.random.normal(jax.random.key(0), (65536, 2)).astype(jnp.bfloat16)
        one, zero = jnp.ones(2), jnp.zeros(2)

        def total(beta):
            out = so.batch_norm(x, one, beta, zero, one, training=True)[0]
            return jnp.sum(out.astype(jnp.float32))

        np.testing.assert_array_equal(jax.jit(jax.grad(total))(zero), [65536.0, 65536.0])

    def test_average_of_large_windows(self):
        ones = jnp.ones((1, 1, 64, 64), jnp.bfloat16)
        np.testing.assert_array_equal(so.average_pooling(ones, kernel=32), 1.0)
        many = jnp.full((1, 1, 16, 16), 300.0, jnp.float16)
        np.testing.assert_array_equal(so.average_pooling(many, kernel=16), 300.0)

    def test_smoothing_over_many_classes(self):
        logits = jnp.zeros((1, 8192), jnp.float16)
        loss = so.softmax_cross_entropy(logits, jnp.array([0]), smoothing=0.1)
        np.testing.assert_allclose(loss, np.log(8192), rtol=2e-3)


def test_an_index_far_before_the_front_is_dropped():
    updated = so.index_update(jnp.zeros(3), jnp.array([-5, -1]), jnp.array([9.0, 4.0]))
    np.testing.assert_array_equal(updated, [0.0, 0.0, 4.0])


@pytest.mark.parametrize(
    ("values", "dtype", "bounds", "expected"),
    [
        ([0, 5, 200], "uint8", (-1.0, 300.0), [0, 5, 200]),
        ([0, 1, 2], "int32", (0.5, 1e12), [1, 1, 2]),
        ([-7, 7], "int32", (-float("inf"), 2.5), [-7, 2]),
    ],
)
def test_bounds_of_whole_numbers(values, dtype, bounds, expected):
    clipped = so.clip(jnp.asarray(values, dtype), low=bounds[0], high=bounds[1])
    assert clipped.dtype == dtype
    np.testing.assert_array_equal(clipped, expected)


def test_imaginary_part_of_infinity_is_zero():
    np.testing.assert_array_equal(so.imag(jnp.array([jnp.inf, jnp.nan])), [0.0, 0.0])


def test_a_negative_number_of_classes_is_refused():
    with pytest.raises(so.SymopError, match="'num_classes' must be at least 0, got -1"):
        so.one_hot(so.var("ids", shape=(2,), dtype="int32"), num_classes=-1)
