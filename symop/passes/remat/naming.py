"""Checks that the names a policy keeps are names of values."""

from collections.abc import Iterator, Sequence

from registry.errors import ArgumentError, nearest
from registry.operator.bodies import bodies_of
from registry.operator.operator import Operator
from symop.graph.nodes import Node, topological
from symop.graph.policies import Policy
from symop.regions.bodies import GraphBody


def require_names(policy: Policy, roots: Sequence[Node]) -> None:
    """Checks that each name of ``policy`` is a value's, in a graph or the bodies of its loops.

    Raises:
        ArgumentError: No value has the name.
    """
    if not policy.names:
        return
    known = set(_names(roots))
    for name in sorted(policy.names - known):
        raise ArgumentError(
            f"remat.keep: a value of the graph must have the name, got {name!r}"
            f"{nearest(name, sorted(known))}"
        )


def _names(roots: Sequence[Node]) -> Iterator[str]:
    for node in topological(roots):
        if node.name is not None:
            yield node.name
        if isinstance(node.op, Operator):
            for body in bodies_of(node.attributes):
                if isinstance(body, GraphBody):
                    yield from _names(body.results)
