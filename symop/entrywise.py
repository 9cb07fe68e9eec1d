"""Whether a graph is entrywise: an entry of a value depends on one entry of another alone."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from symop.graph import ARRAY, CONSTANT, KEY, TRAINING, Node, topological
from symop.lowering import Schedule, bare
from symop.primitives import ENTRYWISE, each_is

_IF_OF_ONE_SHAPE = frozenset(["broadcast_in_dim", "reshape"])
"""Those for which that is so where the result has the shape of the operand."""


def is_entrywise(y: Node, x: Node) -> bool:
    """Whether ``y`` has the shape of ``x``, and its entries depend on those of ``x`` one by one.

    What else ``y`` depends on is held fixed. The answer is read off the primitives of JAX that
    compute ``y``, in training and in prediction; where one of them is not known to be entrywise,
    it is no.
    """
    if y.type.shape != x.type.shape:
        return False
    order = topological([y], until=[x])
    modes = (False, True) if any(node.op is TRAINING for node in order) else (False,)
    return all(_is_so(order, y, x, training) for training in modes)


def _is_so(order: Sequence[Node], y: Node, x: Node, training: bool) -> bool:
    fed = [n for n in order if not n.operands and n is not x and _is_fed(n)]
    schedule = Schedule([y], [x, *fed], bare, training=training)
    given = [np.empty(n.type.shape, n.type.dtype) for n in (x, *fed)]
    key = (jax.random.key(0), 0) if schedule.needs_key else ()
    traced = jax.make_jaxpr(lambda values: schedule(values, *key)[0])(given)
    return each_is(_keeps_entries, traced.jaxpr, [True, *[False] * len(fed)])


def _is_fed(node: Node) -> bool:
    return node.op not in (CONSTANT, ARRAY, KEY, TRAINING)


def _keeps_entries(equation: Any) -> bool:
    name = equation.primitive.name
    if name in _IF_OF_ONE_SHAPE:
        return bool(equation.invars[0].aval.shape == equation.outvars[0].aval.shape)
    return name in ENTRYWISE
