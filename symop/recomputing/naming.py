"""Names that a policy keeps: they must be names of values."""

from collections.abc import Iterator, Sequence

from registry.bodies import bodies_of
from registry.errors import ArgumentError, nearest
from registry.operator import Operator
from symop.bodies import GraphBody
from symop.graph import Node, topological
from symop.policies import Policy


def require_names(policy: Policy, roots: Sequence[Node]) -> None:
    """Refuse names that no value has, in a graph and in the bodies of its loops.

    Raises:
        ArgumentError: there is one.
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
