"""MXNet's sparse arrays: CSRArray, and what must hold of row numbers, columns and offsets."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from registry.errors import SymopError
from registry.types import DType, Shape
from registry.values import SelectedRows
from symop.interop.mxnet.errors import MXNetError


@dataclasses.dataclass(frozen=True, eq=False)
class CSRArray:
    """A matrix of which the entries that are not zero are held, row by row.

    Attributes:
        data: the entries, of shape ``(n,)``.
        indices: their columns, integers of shape ``(n,)``.
        indptr: where in ``data`` each row starts, and where the last one ends: integers of shape
            ``(shape[0] + 1,)``; or of shape ``(0,)`` where no entry is held.
        shape: number of rows, number of columns.

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
        """Dtype of the entries."""
        dtype: DType = np.dtype(self.data.dtype)
        return dtype

    def todense(self) -> np.ndarray:
        """The whole matrix; of entries that share a place the last one counts, as in MXNet.

        Raises:
            MXNetError: the parts do not fit together.
        """
        csr = checked(self)
        dense = np.zeros(csr.shape, csr.data.dtype)
        dense[_row_of_each(csr), csr.indices] = csr.data
        return dense


class Fault(NamedTuple):
    """What is wrong with one part of a sparse array: with one of its entries, or with its shape."""

    part: str
    place: int | None
    must: str
    got: Any


def rows_fault(rows: np.ndarray, height: int) -> Fault | None:
    """What keeps ``rows`` from being row numbers of an array that is ``height`` rows tall."""
    return _range_fault("indices", rows, height)


def csr_fault(csr: CSRArray) -> Fault | None:
    """What keeps the parts of ``csr``, NumPy arrays, from fitting together."""
    data, indices, indptr = csr.data, csr.indices, csr.indptr
    empty = indptr.shape == indices.shape == (0,)  # so is one that nothing was written to
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
    """``csr`` with NumPy arrays as its parts.

    Raises:
        MXNetError: they do not fit together.
    """
    parts = [np.asarray(one) for one in (csr.data, csr.indices, csr.indptr)]
    made = CSRArray(parts[0], parts[1], parts[2], tuple(int(length) for length in csr.shape))
    if len(made.shape) != 2 or min(made.shape) < 0:
        raise MXNetError(f"CSRArray: the shape must be (rows, columns), got {csr.shape}")
    if any(one.dtype.kind not in "iu" for one in parts[1:]):
        raise MXNetError(
            "CSRArray: the indices and the indptr must be integers, got "
            f"{parts[1].dtype} and {parts[2].dtype}"
        )
    fault = csr_fault(made)
    if fault is not None:
        raise MXNetError(f"CSRArray: {fault.must}, got {fault.got}")
    return made


def sorted_csr(csr: CSRArray) -> CSRArray:
    """``csr``, checked, with the columns of each row in ascending order, as MXNet expects them."""
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
    """``some`` with NumPy arrays, each row within the array named once, in ascending order.

    Raises:
        MXNetError: there is not one value for each row, or the rows are no integers.
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
