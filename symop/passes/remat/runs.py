"""Runs: the calls of a graph in an order in which the calls of a block are adjacent.

Adjacent calls in an order in which a graph can run form a part of it that no path leaves and enters
again, so they can become one call.
"""

import bisect
import heapq
import itertools
import math
from collections.abc import Callable, Hashable, Sequence

from registry.operator.operator import Operator
from symop.graph.nodes import Node

Run = list[Node]
Key = Callable[[Node], Hashable | None]
"""Returns the block that a call belongs to; None for a call that belongs to none."""


def calls_of(order: Sequence[Node]) -> list[Node]:
    """Returns the nodes of ``order`` that apply operators."""
    return [node for node in order if isinstance(node.op, Operator)]


# Given blocks -----------------------------------------------------------------------------------


def gather_runs(order: Sequence[Node], key: Key) -> list[tuple[Hashable | None, Run]]:
    """Groups all calls of ``order`` into runs of equal keys, as long as dependencies allow."""
    calls = calls_of(order)
    keys = [key(node) for node in calls]
    runs: list[tuple[Hashable | None, Run]] = []
    for i in _in_groups(calls, keys):
        if not runs or runs[-1][0] != keys[i]:
            runs.append((keys[i], []))
        runs[-1][1].append(calls[i])
    return runs


def _in_groups(calls: Sequence[Node], keys: Sequence[Hashable | None]) -> list[int]:
    """Returns the positions of ``calls`` in an order that leaves a group only when necessary.

    Calls that belong to no group come as early as possible, since a group may depend on them.
    """
    place = {node: i for i, node in enumerate(calls)}
    before = [{place[s] for one in n.operands if (s := one.source) in place} for n in calls]
    after: list[list[int]] = [[] for _ in calls]
    for i, needs in enumerate(before):
        for j in needs:
            after[j].append(i)
    missing = [len(needs) for needs in before]
    ready = _Ready(keys)
    for i, count in enumerate(missing):
        if count == 0:
            ready.add(i)
    result: list[int] = []
    while len(result) < len(calls):
        result.append(ready.take())
        for j in after[result[-1]]:
            missing[j] -= 1
            if missing[j] == 0:
                ready.add(j)
    return result


class _Ready:
    """Positions of calls that are ready to run; those of the current group are taken first."""

    def __init__(self, keys: Sequence[Hashable | None]) -> None:
        self._keys = keys
        self._present: Hashable | None = None
        self._groups: dict[Hashable | None, list[int]] = {key: [] for key in {None, *keys}}
        self._all: list[int] = []

    def add(self, place: int) -> None:
        """Adds the position of a call that is ready."""
        heapq.heappush(self._groups[self._keys[place]], place)
        heapq.heappush(self._all, place)

    def take(self) -> int:
        """Returns the next call: of the current group, of no group, or the first of another."""
        if not self._groups[self._present]:
            self._present = None if self._groups[None] else self._first()
        return heapq.heappop(self._groups[self._present])

    def _first(self) -> Hashable | None:
        while True:
            key = self._keys[self._all[0]]
            if self._groups[key] and self._groups[key][0] <= self._all[0]:
                return key
            heapq.heappop(self._all)


# Segments ---------------------------------------------------------------------------------------


def segments(
    calls: Sequence[Node],
    outputs: Sequence[Node],
    count: int | None,
    keeps: Callable[[Node], bool],
) -> list[Run]:
    """Cuts ``calls``, which are in an order in which they can run, where few bytes are kept.

    Args:
        calls: The calls to cut.
        outputs: Values that are needed in any case.
        count: The number of segments, or None for the number that takes the least memory.
        keeps: Whether a value takes no memory in or between segments, because it is always kept.
    """
    widths = [0 if keeps(node) else bytes_of(node) for node in calls]
    crossing = _crossing(calls, set(outputs), keeps)
    total = sum(widths)
    if count is None:
        count = _best_count(total, crossing)
    count = max(1, min(count, len(calls)))
    cuts = _cuts(list(itertools.accumulate(widths)), crossing, count)
    ends = [0, *cuts, len(calls)]
    return [list(calls[a:b]) for a, b in itertools.pairwise(ends) if b > a]


def bytes_of(node: Node) -> int:
    """Returns the size in bytes of the values that ``node`` computes."""
    return sum(one.nbytes for one in node.types or ())


def _crossing(
    calls: Sequence[Node], outputs: set[Node], keeps: Callable[[Node], bool]
) -> list[int]:
    """Returns, for each i, the bytes that are kept if the calls are cut before position i."""
    place = {node: i for i, node in enumerate(calls)}
    last: dict[Node, int] = {one: len(calls) for one in outputs if one.source in place}
    for i, node in enumerate(calls):
        for one in node.operands:
            if one.source in place and one not in outputs:
                last[one] = i
    change = [0] * (len(calls) + 2)
    for value, end in last.items():
        if not keeps(value):
            change[place[value.source] + 1] += bytes_of(value)
            change[end + 1] -= bytes_of(value)
    return list(itertools.accumulate(change))[: len(calls) + 1]


def _best_count(total: int, crossing: Sequence[int]) -> int:
    """Returns the number of segments that balances the kept bytes against those of one segment.

    Derivation: k segments of a total of T, with c kept at each cut, take ``k c + T / k``, which is
    least for ``k = sqrt(T / c)``.
    """
    inner = sorted(one for one in crossing[1:-1] if one > 0)
    if not inner or not total:
        return 1
    usual = inner[len(inner) // 4]
    return max(1, round(math.sqrt(total / usual)))


def _cuts(sums: Sequence[int], crossing: Sequence[int], count: int) -> list[int]:
    """Returns the positions of cuts: near those of equal parts, where the fewest bytes cross."""
    total, cuts = sums[-1], list[int]()
    for number in range(1, count):
        ideal = total * number / count
        reach = total / count / 2
        low = max(bisect.bisect_left(sums, ideal - reach), cuts[-1] if cuts else 0) + 1
        high = min(bisect.bisect_left(sums, ideal + reach) + 1, len(sums) - 1)
        if low > high:
            continue
        middle = ideal

        def badness(i: int, middle: float = middle) -> tuple[float, float]:
            return crossing[i], abs(sums[i - 1] - middle)

        cuts.append(min(range(low, high + 1), key=badness))
    return cuts
