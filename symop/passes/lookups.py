"""Products with one-hot matrices, computed by lookups.

``one_hot(ids) @ w`` reads a row of ``w`` for each id, with zeros for an id that is out of range,
and ``one_hot(ids)^T @ x`` adds the rows of ``x`` that have the same id, as the gradient of a lookup
does. Lookups are exact, and sums of rows differ by rounding only. An infinity or a NaN in ``w`` or
``x`` reaches only the rows that read it, whereas in the product it makes all of them NaN.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from registry.ops.linalg.einsum import labeled
from registry.table import get
from registry.tuning import present
from registry.types import DType, Shape, is_integer, is_unsigned
from symop.graph.emission import named
from symop.graph.nodes import ARRAY, Node, by_age, copied_origin, topological
from symop.graph.rewriting import Images
from symop.passes.replacements import Replacement, attributes_of, call, name_of_operator

_PRODUCTS = ("matmul", "dot", "fully_connected", "einsum")


def looked_up(roots: Sequence[Node], log: list[Replacement] | None = None) -> Sequence[Node]:
    """Returns ``roots``, whose types are known, without products with one-hot matrices."""
    order = topological(roots)
    if not any(name_of_operator(node) == "one_hot" for node in order):
        return roots
    image = Images()
    for node in by_age(order):
        with copied_origin(node.origin):
            new = _Product(node, image).replaced() if name_of_operator(node) in _PRODUCTS else None
        if new is None:
            image.rebuild(node)
            continue
        image[node] = new[0]
        if log is not None:
            log.append(Replacement(f"{name_of_operator(node)} of one_hot", new[1], node.origin))
    return [image.value(one) for one in roots]


class _Hot(NamedTuple):
    """A one-hot matrix, or a stack of one-hot vectors.

    Attributes:
        ids: the positions of the ones.
        shape: the shape to which the ids are reshaped.
        classes: the length of the vectors.
        turned: whether the vectors are columns.
    """

    ids: Node
    shape: Shape
    classes: int
    turned: bool


def _hot(node: Node) -> _Hot | None:
    """Returns the one-hot matrix, or stack of vectors, that ``node`` computes, or None."""
    name = name_of_operator(node)
    if name == "cast":
        return _hot(node.operands[0])
    if name == "permute_dims" and node.type.ndim == 2:
        inner = _hot(node.operands[0])
        axes = attributes_of(node)["axes"]
        swaps = axes is None or axes[0] % 2 == 1
        return None if inner is None else inner._replace(turned=inner.turned ^ swaps)
    if name == "reshape" and node.type.ndim:
        inner = _hot(node.operands[0])
        whole = inner is None or inner.turned or node.type.shape[-1] != inner.classes
        return None if inner is None or whole else inner._replace(shape=node.type.shape[:-1])
    if name != "one_hot":
        return None
    how, ndim = attributes_of(node), node.type.ndim
    at = how["axis"] % ndim
    turned = at == 0 < ndim - 1
    fits = at == ndim - 1 or (turned and ndim == 2)
    ids, classes = node.operands[0], how["num_classes"]
    many = classes >= present.tuning.one_hot
    return _Hot(ids, ids.type.shape, classes, turned) if fits and many else None


class _Product(NamedTuple):
    """A product, and the images of its operands."""

    node: Node
    image: Images

    def replaced(self) -> tuple[Node, str] | None:
        """Returns the same value without one-hot matrices, and the operator for it, or None."""
        new = self._by_operator()
        if new is None:
            return None
        value, operator = new
        value = value if value.type.dtype == self._dtype else _cast(value, self._dtype)
        if value.types != self.node.types:
            return None
        return named(value, self.node.name), operator

    @property
    def _dtype(self) -> DType:
        return self.node.type.dtype

    def _by_operator(self) -> tuple[Node, str] | None:
        if self.node.op is get("fully_connected"):
            return self._layer()
        if self.node.op is get("einsum"):
            return self._by_equation()
        x, y = self.node.operands
        return self._by_first(_hot(x), y) or self._by_second(x, _hot(y))

    def _by_first(self, hot: _Hot | None, y: Node) -> tuple[Node, str] | None:
        if hot is None or not 0 < y.type.ndim < 3:
            return None
        if hot.turned:
            return self._sum_of_rows(hot, self._value(y)), "add_rows"
        return self._rows(hot, y)

    def _by_second(self, x: Node, hot: _Hot | None) -> tuple[Node, str] | None:
        if hot is None or not x.type.ndim:
            return None
        if hot.turned or not hot.shape:
            ids = self._bounded(hot)
            return call("take", self._value(x), ids, axis=-1, fill_value=0.0), "take"
        if x.type.ndim == 2 and len(hot.shape) == 1:
            return _turned(self._sum_of_rows(hot, _turned(self._value(x)))), "add_rows"
        return None

    def _layer(self) -> tuple[Node, str] | None:
        data, weight, *biases = self.node.operands
        hot = _hot(data)
        flat = data.type.ndim == 2 or not attributes_of(self.node)["flatten"]
        if hot is None or hot.turned or not flat:
            return None
        rows = self._lookup(hot, _turned(self._value(weight)))
        return (call("add", rows, self._value(biases[0])) if biases else rows), "lookup_table"

    def _rows(self, hot: _Hot, table: Node) -> tuple[Node, str]:
        """Returns the rows of a table, or the entries of a vector."""
        value = self._value(table)
        if table.type.ndim == 2:
            return self._lookup(hot, value), "lookup_table"
        column = call("reshape", value, shape=(hot.classes, 1))
        rows = self._lookup(hot, column)
        return call("reshape", rows, shape=hot.shape), "lookup_table"

    def _lookup(self, hot: _Hot, table: Node) -> Node:
        if hot.ids.op is ARRAY or hot.ids.constant is not None:  # known ids must be in range
            return call("take", table, self._bounded(hot), fill_value=0.0)
        return call("lookup_table", table, self._ids(hot))

    def _sum_of_rows(self, hot: _Hot, x: Node) -> Node:
        """Returns sums of the rows of ``x`` with the same id, accumulated in at least 32 bits."""
        narrow = _INTEGER if is_integer(self._dtype) else _SINGLE  # integers wrap, as in products
        wide = self._dtype if self._dtype.itemsize > 2 else narrow
        x = x if x.type.dtype == wide else _cast(x, wide)
        return call("add_rows", x, self._bounded(hot), height=hot.classes)

    def _by_equation(self) -> tuple[Node, str] | None:
        """Replaces ``bsk,kd->bsd``, a lookup, and ``bsk,bsd->kd``, the gradient of one."""
        if len(self.node.operands) != 2:
            return None
        x, y = self.node.operands
        hot = _hot(x)
        if hot is None or hot.turned:
            return None
        equation = labeled(attributes_of(self.node)["equation"], (x.type.shape, y.type.shape))
        (first, second), out = equation.terms, equation.out
        by, shared = first[-1], first[:-1]
        if len({*first}) < len(first):
            return None
        rest = second.removeprefix(by)
        if second == by + rest and out == shared + rest and y.type.shape[0] == hot.classes:
            return self._rows(hot, y) if 0 < y.type.ndim < 3 else None
        rest = second.removeprefix(shared)
        alike = y.type.shape[: len(shared)] == hot.shape
        if second == shared + rest and out == by + rest and alike and not {*first} & {*rest}:
            return self._sum_of_rows(hot, self._value(y)), "add_rows"
        return None

    def _bounded(self, hot: _Hot) -> Node:
        """Returns the ids, with those that would count from the end out of range."""
        ids = self._ids(hot)
        if is_unsigned(ids.type.dtype):
            return ids
        ids = ids if ids.type.dtype.itemsize > 3 else _cast(ids, _INTEGER)
        return call("where", call("less", ids, 0), hot.classes, ids)

    def _ids(self, hot: _Hot) -> Node:
        ids = self._value(hot.ids)
        return ids if ids.type.shape == hot.shape else call("reshape", ids, shape=hot.shape)

    def _value(self, node: Node) -> Node:
        return self.image.value(node)


_SINGLE, _INTEGER = np.dtype(np.float32), np.dtype(np.int32)


def _turned(node: Node) -> Node:
    return call("permute_dims", node, axes=(1, 0))


def _cast(node: Node, dtype: DType) -> Node:
    return call("cast", node, dtype=dtype)
