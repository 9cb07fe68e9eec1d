"""Rules of functions of each entry: those that map zero to zero keep the storage type."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

import symop as so
from registry.values import SelectedRows
from symop.eager.ndarray import array_of as eager
from symop.interop.mxnet.arrays import NDArray
from symop.interop.mxnet.operators import find
from symop.interop.mxnet.sparse_arrays import (
    BaseSparseNDArray,
    CSRNDArray,
    RowSparseNDArray,
    recast,
    wrapped,
    zeros_stored,
)
from symop.interop.mxnet.sparse_parts import row_numbers
from symop.interop.mxnet.sparse_rows import stored_at, taken
from symop.interop.mxnet.storage import CSR, DEFAULT, ROW_SPARSE, Values, When, rule

_FLAT = (
    "abs", "ceil", "fix", "floor", "relu", "rint", "round", "sign", "square", "trunc",
)  # fmt: skip
"""Functions whose derivative at zero is zero, too: gradients keep the stored rows."""
_STEEP = (
    "arcsin", "arcsinh", "arctan", "arctanh", "cbrt", "degrees", "expm1", "log1p", "make_loss",
    "radians", "sin", "sinh", "sqrt", "tan", "tanh",
)  # fmt: skip
"""Functions that map zero to zero, whose gradients are dense."""
_DENSE = (
    "arccos", "arccosh", "cos", "cosh", "exp", "gamma", "gammaln", "log", "log10", "log2", "rsqrt",
    "sigmoid",
)  # fmt: skip
"""Functions that do not map zero to zero: their result is dense."""
_LINEAR = ("negative", "_copy", "BlockGrad", "_mul_scalar", "_div_scalar")
"""Linear functions: gradients keep the storage type of the output's gradient."""
_COPIES = ("_copy", "_plus_scalar", "_minus_scalar")
"""Linear functions that copy, as adding zero does."""
_ANY = f"{DEFAULT}|{ROW_SPARSE}|{CSR}"
_SHIFTS = ("_plus_scalar", "_minus_scalar", "_rminus_scalar")
_QUESTIONS: Mapping[str, Callable[[float], bool]] = {
    "_equal_scalar": lambda scalar: scalar != 0,
    "_not_equal_scalar": lambda scalar: scalar == 0,
    "_greater_scalar": lambda scalar: scalar >= 0,
    "_greater_equal_scalar": lambda scalar: scalar > 0,
    "_lesser_scalar": lambda scalar: scalar <= 0,
    "_lesser_equal_scalar": lambda scalar: scalar < 0,
}
"""For which numbers a comparison of zero with the number is false."""


def _answers_false(is_false: Callable[[float], bool], values: Values) -> bool:
    """Whether a comparison of zero with the number of a call is false."""
    return is_false(values["scalar"])


def applied(name: str, array: so.NDArray, attributes: Mapping[str, Any]) -> so.NDArray:
    """The operator ``name`` of a dense eager array."""
    found = find(name).function(array, **attributes)
    result: so.NDArray = found[0] if isinstance(found, (tuple, list)) else found
    return so.nd.identity(result) if result is array else result


def of_entries(name: str, x: CSRNDArray, **attributes: Any) -> NDArray:
    """The function of the stored entries of a csr array."""
    with so.autograd.pause():
        data = applied(name, eager(x.csr.data), attributes).value
    return CSRNDArray(x.csr.with_data(data))


def of_rows(name: str, x: RowSparseNDArray, **attributes: Any) -> NDArray:
    """The function of the stored rows, not recorded."""
    rows = x.rows
    with so.autograd.pause():
        if not isinstance(rows, SelectedRows):
            return RowSparseNDArray(applied(name, eager(rows), attributes))
        own = jnp.asarray(rows.values)
        values = applied(name, eager(own), attributes).value
        if name not in _FLAT and name not in _STEEP:  # it may not map zero to zero
            values = _without_surplus(values, row_numbers(rows).size)
    return RowSparseNDArray(eager(SelectedRows(rows.rows, values, rows.height)))


@jax.jit
def _without_surplus(values: Any, count: Any) -> Any:
    """The first values, and zeros in place of surplus ones."""
    inside = jnp.arange(values.shape[0]) < count
    return jnp.where(inside.reshape(-1, *[1] * (values.ndim - 1)), values, 0)


def is_recorded(x: NDArray) -> bool:
    """Whether a call on ``x`` is recorded for a backward pass."""
    return so.autograd.is_recording() and x.stored.is_recorded


def _flat(name: str, x: RowSparseNDArray, **attributes: Any) -> NDArray:
    """A function of the stored rows whose gradient is zero elsewhere."""
    if not is_recorded(x) or x.is_full:
        return _steep(name, x, **attributes) if x.is_full else of_rows(name, x, **attributes)
    made = applied(name, taken(x.stored, x.numbers), attributes)
    return RowSparseNDArray(stored_at(made, x.numbers, x.shape[0]))


def _steep(name: str, x: RowSparseNDArray, **attributes: Any) -> NDArray:
    """A function of the stored rows; its gradient, and so a recorded call, is dense."""
    if not is_recorded(x):
        return of_rows(name, x, **attributes)
    whole = applied(name, x.dense(), attributes)
    if x.is_full:
        return RowSparseNDArray(whole)
    return RowSparseNDArray(recast(whole, of_rows(name, x, **attributes).stored))


def _linear(name: str, x: RowSparseNDArray, **attributes: Any) -> NDArray:
    """A linear function: a gradient keeps its storage type."""
    if not is_recorded(x):
        return of_rows(name, x, **attributes)
    if name == "BlockGrad":
        return RowSparseNDArray(x.stored.detach())
    if name in _COPIES:
        return x.copy()
    if name == "_div_scalar":
        return wrapped(so.nd.divide(x.stored, attributes["scalar"]))
    factor = attributes["scalar"] if name == "_mul_scalar" else -1.0
    return x.copy() if factor == 1.0 else wrapped(so.nd.multiply(x.stored, factor))


def on_dense(name: str, x: BaseSparseNDArray, **attributes: Any) -> NDArray:
    """The function of all entries, which is dense."""
    return NDArray(applied(name, x.dense(), attributes))


_ZERO = When("scalar = 0", lambda values: values["scalar"] == 0)
_OTHER = When("scalar other than 0", lambda values: values["scalar"] != 0)
for _name in _FLAT:
    rule(_name, [ROW_SPARSE], ROW_SPARSE, gradients={0: ROW_SPARSE})(
        functools.partial(_flat, _name)
    )
for _name in _STEEP:
    rule(_name, [ROW_SPARSE], ROW_SPARSE)(functools.partial(_steep, _name))
for _name in _LINEAR:
    rule(_name, [ROW_SPARSE], ROW_SPARSE, gradients={0: "same"})(functools.partial(_linear, _name))
for _name in _DENSE:
    rule(_name, [f"{ROW_SPARSE}|{CSR}"], DEFAULT)(functools.partial(on_dense, _name))
for _name in (*_FLAT, *_STEEP, *_LINEAR):
    rule(_name, [CSR], CSR, traced=False)(functools.partial(of_entries, _name))
for _name in _SHIFTS:
    rule(_name, [ROW_SPARSE], ROW_SPARSE, when=_ZERO, gradients={0: "same"})(
        functools.partial(_linear, _name)
    )
    rule(_name, [CSR], CSR, when=_ZERO, traced=False)(functools.partial(of_entries, _name))
    rule(_name, [f"{ROW_SPARSE}|{CSR}"], DEFAULT, when=_OTHER)(functools.partial(on_dense, _name))
for _name, _is_false in _QUESTIONS.items():
    _zero_is_false = When("false for 0", functools.partial(_answers_false, _is_false))
    rule(_name, [ROW_SPARSE], ROW_SPARSE, when=_zero_is_false)(functools.partial(of_rows, _name))
    rule(_name, [CSR], CSR, when=_zero_is_false)(functools.partial(of_entries, _name))
for _name in ("_scatter_plus_scalar", "_scatter_minus_scalar", "_contrib_gradientmultiplier"):
    rule(_name, [ROW_SPARSE], ROW_SPARSE, traced=False)(functools.partial(of_rows, _name))
    rule(_name, [CSR], CSR, traced=False)(functools.partial(of_entries, _name))

_KEEPS_ZERO = When("a_min <= 0 <= a_max", lambda values: values["a_min"] <= 0.0 <= values["a_max"])
rule("clip", [ROW_SPARSE], ROW_SPARSE, when=_KEEPS_ZERO)(functools.partial(_steep, "clip"))
rule("clip", [CSR], CSR, when=_KEEPS_ZERO, traced=False)(functools.partial(of_entries, "clip"))
_NO_CONSTANT = When("c = 0", lambda values: values["c"] == 0)
rule("_contrib_quadratic", [CSR], CSR, when=_NO_CONSTANT, traced=False)(
    functools.partial(of_entries, "_contrib_quadratic")
)


@rule("zeros_like", [ROW_SPARSE], ROW_SPARSE)
@rule("zeros_like", [CSR], CSR)
def _zeros_like(x: BaseSparseNDArray, **attributes: Any) -> NDArray:
    """Zeros that store nothing."""
    del attributes
    return zeros_stored(x.stype, x.shape, x.dtype, x.context)


@rule("_identity_with_attr_like_rhs", [ROW_SPARSE, _ANY], ROW_SPARSE, gradients={0: "same"})
@rule("_identity_with_attr_like_rhs", [CSR, _ANY], CSR)
def _like(x: BaseSparseNDArray, y: NDArray, **attributes: Any) -> NDArray:
    """A copy of the first array; the second only tells the shape."""
    del y, attributes
    return x.copy()
