"""Rules of slices, joins, lookups and conversions."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

import symop as so
from symop.eager.ndarray import array_of as eager
from symop.interop.mxnet.arrays import NDArray
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import find
from symop.interop.mxnet.sparse_arrays import CSRNDArray, RowSparseNDArray, as_stored
from symop.interop.mxnet.sparse_ops.elementwise import is_recorded
from symop.interop.mxnet.sparse_parts import csr_from, distinct, named_once, padded_rows, selected
from symop.interop.mxnet.sparse_rows import holds_rows, is_marked, stored_at, taken
from symop.interop.mxnet.storage import CSR, DEFAULT, ROW_SPARSE, Values, When, rule

# Conversions -----------------------------------------------------------------------------------


def _wanted(values: Values) -> str:
    return str(values["stype"])


@rule(
    "cast_storage",
    [f"{DEFAULT}|{ROW_SPARSE}|{CSR}"],
    _wanted,
    when=When("to stype", lambda values: True),
    gradients={0: "same"},
    dense=True,
)
def _cast_storage(x: NDArray, **attributes: Any) -> NDArray:
    """The array in another storage type; only dense arrays become the other sparse one."""
    if x.stype == attributes["stype"] == DEFAULT:
        return NDArray(so.nd.identity(x.inner))
    try:
        return as_stored(x, attributes["stype"])
    except ValueError as error:
        raise MXNetError(str(error)) from None


@rule("_sparse_retain", [ROW_SPARSE, DEFAULT], ROW_SPARSE, gradients={0: ROW_SPARSE})
def _retain(x: RowSparseNDArray, indices: NDArray, **attributes: Any) -> NDArray:
    """The array restricted to some rows."""
    del attributes
    rows = named_once(indices.asnumpy(), x.shape[0])
    if not is_recorded(x):
        return RowSparseNDArray(eager(selected(x.rows, rows)))
    return RowSparseNDArray(stored_at(taken(x.stored, rows), rows, x.shape[0]))


# Slices and joins ------------------------------------------------------------------------------


def _bounds(values: Values, shape: Sequence[int]) -> list[tuple[int, int]]:
    """The start and the end of a slice along each axis."""
    given = zip(values["begin"], values["end"], strict=True)
    found = [slice(*one).indices(length)[:2] for one, length in zip(given, shape, strict=False)]
    return found + [(0, length) for length in shape[len(found) :]]


_STEPLESS = When(
    "without steps", lambda values: all(one in (None, 1) for one in values["step"] or ())
)


@rule("slice", [CSR], CSR, when=_STEPLESS, traced=False)
def _slice(x: CSRNDArray, **attributes: Any) -> NDArray:
    """A block of the matrix."""
    (top, bottom), (left, right) = _bounds(attributes, x.shape)
    if bottom <= top or right <= left:
        raise MXNetError(
            f"slice: something must be left, got {attributes['begin']} to {attributes['end']} of "
            f"{x.shape}"
        )
    csr = x.parts()
    start, end = csr.indptr[top], csr.indptr[bottom]
    columns, data = csr.indices[start:end], csr.data[start:end]
    starts = csr.indptr[top : bottom + 1] - start
    if (left, right) != (0, x.shape[1]):
        inside = (columns >= left) & (columns < right)
        starts = np.concatenate([[0], np.cumsum(inside)])[starts]
        columns, data = columns[inside] - left, data[inside]
    return CSRNDArray(csr_from(data, columns, starts, (bottom - top, right - left)))


_BELOW = When("dim = 0", lambda values: values["dim"] == 0)


@rule("Concat", [f"{CSR}*"], CSR, when=_BELOW, traced=False)
def _concat(*arrays: CSRNDArray, **attributes: Any) -> NDArray:
    """Matrices one below the other."""
    del attributes
    parts = [one.parts() for one in arrays]
    width = arrays[0].shape[1]
    if any(one.shape[1] != width for one in arrays):
        raise MXNetError(f"Concat: the widths must agree, got {[one.shape for one in arrays]}")
    return _joined(parts, width)


def _joined(parts: Sequence[Any], width: int) -> NDArray:
    """Matrices of one width, one below the other."""
    ends = np.cumsum([0, *[len(one.data) for one in parts]])
    starts = [one.indptr[:-1] + end for one, end in zip(parts, ends[:-1], strict=True)]
    return CSRNDArray(
        csr_from(
            np.concatenate([one.data for one in parts]),
            np.concatenate([one.indices for one in parts]),
            np.concatenate([*starts, ends[-1:]]),
            (sum(one.shape[0] for one in parts), width),
        )
    )


# Lookups ---------------------------------------------------------------------------------------

_LEADING = When(
    "axis = 0, mode other than raise", lambda v: v["axis"] == 0 and v["mode"] != "raise"
)


@rule("take", [CSR, DEFAULT], CSR, when=_LEADING, traced=False)
def _take_of_csr(x: CSRNDArray, indices: NDArray, **attributes: Any) -> NDArray:
    """Some rows of the matrix."""
    numbers = indices.asnumpy().astype(np.int64).reshape(-1)
    height = x.shape[0]
    wraps = attributes["mode"] == "wrap"
    rows = numbers % height if wraps else np.clip(numbers, 0, height - 1)
    return CSRNDArray(x.csr.rows_at(rows))


def looked_up(table: NDArray, indices: NDArray, mode: str = "clip") -> NDArray:
    """Rows of a table, whose gradient stores the rows that were looked up."""
    height = table.shape[0]
    ids = indices.asnumpy()
    numbers = ids.astype(np.int64) % height if mode == "wrap" else np.clip(ids, 0, height - 1)
    flat, stored = numbers.astype(np.int64).reshape(-1), table.stored
    if holds_rows(stored) or (so.autograd.is_recording() and is_marked(stored)):
        once, flat = distinct(flat, height)
        stored = taken(stored, padded_rows(once, height))
    places = jnp.asarray(flat.astype(np.int32).reshape(ids.shape))
    return NDArray(so.nd.take(stored, places, fill_value=0.0))


_TABLE = f"{DEFAULT}|{ROW_SPARSE}"
_IS_SPARSE_GRAD = When("sparse_grad", lambda values: bool(values["sparse_grad"]))


@rule("Embedding", [DEFAULT, ROW_SPARSE], DEFAULT)
@rule("_contrib_SparseEmbedding", [DEFAULT, _TABLE], DEFAULT, gradients={1: ROW_SPARSE}, dense=True)
@rule(
    "Embedding",
    [DEFAULT, _TABLE],
    DEFAULT,
    when=_IS_SPARSE_GRAD,
    gradients={1: ROW_SPARSE},
    dense=True,
)
def _embedding(data: NDArray, weight: NDArray, **attributes: Any) -> NDArray:
    """The rows of a table, whose gradient stores these rows if it is to be sparse."""
    del attributes
    return looked_up(weight, data)


@rule("take", [ROW_SPARSE, DEFAULT], DEFAULT, when=_LEADING, gradients={0: ROW_SPARSE})
def _take_of_rows(x: RowSparseNDArray, indices: NDArray, **attributes: Any) -> NDArray:
    """Some rows, whose gradient stores these rows."""
    return looked_up(x, indices, attributes["mode"])


@rule("where", [CSR, DEFAULT, DEFAULT], DEFAULT)
def _where(condition: CSRNDArray, x: NDArray, y: NDArray, **attributes: Any) -> NDArray:
    """Entries of one array where the stored entries of a csr array are nonzero."""
    dense = so.NDArray(condition.csr.to_dense())
    return NDArray(find("where").function(dense, x.inner, y.inner, **attributes))
