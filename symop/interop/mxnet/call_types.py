"""Types of the results of calls, and graphs called by control flow."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from registry.caches import memoized
from registry.types import DType
from symop.interop.mxnet.attributes import Shape
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.graph import Entry, Node, topological
from symop.interop.mxnet.operators import Operator
from symop.symbol.building import var

Type = tuple[Shape, DType]
Body = Callable[[Sequence[Any]], list[Any]]


def outputs_of(node: Node, types: Sequence[Type]) -> tuple[Type, ...]:
    """Types of the visible outputs of a call on inputs of ``types``."""
    assert node.operator is not None
    if node.subgraphs:
        return _computed(node.operator, node.values, types, bodies_of(node))
    attributes = tuple(sorted(node.attributes.items()))
    return _outputs(node.operator, attributes, tuple(types))


@memoized(4096)
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
    """The bodies of a control-flow call, as functions of their variables in order."""
    return [functools.partial(run_graph, heads) for heads in node.subgraphs]


def run_graph(heads: Sequence[Entry], given: Sequence[Any]) -> list[Any]:
    """Computes a graph on values of known shapes, one for each variable."""
    nodes = topological(heads)
    variables = [node for node in nodes if node.is_variable]
    made = {id(node): (one,) for node, one in zip(variables, given, strict=True)}
    for node in nodes:
        if node.operator is not None:
            inputs = [made[id(below)][i] for below, i in node.inputs]
            made[id(node)] = node.operator.call(inputs, node.values, bodies_of(node))
    return [made[id(node)][index] for node, index in heads]


def forget_types() -> None:
    """Clears the cache of inferred types, since an operator was replaced."""
    _outputs.cache_clear()
