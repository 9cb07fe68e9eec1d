"""Sums, products, multiples and transposes: the operators of which derivatives are composed.

Rewrites recognize them here, and nowhere else.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from registry.operator.operator import Operator
from registry.table import get
from symop.graph.nodes import Node


def is_sum(node: Node) -> bool:
    """Whether ``node`` is a sum of gradients, which may be computed in parts."""
    return node.op is get("add_n")


def is_addition(node: Node) -> bool:
    """Whether ``node`` adds its inputs."""
    return node.op in (get("add"), get("add_n"))


def is_product(node: Node) -> bool:
    """Whether ``node`` is the product of two values, entry by entry."""
    return node.op is get("multiply")


def multiple(node: Node) -> tuple[float, Node] | None:
    """Returns the number and the value whose product is ``node``; None for other operators."""
    if node.op is get("negative"):
        return -1.0, node.operands[0]
    if node.op is get("scale"):
        return node.attributes[0], node.operands[0]
    if is_product(node):
        for number, value in (node.operands, node.operands[::-1]):
            if isinstance(number.constant, (int, float)):
                return number.constant, value
    return None


def summands(node: Node) -> list[tuple[float, Node]] | None:
    """Returns the numbers and values whose products add up to ``node``; None for other operators.

    A value occurs as often as ``node`` adds it.
    """
    if is_addition(node):
        return [(1.0, one) for one in node.operands]
    scaled = multiple(node)
    return None if scaled is None else [scaled]


_TRANSPOSES: Mapping[str, Callable[..., Any]] = {
    "permute_dims": np.transpose,
    "swapaxes": np.swapaxes,
    "moveaxis": np.moveaxis,
}


def exchanged(node: Node) -> Node | None:
    """Returns the value whose last two axes ``node`` exchanges; None for other operators."""
    transpose = next((one for name, one in _TRANSPOSES.items() if node.op is get(name)), None)
    if transpose is None or node.ndim < 2:
        return None
    assert isinstance(node.op, Operator)
    *rest, row, col = range(node.ndim)
    numbered = np.empty((*rest, row, col))  # the length of each axis is its number
    moved = transpose(numbered, **node.op.attribute_dict(node.attributes))
    return node.operands[0] if moved.shape == (*rest, col, row) else None
