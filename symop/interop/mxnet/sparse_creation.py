"""Functions that create sparse arrays: ``csr_matrix``, ``row_sparse_array``, and others."""

from typing import Any

import jax
import numpy as np

from registry.hooks import define
from registry.types import is_integer
from registry.values import SelectedRows
from symop.eager.ndarray import array_of as eager
from symop.interop.mxnet.arrays import NDArray
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.sparse import CSRArray, merged_rows
from symop.interop.mxnet.sparse_arrays import (
    BaseSparseNDArray,
    CSRNDArray,
    RowSparseNDArray,
    moved,
    zeros_stored,
)
from symop.interop.mxnet.sparse_parts import (
    csr_from,
    csr_of_dense,
    no_entries,
    rows_from,
    starts_of,
)
from symop.interop.mxnet.sparse_parts import rows_of_dense as _rows_of_dense
from symop.interop.mxnet.storage import CSR, NUMBERS, ROW_SPARSE

Shape = tuple[int, ...]


class ShapeMismatchError(MXNetError, ValueError):
    """A shape that is not that of the given array."""


def _shape(given: Any) -> Shape | None:
    if given is None:
        return None
    return tuple(int(length) for length in ([given] if isinstance(given, int) else given))


def _require_shape(found: Shape, given: Any) -> None:
    wanted = _shape(given)
    if wanted is not None and wanted != tuple(found):
        raise ShapeMismatchError(f"sparse array: the shape must be {tuple(found)}, got {wanted}")


def _is_shape(given: Any) -> bool:
    return isinstance(given, (tuple, list)) and all(
        isinstance(one, (int, np.integer)) and not isinstance(one, bool) for one in given
    )


def _entries(given: Any, dtype: Any) -> np.ndarray:
    """Entries on the host; lists become float32."""
    own = getattr(given, "dtype", None)
    host = given.asnumpy() if isinstance(given, NDArray) else np.asarray(given)
    kind = dtype or (np.float32 if own is None else own)
    return host.astype(jax.dtypes.canonicalize_dtype(np.dtype(kind)), copy=False)


def _numbers(given: Any) -> np.ndarray:
    host = given.asnumpy() if isinstance(given, NDArray) else np.asarray(given)
    return host.astype(np.int64).reshape(-1)


def _on(array: Any, ctx: Any) -> Any:
    return array if ctx is None else moved(array, ctx)


# Row-sparse ------------------------------------------------------------------------------------


def row_sparse_array(
    arg1: Any, shape: Any = None, ctx: Any = None, dtype: Any = None
) -> RowSparseNDArray:
    """Creates a row-sparse array from ``(data, indices)``, a shape, or an array.

    Rows that are not ascending are sorted, and reported by ``check_format``.

    Raises:
        MXNetError: the components are inconsistent.
        ValueError: ``shape`` is not that of the array.
    """
    if isinstance(arg1, RowSparseNDArray):
        _require_shape(arg1.shape, shape)
        made: Any = arg1.astype(dtype or arg1.dtype)
    elif _is_shape(arg1) and isinstance(arg1, tuple):
        _require_shape(_shape(arg1) or (), shape)
        made = zeros_stored(ROW_SPARSE, _shape(arg1) or (), dtype or np.float32)
    elif isinstance(arg1, tuple) and len(arg1) == 2:
        made = _of_rows(_entries(arg1[0], dtype), _numbers(arg1[1]), _shape(shape))
    else:
        host = _entries(arg1, dtype)
        _require_shape(host.shape, shape)
        made = RowSparseNDArray(eager(_rows_of_dense(host)))
    result: RowSparseNDArray = _on(made, ctx)
    return result


def _of_rows(data: np.ndarray, rows: np.ndarray, shape: Shape | None) -> RowSparseNDArray:
    if shape is None:
        if not len(rows):
            raise ValueError("row_sparse_array: a shape must be given for no rows, got none")
        shape = (int(rows.max()) + 1, *data.shape[1:])
    if data.ndim <= 1 and not data.size:
        data = data.reshape(0, *shape[1:])
    if data.shape != (len(rows), *shape[1:]):
        raise MXNetError(
            f"row_sparse_array: the data must be of shape {(len(rows), *shape[1:])}, got "
            f"{data.shape}"
        )
    return row_sparse_of(SelectedRows(rows, data, shape[0]))


def row_sparse_of(some: SelectedRows, context: Any = None) -> RowSparseNDArray:
    """The row-sparse array of the given rows.

    Raises:
        MXNetError: the components are inconsistent.
    """
    made = merged_rows(some)
    rows = np.asarray(some.rows)
    fault = ""
    if len(rows) and (rows.min() < 0 or rows.max() >= some.height):
        fault = f"indices must be at least 0 and less than {some.height}"
    elif not (rows[1:] > rows[:-1]).all():
        fault = "indices must be ascending"
    found = rows_from(made.rows, made.values, made.height)
    result: RowSparseNDArray = _on(RowSparseNDArray(eager(found), fault), context)
    return result


# Csr -------------------------------------------------------------------------------------------


def csr_matrix(arg1: Any, shape: Any = None, ctx: Any = None, dtype: Any = None) -> CSRNDArray:
    """Creates a csr matrix from ``(data, indices, indptr)``, ``(data, (rows, columns))``, a shape,
    a SciPy matrix or an array.

    Columns that are not ascending are sorted, and reported by ``check_format``.

    Raises:
        MXNetError: the components are inconsistent.
        ValueError: ``shape`` is not that of the matrix.
    """
    if isinstance(arg1, CSRNDArray):
        _require_shape(arg1.shape, shape)
        made: Any = arg1.astype(dtype or arg1.dtype)
    elif _is_shape(arg1) and len(arg1) == 2:
        _require_shape(_shape(arg1) or (), shape)
        made = zeros_stored(CSR, _shape(arg1) or (), dtype or np.float32)
    elif isinstance(arg1, tuple) and len(arg1) == 3:
        data, columns, starts = _entries(arg1[0], dtype), *map(_numbers, arg1[1:])
        if shape is None and not len(columns):
            raise ValueError("csr_matrix: a shape must be given for no entries, got none")
        full = _shape(shape) or (len(starts) - 1, int(columns.max(initial=-1)) + 1)
        made = csr_of(CSRArray(data, columns, starts, full))
    elif isinstance(arg1, tuple) and len(arg1) == 2 and isinstance(arg1[1], tuple):
        rows, columns = map(_numbers, arg1[1])
        made = _of_coordinates(_entries(arg1[0], dtype), rows, columns, _shape(shape))
    elif hasattr(arg1, "tocsr"):
        made = _of_scipy(arg1, shape, dtype)
    else:
        host = _entries(arg1, dtype)
        _require_shape(host.shape, shape)
        if host.ndim != 2:
            raise ValueError(f"csr_matrix: an array must have two axes, got shape {host.shape}")
        made = CSRNDArray(csr_of_dense(host))
    result: CSRNDArray = _on(made, ctx)
    return result


def _of_scipy(matrix: Any, shape: Any, dtype: Any) -> CSRNDArray:
    own = matrix.tocsr()
    if not own.has_canonical_format:
        own = own.copy()
        own.sum_duplicates()
    _require_shape(own.shape, shape)
    parts = _entries(own.data, dtype), own.indices, own.indptr, own.shape
    return CSRNDArray(csr_from(*parts))


def _of_coordinates(
    data: np.ndarray, rows: np.ndarray, columns: np.ndarray, shape: Shape | None
) -> CSRNDArray:
    """The matrix with ``data`` at the given positions; entries at one position are added."""
    full = shape or (int(rows.max(initial=-1)) + 1, int(columns.max(initial=-1)) + 1)
    if len(rows) and (
        min(rows.min(), columns.min()) < 0 or rows.max() >= full[0] or columns.max() >= full[1]
    ):
        raise MXNetError(f"csr_matrix: the positions must be within {full}, got others")
    flat, places = np.unique(rows * full[1] + columns, return_inverse=True)
    sums = np.zeros(len(flat), data.dtype)
    np.add.at(sums, places, data)
    starts = starts_of(flat // max(full[1], 1), full[0])
    return CSRNDArray(csr_from(sums, flat % max(full[1], 1), starts, full))


def csr_of(some: CSRArray, context: Any = None) -> CSRNDArray:
    """The csr matrix of the given components.

    Inconsistent offsets and columns are reported by ``check_format`` and whatever reads the matrix.

    Raises:
        MXNetError: the components are not lists of integers of the right lengths.
    """
    data, columns, starts = (np.asarray(one) for one in (some.data, some.indices, some.indptr))
    height, width = (int(length) for length in some.shape)
    _require_lists(data, columns, starts, height)
    if not len(starts):
        starts = np.zeros(height + 1, np.int64)
    fault = _fault_of(columns, starts, width)
    if fault.startswith("indptr"):
        made = CSRNDArray(no_entries((height, width), data.dtype), fault=fault)
    else:
        order = np.lexsort((columns, np.repeat(np.arange(height), np.diff(starts))))
        made = CSRNDArray(
            csr_from(data[order], columns[order], starts, (height, width)), fault=fault
        )
    result: CSRNDArray = _on(made, context)
    return result


def _require_lists(data: Any, columns: Any, starts: Any, height: int) -> None:
    if not all(is_integer(one.dtype) for one in (columns, starts)):
        raise MXNetError(
            f"CSRArray: the indices and the indptr must be integers, got {columns.dtype} and "
            f"{starts.dtype}"
        )
    empty = not len(starts) and not len(columns)
    if data.ndim != 1 or columns.shape != data.shape:
        raise MXNetError(
            f"CSRArray: the indices must be of shape {data.shape}, got {columns.shape}"
        )
    if starts.shape != (height + 1,) and not empty:
        raise MXNetError(
            f"CSRArray: the indptr must be of shape {(height + 1,)}, got {starts.shape}"
        )


def _fault_of(columns: np.ndarray, starts: np.ndarray, width: int) -> str:
    """The error that ``check_format`` reports."""
    if starts[0] != 0 or (np.diff(starts) < 0).any() or starts[-1] != len(columns):
        return f"indptr must ascend from 0 to {len(columns)}, the number of entries"
    if len(columns) and (columns.min() < 0 or columns.max() >= width):
        return f"indptr and indices must be within the shape: columns below {width}"
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    within = rows[1:] == rows[:-1]
    if (columns[1:] <= columns[:-1])[within].any():
        return "indices must be ascending within each row"
    return ""


def _reduce_rows(self: RowSparseNDArray) -> tuple[Any, ...]:
    return row_sparse_of, (self.parts(),)


def _reduce_csr(self: CSRNDArray) -> tuple[Any, ...]:
    return csr_of, (self.parts(),)


define(RowSparseNDArray, __reduce__=_reduce_rows)
define(CSRNDArray, __reduce__=_reduce_csr)

# Any -------------------------------------------------------------------------------------------


def array(source_array: Any, ctx: Any = None, dtype: Any = None) -> BaseSparseNDArray:
    """A copy of a sparse array of ``mx.nd`` or of SciPy, in the same storage type.

    Raises:
        ValueError: it is not a sparse array.
    """
    if isinstance(source_array, RowSparseNDArray):
        return row_sparse_array(source_array, ctx=ctx, dtype=dtype)
    if isinstance(source_array, CSRNDArray) or hasattr(source_array, "tocsr"):
        return csr_matrix(source_array, ctx=ctx, dtype=dtype)
    raise ValueError(
        f"array: a sparse array must be given, got {type(source_array).__name__}; use mx.nd.array"
    )


def zeros(stype: str, shape: Any, ctx: Any = None, dtype: Any = None, **others: Any) -> NDArray:
    """Zeros in the storage type ``stype``.

    Raises:
        ValueError: the storage type is unknown.
    """
    del others
    if stype not in NUMBERS:
        raise ValueError(f"zeros: stype must be one of {', '.join(NUMBERS)}, got {stype!r}")
    kind = np.float32 if dtype is None else np.dtype(dtype)
    return zeros_stored(stype, _shape(shape) or (), jax.dtypes.canonicalize_dtype(kind), ctx)


empty = zeros
