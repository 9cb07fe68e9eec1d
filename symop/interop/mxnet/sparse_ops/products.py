"""Rules of ``dot``: products of csr matrices, whose cost is that of the stored entries."""

import functools
from typing import Any

import jax
import jax.numpy as jnp

import symop as so
from registry.values import SelectedRows
from symop.eager.ndarray import array_of as eager
from symop.interop.mxnet.arrays import NDArray
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import find
from symop.interop.mxnet.sparse_arrays import CSRNDArray, RowSparseNDArray, as_stored, wrapped
from symop.interop.mxnet.sparse_ops.elementwise import is_recorded
from symop.interop.mxnet.sparse_parts import Csr
from symop.interop.mxnet.sparse_rows import holds_rows, is_marked, rows_of
from symop.interop.mxnet.storage import CSR, DEFAULT, ROW_SPARSE, Values, When, rule

_ROWS = f"{DEFAULT}|{ROW_SPARSE}"


def _transposes(values: Values) -> tuple[bool, bool]:
    return bool(values["transpose_a"]), bool(values["transpose_b"])


def _asks(values: Values, *stypes: str) -> bool:
    """Whether the storage type that the call asks for, if any, is among ``stypes``."""
    return values.get("forward_stype") in (None, *stypes)


_PLAIN = When("no transposes", lambda v: _transposes(v) == (False, False) and _asks(v, DEFAULT))
_LEFT = When("transpose_a", lambda v: _transposes(v) == (True, False) and _asks(v, ROW_SPARSE))
_LEFT_DENSE = When(
    "transpose_a, forward_stype = default",
    lambda v: _transposes(v) == (True, False) and v.get("forward_stype") == DEFAULT,
)
_INTO_CSR = When("no transposes", lambda v: _transposes(v) == (False, False) and _asks(v, CSR))
_DENSE_CSR = When(
    "forward_stype = default or transpose_b, no transpose_a",
    lambda v: (
        not v["transpose_a"]
        and (v.get("forward_stype") == DEFAULT or (v["transpose_b"] and _asks(v, DEFAULT)))
    ),
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


class _Product(so.autograd.Function):
    """The product of a csr matrix and a table; its gradient stores the rows that columns name."""

    def __init__(self, csr: Csr, *, is_dense: bool) -> None:
        """``is_dense`` tells whether the gradient is dense."""
        super().__init__()
        self._csr, self._is_dense = csr, is_dense

    def forward(self, *inputs: Any) -> Any:
        made = _multiplied(self._csr, inputs[0])
        _ = self._csr.pattern.named  # the host sorts columns while the device multiplies
        return made

    def backward(self, *cotangents: Any) -> Any:
        found = _transposed(self._csr, cotangents[0])
        return so.nd.get_tensor_from_selected_rows(found) if self._is_dense else found


class _Transposed(so.autograd.Function):
    """The product of a transposed csr matrix and a matrix; it stores the rows of its columns."""

    takes_rows = True

    def __init__(self, csr: Csr) -> None:
        super().__init__()
        self._csr = csr

    def forward(self, *inputs: Any) -> Any:
        return _added_up(self._csr, inputs[0])

    def backward(self, *cotangents: Any) -> Any:
        return _product(self._csr, cotangents[0])


def _product(csr: Csr, table: so.NDArray) -> so.NDArray:
    """The product of a csr matrix and a table, dense or row-sparse."""
    if not (so.autograd.is_recording() and table.is_recorded):
        return _multiplied(csr, table)
    # Gradients of what computed the table are dense.
    is_dense = not (holds_rows(table) or is_marked(table))
    result: so.NDArray = _Product(csr, is_dense=is_dense)(table)
    return result


def _transposed(csr: Csr, matrix: so.NDArray) -> so.NDArray:
    """The product of a transposed csr matrix and a dense matrix, row-sparse."""
    if so.autograd.is_recording() and matrix.is_recorded:
        result: so.NDArray = _Transposed(csr)(matrix)
        return result
    return _added_up(csr, matrix)


def _multiplied(csr: Csr, table: so.NDArray) -> so.NDArray:
    pattern, values = csr.pattern, table.value
    if isinstance(values, SelectedRows):
        values, places = rows_of(table, pattern.named.rows), pattern.named.places
    else:
        places = pattern.places
    return eager(_gathered(csr.data, values, pattern.rows, places, pattern.shape[0]))


def _added_up(csr: Csr, matrix: so.NDArray) -> so.NDArray:
    pattern, (rows, places) = csr.pattern, csr.pattern.named
    sums = _gathered(csr.data, matrix.value, places, pattern.rows, len(rows))
    return eager(SelectedRows(rows, sums, pattern.shape[1]))


@functools.partial(jax.jit, static_argnums=4)
def _gathered(data: Any, values: Any, rows: Any, places: Any, height: int) -> jax.Array:
    """The sums of ``data`` times the rows of ``values`` at ``places``, at each of ``rows``."""
    if not values.shape[0]:
        return jnp.zeros((height, values.shape[1]), data.dtype)
    terms = data[:, None] * values.at[places].get(mode="fill", fill_value=0)
    return jnp.zeros((height, values.shape[1]), terms.dtype).at[rows].add(terms, mode="drop")


@rule("dot", [CSR, _ROWS], DEFAULT, when=_PLAIN, gradients={1: ROW_SPARSE}, of_csr=True)
def _csr_dot(x: CSRNDArray, y: NDArray, **attributes: Any) -> NDArray:
    """The product; the gradient of the second factor stores the rows that columns name."""
    del attributes
    _require_matrices(x, y, (x.shape[1], y.shape[0]))
    found = _product(x.csr, _as_matrix(y))
    if is_recorded(x):
        table = y.dense() if isinstance(y, RowSparseNDArray) else _as_matrix(y)
        found = so.nd.add(found, _ToFactor(tuple(found.shape))(x.stored, table))
    return NDArray(found if y.ndim == 2 else found.reshape((x.shape[0],)))


def _as_matrix(y: NDArray) -> so.NDArray:
    return y.stored if y.ndim == 2 else so.nd.reshape(y.dense(), (-1, 1))


@rule("dot", [CSR, _ROWS], DEFAULT, when=_LEFT_DENSE)
@rule("dot", [CSR, _ROWS], ROW_SPARSE, when=_LEFT)
def _csr_transposed_dot(x: CSRNDArray, y: NDArray, **attributes: Any) -> NDArray:
    """The product of the transposed matrix: it stores the rows that columns name."""
    _require_matrices(x, y, (x.shape[0], y.shape[0]))
    sparse = attributes.get("forward_stype") != DEFAULT
    found = _transposed(x.csr, so.nd.reshape(y.dense(), (-1, 1)) if y.ndim == 1 else y.dense())
    if not sparse:
        found = so.nd.get_tensor_from_selected_rows(found)
    if y.ndim == 1:
        return _vector(found, sparse)
    return RowSparseNDArray(found) if sparse else NDArray(found)


def _vector(found: so.NDArray, sparse: bool) -> NDArray:
    """A column as a vector."""
    made = NDArray(so.nd.reshape(wrapped(found).dense(), (-1,)))
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
    rows, columns = map(jnp.asarray, (y.csr.pattern.rows, y.csr.pattern.places))
    rows, columns = (columns, rows) if turned else (rows, columns)
    taken = so.nd.take(so.nd.permute_dims(x.inner, axes=(1, 0)), rows, fill_value=0.0)
    terms = so.nd.multiply(eager(y.csr.data[:, None]), taken)
    found = so.nd.add_rows(terms, columns, height=width)
    return NDArray(so.nd.permute_dims(found, axes=(1, 0)))


@rule("dot", [DEFAULT, DEFAULT], lambda v: str(v["forward_stype"]), when=_ASKED, dense=True)
def _dense_into(x: NDArray, y: NDArray, **attributes: Any) -> NDArray:
    """The product of dense matrices, stored as the call asks."""
    found = find("dot").function(x.inner, y.inner, **attributes)
    return as_stored(NDArray(found), attributes["forward_stype"])
