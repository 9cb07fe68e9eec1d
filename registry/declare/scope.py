"""Scope: the values that names stand for while the OpDescs of a gradient are interpreted."""

from collections.abc import Callable, Sequence
from typing import Any

from registry.desc import OpDesc
from registry.errors import GradientError, nearest
from registry.naming import EMPTY, GRAD, grad_name
from registry.operator import Operator
from registry.recorder import arguments_of, attributes_of, named_results, outputs_of, slots_of
from registry.var import filled


class Missing:
    """A cotangent that does not arrive: a zero, made when it is read."""

    def __init__(self, like: Any) -> None:
        """A zero of the type of ``like``."""
        self.like = like

    def zero(self) -> Any:
        """The zero."""
        return filled(self.like, 0j if self.like.dtype.kind == "c" else 0.0)


class Scope:
    """The values that names stand for."""

    def __init__(self, owner: str, values: dict[str, Any], find: Callable[[str], Operator]) -> None:
        """Begin with the variables of the forward operator called ``owner``."""
        self._owner, self._values, self._find = owner, values, find
        self._given = set(values)
        self._read_names: set[str] = set()

    def run(self, desc: OpDesc) -> None:
        """Call the operator that ``desc`` describes.

        Raises:
            UnknownOperatorError, ArgumentError: it does not describe a call of an operator.
            GradientError: it uses a name that nothing defines, or defines one anew.
        """
        operator = self._find(desc.type).revealed
        slots, outputs = slots_of(operator, desc), outputs_of(operator, desc)
        values = {n: self._read(n) for names in slots.values() for n in names if n != EMPTY}
        result = operator(**arguments_of(operator, slots, values), **attributes_of(desc))
        for name, value in named_results(operator, outputs, result).items():
            self._define(name, value)

    def _read(self, name: str) -> Any:
        if name not in self._values:
            raise GradientError(
                f"{self._owner}: its gradient maker must use variables of the forward operator or "
                f"temporaries that it defines before, got {name!r}{nearest(name, self._values)}"
            )
        self._read_names.add(name)
        value = self._values[name]
        if isinstance(value, Missing):
            value = self._values[name] = value.zero()
        return value

    def was_read(self, name: str) -> bool:
        """Whether some OpDesc uses the variable."""
        return name in self._read_names

    def _define(self, name: str, value: Any) -> None:
        if name in self._values:
            raise GradientError(
                f"{self._owner}: its gradient maker must define {name!r} once, and nothing that "
                "the forward operator defines"
            )
        belongs = name.removesuffix(GRAD)
        if name.endswith(GRAD) and belongs not in self._given:
            raise GradientError(
                f"{self._owner}: its gradient maker must give gradients of inputs, got {name!r}"
                f"{nearest(name, map(grad_name, self._given))}"
            )
        self._values[name] = value

    def has_gradient(self, names: Sequence[str]) -> bool:
        """Whether a gradient of one of the variables is defined."""
        return any(grad_name(name) in self._values for name in names)

    def gradients(self, names: Sequence[str], *, several: bool) -> Any:
        """The gradients of the variables in one slot; None for a zero."""
        found = [self._values.get(grad_name(name)) for name in names]
        return found if several else found[0]
