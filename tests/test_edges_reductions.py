"""Ties, zeros, infinities and conventions of products, scans, moments and norms."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from slopes import check, gradient

import symop as so

INF, NAN = math.inf, math.nan


# Products ---------------------------------------------------------------------------------------

ROWS = [[2.0, 3.0, 4.0], [2.0, 0.0, 4.0], [0.0, 3.0, 0.0], [0.0, 0.0, 0.0]]


def without(x, *places):
    """The derivative of the product of ``x`` with respect to the entries at ``places``."""
    rest = [one for i, one in enumerate(x) if i not in places]
    return math.prod(rest) if len(set(places)) == len(places) else 0.0


def test_derivatives_of_a_product_with_zeros():
    of_product = [jax.jit(one(so.prod)) for one in (jax.grad, jax.hessian, third_derivative)]
    of_last = jax.jit(jax.hessian(lambda x: so.cumprod(x)[-1]))
    for x in ROWS:
        check(gradient(so.prod, x), [without(x, i) for i in range(3)])
        tables = [
            np.reshape(
                [without(x, *places) for places in itertools.product(range(3), repeat=k)], (3,) * k
            )
            for k in (1, 2, 3)
        ]
        for derivative, expected in zip(of_product, tables, strict=True):
            check(derivative(jnp.asarray(x)), expected)
        check(of_last(jnp.asarray(x)), tables[1])


def third_derivative(function):
    return jax.jacrev(jax.hessian(function))


@pytest.mark.parametrize(
    ("dtype", "x"),
    [
        ("float32", [1e20, 1e20, 1e-30]),
        ("float32", [1e-30, 1e-30, 1e30, 1e30]),
        ("float16", [300.0, 400.0, 1e-3]),
    ],
)
def test_derivatives_of_products_whose_parts_overflow(dtype, x):
    n, given = len(x), jnp.asarray(x, dtype)
    exact = np.asarray(given, np.float64)
    for order, derivative in [(2, jax.hessian), (3, third_derivative)]:
        expected = np.reshape(
            [without(exact, *places) for places in itertools.product(range(n), repeat=order)],
            (n,) * order,
        )
        with np.errstate(over="ignore"):
            expected = expected.astype(dtype)
        found = np.asarray(jax.jit(derivative(so.prod))(given))
        np.testing.assert_allclose(found, expected, rtol=2e-3 if dtype == "float16" else 1e-5)
        if n == 3:
            found = np.asarray(jax.jit(derivative(lambda v: so.cumprod(v)[-1]))(given))
            np.testing.assert_allclose(found, expected, rtol=2e-3 if dtype == "float16" else 1e-5)


def test_a_product_over_several_axes():
    x = np.arange(1.0, 13.0, dtype=np.float32).reshape(2, 3, 2)
    expected = np.prod(x, axis=(0, 2), keepdims=True) / x
    check(gradient(so.prod, x, axis=(0, -1)), expected, rtol=1e-5)


def test_cumprod_in_every_direction_with_zeros():
    x = np.float32([2.0, 0.0, 3.0, 0.0])
    for reverse, exclusive in itertools.product([False, True], repeat=2):
        options = {"reverse": reverse, "exclusive": exclusive}
        matrix = np.asarray(jax.jacobian(lambda v, o=options: so.cumprod(v, **o))(x))
        for i in range(4):
            reach = range(i + (not exclusive)) if not reverse else range(i + exclusive, 4)
            for k in range(4):
                others = math.prod(float(x[j]) for j in reach if j != k)
                assert matrix[i, k] == (others if k in reach else 0.0)


def test_nanprod_and_nansum_leave_out_what_is_none():
    x = [2.0, NAN, 3.0]
    check(gradient(so.nanprod, x), [3.0, 0.0, 2.0])
    check(gradient(so.nansum, x), [1.0, 0.0, 1.0])
    assert float(so.nanprod(np.float32([NAN, NAN]))) == 1.0
    assert float(so.nansum(np.float32([NAN, NAN]))) == 0.0


# Scans ------------------------------------------------------------------------------------------


def test_small_integers_are_scanned_in_the_default_dtype():
    x = np.full(3, 100, np.int8)
    np.testing.assert_array_equal(so.cumsum(x), [100, 200, 300])
    assert so.cumsum(x).dtype == np.int32
    np.testing.assert_array_equal(so.cumprod(x[:2]), [100, 10000])


def test_exclusive_cumsum_does_not_subtract():
    np.testing.assert_array_equal(
        so.cumsum(np.float32([1.0, INF, 2.0]), exclusive=True), [0.0, 1.0, INF]
    )


def test_long_sums_of_16_bits_are_added_in_32():
    ones = np.ones(5000, np.float16)
    assert float(so.cumsum(ones)[-1]) == 5000.0
    assert float(so.linear_scan(ones, ones)[-1]) == 5000.0


@pytest.mark.parametrize(("operator", "sign"), [(so.cummax, 1.0), (so.cummin, -1.0)])
def test_the_last_of_equal_extrema_receives_the_gradient(operator, sign):
    x = sign * np.float32([1.0, 1.0, 0.0, 3.0, 3.0, 2.0])
    head = [1.0, 10.0, 100.0, 1000.0, 1e4, 1e5]
    expected = [1.0, 110.0, 0.0, 1000.0, 110000.0, 0.0]
    check(gradient(operator, x, head=head), expected)
    check(jax.vjp(operator.kernel, x)[1](jnp.asarray(head))[0], expected)
    backwards = gradient(operator, x[::-1], head=head[::-1], reverse=True)
    check(backwards, expected[::-1])
    check(gradient(operator, [-sign * INF, -sign * INF], head=[1.0, 2.0]), [1.0, 2.0])
    np.testing.assert_array_equal(operator(np.float32([1.0, NAN, 2.0])), [1.0, NAN, NAN])


@pytest.mark.parametrize(("operator", "sign"), [(so.cummax, 1.0), (so.cummin, -1.0)])
def test_the_first_of_equal_extrema_receives_the_gradient_if_asked(operator, sign):
    x = sign * np.float32([1.0, 1.0, 0.0, 3.0, 3.0, 2.0])
    head = [1.0, 10.0, 100.0, 1000.0, 1e4, 1e5]
    expected = [111.0, 0.0, 0.0, 111000.0, 0.0, 0.0]
    check(gradient(operator, x, head=head, ties="first"), expected)
    backwards = gradient(operator, x[::-1], head=head[::-1], reverse=True, ties="first")
    check(backwards, expected[::-1])
    worst = [-sign * INF, -sign * INF]
    check(gradient(operator, worst, head=[1.0, 2.0], ties="first"), [3.0, 0.0])
    np.testing.assert_array_equal(operator(np.float32([NAN, 2.0]), ties="first"), [NAN, NAN])


def test_logcumsumexp_from_minus_infinity_on():
    x, head = [-INF, -INF, 0.0, 0.0], [1.0, 2.0, 4.0, 8.0]
    expected = [1.0, 2.0, 8.0, 4.0]
    check(gradient(so.logcumsumexp, x, head=head), expected)
    found = so.logcumsumexp(np.float32([1000.0, 1000.0, INF]))
    check(found, [1000.0, 1000.0 + math.log(2.0), INF])
    check(gradient(so.logcumsumexp, [0.0, INF, 0.0], head=[1.0, 2.0, 4.0]), [1.0, 6.0, 0.0])
    check(
        jax.jit(jax.grad(lambda v: jnp.sum(so.logcumsumexp.kernel(v))))(jnp.asarray(x)),
        [1, 1, 1.5, 0.5],
    )


# Moments and norms ------------------------------------------------------------------------------


def test_std_of_equal_entries_has_no_slope():
    check(gradient(so.std, [2.0, 2.0, 2.0]), np.zeros(3))
    check(jax.jit(jax.grad(so.std.kernel))(jnp.full(3, 2.0)), np.zeros(3))
    assert np.all(np.isfinite(jax.jit(jax.hessian(so.std))(jnp.full(3, 2.0))))
    assert math.isnan(so.std(np.float32([1.0, NAN])))


@pytest.mark.parametrize("size", [1e20, 1e-25])
def test_std_of_any_size(size):
    x = np.float32([size, -size, size, -size])
    np.testing.assert_allclose(so.std(x), np.std(x, dtype=np.float64), rtol=1e-6)
    check(gradient(so.std, x), [0.25, -0.25, 0.25, -0.25])
    both = np.stack([x, [0, 1, 2, 3]])
    expected = np.std(np.float64(both), axis=1, ddof=1)
    np.testing.assert_allclose(so.std(both, axis=1, correction=1.0), expected, rtol=1e-6)


def test_too_few_entries_for_a_correction():
    assert math.isnan(so.variance(np.float32([1.0]), correction=1))
    assert so.variance(np.float32([1.0, 2.0]), correction=3) == INF
    assert math.isnan(so.variance(np.zeros(0, np.float32)))


@pytest.mark.parametrize(
    ("x", "value", "slope"),
    [
        ([-INF, -INF], -INF, [0.5, 0.5]),
        ([INF, INF, 1.0], INF, [0.5, 0.5, 0.0]),
        ([INF, -INF], INF, [1.0, 0.0]),
        ([-INF, 0.0, 0.0], math.log(2.0), [0.0, 0.5, 0.5]),
        ([1000.0, 1000.0], 1000.0 + math.log(2.0), [0.5, 0.5]),
        ([NAN, 1.0], NAN, [NAN, NAN]),
    ],
)
def test_logsumexp_of_infinities(x, value, slope):
    check(so.logsumexp(np.float32(x)), value)
    check(gradient(so.logsumexp, x), slope)


@pytest.mark.parametrize("far", [-INF, INF])
def test_logsumexp_of_complex_infinities_has_the_gradient_of_the_real_one(far):
    for x in ([far, far], [far, 1.0]):
        value, slope = jax.jit(jax.value_and_grad(so.logsumexp))(jnp.asarray(x))
        z = jnp.asarray(x, jnp.complex64)
        np.testing.assert_array_equal(so.logsumexp(z), value)
        np.testing.assert_allclose(jax.jit(jax.grad(lambda z: so.logsumexp(z).real))(z), slope)


def test_logsumexp_of_nothing():
    assert so.logsumexp(np.zeros(0, np.float32)) == -INF
    assert so.logsumexp(np.zeros(0, np.complex64)) == -INF


@pytest.mark.usefixtures("x64")
def test_logsumexp_of_complex_numbers_is_that_of_scipy():
    x = np.random.default_rng(3).normal(size=(4, 5, 2)) @ [300.0, 40j]
    out = so.logsumexp(x, axis=1)
    np.testing.assert_allclose(out, scipy.special.logsumexp(x, axis=1), rtol=1e-12)
    assert np.all(np.abs(np.imag(out)) <= math.pi)
    shares = jax.jit(jax.grad(lambda x: so.logsumexp(x, axis=1).sum(), holomorphic=True))(
        jnp.asarray(x)
    )
    np.testing.assert_allclose(shares, scipy.special.softmax(x, axis=1), rtol=1e-10, atol=1e-300)


@pytest.mark.parametrize("order", [-INF, -1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, INF])
def test_norms_at_zero_have_finite_slopes(order):
    check(gradient(so.norm, [0.0, 0.0], ord=order), [0.0, 0.0])
    if order != 0:
        check(jax.jit(jax.grad(lambda v: so.norm.kernel(v, ord=order)))(jnp.zeros(2)), [0.0, 0.0])
    one = gradient(so.norm, [0.0, 2.0], ord=order)
    check(one, [0.0, 1.0 if order >= 0.5 else 0.0])


@pytest.mark.usefixtures("x64")
def test_a_negative_norm_is_zero_beside_entries_of_any_size():
    for size in (3.0, 1e-200):
        value, slopes = jax.jit(jax.value_and_grad(lambda x: so.norm(x, ord=-1.0)))(
            jnp.asarray([size, size, 0.0])
        )
        assert value == 0.0
        np.testing.assert_array_equal(slopes, 0.0)


def test_second_derivatives_of_norms_beside_zeros():
    x = jnp.asarray([0.0, 2.0])
    for order, expected in [(2.0, [[0.5, 0.0], [0.0, 0.0]]), (3.0, np.zeros((2, 2)))]:
        check(jax.jit(jax.hessian(lambda v, p=order: so.norm(v, ord=p)))(x), expected)


def test_the_largest_norm_shares_ties_and_keeps_signs():
    check(gradient(so.norm, [3.0, -3.0, 1.0], ord=INF), [0.5, -0.5, 0.0])
    check(gradient(so.norm, [3.0, -1.0, 1.0], ord=-INF), [0.0, -0.5, 0.5])


def test_powers_in_norms_do_not_overflow():
    check(so.norm(np.float32([1e30, 1e30]), ord=8), 1e30 * 2 ** (1 / 8), rtol=1e-5)
    assert float(so.norm(np.float32([3e-30, 0.0]), ord=4)) == pytest.approx(3e-30, rel=1e-5)
    assert float(so.norm(np.float32([INF, 1.0]), ord=3)) == INF
    assert math.isnan(so.norm(np.float32([NAN, 1.0]), ord=3))
    assert float(so.norm(np.float32([0.0, 1.0]), ord=-1)) == 0.0


LENGTHS = [1e25, 1e-25, 1e19, 1e-19, 1.0]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("size", LENGTHS)
def test_lengths_and_angles_of_any_size(size):
    # All are homogeneous: a point of another size has the same slopes but for a power of the size.
    size = np.float32(size)
    x, y = jnp.float32(3.0) * size, jnp.float32(-4.0) * size
    hessian = np.asarray([[16.0, 12.0], [12.0, 9.0]]) / 125.0
    for name, of_point in [
        ("hypot", so.hypot),
        ("norm", lambda x, y: so.norm(jnp.stack([x, y]))),
        ("norm of a batch", lambda x, y: jnp.sum(so.norm(jnp.asarray([[x, y], [0, 0]]), axis=1))),
    ]:
        np.testing.assert_allclose(of_point(x, y) / size, 5.0, rtol=1e-6, err_msg=name)
        np.testing.assert_allclose(
            jax.jit(jax.grad(of_point, (0, 1)))(x, y), [0.6, -0.8], rtol=1e-6
        )
        bent = np.asarray(jax.jit(jax.hessian(of_point, (0, 1)))(x, y), np.float64)
        np.testing.assert_allclose(bent * float(size), hessian, rtol=1e-5, err_msg=name)
    turn = np.asarray(jax.jit(jax.grad(so.atan2, (0, 1)))(x, y), np.float64)
    np.testing.assert_allclose(turn * float(size), [-4 / 25, -3 / 25], rtol=1e-6)


def test_lengths_have_one_convention_at_the_origin():
    of_norm = jax.jit(jax.hessian(lambda x, y: so.norm(jnp.stack([x, y])), (0, 1)))(0.0, 0.0)
    of_hypot = jax.jit(jax.hessian(so.hypot, (0, 1)))(0.0, 0.0)
    np.testing.assert_array_equal(of_norm, np.zeros((2, 2)))
    np.testing.assert_array_equal(of_hypot, of_norm)
    assert jax.jit(jax.grad(so.hypot, (0, 1)))(0.0, 0.0) == (0.0, 0.0)


def test_norm_of_rows_of_all_sizes_under_vmap():
    rows = jnp.asarray([[3.0, 4.0], [3e25, 4e25], [3e-25, 4e-25], [0.0, 0.0]])
    values = jax.vmap(so.norm)(rows)
    np.testing.assert_allclose(values, [5.0, 5e25, 5e-25, 0.0], rtol=1e-6)
    slopes = jax.vmap(jax.grad(so.norm))(rows)
    np.testing.assert_allclose(slopes, [[0.6, 0.8]] * 3 + [[0.0, 0.0]], rtol=1e-6)
    np.testing.assert_array_equal(jax.jit(jax.grad(so.norm))(jnp.asarray([0.0, jnp.inf]))[0], 0.0)
