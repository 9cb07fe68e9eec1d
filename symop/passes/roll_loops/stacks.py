"""Stacked parameters: variables that a loop reads as one series, kept as one variable.

A training step then copies nothing: it reads the stack and returns the gradient as a stack.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from registry.table import get
from symop.graph.nodes import VARIABLE, Node, topological, variable
from symop.graph.rewriting import substitute
from symop.graph.shardings import sharding_attribute, sharding_of
from symop.passes.roll_loops.listing import cut_of

Stacks = dict[str, tuple[str, ...]]
"""For the name of each stack, the names of the variables along its first axis."""


class Stacked(NamedTuple):
    """A graph over stacks of variables.

    Attributes:
        outputs: The values of the graph.
        updates: The new value of each variable that the graph updates.
        stacks: The variables in each stack.
        apart: The variables that are stacked in each run, because they cannot be kept in a stack.
    """

    outputs: list[Node]
    updates: dict[Node, Node]
    stacks: dict[Node, tuple[Node, ...]]
    apart: set[Node]


def stack_variables(
    outputs: Sequence[Node],
    updates: Mapping[Node, Node],
    allows: Callable[[tuple[str, ...]], bool],
    refused: Collection[Node] = (),
    names: Collection[str] = (),
) -> Stacked:
    """Returns ``outputs`` over one variable for each stack of variables with no other use.

    Only variables that ``allows`` accepts by name and that are not ``refused`` are stacked. No
    stack gets one of ``names``.
    """
    ends = [*outputs, *updates.values()]
    order = topological(ends)
    candidates = [node for node in order if _is_stack_of_variables(node)]
    apart = _conflicts(candidates, order, ends)
    # Loops will be rebuilt without the variables in ``apart``; until then, the other members of
    # their stacks are undecided.
    undecided = set().union(*(one.operands for one in candidates if apart & {*one.operands}))
    stacks: dict[Node, tuple[Node, ...]] = {}
    whole: dict[Node, Node] = {}
    for node in candidates:
        members = tuple(node.operands)
        if not undecided.isdisjoint(members):
            continue
        new = _joint_update(members, updates)
        torn = new is None and any(one in updates for one in members)
        barred = not allows(tuple(str(one.name) for one in members)) or _differ(members)
        if torn or barred or any(one in refused for one in members):
            apart.update(members)
            continue
        stack = _stack_of(node, members, names)
        stacks[stack], whole[node] = members, stack
        if new is not None:
            changed = dict(updates)
            for one in members:
                del changed[one]
            updates = {**changed, stack: new}
    ends = [*outputs, *updates.values()]
    if whole:
        ends = substitute(ends, whole)
    count = len(outputs)
    return Stacked(ends[:count], dict(zip(updates, ends[count:], strict=True)), stacks, apart)


def _conflicts(
    candidates: Sequence[Node], order: Iterable[Node], ends: Iterable[Node]
) -> set[Node]:
    """Returns the variables that cannot be in a stack, because they have another use.

    Variables that overlapping stacks have in common may be stacked: loops can leave out the others.
    """
    uses = Counter(child for node in order for child in node.operands)
    uses.update(ends)
    stacked_by = Counter(one for node in candidates for one in {*node.operands})
    apart = {one for one, count in stacked_by.items() if uses[one] > count}
    for node in candidates:
        most = max(stacked_by[one] for one in node.operands)
        apart.update(one for one in node.operands if stacked_by[one] < most)
    alike = Counter(frozenset(node.operands) for node in candidates)
    return apart.union(*(one for one, count in alike.items() if count > 1))  # in other orders


def _is_stack_of_variables(node: Node) -> bool:
    is_stack = node.op is get("stack") and node.attributes == (0,)
    return is_stack and all(one.op is VARIABLE for one in node.operands)


def _stack_of(node: Node, members: Sequence[Node], names: Collection[str]) -> Node:
    """Returns the variable that replaces several variables of the same role."""
    name = f"{members[0].name}..{members[-1].name}"
    while name in names:
        name += "'"
    role, type = members[0].attributes[2], node.type
    inner = sharding_of(members[0])
    extra = sharding_attribute(name, None if inner is None else (None, *inner))
    return variable(name, type.shape, type.dtype, role, tuple(extra.items()))


def _differ(members: Sequence[Node]) -> bool:
    """Whether variables are split over different axes, so that no stack keeps their shardings."""
    return len({sharding_of(one) for one in members}) > 1


def _joint_update(members: Sequence[Node], updates: Mapping[Node, Node]) -> Node | None:
    """Returns the new values of ``members`` if they are, in order, one array; else None."""
    cuts = [cut_of(updates[one]) if one in updates else None for one in members]
    first = cuts[0]
    if first is None or first.source.type.shape[0] != len(members):
        return None
    for i, cut in enumerate(cuts):
        if cut is None or cut.source is not first.source or cut.piece != (0, i, 1, False):
            return None
    return first.source
