"""Which repetitions of like operators are wired alike, so that they are steps of one loop.

In a step an operator may read another one of the same step, one of the step before (a carried
value), or something from outside of all steps. An input from outside may be another value in each
step, so only these are compared: how far away the inputs are that come from the loop itself.
"""

from collections.abc import Iterator
from typing import NamedTuple

from symop.repeats.listing import EMPTY, OUTSIDE, Listing, Wire
from symop.repeats.sequences import Repeat

_LOOKED_AT = 8
_CANDIDATES = 6
"""So many lengths of a step are tried."""
_MOVES = 4


class Run(NamedTuple):
    """Steps that are wired alike.

    Attributes:
        start: the place of the first operator of the first step.
        period: how many operators a step has.
        times: how many steps there are.
    """

    start: int
    period: int
    times: int

    @property
    def stop(self) -> int:
        """The place behind the last step."""
        return self.start + self.period * self.times

    def step_of(self, place: int) -> int:
        """In which step an operator is; out of range if in none."""
        return (place - self.start) // self.period


def alike(listing: Listing, repeat: Repeat, fewest: int) -> Iterator[Run]:
    """The longest runs within ``repeat`` that are wired alike, of at least ``fewest`` steps.

    A step may be several periods: in a loop over time with equal layers, it is all layers.
    """
    for periods in _candidates(listing, repeat, fewest):
        period = periods * repeat.period
        stretches = _stretches(listing, repeat._replace(period=period))
        runs = [_run(listing, start, stop, period, fewest) for start, stop in stretches]
        found = [run for run in runs if run is not None]
        if found:
            yield from found
            return


def _candidates(listing: Listing, repeat: Repeat, fewest: int) -> list[int]:
    """How many periods a step may be: one, or as many as operators in the middle read back."""
    start, stop, period = repeat
    middle = (start + stop) // 2
    longest = (stop - start) // fewest
    numbers = {1}
    for place in range(middle, min(middle + _LOOKED_AT * period, stop)):
        for distance, _ in listing.wires[place]:
            if period < distance <= longest and place - distance >= start:
                numbers |= {distance // period, -(-distance // period)}
    return sorted(one for one in numbers if one * period <= longest)[:_CANDIDATES]


def first_odd(listing: Listing, repeat: Repeat) -> int | None:
    """The first operator that is wired otherwise than the one ``period`` before it."""
    start, stop, period = repeat
    for place in range(start + period, stop):
        if _first_alike(listing, place, period, start) > start:
            return place
    return None


def _stretches(listing: Listing, repeat: Repeat) -> Iterator[tuple[int, int]]:
    """Where each operator is wired as the one ``period`` before it."""
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
    """From where on steps must begin for an operator to be wired as the one ``period`` before."""
    now, before = listing.wires[place], listing.wires[place - period]
    if now == before:
        return start
    never = place - period + 1
    if len(now) != len(before):
        return never
    pairs = [(one, other) for one, other in zip(now, before, strict=True) if one != other]
    return max(_first_of_role(*pair, place, period, start) for pair in pairs)


def _first_of_role(now: Wire, before: Wire, place: int, period: int, start: int) -> int:
    """``_first_alike`` for two wires that differ.

    Either both come from outside; or the first one does, since before the first step is no other.
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


def _run(listing: Listing, start: int, stop: int, period: int, fewest: int) -> Run | None:
    """The steps of ``period`` operators between ``start`` and ``stop``, well cut.

    What they read from outside must be there before the first of them.
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
    return Run(start + shift, period, count) if count >= fewest else None


def _latest_outside(listing: Listing, start: int, stop: int, period: int) -> int:
    """The last operator, of those from ``start`` on, that a late step reads from too far away."""
    latest = -1
    for place in range(stop - period, stop):
        for wire in listing.wires[place]:
            source = place - wire[0]
            if wire[0] >= 2 * period and source >= start:
                latest = max(latest, source)
    return latest


def _first_too_far(listing: Listing, start: int, stop: int, period: int) -> int:
    """The first operator that reads one, of those from ``start`` on, from too far away."""
    for place in range(start, stop):
        for wire in listing.wires[place]:
            if wire[0] >= 2 * period and place - wire[0] >= start:
                return place
    return stop


def _best_cut(listing: Listing, start: int, stop: int, period: int) -> int | None:
    """Where a step begins best: where the fewest bytes go from one step to the next.

    None if some value would have to be carried over two steps wherever it is cut.
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
        # A cut right before each of so many operators is crossed, once or, behind it, twice.
        first, once = (source - middle + 1) % period, min(distance, period)
        _add(sizes, first, once, _bytes(listing, source, index))
        _add(numbers, first, once, 1)
        _add(twice, first, distance - once, 1)
    totals = [_folded(one, period) for one in (twice, sizes, numbers)]
    crossed, _, _, shift = min(zip(*totals, range(period), strict=True))
    return None if crossed else shift


def _add(changes: list[int], first: int, length: int, amount: int) -> None:
    """Let ``amount`` more be there at ``length`` places from ``first`` on."""
    changes[first] += amount
    changes[first + length] -= amount


def _folded(changes: list[int], period: int) -> list[int]:
    """Sums of changes around a circle of ``period`` places, laid out twice."""
    totals, total = [0] * period, 0
    for i, change in enumerate(changes[: 2 * period]):
        total += change
        totals[i % period] += total
    return totals


def _bytes(listing: Listing, place: int, index: int) -> int:
    types = listing.order[place].types
    assert types is not None
    return types[index].nbytes
