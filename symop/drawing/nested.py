"""Nested layout: open blocks are frames around what they contain.

A block and its gradient stand next to each other, the gradient on the right. Forward values go
down, gradients go up.
"""

import dataclasses
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from symop.drawing.blocks import Block, ordered
from symop.drawing.layout import Layout, arrange
from symop.drawing.rows import Point
from symop.drawing.svg import Frame, Wire
from symop.drawing.view import End, Link, Port

HEADER = 22.0
PADDING = 14.0
TWIN_GAP = 46.0
_INSET = 8.0


@dataclasses.dataclass(slots=True)
class Panel:
    """The contents of an open block, laid out relative to its upper left corner.

    Attributes:
        width: its width.
        height: its height.
        cards: the center of each visible block that is not open.
        frames: the frames of the open blocks inside.
        wires: the links inside.
        ports: the horizontal position of each gap in its border.
    """

    width: float
    height: float
    cards: dict[Block, Point] = dataclasses.field(default_factory=dict)
    frames: list[Frame] = dataclasses.field(default_factory=list)
    wires: list[Wire] = dataclasses.field(default_factory=list)
    ports: dict[Port, float] = dataclasses.field(default_factory=dict)

    def add(self, other: "Panel", x: float, y: float) -> None:
        """Adds what another panel contains, moved."""
        self.cards.update({one: (a + x, b + y) for one, (a, b) in other.cards.items()})
        self.frames += [one._replace(x=one.x + x, y=one.y + y) for one in other.frames]
        self.wires += [
            one._replace(points=[(a + x, b + y) for a, b in one.points]) for one in other.wires
        ]


class _Cell(NamedTuple):
    """A unit of the layout: a block, with its gradient if it has one, or a port.

    Attributes:
        block: the block on the left; None for a port, and for a gradient without counterpart.
        twin: the gradient on the right.
        port: the port.
    """

    block: Block | None = None
    twin: Block | None = None
    port: Port = None


def lay_out(
    root: Block,
    opened: Collection[Block],
    links: Mapping[Block, Sequence[Link]],
    sizes: Mapping[Block, Point],
    titles: Mapping[Block, str],
) -> Panel:
    """Returns the layout of ``root`` with the blocks ``opened``.

    Args:
        root: the outermost block, which has no frame.
        opened: the open blocks, ``root`` among them.
        links: the links inside each open block.
        sizes: the sizes of the cards of other visible blocks.
        titles: the titles of the frames of open blocks.
    """
    panels: dict[Block, Panel] = {}
    for block in reversed([one for one in root.walk() if _is_seen(one, opened, sizes)]):
        if block in opened:
            panels[block] = _Level(block, links[block], sizes, panels, titles).panel()
    return panels[root]


def _is_seen(block: Block, opened: Collection[Block], sizes: Mapping[Block, Point]) -> bool:
    return block in opened or block in sizes


class _Level:
    """The layout of the direct contents of one open block."""

    def __init__(
        self,
        block: Block,
        links: Sequence[Link],
        sizes: Mapping[Block, Point],
        panels: Mapping[Block, Panel],
        titles: Mapping[Block, str],
    ) -> None:
        self.block, self.links, self.titles = block, links, titles
        self.panels = panels
        self.size = {
            one: (panels[one].width, panels[one].height) if one in panels else sizes[one]
            for one in block.children
        }
        self.cells = self._cells()
        self.columns = self._columns()
        self._number()
        before: dict[int, list[int]] = defaultdict(list)
        for upper, lower in self._edges():
            before[lower].append(upper)
        self.cells = [self.cells[i] for i in ordered(range(len(self.cells)), before)]
        self._number()
        self.paired = self._paired()

    def _number(self) -> None:
        """Notes the numbers of the cells of blocks and ports."""
        cells = list(enumerate(self.cells))
        self.cell_of = {one: i for i, cell in cells for one in (cell.block, cell.twin) if one}
        self.port_cell = {cell.port: i for i, cell in cells if cell.port is not None}

    def _edges(self) -> list[tuple[int, int]]:
        """Returns the pairs of cells that are linked, the upper one first."""
        edges: dict[tuple[int, int], None] = {}
        for link in self.links:
            pair = self._cell_at(link.source), self._cell_at(link.target)
            pair = pair[::-1] if link.kind == "gradient" else pair
            if pair[0] != pair[1] and pair[::-1] not in edges:
                edges[pair] = None
        return list(edges)

    def _cells(self) -> list[_Cell]:
        twins = {one.twin: one for one in self.block.children if one.twin is not None}
        inside = set(self.block.children)
        cells = [
            _Cell(one, twins.get(one)) if one.twin not in inside else None
            for one in self.block.children
        ]
        ports = dict.fromkeys(
            end.port for link in self.links for end in link[:2] if end.block is None
        )
        return [one for one in cells if one is not None] + [_Cell(port=port) for port in ports]

    def _columns(self) -> tuple[float, float] | None:
        """Returns the widths of the forward part and of the gradient, if there are pairs."""
        pairs = [cell for cell in self.cells if cell.block and cell.twin]
        if not pairs:
            return None
        left = max(self.size[cell.block][0] for cell in pairs if cell.block)
        right = max(self.size[cell.twin][0] for cell in pairs if cell.twin)
        return left, right

    def _paired(self) -> set[int]:
        """Returns the cells as wide as both columns: pairs, and the operators that follow them."""
        if self.columns is None:
            return set()
        result = {i for i, cell in enumerate(self.cells) if cell.twin is not None}
        for upper, lower in self._edges():
            if upper in result and self.cells[lower].block is not None:
                result.add(lower)
        return result

    def _cell_size(self, cell: _Cell) -> Point:
        if cell.block is None:
            return 2.0, 2.0
        width, height = self.size[cell.block]
        if self.cell_of[cell.block] not in self.paired:
            return width, height
        assert self.columns is not None
        left, right = (max(*self.columns, width),) * 2
        if cell.twin is not None:
            height = max(height, self.size[cell.twin][1])
        return left + TWIN_GAP + right, height

    def panel(self) -> Panel:
        """Returns the layout."""
        pairs = self._edges()
        tops = [i for port, i in self.port_cell.items() if (port[0] == "in") != self.block.backward]
        bottoms = [i for i in self.port_cell.values() if i not in tops]
        sizes = [self._cell_size(cell) for cell in self.cells]
        sides = [0] * len(sizes)
        layout = arrange(sizes, pairs, sides, tops=tops, bottoms=bottoms, aligned=self.paired)
        return self._assembled(layout, dict(zip(pairs, layout.paths, strict=True)))

    def _cell_at(self, end: End) -> int:
        return self.port_cell[end.port] if end.block is None else self.cell_of[end.block]

    def _assembled(self, layout: Layout, paths: Mapping[tuple[int, int], list[Point]]) -> Panel:
        whole = self.block.kind == "graph"
        dx, dy = (0.0, 0.0) if whole else (PADDING, HEADER)
        title = 0.0 if whole else len(self.titles.get(self.block, "")) * 7.0 + 2 * PADDING
        width = max(layout.width + 2 * dx, title)
        dx = (width - layout.width) / 2
        height = layout.height + (0.0 if whole else HEADER + PADDING)
        panel = Panel(width, height)
        at: dict[Block, Point] = {}
        for cell, (x, y) in zip(self.cells, layout.centers, strict=True):
            for one, shift in self._shifts(cell):
                at[one] = (x + shift + dx, y + dy)
        for one, (x, y) in at.items():
            self._put(panel, one, x, y)
        panel.ports = {port: layout.centers[i][0] + dx for port, i in self.port_cell.items()}
        moved = {edge: [(x + dx, y + dy) for x, y in path] for edge, path in paths.items()}
        for link in self.links:
            panel.wires.append(self._wire(link, at, moved, panel))
        return panel

    def _shifts(self, cell: _Cell) -> list[tuple[Block, float]]:
        """Returns the blocks of a cell with their horizontal distances from its center."""
        if cell.block is None:
            return []
        if self.cell_of[cell.block] not in self.paired:
            return [(cell.block, 0.0)]
        half = self._cell_size(cell)[0] / 2
        shift = (half + TWIN_GAP / 2) / 2
        return [(cell.block, -shift)] + ([(cell.twin, shift)] if cell.twin else [])

    def _put(self, panel: Panel, block: Block, x: float, y: float) -> None:
        if block not in self.panels:
            panel.cards[block] = (x, y)
            return
        inner = self.panels[block]
        left, top = x - inner.width / 2, y - inner.height / 2
        kind = "gradient" if block.backward else "forward"
        title = self.titles[block]
        panel.frames.append(Frame(left, top, inner.width, inner.height, kind, title))
        panel.add(inner, left, top)

    def _wire(
        self,
        link: Link,
        at: Mapping[Block, Point],
        paths: Mapping[tuple[int, int], list[Point]],
        panel: Panel,
    ) -> Wire:
        pair = self._cell_at(link.source), self._cell_at(link.target)
        if pair[0] == pair[1]:
            return self._across(link, at)
        path = paths[pair] if pair in paths else paths[pair[::-1]][::-1]
        points = list(path)
        downwards = points[0][1] < points[-1][1]
        inner = points[2:-2]
        start = self._end(link.source, at, panel, below=downwards, toward=(inner or points[-1:])[0])
        stop = self._end(link.target, at, panel, below=not downwards, toward=(inner or [start])[-1])
        if link.source.port is None and not inner:
            start = self._end(link.source, at, panel, below=downwards, toward=stop)
        middle = [(start[0], points[1][1]), *inner, (stop[0], points[-2][1])]
        return Wire([start, *middle, stop], link.kind, "↻" if link.carried else "")

    def _across(self, link: Link, at: Mapping[Block, Point]) -> Wire:
        """Returns the wire from a block to its gradient on the right."""
        source, target = link.source.block, link.target.block
        assert source is not None
        assert target is not None
        (x, y), (other, _) = at[source], at[target]
        start = x + self.size[source][0] / 2, y
        return Wire([start, (other - self.size[target][0] / 2, y)], link.kind, across=True)

    def _end(
        self, end: End, at: Mapping[Block, Point], panel: Panel, *, below: bool, toward: Point
    ) -> Point:
        """Returns the point where a wire leaves or enters a block or the border."""
        if end.block is None:
            # A wire that leaves the border downwards starts at its top.
            return panel.ports[end.port], 0.0 if below else panel.height
        (x, y), (width, height) = at[end.block], self.size[end.block]
        edge = y + height / 2 if below else y - height / 2
        if end.port is not None and end.block in self.panels:
            inner = self.panels[end.block]
            if end.port in inner.ports:
                return x - width / 2 + inner.ports[end.port], edge
        low, high = x - width / 2 + _INSET, x + width / 2 - _INSET
        return min(max(toward[0], low), high), edge
