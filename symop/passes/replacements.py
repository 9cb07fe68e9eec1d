"""Records of replaced calls, and shorthands with which passes read and make calls."""

from typing import Any, NamedTuple, cast

from registry.operator.operator import Operator
from registry.table import get
from symop.graph.nodes import Node, Origin


class Replacement(NamedTuple):
    """A pattern of calls that another operator computes.

    Attributes:
        pattern: a description of the pattern.
        operator: the operator that takes its place.
        origin: the line of the user's code that built the pattern.
    """

    pattern: str
    operator: str
    origin: Origin | None

    def __str__(self) -> str:
        place = "" if self.origin is None else f" at {self.origin.file}:{self.origin.line}"
        return f"{self.pattern} became {self.operator}{place}"


def name_of_operator(node: Node) -> str | None:
    """Returns the name of the operator that ``node`` calls; None if it is not a call."""
    return node.op.name if isinstance(node.op, Operator) else None


def attributes_of(node: Node) -> dict[str, Any]:
    """Returns the attributes of a call by name."""
    assert isinstance(node.op, Operator)
    return dict(node.op.attribute_dict(node.attributes))


def call(name: str, *inputs: Any, **attributes: Any) -> Node:
    """Calls the operator ``name``, which has one output."""
    return cast(Node, get(name)(*inputs, **attributes))
