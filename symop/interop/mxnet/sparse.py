"""MXNet's sparse arrays: CSRArray, and validation of row indices, columns and offsets."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from registry.errors import SymopError
from registry.types import DType, Shape, is_integer
from registry.values import SelectedRows
from symop.interop.mxnet.errors import MXNetError


@dataclasses.dataclass(frozen=True, eq=False)
class CSRArray:
    """A matrix that stores its nonzero entries row by row.

    Attributes:
        data: the entries, of shape ``(n,)``.
        indices: their columns, integers of shape ``(n,)``.
        indptr: the offset in ``data`` of the start of each row and of the end of the last one:
            integers of shape ``(shape[0] + 1,)``, or of shape ``(0,)`` if there are no entries.
        shape: the number of rows and the number of columns.

    Example:
        >>> CSRArray(np.array([5, 7]), np.array([2, 0]), np.array([0, 1, 2]), (2, 3)).todense()
        array([[0, 0, 5],
               [7, 0, 0]])
    """

    data: Any
    indices: Any
    indptr: Any
    shape: Shape

    @property
    def dtype(self) -> DType:
        """The dtype of the entries."""
        dtype: DType = np.dtype(self.data.dtype)
        return dtype

    def todense(self) -> np.ndarray:
        """The dense matrix; the last of several entries at the same position counts, as in MXNet.

        Raises:
            MXNetError: the components are inconsistent.
        """
        csr = checked(self)
        dense = np.zeros(csr.shape, csr.data.dtype)
        dense[_row_of_each(csr), csr.indices] = csr.data
        return dense


class Fault(NamedTuple):
    """An error in a component of a sparse array: in one of its entries, or in its shape."""

    part: str
    place: int | None
    must: str
    got: Any


def rows_fault(rows: np.ndarray, height: int) -> Fault | None:
    """The error if ``rows`` are not valid row indices of an array with ``height`` rows."""
    return _range_fault("indices", rows, height)


def csr_fault(csr: CSRArray) -> Fault | None:
    """The error if the components of ``csr``, NumPy arrays, are inconsistent."""
    data, indices, indptr = csr.data, csr.indices, csr.indptr
    empty = indptr.shape == indices.shape == (0,)  # as in an array that was never written
    if data.ndim != 1:
        return Fault("data", None, "the data must be a list", data.shape)
    if indices.shape != data.shape:
        return Fault("indices", None, f"the indices must have shape {data.shape}", indices.shape)
    if indptr.shape != (csr.shape[0] + 1,) and not empty:
        must = f"the indptr must have shape {(csr.shape[0] + 1,)}"
        return Fault("indptr", None, must, indptr.shape)
    return _range_fault("indices", indices, csr.shape[1]) or _indptr_fault(indptr, len(data))


def _indptr_fault(indptr: np.ndarray, count: int) -> Fault | None:
    if not indptr.size:
        return None
    if indptr[0] != 0:
        return Fault("indptr", 0, "the indptr must start with 0", indptr[0])
    down = indptr[1:] < indptr[:-1]
    if down.any():
        at = int(down.argmax()) + 1
        return Fault(
            "indptr", at, f"the indptr must go on with {indptr[at - 1]} or more", indptr[at]
        )
    if indptr[-1] != count:
        return Fault("indptr", len(indptr) - 1, f"the indptr must end with {count}", indptr[-1])
    return None


def _range_fault(part: str, numbers: np.ndarray, length: int) -> Fault | None:
    outside = (numbers < 0) | (numbers >= length)
    if not outside.any():
        return None
    at = int(outside.argmax())
    return Fault(part, at, f"the {part} must be at least 0 and less than {length}", numbers[at])


def checked(csr: CSRArray) -> CSRArray:
    """``csr`` with its components as NumPy arrays.

    Raises:
        MXNetError: they are inconsistent.
    """
    parts = [np.asarray(one) for one in (csr.data, csr.indices, csr.indptr)]
    result = CSRArray(parts[0], parts[1], parts[2], tuple(int(length) for length in csr.shape))
    if len(result.shape) != 2 or min(result.shape) < 0:
        raise MXNetError(f"CSRArray: the shape must be (rows, columns), got {csr.shape}")
    if any(not is_integer(one.dtype) for one in parts[1:]):
        raise MXNetError(
            "CSRArray: the indices and the indptr must be integers, got "
            f"{parts[1].dtype} and {parts[2].dtype}"
        )
    fault = csr_fault(result)
    if fault is not None:
        raise MXNetError(f"CSRArray: {fault.must}, got {fault.got}")
    return result


def sorted_csr(csr: CSRArray) -> CSRArray:
    """``csr``, checked, with the columns of each row sorted, as MXNet expects."""
    csr = checked(csr)
    rows = _row_of_each(csr)
    order = np.lexsort((csr.indices, rows))
    return CSRArray(csr.data[order], csr.indices[order], csr.indptr, csr.shape)


def _row_of_each(csr: CSRArray) -> np.ndarray:
    """The row of each entry."""
    if not csr.indptr.size:
        return np.zeros(0, np.int64)
    lengths = np.diff(csr.indptr.astype(np.int64))
    return np.repeat(np.arange(csr.shape[0]), lengths)


def merged_rows(some: SelectedRows) -> SelectedRows:
    """``some`` as NumPy arrays, with unique row indices within the array, in ascending order.

    Raises:
        MXNetError: the numbers of rows and values differ, or the rows are not integers.
    """
    rows, values = np.asarray(some.rows), np.asarray(some.values)
    made = SelectedRows(rows, values, int(some.height))
    try:
        _ = made.type
    except SymopError as error:
        raise MXNetError(str(error)) from None
    rows = rows.astype(np.int64)
    inside = (rows >= 0) & (rows < made.height)
    if inside.all() and (rows[1:] > rows[:-1]).all():
        return SelectedRows(rows, values, made.height)
    rows, values = rows[inside], values[inside]
    once, firsts, places = np.unique(rows, return_index=True, return_inverse=True)
    again = np.ones(len(rows), bool)
    again[firsts] = False
    sums = values[firsts]
    np.add.at(sums, places[again], values[again])
    return SelectedRows(once, sums, made.height)
