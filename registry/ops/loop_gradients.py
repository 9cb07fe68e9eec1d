"""The gradient of a loop: a scan in the other direction over the pulled-back body."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from registry.bodies import Body, Places, Source
from registry.types import VarKind, VarType
from registry.var import Var, filled

Values = Sequence[Any]


class Layout(NamedTuple):
    """What the operands and results of a loop are.

    Attributes:
        body: its step.
        n_carry: how many of its operands are carries.
        n_xs: how many of them, behind those, are series.
        n_sums: how many of its results, behind the carries, are sums.
    """

    body: Body
    n_carry: int
    n_xs: int = 0
    n_sums: int = 0

    @property
    def carried(self) -> Places:
        """The carries among the inputs, and among the outputs."""
        return tuple(range(self.n_carry))

    @property
    def series(self) -> Places:
        """The series among the inputs."""
        return tuple(range(self.n_carry, self.n_carry + self.n_xs))

    @property
    def summed(self) -> Places:
        """The sums among the outputs."""
        return tuple(range(self.n_carry, self.n_carry + self.n_sums))

    @property
    def results(self) -> Places:
        """The results of each step among the outputs."""
        return tuple(range(self.n_carry + self.n_sums, len(self.body.outputs)))

    def with_residuals(self) -> "Layout":
        """The same loop, which gives what its gradient would compute again."""
        saving = self.body.saving(self.carried, (*self.carried, *self.series))
        return self._replace(body=saving)


class Reversed(NamedTuple):
    """The gradient of a loop as a scan.

    Attributes:
        layout: of that scan.
        sources: where its operands come from: those of ``whole`` and cotangents.
        whole: the body of the loop that gives all that it reads.
        reached: the operands of the loop whose gradients are its results, in that order.
    """

    layout: Layout
    sources: tuple[Source, ...]
    whole: Body
    reached: Places


def reversed_loop(layout: Layout, heads: Places, wanted: Places) -> Reversed | None:
    """The gradient of a loop with cotangents of the outputs ``heads``; None if nothing arrives.

    Derivation: step t is ``c[t+1], s[t], y[t] = body(c[t], x[t], w)``, and the sums are of ``s``.
    With ``c'[t]`` the cotangent of ``c[t]``, the pulled-back body tells ``c'[t]``, that of ``x[t]``
    and the step's share of that of ``w`` from ``c'[t+1]``, that of the sums (the same for all
    steps) and that of ``y[t]``.
    """
    body = layout.body
    active = _active_carries(layout, wanted)
    others = tuple(j for j in heads if j >= layout.n_carry)
    carries = _reached_carries(layout, heads, active)
    given = (*carries, *others)
    inner = tuple(i for i in wanted if i >= layout.n_carry)
    arrived = body.reached(given, inner)
    series = tuple(i for i in arrived if i in layout.series)
    consts = tuple(i for i in arrived if i not in layout.series)
    asked = (*carries, *consts, *series)
    if not asked:
        return None
    pulled = body.pullback(given, asked, saved=layout.results, lost=layout.carried)
    xs = [one for one in pulled.sources if _is_series(layout, one)]
    rest = [one for one in pulled.sources if one not in xs and not _is_carry(layout, one)]
    sources = (*(Source("head", i) for i in carries), *xs, *rest)
    types = [*(body.inputs[i] for i in carries), *map(_types(pulled.whole), (*xs, *rest))]
    places = tuple(sources.index(one) for one in pulled.sources)
    step = pulled.body.taking(tuple(types), places)
    dense = [i for i in range(len(carries)) if types[i].kind is VarKind.LOD_TENSOR]
    kept = step.keeping(tuple(dense))  # what a gradient of this one needs
    reverse = Layout(kept, len(carries), len(xs), len(consts))
    return Reversed(reverse, sources, pulled.whole, asked)


def _active_carries(layout: Layout, wanted: Places) -> set[int]:
    """The carries on which the wanted operands have an influence."""
    active = set(wanted)
    while True:
        moved = layout.body.moved(tuple(sorted(active)))
        more = {i for i in moved if i < layout.n_carry} - active
        if not more:
            return {i for i in active if i < layout.n_carry}
        active |= more


def _reached_carries(layout: Layout, heads: Places, active: set[int]) -> Places:
    """The active carries at which cotangents arrive, at once or after some steps."""
    ordered = tuple(sorted(active))
    others = tuple(j for j in heads if j >= layout.n_carry)
    reached = {j for j in heads if j in active}
    while True:
        arrived = layout.body.reached((*sorted(reached), *others), ordered)
        if reached.issuperset(arrived):
            return tuple(sorted(reached))
        reached |= set(arrived)


def _is_carry(layout: Layout, source: Source) -> bool:
    return source.of == "head" and source.place < layout.n_carry


def _is_series(layout: Layout, source: Source) -> bool:
    """Whether there is a value for each step."""
    if source.of == "input":
        return source.place in layout.series
    return source.of == "output" or source.place in layout.results


def _types(whole: Body) -> Callable[[Source], VarType]:
    return lambda one: (whole.inputs if one.of == "input" else whole.outputs)[one.place]


class Run(NamedTuple):
    """How the maker of a loop runs loops.

    Attributes:
        again: the results of the loop with another body.
        backwards: the results of a scan in the other direction.
    """

    again: Callable[[Body], Values]
    backwards: Callable[[Values, Layout], Values]


def loop_gradients(
    layout: Layout,
    operands: Sequence[Var],
    parts: Values,
    d_parts: Values,
    wanted: Sequence[bool],
    run: Run,
) -> list[Var | None]:
    """Gradients of the operands of a loop, None for zero."""
    heads = tuple(j for j, one in enumerate(d_parts) if one is not None)
    asked = [i for i, one in enumerate(layout.body.inputs) if wanted[i] and one.differentiable]
    reverse = reversed_loop(layout, heads, tuple(asked))
    gradients: list[Var | None] = [None] * len(operands)
    if reverse is None:
        return gradients
    if reverse.whole is not layout.body:
        parts = run.again(reverse.whole)
    values = [_value(one, operands, parts, d_parts) for one in reverse.sources]
    results = run.backwards(values, reverse.layout)
    for i, result in zip(reverse.reached, results, strict=False):
        gradients[i] = result if i in asked else None
    return gradients


def _value(source: Source, operands: Sequence[Var], parts: Values, d_parts: Values) -> Any:
    if source.of == "head":
        head = d_parts[source.place]
        return filled(parts[source.place], 0.0) if head is None else head
    return (operands if source.of == "input" else parts)[source.place]
