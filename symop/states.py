"""States: what operators update on the way, such as moving statistics, as values of the graph."""

from collections.abc import Sequence
from typing import NamedTuple

from registry.operator import Operator
from symop.emission import reapplied
from symop.graph import SELECT, VARIABLE, Node, copied_origin, select


class Explicit(NamedTuple):
    """A graph whose updates are values like others.

    Attributes:
        outputs: its values.
        updates: the new value of each variable that it updates.
        order: its nodes in the order in which they were made.
    """

    outputs: list[Node]
    updates: dict[Node, Node]
    order: list[Node]


def explicit(outputs: Sequence[Node], order: Sequence[Node]) -> Explicit:
    """``outputs``, and what they update on the way; ``order`` tells which call came first.

    Operators that share a state update it one after the other, in the order in which they were
    called: each reads what the one before it made.
    """
    if not any(map(_is_stateful, order)):
        return Explicit(list(outputs), {}, list(order))
    newest: dict[Node, Node] = {}
    image: dict[Node, Node] = {}
    for node in order:
        inputs = [None if one is None else image.get(one, one) for one in node.inputs]
        stateful = _is_stateful(node)
        if stateful:
            for i, one in _states(node):
                inputs[i] = newest.get(one, one)
        became = image[node] = _over(node, tuple(inputs))
        if stateful:
            newest.update(_updated(node, became))
    return Explicit([image[one] for one in outputs], newest, list(image.values()))


def _updated(node: Node, became: Node) -> dict[Node, Node]:
    assert isinstance(node.op, Operator)
    places = node.op.update_indices
    return {one: select(became, places[i]) for i, one in _states(node)}


def _is_stateful(node: Node) -> bool:
    return isinstance(node.op, Operator) and node.op.stateful


def _states(node: Node) -> list[tuple[int, Node]]:
    """The slots of a node that hold variables which it updates."""
    assert isinstance(node.op, Operator)
    slots = [(i, node.inputs[i]) for i in node.op.update_indices]
    return [(i, one) for i, one in slots if one is not None and one.op is VARIABLE]


def _over(node: Node, inputs: tuple[Node | None, ...]) -> Node:
    if inputs == node.inputs:
        return node
    with copied_origin(node.origin):
        if node.op is SELECT:
            (source,) = inputs
            assert source is not None
            return select(source, node.attributes[0])
        return reapplied(node, inputs)
