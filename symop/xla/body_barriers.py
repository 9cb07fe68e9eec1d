"""Barriers on inputs of a body, so that XLA does not merge the body with earlier computation."""

from collections.abc import Sequence
from typing import Protocol

from registry.operator.operator import Operator
from registry.types import VarKind
from symop.graph.nodes import Node, reaching, topological

Places = tuple[int, ...]


class BodyGraph(Protocol):
    """A graph from parameters to results."""

    parameters: tuple[Node, ...]
    results: tuple[Node, ...]


def leading(body: BodyGraph, late: set[int], lasting: set[int]) -> Places:
    """Returns the inputs whose barriers delay each call that is independent of those at ``late``.

    The inputs of such calls get barriers, except those at ``lasting``, which exist anyway: copying
    a parameter costs more than it gains. If a call reads nothing else, the smallest input it reads
    gets one.
    """
    places = {node: i for i, node in enumerate(body.parameters)}
    order = topological(body.results)
    calls = _early(order, [body.parameters[i] for i in late])
    calls = _but_rearranged(calls, {body.parameters[i] for i in lasting})
    read = {places[one] for node in calls for one in node.operands if one in places}
    held = {i for i in read if i not in lasting or _is_key(body.parameters[i])}
    waiting = {body.parameters[i] for i in held}
    for node in calls:
        indices = [places[one] for one in node.operands if one in places]
        if waiting.isdisjoint(node.operands) and indices:
            smallest = min(indices, key=lambda i: (body.parameters[i].type.size, i))
            held.add(smallest)
            waiting.add(body.parameters[smallest])
        if not waiting.isdisjoint(node.operands):
            waiting.add(node)
    return tuple(sorted(held))


def _early(order: Sequence[Node], late: Sequence[Node]) -> list[Node]:
    """Returns the calls, and selections of their outputs, that depend on none of ``late``."""
    following = reaching(order, late)
    return [node for node in order if node.operands and node not in following]


def _but_rearranged(calls: Sequence[Node], lasting: set[Node]) -> list[Node]:
    """Returns ``calls`` without those that only rearrange parameters, which XLA does not store."""
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
