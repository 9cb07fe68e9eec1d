"""The fused recurrent layers, whose weights form one vector."""

from collections.abc import Iterator
from typing import Any, Literal

import symop as so
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.ops.indexing import whole
from symop.interop.mxnet.partial_dtypes import Dtypes, labeled, same
from symop.interop.mxnet.partial_shapes import Shapes, enter

Mode = Literal["rnn_relu", "rnn_tanh", "lstm", "gru"]
Lengths = tuple[int, ...]
Groups = list[list[Lengths]]
"""Shapes of the arrays of each cell."""
_GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}


def _weight_shapes(
    mode: str, features: int, units: int, layers: int, directions: int, projection: int | None
) -> tuple[list[list[Lengths]], list[list[Lengths]]]:
    """Shapes of the matrices and of the biases of each layer and direction."""
    rows, width = _GATES[mode] * units, projection or units
    matrices = []
    for layer in range(layers):
        wide = width * directions if layer else features
        one: list[Lengths] = [(rows, wide), (rows, width)]
        if projection:
            one.append((projection, units))
        matrices += [one] * directions
    return matrices, [[(rows,), (rows,)]] * (layers * directions)


def _cut(parameters: Any, groups: list[list[Lengths]], start: int) -> Iterator[list[Any]]:
    """The parts of the vector from ``start``, as arrays of the given shapes."""
    for group in groups:
        parts = []
        for shape in group:
            size = shape[0] * (shape[1] if len(shape) > 1 else 1)
            part = so.slice_axis(parameters, axis=0, begin=start, end=start + size)
            parts.append(so.reshape(part, shape=shape))
            start += size
        yield parts


def _count(groups: Groups) -> int:
    return sum(s[0] * (s[1] if len(s) > 1 else 1) for group in groups for s in group)


def _inputs(mode: str, use_sequence_length: bool) -> tuple[str, ...]:
    cell = ("state_cell",) if mode == "lstm" else ()
    lengths = ("sequence_length",) if use_sequence_length else ()
    return ("data", "parameters", "state", *cell, *lengths)


def _outputs(mode: str, state_outputs: bool) -> tuple[str, ...]:
    if not state_outputs:
        return ("output",)
    states = ("state_output", "statecell_output") if mode == "lstm" else ("state_output",)
    return ("output", *states)


def _shapes(
    given: Shapes,
    found: Shapes,
    state_size: int,
    num_layers: int,
    mode: str,
    bidirectional: bool,
    projection_size: int | None,
    use_sequence_length: bool,
) -> None:
    directions = 2 if bidirectional else 1
    width, both = projection_size or state_size, num_layers * directions
    enter(given, 0, (0, 0, 0))
    enter(found, 0, (0, 0, directions * width))
    assert given[0] is not None
    assert found[0] is not None
    enter(given, 0, (*found[0][:2], 0))
    state = given[2]
    if state is not None:
        enter(given, 0, (0, state[1], 0))
    steps, batch, features = given[0]
    enter(found, 0, (steps, batch, 0))
    states = [(both, batch, width), *([(both, batch, state_size)] if mode == "lstm" else [])]
    for i, shape in enumerate(states):
        enter(given, 2 + i, shape)
        enter(found, 1 + i, shape)
    if use_sequence_length:
        enter(given, len(given) - 1, (batch,))
    if features:
        parts = _weight_shapes(mode, features, state_size, num_layers, directions, projection_size)
        enter(given, 1, (sum(map(_count, parts)),))


def _dtypes(given: Dtypes, found: Dtypes, use_sequence_length: bool) -> None:
    values = given[:-1] if use_sequence_length else given
    same(values, found)
    given[: len(values)] = values
    labeled(given, found)


def _run(
    mode: str, data: Any, states: list[Any], lengths: Any, weights: list[Any], **how: Any
) -> list[Any]:
    """The results of some layers: the output of the last layer, and the final states."""
    if mode == "lstm":
        return list(so.lstm(data, *states, lengths, *weights, **how))
    if mode == "gru":
        return list(so.gru(data, *states, lengths, *weights, **how))
    activation: Any = mode[4:]
    return list(so.rnn(data, states[0], lengths, *weights, activation=activation, **how))


def _run_with_dropout(
    mode: str,
    data: Any,
    states: list[Any],
    lengths: Any,
    weights: list[list[Any]],
    bidirectional: bool,
    rate: float,
) -> list[Any]:
    """``_run`` for one layer after the other, with dropout between layers."""
    directions = 2 if bidirectional else 1
    ends: list[list[Any]] = []
    for first in range(0, len(weights), directions):
        if first:
            data = so.dropout(data, rate=rate)
        own = [so.slice_axis(s, axis=0, begin=first, end=first + directions) for s in states]
        flat = [one for part in weights[first : first + directions] for one in part]
        data, *last = _run(mode, data, own, lengths, flat, bidirectional=bidirectional)
        ends.append(last)
    return [data, *[so.concat(*parts, axis=0) for parts in zip(*ends, strict=True)]]


def _weights(parameters: Any, matrices: Groups, biases: Groups) -> list[list[Any]]:
    """The arrays of each cell: two matrices, two biases and the projection.

    Raises:
        MXNetError: the parameter vector has a wrong length.
    """
    size = _count(matrices) + _count(biases)
    if tuple(parameters.shape) != (size,):
        raise MXNetError(f"RNN: parameters must have shape ({size},), got {parameters.shape}")
    apart = _cut(parameters, matrices, 0), _cut(parameters, biases, _count(matrices))
    return [[*matrix[:2], *bias, *matrix[2:]] for matrix, bias in zip(*apart, strict=True)]


@operator("RNN", present=_inputs, outputs=_outputs, shapes=_shapes, dtypes=_dtypes)
def rnn(
    data: Any,
    parameters: Any,
    state: Any,
    state_cell: Any = None,
    sequence_length: Any = None,
    *,
    state_size: int,
    num_layers: int,
    mode: Mode,
    bidirectional: bool = False,
    p: float = 0.0,
    state_outputs: bool = False,
    projection_size: int | None = None,
    lstm_state_clip_min: float | None = None,
    lstm_state_clip_max: float | None = None,
    lstm_state_clip_nan: bool = False,
    use_sequence_length: bool = False,
) -> Any:
    """Recurrent layers over sequences of shape (steps, examples, features)."""
    del lstm_state_clip_nan, use_sequence_length
    if lstm_state_clip_min is not None or lstm_state_clip_max is not None:
        raise MXNetError("RNN: lstm_state_clip_min and _max must be None, got a number")
    if projection_size and mode != "lstm":
        raise MXNetError(f"RNN: projection_size must be None unless mode is 'lstm', got {mode!r}")
    directions = 2 if bidirectional else 1
    shapes = _weight_shapes(
        mode, data.shape[2], state_size, num_layers, directions, projection_size
    )
    weights = _weights(parameters, *shapes)
    lengths = None if sequence_length is None else whole(sequence_length)
    states = [state] if state_cell is None else [state, state_cell]
    if p and num_layers > 1:
        found = _run_with_dropout(mode, data, states, lengths, weights, bidirectional, p)
    else:
        flat = [one for part in weights for one in part]
        how = {"num_layers": num_layers, "bidirectional": bidirectional}
        found = _run(mode, data, states, lengths, flat, **how)
    return tuple(found) if state_outputs else found[0]
