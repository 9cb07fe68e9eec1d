"""Shape and dtype rules that many operators share.

A rule whose only parameter is ``*shapes`` (or ``*types``) receives those of all present inputs;
any other rule receives what its parameters name. A message says what must hold and what it got;
the operator's name is put in front of it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from registry.cases import integers, misuse
from registry.errors import AttributeValueError, DTypeError, ShapeError
from registry.infer import promoted
from registry.types import DType, Shape, VarType, is_inexact

Weak = tuple[DType, bool]
"""A dtype and whether it is weak."""


def completing(
    completes: Callable[..., Any],
) -> Callable[[Callable[..., Shape]], Callable[..., Shape]]:
    """Attach to a shape rule how it tells the shapes of inputs from the others and the output."""

    def attach(rule: Callable[..., Shape]) -> Callable[..., Shape]:
        rule.completes = completes  # type: ignore[attr-defined]
        return rule

    return attach


# Shapes ----------------------------------------------------------------------------------------


def all_alike(shapes: Sequence[Shape | None], out: Shape | None) -> list[Shape | None]:
    """Inputs and output have one shape: whichever is known."""
    known = [shape for shape in (*shapes, out) if shape is not None]
    return [known[0] if known else None] * len(shapes)


@completing(all_alike)
def same(*shapes: Shape) -> Shape:
    """Inputs and output all have one shape."""
    if any(shape != shapes[0] for shape in shapes[1:]):
        raise ShapeError(f"the inputs must have the same shape, got {listed(shapes)}")
    return shapes[0]


def x_equals_y_completes(x: Shape | None, y: Shape | None, out: Shape | None) -> dict[str, Any]:
    """``x``, ``y`` and the output have one shape: whichever is known."""
    known = next((shape for shape in (x, y, out) if shape is not None), None)
    return {"x": known, "y": known}


@completing(x_equals_y_completes)
def x_equals_y(x: Shape, y: Shape) -> Shape:
    """Both operands and the result have one shape."""
    if x != y:
        raise ShapeError(f"x and y must have the same shape, got {x} and {y}")
    return x


def broadcast(*shapes: Shape) -> Shape:
    """NumPy's broadcasting of all inputs."""
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
    """``x`` without the reduced axes, or with length 1 there."""
    axes = normalize_axes(axis, len(x))
    if keepdims:
        return tuple(1 if i in axes else length for i, length in enumerate(x))
    return tuple(length for i, length in enumerate(x) if i not in axes)


def along_axis(x: Shape, *, axis: int) -> Shape:
    """``x``, which must have the axis."""
    normalize_axis(axis, len(x))
    return x


def normalize_axis(axis: int, ndim: int) -> int:
    """``axis`` counted from the front.

    Raises:
        AttributeValueError: there is no such axis.
    """
    if not -ndim <= axis < ndim:
        raise AttributeValueError(f"axis must be in [{-ndim}, {ndim}), got {axis}")
    return axis % ndim


def normalize_axes(axis: int | tuple[int, ...] | None, ndim: int) -> tuple[int, ...]:
    """The axes counted from the front, in order; None stands for all of them.

    Raises:
        AttributeValueError: an axis does not exist or is named twice.
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
    """JAX's promotion of all inputs."""
    return promoted(*types)


def strong(*types: VarType) -> DType:
    """JAX's promotion of all inputs, never weak."""
    return promoted(*types)[0]


def floating(*types: VarType) -> Weak:
    """JAX's promotion; booleans and integers become float32, 64-bit integers float64."""
    dtype, weak = promoted(*types)
    return (dtype, weak) if is_inexact(dtype) else (float_for(dtype), weak)


def float_for(dtype: DType) -> DType:
    """The floating dtype in which functions of integers and booleans are computed."""
    return np.dtype(np.float64 if dtype.itemsize == 8 else np.float32)


def inexact(*types: VarType) -> Weak:
    """JAX's promotion of floating or complex numbers; others are refused."""
    dtype, weak = promoted(*types)
    if not is_inexact(dtype):
        raise DTypeError(f"the inputs must be floating, got {dtype.name}")
    return dtype, weak


def real(*types: VarType) -> Weak:
    """JAX's promotion of real numbers; complex ones, which have no order, are refused."""
    dtype, weak = promoted(*types)
    if dtype.kind == "c":
        raise DTypeError(f"the inputs must be real, got {dtype.name}")
    return dtype, weak


REFUSES_INTEGERS = misuse("the inputs must be floating, got int32", x=integers(3, high=4))
"""The misuse of a function of ``x`` whose dtype rule is ``inexact``."""
HAS_NO_AXIS = misuse("attributes among none, got 'axis'", x=(3,), axis=0)
"""The misuse of a function of ``x``, entry by entry, that takes all arrays and nothing else."""


def real_inexact(*types: VarType) -> Weak:
    """JAX's promotion of real floating numbers; all others are refused."""
    real(*types)
    return inexact(*types)


def strong_inexact(*types: VarType) -> DType:
    """JAX's promotion of floating or complex numbers, never weak; others are refused."""
    return inexact(*types)[0]


def strong_real(*types: VarType) -> DType:
    """JAX's promotion of real numbers, never weak; complex ones are refused."""
    return real(*types)[0]


def strong_real_inexact(*types: VarType) -> DType:
    """JAX's promotion of real floating numbers, never weak; all others are refused."""
    return real_inexact(*types)[0]


def strong_numeric(*types: VarType) -> DType:
    """JAX's promotion of numbers, never weak; booleans are refused."""
    return numeric(*types)[0]


def at_least_single(dtype: DType) -> DType:
    """The dtype to compute in: half precision, which sums saturate, becomes float32."""
    return np.dtype(np.float32) if dtype.itemsize < 4 and is_inexact(dtype) else np.dtype(dtype)


def boolean(*types: VarType) -> DType:
    """Always bool."""
    del types
    return np.dtype(np.bool_)


def numeric(*types: VarType) -> Weak:
    """JAX's promotion of numbers; booleans are refused."""
    dtype, weak = promoted(*types)
    if dtype == np.bool_:
        raise DTypeError("the inputs must be numbers, got bool")
    return dtype, weak


def default_float() -> DType:
    """float32, or float64 when JAX's x64 flag is on."""
    return np.dtype(jax.dtypes.canonicalize_dtype(np.float64))


def default_int() -> DType:
    """int32, or int64 when JAX's x64 flag is on."""
    return np.dtype(jax.dtypes.canonicalize_dtype(np.int64))


def canonical(dtype: DType) -> DType:
    """``dtype`` as JAX holds it: without the x64 flag 64-bit dtypes become 32-bit ones."""
    return np.dtype(jax.dtypes.canonicalize_dtype(dtype))


def require_held(name: str, value: complex | None, dtype: DType) -> None:
    """Refuse a number that an array of ``dtype`` would round or wrap; floats round to nearest.

    Raises:
        DTypeError: it is not whole, or out of range, for integers; or complex for real numbers.
    """
    if value is None or dtype.kind == "c":
        return
    if isinstance(value, complex):
        raise DTypeError(f"{name} must be real in {dtype.name}, got {value}")
    if dtype.kind not in "biu":
        return
    least, most = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    if not (least <= value <= most and value == int(value)):
        raise DTypeError(f"{name} must be of dtype {dtype.name}, got {value}")


def listed(shapes: Sequence[Any]) -> str:
    """Shapes as a sentence lists them."""
    *front, last = [str(shape) for shape in shapes]
    return f"{', '.join(front)} and {last}" if front else last
