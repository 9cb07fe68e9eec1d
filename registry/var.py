"""Var and Emitter: the interface of values to operator calls and gradient makers.

A ``Var`` is any value other than a plain array that an operator accepts: a node of a graph, a
Symbol, an eager array. Its ``emitter`` defines what calling an operator on it does: build a node or
run a kernel.
"""

import functools
import importlib
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

import jax.numpy as jnp

from registry.errors import ArgumentError, UnknownMemberError, UnknownTypeError, nearest
from registry.foreign_names import known_elsewhere, member_elsewhere
from registry.method_types import OperatorMethods
from registry.tracebacks import hide_frames
from registry.types import DType, Shape, VarKind, VarType

Inputs = tuple[Any, ...]
"""The values in an operator's slots, in order; those of a variadic slot are listed separately."""
Attributes = tuple[Any, ...]
"""The canonical values of an operator's attributes, in declared order."""


class Emitter(Protocol):
    """Defines what calling an operator does for one type of value."""

    def emit(self, operator: Any, inputs: Inputs, attributes: Attributes, name: str | None) -> Any:
        """Returns the operator's result: one value, or a tuple if several outputs are visible."""

    def filled(self, value: bool | int | float | complex, type: VarType) -> Any:
        """Returns a value of ``type`` filled with one number."""


infix: dict[str, Callable[..., Any]] = {}
"""Maps Python's operators to the symop operators that declare them (``@op(infix="+")``)."""


class Operators:
    """Finds the operator behind a fluent method; defined by the table of operators."""

    HOOKS: ClassVar[frozenset[str]] = frozenset({"find", "names"})
    find: ClassVar[Callable[[str], Callable[..., Any] | None]] = infix.get
    names: ClassVar[Callable[[], Iterable[str]]] = infix.keys


Value = TypeVar("Value", bound="Var")
"""A value of any class but a plain array: a symbol, an eager array, a variable of a program."""


def _unary(sign: str) -> Callable[[Value], Value]:
    """Returns the method of Python's unary operator ``sign``."""

    def method(self: Value) -> Value:
        try:
            result: Value = _declared(sign, self)(self)
            return result
        except Exception as error:
            hide_frames(error)
            raise

    return method


def _binary(sign: str, *, swapped: bool = False) -> Callable[[Value, Any], Value]:
    """Returns the method of Python's operator ``sign``; ``swapped`` makes it the reflected one."""

    def method(self: Value, other: Any) -> Value:
        try:
            operator = _declared(sign, self, other)
            result: Value = operator(other, self) if swapped else operator(self, other)
            return result
        except Exception as error:
            hide_frames(error)
            raise

    return method


def _declared(sign: str, *operands: Any) -> Callable[..., Any]:
    operator = infix.get(sign)
    if operator is None:
        kinds = " and ".join(type(one).__name__ for one in operands)
        raise TypeError(f"{sign}: an operator must declare it (infix={sign!r}), got {kinds}")
    return operator


def _unknown_member(kind: type, name: str) -> UnknownMemberError:
    return UnknownMemberError(
        f"{kind.__name__}: no attribute or operator {name!r}",
        name,
        lambda: known_elsewhere(name) or member_elsewhere(name) or _nearest_member(kind, name),
    )


def _nearest_member(kind: type, name: str) -> str:
    """Returns the attributes and operators that are spelled like ``name``, as a suggestion."""
    members = [one for one in dir(kind) if not one.startswith("_")]
    return "" if name.startswith("_") else nearest(name, {*members, *Operators.names()})


class Var(OperatorMethods):
    """A value that operators accept, with Python's operators and every operator as a method."""

    __slots__ = ()
    HOOKS: ClassVar[frozenset[str]] = frozenset({"emitter"})
    emitter: ClassVar[Emitter]
    __array_priority__ = 1000.0
    __array_ufunc__: Any = None

    @property
    def type(self) -> VarType:
        """Shape, dtype and kind.

        Raises:
            UnknownTypeError: they are not yet known.
        """
        raise TypeError(f"{type(self).__name__}: a Var must define its type")

    @property
    def shape(self) -> Shape:
        """Lengths of the axes."""
        try:
            return self.type.shape
        except UnknownTypeError as error:
            hide_frames(error)
            raise

    @property
    def dtype(self) -> DType:
        """Dtype of the entries."""
        try:
            return self.type.dtype
        except UnknownTypeError as error:
            hide_frames(error)
            raise

    @property
    def kind(self) -> VarKind:
        """Variable kind: dense, row-sparse, ..."""
        return self.type.kind

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.type.shape)

    @property
    def size(self) -> int:
        """Number of entries."""
        return self.type.size

    @property
    def constant(self) -> bool | int | float | complex | None:
        """The Python scalar that this value is known to equal, or None."""
        return None

    def applied(self, operator: Any) -> tuple[Inputs, Attributes] | None:
        """Returns inputs and attributes if this unnamed value applies ``operator``, else None."""
        del operator
        return None

    def _method(self, name: str) -> Any:
        """Returns the operator called ``name`` as a method."""
        if not name.startswith("_"):
            operator = Operators.find(name)
            if operator is not None:
                return functools.partial(operator, self)
        error = _unknown_member(type(self), name)
        try:
            raise error
        except UnknownMemberError:
            hide_frames(error)
            raise

    def __dir__(self) -> list[str]:
        """Returns the attributes and every operator, which completion in notebooks offers."""
        return sorted({*super().__dir__(), *Operators.names()})

    if not TYPE_CHECKING:  # type checkers know the methods (``method_types.pyi``), and no others
        __getattr__ = _method

    def __len__(self) -> int:
        if not self.shape:
            raise ArgumentError("len(x): a value of shape () has no axis to count or iterate over")
        return self.shape[0]

    __add__, __radd__ = _binary("+"), _binary("+", swapped=True)
    __sub__, __rsub__ = _binary("-"), _binary("-", swapped=True)
    __mul__, __rmul__ = _binary("*"), _binary("*", swapped=True)
    __truediv__, __rtruediv__ = _binary("/"), _binary("/", swapped=True)
    __floordiv__, __rfloordiv__ = _binary("//"), _binary("//", swapped=True)
    __mod__, __rmod__ = _binary("%"), _binary("%", swapped=True)
    __pow__, __rpow__ = _binary("**"), _binary("**", swapped=True)
    __matmul__, __rmatmul__ = _binary("@"), _binary("@", swapped=True)
    __and__, __rand__ = _binary("&"), _binary("&", swapped=True)
    __or__, __ror__ = _binary("|"), _binary("|", swapped=True)
    __xor__, __rxor__ = _binary("^"), _binary("^", swapped=True)
    __lshift__, __rlshift__ = _binary("<<"), _binary("<<", swapped=True)
    __rshift__, __rrshift__ = _binary(">>"), _binary(">>", swapped=True)
    __lt__, __le__ = _binary("<"), _binary("<=")
    __gt__, __ge__ = _binary(">"), _binary(">=")
    __invert__, __neg__, __abs__ = _unary("~"), _unary("neg"), _unary("abs")

    def __pos__(self) -> Self:
        return self


class _KernelEmitter:
    """Runs the kernel on plain arrays; symop installs an emitter that honors gradient makers."""

    def emit(self, operator: Any, inputs: Inputs, attributes: Attributes, name: str | None) -> Any:
        complete_symop()
        if Arrays.emitter is not self:
            return Arrays.emitter.emit(operator, inputs, attributes, name)
        del name
        result = operator.run(inputs, attributes)
        if operator.single:
            return result
        shown = tuple(result[i] for i in operator.visible)
        return shown[0] if len(shown) == 1 else shown

    def filled(self, value: bool | int | float | complex, type: VarType) -> Any:
        return jnp.full(type.shape, value, type.dtype)


class Arrays:
    """Plain arrays, which are not of a class of symop."""

    HOOKS: ClassVar[frozenset[str]] = frozenset({"emitter"})
    emitter: ClassVar[Emitter] = _KernelEmitter()


def complete_symop() -> None:
    """Loads the rest of symop if it is imported, since ``import symop`` loads it only when used.

    It installs an emitter of arrays and a maker of bodies, and reserves its public names.
    """
    if "symop" in sys.modules:
        importlib.import_module("symop.public")


def emitter_of(values: Inputs) -> Emitter:
    """Returns the emitter of a call on ``values``: that of the first ``Var`` among them."""
    for value in values:
        if isinstance(value, Var):
            return value.emitter
    return Arrays.emitter


def filled(like: Any, value: bool | int | float | complex) -> Any:
    """Returns a value of the shape and dtype of ``like``, filled with one number."""
    if isinstance(like, Var):
        return like.emitter.filled(value, like.type.strong())
    return jnp.full(jnp.shape(like), value, jnp.result_type(like))
