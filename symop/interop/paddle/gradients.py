"""Gradient operators of saved programs, derived from the compositions of their forward operators.

``square_grad`` is a function of the slots that its call declares: the inputs and outputs of
``square``, and the gradients of its outputs. It is built once on placeholders: the composition of
``square`` is differentiated there, and its outputs are replaced by those that the call declares.
So ``square_grad_grad`` is the gradient of that function, and so on.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import symop as so
from symop.graph.nodes import Node, topological
from symop.graph.rewriting import substitute
from symop.interop.paddle.arrays import leaves, rebuilt
from symop.interop.paddle.operators import GRAD, find
from symop.interop.paddle.values import data_of, is_floating, with_data
from symop.lowering.steps import random_keys
from symop.symbol.symbol import Symbol

Slots = dict[str, list[Any]]
"""The values of each slot."""


class Place(NamedTuple):
    """One value of a slot."""

    slot: str
    at: int


class Placeholders:
    """Variables in the places of the values of slots, and the values that they stand for."""

    def __init__(self, prefix: str) -> None:
        """Creates no placeholders; ``prefix`` begins the names of those to come."""
        self._prefix = prefix
        self.actual: dict[str, Any] = {}

    def stand_for(self, slots: Mapping[str, Sequence[Any]]) -> Slots:
        """Returns slots with placeholders for all floating values."""
        return {
            slot: [self._of(f"{self._prefix}{slot}[{i}]", one) for i, one in enumerate(values)]
            for slot, values in slots.items()
        }

    def _of(self, name: str, value: Any) -> Any:
        if not is_floating(value):
            return value
        data = data_of(value)
        self.actual[name] = data
        return with_data(value, so.var(name, data.shape, data.dtype))

    def filled(self, value: Any) -> Any:
        """Returns a value with the actual values in place of their placeholders."""
        data = data_of(value)
        if not isinstance(data, Symbol):
            return value
        names = set(data.list_inputs()) & self.actual.keys()
        actual = {name: self.actual[name] for name in names}
        return with_data(value, data.replace(**actual) if actual else data)


def cotangents(
    outputs: Slots, inputs: Slots, heads: Mapping[Place, Any], wanted: Sequence[Place]
) -> dict[Place, Any]:
    """Returns the gradients of outputs with respect to inputs.

    Args:
        outputs: the outputs of a composition.
        inputs: its inputs, variables.
        heads: the gradients of some outputs.
        wanted: the inputs whose gradients are wanted.
    """
    places = [one for one in heads if is_floating(outputs[one.slot][one.at])]
    variables = [data_of(inputs[one.slot][one.at]) for one in wanted]
    if not places:
        return {one: so.zeros_like(each) for one, each in zip(wanted, variables, strict=True)}
    ys = [data_of(outputs[one.slot][one.at]) for one in places]
    seeds = [_shaped(data_of(heads[one]), each) for one, each in zip(places, ys, strict=True)]
    found = so.grad(ys, variables, seeds, unreachable="zero")
    return dict(zip(wanted, found, strict=True))


def _shaped(head: Any, output: Symbol) -> Any:
    """Returns the gradient of an output in its shape: that of a scalar may have shape (1,)."""
    if head.shape == output.shape or head.size != output.size:
        return head
    return so.reshape(head, shape=output.shape)


def by_outputs(results: Sequence[Symbol], computed: Slots, declared: Slots) -> list[Symbol]:
    """Returns ``results`` as functions of the outputs that a gradient call declares.

    Args:
        results: gradients, which may read the outputs that the composition computes.
        computed: these outputs.
        declared: the outputs that the call has as inputs.
    """
    images = {
        data_of(computed[slot][i]).node: data_of(one).node
        for slot, values in declared.items()
        for i, one in enumerate(values)
        if slot in computed and _is_shaped_alike(computed[slot], i, one)
    }
    nodes = substitute([one.node for one in results], images)
    return [Symbol([node], one.also) for node, one in zip(nodes, results, strict=True)]


def redrawn(outputs: Slots, like: Slots) -> Slots:
    """Returns the outputs of a composition with the random numbers that an earlier one draws.

    Args:
        outputs: what the composition computes.
        like: what the earlier one computes.
    """
    found = _symbols(outputs)
    keys = _keys(found)
    earlier = _keys(_symbols(like)) if keys else {}
    new = [one for one in keys if one not in earlier]
    old = [one for one in earlier if one not in keys]
    if not new or len(new) != len(old):
        return outputs
    nodes = substitute([one.node for one in found], dict(zip(new, old, strict=True)))
    images = {one.node: Symbol([node], one.also) for node, one in zip(nodes, found, strict=True)}
    return {slot: [_imaged(one, images) for one in values] for slot, values in outputs.items()}


def _symbols(slots: Slots) -> list[Symbol]:
    found = (leaf for values in slots.values() for one in values for leaf in leaves(one))
    return [leaf for leaf in found if isinstance(leaf, Symbol)]


def _keys(values: Sequence[Symbol]) -> dict[Node, None]:
    """Returns the random keys that values depend on, in the order in which they were made."""
    return dict.fromkeys(random_keys(topological([one.node for one in values])))


def _imaged(value: Any, images: Mapping[Node, Symbol]) -> Any:
    parts = leaves(value)
    return rebuilt(value, [images[one.node] if isinstance(one, Symbol) else one for one in parts])


def _is_shaped_alike(computed: Sequence[Any], index: int, declared: Any) -> bool:
    if index >= len(computed) or not is_floating(declared):
        return False
    one, other = data_of(computed[index]), data_of(declared)
    return all(isinstance(each, Symbol) for each in (one, other)) and one.shape == other.shape


def forward_type(name: str) -> str:
    """Returns the operator whose gradient ``name`` is, or an empty string.

    ``cross_entropy_grad2`` is the gradient of ``cross_entropy2``.
    """
    if name.endswith("_grad"):
        return name.removesuffix("_grad")
    return name.replace("_grad2", "2") if name.endswith("_grad2") else ""


def order_of(name: str) -> int:
    """Returns the order of a gradient operator: 1 for ``square_grad``, 0 for an operator itself."""
    order = 0
    while find(name) is None and forward_type(name):
        name, order = forward_type(name), order + 1
    return order


def suffix_of(order: int) -> str:
    """Returns the end of slots for gradients that an operator of an order reads or gives.

    Paddle's names for the second order cannot be told apart at higher orders, where the gradients
    of gradients by one slot are several: ``X@GRAD3`` and ``X@GRAD4``.
    """
    return GRAD if order < 3 else f"{GRAD}{order}"


def is_head(slot: str, order: int) -> bool:
    """Returns whether a slot holds gradients of outputs of the call that is differentiated.

    Args:
        slot: a slot of a gradient operator, as ``canonical`` names it.
        order: the order of the gradient operator.
    """
    return slot.endswith(GRAD * 2 if order == 2 else suffix_of(order))


_SPELLINGS = {f"outputs{GRAD}": f"Out{GRAD}"}
"""Slots that have another name in gradients alone: that of ``meshgrid`` in Paddle 2.6."""


def canonical(slot: str, forward: Collection[str]) -> str:
    """Returns the slot ``X@GRAD`` for other spellings of it in gradients.

    Args:
        slot: a slot; in gradients of second order ``DX`` is the gradient by ``X``, ``DDX`` that of
            ``X@GRAD``.
        forward: the slots of the forward operator.
    """
    if slot in _SPELLINGS and slot.removesuffix(GRAD) not in forward:
        return _SPELLINGS[slot]
    if slot.startswith("DD") and slot[2:] in forward:
        return slot[2:] + GRAD + GRAD
    if slot.startswith("D") and slot[1:] in forward:
        return slot[1:] + GRAD
    return slot
