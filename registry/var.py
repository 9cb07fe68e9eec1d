"""Var and Emitter: the interface of values to operator calls and gradient makers.

A ``Var`` is any value other than a plain array that an operator accepts: a node of a graph, a
Symbol, an eager array. Its ``emitter`` defines what calling an operator on it does: build a node or
run a kernel.
"""

import importlib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

import jax.numpy as jnp

from registry.errors import ArgumentError
from registry.foreign_names import known_elsewhere
from registry.method_types import OperatorMethods
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

    HOOKS: ClassVar[frozenset[str]] = frozenset({"find"})
    find: ClassVar[Callable[[str], Callable[..., Any] | None]] = infix.get


Value = TypeVar("Value", bound="Var")
"""A value of any class but a plain array: a symbol, an eager array, a variable of a program."""


def _apply(value: Value, symbol: str, *others: Any, swapped: bool = False) -> Value:
    """Applies one of Python's operators to ``value`` and ``others``, or in the other order."""
    operands = (*others, value) if swapped else (value, *others)
    operator = infix.get(symbol)
    if operator is None:
        kinds = " and ".join(type(one).__name__ for one in operands)
        raise TypeError(f"{symbol}: an operator must declare it (infix={symbol!r}), got {kinds}")
    result: Value = operator(*operands)
    return result


class Var(OperatorMethods):
    """A value that operators accept, with Python's operators and every operator as a method."""

    __slots__ = ()
    HOOKS: ClassVar[frozenset[str]] = frozenset({"emitter"})
    emitter: ClassVar[Emitter]
    __array_priority__ = 1000.0
    __array_ufunc__: ClassVar[Any] = None

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
        return self.type.shape

    @property
    def dtype(self) -> DType:
        """Dtype of the entries."""
        return self.type.dtype

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
                return lambda *args, **kwargs: operator(self, *args, **kwargs)
        hint = known_elsewhere(name)
        raise AttributeError(
            f"{type(self).__name__}: no attribute or operator {name!r}{hint}", name=name
        )

    if not TYPE_CHECKING:  # type checkers know the methods (``method_types.pyi``), and no others
        __getattr__ = _method

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len: a value of shape () has no length")
        return self.shape[0]

    def __bool__(self) -> bool:
        raise ArgumentError(
            f"{type(self).__name__}: the truth of a value that is not computed yet is unknown; "
            "use where(condition, a, b)"
        )

    def __add__(self, other: Any) -> Self:
        return _apply(self, "+", other)

    def __radd__(self, other: Any) -> Self:
        return _apply(self, "+", other, swapped=True)

    def __sub__(self, other: Any) -> Self:
        return _apply(self, "-", other)

    def __rsub__(self, other: Any) -> Self:
        return _apply(self, "-", other, swapped=True)

    def __mul__(self, other: Any) -> Self:
        return _apply(self, "*", other)

    def __rmul__(self, other: Any) -> Self:
        return _apply(self, "*", other, swapped=True)

    def __truediv__(self, other: Any) -> Self:
        return _apply(self, "/", other)

    def __rtruediv__(self, other: Any) -> Self:
        return _apply(self, "/", other, swapped=True)

    def __floordiv__(self, other: Any) -> Self:
        return _apply(self, "//", other)

    def __rfloordiv__(self, other: Any) -> Self:
        return _apply(self, "//", other, swapped=True)

    def __mod__(self, other: Any) -> Self:
        return _apply(self, "%", other)

    def __rmod__(self, other: Any) -> Self:
        return _apply(self, "%", other, swapped=True)

    def __pow__(self, other: Any) -> Self:
        return _apply(self, "**", other)

    def __rpow__(self, other: Any) -> Self:
        return _apply(self, "**", other, swapped=True)

    def __matmul__(self, other: Any) -> Self:
        return _apply(self, "@", other)

    def __rmatmul__(self, other: Any) -> Self:
        return _apply(self, "@", other, swapped=True)

    def __and__(self, other: Any) -> Self:
        return _apply(self, "&", other)

    def __rand__(self, other: Any) -> Self:
        return _apply(self, "&", other, swapped=True)

    def __or__(self, other: Any) -> Self:
        return _apply(self, "|", other)

    def __ror__(self, other: Any) -> Self:
        return _apply(self, "|", other, swapped=True)

    def __xor__(self, other: Any) -> Self:
        return _apply(self, "^", other)

    def __rxor__(self, other: Any) -> Self:
        return _apply(self, "^", other, swapped=True)

    def __lshift__(self, other: Any) -> Self:
        return _apply(self, "<<", other)

    def __rlshift__(self, other: Any) -> Self:
        return _apply(self, "<<", other, swapped=True)

    def __rshift__(self, other: Any) -> Self:
        return _apply(self, ">>", other)

    def __rrshift__(self, other: Any) -> Self:
        return _apply(self, ">>", other, swapped=True)

    def __invert__(self) -> Self:
        return _apply(self, "~")

    def __neg__(self) -> Self:
        return _apply(self, "neg")

    def __pos__(self) -> Self:
        return self

    def __abs__(self) -> Self:
        return _apply(self, "abs")

    def __lt__(self, other: Any) -> Self:
        return _apply(self, "<", other)

    def __le__(self, other: Any) -> Self:
        return _apply(self, "<=", other)

    def __gt__(self, other: Any) -> Self:
        return _apply(self, ">", other)

    def __ge__(self, other: Any) -> Self:
        return _apply(self, ">=", other)


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
