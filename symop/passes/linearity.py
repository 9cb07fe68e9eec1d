"""In which of its inputs a call is linear."""

from collections.abc import Collection, Sequence

from registry.caches import memoized
from registry.jax_derivatives.calculus import is_linear
from registry.operator.attributes import typed_key
from registry.operator.operator import Operator
from registry.types import TRAINING_TYPE, VarType
from registry.var import Attributes
from symop.graph.nodes import Node, reaching

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


def degrees(order: Sequence[Node], variables: Collection[Node]) -> dict[Node, int]:
    """Returns the degrees of values that are known to be homogeneous polynomials of ``variables``.

    Only values that depend on the variables have one.
    """
    moving = reaching(order, variables)
    degree = dict.fromkeys(variables, 1)
    for node in order:
        if node in moving and node not in degree and (own := _degree(node, moving, degree)):
            degree[node] = own
    return degree


def _degree(node: Node, moving: set[Node], degree: dict[Node, int]) -> int | None:
    parts = [degree.get(one) for one in node.inputs if one is not None and one in moving]
    known = [one for one in parts if one is not None]
    if len(known) < len(parts):
        return None
    if linear_places(node, moving) is not None:
        return known[0] if len(set(known)) == 1 else None
    return sum(known) if _is_multilinear(node, moving) else None


def _is_multilinear(node: Node, moving: set[Node]) -> bool:
    """Whether ``node`` is linear in each input in ``moving`` alone."""
    if not isinstance(node.op, Operator) or not node.op.single or node.op.stateful:
        return False
    own = [i for i, one in enumerate(node.inputs) if one in moving]
    types = types_of(node)
    return all(_is_linear(node.op, types, node.attributes, (i,)) for i in own)


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
