"""Bit operations on integers: and, or, exclusive or, inversion and shifts."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from registry.cases import booleans, case, integers, misuse
from registry.errors import DTypeError
from registry.operator.signature import Array
from registry.shapes import Weak, broadcast, same
from registry.table import op
from registry.types import VarType, is_exact, is_integer, promoted


def _bits(*types: VarType) -> Weak:
    """JAX's promotion of integers and booleans; raises for other dtypes."""
    dtype, weak = promoted(*types)
    if not is_exact(dtype):
        raise DTypeError(f"the inputs must be integers or booleans, got {dtype.name}")
    return dtype, weak


def _shifted(*types: VarType) -> Weak:
    """JAX's promotion of integers; raises for booleans and other dtypes."""
    dtype, weak = promoted(*types)
    if not is_integer(dtype):
        raise DTypeError(f"the inputs must be integers, got {dtype.name}")
    return dtype, weak


_NO_GRADIENT = "its inputs are integers"
_APART = misuse(
    "the inputs' shapes must broadcast together, got (3,) and (4,)",
    x=integers(3, high=9),
    y=integers(4, high=9),
)

_BITWISE: dict[str, Any] = {
    "shape": broadcast,
    "dtype": _bits,
    "commutative": True,
    "cases": [
        case(x=integers(3, 4, low=-9, high=9), y=integers(3, 4, low=-9, high=9)),
        case(x=integers(3, 1, high=9, dtype="uint8"), y=integers(4, high=9)),
        case(x=booleans(8), y=booleans(8)),
        case(x=booleans(), y=integers(0, high=9)),
        _APART,
        misuse("the inputs must be integers or booleans, got float32", x=(3,), y=(3,)),
    ],
}


@op(**_BITWISE, reference=np.bitwise_and, infix="&")
def bitwise_and(x: Array, y: Array) -> Array:
    """Bitwise and of two arrays; for booleans their logical and.

    Example:
        >>> import jax.numpy as jnp
        >>> bitwise_and(jnp.asarray([6, -1]), 3)
        Array([2, 3], dtype=int32)
    """
    return jnp.bitwise_and(x, y)


@op(**_BITWISE, reference=np.bitwise_or, infix="|")
def bitwise_or(x: Array, y: Array) -> Array:
    """Bitwise or of two arrays; for booleans their logical or.

    Example:
        >>> import jax.numpy as jnp
        >>> bitwise_or(jnp.asarray([6, 0]), 3)
        Array([7, 3], dtype=int32)
    """
    return jnp.bitwise_or(x, y)


@op(**_BITWISE, reference=np.bitwise_xor, infix="^")
def bitwise_xor(x: Array, y: Array) -> Array:
    """Bitwise exclusive or of two arrays; for booleans whether they differ.

    Example:
        >>> import jax.numpy as jnp
        >>> bitwise_xor(jnp.asarray([6, 3]), 3)
        Array([5, 0], dtype=int32)
    """
    return jnp.bitwise_xor(x, y)


@op(
    infix="~",
    shape=same,
    dtype=_bits,
    reference=np.bitwise_invert,
    aliases=["bitwise_not", "invert"],
    cases=[
        case(x=integers(3, 4, low=-9, high=9)),
        case(x=integers(3, high=9, dtype="uint8")),
        case(x=booleans()),
        case(x=integers(0, high=9)),
        misuse("the inputs must be integers or booleans, got float32", x=(3,)),
    ],
)
def bitwise_invert(x: Array) -> Array:
    """Inverts each bit of ``x``: ``-x - 1`` for signed integers, logical not for booleans.

    Example:
        >>> import jax.numpy as jnp
        >>> bitwise_invert(jnp.asarray([0, 5]))
        Array([-1, -6], dtype=int32)
    """
    return jnp.bitwise_invert(x)


_SHIFT: dict[str, Any] = {
    "shape": broadcast,
    "dtype": _shifted,
    "cases": [
        case(x=integers(3, 4, low=-99, high=99), y=integers(3, 4, high=6)),
        case(x=integers(3, 1, high=99, dtype="uint8"), y=integers(4, high=10, dtype="uint8")),
        case(x=integers(high=9), y=integers(2, high=40)),
        case(x=integers(0, high=9), y=integers(high=9)),
        _APART,
        misuse("the inputs must be integers, got float32", x=(3,), y=integers(3, high=9)),
        misuse("the inputs must be integers, got bool", x=booleans(3), y=booleans(3)),
    ],
}


@op(
    **_SHIFT,
    reference=np.bitwise_left_shift,
    infix="<<",
    aliases=["left_shift", "shift_left"],
)
def bitwise_left_shift(x: Array, y: Array) -> Array:
    """Shifts bits to the left: ``x 2^y``. Bits shifted out are lost; ``y`` must not be negative.

    Example:
        >>> import jax.numpy as jnp
        >>> bitwise_left_shift(jnp.asarray([1, -3]), 2)
        Array([  4, -12], dtype=int32)
    """
    return jnp.left_shift(x, y)


@op(**_SHIFT, reference=np.bitwise_right_shift, infix=">>", aliases=["right_shift"])
def bitwise_right_shift(x: Array, y: Array) -> Array:
    """Shifts bits to the right: ``floor(x / 2^y)``. The sign is kept; ``y`` must not be negative.

    Example:
        >>> import jax.numpy as jnp
        >>> bitwise_right_shift(jnp.asarray([9, -9]), 2)
        Array([ 2, -3], dtype=int32)
    """
    return jnp.right_shift(x, y)


for bitwise in (
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_right_shift,
):
    bitwise.no_gradient(_NO_GRADIENT)
