"""Operators that gather entries by index, and that scatter entries to indices."""

import math
from typing import Any, Literal

import numpy as np

import symop as so
from registry.types import is_integer
from symop.interop.mxnet import partial_dtypes
from symop.interop.mxnet.attributes import Shape
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.ops.values import require_fits
from symop.interop.mxnet.partial_shapes import (
    Partial,
    Shapes,
    enter,
    is_known,
    like_data,
    merged,
)


def whole(numbers: Any) -> Any:
    """Indices, which MXNet stores as floating numbers, as integers."""
    if is_integer(numbers.dtype):
        return numbers
    return so.cast(so.stop_gradient(numbers), dtype="int32")


def _where_shapes(given: Shapes, found: Shapes) -> None:
    condition = given[0]
    if condition is None or not is_known(condition):
        return
    shape: Partial = merged(merged(given[1], given[2]), found[0])
    if shape is not None and len(condition) == len(shape):
        shape = given[0] = merged(shape, condition)
    given[1] = given[2] = found[0] = shape


@operator("where", "_sparse_where", shapes=_where_shapes, dtypes=partial_dtypes.alike(1, 2))
def where(condition: Any, x: Any, y: Any) -> Any:
    """``x`` where ``condition`` is nonzero, otherwise ``y``; a vector selects whole rows."""
    behind = len(x.shape) - len(condition.shape)
    if behind:
        condition = so.reshape(condition, shape=(*condition.shape, *(1,) * behind))
    return so.where(condition, x, y)


@operator(
    "take",
    dtypes=partial_dtypes.like_data,
    note="mode='raise' gives NaN where an index is out of range",
)
def take(
    a: Any, indices: Any, *, axis: int = 0, mode: Literal["raise", "wrap", "clip"] = "clip"
) -> Any:
    """Entries of ``a`` along ``axis``."""
    return so.take(a, whole(indices), axis=axis, mode="fill" if mode == "raise" else mode)


_batch_take_dtypes = partial_dtypes.whole_at(1, partial_dtypes.like_data)


def _batch_take_shapes(given: Shapes, found: Shapes) -> None:
    enter(given, 1, found[0])
    enter(found, 0, given[1])


@operator("batch_take", shapes=_batch_take_shapes, dtypes=_batch_take_dtypes)
def batch_take(a: Any, indices: Any) -> Any:
    """One entry of each row."""
    rows = so.reshape(a, shape=(-1, a.shape[-1]))
    places = so.reshape(whole(indices), shape=(-1,))
    return so.reshape(so.pick(rows, places), shape=indices.shape)


def _pick_shapes(given: Shapes, found: Shapes, axis: int | None, keepdims: bool) -> None:
    data, index = given[0], given[1]
    if data is None or axis is None:
        return
    at = axis % len(data)
    kept = (*data[:at], 1, *data[at + 1 :])
    less = (*data[:at], *data[at + 1 :]) or (1,)
    enter(found, 0, kept if keepdims else less)
    if index is not None:
        enter(given, 1, kept if len(index) == len(data) else less)


@operator("pick", "choose_element_0index", shapes=_pick_shapes, dtypes=partial_dtypes.like_data)
def pick(
    data: Any,
    index: Any,
    *,
    axis: int | None = -1,
    keepdims: bool = False,
    mode: Literal["wrap", "clip"] = "clip",
) -> Any:
    """One entry along ``axis`` for each position of the other axes."""
    if axis is None:
        raise MXNetError("pick: axis must be a number, got None")
    picked = so.pick(data, whole(index), axis=axis, keepdims=keepdims, mode=mode)
    return picked if picked.shape else so.reshape(picked, shape=(1,))


@operator("gather_nd", dtypes=partial_dtypes.like_data, note="an index out of range gives NaN")
def gather_nd(data: Any, indices: Any) -> Any:
    """The entries at the coordinates along the first axis of ``indices``."""
    return so.gather_nd(data, whole(indices), axis=0)


def _set_nd(zeros: Any, rows: Any, indices: Any) -> Any:
    """``zeros`` with ``rows`` at the coordinates ``indices``."""
    axes = indices.shape[0]
    if axes > len(zeros.shape):
        raise MXNetError(
            f"the coordinates must be at most {len(zeros.shape)}, one for each axis of "
            f"{tuple(zeros.shape)}, got indices of shape {tuple(indices.shape)}"
        )
    lead, rest = tuple(zeros.shape[:axes]), tuple(zeros.shape[axes:])
    strides = np.asarray([math.prod(lead[i + 1 :]) for i in range(axes)], "int32")
    coordinates = so.reshape(whole(indices), shape=(axes, -1))
    places = so.sum(coordinates * so.reshape(strides, shape=(axes, 1)), axis=0)
    flat = so.reshape(zeros, shape=(math.prod(lead), *rest))
    updated = so.index_update(flat, places, so.reshape(rows, shape=(-1, *rest)))
    return so.reshape(updated, shape=tuple(zeros.shape))


@operator(
    "scatter_nd",
    dtypes=partial_dtypes.like_data,
    note="of entries with one place the last one stays",
)
def scatter_nd(data: Any, indices: Any, *, shape: Shape) -> Any:
    """Zeros with ``data`` at the coordinates along the first axis of ``indices``."""
    zero = so.zeros_like(so.reshape(data, shape=(-1,))[:1])
    return _set_nd(so.broadcast_to(zero, shape=shape), data, indices)


@operator("_backward_gather_nd", dtypes=partial_dtypes.like_data)
def scatter_add_nd(data: Any, indices: Any, *, shape: Shape) -> Any:
    """As ``scatter_nd``, but adds entries with equal coordinates."""
    return so.scatter_nd(data, whole(indices), shape=shape, axis=0)


@operator("_scatter_set_nd", shapes=like_data, dtypes=partial_dtypes.alike(0, 1))
def scatter_set_nd(lhs: Any, rhs: Any, indices: Any, *, shape: Shape) -> Any:
    """``lhs`` with ``rhs`` at the coordinates ``indices``."""
    del shape  # that of lhs
    return _set_nd(lhs, rhs, indices)


@operator("one_hot")
def one_hot(
    indices: Any,
    *,
    depth: int,
    on_value: float = 1.0,
    off_value: float = 0.0,
    dtype: str = "float32",
) -> Any:
    """``on_value`` at the index along a new last axis, otherwise ``off_value``."""
    require_fits("one_hot", (*indices.shape, depth))
    hot = so.one_hot(whole(indices), num_classes=depth, dtype="bool")
    return so.cast(so.where(hot, on_value, off_value), dtype=dtype)


@operator("fill_element_0index", shapes=like_data, dtypes=partial_dtypes.alike(0, 1))
def fill_element_0index(lhs: Any, mhs: Any, rhs: Any) -> Any:
    """``lhs`` with ``mhs[i]`` at column ``rhs[i]`` of row ``i``."""
    hot = so.one_hot(whole(rhs), num_classes=lhs.shape[1], dtype="bool")
    return so.where(hot, so.expand_dims(mhs, axis=1), lhs)


@operator("_contrib_index_copy", shapes=like_data, dtypes=partial_dtypes.alike(0, 2))
def index_copy(old_tensor: Any, index_vector: Any, new_tensor: Any) -> Any:
    """``old_tensor`` with the rows ``index_vector`` replaced by ``new_tensor``."""
    return so.index_update(old_tensor, whole(index_vector), new_tensor)


@operator(
    "_contrib_boolean_mask",
    dtypes=partial_dtypes.like_data,
    note="of arrays only: in a symbol the shape would depend on the entries of index",
)
def boolean_mask(data: Any, index: Any, *, axis: int = 0) -> Any:
    """The entries along ``axis`` where ``index`` is nonzero."""
    if isinstance(index, (so.Symbol, so.Variable)):
        raise MXNetError(
            "_contrib_boolean_mask: index must be an array whose entries are known, because the "
            f"shape of the result depends on them, got {type(index).__name__}"
        )
    kept = np.asarray(index) != 0
    return so.take(data, np.flatnonzero(kept).astype("int32"), axis=axis)


@operator("_ravel_multi_index", "ravel_multi_index")
def ravel_multi_index(data: Any, *, shape: Shape) -> Any:
    """Flat row-major indices of the coordinates along the first axis."""
    strides = np.asarray([math.prod(shape[i + 1 :]) for i in range(len(shape))], "int32")
    flat = so.sum(whole(data) * so.reshape(strides, shape=(-1, 1)), axis=0)
    return so.cast(flat, dtype=data.dtype)


@operator("_unravel_index", "unravel_index")
def unravel_index(data: Any, *, shape: Shape) -> Any:
    """Coordinates, along a new first axis, of flat row-major indices."""
    rest, coordinates = whole(data), []
    for length in shape[:0:-1]:
        coordinates.append(so.remainder(rest, length))
        rest = so.floor_divide(rest, length)
    return so.cast(so.stack(rest, *coordinates[::-1]), dtype=data.dtype)
