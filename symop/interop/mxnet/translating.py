"""Translation of MXNet graphs with typed variables into graphs of the catalogue."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from registry.caches import memoized
from registry.types import DType
from symop.interop.mxnet.attributes import Shape
from symop.interop.mxnet.call_types import bodies_of
from symop.interop.mxnet.calls import by_place
from symop.interop.mxnet.errors import MXNetError, require_known
from symop.interop.mxnet.graph import Entry, Node, state_ids
from symop.interop.mxnet.inferring import Inference
from symop.interop.mxnet.partial_shapes import Partial, is_known
from symop.interop.mxnet.writing import writing
from symop.symbol.building import Group, var
from symop.symbol.symbol import Symbol

_TYPES = 64
"""The maximal number of cached type combinations of a function of arrays."""


def translated(
    heads: Sequence[Entry],
    shapes: Mapping[str, Partial],
    dtypes: Mapping[str, Any] | None = None,
) -> Symbol:
    """Translates ``heads`` into a symbol of the catalogue, with variables of the same names.

    Args:
        heads: outputs of the graph.
        shapes: shapes of variables that cannot be inferred.
        dtypes: dtypes of variables that cannot be inferred.

    Raises:
        MXNetError: a shape cannot be inferred, or does not fit; the message names the node.
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
    variables = [made[id(node)][0].node for node in types.variables()]
    return Symbol(values.nodes, tuple(variables))  # in MXNet's order, including unused ones


def as_function(heads: Sequence[Entry], names: Sequence[str], is_train: bool) -> Callable[..., Any]:
    """The graph as a function of arrays; see ``mx.sym.Symbol.to_jax``.

    Args:
        heads: outputs of the graph.
        names: names of all variables, arguments first.
        is_train: whether it runs as in training.
    """

    @memoized(_TYPES)
    def made(types: tuple[tuple[Shape, DType], ...]) -> Callable[..., Any]:
        shapes = {name: shape for name, (shape, _) in zip(names, types, strict=True)}
        dtypes = {name: dtype for name, (_, dtype) in zip(names, types, strict=True)}
        return translated(heads, shapes, dtypes).to_jax(is_train=is_train)

    def call(*args: Any, key: Any = None, random_key: Any = None, **arrays: Any) -> Any:
        if "key" in names and key is not None:
            arrays["key"], key = key, None
        given = by_place("to_jax", names, args, arrays)
        _require_all(names, given)
        values = [getattr(given[name], "value", given[name]) for name in names]
        function = made(tuple((np.shape(one), _dtype(one)) for one in values))
        return function(*values, key=random_key if key is None else key)

    return call


def _require_all(names: Sequence[str], given: Mapping[str, Any]) -> None:
    require_known("to_jax: names", given, names)
    missing = [name for name in names if name not in given]
    if missing:
        raise MXNetError(f"to_jax: arrays must be given for all, got none for {', '.join(missing)}")


def _dtype(value: Any) -> DType:
    return np.dtype(getattr(value, "dtype", None) or np.asarray(value).dtype)


def applied(node: Node, inputs: Sequence[Any], shape: Partial) -> tuple[Any, ...]:
    """The visible outputs of a call on values of known shapes.

    Writes to states are effects of the outputs.

    Args:
        node: the call.
        inputs: the inputs of the call.
        shape: the shape of its first output; for a call without inputs whose attribute is a
            partial shape, such as the zeros of a recurrent network's initial state.
    """
    assert node.operator is not None
    values = node.values
    if not inputs and "shape" in values and not is_known(values["shape"] or None):
        values = {**values, "shape": shape}
    try:
        result = node.operator.call(inputs, values, bodies_of(node))
    except MXNetError as error:
        raise MXNetError(f"{error} (node {node.name!r})") from None
    visible = node.visible
    if len(result) == visible:
        return result
    names = zip(node.operator.present(values), inputs, strict=True)
    states = [one for name, one in names if name in node.operator.states]
    return writing(result[:visible], states, result[visible:])


def _require_names(nodes: Sequence[Node]) -> None:
    """Rejects variables without names, and variables with equal names, which could not be fed."""
    seen: set[str] = set()
    for node in nodes:
        if node.is_variable and not node.name:
            raise MXNetError("bind: a variable must have a name, got an empty one")
        if node.is_variable and node.name in seen:
            raise MXNetError(f"bind: names of variables must differ, got two of {node.name!r}")
        seen.update([node.name] if node.is_variable else [])
