"""Calls without a rule of their own, replaced by their bodies."""

from collections.abc import Sequence

from registry.operator.operator import Operator
from registry.table import get
from symop.graph.nodes import Node, by_age, topological
from symop.graph.rewriting import Image, Images, substitute
from symop.regions.bodies import GraphBody


def inline(results: Sequence[Node]) -> list[Node]:
    """Returns ``results`` without calls whose derivative is that of their body.

    The tangents of a call are such calls, inside which sums over directions cannot be moved.
    """
    found = list(results)
    while any(_body_of(node) for node in topological(found)):
        image = Images()
        for node in by_age(topological(found)):
            body = _body_of(node)
            if body is None:
                image.rebuild(node)
            else:
                image[node] = _outputs(body, image, node)
        found = [image.value(one) for one in found]
    return found


def _body_of(node: Node) -> GraphBody | None:
    """Returns the body of a call without a rule; None for other nodes."""
    if not isinstance(node.op, Operator) or node.op.family is not get("call"):
        return None
    body, *rules = node.attributes
    plain = isinstance(body, GraphBody) and not body.keys and not body.updating
    return body if plain and not any(rules) else None


def _outputs(body: GraphBody, image: Images, node: Node) -> Image:
    operands = [image.value(one) for one in node.inputs[1:] if one is not None]
    results = substitute(body.results, dict(zip(body.parameters, operands, strict=True)))
    return results[0] if len(results) == 1 else results
