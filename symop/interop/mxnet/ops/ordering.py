"""Ordering along an axis: indices of extrema, sorting, and the largest entries.

Indices have no gradient.
"""

from typing import Any, Literal

import symop as so
from registry.shapes import canonical
from registry.types import as_dtype
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.ops.values import IndexDtype, at_least_1d, axis_of, fixed, kept
from symop.interop.mxnet.partial_dtypes import Dtypes, agreed, told


def _position(name: str, data: Any, axis: int | None, keepdims: bool) -> Any:
    """The index of the largest or smallest entry, in the dtype of the data."""
    at = None if axis is None else axis_of(name, axis, len(data.shape))
    search = so.argmin if name == "argmin" else so.argmax
    found = at_least_1d(search(data, axis=at, keepdims=keepdims))
    return fixed(kept(data, found), data)


@operator("argmax")
def argmax(data: Any, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """The index of the first largest entry."""
    return _position("argmax", data, axis, keepdims)


@operator("argmin")
def argmin(data: Any, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """The index of the first smallest entry."""
    return _position("argmin", data, axis, keepdims)


@operator("argmax_channel")
def argmax_channel(data: Any) -> Any:
    """The index of the largest entry along the second axis."""
    return _position("argmax_channel", data, 1, keepdims=False)


def _line(name: str, data: Any, axis: int | None) -> tuple[Any, int]:
    """The array to order and the axis: the flattened array if ``axis`` is None."""
    if axis is None:
        return so.reshape(data, shape=(-1,)), 0
    return data, axis_of(name, axis, len(data.shape))


def _sort_dtypes(given: Dtypes, found: Dtypes) -> None:
    given[0] = found[0] = agreed((given[0], found[0]))
    found[1] = as_dtype("int32")


@operator("sort", dtypes=_sort_dtypes, outputs=lambda: ("output0", "output1"), visible=lambda: 1)
def sort(data: Any, *, axis: int | None = -1, is_ascend: bool = True) -> Any:
    """The sorted entries."""
    x, at = _line("sort", data, axis)
    return so.sort(x, axis=at, descending=not is_ascend)


@operator("argsort")
def argsort(
    data: Any, *, axis: int | None = -1, is_ascend: bool = True, dtype: IndexDtype = "float32"
) -> Any:
    """The indices that sort the entries."""
    x, at = _line("argsort", data, axis)
    places = so.argsort(x, axis=at, descending=not is_ascend)
    return fixed(so.cast(places, dtype=dtype), data)


Wanted = Literal["value", "indices", "mask", "both"]


def _topk_outputs(ret_typ: Wanted) -> tuple[str, ...]:
    return ("output",) if ret_typ in ("indices", "mask") else ("output0", "output1")


def _topk_dtypes(given: Dtypes, found: Dtypes, ret_typ: Wanted, dtype: str) -> None:
    if ret_typ == "indices":
        told(given, found, dtype)
        return
    given[0] = found[0] = agreed((given[0], found[0]))
    if len(found) > 1:
        found[1] = agreed((found[1], canonical(as_dtype(dtype))))


@operator(
    "topk",
    outputs=_topk_outputs,
    visible=lambda ret_typ: 1 + (ret_typ == "both"),
    dtypes=_topk_dtypes,
)
def topk(
    data: Any,
    *,
    axis: int | None = -1,
    k: int = 1,
    ret_typ: Wanted = "indices",
    is_ascend: bool = False,
    dtype: IndexDtype = "float32",
) -> Any:
    """The ``k`` largest or smallest entries, sorted, their indices, both, or a mask of them."""
    x, at = _line("topk", data, axis)
    length = x.shape[at]
    if k > length:
        raise MXNetError(f"topk: k must be at most {length}, got {k}")
    count = k if k > 0 else length
    if ret_typ == "mask":
        places = so.argsort(x, axis=at, descending=not is_ascend)
        first = so.less(so.argsort(places, axis=at), count)
        return fixed(kept(data, so.reshape(first, shape=tuple(data.shape))), data)
    values, places = so.topk(x, k=count, axis=at, largest=not is_ascend)
    indices = fixed(so.cast(places, dtype=dtype), data)
    return {"value": values, "indices": indices, "both": (values, indices)}[ret_typ]
