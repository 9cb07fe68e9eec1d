"""Special functions: the error function and its relatives, and the gamma function family."""

import functools
import importlib
import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, misuse, positive, uniform
from registry.operator.attributes import Check
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import single, unbroadcast
from registry.ops.core.comparison import greater_equal
from registry.ops.core.elementwise import exp, where
from registry.ops.core.entrywise import entrywise
from registry.ops.elementwise.rounding import clip
from registry.shapes import at_least_single, real_inexact, strong_real_inexact
from registry.types import DType
from registry.var import Var


def of_scipy(name: str) -> Callable[..., np.ndarray]:
    """SciPy's special function of that name, imported when a proof calls it."""

    def reference(*inputs: np.ndarray, **attributes: Any) -> np.ndarray:
        function = getattr(importlib.import_module("scipy.special"), name)
        wide = [np.asarray(one, np.float64) for one in inputs]
        result: np.ndarray = function(*attributes.values(), *wide)
        return result.astype(np.result_type(*inputs))

    return reference


_HIGHEST = 170
"""The largest integer whose factorial fits in a float."""


def from_order(least: int) -> Check:
    """The check for the order of a derivative of a polygamma function."""
    return Check(f"be at least {least}, and at most {_HIGHEST}", lambda n: least <= n <= _HIGHEST)


# The error function -----------------------------------------------------------------------------


_BEYOND = 32.0
"""From here on ``exp(-x^2)`` is zero in double precision."""


@entrywise(
    lambda x: np.exp(-(x**2)),
    dtype=real_inexact,
    # With x bounded, no infinity is multiplied by zero.
    d_x=lambda x, out, d_out: d_out * (clip(x, low=-_BEYOND, high=_BEYOND) * -2.0 * out),
)
def gaussian(x: Array) -> Array:
    """Gaussian, element-wise: ``exp(-x^2)``, zero at infinity together with all its derivatives.

    Example:
        >>> import jax.numpy as jnp
        >>> gaussian(jnp.asarray([0.0, jnp.inf]))
        Array([1., 0.], dtype=float32)
    """
    return jnp.exp(-(x * x))


@entrywise(
    of_scipy("erf"),
    dtype=real_inexact,
    rows="entrywise",
    d_x=lambda x, d_out: d_out * (gaussian(x) * (2.0 / math.sqrt(math.pi))),
)
def erf(x: Array) -> Array:
    """Error function: ``2 / sqrt(pi)`` times the integral of ``exp(-t^2)`` from 0 to ``x``.

    Example:
        >>> import jax.numpy as jnp
        >>> erf(jnp.asarray([0.0, jnp.inf]))
        Array([0., 1.], dtype=float32)
    """
    return lax.erf(jnp.asarray(x))


@entrywise(
    of_scipy("erfc"),
    dtype=real_inexact,
    cases=[case(x=uniform(3, low=3, high=5), rtol=512)],
    d_x=lambda x, d_out: d_out * (gaussian(x) * (-2.0 / math.sqrt(math.pi))),
)
def erfc(x: Array) -> Array:
    """Complementary error function, element-wise: ``1 - erf(x)``, accurate where that is small.

    Example:
        >>> import jax.numpy as jnp
        >>> erfc(jnp.asarray([0.0, jnp.inf]))
        Array([1., 0.], dtype=float32)
    """
    return lax.erfc(jnp.asarray(x))


@entrywise(
    of_scipy("erfinv"),
    samples=(-0.9, 0.9),
    dtype=real_inexact,
    rtol=256,
    aliases=["erf_inv"],
    rows="entrywise",
    # erf(out) = x, so d out = dx / erf'(out) = sqrt(pi) / 2 exp(out^2) dx
    d_x=lambda out, d_out: d_out * (exp(out * out) * (math.sqrt(math.pi) / 2.0)),
)
def erfinv(x: Array) -> Array:
    """Inverse error function: the number whose ``erf`` is ``x``; infinite at -1 and 1.

    Example:
        >>> import jax.numpy as jnp
        >>> erfinv(jnp.asarray([0.0, 1.0]))
        Array([ 0., inf], dtype=float32)
    """
    return lax.erf_inv(jnp.asarray(x))


# The normal distribution ------------------------------------------------------------------------


@entrywise(
    of_scipy("ndtr"),
    dtype=real_inexact,
    cases=[case(x=uniform(3, low=-5, high=-3), rtol=512)],
    # d Phi(x) = phi(x) dx, where phi(x) = exp(-x^2 / 2) / sqrt(2 pi)
    d_x=lambda x, d_out: d_out * (gaussian(x * math.sqrt(0.5)) / math.sqrt(2.0 * math.pi)),
)
def ndtr(x: Array) -> Array:
    """Distribution function of the normal distribution, accurate where it is small.

    Example:
        >>> import jax.numpy as jnp
        >>> ndtr(jnp.asarray([-jnp.inf, 0.0, jnp.inf]))
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    return 0.5 * lax.erfc(-math.sqrt(0.5) * jnp.asarray(x))


@entrywise(
    of_scipy("ndtri"),
    samples=(0.05, 0.95),
    dtype=strong_real_inexact,
    rtol=256,
    # Phi(out) = x, so d out = dx / phi(out) = sqrt(2 pi) exp(out^2 / 2) dx
    d_x=lambda out, d_out: d_out * (exp(out * out * 0.5) * math.sqrt(2.0 * math.pi)),
)
def ndtri(x: Array) -> Array:
    """Quantile of the normal distribution: the number whose ``ndtr`` is ``x``.

    It is infinite at 0 and 1, and NaN outside ``[0, 1]``.

    Example:
        >>> import jax.numpy as jnp
        >>> ndtri(jnp.asarray([0.0, 0.5, 1.0]))
        Array([-inf,   0.,  inf], dtype=float32)
    """
    dtype = jnp.asarray(x).dtype
    return jax.scipy.special.ndtri(jnp.asarray(x, at_least_single(dtype))).astype(dtype)


@entrywise(
    of_scipy("log_ndtr"),
    dtype=strong_real_inexact,
    cases=[case(x=uniform(4, low=-40, high=-5), rtol=1024)],
)
def log_ndtr(x: Array) -> Array:
    """Logarithm of ``ndtr``, computed without underflow: about ``-x^2 / 2`` far below zero.

    Example:
        >>> import jax.numpy as jnp
        >>> log_ndtr(jnp.asarray([0.0, -1000.0]))
        Array([-6.931...e-01, -5.000...e+05], dtype=float32)
    """
    dtype = jnp.asarray(x).dtype
    x = jnp.asarray(x, at_least_single(dtype))
    far, positive = x < _lower_bound(x.dtype), x > 1.0
    near = jnp.where(far | positive, 0.0, x)
    above = jnp.log1p(-0.5 * lax.erfc(math.sqrt(0.5) * jnp.where(positive, x, 1.0)))
    inside = jnp.where(positive, above, jnp.log(0.5 * lax.erfc(-math.sqrt(0.5) * near)))
    at = jnp.where(far, x, -1e3)
    series = _by_horner(_TAIL, jnp.square(1.0 / at))
    below = -0.5 * jnp.square(at) - jnp.log(-at) - 0.5 * math.log(2.0 * math.pi) + jnp.log(series)
    return jnp.where(far, below, inside).astype(dtype)


@log_ndtr.gradient
def _log_ndtr_gradient(x: Var, d_out: Var) -> Grads:
    return {"x": unbroadcast(d_out * _normal_hazard(single(x)), x)}


def _inverse_series(coefficients: Sequence[float]) -> list[float]:
    """The coefficients of one over a power series whose first coefficient is one."""
    inverse = [1.0]
    for n in range(1, len(coefficients)):
        inverse.append(-sum(coefficients[k] * inverse[n - k] for k in range(1, n + 1)))
    return inverse


# Far below zero Phi(x) = -phi(x) / x S(u), where u = 1 / x^2 and S = 1 - u + 3 u^2 - 15 u^3 + ...
# The hazard is phi / Phi = -x / S = -x (1 + u - 2 u^2 + 10 u^3 - ...).
_TAIL = [(-1.0) ** k * math.prod(range(1, 2 * k, 2)) for k in range(15)]
_HAZARD = _inverse_series(_TAIL)[1:]


def _lower_bound(dtype: DType) -> float:
    """The bound below which the series of the tail of the normal distribution are exact."""
    return -20.0 if dtype.itemsize == 8 else -7.0


def _by_horner(coefficients: Sequence[float], at: Any) -> Any:
    return functools.reduce(lambda above, one: above * at + one, reversed(coefficients))


def _normal_hazard(x: Var) -> Var:
    """``phi(x) / Phi(x)`` of the normal distribution, at minus infinity with its derivatives.

    Far below zero, where both underflow, it is ``-x - (1 / x) (1 - 2 / x^2 + 10 / x^4 - ...)``.
    """
    bound = _lower_bound(x.dtype)
    near = greater_equal(x, bound)
    z = where(near, x, 0.0) * -math.sqrt(0.5)
    inverse = 1.0 / where(near, bound, x)
    far = -(where(near, bound, x) + inverse * _by_horner(_HAZARD, inverse * inverse))
    hazard: Var = where(near, gaussian(z) / erfc(z) * math.sqrt(2.0 / math.pi), far)
    return hazard


@entrywise(
    of_scipy("logit"),
    samples=(0.05, 0.95),
    dtype=strong_real_inexact,
    # d log(x / (1 - x)) = (1 / x + 1 / (1 - x)) dx, two terms that each have one pole
    d_x=lambda x, d_out: d_out / x + d_out / (1.0 - x),
)
def logit(x: Array) -> Array:
    """Log-odds, the inverse of ``sigmoid``: ``log(x / (1 - x))``, infinite at 0 and 1.

    Example:
        >>> import jax.numpy as jnp
        >>> logit(jnp.asarray([0.0, 0.5, 1.0]))
        Array([-inf,   0.,  inf], dtype=float32)
    """
    dtype = jnp.asarray(x).dtype
    return jax.scipy.special.logit(jnp.asarray(x, at_least_single(dtype))).astype(dtype)


# The gamma function -----------------------------------------------------------------------------

# JAX's polygamma is undefined for negative numbers, and so is its second derivative of lgamma.


@jax.custom_jvp
def _lgamma(x: Array) -> Array:
    return lax.lgamma(x)


@_lgamma.defjvp
def _lgamma_tangent(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return _lgamma(*primals), tangents[0] * _digamma(*primals)


@jax.custom_jvp
def _digamma(x: Array) -> Array:
    return jnp.where(x == 0, jnp.copysign(jnp.inf, -x), lax.digamma(x))


@_digamma.defjvp
def _digamma_tangent(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return _digamma(*primals), tangents[0] * _polygamma(*primals, 1)


_TERMS = 10
"""The number of terms of the Hurwitz zeta function that are added before its asymptotic series."""
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)
"""The Bernoulli numbers of orders 2, 4, 6, ..."""


def scaled_zeta(x: Array, n: int) -> Array:
    """The product ``n! zeta(n + 1, x)`` with the Hurwitz zeta function, for positive ``x``.

    It is ``(n - 1)! / x^n`` times a factor of moderate size, by the Euler-Maclaurin formula for
    ``sum_k n x^n / (x + k)^(n + 1)`` from ``a = x + 10`` on::

        sum_(k < 10) n / x (x / (x + k))^(n + 1)
        + (x / a)^n (1 + n / (2 a) + sum_j B_2j / (2j)! n (n + 1) ... (n + 2j - 1) / a^(2j))

    Neither ``n!`` nor ``x^n`` is computed, which single precision does not hold.

    Source: DLMF 25.11.5, with the integral evaluated.
    """
    step = 1.0 / (x + _TERMS)
    coefficient, tail = jnp.ones_like(x), 1.0 + 0.5 * n * step
    for j, number in enumerate(_BERNOULLI, 1):
        rising = (n + 2 * j - 2) * (n + 2 * j - 1) / ((2 * j - 1) * (2 * j))
        coefficient = coefficient * (rising * step * step)
        tail = tail + number * coefficient
    terms = [lax.integer_pow(1.0 / (1.0 + k / x), n + 1) for k in range(1, _TERMS)]
    sums = n / x * sum(terms, 1.0) + lax.integer_pow(1.0 / (1.0 + _TERMS / x), n) * tail
    # Small and large factors in turn, so that no partial product is far below the result.
    factors = sorted(range(1, n), key=lambda j: min(j, n - j))
    return math.prod([j / x for j in factors], start=1.0 / x) * sums


def _polygamma(x: Array, n: int) -> Array:
    """The polygamma function, for negative ``x`` by reflection.

    The reflection formula is ``digamma(1 - x) = digamma(x) + pi cot(pi x)``, differentiated ``n``
    times.
    """
    negative = x < 0
    series = scaled_zeta(jnp.where(negative, 1.0 - x, x), n)
    sign = -1.0 if n % 2 == 0 else 1.0
    turn = jnp.where(negative, x - jnp.round(x), 0.25)
    reflected = -math.pi * _cotangent_derivative(1.0 / jnp.tan(math.pi * turn), n)
    value = jnp.where(negative, reflected - series, sign * series)
    return jnp.where(x == 0, jnp.inf if n % 2 else jnp.copysign(jnp.inf, -x), value)


def _cotangent_derivative(cotangent: Array, n: int) -> Array:
    """The ``n``-th derivative of ``cot(pi t)`` by ``t``, where it has the value ``cotangent``.

    It is ``pi^n n!`` times a polynomial in the cotangent, since ``cot' = -(1 + cot^2)``. The
    factors of ``pi^n n!`` are multiplied one by one, so that zero remains zero.
    """
    polynomial = np.polynomial.Polynomial([0.0, 1.0])
    for k in range(n):
        polynomial = polynomial.deriv() * np.polynomial.Polynomial([-1.0, 0.0, -1.0]) / (k + 1)
    *others, leading = polynomial.coef.tolist()
    value: Array = functools.reduce(
        lambda above, one: above * cotangent + one, reversed(others), leading
    )
    return functools.reduce(lambda part, k: part * (math.pi * k), range(1, n + 1), value)


@entrywise(
    of_scipy("polygamma"),
    samples={"x": (1.5, 5), "n": 1},
    dtype=real_inexact,
    rtol=512,
    cases=[
        case(x=uniform(low=1.5, high=5), n=2, rtol=512),
        case(x=uniform(4, low=-2.8, high=-2.2), n=2, rtol=512, order=2),
        misuse("attribute 'n' must be at least 1, and at most 170, got 0", x=(3,), n=0),
        misuse("attribute 'n' must be at least 1, and at most 170, got 171", x=(3,), n=171),
    ],
)
def polygamma(x: Array, *, n: Annotated[int, from_order(1)]) -> Array:
    """Polygamma function: the ``n``-th derivative of ``digamma``, for ``n >= 1``.

    ``out = (-1)^(n + 1) n! zeta(n + 1, x)`` with the Hurwitz zeta function, for positive ``x``. For
    negative ``x`` the reflection formula is used; 0, -1, -2, ... are poles. The function is zero at
    infinity, and NaN at minus infinity.

    Example:
        >>> import jax.numpy as jnp
        >>> polygamma(jnp.asarray(1.0), n=1)
        Array(1.6449..., dtype=float32, weak_type=True)
    """
    return _polygamma(jnp.asarray(x), n)


@polygamma.gradient
def _polygamma_gradient(x: Var, d_out: Var, *, n: int) -> Grads:
    return {"x": d_out * polygamma(x, n=n + 1)}


@entrywise(
    of_scipy("digamma"),
    samples=(2.5, 9),
    dtype=real_inexact,
    rtol=256,
    aliases=["psi"],
    cases=[case(x=positive(4), rtol=256), case(x=uniform(4, low=-8.8, high=-8.2), rtol=256)],
    d_x=lambda x, d_out: d_out * polygamma(x, n=1),
)
def digamma(x: Array) -> Array:
    """Digamma function: the derivative of ``lgamma``.

    It is infinite at zero, with the sign opposite to the zero's. It is NaN at the poles -1, -2, ...
    and at minus infinity, where it has no limit.

    Example:
        >>> import jax.numpy as jnp
        >>> digamma(jnp.asarray(1.0))
        Array(-0.5772..., dtype=float32, weak_type=True)
    """
    return _digamma(jnp.asarray(x))


@entrywise(
    of_scipy("gammaln"),
    samples=(2.5, 9),
    dtype=real_inexact,
    rtol=256,
    aliases=["gammaln"],
    cases=[case(x=uniform(4, low=-2.8, high=-2.2), rtol=256)],
    d_x=lambda x, d_out: d_out * digamma(x),
)
def lgamma(x: Array) -> Array:
    """Logarithm of the absolute value of the gamma function; infinite at 0, -1, -2, ...

    Example:
        >>> import jax.numpy as jnp
        >>> lgamma(jnp.asarray([4.0, 0.0]))
        Array([1.7917..., inf], dtype=float32)
    """
    return _lgamma(jnp.asarray(x))


@entrywise(
    of_scipy("gamma"),
    samples=(0.5, 5),
    dtype=strong_real_inexact,
    rtol=256,
    cases=[case(x=uniform(4, low=-2.8, high=-2.2), rtol=256)],
    d_x=lambda x, out, d_out: d_out * (out * digamma(x)),
)
def gamma(x: Array) -> Array:
    """Gamma function: ``gamma(n + 1) = n!``, and ``gamma(x + 1) = x gamma(x)`` for every ``x``.

    It is infinite at zero, with the sign of the zero, and NaN at the poles -1, -2, ...

    Example:
        >>> import jax.numpy as jnp
        >>> gamma(jnp.asarray([0.0, -0.5]))
        Array([ inf, -3.5449...], dtype=float32)
    """
    x = jnp.asarray(x)
    out: Array = jax.scipy.special.gammasgn(x) * jnp.exp(_lgamma(x))
    return out
