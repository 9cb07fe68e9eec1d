"""The incomplete gamma function, its parameter derivatives, and the derivative of gamma draws."""

import functools
import importlib
import math
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, misuse, positive, uniform
from registry.differences import by_differences
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import cast, unbroadcast
from registry.ops.core.comparison import equal
from registry.ops.core.elementwise import exp, log, where
from registry.ops.elementwise.special import digamma, from_order, polygamma, scaled_zeta
from registry.shapes import at_least_single, broadcast, strong_real_inexact
from registry.table import op
from registry.types import DType
from registry.var import Var

# The incomplete gamma function -----------------------------------------------------------------

# With t = log z, z f = exp(g) for g = a t - z - lgamma(a), whose derivatives by a are
# t - digamma(a) and -polygamma(m, a). So the n-th derivative of z f by a is z f times a Bell
# polynomial of these, and that of P(a, z) is its integral over t. The ratio of the integral to
# z f at its end,
#
#     R_n(a, t) = integral_0^inf exp(g(t - v) - g(t)) B_n(t - v) dv,
#
# has a smooth integrand without large exponents, so that some tens of nodes suffice for every a.
# For z > a the integral to the other end is the smaller one; the two add up to the n-th
# derivative of one.


def _incomplete_reference(a: np.ndarray, x: np.ndarray, *, n: int) -> np.ndarray:
    """Reference by mpmath, which differentiates numerically with as many digits as needed."""
    mpmath = importlib.import_module("mpmath")

    def entry(a: float, x: float) -> float:
        with mpmath.workdps(40):
            return float(mpmath.diff(lambda b: mpmath.gammainc(b, 0, x, regularized=True), a, n))

    return np.asarray(np.vectorize(entry, otypes=[np.float64])(a, x)) if a.size else a + x


_SHIFT = 10
"""The number of series terms ahead of the integral below ``z = a``, long for small ``a``."""


class _Place(NamedTuple):
    """A parameter and an argument of the distribution, with accurately computed related values.

    Attributes:
        a, z: the parameter and the argument.
        excess: ``log(z) - log(a)``, accurate where ``z`` is near ``a``.
    """

    a: Array
    z: Array
    excess: Array


def _place(a: Array, z: Array, log_z: Array | None = None) -> _Place:
    near = (z > 0.5 * a) & (z < 2.0 * a)
    log_z = jnp.log(z) if log_z is None else log_z
    close = jnp.log1p(jnp.where(near, z - a, 0.0) / a)
    return _Place(a, z, jnp.where(near, close, log_z - jnp.log(a)))


def _polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    """``sum_k coefficients[k] x^k``, by Horner's rule."""
    return functools.reduce(lambda above, one: above * x + one, reversed(coefficients), 0.0 * x)


def _past_slope(w: Array) -> Array:
    """``exp(w) - 1 - w``, accurate near zero."""
    near = jnp.abs(w) < 0.5
    small = jnp.where(near, w, 0.0)
    series = small * small * _polynomial(small, [1.0 / math.factorial(k) for k in range(2, 15)])
    return jnp.where(near, series, jnp.expm1(w) - w)


def _log_digamma(a: Array) -> Array:
    """``log(a) - digamma(a)``, accurate for large ``a`` by Stirling's series."""
    large = a > 16.0
    inverse = 1.0 / jnp.where(large, a, 16.0)
    square = inverse * inverse
    series = _polynomial(square, [1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0, -1.0 / 240.0, 1.0 / 132.0])
    direct = jnp.log(a) - lax.digamma(jnp.where(large, 1.0, a))
    return jnp.where(large, 0.5 * inverse + square * series, direct)


def _log_weight(at: _Place) -> Array:
    """``a log z - z - lgamma(a)``, the logarithm of ``z f``.

    For large ``a`` it is ``log(a / 2 pi) / 2 - a (e^l - 1 - l) - s(a)``, where ``l = log(z / a)``
    and ``s`` is the rest of Stirling's series.
    """
    large = at.a > 16.0
    a = jnp.where(large, at.a, 16.0)
    rest = [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0, -691.0 / 360360.0]
    stirling = _polynomial(1.0 / (a * a), rest) / a
    far = 0.5 * jnp.log(a / (2.0 * math.pi)) - a * _past_slope(at.excess) - stirling
    small = jnp.where(large, 1.0, at.a)
    log_z = at.excess + jnp.log(small)
    return jnp.where(large, far, small * log_z - at.z - lax.lgamma(small))


def _slopes(centered: Array, a: Array, n: int) -> list[Array]:
    """The first ``n`` derivatives of ``g`` by ``a``; the first is ``centered``."""
    return [centered, *(-_polygamma(m, a) for m in range(1, n))][:n]


def _polygamma(m: int, x: Array) -> Array:
    return (-1.0) ** (m + 1) * scaled_zeta(x, m)


def _bell(slopes: list[Any]) -> Any:
    """The complete Bell polynomial: ``B_(m+1) = sum_i C(m, i) B_(m-i) x_(i+1)``."""
    polynomials: list[Any] = [1.0]
    for m in range(len(slopes)):
        parts = [math.comb(m, i) * polynomials[m - i] * slopes[i] for i in range(m + 1)]
        polynomials.append(functools.reduce(lambda u, v: u + v, parts))
    return polynomials[-1]


def _side(at: _Place, n: int, *, below: Array) -> Array:
    """The ratio ``R_n`` where ``below``; elsewhere that of the integral from ``z`` on."""
    first, factor, shift = 0.0, jnp.ones_like(at.a), jnp.where(below, 1.0, 0.0)
    centered = at.excess + _log_digamma(at.a)
    slopes = _slopes(centered, at.a, n)
    for k in range(_SHIFT):
        # z^k Gamma(a) / Gamma(a + k + 1), whose log has the derivative log z - digamma(a + k + 1)
        place = 1.0 / (at.a + k)
        slopes = [
            one + (-1.0) ** (m + 1) * math.factorial(m) * shift * place ** (m + 1)
            for m, one in enumerate(slopes)
        ]
        first = first + factor * place * _bell(slopes)
        factor = factor * jnp.where(below, at.z * place, 1.0)
    integral = _integral(at._replace(a=at.a + shift * _SHIFT), slopes, below=below)
    return jnp.where(below, first + factor * integral, integral)


def _integral(at: _Place, slopes: list[Array], *, below: Array) -> Array:
    """The integral of ``exp(g(t + w) - g(t)) B_n`` over ``w < 0`` where ``below``, or ``w > 0``.

    Its exponent is ``-|a - z| |w| - z (exp(w) - 1 - w)``; it ends where that is past the dtype's
    precision, by bounds of both terms.
    """
    reach = 6.0 - math.log(jnp.finfo(at.a.dtype).eps)  # type: ignore[no-untyped-call]
    nodes, weights = _nodes(at.a.dtype)
    fall = jnp.abs(at.a - at.z)
    q = reach / at.z
    bent = jnp.where(below, 0.5 * (q + jnp.sqrt(q * (q + 8.0))), jnp.log1p(q + jnp.sqrt(2.0 * q)))
    end = jnp.minimum(bent, reach / fall)[..., None]
    v = end * nodes
    w = jnp.where(below[..., None], -v, v)
    exponent = -fall[..., None] * v - at.z[..., None] * _past_slope(w)
    moved = [one[..., None] for one in slopes]
    moved[:1] = [one + w for one in moved[:1]]
    return jnp.sum(end * weights * jnp.exp(exponent) * _bell(moved), axis=-1)


def _nodes(dtype: DType) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of Gauss-Legendre quadrature on ``[0, 1]``."""
    nodes, weights = np.polynomial.legendre.leggauss(24 if dtype.itemsize < 8 else 48)
    return (0.5 * (nodes + 1.0)).astype(dtype), (0.5 * weights).astype(dtype)


def _ratio(at: _Place, n: int) -> Array:
    """``R_n`` for ``n >= 1``, where the two integrals sum to zero."""
    below = at.z < at.a
    side = _side(at, n, below=below)
    return jnp.where(below, side, -side)


def _widened(a: Array, z: Array) -> tuple[Array, Array, DType]:
    """Both arrays in one shape and at least in single precision, and the dtype of the result."""
    dtype = np.dtype(jnp.result_type(a, z))
    wide = at_least_single(dtype)
    a, z = jnp.broadcast_arrays(jnp.asarray(a).astype(wide), jnp.asarray(z).astype(wide))
    return a, z, dtype


def _density_reference(a: np.ndarray, x: np.ndarray, *, n: int) -> np.ndarray:
    mpmath = importlib.import_module("mpmath")

    def entry(a: float, x: float) -> float:
        def density(b: Any) -> Any:
            return mpmath.power(x, b - 1) * mpmath.exp(-x) / mpmath.gamma(b)

        with mpmath.workdps(40):
            return float(mpmath.diff(density, a, n))

    return np.asarray(np.vectorize(entry, otypes=[np.float64])(a, x)) if a.size else a + x


@op(
    shape=broadcast,
    dtype=strong_real_inexact,
    reference=_density_reference,
    gradient_reference=by_differences(_density_reference),
    native=False,  # the kernel computes the unselected branch for other numbers
    cases=[
        case(a=uniform(4, low=0.5, high=5), x=uniform(4, low=0.5, high=5), rtol=1024),
        case(a=positive(3, 1), x=positive(4), n=1, rtol=4096),
        case(a=uniform(3, low=20, high=30), x=uniform(3, low=20, high=30), n=2, rtol=8192),
        case(a=positive(0), x=positive(0), n=3, order=1),
        misuse("attribute 'n' must be at least 0, and at most 170, got -1", a=(3,), x=(3,), n=-1),
    ],
)
def gamma_density(a: Array, x: Array, *, n: Annotated[int, from_order(0)] = 0) -> Array:
    """Density of the gamma distribution, ``x^(a - 1) exp(-x) / Gamma(a)``, for ``x >= 0``.

    With ``n``, its ``n``-th derivative with respect to ``a``. Accurate for large ``a``, where the
    powers in the formula would overflow.

    Example:
        >>> import jax.numpy as jnp
        >>> gamma_density(jnp.asarray(1.0), jnp.asarray([0.0, 1.0]))
        Array([1.        , 0.36787945], dtype=float32)
    """
    a, x, dtype = _widened(a, x)
    positive = x > 0
    at = _place(a, jnp.where(positive, x, 1.0))
    factor = _bell(_slopes(at.excess + _log_digamma(a), a, n))
    density = jnp.exp(_log_weight(at)) / at.z * factor
    # At zero the power alone decides; its logarithm is infinite, too.
    at_one, least = (1.0, jnp.inf * (-1.0) ** n) if n == 0 else (jnp.inf * (-1.0) ** n,) * 2
    at_zero = jnp.where(a > 1, 0.0, jnp.where(a == 1, at_one, least))
    return lax.convert_element_type(jnp.where(positive, density, at_zero), dtype)


@gamma_density.gradient
def _gamma_density_gradient(a: Var, x: Var, out: Var, d_out: Var, *, n: int) -> Grads:
    # f_x = ((a - 1) / x - 1) f; its n-th derivative by a has the term n f_(n-1) / x as well.
    def by_x() -> Var | None:
        share = where(equal(a, 1.0), 0.0, (a - 1.0) / x)
        bent = (share - 1.0) * out
        if n > 0:
            bent = bent + float(n) * gamma_density(a, x, n=n - 1) / x
        return unbroadcast(d_out * bent, x)

    return {"a": lambda: unbroadcast(d_out * gamma_density(a, x, n=n + 1), a), "x": by_x}


@op(
    shape=broadcast,
    dtype=strong_real_inexact,
    reference=_incomplete_reference,
    gradient_reference=by_differences(_incomplete_reference),
    native=False,  # JAX differentiates its igamma by ``a`` only once
    aliases=["igamma", "gammainc"],
    cases=[
        case(a=uniform(4, low=0.5, high=5), x=uniform(4, low=0.5, high=5), rtol=4096),
        case(a=positive(3, 1), x=positive(4), n=1, rtol=4096),
        case(a=positive(3), x=positive(3), n=2, rtol=8192, order=2),
        case(a=positive(0), x=positive(0), n=3, order=1),
        misuse("attribute 'n' must be at least 0, and at most 170, got -1", a=(3,), x=(3,), n=-1),
    ],
)
def incomplete_gamma(a: Array, x: Array, *, n: Annotated[int, from_order(0)] = 0) -> Array:
    """Regularized lower incomplete gamma function ``P(a, x)``, or its ``n``-th derivative by ``a``.

    ``P(a, x)`` is the integral of ``t^(a - 1) exp(-t) / Gamma(a)`` from 0 to ``x``, for positive
    ``a`` and ``x >= 0``. The integral is computed by the same small set of nodes for all arguments.

    Source: NIST Digital Library of Mathematical Functions, 8.2.4 and 8.7.1.

    Example:
        >>> import jax.numpy as jnp
        >>> incomplete_gamma(jnp.asarray(1.0), jnp.asarray(0.0))
        Array(0., dtype=float32)
    """
    a, x, dtype = _widened(a, x)
    known = (x > 0) & (x < jnp.inf)
    at = _place(a, jnp.where(known, x, a))
    below = at.z < at.a
    part = jnp.exp(_log_weight(at)) * _side(at, n, below=below)
    whole = 1.0 if n == 0 else 0.0
    inside = jnp.where(below, part, whole - part)
    ends = jnp.where(x == 0, 0.0, jnp.where(x > 0, whole, jnp.nan))
    return lax.convert_element_type(jnp.where(known, inside, ends), dtype)


@incomplete_gamma.gradient
def _incomplete_gamma_gradient(a: Var, x: Var, d_out: Var, *, n: int) -> Grads:
    return {
        "a": lambda: unbroadcast(d_out * incomplete_gamma(a, x, n=n + 1), a),
        "x": lambda: unbroadcast(d_out * gamma_density(a, x, n=n), x),
    }


# The derivative of a draw ----------------------------------------------------------------------


def _ratio_reference(a: np.ndarray, log_x: np.ndarray, *, n: int) -> np.ndarray:
    x = np.exp(log_x)
    ratio: np.ndarray = _incomplete_reference(a, x, n=n) / (x * _density_reference(a, x, n=0))
    return ratio


@op(
    shape=broadcast,
    dtype=strong_real_inexact,
    reference=_ratio_reference,
    gradient_reference=by_differences(_ratio_reference),
    native=False,  # as that of incomplete_gamma
    cases=[
        case(a=uniform(4, low=0.5, high=5), log_x=(4,), rtol=4096),
        case(a=positive(3, 1), log_x=(4,), n=2, order=2, rtol=8192),
        case(a=positive(0), log_x=(0,), order=1),
        misuse("attribute 'n' must be at least 1, and at most 170, got 0", a=(3,), log_x=(3,), n=0),
    ],
)
def incomplete_gamma_ratio(
    a: Array, log_x: Array, *, n: Annotated[int, from_order(1)] = 1
) -> Array:
    """Ratio ``P_n(a, x) / (x f(a, x))`` of the ``n``-th derivative by ``a`` to that by ``log x``.

    ``P`` is ``incomplete_gamma`` and ``f`` is ``gamma_density``. The ratio is finite for every
    finite ``log_x``, even if ``x`` itself underflows: then ``P`` is ``x^a / Gamma(a + 1)``.

    Example:
        >>> import jax.numpy as jnp
        >>> incomplete_gamma_ratio(jnp.asarray(0.5), jnp.asarray(-1000.0)).round(1)
        Array(-2000.1, dtype=float32)
    """
    a, log_x, dtype = _widened(a, log_x)
    return lax.convert_element_type(_ratio(_place(a, jnp.exp(log_x), log_x), n), dtype)


@incomplete_gamma_ratio.gradient
def _incomplete_gamma_ratio_gradient(a: Var, log_x: Var, out: Var, d_out: Var, *, n: int) -> Grads:
    # With l = log(x f): R_a = R_(n+1) - R l_a and R_t = B_n - R l_t, where l_a = t - digamma(a)
    # and l_t = a - x.
    l_a = log_x - digamma(a)

    def by_a() -> Var | None:
        return unbroadcast(d_out * (incomplete_gamma_ratio(a, log_x, n=n + 1) - out * l_a), a)

    def by_log_x() -> Var | None:
        bell = _bell([l_a, *(-polygamma(a, n=m) for m in range(1, n))])
        return unbroadcast(d_out * (bell - out * (a - exp(log_x))), log_x)

    return {"a": by_a, "log_x": by_log_x}


def _slope_reference(a: np.ndarray, z: np.ndarray) -> np.ndarray:
    return np.asarray(-_incomplete_reference(a, z, n=1) / _density_reference(a, z, n=0))


@op(
    shape=broadcast,
    dtype=strong_real_inexact,
    native=False,  # JAX has no derivative of random_gamma_grad
    cases=[
        case(a=uniform(4, low=0.5, high=5), z=uniform(4, low=0.5, high=5)),
        case(a=positive(3, 1), z=positive(4), order=2),
        case(a=positive(), z=positive(), order=2),
        case(a=positive(0), z=positive(0), order=1),
        misuse("the inputs must be real, got complex64", a=np.ones(2, np.complex64), z=(2,)),
    ],
    reference=_slope_reference,
    gradient_reference=by_differences(_slope_reference),
)
def gamma_draw_slope(a: Array, z: Array) -> Array:
    """Derivative of a gamma draw by its parameter: ``dz/da = -P_a(a, z) / f(a, z)``.

    A draw of zero, which has underflowed the dtype, has derivative zero.

    Example:
        >>> import jax.numpy as jnp
        >>> bool(gamma_draw_slope(jnp.asarray(2.0), jnp.asarray(1.5)) > 0)
        True
    """
    a, z, dtype = _widened(a, z)
    moving = z > 0
    slope = -z * _ratio(_place(a, jnp.where(moving, z, 1.0)), 1)
    return lax.convert_element_type(jnp.where(moving, slope, z), dtype)


@gamma_draw_slope.gradient
def _gamma_draw_slope_gradient(a: Var, z: Var, out: Var, d_out: Var) -> Grads:
    # With s = -P_a / f and l = log f: s_z = -l_a - s l_z and s_a = -P_aa / f - s l_a, where
    # l_a = log z - digamma(a) and l_z = (a - 1) / z - 1.
    # A draw of zero stays there. Half precision, which loses the small differences, is widened.
    concentration, draw = a, z
    if out.dtype.itemsize < 4:
        a, z = (cast(one, dtype="float32") for one in (a, z))
        out = gamma_draw_slope(a, z)
    moving = z > 0.0
    at = where(moving, z, 1.0)
    log_z = log(at)
    l_a = log_z - digamma(a)
    d = where(moving, cast(d_out, dtype=out.dtype), 0.0)

    def by_a() -> Var | None:
        bent = at * incomplete_gamma_ratio(a, log_z, n=2)
        return unbroadcast(d * -(bent + out * l_a), concentration)

    return {
        "a": by_a,
        "z": lambda: unbroadcast(d * -(l_a + out / at * (a - 1.0 - at)), draw),
    }
