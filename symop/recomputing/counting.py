"""Counting: how much a gradient keeps and computes again, told before anything is compiled."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from registry.operator import Operator
from symop.bodies import GraphBody
from symop.graph import SELECT, Node, reaching, topological
from symop.recomputing.runs import bytes_of


class Estimate(NamedTuple):
    """What a gradient takes beside arguments and results, in bytes.

    Attributes:
        kept: what the forward pass leaves for the backward pass.
        again: the most that is there at a time of what is computed again.
    """

    kept: int
    again: int

    @property
    def peak(self) -> int:
        """Both together."""
        return self.kept + self.again

    def __str__(self) -> str:
        return f"{shown(self.kept)} kept, {shown(self.again)} computed again at a time"


def shown(count: int) -> str:
    """A number of bytes as a person reads it."""
    if count < 1000:
        return f"{count} B"
    units = ("kB", "MB", "GB", "TB")
    number = float(count)
    for unit in units:
        number /= 1000
        if number < 1000 or unit == units[-1]:
            break
    return f"{number:.3g} {unit}"


def counted(ys: Sequence[Node], gradients: Sequence[Node]) -> Estimate:
    """What ``gradients`` read of the graph of ``ys``, and what they compute of it again."""
    forward = topological(ys)
    own = set(forward)
    backward = [node for node in topological(gradients) if node not in own]
    kept = _distinct(one for node in backward for one in node.operands if one in own)
    return Estimate(sum(map(bytes_of, kept)), max(map(_held, backward), default=0))


def _distinct(values: Iterable[Node]) -> set[Node]:
    """The values that take room: variables and constants are there, an arrangement is a view."""
    found = set()
    for value in values:
        one = value
        while _is_arrangement(one):
            (one,) = one.operands
        if isinstance(one.op, Operator) or one.op is SELECT:
            found.add(one)
    return found


def _is_arrangement(node: Node) -> bool:
    if not isinstance(node.op, Operator) or not node.op.rearranges or len(node.operands) != 1:
        return False
    return bytes_of(node.operands[0]) <= bytes_of(node)


def _held(node: Node) -> int:
    """The most that a call computes again at a time."""
    if not isinstance(node.op, Operator):
        return 0
    attributes = node.op.attribute_dict(node.attributes)
    body = attributes.get("body")
    if not isinstance(body, GraphBody):
        return 0
    late = attributes.get("after") or tuple(range(attributes.get("n_carry", 0)))
    return _held_in(body, [body.parameters[i] for i in late])


def _held_in(body: GraphBody, late: Sequence[Node]) -> int:
    """What a body computes for what follows from ``late``, before that comes."""
    order = topological(body.results)
    following = reaching(order, late)
    early = _read_early(order, following)
    own = _distinct(early) - set(body.parameters)
    return sum(map(bytes_of, own)) + max(map(_held, order), default=0)


def _read_early(order: Sequence[Node], following: set[Node]) -> Iterable[Node]:
    """What is read of the forward pass; what a gradient makes of it is made when it is read."""
    seen = set(following)
    waiting = [one for node in order if node in following for one in node.operands]
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.origin is not None and node.origin.forward:
            waiting += node.operands
        else:
            yield node
