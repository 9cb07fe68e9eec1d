"""Estimates of the memory that a gradient keeps and recomputes, without compiling anything."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from registry.operator.bodies import bodies_of
from registry.operator.operator import Operator
from symop.graph.nodes import Node, reaching, residuals, topological
from symop.passes.remat.runs import bytes_of
from symop.regions.bodies import GraphBody


class Estimate(NamedTuple):
    """The memory of a gradient apart from its arguments and results, in bytes.

    Attributes:
        kept: The residuals of the forward pass.
        again: The peak of the recomputed values.
    """

    kept: int
    again: int

    @property
    def peak(self) -> int:
        """The sum of both."""
        return self.kept + self.again

    def __str__(self) -> str:
        return f"{shown(self.kept)} kept, {shown(self.again)} computed again at a time"


def shown(count: int) -> str:
    """Returns a number of bytes in human-readable form."""
    if count < 1000:
        return f"{count} B"
    units = ("kB", "MB", "GB", "TB")
    number = float(count)
    for unit in units:
        number /= 1000
        if number < 1000 or unit == units[-1]:
            break
    return f"{number:.3g} {unit}"


def count_reads(ys: Sequence[Node], gradients: Sequence[Node]) -> Estimate:
    """Estimates what ``gradients`` read of the graph of ``ys``, and what they recompute of it."""
    forward = topological(ys)
    own = set(forward)
    backward = [node for node in topological(gradients) if node not in own]

    def is_known(one: Node) -> bool:
        # An output that only the gradient selects also belongs to the forward pass, except that of
        # a loop.
        return one in own or (one.source in own and not bodies_of(one.source.attributes))

    kept = _distinct(residuals(gradients, is_known))
    return Estimate(sum(map(bytes_of, kept)), max(map(_held, backward), default=0))


def _distinct(values: Iterable[Node]) -> set[Node]:
    """Returns the values that take memory: not variables, constants, or rearranged views."""
    result = set()
    for value in values:
        one = value
        while _is_arrangement(one):
            (one,) = one.operands
        if isinstance(one.source.op, Operator):
            result.add(one)
    return result


def _is_arrangement(node: Node) -> bool:
    if not isinstance(node.op, Operator) or not node.op.rearranges or len(node.operands) != 1:
        return False
    return bytes_of(node.operands[0]) <= bytes_of(node)


def _held(node: Node) -> int:
    """Returns the most bytes that a call recomputes at a time."""
    if not isinstance(node.op, Operator):
        return 0
    attributes = node.op.attribute_dict(node.attributes)
    body = attributes.get("body")
    if not isinstance(body, GraphBody):
        return 0
    late = attributes.get("after") or tuple(range(attributes.get("n_carry", 0)))
    return _held_in(body, [body.parameters[i] for i in late])


def _held_in(body: GraphBody, late: Sequence[Node]) -> int:
    """Returns the bytes that a body computes for dependents of ``late`` before those arrive."""
    order = topological(body.results)
    following = reaching(order, late)
    early = residuals(following, lambda node: not (node in following or node.derived))
    own = _distinct(early) - set(body.parameters)
    return sum(map(bytes_of, own)) + max(map(_held, order), default=0)
