"""Sums of the gradients that reach one value, written so that equal sums become one node.

What is summed for gradients of gradients is mostly the same few products, in another order, with
other signs, and several times. A form that does not hang on these lets them meet: the terms in the
order of the graph, each counted, with signs and powers of two in front of products and sums.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from registry.operator import Operator
from registry.table import get
from registry.types import VarKind, VarType, is_extended_float
from registry.var import Attributes, Inputs
from symop.graph import Node, constant, contains_gradient
from symop.origins import ambient

Sum = Callable[[Sequence[Node]], Node]
"""From the gradients that reach a value to their sum."""

LARGEST = 256
"""How often a term may be counted: whole numbers up to this are exact in every dtype counted in."""
LONGEST = 16
"""How many terms are added one by one, so that sums which begin alike share that beginning."""
_DEPTH = 2
"""How deep into nested products is looked: makers write cotangent and factors in no more."""
_LAYERS = 4
"""Through how many signs and numbers in front of each other is looked, so that time is linear."""


def accumulate(contributions: Sequence[Node]) -> Node:
    """The sum of the gradients that reach one value."""
    if len(contributions) == 1:
        return contributions[0]
    total: Node = get("add_n")(*contributions)
    return total


def is_sum(node: Node) -> bool:
    """Whether ``node`` is a sum as ``accumulate`` makes them, so that parts may be summed first."""
    return node.op is get("add_n")


def plain(_order: Sequence[Node]) -> Sum:
    """Sums as the gradients arrive."""
    return accumulate


def meeting(order: Sequence[Node]) -> Sum:
    """Sums that meet equal ones, where gradients in the graph ``order`` are differentiated again.

    A first gradient is left as its makers wrote it: there is little to meet. So are those of a
    program, each value of which has a name by which a derivative may be asked for.
    """
    if ambient.node_of is not None:
        return accumulate
    return Sums(order) if contains_gradient(order) else accumulate


class Term(NamedTuple):
    """``times * core``; the number is a whole number other than zero."""

    times: int
    core: Node

    def value(self) -> Node:
        """The node that it is."""
        if self.times == 1:
            return self.core
        made: Node
        if self.core.constant is not None:  # constants are multiplied at once
            made = get("multiply")(self.core, constant(float(self.times), self.core.type))
        elif self.times == -1:
            made = get("negative")(self.core)
        else:
            made = get("scale")(self.core, scale=float(self.times))
        return made


class Sums:
    """The sums of one traversal of a graph.

    Terms are in the order of the graph and behind it in that of their first use; so a sum is the
    same however its terms arrive, and hangs on nothing but the graph.
    """

    def __init__(self, order: Sequence[Node]) -> None:
        """Rank the nodes of ``order``."""
        self._ranks = {node: rank for rank, node in enumerate(order)}

    def __call__(self, contributions: Sequence[Node]) -> Node:
        """The sum of ``contributions``."""
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
    """Whether ``n * x`` is what adding ``x`` so often means, for all numbers of ``type``.

    A complex product by a real number is a NaN at infinity, and a byte holds few whole numbers.
    """
    real = type.dtype.kind == "f" or is_extended_float(type.dtype)
    return type.kind is VarKind.LOD_TENSOR and real and type.dtype.itemsize >= 2


def _counted(terms: Iterable[Term]) -> Iterator[Term]:
    """``terms``, equal ones of one sign counted: ``x - x`` stays, for it is a NaN at infinity."""
    counts: dict[tuple[Node, bool], int] = {}
    for times, core in terms:
        key = core, times > 0
        if abs(counts.get(key, 0) + times) > LARGEST:
            yield Term(counts.pop(key), core)
        counts[key] = counts.get(key, 0) + times
    yield from (Term(times, core) for (core, _), times in counts.items())


def _front(numbers: Sequence[int]) -> int:
    """What stands in front of a sum: the sign of its first term, and a power of two common to all.

    Of one term it is the whole number.
    """
    if len(numbers) == 1:
        return numbers[0]
    power = _power(math.gcd(*numbers))
    return power if numbers[0] > 0 else -power


def _power(number: int) -> int:
    """The largest power of two that divides ``number``."""
    return number & -number


def _added(terms: Sequence[Term]) -> Node:
    if len(terms) > LONGEST:
        return accumulate([one.value() for one in terms])
    total = terms[0].value()
    for times, core in terms[1:]:
        step = get("add") if times > 0 else get("subtract")
        total = step(total, Term(abs(times), core).value())
    return total


# What stands in front of products ----------------------------------------------------------------


def term_of(node: Node, depth: int = _DEPTH) -> Term:
    """``node`` as a multiple; what stands in front of a factor of a product stands before it then.

    That is exact for signs, and for powers of two as long as no number leaves the range of its
    dtype: none overflows that did not before. Out of numbers of two bytes signs alone move.
    """
    times, core = _multiple(node)
    given = _factors(core) if depth else None
    if given is None:
        return Term(times, core)
    operator, factors, movable = given
    found = [
        _moved(one, depth - 1) if may else Term(1, one)
        for one, may in zip(factors, movable, strict=True)
    ]
    if all(one.core is factor for one, factor in zip(found, factors, strict=True)):
        return Term(times, core)
    product = operator(*[one.core for one in found])
    if product.types != core.types:
        return Term(times, core)
    whole = Term(times * math.prod(one.times for one in found), product)
    return whole if abs(whole.times) <= LARGEST else Term(1, whole.value())


def _multiple(node: Node) -> Term:
    """What ``node`` is a multiple of, by the signs and whole numbers in front of it."""
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
    """``node`` as a multiple of what it is computed from, where it is one at first sight."""
    if (negated := _applied(node, get("negative"))) is not None:
        return Term(-1, negated[0][0])
    if (scaled := _applied(node, get("scale"))) is not None:
        return _whole(scaled[1][0], scaled[0][0])
    if (product := _applied(node, get("multiply"))) is not None:
        x, y = product[0] if product[0][0].constant is not None else product[0][::-1]
        return _whole(x.constant, y)
    return None


def _applied(node: Node, operator: Operator) -> tuple[Inputs, Attributes] | None:
    """What ``node`` applies ``operator`` to, if differentiation made it and no user holds it."""
    made = node.origin is not None and node.origin.forward is not None
    return node.applied(operator) if made else None


def _whole(factor: object, core: Node) -> Term | None:
    """``factor * core``, if that is a whole number that may stand in front."""
    if isinstance(factor, bool) or not isinstance(factor, (int, float)):
        return None
    exact = 1 <= abs(factor) <= LARGEST and factor == int(factor)
    return Term(int(factor), core) if exact else None


def _factors(node: Node) -> tuple[Operator, Sequence[Node], Sequence[bool]] | None:
    """Operator, inputs, and out of which of them a number may be moved; None if out of none.

    None of them is broadcast: it would be multiplied in more entries then.
    """
    for name, movable in (("multiply", (True, True)), ("divide", (True, False))):
        operator = get(name)
        applied = _applied(node, operator)
        if applied is not None:
            whole = [one.types == node.types for one in applied[0]]
            return operator, applied[0], [a and b for a, b in zip(whole, movable, strict=True)]
    return None


def _moved(factor: Node, depth: int) -> Term:
    """``factor`` as the sign and the power of two that may leave it, and the rest."""
    times, core = term_of(factor, depth)
    power = _power(times) if factor.type.dtype.itemsize > 2 else 1
    front = power if times > 0 else -power
    return Term(front, Term(times // front, core).value())
