"""create: a callable operator from an OpDesc."""

from collections.abc import Mapping
from typing import Any

from registry.desc import OpDesc
from registry.errors import ArgumentError, nearest
from registry.leaves import get
from registry.naming import EMPTY
from registry.operator.operator import Operator
from registry.operator.recorder import (
    arguments_of,
    attributes_of,
    checked_call,
    named_results,
    outputs_of,
)


class BoundOperator:
    """An operator with the attributes of one OpDesc.

    Attributes:
        operator: the operator.
        desc: the OpDesc.
        attributes: its attributes, defaults included.
    """

    def __init__(self, operator: Operator, desc: OpDesc) -> None:
        """Binds ``operator`` to ``desc``; users call ``registry.create``."""
        self.operator, self.desc = operator, desc
        self._slots = checked_call(operator, desc)
        self._outputs = outputs_of(operator, desc)
        names = {name: name for filled in self._slots.values() for name in filled}
        arguments = {**arguments_of(operator, self._slots, names), **attributes_of(desc)}
        self.attributes = operator.attribute_dict(operator.bind((), arguments)[1])

    def __call__(self, *inputs: Any, **slots: Any) -> Any:
        """Returns the outputs for inputs by position or by slot: arrays, symbols or other values.

        Raises:
            ArgumentError: the inputs do not fill the slots, or an attribute is passed again.
        """
        again = [name for name in slots if name in self.attributes]
        if again:
            raise ArgumentError(
                f"{self.operator.name}: attributes must come from the OpDesc, "
                f"got {again[0]!r} twice"
            )
        return self.operator(*inputs, **slots, **self.attributes)

    def run(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the outputs, including hidden ones, keyed by the OpDesc's names.

        Raises:
            ArgumentError: a variable that the OpDesc names has no value.
        """
        for name in (name for names in self._slots.values() for name in names):
            if name not in values and name != EMPTY:
                raise ArgumentError(
                    f"{self.operator.name}: a value must be given for {name!r}, got none"
                    f"{nearest(name, values)}"
                )
        operator = self.operator.revealed
        result = operator(**arguments_of(operator, self._slots, values), **self.attributes)
        return named_results(operator, self._outputs, result)

    def __repr__(self) -> str:
        attributes = ", ".join(f"{k}={v!r}" for k, v in self.attributes.items())
        return f"<{self.operator.name}({attributes})>"


def create(op_desc: OpDesc) -> BoundOperator:
    """Returns the operator that ``op_desc`` describes, as a callable.

    Raises:
        UnknownOperatorError: no operator is of that type.
        ArgumentError: a slot, an output or an attribute is unknown or missing.
        AttributeTypeError, AttributeValueError: an attribute's value is not allowed.

    Example:
        >>> import jax.numpy as jnp
        >>> from registry import OpDesc, create
        >>> halve = create(OpDesc("scale", {"X": ["a"]}, {"Out": ["b"]}, {"scale": 0.5}))
        >>> float(halve(jnp.asarray(3.0)))
        1.5
        >>> halve.run({"a": jnp.asarray(4.0)})
        {'b': Array(2., dtype=float32, weak_type=True)}
    """
    if not isinstance(op_desc, OpDesc):
        raise ArgumentError(f"create: an OpDesc must be given, got {op_desc!r:.200}")
    return BoundOperator(get(op_desc.type), op_desc)
