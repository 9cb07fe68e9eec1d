"""Runs: the calls of a graph in an order in which those of one block stand together.

Calls that stand together in an order in which a graph can run are a part of it that nothing leaves
and enters again, so they can become one call.
"""

import bisect
import heapq
import itertools
import math
from collections.abc import Callable, Hashable, Sequence

from registry.operator import Operator
from symop.graph import SELECT, Node

Run = list[Node]
Key = Callable[[Node], Hashable | None]
"""The block that a call belongs to; None for a call that belongs to none."""


def calls_of(order: Sequence[Node]) -> list[Node]:
    """The nodes of ``order`` that apply operators."""
    return [node for node in order if isinstance(node.op, Operator)]


def source_of(node: Node) -> Node:
    """The call that computes ``node``."""
    return node.operands[0] if node.op is SELECT else node


# Blocks that are given --------------------------------------------------------------------------


def gathered(order: Sequence[Node], key: Key) -> list[tuple[Hashable | None, Run]]:
    """All calls of ``order`` in runs of equal keys, as long as the wiring allows."""
    calls = calls_of(order)
    keys = [key(node) for node in calls]
    runs: list[tuple[Hashable | None, Run]] = []
    for i in _in_groups(calls, keys):
        if not runs or runs[-1][0] != keys[i]:
            runs.append((keys[i], []))
        runs[-1][1].append(calls[i])
    return runs


def _in_groups(calls: Sequence[Node], keys: Sequence[Hashable | None]) -> list[int]:
    """The places of ``calls`` in an order that leaves a group only where it must.

    What belongs to no group comes as early as it can: a group may wait for it.
    """
    place = {node: i for i, node in enumerate(calls)}
    before = [{place[s] for one in n.operands if (s := source_of(one)) in place} for n in calls]
    after: list[list[int]] = [[] for _ in calls]
    for i, needs in enumerate(before):
        for j in needs:
            after[j].append(i)
    missing = [len(needs) for needs in before]
    ready = _Ready(keys)
    for i, count in enumerate(missing):
        if count == 0:
            ready.add(i)
    found: list[int] = []
    while len(found) < len(calls):
        found.append(ready.take())
        for j in after[found[-1]]:
            missing[j] -= 1
            if missing[j] == 0:
                ready.add(j)
    return found


class _Ready:
    """Places of calls that can run: those of the present group are taken first."""

    def __init__(self, keys: Sequence[Hashable | None]) -> None:
        self._keys = keys
        self._present: Hashable | None = None
        self._groups: dict[Hashable | None, list[int]] = {key: [] for key in {None, *keys}}
        self._all: list[int] = []

    def add(self, place: int) -> None:
        """The call at ``place`` can run."""
        heapq.heappush(self._groups[self._keys[place]], place)
        heapq.heappush(self._all, place)

    def take(self) -> int:
        """The call that runs next: of the group, of none, or the first of another."""
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
    """``calls``, which stand in an order in which they can run, cut where little is kept.

    Args:
        calls: what is cut.
        outputs: values that are needed in any case.
        count: how many segments there shall be, or None for as many as take the least memory.
        keeps: tells of what takes no room in a segment nor between two, because it is kept anyway.
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
    """What the values that ``node`` computes take."""
    return sum(one.nbytes for one in node.types or ())


def _crossing(
    calls: Sequence[Node], outputs: set[Node], keeps: Callable[[Node], bool]
) -> list[int]:
    """How much is kept where the calls are cut before place i, for each i."""
    place = {node: i for i, node in enumerate(calls)}
    last: dict[Node, int] = {one: len(calls) for one in outputs if source_of(one) in place}
    for i, node in enumerate(calls):
        for one in node.operands:
            if source_of(one) in place and one not in outputs:
                last[one] = i
    change = [0] * (len(calls) + 2)
    for value, end in last.items():
        if not keeps(value):
            change[place[source_of(value)] + 1] += bytes_of(value)
            change[end + 1] -= bytes_of(value)
    return list(itertools.accumulate(change))[: len(calls) + 1]


def _best_count(total: int, crossing: Sequence[int]) -> int:
    """So many segments that what crosses and what one of them holds are about the same.

    Derivation: k segments of a total of T, with c kept at each cut, take ``k c + T / k``, which is
    least for ``k = sqrt(T / c)``.
    """
    inner = sorted(one for one in crossing[1:-1] if one > 0)
    if not inner or not total:
        return 1
    usual = inner[len(inner) // 4]
    return max(1, round(math.sqrt(total / usual)))


def _cuts(sums: Sequence[int], crossing: Sequence[int], count: int) -> list[int]:
    """Places to cut at: near to equal parts, where the least crosses."""
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
