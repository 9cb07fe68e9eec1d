"""The gradient maker of an operator as a function of arrays."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from registry.operator.operator import Operator
from registry.types import VarType
from registry.var import Attributes
from symop.autodiff.derivations import entering_derivative, leaving_derivative
from symop.autodiff.differentiate import cotangent_types, input_gradients, output_values
from symop.graph.emission import apply
from symop.graph.nodes import Node, constant, placeholder, reaching, residuals, topological
from symop.lowering.steps import How, Schedule

Types = tuple[VarType | None, ...]
Chooses = Callable[[set[Node]], How]
"""Returns how the nodes of a graph run, given the nodes that the cotangents reach."""


class Pullback:
    """A gradient maker as a function of its residuals and of cotangents.

    Attributes:
        attributes: those of the call whose outputs it reads.
    """

    def __init__(
        self,
        operator: Operator,
        attributes: Attributes,
        types: Types,
        training: bool | None,
        chooses: Chooses,
        places: Sequence[int] | None = None,
        absent: Sequence[int] = (),
    ) -> None:
        """Builds the graph of the gradients of the inputs at ``places``, or of all inputs.

        No cotangent arrives at the outputs in ``absent``.
        """
        self.types, self.operator = types, operator
        inputs = [
            None if one is None else placeholder(operator.slot_of(i).name, one)
            for i, one in enumerate(types)
        ]
        filled = [
            constant(training or False) if operator.slot_of(i).role == "training" else one
            for i, one in enumerate(inputs)
        ]
        application = apply(operator, tuple(filled), attributes, name=operator.name)
        chosen = inputs if places is None else [inputs[i] for i in places]
        active = {one for one in chosen if one is not None and one.type.differentiable}
        entered = entering_derivative([application], active).value(application)
        cotangents = tuple(
            None if one is None or i in absent else placeholder("d", one)
            for i, one in enumerate(cotangent_types(application))
        )
        pairs = input_gradients(entered, cotangents, active)
        application, *left = leaving_derivative([entered, *[gradient for _, gradient in pairs]])
        gradients = dict(zip([child for child, _ in pairs], left, strict=True))
        self.attributes, values = application.attributes, output_values(application)
        # The outputs themselves are kept, not the values that only they need.
        order = topological(list(gradients.values()), until=values)
        read = residuals(gradients.values(), {*inputs, *values}.__contains__)
        self.kept = [i for i, one in enumerate(inputs) if one in read]
        self.kept_outputs = [i for i, one in enumerate(values) if one in read]
        self.taken = [i for i, one in enumerate(cotangents) if one is not None]
        self.given = [None if one is None else gradients.get(one) for one in inputs]
        variables = [
            *[inputs[i] for i in self.kept],
            *[values[i] for i in self.kept_outputs],
            *[cotangents[i] for i in self.taken],
        ]
        outputs = [one for one in self.given if one is not None]
        linear = reaching(order, [one for one in cotangents if one is not None])
        present = [one for one in variables if one is not None]
        self.schedule = Schedule(outputs, present, chooses(linear), order=order)

    def run(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        cotangents: Sequence[Any] | Mapping[int, Any],
    ) -> tuple[Any, ...]:
        """Returns the gradients of the inputs except the training flag; None where none arrives."""
        taken = [cotangents[i] for i in self.taken]
        supply = iter(self.schedule([*inputs, *outputs, *taken])[0])
        gradients = []
        for i, node in enumerate(self.given):
            if self.operator.slot_of(i).role == "training":
                continue
            gradients.append(None if node is None else next(supply))
        return tuple(gradients)
