"""Rolling: repeated blocks of a graph become loops, whose steps are compiled once.

The graph is read as a sequence of operators. Where a word comes again and again, and its copies are
wired alike, they are the steps of a loop; what they read and give decides what is carried, what is
a series, and what is shared. What comes first or last and is not like the rest stays as it is, and
what is repeated within a step is rolled in turn.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from symop.emission import reapplied
from symop.graph import Node, Origin, built_at, copied_origin, select
from symop.repeats.listing import Listing, arranged
from symop.repeats.loops import FORWARD, Aim, Loop, loop_of
from symop.repeats.sequences import Repeat, maximal_repeats
from symop.repeats.series import joined
from symop.repeats.steps import EndsDifferError, RefusedError, Steps
from symop.repeats.wiring import Run, alike, first_odd

FEWEST_STEPS = 4
"""A loop has at least so many steps."""
LEAST_SAVED = 24
"""A loop saves the compiler at least so many operators, of which costly ones count more."""


_TELLING = 8
"""Blocks that come three times or more are worth telling if a loop would save so many operators."""
_TOO_SMALL = (
    f"too small: a loop has {FEWEST_STEPS} steps or more, and saves {LEAST_SAVED} operators or more"
)


class Rolled(NamedTuple):
    """One loop that was made, or was not.

    Attributes:
        run: its steps, by the places of their operators in the sequence.
        nodes: the operators of its first step.
        origin: where the user built the first of them.
        counts: how many carried values, series and shared values there are, if it was made.
        backwards: whether it goes from the last slice of its series to the first.
        loop: the operator that runs it, or None.
        reason: why it was not made, or None.
        depth: in how many loops it lies.
    """

    run: Run
    nodes: tuple[Node, ...]
    origin: Origin | None
    counts: dict[str, int]
    backwards: bool
    loop: Node | None
    reason: str | None
    depth: int


def rolled(
    outputs: Sequence[Node],
    order: Iterable[Node],
    until: Iterable[Node] = (),
    *,
    aim: Aim = FORWARD,
    log: list[Rolled] | None = None,
    depth: int = 0,
) -> list[Node]:
    """``outputs`` with repeated blocks as loops; as they are where nothing is worth it.

    Args:
        outputs: values of one graph, all types known.
        order: nodes in the order in which they were made, as far as it is known.
        until: nodes that are taken as given.
        aim: what will be done with the loops.
        log: where to tell what was rolled and what was not.
        depth: in how many loops the graph lies.

    The values are the same up to rounding; what draws random numbers draws the same.
    """
    sequence = arranged(outputs, order, until)
    if len(sequence) < LEAST_SAVED and log is None:
        return list(outputs)
    listing = Listing(outputs, sequence)
    pass_ = _Pass(listing, log if log is not None else [], aim, depth=depth)
    return pass_.outputs()


class _Pass:
    """One pass over a sequence."""

    def __init__(self, listing: Listing, log: list[Rolled], aim: Aim, *, depth: int) -> None:
        self.listing, self.log = listing, log
        self.aim, self.depth = aim, depth
        self.images: dict[Node, Node] = {}
        self.terms: dict[Node, list[tuple[set[Node], Node]]] = {}

    def outputs(self) -> list[Node]:
        """The outputs over loops."""
        starts = {steps.run.start: steps for steps in self._chosen()}
        if not starts:
            return list(self.listing.outputs)
        place = 0
        while place < len(self.listing.order):
            steps = starts.get(place)
            if steps is not None and self._looped(steps):
                place = steps.run.stop
                continue
            self._rebuild(self.listing.order[place])
            place += 1
        return [self.image(one) for one in self.listing.outputs]

    def image(self, node: Node) -> Node:
        """What ``node`` became."""
        return self.images.get(node, node)

    # Choosing

    def _chosen(self) -> list[Steps]:
        """Runs that do not overlap, those that save most first."""
        found = maximal_repeats(self.listing.letters)
        repeats = [one for one in found if self._saves(*one)]
        repeats.sort(key=lambda one: (one.period - (one.stop - one.start), one))
        taken: list[Steps] = []
        for repeat in repeats:
            for free in self._free(repeat, [steps.run for steps in taken]):
                taken += self._found(free)
        self._tell_small(found, [steps.run for steps in taken])
        return taken

    def _tell_small(self, found: Sequence[Repeat], taken: Sequence[Run]) -> None:
        """Tell of blocks that come again, but are not worth a loop."""
        for repeat in found:
            inside = any(run.start < repeat.stop and repeat.start < run.stop for run in taken)
            times = (repeat.stop - repeat.start) // repeat.period
            worth = times > 2 and repeat.period * (times - 1) >= _TELLING
            if worth and not inside and not self._saves(*repeat):
                self._tell(Run(repeat.start, repeat.period, times), None, _TOO_SMALL)

    def _found(self, repeat: Repeat) -> Iterator[Steps]:
        alike_ones = alike(self.listing, repeat, FEWEST_STEPS)
        runs = [run for run in alike_ones if self._saves(run.start, run.stop, run.period)]
        if not runs:
            times = (repeat.stop - repeat.start) // repeat.period
            run = Run(repeat.start, repeat.period, times)
            self._tell(run, None, f"too few steps in a row are wired alike{self._odd(repeat)}")
        for run in runs:
            try:
                yield Steps(self.listing, run)
            except RefusedError as refusal:
                self._tell(run, None, str(refusal))

    def _odd(self, repeat: Repeat) -> str:
        """Which operator is wired otherwise than the one of the step before."""
        place = first_odd(self.listing, repeat)
        if place is None:
            return ""
        node = self.listing.order[place]
        return f"; the first that is not is {node.op.name}{built_at(node.origin)}"

    # Making

    def _looped(self, steps: Steps) -> bool:
        """Whether the steps became a loop."""
        run = steps.run
        for k in sorted(steps.varying):
            for step in range(run.times):
                self._rebuild(steps.node(step, k))
        try:
            loop = loop_of(steps, self.image, self._within, self.aim)
        except EndsDifferError as error:
            return self._without_ends(steps, error)
        except RefusedError as refusal:
            self._tell(run, None, str(refusal))
            return False
        self._tell(run, loop, None)
        self.images.update(loop.images)
        for reader, sums in loop.terms.items():
            for place, total in sums:
                summed = {steps.value(step, place) for step in range(run.times)}
                self.terms.setdefault(reader, []).append((summed, total))
        return True

    def _without_ends(self, steps: Steps, error: EndsDifferError) -> bool:
        """Let the steps at the ends be no part of the loop."""
        run = steps.run
        start, times = run.start + error.first * run.period, run.times - error.first - error.last
        shorter = Run(start, run.period, times)
        if times < FEWEST_STEPS or not self._saves(start, shorter.stop, run.period):
            self._tell(run, None, str(error))
            return False
        for place in range(run.start, start):
            self._rebuild(self.listing.order[place])
        try:
            if not self._looped(Steps(self.listing, shorter)):
                return False
        except RefusedError as refusal:
            self._tell(shorter, None, str(refusal))
            return False
        for place in range(shorter.stop, run.stop):
            self._rebuild(self.listing.order[place])
        return True

    def _within(
        self, results: Sequence[Node], order: Sequence[Node], parameters: Sequence[Node]
    ) -> list[Node]:
        return rolled(
            results,
            order,
            parameters,
            aim=self.aim,
            log=self.log,
            depth=self.depth + 1,
        )

    def _rebuild(self, node: Node) -> None:
        """``node`` over what its inputs became."""
        if node in self.images:
            return
        inputs = tuple([None if one is None else self.image(one) for one in node.inputs])
        terms = self.terms.pop(node, ())
        if terms:
            summed = {one for each, _ in terms for one in each}
            rest = [self.image(one) for one in node.operands if one not in summed]
            inputs = (*rest, *(total for _, total in terms))
        elif inputs == node.inputs:
            return
        with copied_origin(node.origin):
            made = joined(node, inputs, FEWEST_STEPS)
            if made is None:
                made = reapplied(node, inputs)
        self.images[node] = made
        for index, selection in self.listing.selections.get(node, {}).items():
            self.images[selection] = select(made, index)

    # Telling

    def _tell(self, run: Run, loop: Loop | None, reason: str | None) -> None:
        first = self.listing.order[run.start : run.start + run.period]
        self.log.append(
            Rolled(
                run,
                tuple(first),
                first[0].origin,
                {} if loop is None else loop.counts,
                loop is not None and loop.backwards,
                None if loop is None else loop.node,
                reason,
                self.depth,
            )
        )

    # Sizes

    def _saves(self, start: int, stop: int, period: int) -> bool:
        """Whether a loop of the operators from ``start`` to ``stop`` is worth it."""
        count, weights = (stop - start) // period, self.listing.weights
        if count < FEWEST_STEPS:
            return False
        return (weights[start + period] - weights[start]) * (count - 1) >= LEAST_SAVED

    def _free(self, repeat: Repeat, taken: Sequence[Run]) -> Iterator[Repeat]:
        """The parts of a repetition that no run has taken."""
        start = repeat.start
        for run in sorted(taken):
            if run.stop <= start or run.start >= repeat.stop:
                continue
            if self._saves(start, run.start, repeat.period):
                yield repeat._replace(start=start, stop=run.start)
            start = run.stop
        if self._saves(start, repeat.stop, repeat.period):
            yield repeat._replace(start=start)
