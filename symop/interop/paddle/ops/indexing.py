"""Selecting and writing entries by indices."""

from typing import Any

import symop as so
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.operators import Values, operator
from symop.interop.paddle.values import numbers


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


@operator("where_index", no_gradient="Condition")
def where_index(Condition: Any) -> Any:
    raise _shapes("where_index", "mask with where instead")


@operator("masked_select", outputs="Y", no_gradient="Mask")
def masked_select(X: Any, Mask: Any) -> Any:
    raise _shapes("masked_select", "multiply by the mask, or use where")


@operator(
    "unique",
    outputs="Out Index",
    no_gradient="X",
    ignored="dtype return_index return_inverse return_counts axis is_sorted",
)
def unique(X: Any) -> Any:
    raise _shapes("unique", "find distinct values before they are fed")


@operator("sequence_erase", ignored="tokens", no_gradient="X")
def sequence_erase(X: Any) -> Any:
    raise _shapes("sequence_erase", "erase tokens before they are fed")


def _shapes(name: str, instead: str) -> PaddleError:
    return PaddleError(
        f"{name}: the number of results must be known when a program is compiled, got one that "
        f"depends on values; {instead}"
    )


@operator(no_gradient="Ids")
def multiplex(X: Values, Ids: Any) -> Any:
    rows = so.concat(*(so.expand_dims(one, axis=0) for one in X), axis=0)
    chosen = so.reshape(Ids, shape=(1, -1, *(1 for _ in X[0].shape[1:])))
    return so.squeeze(so.take_along_axis(rows, chosen, axis=0), axis=0)
