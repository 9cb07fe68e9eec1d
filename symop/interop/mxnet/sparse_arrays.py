"""Sparse arrays of ``mx.nd.sparse``: RowSparseNDArray and CSRNDArray.

A row-sparse array is an eager array of symop that holds ``SelectedRows``, or a dense array if all
rows are stored. A csr array holds its components; an eager array without entries stands for it on
the tape, so that gradients find their way. Code that knows nothing of storage types gets a dense
array, with a warning.
"""

import warnings
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

import symop as so
from registry.hooks import define
from registry.types import DType, VarKind
from registry.values import SelectedRows
from symop.eager.ndarray import array_of as eager
from symop.interop.mxnet.arrays import NDArray, on_device_of, raising
from symop.interop.mxnet.context import Context, context_of, placed
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.sparse import CSRArray
from symop.interop.mxnet.sparse_parts import (
    Csr,
    Rows,
    csr_of_dense,
    merged,
    named_once,
    no_entries,
    no_rows,
    row_numbers,
    row_values,
    rows_of_dense,
    selected,
)
from symop.interop.mxnet.storage import (
    CSR,
    DEFAULT,
    ROW_SPARSE,
    require_stype,
    warn_fallback,
)


class _Recast(so.autograd.Function):
    """The same array in another storage or dtype; its gradient is the cotangent."""

    takes_rows = True

    def __init__(self, made: so.NDArray, dtype: Any) -> None:
        super().__init__()
        self._made, self._dtype = made, dtype

    def forward(self, *inputs: Any) -> Any:
        return self._made

    def backward(self, *cotangents: Any) -> Any:
        (one,) = cotangents
        return one if one.dtype == self._dtype else so.nd.cast(one, dtype=self._dtype)


def recast(source: so.NDArray, made: so.NDArray) -> so.NDArray:
    """``made``, which is ``source`` in another storage, with the gradient of ``source``."""
    if so.autograd.is_recording() and source.is_recorded:
        result: so.NDArray = _Recast(made, source.dtype)(source)
        return result
    return made


class BaseSparseNDArray(NDArray):
    """An array that stores only some entries; the others are zero."""

    __slots__ = ("_fault", "_stored")
    HOOKS = frozenset({"__reduce__", "retain"})
    is_sparse: ClassVar[bool] = True
    _fault: str
    _stored: so.NDArray

    def __init__(self, stored: so.NDArray, fault: str = "") -> None:
        """Wraps an eager array; ``fault`` is what ``check_format`` reports."""
        self._stored, self._fault = stored, fault
        self._base = self._pieces = None

    # Storage

    @property
    def stored(self) -> so.NDArray:
        """The eager array that stands for this one on the tape."""
        return self._stored

    def dense(self) -> so.NDArray:
        """The dense array, recorded if this one is."""
        raise NotImplementedError

    def put(self, source: NDArray) -> None:
        """Takes over the contents of ``source``, which has the same shape."""
        raise NotImplementedError

    def parts(self) -> Any:
        """The components, as NumPy arrays."""
        raise NotImplementedError

    @property
    def inner(self) -> so.NDArray:  # type: ignore[override]
        """The dense array, for code that knows nothing of storage types; it warns."""
        warn_fallback(f"{type(self).__name__}", [self.stype], level=3)
        return self.dense()

    def become(self, found: so.NDArray) -> None:
        """Takes over the value of an eager array, as in ``out=``."""
        self.put(wrapped(found))

    def hold(self, value: Any) -> None:
        """Replaces the value; shape and dtype must not change."""
        assign(self, NDArray(eager(value)))

    def require_changeable(self) -> None:
        """Raises if the array is recorded and thus cannot be changed in place."""
        self._stored._require_changeable("out=")

    def expose(self) -> None:
        """Shows the contents to backward passes, which add to them."""

    def _require_same(self, source: NDArray) -> None:
        if source.shape != self.shape:
            raise MXNetError(f"out: the shape must be {self.shape}, got {source.shape}")
        self.require_changeable()

    # Properties

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return tuple(self._stored.shape)

    @property
    def dtype(self) -> type[np.generic]:
        """The dtype, as a NumPy class."""
        return self._stored.dtype.type

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._stored.ndim

    @property
    def size(self) -> int:
        """The number of stored entries."""
        return int(self.data.size)

    @property
    def data(self) -> NDArray:
        """A copy of the stored entries."""
        raise NotImplementedError

    @property
    def indices(self) -> NDArray:
        """A copy of the indices of the stored rows, or the columns of the stored entries."""
        raise NotImplementedError

    @property
    def _num_aux(self) -> int:
        return {ROW_SPARSE: 1, CSR: 2}[self.stype]

    # Conversion

    @raising
    def asnumpy(self) -> np.ndarray:
        """A copy as a dense NumPy array."""
        return self.dense().asnumpy()

    def asscalar(self) -> Any:
        """The only entry."""
        return NDArray(self.dense()).asscalar()

    @raising
    def wait_to_read(self) -> None:
        """Waits until the value is computed."""
        self._stored.wait_to_read()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.dense().__array__(dtype, copy)

    def __repr__(self) -> str:
        lengths = "x".join(map(str, self.shape))
        return f"\n<{type(self).__name__} {lengths} @{self.context}>"

    def tostype(self, stype: str) -> NDArray:
        """The array in another storage type."""
        return as_stored(self, stype)

    def copy(self) -> NDArray:
        """A copy of the array."""
        return self.astype(self.dtype)

    @raising
    def copyto(self, other: Any) -> Any:
        """Writes the entries to ``other``, an array of any storage type but the other sparse one,
        or copies the array to a context.

        Raises:
            MXNetError: the shapes differ, or the device does not exist.
            TypeError: ``other`` is of the other sparse storage type, or neither array nor context.
        """
        if isinstance(other, Context):
            return moved(self, other)
        if not isinstance(other, NDArray) or {self.stype, other.stype} == {ROW_SPARSE, CSR}:
            raise TypeError(f"copyto: a {self.stype} array is not copied to {other!r:.80}")
        if other is self:
            warnings.warn("copyto: the array is copied to itself", RuntimeWarning, stacklevel=3)
            return False
        assign(other, self)
        return other

    def as_in_context(self, context: Any) -> NDArray:
        """The array on the device ``context``; itself if it is already there."""
        return self if context == self.context else moved(self, context)

    def reshape(self, *shape: Any, **kwargs: Any) -> NDArray:
        """Raises an error: the entries of a sparse array stay in their rows."""
        raise MXNetError(
            f"reshape: the array must be dense, got a {self.stype} array; use tostype('default')"
        )

    def check_format(self, full_check: bool = True) -> None:
        """Checks the indices that the array was made of.

        Args:
            full_check: whether to check their values; those of shapes were checked before.

        Raises:
            MXNetError: they are not ascending, or out of bounds.
        """
        if full_check and self._fault:
            raise MXNetError(f"check_format: {self._fault}")

    def detach(self) -> NDArray:
        """The same value without its recorded history."""
        return self.astype(self.dtype) if not self._stored.is_recorded else self._detached()

    def _detached(self) -> NDArray:
        with so.autograd.pause():
            return self.astype(self.dtype)

    def __setitem__(self, index: Any, value: Any) -> None:
        if index not in (slice(None), Ellipsis):
            raise MXNetError(f"{type(self).__name__}: only x[:] = value is supported")
        if isinstance(value, NDArray):
            if value is not self:
                value.copyto(self)
            return
        if self.stype == CSR and np.ndim(value) == 0:
            raise ValueError("CSRNDArray: an array must be assigned, got a number")
        full = np.broadcast_to(np.asarray(value, self.dtype), self.shape)
        self.put(NDArray(so.NDArray(jnp.asarray(full))))

    def backward(
        self, out_grad: NDArray | None = None, retain_graph: bool = False, train_mode: bool = True
    ) -> None:
        """Calls ``mx.autograd.backward`` on this array."""
        given = None if out_grad is None else out_grad.content()
        self._stored.backward(given, retain_graph, train_mode)


class RowSparseNDArray(BaseSparseNDArray):
    """An array that stores some rows, in ascending order; the others are zero.

    Attributes:
        indices: the indices of the stored rows.
        data: the stored rows.

    Example:
        >>> import symop.interop.mxnet as mx
        >>> x = mx.nd.sparse.row_sparse_array(([[1, 2], [3, 4]], [0, 3]), shape=(5, 2))
        >>> x.indices.asnumpy().tolist(), (x * 2).data.asnumpy().tolist()
        ([0, 3], [[2.0, 4.0], [6.0, 8.0]])
    """

    __slots__ = ()

    @property
    def stype(self) -> str:
        """``"row_sparse"``."""
        return ROW_SPARSE

    @property
    def rows(self) -> Rows:
        """The stored rows, each once, in ascending order, with their numbers on the host.

        A JAX array if all rows are stored.
        """
        value = self._stored.value
        if isinstance(value, SelectedRows) and not isinstance(value.rows, np.ndarray):
            value = merged(value)
            set_value(self._stored, value)
        result: Rows = value
        return result

    @property
    def numbers(self) -> np.ndarray:
        """The numbers of the stored rows, padded as in ``sparse_parts``, if not all are stored."""
        rows = self.rows
        assert isinstance(rows, SelectedRows)
        return np.asarray(rows.rows)

    @property
    def is_full(self) -> bool:
        """Whether all rows are stored."""
        return not isinstance(self.rows, SelectedRows)

    def dense(self) -> so.NDArray:
        """The dense array, recorded if this one is."""
        if self._stored.type.kind is not VarKind.SELECTED_ROWS:
            return self._stored
        result: so.NDArray = so.nd.get_tensor_from_selected_rows(self._stored)
        return result

    def put(self, source: NDArray) -> None:
        """Takes over the contents of ``source``: its stored rows, or the nonzero ones."""
        self._require_same(source)
        found = source.astype(self.dtype) if source.dtype is not self.dtype else source
        if isinstance(found, RowSparseNDArray):
            value: Any = found.rows
        else:
            value = rows_of_dense(found.stored.value)
        self._stored.take_over(eager(value))
        self._fault = ""

    @property
    def context(self) -> Context:
        """The device of the array."""
        value = self._stored.value
        return context_of((value.values if isinstance(value, SelectedRows) else value).device)

    @property
    def indices(self) -> NDArray:
        """A copy of the indices of the stored rows."""
        return whole(row_numbers(self.rows))

    @property
    def data(self) -> NDArray:
        """A copy of the stored rows."""
        return NDArray(so.NDArray(jnp.array(row_values(self.rows))))

    def __getitem__(self, index: Any) -> NDArray:
        if index in (slice(None), Ellipsis):
            return self
        raise MXNetError(
            f"RowSparseNDArray: only x[:] is supported, got {index!r:.80}; use tostype('default')"
        )

    @raising
    def astype(self, dtype: Any, copy: bool = True) -> NDArray:
        """The array cast to another dtype, with the same rows."""
        if not copy and np.dtype(dtype) == self._stored.dtype:
            return self
        if np.dtype(dtype) == self._stored.dtype:
            made = eager(jax.tree.map(lambda one: one, self._stored.value))
        else:
            value, kind = self.rows, np.dtype(dtype)
            cast = value.mapped if isinstance(value, SelectedRows) else lambda f: f(value)
            made = eager(cast(lambda one: jnp.asarray(one).astype(kind)))
        return RowSparseNDArray(recast(self._stored, made), self._fault)

    def restricted(self, rows: np.ndarray) -> "RowSparseNDArray":
        """The array restricted to ``rows``, not recorded."""
        return RowSparseNDArray(eager(selected(self.rows, rows)))

    def parts(self) -> SelectedRows:
        """The stored rows and their indices, as NumPy arrays."""
        rows = self.rows
        values = np.asarray(row_values(rows))
        return SelectedRows(row_numbers(rows).astype(np.int64), values, self.shape[0])


class CSRNDArray(BaseSparseNDArray):
    """A matrix that stores some entries row by row, columns ascending; the others are zero.

    Attributes:
        data: the stored entries.
        indices: their columns.
        indptr: the offsets of the rows among them.

    Example:
        >>> import symop.interop.mxnet as mx
        >>> x = mx.nd.array([[0, 5, 0], [7, 0, 8]]).tostype("csr")
        >>> [one.asnumpy().tolist() for one in (x.data, x.indices, x.indptr)]
        [[5.0, 7.0, 8.0], [1, 0, 2], [0, 1, 3]]
    """

    __slots__ = ("_csr", "_exposed", "_mark")
    _csr: Csr
    _mark: Any
    """The value of the eager array that stands for the components."""

    def __init__(self, csr: Csr, source: so.NDArray | None = None, fault: str = "") -> None:
        """Wraps components; ``source`` is the recorded array that they are the value of."""
        made = eager(no_rows(csr.shape, csr.data.dtype))
        super().__init__(made if source is None else recast(source, made), fault)
        self._csr, self._mark, self._exposed = csr, self._stored.value, False

    @property
    def stype(self) -> str:
        """``"csr"``."""
        return CSR

    @property
    def csr(self) -> Csr:
        """The components.

        Raises:
            MXNetError: the array was made of inconsistent components.
        """
        if self._fault.startswith("indptr"):
            raise MXNetError(f"CSRNDArray: {self._fault}")
        value = self._stored.value
        if value is not self._mark:  # a backward pass has written a gradient
            dense = value.to_dense() if isinstance(value, SelectedRows) else value
            self._csr, self._mark = csr_of_dense(dense), value
        return self._csr

    def _enter(self, csr: Csr) -> None:
        self._csr, self._fault = csr, ""
        self._mark = csr.to_dense() if self._exposed else no_rows(csr.shape, csr.data.dtype)
        self._stored.take_over(eager(self._mark))

    def expose(self) -> None:
        """Shows the contents on the tape as a dense array, to which a gradient can be added."""
        csr, self._exposed = self.csr, True
        self._enter(csr)

    def dense(self) -> so.NDArray:
        """The dense array, recorded if this one is."""
        return recast(self._stored, eager(self.csr.to_dense()))

    def content(self) -> so.NDArray:
        """The dense array: that on the tape only stands for the components."""
        return self.dense()

    def put(self, source: NDArray) -> None:
        """Takes over the contents of ``source``: its stored entries, or the nonzero ones."""
        self._require_same(source)
        found = source.astype(self.dtype) if source.dtype is not self.dtype else source
        self._enter(found.csr if isinstance(found, CSRNDArray) else csr_of_dense(found.asnumpy()))

    @property
    def context(self) -> Context:
        """The device of the array."""
        return context_of(self._csr.data.device)

    @property
    def data(self) -> NDArray:
        """A copy of the stored entries."""
        return NDArray(so.NDArray(jnp.asarray(self.csr.parts().data)))

    @property
    def indices(self) -> NDArray:
        """The columns of the stored entries; changes of the array do not reach the matrix."""
        pattern = self.csr.pattern
        made = NDArray(so.NDArray(pattern.columns_of(_index_dtype())))
        made._columns = made.value, pattern  # for rows_named
        return made

    @property
    def indptr(self) -> NDArray:
        """A copy of the offsets of the rows among the stored entries."""
        return whole(self.csr.starts)

    def __getitem__(self, index: Any) -> NDArray:
        if isinstance(index, (int, np.integer)):
            start = int(index) % self.shape[0] if -self.shape[0] <= index < self.shape[0] else -1
            if start < 0:
                raise MXNetError(
                    f"CSRNDArray: the index must be below {self.shape[0]}, got {index}"
                )
            begin, end = start, start + 1
        elif isinstance(index, slice) and index.step in (None, 1):
            begin, end, _ = index.indices(self.shape[0])
        else:
            raise MXNetError(f"CSRNDArray: an index must be a number or a slice, got {index!r}")
        if (begin, end) == (0, self.shape[0]) and isinstance(index, slice):
            return self
        result: NDArray = self.slice(begin=(begin,), end=(end,))
        return result

    @raising
    def astype(self, dtype: Any, copy: bool = True) -> NDArray:
        """The array cast to another dtype, with the same positions."""
        if not copy and np.dtype(dtype) == self._stored.dtype:
            return self
        csr = self.csr
        return CSRNDArray(csr.with_data(csr.data.astype(np.dtype(dtype))), self._stored)

    def asscipy(self) -> Any:
        """The matrix as a SciPy matrix."""
        from scipy.sparse import csr_matrix as of_scipy  # noqa: PLC0415  # it is optional

        some = self.parts()
        return of_scipy((some.data, some.indices, some.indptr), shape=some.shape)

    def parts(self) -> CSRArray:
        """The entries, their columns, and the offsets of rows, as NumPy arrays."""
        return self.csr.parts()


def rows_named(numbers: NDArray, height: int) -> np.ndarray:
    """The rows of an array of this height that ``numbers`` name, as ``named_once`` has them."""
    told = getattr(numbers, "_columns", None)
    if told is not None and told[0] is numbers.value and told[1].shape[1] == height:
        rows: np.ndarray = told[1].named.rows
        return rows
    return named_once(numbers.asnumpy().ravel(), height)


# Conversion ------------------------------------------------------------------------------------


def set_value(array: so.NDArray, value: Any) -> None:
    """Replaces the value of an array by an equal one in another form; its record stays."""
    array._value, array._type = value, None


def _index_dtype() -> DType:
    """The dtype of indices: int64, or int32 without JAX's 64-bit mode."""
    wide: bool = jax.config.jax_enable_x64  # type: ignore[attr-defined]
    return np.dtype(np.int64 if wide else np.int32)


def whole(numbers: np.ndarray) -> NDArray:
    """Indices as an array."""
    return NDArray(so.NDArray(jax.device_put(np.array(numbers, _index_dtype()))))


def wrapped(stored: so.NDArray) -> NDArray:
    """An eager array as an array of MXNet: row-sparse if it holds rows."""
    rows = stored.type.kind is VarKind.SELECTED_ROWS
    return RowSparseNDArray(stored) if rows else NDArray(stored)


def as_stored(array: NDArray, stype: str) -> NDArray:
    """Converts ``array`` to the storage type ``"default"``, ``"row_sparse"`` or ``"csr"``.

    Raises:
        MXNetError: the storage type is unknown.
        ValueError: a csr array would not have two axes, or a sparse array has the other sparse
            storage type.
    """
    require_stype("tostype", stype)
    if array.stype == stype:
        return array.copy() if array.is_sparse else array
    if isinstance(array, BaseSparseNDArray):
        if stype == DEFAULT:
            return NDArray(array.dense())
        raise ValueError(f"tostype: a {array.stype} array does not become {stype}")
    if stype == CSR and array.ndim != 2:
        raise NotAMatrixError(f"stype: a csr array must have two axes, got shape {array.shape}")
    source = array.stored
    if stype == CSR:
        return CSRNDArray(csr_of_dense(source.value), source)
    return RowSparseNDArray(recast(source, eager(rows_of_dense(source.value))))


class NotAMatrixError(MXNetError, ValueError):
    """An array of which no csr array can be made."""


def assign(place: NDArray, source: NDArray) -> None:
    """Writes ``source`` to ``place``, whatever their storage types and devices."""
    source = on_device_of(place, source)
    if isinstance(place, BaseSparseNDArray):
        place.put(source)
    else:
        place.become(so.nd.identity(source.dense()))  # become() consumes a value


def moved(array: BaseSparseNDArray, context: Any) -> NDArray:
    """A copy on another device."""
    if isinstance(array, CSRNDArray):
        return CSRNDArray(array.csr.with_data(placed(array.csr.data, context)))
    assert isinstance(array, RowSparseNDArray)
    rows = array.rows
    if isinstance(rows, SelectedRows):
        return RowSparseNDArray(eager(rows.mapped(lambda one: placed(jnp.array(one), context))))
    return RowSparseNDArray(eager(placed(jnp.array(rows), context)))


def zeros_stored(stype: str, shape: tuple[int, ...], dtype: Any, context: Any = None) -> NDArray:
    """Zeros that store nothing, or dense ones.

    Raises:
        MXNetError: the storage type is unknown.
        ValueError: a csr array would not have two axes.
    """
    if stype == CSR:
        if len(shape) != 2:
            raise NotAMatrixError(f"stype: a csr array must have two axes, got shape {shape}")
        return moved(CSRNDArray(no_entries(shape, dtype)), context)
    if stype == ROW_SPARSE:
        rows = no_rows(shape, dtype)
        return RowSparseNDArray(eager(rows.mapped(lambda one: placed(one, context))))
    require_stype("zeros", stype)
    return NDArray(so.NDArray(placed(jnp.zeros(shape, dtype), context)))


def _gradient_like(self: NDArray, stype: str) -> NDArray:
    """Zeros for the gradient of the array, in a storage type."""
    return zeros_stored(stype, self.shape, self.dtype, self.context)


def _tostype(self: NDArray, stype: str) -> NDArray:
    """The array in another storage type."""
    return as_stored(self, stype)


define(NDArray, tostype=_tostype, gradient_like=_gradient_like)  # of classes that derive from it
