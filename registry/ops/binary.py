"""Functions of two arrays beside arithmetic, entry by entry with NumPy's broadcasting."""

import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse, nonzero, uniform
from registry.operator import Grads
from registry.ops.broadcasting import unbroadcast
from registry.ops.comparison import equal, greater_equal, logical_and
from registry.ops.elementwise import sigmoid, where
from registry.ops.rounding import isnan
from registry.shapes import broadcast, inexact, numeric, real_inexact
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

    All its derivatives at the origin, where they do not exist, are zero, as those of ``hypot``.

    Example:
        >>> import jax.numpy as jnp
        >>> atan2(jnp.asarray([0.0, 1.0]), jnp.asarray([1.0, 0.0]))
        Array([0.       , 1.5707964], dtype=float32)
    """
    return jnp.arctan2(x, y)


@atan2.gradient
def _atan2_gradient(x: Var, y: Var, d_out: Var) -> Grads:
    # d atan(x / y) = (y dx - x dy) / (x^2 + y^2), whose squares would overflow; zero at the origin
    distance = hypot(x, y)
    at_origin = equal(distance, 0.0)
    length = where(at_origin, 1.0, distance)
    scaled = where(at_origin, 0.0, d_out) / length
    return {
        "x": unbroadcast(scaled * (y / length), x),
        "y": unbroadcast(-(scaled * (x / length)), y),
    }


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
    """``sqrt(x^2 + y^2)``, which does not overflow.

    All its derivatives at the origin, where they do not exist, are zero, as those of ``norm``.

    Example:
        >>> import jax.numpy as jnp
        >>> hypot(jnp.asarray([3.0, 1e30]), jnp.asarray([4.0, 0.0]))
        Array([5.e+00, 1.e+30], dtype=float32)
    """
    return jnp.hypot(x, y)


@hypot.gradient
def _hypot_gradient(x: Var, y: Var, out: Var, d_out: Var) -> Grads:
    # d out = (x dx + y dy) / out, and zero at the origin
    at_origin = equal(out, 0.0)
    length = where(at_origin, 1.0, out)
    d = where(at_origin, 0.0, d_out)
    return {
        "x": unbroadcast(d * (x / length), x),
        "y": unbroadcast(d * (y / length), y),
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
    alike = logical_and(isnan(difference), equal(x, y))
    share = sigmoid(where(alike, 0.0, difference))
    return {
        "x": unbroadcast(d_out * share, x),
        "y": unbroadcast(d_out * (1.0 - share), y),
    }


@op(
    shape=broadcast,
    dtype=numeric,
    reference=lambda x, y: np.square(x - y),
    commutative=True,
    aliases=["square_error_cost"],
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


@op(
    shape=broadcast,
    dtype=real_inexact,
    reference=np.copysign,
    cases=[
        case(x=nonzero(3, 4), y=nonzero(3, 4)),
        case(x=nonzero(3, 1), y=nonzero(4)),
        case(x=nonzero(), y=nonzero()),
        case(x=nonzero(3), y=integers(3, low=-4, high=4)),
        case(x=nonzero(0), y=nonzero()),
        *_MISUSES,
    ],
)
def copysign(x: Array, y: Array) -> Array:
    """``|x|`` with the sign of ``y``, whose zeros have one, too.

    The derivative with respect to ``y`` is zero; the one with respect to ``x`` at zero is the sign
    of ``y``, as that of ``abs`` is one.

    Example:
        >>> import jax.numpy as jnp
        >>> copysign(jnp.asarray([1.0, 2.0]), jnp.asarray([-0.0, 3.0]))
        Array([-1.,  2.], dtype=float32)
    """
    return jnp.copysign(x, y)


@copysign.gradient
def _copysign_gradient(x: Var, y: Var, d_out: Var) -> Grads:
    # d out = sign(x) sign(y) dx
    of_abs = where(greater_equal(x, 0), d_out, -d_out)
    return {"x": unbroadcast(of_abs * copysign(1.0, y), x), "y": None}


@op(
    shape=broadcast,
    dtype=inexact,
    reference=lambda x, y, weight: x + weight * (y - x),
    cases=[
        case(x=(3, 4), y=(3, 4), weight=uniform(3, 4, low=0.0, high=1.0)),
        case(x=(3, 1), y=(4,), weight=0.25),
        case(x=(), y=(), weight=uniform(low=0.6, high=0.9)),
        case(x=integers(3, high=9), y=(3,), weight=uniform(low=1.5, high=2.0)),
        case(x=(0, 2), y=(2,), weight=()),
        misuse("must broadcast together", x=(3,), y=(4,), weight=()),
        misuse(
            "the inputs must be floating, got int32",
            x=integers(3, high=9),
            y=integers(3, high=9),
            weight=integers(high=2),
        ),
    ],
)
def lerp(x: Array, y: Array, weight: Array) -> Array:
    """``x + weight (y - x)``: the way from ``x`` to ``y``, of which ``weight`` is gone.

    For finite numbers it is exactly ``x`` for a weight of zero and ``y`` for a weight of one.

    Example:
        >>> import jax.numpy as jnp
        >>> lerp(jnp.asarray([0.0, 10.0]), 20.0, 0.25)
        Array([ 5. , 12.5], dtype=float32)
    """
    # From the nearer end: x + (y - x) need not be y in floating point.
    difference = jnp.subtract(y, x)
    near_x = jnp.abs(weight) < 0.5
    return jnp.where(near_x, x + weight * difference, y - (1 - weight) * difference)


@lerp.gradient
def _lerp_gradient(x: Var, y: Var, weight: Var, d_out: Var) -> Grads:
    return {
        "x": unbroadcast(d_out * (1.0 - weight), x),
        "y": unbroadcast(d_out * weight, y),
        "weight": unbroadcast(d_out * (y - x), weight),
    }
