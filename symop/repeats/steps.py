"""What the steps of a run read and give: the operands and the results of a loop, before it is made.

Nothing here makes a node. What a step reads is told by the second step, which is like all later
ones; the first step reads initial values where they read carried ones.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from registry.attributes import identity_key
from registry.table import get
from registry.types import VarKind
from symop.graph import Node
from symop.repeats.listing import EMPTY, Listing, is_cut, maker_of
from symop.repeats.wiring import Run

Place = tuple[int, int]
"""A value of a step: the place of its operator in the step, and which output it is."""
Uses = dict[Place, set[int]]
"""The steps whose values somebody outside asks for."""


class RefusedError(Exception):
    """Why steps are not made a loop; never seen by users but in a report."""


class EndsDifferError(RefusedError):
    """The first steps, or the last, cannot be among them.

    Attributes:
        first: how many of the first.
        last: how many of the last.
    """

    def __init__(self, why: str, first: int, last: int = 0) -> None:
        """Say why, and which."""
        super().__init__(why)
        self.first, self.last = first, last


class Read(NamedTuple):
    """An input of an operator in a step.

    Attributes:
        inner: the value of the same step that it is, or None.
        carried: the value of the step before that it is, or None.
        values: what it is from outside: in all steps; of what is carried, in the first step alone.
    """

    inner: Place | None
    carried: Place | None
    values: tuple[Node, ...]


class Steps:
    """The steps of one run.

    Attributes:
        run: where they are.
        varying: the operators of a step that cut another piece in each step.
        uses: what is asked for outside of them, and of which steps.
        terms: the sums of one value over all steps that somebody outside asks for, by who asks.
    """

    def __init__(self, listing: Listing, run: Run) -> None:
        """Look at the steps of ``run``.

        Raises:
            RefusedError: they cannot be a loop.
        """
        self.listing, self.run = listing, run
        self.varying = {k for k in range(run.period) if self._varies(k)}
        self.uses: Uses = defaultdict(set)
        self.terms: dict[Node, set[Place]] = defaultdict(set)
        for k in self.varying:
            if any(read is not None and not read.values for read in self.reads(k)):
                raise RefusedError("a step cuts what it computed itself in another place each time")
        self._note_uses()
        self._require_plain()

    def node(self, step: int, k: int) -> Node:
        """The operator at place ``k`` of a step."""
        return self.listing.order[self.run.start + step * self.run.period + k]

    def value(self, step: int, place: Place) -> Node:
        """A value of a step that somebody outside asks for."""
        found = self.listing.value(self.listing.place[self.node(step, place[0])], place[1])
        assert found is not None
        return found

    def _varies(self, k: int) -> bool:
        if not is_cut(self.node(0, k)):
            return False
        steps = range(self.run.times)
        return len({identity_key(self.node(step, k).attributes) for step in steps}) > 1

    def reads(self, k: int) -> Iterator[Read | None]:
        """The inputs of the operator at place ``k``; None where a slot is empty."""
        run = self.run
        place = run.start + run.period + k
        for i, wire in enumerate(self.listing.wires[place]):
            if wire == EMPTY:
                yield None
                continue
            source, index = k - wire[0], wire[1]
            far = wire[0] <= 0 or place - wire[0] < run.start or source < -run.period
            if far or source % run.period in self.varying:
                yield Read(None, None, self._values(k, i))
            elif source >= 0:
                yield Read((source, index), None, ())
            else:
                first = self.node(0, k).inputs[i]
                assert first is not None
                yield Read(None, (source + run.period, index), (first,))

    def _values(self, k: int, i: int) -> tuple[Node, ...]:
        found = tuple(self.node(step, k).inputs[i] for step in range(self.run.times))
        assert None not in found
        return found  # type: ignore[return-value]

    def _note_uses(self) -> None:
        listing, run = self.listing, self.run
        for output in listing.outputs:
            self._note(output)
        inside = range(run.start, run.stop)
        readers = {r for place in inside for r in listing.readers[place] if r >= run.stop}
        for reader in sorted(readers):
            self._note_reader(listing.order[reader])

    def _note_reader(self, reader: Node) -> None:
        by_place: dict[Place, list[int]] = defaultdict(list)
        for one in reader.operands:
            found = self._found(one)
            if found is not None:
                by_place[found[0]].append(found[1])
        for place, steps in by_place.items():
            whole = len(steps) == self.run.times == len(set(steps))
            if whole and reader.op is get("add_n") and self._is_dense(place):
                self.terms[reader].add(place)
            else:
                self.uses[place].update(steps)

    def _note(self, value: Node) -> None:
        found = self._found(value)
        if found is not None:
            self.uses[found[0]].add(found[1])

    def _found(self, value: Node) -> tuple[Place, int] | None:
        """Which value of which step ``value`` is; None if it is none, or a cut from outside."""
        maker, index = maker_of(value)
        at = self.listing.place.get(maker)
        if at is None or not self.run.start <= at < self.run.stop:
            return None
        step, k = divmod(at - self.run.start, self.run.period)
        return None if k in self.varying else ((k, index), step)

    def _is_dense(self, place: Place) -> bool:
        types = self.node(1, place[0]).types
        return types is not None and types[place[1]].kind is VarKind.LOD_TENSOR

    def _require_plain(self) -> None:
        """Refuse what cannot leave a step: rows, and the types of Python's numbers."""
        for place in self.uses:
            if not self._is_dense(place):
                raise RefusedError("a value that is needed outside is no dense array")
        for k in range(self.run.period):
            if any(one.weak for one in self.node(1, k).types or ()):
                raise RefusedError("a step computes a Python number")
