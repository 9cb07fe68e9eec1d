"""Functions of two arrays beside arithmetic, entry by entry with NumPy's broadcasting."""

import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse, nonzero
from registry.operator import Grads
from registry.ops.broadcasting import unbroadcast
from registry.ops.comparison import equal
from registry.ops.elementwise import sigmoid, where
from registry.ops.powers import square
from registry.ops.rounding import isnan
from registry.shapes import broadcast, numeric, real_inexact
from registry.signature import Array
from registry.table import op
from registry.var import Var

_MISUSES = [
    misuse("must broadcast together", x=(3,), y=(4,)),
    misuse("the inputs must be floating, got int32", x=integers(3, high=9), y=integers(3, high=9)),
]


@op(
    shape=broadcast,
    dtype=real_inexact,
    reference=np.arctan2,
    aliases=["arctan2"],
    cases=[
        case(x=nonzero(3, 4), y=nonzero(3, 4)),
        case(x=nonzero(3, 1), y=nonzero(4)),
        case(x=nonzero(), y=nonzero()),
        case(x=nonzero(0), y=nonzero()),
        *_MISUSES,
    ],
)
def atan2(x: Array, y: Array) -> Array:
    """Angle in ``[-pi, pi]`` of the point at ``y`` along the first axis and ``x`` along the second.

    Example:
        >>> import jax.numpy as jnp
        >>> atan2(jnp.asarray([0.0, 1.0]), jnp.asarray([1.0, 0.0]))
        Array([0.       , 1.5707964], dtype=float32)
    """
    return jnp.arctan2(x, y)


@atan2.gradient
def _atan2_gradient(x: Var, y: Var, d_out: Var) -> Grads:
    # d atan(x / y) = (y dx - x dy) / (x^2 + y^2)
    scaled = d_out / (square(x) + square(y))
    return {"x": unbroadcast(scaled * y, x), "y": unbroadcast(-(scaled * x), y)}


@op(
    shape=broadcast,
    dtype=real_inexact,
    reference=np.hypot,
    aliases=["broadcast_hypot"],
    commutative=True,
    cases=[
        case(x=nonzero(3, 4), y=nonzero(3, 4)),
        case(x=nonzero(3, 1), y=nonzero(4)),
        case(x=nonzero(), y=nonzero()),
        case(x=nonzero(0), y=nonzero()),
        *_MISUSES,
    ],
)
def hypot(x: Array, y: Array) -> Array:
    """``sqrt(x^2 + y^2)``, which does not overflow; its derivative at the origin is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> hypot(jnp.asarray([3.0, 1e30]), jnp.asarray([4.0, 0.0]))
        Array([5.e+00, 1.e+30], dtype=float32)
    """
    return jnp.hypot(x, y)


@hypot.gradient
def _hypot_gradient(x: Var, y: Var, out: Var, d_out: Var) -> Grads:
    # d out = (x dx + y dy) / out; at the origin both are zero, and one stands for their quotient
    length = where(equal(out, 0.0), 1.0, out)
    return {
        "x": unbroadcast(d_out * (x / length), x),
        "y": unbroadcast(d_out * (y / length), y),
    }


@op(
    shape=broadcast,
    dtype=real_inexact,
    reference=np.logaddexp,
    commutative=True,
    cases=[
        case(x=(3, 4), y=(3, 4)),
        case(x=(3, 1), y=(4,)),
        case(x=(), y=()),
        case(x=(0,), y=()),
        *_MISUSES,
    ],
)
def logaddexp(x: Array, y: Array) -> Array:
    """``log(exp(x) + exp(y))``, which does not overflow.

    Example:
        >>> import jax.numpy as jnp
        >>> logaddexp(jnp.asarray([0.0, -jnp.inf]), jnp.asarray([1000.0, -jnp.inf]))
        Array([1000.,  -inf], dtype=float32)
    """
    return jnp.logaddexp(x, y)


@logaddexp.gradient
def _logaddexp_gradient(x: Var, y: Var, d_out: Var) -> Grads:
    # d out = (e^x dx + e^y dy) / (e^x + e^y); two equal infinities share it evenly
    difference = x - y
    share = sigmoid(where(isnan(difference), 0.0, difference))
    return {
        "x": unbroadcast(d_out * share, x),
        "y": unbroadcast(d_out * (1.0 - share), y),
    }


@op(
    shape=broadcast,
    dtype=numeric,
    reference=lambda x, y: np.square(x - y),
    commutative=True,
    cases=[
        case(x=(3, 4), y=(3, 4)),
        case(x=(3, 1), y=(4,)),
        case(x=(), y=()),
        case(x=(0,), y=()),
        case(x=integers(3, high=9), y=integers(3, high=9)),
        misuse("must broadcast together", x=(3,), y=(4,)),
    ],
)
def squared_difference(x: Array, y: Array) -> Array:
    """``(x - y)^2``.

    Example:
        >>> import jax.numpy as jnp
        >>> squared_difference(jnp.asarray([1.0, 4.0]), 2.0)
        Array([1., 4.], dtype=float32)
    """
    return jnp.square(jnp.subtract(x, y))


@squared_difference.gradient
def _squared_difference_gradient(x: Var, y: Var, d_out: Var) -> Grads:
    slope = d_out * (2.0 * (x - y))
    return {"x": unbroadcast(slope, x), "y": unbroadcast(-slope, y)}
