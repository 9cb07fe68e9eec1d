"""Rules of sums, means and norms: their cost is that of the stored entries."""

import functools
from typing import Any

import jax
import jax.numpy as jnp

import symop as so
from symop.interop.mxnet.arrays import NDArray
from symop.interop.mxnet.operators import find
from symop.interop.mxnet.sparse_arrays import (
    BaseSparseNDArray,
    CSRNDArray,
    RowSparseNDArray,
    whole,
)
from symop.interop.mxnet.sparse_parts import row_values
from symop.interop.mxnet.sparse_rows import stored_at, taken
from symop.interop.mxnet.storage import CSR, DEFAULT, ROW_SPARSE, Values, When, rule


def _axis(values: Values, rank: int = 2) -> int | None:
    """The only axis of a reduction, counted from the front; None for all or several."""
    axes: tuple[int, ...] = values["axis"] or ()
    return axes[0] % rank if len(axes) == 1 else None


_OVER_ONE = When(
    "one axis, without keepdims and exclude",
    lambda v: _axis(v) is not None and not v["keepdims"] and not v["exclude"],
)
_ENTIRE = When(
    "ord = 2, all axes", lambda v: v["ord"] == 2 and not v["axis"] and v["out_dtype"] is None
)
_NORM_OVER_ONE = When(
    "ord = 2, one axis, without keepdims",
    lambda v: v["ord"] == 2 and _axis(v) is not None and not v["keepdims"] and not v["out_dtype"],
)


def _summed(x: CSRNDArray, data: Any, axis: int) -> Any:
    """The sums of entries over the rows or over the columns."""
    pattern = x.csr.pattern
    return _added(data, pattern.places if axis == 0 else pattern.rows, x.shape[1 - axis])


@functools.partial(jax.jit, static_argnums=2)
def _added(data: Any, places: Any, length: int) -> jax.Array:
    return jnp.zeros((length,), data.dtype).at[places].add(data, mode="drop")


def _made(value: Any) -> NDArray:
    return NDArray(so.NDArray(value))


@rule("sum", [CSR], DEFAULT, when=_OVER_ONE)
def _sum(x: CSRNDArray, **attributes: Any) -> NDArray:
    """The sums over one axis."""
    return _made(_summed(x, x.csr.data, _axis(attributes) or 0))


@rule("mean", [CSR], DEFAULT, when=_OVER_ONE)
def _mean(x: CSRNDArray, **attributes: Any) -> NDArray:
    """The means over one axis."""
    axis = _axis(attributes) or 0
    total = _summed(x, x.csr.data, axis)
    return _made((total / x.shape[axis]).astype(total.dtype))


@rule("norm", [f"{ROW_SPARSE}|{CSR}"], DEFAULT, when=_ENTIRE, traced=False)
def _norm(x: BaseSparseNDArray, **attributes: Any) -> NDArray:
    """The root of the sum of squares."""
    del attributes
    if isinstance(x, CSRNDArray):
        data = jnp.asarray(x.csr.parts().data)
    else:
        assert isinstance(x, RowSparseNDArray)
        data = jnp.asarray(row_values(x.rows))  # surplus ones need not be zero
    return _made(jnp.sqrt(jnp.sum(jnp.square(data))).reshape(1))


@rule("norm", [CSR], DEFAULT, when=_NORM_OVER_ONE)
def _norm_over(x: CSRNDArray, **attributes: Any) -> NDArray:
    """The roots of the sums of squares over one axis."""
    squares = jnp.square(x.csr.data)
    return _made(jnp.sqrt(_summed(x, squares, _axis(attributes) or 0)))


@rule("_contrib_getnnz", [CSR], DEFAULT)
def _getnnz(x: CSRNDArray, **attributes: Any) -> NDArray:
    """The number of stored entries, of the matrix or of each row."""
    csr = x.csr
    if attributes["axis"] is None:
        return whole(csr.starts[-1:])
    return whole(csr.starts[1:] - csr.starts[:-1])


# Sums of squares -------------------------------------------------------------------------------

_ROW_SUMS = When("axis = 1, keepdims", lambda v: _axis(v) == 1 and v["keepdims"])
_OTHER_SUMS = When(
    "axis = 0, or axis = 1 without keepdims",
    lambda v: _axis(v) == 0 or (_axis(v) == 1 and not v["keepdims"]),
)


@rule("_square_sum", [ROW_SPARSE], ROW_SPARSE, when=_ROW_SUMS, gradients={0: ROW_SPARSE})
@rule("_square_sum", [ROW_SPARSE], DEFAULT, when=_OTHER_SUMS, gradients={0: ROW_SPARSE})
def _square_sum(x: RowSparseNDArray, **attributes: Any) -> NDArray:
    """The sums of the squares of the stored rows."""
    axis, keepdims = _axis(attributes) or 0, bool(attributes["keepdims"])
    if x.is_full or x.ndim != 2:
        found = NDArray(find("_square_sum").function(x.dense(), **attributes))
        sparse = axis == 1 and keepdims
        return RowSparseNDArray(found.inner) if sparse and x.is_full else found
    squares = so.nd.square(taken(x.stored, x.numbers))
    sums = so.nd.sum(squares, axis=axis, keepdims=keepdims)
    if axis == 0:
        return NDArray(sums)
    if keepdims:
        return RowSparseNDArray(stored_at(sums, x.numbers, x.shape[0]))
    return NDArray(so.nd.add_rows(sums, jnp.asarray(x.numbers), height=x.shape[0]))
