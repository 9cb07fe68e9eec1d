"""Shardings through a jaxpr: how each value is split, and what devices exchange for it."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from jax.extend.core import Jaxpr, JaxprEqn, Literal

from symop.planning.factors import Axes, Rule, rule_of

Split = tuple[tuple[str, ...], ...]
"""The mesh axes that each axis of an array is split over."""
Sizes = Mapping[str, int]
"""The sizes of mesh axes."""
_ROUNDS = 4
"""The number of times that the sharding of a loop's carry is followed through the body."""


class Collective(NamedTuple):
    """Data that devices exchange.

    Attributes:
        kind: ``all-reduce``, ``all-gather`` or ``all-to-all``.
        bytes: the size of the result on each device.
        axes: the mesh axes over which devices exchange it.
        times: how often in a step.
    """

    kind: str
    bytes: int
    axes: tuple[str, ...]
    times: int = 1


Report = Callable[[Collective], None]


def parts(split: Sequence[tuple[str, ...]], sizes: Sizes) -> int:
    """Returns the number of parts of an array that is split so."""
    return math.prod(sizes[axis] for each in split for axis in each)


def bytes_on_device(aval: Any, split: Split, sizes: Sizes) -> int:
    """Returns the size of the part of an array on each device."""
    itemsize: int = getattr(aval.dtype, "itemsize", 4)
    size: int = math.prod(aval.shape) * itemsize
    return size // parts(split, sizes)


def whole(aval: Any) -> Split:
    """Returns the sharding of a value that is whole on each device."""
    return ((),) * len(getattr(aval, "shape", ()))


def exchange(aval: Any, before: Split, after: Split, sizes: Sizes, report: Report) -> None:
    """Reports what devices exchange to split an array as ``after`` instead of ``before``."""
    if before == after:
        return
    lost = [[a for a in have if a not in want] for have, want in zip(before, after, strict=True)]
    gone = tuple(axis for each in lost for axis in each)
    if not gone:
        return  # each device takes a part of what it has
    kept = {axis for each in after for axis in each}
    moved = tuple(axis for axis in gone if axis in kept)
    if moved and set(moved) == set(gone):
        report(Collective("all-to-all", bytes_on_device(aval, after, sizes), moved))
        return
    gathered = tuple(tuple(a for a in have if a not in gone) for have in before)
    report(Collective("all-gather", bytes_on_device(aval, gathered, sizes), gone))


class _Walk:
    """The shardings of the values of a jaxpr, and the copies of them that devices have."""

    def __init__(self, jaxpr: Jaxpr, given: Sequence[Split], sizes: Sizes) -> None:
        self.sizes = sizes
        self._known: dict[Any, Split] = dict(zip(jaxpr.invars, given, strict=True))
        self._copies: set[tuple[int, Split]] = set()

    def of(self, value: Any) -> Split:
        """Returns the sharding of a value."""
        known = None if isinstance(value, Literal) else self._known.get(value)
        return whole(value.aval) if known is None else known

    def follow(self, equation: JaxprEqn, report: Report) -> Sequence[Split]:
        """Returns the shardings of the results of an equation, and keeps them."""
        given = [self.of(one) for one in equation.invars]
        found = self._through(equation, given, report)
        self._known.update(zip(equation.outvars, found, strict=True))
        return found

    def exchange(self, value: Any, before: Split, after: Split, report: Report) -> None:
        """Reports what devices exchange for a value, unless they have such a copy of it."""
        if (id(value), after) not in self._copies:
            self._copies.add((id(value), after))
            exchange(value.aval, before, after, self.sizes, report)

    def _through(self, equation: JaxprEqn, given: list[Split], report: Report) -> Sequence[Split]:
        inside = _INSIDE.get(equation.primitive.name)
        if inside is not None:
            return inside(equation, given, self.sizes, report)
        for name in ("jaxpr", "call_jaxpr"):
            inner = equation.params.get(name)
            if inner is not None:
                return propagate(_open(inner), given, self.sizes, report)
        return self._by_factors(equation, rule_of(equation), given, report)

    def _by_factors(
        self, equation: JaxprEqn, rule: Rule, given: list[Split], report: Report
    ) -> list[Split]:
        avals = [one.aval for one in equation.invars]
        chosen = _chosen(rule, given, avals, self.sizes)
        for one, axes, before in zip(equation.invars, rule.operands, given, strict=True):
            if axes:
                self.exchange(one, before, _split(axes, chosen), report)
        results = [_split(axes, chosen) for axes in rule.results]
        remaining = {factor for axes in rule.results for each in axes for factor in each}
        summed = tuple(
            axis for factor, over in chosen.items() if factor not in remaining for axis in over
        )
        if summed:
            for one, split in zip(equation.outvars, results, strict=True):
                size = bytes_on_device(one.aval, split, self.sizes)
                report(Collective("all-reduce", size, summed))
        return results


def propagate(jaxpr: Jaxpr, given: Sequence[Split], sizes: Sizes, report: Report) -> list[Split]:
    """Returns the shardings of the results of ``jaxpr``.

    Args:
        jaxpr: a jaxpr.
        given: the shardings of its inputs.
        sizes: the sizes of the mesh axes.
        report: called with each collective.
    """
    walk = _Walk(jaxpr, given, sizes)
    for equation in jaxpr.eqns:
        walk.follow(equation, report)
    return list(map(walk.of, jaxpr.outvars))


def _open(jaxpr: Any) -> Any:
    return getattr(jaxpr, "jaxpr", jaxpr)


def sent(one: Collective, sizes: Sizes) -> int:
    """Returns the bytes that each device sends for a collective, by ring algorithms."""
    count = math.prod(sizes[axis] for axis in one.axes)
    share = one.bytes * (count - 1) // count
    return 2 * share if one.kind == "all-reduce" else share


def followed(
    jaxpr: Jaxpr,
    given: Sequence[Split],
    sizes: Sizes,
    report: Callable[[str, Collective], None],
) -> tuple[list[Split], int]:
    """Returns the shardings of the results of ``jaxpr``, and the bytes of values held at once.

    The reported collectives come with the scope of the equation that needs them. A value that is
    computed entry by entry for one reader is not counted: XLA fuses it into the reader.
    """
    walk, last, readers = _Walk(jaxpr, given, sizes), dict[Any, int](), Counter[Any]()
    for i, equation in enumerate(jaxpr.eqns):
        for one in equation.invars:
            if not isinstance(one, Literal):
                last[one] = i
                readers[one] += 1
    held = most = 0
    ends: Counter[int] = Counter()
    for i, equation in enumerate(jaxpr.eqns):
        found = walk.follow(equation, partial(report, str(equation.source_info.name_stack)))
        for one, split in zip(equation.outvars, found, strict=True):
            if _is_held(equation, readers[one]):
                size = bytes_on_device(one.aval, split, sizes)
                held += size
                ends[last.get(one, len(jaxpr.eqns))] += size
        most = max(most, held)
        held -= ends.pop(i, 0)
    return list(map(walk.of, jaxpr.outvars)), most


_COMPUTED = frozenset({"dot_general", "conv_general_dilated", "gather", "scatter-add", "sort",
    "reduce_sum", "reduce_max", "concatenate", "stack", "scan", "while", "cond"})  # fmt: skip
"""The primitives whose results XLA keeps, whoever reads them."""
_MOVED = frozenset({"broadcast_in_dim", "iota", "reshape", "squeeze", "convert_element_type",
    "transpose", "slice"})  # fmt: skip
"""The primitives whose results XLA never keeps: their readers compute them."""


def _is_held(equation: JaxprEqn, readers: int) -> bool:
    name = equation.primitive.name
    return name in _COMPUTED or (name not in _MOVED and readers > 1)


# One operation -----------------------------------------------------------------------------------


def _entries(aval: Any) -> int:
    return math.prod(getattr(aval, "shape", ()))


def _split(axes: Axes, chosen: Mapping[int, tuple[str, ...]]) -> Split:
    return tuple(chosen.get(each[0], ()) if each else () for each in axes)


def _chosen(
    rule: Rule, given: list[Split], avals: Sequence[Any], sizes: Sizes
) -> dict[int, tuple[str, ...]]:
    """Returns the mesh axes over which each factor is split.

    Where operands disagree, the largest one stays as it is.
    """
    order = sorted(range(len(given)), key=lambda i: -_entries(avals[i]))
    chosen: dict[int, tuple[str, ...]] = {}
    used: set[str] = set()
    for i in order:
        for factors, over in zip(rule.operands[i], given[i], strict=False):
            factor = factors[0] if factors else None
            if factor is None or factor in rule.whole or factor in chosen or not over:
                continue
            free = tuple(axis for axis in over if axis not in used)
            if free and rule.sizes[factor] % math.prod(sizes[a] for a in free) == 0:
                chosen[factor] = free
                used.update(free)
    return chosen


# Loops and branches ------------------------------------------------------------------------------


def _scan(equation: JaxprEqn, given: list[Split], sizes: Sizes, report: Report) -> list[Split]:
    constants, carried = equation.params["num_consts"], equation.params["num_carry"]
    body, length = _open(equation.params["jaxpr"]), equation.params["length"]
    fixed, carry = given[:constants], given[constants : constants + carried]
    sliced = given[constants + carried :]
    for one, split in zip(equation.invars[constants + carried :], sliced, strict=True):
        exchange(one.aval, split, ((), *split[1:]), sizes, report)
    steps = [split[1:] for split in sliced]
    results: list[Split] = []
    for _ in range(_ROUNDS):
        results = propagate(body, [*fixed, *carry, *steps], sizes, lambda _: None)
        if results[:carried] == carry:
            break
        carry = results[:carried]

    def repeated(one: Collective) -> None:
        report(one._replace(times=one.times * length))

    results = propagate(body, [*fixed, *carry, *steps], sizes, repeated)
    return [*results[:carried], *(((), *split) for split in results[carried:])]


def _while(equation: JaxprEqn, given: list[Split], sizes: Sizes, report: Report) -> list[Split]:
    skipped, constants = equation.params["cond_nconsts"], equation.params["body_nconsts"]
    return (
        propagate(_open(equation.params["body_jaxpr"]), given[skipped:], sizes, report)
        if constants >= 0
        else []
    )


def _cond(equation: JaxprEqn, given: list[Split], sizes: Sizes, report: Report) -> list[Split]:
    """Follows the branch that exchanges the most."""
    found = []
    for branch in equation.params["branches"]:
        seen: list[Collective] = []
        results = propagate(_open(branch), given[1:], sizes, seen.append)
        found.append((sum(one.bytes * one.times for one in seen), seen, results))
    _, seen, results = max(found, key=lambda one: one[0])
    for one in seen:
        report(one)
    return results


def _constraint(
    equation: JaxprEqn, given: list[Split], sizes: Sizes, report: Report
) -> list[Split]:
    aval: Any = equation.invars[0].aval
    spec = tuple(equation.params["sharding"].spec)
    wanted = as_split(spec, len(aval.shape))
    exchange(aval, given[0], wanted, sizes, report)
    return [wanted]


def as_split(sharding: Iterable[Any], ndim: int) -> Split:
    """Returns a sharding, or a ``PartitionSpec``, with an entry for each axis."""
    entries = [
        () if one is None else (one,) if isinstance(one, str) else tuple(one) for one in sharding
    ]
    return (*entries, *[()] * (ndim - len(entries)))


_INSIDE: dict[str, Callable[..., Sequence[Split]]] = {
    "scan": _scan,
    "while": _while,
    "cond": _cond,
    "sharding_constraint": _constraint,
}
