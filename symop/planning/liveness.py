"""An estimate of the memory that the results of operations take, after XLA's CPU backend.

A value that is computed entry by entry for one reader has no buffer: XLA fuses it into the reader,
which then reads the operands. A fusion, or a loop, writes into the buffer of an operand that nobody
reads afterwards. XLA chooses the order in which operations run: of several, that which takes the
least memory. Here it is that of the program, or that in which the operation comes next that frees
the most (XLA's list scheduler; hlo_memory_scheduler.cc).
"""

import heapq
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from registry.primitives import ENTRYWISE_NAMES, PRODUCT_NAMES, REARRANGING_NAMES

_LOOPS = frozenset({"scan", "while"})
_PRODUCTS = frozenset(PRODUCT_NAMES)
_MOVED = frozenset(REARRANGING_NAMES) - {"concatenate", "dynamic_slice", "pad", "rev"} | {
    "convert_element_type", "optimization_barrier", "sharding_constraint"}  # fmt: skip
"""The primitives whose results have no buffer, whoever reads them."""
_FUSED = frozenset({*ENTRYWISE_NAMES, "dynamic_slice", "rev", "pad"}) - _MOVED
"""The primitives whose results have a buffer if several or a product read them."""


class Operation(NamedTuple):
    """What runs at once.

    Attributes:
        name: the primitive.
        reads: the values that it reads.
        results: its results, and the bytes of each on a device.
        besides: the bytes that it takes besides its results.
    """

    name: str
    reads: Sequence[Hashable]
    results: Mapping[Hashable, int]
    besides: int = 0


def most_held(operations: Sequence[Operation], outputs: Collection[Hashable]) -> int:
    """Returns the most bytes that results take at once.

    Args:
        operations: what is computed, in the order of the program.
        outputs: the values that are there at the end.
    """
    fused, kept = _fused(operations, outputs)
    return min(_peak(order, kept) for order in (fused, list(_by_freed(fused, kept))))


def _fused(
    operations: Sequence[Operation], outputs: Collection[Hashable]
) -> tuple[list[Operation], set[Hashable]]:
    """Returns the operations that write buffers, and read no others; and which buffers remain."""
    readers = Counter(value for one in operations for value in set(one.reads))
    readers.update(outputs)
    multiplied = _multiplied(operations)
    buffers: dict[Hashable, set[Hashable]] = {}
    result = []
    for one in operations:
        reads = _sources(one.reads, buffers)
        held = {
            value: size
            for value, size in one.results.items()
            if value in outputs or _has_buffer(one.name, readers[value], value in multiplied)
        }
        for value in one.results:
            buffers[value] = {value} if value in held else reads
        if held or one.besides:
            result.append(Operation(one.name, tuple(reads), held, one.besides))
    return result, _sources(outputs, buffers)


def _sources(
    values: Iterable[Hashable], buffers: Mapping[Hashable, set[Hashable]]
) -> set[Hashable]:
    return {buffer for value in values for buffer in buffers.get(value, ())}


def _multiplied(operations: Sequence[Operation]) -> set[Hashable]:
    """Returns the values that products read: nothing is fused into calls of a library."""
    result: set[Hashable] = set()
    for one in reversed(operations):
        if one.name in _PRODUCTS or (one.name in _MOVED and not result.isdisjoint(one.results)):
            result.update(one.reads)
    return result


def _has_buffer(name: str, readers: int, multiplied: bool) -> bool:
    if name in _FUSED:
        return multiplied or (readers > 1 and name in ENTRYWISE_NAMES)
    return name not in _MOVED


def _peak(operations: Sequence[Operation], kept: Collection[Hashable]) -> int:
    """Returns the most bytes that are held if the operations run in this order."""
    last = {value: i for i, one in enumerate(operations) for value in (*one.results, *one.reads)}
    last.update(dict.fromkeys(kept, len(operations)))
    sizes: dict[Hashable, int] = {}
    held = most = 0
    for i, one in enumerate(operations):
        sizes.update(one.results)
        read = [sizes[value] for value in one.reads if last[value] == i]
        held += sum(one.results.values())
        most = max(most, held - _reused(one, read) + one.besides)
        held -= sum(read) + sum(size for value, size in one.results.items() if last[value] == i)
    return most


def _reused(operation: Operation, free: Sequence[int]) -> int:
    """Returns the bytes of results that are written into buffers of operands."""
    if operation.name not in _FUSED | _LOOPS:
        return 0
    return sum((Counter(operation.results.values()) & Counter(free)).elements())


def _by_freed(operations: Sequence[Operation], kept: Collection[Hashable]) -> Iterator[Operation]:
    """Iterates in the order in which the operation is next that frees the most bytes."""
    sizes = {value: size for one in operations for value, size in one.results.items()}
    makers = {value: i for i, one in enumerate(operations) for value in one.results}
    readers: dict[Hashable, set[int]] = {value: set() for value in sizes}
    for i, one in enumerate(operations):
        for value in one.reads:
            readers[value].add(i)
    awaited = [len({makers[value] for value in one.reads}) for one in operations]

    def entry(i: int) -> tuple[int, int]:
        one = operations[i]
        ended = sum(sizes[v] for v in one.reads if len(readers[v]) == 1 and v not in kept)
        return sum(one.results.values()) - ended, i

    ready = [entry(i) for i, count in enumerate(awaited) if not count]
    heapq.heapify(ready)
    done: set[int] = set()
    while ready:
        _, i = heapq.heappop(ready)
        if i in done:
            continue
        done.add(i)
        yield operations[i]
        for j in set().union(*(readers[value] for value in operations[i].results)):
            awaited[j] -= 1
            if not awaited[j]:
                heapq.heappush(ready, entry(j))
        for value in operations[i].reads:
            readers[value].remove(i)
            # The last reader frees more now: it comes in again, before its old entry.
            for j in readers[value] if len(readers[value]) == 1 else ():
                if not awaited[j]:
                    heapq.heappush(ready, entry(j))
