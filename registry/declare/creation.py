"""create: the callable operator that an OpDesc describes."""

from collections.abc import Mapping
from typing import Any

from registry.desc import OpDesc
from registry.errors import ArgumentError, nearest
from registry.naming import EMPTY
from registry.operator import Operator
from registry.recorder import arguments_of, attributes_of, outputs_of, slots_of
from registry.table import get


class BoundOperator:
    """An operator with the attributes of one OpDesc.

    Attributes:
        operator: the operator.
        desc: the OpDesc.
        attributes: its attributes, defaults included.
    """

    def __init__(self, operator: Operator, desc: OpDesc) -> None:
        """Bind ``operator`` to ``desc``; users call ``registry.create``."""
        self.operator, self.desc = operator, desc
        self._slots = slots_of(operator, desc)
        self._outputs = outputs_of(operator, desc)
        names = {name: name for names in self._slots.values() for name in names if name != EMPTY}
        bound = operator.bind((), {**arguments_of(operator, self._slots, names), **self._given()})
        self.attributes = operator.attribute_dict(bound[1])

    def _given(self) -> dict[str, Any]:
        given = attributes_of(self.desc)
        for name in given:
            if name not in self.operator.attribute_index:
                legal = list(self.operator.attribute_index)
                raise ArgumentError(
                    f"{self.operator.name}: the attributes must be among "
                    f"{', '.join(legal) or 'none'}, got {name!r}{nearest(name, legal)}"
                )
        return given

    def __call__(self, *inputs: Any, **slots: Any) -> Any:
        """The outputs for inputs by position or by slot: arrays, symbols or any other values."""
        return self.operator(*inputs, **slots, **self.attributes)

    def run(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs by the names of the OpDesc, for values by its names.

        Raises:
            ArgumentError: a variable that the OpDesc names has no value.
        """
        for name in (name for names in self._slots.values() for name in names):
            if name not in values and name != EMPTY:
                raise ArgumentError(
                    f"{self.operator.name}: a value must be given for {name!r}, got none"
                    f"{nearest(name, values)}"
                )
        result = self(**arguments_of(self.operator, self._slots, values))
        results = list(result) if isinstance(result, tuple) else [result]
        called = self.operator.sized(len(results) + len(self.operator.hidden))
        by_output = dict(zip((called.outputs[i] for i in called.visible), results, strict=True))
        named: dict[str, Any] = {}
        for key, names in self._outputs.items():
            several = [one for n, one in by_output.items() if n not in self.operator.outputs]
            found = [by_output[key]] if key in by_output else several
            named.update(zip(names, found, strict=True))
        named.pop(EMPTY, None)
        return named

    def __repr__(self) -> str:
        attributes = ", ".join(f"{k}={v!r}" for k, v in self.attributes.items())
        return f"<{self.operator.name}({attributes})>"


def create(op_desc: OpDesc) -> BoundOperator:
    """The operator that ``op_desc`` describes, to be called.

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
    return BoundOperator(get(op_desc.type), op_desc)
