"""Chains of matrix products, computed in the order that takes the fewest multiplications.

``(A @ B) @ x`` becomes ``A @ (B @ x)``, also where transposes lie between the products. Products
that read one another are one problem: each that other calls read is solved by dynamic programming
over its factors, and the solutions are taken if all of them together need at most half of the
multiplications, and ``chain_saving`` fewer (``registry.tuning``). In a gradient, several products
read the same one: either all of them take it apart, or none does. A product that has a name, or is
an output, or lies in another rematerialization scope than its readers, stays as it is.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from registry.operator.operator import Operator
from registry.table import get
from registry.tuning import present
from registry.types import Shape, VarType, is_symbolic
from symop.graph.algebra import exchanged
from symop.graph.emission import named
from symop.graph.nodes import Node, by_age, copied_origin, topological
from symop.graph.policies import scope_of
from symop.graph.rewriting import Images
from symop.passes.replacements import Replacement, call

LONGEST = 16
"""The largest number of factors in a chain; repeated squaring has exponentially many."""
_CLEAR = 2
"""Another order is taken if it needs this many times fewer multiplications.

A product with a vector takes longer per multiplication, since it is bound by reading the matrix.
"""


def reordered(roots: Sequence[Node], log: list[Replacement] | None = None) -> Sequence[Node]:
    """Returns ``roots``, whose types are known, with chains of products in a cheaper order."""
    order = topological(roots)
    products = [node for node in order if _is_product(node)]
    if len(products) < 2:
        return roots
    reading = _Reading(order, products, roots)
    solved: dict[Node, _Tree] = {}
    for members in reading.groups():
        solution = reading.solution(members)
        if solution is not None:
            solved |= solution.trees
            if log is not None:
                log.append(solution.note)
    return _rebuilt(roots, order, solved) if solved else roots


def _rebuilt(
    roots: Sequence[Node], order: Sequence[Node], solved: dict[Node, "_Tree"]
) -> Sequence[Node]:
    image = Images()
    # A product of another rematerialization scope may be computed again there.
    building: dict[Any, _Building] = defaultdict(lambda: _Building(image))
    for node in by_age(order):
        if node in solved:
            with copied_origin(node.origin):
                image[node] = building[scope_of(node)].result(node, solved[node])
        else:
            image.rebuild(node)
    return [image.value(one) for one in roots]


# Trees of products -------------------------------------------------------------------------------


class _Factor(NamedTuple):
    """A factor of a chain: a matrix, or a vector, which is a column; transposed if ``turned``."""

    node: Node
    turned: bool

    @property
    def lengths(self) -> tuple[Shape, int, int]:
        """The batch axes, and the numbers of rows and columns."""
        shape = self.node.type.shape
        *batch, rows, columns = (*shape, 1) if len(shape) == 1 else shape
        return tuple(batch), *((columns, rows) if self.turned else (rows, columns))


_Tree = Any
"""A ``_Factor``, or a pair of trees that are multiplied."""


def _turned(tree: _Tree) -> _Tree:
    """Returns the transposed product."""
    if isinstance(tree, _Factor):
        return _Factor(tree.node, not tree.turned)
    left, right = tree
    return _turned(right), _turned(left)


def _factors(tree: _Tree) -> list[_Factor]:
    if isinstance(tree, _Factor):
        return [tree]
    return [*_factors(tree[0]), *_factors(tree[1])]


def _subtrees(tree: _Tree) -> Iterator[tuple[_Tree, _Tree]]:
    """Yields the products of a tree."""
    if not isinstance(tree, _Factor):
        yield from _subtrees(tree[0])
        yield from _subtrees(tree[1])
        yield tree


def _cost(tree: _Tree) -> int:
    """Returns the number of multiplications of the last product of a tree."""
    factors, inner = _factors(tree), _factors(tree[1])[0]
    batch = np.broadcast_shapes(*[one.lengths[0] for one in factors])
    rows, columns = factors[0].lengths[1], factors[-1].lengths[2]
    return math.prod(batch) * rows * inner.lengths[1] * columns


def _total(trees: Collection[_Tree]) -> int:
    """Returns the number of multiplications of trees, of which equal parts are computed once."""
    seen: set[_Tree] = set()
    for tree in trees:
        for one in _subtrees(tree):
            if _turned(one) not in seen:
                seen.add(one)
    return sum(map(_cost, seen))


def _cheapest(factors: Sequence[_Factor]) -> _Tree:
    """Returns the tree over ``factors`` with the fewest multiplications."""
    best: dict[tuple[int, int], tuple[int, _Tree]] = {
        (i, i + 1): (0, factor) for i, factor in enumerate(factors)
    }
    for length in range(2, len(factors) + 1):
        for i in range(len(factors) - length + 1):
            j = i + length
            options = []
            for k in range(i + 1, j):
                (before, left), (after, right) = best[i, k], best[k, j]
                options.append((before + after + _cost((left, right)), (left, right)))
            best[i, j] = min(options, key=lambda option: option[0])
    return best[0, len(factors)][1]


def _is_sound(factors: Sequence[_Factor]) -> bool:
    """Whether factors may be multiplied in any order.

    NumPy's rules for a vector fit all orders only if no factor between it and the other end has
    batch axes.
    """
    vectors = [i for i, one in enumerate(factors) if one.node.type.ndim == 1]
    batches = [i for i, one in enumerate(factors) if one.node.type.ndim > 2]
    last = len(factors) - 1
    return not vectors or not batches or (vectors, batches) in (([last], [0]), ([0], [last]))


# Reading a graph ---------------------------------------------------------------------------------


class _Solution(NamedTuple):
    """The products that other calls read, as trees, and a note for reports."""

    trees: dict[Node, _Tree]
    note: Replacement


class _Reading:
    """The products of a graph, and which of them may be taken apart."""

    def __init__(
        self, order: Sequence[Node], products: Sequence[Node], roots: Collection[Node]
    ) -> None:
        self._products, self._roots = dict.fromkeys(products), set(roots)
        self._readers: dict[Node, list[Node]] = defaultdict(list)
        for node in order:
            for one in node.operands:
                self._readers[one].append(node)

    def groups(self) -> list[list[Node]]:
        """Returns the groups of two or more products that read one another."""
        group: dict[Node, list[Node]] = {}
        for node in self._products:
            mine = group[node] = [node]
            for one in node.operands:
                inner = _base(one)[0]
                other = group.get(inner)
                if other is not None and other is not mine and self._inner(inner):
                    mine += other
                    group.update(dict.fromkeys(other, mine))
        number = {node: i for i, node in enumerate(self._products)}
        distinct = {id(one): one for one in group.values()}
        return [sorted(one, key=number.__getitem__) for one in distinct.values() if len(one) > 1]

    def solution(self, members: Sequence[Node]) -> _Solution | None:
        """Returns the cheapest way to compute the products, if it is much cheaper."""
        before = sum(
            _cost((_leaf(x, 0), _leaf(y, 1))) for x, y in (one.operands for one in members)
        )
        found = [self._trees(members, opens) for opens in (self._inner, self._inner_of_one)]
        trees = min(filter(None, found), key=lambda one: _total([*one.values()]), default=None)
        after = before if trees is None else _total([*trees.values()])
        if trees is None or before < _CLEAR * after or before - after < present.tuning.chain_saving:
            return None
        note = Replacement(
            f"{len(members)} matrix products of {before:.3g} multiplications",
            f"others of {after:.3g}",
            members[-1].origin,
        )
        return _Solution(trees, note)

    def _trees(
        self, members: Sequence[Node], opens: Callable[[Node], bool]
    ) -> dict[Node, _Tree] | None:
        """Returns trees for the products that stay, if those that ``opens`` accepts do not."""
        sizes: dict[Node, int] = {}
        for node in members:
            sizes[node] = sum(
                sizes.get(inner, 1) if opens(inner) else 1
                for inner in (_base(one)[0] for one in node.operands)
            )
        ends = [one for one in members if not opens(one)]
        if any(sizes[one] > LONGEST for one in ends):
            return None
        return {one: _best(_tree(one, opens)) for one in ends}

    def _inner(self, node: Node) -> bool:
        """Whether only products read ``node``, which may be taken apart."""
        if node not in self._products:
            return False
        flat = node.type.ndim < 2 and any(one.type.ndim == 1 for one in node.operands)
        whole = node.type.ndim > 1 and all(one.type.ndim > 1 for one in node.operands)
        return (flat or whole) and self._is_open(node, scope_of(node))

    def _is_open(self, node: Node, scope: Any) -> bool:
        readers = self._readers[node]
        if node in self._roots or node.name is not None or scope_of(node) is not scope:
            return False
        return bool(readers) and all(self._opens(one, scope) for one in readers)

    def _opens(self, reader: Node, scope: Any) -> bool:
        """Whether ``reader`` is a product, or rearranges its operand for products only."""
        if reader in self._products:
            return scope_of(reader) is scope
        return _arranged(reader) is not None and self._is_open(reader, scope)

    def _inner_of_one(self, node: Node) -> bool:
        """Whether a single product reads ``node``, which may be taken apart."""
        return self._inner(node) and self._count(node) == 1

    def _count(self, node: Node) -> int:
        readers = self._readers[node]
        return sum(1 if one in self._products else self._count(one) for one in readers)


def _best(tree: _Tree) -> _Tree:
    """Returns the cheapest tree over the same factors; ``tree`` itself if none is cheaper."""
    factors = _factors(tree)
    if not _is_sound(factors):
        return tree
    best = _cheapest(factors)
    return best if _total([best]) < _total([tree]) else tree


def _tree(node: Node, opens: Callable[[Node], bool]) -> _Tree:
    """Returns a product with the products inside that ``opens`` accepts; a vector as a column."""

    def part(operand: Node, place: int) -> _Tree:
        inner, turned = _base(operand)
        if not opens(inner):
            return _leaf(operand, place)
        turned = place == 0 if operand.type.ndim == 1 else turned
        tree = _tree(inner, opens)
        return _turned(tree) if turned else tree

    x, y = node.operands
    pair = part(x, 0), part(y, 1)
    return _turned(pair) if node.type.ndim == 1 == x.type.ndim else pair


def _leaf(operand: Node, place: int) -> _Factor:
    """Returns an operand as a factor; a vector on the left is a row."""
    node, turned = _base(operand)
    return _Factor(node, place == 0 if operand.type.ndim == 1 else turned)


def _base(node: Node) -> tuple[Node, bool]:
    """Returns the matrix or column that ``node`` rearranges, and whether it is transposed."""
    turned = False
    while (inner := _arranged(node)) is not None:
        turned ^= inner[1]
        node = inner[0]
    return node, turned


def _arranged(node: Node) -> tuple[Node, bool] | None:
    """Returns the operand of a transpose or of a reshape of a vector, and whether it turns that."""
    if not isinstance(node.op, Operator):
        return None
    inner = exchanged(node)
    if inner is not None:
        return inner, True
    if node.op is get("reshape") and node.type.ndim == 2:
        inner = node.operands[0]
        shape = node.type.shape
        return (inner, shape[0] == 1) if inner.type.ndim == 1 and 1 in shape else None
    return None


def _is_product(node: Node) -> bool:
    """Whether ``node`` multiplies matrices or vectors, all of one dtype and of known lengths."""
    if node.op not in (get("matmul"), get("dot")):
        return False
    x, y = (one.type for one in node.operands)
    if node.op is get("dot") and (not x.ndim or not 0 < y.ndim < 3):
        return False
    alike = all(VarType(one.shape, node.type.dtype) is one for one in (x, y, node.type))
    return alike and not any(map(is_symbolic, (*x.shape, *y.shape)))


# Building ----------------------------------------------------------------------------------------


class _Value(NamedTuple):
    """The value of a tree: a matrix, or a vector that stands for a row or a column.

    Attributes:
        node: the value; a row, a column or a number has fewer axes than a matrix.
        rows: whether it has an axis of rows.
        columns: whether it has an axis of columns.
    """

    node: Node
    rows: bool
    columns: bool


class _Building:
    """Builds the calls of trees, each product once."""

    def __init__(self, image: Images) -> None:
        self._image = image
        self._made: dict[_Tree, _Value] = {}

    def result(self, node: Node, tree: _Tree) -> Node:
        """Returns the value of ``tree`` in place of ``node``."""
        value = self._value(tree).node
        if value.type != node.type:
            value = call("reshape", value, shape=node.type.shape)
        return named(value, node.name)

    def _value(self, tree: _Tree) -> _Value:
        value = self._made.get(tree)
        if value is None:
            twin = self._made.get(_turned(tree))
            value = self._new(tree) if twin is None else _transposed(twin)
            self._made[tree] = value
        return value

    def _new(self, tree: _Tree) -> _Value:
        if isinstance(tree, _Factor):
            flat = tree.node.type.ndim == 1
            value = _Value(self._image.value(tree.node), rows=True, columns=not flat)
            return _transposed(value) if tree.turned else value
        left, right = map(self._value, tree)
        x, y = left.node, right.node
        if not left.columns:
            x = call("reshape", x, shape=(*x.type.shape, 1))
        if not right.rows:
            y = call("reshape", y, shape=(1, *y.type.shape))
        return _Value(call("matmul", x, y), left.rows, right.columns)


def _transposed(value: _Value) -> _Value:
    node = value.node
    if value.rows and value.columns:
        n = node.type.ndim
        node = call("permute_dims", node, axes=(*range(n - 2), n - 1, n - 2))
    return _Value(node, value.columns, value.rows)
