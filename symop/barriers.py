"""Which inputs of a body are held back, so that it is not merged with what was computed before."""

from collections.abc import Sequence
from typing import Protocol

from registry.operator import Operator
from registry.types import VarKind
from symop.graph import Node, reaching, topological

Places = tuple[int, ...]


class Graph(Protocol):
    """A graph from placeholders to results."""

    parameters: tuple[Node, ...]
    results: tuple[Node, ...]


def leading(body: Graph, late: set[int], lasting: set[int]) -> Places:
    """The inputs that hold back whatever does not follow from those at ``late``.

    What such a call reads is held back, but for what is there anyway: a copy of a parameter costs
    more than it gains. Where a call reads nothing else, the smallest of its parameters is.
    """
    places = {node: i for i, node in enumerate(body.parameters)}
    order = topological(body.results)
    calls = _early(order, [body.parameters[i] for i in late])
    calls = _but_rearranged(calls, {body.parameters[i] for i in lasting})
    read = {places[one] for node in calls for one in node.operands if one in places}
    held = {i for i in read if i not in lasting or _is_key(body.parameters[i])}
    waiting = {body.parameters[i] for i in held}
    for node in calls:
        given = [places[one] for one in node.operands if one in places]
        if waiting.isdisjoint(node.operands) and given:
            smallest = min(given, key=lambda i: (body.parameters[i].type.size, i))
            held.add(smallest)
            waiting.add(body.parameters[smallest])
        if not waiting.isdisjoint(node.operands):
            waiting.add(node)
    return tuple(sorted(held))


def _early(order: Sequence[Node], late: Sequence[Node]) -> list[Node]:
    """What follows from none of ``late``: calls, and the choice among their outputs."""
    following = reaching(order, late)
    return [node for node in order if node.operands and node not in following]


def _but_rearranged(calls: Sequence[Node], lasting: set[Node]) -> list[Node]:
    """``calls`` without parameters in another arrangement, which XLA does not store."""
    arranged = set(lasting)
    for node in calls:
        if (
            isinstance(node.op, Operator)
            and node.op.rearranges
            and arranged.issuperset(node.operands)
        ):
            arranged.add(node)
    return [node for node in calls if node not in arranged]


def _is_key(node: Node) -> bool:
    return node.type.kind is VarKind.RANDOM_KEY
