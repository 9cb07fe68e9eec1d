"""Python's operators on symbols and their fluent methods, under MXNet's names for the nodes."""

import functools
from collections.abc import Callable
from typing import Any

from symop.interop.mxnet.base import numeric_types
from symop.interop.mxnet.fluent import BINARY, COMPARISONS, NUMBERS_ONLY, attach, split_parts
from symop.interop.mxnet.symbol import Symbol
from symop.interop.mxnet.symbol_making import function_of
from symop.interop.mxnet.symbol_methods import METHODS, NotImplementedForSymbol

_EAGER = (
    "__bool__", "as_in_context", "asnumpy", "asscalar", "backward", "copy", "detach", "wait_to_read"
)  # fmt: skip


@functools.lru_cache(maxsize=1024)
def called(name: str) -> Callable[..., Any]:
    """The operator ``name`` on symbols."""
    return function_of(name)


@functools.lru_cache(maxsize=64)
def binary(name: str) -> Callable[[Any, Any], Any]:
    """The function ``name`` of two operands, each a symbol or a number."""
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
    """Parts along an axis: as many equal ones, or those that begin where it is told."""
    indices, sections = split_parts(indices_or_sections)
    options = {"axis": axis, "squeeze_axis": squeeze_axis, "sections": sections, **others}
    made: Symbol = called("_split_v2")(ary, indices=indices, **options)
    return made


def reshape(self: Symbol, *shape: Any, **kwargs: Any) -> Any:
    """The entries in another shape, given as a tuple or length by length."""
    if shape:
        kwargs["shape"] = shape if isinstance(shape[0], int) else shape[0]
    return called("reshape")(self, **kwargs)


def astype(self: Symbol, *args: Any, **kwargs: Any) -> Any:
    """The entries in another dtype."""
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


def _refusal(name: str) -> Callable[..., Any]:
    def method(self: Symbol, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedForSymbol(
            f"{name}: it must be asked of an array, got {self!r}, which has no value; use bind"
        )

    return method


def _attach() -> None:
    attach(Symbol, called)
    for method in (split_v2, reshape, astype, __neg__, __abs__, *METHODS):
        setattr(Symbol, method.__name__, method)
    for name, names in BINARY.items():
        if names.method is not None:
            setattr(Symbol, f"__{names.method}__", _method(name))
            if names.method not in COMPARISONS:
                setattr(Symbol, f"__r{names.method}__", _method(name, swapped=True))
    for name in _EAGER:
        setattr(Symbol, name, _refusal(name))


_attach()
