"""The gradient of a loop: a reverse scan over the pullback of its body."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from registry.operator.bodies import Body, Places, Source
from registry.types import VarKind, VarType
from registry.var import Var, filled

Values = Sequence[Any]


class Layout(NamedTuple):
    """The roles of the operands and results of a loop.

    Attributes:
        body: its step.
        n_carry: number of operands that are carries.
        n_xs: number of operands after the carries that are series.
        n_sums: number of results after the carries that are sums.
    """

    body: Body
    n_carry: int
    n_xs: int = 0
    n_sums: int = 0

    @property
    def carried(self) -> Places:
        """Indices of the carries, among the inputs and among the outputs."""
        return tuple(range(self.n_carry))

    @property
    def series(self) -> Places:
        """Indices of the series among the inputs."""
        return tuple(range(self.n_carry, self.n_carry + self.n_xs))

    @property
    def summed(self) -> Places:
        """Indices of the sums among the outputs."""
        return tuple(range(self.n_carry, self.n_carry + self.n_sums))

    @property
    def results(self) -> Places:
        """Indices of the stepwise results among the outputs."""
        return tuple(range(self.n_carry + self.n_sums, len(self.body.outputs)))

    def with_residuals(self) -> "Layout":
        """Returns the same loop with the residuals of its gradient as further results."""
        saving = self.body.saving(self.carried, (*self.carried, *self.series))
        return self._replace(body=saving)


class Reversed(NamedTuple):
    """The gradient of a loop as a scan.

    Attributes:
        layout: the layout of the scan.
        sources: the origins of its operands: inputs and outputs of ``whole``, and cotangents.
        whole: the body of the loop that returns all values that the scan reads.
        reached: the operands of the loop whose gradients are the scan's results, in that order.
    """

    layout: Layout
    sources: tuple[Source, ...]
    whole: Body
    reached: Places


def reversed_loop(layout: Layout, heads: Places, wanted: Places) -> Reversed | None:
    """Returns the gradient of a loop for cotangents of the outputs ``heads``, or None if zero.

    Derivation: step t is ``c[t+1], s[t], y[t] = body(c[t], x[t], w)``, and the sums are those of
    ``s``. With ``c'[t]`` the cotangent of ``c[t]``, the pullback of the body computes ``c'[t]``,
    the cotangent of ``x[t]`` and the step's share of that of ``w`` from ``c'[t+1]``, the cotangent
    of the sums (the same for all steps) and that of ``y[t]``.
    """
    body = layout.body
    active = _active_carries(layout, wanted)
    others = tuple(j for j in heads if j >= layout.n_carry)
    carries = _reached_carries(layout, heads, active)
    chosen_heads = (*carries, *others)
    inner = tuple(i for i in wanted if i >= layout.n_carry)
    arrived = body.reached(chosen_heads, inner)
    series = tuple(i for i in arrived if i in layout.series)
    consts = tuple(i for i in arrived if i not in layout.series)
    asked = (*carries, *consts, *series)
    if not asked:
        return None
    pulled = body.pullback(chosen_heads, asked, saved=layout.results, lost=layout.carried)
    xs = [one for one in pulled.sources if _is_series(layout, one)]
    rest = [one for one in pulled.sources if one not in xs and not _is_carry(layout, one)]
    sources = (*(Source("head", i) for i in carries), *xs, *rest)
    types = [*(body.inputs[i] for i in carries), *map(_types(pulled.whole), (*xs, *rest))]
    places = tuple(sources.index(one) for one in pulled.sources)
    step = pulled.body.taking(tuple(types), places)
    dense = [i for i in range(len(carries)) if types[i].kind is VarKind.LOD_TENSOR]
    kept = step.keeping(tuple(dense))  # the gradient of this scan needs them
    reverse = Layout(kept, len(carries), len(xs), len(consts))
    return Reversed(reverse, sources, pulled.whole, asked)


def _active_carries(layout: Layout, wanted: Places) -> set[int]:
    """The carries that depend on the wanted operands."""
    active = set(wanted)
    while True:
        moved = layout.body.moved(tuple(sorted(active)))
        more = {i for i in moved if i < layout.n_carry} - active
        if not more:
            return {i for i in active if i < layout.n_carry}
        active |= more


def _reached_carries(layout: Layout, heads: Places, active: set[int]) -> Places:
    """The active carries that receive cotangents, immediately or after some steps."""
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
    """Whether the source has a value for each step."""
    if source.of == "input":
        return source.place in layout.series
    return source.of == "output" or source.place in layout.results


def _types(whole: Body) -> Callable[[Source], VarType]:
    return lambda one: (whole.inputs if one.of == "input" else whole.outputs)[one.place]


class Run(NamedTuple):
    """The functions with which the gradient maker of a loop runs loops.

    Attributes:
        again: runs the loop with another body.
        backwards: runs a scan in the reverse direction.
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
    """Returns the gradients of the operands of a loop, None for zero."""
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
