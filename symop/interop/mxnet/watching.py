"""What a monitor sees of a pass: values of all nodes, and the gradients of their inputs.

Monitored passes repeat the pass, one call after the other; random operators draw new numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp

import symop as so
from symop.interop.mxnet.arrays import NDArray
from symop.interop.mxnet.call_types import bodies_of
from symop.interop.mxnet.graph import Entry, Node, topological

Monitor = Callable[[str, NDArray], None]
Values = dict[tuple[int, int], Any]
_UNNAMED = ("Activation", "SoftmaxActivation")
"""Operators whose inputs have no names in MXNet."""


def _called(node: Node, inputs: Sequence[so.NDArray]) -> tuple[Any, ...]:
    assert node.operator is not None
    return node.operator.call(inputs, node.values, bodies_of(node))[: node.visible]


def watched_values(
    heads: Sequence[Entry],
    held: Mapping[str, Any],
    tell: Monitor,
    *,
    is_train: bool,
    inputs: bool,
) -> Values:
    """The values of all nodes, each of which is told.

    Args:
        heads: outputs of the graph.
        held: JAX arrays of the variables by name.
        tell: called with the name and the value of each output, in order.
        is_train: whether operators behave as in training.
        inputs: whether the inputs of each call are told before its outputs.
    """
    values: Values = {}
    for node in topological(heads):
        if node.is_variable:
            values[id(node), 0] = held[node.name]
            continue
        given = [values[id(below), i] for below, i in node.inputs]
        if inputs:
            tell_inputs(node, [NDArray(so.NDArray(one)) for one in given], tell)
        with so.autograd.pause(train_mode=is_train):
            outputs = _called(node, [so.NDArray(one) for one in given])
        for i, one in enumerate(outputs):
            values[id(node), i] = one.value
            tell(node.output_name(i), NDArray(so.NDArray(one.value)))
    return values


def tell_inputs(node: Node, given: Sequence[NDArray], tell: Monitor) -> None:
    """Tells the inputs of a call."""
    assert node.operator is not None
    names: Sequence[str] = node.operator.present(node.values)
    if node.operator.name in _UNNAMED:
        names = [f"input{i}" for i in range(len(names))]
    for name, value, (below, _) in zip(names, given, node.inputs, strict=True):
        if below.is_variable:
            tell(below.name, value)
        tell(f"{node.name}_{name}", value)


def watch_gradients(
    heads: Sequence[Entry],
    cotangents: Sequence[Any],
    values: Values,
    tell: Monitor,
    *,
    is_train: bool,
) -> None:
    """Tells the gradients that each call passes to its inputs, the last call first."""
    flowing: Values = {}
    for (node, i), one in zip(heads, cotangents, strict=True):
        _add(flowing, (id(node), i), one)
    for node in reversed(topological(heads)):
        above = [flowing.get((id(node), i)) for i in range(node.visible)]
        if node.is_variable or all(one is None for one in above):
            continue
        states = {id(one) for one in node.states()}
        found = _slopes(node, values, above, is_train)
        told = [
            (entry, one)
            for entry, one in zip(node.inputs, found, strict=True)
            if id(entry[0]) not in states
        ]
        for at, ((below, i), one) in enumerate(told):
            number = at if len(told) > 1 else ""
            tell(f"{node.name}_backward_output{number}", NDArray(so.NDArray(one)))
            _add(flowing, (id(below), i), one)


def _add(flowing: Values, key: tuple[int, int], one: Any) -> None:
    flowing[key] = flowing[key] + one if key in flowing else one


def _slopes(node: Node, values: Values, above: Sequence[Any], is_train: bool) -> list[Any]:
    """The gradients of a call's inputs; zeros where there is none."""
    given = [so.NDArray(values[id(below), i]) for below, i in node.inputs]
    moving = [one for one in given if one.type.differentiable]
    for one in moving:
        one.attach_grad()
    with so.autograd.record(train_mode=is_train):
        outputs = _called(node, given)
        pairs = [
            (output, jnp.zeros(output.shape, output.dtype) if one is None else one)
            for output, one in zip(outputs, above, strict=True)
            if output.is_recorded
        ]
    if pairs:
        so.autograd.backward([one for one, _ in pairs], [so.NDArray(one) for _, one in pairs])
    return [
        jnp.zeros(one.shape, one.dtype) if one.grad is None else one.grad.value for one in given
    ]
