"""Rows of a layout: the row of each box, and the order within rows.

This is the first half of Sugiyama's method: rank the boxes, thread long edges through the rows they
cross, and order each row so that few edges cross.
"""

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise

Point = tuple[float, float]
Neighbors = list[list[int]]

BOX_GAP = 26.0
ROW_WIDTH = 1500.0
"""A row of boxes wider than this is split into several rows."""
CROSSING_SWEEPS = 14
RANK_SWEEPS = 8


# Ranks -----------------------------------------------------------------------------------------


def orders(sides: Sequence[int]) -> list[list[int]]:
    """Returns two orders of boxes: by number; and with the gradient reversed, below the rest."""
    plain = list(range(len(sides)))
    return [plain, sorted(plain, key=lambda i: (sides[i], -i if sides[i] else i))]


def ranks_of(
    order: Sequence[int],
    edges: Sequence[tuple[int, int]],
    tops: Collection[int] = (),
    bottoms: Collection[int] = (),
) -> list[int]:
    """Returns the row of each box: below all adjacent boxes that precede it in ``order``.

    Those in ``tops`` are in the first row, those in ``bottoms`` below all others.
    """
    place = {box: position for position, box in enumerate(order)}
    above: Neighbors = [[] for _ in order]
    below: Neighbors = [[] for _ in order]
    for u, v in edges:
        upper, lower = (u, v) if place[u] < place[v] else (v, u)
        above[lower].append(upper)
        below[upper].append(lower)
    ranks = [0] * len(order)
    for box in order:
        ranks[box] = max((ranks[other] + 1 for other in above[box]), default=0)
    still = {*tops, *bottoms}
    _tighten([box for box in order if box not in still], above, below, ranks)
    lowest = max([rank for box, rank in enumerate(ranks) if box not in still], default=0)
    for box in tops:
        ranks[box] = 0
    for box in bottoms:
        ranks[box] = lowest + 1
    return ranks


def _tighten(order: Sequence[int], above: Neighbors, below: Neighbors, ranks: list[int]) -> None:
    """Moves each box within its slack to where most of its edges are short."""
    last = max(ranks, default=0)
    for sweep in range(RANK_SWEEPS):
        for box in order if sweep % 2 else reversed(order):
            uppers = [ranks[other] + 1 for other in above[box]]
            lowers = [ranks[other] - 1 for other in below[box]]
            wanted = sorted(uppers + lowers)
            if wanted:
                middle = wanted[len(wanted) // 2]
                high = min(lowers, default=last)
                ranks[box] = min(max(middle, max(uppers, default=0)), high)


def split_wide(
    ranks: Sequence[int], sizes: Sequence[Point], row_width: float = ROW_WIDTH
) -> list[int]:
    """Returns consecutive ranks in which no row is much wider than ``row_width``."""
    rows: dict[int, list[int]] = defaultdict(list)
    for box, rank in enumerate(ranks):
        rows[rank].append(box)
    result, current = [0] * len(ranks), -1
    for rank in sorted(rows):
        filled = row_width + 1
        for box in rows[rank]:
            if filled + sizes[box][0] > row_width:
                current, filled = current + 1, 0.0
            result[box] = current
            filled += sizes[box][0] + BOX_GAP
    return result


class Wires:
    """Boxes and the bends of long edges, as points whose neighbors are in adjacent rows only.

    Points are numbered, boxes first. Edges that leave the same box share bends as long as they run
    together, so that a value with many uses is one line with branches.
    """

    def __init__(
        self,
        sizes: Sequence[Point],
        edges: Sequence[tuple[int, int]],
        sides: Sequence[int],
        ranks: Sequence[int],
        aligned: Collection[int] = (),
    ) -> None:
        """Creates the points of ``edges`` between boxes with known rows.

        Edges between the boxes in ``aligned`` are vertical rather than others.
        """
        self.sizes, self.aligned = sizes, frozenset(aligned)
        self.rank = list(ranks)
        self.group = [2 * side for side in sides]
        """0 for forward, 2 for gradient, 1 for edges between them."""
        self.up: Neighbors = [[] for _ in sizes]
        self.down: Neighbors = [[] for _ in sizes]
        self._bends: dict[tuple[int, int, int, bool], int] = {}
        self.threads = [self._thread(u, v) for u, v in edges]

    def is_box(self, point: int) -> bool:
        """Whether a point is a box, not a bend."""
        return point < len(self.sizes)

    def width(self, point: int) -> float:
        """Returns the width to keep free in the row."""
        return self.sizes[point][0] if self.is_box(point) else 2.0

    def _thread(self, source: int, target: int) -> list[int]:
        step = 1 if self.rank[source] < self.rank[target] else -1
        group = (self.group[source] + self.group[target]) // 2
        thread = [source]
        for rank in range(self.rank[source] + step, self.rank[target], step):
            thread.append(self._bend((source, rank, group, step > 0)))
            self._join(*thread[-2:])
        thread.append(target)
        self._join(*thread[-2:])
        return thread

    def _bend(self, key: tuple[int, int, int, bool]) -> int:
        if key not in self._bends:
            self._bends[key] = len(self.rank)
            self.rank.append(key[1])
            self.group.append(key[2])
            self.up.append([])
            self.down.append([])
        return self._bends[key]

    def _join(self, one: int, other: int) -> None:
        upper, lower = (one, other) if self.rank[one] < self.rank[other] else (other, one)
        if lower not in self.down[upper]:
            self.down[upper].append(lower)
            self.up[lower].append(upper)


# Order within the rows -------------------------------------------------------------------------


def uncrossed(wires: Wires) -> list[list[int]]:
    """Returns the points of each row from left to right, ordered so that few edges cross."""
    rows: list[list[int]] = [[] for _ in range(max(wires.rank, default=-1) + 1)]
    for point, rank in enumerate(wires.rank):
        rows[rank].append(point)
    for row in rows:
        row.sort(key=lambda point: wires.group[point])
    best, fewest = [list(row) for row in rows], _crossings(wires, rows)
    for sweep in range(CROSSING_SWEEPS):
        downwards = sweep % 2 == 0
        for row, fixed in _adjacent(rows, downwards):
            _sort_by_neighbors(wires, row, fixed, wires.up if downwards else wires.down)
        _transpose(wires, rows)
        count = _crossings(wires, rows)
        if count < fewest:
            best, fewest = [list(row) for row in rows], count
        if fewest == 0:
            break
    return best


def _adjacent(
    rows: list[list[int]],
    downwards: bool,
) -> Iterable[tuple[list[int], list[int]]]:
    """Returns each row, with the adjacent row that is ordered before it."""
    ordered = rows if downwards else rows[::-1]
    return zip(ordered[1:], ordered, strict=False)


def _sort_by_neighbors(
    wires: Wires, row: list[int], fixed: Sequence[int], neighbors: Neighbors
) -> None:
    place = {point: i for i, point in enumerate(fixed)}
    scale = len(fixed) / max(len(row), 1)
    center = {
        point: mean([place[other] for other in neighbors[point]], i * scale)
        for i, point in enumerate(row)
    }
    row.sort(key=lambda point: (wires.group[point], center[point]))


def mean(values: Sequence[float], default: float) -> float:
    """Returns the mean, or ``default`` without values."""
    return sum(values) / len(values) if values else default


def _crossings(wires: Wires, rows: Sequence[Sequence[int]]) -> int:
    total = 0
    for upper, lower in pairwise(rows):
        place = {point: i for i, point in enumerate(lower)}
        seen: list[int] = []
        for point in upper:
            ends = sorted(place[other] for other in wires.down[point])
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


def _transpose(wires: Wires, rows: Sequence[list[int]]) -> None:
    """Swaps adjacent points of a row where this removes crossings."""
    place = {point: i for row in rows for i, point in enumerate(row)}
    for row in rows:
        for i in range(len(row) - 1):
            left, right = row[i], row[i + 1]
            if wires.group[left] != wires.group[right]:
                continue
            gain = 0
            for side in (wires.up, wires.down):
                for a in side[left]:
                    for b in side[right]:
                        gain += (place[a] > place[b]) - (place[a] < place[b])
            if gain > 0:
                row[i], row[i + 1] = right, left
                place[left], place[right] = i + 1, i
