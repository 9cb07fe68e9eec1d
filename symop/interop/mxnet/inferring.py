"""Shapes and dtypes of a graph, inferred in both directions until nothing is left to tell."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from registry.shapes import canonical
from registry.types import DType, as_dtype
from symop.building import var
from symop.interop.mxnet.attributes import DTYPES, Shape, read
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.graph import Entry, Node, topological
from symop.interop.mxnet.operators import Operator
from symop.interop.mxnet.partial_shapes import Partial, Shapes, is_known, merged

Dtypes = list[DType | None]
Type = tuple[Shape, DType]
Body = Callable[[Sequence[Any]], list[Any]]
_FLOAT = as_dtype("float32")


class Inference:
    """What is known of the types in a graph.

    Attributes:
        nodes: of the graph, inputs first.
        shapes: by a node's identity, those of its outputs.
        dtypes: likewise.
    """

    def __init__(
        self,
        heads: Sequence[Entry],
        shapes: Mapping[str, Partial],
        dtypes: Mapping[str, Any] | None = None,
    ) -> None:
        """Infer from the shapes and dtypes of some variables, by name.

        Raises:
            MXNetError: two things that are told contradict each other.
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
        self._until_settled(self._step_dtypes)
        self._until_settled(self._step_shapes)
        self._until_settled(self._step_dtypes)
        for node in self.nodes:
            if node.is_variable and self.dtype((node, 0)) is None:
                self.dtypes[id(node)] = [_FLOAT]
        self._until_settled(self._step_dtypes)

    def shape(self, entry: Entry) -> Partial:
        """What is known of the shape of ``entry``."""
        return self.shapes[id(entry[0])][entry[1]]

    def dtype(self, entry: Entry) -> DType | None:
        """The dtype of ``entry``, if it is known."""
        return self.dtypes[id(entry[0])][entry[1]]

    def type(self, node: Node) -> Type:
        """The type of a variable; a dtype that nothing tells is float32.

        Raises:
            MXNetError: its shape is not known.
        """
        shape = self.shape((node, 0))
        if shape is None or not is_known(shape):
            raise MXNetError(
                f"infer_shape: the shape of {node.name!r} must be known or follow, got {shape}"
            )
        return shape, self.dtype((node, 0)) or _FLOAT

    def _until_settled(self, step: Any) -> None:
        """Walk up and down until a walk tells nothing new."""
        down = [node for node in self.nodes if not node.is_variable]
        changed = True
        while changed:
            changed = False
            for node in (*down, *reversed(down)):
                changed = step(node) or changed

    # Shapes

    def _step_shapes(self, node: Node) -> bool:
        """Infer what one call tells; whether that is new."""
        assert node.operator is not None
        given: Shapes = [self.shape(one) for one in node.inputs]
        found = list(self.shapes[id(node)])
        if all(map(is_known, given)) and all(map(is_known, found)):
            return False
        before = [*given, *found]
        try:
            node.operator.fill(given, found, node.values)
            if all(map(is_known, given)):
                self._run_forward(node, given, found)
        except MXNetError as error:
            raise MXNetError(f"{error} (node {node.name!r})") from None
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

    # Dtypes

    def _step_dtypes(self, node: Node) -> bool:
        """Infer what one call tells of dtypes; whether that is new."""
        try:
            return self._dtypes_of(node)
        except MXNetError as error:
            raise MXNetError(f"{error} (node {node.name!r})") from None

    def _dtypes_of(self, node: Node) -> bool:
        assert node.operator is not None
        given = [self.dtype(one) for one in node.inputs]
        found = list(self.dtypes[id(node)])
        before = [*given, *found]
        if node.operator.dtypes == "same":
            known = next((one for one in given if one is not None), None)
            given = [known if one is None else one for one in given]
        known_at = [one is not None for one in given]
        if all(known_at) or (known_at[0] and node.operator.dtypes == "free"):
            for i, dtype in enumerate(self._dtypes_forward(node, given)):
                found[i] = dtype
        self.dtypes[id(node)] = found
        for (below, index), dtype in zip(node.inputs, given, strict=True):
            self.dtypes[id(below)][index] = dtype
        return _names([*given, *found]) != _names(before)

    def _dtypes_forward(self, node: Node, given: Dtypes) -> Dtypes:
        """Dtypes of the outputs; for want of shapes, those of a call on single elements."""
        shapes = [self.shape(one) for one in node.inputs]
        known = all(map(is_known, shapes))
        types = [
            (shape if known and shape is not None else (1,), dtype or _FLOAT)
            for shape, dtype in zip(shapes, given, strict=True)
        ]
        try:
            return [dtype for _, dtype in outputs_of(node, types)]
        except Exception:  # whatever an operator says of shapes that are not its own
            if known:
                raise
            return [given[0] if given else _FLOAT] * node.visible


def _names(dtypes: Dtypes) -> list[str | None]:
    """What can be compared: to NumPy None is float64."""
    return [None if one is None else one.name for one in dtypes]


def _declared_shape(node: Node, shape: Partial) -> Partial:
    """What is told of a variable's shape, by a call and by the variable itself."""
    own = node.attributes.get("__shape__")
    try:
        told = None if own in (None, "None") else read(tuple[int, ...], str(own))
    except ValueError:
        raise MXNetError(f"{node.name}: __shape__ must be a shape, got {own!r:.80}") from None
    if told is not None and any(length < 0 for length in told):
        told = tuple(max(length, 0) for length in told)
    try:
        return merged(shape, told if told else None)
    except MXNetError as error:
        raise MXNetError(f"{node.name}: {error}") from None


def _declared_dtype(node: Node, dtype: Any) -> DType | None:
    """What is told of a variable's dtype; of 64 bits as JAX has them, by its x64 flag."""
    if dtype is not None:
        return canonical(np.dtype(dtype) if isinstance(dtype, type) else as_dtype(dtype))
    own = node.attributes.get("__dtype__")
    if own is None or own == "-1":
        return None
    try:
        return canonical(DTYPES[int(own)] if own.isdecimal() else as_dtype(own))
    except (IndexError, TypeError, ValueError):
        raise MXNetError(f"{node.name}: __dtype__ must be a dtype, got {own!r:.80}") from None


def outputs_of(node: Node, types: Sequence[Type]) -> tuple[Type, ...]:
    """Types of the visible outputs of a call on inputs of ``types``."""
    assert node.operator is not None
    if node.subgraphs:
        return _computed(node.operator, node.values, types, bodies_of(node))
    attributes = tuple(sorted(node.attributes.items()))
    return _outputs(node.operator, attributes, tuple(types))


@functools.lru_cache(maxsize=4096)
def _outputs(
    operator: Operator, attributes: tuple[tuple[str, str], ...], types: tuple[Type, ...]
) -> tuple[Type, ...]:
    return _computed(operator, operator.read(dict(attributes), len(types)), types)


def _computed(
    operator: Operator,
    values: Mapping[str, Any],
    types: Sequence[Type],
    bodies: Sequence[Body] = (),
) -> tuple[Type, ...]:
    names = operator.present(values)
    for name, (shape, _) in zip(names, types, strict=True):
        if any(length < 0 for length in shape):
            raise MXNetError(f"{operator.name}: {name} must have lengths >= 0, got {shape}")
    inputs = [
        var(f"in{i}", shape, dtype, state=name in operator.states)
        for i, (name, (shape, dtype)) in enumerate(zip(names, types, strict=True))
    ]
    found = operator.call(inputs, values, bodies)[: operator.visible(values)]
    return tuple((one.shape, one.dtype) for one in found)


# Bodies of control flow --------------------------------------------------------------------------


def bodies_of(node: Node) -> list[Body]:
    """The graphs that a call of control flow has, as functions of their variables in order."""
    return [functools.partial(_run, heads) for heads in node.subgraphs]


def _run(heads: Sequence[Entry], given: Sequence[Any]) -> list[Any]:
    """What a graph computes of values of known shapes, one for each variable."""
    nodes = topological(heads)
    variables = [node for node in nodes if node.is_variable]
    made = {id(node): (one,) for node, one in zip(variables, given, strict=True)}
    for node in nodes:
        if node.operator is not None:
            inputs = [made[id(below)][i] for below, i in node.inputs]
            made[id(node)] = node.operator.call(inputs, node.values, bodies_of(node))
    return [made[id(node)][index] for node, index in heads]


def forget_types() -> None:
    """Infer anew what was inferred before: an operator means something else now."""
    _outputs.cache_clear()
