"""The remainder of Stirling's formula for the logarithm of the gamma function.

The logarithm of a density subtracts numbers that grow with its parameters, although the result does
not. For parameters of at least ``LARGE``, the terms that cancel are omitted instead: the densities
are written with the remainder of Stirling's formula and with the deviance, both of which stay
small.

Sources: Loader, "Fast and accurate computation of binomial probabilities" (2000); Abramowitz and
Stegun, "Handbook of mathematical functions" (1964), 6.1.41 and 6.3.18.
"""

from collections.abc import Sequence
from typing import Any, TypeVar, cast

import jax.numpy as jnp

from registry.operator.signature import Array
from registry.ops.core.comparison import greater_equal
from registry.ops.core.elementwise import log, log1p, where
from registry.ops.elementwise.special import digamma
from registry.var import Var

LARGE = 16.0
"""The bound from which the series are exact in double precision."""

Value = TypeVar("Value")

_REMAINDER = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
_HALF_STEP = (1 / 8, -1 / 64, 1 / 128, -17 / 2048, 31 / 2048, -691 / 16384, 5461 / 32768)
_ODD = tuple(1 / n for n in range(3, 19, 2))
"""The coefficients of ``atanh(v) / v^3 - 1 / v^2``, in even powers of ``v``."""


def _series(at: Value, coefficients: Sequence[float]) -> Value:
    """The polynomial with these coefficients, the constant one first, by Horner's rule.

    The argument may be an array or a variable.
    """
    *others, leading = coefficients
    total: Any = leading
    for one in reversed(others):
        total = total * at + one
    return cast(Value, total)


# For arrays -------------------------------------------------------------------------------------


def remainder(x: Array) -> Array:
    """``lgamma(x) - (x - 1/2) log(x) + x - log(2 pi) / 2`` for ``x`` from ``LARGE`` on."""
    inverse = 1.0 / x
    return inverse * _series(jnp.square(inverse), _REMAINDER)


def deviance(x: Array, mean: Array) -> Array:
    """The deviance ``x log(x / mean) + mean - x >= 0``, for finite ``x`` and ``mean`` above zero.

    With ``v = (x - mean) / (x + mean)`` it is ``(x - mean) v + 2 x (v^3 / 3 + v^5 / 5 + ...)``.
    """
    v = (x - mean) / (x + mean)
    near = jnp.abs(v) < 0.1
    small = jnp.where(near, v, 0.0)
    cubes = small * jnp.square(small) * _series(jnp.square(small), _ODD)
    far = x * jnp.log(jnp.where(near, 1.0, x / mean)) + mean - x
    return jnp.where(near, (x - mean) * small + 2.0 * x * cubes, far)


def log_gamma_step(x: Array, step: Array | float) -> Array:
    """``lgamma(x + step) - lgamma(x) - step log(x + step)`` for ``x`` from ``LARGE`` on."""
    end = x + step
    return remainder(end) - remainder(x) - deviance(x, end) - 0.5 * jnp.log1p(step / x)


# For variables ----------------------------------------------------------------------------------


def log_minus_digamma(x: Var, a: Var) -> Var:
    """``log(x) - digamma(a)`` for ``a > 0``, accurate where ``x`` is close to a large ``a``."""
    large = greater_equal(a, LARGE)
    at = where(large, a, LARGE)
    difference: Var = log(where(large, x / at, x)) + where(large, _lag(at), -digamma(a))
    return difference


def log_and_digamma_step(x: Var, a: Var, b: Var) -> Var:
    """``log(x) + digamma(b) - digamma(a)`` for ``b > a``, accurate if both are large."""
    large = greater_equal(a, LARGE)
    start, end = where(large, a, LARGE), where(large, b, LARGE)
    step = where(large, _lag(start) - _lag(end), digamma(b) - digamma(a))
    difference: Var = log(where(large, x * (end / start), x)) + step
    return difference


def _lag(x: Var) -> Var:
    """``log(x) - digamma(x)`` for ``x`` from ``LARGE`` on."""
    inverse = 1.0 / x
    lag: Var = inverse * (inverse * _series(inverse * inverse, _DIGAMMA) + 0.5)
    return lag


def half_step_of_digamma(x: Var) -> Var:
    """``digamma(x + 1/2) - digamma(x) - 1 / (2 x)`` for ``x`` above zero."""
    large = greater_equal(x, LARGE)
    inverse = 1.0 / where(large, x, LARGE)
    squared = inverse * inverse
    direct = digamma(x + 0.5) - digamma(x) - 0.5 / x
    chosen: Var = where(large, squared * _series(squared, _HALF_STEP), direct)
    return chosen


def share_minus_log1p(x: Var) -> Var:
    """``x / (1 + x) - log(1 + x)`` for ``x`` from zero on, which is never positive.

    With ``v = x / (2 + x)`` it is ``-v x / (1 + x) - 2 (v^3 / 3 + v^5 / 5 + ...)``.
    """
    near = x < 0.2
    small = where(near, x, 0.0)
    v = small / (small + 2.0)
    cubes = v * (v * v) * _series(v * v, _ODD)
    direct = x / (x + 1.0) - log1p(x)
    chosen: Var = where(near, -(v * (small / (small + 1.0))) - 2.0 * cubes, direct)
    return chosen
