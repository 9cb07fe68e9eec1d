"""Zeros, infinities and conventions of small functions: of numbers, bits, counts and limits."""

import functools
import math

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.special
from slopes import check, gradient

import registry
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
    assert jax.jit(jax.grad(so.digamma))(jnp.inf) == 0.0
    np.testing.assert_allclose(jax.jit(jax.grad(so.digamma))(1e12), 1e-12, rtol=1e-6)


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
        assert (operator(np.float32(x)), slope(x), jax.jit(jax.grad(slope))(x)) == (*expected, 0.0)
    assert np.isnan(operator(np.float32(NAN)))


def test_the_approximate_gelu_has_its_limits_at_infinity():
    gelu = functools.partial(so.gelu, approximate=True)
    assert [jax.jit(jax.value_and_grad(gelu))(x) for x in (-INF, INF)] == [(0.0, 0.0), (INF, 1.0)]


def test_slopes_that_are_far_from_one_keep_their_digits():
    np.testing.assert_allclose(jax.jit(jax.grad(so.expm1))(-20.0), math.exp(-20.0), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.grad(so.acosh))(1e30), 1e-30, rtol=1e-6)
    assert jax.jit(jax.grad(jax.grad(so.acosh)))(INF) == 0.0


@pytest.mark.parametrize("name", ["atan", "asinh", "erf", "erfc"])
def test_slopes_vanish_at_infinity_to_second_order(name):
    slope = jax.grad(getattr(so, name))
    for x in (-INF, INF):
        assert (slope(x), jax.jit(jax.grad(slope))(x)) == (0.0, 0.0)
    assert np.isnan(slope(NAN))


def test_the_slope_of_asinh_does_not_overflow():
    np.testing.assert_allclose(jax.jit(jax.grad(so.asinh))(1e20), 1e-20, rtol=1e-6)


def test_zero_wins_over_an_infinite_logarithm():
    assert so.xlogy(0.0, 0.0) == so.xlogy(0.0, np.inf) == so.xlog1py(0.0, -1.0) == 0.0
    assert np.isnan(so.xlogy(0.0, np.nan))
    assert np.isnan(so.xlog1py(0.0, np.nan))
    # d(x log y) = log(y) dx + x dy / y, whose second term is zero for all y where x is.
    assert jax.jit(jax.grad(so.xlogy, (0, 1)))(0.0, 0.0) == (-np.inf, 0.0)
    assert jax.jit(jax.grad(so.xlog1py, (0, 1)))(0.0, -1.0) == (-np.inf, 0.0)
    np.testing.assert_allclose(
        jax.jit(jax.grad(so.xlogy, (0, 1)))(3.0, 2.0), (np.log(2.0), 1.5), rtol=1e-6
    )
    # The slope of the entropy.
    shares = jnp.asarray([0.25, 0.75])
    slopes = jax.jit(jax.grad(lambda p: -jnp.sum(so.xlogy(p, p))))(shares)
    np.testing.assert_allclose(slopes, -np.log(shares) - 1.0, rtol=1e-6)


# Integers to negative powers --------------------------------------------------------------------

NEGATIVE = [-2, np.int32(-2), np.array([1, -2, 0], np.int32), jnp.array([1, -2, 0])]


@pytest.mark.parametrize("exponent", NEGATIVE, ids=["number", "scalar", "numpy", "jax"])
class TestAnIntegerToANegativePower:
    """NumPy refuses it in the call, and so does every door."""

    REFUSED = "power: an integer must be raised to a power of at least 0, got -2"

    @pytest.mark.parametrize("base", [[1, 2, 3], [True, False, True]])
    def test_is_refused_in_eager_calls(self, exponent, base):
        array, plain = so.nd.array(np.array(base)), jnp.array(base)
        calls = [
            lambda: array**exponent,
            lambda: so.power(array, exponent),
            lambda: so.nd.power(array, exponent),
            lambda: so.power(plain, exponent),
            lambda: array.__ipow__(exponent),
        ]
        for call in calls:
            with pytest.raises(registry.errors.DTypeError, match=self.REFUSED):
                call()
        with pytest.raises(registry.errors.DTypeError, match=self.REFUSED), so.autograd.record():
            array**exponent

    def test_is_refused_when_a_symbol_is_built(self, exponent):
        x = so.var("x", (3,), "int32")
        with pytest.raises(registry.errors.DTypeError, match=self.REFUSED) as refusal:
            x**exponent
        assert "built at" in str(refusal.value)

    def test_is_refused_when_types_are_known(self, exponent):
        y = so.var("x") ** exponent
        with pytest.raises(registry.errors.DTypeError, match=self.REFUSED):
            y.eval(x=np.array([1, 2, 3], np.int32))
        np.testing.assert_allclose(
            y.eval(x=np.float32([1, 2, 4])), np.float32([1, 2, 4]) ** np.asarray(exponent)
        )


def test_a_refused_power_leaves_other_calls_alone():
    array = so.nd.array(np.array([1, 2, 3]))
    double = array * 2
    with pytest.raises(registry.errors.DTypeError):
        array**-1
    np.testing.assert_array_equal(double.asnumpy(), [2, 4, 6])
    np.testing.assert_array_equal((array**2).asnumpy(), [1, 4, 9])
    np.testing.assert_allclose((array**-1.0).asnumpy(), [1, 1 / 2, 1 / 3])
    np.testing.assert_allclose((2.0 ** so.nd.array(np.array([-1, 2]))).asnumpy(), [0.5, 4])


def test_a_number_to_negative_integers_is_refused():
    with pytest.raises(registry.errors.DTypeError, match="got -1"):
        2 ** so.nd.array(np.array([-1, 2]))


def test_more_decimals_than_a_float_has_leave_it_as_it_is():
    np.testing.assert_array_equal(so.round(jnp.asarray([0.5, -3.25]), decimals=400), [0.5, -3.25])


# Derivatives of every order at zeros, infinities and the ends of domains ------------------------


def derivatives(operator, x, count=4, **attributes):
    """The operator and its first derivatives at one point, in double precision, by graphs."""
    with jax.enable_x64(True):
        v = so.var("v", shape=(), dtype="float64")
        out = getattr(so, operator)(v, **attributes)
        found = [out, *(so.derivative(out, v, n) for n in range(1, count + 1))]
        return [float(one.eval(v=np.float64(x))) for one in found]


FUNCTIONS = {
    "sinc": mpmath.sincpi,
    "bessel_i0": lambda t: mpmath.besseli(0, t),
    "bessel_i1": lambda t: mpmath.besseli(1, t),
    "ndtr": mpmath.ncdf,
    "log_ndtr": lambda t: mpmath.log(mpmath.ncdf(t)),
    "ndtri": lambda t: mpmath.sqrt(2) * mpmath.erfinv(2 * t - 1),
    "logit": lambda t: mpmath.log(t / (1 - t)),
    "entr": lambda t: -t * mpmath.log(t),
    "bessel_i0e": lambda t: mpmath.exp(-t) * mpmath.besseli(0, t),
    "bessel_i1e": lambda t: mpmath.exp(-t) * mpmath.besseli(1, t),
}
POINTS = [
    *[("sinc", x) for x in (0.0, 1e-9, 1e-3, 1.0, -2.5, 7.6, 7.7, 40.25)],
    *[(f"bessel_i{n}", x) for n in (0, 1) for x in (0.0, 1e-9, -0.5, 19.9, 20.1, -60.0)],
    *[(f"bessel_i{n}e", x) for n in (0, 1) for x in (1e-9, 0.5, 19.9, 20.1, 300.0)],
    *[("ndtr", x) for x in (0.0, -8.0, 3.0)],
    *[("log_ndtr", x) for x in (0.0, 3.0, -5.0, -19.9, -20.1, -1e3, -1e6)],
    *[(name, x) for name in ("ndtri", "logit") for x in (0.5, 0.01, 1e-10, 0.9)],
    *[("entr", x) for x in (1e-12, 1.0, 20.0)],
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "x"), POINTS)
def test_derivatives_of_every_order_are_those_of_mpmath(name, x):
    with mpmath.workdps(60):
        expected = [float(mpmath.diff(FUNCTIONS[name], mpmath.mpf(x), n)) for n in range(5)]
    found = derivatives(name, x)
    scale = max(map(abs, expected)) if abs(x) <= 100 else None
    for n, (one, other) in enumerate(zip(found, expected, strict=True)):
        # Differences that cancel, such as those of exp(-x) I_n, keep the digits of their terms.
        atol = 0.0 if scale is None or name in ("ndtri", "logit", "entr") else 1e-12 * scale
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=max(atol, 1e-15), err_msg=f"{n}")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 5, 18, 24, 40, 80, 170])
def test_polygamma_of_high_order(n, dtype):
    """Factorials exceed the range of float32 from 35 on, and zeta functions fall below it."""
    x = [1e-3, 0.1, 1.0, 1.5, 7.7, 10.0, 30.0, 100.0, 1e3, 1e5, -0.75, -2.25, -7.75]
    x = np.asarray(x if n < 20 else x[:-1] if n % 2 else x[:-3], dtype)
    with mpmath.workdps(60):
        exact = [mpmath.polygamma(n, mpmath.mpf(float(one))) for one in x]
        inside = [mpmath.mpf(1e-37) < abs(one) < mpmath.mpf(1e38) for one in exact]
        expected = [float(one) for one, there in zip(exact, inside, strict=True) if there]
    with jax.enable_x64(dtype == "float64"):
        found = np.asarray(so.polygamma(x, n=n))
    assert expected
    rtol = 64 * np.finfo(dtype).eps
    np.testing.assert_allclose(found[np.asarray(inside)], expected, rtol=rtol)


@functools.partial(jax.jit, static_argnums=0)
def with_slopes(function, x):
    """Values of a function of each entry, and its derivatives by reverse mode."""
    values, pull = jax.vjp(function, x)
    return values, pull(jnp.ones_like(values))[0]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [9, 12, 13, 24, 47])
def test_bessel_functions_of_high_order(n, dtype):
    """Their factorials exceed the range of int32, and their powers that of float32."""
    points = np.asarray([0.0, 1e-3, 0.7, -3.0, 21.0, 60.0, -85.0, 143.0, 145.0, 560.0, 1e4], dtype)
    rtol, atol = 512 * np.finfo(dtype).eps, 512 * np.finfo(dtype).tiny
    with jax.enable_x64(dtype == "float64"):
        for operator, function in (
            (so.bessel_i, scipy.special.iv),
            (so.bessel_ie, scipy.special.ive),
        ):
            x = jnp.asarray(points[:7] if operator is so.bessel_i else points)
            values, slopes = with_slopes(functools.partial(operator, n=n), x)
            wide = np.asarray(x, np.float64)
            terms = 0.5 * (function(n - 1, wide) + function(n + 1, wide))
            expected = terms
            if operator is so.bessel_ie:
                expected = terms - np.sign(wide) * function(n, wide)
            with np.errstate(over="ignore"):
                np.testing.assert_allclose(values, function(n, wide).astype(dtype), rtol, atol)
            bound = rtol * np.abs(terms) + atol  # differences keep the digits of their terms
            assert np.all(np.abs(np.asarray(slopes, np.float64) - expected) <= bound)


@pytest.mark.parametrize("n", [24, 47])
def test_sinc_has_derivatives_of_high_order(n):
    points = np.asarray([0.0, 0.1, 1.5, -3.3, 8.0, 20.25])

    def integral(x, n):
        with mpmath.workdps(40):
            turn = n * mpmath.pi / 2
            value = mpmath.quad(
                lambda t: t**n * mpmath.cos(mpmath.pi * x * t + turn), mpmath.linspace(0, 1, 12)
            )
            return float(mpmath.pi**n * value)

    with jax.enable_x64(True):
        values, pull = jax.vjp(lambda x: so.sinc(x, n=n), jnp.asarray(points))
        (slopes,) = pull(jnp.ones_like(values))
    for found, order in ((values, n), (slopes, n + 1)):
        expected = [integral(x, order) for x in points]
        scale = 1e-14 * math.pi**order  # the entries of the integral are at most one
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=scale)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("sinc", INF, [0.0] * 4),
        ("sinc", -INF, [0.0] * 4),
        ("bessel_i0", INF, [INF] * 4),
        ("bessel_i0", -INF, [INF, -INF, INF, -INF]),
        ("bessel_i1", -INF, [-INF, INF, -INF, INF]),
        ("bessel_i0e", INF, [0.0] * 4),
        ("bessel_i1e", -INF, [0.0] * 4),
        ("bessel_i0e", 0.0, [1.0, 0.0, 0.5, 0.0]),
        ("bessel_i1e", 0.0, [0.0, 0.5, 0.0, 0.375]),
        ("ndtr", INF, [1.0, 0.0, 0.0, 0.0]),
        ("ndtr", -INF, [0.0, 0.0, 0.0, 0.0]),
        ("log_ndtr", INF, [0.0, 0.0, 0.0, 0.0]),
        ("log_ndtr", -INF, [-INF, INF, -1.0, 0.0]),
        ("ndtri", 0.0, [-INF, INF, -INF, INF]),
        ("ndtri", 1.0, [INF, INF, INF, INF]),
        ("logit", 0.0, [-INF, INF, -INF, INF]),
        ("logit", 1.0, [INF, INF, INF, INF]),
        ("entr", 0.0, [0.0, INF, -INF, INF]),
        ("entr", -1.0, [-INF, 0.0, 0.0, 0.0]),
    ],
)
def test_derivatives_at_the_ends_are_limits(name, x, expected):
    np.testing.assert_array_equal(derivatives(name, x, 3), expected)


def test_a_relative_entropy_is_constant_where_a_number_is_not_positive():
    x, y = so.var("x", shape=(5,)), so.var("y", shape=(5,))
    values = {"x": np.float32([0, 0, -1, 1, INF]), "y": np.float32([0, 2, 1, 0, 1])}
    out = so.rel_entr(x, y)
    check(out.eval(**values), [0, 0, INF, INF, INF])
    by_x, by_y = so.grad(so.sum(out), [x, y])
    check(by_x.eval(**values), [0, 0, 0, 0, INF])
    check(by_y.eval(**values), [0, 0, 0, 0, -INF])
    (again,) = so.grad(so.sum(by_x), [x])
    check(again.eval(**values)[:4], [0, 0, 0, 0])
    theirs = jax.grad(lambda x, y: jnp.sum(jax.scipy.special.rel_entr(x, y)), (0, 1))
    for one, other in zip((by_x, by_y), theirs(*values.values()), strict=True):
        check(one.eval(**values)[:4], other[:4])


def test_two_equal_infinities_share_the_gradient_of_logaddexp2():
    x, y = so.var("x", shape=(3,)), so.var("y", shape=(3,))
    values = {"x": np.float32([INF, -INF, 1000]), "y": np.float32([INF, -INF, -1000])}
    out = so.logaddexp2(x, y)
    check(out.eval(**values), [INF, -INF, 1000])
    for one, expected in zip(
        so.grad(so.sum(out), [x, y]), ([0.5, 0.5, 1], [0.5, 0.5, 0]), strict=True
    ):
        check(one.eval(**values), expected)
