"""Rewriting: graphs in which some nodes are replaced, and nodes over the images of their inputs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from registry.errors import NotDifferentiableError
from registry.operator.bodies import Body, bodies_of
from registry.operator.operator import Operator
from registry.var import Attributes, Inputs
from symop.graph.emission import apply, intern_call
from symop.graph.nodes import (
    DEFERRED,
    Expansion,
    Node,
    Origin,
    by_age,
    copied_origin,
    make,
    select,
    topological,
)

Image = Node | list[Node]
"""The replacement of a node in a rewritten graph: a list for a deferred node that was expanded."""


class Images(dict[Node, Image]):
    """Maps nodes of a graph to their images in the rewritten graph.

    A node without an image maps to itself, a selection to that output of the image of its source.
    """

    def __missing__(self, node: Node) -> Image:
        if not node.is_selection:
            return node
        became = self[node.source]
        if became is node.source:
            return node
        with copied_origin(node.origin):
            result = became[node.index] if isinstance(became, list) else select(became, node.index)
        self[node] = result
        return result

    def value(self, node: Node) -> Node:
        """Returns the image of ``node``, which must be one node."""
        return node_of(self[node])

    def inputs(self, node: Node) -> Inputs:
        """Returns the images of the inputs of ``node``."""
        return tuple([None if child is None else self.value(child) for child in node.inputs])

    def rebuild(
        self, node: Node, unscoped: bool = False, placed: Callable[[Origin], Origin] | None = None
    ) -> Image:
        """Sets the image of ``node`` to the same call of its inputs' images.

        Types are inferred and the call is simplified again. With ``unscoped``, it belongs to no
        rematerialization scope and updates no state. ``placed`` returns its origin, by default that
        of ``node``.
        """
        if node.is_selection or not node.inputs:
            return self[node]
        origin = node.origin
        if placed is not None and origin is not None:
            origin = placed(origin)
        if unscoped and origin is not None and origin.scope is not None:
            origin = origin._replace(scope=None)
        with copied_origin(origin):
            result = self[node] = self._rebuilt(node, unscoped)
        return result

    def _rebuilt(self, node: Node, steady: bool) -> Image:
        inputs = self.inputs(node)
        if node.op is DEFERRED:
            present = [child for child in inputs if child is not None]
            return expand(node.attributes[0], present, node.operands)
        if inputs == node.inputs:
            return node
        assert isinstance(node.op, Operator)
        operator = node.op.steady if steady else node.op
        return apply(operator, inputs, node.attributes, node.name)


def node_of(image: Image) -> Node:
    """Returns the image of a node that is not deferred."""
    assert isinstance(image, Node)
    return image


def substitute(
    outputs: Sequence[Node],
    replacements: Mapping[Node, Node],
    placed: Callable[[Origin], Origin] | None = None,
) -> list[Node]:
    """Returns ``outputs`` with some nodes replaced; only nodes that depend on them are rebuilt.

    ``placed`` returns the origin of a rebuilt node from that of the node before.
    """
    image = images(outputs, replacements, placed=placed)
    return [image.value(output) for output in outputs]


def images(
    outputs: Sequence[Node],
    replacements: Mapping[Node, Node],
    unscoped: bool = False,
    placed: Callable[[Origin], Origin] | None = None,
) -> Images:
    """Returns the images of all nodes that ``outputs`` need; options are those of ``rebuild``."""
    image = Images(replacements)
    # In the order of building, so that a user's loop stays a sequence of equal blocks.
    for node in by_age(topological(outputs, until=replacements)):
        if node not in image:
            image.rebuild(node, unscoped, placed)
    return image


def with_attributes(order: Sequence[Node], changes: Mapping[Node, Attributes]) -> Images:
    """Returns the images of the nodes in ``order`` where some calls have other attributes.

    The types of these calls must remain. There are no images if nothing changes.
    """
    image = Images()
    changes = {node: new for node, new in changes.items() if new != node.attributes}
    for node in by_age(order) if changes else ():
        if node not in changes:
            image.rebuild(node)
            continue
        assert isinstance(node.op, Operator)
        with copied_origin(node.origin):
            inputs = image.inputs(node)
            image[node] = intern_call(node.op, inputs, changes[node], node.types, node.name)
    return image


def settle(outputs: Sequence[Node]) -> list[Node]:
    """Returns ``outputs`` with all lazy bodies read; a rule that refuses remains."""
    order = topological(outputs)
    lazy = [one for one in order if any(body.lazy for body in bodies_of(one.attributes))]
    image = with_attributes(order, {one: tuple(map(_content, one.attributes)) for one in lazy})
    return [image.value(one) for one in outputs]


def _content(value: Any) -> Any:
    if not isinstance(value, Body):
        return value
    try:
        return value.content
    except NotDifferentiableError:
        return value


def reapply(node: Node, inputs: Inputs) -> Node:
    """Returns ``node`` over other inputs of the same types, without inference or simplification.

    Only an operator that adds any number of inputs may be given fewer inputs than before.
    """
    operator = node.op
    assert isinstance(operator, Operator)
    with copied_origin(node.origin):
        return intern_call(operator, inputs, node.attributes, node.types, node.name)


# Deferred derivatives ----------------------------------------------------------------------------


def expand(
    expansion: Expansion, inputs: Sequence[Node], originals: Sequence[Node] | None = None
) -> Image:
    """Expands ``expansion`` if all types are known, and returns a deferred node otherwise."""
    if all(node.types is not None for node in topological(inputs)):
        return expansion.expand(inputs, inputs if originals is None else originals)
    return defer(expansion, inputs)


def defer(expansion: Expansion, inputs: Sequence[Node]) -> Node:
    """Returns a node that defers ``expansion``."""
    return make(DEFERRED, tuple(inputs), (expansion,), None, None)
