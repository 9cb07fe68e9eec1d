"""What rnn, lstm and gru share: layers and directions, their weights, and gradients through them."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.errors import AttributeValueError, ShapeError
from registry.operator import Grads
from registry.ops.broadcasting import unbroadcast
from registry.ops.getitem import getitem
from registry.ops.recurrence import after, before, summed_outer
from registry.ops.reductions import sum as sum_over
from registry.ops.shape import reshape, swapped
from registry.ops.slicing import concat, pad_slice
from registry.shapes import inexact, real
from registry.signature import Array
from registry.types import DType, Shape, VarType
from registry.var import Var


class Weights(NamedTuple):
    """The weights of one direction of one layer, in the order in which a call lists them."""

    input: Any
    recurrent: Any
    input_bias: Any = None
    recurrent_bias: Any = None
    projection: Any = None


class Place(NamedTuple):
    """One direction of one layer.

    Attributes:
        index: its place among the states.
        layer: its layer.
        weights: its weights.
        reverse: whether it runs from the last step to the first.
    """

    index: int
    layer: int
    weights: Weights
    reverse: bool


def directions(*, bidirectional: bool) -> int:
    """How many directions each layer has."""
    return 2 if bidirectional else 1


def places(weights: Sequence[Any], *, num_layers: int, bidirectional: bool) -> list[Place]:
    """Every direction of every layer, from the first layer on."""
    each = directions(bidirectional=bidirectional)
    count = len(weights) // (num_layers * each)
    return [
        Place(i, i // each, _read(weights[i * count : (i + 1) * count]), i % each == 1)
        for i in range(num_layers * each)
    ]


def _at(found: Sequence[Place], layer: int) -> list[Place]:
    """The directions of one layer."""
    return [place for place in found if place.layer == layer]


def _read(group: Sequence[Any]) -> Weights:
    """Two matrices, perhaps two biases, perhaps a projection."""
    if len(group) % 2:
        return Weights(*group[:-1])._replace(projection=group[-1])
    return Weights(*group)


def _listed(weights: Weights) -> list[Any]:
    """As a call lists them."""
    return [one for one in weights if one is not None]


# Rules ------------------------------------------------------------------------------------------


def layer_shapes(
    data: Shape,
    states: dict[str, Shape | None],
    weights: Sequence[Shape],
    *,
    gates: int,
    num_layers: int,
    bidirectional: bool,
    projects: bool = False,
) -> tuple[Shape, Shape, Shape, Shape]:
    """Shapes of the result, of the last hidden states and cells, and of what lies between layers.

    Raises:
        ShapeError: an input does not fit.
        AttributeValueError: there is no layer.
    """
    if len(data) != 3:
        raise ShapeError(f"data must have the axes time, batch and feature, got shape {data}")
    if num_layers < 1:
        raise AttributeValueError(f"num_layers must be at least 1, got {num_layers}")
    if data[0] == 0:
        raise ShapeError(f"data must have at least one step, got shape {data}")
    each = directions(bidirectional=bidirectional)
    whole = num_layers * each
    _refuse_count(len(weights), whole, projects=projects)
    length, width = weights[1][0] // gates if weights[1] else 0, weights[1][-1:]
    projected = len(weights) // whole % 2 == 1
    hidden = width[0] if projected and width else length
    features = data[2]
    for place in places(weights, num_layers=num_layers, bidirectional=bidirectional):
        inputs = features if place.layer == 0 else each * hidden
        _refuse_weights(place, gates * length, inputs, hidden, length)
    steps, batch = data[:2]
    last_hidden, last_cell = (whole, batch, hidden), (whole, batch, length)
    for (name, shape), expected in zip(states.items(), (last_hidden, last_cell), strict=False):
        if shape not in (None, expected):
            raise ShapeError(f"{name} must have shape {expected}, got {shape}")
    out = (steps, batch, each * hidden)
    return out, last_hidden, last_cell, (num_layers - 1, *out)


def _refuse_count(count: int, whole: int, *, projects: bool) -> None:
    allowed = (2, 3, 4, 5) if projects else (2, 4)
    if count not in [whole * one for one in allowed]:
        raise ShapeError(
            f"weights must be {', '.join(map(str, allowed[:-1]))} or {allowed[-1]} for each of "
            f"{whole} layers and directions, got {count}"
        )


def _refuse_weights(place: Place, rows: int, inputs: int, hidden: int, length: int) -> None:
    expected = Weights((rows, inputs), (rows, hidden), (rows,), (rows,), (hidden, length))
    got = place.weights
    fitting = [want for one, want in zip(got, expected, strict=True) if one is not None]
    if _listed(got) != fitting:
        raise ShapeError(
            f"the weights of layer {place.layer}{' in reverse' if place.reverse else ''} must "
            f"have the shapes {fitting}, got {_listed(got)}"
        )


def layer_dtype(*types: VarType) -> DType:
    """The floating dtype to which all inputs promote."""
    real(*types)
    return inexact(*types)[0]


# The kernel -------------------------------------------------------------------------------------

Step = Callable[[Weights, Any, Any], Any]
"""From weights, state and the input's sums at one step to the new state and what is kept of it.

A state is a tuple that begins with the hidden state, what is kept one that begins with the output.
"""


class Run(NamedTuple):
    """What a stack of layers gives.

    Attributes:
        out: the last layer's result.
        between: the results of the layers below.
        last: each part of the state after the last step, of all places.
        kept: what else is kept of each step, of all places.
    """

    out: Array
    between: Array
    last: list[Array]
    kept: list[Array]


def run_layers(
    step: Step,
    gates: int,
    data: Array,
    states: Sequence[Array | None],
    weights: Sequence[Array],
    *,
    num_layers: int,
    bidirectional: bool,
) -> Run:
    """Scan ``step`` over time, layer by layer; the input's products are made for all steps at once."""
    data, states, weights = _alike(data, states, weights)
    found = places(weights, num_layers=num_layers, bidirectional=bidirectional)
    layers, lasts, kept = [data], list[Any](), list[Any]()
    for layer in range(num_layers):
        outs = []
        for place in _at(found, layer):
            start = _start(place, states, gates, data.shape[1])
            sums = _input_sums(layers[-1], place.weights)
            last, (out, *rest) = lax.scan(
                functools.partial(step, place.weights), start, sums, reverse=place.reverse
            )
            outs.append(out)
            lasts.append(last)
            kept.append(rest)
        layers.append(jnp.concatenate(outs, axis=2))
    _, *below, out = layers
    between = jnp.stack(below) if below else jnp.zeros((0, *out.shape), out.dtype)
    return Run(out, between, _stacks(lasts), _stacks(kept))


def _stacks(rows: Sequence[Sequence[Array]]) -> list[Array]:
    """Each column stacked."""
    return [jnp.stack(column) for column in zip(*rows, strict=True)]


def _alike(
    data: Array, states: Sequence[Array | None], weights: Sequence[Array]
) -> tuple[Array, list[Array | None], list[Array]]:
    """The inputs in the dtype to which they promote."""
    present = [one for one in states if one is not None]
    dtype = jnp.result_type(data, *present, *weights)
    cast = [None if one is None else jnp.asarray(one, dtype) for one in states]
    return jnp.asarray(data, dtype), cast, [jnp.asarray(one, dtype) for one in weights]


def _input_sums(x: Array, weights: Weights) -> Array:
    """What the input and its bias add, at all steps."""
    product = x @ weights.input.T
    return product if weights.input_bias is None else product + weights.input_bias


def _start(
    place: Place, states: Sequence[Array | None], gates: int, batch: int
) -> tuple[Array, ...]:
    """The initial state of a place: zeros where none is given."""
    matrix = place.weights.recurrent
    lengths = (matrix.shape[1], matrix.shape[0] // gates)
    return tuple(
        jnp.zeros((batch, length), matrix.dtype) if one is None else one[place.index]
        for one, length in zip(states, lengths, strict=False)
    )


def recurrent_sums(weights: Weights, h: Array) -> Array:
    """What the hidden state and the recurrent bias add."""
    product = h @ weights.recurrent.T
    return product if weights.recurrent_bias is None else product + weights.recurrent_bias


# The reference ----------------------------------------------------------------------------------


def looped(
    step: Callable[..., Any],
    gates: int,
    data: np.ndarray,
    states: Sequence[np.ndarray | None],
    weights: Sequence[np.ndarray],
    *,
    num_layers: int,
    bidirectional: bool,
) -> list[np.ndarray]:
    """The last layer's result and the last states, by loops over layers, directions and steps.

    ``step`` gets the input, the state and the list of weights, and returns the new state.
    """
    rest, lasts, k = list(weights), [], 0
    count = len(weights) // (num_layers * (1 + bidirectional))
    for _ in range(num_layers):
        outs = []
        for backward in range(1 + bidirectional):
            own, rest = rest[:count], rest[count:]
            lengths = (own[1].shape[1], own[1].shape[0] // gates)
            state = [
                np.zeros((data.shape[1], length), data.dtype) if one is None else one[k]
                for one, length in zip(states, lengths, strict=False)
            ]
            seen = []
            for x in data[::-1] if backward else data:
                state = step(x, state, own)
                seen.append(state[0])
            outs.append(np.stack(seen[::-1] if backward else seen))
            lasts.append(state)
            k += 1
        data = np.concatenate(outs, axis=2)
    return [data, *(np.stack(column) for column in zip(*lasts, strict=True))]


def affine(x: np.ndarray, h: np.ndarray, own: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The sums of the input and those of the hidden state."""
    biases = own[2:4] if len(own) > 3 else (0, 0)
    return [x @ own[0].T + biases[0], h @ own[1].T + biases[1]]


def logistic(x: np.ndarray) -> np.ndarray:
    """The sigmoid."""
    return np.asarray(1 / (1 + np.exp(-x)))


# The gradient -----------------------------------------------------------------------------------


class Back(NamedTuple):
    """Cotangents in one direction of one layer.

    Attributes:
        input: at all steps, that of the sums to which the input's product contributes.
        recurrent: at all steps, that of the sums to which the recurrent product contributes.
        kept: what reaches the initial hidden state other than by the recurrent product, or None.
        cell: that of the initial cell, or None.
        projection: that of the projection, or None.
    """

    input: Any
    recurrent: Any
    kept: Any = None
    cell: Any = None
    projection: Any = None


Pull = Callable[[Place, Any, Any], Back]
"""From a place, its outputs at all steps and their cotangents to the cotangents inside."""


class Layers(NamedTuple):
    """What the gradient of a stack of layers is made from.

    Attributes:
        data: the input.
        hidden: the initial hidden states, or None.
        places: the directions of the layers.
        out: the last layer's result.
        between: the results of the layers below.
    """

    data: Any
    hidden: Any
    places: Sequence[Place]
    out: Any
    between: Any

    @property
    def top(self) -> int:
        """The last layer."""
        return self.places[-1].layer

    def at(self, layer: int) -> list[Place]:
        """The directions of one layer."""
        return _at(self.places, layer)

    def result(self, layer: int) -> Any:
        """The result of one layer, or the data for the layer -1."""
        if layer < 0:
            return self.data
        return self.out if layer == self.top else entry(self.between, layer)


def pull_layers(
    layers: Layers, pull: Pull, d_out: Any, d_between: Any, d_last_hidden: Any
) -> tuple[Grads, list[Back]]:
    """Gradients of data, hidden states and weights, and what is found at each place."""
    found: list[Back] = []
    d_layer = d_out
    for layer in range(layers.top, -1, -1):
        if layer < layers.top and d_between is not None:
            d_layer = d_layer + entry(d_between, layer)
        pulled = []
        for place, h, d_h in _by_direction(layers, layer, d_layer):
            last = None
            if d_last_hidden is not None:
                last = at_end(entry(d_last_hidden, place.index), h, reverse=place.reverse)
            pulled.append(pull(place, h, plus(d_h, last)))
        products = zip(pulled, layers.at(layer), strict=True)
        d_layer = functools.reduce(plus, [one.input @ p.weights.input for one, p in products])
        found[:0] = pulled
    columns = [
        _d_weights(layers, place, one) for place, one in zip(layers.places, found, strict=True)
    ]
    grads: Grads = {
        "data": unbroadcast(d_layer, layers.data),
        "hidden": stack_like([_d_hidden(*one) for one in zip(layers.places, found, strict=True)], layers.hidden),
        "weights": [one for column in columns for one in column],
    }
    return grads, found


def _by_direction(layers: Layers, layer: int, d_layer: Any) -> list[tuple[Place, Any, Any]]:
    """Each direction of a layer with its outputs and their cotangents."""
    mine, whole = layers.at(layer), layers.result(layer)
    outs = blocks(whole, len(mine))
    d_outs = [None] * len(mine) if d_layer is None else blocks(d_layer, len(mine))
    return list(zip(mine, outs, d_outs, strict=True))


def _d_weights(layers: Layers, place: Place, back: Back) -> list[Any]:
    """Gradients of the weights of one place, as a call lists them."""
    x = layers.result(place.layer - 1)
    h = blocks(layers.result(place.layer), len(layers.at(place.layer)))[place.reverse]
    weights = place.weights

    def recurrent() -> Any:
        received = after(back.recurrent, reverse=place.reverse)
        total = summed_outer(received, before(h, reverse=place.reverse))
        if layers.hidden is not None:
            first = at_first(back.recurrent, reverse=place.reverse)
            total = total + swapped(first) @ entry(layers.hidden, place.index)
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


def _d_hidden(place: Place, back: Back) -> Any:
    """The cotangent of one initial hidden state."""
    fed = at_first(back.recurrent, reverse=place.reverse) @ place.weights.recurrent
    return plus(fed, back.kept)


# Pieces of series --------------------------------------------------------------------------------


def plus(x: Any, y: Any) -> Any:
    """The sum of two values, either of which may be None for zero."""
    if x is None or y is None:
        return y if x is None else x
    return x + y


def entry(x: Any, index: int) -> Any:
    """One entry of the first axis."""
    return getitem(x, index)


def blocks(x: Any, count: int) -> list[Any]:
    """The last axis cut into ``count`` equal parts."""
    length = x.shape[-1] // count
    return [getitem(x, (..., slice(i * length, (i + 1) * length))) for i in range(count)]


def at_first(x: Any, *, reverse: bool) -> Any:
    """The first step that is taken."""
    return getitem(x, -1 if reverse else 0)


def at_end(x: Any, like: Any, *, reverse: bool) -> Any:
    """``x`` at the last step that is taken, and zeros at the others of ``like``."""
    last = reshape(x, shape=(1, *x.shape))
    begin = (0 if reverse else len(like) - 1, 0, 0)
    return pad_slice(last, shape=like.shape, begin=begin, step=(1, 1, 1))


def stack_like(parts: Sequence[Any], like: Any) -> Any:
    """The parts stacked, as the gradient of ``like``; None if that is absent."""
    if like is None:
        return None
    return unbroadcast(concat(*[reshape(one, shape=(1, *one.shape)) for one in parts]), like)
