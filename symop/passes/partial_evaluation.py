"""Partial evaluation: values that depend only on some variables are computed before the rest."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from registry.operator.operator import Operator
from registry.types import VarType
from symop.graph.inference import Known, infer_types
from symop.graph.nodes import ARRAY, CONSTANT, VARIABLE, Node, residuals, topological


class Early(NamedTuple):
    """The values of a graph that are computed before the rest.

    Attributes:
        values: the computed values that the rest of the graph reads.
        names: their names, which no other value of the rest has.
    """

    values: list[Node]
    names: list[str]


def early(roots: Sequence[Node], given: Mapping[Node, VarType]) -> Early:
    """Returns the values of ``roots`` that depend only on the variables ``given``.

    A value that is larger than its operands stays in the rest, unless it is costly.
    """
    order = topological(roots)
    types = infer_types(roots, given)
    moving = _followers(order, given)
    read = residuals(roots, lambda one: one in moving and not _grows(one, types))
    values = [one for one in dict.fromkeys(read) if one.op is not VARIABLE]
    return Early(values, _names(topological(roots, until=values), values))


def _followers(order: Sequence[Node], given: Collection[Node]) -> set[Node]:
    """Returns the nodes that depend on ``given`` variables, and otherwise only on constants."""
    fixed: set[Node] = set()
    moving: set[Node] = set(given)
    for node in order:
        operator = node.source.op
        repeats = isinstance(operator, Operator) and not operator.stateful
        if node in given or node.op in (CONSTANT, ARRAY):
            fixed.add(node)
        elif repeats and node.inputs and all(one in fixed for one in node.operands):
            fixed.add(node)
            if any(one in moving for one in node.operands):
                moving.add(node)
    return moving


def _grows(node: Node, types: Known) -> bool:
    """Whether a call that is not costly makes more bytes than it reads."""
    call = node.source
    if not isinstance(call.op, Operator) or call.op.costly:
        return False
    sizes = [types.get(one, (None,)) for one in (*call.operands, call)]
    *read, made = [sum(one.nbytes for one in each if one is not None) for each in sizes]
    return made > sum(read)


def _names(rest: Sequence[Node], values: Sequence[Node]) -> list[str]:
    """Returns names that consist of the call and the slot of the rest that read each value."""
    taken = {node.name for node in rest if node.name is not None}
    wanted = {
        one: f"{node.name}_{node.op.slot_of(i).name}"
        for node in reversed(rest)
        if isinstance(node.op, Operator) and node.name is not None
        for i, one in enumerate(node.inputs)
        if one is not None
    }
    names: list[str] = []
    for one in values:
        name, count = wanted.get(one, "folded"), 0
        while name in taken:
            name, count = f"{wanted.get(one, 'folded')}{count}", count + 1
        taken.add(name)
        names.append(name)
    return names
