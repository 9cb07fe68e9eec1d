"""Rules of functions of two arrays or more, entry by entry, with and without broadcasting."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import symop as so
from registry.values import SelectedRows
from symop.eager.ndarray import array_of as eager
from symop.interop.mxnet.arrays import NDArray
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import find
from symop.interop.mxnet.sparse_arrays import (
    CSRNDArray,
    RowSparseNDArray,
)
from symop.interop.mxnet.sparse_parts import Csr, csr_from, row_numbers, rows_from, starts_of
from symop.interop.mxnet.storage import CSR, DEFAULT, EVERY, ROW_SPARSE, rule

_ANY_SPARSE = f"{ROW_SPARSE}|{CSR}"
_ANY = f"{DEFAULT}|{_ANY_SPARSE}"


def on_dense(name: str, *arrays: NDArray, **attributes: Any) -> NDArray:
    """The operator on dense arrays of one shape: its result is dense in MXNet, too."""
    _require_alike(name, arrays)
    return _of_whole(name, *arrays, **attributes)


def _of_whole(name: str, *arrays: NDArray, **attributes: Any) -> NDArray:
    """The operator on dense arrays."""
    found = find(name).function(*[one.dense() for one in arrays], **attributes)
    return NDArray(found[0] if isinstance(found, (tuple, list)) else found)


def _require_alike(name: str, arrays: Any) -> None:
    shapes = [one.shape for one in arrays]
    if not name.startswith("broadcast_") and any(one != shapes[0] for one in shapes):
        raise MXNetError(f"{name}: the arrays must be of one shape, got {shapes}")


# Row-sparse ------------------------------------------------------------------------------------


@rule("elemwise_add", [ROW_SPARSE, ROW_SPARSE], ROW_SPARSE, gradients={0: "same", 1: "same"})
@rule("_grad_add", [ROW_SPARSE, ROW_SPARSE], ROW_SPARSE, gradients={0: "same", 1: "same"})
def _sum(x: RowSparseNDArray, y: RowSparseNDArray, **attributes: Any) -> NDArray:
    """The sum, with the rows of both."""
    del attributes
    _require_alike("elemwise_add", (x, y))
    return RowSparseNDArray(so.nd.add(x.stored, y.stored))


@rule("elemwise_sub", [ROW_SPARSE, ROW_SPARSE], ROW_SPARSE, gradients={0: "same", 1: "same"})
def _difference(x: RowSparseNDArray, y: RowSparseNDArray, **attributes: Any) -> NDArray:
    """The difference, with the rows of both."""
    del attributes
    _require_alike("elemwise_sub", (x, y))
    return RowSparseNDArray(so.nd.subtract(x.stored, y.stored))


@rule(
    "elemwise_mul", [ROW_SPARSE, ROW_SPARSE], ROW_SPARSE, gradients={0: ROW_SPARSE, 1: ROW_SPARSE}
)
@rule("elemwise_mul", [ROW_SPARSE, DEFAULT], ROW_SPARSE, gradients={0: "same", 1: ROW_SPARSE})
@rule("elemwise_mul", [DEFAULT, ROW_SPARSE], ROW_SPARSE, gradients={0: ROW_SPARSE, 1: "same"})
def _product(x: NDArray, y: NDArray, **attributes: Any) -> NDArray:
    """The product, with the rows of the sparse factors."""
    del attributes
    _require_alike("elemwise_mul", (x, y))
    return RowSparseNDArray(so.nd.multiply(x.stored, y.stored))


@rule("add_n", [f"{ROW_SPARSE}*"], ROW_SPARSE, gradients={EVERY: "same"})
def _total(*arrays: RowSparseNDArray, **attributes: Any) -> NDArray:
    """The sum, with the rows of all."""
    del attributes
    _require_alike("add_n", arrays)
    return RowSparseNDArray(so.nd.add_n(*[one.stored for one in arrays]))


@rule("add_n", [f"{DEFAULT}|{ROW_SPARSE}|{CSR}*"], DEFAULT)
def _mixed_total(*arrays: NDArray, **attributes: Any) -> NDArray:
    """The dense sum of arrays of different storage types."""
    return on_dense("add_n", *arrays, **attributes)


def _of_union(name: str, x: RowSparseNDArray, y: RowSparseNDArray, **attributes: Any) -> NDArray:
    """A function that maps two zeros to zero, on the rows of both, not recorded."""
    _require_alike(name, (x, y))
    rows = np.union1d(row_numbers(x.rows), row_numbers(y.rows))
    both = [np.asarray(_at(one, rows)) for one in (x, y)]
    made = applied_pair(name, both, attributes)
    return RowSparseNDArray(eager(rows_from(rows, np.asarray(made), x.shape[0])))


def _at(x: NDArray, rows: np.ndarray) -> Any:
    """Some rows of an array, zeros where they are not stored."""
    if isinstance(x, CSRNDArray):
        return x.csr.rows_at(rows).to_dense()
    value = x.rows if isinstance(x, RowSparseNDArray) else x.inner.value
    host = np.asarray(rows)
    if not isinstance(value, SelectedRows):
        return value[host]
    numbers, values = row_numbers(value), np.asarray(value.values)
    places = np.minimum(np.searchsorted(numbers, host), max(len(numbers) - 1, 0))
    found = np.zeros((len(host), *values.shape[1:]), values.dtype)
    if len(numbers):
        present = numbers[places] == host
        found[present] = values[places[present]]
    return found


def applied_pair(name: str, arrays: Any, attributes: Any) -> Any:
    """The operator of two dense arrays, not recorded."""
    with so.autograd.pause():
        return (
            find(name)
            .function(*[so.NDArray(jnp.asarray(one)) for one in arrays], **attributes)
            .value
        )


@rule("_scatter_elemwise_div", [ROW_SPARSE, _ANY], ROW_SPARSE, traced=False)
def _scattered_quotient(x: RowSparseNDArray, y: NDArray, **attributes: Any) -> NDArray:
    """The quotient in the rows that ``x`` stores."""
    _require_alike("_scatter_elemwise_div", (x, y))
    rows = row_numbers(x.rows)
    made = applied_pair("_scatter_elemwise_div", [_at(x, rows), _at(y, rows)], attributes)
    return RowSparseNDArray(eager(rows_from(rows, np.asarray(made), x.shape[0])))


# Csr -------------------------------------------------------------------------------------------


def _csr_union(name: str, x: CSRNDArray, y: CSRNDArray, **attributes: Any) -> NDArray:
    """A function that maps two zeros to zero, on the positions of both, not recorded."""
    _require_alike(name, (x, y))
    width = max(x.shape[1], 1)
    keys = [_positions(one.csr) for one in (x, y)]
    every = np.union1d(*keys)
    both = []
    for one, own in zip((x, y), keys, strict=True):
        full = np.zeros(len(every), one.dtype)
        full[np.searchsorted(every, own)] = one.parts().data
        both.append(full)
    made = applied_pair(name, both, attributes)
    starts = starts_of(every // width, x.shape[0])
    return CSRNDArray(csr_from(np.asarray(made), every % width, starts, x.shape))


def _positions(csr: Csr) -> np.ndarray:
    """The stored positions as numbers in row-major order."""
    numbers: np.ndarray = (
        csr.pattern.host_rows.astype(np.int64) * max(csr.shape[1], 1) + csr.columns
    )
    return numbers


for _name in ("_maximum", "_minimum", "_hypot"):
    rule(_name, [ROW_SPARSE, ROW_SPARSE], ROW_SPARSE, traced=False)(
        functools.partial(_of_union, _name)
    )
for _name in ("elemwise_add", "elemwise_sub", "elemwise_mul", "_maximum", "_minimum", "_hypot"):
    rule(_name, [CSR, CSR], CSR, traced=False)(functools.partial(_csr_union, _name))
for _name in ("elemwise_add", "elemwise_sub", "_maximum", "_minimum", "_hypot"):
    rule(_name, [_ANY_SPARSE, DEFAULT], DEFAULT)(functools.partial(on_dense, _name))
    rule(_name, [DEFAULT, _ANY_SPARSE], DEFAULT)(functools.partial(on_dense, _name))
for _stypes in (
    [ROW_SPARSE, ROW_SPARSE],
    [CSR, CSR],
    [_ANY_SPARSE, DEFAULT],
    [DEFAULT, _ANY_SPARSE],
):
    rule("elemwise_div", _stypes, DEFAULT)(functools.partial(on_dense, "elemwise_div"))
for _name in ("broadcast_add", "broadcast_sub"):
    rule(_name, [CSR, DEFAULT], DEFAULT)(functools.partial(on_dense, _name))
    rule(_name, [DEFAULT, CSR], DEFAULT)(functools.partial(on_dense, _name))


@functools.partial(jax.jit, static_argnums=0)
def _beside(name: str, data: Any, other: Any, rows: Any, columns: Any) -> Any:
    """The entries of a matrix times, or divided by, those of another that broadcasts to it."""
    rows = rows if other.shape[0] > 1 else jnp.zeros_like(rows)
    columns = columns if other.shape[1] > 1 else jnp.zeros_like(columns)
    own = other.at[rows, columns].get(mode="fill", fill_value=1)
    return data * own if name == "mul" else data / own


def _csr_scaled(name: str, x: CSRNDArray, y: NDArray) -> NDArray:
    """A csr matrix times, or divided by, a dense array that broadcasts to it."""
    other = y.inner.value
    other = other.reshape((1,) * (2 - other.ndim) + other.shape)
    if other.ndim != 2 or any(
        one not in (1, length) for one, length in zip(other.shape, x.shape, strict=True)
    ):
        raise MXNetError(f"broadcast_{name}: {y.shape} must broadcast to {x.shape}")
    data = _beside(
        name, x.csr.data, other.astype(x.dtype), x.csr.pattern.rows, x.csr.pattern.places
    )
    return CSRNDArray(x.csr.with_data(data))


@rule("broadcast_mul", [CSR, DEFAULT], CSR, traced=False)
@rule("elemwise_mul", [CSR, DEFAULT], CSR, traced=False)
def _csr_product(x: CSRNDArray, y: NDArray, **attributes: Any) -> NDArray:
    """The product at the stored positions."""
    del attributes
    return _csr_scaled("mul", x, y)


@rule("elemwise_mul", [DEFAULT, CSR], CSR, traced=False)
def _product_csr(x: NDArray, y: CSRNDArray, **attributes: Any) -> NDArray:
    """The product at the stored positions."""
    del attributes
    return _csr_scaled("mul", y, x)


@rule("broadcast_div", [CSR, DEFAULT], CSR, traced=False)
def _csr_quotient(x: CSRNDArray, y: NDArray, **attributes: Any) -> NDArray:
    """The quotient at the stored positions."""
    del attributes
    return _csr_scaled("div", x, y)


# Layers ----------------------------------------------------------------------------------------

_ROWS = f"{DEFAULT}|{ROW_SPARSE}"
for _stypes in ([DEFAULT, _ROWS, _ROWS], [DEFAULT, ROW_SPARSE]):
    rule("FullyConnected", _stypes, DEFAULT)(functools.partial(_of_whole, "FullyConnected"))
for _name in ("LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput"):
    rule(_name, [DEFAULT, CSR], DEFAULT)(functools.partial(_of_whole, _name))
