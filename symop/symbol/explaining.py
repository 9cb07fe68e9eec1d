"""The cost of the operators of a graph, and which of them JAX differentiates."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple, Protocol

import jax

from registry.caches import memoized
from registry.errors import ArgumentError
from registry.jax_derivatives.calculus import opened
from registry.operator.bodies import Body
from registry.operator.operator import Derivative, Operator
from registry.tracebacks import api_boundary
from registry.types import VarType
from symop.drawing.cards import Labels
from symop.drawing.model import Spent
from symop.drawing.outline import outline_of
from symop.drawing.subject import Subject
from symop.graph.naming import variables_of
from symop.graph.nodes import Node, topological
from symop.io.files import PathLike
from symop.lowering.labels import kinds_of, label_of
from symop.passes.folding import noted
from symop.passes.remat.counting import shown
from symop.passes.remat.runs import bytes_of
from symop.passes.replacements import Replacement
from symop.regions.bodies import GraphBody, steps_of
from symop.runtime.function import Replaced, specialize
from symop.symbol.compiled import (
    Compiled,
    analysis_of,
    instructions_of,
    module_of,
    moved_by_label,
    seconds_by_label,
)
from symop.symbol.drawings import Drawing
from symop.symbol.symbol import Symbol

_SHOWN = 12
"""The maximal number of rows of a table that are printed."""
_MOST_SCOPES = 10_000
"""The number of outermost blocks up to which scopes are not joined."""
_RUN_FORWARD = ("body", "condition", "true_body", "false_body", "solve")
"""The attributes with bodies that run forward; others are rules for derivatives."""
_DERIVATIVES = {
    Derivative.MAKER: "gradient maker",
    Derivative.KERNEL: "JAX",
    Derivative.ZERO: "zero",
}


class Cost(NamedTuple):
    """The calls of one operator, those built at one line, or those in one scope.

    Attributes:
        name: the name of the operator, the line, or the title of the scope in a drawing.
        calls: how often they run; those in the body of a loop once for each step.
        flops: the estimated number of floating-point operations, None if one cannot be estimated.
        bytes: the size of the results.
        derivative: ``gradient maker``, ``JAX``, ``zero`` or ``none``; for a line, those of its
            operators.
        moved: the bytes that the compiled instructions read and write; None if not compiled.
        seconds: the measured time of one run; None without a profile.
    """

    name: str
    calls: int
    flops: int | None
    bytes: int
    derivative: str
    moved: int | None = None
    seconds: float | None = None


class ByJax(NamedTuple):
    """Calls of a primitive that JAX differentiates.

    Attributes:
        primitive: the name of the primitive.
        operator: ``lax_primitive``, ``jax_function``, or another operator without a gradient maker.
        place: the line at which they were built, or None.
        calls: how often they run.
        saveable: whether a file can hold them.
    """

    primitive: str
    operator: str
    place: str | None
    calls: int
    saveable: bool

    def __str__(self) -> str:
        times = f"{self.calls:,} call{'s' if self.calls > 1 else ''}"
        cannot = "" if self.saveable else "; a file cannot hold it"
        return f"{self.primitive} ({self.operator}) at {self.place}, {times}{cannot}"


class Explanation(NamedTuple):
    """The account of a graph; prints as tables, and ``so.draw`` draws it colored by cost.

    Attributes:
        operators: a row for each operator, the costliest first.
        lines: a row for each line of the user at which operators were built, the costliest first.
        by_jax: what JAX differentiates; empty if all derivatives are those of gradient makers.
        scopes: a row for each outermost block of the drawing, such as a name scope, repeated
            layers, or the gradient of one of these; the costliest first.
        compiled: what XLA says of the compiled function; None if it was not compiled.
        rest: bytes and seconds of instructions of no operator, such as those of an optimizer.
        drawing: the drawing of the graph with its costs.
        streamed: the patterns in place of which operators without large matrices run.
        rewritten: products that are computed by cheaper ones, and what ``Symbol.for_inference``
            folded into weights.
    """

    operators: tuple[Cost, ...]
    lines: tuple[Cost, ...]
    by_jax: tuple[ByJax, ...]
    scopes: tuple[Cost, ...]
    compiled: Compiled | None
    rest: tuple[int, float | None]
    drawing: Drawing
    streamed: tuple[Replacement, ...] = ()
    rewritten: tuple[Replacement, ...] = ()

    @property
    def flops(self) -> int | None:
        """The estimated number of floating-point operations; None if a part is unknown."""
        known = [one.flops for one in self.operators if one.flops is not None]
        return sum(known) if len(known) == len(self.operators) else None

    @property
    def bytes(self) -> int:
        """The size of all results of operators."""
        return sum(one.bytes for one in self.operators)

    @property
    def seconds(self) -> float | None:
        """The measured time of one run, of all instructions; None without a profile."""
        known = [one.seconds for one in self.operators if one.seconds is not None]
        return sum(known) + (self.rest[1] or 0.0) if known else None

    @property
    def opaque(self) -> tuple[ByJax, ...]:
        """Those parts of ``by_jax`` that a file cannot hold, such as callbacks."""
        return tuple(one for one in self.by_jax if not one.saveable)

    def __str__(self) -> str:
        calls = sum(one.calls for one in self.operators)
        lines = [
            f"{calls:,} calls of {len(self.operators)} operators, {_counted(self.flops)} flops, "
            f"{shown(self.bytes)} of results",
            *self._compiled_lines(),
            "",
            *_table("operator", self.operators),
            "",
            *(_table("scope", self.scopes) if len(self.scopes) > 1 else []),
            *([""] if len(self.scopes) > 1 else []),
            *_table("line", self.lines),
            "",
            "differentiated by JAX:" if self.by_jax else "JAX differentiates none of them",
            *(f"  {one}" for one in self.by_jax),
            *(["", "without large matrices:"] if self.streamed else []),
            *(f"  {one}" for one in self.streamed),
            *(["", "rewritten:"] if self.rewritten else []),
            *(f"  {one}" for one in self.rewritten),
        ]
        return "\n".join(lines)

    def _compiled_lines(self) -> list[str]:
        analysis = self.compiled
        if analysis is None:
            return []
        sizes = [
            f"{shown(size)} of {name}"
            for name, size in (
                ("arguments", analysis.arguments),
                ("results", analysis.outputs),
                ("temporaries", analysis.temporaries),
            )
            if size is not None
        ]
        lines = [
            f"compiled: {analysis.code:,} instructions, {_counted(analysis.flops)} flops, "
            f"{_size(analysis.bytes)} read and written; {', '.join(sizes)}"
        ]
        moved, seconds = self.rest
        if self.seconds is not None:
            lines.append(
                f"measured: {_time(self.seconds)} for each run, {_time(seconds or 0.0)} of it "
                "outside of operators"
            )
        elif moved:
            lines.append(f"outside of operators: {shown(moved)} read and written")
        return lines

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def _drawing(self, roll: bool) -> Drawing:
        """Returns the drawing that ``so.draw`` shows."""
        return self.drawing.copy(roll=roll)


class Computation(NamedTuple):
    """The subject of ``explain``.

    Attributes:
        subject: the graph, all types known.
        lower: lowers the function that runs it, as ``jax.jit(...).lower`` does.
        streamed: the patterns that operators without large matrices replace.
        rewritten: the products that cheaper ones replace, and what was folded into weights.
    """

    subject: Subject
    lower: Callable[[], Any]
    streamed: tuple[Replacement, ...] = ()
    rewritten: tuple[Replacement, ...] = ()


class Explainable(Protocol):
    """An object other than a symbol that ``explain`` accepts: a program or a trainer."""

    def _computation(self, types: Mapping[str, Any], is_train: bool) -> Computation:
        """Returns its graph, and how it is compiled."""


@api_boundary
def explain(
    graph: Symbol | Explainable,
    *,
    is_train: bool = False,
    compiled: bool = False,
    profile: PathLike | None = None,
    **types: Any,
) -> Explanation:
    """Returns where a graph spends operations, memory and time, and what JAX differentiates.

    The floating-point operations are those that XLA counts in each kernel before it optimizes. In a
    ``while_loop`` one step is counted, in a ``cond`` both branches. A rule of ``jax.custom_jvp`` or
    ``jax.custom_vjp`` runs in derivatives alone, and is not counted.

    With ``compiled``, XLA's analysis of the optimized program is added, and the bytes that its
    instructions read and write. An instruction that fuses operators counts for the last of them;
    operators of one kind that one line built share theirs by what each computes.

    Args:
        graph: a symbol, such as one of ``so.from_jax``; a program; or a ``Trainer``, whose step is
            explained with its gradients.
        is_train: whether operators of a symbol behave as in training. Programs and trainers do if
            they update parameters.
        compiled: whether to compile the function, which takes as long as its first call.
        profile: a folder that ``jax.profiler.trace`` wrote while ``trainer.step``,
            ``program.run(feed)`` or ``jax.jit(symbol.to_jax())`` ran, or its file
            ``*.trace.json.gz``; the time of each run is added. It implies ``compiled``.
        **types: types of variables that declare none, as in ``Symbol.with_types``.

    Raises:
        UnknownTypeError: a shape is not known.
        ArgumentError: ``graph`` cannot be explained.
        FormatError: ``profile`` contains no run of the function.

    Example:
        >>> import jax, jax.numpy as jnp, symop as so
        >>> y = so.from_jax(lambda x: jnp.sin(x) @ jax.lax.igamma(x, x), jnp.ones(9))
        >>> report = so.explain(y)
        >>> [(one.name, one.calls, one.derivative) for one in report.operators[1:]]
        [('einsum', 1, 'gradient maker'), ('sin', 1, 'gradient maker')]
        >>> [one.primitive for one in report.by_jax]
        ['igamma']
    """
    subject, lower, streamed, rewritten = _computation(graph, types, is_train)
    calls = list(_calls(subject.outputs, 1))
    analysis, moved, seconds = None, None, None
    if compiled or profile is not None:
        executable = lower().compile()
        text = executable.as_text()
        instructions = instructions_of(text)
        analysis = analysis_of(executable, instructions)
        moved = moved_by_label(instructions)
        if profile is not None:
            seconds = seconds_by_label(profile, instructions, module_of(text))
    shares = _Shares(calls, moved, seconds)
    return Explanation(
        shares.rows([node.op.name for node, _ in calls]),
        shares.rows([_place(node) or "unknown" for node, _ in calls]),
        _by_jax(calls),
        shares.rows(_scopes(subject, calls)),
        analysis,
        shares.rest,
        Drawing(subject, costs=shares.spent(), color="flops" if seconds is None else "seconds"),
        streamed,
        rewritten,
    )


def _computation(graph: Any, types: Mapping[str, Any], is_train: bool) -> Computation:
    if isinstance(graph, Symbol):
        return _of_symbol(graph, types, is_train)
    method = getattr(graph, "_computation", None)
    if method is None or isinstance(graph, type):
        raise ArgumentError(
            "explain: its argument must be a symbol, a program or a trainer, got "
            f"{type(graph).__name__}"
        )
    result: Computation = method(types, is_train)
    return result


def _of_symbol(symbol: Symbol, types: Mapping[str, Any], is_train: bool) -> Computation:
    whole = symbol.with_types(**types) if types else symbol
    log = Replaced([], [])
    settled = specialize(whole.nodes, {}, training=is_train, rolling=False, replaced=log)
    names = whole._subject().names
    subject = Subject(tuple(settled.outputs), names)

    def lower() -> Any:
        variables = variables_of(whole.roots)
        structs = {name: struct_of(node.type) for name, node in variables.items()}
        key = jax.eval_shape(lambda: jax.random.key(0))
        return jax.jit(whole.to_jax(is_train=is_train)).lower(**structs, key=key)

    rewritten = (*noted(topological(symbol.nodes)), *log.rewrites)
    return Computation(subject, lower, tuple(log.streams), rewritten)


def struct_of(type: VarType) -> Any:
    """Returns the shape and dtype of an array, as ``jax.jit(...).lower`` takes it."""
    struct: Any = jax.ShapeDtypeStruct
    return struct(type.shape, type.dtype)


def _scopes(subject: Subject, calls: "_Calls") -> list[str]:
    """Returns for each call the title of the outermost block of the drawing that contains it."""
    outline = outline_of(subject.outputs, room=_MOST_SCOPES, updates=subject.updates)
    labels = Labels(subject, outline.inside)
    title = {
        node: labels.title(top)
        for top in outline.root.children
        for box in top.boxes()
        for node in box.nodes
    }
    return [title.get(node, "unknown") for node, _ in calls]


_Calls = Sequence[tuple[Node, int]]
"""Calls of operators, and how often each runs."""


def _calls(outputs: Sequence[Node], times: int) -> Iterator[tuple[Node, int]]:
    """Yields the calls of a graph and of its bodies, and how often each runs."""
    for node in topological(outputs):
        if not isinstance(node.op, Operator):
            continue
        yield node, times
        attributes = node.op.attribute_dict(node.attributes)
        for name in _RUN_FORWARD:
            body = attributes.get(name)
            if isinstance(body, GraphBody):
                yield from _calls(body.results, times * steps_of(node))


class _Shares:
    """The cost of each call: its own operations and results, and its share of XLA's program."""

    def __init__(
        self,
        calls: _Calls,
        moved: Mapping[str | None, int] | None,
        seconds: Mapping[str | None, float] | None,
    ) -> None:
        self.calls = calls
        self.flops = [_flops(node) for node, _ in calls]
        work = [self._work(i) for i in range(len(calls))]
        self.moved, moved_else = _shared(calls, work, moved)
        self.seconds, seconds_else = _shared(calls, work, seconds)
        self.rest = int(moved_else or 0), seconds_else

    def _work(self, i: int) -> float:
        """Returns a number by which calls of one label share what their instructions cost."""
        node, times = self.calls[i]
        return ((self.flops[i] or 0) + bytes_of(node) + 1) * times

    def spent(self) -> dict[Node, Spent]:
        """Returns what each call costs each time that it runs."""
        return {
            node: Spent(self.flops[i], None if self.seconds is None else self.seconds[i] / times)
            for i, (node, times) in enumerate(self.calls)
        }

    def rows(self, names: Sequence[str]) -> tuple[Cost, ...]:
        """Returns a row for each of ``names``, which stand beside the calls."""
        groups: dict[str, list[int]] = {}
        for i, name in enumerate(names):
            groups.setdefault(name, []).append(i)
        rows = [self._row(name, group) for name, group in groups.items()]
        return tuple(sorted(rows, key=_order))

    def _row(self, name: str, group: Sequence[int]) -> Cost:
        known = [(self.flops[i], self.calls[i][1]) for i in group]
        counts = [flops * times for flops, times in known if flops is not None]
        return Cost(
            name,
            sum(times for _, times in known),
            sum(counts) if len(counts) == len(group) else None,
            sum(bytes_of(self.calls[i][0]) * self.calls[i][1] for i in group),
            ", ".join(dict.fromkeys(_derivative(self.calls[i][0]) for i in group)),
            None if self.moved is None else round(sum(self.moved[i] for i in group)),
            None if self.seconds is None else sum(self.seconds[i] for i in group),
        )


def _shared(
    calls: _Calls, work: Sequence[float], totals: Mapping[str | None, float] | None
) -> tuple[list[float] | None, float | None]:
    """Returns the share of each call in ``totals``, by label, and what belongs to no call."""
    if totals is None:
        return None, None
    sharers: dict[str, list[int]] = defaultdict(list)
    for i, (node, _) in enumerate(calls):
        for kind in dict.fromkeys(kinds_of(label_of(node))):
            sharers[kind].append(i)
    result, rest = [0.0] * len(calls), 0.0
    for name, total in totals.items():
        kinds = () if name is None else kinds_of(name)
        group = next((sharers[kind] for kind in kinds if kind in sharers), [])
        whole = sum(work[i] for i in group)
        for i in group:
            result[i] += total * work[i] / whole
        rest += 0.0 if group else total
    return result, rest


def _order(row: Cost) -> tuple[float, float, int]:
    """Returns a key that sorts the costliest row first; an unknown cost may be any."""
    return -(row.seconds or 0.0), -math.inf if row.flops is None else -row.flops, -row.bytes


def _derivative(node: Node) -> str:
    assert isinstance(node.op, Operator)
    way = node.op.derivative
    if way is Derivative.KERNEL and not any(one.differentiable for one in node.types or ()):
        way = Derivative.ZERO  # of integers
    return _DERIVATIVES.get(way, "none")


def _place(node: Node) -> str | None:
    return None if node.origin is None else f"{node.origin.file}:{node.origin.line}"


def _by_jax(calls: _Calls) -> tuple[ByJax, ...]:
    counts: dict[tuple[str, str, str | None, bool], int] = {}
    for node, times in calls:
        if isinstance(node.op, Operator) and node.op.derivative is Derivative.KERNEL:
            attributes = node.op.attribute_dict(node.attributes)
            function = attributes.get("function")
            named = attributes.get("primitive") or function or node.op.name
            key = str(named).partition(" at ")[0], node.op.name, _place(node), function is None
            if function is not None or _derivative(node) == _DERIVATIVES[Derivative.KERNEL]:
                counts[key] = counts.get(key, 0) + times
    return tuple(
        ByJax(primitive, operator, place, times, saveable)
        for (primitive, operator, place, saveable), times in counts.items()
    )


# Floating-point operations -----------------------------------------------------------------------


def _flops(node: Node) -> int | None:
    """Returns what the kernel of a call computes outside its bodies; None if XLA cannot tell."""
    assert isinstance(node.op, Operator)
    if any(isinstance(one, Body) for one in node.attributes):
        return 0
    types = tuple([None if one is None else one.type for one in node.inputs])
    return _flops_of(node.op, node.attributes, types)


@memoized(4096)
def _flops_of(
    operator: Operator, attributes: tuple[Any, ...], types: tuple[VarType | None, ...]
) -> int | None:
    run, _, arrays = opened(operator, types, attributes)
    try:
        counts: Any = jax.jit(run).lower(*arrays).cost_analysis()
    except Exception:  # of a kernel that runs only inside of jax.shard_map, or of a backend
        return None
    if not isinstance(counts, dict):
        return None
    # XLA counts sines and exponentials apart.
    return max(0, int(counts.get("flops", 0)) + int(counts.get("transcendentals", 0)))


# Tables ------------------------------------------------------------------------------------------


def _counted(number: float | None) -> str:
    """Returns a number with at most three digits and a prefix; a question mark if unknown."""
    if number is None:
        return "?"
    amount, prefix = float(number), ""
    for larger in ("k", "M", "G", "T", "P"):
        if amount < 1000:
            break
        amount, prefix = amount / 1000, larger
    return f"{amount:.3g} {prefix}".rstrip()


def _size(size: float | None) -> str:
    return "?" if size is None else shown(int(size))


def _time(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1 or unit == "µs":
            return f"{seconds * factor:.3g} {unit}"
    raise AssertionError


def _table(title: str, rows: Sequence[Cost]) -> list[str]:
    columns = [("calls", [f"{one.calls:,}" for one in rows])]
    columns += [("flops", [_counted(one.flops) for one in rows])]
    columns += [("results", [shown(one.bytes) for one in rows])]
    if any(one.moved is not None for one in rows):
        columns += [("read+written", [_size(one.moved) for one in rows])]
    if any(one.seconds is not None for one in rows):
        columns += [("time", [_time(one.seconds or 0.0) for one in rows])]
    names = [title, *(one.name for one in rows[:_SHOWN])]
    cells = [[head, *texts[:_SHOWN]] for head, texts in columns]
    ways = ["derivative", *(one.derivative for one in rows[:_SHOWN])]
    widths = [max(map(len, column)) for column in cells]
    wide = max(map(len, names))
    lines = [
        "  ".join(
            [
                name.ljust(wide),
                *(c[i].rjust(w) for c, w in zip(cells, widths, strict=True)),
                ways[i],
            ]
        ).rstrip()
        for i, name in enumerate(names)
    ]
    left = len(rows) - _SHOWN
    return [*lines, f"and {left} more"] if left > 0 else lines
