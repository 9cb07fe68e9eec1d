"""Owners of gradient nodes: the forward operator that each of them belongs to."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from symop.drawing.boxes import Box, is_backward, is_operator
from symop.graph.nodes import Node

_FARTHEST = 64
"""The number of operators of one line and name among which the owner is searched."""


def owners_of(boxes: Sequence[Box]) -> dict[Node, Node]:
    """Returns the forward operator of each gradient node of ``boxes``.

    A gradient node without a known operator gets that of a gradient that it reads or is read by,
    or else the last forward operator. The result is empty without forward operators.
    """
    owners = _stated(boxes)
    forward = [box.node for box in boxes if not box.backward and is_operator(box.node)]
    if not forward:
        return {}
    loose = [i for i, box in enumerate(boxes) if box.backward and box.node not in owners]
    for i in reversed(loose):
        _adopt(boxes, i, owners, [])
    readers = _readers(boxes, set(loose))
    for i in loose:
        _adopt(boxes, i, owners, readers[i])
    for i in loose:
        owners.setdefault(boxes[i].node, forward[-1])
    return owners


def _adopt(boxes: Sequence[Box], i: int, owners: dict[Node, Node], readers: Sequence[int]) -> None:
    """Gives box ``i`` the owner of a neighbor, if it has none and a neighbor has one."""
    node = boxes[i].node
    neighbors = [*(source for source, _ in boxes[i].sources), *readers]
    known = [owners[boxes[one].node] for one in neighbors if boxes[one].node in owners]
    if node not in owners and known:
        owners[node] = known[0]


def _readers(boxes: Sequence[Box], wanted: set[int]) -> dict[int, list[int]]:
    readers: dict[int, list[int]] = {i: [] for i in wanted}
    for i, box in enumerate(boxes):
        for source, _ in box.sources:
            if source in wanted:
                readers[source].append(i)
    return readers


def _stated(boxes: Sequence[Box]) -> dict[Node, Node]:
    """Returns the owners that can be determined.

    An origin names its forward operator. If several operators match (a loop built them on one
    line), the cotangent decides: it comes from a later operator than the wanted one, which is the
    last before that operator whose inputs or output the gradient reads.
    """
    candidates: dict[tuple[Any, ...], list[Node]] = defaultdict(list)
    place: dict[Node, int] = {}
    for i, box in enumerate(boxes):
        place[box.node] = i
        if not box.backward and is_operator(box.node) and box.node.origin is not None:
            name = box.node.name or box.node.op.name
            candidates[name, *box.node.origin[:2]].append(box.node)
    owners: dict[Node, Node] = {}
    residual: dict[Node, list[Node]] = {}
    for box in boxes:
        if not box.backward or box.node.origin is None:
            continue
        file, line, called = box.node.origin[:3]
        named = candidates.get((called, file, line), [])
        reads = [child.source for child in box.node.operands]
        if len(named) == 1:
            owners[box.node] = named[0]
        elif named and not any(is_backward(node) for node in reads if node in place):
            residual[box.node] = reads
        elif named:
            later = [place[o] for o in map(owners.get, reads) if o is not None]
            known = {value for node in reads for value in residual.get(node, [node])}
            owners[box.node] = _last_reading(named, known, min(later, default=len(boxes)), place)
    _own_residuals(boxes, residual, owners)
    return owners


def _last_reading(
    named: Sequence[Node], values: set[Node], end: int, place: dict[Node, int]
) -> Node:
    """Returns the last of ``named`` up to ``end`` with one of ``values`` as input or output."""
    stop = bisect_right(named, end, key=place.__getitem__)
    before = named[max(stop - _FARTHEST, 0) : stop] or named[:1]
    for node in reversed(before):
        if node in values or any(child.source in values for child in node.operands):
            return node
    return before[-1]


def _own_residuals(
    boxes: Sequence[Box], residual: dict[Node, list[Node]], owners: dict[Node, Node]
) -> None:
    """Assigns nodes that only prepare values for the gradient to the single operator using them."""
    users: dict[Node, set[Node]] = defaultdict(set)
    for box in boxes:
        for child in box.node.operands:
            if child in residual and box.node in owners:
                users[child].add(owners[box.node])
    for node in residual:
        if len(users[node]) == 1:
            owners[node] = users[node].pop()
