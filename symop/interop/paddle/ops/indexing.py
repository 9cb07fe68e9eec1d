"""Selecting and writing entries by indices."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

import symop as so
from symop.interop.paddle.operators import Values, operator
from symop.interop.paddle.ops.dtypes import dtype_of
from symop.interop.paddle.values import known, numbers


@operator(no_gradient="Index Axis", ignored="overwrite")
def gather(X: Any, Index: Any, Axis: Any = None, *, axis: int = 0) -> Any:
    at = axis if Axis is None else numbers("gather: Axis", Axis)[0]
    ids = so.squeeze(Index, axis=1) if Index.ndim == 2 and Index.shape[1] == 1 else Index
    return so.take(X, ids, axis=at)


@operator(no_gradient="Index")
def gather_nd(X: Any, Index: Any) -> Any:
    return so.gather_nd(X, Index)


@operator(no_gradient="Index")
def index_select(X: Any, Index: Any, *, dim: int = 0) -> Any:
    return so.take(X, Index, axis=dim)


@operator(no_gradient="Index")
def index_sample(X: Any, Index: Any) -> Any:
    return so.take_along_axis(X, Index, axis=1)


@operator("take_along_axis", outputs="Result", no_gradient="Index")
def take_along_axis(Input: Any, Index: Any, *, Axis: int = 0) -> Any:
    return so.take_along_axis(Input, Index, axis=Axis)


@operator(no_gradient="Ids")
def scatter(X: Any, Ids: Any, Updates: Any, *, overwrite: bool = True) -> Any:
    ids = so.reshape(Ids, shape=(-1,))
    if overwrite:
        return so.index_update(X, ids, Updates, axis=0)
    emptied = so.index_update(X, ids, so.zeros_like(Updates), axis=0)
    return so.index_add(emptied, ids, Updates, axis=0)


@operator(no_gradient="Index")
def scatter_nd_add(X: Any, Index: Any, Updates: Any) -> Any:
    return X + so.scatter_nd(Updates, Index, shape=X.shape)


@operator(no_gradient="Condition")
def where(Condition: Any, X: Any, Y: Any) -> Any:
    return so.where(Condition, X, Y)


@operator(no_gradient="Condition")
def where_index(Condition: Any) -> Any:
    places = np.argwhere(known("where_index: Condition", Condition))
    return jnp.asarray(places, jnp.int32)


@operator(outputs="Y", no_gradient="Mask")
def masked_select(X: Any, Mask: Any) -> Any:
    places = np.flatnonzero(known("masked_select: Mask", Mask))
    return so.take(so.reshape(X, shape=(-1,)), jnp.asarray(places, jnp.int32), axis=0)


@operator(outputs="Out Index Indices Counts", no_gradient="X")
def unique(
    X: Any,
    *,
    dtype: int = 3,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Sequence[int] = (),
    is_sorted: bool = False,
) -> Any:
    """Returns distinct entries: sorted, or as 1.8 does in the order in which they come first."""
    x, kind = known("unique: X", X), dtype_of(dtype)
    along = int(axis[0]) if axis else None
    values, first, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, axis=along
    )
    inverse = inverse.ravel()
    if not is_sorted:
        order = np.argsort(first)
        values, first, counts = np.take(values, order, along or 0), first[order], counts[order]
        inverse = np.argsort(order)[inverse]
    places = (so.cast(jnp.asarray(one), dtype=kind) for one in (inverse, first, counts))
    return jnp.asarray(values), *places


@operator(no_gradient="Ids")
def multiplex(X: Values, Ids: Any) -> Any:
    rows = so.concat(*(so.expand_dims(one, axis=0) for one in X), axis=0)
    chosen = so.reshape(Ids, shape=(1, -1, *(1 for _ in X[0].shape[1:])))
    return so.squeeze(so.take_along_axis(rows, chosen, axis=0), axis=0)
