"""Calls of loops, and what their bodies give for gradients."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from registry.bodies import Body
from registry.errors import SymopError
from registry.operator import Operator
from registry.ops.loop_gradients import Layout
from symop.bodies import GraphBody, body_of
from symop.graph import Node
from symop.policies import Policy
from symop.recomputing.images import Images


class Loop(NamedTuple):
    """A call of a loop.

    Attributes:
        operator: which kind of loop.
        operands: what it runs on.
        key: the random key, or None.
        training: the training flag.
        options: its attributes.
    """

    operator: Operator
    operands: tuple[Node, ...]
    key: Node | None
    training: Node
    options: dict[str, Any]

    @property
    def layout(self) -> Layout:
        """What its operands and results are."""
        given = {name: self.options.get(name, 0) for name in ("n_xs", "n_sums")}
        return Layout(self.options["body"], self.options["n_carry"], **given)

    def results(self, body: Body | None = None, **options: Any) -> list[Node]:
        """What ``body`` gives in the end, and in each step."""
        given = {**self.options, "body": body or self.options["body"], **options}
        key = {"key": self.key} if given["use_key"] else {}
        return list(self.operator(*self.operands, **key, training=self.training, **given))

    def over(self, carries: Sequence[Node], series: Sequence[Node]) -> "Loop":
        """The loop from other carries over other series."""
        end = self.layout.n_carry + self.layout.n_xs
        return self._replace(operands=(*carries, *series, *self.operands[end:]))

    def told(self, wanted: Sequence[int]) -> "Loop":
        """The loop whose steps give only those of their results that are at ``wanted``."""
        layout = self.layout
        body = layout.body
        assert isinstance(body, GraphBody)
        fixed = layout.n_carry + layout.n_sums
        chosen = [*body.results[:fixed], *(body.results[j] for j in wanted if j >= fixed)]
        made = body_of(body.parameters, chosen, body.keys, updating=body.updating)
        return self._replace(options={**self.options, "body": made})


def loop_of(node: Node, image: Images) -> Loop:
    """The call that ``node`` is, over what its inputs became."""
    operator = node.op
    assert isinstance(operator, Operator)
    key, training, *operands = (None if one is None else image.value(one) for one in node.inputs)
    assert training is not None
    given = tuple(one for one in operands if one is not None)
    options = operator.attribute_dict(node.attributes)
    return Loop(operator.family or operator, given, key, training, options)


def saving(layout: Layout, policy: Policy) -> Layout:
    """The loop of which each step gives what ``policy`` keeps; as it is if it has no gradient."""
    body = layout.body
    assert isinstance(body, GraphBody)
    if not any(one.differentiable for one in body.outputs):
        return layout
    varying = (*layout.carried, *layout.series)
    try:
        return layout._replace(body=body.saving(layout.carried, varying, policy.drops))
    except SymopError:
        return layout  # who differentiates it is told why that cannot be
