"""Sums over slices of results of a body, taken within products.

The gradient of a matrix that is the same for each slice is a sum over slices of products of two
vectors. Computed slice by slice, it takes the memory and time of a matrix for each slice;
contracted over the slices, it is one product of two matrices.
"""

import string
from collections.abc import Sequence
from typing import NamedTuple

from registry.table import get
from symop.graph.algebra import summands
from symop.graph.nodes import Node


class NodeTerm(NamedTuple):
    """A term of a sum over slices: a number times a value, or times a product of two values.

    Attributes:
        scale: the number.
        factors: one or two values.
        equation: how ``einsum`` contracts the stacked factors; empty for one factor.
    """

    scale: float
    factors: tuple[Node, ...]
    equation: str


def terms_of(result: Node, moving: set[Node]) -> list[NodeTerm]:
    """Returns the terms of the sum of ``result`` over slices; ``moving`` differ from each other."""
    terms: list[NodeTerm] = []
    waiting = [(1.0, result)]
    while waiting:
        scale, node = waiting.pop()
        parts = _parts(node) if node in moving else None
        if parts is not None:
            waiting += [(scale * factor, one) for factor, one in reversed(parts)]
        else:
            equation = _contraction(node, moving)
            factors = tuple(node.operands) if equation else (node,)
            terms.append(NodeTerm(scale, factors, equation))
    return terms


def _parts(node: Node) -> list[tuple[float, Node]] | None:
    """Returns values with factors whose sum is ``node``, or None."""
    if any(one.types != node.types for one in node.operands):
        return None
    return summands(node)


def _contraction(node: Node, moving: set[Node]) -> str:
    """Returns the equation of the sum of a product over slices; empty if it is taken afterwards."""
    inputs = node.operands
    if len(inputs) != 2 or not moving.issuperset(inputs):
        return ""
    left, comma, rest = _equation(node).partition(",")
    right, arrow, out = rest.partition("->")
    slices = next((one for one in string.ascii_letters if one not in left + right), "")
    if not (comma and arrow and slices) or "." in left + right or left == right == out:
        return ""
    return f"{slices}{left},{slices}{right}->{out}"


def _equation(node: Node) -> str:
    """Returns the equation of a product as ``einsum`` writes it; empty for other operators."""
    if node.op is get("einsum"):
        return str(node.attributes[0]).replace(" ", "")
    is_plain = node.op is get("matmul") and not node.attributes
    return "ab,bc->ac" if is_plain and all(one.ndim == 2 for one in node.operands) else ""


def distinct(terms: Sequence[Sequence[NodeTerm]]) -> list[Node]:
    """Returns all factors, each once."""
    return list(dict.fromkeys(one for each in terms for term in each for one in term.factors))
