"""Applying operators to nodes: inference, simplification, and a graph over other inputs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from registry.attributes import identity_key
from registry.binding import LEFT_OUT
from registry.errors import ArgumentError, KindError, SymopError
from registry.infer import promoted
from registry.operator import Operator
from registry.types import TRAINING_TYPE, VarKind, VarType
from registry.var import Attributes, Inputs
from symop.graph import (
    CONSTANT,
    DEFERRED,
    SELECT,
    Expansion,
    Node,
    Origin,
    Types,
    as_node,
    built_at,
    by_age,
    constant,
    copied_origin,
    fresh_key,
    interned,
    make,
    select,
    topological,
    training_flag,
    user_origin,
)
from symop.origins import current_scope


class GraphEmitter:
    """Calling an operator on nodes makes a node."""

    def emit(
        self, operator: Operator, inputs: Inputs, attributes: Attributes, name: str | None
    ) -> Any:
        """One node, or a tuple of them when the operator has several visible outputs."""
        node = apply(operator, inputs, attributes, name)
        if operator.single:
            return node
        chosen = tuple(select(node, i) for i in operator.visible)
        return chosen[0] if len(chosen) == 1 else chosen

    def filled(self, value: bool | int | float | complex, type: VarType) -> Node:
        """A constant of ``type``."""
        return constant(value, type)


Node.emitter = GraphEmitter()


def apply(
    operator: Operator, inputs: Inputs, attributes: Attributes, name: str | None = None
) -> Node:
    """The node that applies ``operator``; an equal one that exists already, when there is one.

    Raises:
        ShapeError, DTypeError, KindError: the inputs do not fit together.
    """
    given = _filled(operator, inputs, attributes) if operator.fillable else inputs
    nodes = tuple([v if type(v) is Node or v is None else as_node(v) for v in given])
    types = _infer(operator, nodes, attributes)
    kinds = _kinds(operator, nodes, attributes) if types is None else None
    simplifies = operator.foldable or operator.simplify_rule is not None
    if simplifies and name is None and types is not None:
        simpler = _simplified(operator, nodes, attributes, types)
        if simpler is not None:
            return simpler
    if operator.stateful:
        return _of_kinds(make(operator, nodes, attributes, types, name), kinds)
    operands: Any = nodes
    if operator.commutative and len(nodes) == 2 and _later(nodes[0], nodes[1]):
        operands = (nodes[1], nodes[0])
    key = _key(operator, operands, attributes, name, types)
    return _of_kinds(interned(key, operator, nodes, attributes, types, name), kinds)


def _key(
    operator: Operator, operands: Any, attributes: Attributes, name: str | None, types: Types | None
) -> Any:
    """What equal calls have in common.

    The types are part of it: JAX's x64 flag may have changed what the same call computes. So is the
    scope: what is equal outside of it may be kept.
    """
    key = (operator, operands, identity_key(attributes) if attributes else (), name, types)
    scope = current_scope()
    return key if scope is None else (*key, scope)


def _kinds(
    operator: Operator, nodes: Sequence[Node | None], attributes: Attributes
) -> tuple[VarKind, ...] | None:
    """Kinds of the outputs where types are not known yet; None where all are dense.

    So a value of the wrong kind is refused when the call is made, not when shapes are known.
    """
    given = tuple([None if node is None else _kind_of(node) for node in nodes])
    keeps_dense = operator.inference.kind_rule is None or operator.row_slots
    if keeps_dense and not any(kind is not VarKind.LOD_TENSOR for kind in given):
        return None
    try:
        return operator.inference.kinds(given, attributes)
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
    """``inputs`` with random key and training flag where the call left them out."""
    return tuple(
        _implicit(operator, i, attributes) if value is LEFT_OUT else value
        for i, value in enumerate(inputs)
    )


def _implicit(operator: Operator, index: int, attributes: Attributes) -> Node | None:
    """What fills a slot that was left out; None where an attribute says that it is not used."""
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
    """``message`` with the names of the values that are no dense arrays in its first line."""
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
    """Types of the outputs; what does not fit is refused with the line that built the node.

    The training flag has a type of its own, whether it is still open or a constant already.
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
) -> Node | None:
    """A node of equal value and type that needs no new one, or None."""
    if operator.simplify_rule is not None:
        simpler: Node | None = operator.simplify_rule(nodes, attributes)
        if simpler is not None and simpler.types == types:
            return simpler
    if operator.rearranges:
        return _rearranged(nodes, types[0])
    if operator.foldable and all(node is not None and node.op is CONSTANT for node in nodes):
        return _folded(operator, nodes, attributes, types[0])
    return None


def _rearranged(nodes: tuple[Node | None, ...], out: VarType) -> Node | None:
    """Entries of arrays that all hold one number, in another arrangement: that number."""
    filled = [node for node in nodes if node is not None and node.op is CONSTANT]
    if len(filled) < len(nodes):
        return None
    keys = {identity_key(node.attributes[0]) for node in filled}
    return constant(filled[0].attributes[0], out) if len(keys) == 1 else None


def _folded(
    operator: Operator, nodes: tuple[Node | None, ...], attributes: Attributes, out: VarType
) -> Node | None:
    """The constant that ``operator`` makes of constants, computed in the dtype of the result.

    Python scalars stay Python scalars: they are computed in double precision, as Python would.
    """
    if operator.reference is None:
        return None
    weak = all(node is not None and node.attributes[1] is None for node in nodes)
    with np.errstate(all="ignore"):
        if weak:
            numbers = [node.attributes[0] for node in nodes if node is not None]
        else:
            # A comparison compares in its operands' dtype, not in that of its result.
            operands = [node.type for node in nodes if node is not None]
            dtype = promoted(*operands)[0] if out.dtype == np.bool_ else out.dtype
            numbers = [np.asarray(node.attributes[0], dtype) for node in nodes if node is not None]
        value = np.asarray(
            operator.reference(*numbers, **operator.attribute_dict(attributes))
        ).item()
    folded = constant(value) if weak else constant(value, out)
    return folded if folded.types == (out,) else None


# Rebuilding ------------------------------------------------------------------------------------

Image = Node | list[Node]
"""What a node becomes when a graph is rebuilt: a list for a deferred node that expanded."""


def substitute(outputs: Sequence[Node], replacements: Mapping[Node, Node]) -> list[Node]:
    """``outputs`` with some nodes replaced; what depends on them is rebuilt, the rest is shared."""
    image = images(outputs, replacements)
    return [image_of(image, output) for output in outputs]


def image_of(image: Mapping[Node, Image], node: Node) -> Node:
    """What ``node``, which stands for one value, became."""
    return _value(image[node])


def images(
    outputs: Sequence[Node], replacements: Mapping[Node, Node], unscoped: bool = False
) -> dict[Node, Image]:
    """What each node that ``outputs`` need becomes, in the order in which they were made.

    If ``unscoped`` it is in none of the scopes of before.
    """
    image: dict[Node, Image] = dict(replacements)
    # In the order in which they were made: a loop of the user's stays a sequence of equal blocks.
    for node in by_age(topological(outputs, until=replacements)):
        if node not in image:
            origin = node.origin
            if unscoped and origin is not None and origin.scope is not None:
                origin = origin._replace(scope=None)
            with copied_origin(origin):
                became = image[node] = rebuilt(node, image, unscoped)
            if node.shown and isinstance(became, Node):
                became.shown = True
    return image


def rebuilt(node: Node, image: Mapping[Node, Image], steady: bool = False) -> Image:
    """``node`` over the images of its inputs; inferred and simplified anew.

    If ``steady`` it updates no state.
    """
    if node.op is SELECT:
        (source,) = node.operands
        became = image[source]
        if isinstance(became, list):
            return became[node.attributes[0]]
        return node if became is source else select(became, node.attributes[0])
    inputs = tuple([None if child is None else _value(image[child]) for child in node.inputs])
    if node.op is DEFERRED:
        present = [child for child in inputs if child is not None]
        return expanded(node.attributes[0], present, node.operands)
    if inputs == node.inputs:
        return node
    assert isinstance(node.op, Operator)
    operator = node.op.steady if steady else node.op
    return apply(operator, inputs, node.attributes, node.name)


def reapplied(node: Node, inputs: Inputs) -> Node:
    """The operator of ``node`` over other inputs of the same types: not inferred nor simplified.

    Only what adds up any number of inputs may get fewer.
    """
    operator = node.op
    assert isinstance(operator, Operator)
    if operator.stateful:
        return make(operator, inputs, node.attributes, node.types, node.name)
    operands: Any = inputs
    if operator.commutative and len(inputs) == 2 and _later(inputs[0], inputs[1]):
        operands = (inputs[1], inputs[0])
    key = _key(operator, operands, node.attributes, node.name, node.types)
    return interned(key, operator, inputs, node.attributes, node.types, node.name)


def _value(image: Image) -> Node:
    assert not isinstance(image, list)
    return image


def expanded(
    expansion: Expansion, inputs: Sequence[Node], originals: Sequence[Node] | None = None
) -> Image:
    """What ``expansion`` stands for when all types are known, else a node that waits for them."""
    if all(node.types is not None for node in topological(inputs)):
        return expansion.expand(inputs, inputs if originals is None else originals)
    return make(DEFERRED, tuple(inputs), (expansion,), None, None)
