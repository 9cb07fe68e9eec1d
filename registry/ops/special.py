"""Special functions: the error function and its kin, and the gamma function's logarithm and its."""

import functools
import importlib
import math
from collections.abc import Callable
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.attributes import Check
from registry.cases import case, misuse, positive, uniform
from registry.operator import Grads
from registry.ops.elementwise import exp
from registry.ops.rounding import clip
from registry.shapes import REFUSES_INTEGERS, real_inexact, same, strong_real_inexact
from registry.signature import Array
from registry.table import op
from registry.var import Var


def _of_scipy(name: str) -> Callable[..., np.ndarray]:
    """SciPy's function of that name, which is imported when a proof calls it."""

    def reference(x: np.ndarray, **attributes: Any) -> np.ndarray:
        function = getattr(importlib.import_module("scipy.special"), name)
        result: np.ndarray = function(*attributes.values(), np.asarray(x, np.float64))
        return result.astype(x.dtype)

    return reference


# The error function -----------------------------------------------------------------------------


_BEYOND = 32.0
"""From here on ``exp(-x^2)`` is zero in double precision."""


@op(
    shape=same,
    dtype=real_inexact,
    reference=lambda x: np.exp(-(x**2)),
    cases=[
        case(x=(3, 4)),
        case(x=()),
        case(x=(0,)),
        REFUSES_INTEGERS,
    ],
)
def gaussian(x: Array) -> Array:
    """``exp(-x^2)``, which is zero at infinity, with all its derivatives.

    Example:
        >>> import jax.numpy as jnp
        >>> gaussian(jnp.asarray([0.0, jnp.inf]))
        Array([1., 0.], dtype=float32)
    """
    return jnp.exp(-(x * x))


@gaussian.gradient
def _gaussian_gradient(x: Var, out: Var, d_out: Var) -> Grads:
    # Bounded, x is not infinite beside a zero.
    return {"x": d_out * (clip(x, low=-_BEYOND, high=_BEYOND) * -2.0 * out)}


@op(
    shape=same,
    dtype=real_inexact,
    reference=_of_scipy("erf"),
    rows="entrywise",
    cases=[case(x=(3, 4)), case(x=()), case(x=(0, 2)), REFUSES_INTEGERS],
)
def erf(x: Array) -> Array:
    """Error function ``2 / sqrt(pi)`` times the integral of ``exp(-t^2)`` from 0 to ``x``.

    Example:
        >>> import jax.numpy as jnp
        >>> erf(jnp.asarray([0.0, jnp.inf]))
        Array([0., 1.], dtype=float32)
    """
    return lax.erf(jnp.asarray(x))


@erf.gradient
def _erf_gradient(x: Var, d_out: Var) -> Grads:
    return {"x": d_out * (gaussian(x) * (2.0 / math.sqrt(math.pi)))}


@op(
    shape=same,
    dtype=real_inexact,
    reference=_of_scipy("erfc"),
    cases=[
        case(x=(3, 4)),
        case(x=()),
        case(x=uniform(3, low=3, high=5), rtol=512),
        case(x=(0,)),
        REFUSES_INTEGERS,
    ],
)
def erfc(x: Array) -> Array:
    """``1 - erf(x)``, accurate where that is small.

    Example:
        >>> import jax.numpy as jnp
        >>> erfc(jnp.asarray([0.0, jnp.inf]))
        Array([1., 0.], dtype=float32)
    """
    return lax.erfc(jnp.asarray(x))


@erfc.gradient
def _erfc_gradient(x: Var, d_out: Var) -> Grads:
    return {"x": d_out * (gaussian(x) * (-2.0 / math.sqrt(math.pi)))}


@op(
    shape=same,
    dtype=real_inexact,
    reference=_of_scipy("erfinv"),
    aliases=["erf_inv"],
    rows="entrywise",
    cases=[
        case(x=uniform(3, 4, low=-0.9, high=0.9), rtol=256),
        case(x=uniform(low=-0.9, high=0.9), rtol=256),
        case(x=(0,)),
        REFUSES_INTEGERS,
    ],
)
def erfinv(x: Array) -> Array:
    """Number whose error function is ``x``; infinite at -1 and 1.

    Example:
        >>> import jax.numpy as jnp
        >>> erfinv(jnp.asarray([0.0, 1.0]))
        Array([ 0., inf], dtype=float32)
    """
    return lax.erf_inv(jnp.asarray(x))


@erfinv.gradient
def _erfinv_gradient(out: Var, d_out: Var) -> Grads:
    # erf(out) = x, so d out = dx / erf'(out) = sqrt(pi) / 2 exp(out^2) dx
    return {"x": d_out * (exp(out * out) * (math.sqrt(math.pi) / 2.0))}


# The gamma function -----------------------------------------------------------------------------

# JAX's polygamma is none for negative numbers, so its second derivative of lgamma is none either.


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


_FAR = 1e8
"""From here on two terms of the asymptotic series of the Hurwitz zeta function are all."""


def _polygamma(x: Array, n: int) -> Array:
    """``digamma(1 - x) = digamma(x) + pi cot(pi x)``, ``n`` times derived, for negative ``x``."""
    negative = x < 0
    far = x > min(_FAR, float(jnp.finfo(x.dtype).max))  # type: ignore[no-untyped-call]  # of JAX
    place = jnp.where(far, 1.0, jnp.where(negative, 1.0 - x, x))
    series = jax.scipy.special.zeta(n + 1.0, place)
    at = jnp.where(far, x, 1.0)
    series = jnp.where(far, (1.0 / n + 0.5 / at) * lax.integer_pow(at, -n), series)
    sign = -1.0 if n % 2 == 0 else 1.0
    turn = jnp.where(negative, x - jnp.round(x), 0.25)
    reflected = -(math.pi ** (n + 1)) * _cotangent_derivative(1.0 / jnp.tan(math.pi * turn), n)
    series = sign * math.factorial(n) * series
    found = jnp.where(negative, reflected - sign * series, series)
    return jnp.where(x == 0, jnp.inf if n % 2 else jnp.copysign(jnp.inf, -x), found)


def _cotangent_derivative(cotangent: Array, n: int) -> Array:
    """The ``n``-th derivative of the cotangent, a polynomial in it: ``cot' = -(1 + cot^2)``."""
    polynomial = np.polynomial.Polynomial([0.0, 1.0])
    for _ in range(n):
        polynomial = polynomial.deriv() * np.polynomial.Polynomial([-1.0, 0.0, -1.0])
    *others, leading = polynomial.coef.tolist()
    value: Array = functools.reduce(
        lambda above, one: above * cotangent + one, reversed(others), leading
    )
    return value


@op(
    shape=same,
    dtype=real_inexact,
    reference=_of_scipy("gammaln"),
    aliases=["gammaln"],
    cases=[
        case(x=uniform(3, 4, low=2.5, high=9), rtol=256),
        case(x=uniform(low=2.5, high=9), rtol=256),
        case(x=uniform(4, low=-2.8, high=-2.2), rtol=256),
        case(x=(0,)),
        REFUSES_INTEGERS,
    ],
)
def lgamma(x: Array) -> Array:
    """Logarithm of the absolute value of the gamma function; infinite at 0, -1, -2, ...

    Example:
        >>> import jax.numpy as jnp
        >>> lgamma(jnp.asarray([4.0, 0.0]))
        Array([1.7917..., inf], dtype=float32)
    """
    return _lgamma(jnp.asarray(x))


@lgamma.gradient
def _lgamma_gradient(x: Var, d_out: Var) -> Grads:
    return {"x": d_out * digamma(x)}


@op(
    shape=same,
    dtype=strong_real_inexact,
    reference=_of_scipy("gamma"),
    cases=[
        case(x=uniform(3, 4, low=0.5, high=5), rtol=256),
        case(x=uniform(4, low=-2.8, high=-2.2), rtol=256),
        case(x=positive(), rtol=256),
        case(x=(0,)),
        REFUSES_INTEGERS,
    ],
)
def gamma(x: Array) -> Array:
    """Gamma function: ``gamma(n + 1) = n!``, and ``gamma(x + 1) = x gamma(x)`` for every ``x``.

    Infinite at zero with the zero's sign; not a number at -1, -2, ..., which are poles.

    Example:
        >>> import jax.numpy as jnp
        >>> gamma(jnp.asarray([0.0, -0.5]))
        Array([ inf, -3.5449...], dtype=float32)
    """
    x = jnp.asarray(x)
    out: Array = jax.scipy.special.gammasgn(x) * jnp.exp(_lgamma(x))
    return out


@gamma.gradient
def _gamma_gradient(x: Var, out: Var, d_out: Var) -> Grads:
    return {"x": d_out * (out * digamma(x))}


@op(
    shape=same,
    dtype=real_inexact,
    reference=_of_scipy("digamma"),
    aliases=["psi"],
    cases=[
        case(x=uniform(3, 4, low=2.5, high=9), rtol=256),
        case(x=positive(), rtol=256),
        case(x=uniform(4, low=-8.8, high=-8.2), rtol=256),
        case(x=(0,)),
        REFUSES_INTEGERS,
    ],
)
def digamma(x: Array) -> Array:
    """Derivative of ``lgamma``.

    Infinite at zero, with the opposite sign; not a number at -1, -2, ... and at minus infinity,
    beside which it has every value.

    Example:
        >>> import jax.numpy as jnp
        >>> digamma(jnp.asarray(1.0))
        Array(-0.5772..., dtype=float32, weak_type=True)
    """
    return _digamma(jnp.asarray(x))


@digamma.gradient
def _digamma_gradient(x: Var, d_out: Var) -> Grads:
    return {"x": d_out * polygamma(x, n=1)}


@op(
    shape=same,
    dtype=real_inexact,
    reference=_of_scipy("polygamma"),
    cases=[
        case(x=uniform(3, 4, low=1.5, high=5), n=1, rtol=512),
        case(x=uniform(low=1.5, high=5), n=2, rtol=512),
        case(x=uniform(4, low=-2.8, high=-2.2), n=2, rtol=512, order=2),
        case(x=(0,), n=1),
        misuse("attribute 'n' must be at least 1, got 0", x=(3,), n=0),
    ],
)
def polygamma(x: Array, *, n: Annotated[int, Check("be at least 1", lambda n: n > 0)]) -> Array:
    """The ``n``-th derivative of ``digamma``, from the first on.

    ``out = (-1)^(n + 1) n! zeta(n + 1, x)``, where ``zeta`` is Hurwitz's, for positive ``x``. For
    negative ones the reflection formula leads there; 0, -1, -2, ... are poles. It is zero at
    infinity, and not a number at minus infinity.

    Example:
        >>> import jax.numpy as jnp
        >>> polygamma(jnp.asarray(1.0), n=1)
        Array(1.6449..., dtype=float32, weak_type=True)
    """
    return _polygamma(jnp.asarray(x), n)


@polygamma.gradient
def _polygamma_gradient(x: Var, d_out: Var, *, n: int) -> Grads:
    return {"x": d_out * polygamma(x, n=n + 1)}
