"""Python's operators on symbols and fluent methods, with MXNet's names of nodes."""

from collections.abc import Callable
from typing import Any

from registry.caches import memoized
from registry.hooks import define
from symop.interop.mxnet.base import numeric_types
from symop.interop.mxnet.fluent import (
    BINARY,
    COMPARISONS,
    NUMBERS_ONLY,
    fluent_methods,
    split_parts,
)
from symop.interop.mxnet.symbol_making import function_of
from symop.interop.mxnet.symbols import Symbol


@memoized(1024)
def called(name: str) -> Callable[..., Any]:
    """The operator ``name`` on symbols."""
    return function_of(name)


@memoized(64)
def binary(name: str) -> Callable[[Any, Any], Any]:
    """The binary function ``name``; each operand is a symbol or a number."""
    names = BINARY[name]

    def function(lhs: Any, rhs: Any) -> Any:
        for one in (lhs, rhs):
            if not isinstance(one, (Symbol, *numeric_types)):
                raise TypeError(f"{name}: operands must be symbols or numbers, got {type(one)}")
        if isinstance(lhs, Symbol) and isinstance(rhs, Symbol):
            return called(names.symbols)(lhs, rhs)
        if isinstance(lhs, Symbol):
            return called(names.symbol_number)(lhs, scalar=rhs)
        if isinstance(rhs, Symbol):
            return called(names.symbol_swapped or names.symbol_number)(rhs, scalar=lhs)
        return NUMBERS_ONLY[name](lhs, rhs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"``{name}`` of two operands, each a symbol or a number."
    return function


def split_v2(
    ary: Symbol,
    indices_or_sections: int | tuple[int, ...],
    axis: int = 0,
    squeeze_axis: bool = False,
    **others: Any,
) -> Symbol:
    """Splits a symbol along an axis, into equal sections or at the given indices."""
    indices, sections = split_parts(indices_or_sections)
    options = {"axis": axis, "squeeze_axis": squeeze_axis, "sections": sections, **others}
    result: Symbol = called("_split_v2")(ary, indices=indices, **options)
    return result


def reshape(self: Symbol, *shape: Any, **kwargs: Any) -> Any:
    """The symbol in another shape, given as a tuple or as separate lengths."""
    if shape:
        kwargs["shape"] = shape if isinstance(shape[0], int) else shape[0]
    return called("reshape")(self, **kwargs)


def astype(self: Symbol, *args: Any, **kwargs: Any) -> Any:
    """The symbol cast to another dtype."""
    return called("cast")(self, *args, **kwargs)


def __neg__(self: Symbol) -> Any:  # noqa: N807  # it becomes a method
    return binary("multiply")(self, -1.0)


def __abs__(self: Symbol) -> Any:  # noqa: N807
    return called("abs")(self)


def _method(name: str, swapped: bool = False) -> Callable[[Symbol, Any], Any]:
    compute, compares = binary(name), BINARY[name].method in COMPARISONS

    def method(self: Symbol, other: Any) -> Any:
        if compares and not isinstance(other, (Symbol, *numeric_types)):
            return NotImplemented
        return compute(other, self) if swapped else compute(self, other)

    return method


def _methods(name: str, method: str) -> dict[str, Callable[..., Any]]:
    """Returns Python's operators for the binary function ``name``."""
    reflected = {} if method in COMPARISONS else {f"__r{method}__": _method(name, swapped=True)}
    return {f"__{method}__": _method(name), **reflected}


_OWN = {one.__name__: one for one in (split_v2, reshape, astype, __neg__, __abs__)}
define(Symbol, **{**fluent_methods(Symbol, called), **_OWN})
for _name, _names in BINARY.items():
    if _names.method is not None:
        define(Symbol, **_methods(_name, _names.method))
