"""Shape and dtype rules that many operators share.

A rule whose only parameter is ``*shapes`` (or ``*types``) receives those of all present inputs; any
other rule receives what its parameters name. Error messages state the requirement and the actual
value; the operator's name is prefixed.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from registry.cases import integers, misuse
from registry.errors import AttributeValueError, AxisError, DTypeError, ShapeError
from registry.types import (
    DType,
    Shape,
    VarType,
    integer_limits,
    is_complex,
    is_exact,
    is_inexact,
    promoted,
)

Weak = tuple[DType, bool]
"""A dtype and whether it is weak."""


def completing(
    completes: Callable[..., Any],
) -> Callable[[Callable[..., Shape]], Callable[..., Shape]]:
    """Attaches to a shape rule a function that infers input shapes from the known shapes."""

    def attach(rule: Callable[..., Shape]) -> Callable[..., Shape]:
        rule.completes = completes  # type: ignore[attr-defined]
        return rule

    return attach


# Shapes ----------------------------------------------------------------------------------------


def all_alike(shapes: Sequence[Shape | None], out: Shape | None) -> list[Shape | None]:
    """Completes shapes where inputs and output have one shape: the known one."""
    known = [shape for shape in (*shapes, out) if shape is not None]
    return [known[0] if known else None] * len(shapes)


@completing(all_alike)
def same(*shapes: Shape) -> Shape:
    """Returns the shape that all inputs and the output have."""
    if any(shape != shapes[0] for shape in shapes[1:]):
        raise ShapeError(f"the inputs must have the same shape, got {listed(shapes)}")
    return shapes[0]


def x_equals_y_completes(x: Shape | None, y: Shape | None, out: Shape | None) -> dict[str, Any]:
    """Completes shapes where ``x``, ``y`` and the output have one shape: the known one."""
    known = next((shape for shape in (x, y, out) if shape is not None), None)
    return {"x": known, "y": known}


@completing(x_equals_y_completes)
def x_equals_y(x: Shape, y: Shape) -> Shape:
    """Returns the shape that both operands and the result have."""
    if x != y:
        raise ShapeError(f"x and y must have the same shape, got {x} and {y}")
    return x


def broadcast(*shapes: Shape) -> Shape:
    """Returns the shape to which NumPy broadcasts all inputs."""
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ShapeError(
            f"the inputs' shapes must broadcast together, got {listed(shapes)}"
        ) from None


def reduced(x: Shape, *, axis: int | tuple[int, ...] | None, keepdims: bool) -> Shape:
    """Returns the shape of ``x`` without the reduced axes, or with length 1 there."""
    axes = normalize_axes(axis, len(x))
    if keepdims:
        return tuple(1 if i in axes else length for i, length in enumerate(x))
    return tuple(length for i, length in enumerate(x) if i not in axes)


def along_axis(x: Shape, *, axis: int) -> Shape:
    """Returns the shape of ``x``, which must have the axis."""
    normalize_axis(axis, len(x))
    return x


def normalize_axis(axis: int, ndim: int) -> int:
    """Returns ``axis`` counted from the front.

    Raises:
        AxisError: the axis does not exist.
    """
    if not -ndim <= axis < ndim:
        raise AxisError(f"axis must be in [{-ndim}, {ndim}), got {axis}")
    return axis % ndim


def normalize_axes(axis: int | tuple[int, ...] | None, ndim: int) -> tuple[int, ...]:
    """Returns the axes counted from the front, in ascending order; None means all axes.

    Raises:
        AxisError: an axis does not exist.
        AttributeValueError: an axis is named twice.
    """
    if axis is None:
        return tuple(range(ndim))
    axes = (axis,) if isinstance(axis, int) else axis
    normalized = sorted(normalize_axis(one, ndim) for one in axes)
    if len(set(normalized)) < len(normalized):
        raise AttributeValueError(f"axes must be distinct, got {axis}")
    return tuple(normalized)


# Dtypes ----------------------------------------------------------------------------------------


def promote(*types: VarType) -> Weak:
    """Returns JAX's promotion of all inputs."""
    return promoted(*types)


def strong(*types: VarType) -> DType:
    """Returns JAX's promotion of all inputs, never weak."""
    return promoted(*types)[0]


def floating(*types: VarType) -> Weak:
    """Returns JAX's promotion; booleans and integers become float32, 64-bit integers float64."""
    dtype, weak = promoted(*types)
    return (dtype, weak) if is_inexact(dtype) else (float_for(dtype), weak)


def float_for(dtype: DType) -> DType:
    """Returns the floating dtype in which functions of integers and booleans are computed."""
    return np.dtype(np.float64 if dtype.itemsize == 8 else np.float32)


def inexact(*types: VarType) -> Weak:
    """Returns JAX's promotion of floating or complex numbers; other dtypes raise an error."""
    dtype, weak = promoted(*types)
    if not is_inexact(dtype):
        raise DTypeError(f"the inputs must be floating, got {dtype.name}")
    return dtype, weak


def real(*types: VarType) -> Weak:
    """Returns JAX's promotion of real numbers; complex ones have no order and raise an error."""
    dtype, weak = promoted(*types)
    if is_complex(dtype):
        raise DTypeError(f"the inputs must be real, got {dtype.name}")
    return dtype, weak


REFUSES_INTEGERS = misuse("the inputs must be floating, got int32", x=integers(3, high=4))
"""The misuse of a function of ``x`` whose dtype rule is ``inexact``."""
HAS_NO_AXIS = misuse("attributes among none, got 'axis'", x=(3,), axis=0)
"""The misuse of an entrywise function of ``x`` that takes all arrays and has no attributes."""


def real_inexact(*types: VarType) -> Weak:
    """Returns JAX's promotion of real floating numbers; all other dtypes raise an error."""
    real(*types)
    return inexact(*types)


def strong_inexact(*types: VarType) -> DType:
    """Returns JAX's promotion of floating or complex numbers, never weak; others raise an error."""
    return inexact(*types)[0]


def strong_real(*types: VarType) -> DType:
    """Returns JAX's promotion of real numbers, never weak; complex ones raise an error."""
    return real(*types)[0]


def strong_real_inexact(*types: VarType) -> DType:
    """Returns JAX's promotion of real floating numbers, never weak; all others raise an error."""
    return real_inexact(*types)[0]


def strong_numeric(*types: VarType) -> DType:
    """Returns JAX's promotion of numbers, never weak; booleans raise an error."""
    return numeric(*types)[0]


def at_least_single(dtype: DType) -> DType:
    """Returns the dtype to compute in: float32 for half precision, in which sums saturate."""
    return np.dtype(np.float32) if dtype.itemsize < 4 and is_inexact(dtype) else np.dtype(dtype)


def boolean(*types: VarType) -> DType:
    """Returns bool."""
    del types
    return np.dtype(np.bool_)


def numeric(*types: VarType) -> Weak:
    """Returns JAX's promotion of numbers; booleans raise an error."""
    dtype, weak = promoted(*types)
    if dtype == np.bool_:
        raise DTypeError("the inputs must be numbers, got bool")
    return dtype, weak


def default_float() -> DType:
    """Returns float32, or float64 when JAX's x64 flag is on."""
    return np.dtype(jax.dtypes.canonicalize_dtype(np.float64))


def default_int() -> DType:
    """Returns int32, or int64 when JAX's x64 flag is on."""
    return np.dtype(jax.dtypes.canonicalize_dtype(np.int64))


def scalar_dtype(value: bool | int | float | complex) -> DType:
    """Returns the dtype that JAX gives a Python number."""
    if isinstance(value, bool):
        return np.dtype(np.bool_)
    if isinstance(value, complex):
        return canonical(np.dtype(np.complex128))
    return default_int() if isinstance(value, int) else default_float()


def canonical(dtype: DType) -> DType:
    """Returns ``dtype`` as JAX stores it: without the x64 flag, 64 bits become 32."""
    return np.dtype(jax.dtypes.canonicalize_dtype(dtype))


def require_held(name: str, value: complex | None, dtype: DType) -> None:
    """Rejects a number that an array of ``dtype`` would round or wrap; floats round to nearest.

    Raises:
        DTypeError: for integer dtypes, the number is not whole or out of range; for real dtypes, it
            is complex.
    """
    if value is None or is_complex(dtype):
        return
    if isinstance(value, complex):
        raise DTypeError(f"{name} must be real in {dtype.name}, got {value}")
    if not is_exact(dtype):
        return
    least, most = integer_limits(dtype)
    if not (least <= value <= most and value == int(value)):
        raise DTypeError(f"{name} must be of dtype {dtype.name}, got {value}")


def listed(shapes: Sequence[Any]) -> str:
    """Formats shapes as a list in a sentence."""
    *front, last = [str(shape) for shape in shapes]
    return f"{', '.join(front)} and {last}" if front else last
