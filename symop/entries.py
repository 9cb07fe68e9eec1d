"""Entries of the tape: what it keeps of each program that was run, and where values come from."""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

from symop.eager_programs import Recorded
from symop.graph import Node

serials = itertools.count()
"""Numbers for the entries of the tape, in the order in which they were made."""


class Link(NamedTuple):
    """Where a recorded value comes from: a node of an entry of the tape."""

    entry: "Entry"
    node: Node


NEVER = ()
"""In place of a link: the value is a state, no function of what is differentiated."""
Source = Any
"""A ``Link``, an array with a gradient of its own, or None."""


class Entry:
    """What the tape holds of a program that was run.

    Attributes:
        recorded: the program.
        sources: where its inputs come from; None where no derivative flows.
        saved: the values of its residuals; None when they were freed.
        packed: whether small ones among them lie end to end.
        spent: the calls that a backward pass went through which did not keep the record.
        again: runs the program again, with residuals: the gradients that were asked for were
            taken before it ran. None where it need not.
        serial: grows with each entry.
    """

    __slots__ = ("again", "packed", "recorded", "saved", "serial", "sources", "spent")

    def __init__(
        self, recorded: Recorded, sources: list[Source], saved: list[Any], packed: bool
    ) -> None:
        """Enter a program on the tape."""
        self.recorded, self.sources, self.packed = recorded, sources, packed
        self.saved: list[Any] | None = saved
        self.spent: frozenset[Node] = frozenset()
        self.again: Callable[[], tuple[Recorded, list[Any], bool]] | None = None
        self.serial = next(serials)

    def open(self) -> None:
        """Make sure that the residuals are there, or known to be spent."""
        if self.again is not None:
            self.recorded, self.saved, self.packed = self.again()
            self.again = None
            for heads in self.recorded.spent:
                self.spend(heads)

    def spend(self, heads: tuple[Node, ...]) -> None:
        """Forget what the gradients of ``heads`` read; the values go when no other needs them."""
        self.spent |= self.recorded.using(heads)
        if self.spent >= self.recorded.using(tuple(self.recorded.heads)):
            self.saved = None

    def is_spent(self, heads: tuple[Node, ...]) -> bool:
        """Whether the gradients of ``heads`` read what is forgotten."""
        return not self.spent.isdisjoint(self.recorded.using(heads))
