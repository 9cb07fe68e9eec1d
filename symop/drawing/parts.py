"""Parts: long sequences of blocks, cut where few values cross."""

from collections.abc import Sequence

import numpy as np

from symop.drawing.blocks import Block
from symop.graph.nodes import Node

_MOST_PARTS = 12
_USUAL = 20
"""The number of blocks in a part, if there are few parts."""


def divide(blocks: list[Block], room: int) -> list[Block]:
    """Returns ``blocks``, in order, as at most ``room`` blocks; those inside are divided, too."""
    for block in [one for top in blocks for one in top.walk()]:
        if block.kind not in ("box", "call"):
            block.children = _divided(block.children, room)
    return _divided(blocks, room)


def _divided(blocks: list[Block], room: int) -> list[Block]:
    if len(blocks) <= room:
        return blocks
    count = min(room, _MOST_PARTS, -(-len(blocks) // min(_USUAL, room)))
    result = []
    for part in _cut(blocks, max(count, 1)):
        whole = Block("part", children=_divided(part, max(room, 2)) if len(part) > 1 else part)
        result.append(part[0] if len(part) == 1 else whole)
    return result


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
