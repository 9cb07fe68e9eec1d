"""Operator state, such as moving statistics, as explicit values of the graph."""

from collections.abc import Sequence
from typing import NamedTuple

from registry.operator.operator import Operator
from symop.graph.nodes import VARIABLE, Node, select
from symop.graph.rewriting import Images, reapply


class Explicit(NamedTuple):
    """A graph whose state updates are ordinary values.

    Attributes:
        outputs: The values of the graph.
        updates: The new value of each variable that the graph updates.
        order: The nodes of the graph in the order in which they were made.
    """

    outputs: list[Node]
    updates: dict[Node, Node]
    order: list[Node]


def explicit(outputs: Sequence[Node], order: Sequence[Node]) -> Explicit:
    """Returns ``outputs`` and their state updates; ``order`` gives the order of the calls.

    Operators that share a state update it in the order in which they were called: each reads the
    value written by the one before it.
    """
    if not any(map(_is_stateful, order)):
        return Explicit(list(outputs), {}, list(order))
    newest: dict[Node, Node] = {}
    image = Images()
    for node in order:
        inputs = list(image.inputs(node))
        if _is_stateful(node):
            for i, one in _states(node):
                inputs[i] = newest.get(one, one)
        if not node.is_selection and inputs != list(node.inputs):
            image[node] = reapply(node, tuple(inputs))
        if _is_stateful(node):
            newest.update(_updated(node, image.value(node)))
    return Explicit([image.value(one) for one in outputs], newest, [*map(image.value, order)])


def _updated(node: Node, became: Node) -> dict[Node, Node]:
    assert isinstance(node.op, Operator)
    places = node.op.update_indices
    return {one: select(became, places[i]) for i, one in _states(node)}


def _is_stateful(node: Node) -> bool:
    return isinstance(node.op, Operator) and node.op.stateful


def _states(node: Node) -> list[tuple[int, Node]]:
    """Returns the slots of a node that hold variables it updates, with their variables."""
    assert isinstance(node.op, Operator)
    slots = [(i, node.inputs[i]) for i in node.op.update_indices]
    return [(i, one) for i, one in slots if one is not None and one.op is VARIABLE]
