"""Element-wise functions of two arrays other than arithmetic, with NumPy's broadcasting."""

import math

import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, nonzero, uniform
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import unbroadcast
from registry.ops.core.comparison import equal, greater_equal, logical_and
from registry.ops.core.elementwise import sigmoid, where
from registry.ops.core.entrywise import entrywise
from registry.ops.elementwise.rounding import isnan
from registry.shapes import inexact, numeric, real_inexact
from registry.var import Var


@entrywise(np.arctan2, samples=nonzero, dtype=real_inexact, aliases=["arctan2"])
def atan2(x: Array, y: Array) -> Array:
    """Angle in ``[-pi, pi]`` of the point with first coordinate ``y`` and second coordinate ``x``.

    All derivatives at the origin, where they do not exist, are taken as zero, as in ``hypot``.

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


@entrywise(
    np.hypot, samples=nonzero, dtype=real_inexact, aliases=["broadcast_hypot"], commutative=True
)
def hypot(x: Array, y: Array) -> Array:
    """Length of the hypotenuse, element-wise: ``sqrt(x^2 + y^2)``, computed without overflow.

    All derivatives at the origin, where they do not exist, are taken as zero, as in ``norm``.

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


@entrywise(np.logaddexp, dtype=real_inexact, commutative=True)
def logaddexp(x: Array, y: Array) -> Array:
    """Logarithm of the sum of exponentials: ``log(exp(x) + exp(y))``, computed without overflow.

    Example:
        >>> import jax.numpy as jnp
        >>> logaddexp(jnp.asarray([0.0, -jnp.inf]), jnp.asarray([1000.0, -jnp.inf]))
        Array([1000.,  -inf], dtype=float32)
    """
    return jnp.logaddexp(x, y)


@logaddexp.gradient
def _logaddexp_gradient(x: Var, y: Var, d_out: Var) -> Grads:
    # d out = (e^x dx + e^y dy) / (e^x + e^y)
    share = sigmoid(_difference(x, y))
    return {
        "x": unbroadcast(d_out * share, x),
        "y": unbroadcast(d_out * (1.0 - share), y),
    }


def _difference(x: Var, y: Var) -> Var:
    """``x - y``, and zero for two equal infinities, which share the cotangent equally."""
    difference = x - y
    chosen: Var = where(logical_and(isnan(difference), equal(x, y)), 0.0, difference)
    return chosen


@entrywise(
    np.logaddexp2,
    dtype=real_inexact,
    commutative=True,
    # d out = (2^x dx + 2^y dy) / (2^x + 2^y), where 2^t = e^(t log 2)
    d_x=lambda x, y, d_out: d_out * sigmoid(_difference(x, y) * math.log(2.0)),
    d_y=lambda x, y, d_out: d_out * sigmoid(_difference(y, x) * math.log(2.0)),
)
def logaddexp2(x: Array, y: Array) -> Array:
    """Base-2 logarithm of a sum of powers: ``log2(2^x + 2^y)``, computed without overflow.

    Example:
        >>> import jax.numpy as jnp
        >>> logaddexp2(jnp.asarray([3.0, -jnp.inf]), jnp.asarray([3.0, -jnp.inf]))
        Array([  4., -inf], dtype=float32)
    """
    return jnp.logaddexp2(x, y)


@entrywise(
    lambda x, y: np.square(x - y), dtype=numeric, commutative=True, aliases=["square_error_cost"]
)
def squared_difference(x: Array, y: Array) -> Array:
    """Squared difference of two arrays, element-wise: ``(x - y)^2``.

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


@entrywise(
    np.copysign,
    samples=nonzero,
    dtype=real_inexact,
    cases=[case(x=nonzero(3), y=integers(3, low=-4, high=4))],
)
def copysign(x: Array, y: Array) -> Array:
    """Absolute value of ``x`` with the sign of ``y``, element-wise; zeros of ``y`` have a sign too.

    The derivative with respect to ``y`` is zero. That with respect to ``x`` at zero is the sign of
    ``y``, just as the derivative of ``abs`` at zero is one.

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


@entrywise(
    lambda x, y, weight: x + weight * (y - x),
    samples={"x": None, "y": None, "weight": (0.0, 1.0)},
    dtype=inexact,
    cases=[
        case(x=(3, 1), y=(4,), weight=0.25),
        case(x=integers(3, high=9), y=(3,), weight=uniform(low=1.5, high=2.0)),
    ],
    d_x=lambda weight, d_out: d_out * (1.0 - weight),
    d_y=lambda weight, d_out: d_out * weight,
    d_weight=lambda x, y, d_out: d_out * (y - x),
)
def lerp(x: Array, y: Array, weight: Array) -> Array:
    """Linear interpolation from ``x`` to ``y``: ``x + weight (y - x)``.

    For finite numbers the result is exactly ``x`` if the weight is zero and ``y`` if it is one.

    Example:
        >>> import jax.numpy as jnp
        >>> lerp(jnp.asarray([0.0, 10.0]), 20.0, 0.25)
        Array([ 5. , 12.5], dtype=float32)
    """
    # Computed from the nearer end: x + (y - x) need not equal y in floating point.
    difference = jnp.subtract(y, x)
    near_x = jnp.abs(weight) < 0.5
    return jnp.where(near_x, x + weight * difference, y - (1 - weight) * difference)
