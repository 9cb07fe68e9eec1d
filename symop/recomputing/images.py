"""Images: what the nodes of a graph become while it is rebuilt call by call."""

from symop.emission import Image, rebuilt
from symop.graph import SELECT, Node, copied_origin


class Images(dict[Node, Image]):
    """What nodes became; leaves stay, and a choice among outputs follows its call."""

    def __missing__(self, node: Node) -> Image:
        if node.op is not SELECT:
            return node
        made = self[node] = rebuilt(node, self)
        return made

    def value(self, node: Node) -> Node:
        """What ``node`` became."""
        return node_of(self[node])

    def rebuild(self, node: Node) -> Node:
        """``node`` over what its inputs became."""
        with copied_origin(node.origin):
            made = self[node] = rebuilt(node, self)
        if isinstance(made, Node):
            made.shown = made.shown or node.shown
        return node_of(made)


def node_of(image: Image) -> Node:
    """An image of a node that does not wait for types."""
    assert isinstance(image, Node)
    return image
