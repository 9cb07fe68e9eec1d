"""Rolling: repeated blocks of a graph become loops, whose bodies are compiled once.

The graph is read as a sequence of operators. Where a word is repeated and its copies are wired
equally, they are the steps of a loop; their inputs and outputs determine which values are
carried, series, or shared. Operators at the ends that differ from the rest are unchanged, and
repetitions within a step are rolled in turn.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from registry.operator.operator import Operator
from registry.table import get
from symop.graph.nodes import Node, Origin, built_at, copied_origin, topological
from symop.graph.rewriting import Images, reapply, substitute
from symop.passes.roll_loops.costs import steps_together, waits_for_memory
from symop.passes.roll_loops.listing import Listing, arrange
from symop.passes.roll_loops.loops import FEW, FORWARD, Aim, RolledLoop, loop_of, slice_of
from symop.passes.roll_loops.sequences import Repeat, maximal_repeats
from symop.passes.roll_loops.series import join_slices
from symop.passes.roll_loops.steps import EndsDifferError, RefusedError, Steps
from symop.passes.roll_loops.wiring import RepeatedSteps, alike, first_odd

FEWEST_STEPS = 4
"""The least number of steps of a loop."""
LEAST_SAVED = 24
"""The least number of operators that a loop saves the compiler; costly ones count more."""


_TELLING = 8
"""Blocks repeated three times or more are reported if a loop would save this many operators."""
_TOO_SMALL = (
    f"too small: a loop has {FEWEST_STEPS} steps or more, and saves {LEAST_SAVED} operators or more"
)


class Rolled(NamedTuple):
    """A loop that was made, or the reason why it was not.

    Attributes:
        run: The steps, by the positions of their operators in the sequence.
        nodes: The operators of the first step.
        origin: Where the user built the first of them.
        counts: The numbers of carried values, series and shared values, if the loop was made.
        backwards: Whether it runs from the last slice of its series to the first.
        loop: The operator that runs it, or None.
        reason: Why it was not made, or None.
        depth: The number of loops that contain it.
    """

    run: RepeatedSteps
    nodes: tuple[Node, ...]
    origin: Origin | None
    counts: dict[str, int]
    backwards: bool
    loop: Node | None
    reason: str | None
    depth: int


def roll(
    outputs: Sequence[Node],
    order: Iterable[Node],
    until: Iterable[Node] = (),
    *,
    aim: Aim = FORWARD,
    log: list[Rolled] | None = None,
    depth: int = 0,
) -> list[Node]:
    """Returns ``outputs`` with repeated blocks as loops, where these are worthwhile.

    The values are the same up to rounding; random numbers are the same.

    Args:
        outputs: Values of one graph, all types known.
        order: Nodes in the order in which they were made, as far as known.
        until: Nodes that are taken as given.
        aim: The purpose of the loops.
        log: A list to which every loop that was made or refused is appended.
        depth: The number of loops that contain the graph.
    """
    sequence = arrange(outputs, order, until)
    if len(sequence) < LEAST_SAVED and log is None:
        return list(outputs)
    listing = Listing(outputs, sequence)
    pass_ = _Pass(listing, log if log is not None else [], aim, depth=depth)
    return pass_.outputs()


def _few_taken(outputs: Sequence[Node]) -> list[Node]:
    """Replaces each unstacking by slices if only few of its parts are read.

    Most results of a loop that were read one by one may have become a series of another loop.
    """
    read: dict[Node, list[Node]] = {}
    for node in topological(outputs):
        if node.is_selection and _is_unstacked(node.source):
            read.setdefault(node.source, []).append(node)
    slices = {
        one: slice_of(whole.operands[0], one.index)
        for whole, parts in read.items()
        if len(parts) <= FEW < len(whole.types or ())
        for one in parts
    }
    return substitute(outputs, slices) if slices else list(outputs)


def _is_unstacked(node: Node) -> bool:
    """Whether ``node`` unstacks an array along its first axis."""
    operator = node.op
    if not isinstance(operator, Operator) or operator.family is not get("unstack"):
        return False
    return bool(operator.attribute_dict(node.attributes)["axis"] == 0)


class _Pass:
    """One pass over a sequence."""

    def __init__(self, listing: Listing, log: list[Rolled], aim: Aim, *, depth: int) -> None:
        self.listing, self.log = listing, log
        self.aim, self.depth = aim, depth
        self.images = Images()
        self.terms: dict[Node, list[tuple[set[Node], Node]]] = {}

    def outputs(self) -> list[Node]:
        """Returns the outputs over loops."""
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
        return _few_taken([self.images.value(one) for one in self.listing.outputs])

    # Selection

    def _chosen(self) -> list[Steps]:
        """Returns runs that do not overlap, chosen in order of decreasing savings."""
        all_repeats = maximal_repeats(self.listing.letters)
        repeats = [one for one in all_repeats if self._saves(*one)]
        repeats.sort(key=lambda one: (one.period - (one.stop - one.start), one))
        taken: list[Steps] = []
        for repeat in repeats:
            for free in self._free(repeat, [steps.run for steps in taken]):
                taken += self._repetitions(free)
        self._tell_small(all_repeats, [steps.run for steps in taken])
        return taken

    def _tell_small(self, repeats: Sequence[Repeat], taken: Sequence[RepeatedSteps]) -> None:
        """Reports repeated blocks that are not worth a loop."""
        for repeat in repeats:
            inside = any(run.start < repeat.stop and repeat.start < run.stop for run in taken)
            times = (repeat.stop - repeat.start) // repeat.period
            worth = times > 2 and repeat.period * (times - 1) >= _TELLING
            if worth and not inside and not self._saves(*repeat):
                self._tell(RepeatedSteps(repeat.start, repeat.period, times), None, _TOO_SMALL)

    def _repetitions(self, repeat: Repeat) -> Iterator[Steps]:
        runs = alike(
            self.listing,
            repeat,
            FEWEST_STEPS,
            lambda run: self._saves(run.start, run.stop, run.period),
        )
        if not runs:
            times = (repeat.stop - repeat.start) // repeat.period
            run = RepeatedSteps(repeat.start, repeat.period, times)
            self._tell(run, None, f"too few steps in a row are wired alike{self._odd(repeat)}")
        for run in runs:
            try:
                yield self._widened(Steps(self.listing, run))
            except RefusedError as refusal:
                self._tell(run, None, str(refusal))

    def _widened(self, steps: Steps) -> Steps:
        """Returns steps of several of ``steps`` each, if those would wait for memory."""
        run, nbytes = steps.run, steps.carried_bytes()
        together = steps_together(run.period, run.times, FEWEST_STEPS)
        nodes = [steps.node(1, k) for k in range(run.period)]
        if together < 2 or nbytes is None or not waits_for_memory(nodes, nbytes):
            return steps
        wide = RepeatedSteps(run.start, run.period * together, run.times // together)
        return Steps(self.listing, wide, recomputes=True)

    def _odd(self, repeat: Repeat) -> str:
        """Describes the operator that is wired differently from that of the previous step."""
        place = first_odd(self.listing, repeat)
        if place is None:
            return ""
        node = self.listing.order[place]
        return f"; the first that is not is {node.op.name}{built_at(node.origin)}"

    # Construction

    def _looped(self, steps: Steps) -> bool:
        """Tries to make a loop of the steps, and returns whether it succeeded."""
        run = steps.run
        for k in sorted(steps.varying):
            for step in range(run.times):
                self._rebuild(steps.node(step, k))
        try:
            loop = loop_of(steps, self.images.value, self._within, self.aim)
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
        """Tries again without the steps at the ends that cannot be part of the loop."""
        run = steps.run
        start, times = run.start + error.first * run.period, run.times - error.first - error.last
        shorter = RepeatedSteps(start, run.period, times)
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
        return roll(
            results,
            order,
            parameters,
            aim=self.aim,
            log=self.log,
            depth=self.depth + 1,
        )

    def _rebuild(self, node: Node) -> None:
        """Rebuilds ``node`` over the images of its inputs."""
        if node in self.images:
            return
        inputs = self.images.inputs(node)
        terms = self.terms.pop(node, ())
        if terms:
            summed = {one for each, _ in terms for one in each}
            rest = [self.images.value(one) for one in node.operands if one not in summed]
            inputs = (*rest, *(total for _, total in terms))
        elif inputs == node.inputs:
            return
        with copied_origin(node.origin):
            joined = join_slices(node, inputs, FEWEST_STEPS)
        self.images[node] = reapply(node, inputs) if joined is None else joined

    # Reports

    def _tell(self, run: RepeatedSteps, loop: RolledLoop | None, reason: str | None) -> None:
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
        """Whether a loop of the operators from ``start`` to ``stop`` is worthwhile."""
        count, weights = (stop - start) // period, self.listing.weights
        if count < FEWEST_STEPS:
            return False
        return (weights[start + period] - weights[start]) * (count - 1) >= LEAST_SAVED

    def _free(self, repeat: Repeat, taken: Sequence[RepeatedSteps]) -> Iterator[Repeat]:
        """Yields the parts of a repetition that no run has taken."""
        start = repeat.start
        for run in sorted(taken):
            if run.stop <= start or run.start >= repeat.stop:
                continue
            if self._saves(start, run.start, repeat.period):
                yield repeat._replace(start=start, stop=run.start)
            start = run.stop
        if self._saves(start, repeat.stop, repeat.period):
            yield repeat._replace(start=start)
