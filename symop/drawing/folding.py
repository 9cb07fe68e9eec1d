"""Folding of graphs with too many boxes: some boxes then represent several operators.

Such a box is a run of operators, the gradient of one layer, one of the equal blocks of a repeated
pattern or, as a last resort, a stretch of the graph.
"""

import sys
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from heapq import heappop, heappush
from typing import Any

import numpy as np

from registry.operator.attributes import identity_key
from registry.operator.operator import Operator
from symop.drawing.boxes import Box, is_backward, is_operator
from symop.graph.nodes import CONSTANT, Node, Origin

RUN_FACTORS = (2, 4)
"""Factors by which runs may exceed the required length, as not all operators are in runs."""
LONGEST_PERIOD = 160
FEWEST_REPEATS = 3
DEEPEST_BRANCH = 8
"""The maximal depth to which a branch off a repeated block is folded with it."""
FEWEST_BOXES = 4
MOST_STRETCHES = 30
"""The maximal number of stretches, low because they carry little meaning."""
FARTHEST_OWNER = 64
SHARED = 3
"""A parameter with this many uses is one shared value, not one per repeated block."""

Fold = Callable[[Sequence[Box]], list[Box]]
Owners = dict[Node, Node | Origin]


def folded(boxes: list[Box], limit: int) -> list[Box]:
    """Folds ``boxes`` into at most ``limit`` (at least 4), as little as needed."""
    limit = max(limit, FEWEST_BOXES)
    best = boxes
    owners = _owners(boxes) if len(boxes) > limit and any(box.backward for box in boxes) else {}
    for pipeline in _pipelines(owners, -(-len(boxes) // limit)):
        if len(best) <= limit:
            break
        attempt = boxes
        for fold in pipeline:
            attempt = fold(attempt)
        best = min(best, attempt, key=len)
    return best if len(best) <= limit else _stretches(best, owners, limit)


def _pipelines(owners: Owners, excess: int) -> Iterator[list[Fold]]:
    """Yields sequences of folds that divide the number of boxes by ``excess``, gentlest first."""
    gradients: Fold = partial(_gradients, owners=owners)
    runs: Fold = partial(_runs, longest=sys.maxsize)
    yield [_repeats]
    for factor in RUN_FACTORS:
        yield [partial(_runs, longest=factor * excess)]
    yield [gradients]
    yield [gradients, _repeats]
    yield [runs, _repeats]
    yield [gradients, runs, _repeats]


def _merged(boxes: Sequence[Box], keys: Sequence[Hashable], fold: str) -> list[Box]:
    """Returns one box for each key, in order of first appearance; a single box is kept.

    If ``fold`` is "", boxes with the same key are repetitions of each other.
    """
    if len(set(keys)) == len(boxes):
        return list(boxes)
    number: dict[Hashable, int] = {}
    parts: list[list[Box]] = []
    for box, key in zip(boxes, keys, strict=True):
        if number.setdefault(key, len(parts)) == len(parts):
            parts.append([])
        parts[number[key]].append(box)
    place = [number[key] for key in keys]
    made = []
    for i, group in enumerate(parts):
        sources = [(place[s], k) for box in group for s, k in box.sources if place[s] != i]
        made.append(_joined(group, list(dict.fromkeys(sources)), fold))
    return _in_order(made)


def _in_order(boxes: Sequence[Box]) -> list[Box]:
    """Returns ``boxes`` renumbered so that each follows the boxes it reads, except in cycles."""
    waiting = [len({source for source, _ in box.sources}) for box in boxes]
    readers: list[list[int]] = [[] for _ in boxes]
    for i, box in enumerate(boxes):
        for source in {source for source, _ in box.sources}:
            readers[source].append(i)
    ready = [i for i, count in enumerate(waiting) if not count]
    number: dict[int, int] = {}
    stuck = iter(range(len(boxes)))
    while len(number) < len(boxes):
        # Folding can close a cycle; the first remaining box breaks it.
        i = heappop(ready) if ready else next(i for i in stuck if i not in number)
        if i in number:
            continue
        number[i] = len(number)
        for reader in readers[i]:
            waiting[reader] -= 1
            if not waiting[reader]:
                heappush(ready, reader)
    for box in boxes:
        box.sources = [(number[source], output) for source, output in box.sources]
    return [boxes[i] for i in number]


def _joined(group: list[Box], sources: list[tuple[int, int]], fold: str) -> Box:
    first = group[0]
    if len(group) == 1:
        return Box(first.nodes, sources, first.outputs, first.fold, first.times, first.shown)
    nodes = [node for box in group for node in box.nodes]
    outputs = [i for box in group for i in box.outputs]
    if fold:
        return Box(nodes, sources, outputs, fold)
    times = sum(box.times for box in group)
    return Box(nodes, sources, outputs, first.fold, times, first.shown)


def _uses(boxes: Sequence[Box]) -> list[int]:
    """Returns the number of readers of each box in the same part, forward or gradient."""
    uses = [0] * len(boxes)
    for box in boxes:
        for source in {source for source, _ in box.sources}:
            uses[source] += boxes[source].backward == box.backward
    return uses


# Runs of operators that keep the shape, each the only user of its predecessor.


def _runs(boxes: Sequence[Box], longest: int) -> list[Box]:
    readers = Counter(source for box in boxes for source, _ in box.sources)
    keys: list[int] = []
    length: Counter[int] = Counter()
    for i, box in enumerate(boxes):
        key = i
        if len(box.sources) == 1:
            (before, _) = box.sources[0]
            alone = readers[before] == 1 and not boxes[before].outputs
            if alone and length[keys[before]] < longest and _continues(boxes[before], box):
                key = keys[before]
        keys.append(key)
        length[key] += 1
    return _merged(boxes, keys, "run")


def _continues(before: Box, box: Box) -> bool:
    plain = all(b.times == 1 and not b.fold and is_operator(b.node) for b in (before, box))
    return plain and box.backward == before.backward and _shape(box.node) == _shape(before.node)


def _shape(node: Node) -> Any:
    return None if node.types is None else [one.shape for one in node.types]


# The gradient of each forward operator.


def _owners(boxes: Sequence[Box]) -> Owners:
    """Returns the forward node to which each gradient node belongs, if it can be determined.

    An origin names its forward operator. If several operators match (a loop built them on one
    line), the cotangent decides: it comes from a later operator than the wanted one, which is the
    last before that operator whose inputs or output the gradient reads.
    """
    candidates: dict[tuple[Any, ...], list[Node]] = defaultdict(list)
    place: dict[Node, int] = {}
    for i, box in enumerate(boxes):
        place[box.node] = i
        if not box.backward and box.node.origin is not None:
            name = box.node.name or box.node.op.name
            candidates[name, *box.node.origin[:2]].append(box.node)
    owners: Owners = {}
    residual: dict[Node, list[Node]] = {}
    for box in boxes:
        if not box.backward or box.node.origin is None:
            continue
        file, line, called = box.node.origin[:3]
        named = candidates.get((called, file, line), [])
        reads = [child.source for child in box.node.operands]
        if len(named) <= 1:
            owners[box.node] = named[0] if named else box.node.origin
        elif not any(is_backward(node) for node in reads if node in place):
            residual[box.node] = reads
        else:
            later = [place[o] for o in map(owners.get, reads) if isinstance(o, Node)]
            known = {value for node in reads for value in residual.get(node, [node])}
            owners[box.node] = _last_reading(named, known, min(later, default=len(boxes)), place)
    _own_residuals(boxes, residual, owners)
    return owners


def _last_reading(
    named: Sequence[Node], values: set[Node], end: int, place: dict[Node, int]
) -> Node:
    """Returns the last of ``named`` up to ``end`` with one of ``values`` as input or output."""
    stop = bisect_right(named, end, key=place.__getitem__)
    before = named[max(stop - FARTHEST_OWNER, 0) : stop] or named[:1]
    for node in reversed(before):
        if node in values or any(child.source in values for child in node.operands):
            return node
    return before[-1]


def _own_residuals(boxes: Sequence[Box], residual: dict[Node, list[Node]], owners: Owners) -> None:
    """Assigns nodes that only prepare values for the gradient to the single operator using them."""
    users: dict[Node, set[Node | Origin]] = defaultdict(set)
    for box in boxes:
        for child in box.node.operands:
            if child in residual and box.node in owners:
                users[child].add(owners[box.node])
    for node in residual:
        if len(users[node]) == 1:
            owners[node] = users[node].pop()


def _gradients(boxes: Sequence[Box], owners: Owners) -> list[Box]:
    keys: list[Hashable] = []
    for i, box in enumerate(boxes):
        known = box.backward and box.node in owners
        keys.append(("gradient of", owners[box.node]) if known else i)
    return _merged(boxes, keys, "gradient")


# Equal consecutive blocks.


def _repeats(boxes: Sequence[Box]) -> list[Box]:
    """Folds equal consecutive blocks, first in the forward part, which the gradient reads."""
    for backward in (False, True):
        part = [i for i, box in enumerate(boxes) if box.backward == backward]
        if not part:
            continue
        keys: list[Hashable] = list(range(len(boxes)))
        for start, period, count in _periodic(_tokens(boxes, part), boxes, part):
            for k in range(start, start + period * count):
                keys[part[k]] = part[start + (k - start) % period]
        boxes = _twins(_merged(boxes, keys, ""))
    return list(boxes)


def _twins(boxes: Sequence[Box]) -> list[Box]:
    """Folds equal boxes that read the same repeated box, about one for each block."""
    boxes = list(boxes)
    for _ in range(DEEPEST_BRANCH):
        groups: dict[Hashable, list[int]] = defaultdict(list)
        for i, box in enumerate(boxes):
            if box.times == 1 and any(boxes[source].times > 1 for source, _ in box.sources):
                read = (tuple(box.sources), bool(box.outputs), box.backward)
                groups[_kinds(box), read].append(i)
        keys: list[Hashable] = list(range(len(boxes)))
        for group in groups.values():
            blocks = max(boxes[source].times for source, _ in boxes[group[0]].sources)
            if len(group) >= max(FEWEST_REPEATS, blocks // 2):
                for i in group:
                    keys[i] = group[0]
        if len(set(keys)) == len(boxes):
            break
        boxes = _merged(boxes, keys, "")
    return boxes


def _near_leaf(boxes: Sequence[Box], box: int) -> bool:
    """Whether a box reads only variables: it is a parameter or, for example, its transpose."""
    return all(not boxes[source].sources for source, _ in boxes[box].sources)


def _kinds(box: Box) -> Hashable:
    kinds = list(map(_kind, box.shown))
    return box.fold, tuple(sorted(kinds, key=repr) if len(kinds) > 1 else kinds)


def _tokens(boxes: Sequence[Box], part: Sequence[int]) -> np.ndarray:
    """Numbers the boxes of one part, equally for equal operations and connections."""
    place = {box: i for i, box in enumerate(part)}
    uses = _uses(boxes)
    known: dict[Hashable, int] = {}
    tokens = []
    for i, box in enumerate(part):
        links = []
        for source, output in boxes[box].sources:
            shared = uses[source] >= SHARED and _near_leaf(boxes, source)
            near = source in place and i - place[source] <= LONGEST_PERIOD
            links.append((output, i - place[source]) if near and not shared else (output, ~source))
        token = (_kinds(boxes[box]), tuple(links), bool(boxes[box].outputs))
        tokens.append(known.setdefault(token, len(known)))
    return np.asarray(tokens, np.int64)


def _kind(node: Node) -> tuple[Any, ...]:
    """Returns the operation of a node, with the numbers and the types of the leaves it reads."""
    leaves = [child for child in node.operands if not child.inputs]
    read = tuple(
        identity_key(leaf.attributes) if leaf.op is CONSTANT else leaf.types for leaf in leaves
    )
    attributes = identity_key(node.attributes) if isinstance(node.op, Operator) else ()
    return (node.op.name, attributes, node.types, read)


def _periodic(
    tokens: np.ndarray, boxes: Sequence[Box], part: Sequence[int]
) -> list[tuple[int, int, int]]:
    """Returns disjoint (start, period, count) of repeated blocks, largest savings first."""
    found: list[tuple[int, int, int, int]] = []
    inputs = [len(boxes[i].node.inputs) for i in part]
    for period in range(1, min(LONGEST_PERIOD, len(tokens) // 2) + 1):
        equal = np.concatenate([[False], tokens[period:] == tokens[:-period], [False]])
        spans = np.flatnonzero(equal[1:] != equal[:-1]).reshape(-1, 2)
        long = spans[:, 1] - spans[:, 0] >= (FEWEST_REPEATS - 1) * period
        for first, stop in spans[long].tolist():
            count, spare = divmod(stop - first + period, period)
            # If several cuts are possible, a block starts with the operator with the most inputs.
            start = max(range(first, first + spare + 1), key=inputs.__getitem__)
            found.append((-period * (count - 1), period, start, count))
    taken = np.zeros(len(tokens), bool)
    chosen = []
    for _, period, start, count in sorted(found):
        block = taken[start : start + period * count]
        if not block.any():
            block[:] = True
            chosen.append((start, period, count))
    return chosen


# Stretches: a last resort for graphs without structure.


def _stretches(boxes: Sequence[Box], owners: Owners, limit: int) -> list[Box]:
    """Cuts the forward part into stretches of equal length; gradients join their stretch."""
    parts: dict[str, list[int]] = {"leaf": [], "forward": [], "owned": [], "loose": []}
    for i, box in enumerate(boxes):
        owned = "owned" if isinstance(owners.get(box.node), Node) else "loose"
        plain = "forward" if is_operator(box.node) else "leaf"
        parts[owned if box.backward else plain].append(i)
    room = min(limit, MOST_STRETCHES)
    keys: list[Hashable] = [None] * len(boxes)
    stretch_of: dict[Node, int] = {}
    for name, share in (("leaf", 4), ("loose", 4), ("forward", 2 if parts["owned"] else 1)):
        pieces = _cut(boxes, parts[name], min(len(parts[name]), room // share))
        room -= len(pieces)
        for stretch, members in enumerate(pieces):
            for i in members:
                keys[i] = (name, stretch)
                stretch_of.update(dict.fromkeys(boxes[i].nodes, stretch))
    for i in parts["owned"]:
        owner = owners[boxes[i].node]
        keys[i] = ("gradient", stretch_of.get(owner, 0) if isinstance(owner, Node) else 0)
    return _merged(boxes, keys, "stretch")


def _cut(boxes: Sequence[Box], part: Sequence[int], count: int) -> list[list[int]]:
    """Returns ``part`` in at most ``count`` pieces of similar length, cut where few edges cross."""
    if not part:
        return []
    length = -(-len(part) // max(count, 1))
    passing = _passing(boxes, part)
    slack = length // 3
    cuts = [0]
    while len(part) - cuts[-1] > length + slack:
        window = range(cuts[-1] + length, cuts[-1] + length + slack + 1)
        cuts.append(min(window, key=passing.__getitem__))
    return [list(part[a:b]) for a, b in zip(cuts, [*cuts[1:], len(part)], strict=True)]


def _passing(boxes: Sequence[Box], part: Sequence[int]) -> list[int]:
    """Returns the number of values read across each position in ``part``."""
    place = {box: i for i, box in enumerate(part)}
    last = list(range(len(part)))
    for i, box in enumerate(part):
        for source, _ in boxes[box].sources:
            if source in place:
                last[place[source]] = max(last[place[source]], i)
    change = np.zeros(len(part) + 2, np.int64)
    for i, end in enumerate(last):
        change[i + 1] += 1
        change[end + 1] -= 1
    return [int(value) for value in np.cumsum(change)]
