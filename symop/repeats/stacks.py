"""Parameters that a loop reads as one series, as one variable: who owns them keeps them stacked.

Then a step of training copies nothing: it reads the stack, and gives the gradient as a stack.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from registry.table import get
from symop.emission import substitute
from symop.graph import VARIABLE, Node, topological, variable
from symop.repeats.listing import cut_of

Stacks = dict[str, tuple[str, ...]]
"""Names of the variables that lie along the first axis of another one, by its name."""


class Stacked(NamedTuple):
    """A graph over stacks of variables.

    Attributes:
        outputs: its values.
        updates: the new value of each variable that it updates.
        stacks: which variables lie in which stack.
        apart: those that are put together in each run, because they cannot lie in one.
    """

    outputs: list[Node]
    updates: dict[Node, Node]
    stacks: dict[Node, tuple[Node, ...]]
    apart: set[Node]


def stacked(
    outputs: Sequence[Node],
    updates: Mapping[Node, Node],
    allows: Callable[[tuple[str, ...]], bool],
    refused: Collection[Node] = (),
    names: Collection[str] = (),
) -> Stacked:
    """``outputs`` over one variable for each stack of variables that are used nowhere else.

    Only those are stacked of whose names ``allows`` says so, and that are not ``refused``.
    None gets one of ``names``.
    """
    ends = [*outputs, *updates.values()]
    order = topological(ends)
    candidates = [node for node in order if _is_stack_of_variables(node)]
    apart = _conflicts(candidates, order, ends)
    # Loops that leave out what is apart will update others of these: nothing is known of them yet.
    undecided = set().union(*(one.operands for one in candidates if apart & {*one.operands}))
    stacks: dict[Node, tuple[Node, ...]] = {}
    whole: dict[Node, Node] = {}
    for node in candidates:
        members = tuple(node.operands)
        if not undecided.isdisjoint(members):
            continue
        new = _joint_update(members, updates)
        torn = new is None and any(one in updates for one in members)
        barred = not allows(tuple(str(one.name) for one in members))
        if torn or barred or any(one in refused for one in members):
            apart.update(members)
            continue
        made = _stack_of(node, members, names)
        stacks[made], whole[node] = members, made
        if new is not None:
            changed = dict(updates)
            for one in members:
                del changed[one]
            updates = {**changed, made: new}
    ends = [*outputs, *updates.values()]
    if whole:
        ends = substitute(ends, whole)
    count = len(outputs)
    return Stacked(ends[:count], dict(zip(updates, ends[count:], strict=True)), stacks, apart)


def _conflicts(
    candidates: Sequence[Node], order: Iterable[Node], ends: Iterable[Node]
) -> set[Node]:
    """The variables that cannot lie in a stack: all that uses them must be one stack.

    Of stacks that differ, what they have in common may: loops can leave the others out.
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
    """The variable that stands for several of one role."""
    name = f"{members[0].name}..{members[-1].name}"
    while name in names:
        name += "'"
    role, type = members[0].attributes[2], node.type
    return variable(name, type.shape, type.dtype, role)


def _joint_update(members: Sequence[Node], updates: Mapping[Node, Node]) -> Node | None:
    """The new values of ``members`` as they lie in one array, in order; None if they do not."""
    cuts = [cut_of(updates[one]) if one in updates else None for one in members]
    first = cuts[0]
    if first is None or first.source.type.shape[0] != len(members):
        return None
    for i, cut in enumerate(cuts):
        if cut is None or cut.source is not first.source or cut.piece != (0, i, 1, False):
            return None
    return first.source
