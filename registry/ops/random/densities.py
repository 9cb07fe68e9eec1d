"""Log densities of common distributions.

Outside a distribution's support the log density is minus infinity, and its gradient is zero. At a
closed end of the support, such as 0 for a gamma distribution, it is the limit from within, which
may be plus or minus infinity; infinity itself is outside a support that is only bounded below.
Parameters are not checked: illegal ones, such as a negative scale, give a meaningless result.
Parameters have the same names as in ``random_*`` where both exist.

Source: NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.6; references by ``scipy.stats``.
"""

import importlib
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, misuse, positive, uniform
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import single, unbroadcast
from registry.ops.core.comparison import (
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
)
from registry.ops.core.elementwise import log, where
from registry.ops.elementwise.extrema import abs as absolute
from registry.ops.elementwise.extrema import sign
from registry.ops.elementwise.powers import sqrt, square
from registry.ops.elementwise.stirling import (
    LARGE,
    deviance,
    half_step_of_digamma,
    log_and_digamma_step,
    log_gamma_step,
    log_minus_digamma,
    remainder,
    share_minus_log1p,
)
from registry.ops.elementwise.zero_products import divisor
from registry.shapes import at_least_single, broadcast, float_for, real, strong
from registry.table import op
from registry.types import DType, VarType, is_inexact
from registry.var import Var

LOG_2_PI = math.log(2.0 * math.pi)
_LARGE_NUMBERS = uniform(3, low=40, high=60)


# Shared by densities ---------------------------------------------------------------------------


def density_dtype(*types: VarType) -> DType:
    """The floating dtype to which all inputs promote, never weak."""
    real(*types)
    dtype = strong(*types)
    return dtype if is_inexact(dtype) else float_for(dtype)


def widened(*values: Any) -> tuple[list[Array], DType]:
    """The values in the result's dtype, at least in single precision, and the result's dtype."""
    dtype = np.dtype(jnp.result_type(*values))
    if not is_inexact(dtype):
        dtype = float_for(dtype)
    wide = at_least_single(dtype)
    return [jnp.asarray(value).astype(wide) for value in values], dtype


def supported(inside: Array, density: Array, dtype: DType) -> Array:
    """``density`` inside the support, minus infinity outside, in ``dtype``."""
    return lax.convert_element_type(jnp.where(inside, density, -jnp.inf), dtype)


def of_scipy(name: str, call: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """SciPy's distribution of that name, imported when a proof calls it."""

    def reference(*values: np.ndarray, **attributes: Any) -> np.ndarray:
        distribution = getattr(importlib.import_module("scipy.stats"), name)
        arrays = [np.asarray(one, np.float64) for one in values]
        result: np.ndarray = call(distribution, *arrays, **attributes)
        return result

    return reference


def within(condition: Var, gradient: Var) -> Var:
    """``gradient`` inside the support, zero outside."""
    chosen: Var = where(condition, gradient, 0.0)
    return chosen


def _folded(z: Array) -> tuple[Array, Array]:
    """``log(1 + z^2) = log(1 + t^2) + 2 log(s)``, whose ``t`` and ``s`` do not overflow."""
    far = jnp.abs(z) > 1
    size = jnp.where(far, jnp.abs(z), 1.0)
    return jnp.where(far, 1.0 / size, z), size


def _folded_var(z: Var) -> tuple[Var, Var, Var]:
    """``t`` and ``s`` of ``_folded``, with the sign of ``z``, and a mask of large ``z``."""
    far = greater(absolute(z), 1.0)
    size = where(far, z, 1.0)
    return where(far, 1.0 / size, z), size, far


APART = "the inputs' shapes must broadcast together"
"""The error message for inputs whose shapes do not broadcast."""


# Support: all real numbers ---------------------------------------------------------------------


@op(
    shape=broadcast,
    dtype=density_dtype,
    reference=of_scipy("norm", lambda d, x, loc, scale: d.logpdf(x, loc, scale)),
    cases=[
        case(x=(3, 4), loc=(4,), scale=positive(3, 1)),
        case(x=(), loc=(), scale=positive()),
        case(x=(0,), loc=(), scale=positive()),
        misuse(APART, x=(3,), loc=(4,), scale=(3,)),
        misuse(
            "the inputs must be real, got complex64", x=np.ones(2, np.complex64), loc=(), scale=()
        ),
    ],
)
def normal_log_density(x: Array, loc: Array, scale: Array) -> Array:
    """Log density of the normal distribution with mean ``loc`` and standard deviation ``scale``.

    ``-((x - loc) / scale)^2 / 2 - log(scale) - log(2 pi) / 2``.

    Example:
        >>> import jax.numpy as jnp
        >>> normal_log_density(jnp.asarray([0.0]), 0.0, 1.0)
        Array([-0.918...], dtype=float32)
    """
    (x, loc, scale), dtype = widened(x, loc, scale)
    out = -0.5 * jnp.square((x - loc) / scale) - jnp.log(scale) - 0.5 * LOG_2_PI
    return lax.convert_element_type(out, dtype)


@normal_log_density.gradient
def _normal_log_density_gradient(x: Var, loc: Var, scale: Var, d_out: Var) -> Grads:
    # With z = (x - loc) / scale: d/dx = -z / scale and d/dscale = (z^2 - 1) / scale
    z = (x - loc) / scale
    slope = d_out * z / scale
    return {
        "x": unbroadcast(-slope, x),
        "loc": unbroadcast(slope, loc),
        "scale": lambda: unbroadcast(d_out * (square(z) - 1.0) / scale, scale),
    }


@op(
    shape=broadcast,
    dtype=density_dtype,
    reference=of_scipy("laplace", lambda d, x, loc, scale: d.logpdf(x, loc, scale)),
    cases=[
        case(x=uniform(3, 4, low=2, high=3), loc=uniform(4, low=0, high=1), scale=positive(3, 1)),
        case(x=uniform(low=-2, high=-1), loc=uniform(low=2, high=3), scale=positive()),
        case(x=(0,), loc=(), scale=positive()),
        misuse(APART, x=(3,), loc=(4,), scale=(3,)),
    ],
)
def laplace_log_density(x: Array, loc: Array, scale: Array) -> Array:
    """Log density of the Laplace distribution: ``-|x - loc| / scale - log(2 scale)``.

    The derivative with respect to ``x`` at ``loc`` is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> laplace_log_density(jnp.asarray([1.0]), 1.0, 0.5)
        Array([-0.], dtype=float32)
    """
    (x, loc, scale), dtype = widened(x, loc, scale)
    distance = jnp.where(x == loc, 0.0, jnp.abs(x - loc))
    return lax.convert_element_type(-distance / scale - jnp.log(2.0 * scale), dtype)


@laplace_log_density.gradient
def _laplace_log_density_gradient(x: Var, loc: Var, scale: Var, d_out: Var) -> Grads:
    slope = d_out * sign(x - loc) / scale
    far = absolute(x - loc) / scale
    return {
        "x": unbroadcast(-slope, x),
        "loc": unbroadcast(slope, loc),
        "scale": lambda: unbroadcast(d_out * (far - 1.0) / scale, scale),
    }


@op(
    shape=broadcast,
    dtype=density_dtype,
    reference=of_scipy("cauchy", lambda d, x, loc, scale: d.logpdf(x, loc, scale)),
    cases=[
        case(x=(3, 4), loc=(4,), scale=positive(3, 1)),
        case(x=(), loc=(), scale=positive()),
        misuse(APART, x=(3,), loc=(4,), scale=(3,)),
    ],
)
def cauchy_log_density(x: Array, loc: Array, scale: Array) -> Array:
    """Log density of the Cauchy distribution with median ``loc``.

    ``-log(pi scale (1 + z^2))`` with ``z = (x - loc) / scale``.

    Example:
        >>> import jax.numpy as jnp
        >>> cauchy_log_density(jnp.asarray([0.0]), 0.0, 1.0)
        Array([-1.144...], dtype=float32)
    """
    (x, loc, scale), dtype = widened(x, loc, scale)
    near, size = _folded((x - loc) / scale)
    out = -jnp.log1p(jnp.square(near)) - 2.0 * jnp.log(size)
    out = out - jnp.log(scale) - math.log(math.pi)
    return lax.convert_element_type(out, dtype)


@cauchy_log_density.gradient
def _cauchy_log_density_gradient(x: Var, loc: Var, scale: Var, d_out: Var) -> Grads:
    # d/dx = -2 z / (scale (1 + z^2)), d/dscale = (2 z^2 / (1 + z^2) - 1) / scale. With t = 1 / z in
    # place of z, the former is unchanged and the latter has the opposite sign.
    t, _, far = _folded_var((x - loc) / scale)
    over = 1.0 + square(t)
    slope = d_out * (2.0 * t / over) / scale
    rest = (1.0 - square(t)) / over
    return {
        "x": unbroadcast(-slope, x),
        "loc": unbroadcast(slope, loc),
        "scale": lambda: unbroadcast(d_out * where(far, rest, -rest) / scale, scale),
    }


@op(
    shape=broadcast,
    dtype=density_dtype,
    reference=of_scipy("t", lambda d, x, df, loc, scale: d.logpdf(x, df, loc, scale)),
    cases=[
        case(x=(3, 4), df=positive(4), loc=(), scale=positive(3, 1), rtol=256),
        case(x=(3,), df=_LARGE_NUMBERS, loc=(), scale=positive(), rtol=1024, order=1),
        case(x=(), df=positive(), loc=(), scale=positive(), rtol=256),
        misuse(APART, x=(3,), df=(4,), loc=(), scale=(3,)),
    ],
)
def student_t_log_density(x: Array, df: Array, loc: Array, scale: Array) -> Array:
    """Log density of Student's t distribution with ``df`` degrees of freedom.

    ``log Gamma((df + 1) / 2) - log Gamma(df / 2) - log(df pi) / 2 - log(scale) - (df + 1) / 2 log(1
    + z^2 / df)`` with ``z = (x - loc) / scale``. For an infinite ``df`` it is the log density of
    the normal distribution, and the derivative with respect to ``df`` is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> student_t_log_density(jnp.asarray([0.0]), 1.0, 0.0, 1.0)
        Array([-1.144...], dtype=float32)
    """
    (x, degrees, loc, scale), dtype = widened(x, df, loc, scale)
    z = (x - loc) / scale
    endless = degrees == jnp.inf
    df = jnp.where(endless, 1.0, degrees)
    # log Gamma(h + 1/2) - log Gamma(h) - log(h) / 2, where h = df / 2, vanishes for large h.
    large = df >= 2.0 * LARGE
    half = jnp.where(large, df / 2.0, LARGE)
    far = log_gamma_step(half, 0.5) + 0.5 * jnp.log1p(0.5 / half)
    close = lax.lgamma((df + 1.0) / 2.0) - lax.lgamma(df / 2.0) - 0.5 * jnp.log(df / 2.0)
    near, size = _folded(z / jnp.sqrt(df))
    tail = jnp.log1p(jnp.square(near)) + 2.0 * jnp.log(size)
    out = jnp.where(large, far, close) - (df + 1.0) / 2.0 * tail
    out = jnp.where(endless, -0.5 * jnp.square(z), out) - 0.5 * LOG_2_PI - jnp.log(scale)
    return lax.convert_element_type(out, dtype)


@student_t_log_density.gradient
def _student_t_log_density_gradient(x: Var, df: Var, loc: Var, scale: Var, d_out: Var) -> Grads:
    # With u = z / sqrt(df) and q = (df + 1) / (df + z^2): d/dx = -q z / scale, d/dscale =
    # (q z^2 - 1) / scale, and d/ddf = (psi((df + 1) / 2) - psi(df / 2) - 1 / df - log(1 + u^2)
    # + q z^2 / df) / 2. In t = u or 1 / u, q z^2 = (df + 1) u^2 / (1 + u^2) has no large number.
    # The last derivative is about 1 / df^2 for a large df, so its terms are combined in pairs.
    # For an infinite df, q is 1.
    inputs, (x, df, loc, scale) = (x, df, loc, scale), map(single, (x, df, loc, scale))
    endless, z = equal(df, math.inf), (x - loc) / scale
    df = where(endless, 1.0, df)
    root = sqrt(df)
    t, size, far = _folded_var(z / root)
    over = 1.0 + square(t)
    slope = d_out * where(endless, z, (df + 1.0) / root * (t / over)) / scale
    share = where(far, 1.0, square(t)) / over
    pull = where(endless, square(z), (df + 1.0) * share)

    def by_df() -> Var | None:
        outside = share - log(over) - 2.0 * log(absolute(size))
        tail = where(far, outside, share_minus_log1p(where(far, 0.0, square(t))))
        parts = half_step_of_digamma(df / 2.0) + tail + share / df
        return unbroadcast(d_out * where(endless, 0.0, parts * 0.5), inputs[1])

    return {
        "x": unbroadcast(-slope, inputs[0]),
        "df": by_df,
        "loc": unbroadcast(slope, inputs[2]),
        "scale": lambda: unbroadcast(d_out * (pull - 1.0) / scale, inputs[3]),
    }


# Support: part of the real numbers -------------------------------------------------------------


@op(
    shape=broadcast,
    dtype=density_dtype,
    reference=of_scipy("uniform", lambda d, x, low, high: d.logpdf(x, low, high - low)),
    cases=[
        case(
            x=uniform(3, 4, low=0, high=1),
            low=uniform(4, low=-2, high=-1),
            high=uniform(3, 1, low=2, high=3),
        ),
        case(
            x=uniform(3, low=4, high=5), low=uniform(low=-2, high=-1), high=uniform(low=2, high=3)
        ),
        misuse(APART, x=(3,), low=(4,), high=(3,)),
    ],
)
def uniform_log_density(x: Array, low: Array, high: Array) -> Array:
    """Log density of the uniform distribution: ``-log(high - low)`` for ``low <= x <= high``.

    For any other ``x`` it is minus infinity. The derivative with respect to ``x`` is zero
    everywhere. Those with respect to ``low`` and ``high`` are ``1 / (high - low)`` and its negative
    inside and at the bounds, and zero outside.

    Example:
        >>> import jax.numpy as jnp
        >>> uniform_log_density(jnp.asarray([0.5, 2.0]), 0.0, 1.0)
        Array([ -0., -inf], dtype=float32)
    """
    (x, low, high), dtype = widened(x, low, high)
    return supported((low <= x) & (x <= high), -jnp.log(high - low), dtype)


@uniform_log_density.gradient
def _uniform_log_density_gradient(x: Var, low: Var, high: Var, d_out: Var) -> Grads:
    inside = logical_and(less_equal(low, x), less_equal(x, high))
    slope = within(inside, d_out / (high - low))
    return {"x": None, "low": unbroadcast(slope, low), "high": unbroadcast(-slope, high)}


@op(
    shape=broadcast,
    dtype=density_dtype,
    reference=of_scipy("expon", lambda d, x, scale: d.logpdf(x, 0, scale)),
    cases=[
        case(x=positive(3, 4), scale=positive(4), rtol=256),
        case(x=uniform(3, low=-2, high=-1), scale=positive()),
        case(x=positive(0), scale=positive()),
        misuse(APART, x=(3,), scale=(4,)),
    ],
)
def exponential_log_density(x: Array, scale: Array) -> Array:
    """Log density of the exponential distribution with mean ``scale``: ``-x / scale - log(scale)``.

    The support is ``x >= 0``.

    Example:
        >>> import jax.numpy as jnp
        >>> exponential_log_density(jnp.asarray([0.0, -1.0]), 1.0)
        Array([ -0., -inf], dtype=float32)
    """
    (x, scale), dtype = widened(x, scale)
    return supported(x >= 0, -x / scale - jnp.log(scale), dtype)


@exponential_log_density.gradient
def _exponential_log_density_gradient(x: Var, scale: Var, d_out: Var) -> Grads:
    inside, mean = greater_equal(x, 0.0), single(scale)
    return {
        "x": unbroadcast(within(inside, -(d_out / mean)), x),
        "scale": unbroadcast(within(inside, d_out * (x / mean - 1.0) / mean), scale),
    }


@op(
    shape=broadcast,
    dtype=density_dtype,
    reference=of_scipy("gamma", lambda d, x, a, scale: d.logpdf(x, a, 0, scale)),
    cases=[
        case(x=positive(3, 4), a=positive(4), scale=positive(3, 1), rtol=256),
        case(x=positive(), a=positive(), scale=positive(), rtol=256),
        case(
            x=_LARGE_NUMBERS,
            a=_LARGE_NUMBERS,
            scale=positive(),
            rtol=1024,
            order=1,
        ),
        case(x=uniform(2, low=-2, high=-1), a=positive(), scale=positive(), order=1),
        misuse(APART, x=(3,), a=(4,), scale=()),
    ],
)
def gamma_log_density(x: Array, a: Array, scale: Array) -> Array:
    """Log density of the gamma distribution with shape ``a``, for ``x >= 0``.

    ``(a - 1) log(x / scale) - x / scale - log Gamma(a) - log(scale)``.

    Example:
        >>> import jax.numpy as jnp
        >>> gamma_log_density(jnp.asarray([2.0, -1.0]), 3.0, 1.0)
        Array([-1.306..., -inf], dtype=float32)
    """
    (x, a, scale), dtype = widened(x, a, scale)
    inside = (x >= 0) & (x < jnp.inf)
    z = jnp.where(inside, x, 1.0) / scale
    close = jax.scipy.special.xlogy(a - 1.0, z) - z - lax.lgamma(a)
    large = (a >= LARGE) & (a < jnp.inf) & (z > 0) & (z < jnp.inf)
    at, mean = jnp.where(large, a, LARGE), jnp.where(large, z, LARGE)
    far = 0.5 * (jnp.log(at) - LOG_2_PI) - jnp.log(mean) - remainder(at) - deviance(at, mean)
    return supported(inside, jnp.where(large, far, close) - jnp.log(scale), dtype)


@gamma_log_density.gradient
def _gamma_log_density_gradient(x: Var, a: Var, scale: Var, d_out: Var) -> Grads:
    # With z = x / scale: d/dx = (a - 1) / x - 1 / scale, d/da = log z - psi(a), and
    # d/dscale = (z - a) / scale
    inputs, (x, a, scale) = (x, a, scale), map(single, (x, a, scale))
    inside = logical_and(greater_equal(x, 0.0), less(x, math.inf))
    at = where(inside, x, 1.0)
    z = at / scale
    pull = (a - 1.0) / divisor(at, a - 1.0)
    return {
        "x": unbroadcast(within(inside, d_out * (pull - 1.0 / scale)), inputs[0]),
        "a": lambda: unbroadcast(within(inside, d_out * log_minus_digamma(z, a)), inputs[1]),
        "scale": lambda: unbroadcast(within(inside, d_out * (z - a) / scale), inputs[2]),
    }


@op(
    shape=broadcast,
    dtype=density_dtype,
    reference=of_scipy("beta", lambda d, x, a, b: d.logpdf(x, a, b)),
    cases=[
        case(x=uniform(3, 4, low=0.2, high=0.8), a=positive(4), b=positive(3, 1), rtol=256),
        case(x=uniform(low=0.2, high=0.8), a=uniform(low=2, high=3), b=positive(), rtol=512),
        case(
            x=uniform(3, low=0.4, high=0.6),
            a=_LARGE_NUMBERS,
            b=_LARGE_NUMBERS,
            rtol=1024,
            order=1,
        ),
        case(x=uniform(2, low=2, high=3), a=positive(), b=positive(), order=1),
        misuse(APART, x=(3,), a=(4,), b=()),
    ],
)
def beta_log_density(x: Array, a: Array, b: Array) -> Array:
    """Log density of the beta distribution: ``(a - 1) log(x) + (b - 1) log(1 - x) - log B(a, b)``.

    It is defined for ``0 <= x <= 1``, with ``B(a, b) = Gamma(a) Gamma(b) / Gamma(a + b)``.

    Example:
        >>> import jax.numpy as jnp
        >>> beta_log_density(jnp.asarray([0.5, 2.0]), 2.0, 2.0)
        Array([0.405..., -inf], dtype=float32)
    """
    (x, a, b), dtype = widened(x, a, b)
    inside = (x >= 0) & (x <= 1)
    at = jnp.where(inside, x, 0.5)
    powers = jax.scipy.special.xlogy(a - 1.0, at) + jax.scipy.special.xlog1py(b - 1.0, -at)
    narrow = (jnp.minimum(a, b) >= LARGE) & (a + b < jnp.inf) & (at > 0) & (at < 1)
    far = _narrow_beta(*(jnp.where(narrow, *one) for one in ((at, 0.5), (a, LARGE), (b, LARGE))))
    return supported(inside, jnp.where(narrow, far, powers - _log_beta(a, b)), dtype)


def _narrow_beta(x: Array, a: Array, b: Array) -> Array:
    """The log density where both parameters are at least ``LARGE``."""
    total = a + b
    away = deviance(a, total * x) + deviance(b, total * (1.0 - x))
    rest = remainder(total) - remainder(a) - remainder(b)
    width = jnp.log(a) + jnp.log(b / total) - LOG_2_PI
    return 0.5 * width - jnp.log(x) - jnp.log1p(-x) + rest - away


def _log_beta(a: Array, b: Array) -> Array:
    """``log B(a, b)``, accurate where one of the two is large."""
    swap = a < b
    a, b = jnp.where(swap, b, a), jnp.where(swap, a, b)
    large = (a >= LARGE) & (a + b < jnp.inf)
    at, step = jnp.where(large, a, LARGE), jnp.where(large, b, 1.0)
    far = log_gamma_step(at, step) + step * jnp.log(at + step)
    return lax.lgamma(b) - jnp.where(large, far, lax.lgamma(a + b) - lax.lgamma(a))


@beta_log_density.gradient
def _beta_log_density_gradient(x: Var, a: Var, b: Var, d_out: Var) -> Grads:
    # d/dx = (a - 1) / x - (b - 1) / (1 - x), d/da = log x + psi(a + b) - psi(a), similarly for b
    inputs, (x, a, b) = (x, a, b), map(single, (x, a, b))
    inside = logical_and(greater_equal(x, 0.0), less_equal(x, 1.0))
    at = where(inside, x, 0.5)

    def by(place: Var, parameter: Var, like: Var) -> Var | None:
        slope = log_and_digamma_step(place, parameter, a + b)
        return unbroadcast(within(inside, d_out * slope), like)

    rest = 1.0 - at
    slope = (a - 1.0) / divisor(at, a - 1.0) - (b - 1.0) / divisor(rest, b - 1.0)
    return {
        "x": unbroadcast(within(inside, d_out * slope), inputs[0]),
        "a": lambda: by(at, a, inputs[1]),
        "b": lambda: by(rest, b, inputs[2]),
    }
