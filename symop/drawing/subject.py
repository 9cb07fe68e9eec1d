"""The subject of a drawing: outputs of a graph, and the meaning of its variables and outputs."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from registry.naming import GRAD, differentiated
from symop.graph.naming import gradient_name
from symop.graph.nodes import Node, topological


class Subject(NamedTuple):
    """A graph to be drawn.

    Attributes:
        outputs: its outputs.
        names: a name for each output.
        roles: by name, the variables that are a ``parameter``, a ``state`` or an ``argument``,
            where their nodes do not tell.
        updates: the operators that update parameters and states.
        title: the heading; None for the number of operators.
    """

    outputs: tuple[Node, ...]
    names: tuple[str, ...]
    roles: Mapping[str, str] = {}
    updates: frozenset[Node] = frozenset()
    title: str | None = None


def subject_of(
    outputs: Sequence[Node], names: Sequence[str] | None = None, title: str | None = None
) -> Subject:
    """Returns the graph of ``outputs``, whose outputs are named by their meaning if it is known."""
    if names is None:
        many = len(outputs) > 1
        names = [f"output {i}" if many else "output" for i in range(len(outputs))]
    meant = [meaning(node, name) for node, name in zip(outputs, names, strict=True)]
    return Subject(tuple(outputs), tuple(meant), title=title)


def meaning(node: Node, name: str) -> str:
    """Returns ``gradient of x`` for such an output, unless the user named it; else ``name``."""
    if name.endswith(GRAD):
        return f"gradient of {differentiated(name)}"
    return (None if node.name is not None else gradient_name(node)) or name


def updating(values: Sequence[Node], states: Sequence[Node]) -> frozenset[Node]:
    """Returns the operators that only update states.

    They compute the new values ``states`` from gradients, and none of the other ``values``.
    """
    others = set(topological([*values, *[one for one in topological(states) if one.derived]]))
    return frozenset(node.source for node in topological(states) if node not in others)
