"""Type inference over a whole graph: forward from variables, and backward to parameters."""

from collections.abc import Mapping, Sequence
from typing import Any

from registry.errors import DTypeError, ShapeError, SymopError, UnknownTypeError
from registry.operator.operator import Operator
from registry.shapes import canonical, default_float
from registry.types import DType, Shape, VarType
from symop.graph.emission import infer_node
from symop.graph.naming import variables_of
from symop.graph.nodes import (
    DEFERRED,
    VARIABLE,
    Node,
    built_at,
    copied_origin,
    topological,
    variable,
)
from symop.graph.rewriting import substitute

Known = dict[Node, tuple[VarType | None, ...]]
"""The types of the outputs of each node, where known."""


def infer_types(outputs: Sequence[Node], fixed: Mapping[Node, VarType]) -> Known:
    """Returns the type of every node that follows from ``fixed`` and the graph's declarations.

    Each sweep goes forward through the graph and then backward; sweeps repeat until one finds
    nothing new. Nodes whose type cannot be inferred are missing from the result.

    Raises:
        ShapeError, DTypeError: Types contradict each other.
    """
    order = topological(outputs)
    known: Known = {node: node.types for node in order if node.types is not None}
    known.update({node: (type,) for node, type in fixed.items()})
    stale = [node for node in order if node.types is None or not set(node.inputs).isdisjoint(fixed)]
    before = -1
    while before != len(known):
        before = len(known)
        for node in order if fixed else stale:
            _forward(node, known, fixed)
        for node in reversed(stale):
            _backward(node, known)
    return known


def _forward(node: Node, known: Known, fixed: Mapping[Node, VarType]) -> None:
    if node in fixed or not node.inputs:
        return
    if node.is_selection:
        if node.source in known:
            known[node] = (known[node.source][node.index],)
        return
    types = _input_types(node, known)
    if isinstance(node.op, Operator) and types is not None:
        known[node] = infer_node(node.op, types, node.attributes, node.origin)
    elif node.op is DEFERRED and types is not None:
        (expansion,) = node.attributes
        known[node] = _derivative_types(expansion, [one for one in types if one is not None])


def _derivative_types(expansion: Any, inputs: Sequence[VarType]) -> tuple[VarType, ...]:
    """Returns the types of gradients, those of the xs, or of tangents, those of the ys."""
    ys, rest = inputs[: expansion.n_ys], inputs[expansion.n_ys :]
    moving = rest[: expansion.n_xs] if expansion.name == "grad" else ys
    return tuple(one.strong() for one in moving)


def _input_types(node: Node, known: Known) -> tuple[VarType | None, ...] | None:
    """Returns the types of the inputs, or None if one is unknown."""
    types: list[VarType | None] = []
    for child in node.inputs:
        if child is None:
            types.append(None)
        elif child in known:
            types.append(known[child][0])
        else:
            return None
    return tuple(types)


def _backward(node: Node, known: Known) -> None:
    """Infers unknown shapes of inputs from the other inputs and the outputs."""
    if not isinstance(node.op, Operator) or node.op.inference.complete_rule is None:
        return
    inputs = [known[c][0] if c is not None and c in known else None for c in node.inputs]
    missing = [i for i, c in enumerate(node.inputs) if c is not None and inputs[i] is None]
    if not missing:
        return
    outputs = known.get(node, (None,) * len(node.op.outputs))
    shapes = node.op.inference.complete(tuple(inputs), node.attributes, outputs)
    for i in missing:
        child = node.inputs[i]
        if i in shapes and child is not None:
            known[child] = (VarType(shapes[i], _dtype_for(child, inputs, outputs)),)


def _dtype_for(
    child: Node, inputs: Sequence[VarType | None], outputs: Sequence[VarType | None]
) -> DType:
    """Returns the dtype a variable declares, or else that of the floating values around it."""
    if child.op is VARIABLE and child.attributes[1] is not None:
        return canonical(child.attributes[1])
    for type in (*inputs, *outputs):
        if type is not None and type.differentiable:
            return type.dtype
    return default_float()


def variable_type(node: Node, shape: Shape, dtype: DType | None = None) -> VarType:
    """Returns the type of variable ``node`` when it holds an array of ``shape`` and ``dtype``.

    A variable that declares a shape also has a dtype; one without a shape takes the given shape.

    Raises:
        ShapeError, DTypeError: The variable declares another type.
    """
    if node.types is not None:
        declared = node.types[0]
        _require(ShapeError, "shape", node, declared.shape, tuple(shape))
        if dtype is not None:
            _require(DTypeError, "dtype", node, declared.dtype, canonical(dtype))
        return declared
    chosen = node.attributes[1]
    if chosen is not None and dtype is not None:
        _require(DTypeError, "dtype", node, canonical(chosen), canonical(dtype))
    chosen = dtype if chosen is None else chosen
    return VarType(tuple(shape), default_float() if chosen is None else canonical(chosen))


def _require(error: type[SymopError], what: str, node: Node, declared: object, got: object) -> None:
    if declared != got:
        raise error(
            f"{node.name}: the {what} must be the declared {declared}, got {got}"
            f"{built_at(node.origin)}"
        )


def is_typed(outputs: Sequence[Node]) -> bool:
    """Whether the types of all nodes are known."""
    return all(node.types is not None for node in topological(outputs))


def redeclare(outputs: Sequence[Node], known: Known) -> list[Node]:
    """Rebuilds ``outputs`` over variables that declare the types ``known`` of them."""
    changed: dict[Node, Node] = {}
    for name, node in variables_of(outputs).items():
        type = known[node][0] if node in known else None
        if type is not None and node.types != (type,):
            _, _, role, extra = node.attributes
            with copied_origin(node.origin):
                changed[node] = variable(name, type.shape, type.dtype, role, extra, type.kind)
    # A deferred derivative may remain although every variable is typed, as after loading a file.
    waits = not changed and any(node.op is DEFERRED for node in topological(outputs))
    return substitute(outputs, changed) if changed or waits else list(outputs)


def with_shapes(outputs: Sequence[Node], shapes: Mapping[str, Shape]) -> list[Node]:
    """Returns ``outputs`` over variables that declare other shapes; types are inferred again.

    Variables that declare no shape stay as they are.
    """
    changed: dict[Node, Node] = {}
    for name, node in variables_of(outputs).items():
        if node.types is None or node.type.shape == shapes.get(name, node.type.shape):
            continue
        _, dtype, role, extra = node.attributes
        with copied_origin(node.origin):
            changed[node] = variable(name, shapes[name], dtype, role, extra, node.type.kind)
    return substitute(outputs, changed) if changed else list(outputs)


def infer_variables(
    outputs: Sequence[Node], declared: Mapping[str, tuple[Shape, DType | None]]
) -> list[Node]:
    """Returns ``outputs`` with the types of all variables known: given, declared or inferred.

    Raises:
        UnknownTypeError: Some types cannot be inferred; the message names their variables.
        ShapeError, DTypeError: A given type contradicts a declared one.
    """
    if is_typed(outputs):
        if declared:
            check_types(outputs, declared)
        return list(outputs)
    variables = variables_of(outputs)
    types = {variables[n]: variable_type(variables[n], *what) for n, what in declared.items()}
    known = infer_types(outputs, types)
    unknown = [name for name, node in variables.items() if node not in known]
    if unknown:
        raise UnknownTypeError(
            f"symbol: the shapes of all variables must be known, but those of "
            f"{', '.join(unknown)} do not follow from the given ones"
        )
    return redeclare(outputs, known)


def check_types(
    outputs: Sequence[Node], declared: Mapping[str, tuple[Shape, DType | None]]
) -> None:
    """Raises an error if a type in ``declared`` contradicts a declared one."""
    variables = variables_of(outputs)
    for name, (shape, dtype) in declared.items():
        variable_type(variables[name], shape, dtype)
