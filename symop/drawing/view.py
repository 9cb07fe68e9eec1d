"""Views: which blocks of an outline are open, and the edges between the blocks that one sees."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from symop.drawing.blocks import Block
from symop.drawing.outline import Edge, Outline

Port = Any
"""Names a gap in the border of an open block; values that go to the same blocks share one."""


class End(NamedTuple):
    """The end of a link.

    Attributes:
        block: a block inside the open block; None for the border of the open block itself.
        port: which gap of that border, or of the block's own if it is open; None otherwise.
    """

    block: Block | None
    port: Port = None


class Link(NamedTuple):
    """Values that go from one block to another in the same open block.

    Attributes:
        source: where they come from.
        target: where they go.
        kind: ``forward``, ``gradient`` or ``residual``, from a block to its gradient.
        outputs: which outputs of the source, if it is a box.
        carried: whether some of them come from the previous step of the block, a repeat.
    """

    source: End
    target: End
    kind: str
    outputs: tuple[int, ...]
    carried: bool


def open_blocks(outline: Outline, limit: int) -> set[Block]:
    """Returns the blocks to open so that at most ``limit`` boxes are seen, or no more than needed.

    Blocks of one depth are opened together, if possible, so that equal things look equal.
    """
    opened = {outline.root}
    count = len(outline.root.children)
    groups = [[one for one in outline.root.children if one.children]]
    while groups:
        following: list[list[Block]] = []
        for group in _alike(groups.pop(0)):
            cost = sum(len(block.children) - 1 for block in group)
            if count + cost <= limit:
                count += cost
                opened |= set(group)
                following.append([c for block in group for c in block.children if c.children])
        groups += [group for group in following if group]
    return opened


def _alike(blocks: Sequence[Block]) -> list[list[Block]]:
    """Splits blocks into groups to be opened together, the most telling first."""
    groups: dict[tuple[bool, ...], list[Block]] = defaultdict(list)
    for block in blocks:
        key = (block.kind == "variables", block.kind == "gradient", block.backward)
        groups[(*key, block.kind in ("layer", "call", "body"))].append(block)
    return [groups[key] for key in sorted(groups)]


def links_of(outline: Outline, opened: Collection[Block]) -> dict[Block, list[Link]]:
    """Returns the links inside each open block."""
    return _Lifting(outline, opened).links()


class _Lifting:
    """Turns the edges between boxes into links between visible blocks."""

    def __init__(self, outline: Outline, opened: Collection[Block]) -> None:
        self.outline, self.opened = outline, opened
        self.lines: dict[Block, list[Block]] = {}
        self.reached: dict[tuple[Block, Port], set[Block]] = defaultdict(set)
        self.carried: set[tuple[Block, End, End, str]] = set()
        self.made: dict[Block, dict[tuple[End, End, str], set[int]]] = defaultdict(
            lambda: defaultdict(set)
        )

    def links(self) -> dict[Block, list[Link]]:
        edges = [(edge, self._shared(edge)) for edge in self.outline.edges]
        for edge, depth in edges:
            line = self._line(edge.target)
            for block in line[depth + 1 : -1]:
                self.reached[block, self._value(edge)].add(line[-1])
        for edge, depth in edges:
            self._lift(edge, depth)
        return {
            block: [
                Link(*key, tuple(sorted(outputs)), (block, *key) in self.carried)
                for key, outputs in self.made[block].items()
            ]
            for block in self.opened
        }

    def _line(self, block: Block) -> list[Block]:
        """Returns the visible block that represents ``block``, after the open blocks around it."""
        if block not in self.lines:
            line = self.outline.ancestors(block)
            seen = next((i for i, one in enumerate(line) if one not in self.opened), len(line) - 1)
            self.lines[block] = line[: seen + 1]
        return self.lines[block]

    def _shared(self, edge: Edge) -> int:
        """Returns the depth of the innermost open block with both ends of an edge.

        A value that is carried to the next step leaves the block of the repeat, and enters again.
        """
        lines = self._line(edge.source), self._line(edge.target)
        depth = -1
        for one, other in zip(*lines, strict=False):
            if one is not other or one not in self.opened:
                break
            if one is edge.over:
                return depth
            depth += 1
        return depth

    def _value(self, edge: Edge) -> Port:
        return edge.source, edge.output, edge.over

    def _lift(self, edge: Edge, depth: int) -> None:
        source, target = self._line(edge.source), self._line(edge.target)
        if source[-1] is target[-1]:
            return
        kind = "gradient" if edge.source.backward else "forward"
        start, stop = source[depth + 1 :], target[depth + 1 :]
        if kind == "forward" and edge.target.backward and edge.source.box is not None:
            self._lift_residual(edge, depth, start[0], stop[0])
            return
        ends = [End(block, self._exit(block, source[-1])) for block in start]
        heads = [End(block, self._entry(block, edge)) for block in stop]
        carried = edge.over is not None and start[0] is stop[0]
        if not carried:
            self._add(source[depth], ends[0], heads[0], kind, edge)
        for around, inner in pairwise(ends):
            self._add(around.block, inner, End(None, around.port), kind, edge)
        for around, inner in pairwise(heads):
            entry = End(None, around.port)
            self._add(around.block, entry, inner, kind, edge)
            if edge.over is not None and around.block is edge.over:
                self.carried.add((edge.over, entry, inner, kind))

    def _lift_residual(self, edge: Edge, depth: int, start: Block, stop: Block) -> None:
        """Links a block with its own gradient; other residuals would hide everything else."""
        if stop.twin is start and depth >= 0:
            around = self._line(edge.source)[depth]
            self._add(around, End(start), End(stop), "residual", edge)

    def _exit(self, block: Block, seen: Block) -> Port:
        return ("out", seen) if block in self.opened else None

    def _entry(self, block: Block, edge: Edge) -> Port:
        if block not in self.opened:
            return None
        return "in", frozenset(self.reached[block, self._value(edge)])

    def _add(self, around: Block | None, source: End, target: End, kind: str, edge: Edge) -> None:
        assert around is not None
        outputs = self.made[around][source, target, kind]
        if source.block is edge.source:
            outputs.add(edge.output)
