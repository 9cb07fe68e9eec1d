"""Entrywise graphs, in which an entry of one value depends on a single entry of another."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from registry.primitives import ENTRYWISE, each_is, primitives_named
from symop.graph.nodes import ARRAY, CONSTANT, KEY, TRAINING, Node, topological
from symop.lowering.steps import Schedule, bare

_IF_OF_ONE_SHAPE = primitives_named("broadcast_in_dim", "reshape")
"""The primitives that are entrywise if the result has the shape of the operand."""


def is_entrywise(y: Node, x: Node) -> bool:
    """Whether ``y`` has the shape of ``x``, and each entry depends on that entry of ``x`` only.

    Other inputs of ``y`` are held fixed. The answer is derived from the JAX primitives that compute
    ``y``, in training and in prediction; it is False if one is not known to be entrywise.
    """
    if y.type.shape != x.type.shape:
        return False
    order = topological([y], until=[x])
    modes = (False, True) if any(node.op is TRAINING for node in order) else (False,)
    return all(_is_so(order, y, x, training) for training in modes)


def _is_so(order: Sequence[Node], y: Node, x: Node, training: bool) -> bool:
    fed = [n for n in order if not n.operands and n is not x and _is_fed(n)]
    schedule = Schedule([y], [x, *fed], bare, training=training)
    arrays = [np.empty(n.type.shape, n.type.dtype) for n in (x, *fed)]
    key = (jax.random.key(0), 0) if schedule.needs_key else ()
    traced = jax.make_jaxpr(lambda values: schedule(values, *key)[0])(arrays)
    return each_is(_keeps_entries, traced.jaxpr, [True, *[False] * len(fed)])


def _is_fed(node: Node) -> bool:
    return node.op not in (CONSTANT, ARRAY, KEY, TRAINING)


def _keeps_entries(equation: Any) -> bool:
    if equation.primitive in _IF_OF_ONE_SHAPE:
        return bool(equation.invars[0].aval.shape == equation.outvars[0].aval.shape)
    return equation.primitive in ENTRYWISE
