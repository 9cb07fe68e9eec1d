"""Sums of derivatives along directions as graphs: one pass for the rows of a push."""

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from registry.table import get
from registry.types import VarType
from symop.differential_operators.planning import Push, Way, is_number
from symop.graph.nodes import Node, array, constant, placeholder
from symop.graph.rewriting import substitute
from symop.orders import basis_of
from symop.passes.collapse import (
    Mixed,
    over_directions,
    reads_totals_alone,
    sum_over_directions,
)
from symop.passes.spans import Span
from symop.symbol import building
from symop.symbol.symbol import Symbol

Along = dict[Node, Node]
"""The placeholder of the direction of each coordinate array."""


class Space:
    """The coordinates of a differential operator, numbered.

    Attributes:
        coordinates: for each the array, and the index of an entry of this vector; None stands for
            all entries at once, of which each value depends on its own.
    """

    def __init__(self) -> None:
        """Starts without a coordinate."""
        self.coordinates: list[tuple[Symbol, int | None]] = []
        self._known: dict[tuple[Node, int | None], int] = {}

    def number(self, x: Symbol, entry: int | None) -> int:
        """Returns the number of a coordinate, which is new or known."""
        key = x.node, entry
        if key not in self._known:
            self._known[key] = len(self.coordinates)
            self.coordinates.append((x, entry))
        return self._known[key]

    def arrays(self, rows: Sequence[Way]) -> list[Symbol]:
        """Returns the arrays whose coordinates occur in directions."""
        used = [self.coordinates[i][0] for i in sorted({i for row in rows for i in row})]
        return list({one.node: one for one in used}.values())

    def stacked(self, rows: Sequence[Way], x: Symbol) -> Node:
        """Returns the parts of directions that move ``x``, stacked along a first axis."""
        count, entries = len(rows), self._entries(x)
        parts = [
            self._wholes([row.get(i, 0.0) for row in rows], x)
            for i, (one, entry) in enumerate(self.coordinates)
            if one.node is x.node and entry is None and any(i in row for row in rows)
        ]
        if any(i in row for i in entries for row in rows):
            table = [[0.0] * math.prod(x.shape) for _ in rows]
            for line, row in zip(table, rows, strict=True):
                for i, entry in entries.items():
                    line[entry] = row.get(i, 0.0)
            is_basis = len(rows) > 1 and table == np.eye(len(rows)).tolist()
            parts.append(basis_of(x).node if is_basis else _table(table, x))
        zero = constant(0.0, VarType((count, *x.shape), x.dtype))
        return functools.reduce(get("add"), parts) if parts else zero

    def _wholes(self, values: Sequence[Any], x: Symbol) -> Node:
        """Returns arrays like ``x``, each filled with a number or a symbol."""
        count = len(values)
        if all(map(is_number, values)) and len(set(values)) == 1:
            return constant(float(values[0]), VarType((count, *x.shape), x.dtype))
        column = _table([[one] for one in values], x)
        aligned = get("reshape")(column, shape=(count, *(1,) * len(x.shape)))
        full: Node = get("broadcast_to")(aligned, shape=(count, *x.shape))
        return full

    def one(self, way: Way, x: Symbol) -> Node:
        """Returns the part of one direction that moves ``x``."""
        only: Node = get("reshape")(self.stacked([way], x), shape=x.shape)
        return only

    def is_basis(self, rows: Sequence[Way]) -> bool:
        """Whether directions are all those of the standard basis of one array, in order."""
        if len(self.arrays(rows)) != 1 or any(list(row.values()) != [1.0] for row in rows):
            return False
        (x,) = self.arrays(rows)
        entries = [self.coordinates[i][1] for row in rows for i in row]
        return entries == list(range(math.prod(x.shape)))

    def _entries(self, x: Symbol) -> dict[int, int]:
        return {
            i: entry
            for i, (one, entry) in enumerate(self.coordinates)
            if one.node is x.node and entry is not None
        }


def _table(rows: Sequence[Sequence[Any]], x: Symbol) -> Node:
    """Returns numbers and symbols as a matrix of the dtype of ``x``."""
    values = [one for row in rows for one in row]
    shape = len(rows), len(rows[0])
    if all(map(is_number, values)):
        return array(np.asarray(values, x.dtype).reshape(shape))
    distinct = list({_key(one): one for one in values}.values())
    place = {_key(one): i for i, one in enumerate(distinct)}
    index = np.asarray([place[_key(one)] for one in values], np.int32).reshape(shape)
    table: Node = get("take")(vector(distinct, x), array(index), axis=0)
    return table


def _key(value: Any) -> Any:
    return float(value) if is_number(value) else value.node


def vector(values: Sequence[Any], like: Symbol) -> Node:
    """Returns numbers and symbols without axes as a vector of the dtype of ``like``."""
    if all(map(is_number, values)):
        return array(np.asarray(values, like.dtype))
    type = VarType((), like.dtype)
    parts = [constant(float(one), type) if is_number(one) else one.node for one in values]
    stacked: Node = get("stack")(*[get("cast")(one, dtype=like.dtype.name) for one in parts])
    return stacked


# One push ----------------------------------------------------------------------------------------


class Moved(NamedTuple):
    """A derivative along placeholders.

    Attributes:
        value: the derivative of one row.
        slots: the placeholders of each slot.
        extra: those of the derivative of first order that is added.
    """

    value: Node
    slots: Sequence[Along]
    extra: Along


def total_of(u: Symbol, space: Space, push: Push, extra: Way) -> tuple[Node, bool]:
    """Returns the sum of a push, and whether the derivative along ``extra`` is added to it.

    This first derivative shares the pass of a push of order two, as the second coefficient of the
    curve that the first moves along: it is added where it costs nothing.
    """
    coefficients, rows = push.coefficients, len(push.ways[0])
    same = len({_key(one) for one in coefficients}) == 1 and push.mixing is None
    if extra and sum(push.orders) == 2:
        moved = _moved(u, space, push, space.arrays([extra]))
        if reads_totals_alone([moved.value], _placeholders(moved), moved.extra.values()):
            return _summed(u, space, push, moved, extra), True
    moved = _moved(u, space, push, [])
    if rows == 1:
        images = {
            stand_in: space.one(row, Symbol([x]))
            for along, (row,) in zip(moved.slots, push.ways, strict=True)
            for x, stand_in in along.items()
        }
        (value,) = substitute([moved.value], images)
        return times(value, coefficients[0]) if coefficients else value, False
    if same:
        unweighted = push._replace(coefficients=())
        return times(_summed(u, space, unweighted, moved, {}), coefficients[0]), False
    return _summed(u, space, push, moved, {}), False


def along(u: Symbol, space: Space, way: Way) -> Node:
    """Returns the first derivative along a direction."""
    arrays = space.arrays([way])
    ways = [Symbol([space.one(way, one)]) for one in arrays]
    slope: Symbol = building.build_tangents(u, arrays, ways, "zero")
    return slope.node


def each_of(u: Symbol, space: Space, push: Push) -> Node:
    """Returns the derivatives of all rows of a push, stacked along a first axis."""
    moved = _moved(u, space, push, [])
    (stacked,) = over_directions([moved.value], _series(space, push, moved))
    return stacked


def _moved(u: Symbol, space: Space, push: Push, also: Sequence[Symbol]) -> Moved:
    """Differentiates along placeholders; the last time, those of ``also`` are added."""
    slots: list[Along] = []
    value, extra = u, _stand_ins("extra", also)
    for k, (order, rows) in enumerate(zip(push.orders, push.ways, strict=True)):
        arrays = {one.node: one for one in [*space.arrays(rows), *(() if k else also)]}
        along = _stand_ins(f"v{k}", list(arrays.values()))
        slots.append(along)
        for i in range(order):
            before, after = list(along), list(along.values())
            if also and k == len(push.orders) - 1 and i == order - 1:
                before += [slots[0][one.node] for one in also]
                after += extra.values()
            value = building.build_tangents(value, _symbols(before), _symbols(after), "zero")
    return Moved(value.node, slots, extra)


def _stand_ins(name: str, arrays: Sequence[Symbol]) -> Along:
    return {one.node: placeholder(name, one.node.type.strong()) for one in arrays}


def _symbols(nodes: Sequence[Node]) -> list[Symbol]:
    return [Symbol([one]) for one in nodes]


def _placeholders(moved: Moved) -> list[Node]:
    return [one for along in moved.slots for one in along.values()]


def _series(space: Space, push: Push, moved: Moved) -> dict[Node, Node]:
    return {
        stand_in: space.stacked(rows, Symbol([x]))
        for along, rows in zip(moved.slots, push.ways, strict=True)
        for x, stand_in in along.items()
    }


def _summed(u: Symbol, space: Space, push: Push, moved: Moved, extra: Way) -> Node:
    """Returns the weighted sum over the rows."""
    totals = {one: space.one(extra, Symbol([x])) for x, one in moved.extra.items()}
    mixed = _mixed(u, push, moved) if push.by_rows else None
    if mixed is not None:
        push, moved = push._replace(ways=push.ways[:1]), moved._replace(slots=moved.slots[:1])
    weights = _weights(u, push) if push.coefficients else None
    basis = sum(map(len, moved.slots)) == 1 and weights is None and mixed is None and not totals
    (total,) = sum_over_directions(
        [moved.value],
        _series(space, push, moved),
        weights,
        totals,
        standard=basis and space.is_basis(push.ways[0]),
        mixed=mixed,
        span=_span(u, space, push, moved),
    )
    return total


def _span(u: Symbol, space: Space, push: Push, moved: Moved) -> Span | None:
    """Returns the directions of a push of higher order as combinations of basis vectors."""
    used = push.basis
    if not used:
        return None
    matrix = _table([[row.get(i, 0.0) for i in used] for row in push.ways[0]], u)
    basis = push._replace(ways=(tuple({i: 1.0} for i in used),))
    return Span(_series(space, basis, moved), matrix, push.orders[0])


def _mixed(u: Symbol, push: Push, moved: Moved) -> Mixed:
    """Returns the directions of the second slot as combinations of those of the first."""
    basis, rows = push.ways
    first, second = moved.slots
    used = [i for one in basis for i in one]
    matrix = _table([[row.get(i, 0.0) for i in used] for row in rows], u)
    return Mixed({one: first[x] for x, one in second.items()}, matrix)


def _weights(u: Symbol, push: Push) -> Node:
    if push.mixing is None:
        return vector(push.coefficients, u)
    if all(map(is_number, push.coefficients)):
        return vector(list(push.mixing @ np.asarray(push.coefficients, float)), u)
    mixing = array(push.mixing.astype(u.dtype))
    weights: Node = get("einsum")(mixing, vector(push.coefficients, u), equation="rk,k->r")
    return weights


def times(value: Node, coefficient: Any) -> Node:
    """Returns the product with a number or a symbol."""
    if is_number(coefficient) and coefficient == 1:
        return value
    factor = float(coefficient) if is_number(coefficient) else coefficient.node
    product: Node = get("multiply")(value, factor)
    return product
