"""Blocks: the hierarchy of a drawing, whose leaves are boxes."""

import dataclasses
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

from symop.drawing.boxes import Box

Item = TypeVar("Item", bound=Hashable)


@dataclasses.dataclass(slots=True, eq=False)
class Block:
    """A part of a drawing that can be folded into one box.

    Attributes:
        kind: ``graph``; ``scope``, operators whose names begin alike; ``layer``, an operator with
            parameters and what follows it; ``repeat``, of which one step is shown; ``part``, a
            stretch without names; ``gradient``, of one operator; ``variables``; ``updates``, of the
            states of a program; ``call``, an operator with ``body`` blocks; or ``box``, a leaf.
        name: what the names of its operators have in common; empty for a part.
        children: the blocks inside, inputs first.
        box: the box of a leaf or a call; None for other blocks.
        times: the number of equal blocks that it represents.
        backward: whether it belongs to a gradient.
        twin: for a block of a gradient, the forward block whose gradient it is.
        names: the names of the blocks that it represents, if these differ.
    """

    kind: str
    name: str = ""
    children: list["Block"] = dataclasses.field(default_factory=list)
    box: Box | None = None
    times: int = 1
    backward: bool = False
    twin: "Block | None" = None
    names: list[str] = dataclasses.field(default_factory=list)

    def walk(self) -> Iterator["Block"]:
        """Yields the block and all blocks inside, each before those that it contains."""
        waiting = [self]
        while waiting:
            block = waiting.pop()
            yield block
            waiting += reversed(block.children)

    def boxes(self) -> list[Box]:
        """Returns the boxes inside, inputs first."""
        return [block.box for block in self.walk() if block.box is not None]

    def outputs(self) -> list[int]:
        """Returns the indices of the outputs of its graph that it contains."""
        waiting, result = [self], []
        while waiting:
            block = waiting.pop()
            result += block.box.outputs if block.box is not None else []
            waiting += [one for one in block.children if one.kind != "body"]
        return sorted(result)


def leaf(box: Box) -> Block:
    """Returns the block of a single box."""
    return Block("box", box=box, backward=box.backward)


def ordered(items: Iterable[Item], before: Mapping[Item, Iterable[Item]]) -> list[Item]:
    """Returns ``items`` depth first, each after those that are ``before`` it; cycles are broken."""
    result: dict[Item, None] = {}
    entered: set[Item] = set()
    for item in items:
        stack = [(item, False)]
        while stack:
            one, ready = stack.pop()
            if ready:
                result[one] = None
            elif one not in entered:
                entered.add(one)
                stack.append((one, True))
                ahead = [other for other in before.get(one, ()) if other not in entered]
                stack += [(other, False) for other in reversed(ahead)]
    return list(result)
