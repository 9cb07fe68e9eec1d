"""Shardings through a jaxpr: how each value is split, and what devices exchange for it."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import starmap, zip_longest
from typing import Any, NamedTuple

from jax.extend.core import Jaxpr, JaxprEqn, Literal
from jax.sharding import PartitionSpec

from registry.primitives import (
    ENTRYWISE,
    PRODUCTS,
    called_by,
    inner_jaxprs,
    primitives_named,
    scan_parts,
)
from registry.shardings import Sharding, axes_at, axes_of, mesh_axes, only_over, split_over, stacked
from symop.passes.axis_factors import Axes, Rule, rule_of

Sizes = Mapping[str, int]
"""The sizes of mesh axes."""
_Spec: Any = PartitionSpec  # JAX declares no types for it
_UNCONSTRAINED: Any = _Spec.UNCONSTRAINED
_HINTING = ENTRYWISE | primitives_named("bitcast_convert_type")
"""The primitives whose operands are split as their results; random bits become floats, too."""
_PASSES = 3
"""The most passes that collect hints: another sharding of a product gives other hints."""
_ROUNDS = 4
"""The number of times that the sharding of a loop's carry is followed through the body."""


class Collective(NamedTuple):
    """Data that devices exchange.

    Attributes:
        kind: ``all-reduce``, ``all-gather``, ``all-to-all`` or ``collective-permute``.
        bytes: the size of the result on each device.
        axes: the mesh axes over which devices exchange it.
        times: how often in a step.
    """

    kind: str
    bytes: int
    axes: tuple[str, ...]
    times: int = 1


Report = Callable[[Collective], None]


def bytes_on_device(aval: Any, sharding: Sharding, sizes: Sizes) -> int:
    """Returns the size of the part of an array on each device."""
    itemsize: int = getattr(aval.dtype, "itemsize", 4)
    size: int = math.prod(aval.shape) * itemsize
    return size // math.prod(sizes[axis] for axis in mesh_axes(sharding))


def exchange(aval: Any, before: Sharding, after: Sharding, sizes: Sizes, report: Report) -> None:
    """Reports what devices exchange to split an array as ``after`` instead of ``before``."""
    pairs = list(zip_longest(map(axes_of, before), map(axes_of, after), fillvalue=()))
    if not all(starmap(_in_order, pairs)):
        size = min(bytes_on_device(aval, one, sizes) for one in (before, after))
        axes = tuple(dict.fromkeys(axis for have, want in pairs for axis in (*have, *want)))
        report(Collective("collective-permute", size, axes))
    lost = _lost(before, after)
    if not lost:
        return  # each device takes a part of what it has
    copy = received(before, after)
    kind = "all-to-all" if set(lost) <= set(mesh_axes(after)) else "all-gather"
    report(Collective(kind, bytes_on_device(aval, copy, sizes), lost))


def _in_order(have: tuple[str, ...], want: tuple[str, ...]) -> bool:
    """Whether the mesh axes over which an axis stays split come first, before and after."""
    kept = tuple(axis for axis in have if axis in want)
    return have[: len(kept)] == kept == want[: len(kept)]


def _lost(before: Sharding, after: Sharding) -> tuple[str, ...]:
    """Returns the mesh axes over which axes of an array are no longer split."""
    pairs = zip_longest(map(axes_of, before), map(axes_of, after), fillvalue=())
    return tuple(axis for have, want in pairs for axis in have if axis not in want)


def received(before: Sharding, after: Sharding) -> Sharding:
    """Returns the sharding of what devices get, of which each takes its part by ``after``."""
    lost = _lost(before, after)
    if set(lost) <= set(mesh_axes(after)):
        return after
    return only_over(before, [axis for axis in mesh_axes(before) if axis not in lost])


class Hints:
    """The shardings that suit the readers of values, which compute from them entry by entry.

    Attributes:
        values: the shardings, by variable.
        inner: the hints of inner jaxprs, by the ids of the equation and of the jaxpr: JAX shares
            the jaxpr of a jitted function among its calls.
    """

    def __init__(self) -> None:
        self.values: dict[Any, Sharding] = {}
        self.inner: dict[tuple[int, int], Hints] = {}

    def of(self, equation: int, jaxpr: Jaxpr) -> "Hints":
        """Returns those of the jaxpr of an equation, of which the id is given."""
        return self.inner.setdefault((equation, id(jaxpr)), Hints())

    def count(self) -> int:
        """Returns the number of all of them."""
        return len(self.values) + sum(one.count() for one in self.inner.values())

    def pass_on(self, known: Sequence[Any], to: "Hints", others: Sequence[Any]) -> None:
        """Adds those of variables to those of others, which are the same values."""
        for one, other in zip(known, others, strict=True):
            if any(isinstance(each, Literal) for each in (one, other)) or one not in self.values:
                continue
            to.values.setdefault(other, self.values[one])


class Walk:
    """The shardings of the values of a jaxpr, and the copies of them that devices have.

    Attributes:
        sizes: the sizes of the mesh axes.
        gathered: whether an operand was gathered because one of a batch is split alike.
        mixed: whether an entry may depend on entries at other places along an axis that is split.
        hints: how the readers of values are split.
    """

    def __init__(
        self,
        jaxpr: Jaxpr,
        inputs: Sequence[Sharding],
        sizes: Sizes,
        batch: Sequence[bool] = (),
        hints: Hints | None = None,
    ) -> None:
        """Starts with the shardings of the inputs, and which of them depend on a batch.

        ``hints`` are those of a walk before: a product is computed where its readers are.
        """
        self.sizes, self.gathered, self.mixed = sizes, False, False
        self.hints = Hints() if hints is None else hints
        self._shardings: dict[Any, Sharding] = dict(zip(jaxpr.invars, inputs, strict=True))
        self._batch = {one for one, flag in zip(jaxpr.invars, batch, strict=False) if flag}
        self._copies: set[tuple[int, Sharding]] = set()
        self._inner: dict[tuple[int, int], Walk] = {}
        self._equation = 0
        self._received: Counter[int] = Counter()
        self._sums: set[Any] = set()

    def of(self, value: Any) -> Sharding:
        """Returns the sharding of a value."""
        return () if isinstance(value, Literal) else self._shardings.get(value, ())

    def in_batch(self, value: Any) -> bool:
        """Whether a value depends on a batch."""
        return not isinstance(value, Literal) and value in self._batch

    def follow(self, equation: JaxprEqn, report: Report) -> Sequence[Sharding]:
        """Returns the shardings of the results of an equation, and keeps them."""
        self._equation = id(equation)
        results = self._through(equation, report)
        self._shardings.update(zip(equation.outvars, results, strict=True))
        if any(map(self.in_batch, equation.invars)):
            self._batch.update(equation.outvars)
        return results

    def assign(self, shardings: Mapping[Any, Sharding]) -> None:
        """Sets the shardings of values that each device makes by itself."""
        self._shardings.update(shardings)

    def exchange(self, value: Any, before: Sharding, after: Sharding, report: Report) -> None:
        """Reports what devices exchange for a value, unless they have such a copy of it."""
        copy = id(value), received(before, after)
        if copy not in self._copies:
            self._copies.add(copy)
            exchange(value.aval, before, after, self.sizes, report)
            if self._count(_lost(before, after)) > 1:
                size = bytes_on_device(value.aval, copy[1], self.sizes)
                self._received[self._equation] += size

    def inner(self, equation: JaxprEqn, jaxpr: Jaxpr) -> "Walk | None":
        """Returns the walk through a jaxpr of an equation, if there was one."""
        return self._inner.get((id(equation), id(jaxpr)))

    def bytes_received(self, equation: JaxprEqn) -> int:
        """Returns the bytes that devices receive of the operands of an equation."""
        return self._received[id(equation)]

    def is_sum(self, value: Any) -> bool:
        """Whether a value is summed over devices."""
        return value in self._sums

    def shape_of(self, value: Any) -> tuple[int, ...]:
        """Returns the shape of the part of a value that each device has."""
        lengths, sharding = shape_of(value), self.of(value)
        return tuple(n // self._count(axes_at(sharding, i)) for i, n in enumerate(lengths))

    def bytes_of(self, value: Any) -> int:
        """Returns the bytes of a value on each device."""
        return bytes_on_device(value.aval, self.of(value), self.sizes)

    def _count(self, axes: Iterable[str]) -> int:
        """Returns the number of devices along mesh axes."""
        return math.prod(self.sizes[axis] for axis in axes)

    def _through(self, equation: JaxprEqn, report: Report) -> Sequence[Sharding]:
        inside = _INSIDE.get(equation.primitive.name)
        if inside is not None:
            return inside(self, equation, report)
        for name in ("jaxpr", "call_jaxpr"):
            inner = equation.params.get(name)
            if inner is not None:
                return self.inside(inner, equation.invars, report)
        return self.by_factors(equation, report)

    def inside(
        self,
        jaxpr: Any,
        values: Sequence[Any],
        report: Report,
        shardings: Sequence[Sharding] | None = None,
    ) -> list[Sharding]:
        """Returns the shardings of the results of an inner jaxpr on ``values``."""
        inner: Jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
        inputs = list(map(self.of, values)) if shardings is None else shardings
        hints = self.hints.of(self._equation, inner)
        walk = Walk(inner, inputs, self.sizes, list(map(self.in_batch, values)), hints)
        for equation in inner.eqns:
            walk.follow(equation, report)
        self._inner[self._equation, id(inner)] = walk
        self.gathered = self.gathered or walk.gathered
        self.mixed = self.mixed or walk.mixed
        return list(map(walk.of, inner.outvars))

    def by_factors(self, equation: JaxprEqn, report: Report) -> list[Sharding]:
        """Returns the shardings of the results of an equation that has no jaxpr inside."""
        rule, values = rule_of(equation), equation.invars
        shardings = list(map(self.of, values))
        by_size = _reads_few(equation)
        wanted = [self.hints.values.get(one, ()) for one in equation.outvars]
        # Each device makes its part of what is made from numbers, such as random bits.
        follows = equation.primitive in PRODUCTS or not any(map(shape_of, values))
        wanted = wanted if follows else []
        split = self._split_factors(rule, values, shardings, by_size=by_size, wanted=wanted)
        self.mixed = self.mixed or not rule.mixed.isdisjoint(split)
        used = {axis for over in split.values() for axis in over}
        for one, axes, before in zip(values, rule.operands, shardings, strict=True):
            if axes:
                after = _sharding(axes, split)
                lost = set(mesh_axes(before)) - set(mesh_axes(after))
                self.gathered = self.gathered or bool(lost & used)
                self.exchange(one, before, after, report)
        results = [_sharding(axes, split) for axes in rule.results]
        remaining = {factor for axes in rule.results for each in axes for factor in each}
        # Over the axes of each factor in turn.
        for factor, over in split.items():
            if factor in remaining:
                continue
            for one, sharding in zip(equation.outvars, results, strict=True):
                size = bytes_on_device(one.aval, sharding, self.sizes)
                report(Collective("all-reduce", size, over))
                if self._count(over) > 1:
                    self._sums.add(one)
        if by_size and equation.primitive.name == "gather":
            # Each device takes its part of what all of them have now.
            split = self._split_factors(rule, values, shardings, by_size=False)
            results = [_sharding(axes, split) for axes in rule.results]
        return results

    def collect_hints(self, jaxpr: Jaxpr) -> None:
        """Notes how the readers of values are split, from the last equation to the first."""
        for equation in reversed(jaxpr.eqns):
            if equation.primitive in _HINTING:
                self._hint(equation)
            called = called_by(equation)
            for one in inner_jaxprs(equation):
                inner = self.inner(equation, one)
                if inner is None:
                    continue
                if one is called:
                    self.hints.pass_on(equation.outvars, inner.hints, one.outvars)
                inner.collect_hints(one)
                if one is called:
                    inner.hints.pass_on(one.invars, self.hints, equation.invars)

    def _hint(self, equation: JaxprEqn) -> None:
        """Notes how an operation entry by entry reads its operands."""
        out: Any = equation.outvars[0]
        hint = self.hints.values.get(out, self.of(out))
        for one in variables_among(equation.invars):
            if one.aval.shape == out.aval.shape and self.of(one) != hint:
                self.hints.values[one] = hint

    def _split_factors(
        self,
        rule: Rule,
        values: Sequence[Any],
        shardings: Sequence[Sharding],
        *,
        by_size: bool,
        wanted: Sequence[Sharding] = (),
    ) -> dict[int, tuple[str, ...]]:
        """Returns the mesh axes over which each factor is split.

        Where operands disagree, those that depend on a batch stay as they are, or the largest one;
        if ``by_size``, the largest one. Hints come before operands that do not depend on a batch.
        """

        def rank(i: int) -> tuple[bool, int]:
            waits = not by_size and not self.in_batch(values[i])
            return waits, -math.prod(shape_of(values[i]))

        split: dict[int, tuple[str, ...]] = {}
        used: set[str] = set()
        # Of the factors of an axis of a result, only the slowest can be split.
        whole = rule.whole.union(*(each[1:] for axes in rule.results for each in axes))
        order = sorted(range(len(shardings)), key=rank)
        first = sum(self.in_batch(value) for value in values)
        sources = [(rule.operands[i], shardings[i]) for i in order]
        sources[first:first] = zip(rule.results, wanted, strict=False)
        for axes, sharding in sources:
            for factors, entry in zip(axes, sharding, strict=False):
                factor = factors[0] if factors else None
                if factor is None or factor in whole or factor in split:
                    continue
                free = tuple(axis for axis in axes_of(entry) if axis not in used)
                if free and rule.sizes[factor] % math.prod(self.sizes[a] for a in free) == 0:
                    split[factor] = free
                    used.update(free)
        return split


def shape_of(value: Any) -> tuple[int, ...]:
    """Returns the shape of a value of a jaxpr; ``()`` of what has none."""
    return getattr(value.aval, "shape", ())


def variables_among(values: Sequence[Any]) -> list[Any]:
    """Returns the values that are not literals."""
    return [one for one in values if not isinstance(one, Literal)]


def _reads_few(equation: JaxprEqn) -> bool:
    """Whether the rows that are looked up or added are smaller than the table, which then stays."""
    name = equation.primitive.name
    if name not in ("gather", "scatter-add"):
        return False
    rows = equation.outvars[0] if name == "gather" else equation.invars[2]
    values: list[Any] = [*equation.invars[:2], rows]
    table, ids, few = [int(math.prod(one.aval.shape)) for one in values]
    return table > ids + few


def sent(one: Collective, sizes: Sizes) -> int:
    """Returns the bytes that each device sends for a collective, by ring algorithms."""
    count = math.prod(sizes[axis] for axis in one.axes)
    if one.kind == "collective-permute":
        return one.bytes
    share = one.bytes * (count - 1) // count
    return 2 * share if one.kind == "all-reduce" else share


def followed(
    jaxpr: Jaxpr,
    inputs: Sequence[Sharding],
    sizes: Sizes,
    report: Callable[[str, Collective], None],
    batch: Sequence[bool],
    wanted: Mapping[Any, Sharding] | None = None,
) -> Walk:
    """Returns a walk through ``jaxpr``.

    The reported collectives come with the scope of the equation that needs them. Rows that are
    added into zeros are added where the result is ``wanted``.
    """
    hints, fills = Hints(), _fills(jaxpr, wanted or {})

    def walked(told: Callable[[str, Collective], None]) -> Walk:
        walk = Walk(jaxpr, inputs, sizes, batch, hints)
        for equation in jaxpr.eqns:
            walk.follow(equation, partial(told, str(equation.source_info.name_stack)))
            walk.assign({one: fills[one] for one in equation.outvars if one in fills})
        return walk

    for _ in range(_PASSES):
        before = hints.count()
        walked(_unreported).collect_hints(jaxpr)
        if hints.count() == before:
            break
    return walked(report)


def _fills(jaxpr: Jaxpr, wanted: Mapping[Any, Sharding]) -> dict[Any, Sharding]:
    """Returns the shardings of the fills to which updates are added for ``wanted`` results."""
    makers = {out: one for one in jaxpr.eqns for out in one.outvars}
    result = {}
    for value, sharding in wanted.items():
        adding = makers.get(value)
        if adding is not None and adding.primitive.name == "scatter-add":
            start = adding.invars[0]
            filling = None if isinstance(start, Literal) else makers.get(start)
            if filling is not None and isinstance(filling.invars[0], Literal):
                result[start] = sharding
    return result


def _sharding(axes: Axes, split: Mapping[int, tuple[str, ...]]) -> Sharding:
    return split_over(split.get(each[0], ()) if each else () for each in axes)


# Shifts along axes that are split ----------------------------------------------------------------
#
# A slice that drops at most what one device holds stays split. Padding then moves parts from device
# to device. So XLA does with the state of a pipeline.


def _slice(walk: Walk, equation: JaxprEqn, report: Report) -> list[Sharding]:
    (value,), (out,) = equation.invars, equation.outvars
    stepped = any(step != 1 for step in equation.params["strides"] or ())
    if stepped or not _shifted(walk, value, value.aval, out.aval):
        return walk.by_factors(equation, report)
    return [walk.of(value)]


def _pad(walk: Walk, equation: JaxprEqn, report: Report) -> list[Sharding]:
    value, (out,) = equation.invars[0], equation.outvars
    inside = any(inner for _, _, inner in equation.params["padding_config"])
    axes = () if inside else _shifted(walk, value, out.aval, out.aval)
    if not axes:
        return walk.by_factors(equation, report)
    size = bytes_on_device(out.aval, walk.of(value), walk.sizes)
    report(Collective("collective-permute", size, axes))
    return [walk.of(value)]


def _shifted(walk: Walk, value: Any, whole: Any, result: Any) -> tuple[str, ...]:
    """Returns the mesh axes of a slice or padding by at most what one device holds of ``whole``."""
    shifted: list[str] = []
    lengths = zip(value.aval.shape, result.shape, strict=True)
    for i, (n, m) in enumerate(lengths):
        axes = axes_at(walk.of(value), i)
        parts = math.prod(walk.sizes[axis] for axis in axes)
        if n == m or not axes:
            continue
        if whole.shape[i] % parts or abs(n - m) > whole.shape[i] // parts:
            return ()
        shifted += axes
    return tuple(shifted)


# Loops and branches ------------------------------------------------------------------------------


def _scan(walk: Walk, equation: JaxprEqn, report: Report) -> list[Sharding]:
    constants, carried = scan_parts(equation.params)
    body, length = equation.params["jaxpr"], equation.params["length"]
    inputs = list(map(walk.of, equation.invars))
    fixed, carry = inputs[:constants], inputs[constants : constants + carried]
    steps = []
    for one in equation.invars[constants + carried :]:
        sharding = walk.of(one)
        walk.exchange(one, sharding, stacked(sharding[1:]), report)
        steps.append(sharding[1:])

    def run(report: Report) -> list[Sharding]:
        return walk.inside(body, equation.invars, report, [*fixed, *carry, *steps])

    for _ in range(_ROUNDS):
        results = run(silent)
        if results[:carried] == carry:
            break
        carry = results[:carried]
    results = run(lambda one: report(one._replace(times=one.times * length)))
    return [*results[:carried], *map(stacked, results[carried:])]


def silent(one: Collective) -> None:
    """Reports nothing."""
    del one


def _unreported(who: str, one: Collective) -> None:
    """Reports nothing."""
    del who, one


def _while(walk: Walk, equation: JaxprEqn, report: Report) -> list[Sharding]:
    """Follows one step."""
    values = equation.invars[equation.params["cond_nconsts"] :]
    return walk.inside(equation.params["body_jaxpr"], values, report)


def _cond(walk: Walk, equation: JaxprEqn, report: Report) -> list[Sharding]:
    """Follows the branch that exchanges the most."""
    branches = []
    for branch in equation.params["branches"]:
        collectives: list[Collective] = []
        results = walk.inside(branch, equation.invars[1:], collectives.append)
        size = sum(one.bytes * one.times for one in collectives)
        branches.append((size, collectives, results))
    _, collectives, results = max(branches, key=lambda one: one[0])
    for one in collectives:
        report(one)
    return results


def _constraint(walk: Walk, equation: JaxprEqn, report: Report) -> list[Sharding]:
    value: Any = equation.invars[0]
    before = walk.of(value)
    after = split_over(
        axes_at(before, i) if entry is _UNCONSTRAINED else axes_of(entry)
        for i, entry in enumerate(equation.params["sharding"].spec)
    )
    walk.exchange(value, before, after, report)
    return [after]


_INSIDE: dict[str, Callable[..., Sequence[Sharding]]] = {
    "scan": _scan,
    "while": _while,
    "cond": _cond,
    "sharding_constraint": _constraint,
    "slice": _slice,
    "pad": _pad,
}
