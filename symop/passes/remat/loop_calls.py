"""Loop calls, and the results of their bodies that gradients use."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from registry.errors import SymopError
from registry.operator.bodies import Body
from registry.operator.operator import Operator
from registry.ops.control_flow.loop_gradients import Layout
from symop.graph.nodes import Node
from symop.graph.policies import Policy
from symop.graph.rewriting import Images
from symop.regions.bodies import GraphBody, body_of


class LoopCall(NamedTuple):
    """A call of a loop operator.

    Attributes:
        operator: The kind of loop.
        operands: The operands of the loop.
        key: The random key, or None.
        training: The training flag.
        options: The attributes.
    """

    operator: Operator
    operands: tuple[Node, ...]
    key: Node | None
    training: Node
    options: dict[str, Any]

    @property
    def layout(self) -> Layout:
        """The roles of the operands and results."""
        counts = {name: self.options.get(name, 0) for name in ("n_xs", "n_sums")}
        return Layout(self.options["body"], self.options["n_carry"], **counts)

    def results(self, body: Body | None = None, **options: Any) -> list[Node]:
        """Returns the final results of a loop over ``body``, and those of each step."""
        keywords = {**self.options, "body": body or self.options["body"], **options}
        key = {"key": self.key} if keywords["use_key"] else {}
        return list(self.operator(*self.operands, **key, training=self.training, **keywords))

    def over(self, carries: Sequence[Node], series: Sequence[Node]) -> "LoopCall":
        """Returns the loop with other carries and other series."""
        end = self.layout.n_carry + self.layout.n_xs
        return self._replace(operands=(*carries, *series, *self.operands[end:]))

    def told(self, wanted: Sequence[int]) -> "LoopCall":
        """Returns the loop whose steps return only the results at ``wanted``."""
        layout = self.layout
        body = layout.body
        assert isinstance(body, GraphBody)
        fixed = layout.n_carry + layout.n_sums
        chosen = [*body.results[:fixed], *(body.results[j] for j in wanted if j >= fixed)]
        inner = body_of(body.parameters, chosen, body.keys, updating=body.updating)
        return self._replace(options={**self.options, "body": inner})


def loop_of(node: Node, image: Images) -> LoopCall:
    """Returns the loop call ``node`` over the images of its inputs."""
    operator = node.op
    assert isinstance(operator, Operator)
    key, training, *operands = (None if one is None else image.value(one) for one in node.inputs)
    assert training is not None
    present = tuple(one for one in operands if one is not None)
    options = operator.attribute_dict(node.attributes)
    return LoopCall(operator.family or operator, present, key, training, options)


def saving(layout: Layout, policy: Policy) -> Layout:
    """Returns the loop whose steps return the values ``policy`` keeps, if differentiable."""
    body = layout.body
    assert isinstance(body, GraphBody)
    if not any(one.differentiable for one in body.outputs):
        return layout
    varying = (*layout.carried, *layout.series)
    try:
        return layout._replace(body=body.saving(layout.carried, varying, policy.drops))
    except SymopError:
        return layout  # differentiating it reports the error
