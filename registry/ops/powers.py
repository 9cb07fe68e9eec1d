"""Powers, roots and reciprocals, entry by entry with NumPy's broadcasting."""

import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse, nonzero, positive
from registry.operator import Grads
from registry.ops.broadcasting import unbroadcast
from registry.ops.comparison import equal, logical_and
from registry.ops.elementwise import log, where
from registry.shapes import (
    HAS_NO_AXIS,
    broadcast,
    floating,
    numeric,
    promote,
    same,
)
from registry.signature import Array
from registry.table import op
from registry.types import DType, VarType, is_inexact
from registry.var import Var, filled


@op(
    shape=same,
    dtype=floating,
    reference=np.reciprocal,
    cases=[case(x=nonzero(3, 4)), case(x=nonzero()), case(x=positive(0)), HAS_NO_AXIS],
)
def reciprocal(x: Array) -> Array:
    """``out = 1 / x``.

    Example:
        >>> import jax.numpy as jnp
        >>> reciprocal(jnp.asarray([2.0, 4.0]))
        Array([0.5 , 0.25], dtype=float32)
    """
    return jnp.reciprocal(x)


@reciprocal.gradient
def _reciprocal_gradient(x: Var, out: Var, d_out: Var) -> Grads:
    return {"x": unbroadcast(-(d_out * square(out)), x)}


# Powers ----------------------------------------------------------------------------------------


@op(
    shape=same,
    dtype=numeric,
    reference=np.square,
    rows="entrywise",
    cases=[
        case(x=(3, 4)),
        case(x=()),
        case(x=(0,)),
        case(x=integers(3, high=9)),
        misuse("the inputs must be numbers, got bool", x=np.zeros(3, bool)),
    ],
)
def square(x: Array) -> Array:
    """``out = x * x``.

    Example:
        >>> import jax.numpy as jnp
        >>> square(jnp.asarray([2.0, -3.0]))
        Array([4., 9.], dtype=float32)
    """
    return jnp.square(x)


@square.gradient
def _square_gradient(x: Var, d_out: Var) -> Grads:
    return {"x": d_out * (2.0 * x)}


@op(
    shape=same,
    dtype=floating,
    reference=np.sqrt,
    rows="entrywise",
    cases=[case(x=positive(3, 4)), case(x=positive()), case(x=positive(0)), HAS_NO_AXIS],
)
def sqrt(x: Array) -> Array:
    """Square root; not a number below zero. At zero the derivative is infinite.

    Example:
        >>> import jax.numpy as jnp
        >>> sqrt(jnp.asarray([4.0, 9.0]))
        Array([2., 3.], dtype=float32)
    """
    return jnp.sqrt(x)


@sqrt.gradient
def _sqrt_gradient(x: Var, out: Var, d_out: Var) -> Grads:
    return {"x": unbroadcast(d_out * (0.5 / out), x)}


def _power_dtype(x: VarType, y: VarType) -> tuple[DType, bool]:
    dtype, weak = promote(x, y)
    if not is_inexact(dtype):
        return (np.dtype(np.int32) if dtype == np.bool_ else dtype), False
    # JAX converts the base to the exponent's company before it raises to an integer array.
    return dtype, weak and (y.weak or y.dtype.kind not in "iu")


@op(
    shape=broadcast,
    dtype=_power_dtype,
    reference=np.power,
    infix="**",
    aliases=["broadcast_power", "elementwise_pow", "pow", "integer_pow"],
    cases=[
        case(x=positive(3, 4), y=(3, 4), rtol=256),
        case(x=positive(3, 1), y=(4,), rtol=256),
        case(x=(3,), y=3),
        case(x=nonzero(3), y=-2),
        case(x=positive(3), y=0.5),
        case(x=(2, 3), y=integers(3, low=0, high=4)),
        case(x=positive(), y=()),
        case(x=positive(0, 2), y=(2,)),
        case(x=integers(3, high=5), y=integers(3, high=4)),
        misuse("the inputs' shapes must broadcast together, got (3,) and (4,)", x=(3,), y=(4,)),
    ],
)
def power(x: Array, y: Array) -> Array:
    """``out = x ** y``; not a number for a negative ``x`` and a ``y`` that is no integer.

    ``x ** 0`` is one for every ``x``. At ``x = 0`` the derivative with respect to ``x`` is zero
    where ``y = 0``, and the one with respect to ``y`` is taken as zero for ``y >= 0``; for a
    negative ``y`` it is not a number. At a negative ``x`` the derivative with respect to ``y`` is
    not a number, also where ``y`` is an integer, for there is no power beside it.

    Example:
        >>> import jax.numpy as jnp
        >>> power(jnp.asarray([2.0, 3.0]), 2)
        Array([4., 9.], dtype=float32)
    """
    return jnp.power(x, y)


@power.gradient
def _power_gradient(x: Var, y: Var, out: Var, d_out: Var) -> Grads:
    # d/dx = y x^(y-1), where 0 * 0^(-1) must be 0: the base is replaced where both are zero, so
    # that every other point keeps its derivatives of all orders.
    # d/dy = x^y log(x), where 0 * log(0) must be 0.
    at_zero = equal(x, 0)
    base = where(logical_and(at_zero, equal(y, 0)), 1, x)
    return {
        "x": unbroadcast(d_out * (y * power(base, y - 1)), x) if is_inexact(x.dtype) else None,
        "y": _power_by_exponent(x, y, out, d_out),
    }


def _power_by_exponent(x: Var, y: Var, out: Var, d_out: Var) -> Var | None:
    if not is_inexact(y.dtype):
        return None
    safe = where(equal(x, 0), 1, x)
    return unbroadcast(d_out * (log(safe) * out), y)


@power.simplify
def _power_simplify(x: Var, y: Var) -> Var | None:
    if y.constant == 1:
        return x
    return filled(x, 1.0) if y.constant == 0 and is_inexact(x.dtype) else None
