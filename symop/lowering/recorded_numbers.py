"""Numbers that record what a kernel does with them while JAX traces it.

A ``Number`` stands for an attribute of a call. Arithmetic with Python's numbers is Python's, in
double precision; the result is another ``Number``, whose expression can be evaluated for other
attributes. A comparison is answered from the present value and recorded as a test: for attributes
with the same answers, the kernel takes the same path. Where a ``Number`` meets an array, the value
of its expression becomes an operand; where Python needs a float, the attribute is a constant of the
path.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from registry.operator.attributes import identity_key

Expression = tuple[Any, ...]
"""A function of attributes: the name of a function and its arguments, which are expressions."""
_ATTRIBUTE, _CONSTANT = "attribute", "constant"
_ARITHMETIC: Mapping[str, Callable[..., Any]] = {
    **{one: getattr(operator, one) for one in ("add", "sub", "mul", "truediv", "floordiv")},
    **{one: getattr(operator, one) for one in ("mod", "pow", "neg", "abs")},
}
_COMPARISONS: Mapping[str, Callable[..., Any]] = {
    one: getattr(operator, one) for one in ("eq", "ne", "lt", "le", "gt", "ge")
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **_ARITHMETIC,
    **_COMPARISONS,
    "is_integer": float.is_integer,
    "is": lambda one, other: identity_key(one) == identity_key(other),
}
_PLAIN = (float, int, bool)


def attribute_at(place: int) -> Expression:
    """Returns the expression of the attribute at ``place``."""
    return _ATTRIBUTE, place


def is_exactly(place: int, value: Any) -> Expression:
    """Returns the test of the attribute at ``place`` for ``value``, which may be NaN."""
    return "is", attribute_at(place), (_CONSTANT, value)


def places_in(expression: Expression) -> set[int]:
    """Returns the places of the attributes that an expression contains."""
    name, *arguments = expression
    if name == _CONSTANT:
        return set()
    return {arguments[0]} if name == _ATTRIBUTE else set().union(*map(places_in, arguments))


def value_of(expression: Expression, attributes: Sequence[Any]) -> Any:
    """Evaluates an expression as Python does.

    Raises:
        ArithmeticError: The expression has no value, such as a quotient by zero.
    """
    name, *arguments = expression
    if name == _ATTRIBUTE:
        return attributes[arguments[0]]
    if name == _CONSTANT:
        return arguments[0]
    return _FUNCTIONS[name](*[value_of(one, attributes) for one in arguments])


class Record:
    """The operations of a kernel on numbers.

    Attributes:
        tests: The comparisons of numbers and their results, by their keys.
        read: The expressions that meet arrays, by their keys.
        needed: The places of the attributes whose values Python needs.
    """

    def __init__(self, supply: Callable[[Expression], Any]) -> None:
        """Creates an empty record; ``supply`` returns the array that holds an expression."""
        self._supply = supply
        self.tests: dict[Any, tuple[Expression, bool]] = {}
        self.read: dict[Any, Expression] = {}
        self.needed: set[int] = set()

    def number(self, place: int, value: float) -> "Number":
        """Returns the number ``value``, the attribute at ``place``."""
        return Number(self, attribute_at(place), value)

    def array(self, expression: Expression) -> Any:
        """Returns the operand that holds the value of ``expression``."""
        self.read.setdefault(identity_key(expression), expression)
        return self._supply(expression)

    def tested(self, expression: Expression, result: bool) -> bool:
        """Records the result of a test and returns it."""
        self.tests[identity_key(expression)] = expression, result
        return result


def _read(other: Any) -> tuple[Expression, Any] | None:
    """Returns the expression and the value of a number of Python or of a record."""
    if isinstance(other, Number):
        return other._with_value()
    return ((_CONSTANT, other), other) if type(other) in _PLAIN else None


def _unary(name: str) -> Any:
    def method(self: "Number") -> "Number":
        return self._computed(name, self._with_value())

    return method


def _binary(name: str) -> Any:
    def method(self: "Number", other: Any) -> Any:
        right = _read(other)
        if right is None:
            return _ARITHMETIC[name](self.__jax_array__(), other)
        return self._computed(name, self._with_value(), right)

    return method


def _reflected(name: str) -> Any:
    def method(self: "Number", other: Any) -> Any:
        left = _read(other)
        if left is None:
            return _ARITHMETIC[name](other, self.__jax_array__())
        return self._computed(name, left, self._with_value())

    return method


def _comparison(name: str) -> Any:
    def method(self: "Number", other: Any) -> Any:
        right = _read(other)
        if right is None:
            return _COMPARISONS[name](self.__jax_array__(), other)
        expression = name, self._expression, right[0]
        return self._record.tested(expression, _COMPARISONS[name](self._value, right[1]))

    return method


class Number:
    """A number that records what is done with it."""

    __slots__ = ("_expression", "_record", "_value")
    __array_ufunc__ = None  # NumPy leaves its operators to this class
    __hash__ = None  # type: ignore[assignment]  # as for a tracer: a cache must not hold it

    def __init__(self, record: Record, expression: Expression, value: float) -> None:
        """Creates the number ``value``, which is that of ``expression``."""
        self._record, self._expression, self._value = record, expression, value

    def __jax_array__(self) -> Any:
        """Returns the operand that holds the number."""
        return self._record.array(self._expression)

    def __bool__(self) -> bool:
        """Whether the number is not zero."""
        test = "ne", self._expression, (_CONSTANT, 0)
        return self._record.tested(test, self._value != 0)

    def __float__(self) -> float:
        """Returns the value, which is then a constant."""
        self._record.needed |= places_in(self._expression)
        return self._value

    def __int__(self) -> int:
        """Returns the value without its fraction."""
        return int(float(self))

    def __pos__(self) -> "Number":
        """Returns the number."""
        return self

    def is_integer(self) -> bool:
        """Whether the number is an integer."""
        result = self._value.is_integer()
        return self._record.tested(("is_integer", self._expression), result)

    def _computed(self, name: str, *arguments: tuple[Expression, Any]) -> "Number":
        value = _ARITHMETIC[name](*[value for _, value in arguments])
        if type(value) is not float:
            raise TypeError(f"{name} must give a float, got {value!r}")
        return Number(self._record, (name, *[one for one, _ in arguments]), value)

    def _with_value(self) -> tuple[Expression, Any]:
        return self._expression, self._value

    __add__, __radd__ = _binary("add"), _reflected("add")
    __sub__, __rsub__ = _binary("sub"), _reflected("sub")
    __mul__, __rmul__ = _binary("mul"), _reflected("mul")
    __truediv__, __rtruediv__ = _binary("truediv"), _reflected("truediv")
    __floordiv__, __rfloordiv__ = _binary("floordiv"), _reflected("floordiv")
    __mod__, __rmod__ = _binary("mod"), _reflected("mod")
    __pow__, __rpow__ = _binary("pow"), _reflected("pow")
    __neg__, __abs__ = _unary("neg"), _unary("abs")
    __eq__, __ne__ = _comparison("eq"), _comparison("ne")
    __lt__, __le__ = _comparison("lt"), _comparison("le")
    __gt__, __ge__ = _comparison("gt"), _comparison("ge")
