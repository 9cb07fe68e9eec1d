"""Layered layout: boxes in rows from top to bottom, edges as curves between the boxes.

A box on side 0 belongs to the forward part, one on side 1 to the gradient. The gradient is drawn
from bottom to top next to the forward part if that shortens the edges, as it does for reverse mode.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise
from typing import NamedTuple

from symop.drawing.rows import (
    BOX_GAP,
    ROW_WIDTH,
    Neighbors,
    Point,
    Wires,
    mean,
    orders,
    ranks_of,
    split_wide,
    uncrossed,
)

ROW_GAP = 30.0
WIRE_GAP = 12.0
SIDE_GAP = 34.0
PORT_GAP = 14.0
POSITION_SWEEPS = 30


class Layout(NamedTuple):
    """The positions of boxes and edges.

    Attributes:
        centers: the center of each box.
        paths: for each edge, its points from source to target; its direction at each point is
            vertical.
        width: the total width.
        height: the total height.
    """

    centers: list[Point]
    paths: list[list[Point]]
    width: float
    height: float


def arrange(
    sizes: Sequence[Point],
    edges: Sequence[tuple[int, int]],
    sides: Sequence[int],
    *,
    tops: Collection[int] = (),
    bottoms: Collection[int] = (),
    aligned: Collection[int] = (),
) -> Layout:
    """Computes positions of boxes of ``sizes`` (width, height) and routes of ``edges``.

    Boxes are numbered so that most edges lead to higher numbers; other edges are drawn upwards.
    Edges are unique pairs of different boxes. The boxes in ``tops`` are in the first row, those in
    ``bottoms`` in the last. Those in ``aligned`` are on a vertical line where they are linked.
    """
    ranks = min(
        (ranks_of(order, edges, tops, bottoms) for order in orders(sides)),
        key=lambda ranks: sum(abs(ranks[u] - ranks[v]) for u, v in edges),
    )
    width = max(ROW_WIDTH, 3 * max([sizes[box][0] for box in aligned], default=0.0))
    wires = Wires(sizes, edges, sides, split_wide(ranks, sizes, width), aligned)
    rows = uncrossed(wires)
    x = _positions(wires, rows)
    return _routed(wires, rows, x)


# Positions -------------------------------------------------------------------------------------


def _positions(wires: Wires, rows: Sequence[Sequence[int]]) -> list[float]:
    """Returns x of each point; edges are as straight as the distances within rows allow."""
    x = _balanced(wires, rows)
    return _straightened(wires, rows, x)


def _balanced(wires: Wires, rows: Sequence[Sequence[int]]) -> list[float]:
    """Places each point near the mean of its neighbors."""
    x = [0.0] * len(wires.rank)
    gaps = [[_distance(wires, a, b) for a, b in pairwise(row)] for row in rows]
    for sweep in range(POSITION_SWEEPS):
        # The first sweeps propagate positions from row to row; later sweeps balance both sides.
        sides = [wires.up, wires.down] if sweep > 1 else [(wires.up, wires.down)[sweep]]
        numbered = list(zip(rows, gaps, strict=True))
        for row, gap in numbered if sweep % 2 == 0 else reversed(numbered):
            pulls = [_pull(wires, x, point, sides) for point in row]
            for point, value in zip(row, spread(pulls, gap), strict=True):
                x[point] = value
    return x


def _straightened(wires: Wires, rows: Sequence[Sequence[int]], x: Sequence[float]) -> list[float]:
    """Aligns chains of points vertically, near the positions ``x``."""
    chain_of, chains = _chains(wires, rows, x)
    left: list[dict[int, float]] = [{} for _ in chains]
    right: list[dict[int, float]] = [{} for _ in chains]
    for row in rows:
        for a, b in pairwise(row):
            gap = max(_distance(wires, a, b), left[chain_of[b]].get(chain_of[a], 0.0))
            left[chain_of[b]][chain_of[a]] = right[chain_of[a]][chain_of[b]] = gap
    at = [mean([x[point] for point in chain], 0.0) for chain in chains]
    order = _left_to_right(left, right)
    for chain in order:
        low = max([at[other] + gap for other, gap in left[chain].items()], default=at[chain])
        at[chain] = max(at[chain], low)
    for sweep in range(POSITION_SWEEPS):
        for chain in reversed(order) if sweep % 2 == 0 else order:
            wanted = _chain_pull(wires, at, chains[chain], chain_of)
            low = max([at[o] + gap for o, gap in left[chain].items()], default=wanted)
            high = min([at[o] - gap for o, gap in right[chain].items()], default=wanted)
            at[chain] = max(min(wanted, high), low)
    return [at[chain] for chain in chain_of]


def _chain_pull(
    wires: Wires, at: Sequence[float], chain: Sequence[int], chain_of: Sequence[int]
) -> float:
    """Returns the weighted mean of the positions of adjacent chains."""
    total = weight = 0.0
    own = chain_of[chain[0]]
    for point in chain:
        for other in (*wires.up[point], *wires.down[point]):
            if chain_of[other] != own:
                strength = _strength(wires, point, other)
                total += strength * at[chain_of[other]]
                weight += strength
    return total / weight if weight else at[own]


def _chains(
    wires: Wires, rows: Sequence[Sequence[int]], x: Sequence[float]
) -> tuple[list[int], list[list[int]]]:
    """Links points to at most one point per adjacent row, without crossings; returns chains."""
    above: dict[int, int] = {}
    for upper, lower in pairwise(rows):
        place = {point: i for row in (upper, lower) for i, point in enumerate(row)}
        joints = [
            (-_strength(wires, p, q), abs(x[p] - x[q]), place[p], place[q], p, q)
            for p in upper
            for q in wires.down[p]
            if wires.group[p] == wires.group[q]
        ]
        taken: list[tuple[int, int]] = []
        for _, _, i, j, p, q in sorted(joints):
            if all((i - a) * (j - b) > 0 for a, b in taken):
                taken.append((i, j))
                above[q] = p
    chain_of = [-1] * len(wires.rank)
    chains: list[list[int]] = []
    for row in rows:
        for point in row:
            if point not in above:
                chains.append([])
            chain = chain_of[above[point]] if point in above else len(chains) - 1
            chain_of[point] = chain
            chains[chain].append(point)
    return chain_of, chains


def _left_to_right(
    left: Sequence[dict[int, float]], right: Sequence[dict[int, float]]
) -> list[int]:
    """Sorts chains from left to right, topologically: without crossings no cycle exists."""
    waiting = [len(others) for others in left]
    order = [chain for chain, count in enumerate(waiting) if not count]
    for chain in order:
        for other in right[chain]:
            waiting[other] -= 1
            if not waiting[other]:
                order.append(other)
    return order


def _distance(wires: Wires, left: int, right: int) -> float:
    both = wires.is_box(left) and wires.is_box(right)
    gap = BOX_GAP if both else WIRE_GAP
    if wires.group[left] != wires.group[right] and (both or wires.group[left] == 0):
        gap = SIDE_GAP
    return (wires.width(left) + wires.width(right)) / 2 + gap


def _pull(
    wires: Wires, x: Sequence[float], point: int, sides: Sequence[Neighbors]
) -> tuple[float, float]:
    """Returns a point's preferred position given its neighbors, and the preference's weight."""
    total = weight = 0.0
    for side in sides:
        for other in side[point]:
            strength = _strength(wires, point, other)
            total += strength * x[other]
            weight += strength
    return (total / weight, weight) if weight else (x[point], 0.01)


def _strength(wires: Wires, point: int, other: int) -> float:
    """Returns the weight of keeping the edge between two points straight."""
    bends = 2 - wires.is_box(point) - wires.is_box(other)
    strength = (3.0, 2.0, 8.0)[bends]
    if point in wires.aligned and other in wires.aligned:
        strength = 20.0
    return 3.0 * strength if wires.group[point] == wires.group[other] else strength


def spread(pulls: Sequence[tuple[float, float]], gaps: Sequence[float]) -> list[float]:
    """Returns numbers near the wanted ones (value, weight), at distances of at least ``gaps``.

    They minimize the weighted squares of the deviations, by pool adjacent violators: neighbors that
    would be too close move as one block, placed at the weighted mean of their wanted positions.
    """
    offset, offsets = 0.0, []
    blocks: list[tuple[float, float, int]] = []
    for i, (value, weight) in enumerate(pulls):
        offset += gaps[i - 1] if i else 0.0
        offsets.append(offset)
        block = ((value - offset) * weight, weight, 1)
        while blocks and blocks[-1][0] / blocks[-1][1] > block[0] / block[1]:
            total, mass, count = blocks.pop()
            block = (block[0] + total, block[1] + mass, block[2] + count)
        blocks.append(block)
    places = [total / mass for total, mass, count in blocks for _ in range(count)]
    return [place + offset for place, offset in zip(places, offsets, strict=True)]


# Routes ----------------------------------------------------------------------------------------


class _Frame(NamedTuple):
    """The top and bottom of each row."""

    top: list[float]
    bottom: list[float]


def _frame(wires: Wires, rows: Sequence[Sequence[int]], x: Sequence[float]) -> _Frame:
    top, bottom, y = [], [], 0.0
    for row in rows:
        height = max((wires.sizes[p][1] for p in row if wires.is_box(p)), default=4.0)
        top.append(y)
        bottom.append(y + height)
        # An edge with a large horizontal shift needs height, or it would be almost horizontal.
        shift = max((abs(x[p] - x[q]) for p in row for q in wires.down[p]), default=0.0)
        y += height + ROW_GAP + min(60.0, 0.07 * shift)
    return _Frame(top, bottom)


def _routed(wires: Wires, rows: Sequence[Sequence[int]], x: list[float]) -> Layout:
    left = min((x[p] - wires.width(p) / 2 for row in rows for p in row[:1]), default=0.0)
    x = [value - left for value in x]
    width = max((x[p] + wires.width(p) / 2 for row in rows for p in row[-1:]), default=0.0)
    frame = _frame(wires, rows, x)
    ports = _ports(wires, x)
    middles = [(frame.top[r] + frame.bottom[r]) / 2 for r in wires.rank[: len(wires.sizes)]]

    def end(attached: _Attached) -> list[Point]:
        """Returns the points of an edge from the border of a box to the border of its row."""
        box, below = attached.box, attached.below
        half = wires.sizes[box][1] / 2
        border = middles[box] + half if below else middles[box] - half
        rim = (frame.bottom if below else frame.top)[wires.rank[box]]
        return [(ports[attached], border), (ports[attached], rim)]

    paths = [_path(wires, thread, frame, x, end) for thread in wires.threads]
    centers = [(x[box], middles[box]) for box in range(len(wires.sizes))]
    return Layout(centers, paths, width, frame.bottom[-1] if rows else 0.0)


def _path(
    wires: Wires,
    thread: Sequence[int],
    frame: _Frame,
    x: Sequence[float],
    end: Callable[["_Attached"], list[Point]],
) -> list[Point]:
    start, stop = _attached(wires, thread)
    points = end(start)
    for bend in thread[1:-1]:
        rims = [frame.top[wires.rank[bend]], frame.bottom[wires.rank[bend]]]
        # The bend is entered from the border that is closer to the previous point.
        rims.sort(key=lambda rim: abs(rim - points[-1][1]))
        points += [(x[bend], rim) for rim in rims]
    return points + end(stop)[::-1]


class _Attached(NamedTuple):
    """An end of an edge at a box, distinct for each neighbor and direction."""

    box: int
    other: int
    below: bool
    upwards: bool


def _attached(wires: Wires, thread: Sequence[int]) -> tuple[_Attached, _Attached]:
    """Returns both ends of an edge."""
    upwards = wires.rank[thread[0]] > wires.rank[thread[-1]]
    return (
        _Attached(thread[0], thread[1], not upwards, upwards),
        _Attached(thread[-1], thread[-2], upwards, upwards),
    )


def _ports(wires: Wires, x: Sequence[float]) -> dict[_Attached, float]:
    """Returns the position of each edge's end on its box: vertical where the border permits."""
    borders: dict[tuple[int, bool], dict[_Attached, float]] = defaultdict(dict)
    for thread in wires.threads:
        for end in _attached(wires, thread):
            borders[end.box, end.below][end] = _facing(wires, x, end.box, end.other)
    ports: dict[_Attached, float] = {}
    for (box, _), ends in borders.items():
        width = wires.sizes[box][0]
        ordered = sorted(ends, key=lambda end: (x[end.other], end.upwards))
        rest = len(ordered) - 1
        gap = min(PORT_GAP, (width - 16) / max(rest, 1))
        places = spread([(ends[end], 1.0) for end in ordered], [gap] * rest)
        low, high = x[box] - width / 2 + 8, x[box] + width / 2 - 8
        for i, (end, place) in enumerate(zip(ordered, places, strict=True)):
            ports[end] = min(max(place, low + i * gap), high - (rest - i) * gap)
    return ports


def _facing(wires: Wires, x: Sequence[float], box: int, other: int) -> float:
    """Returns the x at which an edge between two points is vertical, if possible."""
    if not wires.is_box(other):
        return x[other]
    low = max(x[p] - wires.width(p) / 2 + 8 for p in (box, other))
    high = min(x[p] + wires.width(p) / 2 - 8 for p in (box, other))
    return min(max((x[box] + x[other]) / 2, low), high) if low <= high else x[other]
