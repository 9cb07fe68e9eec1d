"""Calls of ``einsum`` that are matrix products, up to the order of axes."""

from typing import NamedTuple

from registry.ops.linalg.einsum import labeled
from registry.table import get
from symop.graph.nodes import Node
from symop.graph.rewriting import Images
from symop.passes.replacements import attributes_of, name_of_operator


class Moved(NamedTuple):
    """An array with its axes in another order.

    Attributes:
        node: the array.
        axes: its axes, in the new order.
    """

    node: Node
    axes: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape with the axes in the new order."""
        return tuple(self.node.shape[axis] for axis in self.axes)

    @property
    def is_same(self) -> bool:
        """Whether the order is that of the array."""
        return self.axes == tuple(range(self.node.ndim))

    def image(self, images: Images) -> Node:
        """Returns the image of the array, with its axes in the new order."""
        return moved(images.value(self.node), self.axes)


def as_it_is(node: Node) -> Moved:
    """Returns an array with its axes in their order."""
    return Moved(node, tuple(range(node.ndim)))


def moved(node: Node, axes: tuple[int, ...]) -> Node:
    """Returns ``node`` with its axes in another order."""
    if axes == tuple(range(node.ndim)):
        return node
    made: Node = get("permute_dims")(node, axes=axes)
    return made


class Product(NamedTuple):
    """The products of rows of two arrays, in a batch.

    Attributes:
        left: the axes are those of the batch, of its rows, and the summed one.
        right: the axes are those of the batch, of its rows, and the summed one.
        axes: the axes of the result among those of the batch, of the left and of the right rows.
        batch: the number of axes of the batch.
    """

    left: Moved
    right: Moved
    axes: tuple[int, ...]
    batch: int

    @property
    def is_of_matrices(self) -> bool:
        """Whether both arrays have one axis of rows."""
        return len(self.left.axes) == len(self.right.axes) == self.batch + 2

    @property
    def is_in_order(self) -> bool:
        """Whether the result has first the axes of the left rows, then those of the right ones."""
        return self.axes == tuple(range(len(self.axes)))

    def ordered_by_left(self) -> "Product":
        """Returns the product with the axes of the batch in the order of the left array."""
        order = sorted(range(self.batch), key=lambda i: self.left.axes[i])
        left, right = (
            Moved(one.node, tuple([one.axes[i] for i in order]) + one.axes[self.batch :])
            for one in (self.left, self.right)
        )
        axes = tuple(order.index(axis) if axis < self.batch else axis for axis in self.axes)
        return Product(left, right, axes, self.batch)

    def exchanged(self) -> "Product":
        """Returns the product with the arrays exchanged."""
        left, right = (len(one.axes) - 1 for one in (self.left, self.right))
        order = [*range(self.batch), *range(left, left + right - self.batch)]
        order += range(self.batch, left)
        places = {axis: i for i, axis in enumerate(order)}
        axes = tuple(places[axis] for axis in self.axes)
        return Product(self.right, self.left, axes, self.batch)


def product_of(node: Node) -> Product | None:
    """Returns the product of rows that an ``einsum`` of two operands computes.

    Returns:
        None for other operators, and where an axis is broadcast, repeated, or summed in one operand
        alone, or where another number of axes than one is summed.
    """
    if name_of_operator(node) != "einsum" or len(node.operands) != 2:
        return None
    operands = node.operands
    labels = labeled(attributes_of(node)["equation"], [one.shape for one in operands])
    first, second = labels.terms
    for term, one in zip(labels.terms, operands, strict=True):
        if len(set(term)) < len(term) or one.shape != tuple(labels.lengths[x] for x in term):
            return None
    shared = [label for label in first if label in second]
    batch = [label for label in labels.out if label in shared]
    summed = [label for label in shared if label not in batch]
    left, right = ([label for label in term if label not in shared] for term in labels.terms)
    ordered = [*batch, *left, *right]
    if len(summed) != 1 or len(ordered) != len(labels.out):
        return None
    return Product(
        Moved(operands[0], tuple(first.index(x) for x in (*batch, *left, *summed))),
        Moved(operands[1], tuple(second.index(x) for x in (*batch, *right, *summed))),
        tuple(ordered.index(x) for x in labels.out),
        len(batch),
    )
