"""Shapes and dtypes of a graph, inferred in both directions up to a fixed point."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from registry.shapes import canonical
from registry.types import DType, as_dtype
from symop.interop.mxnet.attributes import DTYPES, read
from symop.interop.mxnet.body_shapes import ShapeOf, fill_bodies
from symop.interop.mxnet.call_types import Type, outputs_of
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.graph import Entry, Node, topological
from symop.interop.mxnet.partial_dtypes import Dtypes, agreed, names
from symop.interop.mxnet.partial_shapes import (
    Partial,
    Shapes,
    is_known,
    merged,
    require_output,
    require_size,
)

_FLOAT = as_dtype("float32")


class Inference:
    """The known types of a graph.

    Attributes:
        nodes: the nodes of the graph, inputs first.
        shapes: the shapes of each node's outputs, by the node's id.
        dtypes: the dtypes of each node's outputs, by the node's id.

    Example:
        >>> import symop.interop.mxnet as mx
        >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc")
        >>> types = Inference(net.heads, {"data": (2, 4)}, {"fc_bias": "float16"})
        >>> weight = types.nodes[1]
        >>> types.shape((weight, 0)), types.dtype((weight, 0))
        ((3, 4), dtype('float16'))
    """

    def __init__(
        self,
        heads: Sequence[Entry],
        shapes: Mapping[str, Partial],
        dtypes: Mapping[str, Any] | None = None,
        *,
        partial: bool = False,
    ) -> None:
        """Infers types from the shapes and dtypes of some variables, by name.

        Args:
            heads: outputs of the graph.
            shapes: known shapes of variables.
            dtypes: known dtypes of variables.
            partial: whether undetermined dtypes of variables stay unknown; otherwise they are
                float32.

        Raises:
            MXNetError: given types contradict each other; the message names operator and node.
        """
        self.nodes = topological(heads)
        self.shapes: dict[int, Shapes] = {}
        self.dtypes: dict[int, Dtypes] = {}
        for node in self.nodes:
            self.shapes[id(node)] = [None] * node.total
            self.dtypes[id(node)] = [None] * node.total
            if node.is_variable:
                self.shapes[id(node)] = [_declared_shape(node, shapes.get(node.name))]
                self.dtypes[id(node)] = [_declared_dtype(node, (dtypes or {}).get(node.name))]
        self._told: set[int] = set()
        """Calls whose dtypes are fully determined."""
        self._until_settled(self._step_dtypes)
        self._until_settled(self._step_shapes)
        self._until_settled(self._step_dtypes)

        if partial:
            self._until_settled(self._step_guess)
        else:
            self._enter_defaults()
        self._until_settled(self._step_dtypes)

    def _enter_defaults(self) -> None:
        """Sets undetermined dtypes of variables to float32."""
        for node in self.variables():
            if self.dtype((node, 0)) is None:
                self.dtypes[id(node)] = [_FLOAT]

    def variables(self) -> list[Node]:
        """The variables, in order."""
        return [node for node in self.nodes if node.is_variable]

    def shape(self, entry: Entry) -> Partial:
        """The known part of the shape of ``entry``."""
        return self.shapes[id(entry[0])][entry[1]]

    def dtype(self, entry: Entry) -> DType | None:
        """The dtype of ``entry``, if it is known."""
        return self.dtypes[id(entry[0])][entry[1]]

    def type(self, node: Node) -> Type:
        """The type of a variable.

        Raises:
            MXNetError: its shape is not known.
        """
        shape = self.shape((node, 0))
        if shape is None or not is_known(shape):
            raise MXNetError(
                f"infer_shape: the shape of {node.name!r} must be known or follow, got {shape}"
            )
        try:
            require_size(shape)
        except MXNetError as error:
            raise MXNetError(f"{node.name}: {error}") from None
        return shape, self.dtype((node, 0)) or _FLOAT

    def _until_settled(self, step: Any) -> None:
        """Walks down and up the graph until nothing changes."""
        down = [node for node in self.nodes if not node.is_variable]
        changed = True
        while changed:
            changed = False
            for node in (*down, *reversed(down)):
                changed = step(node) or changed

    # Shapes

    def _step_shapes(self, node: Node) -> bool:
        """Infers shapes at one call; returns whether any is new."""
        assert node.operator is not None
        given: Shapes = [self.shape(one) for one in node.inputs]
        found = list(self.shapes[id(node)])
        if all(map(is_known, given)) and all(map(is_known, found)):
            return False
        before = [*given, *found]
        try:
            node.operator.fill(given, found, node.values)
            if node.subgraphs:
                fill_bodies(node, given, found, _shapes_inside)
            if all(map(is_known, given)):
                self._run_forward(node, given, found)
        except MXNetError as error:
            raise _at(node, error) from None
        self.shapes[id(node)] = found
        for (below, index), shape in zip(node.inputs, given, strict=True):
            self.shapes[id(below)][index] = shape
        return [*given, *found] != before

    def _run_forward(self, node: Node, given: Shapes, found: Shapes) -> None:
        types = [
            (shape or (), self.dtype(one) or _FLOAT)
            for shape, one in zip(given, node.inputs, strict=True)
        ]
        for i, (shape, _) in enumerate(outputs_of(node, types)):
            found[i] = merged(found[i], shape)
            # The results of operators without inputs may have unknown lengths.
            (require_output if given else require_size)(shape)

    # Dtypes

    def _step_dtypes(self, node: Node) -> bool:
        """Infers dtypes at one call; returns whether any is new."""
        if id(node) in self._told:
            return False
        try:
            return self._dtypes_of(node)
        except MXNetError as error:
            raise _at(node, error) from None

    def _dtypes_of(self, node: Node) -> bool:
        assert node.operator is not None
        given = [self.dtype(one) for one in node.inputs]
        found = list(self.dtypes[id(node)])
        before = names([*given, *found])
        node.operator.fill_dtypes(given, found, node.values)
        if None not in names(given):
            told = self._outputs_of(node, given)
            found = [agreed(pair) for pair in zip(found, told, strict=True)]
            if None not in names(told):
                self._told.add(id(node))
        self._enter_dtypes(node, given, found)
        return names([*given, *found]) != before

    def _enter_dtypes(self, node: Node, given: Dtypes, found: Dtypes) -> None:
        self.dtypes[id(node)] = found
        for (below, index), dtype in zip(node.inputs, given, strict=True):
            self.dtypes[id(below)][index] = dtype

    def _outputs_of(self, node: Node, given: Dtypes) -> Dtypes:
        """Dtypes of a call's outputs from its inputs; None where this requires unknown shapes."""
        assert node.operator is not None
        told: Dtypes = [None] * node.total
        node.operator.fill_dtypes(list(given), told, node.values)
        if None not in names(told):
            return told
        shapes = [self.shape(one) for one in node.inputs]
        known = all(map(is_known, shapes))
        types = [
            (shape if known and shape is not None else (1,), dtype or _FLOAT)
            for shape, dtype in zip(shapes, given, strict=True)
        ]
        try:
            outputs = [dtype for _, dtype in outputs_of(node, types)]
        except Exception:  # an operator may raise any error for placeholder shapes
            if known:
                raise
            return told
        hidden = [outputs[0]] * (len(told) - len(outputs))
        return [one or other for one, other in zip(told, [*outputs, *hidden], strict=True)]

    def _step_guess(self, node: Node) -> bool:
        """Assumes that outputs have the dtype of the inputs; returns whether any is new."""
        given, found = [self.dtype(one) for one in node.inputs], self.dtypes[id(node)]
        like = set(names(given))
        if id(node) in self._told or None in like or len(like) != 1:
            return False
        self._told.add(id(node))
        self._enter_dtypes(node, given, [given[0] if one is None else one for one in found])
        return True


def _shapes_inside(heads: Sequence[Entry], shapes: Mapping[str, Partial]) -> ShapeOf:
    return Inference(heads, shapes, partial=True).shape


def _at(node: Node, error: MXNetError) -> MXNetError:
    """``error`` with the names of the operator and the node."""
    assert node.operator is not None
    own = f"{node.operator.name}: "
    return MXNetError(f"{'' if str(error).startswith(own) else own}{error} (node {node.name!r})")


def _declared_shape(node: Node, shape: Partial) -> Partial:
    """The declared shape of a variable: that of the call, or else of the variable itself."""
    own = node.attributes.get("__shape__")
    try:
        told = None if own in (None, "None") else read(tuple[int, ...], str(own))
    except ValueError:
        raise MXNetError(f"{node.name}: __shape__ must be a shape, got {own!r:.80}") from None
    if told is not None and any(length < 0 for length in told):
        told = tuple(max(length, 0) for length in told)
    return shape or told or None


def _declared_dtype(node: Node, dtype: Any) -> DType | None:
    """The declared dtype of a variable; 64-bit dtypes follow JAX's x64 flag."""
    if dtype is not None:
        try:
            return canonical(np.dtype(dtype) if isinstance(dtype, type) else as_dtype(dtype))
        except TypeError:
            raise MXNetError(f"{node.name}: dtype must be a dtype, got {dtype!r:.80}") from None
    own = node.attributes.get("__dtype__")
    if own is None or own == "-1":
        return None
    try:
        return canonical(DTYPES[int(own)] if own.isdecimal() else as_dtype(own))
    except (IndexError, TypeError, ValueError):
        raise MXNetError(f"{node.name}: __dtype__ must be a dtype, got {own!r:.80}") from None
