"""Repetitions of equal operators that are wired equally, so that they are the steps of one loop.

In a step, an operator may read an operator of the same step, one of the previous step (a carried
value), or a value from outside all steps. A value from outside may differ in each step, so only the
distances of inputs that come from the loop itself are compared.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from symop.passes.roll_loops.listing import EMPTY, OUTSIDE, Listing, Wire
from symop.passes.roll_loops.sequences import Repeat

_LOOKED_AT = 8
_CANDIDATES = 6
"""The number of step lengths that are tried."""
_WINDOW = 256
"""The number of operators, in the middle, in which the period of the wiring is searched."""
_MOVES = 4


class RepeatedSteps(NamedTuple):
    """Steps that are wired equally.

    Attributes:
        start: The position of the first operator of the first step.
        period: The number of operators in a step.
        times: The number of steps.
    """

    start: int
    period: int
    times: int

    @property
    def stop(self) -> int:
        """The position after the last step."""
        return self.start + self.period * self.times

    def step_of(self, place: int) -> int:
        """Returns the step that contains an operator; out of range if no step does."""
        return (place - self.start) // self.period


def alike(
    listing: Listing, repeat: Repeat, fewest: int, saves: Callable[[RepeatedSteps], bool]
) -> list[RepeatedSteps]:
    """Returns the longest equally wired runs within ``repeat``, of at least ``fewest`` steps.

    A step may be several periods: in a loop over time with equal layers, it contains all layers.
    The shortest step is chosen whose runs cover half of the repetition, or else the one whose runs
    cover the most.

    Args:
        listing: The operators.
        repeat: The part of them that repeats a word.
        fewest: The least number of steps of a run.
        saves: Whether a run is worth a loop.
    """
    most, best = 0, list[RepeatedSteps]()
    for periods in _candidates(listing, repeat, fewest):
        period = periods * repeat.period
        stretches = _stretches(listing, repeat._replace(period=period))
        runs = [_run(listing, start, stop, period, fewest) for start, stop in stretches]
        long_runs = [run for run in runs if run is not None and saves(run)]
        covered = sum(run.stop - run.start for run in long_runs)
        if covered > most:
            most, best = covered, long_runs
        if 2 * most >= repeat.stop - repeat.start:
            break
    return best


def _candidates(listing: Listing, repeat: Repeat, fewest: int) -> list[int]:
    """Returns how many periods a step may have.

    That is one, the distance that operators in the middle read back, or the period of the wiring.
    """
    start, stop, period = repeat
    middle = (start + stop) // 2
    longest = (stop - start) // fewest
    numbers = {1}
    for place in range(middle, min(middle + _LOOKED_AT * period, stop)):
        for distance, _ in listing.wires[place]:
            if period < distance <= longest and place - distance >= start:
                numbers |= {distance // period, -(-distance // period)}
    chosen = sorted(one for one in numbers if one * period <= longest)[:_CANDIDATES]
    whole, rest = divmod(_period_of_wiring(listing, repeat), period)
    if whole and not rest and whole * period <= longest and whole not in chosen:
        chosen.append(whole)
    return chosen


def _period_of_wiring(listing: Listing, repeat: Repeat) -> int:
    """Returns the period of the wiring of operators in the middle; 0 if it has none.

    Derivation: a word whose longest border is ``b`` letters long has the period ``n - b`` (Knuth,
    Morris, Pratt, 1977).
    """
    start, stop, _ = repeat
    # Near the ends, values come from other sources.
    length = min(_WINDOW, (stop - start) // 2)
    first = (start + stop - length) // 2
    word = [
        (listing.letters[place], tuple(_within(wire, place, start) for wire in wires))
        for place, wires in enumerate(listing.wires[first : first + length], first)
    ]
    borders, border = [0] * len(word), 0
    for i in range(1, len(word)):
        while border and word[i] != word[border]:
            border = borders[border - 1]
        border += word[i] == word[border]
        borders[i] = border
    period = len(word) - border
    return period if 2 * period <= len(word) else 0


def _within(wire: Wire, place: int, start: int) -> Wire:
    """Returns ``wire``, or a wire from outside if its source is before ``start``."""
    return wire if wire[0] <= 0 or place - wire[0] >= start else OUTSIDE


def first_odd(listing: Listing, repeat: Repeat) -> int | None:
    """Returns the first operator that is wired differently from the one ``period`` before it."""
    start, stop, period = repeat
    for place in range(start + period, stop):
        if _first_alike(listing, place, period, start) > start:
            return place
    return None


def _stretches(listing: Listing, repeat: Repeat) -> Iterator[tuple[int, int]]:
    """Yields the ranges in which each operator is wired like the one ``period`` before it."""
    start, stop, period = repeat
    place = start + period
    while place < stop:
        first = max(start, _first_alike(listing, place, period, start))
        if first > start:
            if place - start >= 2 * period:
                yield start, place
            start = first
        place = max(place + 1, start + period)
    if stop - start >= 2 * period:
        yield start, stop


def _first_alike(listing: Listing, place: int, period: int, start: int) -> int:
    """Returns the first start of steps with an operator wired like the one ``period`` before."""
    now, before = listing.wires[place], listing.wires[place - period]
    if now == before:
        return start
    never = place - period + 1
    if len(now) != len(before):
        return never
    pairs = [(one, other) for one, other in zip(now, before, strict=True) if one != other]
    return max(_first_of_role(*pair, place, period, start) for pair in pairs)


def _first_of_role(now: Wire, before: Wire, place: int, period: int, start: int) -> int:
    """Computes ``_first_alike`` for two wires that differ.

    Either both come from outside, or the earlier one does, since the first step has none before it.
    """
    never = place - period + 1
    if EMPTY in (now, before):
        return never
    inside = _inside(before, place - period, 2 * period, start)
    if not _inside(now, place, 2 * period, start):
        return never if inside else start
    latest = max(now[0], 0) if not inside else min(now[0], before[0])
    return place - period - latest + 1


def _inside(wire: Wire, place: int, reach: int, start: int) -> bool:
    return wire is not OUTSIDE and 0 < wire[0] < reach and place - wire[0] >= start


def _run(listing: Listing, start: int, stop: int, period: int, fewest: int) -> RepeatedSteps | None:
    """Returns the steps of ``period`` operators between ``start`` and ``stop``, at the best offset.

    Values that they read from outside must exist before the first step.
    """
    for _ in range(_MOVES):
        if stop - start < period * fewest:
            return None
        latest = _latest_outside(listing, start, stop, period)
        if latest < start:
            break
        first = _first_too_far(listing, start, stop, period)
        if first - start > stop - latest - 1:
            stop = first
        else:
            start = latest + 1
    else:
        return None
    shift = _best_cut(listing, start, stop, period)
    if shift is None:
        return None
    count = (stop - start - shift) // period
    return RepeatedSteps(start + shift, period, count) if count >= fewest else None


def _latest_outside(listing: Listing, start: int, stop: int, period: int) -> int:
    """Returns the last operator from ``start`` on that a late step reads from too far away."""
    latest = -1
    for place in range(stop - period, stop):
        for wire in listing.wires[place]:
            source = place - wire[0]
            if wire[0] >= 2 * period and source >= start:
                latest = max(latest, source)
    return latest


def _first_too_far(listing: Listing, start: int, stop: int, period: int) -> int:
    """Returns the first operator that reads an operator from ``start`` on from too far away."""
    for place in range(start, stop):
        for wire in listing.wires[place]:
            if wire[0] >= 2 * period and place - wire[0] >= start:
                return place
    return stop


def _best_cut(listing: Listing, start: int, stop: int, period: int) -> int | None:
    """Returns the offset at which the fewest bytes go from one step to the next.

    The result is None if every offset would require a value to be carried over two steps.
    """
    middle = start + period
    reach: dict[tuple[int, int], int] = {}
    for place in range(middle, min(middle + 3 * period, stop)):
        for distance, index in listing.wires[place]:
            source = place - distance
            if distance > 0 and middle <= source < middle + period and distance < 2 * period:
                reach[source, index] = max(reach.get((source, index), 0), distance)
    sizes, numbers, twice = ([0] * (2 * period + 1) for _ in range(3))
    for (source, index), distance in reach.items():
        # A value crosses each cut between its source and its reader, twice beyond one period.
        first, once = (source - middle + 1) % period, min(distance, period)
        _add(sizes, first, once, _bytes(listing, source, index))
        _add(numbers, first, once, 1)
        _add(twice, first, distance - once, 1)
    totals = [_folded(one, period) for one in (twice, sizes, numbers)]
    crossed, _, _, shift = min(zip(*totals, range(period), strict=True))
    return None if crossed else shift


def _add(changes: list[int], first: int, length: int, amount: int) -> None:
    """Adds ``amount`` at ``length`` positions from ``first`` on."""
    changes[first] += amount
    changes[first + length] -= amount


def _folded(changes: list[int], period: int) -> list[int]:
    """Sums changes around a circle of ``period`` positions, laid out twice."""
    totals, total = [0] * period, 0
    for i, change in enumerate(changes[: 2 * period]):
        total += change
        totals[i % period] += total
    return totals


def _bytes(listing: Listing, place: int, index: int) -> int:
    types = listing.order[place].types
    assert types is not None
    return types[index].nbytes
