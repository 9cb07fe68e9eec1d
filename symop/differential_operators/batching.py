"""Derivatives along all directions at once, without ``vmap``."""

import functools
from collections.abc import Sequence

from registry.operator.operator import Operator
from registry.table import get
from symop.graph.nodes import TRAINING, Node, by_age, topological
from symop.graph.rewriting import Images, substitute
from symop.jaxprs.reading import struct
from symop.jaxprs.tracing import graph_of
from symop.lowering.steps import bare
from symop.regions.bodies import GraphBody
from symop.symbol.symbol import Symbol


def at_once(u: Symbol) -> Symbol:
    """Returns ``u`` with operators of all slices in place of each ``vmap``.

    Derivatives of ``u`` are then sums of operators of whole arrays. Inside of a ``vmap``, those
    along a direction ``i`` and then ``j`` would be other arrays than those along ``j`` and then
    ``i``, and both would be computed.
    """
    image = Images()
    for node in by_age(topological(u.nodes)):
        if _is_simple_vmap(node):
            results = _batched(node, image.inputs(node))
            image[node] = results if len(results) > 1 else results[0]
        else:
            image.rebuild(node)
    return Symbol([image.value(one) for one in u.nodes], u.also)


def _is_simple_vmap(node: Node) -> bool:
    """Whether JAX's derivatives of a ``vmap`` are the declared ones, in training, too."""
    if not isinstance(node.op, Operator) or node.op.family is not get("vmap"):
        return False
    body = node.op.attribute_dict(node.attributes)["body"]
    if not isinstance(body, GraphBody) or body.draws or body.updating:
        return False
    for_both_modes = all(one is None or one.op is not TRAINING for one in node.inputs)
    return body.native and body.depth == 1 and for_both_modes


def _batched(node: Node, inputs: Sequence[Node | None]) -> list[Node]:
    """Returns the results of a ``vmap`` of ``inputs``, computed as JAX transforms its body."""
    operands = [one for one in inputs[2:] if one is not None]
    examples = [struct(one.type.shape, one.type.dtype) for one in operands]
    run = functools.partial(bare(node), None, False)
    graph = graph_of(run, examples, caller="vmap")
    return substitute(graph.nodes, dict(zip(graph.inputs, operands, strict=True)))
