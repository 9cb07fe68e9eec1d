"""Repeats: equal neighbors among blocks become one block, which stands for all of them."""

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

from registry.operator.attributes import identity_key
from registry.operator.operator import Operator
from symop.drawing.blocks import Block
from symop.drawing.boxes import Box
from symop.graph.nodes import CONSTANT, Node
from symop.passes.roll_loops.sequences import Repeat, maximal_repeats

_FEWEST = 3
"""The least number of equal blocks."""
_LEAST_SAVED = 8
"""The least number of boxes that a repeat must save."""
_SHARED = 3
"""A variable with this many readers is one shared value, not one for each block."""


class _Links(NamedTuple):
    """The boxes that each box of a graph reads.

    Attributes:
        boxes: all boxes.
        number: the number of each box's node.
        uses: the number of boxes that read each one.
        known: a number for each description of a block.
    """

    boxes: Sequence[Box]
    number: dict[Node, int]
    uses: Sequence[int]
    known: dict[Hashable, int]

    def code(self, description: Hashable) -> int:
        """Returns a number that equal descriptions share."""
        return self.known.setdefault(description, len(self.known))


def roll(blocks: list[Block], boxes: Sequence[Box]) -> list[Block]:
    """Returns ``blocks`` with equal neighbors as one block each, at every level."""
    uses = [0] * len(boxes)
    for box in boxes:
        for source in {source for source, _ in box.sources}:
            uses[source] += 1
    links = _Links(boxes, {box.node: i for i, box in enumerate(boxes)}, uses, {})
    inner = [one for block in blocks for one in block.walk() if one.children]
    for block in reversed(inner):
        block.children = _rolled(_without_tails(block.children, links), links)
    return _rolled(_without_tails(blocks, links), links)


def _without_tails(blocks: Sequence[Block], links: _Links) -> list[Block]:
    """Returns ``blocks`` with what follows the last of equal ones outside of it.

    Operators without names that follow the last layer of a network, such as a loss, have joined it.
    """
    result: list[Block] = []
    for block in blocks:
        before = result[-1] if result else block
        result.append(block)
        count = len(before.children)
        tail = block.children[count:]
        if before is block or before.kind != block.kind or not count or not tail:
            continue
        same = [_shape(one, links) for one in block.children[:count]]
        if _numbered_alike(before, block) and same == [_shape(c, links) for c in before.children]:
            block.children = block.children[:count]
            result += tail
    return result


def _numbered_alike(one: Block, other: Block) -> bool:
    """Whether the names of two blocks differ in a number only."""
    return _common([one.name, other.name]) == _common([other.name, one.name]) != ""


def _rolled(blocks: list[Block], links: _Links) -> list[Block]:
    shapes = [_shape(block, links) for block in blocks]
    result: list[Block] = []
    place = 0
    for start, period, times in sorted(_runs(blocks, shapes, links)):
        result += blocks[place:start]
        place = start + period * times
        steps = [blocks[i : i + period] for i in range(start, place, period)]
        result.append(_repeat(steps))
    return result + blocks[place:]


def _repeat(steps: list[list[Block]]) -> Block:
    """Returns the block of equal steps; a repeated operator is a box."""
    names = [step[0].name for step in steps]
    members = [_merged(list(each)) for each in zip(*steps, strict=True)]
    if len(members) > 1:
        return Block("repeat", "", members, times=len(steps))
    (block,) = members
    if block.kind == "box":
        return block
    return Block("repeat", _common(names), block.children, times=len(steps), names=names)


def _common(names: Sequence[str]) -> str:
    """Returns what names that differ in a number have in common."""
    first, last = names[0], names[-1]
    if first == last:
        return first
    return first.rstrip("0123456789").rstrip("_-./") or first


def _merged(blocks: list[Block]) -> Block:
    """Merges blocks of equal shape into the first one."""
    first = blocks[0]
    pairs = zip(*(block.walk() for block in blocks), strict=True)
    for same in pairs:
        kept = same[0]
        if kept.box is not None:
            kept.box = _joined([one.box for one in same if one.box is not None])
        if kept.kind != "box":
            names = list(dict.fromkeys(one.name for one in same))
            kept.names = names if len(names) > 1 else []
            kept.name = _common(names)
    return first


def _joined(boxes: Sequence[Box]) -> Box:
    """Returns a box that represents the nodes of equal boxes."""
    nodes = [node for box in boxes for node in box.nodes]
    sources = list(dict.fromkeys(source for box in boxes for source in box.sources))
    outputs = [i for box in boxes for i in box.outputs]
    return Box(nodes, sources, outputs)


# Equality of blocks ----------------------------------------------------------------------------


def _shape(block: Block, links: _Links, *, leaves: bool = True) -> int:
    """Returns a number that blocks of equal operators and inner connections share.

    With ``leaves``, they also read equal variables, or others of equal types.
    """
    inside = block.boxes()
    place = {node: i for i, box in enumerate(inside) for node in box.nodes}
    described = [
        (
            kind_of(box.node, leaves=leaves),
            box.times,
            tuple(
                dict.fromkeys(
                    (place[node], output) for node, output in _read(box, links) if node in place
                )
            ),
            tuple(_shared_leaves(box, links)) if leaves else (),
        )
        for box in inside
    ]
    kinds = tuple((one.kind, len(one.children)) for one in block.walk())
    return links.code((kinds, tuple(described)))


def _read(box: Box, links: _Links) -> Iterator[tuple[Node, int]]:
    for source, output in box.sources:
        yield links.boxes[source].node, output


def _shared_leaves(box: Box, links: _Links) -> Iterator[Hashable]:
    """Yields the variables that a box reads: shared ones by themselves, others by their type."""
    for node, _ in _read(box, links):
        if not node.inputs:
            number = links.number[node]
            yield number if links.uses[number] >= _SHARED else node.types


def kind_of(node: Node, *, leaves: bool = True) -> Hashable:
    """Returns the operation of a node, with the numbers and the types of the leaves it reads."""
    read = tuple(
        identity_key(one.attributes) if one.op is CONSTANT else one.types
        for one in node.operands
        if not one.inputs and (leaves or one.op is CONSTANT)
    )
    attributes = identity_key(node.attributes) if isinstance(node.op, Operator) else ()
    return node.op.name, attributes, node.types, read


def _is_shared(node: Node, links: _Links) -> bool:
    """Whether many operators read a value that is a variable or, for example, its transpose."""
    number = links.number[node]
    near = all(not links.boxes[source].sources for source, _ in links.boxes[number].sources)
    return near and links.uses[number] >= _SHARED


# Runs of equal blocks --------------------------------------------------------------------------

_Run = tuple[int, int, int]
"""The start, the number of blocks in a step, and the number of steps."""


def _runs(blocks: Sequence[Block], shapes: Sequence[int], links: _Links) -> Iterator[_Run]:
    """Yields disjoint runs of equal steps, of which the largest are chosen first."""
    if len(blocks) < _FEWEST:
        return
    sizes = [len(block.boxes()) for block in blocks]
    letters = _letters(blocks, shapes, links)
    taken = [False] * len(blocks)
    alike = [_shape(block, links, leaves=False) for block in blocks]
    runs = [_extended(repeat, alike) for repeat in maximal_repeats(letters)]
    for start, period, times in sorted(runs, key=lambda run: (-run[1] * (run[2] - 1), run)):
        stop = start + period * times
        saved = sum(sizes[start : start + period]) * (times - 1)
        if times >= _FEWEST and saved >= _LEAST_SAVED and not any(taken[start:stop]):
            taken[start:stop] = [True] * (stop - start)
            yield start, period, times


def _extended(repeat: Repeat, shapes: Sequence[int]) -> _Run:
    """Adds the step before, which reads initial values where the others read carried ones."""
    start, stop, period = repeat
    first = start
    while start > max(first - period, 0) and shapes[start - 1] == shapes[start - 1 + period]:
        start -= 1
    return start, period, (stop - start) // period


def _letters(blocks: Sequence[Block], shapes: Sequence[int], links: _Links) -> list[int]:
    """Numbers the blocks, equally for equal shapes and distances to the blocks that they read."""
    owner: dict[Node, tuple[int, int]] = {}
    letters = []
    for i, block in enumerate(blocks):
        inside = block.boxes()
        wires = []
        for k, box in enumerate(inside):
            for node, output in _read(box, links):
                if node in owner:
                    at, inner = owner[node]
                    shared = _is_shared(node, links)
                    wires.append((k, output, ~links.number[node] if shared else i - at, inner))
        letters.append(links.code((shapes[i], tuple(wires))))
        owner.update({node: (i, k) for k, box in enumerate(inside) for node in box.nodes})
    return letters
