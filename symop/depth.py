"""What lowering makes of depth: which repeated blocks become loops, and why others do not."""

from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

from registry.operator import Operator
from symop.bodies import GraphBody
from symop.draw import draw, html
from symop.function import settle
from symop.graph import Node, topological
from symop.repeats.loops import Aim
from symop.repeats.rolling import Rolled
from symop.symbol import Symbol

_SHOWN = 8
"""So many operators of a step are named."""


class Loops(NamedTuple):
    """The loops that lowering makes of the repeated blocks of a symbol.

    It prints as a table, and draws itself in a notebook: the graph with its loops, and each block
    once, with the number of its steps.

    Attributes:
        symbol: the graph with its loops, as it is lowered. Print it to see the loops' bodies.
        made: the loops, outer ones after those that lie in them.
        left: repeated blocks that did not become loops, each with its ``reason``.
        operators: how many operators there were.
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


def loops(
    symbol: Symbol,
    *,
    is_train: bool = False,
    by_jax: bool = False,
    stacked: bool = False,
    **types: Any,
) -> Loops:
    """What lowering makes of the repeated blocks of ``symbol``.

    Args:
        symbol: whose operators were called one by one, in a loop of Python for example.
        is_train: whether operators behave as in training.
        by_jax: whether JAX may differentiate, as what ``to_jax()`` gives; else it is
            ``so.value_and_grad`` or an executor.
        stacked: whether variables of which a loop reads one in each step lie in one array.
        **types: of variables that declare none, as ``Symbol.with_types`` takes them.

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
    found = settle(whole.nodes, {}, training=is_train, rolling=True, aim=aim, log=log)
    made = tuple(one for one in log if one.loop is not None)
    left = tuple(one for one in log if one.loop is None)
    return Loops(Symbol(found.outputs), made, left, _count(whole.nodes))


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
