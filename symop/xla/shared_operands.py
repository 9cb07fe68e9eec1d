"""Values that several products read: each product is held back until its operand is complete.

XLA's CPU backend (jaxlib 0.10.2 and 0.12.0) schedules the readers of a value in the order in which
its passes have listed them, which fusion changes at random. In a backward pass, the gradient of an
activation may then come before that of the weight whose product frees the activation's memory, so
that one more activation is held at once. Behind JAX's barrier, fusion leaves the order as it is.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import jax

from registry.operator.operator import Operator
from symop.graph.nodes import Node
from symop.graph.policies import is_costly
from symop.xla.chain_barriers import is_fused

_barrier: Any = jax.lax.optimization_barrier  # JAX declares no types for it


def shared_operands(order: Sequence[Node]) -> set[Node]:
    """Returns the values of ``order`` that are computed entry by entry and that products share."""
    products: Counter[Node] = Counter()
    for node in order:
        if isinstance(node.op, Operator) and is_costly(node):
            products.update({_origin(one) for one in node.operands})
    return {node for node, count in products.items() if count > 1 and is_fused(node)}


def _origin(node: Node) -> Node:
    """Returns the value whose entries ``node`` rearranges."""
    while isinstance(node.op, Operator) and node.op.rearranges and len(node.operands) == 1:
        (node,) = node.operands
    return node


def behind_barrier(call: Callable[..., Any]) -> Callable[..., Any]:
    """Returns ``call``, whose result XLA does not fuse into its readers."""

    def run(*inputs: Any) -> Any:
        return _barrier(call(*inputs))

    return run
