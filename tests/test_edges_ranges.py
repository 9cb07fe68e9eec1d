"""Derivatives far out: where squares and products leave the range of a dtype, and at infinity."""

import math

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.special
import scipy.stats

import symop as so

INF, NAN = math.inf, math.nan


@pytest.mark.parametrize("x", [-5.5, -6.0, -10.0])
def test_slope_of_gelu_keeps_its_digits_in_the_lower_tail(x):
    with mpmath.workdps(30):
        exact = mpmath.diff(lambda t: t * mpmath.ncdf(t), mpmath.mpf(x))
    np.testing.assert_allclose(jax.jit(jax.grad(so.gelu))(jnp.float32(x)), float(exact), rtol=2e-5)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "activation",
    [so.gelu, lambda x: so.gelu(x, approximate=True), so.silu, so.mish],
    ids=["gelu", "gelu by tanh", "silu", "mish"],
)
@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16, jnp.float32])
def test_self_gated_activations_are_straight_far_out(activation, dtype):
    largest = float(jnp.finfo(dtype).max)
    first = jax.grad(activation)
    second = jax.grad(first)
    slopes = jax.jit(lambda x: [one(x) for one in (first, second, jax.grad(second))])
    for size in (100.0, 1e3, 6e4, 0.5 * largest):
        for x, slope in ((size, 1.0), (-size, 0.0)):
            assert [float(one) for one in slopes(jnp.asarray(x, dtype))] == [slope, 0.0, 0.0]


# Second derivatives where squares and products leave the range ----------------------------------


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("dtype", "size"),
    [("float16", 300.0), ("float16", 1e-3), ("float32", 1e20), ("float32", 1e-20)],
)
def test_second_derivatives_of_std_of_any_size(dtype, size):
    # Homogeneous: at another size they are divided by it. Those at 1 are NumPy's differences.
    x = np.asarray([1.0, 2.0, 4.0])
    step = 1e-4
    sides = [
        [[np.std(x + step * (a * e + b * f)) for e in np.eye(3)] for f in np.eye(3)]
        for a, b in [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    ]
    expected = (np.asarray(sides[0]) - sides[1] - sides[2] + sides[3]) / (4 * step**2)
    given = jnp.asarray(x * size, dtype)
    bent = np.asarray(jax.jit(jax.hessian(so.std))(given), np.float64)
    atol = 4e-4 if dtype == "float16" else 1e-6
    np.testing.assert_allclose(bent * size, expected, rtol=1e-4, atol=atol)
    slope = np.asarray(jax.jit(jax.grad(so.std))(given), np.float64)
    np.testing.assert_allclose(slope, (x - x.mean()) / (3 * np.std(x)), rtol=2e-3)


@pytest.mark.parametrize("operator", [so.cbrt, so.rcbrt])
def test_roots_are_flat_at_infinity(operator):
    for end in (INF, -INF):
        derivative = operator
        for _ in range(3):
            derivative = jax.grad(derivative)
            assert derivative(end) == 0.0
    np.testing.assert_allclose(jax.jit(jax.grad(jax.grad(so.cbrt)))(8.0), -2 / 9 / 32, rtol=1e-6)


def test_slopes_of_halves_whose_squares_overflow():
    x = jnp.asarray(300.0, "float16")
    np.testing.assert_allclose(jax.jit(jax.grad(so.atan))(x), 1 / 90001, rtol=5e-3)
    for operator in (so.asinh, so.acosh):
        np.testing.assert_allclose(jax.jit(jax.grad(operator))(x), 1 / 300, rtol=2e-3)
        np.testing.assert_allclose(jax.jit(jax.grad(jax.grad(operator)))(x), -1 / 90000, rtol=1e-2)


def test_angles_have_no_slope_at_the_origin():
    assert jax.jit(jax.grad(so.atan2, (0, 1)))(0.0, 0.0) == (0.0, 0.0)
    assert np.all(np.asarray(jax.jit(jax.hessian(so.atan2, (0, 1)))(0.0, 0.0)) == 0.0)


def test_student_t_of_endless_freedom_is_normal():
    x, loc, scale = 1.5, 0.5, 2.0
    found = so.student_t_log_density(x, INF, loc, scale)
    np.testing.assert_allclose(found, scipy.stats.norm.logpdf(x, loc, scale), rtol=1e-6)
    z = (x - loc) / scale
    expected = [-z / scale, 0.0, z / scale, (z * z - 1) / scale]
    for density in (so.student_t_log_density, so.student_t_log_density.kernel):
        slopes = jax.jit(jax.grad(density, (0, 1, 2, 3)))(x, INF, loc, scale)
        np.testing.assert_allclose(slopes, expected, rtol=1e-6)
    bent = np.asarray(
        jax.jit(jax.hessian(so.student_t_log_density, (0, 1, 2, 3)))(x, INF, loc, scale)
    )
    s2 = scale**2
    by_scale = (1 - 3 * z * z) / s2
    turned = [
        [-1 / s2, 0, 1 / s2, 2 * z / s2],
        [0, 0, 0, 0],
        [1 / s2, 0, -1 / s2, -2 * z / s2],
        [2 * z / s2, 0, -2 * z / s2, by_scale],
    ]
    np.testing.assert_allclose(bent, turned, rtol=1e-6, atol=1e-7)
