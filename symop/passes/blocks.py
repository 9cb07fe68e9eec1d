"""Tangents along the standard basis that are zero off one row, held as rows and not as directions.

The basis of an array of ``n`` rows of ``k`` entries has ``n * k`` directions. A value that is
computed row by row has a tangent along direction ``(i, j)`` that is zero off row ``i``. So one run
along the sum of the directions ``(0, j)`` to ``(n - 1, j)`` holds the tangents along all of them:
``k`` runs suffice. A value that depends on two rows, such as a distance of two particles, is a sum
of two such *parts*, each with rows of its own along another axis.

Source: Curtis, Powell, Reid, On the estimation of sparse Jacobian matrices, IMA Journal of Applied
Mathematics, 1974; Gao, Köhler, Foster, folx: Forward Laplacian for JAX, 2023.
"""

import functools
import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from registry.operator.operator import Operator
from registry.table import get
from symop.graph.algebra import is_product
from symop.graph.nodes import Node, array, constant
from symop.passes.factors import labels_of_product
from symop.passes.linearity import linear_places, types_of
from symop.passes.rows import Rows, rows_of_result

Parts = Mapping[Rows, Node]


class Term(NamedTuple):
    """One product in a sum over directions.

    Attributes:
        product: of two parts, for a direction that moves all rows.
        mask: 1.0 where both depend on the same row, 0.0 elsewhere; None for ones.
        times: how often it occurs.
    """

    product: Node
    mask: np.ndarray | None
    times: int


class Contraction(NamedTuple):
    """A sum over rows of some parts of a value, such as a mean over particles.

    Attributes:
        parts: the parts of the result that come from parts whose rows are not summed.
        summed: the parts whose rows are summed.
        at: the input that has these parts.
        terms: the labels of the axes of the inputs.
        out: the labels of the axes of the result.
    """

    parts: dict[Rows, Node]
    summed: dict[Rows, Node]
    at: int
    terms: Sequence[str]
    out: str


class Blocks:
    """The values whose tangents are sums of parts.

    Attributes:
        n_rows: the number of rows.
        width: the number of entries in a row.
        parts: the parts of each value, as functions of a direction that moves all rows.
        contractions: the values that sum over rows of values with parts.
    """

    def __init__(
        self, order: Sequence[Node], moving: set[Node], direction: Node, along: Node
    ) -> None:
        """Finds the parts of values in ``order``; ``along`` stands for ``direction`` in them."""
        self._direction, self._along = direction, along
        self._moving = moving
        self.parts: dict[Node, dict[Rows, Node]] = {}
        self.contractions: dict[Node, Contraction] = {}
        self.n_rows = _n_rows(order, direction)
        self.width = math.prod(direction.type.shape) // max(self.n_rows, 1)
        if self.n_rows < 2:
            return
        for node in [direction, *(one for one in order if one in moving)]:
            own = self._source(node) or self._through(node)
            if own and len(own) < self.n_rows:
                self.parts[node] = own
            elif (contraction := self._contraction(node)) is not None:
                self.contractions[node] = contraction

    def basis(self) -> np.ndarray:
        """Returns the directions that move all rows, stacked along a first axis."""
        type = self._direction.type
        rows = np.broadcast_to(np.eye(self.width)[:, None], (self.width, self.n_rows, self.width))
        return rows.reshape(self.width, *type.shape).astype(type.dtype)

    def is_source(self, node: Node) -> bool:
        """Whether ``node`` is the direction, or a reshape of it."""
        return node is self._direction or _is_reshape(node, self._direction)

    def _source(self, node: Node) -> dict[Rows, Node] | None:
        """Returns the only part of the direction, or of a reshape of it."""
        if not self.is_source(node):
            return None
        axis = next((i for i, one in enumerate(node.type.shape) if one > 1), None)
        if axis is None or node.type.shape[axis] != self.n_rows:
            return None
        moved = self._along if node is self._direction else self._applied(node, [self._along])
        return {Rows(axis, tuple(range(self.n_rows))): moved}

    def _through(self, node: Node) -> dict[Rows, Node] | None:
        """Returns the parts of a value that is linear in values with parts."""
        if node is self._direction:
            return None
        places = linear_places(node, self._moving)
        moving = [i for i, one in enumerate(node.inputs) if one in self._moving]
        if places is None or any(node.inputs[i] not in self.parts for i in moving):
            return None
        known = {i: self.parts[_input(node, i)] for i in moving}
        sums: dict[Rows, Node] = {}
        for rows in dict.fromkeys(one for parts in known.values() for one in parts):
            own = tuple(i for i in moving if rows in known[i])
            result = self._rows_of(node, own, rows)
            if result is None:
                return None
            inputs = [
                known[i][rows] if i in own else _zero(one) if i in places else one
                for i, one in enumerate(node.inputs)
            ]
            part = self._applied(node, inputs)
            sums[result] = get("add")(sums[result], part) if result in sums else part
        return sums

    def _contraction(self, node: Node) -> Contraction | None:
        """Returns how ``node`` sums over rows of its only input that depends on the direction."""
        labels = None if node in self.parts else _labels(node)
        moving = [i for i, one in enumerate(node.inputs) if one in self._moving]
        if labels is None or len(moving) != 1 or node.inputs[moving[0]] not in self.parts:
            return None
        (at,), (terms, out) = moving, labels
        parts, summed = dict[Rows, Node](), dict[Rows, Node]()
        for rows, part in self.parts[_input(node, at)].items():
            if terms[at][rows.axis] not in out:
                summed[rows] = part
                continue
            result = self._rows_of(node, (at,), rows)
            if result is None:
                return None
            inputs = [part if i == at else one for i, one in enumerate(node.inputs)]
            parts[result] = self._applied(node, inputs)
        return Contraction(parts, summed, at, terms, out)

    def _rows_of(self, node: Node, places: tuple[int, ...], rows: Rows) -> Rows | None:
        assert isinstance(node.op, Operator)
        return rows_of_result(node.op, types_of(node), node.attributes, places, rows)

    def _applied(self, node: Node, inputs: Sequence[Node | None]) -> Node:
        assert isinstance(node.op, Operator)
        result: Node = Node.emitter.emit(node.op, tuple(inputs), node.attributes, None)
        return result

    # Products ------------------------------------------------------------------------------------

    def terms_of(self, node: Node) -> list[Term] | None:
        """Returns the sum over all directions of a product of two values with parts."""
        if not is_product(node) or any(one not in self.parts for one in node.inputs):
            return None
        x, y = (_input(node, i) for i in (0, 1))
        if not x.type.shape == y.type.shape == node.type.shape:
            return None
        counts: Counter[tuple[tuple[Rows, Node], tuple[Rows, Node]]] = Counter()
        for p, q in itertools.product(self.parts[x].items(), self.parts[y].items()):
            counts[(q, p) if (q, p) in counts else (p, q)] += 1
        terms = []
        for ((r, one), (s, other)), count in counts.items():
            mask = _overlap(r, s, node.type.shape)
            if mask is None or mask.any():
                terms.append(Term(get("multiply")(one, other), mask, count))
        return terms

    def needed(self, node: Node) -> list[Node]:
        """Returns the parts from which ``spread`` takes the tangents of ``node``."""
        if node in self.parts:
            return list(self.parts[node].values())
        contraction = self.contractions[node]
        return [*contraction.parts.values(), *contraction.summed.values()]

    def spread(self, node: Node, stacked: Mapping[Node, Node]) -> Node:
        """Returns the tangents of ``node`` along all directions, from those of its parts."""
        contraction = self.contractions.get(node)
        parts = self.parts[node] if contraction is None else contraction.parts
        tangents = [
            self._spread(rows, stacked[part], node.type.shape) for rows, part in parts.items()
        ]
        if contraction is not None:
            tangents += [
                self._spread_sum(node, contraction, rows, stacked[part])
                for rows, part in contraction.summed.items()
            ]
        return functools.reduce(get("add"), tangents)

    def _spread(self, rows: Rows, part: Node, shape: Sequence[int]) -> Node:
        is_own = np.equal.outer(np.arange(self.n_rows), np.asarray(rows.rows))
        aligned = (self.n_rows, 1, *_aligned(shape, {rows.axis: len(rows.rows)}))
        mask = array(is_own.reshape(aligned).astype(part.type.dtype))
        repeated = get("reshape")(part, shape=(1, self.width, *shape))
        each = get("multiply")(repeated, mask)
        result: Node = get("reshape")(each, shape=(self.n_rows * self.width, *shape))
        return result

    def _spread_sum(self, node: Node, way: Contraction, rows: Rows, part: Node) -> Node:
        """Returns the tangents of a sum over rows: each row is the tangent along its directions."""
        terms, operands = list(way.terms), list(node.inputs)
        row = terms[way.at][rows.axis]
        terms[way.at], operands[way.at] = f"Y{terms[way.at]}", part
        if rows.rows != tuple(range(self.n_rows)):
            is_own = np.equal.outer(np.arange(self.n_rows), np.asarray(rows.rows))
            operands.append(array(is_own.astype(part.type.dtype)))
            terms.append(f"Z{row}")
            row = "Z"
        each = get("einsum")(*operands, equation=f"{','.join(terms)}->{row}Y{way.out}")
        shape = (self.n_rows * self.width, *node.type.shape)
        result: Node = get("reshape")(each, shape=shape)
        return result


def _labels(node: Node) -> tuple[list[str], str] | None:
    """Returns the labels of the axes of a product or a sum, of the inputs and of the result."""
    if node.op is get("einsum"):
        labels = labels_of_product(node)
        return None if labels is None or {"Y", "Z"} & set("".join(labels[0])) else labels
    if node.op is not get("sum_to"):
        return None
    (shape, result) = _input(node, 0).type.shape, node.type.shape
    letters = "abcdefghijklmnopqrstuvwx"[: len(shape)]
    kept = (*(0,) * (len(shape) - len(result)), *result)
    return [letters], "".join(a for a, n, m in zip(letters, shape, kept, strict=True) if n == m)


def _n_rows(order: Sequence[Node], direction: Node) -> int:
    """Returns the number of rows of ``direction``: the length of the first axis it has as a matrix.

    A vector that is only read as a matrix, such as the coordinates of particles, has its rows.
    """
    shapes = [direction.type.shape]
    shapes += [one.type.shape for one in order if _is_reshape(one, direction)]
    lengths = [next((n for n in shape if n > 1), 1) for shape in shapes]
    return min(lengths[1:], default=lengths[0]) if direction.ndim == 1 else lengths[0]


def _is_reshape(node: Node, direction: Node) -> bool:
    return node.op is get("reshape") and node.inputs[0] is direction


def _input(node: Node, index: int) -> Node:
    one = node.inputs[index]
    assert one is not None
    return one


def _zero(node: Node | None) -> Node:
    assert node is not None
    return constant(0.0, node.type)


def _aligned(shape: Sequence[int], lengths: Mapping[int, int]) -> list[int]:
    return [lengths.get(axis, 1) for axis in range(len(shape))]


def _overlap(r: Rows, s: Rows, shape: Sequence[int]) -> np.ndarray | None:
    """Returns where entries depend on the same row in two ways; None for everywhere."""
    one, other = np.asarray(r.rows), np.asarray(s.rows)
    if r.axis == s.axis:
        own: np.ndarray = (one == other) & (one >= 0)
        return None if own.all() else own.reshape(_aligned(shape, {r.axis: len(one)}))
    if r.axis > s.axis:
        return _overlap(s, r, shape)
    same: np.ndarray = np.equal.outer(one, other) & (one[:, None] >= 0)
    return same.reshape(_aligned(shape, {r.axis: len(one), s.axis: len(other)}))
