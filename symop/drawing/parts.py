"""Parts: long sequences of blocks, cut between residual blocks or where few values cross."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from symop.drawing.blocks import Block
from symop.graph.nodes import Node

_MOST_PARTS = 12
_USUAL = 20
"""The number of blocks in a part, if there are few parts."""
_FEWEST = 3
"""The least number of residual blocks, and of blocks in one on average."""


def divide(blocks: list[Block], room: int) -> list[Block]:
    """Returns ``blocks``, in order, as at most ``room`` blocks; those inside are divided, too."""
    for block in [one for top in blocks for one in top.walk()]:
        if block.kind not in ("box", "call"):
            block.children = _divided(block.children, room)
    return _divided(blocks, room)


def _divided(blocks: list[Block], room: int) -> list[Block]:
    if len(blocks) <= room:
        return blocks
    sections = _sections(blocks)
    if len(sections) > _FEWEST and len(blocks) >= _FEWEST * len(sections):
        return _divided([_part(section, room) for section in sections], room)
    count = min(room, _MOST_PARTS, -(-len(blocks) // min(_USUAL, room)))
    return [_part(part, room) for part in _cut(blocks, max(count, 1))]


def _part(blocks: list[Block], room: int) -> Block:
    return blocks[0] if len(blocks) == 1 else Block("part", children=_divided(blocks, max(room, 2)))


def _sections(blocks: list[Block]) -> list[list[Block]]:
    """Returns the residual blocks of a sequence, and what precedes and follows them.

    A residual block begins where only one value crosses, which several of the next blocks read.
    """
    passing, readers = _passing(blocks), _readers(blocks)
    starts = [0]
    for i in range(len(blocks) - 1):
        if passing[i + 1] == 1 and sum(place > i for place in readers[i]) > 1:
            starts.append(i + 1)
    if len(starts) > _FEWEST:  # the last one ends as the one before, such as with an activation
        tail = starts[-1] - _last_join(passing, starts[-2], starts[-1])
        end = _last_join(passing, starts[-1], len(blocks)) + tail
        if starts[-1] < end < len(blocks):
            starts.append(end)
    return [blocks[i:j] for i, j in pairwise([*starts, len(blocks)])]


def _last_join(passing: Sequence[int], start: int, stop: int) -> int:
    """Returns the place of the last block before ``stop`` that joins several values into one."""
    return max((at for at in range(start, stop) if passing[at] > 1), default=start)


def _readers(blocks: Sequence[Block]) -> list[list[int]]:
    """Returns the places of the blocks that read a value of each block, in ascending order."""
    made = {
        node: i for i, block in enumerate(blocks) for box in block.boxes() for node in box.nodes
    }
    result: list[set[int]] = [set() for _ in blocks]
    for i, block in enumerate(blocks):
        for box in block.boxes():
            for node in box.nodes:
                for child in node.operands:
                    if child.source in made:
                        result[made[child.source]].add(i)
    return [sorted(places) for places in result]


def _cut(blocks: Sequence[Block], count: int) -> list[list[Block]]:
    """Returns at most ``count`` pieces of similar length, cut where few values cross."""
    passing = _passing(blocks)
    pieces: list[list[Block]] = []
    start = 0
    while start < len(blocks):
        left = count - len(pieces)
        rest = len(blocks) - start
        if left <= 1:
            pieces.append(list(blocks[start:]))
            break
        length = -(-rest // left)
        slack = length // 4
        window = range(start + length - slack, min(start + length + slack, len(blocks)) + 1)
        stop = min(window, key=lambda at: (passing[at], abs(at - start - length)))
        pieces.append(list(blocks[start:stop]))
        start = stop
    return pieces


def _passing(blocks: Sequence[Block]) -> list[int]:
    """Returns the number of values that are read across each gap between blocks."""
    origin: dict[Node, int] = {}
    last: dict[Node, int] = {}
    for i, block in enumerate(blocks):
        for box in block.boxes():
            origin.update(dict.fromkeys(box.nodes, i))
            last.update({child.source: i for node in box.nodes for child in node.operands})
    change = np.zeros(len(blocks) + 2, np.int64)
    for node, start in origin.items():
        end = last.get(node, start)
        if end > start:
            change[start + 1] += 1
            change[end + 1] -= 1
    return [int(value) for value in np.cumsum(change)]
