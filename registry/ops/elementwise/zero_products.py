"""Products with logarithms in which a factor of zero prevails: ``0 log 0 = 0``; entropies."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from registry.cases import case, positive
from registry.operator.signature import Array
from registry.ops.core.comparison import equal, logical_and
from registry.ops.core.elementwise import log, log1p, where
from registry.ops.core.entrywise import entrywise
from registry.ops.elementwise.special import of_scipy
from registry.shapes import at_least_single, real_inexact
from registry.var import Var

_NO_FACTOR = np.array([0.0, 0.0, 1.0, -0.0])


def divisor(at: Var, factor: Var) -> Var:
    """``at``, replaced by the smallest normal number where ``factor / at`` would be ``0 / 0``.

    There the quotient is zero, its derivative with respect to ``at`` is zero as well, and that with
    respect to ``factor`` represents infinity.
    """
    least = float(np.finfo(at_least_single(at.dtype)).tiny)
    chosen: Var = where(logical_and(equal(at, 0.0), equal(factor, 0.0)), least, at)
    return chosen


def _reference(combine: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    def computed(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where((x == 0) & ~np.isnan(y), 0, combine(x, y))

    return computed


@entrywise(
    _reference(lambda x, y: x * np.log(y)),
    samples={"x": None, "y": positive},
    dtype=real_inexact,
    cases=[case(x=(3, 1), y=positive(4), seed=1), case(x=_NO_FACTOR, y=positive(4))],
    # d(x log y) = log(y) dx + x dy / y
    d_x=lambda y, d_out: d_out * log(y),
    d_y=lambda x, y, d_out: d_out * (x / divisor(y, x)),
)
def xlogy(x: Array, y: Array) -> Array:
    """Element-wise ``x log(y)``; zero where ``x`` is zero, even at ``y = 0``.

    Example:
        >>> import jax.numpy as jnp
        >>> xlogy(jnp.asarray([0.0, 2.0]), jnp.asarray([0.0, 1.0]))
        Array([0., 0.], dtype=float32)
    """
    return jnp.where(jnp.isnan(y), jnp.nan, jax.scipy.special.xlogy(x, y))


@entrywise(
    _reference(lambda x, y: x * np.log1p(y)),
    samples={"x": None, "y": (-0.5, 2.0)},
    dtype=real_inexact,
    cases=[case(x=(3, 1), y=positive(4), seed=1), case(x=_NO_FACTOR, y=positive(4))],
    # d(x log(1 + y)) = log(1 + y) dx + x dy / (1 + y)
    d_x=lambda y, d_out: d_out * log1p(y),
    d_y=lambda x, y, d_out: d_out * (x / divisor(y + 1.0, x)),
)
def xlog1py(x: Array, y: Array) -> Array:
    """Element-wise ``x log(1 + y)``; zero where ``x`` is zero, even at ``y = -1``.

    Example:
        >>> import jax.numpy as jnp
        >>> xlog1py(jnp.asarray([0.0, 2.0]), jnp.asarray([-1.0, 0.0]))
        Array([0., 0.], dtype=float32)
    """
    return jnp.where(jnp.isnan(y), jnp.nan, jax.scipy.special.xlog1py(x, y))


# Entropies --------------------------------------------------------------------------------------


@entrywise(
    of_scipy("entr"),
    samples=positive,
    dtype=real_inexact,
    cases=[case(x=np.array([0.0, -1.0, 2.0]), order=0)],
    # d(-x log x) = -(log(x) + 1) dx, and the result is constant below zero
    d_x=lambda x, d_out: where(x < 0.0, 0.0, -d_out * (log(where(x < 0.0, 1.0, x)) + 1.0)),
)
def entr(x: Array) -> Array:
    """Terms of an entropy: ``-x log(x)``, zero at zero, and minus infinity below zero.

    The derivative at zero is infinite, and that below zero is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> entr(jnp.asarray([1.0, -1.0])).tolist()
        [-0.0, -inf]
    """
    negative = jnp.less(x, 0)
    return jnp.where(negative, -jnp.inf, jax.scipy.special.entr(jnp.where(negative, 1.0, x)))


def _both_positive(x: Var, y: Var) -> Var:
    both: Var = logical_and(x > 0.0, y > 0.0)
    return both


def _safe(x: Var, y: Var, value: Var) -> Var:
    """``value`` where both arguments are positive, and one elsewhere."""
    chosen: Var = where(_both_positive(x, y), value, 1.0)
    return chosen


@entrywise(
    of_scipy("rel_entr"),
    samples=positive,
    dtype=real_inexact,
    cases=[case(x=np.array([0.0, 0.0, -1.0, 2.0]), y=np.array([0.0, 2.0, 1.0, -1.0]), order=0)],
    # d(x log(x / y)) = (log(x / y) + 1) dx - x / y dy; it is constant where one is not positive
    d_x=lambda x, y, d_out: where(
        _both_positive(x, y), d_out * (log(_safe(x, y, x)) - log(_safe(x, y, y)) + 1.0), 0.0
    ),
    d_y=lambda x, y, d_out: where(
        _both_positive(x, y), -d_out * (_safe(x, y, x) / _safe(x, y, y)), 0.0
    ),
)
def rel_entr(x: Array, y: Array) -> Array:
    """Terms of a relative entropy: ``x log(x / y)`` for positive numbers.

    The result is zero where ``x`` is zero and ``y`` is not negative, and infinite elsewhere. The
    gradient is zero wherever one of the two is not positive, as in JAX.

    Example:
        >>> import jax.numpy as jnp
        >>> rel_entr(jnp.asarray([0.0, 1.0]), jnp.asarray([0.0, 0.0]))
        Array([ 0., inf], dtype=float32)
    """
    both = jnp.logical_and(jnp.greater(x, 0), jnp.greater(y, 0))
    at, other = jnp.where(both, x, 1.0), jnp.where(both, y, 1.0)
    constant = jnp.where(jnp.logical_and(jnp.equal(x, 0), jnp.greater_equal(y, 0)), 0.0, jnp.inf)
    return jnp.where(both, at * (jnp.log(at) - jnp.log(other)), constant)
