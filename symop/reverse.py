"""The gradient maker of an operator as a function on arrays."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from registry.operator import Operator
from registry.types import VarType
from registry.var import Attributes
from symop.differentiate import cotangent_types, input_gradients, output_values
from symop.emission import apply
from symop.graph import Node, constant, placeholder, reaching, topological
from symop.guarding import no_tangent
from symop.lowering import How, Schedule

Types = tuple[VarType | None, ...]
Chooses = Callable[[set[Node]], How]
"""How the nodes of a graph run, told the nodes that the cotangents reach."""


class Pullback:
    """A maker as a function of the residuals that it names and of cotangents."""

    def __init__(
        self,
        operator: Operator,
        attributes: Attributes,
        types: Types,
        training: bool | None,
        chooses: Chooses,
        places: Sequence[int] | None = None,
    ) -> None:
        """Build the graph of the gradients of the inputs at ``places``, or of all inputs."""
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
        values = output_values(application)
        cotangents = tuple(
            None if one is None else placeholder("d", one) for one in cotangent_types(application)
        )
        chosen = inputs if places is None else [inputs[i] for i in places]
        active = {one for one in chosen if one is not None and one.type.differentiable}
        gradients = dict(input_gradients(application, cotangents, active))
        # The outputs are kept themselves: what only they need is not.
        order = topological(list(gradients.values()), until=values)
        needed = {*order, *gradients.values(), *(one for node in order for one in node.inputs)}
        self.kept = [i for i, one in enumerate(inputs) if one is not None and one in needed]
        self.kept_outputs = [i for i, one in enumerate(values) if one in needed]
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
        """Gradients of the inputs, the training flag left out; float0 where there is none."""
        taken = [cotangents[i] for i in self.taken]
        supply = iter(self.schedule([*inputs, *outputs, *taken])[0])
        gradients = []
        for i, (node, type) in enumerate(zip(self.given, self.types, strict=True)):
            if self.operator.slot_of(i).role == "training":
                continue
            if node is not None:
                gradients.append(next(supply))
            else:
                gradients.append(None if type is None else no_tangent(type))
        return tuple(gradients)
