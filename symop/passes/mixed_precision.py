"""Mixed precision: products, and what lies between them, in a narrow dtype.

Three rules decide, for each call, in which dtype it is computed:

1. A matrix product or convolution is computed in the narrow dtype: its operands are cast. With
   ``eight_bits``, products by a matrix (a right operand with two axes) are computed in 8 bits
   (``float8_matmul``).
2. A call that reads a narrow value and that a later product depends on is computed in the narrow
   dtype, too. Its kernel computes statistics and exponentials in at least float32. Factorizations
   and Fourier transforms, which are costly but not products, are not.
3. All other calls are computed as they are, in float32: the loss and what follows the last product,
   what precedes the first one (embeddings of positions), updates of states.

The types of the outputs do not change, nor do those of variables. The casts are calls like any
other, so that gradients with respect to float32 variables are float32.
"""

import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from registry.errors import SymopError
from registry.jax_derivatives.calculus import program_of
from registry.operator.bodies import bodies_of
from registry.operator.operator import Operator
from registry.primitives import FACTORIZATIONS, PRODUCTS, binds
from registry.table import get
from registry.types import DType, VarKind
from registry.var import Attributes, Inputs
from symop.graph.emission import apply, infer_node
from symop.graph.nodes import Node, by_age, copied_origin, topological
from symop.graph.rewriting import Images
from symop.passes.linearity import types_of
from symop.regions.bodies import GraphBody, body_of

_WIDE = np.dtype(np.float32)
_OF_COTANGENTS = "float8_e5m2"
"""The 8-bit dtype with the larger range."""


def narrow(outputs: Sequence[Node], dtype: DType, *, eight_bits: bool = False) -> list[Node]:
    """Returns ``outputs``, computed partly in ``dtype``.

    Args:
        outputs: a graph whose types are known.
        dtype: a floating dtype, narrower than float32.
        eight_bits: whether products by a matrix are computed in 8 bits.
    """
    order = by_age(topological(outputs))
    products = {node for node in order if _is_product(node)}
    narrowing = _Narrowing(dtype, products, _before(order, products), eight_bits)
    for node in order:
        narrowing.follow(node)
    return [narrowing.as_before(one) for one in outputs]


def _before(order: Sequence[Node], products: Collection[Node]) -> set[Node]:
    """Returns the nodes of ``order`` that a product depends on."""
    before: set[Node] = set()
    for node in reversed(order):
        if node in before or node in products:
            before.update(one for one in node.inputs if one is not None)
    return before


def _is_product(node: Node) -> bool:
    """Whether a call multiplies matrices or convolves, and factorizes none."""
    if not isinstance(node.op, Operator) or not node.op.costly or bodies_of(node.attributes):
        return False
    program = program_of(node.op, types_of(node), node.attributes)
    return binds(program, PRODUCTS) and not binds(program, FACTORIZATIONS)


class _Narrowing:
    """The images of the nodes of a graph that is computed partly in another dtype."""

    def __init__(
        self,
        dtype: DType,
        products: Collection[Node],
        before: Collection[Node],
        eight_bits: bool,
    ) -> None:
        self._dtype, self._products, self._before = dtype, products, before
        self._eight_bits = eight_bits
        self._images = Images()

    def as_before(self, node: Node) -> Node:
        """Returns the image of a node, cast to the dtype that the node has."""
        image = self._images.value(node)
        return image if image.type.dtype == node.type.dtype else _cast(image, node.type.dtype)

    def follow(self, node: Node) -> None:
        """Sets the image of a node, whose inputs have images."""
        if isinstance(node.op, Operator) and node.inputs:
            with copied_origin(node.origin):
                self._images[node] = self._call(node, node.op)

    def _call(self, node: Node, operator: Operator) -> Node:
        attributes = self._attributes(node)
        inputs = self._inputs(node, operator)
        if inputs == node.inputs and attributes == node.attributes:
            return node
        product = _with_weight(operator, inputs, attributes) if self._eight_bits else None
        if product is not None:
            return product
        return apply(operator, inputs, attributes, node.name)

    def _inputs(self, node: Node, operator: Operator) -> Inputs:
        """Returns the inputs of the image of a call: narrow ones, or those of before."""
        images = self._images.inputs(node)
        if node in self._products:
            return self._narrowed(operator, images)
        follows = not operator.costly and not bodies_of(node.attributes)
        if follows and node in self._before and any(map(self._is_narrowed, node.inputs)):
            for inputs in (images, self._narrowed(operator, images)):
                if self._is_narrow(operator, inputs, node.attributes):
                    return inputs
        return tuple([None if one is None else self.as_before(one) for one in node.inputs])

    def _is_narrowed(self, node: Node | None) -> bool:
        return node is not None and self._images.value(node).types != node.types

    def _narrowed(self, operator: Operator, images: Inputs) -> Inputs:
        """Returns ``images``, of which those of float32 are cast, unless they are states."""
        states = {operator.slot_index[slot] for slot in operator.updates}
        return tuple(
            [
                _cast(one, self._dtype) if _is_wide(one) and i not in states else one
                for i, one in enumerate(images)
            ]
        )

    def _is_narrow(self, operator: Operator, inputs: Inputs, attributes: Attributes) -> bool:
        """Whether a call of ``inputs`` is possible, and its first output of the narrow dtype."""
        types = [None if one is None else one.type for one in inputs]
        try:
            return infer_node(operator, types, attributes, None)[0].dtype == self._dtype
        except SymopError:
            return False

    def _attributes(self, node: Node) -> Attributes:
        """Returns the attributes of a call, whose bodies are narrowed inside."""
        if not bodies_of(node.attributes):
            return node.attributes
        return tuple([self._body(one) for one in node.attributes])

    def _body(self, value: Any) -> Any:
        if not isinstance(value, GraphBody) or not value.costly:
            return value
        results = narrow(value.results, self._dtype, eight_bits=self._eight_bits)
        return body_of(value.parameters, results, value.keys, updating=value.updating)


def _with_weight(operator: Operator, inputs: Inputs, attributes: Attributes) -> Node | None:
    """Returns a product by a matrix in 8 bits; None for other calls."""
    if operator is get("matmul"):
        data, weight = inputs
        flat = data is not None and data.ndim >= 2
        return _in_8_bits(data, weight, data.shape[:-1]) if flat and weight.ndim == 2 else None
    if operator is not get("fully_connected"):
        return None
    data, weight, bias = inputs
    rows = data.shape[:1] if operator.attribute_dict(attributes)["flatten"] else data.shape[:-1]
    product: Node = _in_8_bits(data, get("permute_dims")(weight, axes=(1, 0)), rows)
    if bias is not None:
        product = get("add")(product, bias)
    return product


def _in_8_bits(data: Any, weight: Any, rows: tuple[int, ...]) -> Any:
    flat = get("reshape")(data, shape=(math.prod(rows), weight.shape[0]))
    product = get("float8_matmul")(flat, weight, d_dtype=_OF_COTANGENTS)
    return get("reshape")(product, shape=(*rows, weight.shape[1]))


def _is_wide(node: Any) -> bool:
    """Whether a node holds a dense array of float32."""
    if node is None or node.types is None:
        return False
    return node.type.dtype == _WIDE and node.type.kind is VarKind.LOD_TENSOR


def _cast(node: Node, dtype: DType) -> Node:
    return apply(get("cast"), (node,), (dtype,))
