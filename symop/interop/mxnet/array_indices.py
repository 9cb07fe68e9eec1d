"""Indices of MXNet's arrays, and recorded assignment to indexed entries."""

from typing import Any

import numpy as np

import symop as so
from registry.types import is_exact, is_floating
from symop.interop.mxnet.views import Index, Viewed


def entries_of(index: Any) -> Index:
    """Converts an index to symop's form: integers, slices, None, Ellipsis, integer arrays."""
    return tuple(map(_entry, index if isinstance(index, tuple) else (index,)))


def _entry(one: Any) -> Any:
    if isinstance(one, Viewed):
        whole = is_exact(one.inner.dtype)
        return one.inner if whole else one.inner.astype(np.int32)
    if isinstance(one, (list, tuple, range)):
        one = np.asarray(one)
        one = one if one.size else one.astype(np.int32)
    if isinstance(one, np.ndarray) and is_floating(one.dtype):
        return one.astype(np.int32)
    return int(one) if isinstance(one, np.integer) else one


def assigned(x: so.NDArray, entries: Index, value: so.NDArray) -> so.NDArray:
    """``x`` with the indexed entries replaced by ``value``, as a recorded computation."""
    where = tuple(np.asarray(one) if isinstance(one, so.NDArray) else one for one in entries)
    places = np.arange(x.size, dtype=np.int32).reshape(x.shape)[where]
    extra = max(value.ndim - places.ndim, 0)  # drop leading axes of length one
    rows = so.nd.broadcast_to(value.reshape(value.shape[extra:]), places.shape)
    flat = so.nd.index_update(
        x.reshape((-1,)), places.reshape(-1), rows.reshape((-1,)).astype(x.dtype)
    )
    result: so.NDArray = flat.reshape(x.shape)
    return result
