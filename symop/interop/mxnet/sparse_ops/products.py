"""Rules of ``dot``: products of csr matrices, whose cost is that of the stored entries."""

from typing import Any

import symop as so
from symop.eager.ndarray import array_of as eager
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.ndarray import NDArray
from symop.interop.mxnet.operators import find
from symop.interop.mxnet.sparse_arrays import CSRNDArray, RowSparseNDArray, as_stored, wrapped
from symop.interop.mxnet.sparse_ops.elementwise import is_recorded
from symop.interop.mxnet.sparse_ops.pairs import whole
from symop.interop.mxnet.sparse_parts import Pattern
from symop.interop.mxnet.sparse_rows import holds_rows, is_marked, stored_at, taken
from symop.interop.mxnet.storage import CSR, DEFAULT, ROW_SPARSE, Values, When, rule

_ROWS = f"{DEFAULT}|{ROW_SPARSE}"


def _transposes(values: Values) -> tuple[bool, bool]:
    return bool(values["transpose_a"]), bool(values["transpose_b"])


def _asks(values: Values, *stypes: str) -> bool:
    """Whether the storage type that the call asks for, if any, is among ``stypes``."""
    return values.get("forward_stype") in (None, *stypes)


_PLAIN = When("no transposes", lambda v: _transposes(v) == (False, False) and _asks(v, DEFAULT))
_LEFT = When(
    "transpose_a", lambda v: _transposes(v) == (True, False) and _asks(v, DEFAULT, ROW_SPARSE)
)
_INTO_CSR = When("no transposes", lambda v: _transposes(v) == (False, False) and _asks(v, CSR))
_DENSE_CSR = When(
    "forward_stype = default, no transpose_a",
    lambda v: not v["transpose_a"] and v.get("forward_stype") == DEFAULT,
)
_ASKED = When("forward_stype is sparse", lambda v: v.get("forward_stype") not in (None, DEFAULT))


def _require_matrices(x: NDArray, y: NDArray, inner: tuple[int, int]) -> None:
    if y.ndim > 2 or inner[0] != inner[1]:
        raise MXNetError(f"dot: the inner lengths must agree, got {x.shape} and {y.shape}")


class _ToFactor(so.autograd.Function):
    """Zeros whose gradient is that of a product with respect to its first factor."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self._shape = shape

    def forward(self, *inputs: Any) -> Any:
        self.save_for_backward(inputs[1])
        return so.nd.zeros(shape=self._shape, dtype=inputs[1].dtype)

    def backward(self, *cotangents: Any) -> Any:
        (table,) = self.saved_tensors
        return so.nd.matmul(cotangents[0], so.nd.permute_dims(table, axes=(1, 0))), None


@rule("dot", [CSR, _ROWS], DEFAULT, when=_PLAIN, gradients={1: ROW_SPARSE}, of_csr=True)
def _csr_dot(x: CSRNDArray, y: NDArray, **attributes: Any) -> NDArray:
    """The product; the gradient of the second factor stores the rows that columns name."""
    del attributes
    _require_matrices(x, y, (x.shape[1], y.shape[0]))
    terms = so.nd.multiply(_column(x), _rows_at(_as_matrix(y), x.csr.pattern))
    found = so.nd.add_rows(terms, x.csr.pattern.rows, height=x.shape[0])
    if is_recorded(x):
        table = y.dense() if isinstance(y, RowSparseNDArray) else _as_matrix(y)
        found = so.nd.add(found, _ToFactor(tuple(found.shape))(x.stored, table))
    return NDArray(found if y.ndim == 2 else found.reshape((x.shape[0],)))


def _as_matrix(y: NDArray) -> so.NDArray:
    return y.stored if y.ndim == 2 else so.nd.reshape(whole(y), (-1, 1))


def _rows_at(table: so.NDArray, pattern: Pattern) -> so.NDArray:
    """The row of a table for each column of a matrix; the gradient stores these rows."""
    if holds_rows(table) or (so.autograd.is_recording() and is_marked(table)):
        table, places = taken(table, pattern.named.rows), pattern.named.places
    else:  # Gradients of what computed the table are dense.
        places = pattern.places
    result: so.NDArray = so.nd.take(table, places, fill_value=0.0)
    return result


def _column(x: CSRNDArray) -> so.NDArray:
    """The stored entries as a column."""
    return eager(x.csr.column())


def _stype_of_transposed(values: Values) -> str:
    return str(values.get("forward_stype") or ROW_SPARSE)


@rule("dot", [CSR, _ROWS], _stype_of_transposed, when=_LEFT)
def _csr_transposed_dot(x: CSRNDArray, y: NDArray, **attributes: Any) -> NDArray:
    """The product of the transposed matrix: it stores the rows that columns name."""
    _require_matrices(x, y, (x.shape[0], y.shape[0]))
    sparse = attributes.get("forward_stype") != DEFAULT
    pattern = x.csr.pattern
    rows = so.nd.take(_as_matrix(y), pattern.rows, fill_value=0.0)
    terms = so.nd.multiply(_column(x), rows)
    if not sparse:
        found = so.nd.add_rows(terms, pattern.places, height=x.shape[1])
    else:
        sums = so.nd.add_rows(terms, pattern.named.places, height=len(pattern.named.rows))
        found = stored_at(sums, pattern.named.rows, x.shape[1])
    if y.ndim == 1:
        return _vector(found, sparse)
    return RowSparseNDArray(found) if sparse else NDArray(found)


def _vector(found: so.NDArray, sparse: bool) -> NDArray:
    """A column as a vector."""
    made = NDArray(so.nd.reshape(whole(wrapped(found)), (-1,)))
    return as_stored(made, ROW_SPARSE) if sparse else made


@rule("dot", [DEFAULT, CSR], CSR, when=_INTO_CSR, traced=False)
def _dot_into_csr(x: NDArray, y: CSRNDArray, **attributes: Any) -> NDArray:
    """The product with a csr matrix on the right, as a csr matrix."""
    return as_stored(_dot_csr(x, y, **attributes), CSR)


@rule("dot", [DEFAULT, CSR], DEFAULT, when=_DENSE_CSR)
def _dot_csr(x: NDArray, y: CSRNDArray, **attributes: Any) -> NDArray:
    """The product with a csr matrix, or its transpose, on the right."""
    turned = attributes["transpose_b"]
    height, width = y.shape[::-1] if turned else y.shape
    _require_matrices(x, y, (x.shape[-1], height))
    rows, columns = y.csr.pattern.rows, y.csr.pattern.places
    rows, columns = (columns, rows) if turned else (rows, columns)
    taken = so.nd.take(so.nd.permute_dims(x.inner, axes=(1, 0)), rows, fill_value=0.0)
    terms = so.nd.multiply(_column(y), taken)
    found = so.nd.add_rows(terms, columns, height=width)
    return NDArray(so.nd.permute_dims(found, axes=(1, 0)))


@rule("dot", [DEFAULT, DEFAULT], lambda v: str(v["forward_stype"]), when=_ASKED, dense=True)
def _dense_into(x: NDArray, y: NDArray, **attributes: Any) -> NDArray:
    """The product of dense matrices, stored as the call asks."""
    found = find("dot").function(x.inner, y.inner, **attributes)
    return as_stored(NDArray(found), attributes["forward_stype"])
