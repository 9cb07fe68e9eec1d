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


class Walk:
    """The shardings of the values of a jaxpr, and the copies of them that devices have.

    Attributes:
        sizes: the sizes of the mesh axes.
        gathered: whether an operand was gathered because one of a batch is split alike.
    """

    def __init__(
        self, jaxpr: Jaxpr, given: Sequence[Split], sizes: Sizes, batch: Sequence[bool] = ()
    ) -> None:
        """Starts with the shardings of the inputs, and which of them depend on a batch."""
        self.sizes, self.gathered = sizes, False
        self._known: dict[Any, Split] = dict(zip(jaxpr.invars, given, strict=True))
        self._batch = {one for one, flag in zip(jaxpr.invars, batch, strict=False) if flag}
        self._copies: set[tuple[int, Split]] = set()

    def of(self, value: Any) -> Split:
        """Returns the sharding of a value."""
        known = None if isinstance(value, Literal) else self._known.get(value)
        return whole(value.aval) if known is None else known

    def in_batch(self, value: Any) -> bool:
        """Whether a value depends on a batch."""
        return not isinstance(value, Literal) and value in self._batch

    def follow(self, equation: JaxprEqn, report: Report) -> Sequence[Split]:
        """Returns the shardings of the results of an equation, and keeps them."""
        found = self._through(equation, report)
        self._known.update(zip(equation.outvars, found, strict=True))
        if any(map(self.in_batch, equation.invars)):
            self._batch.update(equation.outvars)
        return found

    def exchange(self, value: Any, before: Split, after: Split, report: Report) -> None:
        """Reports what devices exchange for a value, unless they have such a copy of it."""
        if (id(value), after) not in self._copies:
            self._copies.add((id(value), after))
            exchange(value.aval, before, after, self.sizes, report)

    def _through(self, equation: JaxprEqn, report: Report) -> Sequence[Split]:
        inside = _INSIDE.get(equation.primitive.name)
        if inside is not None:
            return inside(self, equation, report)
        for name in ("jaxpr", "call_jaxpr"):
            inner = equation.params.get(name)
            if inner is not None:
                return self.inside(inner, equation.invars, report)
        return self._by_factors(equation, rule_of(equation), report)

    def inside(
        self,
        jaxpr: Any,
        values: Sequence[Any],
        report: Report,
        splits: Sequence[Split] | None = None,
    ) -> list[Split]:
        """Returns the shardings of the results of an inner jaxpr on ``values``."""
        given = list(map(self.of, values)) if splits is None else splits
        opened = getattr(jaxpr, "jaxpr", jaxpr)
        walk = Walk(opened, given, self.sizes, list(map(self.in_batch, values)))
        for equation in opened.eqns:
            walk.follow(equation, report)
        self.gathered = self.gathered or walk.gathered
        return list(map(walk.of, opened.outvars))

    def _by_factors(self, equation: JaxprEqn, rule: Rule, report: Report) -> list[Split]:
        values = equation.invars
        given = list(map(self.of, values))
        chosen = self._chosen(rule, values, given)
        for one, axes, before in zip(values, rule.operands, given, strict=True):
            if axes:
                after = _split(axes, chosen)
                lost = set(_axes_of(before)) - set(_axes_of(after))
                kept = {axis for over in chosen.values() for axis in over}
                self.gathered = self.gathered or bool(lost & kept)
                self.exchange(one, before, after, report)
        results = [_split(axes, chosen) for axes in rule.results]
        remaining = {factor for axes in rule.results for each in axes for factor in each}
        # Over the axes of each factor in turn.
        for factor, over in chosen.items():
            if factor in remaining:
                continue
            for one, split in zip(equation.outvars, results, strict=True):
                size = bytes_on_device(one.aval, split, self.sizes)
                report(Collective("all-reduce", size, over))
        return results

    def _chosen(
        self, rule: Rule, values: Sequence[Any], given: Sequence[Split]
    ) -> dict[int, tuple[str, ...]]:
        """Returns the mesh axes over which each factor is split.

        Where operands disagree, those that depend on a batch stay as they are, or the largest one.
        """

        def rank(i: int) -> tuple[bool, int]:
            return not self.in_batch(values[i]), -math.prod(getattr(values[i].aval, "shape", ()))

        chosen: dict[int, tuple[str, ...]] = {}
        used: set[str] = set()
        for i in sorted(range(len(given)), key=rank):
            for factors, over in zip(rule.operands[i], given[i], strict=False):
                factor = factors[0] if factors else None
                if factor is None or factor in rule.whole or factor in chosen or not over:
                    continue
                free = tuple(axis for axis in over if axis not in used)
                if free and rule.sizes[factor] % math.prod(self.sizes[a] for a in free) == 0:
                    chosen[factor] = free
                    used.update(free)
        return chosen


def _axes_of(split: Split) -> tuple[str, ...]:
    return tuple(axis for each in split for axis in each)


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
    batch: Sequence[bool],
) -> tuple[list[Split], int]:
    """Returns the shardings of the results of ``jaxpr``, and the bytes of values held at once.

    The reported collectives come with the scope of the equation that needs them. A value that is
    computed entry by entry for one reader is not counted: XLA fuses it into the reader.
    """
    walk, last, readers = Walk(jaxpr, given, sizes, batch), dict[Any, int](), Counter[Any]()
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


def _split(axes: Axes, chosen: Mapping[int, tuple[str, ...]]) -> Split:
    return tuple(chosen.get(each[0], ()) if each else () for each in axes)


# Loops and branches ------------------------------------------------------------------------------


def _scan(walk: Walk, equation: JaxprEqn, report: Report) -> list[Split]:
    constants, carried = equation.params["num_consts"], equation.params["num_carry"]
    body, length = equation.params["jaxpr"], equation.params["length"]
    given = list(map(walk.of, equation.invars))
    fixed, carry = given[:constants], given[constants : constants + carried]
    steps = []
    for one in equation.invars[constants + carried :]:
        split = walk.of(one)
        walk.exchange(one, split, ((), *split[1:]), report)
        steps.append(split[1:])

    def run(told: Report) -> list[Split]:
        return walk.inside(body, equation.invars, told, [*fixed, *carry, *steps])

    for _ in range(_ROUNDS):
        results = run(silent)
        if results[:carried] == carry:
            break
        carry = results[:carried]
    results = run(lambda one: report(one._replace(times=one.times * length)))
    return [*results[:carried], *(((), *split) for split in results[carried:])]


def silent(one: Collective) -> None:
    """Reports nothing."""
    del one


def _while(walk: Walk, equation: JaxprEqn, report: Report) -> list[Split]:
    """Follows one step."""
    values = equation.invars[equation.params["cond_nconsts"] :]
    return walk.inside(equation.params["body_jaxpr"], values, report)


def _cond(walk: Walk, equation: JaxprEqn, report: Report) -> list[Split]:
    """Follows the branch that exchanges the most."""
    found = []
    for branch in equation.params["branches"]:
        seen: list[Collective] = []
        results = walk.inside(branch, equation.invars[1:], seen.append)
        found.append((sum(one.bytes * one.times for one in seen), seen, results))
    _, seen, results = max(found, key=lambda one: one[0])
    for one in seen:
        report(one)
    return results


def _constraint(walk: Walk, equation: JaxprEqn, report: Report) -> list[Split]:
    value: Any = equation.invars[0]
    wanted = as_split(tuple(equation.params["sharding"].spec), len(value.aval.shape))
    walk.exchange(value, walk.of(value), wanted, report)
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
