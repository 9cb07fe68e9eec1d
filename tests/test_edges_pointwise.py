"""Zeros, infinities and conventions of small functions: of numbers, bits, counts and limits."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from slopes import check, gradient

import symop as so

INF, NAN = math.inf, math.nan


# Chosen gradients -------------------------------------------------------------------------------


def test_a_multiplied_gradient_is_scaled_once_for_each_pass():
    def cube(x):
        return so.gradient_multiplier(x, factor=0.5) ** 3

    first, second = jax.grad(cube), jax.grad(jax.grad(cube))
    assert float(first(2.0)) == 0.5 * 12.0
    assert float(second(2.0)) == 0.5 * 0.5 * 12.0


def test_a_reversed_gradient_ascends():
    check(gradient(so.gradient_reversal, [1.0, 2.0]), [-1.0, -1.0])
    check(gradient(so.gradient_reversal, [1.0], scale=0.25), [-0.25])


def test_straight_through_is_exact_forward():
    x = np.float32([0.1, 0.5, 1.5, -2.7, 1e8 + 8])
    np.testing.assert_array_equal(so.round_straight_through(x), np.rint(x))
    check(gradient(so.round_straight_through, x), np.ones(5))
    np.testing.assert_array_equal(so.sign_straight_through(np.float32([0, -3])), [0, -1])
    check(gradient(so.sign_straight_through, [0.0, -3.0]), [1.0, 1.0])
    assert float(jax.jvp(so.round_straight_through, (2.4,), (3.0,))[1]) == 3.0


# Functions of one or two numbers ----------------------------------------------------------------


def test_round_takes_halves_to_even():
    x = np.float32([0.5, 1.5, 2.5, -0.5, -1.5, INF, NAN])
    np.testing.assert_array_equal(so.round(x), [0, 2, 2, 0, -2, INF, NAN])


def test_gamma_and_its_derivatives_left_of_zero():
    for x in (-0.5, -6.5, -9.7, 3.2):
        value, psi, psi1 = (
            scipy.special.gamma(x),
            scipy.special.digamma(x),
            scipy.special.polygamma(1, x),
        )
        by_graph = jax.grad(jax.grad(so.gamma))
        by_kernel = jax.grad(jax.grad(so.gamma.kernel))
        np.testing.assert_allclose(so.gamma(np.float32(x)), value, rtol=1e-4)
        np.testing.assert_allclose(gradient(so.gamma, x), value * psi, rtol=1e-3)
        for second in (by_graph, by_kernel):
            np.testing.assert_allclose(second(jnp.float32(x)), value * (psi**2 + psi1), rtol=1e-3)


def test_gamma_at_its_poles_and_far_out():
    found = np.asarray(so.gamma(np.float32([0.0, -0.0, -1.0, 50.0, -60.5])))
    np.testing.assert_array_equal(found, [INF, -INF, NAN, INF, 0.0])
    assert gradient(so.gamma, -60.5) == 0.0


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_polygamma_of_negative_numbers(n):
    x = np.float32([-0.3, -4.4, -12.7, -30.2])
    expected = scipy.special.polygamma(n, x.astype(np.float64))
    np.testing.assert_allclose(so.polygamma(x, n=n), expected, rtol=1e-4)


def test_digamma_and_polygamma_at_zero_and_far_out():
    zeros = jnp.asarray([0.0, -0.0, jnp.inf], jnp.float32)
    np.testing.assert_array_equal(so.digamma(zeros), scipy.special.digamma(np.asarray(zeros)))
    assert np.all(np.isnan(so.digamma(jnp.asarray([-1.0, -2.0, -jnp.inf]))))
    far = jnp.asarray([1e9, 1e12, jnp.inf], jnp.float32)
    for n in (1, 2, 3):
        expected = scipy.special.polygamma(n, np.asarray(far, np.float64))
        np.testing.assert_allclose(so.polygamma(far, n=n), expected, rtol=1e-6, atol=1e-37)
    np.testing.assert_array_equal(so.polygamma(jnp.asarray([0.0, -0.0, -1.0]), n=1), np.inf)
    np.testing.assert_array_equal(so.polygamma(jnp.asarray([0.0, -0.0]), n=2), [-np.inf, np.inf])
    assert jax.grad(so.digamma)(jnp.inf) == 0.0
    np.testing.assert_allclose(jax.grad(so.digamma)(1e12), 1e-12, rtol=1e-6)


def test_prelu_at_zero_and_infinity():
    slope = np.float32([0.5])
    x, a = so.var("x", shape=(4,)), so.var("a", shape=(1,))
    by_x, by_slope = so.grad(so.sum(so.prelu(x, a)), [x, a])
    values = {"x": np.float32([0.0, -1.0, INF, 2.0]), "a": slope}
    check(by_x.eval(**values), [0.5, 0.5, 1.0, 1.0])
    check(by_slope.eval(**values), [-1.0])
    kernel = jax.grad(lambda a: jnp.sum(so.prelu.kernel(values["x"], a)))
    check(kernel(slope), [-1.0])


def test_prelu_makes_a_slope_for_each_channel():
    layer = so.prelu(so.var("x"), name="p")
    assert layer.infer_shape(x=(2, 3, 4)) == ([(2, 3, 4), (3,)], [(2, 3, 4)], [])


def test_copysign_reads_the_sign_of_zeros():
    x, y = so.var("x", shape=(4,)), so.var("y", shape=(4,))
    by_x, by_y = so.grad(so.sum(so.copysign(x, y)), [x, y])
    values = {"x": np.float32([0.0, 0.0, -2.0, 2.0]), "y": np.float32([0.0, -0.0, -1.0, -1.0])}
    check(by_x.eval(**values), [1.0, -1.0, 1.0, -1.0])
    assert by_y.constant == 0.0


def test_lerp_reaches_both_ends_exactly():
    x, y = np.float32([0.1, 1e8, -3.0]), np.float32([0.7, 1.0, 1e-8])
    np.testing.assert_array_equal(so.lerp(x, y, 0.0), x)
    np.testing.assert_array_equal(so.lerp(x, y, 1.0), y)


# Bits and counts --------------------------------------------------------------------------------


def test_shifts_keep_the_sign_and_lose_what_leaves():
    x = np.array([-8, 127, 1], np.int8)
    np.testing.assert_array_equal(so.bitwise_right_shift(x, np.int8(1)), [-4, 63, 0])
    np.testing.assert_array_equal(so.bitwise_left_shift(x, np.int8(1)), [-16, -2, 2])
    np.testing.assert_array_equal(so.bitwise_right_shift(np.uint8([200]), np.uint8(3)), [25])


def test_questions_about_nothing():
    nothing = np.zeros((2, 0), np.float32)
    np.testing.assert_array_equal(so.any(nothing, axis=1), [False, False])
    np.testing.assert_array_equal(so.all(nothing, axis=1), [True, True])
    np.testing.assert_array_equal(so.count_nonzero(nothing, axis=1), [0, 0])
    assert bool(so.any(np.float32([0.0, NAN])))


def test_argmin_takes_the_first_of_several_and_a_nan_before():
    assert int(so.argmin(np.float32([2.0, 1.0, 1.0]))) == 1
    assert int(so.argmin(np.float32([2.0, NAN, -INF]))) == 1


# Limits at infinity, and derivatives of any size ------------------------------------------------


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("silu", (0.0, 0.0), (INF, 1.0)),
        ("gelu", (0.0, 0.0), (INF, 1.0)),
        ("mish", (0.0, 0.0), (INF, 1.0)),
        ("hard_swish", (0.0, 0.0), (INF, 1.0)),
        ("softsign", (-1.0, 0.0), (1.0, 0.0)),
    ],
)
def test_activations_have_their_limits_at_infinity(name, low, high):
    operator = getattr(so, name)
    slope = jax.grad(operator)
    for x, expected in ((-INF, low), (INF, high)):
        assert (operator(np.float32(x)), slope(x), jax.grad(slope)(x)) == (*expected, 0.0)
    assert np.isnan(operator(np.float32(NAN)))


def test_the_approximate_gelu_has_its_limits_at_infinity():
    gelu = functools.partial(so.gelu, approximate=True)
    assert [jax.value_and_grad(gelu)(x) for x in (-INF, INF)] == [(0.0, 0.0), (INF, 1.0)]


def test_slopes_that_are_far_from_one_keep_their_digits():
    np.testing.assert_allclose(jax.grad(so.expm1)(-20.0), math.exp(-20.0), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(so.acosh)(1e30), 1e-30, rtol=1e-6)
    assert jax.grad(jax.grad(so.acosh))(INF) == 0.0


@pytest.mark.parametrize("name", ["atan", "asinh", "erf", "erfc"])
def test_slopes_vanish_at_infinity_to_second_order(name):
    slope = jax.grad(getattr(so, name))
    for x in (-INF, INF):
        assert (slope(x), jax.grad(slope)(x)) == (0.0, 0.0)
    assert np.isnan(slope(NAN))


def test_the_slope_of_asinh_does_not_overflow():
    np.testing.assert_allclose(jax.grad(so.asinh)(1e20), 1e-20, rtol=1e-6)


def test_zero_wins_over_an_infinite_logarithm():
    assert so.xlogy(0.0, 0.0) == so.xlogy(0.0, np.inf) == so.xlog1py(0.0, -1.0) == 0.0
    assert np.isnan(so.xlogy(0.0, np.nan))
    assert np.isnan(so.xlog1py(0.0, np.nan))
    # d(x log y) = log(y) dx + x dy / y, whose second term is zero for all y where x is.
    assert jax.grad(so.xlogy, (0, 1))(0.0, 0.0) == (-np.inf, 0.0)
    assert jax.grad(so.xlog1py, (0, 1))(0.0, -1.0) == (-np.inf, 0.0)
    np.testing.assert_allclose(jax.grad(so.xlogy, (0, 1))(3.0, 2.0), (np.log(2.0), 1.5), rtol=1e-6)
    # The slope of the entropy.
    shares = jnp.asarray([0.25, 0.75])
    slopes = jax.grad(lambda p: -jnp.sum(so.xlogy(p, p)))(shares)
    np.testing.assert_allclose(slopes, -np.log(shares) - 1.0, rtol=1e-6)
