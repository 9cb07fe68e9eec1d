"""Partial shapes of control-flow calls, which follow from their bodies."""

from collections.abc import Callable, Mapping, Sequence

from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.graph import Entry, Node, topological
from symop.interop.mxnet.partial_shapes import Partial, Shapes, merged

ShapeOf = Callable[[Entry], Partial]
Infer = Callable[[Sequence[Entry], Mapping[str, Partial]], ShapeOf]
"""From a graph and the shapes of its variables to the shape of each entry."""


def fill_bodies(node: Node, given: Shapes, found: Shapes, infer: Infer) -> None:
    """Enters what the bodies of a call tell of its inputs and outputs.

    Args:
        node: the call.
        given: the known shapes of its inputs.
        found: the known shapes of its outputs.
        infer: infers shapes in a body.

    Raises:
        MXNetError: shapes contradict each other.
    """
    assert node.operator is not None
    fill = _RULES.get(node.operator.name)
    # In a body, an array without axes could not be told from one of unknown shape.
    if fill is not None and () not in given:
        fill(node, given, found, infer)


def _foreach(node: Node, given: Shapes, found: Shapes, infer: Infer) -> None:
    values, (heads,) = node.values, node.subgraphs
    data, states = values["in_data_locs"], values["in_state_locs"]
    if any(shape is not None and len(shape) == 1 for shape in given[: len(data)]):
        return  # slices have no axes
    order = (*data, *states, *values["remain_locs"])
    _require(sorted(order) == list(range(len(given))), order)
    places = [order.index(i) for i in range(len(order))]
    shape_of = _inferred(heads, places, given, infer, sliced=len(data))
    count, length = values["num_out_data"], max(map(_length, given[: len(data)]), default=0)
    _require(len(heads) - count == len(states), states)
    for i, head in enumerate(heads):
        if i < count:
            found[i] = merged(found[i], _stacked(length, shape_of(head)))
        else:
            _equal(given, len(data) + i - count, found, i, shape_of(head))


def _while_loop(node: Node, given: Shapes, found: Shapes, infer: Infer) -> None:
    values, (holds, body) = node.values, node.subgraphs
    places = values["func_input_locs"]
    _inferred(holds, values["cond_input_locs"], given, infer)
    shape_of = _inferred(body, places, given, infer)
    count, own = values["num_out_data"], values["func_var_locs"]
    _require(len(body) - count == len(own), own)
    _require(all(0 <= one < len(places) for one in own), own)
    for i, head in enumerate(body):
        if i < count:
            stacked = _stacked(values["max_iterations"], shape_of(head))
            found[i] = merged(found[i], stacked)
        else:
            _equal(given, places[own[i - count]], found, i, shape_of(head))


def _cond(node: Node, given: Shapes, found: Shapes, infer: Infer) -> None:
    names = ("cond_input_locs", "then_input_locs", "else_input_locs")
    graphs = [
        (heads, _inferred(heads, node.values[name], given, infer))
        for heads, name in zip(node.subgraphs, names, strict=True)
    ]
    for heads, shape_of in graphs[1:]:
        for i, head in enumerate(heads):
            found[i] = merged(found[i], shape_of(head))


_RULES = {"_foreach": _foreach, "_while_loop": _while_loop, "_cond": _cond}


def _inferred(
    heads: Sequence[Entry], places: Sequence[int], given: Shapes, infer: Infer, *, sliced: int = 0
) -> ShapeOf:
    """Infers shapes in a body, and enters those of its variables.

    Args:
        heads: the outputs of the body.
        places: the input of the call for each variable of the body.
        given: the known shapes of the inputs.
        infer: infers shapes.
        sliced: the number of first inputs of which the body gets slices.
    """
    variables = [node for node in topological(heads) if node.is_variable]
    _require(len(variables) == len(places), places)
    _require(all(0 <= one < len(given) for one in places), places)
    pairs = list(zip(variables, places, strict=True))
    known = {}
    for variable, place in pairs:
        shape = given[place]
        known[variable.name] = shape[1:] if shape is not None and place < sliced else shape
    shape_of = infer(heads, known)
    for variable, place in pairs:
        shape = shape_of((variable, 0))
        own = _stacked(_length(given[place]), shape) if place < sliced else shape
        given[place] = merged(given[place], own)
    return shape_of


def _require(holds: bool, places: Sequence[int]) -> None:
    if not holds:
        raise MXNetError(
            f"the places of inputs must be those of the body of a loop or a branch, got {places}"
        )


def _equal(given: Shapes, place: int, found: Shapes, i: int, shape: Partial) -> None:
    """Enters the shape of a state, which is the same before and after each step."""
    given[place] = found[i] = merged(merged(given[place], found[i]), shape)


def _length(shape: Partial) -> int:
    return shape[0] if shape else 0


def _stacked(length: int, shape: Partial) -> Partial:
    return None if shape is None else (length, *shape)
