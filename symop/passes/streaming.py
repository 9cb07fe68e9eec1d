"""Streaming: large matrices that only the next call reads are computed in parts, and not stored.

Two patterns are found where they are large, and no other call, output or derivative reads the
values inside:

- ``softmax(scale * q @ k^T + bias) @ v``, also with ``where(mask, ..., -inf)`` and with products by
  ``einsum``, becomes ``scaled_dot_product_attention``. A query that sees no key then gives zeros
  instead of NaN.
- ``softmax_cross_entropy`` of integer labels and of the scores that a matrix product or a
  ``fully_connected`` layer computes becomes ``linear_cross_entropy``.

The results differ from those of the patterns by rounding only. Where a graph needs both a
``linear_cross_entropy`` and its gradient, one call computes the two.
"""

import contextlib
import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from registry.hooks import define
from registry.table import get
from registry.tuning import exceeds, present
from registry.types import Shape, is_boolean, is_floating
from symop.autodiff import gradients
from symop.graph.algebra import exchanged
from symop.graph.nodes import Node, by_age, copied_origin, topological
from symop.graph.rewriting import Images
from symop.graph.scoping import Scopes
from symop.passes.contractions import Moved, Product, as_it_is, moved, product_of
from symop.passes.replacements import Replacement, attributes_of, name_of_operator

_switches = Scopes("streaming", True)


def is_streaming() -> bool:
    """Whether the patterns are currently replaced."""
    return _switches.current()


@contextlib.contextmanager
def streaming(enabled: bool) -> Iterator[None]:  # with so.streaming(False): ...
    """Sets whether attention and losses written by hand are computed without large matrices.

    It is the default. ``softmax(q @ k^T) @ v`` with many scores becomes
    ``scaled_dot_product_attention``, and ``softmax_cross_entropy`` of many scores that a matrix
    product computes becomes ``linear_cross_entropy``, where a graph is lowered or differentiated
    by ``so.grad``. Products may be written with ``einsum``, too. ``so.explain`` lists what was
    replaced. ``registry.tuning`` has the sizes from which on. A function made outside is not
    affected.

    Example:
        >>> import symop as so
        >>> hidden, weight = so.var("hidden", shape=(512, 8)), so.var("weight", shape=(8, 65536))
        >>> labels = so.var("labels", shape=(512,), dtype="int32")
        >>> loss = so.softmax_cross_entropy(hidden @ weight, labels).mean()
        >>> [str(one).partition(" at ")[0] for one in so.explain(loss).streamed]
        ['softmax_cross_entropy of matmul became linear_cross_entropy']
        >>> with so.streaming(False):
        ...     so.explain(loss).streamed
        ()
    """
    with _switches.entered(enabled):
        yield


_PRODUCTS = ("matmul", "einsum")
_ENDS = ("softmax_cross_entropy", *_PRODUCTS)
"""The operators with which a pattern may end."""


def stream(
    roots: Sequence[Node], keep: Collection[Node] = (), log: list[Replacement] | None = None
) -> Images:
    """Returns the images of the nodes of ``roots`` without large matrices.

    Args:
        roots: a graph whose types are known.
        keep: values that must remain.
        log: a list to which the replaced patterns are added.
    """
    image = Images()
    order = topological(roots) if is_streaming() else []
    if not any(name_of_operator(node) in _ENDS for node in order):
        return image
    graph = _Graph(order, {*roots, *keep})
    found = {node: one for node in order if (one := graph.find(node)) is not None}
    for node in by_age(order) if found else ():
        pattern = found.get(node)
        if pattern is None or not _replaced(image, node, pattern):
            image.rebuild(node)
        elif log is not None:
            log.append(Replacement(pattern.name, pattern.operator, node.origin))
    return image


def _replaced(image: Images, node: Node, pattern: "_Pattern") -> bool:
    """Sets the image of ``node`` to the call for its pattern, unless that has another type."""
    with copied_origin(node.origin):
        new = pattern.call(image)
    if new.types == node.types:
        image[node] = new
    return new.types == node.types


class _Pattern(NamedTuple):
    """A pattern, and the call that takes its place.

    Attributes:
        name: what the pattern is.
        operator: the name of the operator.
        call: makes the call, given the images of the nodes.
    """

    name: str
    operator: str
    call: Callable[[Images], Node]


class _Graph:
    """A graph in which patterns are found."""

    def __init__(self, order: Sequence[Node], held: Collection[Node]) -> None:
        self._held = held
        self._uses = Counter(one for node in order for one in node.operands)

    def find(self, node: Node) -> _Pattern | None:
        """Returns the pattern that ends with ``node``, or None."""
        name = name_of_operator(node)
        if name == "softmax_cross_entropy":
            return self._loss(node)
        return self._attention(node) if name in _PRODUCTS else None

    def _inner(self, node: Node | None, *names: str) -> bool:
        """Whether ``node`` calls one of these operators, and only one other call reads it."""
        return (
            node is not None
            and name_of_operator(node) in names
            and self._uses[node] == 1
            and node not in self._held
        )

    # Losses --------------------------------------------------------------------------------------

    def _loss(self, node: Node) -> _Pattern | None:
        logits, labels, weights = node.inputs
        assert logits is not None
        assert labels is not None
        how = attributes_of(node)
        by_class = weights is None and labels.ndim < logits.ndim
        if not by_class or how["axis"] % logits.ndim != logits.ndim - 1:
            return None
        linear = self._linear(logits) if exceeds(logits.size, present.tuning.logits) else None
        if linear is None:
            return None

        def call(image: Images) -> Node:
            hidden, weight, bias = linear.operands(image)
            made: Node = get("linear_cross_entropy")(
                hidden,
                weight,
                image.value(labels),
                bias,
                smoothing=how["smoothing"],
                ignore_label=how["ignore_label"],
            )
            return made

        return _Pattern(f"softmax_cross_entropy of {linear.name}", "linear_cross_entropy", call)

    def _linear(self, node: Node) -> "_Linear | None":
        """Returns the product that computes ``node``, or None."""
        if self._inner(node, "fully_connected"):
            data, weight, *biases = node.operands
            bias = biases[0] if biases else None
            flat = data.ndim == 2 or not attributes_of(node)["flatten"]
            made = _Linear("fully_connected", data, weight, bias, node.shape, by_class=True)
            return made if flat else None
        if self._inner(node, "matmul"):
            data, weight = node.operands
            narrow = data.ndim >= 2 == weight.ndim
            return _Linear("matmul", data, weight, None, node.shape) if narrow else None
        product = product_of(node) if self._inner(node, "einsum") else None
        if product is not None:
            return _by_rows(product, node.shape)
        if self._inner(node, "reshape"):
            inner = node.operands[0]
            found = self._linear(inner) if inner.shape[-1:] == node.shape[-1:] else None
            return None if found is None else found._replace(shape=node.shape)
        return self._linear_with_bias(node) if self._inner(node, "add") else None

    def _linear_with_bias(self, node: Node) -> "_Linear | None":
        for x, bias in itertools.permutations(node.operands):
            found = self._linear(x) if bias.shape == node.shape[-1:] else None
            if found is not None and found.bias is None and x.type == node.type:
                return found._replace(bias=bias)
        return None

    # Attention -----------------------------------------------------------------------------------

    def _attention(self, node: Node) -> _Pattern | None:
        found = next((one for one in _weighted(node) if self._are_weights(one[0])), None)
        if found is None:
            return None
        weights, values, axes = found
        how = attributes_of(weights)
        if how["axis"] not in (-1, weights.ndim - 1) or how["temperature"] != 1.0:
            return None
        scores = self._scores(weights.operands[0], tuple(weights.operands[1:]))
        if scores is None or not scores.fits(values.shape):
            return None

        def call(image: Images) -> Node:
            mask, bias = (
                None if one is None else image.value(one) for one in (scores.mask, scores.bias)
            )
            query, keys, own = (x.image(image) for x in (scores.query, scores.keys, values))
            made: Node = get("scaled_dot_product_attention")(
                query, keys, own, mask, bias, scale=scores.scale
            )
            return moved(made, axes)

        name = f"{name_of_operator(node)} of {name_of_operator(weights)}"
        return _Pattern(name, "scaled_dot_product_attention", call)

    def _are_weights(self, node: Node) -> bool:
        large = exceeds(node.size, present.tuning.attention_scores)
        return large and self._inner(node, "softmax", "masked_softmax")

    def _scores(self, node: Node, masks: tuple[Node, ...]) -> "_Scores | None":
        """Returns how ``node`` computes scores: a mask, a bias, a factor and a product, or None."""
        mask = masks[0] if masks else None
        if mask is None and self._inner(node, "where"):
            mask, node, otherwise = node.operands
            if otherwise.constant != -math.inf:
                return None
        if self._inner(node, "add"):
            for x, bias in itertools.permutations(node.operands):
                found = self._scaled(x, 1.0) if x.type == node.type else None
                if found is not None and is_floating(bias.type.dtype):
                    return found._replace(mask=mask, bias=bias)
            return None
        found = self._scaled(node, 1.0)
        return None if found is None else found._replace(mask=mask)

    def _scaled(self, node: Node, factor: float) -> "_Scores | None":
        if self._inner(node, "multiply", "divide"):
            is_product = name_of_operator(node) == "multiply"
            for x, number in itertools.permutations(node.operands):
                by = number.constant
                if not isinstance(by, int | float):
                    continue
                if is_product:
                    return self._scaled(x, factor * by)
                if by and x is node.inputs[0]:  # a quotient by zero stays as it is
                    return self._scaled(x, factor / by)
            return None
        return _scores_of(node, factor) if self._inner(node, *_PRODUCTS) else None


def _weighted(node: Node) -> Iterator[tuple[Node, Moved, tuple[int, ...]]]:
    """Iterates over what ``node`` may multiply by values, these, and the axes of the result.

    The axes of the weights are those of a batch, of queries, and of keys; those of the result are
    found among those of the batch, of queries, and of the values.
    """
    if name_of_operator(node) == "matmul":
        weights, values = node.operands
        yield weights, as_it_is(values), tuple(range(node.ndim))
    product = product_of(node)
    for one in () if product is None else (product, product.exchanged()):
        ordered = one.ordered_by_left()
        if ordered.left.is_same and one.is_of_matrices:
            *batch, columns, summed = ordered.right.axes
            turned = Moved(ordered.right.node, (*batch, summed, columns))
            yield ordered.left.node, turned, ordered.axes


def _scores_of(node: Node, factor: float) -> "_Scores | None":
    """Returns the scores that a product of floats computes, by a batch, queries, and keys."""
    if not is_floating(node.type.dtype):
        return None  # integers wrap, and booleans are not counted
    product = product_of(node)
    for one in () if product is None else (product, product.exchanged()):
        if one.is_in_order and one.is_of_matrices:
            return _Scores(one.left, one.right, None, None, factor)
    keys = exchanged(node.operands[1]) if name_of_operator(node) == "matmul" else None
    if keys is None:
        return None
    return _Scores(as_it_is(node.operands[0]), as_it_is(keys), None, None, factor)


def _by_rows(product: Product, shape: Shape) -> "_Linear | None":
    """Returns the linear scores that a product computes, if its last axis is that of a matrix."""
    for one in (product, product.exchanged()):
        data, weight = one.left, one.right
        if one.is_in_order and data.is_same and not one.batch and len(weight.axes) == 2:
            return _Linear("einsum", data.node, weight.node, None, shape, weight.is_same)
    return None


class _Linear(NamedTuple):
    """Linear scores of classes.

    Attributes:
        name: the operator that computes them.
        data: what they are computed from.
        weight: the matrix.
        bias: one number for each class, or None.
        shape: the shape of the scores.
        by_class: whether classes are the first axis of the matrix.
    """

    name: str
    data: Node
    weight: Node
    bias: Node | None
    shape: Shape
    by_class: bool = False

    def operands(self, image: Images) -> tuple[Node, Node, Node | None]:
        """The operands of ``linear_cross_entropy``."""
        data, weight = image.value(self.data), image.value(self.weight)
        if not self.by_class:
            before = exchanged(weight)
            weight = get("permute_dims")(weight, axes=(1, 0)) if before is None else before
        hidden = get("reshape")(data, shape=(*self.shape[:-1], data.shape[-1]))
        return hidden, weight, None if self.bias is None else image.value(self.bias)


class _Scores(NamedTuple):
    """The operands of attention that compute its scores."""

    query: Moved
    keys: Moved
    mask: Node | None
    bias: Node | None
    scale: float

    def fits(self, values: Shape) -> bool:
        """Whether the operator takes these operands, with values of a shape, and equals it."""
        if self.mask is not None and not is_boolean(self.mask.type.dtype):
            return False  # `where` asks whether it is zero, and the operator would add it
        query, keys = self.query.shape, self.keys.shape
        alike = keys[:-2] == values[:-2] == query[:-2] and len(query) == len(keys) == len(values)
        scores = (*query[:-1], keys[-2])
        limits = [one.shape for one in (self.mask, self.bias) if one is not None]
        return alike and len(query) > 1 and np.broadcast_shapes(scores, *limits) == scores


define(gradients.Gradients, prepare=stream)


# Value and gradient at once ----------------------------------------------------------------------


def join_losses(roots: Sequence[Node]) -> list[Node]:
    """Returns ``roots`` where one call computes a large loss and its gradient."""
    image = Images()
    order = topological(roots) if is_streaming() else []
    for node in order:
        if name_of_operator(node) == "linear_cross_entropy_gradient":
            _join(image, node)
    if not image:
        return list(roots)
    for node in by_age(topological(roots, until=tuple(image))):
        if node not in image:
            image.rebuild(node)
    return [image.value(one) for one in roots]


def _join(image: Images, gradient: Node) -> None:
    hidden, weight, labels, size, *numbers, bias = gradient.inputs
    loss = _unshaped(size).source
    if name_of_operator(loss) != "linear_cross_entropy" or loss in image:
        return
    of_loss, own = attributes_of(loss), attributes_of(gradient)
    assert weight is not None
    large = exceeds(math.prod((*loss.type.shape, weight.shape[0])), present.tuning.logits)
    given = set(topological([one for one in numbers if one is not None]))
    if not large or loss in given or not _is_of(gradient, loss):
        return
    with copied_origin(gradient.origin):
        out, logsumexp, *parts = get("linear_cross_entropy_and_gradient")(
            hidden, weight, labels, *numbers, bias, **of_loss | own
        )
        shape = loss.type.shape
        image[loss] = [get("reshape")(one, shape=shape) for one in (out, logsumexp)]
        image[gradient] = parts


def _is_of(gradient: Node, loss: Node) -> bool:
    """Whether ``gradient`` is of the scores of ``loss``."""
    hidden, weight, labels, *_, bias = gradient.inputs
    x = _unshaped(hidden)
    if attributes_of(loss)["ignore_label"] is not None and name_of_operator(x) == "where":
        x = _unshaped(x.inputs[1])  # zeros in place of examples that are ignored
    return (
        x is _unshaped(loss.inputs[0])
        and weight is loss.inputs[1]
        and _unshaped(labels) is _unshaped(loss.inputs[2])
        and bias is loss.inputs[3]
        and attributes_of(loss)["soft_cap"] == attributes_of(gradient)["soft_cap"]
    )


def _unshaped(node: Node | None) -> Node:
    """Returns the value that ``node`` has in another shape."""
    assert node is not None
    while name_of_operator(node) == "reshape":
        node = node.operands[0]
    return node
