"""An estimate of the memory that the results of operations take, after XLA's CPU backend.

A value that is computed entry by entry has no buffer if XLA fuses it into all of its readers, which
then read the operands: where it has one reader, or is cheap (instruction_fusion.cc). A fusion, or a
loop, writes into the buffer of an operand that nobody reads afterwards. Operations run in the order
in which they become ready (the class BFScheduler of hlo_memory_scheduler.cc).
"""

from collections import Counter, deque
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from registry.primitives import ENTRYWISE_NAMES, REARRANGING_NAMES, REDUCTION_NAMES
from registry.xla.barrier import barrier_p

TRANSPOSED_COPY = "transposed_copy"
"""The operation that writes an array with its axes in another order."""
SERIES_PART = "series_part"
"""The operation that computes a part of a series, entry by entry, which several others read."""
_BARRIER = str(barrier_p.name)
"""The operation whose result is the buffer of its operand."""
_MOVED = frozenset(REARRANGING_NAMES) - {"concatenate", "dynamic_slice", "pad", "rev"} | {
    *("bitcast_convert_type", "convert_element_type", "optimization_barrier"),
    "sharding_constraint",
}  # fmt: skip
"""The primitives whose results have a buffer only at the end, or if they read many."""
_FUSED = frozenset({*ENTRYWISE_NAMES, "dynamic_slice", "gather", "pad", "rev"}) - _MOVED
"""The primitives whose results have a buffer if some reader requires it, or, unless they are cheap,
if several read them."""
_CHEAP = frozenset({
    *("abs", "add", "add_jaxvals", "and", "ceil", "clamp", "clz", "complex", "conj", "copy"),
    *("dynamic_slice", "eq", "floor", "ge", "gt", "imag", "integer_pow", "is_finite", "le", "lt"),
    *("max", "min", "mul", "ne", "neg", "not", "or", "pad", "population_count", "real"),
    *("reduce_precision", "rev", "round", "select_n", "shift_left", "shift_right_arithmetic"),
    *("shift_right_logical", "sign", "square", "stop_gradient", "sub", "xor"),
})  # fmt: skip
"""The primitives that XLA computes anew for each reader."""
_FUSING = frozenset({
    *(*ENTRYWISE_NAMES, *REARRANGING_NAMES, *REDUCTION_NAMES, *_MOVED, "gather"),
    *(SERIES_PART, TRANSPOSED_COPY),
})  # fmt: skip
"""The operations that operands are fused into; others read buffers."""
_REUSING = (_FUSED - {"gather"}) | {
    *("dynamic_update_slice", "scan", "scatter", "scatter-add", "scatter_max", "scatter_min"),
    *("scatter_mul", "while"),
}  # fmt: skip
"""The operations that write into the buffer of an operand."""
_MOST_READ = 64
"""The most buffers that one fusion reads, so that the estimate takes linear time."""


class Operation(NamedTuple):
    """What runs at once.

    Attributes:
        name: the primitive, or another name of what runs.
        reads: the values that it reads; those without a maker take no memory.
        results: its results, and the bytes of each on a device.
        besides: the bytes that it takes besides its results.
        acts: whether it runs even if nobody reads its results.
    """

    name: str
    reads: Sequence[Hashable]
    results: Mapping[Hashable, int]
    besides: int = 0
    acts: bool = False


def most_held(operations: Sequence[Operation], outputs: Collection[Hashable]) -> int:
    """Returns the most bytes that results take at once.

    Args:
        operations: what is computed, in the order of the program.
        outputs: the values that are there at the end.
    """
    fused, kept = _fused(_needed(operations, outputs), outputs)
    return _peak(list(_by_readiness(fused, kept)), kept)


def _needed(operations: Sequence[Operation], outputs: Collection[Hashable]) -> list[Operation]:
    """Returns the operations of which some result is read."""
    read = set(outputs)
    result = []
    for one in reversed(operations):
        if one.acts or not read.isdisjoint(one.results):
            read.update(one.reads)
            result.append(one)
    return result[::-1]


def _fused(
    operations: Sequence[Operation], outputs: Collection[Hashable]
) -> tuple[list[Operation], set[Hashable]]:
    """Returns the operations that write buffers, and read no others; and which buffers remain."""
    readers = Counter(value for one in operations for value in set(one.reads))
    readers.update(outputs)
    required = _required(operations) | set(outputs)
    buffers: dict[Hashable, set[Hashable]] = {}
    result = []
    for one in operations:
        reads = _sources(one.reads, buffers)
        held = {
            value: size
            for value, size in one.results.items()
            if value in required
            or _has_buffer(one.name, readers[value])
            or len(reads) > _MOST_READ
        }  # fmt: skip
        for value in one.results:
            buffers[value] = {value} if value in held else reads
        if held or one.besides or one.acts:
            result.append(one._replace(reads=tuple(reads), results=held))
    return result, _sources(outputs, buffers)


def _sources(
    values: Iterable[Hashable], buffers: Mapping[Hashable, set[Hashable]]
) -> set[Hashable]:
    return {buffer for value in values for buffer in buffers.get(value, ())}


def _required(operations: Sequence[Operation]) -> set[Hashable]:
    """Returns the values that are read from buffers, without those that have none themselves."""
    read: set[Hashable] = set()
    for one in reversed(operations):
        if one.name not in _FUSING or (one.name in _MOVED and not read.isdisjoint(one.results)):
            read.update(one.reads)
    passed = {*_MOVED, _BARRIER}
    return read - {value for one in operations if one.name in passed for value in one.results}


def _has_buffer(name: str, readers: int) -> bool:
    if name in _FUSED:
        return readers > 1 and name not in _CHEAP
    return name not in _MOVED and name != _BARRIER


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
    if operation.name not in _REUSING:
        return 0
    return sum((Counter(operation.results.values()) & Counter(free)).elements())


def _by_readiness(
    operations: Sequence[Operation], kept: Collection[Hashable]
) -> Iterator[Operation]:
    """Iterates in the order in which operations become ready.

    Of those that become ready at once, the one comes first that frees the most bytes.
    """
    sizes = {value: size for one in operations for value, size in one.results.items()}
    makers = {value: i for i, one in enumerate(operations) for value in one.results}
    waiting = Counter(value for one in operations for value in one.reads)
    waiting.update(kept)
    awaited = [{makers[value] for value in one.reads} for one in operations]
    after: list[list[int]] = [[] for _ in operations]
    for i, sources in enumerate(awaited):
        for j in sources:
            after[j].append(i)

    def taken(i: int) -> int:
        one = operations[i]
        freed = sum(sizes[value] for value in one.reads if waiting[value] == 1)
        return sum(one.results.values()) - freed

    ready = deque(i for i, sources in enumerate(awaited) if not sources)
    while ready:
        i = ready.popleft()
        yield operations[i]
        waiting.subtract(operations[i].reads)
        for j in after[i]:
            awaited[j].discard(i)
        ready.extend(sorted((j for j in after[i] if not awaited[j]), key=taken))
