"""A graph of MXNet's operators becomes a graph of the catalogue, once its variables have types."""

from collections.abc import Mapping, Sequence
from typing import Any

from symop.building import Group, var
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.graph import Entry, Node, state_ids
from symop.interop.mxnet.inferring import Inference, bodies_of
from symop.interop.mxnet.partial_shapes import Partial, is_known
from symop.interop.mxnet.writing import writing
from symop.symbol import Symbol


def translated(
    heads: Sequence[Entry],
    shapes: Mapping[str, Partial],
    dtypes: Mapping[str, Any] | None = None,
) -> Symbol:
    """The symbol of the catalogue that computes ``heads``, with variables of the same names.

    Args:
        heads: outputs of the graph.
        shapes: of variables, as many as do not follow from others.
        dtypes: of variables, likewise.

    Raises:
        MXNetError: a shape does not follow, or does not fit; the message names the node.
    """
    types = Inference(heads, shapes, dtypes)
    states = state_ids(types.nodes)
    _require_names(types.nodes)
    made: dict[int, tuple[Any, ...]] = {}
    for node in types.nodes:
        if node.is_variable:
            shape, dtype = types.type(node)
            made[id(node)] = (var(node.name, shape, dtype, state=id(node) in states),)
        else:
            inputs = [made[id(below)][i] for below, i in node.inputs]
            made[id(node)] = applied(node, inputs, types.shape((node, 0)))
    values = Group([made[id(node)][index] for node, index in heads])
    variables = [made[id(node)][0].node for node in types.nodes if node.is_variable]
    return Symbol(values.nodes, tuple(variables))  # in MXNet's order, also those it can do without


def applied(node: Node, inputs: Sequence[Any], shape: Partial) -> tuple[Any, ...]:
    """The visible outputs of a call, of values whose shapes are known.

    What the call writes into its states is an effect of any of them.

    Args:
        node: the call.
        inputs: what it is called with.
        shape: that of its first output; a call without inputs may have told it in part, such as
            the zeros that a recurrent network begins with.
    """
    assert node.operator is not None
    values = node.values
    if not inputs and "shape" in values and not is_known(values["shape"] or None):
        values = {**values, "shape": shape}
    try:
        found = node.operator.call(inputs, values, bodies_of(node))
    except MXNetError as error:
        raise MXNetError(f"{error} (node {node.name!r})") from None
    visible = node.visible
    if len(found) == visible:
        return found
    names = zip(node.operator.present(values), inputs, strict=True)
    states = [one for name, one in names if name in node.operator.states]
    return writing(found[:visible], states, found[visible:])


def _require_names(nodes: Sequence[Node]) -> None:
    """Refuse two variables of one name, which could not be fed."""
    seen: set[str] = set()
    for node in nodes:
        if node.is_variable and node.name in seen:
            raise MXNetError(f"bind: names of variables must differ, got two of {node.name!r}")
        seen.update([node.name] if node.is_variable else [])
