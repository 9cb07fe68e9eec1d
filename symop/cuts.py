"""Cuts: which values of a long chain XLA must not fuse with what reads them.

XLA fuses operators that compute entries one by one, and copies an operator into every fusion that
reads it. In a chain with its gradient each value is read twice, far apart: the copies, and with
them compile time and run time, grow as the square of the length. A chain that is cut at every
``STRIDE`` operators grows linearly. What is no longer than ``LONG`` is left as it is.

An operator's level is the length of the longest chain that ends with it. Cuts lie where the level
is a multiple of the stride, so those of a gradient lie beside those of the values that it reads.
Edges may leap over these levels; a way along such edges is cut when it is three strides long. What
reads many values is cut too, and if it is their sum (of all gradients that reach one value, say)
it is lowered as sums of so few.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import jax

from registry.attributes import identity_key
from registry.bodies import bodies_of
from registry.infer import abstract
from registry.operator import Operator
from registry.types import KEY_TYPE, TRAINING_TYPE, VarKind, VarType
from symop.graph import SELECT, Node
from symop.primitives import ENTRYWISE, REARRANGING, each_is

LONG = 128
"""Chains of so many operators XLA compiles well."""
STRIDE = 32
"""How many operators are between one cut and the next."""
_MEMO_LIMIT = 8192
_memo: dict[Any, bool] = {}


def cuts(order: Sequence[Node]) -> set[Node]:
    """The values of ``order``, a topological order, that are cut off from what reads them."""
    if len(order) <= LONG or max(_levels(order, _is_operator).values()) <= LONG:
        return set()
    levels = _levels(order, is_fused)
    if max(levels.values()) <= LONG:
        return set()
    return _chosen(order, levels, *_ahead(order, levels))


def _levels(order: Sequence[Node], counts: Callable[[Node], bool]) -> dict[Node, int]:
    """The length of the longest chain of nodes that count and end with a node."""
    levels: dict[Node, int] = {}
    for node in order:
        if node.op is SELECT:
            levels[node] = levels.get(node.operands[0], 0)
        elif counts(node):
            levels[node] = 1 + max([levels.get(one, 0) for one in node.operands], default=0)
        else:
            levels[node] = 0
    return levels


def _ahead(order: Sequence[Node], levels: Mapping[Node, int]) -> tuple[dict[Node, int], set[Node]]:
    """How many operators the longest chain has that goes on from a node, and where it does so.

    A value goes on at once if an operator of the next level reads it.
    """
    heights = dict.fromkeys(order, 0)
    passing = set()
    for node in reversed(order):
        if not levels[node]:
            continue
        counted = node.op is not SELECT
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
    runs: dict[Node, int] = {}  # operators since the last cut
    for node in order:
        level = levels[node]
        if level + heights[node] <= LONG or not level:
            continue
        behind = [runs[one] for one in node.operands if one in runs]
        run = max(behind, default=0) + (node.op is not SELECT)
        due = (level % STRIDE == 0 and node in passing) or run >= 3 * STRIDE
        whole = not isinstance(node.op, Operator) or node.op.single
        if whole and (due or len(behind) > STRIDE):
            chosen.add(node)
            run = 0
        runs[node] = run
    return chosen


# Which operators are fused ---------------------------------------------------------------------


def _is_operator(node: Node) -> bool:
    return isinstance(node.op, Operator)


def is_fused(node: Node) -> bool:
    """Whether ``node`` computes or rearranges entries one by one, so that XLA fuses it."""
    operator = node.op
    if not isinstance(operator, Operator) or operator.opaque or bodies_of(node.attributes):
        return False
    given = _given(node, operator)
    if node.types is None or not _may_be(operator, given, node.types):
        return False
    # A float moves no entry to another place: operators that differ by one alone are alike.
    alike = tuple([0.0 if isinstance(one, float) else one for one in node.attributes])
    key = operator, identity_key(alike), given
    found = _memo.get(key)
    if found is None:
        if len(_memo) >= _MEMO_LIMIT:
            _memo.clear()
        found = _memo[key] = _is_so(operator, node.attributes, given)
    return found


def _given(node: Node, operator: Operator) -> tuple[VarType | None, ...]:
    """Types of the inputs; that of the training flag, whether it is open or fixed."""
    given = [None if one is None else one.type for one in node.inputs]
    if operator.training_index is not None:
        given[operator.training_index] = TRAINING_TYPE
    return tuple(given)


def _may_be(operator: Operator, given: Sequence[VarType | None], types: Sequence[VarType]) -> bool:
    """What can be told without looking at the kernel: most other operators change the shape."""
    arrays = [one for one in given if one is not None and one not in (KEY_TYPE, TRAINING_TYPE)]
    if not arrays or any(one.kind is not VarKind.LOD_TENSOR for one in (*arrays, *types)):
        return False
    largest = max((one.shape for one in arrays), key=math.prod)
    return operator.rearranges or all(one.shape == largest for one in types)


def _is_so(
    operator: Operator, attributes: tuple[Any, ...], given: Sequence[VarType | None]
) -> bool:
    arrays = [one for one in given if one is not None and one is not TRAINING_TYPE]

    def run(*values: Any) -> Any:
        supply = iter(values)
        inputs = [
            None if one is None else False if one is TRAINING_TYPE else next(supply)
            for one in given
        ]
        return operator.run(tuple(inputs), attributes)

    try:
        program = jax.make_jaxpr(run)(*map(abstract, arrays))
    except Exception:  # a kernel that wants values, which lowering will give it or refuse
        return False
    return each_is(_is_fused, program.jaxpr, [one is not KEY_TYPE for one in arrays])


def _is_fused(equation: Any) -> bool:
    return equation.primitive.name in ENTRYWISE or equation.primitive.name in REARRANGING
