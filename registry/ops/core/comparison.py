"""Comparisons and logical operators, whose results are boolean."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from registry.cases import booleans, case, integers, misuse
from registry.operator.signature import Array
from registry.shapes import HAS_NO_AXIS, boolean, broadcast, same
from registry.table import op
from registry.var import Var, filled

_STEPS = "it is piecewise constant"

_COMPARISON: dict[str, Any] = {
    "shape": broadcast,
    "dtype": boolean,
    "foldable": True,
    "cases": [
        case(x=(3, 4), y=(3, 4)),
        case(x=(3, 1), y=(4,)),
        case(x=(), y=(2,)),
        case(x=(0, 2), y=(2,)),
        case(x=integers(8, high=3), y=integers(8, high=3)),
        misuse("the inputs' shapes must broadcast together, got (3,) and (4,)", x=(3,), y=(4,)),
    ],
}


@op(**_COMPARISON, reference=np.less, infix="<", aliases=["broadcast_lesser", "less_than", "lt"])
def less(x: Array, y: Array) -> Array:
    """Element-wise truth value of ``x < y``.

    Example:
        >>> import jax.numpy as jnp
        >>> less(jnp.asarray([1.0, 2.0]), 2.0)
        Array([ True, False], dtype=bool)
    """
    return jnp.less(x, y)


@op(**_COMPARISON, reference=np.less_equal, infix="<=", aliases=["broadcast_lesser_equal", "le"])
def less_equal(x: Array, y: Array) -> Array:
    """Element-wise truth value of ``x <= y``.

    Example:
        >>> import jax.numpy as jnp
        >>> less_equal(jnp.asarray([1.0, 3.0]), 2.0)
        Array([ True, False], dtype=bool)
    """
    return jnp.less_equal(x, y)


@op(
    **_COMPARISON,
    reference=np.greater,
    infix=">",
    aliases=["broadcast_greater", "greater_than", "gt"],
)
def greater(x: Array, y: Array) -> Array:
    """Element-wise truth value of ``x > y``.

    Example:
        >>> import jax.numpy as jnp
        >>> greater(jnp.asarray([1.0, 3.0]), 2.0)
        Array([False,  True], dtype=bool)
    """
    return jnp.greater(x, y)


@op(
    **_COMPARISON, reference=np.greater_equal, infix=">=", aliases=["broadcast_greater_equal", "ge"]
)
def greater_equal(x: Array, y: Array) -> Array:
    """Element-wise truth value of ``x >= y``.

    Example:
        >>> import jax.numpy as jnp
        >>> greater_equal(jnp.asarray([1.0, 2.0]), 2.0)
        Array([False,  True], dtype=bool)
    """
    return jnp.greater_equal(x, y)


@op(
    **_COMPARISON,
    reference=np.equal,
    infix="==",
    aliases=["broadcast_equal", "eq"],
    commutative=True,
)
def equal(x: Array, y: Array) -> Array:
    """Element-wise truth value of ``x == y``; NaN equals nothing.

    Example:
        >>> import jax.numpy as jnp
        >>> equal(jnp.asarray([1.0, 2.0]), 2.0)
        Array([False,  True], dtype=bool)
    """
    return jnp.equal(x, y)


@op(
    **_COMPARISON,
    reference=np.not_equal,
    infix="!=",
    aliases=["broadcast_not_equal", "ne"],
    commutative=True,
)
def not_equal(x: Array, y: Array) -> Array:
    """Element-wise truth value of ``x != y``.

    Example:
        >>> import jax.numpy as jnp
        >>> not_equal(jnp.asarray([1.0, 2.0]), 2.0)
        Array([ True, False], dtype=bool)
    """
    return jnp.not_equal(x, y)


for comparison in (less, less_equal, greater, greater_equal, equal, not_equal):
    comparison.zero_gradient(_STEPS)


# Logic -----------------------------------------------------------------------------------------

_LOGIC: dict[str, Any] = {
    "shape": broadcast,
    "dtype": boolean,
    "commutative": True,
    "cases": [
        case(x=booleans(8), y=booleans(8)),
        case(x=booleans(3, 1), y=booleans(4)),
        case(x=integers(8, high=2), y=(8,)),
        case(x=booleans(), y=booleans(0)),
        misuse("the inputs' shapes must broadcast together, got (3,) and (4,)", x=(3,), y=(4,)),
    ],
}


@op(**_LOGIC, reference=np.logical_and, aliases=["broadcast_logical_and"])
def logical_and(x: Array, y: Array) -> Array:
    """Element-wise logical and of ``x`` and ``y``; any nonzero number counts as true.

    Example:
        >>> import jax.numpy as jnp
        >>> logical_and(jnp.asarray([True, False]), True)
        Array([ True, False], dtype=bool)
    """
    return jnp.logical_and(x, y)


@logical_and.simplify
def _logical_and_simplify(x: Var, y: Var) -> Var | None:
    for one, other in ((x, y), (y, x)):
        if one.constant is False:
            false: Var = filled(other, value=False)
            return false
        if one.constant is True:
            return other
    return None


@op(**_LOGIC, reference=np.logical_or, aliases=["broadcast_logical_or"])
def logical_or(x: Array, y: Array) -> Array:
    """Element-wise logical or of ``x`` and ``y``; any nonzero number counts as true.

    Example:
        >>> import jax.numpy as jnp
        >>> logical_or(jnp.asarray([True, False]), False)
        Array([ True, False], dtype=bool)
    """
    return jnp.logical_or(x, y)


@op(**_LOGIC, reference=np.logical_xor, aliases=["broadcast_logical_xor"])
def logical_xor(x: Array, y: Array) -> Array:
    """Element-wise logical exclusive or of ``x`` and ``y``; any nonzero number counts as true.

    Example:
        >>> import jax.numpy as jnp
        >>> logical_xor(jnp.asarray([True, False]), True)
        Array([False,  True], dtype=bool)
    """
    return jnp.logical_xor(x, y)


@op(
    shape=same,
    dtype=boolean,
    reference=np.logical_not,
    cases=[
        case(x=booleans(8)),
        case(x=(3,)),
        case(x=integers(4, high=2)),
        case(x=booleans()),
        case(x=(0,)),
        HAS_NO_AXIS,
    ],
)
def logical_not(x: Array) -> Array:
    """Element-wise logical not of ``x``; any nonzero number counts as true.

    Example:
        >>> import jax.numpy as jnp
        >>> logical_not(jnp.asarray([True, False]))
        Array([False,  True], dtype=bool)
    """
    return jnp.logical_not(x)


for logic in (logical_and, logical_or, logical_xor, logical_not):
    logic.zero_gradient(_STEPS)
