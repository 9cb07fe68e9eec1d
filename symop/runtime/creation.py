"""The variables that a call of a layer creates: weights, biases and states that it leaves out."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from registry.errors import ArgumentError
from registry.operator.binding import NewVariable, is_new
from registry.operator.operator import Operator
from registry.operator.signature import NewParameter
from registry.shapes import default_float
from registry.types import DType, Shape, VarType
from registry.var import Attributes
from symop.runtime.initial import initial_attribute


class New(NamedTuple):
    """The declaration of a new variable.

    Attributes:
        name: its name after that of the call.
        shape: its shape, or None while it does not follow from the inputs.
        dtype: its dtype, or None until arrays are fed.
        role: ``argument`` or ``state``.
        extra: its attributes.
    """

    name: str
    shape: Shape | None
    dtype: DType | None
    role: str
    extra: tuple[tuple[str, str], ...]


def new_variables(
    operator: Operator,
    inputs: Sequence[Any],
    types: tuple[VarType | None, ...],
    attributes: Attributes,
) -> dict[int, list[New]]:
    """Returns the variables for each omitted parameter, by the index of its input.

    Their shapes follow from the attributes and from the inputs whose types are known, and their
    dtype is that of the first differentiable input; where no input has one, JAX's default float.

    Args:
        operator: the operator.
        inputs: the inputs of the call, with placeholders where parameters are omitted.
        types: the types of the inputs, None where unknown or omitted.
        attributes: the attributes of the call.

    Raises:
        ArgumentError: an initializer is invalid.
        SymopError: the shapes do not follow from wrong inputs or attributes.
    """
    dtype = next((one.dtype for one in types if one is not None and one.differentiable), None)
    if dtype is None and all(_is_typed(*pair) for pair in zip(inputs, types, strict=True)):
        dtype = default_float()
    unknown = (None,) * len(operator.outputs)
    shapes = operator.inference.complete(types, attributes, unknown) if dtype is not None else {}
    return {
        i: [
            _declared(operator, one, value, operator.slot_of(i).role, dtype)
            for one in _parameters(operator, i, types, attributes, shapes)
        ]
        for i, value in enumerate(inputs)
        if is_new(value) and operator.slot_of(i).created
    }


def _is_typed(value: Any, type: VarType | None) -> bool:
    return value is None or is_new(value) or type is not None


def _parameters(
    operator: Operator,
    index: int,
    types: tuple[VarType | None, ...],
    attributes: Attributes,
    shapes: dict[int, Shape],
) -> list[NewParameter]:
    """Returns the parameters for one slot: several for a variadic one."""
    slot = operator.slot_of(index)
    if not slot.variadic:
        return [NewParameter(slot.name, shapes.get(index), slot.initial_text)]
    assert operator.parameters_rule is not None
    fixed = tuple(None if one is None else one.shape for one in types[: operator.n_fixed])
    with operator.inference.named():
        result: list[NewParameter] = operator.parameters_rule(fixed, attributes)
    return result


def _declared(
    operator: Operator, one: NewParameter, value: Any, role: str, dtype: DType | None
) -> New:
    initial = value.initial if isinstance(value, NewVariable) else one.initial
    owner = f"{operator.name}: {one.name!r}"
    extra = tuple(initial_attribute(owner, initial, one.shape, dtype).items())
    return New(one.name, one.shape, dtype, "state" if role == "state" else "argument", extra)


def require_shape(operator: Operator, new: New) -> Shape:
    """Returns the shape of a new variable.

    Raises:
        ArgumentError: it is not known.
    """
    if new.shape is None or new.dtype is None:
        raise ArgumentError(
            f"{operator.name}: the shape of {new.name!r} must follow from the other inputs, and "
            "does not; pass it"
        )
    return new.shape
