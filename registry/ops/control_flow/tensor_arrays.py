"""Tensor arrays: lists of arrays of one shape that loops write and read at arbitrary indices.

The operators also accept a dense array as a full list: its first axis counts the elements.
"""

from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, misuse
from registry.errors import ArgumentError, DTypeError, KindError, ShapeError
from registry.operator.attributes import Check
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.elementwise import zeros_like
from registry.shapes import canonical, default_float
from registry.table import op
from registry.types import Shape, VarKind, VarType, is_integer
from registry.values import TensorArray
from registry.var import Var, filled

_ARRAYS = (VarKind.LOD_TENSOR_ARRAY, VarKind.LOD_TENSOR)
_LENGTH = VarType((), np.dtype(np.int32))
Capacity = Annotated[int, Check("not be negative", lambda count: count >= 0)]
Lengths = Annotated[
    tuple[int, ...] | None,
    Check("hold no negative length", lambda shape: shape is None or all(n >= 0 for n in shape)),
]


def _element(array: VarType) -> VarType:
    """The type of one element.

    Raises:
        KindError: the value has no elements.
        ShapeError: there is no axis of elements.
    """
    if array.kind not in _ARRAYS:
        raise KindError(f"array must be a tensor array or a dense array, got {array}")
    if not array.shape:
        raise ShapeError("array must have an axis of elements, got a scalar")
    return VarType(array.shape[1:], array.dtype, weak=array.weak)


def _require_index(index: VarType) -> None:
    if index.kind is not VarKind.LOD_TENSOR or index.shape != () or not is_integer(index.dtype):
        raise DTypeError(f"index must be an integer scalar, got {index}")


def _entries(array: Any) -> Any:
    return array.values if isinstance(array, TensorArray) else jnp.asarray(array)


# Creation --------------------------------------------------------------------------------------


@op(
    aliases=["create_array"],
    reference=lambda like=None, *, capacity, shape=None, dtype=None: np.zeros(
        (capacity, *(np.shape(like) if shape is None else shape)),
        dtype or (np.float32 if like is None else like.dtype),
    ),
    cases=[
        case(capacity=3, shape=(2,), dtype=np.dtype("float32")),
        case(like=integers(2, 3, high=9), capacity=4),
        case(like=(3,), capacity=2, shape=(), dtype=np.dtype("float32")),
        case(like=(3,), capacity=0),
        misuse("must not be negative", like=(3,), capacity=-1),
    ],
)
def array_create(
    like: Array | None = None,
    *,
    capacity: Capacity,
    shape: Lengths = None,
    dtype: np.dtype | None = None,
) -> TensorArray:
    """Creates an empty tensor array with capacity for ``capacity`` elements, all zeros.

    Elements have the shape and dtype of ``like``, unless ``shape`` and ``dtype`` override them.
    Without ``like``, call ``so.sym.array_create`` for a symbol.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=(2,))
        >>> print(so.array_create(x, capacity=4).type)
        lod_tensor_array float32[4,2]
    """
    element = _created(None if like is None else VarType(jnp.shape(like), like.dtype), shape, dtype)
    room = (capacity, *element.shape)
    return TensorArray.filled(VarType(room, element.dtype, VarKind.LOD_TENSOR_ARRAY), 0)


def _created(like: VarType | None, shape: Shape | None, dtype: np.dtype | None) -> VarType:
    if like is None and shape is None:
        raise ArgumentError("either like or shape must be given, got none")
    lengths = shape if shape is not None else like.shape if like is not None else ()
    if dtype is not None:
        return VarType(lengths, canonical(dtype))
    return VarType(lengths, default_float() if like is None else like.dtype)


@array_create.types
def array_create_types(
    like: VarType | None, *, capacity: int, shape: Shape | None, dtype: np.dtype | None
) -> list[VarType]:
    """Returns the type of the array, with its capacity as the first length."""
    element = _created(like, shape, dtype)
    return [VarType((capacity, *element.shape), element.dtype, VarKind.LOD_TENSOR_ARRAY)]


@array_create.kind
def array_create_kind() -> VarKind:
    """Returns the kind of tensor arrays."""
    return VarKind.LOD_TENSOR_ARRAY


array_create.zero_gradient("an empty array does not depend on the entries of like")


@op(
    cases=[
        case(x=(3, 2)),
        case(x=(0, 2)),
        case(x=integers(3, 2, high=9)),
        misuse("array must have an axis of elements, got a scalar", x=()),
    ],
    reference=lambda x: x,
)
def array_unstack(x: Array) -> TensorArray:
    """Creates a full tensor array whose elements are the slices of ``x`` along the first axis.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=(3, 2))
        >>> so.array_read(so.array_unstack(x), 1).eval(x=[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        Array([3., 4.], dtype=float32)
    """
    entries = lax.convert_element_type(x, jnp.asarray(x).dtype)  # never weak
    return TensorArray(entries, jnp.full((), entries.shape[0], np.int32))


@array_unstack.types
def array_unstack_types(x: VarType) -> list[VarType]:
    """Returns a tensor array type with the shape and dtype of ``x``."""
    _element(x)
    return [VarType(x.shape, x.dtype, VarKind.LOD_TENSOR_ARRAY)]


@array_unstack.kind
def array_unstack_kind() -> VarKind:
    """Returns the kind of tensor arrays."""
    return VarKind.LOD_TENSOR_ARRAY


@array_unstack.gradient
def _array_unstack_gradient(d_out: Var) -> Grads:
    return {"x": array_stack(d_out)}


# Writing and reading ---------------------------------------------------------------------------


def _write_reference(array: Any, x: Any, index: Any) -> Any:
    out = np.array(array)
    if 0 <= int(index) < len(out):
        out[int(index)] = x
    return out


_WRITES = [
    case(array=(4, 2), x=(2,), index=integers(high=4)),
    case(array=(4,), x=(), index=integers(high=1)),
    case(array=(3, 2), x=(2,), index=integers(low=3, high=4)),
    case(array=(3, 2), x=(2,), index=integers(low=-1, high=0)),
]


@op(
    aliases=["write_to_array"],
    reference=_write_reference,
    cases=[
        *_WRITES,
        misuse("x must be float", array=(4, 2), x=(3,), index=integers(high=4)),
        misuse("index must be an integer scalar", array=(4, 2), x=(2,), index=()),
        misuse("array must have an axis of elements", array=(), x=(), index=integers(high=1)),
    ],
)
def array_write(array: Array, x: Array, index: Array) -> Array | TensorArray:
    """Writes ``x`` to ``array`` at ``index``; the length becomes at least ``index + 1``.

    Writes at negative indices or beyond the capacity are dropped. If ``array`` is dense, so is the
    result.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=(2,))
        >>> written = so.array_write(so.array_create(x, capacity=3), x, 1)
        >>> so.array_stack(written).eval(x=[1.0, 2.0]).tolist()
        [[0.0, 0.0], [1.0, 2.0], [0.0, 0.0]]
    """
    entries = _entries(array)
    value = lax.convert_element_type(jnp.asarray(x), entries.dtype)
    at: Any = entries.at[index]
    result: Array = at.set(value, mode="drop", wrap_negative_indices=False)
    if not isinstance(array, TensorArray):
        return result
    place = jnp.asarray(index, np.int32)
    fits = (place >= 0) & (place < entries.shape[0])
    length = jnp.maximum(array.length, jnp.where(fits, place + 1, 0)).astype(np.int32)
    return TensorArray(result, length)


@array_write.types
def array_write_types(array: VarType, x: VarType, index: VarType) -> list[VarType]:
    """Returns the type of ``array``."""
    element = _element(array)
    _require_index(index)
    if x.kind is not VarKind.LOD_TENSOR:
        raise KindError(f"x must be a dense array, got {x}")
    if x.shape != element.shape or not (x.weak or x.dtype == element.dtype):
        raise (ShapeError if x.shape != element.shape else DTypeError)(
            f"x must be {element.strong()} as the elements of array are, got {x}"
        )
    return [array.strong()]


@array_write.kind
def array_write_kind(array: VarKind) -> VarKind:
    """Returns the kind of ``array``."""
    return array


@array_write.gradient
def _array_write_gradient(x: Var, index: Var, d_out: Var) -> Grads:
    """The overwritten element has gradient zero."""

    def d_array() -> Any:
        return array_write(d_out, zeros_like(x), index)

    return {"array": d_array, "x": lambda: array_read(d_out, index), "index": None}


def _read_reference(array: Any, index: Any) -> Any:
    inside = 0 <= int(index) < len(array)
    return array[int(index)] if inside else np.zeros(array.shape[1:], array.dtype)


@op(
    aliases=["read_from_array"],
    reference=_read_reference,
    cases=[
        case(array=(4, 2), index=integers(high=4)),
        case(array=(4,), index=integers(high=4)),
        case(array=(3, 2), index=integers(low=3, high=4)),
        case(array=(3, 2), index=integers(low=-1, high=0)),
        misuse("index must be an integer scalar", array=(4, 2), index=integers(2, high=4)),
        misuse("array must have an axis of elements", array=(), index=integers(high=1)),
    ],
)
def array_read(array: Array, index: Array) -> Array:
    """Reads the element of ``array`` at ``index``; zeros if out of range or never written.

    Example:
        >>> import jax.numpy as jnp
        >>> array_read(jnp.asarray([[1.0, 2.0], [3.0, 4.0]]), 1)
        Array([3., 4.], dtype=float32)
    """
    entries = _entries(array)
    at: Any = entries.at[index]
    result: Array = at.get(mode="fill", fill_value=0, wrap_negative_indices=False)
    return result


@array_read.types
def array_read_types(array: VarType, index: VarType) -> list[VarType]:
    """Returns the type of one element."""
    _require_index(index)
    return [_element(array)]


@array_read.kind
def array_read_kind() -> VarKind:
    """Returns the kind of dense arrays."""
    return VarKind.LOD_TENSOR


@array_read.gradient
def _array_read_gradient(array: Var, index: Var, d_out: Var) -> Grads:
    return {"array": array_write(filled(array, 0.0), d_out, index), "index": None}


# Length and stacking ---------------------------------------------------------------------------


@op(
    aliases=["lod_array_length"],
    reference=lambda array: np.int32(len(array)),
    cases=[
        case(array=(4, 2)),
        case(array=(0,)),
        misuse("array must have an axis of elements, got a scalar", array=()),
    ],
)
def array_length(array: Array) -> Array:
    """The number of elements of ``array``: one more than the highest index that was written.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=())
        >>> int(so.array_length(so.array_write(so.array_create(x, capacity=9), x, 3)).eval(x=1.0))
        4
    """
    if isinstance(array, TensorArray):
        return jnp.asarray(array.length, np.int32)
    return jnp.full((), jnp.shape(array)[0], np.int32)


@array_length.types
def array_length_types(array: VarType) -> list[VarType]:
    """Returns the type of an int32 scalar."""
    _element(array)
    return [_LENGTH]


@array_length.kind
def array_length_kind() -> VarKind:
    """Returns the kind of dense arrays."""
    return VarKind.LOD_TENSOR


array_length.zero_gradient("a number of elements does not change with what they hold")


@op(
    reference=lambda array: array,
    cases=[
        case(array=(4, 2)),
        case(array=(0,)),
        misuse("array must have an axis of elements, got a scalar", array=()),
    ],
)
def array_stack(array: Array) -> Array:
    """Stacks all elements of ``array``, up to its capacity; zeros where unwritten.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=())
        >>> written = so.array_write(so.array_create(x, capacity=3), x, 1)
        >>> so.array_stack(written).eval(x=5.0).tolist()
        [0.0, 5.0, 0.0]
    """
    entries: Array = _entries(array)
    return entries


@array_stack.types
def array_stack_types(array: VarType) -> list[VarType]:
    """Returns a dense type with the shape and dtype of ``array``."""
    _element(array)
    return [VarType(array.shape, array.dtype, weak=array.weak)]


@array_stack.kind
def array_stack_kind() -> VarKind:
    """Returns the kind of dense arrays."""
    return VarKind.LOD_TENSOR


@array_stack.gradient
def _array_stack_gradient(array: Var, d_out: Var) -> Grads:
    is_dense = array.type.kind is VarKind.LOD_TENSOR
    return {"array": d_out if is_dense else array_unstack(d_out)}
