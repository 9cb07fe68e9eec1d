"""The loop report: which repeated blocks lowering turns into loops, and why others are not."""

from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

from registry.operator.operator import Operator
from registry.tracebacks import api_boundary
from symop.drawing.draw import draw, html
from symop.graph.nodes import Node, topological
from symop.passes.roll_loops.loops import Aim
from symop.passes.roll_loops.rolling import Rolled
from symop.regions.bodies import GraphBody
from symop.runtime.function import specialize
from symop.symbol.symbol import Symbol

_SHOWN = 8
"""The maximal number of operators of a step that are named."""


class Loops(NamedTuple):
    """The loops that lowering makes of the repeated blocks of a symbol.

    Prints as a table, and draws in a notebook the graph with its loops, and each body once, with
    the number of its steps.

    Attributes:
        symbol: the graph with its loops, in lowered form. Print it to see the bodies of the loops.
        made: the loops; outer loops follow the loops that they contain.
        left: repeated blocks that did not become loops, each with its ``reason``.
        operators: the number of operators before lowering.
    """

    symbol: Symbol
    made: tuple[Rolled, ...]
    left: tuple[Rolled, ...]
    operators: int

    def __str__(self) -> str:
        lines = [f"{self.operators:,} operators, {_count(self.symbol.nodes):,} with loops"]
        lines += [f"  loop of {_told(one)}: {_terms(one)}" for one in self.made]
        for one in self.left:
            reason = (one.reason or "").replace("\n  ", " ")
            lines.append(f"  not a loop: {_told(one)}: {reason}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        bodies = "".join(_drawn_body(one) for one in self.made)
        return f"<pre>{escape(str(self))}</pre>{html(self.symbol.nodes)}{bodies}"


@api_boundary
def loops(
    symbol: Symbol,
    *,
    is_train: bool = False,
    by_jax: bool = False,
    stacked: bool = False,
    **types: Any,
) -> Loops:
    """Reports the loops that lowering makes of the repeated blocks of ``symbol``.

    Args:
        symbol: a symbol whose operators were called one by one, for example in a Python loop.
        is_train: whether operators behave as in training.
        by_jax: whether JAX may differentiate the result, as it may the function of ``to_jax()``;
            otherwise the loops are those of ``so.value_and_grad`` or an executor.
        stacked: whether variables that a loop reads one per step are stacked in one array.
        **types: types of variables that declare none, as in ``Symbol.with_types``.

    Raises:
        UnknownTypeError: a shape is not known.

    Example:
        >>> import symop as so
        >>> x = y = so.var("x", shape=(3,))
        >>> for _ in range(100):
        ...     y = so.sin(y)
        >>> found = so.loops(y)
        >>> [(one.run.times, one.run.period) for one in found.made]
        [(100, 1)]
        >>> [node.op.name for node in found.symbol.nodes]
        ['scan']
    """
    whole = symbol.with_types(**types) if types else symbol
    log: list[Rolled] = []
    aim = Aim(by_jax=by_jax, stacking=stacked)
    graph = specialize(whole.nodes, {}, training=is_train, rolling=True, aim=aim, log=log)
    rolled = tuple(one for one in log if one.loop is not None)
    left = tuple(one for one in log if one.loop is None)
    return Loops(Symbol(graph.outputs), rolled, left, _count(whole.nodes))


def _count(nodes: Sequence[Node]) -> int:
    return sum(isinstance(node.op, Operator) for node in topological(nodes))


def _told(one: Rolled) -> str:
    names = Counter(node.op.name for node in one.nodes)
    shown = [f"{count} {name}" if count > 1 else name for name, count in names.items()]
    more = ["..."] if len(shown) > _SHOWN else []
    place = f" at {one.origin}" if one.origin is not None else ""
    inner = " in a step of a loop" if one.depth else ""
    listed = ", ".join([*shown[:_SHOWN], *more])
    return f"{one.run.times} steps of {one.run.period} operators ({listed}){place}{inner}"


def _terms(one: Rolled) -> str:
    parts = [f"{count} {name}" for name, count in one.counts.items() if count]
    return ", ".join([*parts, *(["from the last to the first"] if one.backwards else [])])


def _drawn_body(one: Rolled) -> str:
    assert one.loop is not None
    bodies = [each for each in one.loop.attributes if isinstance(each, GraphBody)]
    titles = f"{one.run.times} times"
    return "".join(f"<div>{draw(body.results, title=titles)}</div>" for body in bodies)
