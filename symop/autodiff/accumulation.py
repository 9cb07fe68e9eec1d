"""Accumulation of the gradients that reach one value, in a form that lets equal sums become one.

Gradients of gradients mostly sum the same few products, repeated, in different orders and with
different signs. A form that is independent of these differences makes equal sums the same node: the
terms are in the order of the graph, each is counted, and signs and powers of two are moved in front
of products and sums.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from registry.operator.operator import Operator
from registry.table import get
from registry.types import VarKind, VarType, is_floating
from symop.graph.algebra import multiple
from symop.graph.nodes import Node, constant, contains_gradient
from symop.graph.origins import ambient

Sum = Callable[[Sequence[Node]], Node]
"""Maps the gradients that reach a value to their sum."""

LARGEST = 256
"""The largest multiple of a term: integers up to this are exact in every dtype that is counted."""
LONGEST = 16
"""The most terms that are added one by one, so that sums with equal beginnings share them."""
_DEPTH = 2
"""The depth to which nested products are searched; makers nest cotangent and factors no deeper."""
_LAYERS = 4
"""The number of nested signs and multiples that are searched, which keeps the time linear."""


def accumulate(contributions: Sequence[Node]) -> Node:
    """Returns the sum of the gradients that reach one value."""
    if len(contributions) == 1:
        return contributions[0]
    total: Node = get("add_n")(*contributions)
    return total


class Accumulation(NamedTuple):
    """The form of a derivative's sums.

    Attributes:
        of: Maps a graph to the function that sums the gradients reaching one of its values.
        exposing: Whether a user may hold values of the graph, which are then not looked through.
    """

    of: Callable[[Sequence[Node]], Sum]
    exposing: bool

    def held_by_users(self, order: Sequence[Node], *ends: Iterable[Node]) -> set[Node] | None:
        """Returns the derivatives in ``order`` that users may hold; None if they hold none."""
        return _exposed(order, itertools.chain(*ends)) if self.exposing else None


def _in_order(_order: Sequence[Node]) -> Sum:
    return accumulate


def _canonical_if_higher(order: Sequence[Node]) -> Sum:
    """Returns canonical sums if the graph ``order`` contains gradients, and plain ones otherwise.

    A first derivative is left as its makers wrote it, since it has few equal sums. So are the
    derivatives of a program, where every value has a name by which it may be differentiated.
    """
    if ambient.node_of is not None:
        return accumulate
    return Sums(order) if contains_gradient(order) else accumulate


IN_ORDER = Accumulation(_in_order, exposing=False)
"""Sums in the order in which gradients arrive."""
CANONICAL = Accumulation(_canonical_if_higher, exposing=True)
"""Sums for derivatives of a user's graph, which may be differentiated again."""


def _exposed(order: Iterable[Node], ends: Iterable[Node]) -> set[Node]:
    """Returns the derivatives a user holds: the ``ends`` and the operands of a user's calls."""
    result = set(ends)
    for node in order:
        if not node.derived:
            result.update(one for one in node.operands if one.derived)
    return result


class Term(NamedTuple):
    """The product ``times * core`` of a nonzero integer and a node."""

    times: int
    core: Node

    def value(self) -> Node:
        """Returns the node of the product."""
        if self.times == 1:
            return self.core
        result: Node
        if self.core.constant is not None:  # constants are multiplied immediately
            result = get("multiply")(self.core, constant(float(self.times), self.core.type))
        elif self.times == -1:
            result = get("negative")(self.core)
        else:
            result = get("scale")(self.core, scale=float(self.times))
        return result


class Sums:
    """The sums of one traversal of a graph.

    Terms are in the order of the graph, followed by other terms in the order of their first use. A
    sum is therefore independent of the order in which its terms arrive, and depends only on the
    graph.
    """

    def __init__(self, order: Sequence[Node]) -> None:
        """Ranks the nodes of ``order``."""
        self._ranks = {node: rank for rank, node in enumerate(order)}

    def __call__(self, contributions: Sequence[Node]) -> Node:
        """Returns the sum of ``contributions``."""
        type = contributions[0].type
        if not _is_counted(type) or any(one.type != type for one in contributions):
            return accumulate(contributions)
        present = [one for one in contributions if one.constant != 0] or contributions[:1]
        terms = sorted(_counted(map(term_of, present)), key=self._rank)
        front = _front([one.times for one in terms])
        rest = [Term(times // front, core) for times, core in terms]
        return Term(front, _added(rest)).value()

    def _rank(self, term: Term) -> tuple[int, bool]:
        return self._ranks.setdefault(term.core, len(self._ranks)), term.times < 0


def _is_counted(type: VarType) -> bool:
    """Whether ``n * x`` equals the sum of ``n`` terms ``x`` for all values of ``type``.

    A complex product with a real number is NaN at infinity, and a one-byte float represents few
    integers.
    """
    real = is_floating(type.dtype)
    return type.kind is VarKind.LOD_TENSOR and real and type.dtype.itemsize >= 2


def _counted(terms: Iterable[Term]) -> Iterator[Term]:
    """Merges equal terms of the same sign; ``x - x`` is kept, because it is NaN at infinity."""
    counts: dict[tuple[Node, bool], int] = {}
    for times, core in terms:
        key = core, times > 0
        if abs(counts.get(key, 0) + times) > LARGEST:
            yield Term(counts.pop(key), core)
        counts[key] = counts.get(key, 0) + times
    yield from (Term(times, core) for (core, _), times in counts.items())


def _front(numbers: Sequence[int]) -> int:
    """Returns the factor in front of a sum: the first term's sign times a common power of two.

    For a single term it is the whole integer.
    """
    if len(numbers) == 1:
        return numbers[0]
    power = _power(math.gcd(*numbers))
    return power if numbers[0] > 0 else -power


def _power(number: int) -> int:
    """Returns the largest power of two that divides ``number``."""
    return number & -number


def _added(terms: Sequence[Term]) -> Node:
    if len(terms) > LONGEST:
        return accumulate([one.value() for one in terms])
    total = terms[0].value()
    for times, core in terms[1:]:
        step = get("add") if times > 0 else get("subtract")
        total = step(total, Term(abs(times), core).value())
    return total


# Factors in front of products --------------------------------------------------------------------


def term_of(node: Node, depth: int = _DEPTH) -> Term:
    """Writes ``node`` as a multiple, with factors in front of a product's operands moved outside.

    This is exact for signs, and for powers of two unless a number leaves the range of its dtype;
    nothing overflows that did not before. In two-byte dtypes, only signs are moved.
    """
    times, core = _multiple(node)
    product_parts = _factors(core) if depth else None
    if product_parts is None:
        return Term(times, core)
    operator, factors, movable = product_parts
    moved = [
        _moved(one, depth - 1) if may else Term(1, one)
        for one, may in zip(factors, movable, strict=True)
    ]
    if all(one.core is factor for one, factor in zip(moved, factors, strict=True)):
        return Term(times, core)
    product = operator(*[one.core for one in moved])
    if product.types != core.types:
        return Term(times, core)
    whole = Term(times * math.prod(one.times for one in moved), product)
    return whole if abs(whole.times) <= LARGEST else Term(1, whole.value())


def _multiple(node: Node) -> Term:
    """Writes ``node`` as a multiple by the signs and integers in front of it."""
    term = Term(1, node)
    for _ in range(_LAYERS):
        inner = _inner(term.core)
        if inner is None or inner.core.types != node.types:
            break
        if abs(term.times * inner.times) > LARGEST:
            break
        term = Term(term.times * inner.times, inner.core)
    return term


def _inner(node: Node) -> Term | None:
    """Writes ``node`` as a multiple of its operand if it is a negation or an integer multiple."""
    scaled = multiple(node) if _is_open(node) else None
    return None if scaled is None else _whole(*scaled)


def _is_open(node: Node) -> bool:
    """Whether differentiation made ``node``, and no user holds it."""
    return node.derived is not None and node.applied(node.op) is not None


def _whole(factor: float, core: Node) -> Term | None:
    """Returns ``factor * core`` if the factor is an integer within range, else None."""
    if isinstance(factor, bool):
        return None
    exact = 1 <= abs(factor) <= LARGEST and factor == int(factor)
    return Term(int(factor), core) if exact else None


def _factors(node: Node) -> tuple[Operator, Sequence[Node], Sequence[bool]] | None:
    """Returns operator, operands and which of them a factor may leave; None for other operators.

    A factor may leave only an operand that is not broadcast: otherwise more entries would be
    multiplied.
    """
    for name, movable in (("multiply", (True, True)), ("divide", (True, False))):
        operator = get(name)
        if node.op is operator and _is_open(node):
            factors = node.operands
            whole = [one.types == node.types for one in factors]
            return operator, factors, [a and b for a, b in zip(whole, movable, strict=True)]
    return None


def _moved(factor: Node, depth: int) -> Term:
    """Writes ``factor`` as the sign and power of two that may leave it, times the rest."""
    times, core = term_of(factor, depth)
    power = _power(times) if factor.type.dtype.itemsize > 2 else 1
    front = power if times > 0 else -power
    return Term(front, Term(times // front, core).value())
