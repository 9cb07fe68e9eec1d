"""What the operators of a graph cost, and which of them JAX differentiates."""

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, NamedTuple

import jax

from registry.caches import memoized
from registry.errors import ArgumentError
from registry.jax_derivatives.calculus import opened
from registry.operator.bodies import Body
from registry.operator.operator import Derivative, Operator
from registry.tracebacks import api_boundary
from registry.types import VarType
from symop.graph.nodes import Node, topological
from symop.passes.remat.counting import shown
from symop.passes.remat.runs import bytes_of
from symop.regions.bodies import GraphBody, steps_of
from symop.runtime.function import specialize
from symop.symbol.symbol import Symbol

_SHOWN = 12
"""The maximal number of rows of a table that are printed."""
_RUN_FORWARD = ("body", "condition", "true_body", "false_body", "solve")
"""The attributes with bodies that run forward; others are rules for derivatives."""
_DERIVATIVES = {
    Derivative.MAKER: "gradient maker",
    Derivative.KERNEL: "JAX",
    Derivative.ZERO: "zero",
}


class Cost(NamedTuple):
    """The calls of one operator, or those built at one line.

    Attributes:
        name: the name of the operator, or the line.
        calls: how often they run; those in the body of a loop once for each step.
        flops: the estimated number of floating-point operations, None if one cannot be estimated.
        bytes: the size of the results.
        derivative: ``gradient maker``, ``JAX``, ``zero`` or ``none``; for a line, those of its
            operators.
    """

    name: str
    calls: int
    flops: int | None
    bytes: int
    derivative: str


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
    """The account of a graph; prints as tables.

    Attributes:
        operators: a row for each operator, the costliest first.
        lines: a row for each line of the user at which operators were built, the costliest first.
        by_jax: what JAX differentiates; empty if all derivatives are those of gradient makers.
    """

    operators: tuple[Cost, ...]
    lines: tuple[Cost, ...]
    by_jax: tuple[ByJax, ...]

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
    def opaque(self) -> tuple[ByJax, ...]:
        """Those parts of ``by_jax`` that a file cannot hold, such as callbacks."""
        return tuple(one for one in self.by_jax if not one.saveable)

    def __str__(self) -> str:
        calls = sum(one.calls for one in self.operators)
        lines = [
            f"{calls:,} calls of {len(self.operators)} operators, {_counted(self.flops)} flops, "
            f"{shown(self.bytes)} of results",
            "",
            *_table("operator", self.operators),
            "",
            *_table("line", self.lines),
            "",
            "differentiated by JAX:" if self.by_jax else "JAX differentiates none of them",
            *(f"  {one}" for one in self.by_jax),
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


@api_boundary
def explain(symbol: Symbol, *, is_train: bool = False, **types: Any) -> Explanation:
    """Returns what the operators of ``symbol`` cost, and which of them JAX differentiates.

    The floating-point operations are those that XLA counts in each kernel before it optimizes. In a
    ``while_loop`` one step is counted, in a ``cond`` both branches. A rule of ``jax.custom_jvp`` or
    ``jax.custom_vjp`` runs in derivatives alone, and is not counted.

    Args:
        symbol: the graph, such as one of ``so.from_jax``.
        is_train: whether operators behave as in training.
        **types: types of variables that declare none, as in ``Symbol.with_types``.

    Raises:
        UnknownTypeError: a shape is not known.
        ArgumentError: ``symbol`` is no symbol.

    Example:
        >>> import jax, jax.numpy as jnp, symop as so
        >>> y = so.from_jax(lambda x: jnp.sin(x) @ jax.lax.igamma(x, x), jnp.ones(9))
        >>> report = so.explain(y)
        >>> [(one.name, one.calls, one.derivative) for one in report.operators[1:]]
        [('einsum', 1, 'gradient maker'), ('sin', 1, 'gradient maker')]
        >>> [one.primitive for one in report.by_jax]
        ['igamma']
    """
    if not isinstance(symbol, Symbol):
        raise ArgumentError(f"explain: its argument must be a symbol, got {type(symbol).__name__}")
    whole = symbol.with_types(**types) if types else symbol
    settled = specialize(whole.nodes, {}, training=is_train, rolling=False)
    calls = list(_calls(settled.outputs, 1))
    operators = _costs(calls, [node.op.name for node, _ in calls])
    lines = _costs(calls, [_place(node) or "unknown" for node, _ in calls])
    return Explanation(operators, lines, _by_jax(calls))


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


def _costs(calls: _Calls, names: Sequence[str]) -> tuple[Cost, ...]:
    """Returns a row for each of ``names``, which stand beside the calls."""
    groups: dict[str, list[tuple[Node, int]]] = {}
    for name, call in zip(names, calls, strict=True):
        groups.setdefault(name, []).append(call)
    rows = [_cost(name, group) for name, group in groups.items()]
    return tuple(sorted(rows, key=_order))


def _order(row: Cost) -> tuple[float, int]:
    """Returns a key that sorts the costliest row first; an unknown cost may be any."""
    return -math.inf if row.flops is None else -row.flops, -row.bytes


def _cost(name: str, calls: _Calls) -> Cost:
    counts = [_flops(node) for node, _ in calls]
    known = [one * times for one, (_, times) in zip(counts, calls, strict=True) if one is not None]
    ways = dict.fromkeys(_derivative(node) for node, _ in calls)
    return Cost(
        name,
        sum(times for _, times in calls),
        sum(known) if len(known) == len(calls) else None,
        sum(bytes_of(node) * times for node, times in calls),
        ", ".join(ways),
    )


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
    """Returns what the kernel of a call computes besides its bodies; None if XLA cannot tell."""
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


def _counted(number: int | None) -> str:
    """Returns a number with at most three digits and a prefix; a question mark if unknown."""
    if number is None:
        return "?"
    amount, prefix = float(number), ""
    for larger in ("k", "M", "G", "T", "P"):
        if amount < 1000:
            break
        amount, prefix = amount / 1000, larger
    return f"{amount:.3g} {prefix}".rstrip()


def _table(title: str, rows: Sequence[Cost]) -> list[str]:
    cells = [(title, "calls", "flops", "results", "derivative")]
    cells += [
        (one.name, f"{one.calls:,}", _counted(one.flops), shown(one.bytes), one.derivative)
        for one in rows[:_SHOWN]
    ]
    widths = [max(len(row[i]) for row in cells) for i in range(4)]
    lines = [
        "  ".join([name.ljust(widths[0]), *map(str.rjust, numbers, widths[1:]), way]).rstrip()
        for name, *numbers, way in cells
    ]
    left = len(rows) - _SHOWN
    return [*lines, f"and {left} more"] if left > 0 else lines
