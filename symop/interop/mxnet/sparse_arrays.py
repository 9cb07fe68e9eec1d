"""Sparse arrays of ``mx.nd.sparse``, stored as dense arrays with separate positions of entries.

Operators treat them as dense arrays, and return dense ones. Positions without entries, which MXNet
skips, are computed here.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

import symop as so
from registry.hooks import define
from registry.values import SelectedRows
from symop.interop.mxnet.context import placed
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.ndarray import NDArray, array_of
from symop.interop.mxnet.sparse import CSRArray, checked, merged_rows, sorted_csr

Shape = tuple[int, ...]


class _Sparse(NDArray):
    """An array whose entries are zero except at some positions."""

    __slots__ = ("_places",)
    _places: Any

    def __init__(self, inner: so.NDArray, places: Any = None) -> None:
        """Wraps ``inner``; ``places`` are the stored positions, by default of nonzero entries."""
        super().__init__(inner)
        self._places = places

    @property
    def size(self) -> int:
        """The number of stored entries."""
        return int(self.data.size)

    @property
    def data(self) -> NDArray:
        """The stored entries."""
        raise NotImplementedError

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(index, value)
        self._places = value._places if isinstance(value, _Sparse) else None

    def become(self, found: so.NDArray) -> None:
        """Takes over the value of ``found``."""
        super().become(found)
        self._places = None

    def asscalar(self) -> Any:
        """The only entry."""
        return NDArray(self.inner).asscalar()

    def astype(self, dtype: Any, copy: bool = True) -> NDArray:
        """The array cast to another dtype, with the same positions."""
        return type(self)(super().astype(dtype).inner, self._places)

    def copy(self) -> NDArray:
        """A copy with the same entries and positions."""
        return type(self)(super().copy().inner, self._places)

    def __repr__(self) -> str:
        lengths = "x".join(map(str, self.shape))
        return f"\n<{type(self).__name__} {lengths} @{self.context}>"

    def check_format(self, full_check: bool = True) -> None:
        """Has no effect: inconsistent arrays cannot be created."""


class RowSparseNDArray(_Sparse):
    """An array that stores some rows; the others are zero."""

    __slots__ = ()

    @property
    def stype(self) -> str:
        """``"row_sparse"``."""
        return "row_sparse"

    @property
    def _rows(self) -> np.ndarray:
        if self._places is not None:
            return np.asarray(self._places)
        dense = self.asnumpy()
        return np.flatnonzero(dense.reshape(len(dense), -1).any(axis=1))

    @property
    def indices(self) -> NDArray:
        """The indices of the stored rows."""
        return _whole(self._rows)

    @property
    def data(self) -> NDArray:
        """The stored rows."""
        return NDArray(self.inner[self._rows.astype(np.int32)])

    def retain(self, indices: NDArray) -> "RowSparseNDArray":
        """The array restricted to the rows ``indices``."""
        kept = np.intersect1d(self._rows, indices.asnumpy().astype(np.int64))
        rows = self.inner[kept.astype(np.int32)]
        return row_sparse_of(SelectedRows(kept, rows.value, self.shape[0]))

    def parts(self) -> SelectedRows:
        """The stored rows and their indices."""
        rows = self._rows.astype(np.int64)
        return SelectedRows(rows, self.asnumpy()[rows], self.shape[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return row_sparse_of, (self.parts(),)


class CSRNDArray(_Sparse):
    """A matrix that stores some entries row by row; the others are zero."""

    __slots__ = ()

    @property
    def stype(self) -> str:
        """``"csr"``."""
        return "csr"

    def parts(self) -> CSRArray:
        """The entries, their columns, and the offsets of rows."""
        dense = self.asnumpy()
        if self._places is None:
            rows, columns = np.nonzero(dense)
            starts = np.searchsorted(rows, np.arange(len(dense) + 1))
        else:
            columns, starts = self._places
            rows = np.repeat(np.arange(len(dense)), np.diff(starts))
        return CSRArray(
            dense[rows, columns], columns.astype(np.int64), starts.astype(np.int64), dense.shape
        )

    @property
    def data(self) -> NDArray:
        """The stored entries."""
        return array_of(self.parts().data)

    @property
    def indices(self) -> NDArray:
        """The columns of the stored entries."""
        return _whole(self.parts().indices)

    @property
    def indptr(self) -> NDArray:
        """The offsets of the rows among the stored entries."""
        return _whole(self.parts().indptr)

    def __getitem__(self, index: Any) -> NDArray:
        if isinstance(index, int):
            last = index + 1 or None
            index = slice(index, last)
        if not isinstance(index, slice) or index.step not in (None, 1):
            raise MXNetError(f"CSRNDArray: an index must be a number or a slice, got {index!r}")
        return as_stored(NDArray(self.inner[index]), "csr")

    def asscipy(self) -> Any:
        """The matrix as a SciPy matrix."""
        from scipy.sparse import csr_matrix as of_scipy  # noqa: PLC0415  # it is optional

        some = self.parts()
        return of_scipy((some.data, some.indices, some.indptr), shape=some.shape)

    def __reduce__(self) -> tuple[Any, ...]:
        return csr_of, (self.parts(),)


def _whole(numbers: np.ndarray) -> NDArray:
    return array_of(jnp.asarray(np.asarray(numbers, np.int64)))


def row_sparse_of(some: SelectedRows, context: Any = None) -> RowSparseNDArray:
    """The row-sparse array of the given rows.

    Raises:
        MXNetError: the components are inconsistent.
    """
    made = merged_rows(some)
    dense = np.zeros(made.shape, made.dtype)
    dense[made.rows] = made.values
    return RowSparseNDArray(so.NDArray(placed(jnp.asarray(dense), context)), made.rows)


def csr_of(some: CSRArray, context: Any = None) -> CSRNDArray:
    """The csr matrix of the given components.

    Raises:
        MXNetError: the components are inconsistent.
    """
    made = sorted_csr(checked(some))
    places = made.indices, made.indptr if made.indptr.size else np.zeros(made.shape[0] + 1, int)
    return CSRNDArray(so.NDArray(placed(jnp.asarray(made.todense()), context)), places)


def as_stored(array: NDArray, stype: str) -> NDArray:
    """Converts ``array`` to the storage type ``"default"``, ``"row_sparse"`` or ``"csr"``.

    Raises:
        MXNetError: the storage type is unknown, or a csr array would not have two axes.
    """
    kinds = {"default": NDArray, "row_sparse": RowSparseNDArray, "csr": CSRNDArray}
    if stype not in kinds:
        raise MXNetError(f"stype: it must be one of {', '.join(kinds)}, got {stype!r}")
    if stype == "csr" and array.ndim != 2:
        raise MXNetError(f"stype: a csr array must have two axes, got shape {array.shape}")
    if array.stype == stype:
        return array
    return kinds[stype](so.nd.identity(array.inner.to_dense()))


def _tostype(self: NDArray, stype: str) -> NDArray:
    """The array in another storage type."""
    return as_stored(self, stype)


define(NDArray, tostype=_tostype)  # it makes arrays of classes that derive from it


# Creation --------------------------------------------------------------------------------------


def csr_matrix(arg1: Any, shape: Shape | None = None, ctx: Any = None, dtype: Any = None) -> Any:
    """Creates a csr matrix from ``(data, indices, indptr)``, ``(data, (rows, columns))``, a shape,
    or a matrix.

    Raises:
        MXNetError: the components are inconsistent, or ``shape`` is not that of the matrix.
    """
    if isinstance(arg1, tuple) and len(arg1) == 3:
        data, indices, indptr = _entries(arg1[0], dtype), *map(_numbers, arg1[1:])
        full = shape or (len(indptr) - 1, int(indices.max(initial=-1)) + 1)
        return csr_of(CSRArray(data, indices, indptr, tuple(full)), ctx)
    if isinstance(arg1, tuple) and isinstance(arg1[1], tuple):
        data, (rows, columns) = _entries(arg1[0], dtype), map(_numbers, arg1[1])
        full = shape or (int(rows.max(initial=-1)) + 1, int(columns.max(initial=-1)) + 1)
        dense = np.zeros(full, data.dtype)
        np.add.at(dense, (rows, columns), data)
        return as_stored(array_of(placed(jnp.asarray(dense), ctx)), "csr")
    return _whole_of(arg1, "csr", shape, ctx, dtype)


def row_sparse_array(
    arg1: Any, shape: Shape | None = None, ctx: Any = None, dtype: Any = None
) -> Any:
    """Creates a row-sparse array from ``(data, indices)``, a shape, or an array.

    Raises:
        MXNetError: the components are inconsistent, or ``shape`` is not that of the array.
    """
    if isinstance(arg1, tuple) and len(arg1) == 2 and not isinstance(arg1[0], int):
        data, rows = _entries(arg1[0], dtype), _numbers(arg1[1])
        height = shape[0] if shape else int(rows[-1]) + 1
        return row_sparse_of(SelectedRows(rows, data, height), ctx)
    return _whole_of(arg1, "row_sparse", shape, ctx, dtype)


def _whole_of(given: Any, stype: str, shape: Any, ctx: Any, dtype: Any) -> NDArray:
    """A sparse array from a dense one, a SciPy matrix, or a shape."""
    if isinstance(given, tuple):
        made = array_of(jnp.zeros(given, dtype or np.float32))
    else:
        dense = given.toarray() if hasattr(given, "toarray") else given
        made = array_of(jnp.asarray(_entries(dense, dtype)))
    if shape is not None and tuple(shape) != made.shape:
        raise MXNetError(f"{stype}: the shape must be {made.shape}, got {tuple(shape)}")
    return as_stored(NDArray(so.NDArray(placed(made.value, ctx))), stype)


def _entries(given: Any, dtype: Any) -> np.ndarray:
    own = getattr(given, "dtype", None)
    return np.asarray(given, dtype or (np.float32 if own is None else own))


def _numbers(given: Any) -> np.ndarray:
    return np.asarray(given).astype(np.int64)
