"""Products with logarithms in which a zero wins over an infinity: ``0 log 0 = 0``."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse, positive, uniform
from registry.operator import Grads
from registry.ops.broadcasting import unbroadcast
from registry.ops.comparison import equal, logical_and
from registry.ops.elementwise import log, log1p, where
from registry.shapes import at_least_single, broadcast, real_inexact
from registry.signature import Array
from registry.table import op
from registry.var import Var

_MISUSES = [
    misuse("must broadcast together", x=(3,), y=(4,)),
    misuse("the inputs must be floating, got int32", x=integers(3, high=9), y=integers(3, high=9)),
    misuse("the inputs must be real", x=np.ones(3, np.complex64), y=(3,)),
]
_NO_FACTOR = np.array([0.0, 0.0, 1.0, -0.0])


def divisor(at: Var, factor: Var) -> Var:
    """``at``, but the least normal number where ``factor / at`` would divide zero by zero.

    There the quotient is zero, its slope by ``at`` is zero, too, and that by ``factor`` stands for
    infinity.
    """
    least = float(np.finfo(at_least_single(at.dtype)).tiny)
    chosen: Var = where(logical_and(equal(at, 0.0), equal(factor, 0.0)), least, at)
    return chosen


def _reference(combine: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    def computed(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where((x == 0) & ~np.isnan(y), 0, combine(x, y))

    return computed


@op(
    shape=broadcast,
    dtype=real_inexact,
    reference=_reference(lambda x, y: x * np.log(y)),
    cases=[
        case(x=(3, 4), y=positive(3, 4)),
        case(x=(3, 1), y=positive(4), seed=1),
        case(x=(), y=positive()),
        case(x=(0,), y=positive()),
        case(x=_NO_FACTOR, y=positive(4)),
        *_MISUSES,
    ],
)
def xlogy(x: Array, y: Array) -> Array:
    """``x log(y)``, and zero where ``x`` is zero, even at ``y = 0``.

    Example:
        >>> import jax.numpy as jnp
        >>> xlogy(jnp.asarray([0.0, 2.0]), jnp.asarray([0.0, 1.0]))
        Array([0., 0.], dtype=float32)
    """
    return jnp.where(jnp.isnan(y), jnp.nan, jax.scipy.special.xlogy(x, y))


@xlogy.gradient
def _xlogy_gradient(x: Var, y: Var, d_out: Var) -> Grads:
    # d(x log y) = log(y) dx + x dy / y
    return {
        "x": lambda: unbroadcast(d_out * log(y), x),
        "y": lambda: unbroadcast(d_out * (x / divisor(y, x)), y),
    }


@op(
    shape=broadcast,
    dtype=real_inexact,
    reference=_reference(lambda x, y: x * np.log1p(y)),
    cases=[
        case(x=(3, 4), y=uniform(3, 4, low=-0.5, high=2.0)),
        case(x=(3, 1), y=positive(4), seed=1),
        case(x=(), y=positive()),
        case(x=(0,), y=positive()),
        case(x=_NO_FACTOR, y=positive(4)),
        *_MISUSES,
    ],
)
def xlog1py(x: Array, y: Array) -> Array:
    """``x log(1 + y)``, and zero where ``x`` is zero, even at ``y = -1``.

    Example:
        >>> import jax.numpy as jnp
        >>> xlog1py(jnp.asarray([0.0, 2.0]), jnp.asarray([-1.0, 0.0]))
        Array([0., 0.], dtype=float32)
    """
    return jnp.where(jnp.isnan(y), jnp.nan, jax.scipy.special.xlog1py(x, y))


@xlog1py.gradient
def _xlog1py_gradient(x: Var, y: Var, d_out: Var) -> Grads:
    # d(x log(1 + y)) = log(1 + y) dx + x dy / (1 + y)
    return {
        "x": lambda: unbroadcast(d_out * log1p(y), x),
        "y": lambda: unbroadcast(d_out * (x / divisor(y + 1.0, x)), y),
    }
