"""The inputs and outputs of a run's steps: the operands and results of a loop not made yet.

Nothing here makes a node. The second step determines what a step reads, since all later steps are
like it; the first step reads initial values where they read carried ones.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from registry.operator.attributes import identity_key
from registry.types import VarKind
from symop.graph.algebra import is_sum
from symop.graph.nodes import Node
from symop.passes.roll_loops.listing import EMPTY, Listing, is_cut
from symop.passes.roll_loops.wiring import RepeatedSteps

Place = tuple[int, int]
"""A value of a step: the position of its operator in the step, and the index of its output."""
Uses = dict[Place, set[int]]
"""For each value, the steps whose value is requested from outside."""


class RefusedError(Exception):
    """Raised if steps cannot become a loop; users see the reason only in a report."""


class EndsDifferError(RefusedError):
    """Raised if the first or last steps cannot be part of the loop.

    Attributes:
        first: The number of first steps to leave out.
        last: The number of last steps to leave out.
    """

    def __init__(self, why: str, first: int, last: int = 0) -> None:
        """Stores the reason and the numbers of steps to leave out."""
        super().__init__(why)
        self.first, self.last = first, last


class Read(NamedTuple):
    """An input of an operator in a step.

    Attributes:
        inner: The value of the same step that is read, or None.
        carried: The value of the previous step that is read, or None.
        values: Its values from outside: one for each step, or only the first if it is carried.
    """

    inner: Place | None
    carried: Place | None
    values: tuple[Node, ...]


class Steps:
    """The steps of a run.

    Attributes:
        run: The positions of the steps.
        varying: The operators of a step that take another slice in each step.
        uses: The values that are requested from outside, with the steps for which they are.
        terms: For each node outside that sums a value over all steps, those values.
        recomputes: Whether the gradient recomputes the values inside a step.
    """

    def __init__(self, listing: Listing, run: RepeatedSteps, *, recomputes: bool = False) -> None:
        """Examines the steps of ``run``.

        Raises:
            RefusedError: The steps cannot be a loop.
        """
        self.listing, self.run, self.recomputes = listing, run, recomputes
        self.varying = {k for k in range(run.period) if self._varies(k)}
        self.uses: Uses = defaultdict(set)
        self.terms: dict[Node, set[Place]] = defaultdict(set)
        for k in self.varying:
            if any(read is not None and not read.values for read in self.reads(k)):
                raise RefusedError("a step cuts what it computed itself in another place each time")
        self._note_uses()
        self._require_plain()

    def node(self, step: int, k: int) -> Node:
        """Returns the operator at position ``k`` of a step."""
        return self.listing.order[self.run.start + step * self.run.period + k]

    def value(self, step: int, place: Place) -> Node:
        """Returns a value of a step that is requested from outside."""
        result = self.listing.value(self.listing.place[self.node(step, place[0])], place[1])
        assert result is not None
        return result

    def carried_bytes(self) -> int | None:
        """Returns the bytes of carried values; None if a step has inputs or results of its own."""
        reads = [read for k in range(self.run.period) for read in self.reads(k) if read is not None]
        outside = [read.values for read in reads if read.carried is None and read.values]
        last = {self.run.times - 1}
        if self.terms or any(steps != last for steps in self.uses.values()):
            return None
        if any(one is not values[0] for values in outside for one in values):
            return None
        carried = {read.carried for read in reads if read.carried is not None}
        types = [(self.node(1, k).types or ())[index] for k, index in carried]
        return sum(one.nbytes for one in types)

    def _varies(self, k: int) -> bool:
        if not is_cut(self.node(0, k)):
            return False
        steps = range(self.run.times)
        return len({identity_key(self.node(step, k).attributes) for step in steps}) > 1

    def reads(self, k: int) -> Iterator[Read | None]:
        """Yields the inputs of the operator at position ``k``; None where a slot is empty."""
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
        result = tuple(self.node(step, k).inputs[i] for step in range(self.run.times))
        assert None not in result
        return result  # type: ignore[return-value]

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
            spot = self._locate(one)
            if spot is not None:
                by_place[spot[0]].append(spot[1])
        for place, steps in by_place.items():
            whole = len(steps) == self.run.times == len(set(steps))
            if whole and is_sum(reader) and self._is_dense(place):
                self.terms[reader].add(place)
            else:
                self.uses[place].update(steps)

    def _note(self, value: Node) -> None:
        spot = self._locate(value)
        if spot is not None:
            self.uses[spot[0]].add(spot[1])

    def _locate(self, value: Node) -> tuple[Place, int] | None:
        """Returns the place and step of ``value``; None if it is outside, or a varying slice."""
        maker, index = value.source, value.index
        at = self.listing.place.get(maker)
        if at is None or not self.run.start <= at < self.run.stop:
            return None
        step, k = divmod(at - self.run.start, self.run.period)
        return None if k in self.varying else ((k, index), step)

    def _is_dense(self, place: Place) -> bool:
        types = self.node(1, place[0]).types
        return types is not None and types[place[1]].kind is VarKind.LOD_TENSOR

    def _require_plain(self) -> None:
        """Refuses values that cannot leave a step: row-sparse ones, and Python scalars."""
        for place in self.uses:
            if not self._is_dense(place):
                raise RefusedError("a value that is needed outside is not a dense array")
        for k in range(self.run.period):
            if any(one.weak for one in self.node(1, k).types or ()):
                raise RefusedError("a step computes a Python number")
