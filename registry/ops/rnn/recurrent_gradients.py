"""The gradient of a stack of recurrent layers, composed from those of single directions."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from registry.operator.operator import Grads
from registry.ops.core.broadcasting import cast, unbroadcast
from registry.ops.core.reductions import sum as sum_over
from registry.ops.core.slicing import concat
from registry.ops.indexing.getitem import getitem
from registry.ops.rnn.recurrent_layers import Place, in_layer
from registry.ops.rnn.time_steps import Course, blocks, plus, summed_outer


class Back(NamedTuple):
    """Cotangents in one direction of one layer.

    Attributes:
        input: at all steps, that of the sums to which the input's product contributes.
        recurrent: at all steps, that of the sums to which the recurrent product contributes.
        kept: the part for the initial hidden state other than through the recurrent product, or
            None.
        cell: that of the initial cell, or None.
        projection: that of the projection, or None.
    """

    input: Any
    recurrent: Any
    kept: Any = None
    cell: Any = None
    projection: Any = None


Pull = Callable[[Place, Course, Any, Any], Back]
"""The function from a place, its course, its outputs and their cotangents to inner cotangents."""


class Layers(NamedTuple):
    """The inputs of the gradient of a stack of layers.

    Attributes:
        data: the input.
        hidden: the initial hidden states, or None.
        places: the directions of the layers.
        out: the last layer's result.
        between: the results of the layers below.
        lengths: the lengths of the sequences, or None.
        taken: a mask of steps within sequences; empty without lengths.
    """

    data: Any
    hidden: Any
    places: Sequence[Place]
    out: Any
    between: Any
    lengths: Any
    taken: Any

    def course(self, place: Place) -> Course:
        """The order in which a place takes the steps."""
        taken = None if self.lengths is None else cast(self.taken, dtype=self.out.dtype)
        return Course(place.reverse, taken)

    @property
    def top(self) -> int:
        """The index of the last layer."""
        return self.places[-1].layer

    def at(self, layer: int) -> list[Place]:
        """The directions of one layer."""
        return in_layer(self.places, layer)

    def result(self, layer: int) -> Any:
        """The result of one layer; the data for layer -1."""
        if layer < 0:
            return self.data
        return self.out if layer == self.top else getitem(self.between, layer)


def pull_layers(
    layers: Layers, pull: Pull, d_out: Any, d_between: Any, d_last_hidden: Any
) -> tuple[Grads, list[Back]]:
    """The gradients of data, hidden states and weights, and the cotangents found at each place."""
    backs: list[Back] = []
    d_result = d_out
    for layer in range(layers.top, -1, -1):
        if layer < layers.top:
            d_result = _d_input(layers.at(layer + 1), backs)
            d_result = plus(d_result, None if d_between is None else getitem(d_between, layer))
        pulled = []
        for place, h, d_h in _by_direction(layers, layer, d_result):
            course = layers.course(place)
            last = state_of(d_last_hidden, place)
            d_last = None if last is None else course.at_last(last, h)
            pulled.append(pull(place, course, h, plus(course.own(d_h), d_last)))
        backs[:0] = pulled
    pairs = list(zip(layers.places, backs, strict=True))

    def d_hidden(place: Place, back: Back) -> Any:
        course = layers.course(place)
        fed = course.first(back.recurrent) @ place.weights.recurrent
        return plus(plus(fed, back.kept), course.none_of(state_of(d_last_hidden, place)))

    grads: Grads = {
        "data": lambda: unbroadcast(_d_input(layers.at(0), backs), layers.data),
        "hidden": lambda: stack_like([d_hidden(*pair) for pair in pairs], layers.hidden),
        "weights": [one for pair in pairs for one in _d_weights(layers, *pair)],
    }
    return grads, backs


def _d_input(mine: Sequence[Place], backs: Sequence[Back]) -> Any:
    """The cotangent of a layer's input, where ``backs`` begins with those of the layer."""
    products = [back.input @ place.weights.input for place, back in zip(mine, backs, strict=False)]
    return functools.reduce(plus, products)


def _by_direction(layers: Layers, layer: int, d_layer: Any) -> list[tuple[Place, Any, Any]]:
    """Each direction of a layer with its outputs and their cotangents."""
    mine, whole = layers.at(layer), layers.result(layer)
    outs = blocks(whole, len(mine))
    d_outs = [None] * len(mine) if d_layer is None else blocks(d_layer, len(mine))
    return list(zip(mine, outs, d_outs, strict=True))


def _d_weights(layers: Layers, place: Place, back: Back) -> list[Any]:
    """The gradients of the weights of one place, in the order of a call."""
    x = layers.result(place.layer - 1)
    h = blocks(layers.result(place.layer), len(layers.at(place.layer)))[place.reverse]
    weights, course = place.weights, layers.course(place)

    def recurrent() -> Any:
        total = summed_outer(course.after(back.recurrent), course.before(h))
        if layers.hidden is not None:
            first = course.first(back.recurrent)
            total = total + summed_outer(first, state_of(layers.hidden, place))
        return unbroadcast(total, weights.recurrent)

    def bias(d: Any, like: Any) -> Any:
        return unbroadcast(sum_over(d, axis=(0, 1)), like)

    grads = [lambda: unbroadcast(summed_outer(back.input, x), weights.input), recurrent]
    if weights.input_bias is not None:
        grads.append(lambda: bias(back.input, weights.input_bias))
        grads.append(lambda: bias(back.recurrent, weights.recurrent_bias))
    if weights.projection is not None:
        grads.append(lambda: unbroadcast(back.projection, weights.projection))
    return grads


def state_of(states: Any, place: Place) -> Any:
    """The state of one place, with an axis of length 1 before it; None if there are none."""
    return None if states is None else getitem(states, slice(place.state, place.state + 1))


def stack_like(parts: Sequence[Any], like: Any) -> Any:
    """The states of all places, as the gradient of ``like``; None if that is absent."""
    return None if like is None else unbroadcast(concat(*parts), like)
