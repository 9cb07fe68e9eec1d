"""Operators of sparse arrays, as functions of dense ones; ``sparse_ops`` computes them sparsely."""

from typing import Any

import symop as so
from registry.types import as_dtype
from symop.interop.mxnet import partial_dtypes
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.ops.indexing import whole
from symop.interop.mxnet.ops.reductions import Axes, reduced_axes
from symop.interop.mxnet.ops.values import at_least_1d
from symop.interop.mxnet.partial_shapes import Shapes, enter, like_data


@operator("_sparse_retain", shapes=like_data, dtypes=partial_dtypes.like_data)
def retain(data: Any, indices: Any) -> Any:
    """``data`` with zeros in all rows but ``indices``."""
    height = data.shape[0]
    kept = so.any(so.one_hot(whole(indices), num_classes=height, dtype="bool"), axis=0)
    column = so.reshape(kept, shape=(height, *(1,) * (len(data.shape) - 1)))
    return so.where(column, data, so.zeros_like(data))


@operator("_square_sum")
def square_sum(data: Any, *, axis: Axes | None = None, keepdims: bool = False) -> Any:
    """The sums of squares over axes."""
    axes = reduced_axes("_square_sum", len(data.shape), axis)
    return at_least_1d(so.sum(so.square(data), axis=axes, keepdims=keepdims))


def _count_shapes(given: Shapes, found: Shapes, axis: int | None) -> None:
    if given[0] is not None:
        enter(found, 0, (1,) if axis is None else (given[0][0],))


def _counted(given: partial_dtypes.Dtypes, found: partial_dtypes.Dtypes) -> None:
    del given
    found[0] = as_dtype("int32")


@operator("_contrib_getnnz", shapes=_count_shapes, dtypes=_counted)
def getnnz(data: Any, *, axis: int | None = None) -> Any:
    """The number of nonzero entries, of all or of each row; of a csr array, of stored ones."""
    counts = so.cast(so.not_equal(data, 0), dtype="int32")
    return at_least_1d(so.sum(counts, axis=None if axis is None else 1))
