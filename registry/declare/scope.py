"""Scope: the values of names while the OpDescs of a gradient are interpreted."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from registry.desc import OpDesc
from registry.errors import GradientError, nearest
from registry.naming import EMPTY, GRAD, grad_name
from registry.operator.operator import Operator
from registry.operator.recorder import (
    arguments_of,
    attributes_of,
    named_results,
    outputs_of,
    slots_of,
)
from registry.types import is_complex
from registry.var import filled


def undefined(owner: str, name: str, known: Iterable[str]) -> GradientError:
    """Returns the error for a name that nothing defines."""
    return GradientError(
        f"{owner}: its gradient maker must use variables of the forward operator or temporaries "
        f"that it defines before, got {name!r}{nearest(name, known)}"
    )


def not_of_an_input(owner: str, name: str, inputs: Iterable[str]) -> GradientError:
    """Returns the error for the gradient of a value that is not an input."""
    return GradientError(
        f"{owner}: its gradient maker must give gradients of inputs, got {name!r}"
        f"{nearest(name, map(grad_name, inputs))}"
    )


class AbsentCotangent:
    """An absent cotangent: a zero, created when it is read."""

    def __init__(self, like: Any) -> None:
        """Represents a zero of the type of ``like``."""
        self.like = like

    def zero(self) -> Any:
        """Returns the zero."""
        return filled(self.like, 0j if is_complex(self.like.dtype) else 0.0)


class Namespace:
    """The values of names."""

    def __init__(self, owner: str, values: dict[str, Any], find: Callable[[str], Operator]) -> None:
        """Starts with the variables of the forward operator called ``owner``."""
        self._owner, self._values, self._find = owner, values, find
        self._variables = set(values)
        self._read_names: set[str] = set()

    def run(self, desc: OpDesc) -> None:
        """Calls the operator that ``desc`` describes.

        Raises:
            UnknownOperatorError, ArgumentError: it does not describe a call of an operator.
            GradientError: it uses an undefined name, or redefines one.
        """
        operator = self._find(desc.type).revealed
        slots, outputs = slots_of(operator, desc), outputs_of(operator, desc)
        values = {n: self._read(n) for names in slots.values() for n in names if n != EMPTY}
        result = operator(**arguments_of(operator, slots, values), **attributes_of(desc))
        for name, value in named_results(operator, outputs, result).items():
            self._define(name, value)

    def _read(self, name: str) -> Any:
        if name not in self._values:
            raise undefined(self._owner, name, self._values)
        self._read_names.add(name)
        value = self._values[name]
        if isinstance(value, AbsentCotangent):
            value = self._values[name] = value.zero()
        return value

    def was_read(self, name: str) -> bool:
        """Whether an OpDesc reads the variable."""
        return name in self._read_names

    def _define(self, name: str, value: Any) -> None:
        if name in self._values:
            raise GradientError(
                f"{self._owner}: its gradient maker must define {name!r} once, and nothing that "
                "the forward operator defines"
            )
        belongs = name.removesuffix(GRAD)
        if name.endswith(GRAD) and belongs not in self._variables:
            raise not_of_an_input(self._owner, name, self._variables)
        self._values[name] = value

    def has_gradient(self, names: Sequence[str]) -> bool:
        """Whether a gradient of one of the variables is defined."""
        return any(grad_name(name) in self._values for name in names)

    def gradients(self, names: Sequence[str], *, several: bool) -> Any:
        """Returns the gradients of the variables in one slot; None for a zero."""
        grads = [self._values.get(grad_name(name)) for name in names]
        return grads if several else grads[0]
