"""Softmax over the leaves of a tree."""

from typing import Any

import jax.numpy as jnp
import numpy as np

import symop as so
from symop.interop.paddle.operators import operator

_BOUND = 40.0


@operator(
    "hierarchical_sigmoid",
    "hsigmoid_loss",
    outputs="Out PreOut W_Out",
    no_gradient="Label PathTable PathCode",
    ignored="remote_prefetch trainer_id height_sections epmap table_names is_distributed",
)
def hierarchical_sigmoid(
    X: Any,
    W: Any,
    Label: Any,
    PathTable: Any = None,
    PathCode: Any = None,
    Bias: Any = None,
    *,
    num_classes: int = 2,
    is_sparse: bool = False,
) -> Any:
    label = so.reshape(Label, shape=(-1,))
    if PathTable is None:
        rows, bits = _paths(label, num_classes)
    elif PathTable.shape[0] == X.shape[0]:
        rows, bits = PathTable, PathCode
    else:
        rows, bits = (so.take(one, label, axis=0) for one in (PathTable, PathCode))
    inside = so.greater_equal(rows, 0)
    found = so.where(inside, rows, 0)
    weights = so.lookup_table(W, found, sparse=is_sparse)
    sums = so.squeeze(so.matmul(weights, so.expand_dims(X, axis=-1)), axis=-1)
    if Bias is not None:
        sums = sums + so.take(so.reshape(Bias, shape=(-1,)), found)
    sums = so.where(inside, sums, so.zeros_like(sums))
    sums = sums + so.stop_gradient(so.clip(sums, low=-_BOUND, high=_BOUND) - sums)
    # As in Paddle, each step that a shorter path lacks adds log 2.
    losses = so.softplus(sums)
    taken = so.where(inside, so.cast(bits, dtype=X.dtype), so.zeros_like(sums)) * sums
    return so.sum(losses - taken, axis=1, keepdims=True), losses, None


def _paths(label: Any, count: int) -> tuple[Any, Any]:
    """Returns the inner nodes and the turns of the paths to leaves of a complete binary tree.

    Leaf ``i`` is node ``i + count`` of a heap that begins at 1; its path reads the bits of that
    number. Paths end with -1.
    """
    steps = max(int(count - 1).bit_length(), 1)
    codes = np.arange(count) + count
    nodes = np.full((count, steps), -1, np.int32)
    turns = np.zeros((count, steps), np.int32)
    for leaf, code in enumerate(codes):
        for step in range(int(code).bit_length() - 1):
            nodes[leaf, step] = (int(code) >> (step + 1)) - 1
            turns[leaf, step] = (int(code) >> step) & 1
    return tuple(so.take(jnp.asarray(one), label, axis=0) for one in (nodes, turns))
