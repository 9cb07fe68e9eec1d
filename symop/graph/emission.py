"""Operator application on nodes: inference and simplification."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from registry.errors import ArgumentError, KindError, SymopError
from registry.hooks import define
from registry.operator.attributes import identity_key
from registry.operator.binding import LEFT_OUT
from registry.operator.operator import Operator
from registry.types import TRAINING_TYPE, VarKind, VarType, promoted
from registry.var import Attributes, Inputs
from symop.graph.nodes import (
    ARRAY,
    CONSTANT,
    Node,
    Origin,
    Types,
    as_node,
    built_at,
    constant,
    fresh_key,
    intern,
    make,
    select,
    topological,
    training_flag,
    user_origin,
)
from symop.graph.origins import ambient, current_scope, site_of


class GraphEmitter:
    """Emits nodes: calling an operator on nodes makes a node."""

    def emit(
        self, operator: Operator, inputs: Inputs, attributes: Attributes, name: str | None
    ) -> Any:
        """Returns one node, or a tuple of them if the operator has several visible outputs."""
        node = apply(operator, inputs, attributes, name)
        if operator.single:
            return node
        chosen = tuple(select(node, i) for i in operator.visible)
        return chosen[0] if len(chosen) == 1 else chosen

    def filled(self, value: bool | int | float | complex, type: VarType) -> Node:
        """Returns a constant of ``type``."""
        return constant(value, type)


define(Node, emitter=GraphEmitter())


# Derivatives -----------------------------------------------------------------------------------


class Derivation:
    """The calls that one derivative makes over a graph.

    They depend only on that graph: a call that the graph or the derivative already contains is
    reused, calls of other graphs are not, and values that a user holds are not looked through.
    """

    def __init__(self, order: Sequence[Node], exposed: Collection[Node] | None) -> None:
        """Starts a derivative that has built nothing.

        ``order`` is the graph. ``exposed`` are values that a user holds in addition to those of the
        user's own calls; if it is None, the user holds no values at all.
        """
        self._exposed = exposed
        self._known: dict[Any, Node] = {}
        for node in order:
            if isinstance(node.op, Operator) and not node.op.stateful:
                self._known.setdefault(_call_of(node, node.inputs), node)

    def exposes(self, node: Node) -> bool:
        """Whether a user may hold ``node``."""
        return self._exposed is not None and (not node.derived or node in self._exposed)

    def find(self, key: Any, make: Callable[[], Node]) -> Node:
        """Returns the node of the call ``key`` in the graph, or else the result of ``make``."""
        node = self._known.get(key)
        if node is None:
            node = self._known[key] = make()
        return node


@contextmanager
def deriving(order: Sequence[Node] = (), exposed: Collection[Node] | None = None) -> Iterator[None]:
    """Builds the nodes inside the context as one derivative of ``order``; see ``Derivation``."""
    before = ambient.derivation
    ambient.derivation = Derivation(order, exposed)
    try:
        yield
    finally:
        ambient.derivation = before


# Calls -----------------------------------------------------------------------------------------


def apply(
    operator: Operator, inputs: Inputs, attributes: Attributes, name: str | None = None
) -> Node:
    """Returns the node that applies ``operator``, reusing an equal node if one exists.

    Raises:
        ShapeError, DTypeError, KindError: The inputs do not fit together.
    """
    filled = _filled(operator, inputs, attributes) if operator.fillable else inputs
    try:
        nodes = tuple([v if type(v) is Node or v is None else as_node(v) for v in filled])
    except ArgumentError as error:
        raise ArgumentError(f"{operator.name}: {error}{built_at(user_origin())}") from None
    types = _infer(operator, nodes, attributes)
    if operator.value_rule is not None and types is not None:
        _require_values(operator, nodes, attributes)
    kinds = _kinds(operator, nodes, attributes) if types is None else None
    simpler: Node | tuple[Node, ...] | None = None
    simplifies = operator.foldable or operator.simplify_rule is not None
    if simplifies and name is None and types is not None:
        simpler = _simplified(operator, nodes, attributes, types)
        if isinstance(simpler, Node):
            return simpler
    node = _of_kinds(intern_call(operator, nodes, attributes, types, name), kinds)
    if isinstance(simpler, tuple):
        node.equals = simpler
    if ambient.inside is not None:
        ambient.inside.add(node)
    return node


def _require_values(
    operator: Operator, nodes: Sequence[Node | None], attributes: Attributes
) -> None:
    """Raises an error with the user's line for values of constants the operator does not accept."""
    held = [
        one.attributes[0].value if one is not None and one.op is ARRAY else one for one in nodes
    ]
    try:
        operator.require_values(tuple(held), attributes)
    except SymopError as error:
        raise type(error)(f"{error}{built_at(user_origin())}") from None


def intern_call(
    operator: Operator,
    nodes: tuple[Node | None, ...],
    attributes: Attributes,
    types: Types | None,
    name: str | None,
) -> Node:
    """Returns the node of a call, made unless an equal one exists.

    Equal calls have their operands in the same order. A call made by a derivative never equals a
    user's call, nor a call in the derivative of an operator on another line, so that a graph looks
    the same regardless of what was built before. Lines are compared as files hold them, so a graph
    that is loaded has the nodes it was saved from. Within one derivative, the order of commuting
    operands and the operator whose gradient made the call do not matter.

    The types are part of the key, because JAX's x64 flag may have changed what the same call
    computes. So is the scope, because an equal value outside it may be kept for the gradient.
    """
    if operator.stateful:
        return make(operator, nodes, attributes, types, name)
    origin = ambient.origin
    key = (
        operator,
        nodes,
        identity_key(attributes) if attributes else (),
        name,
        types,
        (site_of(origin), origin.forward) if origin is not None and origin.forward else None,
        current_scope(),
    )
    if ambient.derivation is None:
        return intern(key, operator, nodes, attributes, types, name)
    result: Node = ambient.derivation.find(
        (operator, _unordered(operator, nodes), *key[2:5], key[6]),
        lambda: intern(key, operator, nodes, attributes, types, name),
    )
    return result


def named(node: Node, name: str | None) -> Node:
    """Returns the same call of one output under a name; the node itself if there is none."""
    if name is None or not isinstance(node.op, Operator):
        return node
    return intern_call(node.op, node.inputs, node.attributes, node.types, name)


def alike(first: Sequence[Node], second: Sequence[Node]) -> bool:
    """Whether ``first`` and ``second`` are equal calls, as judged within one derivative.

    Constant arrays are equal if their entries are, as after a round trip through a file.
    """
    image: dict[Node | None, Node] = {}
    known: dict[Any, Node] = {}
    for node in topological([*first, *second]):
        operator, inputs = node.op, tuple([image.get(one) for one in node.inputs])
        if node.is_selection:
            image[node] = known.setdefault((inputs, node.attributes), node)
        elif isinstance(operator, Operator) and not operator.stateful:
            image[node] = known.setdefault(_call_of(node, inputs), node)
        elif operator is ARRAY:
            entries = np.asarray(node.attributes[0].value).tobytes()
            image[node] = known.setdefault((node.types, entries), node)
        else:
            image[node] = node
    return [image[one] for one in first] == [image[one] for one in second]


def _call_of(node: Node, inputs: tuple[Node | None, ...]) -> Any:
    """Returns the key that ``node`` over ``inputs`` shares with equal calls of a derivative."""
    operator, attributes, origin = node.op, node.attributes, node.origin
    assert isinstance(operator, Operator)
    return (
        operator,
        _unordered(operator, inputs),
        identity_key(attributes) if attributes else (),
        node.name,
        node.types,
        None if origin is None else origin.scope,
    )


def _unordered(operator: Operator, nodes: tuple[Node | None, ...]) -> tuple[Node | None, ...]:
    """Returns ``nodes`` in a canonical order if the operator is commutative."""
    if operator.commutative and len(nodes) == 2 and _later(nodes[0], nodes[1]):
        return nodes[::-1]
    return nodes


def _kinds(
    operator: Operator, nodes: Sequence[Node | None], attributes: Attributes
) -> tuple[VarKind, ...] | None:
    """Returns the kinds of the outputs while types are unknown, or None if all are dense.

    A value of the wrong kind is thus refused when the call is made, not when shapes are known.
    """
    kinds = tuple([None if node is None else _kind_of(node) for node in nodes])
    keeps_dense = operator.inference.kind_rule is None or operator.row_slots
    if keeps_dense and not any(kind is not VarKind.LOD_TENSOR for kind in kinds):
        return None
    try:
        return operator.inference.kinds(kinds, attributes)
    except KindError as error:
        message = _naming_rows(str(error), nodes)
        raise KindError(f"{message}{built_at(user_origin())}") from error.__cause__
    except SymopError as error:
        raise type(error)(f"{error}{built_at(user_origin())}") from error.__cause__


def _kind_of(node: Node) -> VarKind:
    if node.types is not None:
        return node.types[0].kind
    return VarKind.LOD_TENSOR if node.kinds is None else node.kinds[0]


def _of_kinds(node: Node, kinds: tuple[VarKind, ...] | None) -> Node:
    node.kinds = kinds
    return node


def _later(first: Node | None, second: Node | None) -> bool:
    return first is not None and second is not None and first.serial > second.serial


def _filled(operator: Operator, inputs: Inputs, attributes: Attributes) -> Inputs:
    """Returns ``inputs`` with random key and training flag filled in where they were omitted."""
    return tuple(
        _implicit(operator, i, attributes) if value is LEFT_OUT else value
        for i, value in enumerate(inputs)
    )


def _implicit(operator: Operator, index: int, attributes: Attributes) -> Node | None:
    """Returns the value of an omitted slot, or None if an attribute says that it is unused."""
    slot, flag = operator.slot_of(index), operator.use_flags.get(index)
    if flag is not None and not attributes[flag]:
        return None
    if slot.role == "key":
        return fresh_key()
    if slot.role == "training":
        return training_flag()
    raise ArgumentError(f"{operator.name}: slot {slot.name!r} must be filled, got nothing")


def _infer(
    operator: Operator, nodes: Sequence[Node | None], attributes: Attributes
) -> Types | None:
    types: list[VarType | None] = []
    for node in nodes:
        if node is None:
            types.append(None)
        elif (known := node.types) is None:
            return None
        else:
            types.append(known[0])
    try:
        return infer_node(operator, types, attributes, None)
    except KindError as error:
        raise KindError(_naming_rows(str(error), nodes)) from error.__cause__


def _naming_rows(message: str, nodes: Sequence[Node | None]) -> str:
    """Returns ``message`` with the names of the row-sparse values appended to its first line."""
    names = [
        repr(node.name or node.op.name)
        for node in nodes
        if node is not None and _kind_of(node) is VarKind.SELECTED_ROWS
    ]
    first, *rest = message.split("\n")
    return "\n".join([f"{first} (rows: {', '.join(names)})" if names else first, *rest])


def infer_node(
    operator: Operator,
    types: Sequence[VarType | None],
    attributes: Attributes,
    origin: Origin | None,
) -> Types:
    """Returns the types of the outputs; errors name the line that built the node.

    The training flag always has the training type, whether it is unset or already a constant.
    """
    if operator.training_index is not None:
        types = list(types)
        types[operator.training_index] = TRAINING_TYPE
    try:
        return operator.inference(tuple(types), attributes)
    except SymopError as error:
        place = built_at(user_origin() if origin is None else origin)
        raise type(error)(f"{error}{place}") from error.__cause__


def _simplified(
    operator: Operator, nodes: tuple[Node | None, ...], attributes: Attributes, types: Types
) -> Node | tuple[Node, ...] | None:
    """Returns an equal value of the same type, or one for each of several outputs; else None."""
    if operator.simplify_rule is not None:
        simpler = operator.simplify_rule(nodes, attributes)
        if isinstance(simpler, Node) and simpler.types == types:
            return simpler
        if isinstance(simpler, list) and tuple(one.type for one in simpler) == types:
            return simpler[0] if operator.single else tuple(simpler)
    if operator.rearranges:
        return _rearranged(nodes, types[0])
    if operator.foldable and all(node is not None and node.op is CONSTANT for node in nodes):
        return _folded(operator, nodes, attributes, types[0])
    return None


def _rearranged(nodes: tuple[Node | None, ...], out: VarType) -> Node | None:
    """Returns a constant if an operator only rearranges arrays filled with the same number."""
    filled = [node for node in nodes if node is not None and node.op is CONSTANT]
    if len(filled) < len(nodes):
        return None
    keys = {identity_key(node.attributes[0]) for node in filled}
    return constant(filled[0].attributes[0], out) if len(keys) == 1 else None


def _folded(
    operator: Operator, nodes: tuple[Node | None, ...], attributes: Attributes, out: VarType
) -> Node | None:
    """Returns ``operator`` applied to constants, computed in the dtype of the result.

    Python scalars stay Python scalars: they are computed in double precision, as in Python.
    """
    if operator.reference is None:
        return None
    weak = all(node is not None and node.attributes[1] is None for node in nodes)
    with np.errstate(all="ignore"):
        if weak:
            numbers = [node.attributes[0] for node in nodes if node is not None]
        else:
            # A comparison is computed in its operands' dtype, not in that of its result.
            operands = [node.type for node in nodes if node is not None]
            dtype = promoted(*operands)[0] if out.dtype == np.bool_ else out.dtype
            numbers = [np.asarray(node.attributes[0], dtype) for node in nodes if node is not None]
        value = np.asarray(
            operator.reference(*numbers, **operator.attribute_dict(attributes))
        ).item()
    folded = constant(value) if weak else constant(value, out)
    return folded if folded.types == (out,) else None
