"""Code shared by rnn, lstm and gru: layers, directions and weights, and scans over time."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from registry.cases import Sample, uniform
from registry.errors import AttributeValueError, DTypeError, ShapeError
from registry.operator.signature import Array, NewParameter
from registry.ops.rnn.recurrence import product, scanned
from registry.shapes import at_least_single, inexact, real
from registry.types import DType, Shape, VarType, is_integer


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
        state: the index of its state.
        layer: the index of its layer.
        weights: its weights.
        reverse: whether it runs from the last step to the first.
    """

    state: int
    layer: int
    weights: Weights
    reverse: bool


def usual_weights(gates: int, width: int) -> list[Sample]:
    """The weights of one layer, initialized as small as in training, for a workload."""
    shapes = [(gates, width), (gates, width), (gates,), (gates,)]
    return [uniform(*shape, low=-0.05, high=0.05) for shape in shapes]


def directions(*, bidirectional: bool) -> int:
    """The number of directions of each layer."""
    return 2 if bidirectional else 1


def places(weights: Sequence[Any], *, num_layers: int, bidirectional: bool) -> list[Place]:
    """All directions of all layers, from the first layer on."""
    each = directions(bidirectional=bidirectional)
    count = len(weights) // (num_layers * each)
    return [
        Place(i, i // each, _read(weights[i * count : (i + 1) * count]), i % each == 1)
        for i in range(num_layers * each)
    ]


def in_layer(all_places: Sequence[Place], layer: int) -> list[Place]:
    """The directions of one layer."""
    return [place for place in all_places if place.layer == layer]


def _read(group: Sequence[Any]) -> Weights:
    """Reads two matrices and optionally two biases and a projection."""
    if len(group) % 2:
        return Weights(*group[:-1])._replace(projection=group[-1])
    return Weights(*group)


def _listed(weights: Weights) -> list[Any]:
    """The weights in the order of a call."""
    return [one for one in weights if one is not None]


# Rules ------------------------------------------------------------------------------------------


def layer_shapes(
    data: Shape,
    states: dict[str, Shape | None],
    lengths: Shape | None,
    weights: Sequence[Shape],
    *,
    gates: int,
    num_layers: int,
    bidirectional: bool,
    hidden_size: int | None = None,
    projects: bool = False,
) -> tuple[Shape, Shape, Shape, Shape, Shape]:
    """Shapes of the result, last hidden states, last cells, results between layers, and mask.

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
    if hidden_size not in (None, length):
        raise ShapeError(f"hidden_size must be that of the weights, {length}, got {hidden_size}")
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
    if lengths not in (None, (batch,)):
        raise ShapeError(f"lengths must have shape {(batch,)}, got {lengths}")
    out = (steps, batch, each * hidden)
    taken = (0 if lengths is None else steps, batch, 1)
    return out, last_hidden, last_cell, (num_layers - 1, *out), taken


def new_weights(
    data: Shape | None,
    hidden_size: int | None,
    *,
    gates: int,
    num_layers: int,
    bidirectional: bool,
) -> list[NewParameter]:
    """The weights that a symbolic call creates: matrices and biases of all layers and directions.

    Matrices of the data start as Glorot and Bengio propose, those of the state orthogonal (Saxe,
    McClelland and Ganguli, "Exact solutions to the nonlinear dynamics of learning in deep linear
    neural networks", 2014), biases at zero.

    Raises:
        AttributeValueError: hidden_size is absent or not positive.
    """
    if hidden_size is None or hidden_size < 1:
        raise AttributeValueError(
            f"hidden_size must be positive where weights are left out, got {hidden_size}"
        )
    each, rows = directions(bidirectional=bidirectional), gates * hidden_size
    result = []
    for i in range(num_layers * each):
        below = None if data is None else data[-1]
        features = below if i < each else each * hidden_size
        start = f"layer{i // each}_" if num_layers > 1 else ""
        start += "reverse_" if i % each else ""
        result += [
            NewParameter(
                f"{start}input_weight",
                None if features is None else (rows, features),
                "glorot_uniform",
            ),
            NewParameter(f"{start}recurrent_weight", (rows, hidden_size), "orthogonal"),
            NewParameter(f"{start}input_bias", (rows,), "0.0"),
            NewParameter(f"{start}recurrent_bias", (rows,), "0.0"),
        ]
    return result


def completed(
    data: Shape | None, weights: Sequence[Shape | None], hidden_size: int | None, **how: Any
) -> dict[str, Any]:
    """The shapes of the weights that a call with ``hidden_size`` has created."""
    if hidden_size is None or data is None:
        return {}
    shapes = [one.shape for one in new_weights(data, hidden_size, **how)]
    return {"weights": shapes} if len(shapes) == len(weights) else {}


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


def layer_dtype(
    data: VarType,
    states: Sequence[VarType | None],
    lengths: VarType | None,
    weights: Sequence[VarType],
) -> DType:
    """The floating dtype to which data, states and weights promote."""
    if lengths is not None and not is_integer(lengths.dtype):
        raise DTypeError(f"lengths must be integers, got {lengths.dtype.name}")
    present = [data, *(one for one in states if one is not None), *weights]
    real(*present)
    return inexact(*present)[0]


# The kernel -------------------------------------------------------------------------------------

Step = Callable[[Weights, Any, Any], Any]
"""The function from weights, state and the input's sums at one step to the new state and residuals.

A state is a tuple that begins with the hidden state; residuals are a tuple that begins with the
output.
"""


class Run(NamedTuple):
    """The results of a stack of layers.

    Attributes:
        out: the last layer's result.
        between: the results of the layers below.
        last: each part of the state after the last step, for all places.
        kept: the other residuals of each step, for all places.
        taken: a mask of steps within sequences; empty without lengths.
    """

    out: Array
    between: Array
    last: list[Array]
    kept: list[Array]
    taken: Array


def run_layers(
    step: Step,
    gates: int,
    data: Array,
    states: Sequence[Array | None],
    lengths: Array | None,
    weights: Sequence[Array],
    *,
    num_layers: int,
    bidirectional: bool,
) -> Run:
    """Scans ``step`` over time, layer by layer, after computing the input's sums for all steps."""
    taken = _taken(len(data), data.shape[1], lengths)
    data, states, weights = _alike(data, states, weights)
    layer_places = places(weights, num_layers=num_layers, bidirectional=bidirectional)
    layers, lasts, kept = [data], list[Any](), list[Any]()
    for layer in range(num_layers):
        outs = []
        for place in in_layer(layer_places, layer):
            start = _start(place, states, gates, data.shape[1])
            run: Callable[..., Any] = functools.partial(step, place.weights)
            series: Any = _input_sums(layers[-1], place.weights)
            if lengths is not None:
                run, series = _stopping(run), (taken, series)
            last, (out, *rest) = scanned(run, start, series, data.dtype, reverse=place.reverse)
            outs.append(out)
            lasts.append(last)
            kept.append(rest)
        layers.append(jnp.concatenate(outs, axis=2))
    _, *below, out = layers
    between = jnp.stack(below) if below else jnp.zeros((0, *out.shape), out.dtype)
    return Run(out, between, _stacks(lasts), _stacks(kept), taken)


def _taken(steps: int, batch: int, lengths: Array | None) -> Array:
    """A mask of steps within sequences, ``(time, batch, 1)``; without lengths its time is empty."""
    if lengths is None:
        return jnp.zeros((0, batch, 1), bool)
    return (jnp.arange(steps)[:, None] < lengths)[..., None]


def _stopping(step: Callable[..., Any]) -> Callable[..., Any]:
    """A step that keeps the state of a sequence that has ended, and outputs zeros for it."""

    def stopped(state: Any, now: Any) -> Any:
        taken, sums = now
        new, outputs = step(state, sums)
        kept = [jnp.where(taken, one, old) for one, old in zip(new, state, strict=True)]
        return tuple(kept), [jnp.where(taken, one, 0) for one in outputs]

    return stopped


def _stacks(rows: Sequence[Sequence[Array]]) -> list[Array]:
    """Stacks each column."""
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
    """The contribution of the input and its bias to the sums, at all steps."""
    sums: Array = x @ weights.input.T
    return sums if weights.input_bias is None else sums + weights.input_bias


def _start(
    place: Place, states: Sequence[Array | None], gates: int, batch: int
) -> tuple[Array, ...]:
    """The initial state of a place, zero by default."""
    matrix = place.weights.recurrent
    dtype, lengths = at_least_single(matrix.dtype), (matrix.shape[1], matrix.shape[0] // gates)
    return tuple(
        jnp.zeros((batch, length), dtype) if one is None else one[place.state].astype(dtype)
        for one, length in zip(states, lengths, strict=False)
    )


def recurrent_sums(weights: Weights, h: Array) -> Array:
    """The contribution of the hidden state and the recurrent bias to the sums."""
    sums: Array = product(h, weights.recurrent.T)
    return sums if weights.recurrent_bias is None else sums + weights.recurrent_bias


# The reference ----------------------------------------------------------------------------------


def looped(
    step: Callable[..., Any],
    gates: int,
    data: np.ndarray,
    states: Sequence[np.ndarray | None],
    lengths: np.ndarray | None,
    weights: Sequence[np.ndarray],
    *,
    hidden_size: int | None = None,
    **how: Any,
) -> list[np.ndarray]:
    """Reference: the last layer's result and last states, by plain loops.

    The loops run over layers, directions and steps. ``step`` takes the input, the state and the
    list of weights, and returns the new state. With ``lengths`` each sequence runs separately.
    """
    del hidden_size
    if lengths is None:
        return _looped(step, gates, data, states, weights, **how)
    outs, lasts = [], []
    for n, length in enumerate(lengths):
        own = [None if one is None else one[:, n : n + 1] for one in states]
        out, *last = _looped(step, gates, data[:length, n : n + 1], own, weights, **how)
        outs.append(np.pad(out, [(0, len(data) - length), (0, 0), (0, 0)]))
        lasts.append(last)
    columns = [outs, *zip(*lasts, strict=True)]
    return [np.concatenate(column, axis=1) for column in columns]


def _looped(
    step: Callable[..., Any],
    gates: int,
    data: np.ndarray,
    states: Sequence[np.ndarray | None],
    weights: Sequence[np.ndarray],
    *,
    num_layers: int,
    bidirectional: bool,
) -> list[np.ndarray]:
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
            shape = (len(data), *state[0].shape)
            outs.append(np.array(seen[::-1] if backward else seen).reshape(shape))
            lasts.append(state)
            k += 1
        data = np.concatenate(outs, axis=2)
    return [data, *(np.stack(column) for column in zip(*lasts, strict=True))]


def affine(x: np.ndarray, h: np.ndarray, own: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The sums of the input, and those of the hidden state."""
    biases = own[2:4] if len(own) > 3 else (0, 0)
    return [x @ own[0].T + biases[0], h @ own[1].T + biases[1]]


def logistic(x: np.ndarray) -> np.ndarray:
    """The sigmoid."""
    return np.asarray(1 / (1 + np.exp(-x)))
