"""Fusion barriers in long chains of operators.

XLA fuses entrywise operators and copies an operator into every fusion that reads it. In a chain
with its gradient, each value is read twice, far apart, so that the copies, and with them compile
time and run time, grow as the square of the length. With a barrier after every ``STRIDE``
operators they grow linearly. Chains of at most ``LONG`` operators are unchanged.

An operator's level is the length of the longest chain that ends with it. Barriers are placed where
the level is a multiple of the stride, so those of a gradient are next to those of the values that
it reads. Edges may skip these levels; a path along such edges gets a barrier after three strides.
An operator that reads many values gets a barrier as well, and if it is a sum (such as that of all
gradients that reach one value) it is lowered as sums of at most ``STRIDE`` terms.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import jax

from registry.caches import Memo
from registry.jax_derivatives.calculus import opened
from registry.operator.attributes import identity_key
from registry.operator.bodies import bodies_of
from registry.operator.operator import Operator
from registry.primitives import ENTRYWISE, REARRANGING, each_is
from registry.types import KEY_TYPE, TRAINING_TYPE, VarKind, VarType
from symop.graph.nodes import Node

LONG = 128
"""The length up to which XLA compiles chains well."""
STRIDE = 32
"""The number of operators between barriers."""
_memo: Memo[Any, bool] = Memo()


def cuts(order: Sequence[Node]) -> set[Node]:
    """Returns the values of ``order`` (topological) that get a fusion barrier."""
    if len(order) <= LONG or max(_levels(order, _is_operator).values()) <= LONG:
        return set()
    levels = _levels(order, is_fused)
    if max(levels.values()) <= LONG:
        return set()
    return _chosen(order, levels, *_ahead(order, levels))


def _levels(order: Sequence[Node], counts: Callable[[Node], bool]) -> dict[Node, int]:
    """Returns, for each node, the length of the longest chain of counted nodes that ends there."""
    levels: dict[Node, int] = {}
    for node in order:
        if node.is_selection:
            levels[node] = levels.get(node.source, 0)
        elif counts(node):
            levels[node] = 1 + max([levels.get(one, 0) for one in node.operands], default=0)
        else:
            levels[node] = 0
    return levels


def _ahead(order: Sequence[Node], levels: Mapping[Node, int]) -> tuple[dict[Node, int], set[Node]]:
    """Returns the length of the longest chain after each node, and the nodes that chains continue.

    A chain continues a node if an operator of the next level reads it.
    """
    heights = dict.fromkeys(order, 0)
    passing = set()
    for node in reversed(order):
        if not levels[node]:
            continue
        counted = not node.is_selection
        for one in node.operands:
            heights[one] = max(heights.get(one, 0), heights[node] + counted)
            if levels[node] == levels.get(one, 0) + counted:
                passing.add(one)
    return heights, passing


def _chosen(
    order: Sequence[Node],
    levels: Mapping[Node, int],
    heights: Mapping[Node, int],
    passing: Collection[Node],
) -> set[Node]:
    chosen: set[Node] = set()
    runs: dict[Node, int] = {}  # operators since the last barrier
    for node in order:
        level = levels[node]
        if level + heights[node] <= LONG or not level:
            continue
        behind = [runs[one] for one in node.operands if one in runs]
        run = max(behind, default=0) + (not node.is_selection)
        due = (level % STRIDE == 0 and node in passing) or run >= 3 * STRIDE
        whole = not isinstance(node.op, Operator) or node.op.single
        if whole and (due or len(behind) > STRIDE):
            chosen.add(node)
            run = 0
        runs[node] = run
    return chosen


# Fused operators -------------------------------------------------------------------------------


def _is_operator(node: Node) -> bool:
    return isinstance(node.op, Operator)


def is_fused(node: Node) -> bool:
    """Whether ``node`` computes or rearranges entries one by one, so that XLA fuses it."""
    operator = node.op
    if not isinstance(operator, Operator) or operator.opaque or bodies_of(node.attributes):
        return False
    types = _input_types(node, operator)
    if node.types is None or not _may_be(operator, types, node.types):
        return False
    # The value of a float does not affect which entries are read, so it is left out of the key.
    alike = tuple([0.0 if isinstance(one, float) else one for one in node.attributes])
    key = operator, identity_key(alike), types
    entry = _memo.get(key)
    return _memo.put(key, _is_so(operator, node.attributes, types)) if entry is None else entry


def _input_types(node: Node, operator: Operator) -> tuple[VarType | None, ...]:
    """Returns the types of the inputs; that of the training flag whether it is open or fixed."""
    types = [None if one is None else one.type for one in node.inputs]
    if operator.training_index is not None:
        types[operator.training_index] = TRAINING_TYPE
    return tuple(types)


def _may_be(operator: Operator, inputs: Sequence[VarType | None], types: Sequence[VarType]) -> bool:
    """Whether it may be fused, judged by types alone: most other operators change the shape."""
    arrays = [one for one in inputs if one is not None and one not in (KEY_TYPE, TRAINING_TYPE)]
    if not arrays or any(one.kind is not VarKind.LOD_TENSOR for one in (*arrays, *types)):
        return False
    largest = max((one.shape for one in arrays), key=math.prod)
    return operator.rearranges or all(one.shape == largest for one in types)


def _is_so(
    operator: Operator, attributes: tuple[Any, ...], inputs: tuple[VarType | None, ...]
) -> bool:
    run, present, structs = opened(operator, inputs, attributes)
    try:
        program = jax.make_jaxpr(run)(*structs)
    except Exception:  # a kernel that needs values, which lowering supplies or refuses
        return False
    return each_is(_is_fused, program.jaxpr, [one is not KEY_TYPE for _, one in present])


def _is_fused(equation: Any) -> bool:
    return equation.primitive in ENTRYWISE or equation.primitive in REARRANGING
