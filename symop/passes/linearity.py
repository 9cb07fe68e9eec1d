"""In which of its inputs a call is linear."""

from registry.caches import memoized
from registry.jax_derivatives.calculus import is_linear
from registry.operator.attributes import typed_key
from registry.operator.operator import Operator
from registry.types import TRAINING_TYPE, VarType
from registry.var import Attributes
from symop.graph.nodes import Node

Places = tuple[int, ...]


def linear_places(node: Node, moving: set[Node]) -> Places | None:
    """Returns the inputs in which ``node`` is jointly linear, all those in ``moving`` among them.

    None if there are none.
    """
    if not isinstance(node.op, Operator) or not node.op.single or node.op.stateful:
        return None
    own = tuple(i for i, one in enumerate(node.inputs) if one in moving)
    floating = tuple(
        i for i, one in enumerate(node.inputs) if one is not None and one.type.differentiable
    )
    types = types_of(node)
    for places in dict.fromkeys((own, floating)):
        if set(own) <= set(places) and _is_linear(node.op, types, node.attributes, places):
            return places
    return None


def types_of(node: Node) -> tuple[VarType | None, ...]:
    """Returns the types of the inputs of a call; a constant training flag has that of a flag."""
    assert isinstance(node.op, Operator)
    slots = [node.op.slot_of(i) for i in range(len(node.inputs))]
    return tuple(
        None if one is None else TRAINING_TYPE if slot.role == "training" else one.type
        for slot, one in zip(slots, node.inputs, strict=True)
    )


@memoized(4096, key=typed_key)
def _is_linear(
    operator: Operator, types: tuple[VarType | None, ...], attributes: Attributes, places: Places
) -> bool:
    return is_linear(operator, types, attributes, places)
