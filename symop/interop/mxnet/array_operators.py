"""Python's operators on arrays, and the binary functions of ``mx.nd``."""

import operator as python
from collections.abc import Callable
from typing import Any

import numpy as np

import symop as so
from registry.caches import memoized
from registry.errors import SymopError
from registry.hooks import define
from registry.types import is_floating
from symop.interop.mxnet.array_calls import function_of
from symop.interop.mxnet.arrays import NDArray
from symop.interop.mxnet.base import numeric_types
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.fluent import BINARY, COMPARISONS, NUMBERS_ONLY
from symop.interop.mxnet.operators import find
from symop.interop.mxnet.origins import remember
from symop.interop.mxnet.sparse_arrays import assign

_DIRECT = {
    "add": python.add,
    "subtract": python.sub,
    "multiply": python.mul,
    "divide": python.truediv,
}
"""Functions implemented by symop's own operators if all operands share a floating dtype."""
_ELEMENTWISE = {
    "add": "elemwise_add",
    "subtract": "elemwise_sub",
    "multiply": "elemwise_mul",
    "divide": "elemwise_div",
}
"""The operators of operands of one shape, of which one is sparse."""


@memoized(256)
def _called(name: str) -> Callable[..., Any]:
    return function_of(name)


@memoized(64)
def binary(name: str) -> Callable[[Any, Any], Any]:
    """The binary function ``name``; each operand is an array or a number.

    Two arrays are broadcast. The result has the dtype of the arrays.
    """
    names = BINARY[name]

    def function(lhs: Any, rhs: Any) -> Any:
        if isinstance(lhs, NDArray):
            if isinstance(rhs, NDArray):
                if lhs.is_sparse or rhs.is_sparse:
                    return on_stored(name, lhs, rhs)
                return _called(names.arrays)(lhs, rhs)
            _require_number(name, rhs)
            return _called(names.number)(lhs, scalar=float(rhs))
        _require_number(name, lhs)
        if isinstance(rhs, NDArray):
            return _called(names.swapped or names.number)(rhs, scalar=float(lhs))
        _require_number(name, rhs)
        return NUMBERS_ONLY[name](lhs, rhs)

    function.__name__ = function.__qualname__ = name
    return function


def on_stored(name: str, lhs: Any, rhs: Any) -> Any:
    """The binary function ``name`` if an operand is sparse.

    Operands of one shape are not broadcast: their storage types have more rules.
    """
    if isinstance(lhs, NDArray) and isinstance(rhs, NDArray):
        elementwise = _ELEMENTWISE.get(name)
        if elementwise is not None and lhs.shape == rhs.shape:
            return _called(elementwise)(lhs, rhs)
        return _called(BINARY[name].arrays)(lhs, rhs)
    return binary(name)(lhs, rhs)


def _require_number(name: str, operand: Any) -> None:
    if not isinstance(operand, numeric_types):
        raise TypeError(f"{name}: operands must be arrays or numbers, got {type(operand)}")


def _method(name: str, swapped: bool = False) -> Callable[[NDArray, Any], Any]:
    """A Python operator, with a fast path for loops in eager code."""
    compute, direct = binary(name), _DIRECT.get(name)

    def method(self: NDArray, other: Any) -> Any:
        if self.is_sparse or (isinstance(other, NDArray) and other.is_sparse):
            return on_stored(name, other, self) if swapped else on_stored(name, self, other)
        x = self.inner
        y = other.inner if isinstance(other, NDArray) else other
        if direct is not None and is_floating(x.dtype):
            kind = y.__class__
            if kind is float or kind is int or (y is not other and y.dtype == x.dtype):
                try:
                    result = NDArray(direct(y, x) if swapped else direct(x, y))
                except SymopError as error:
                    raise MXNetError(str(error)) from error
                if so.autograd.is_recording():
                    _remember(result, name, self, other, swapped)
                return result
        return compute(other, self) if swapped else compute(self, other)

    return method


def _remember(result: NDArray, name: str, self: NDArray, other: Any, swapped: bool) -> None:
    """Notes how ``result`` was computed by a Python operator."""
    names = BINARY[name]
    if isinstance(other, NDArray):
        pair = (other, self) if swapped else (self, other)
        remember(result, find(names.arrays), {}, pair)
    else:
        number = names.swapped if swapped and names.swapped else names.number
        remember(result, find(number), {"scalar": str(float(other))}, (self,))


def _comparison(name: str) -> Callable[[NDArray, Any], Any]:
    """A comparison operator; it leaves operands other than arrays and numbers to Python."""
    compute = binary(name)

    def method(self: NDArray, other: Any) -> Any:
        if isinstance(other, (NDArray, *numeric_types)):
            return compute(self, other)
        if isinstance(other, np.ndarray):
            raise TypeError(f"{name}: operands must be arrays of mx.nd or numbers, got {other!r}")
        return NotImplemented

    return method


def _in_place(name: str) -> Callable[[NDArray, Any], NDArray]:
    """An in-place operator such as ``x += y``; shape and dtype are kept."""
    compute = _method(name)

    def method(self: NDArray, other: Any) -> NDArray:
        found = compute(self, other)
        if self.is_sparse or found.is_sparse:
            assign(self, found)
        else:
            self.become(found.inner)
        self._origin = getattr(found, "_origin", None)
        return self

    return method


def __neg__(self: NDArray) -> Any:  # noqa: N807  # it becomes a method
    return self * -1.0


def __abs__(self: NDArray) -> Any:  # noqa: N807
    return _called("abs")(self)


def _methods(name: str, method: str) -> dict[str, Callable[..., Any]]:
    """Returns Python's operators for the binary function ``name``."""
    if method in COMPARISONS:
        return {f"__{method}__": _comparison(name)}
    return {
        f"__{method}__": _method(name),
        f"__r{method}__": _method(name, swapped=True),
        f"__i{method}__": _in_place(name),
    }


define(NDArray, __neg__=__neg__, __abs__=__abs__)
for _name, _names in BINARY.items():
    if _names.method is not None:
        define(NDArray, **_methods(_name, _names.method))
