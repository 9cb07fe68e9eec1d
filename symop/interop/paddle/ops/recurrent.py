"""Recurrent layers: over ragged sequences in 1.8, over padded ones in 2.x."""

from collections.abc import Callable, Sequence
from typing import Any

import symop as so
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.operators import Values, operator
from symop.interop.paddle.ops.sequences import Layout, last_offsets, like, ragged
from symop.interop.paddle.values import data_of

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sigmoid": so.sigmoid,
    "tanh": so.tanh,
    "relu": so.relu,
    "identity": so.identity,
}
_NUMBERED = ("identity", "sigmoid", "tanh", "relu")


def _function(name: str | int) -> Callable[..., Any]:
    chosen = _NUMBERED[name] if isinstance(name, int) else name
    if chosen not in _FUNCTIONS:
        raise PaddleError(f"activation: it must be one of {', '.join(_FUNCTIONS)}, got {chosen!r}")
    return _FUNCTIONS[chosen]


# Ragged sequences ----------------------------------------------------------------------------


Step = Callable[[Sequence[Any], Any], tuple[Sequence[Any], Sequence[Any]]]
"""Takes states and rows, one for each sequence, and returns new states and what it writes."""


def _over_sequences(
    call: Any, x: Any, step: Step, initial: Sequence[Any], reverse: bool
) -> list[Any]:
    """Returns what a step writes for each row of ragged sequences.

    Sequences are padded to a bound on their lengths, so that a step takes a row of each. Without a
    bound, which only a graph without feeds lacks, each step takes one row.

    Args:
        call: the call, which knows what is fed.
        x: the sequences.
        step: what happens to a row of each sequence.
        initial: the states with which each sequence starts, a row for each.
        reverse: whether sequences run from their ends.
    """
    layout = Layout(call, x, reverse)
    if layout.longest == x.data.shape[0] and layout.count > 1:
        outputs = _row_by_row(x, layout, step, initial, reverse)
    else:
        outputs = _side_by_side(x, layout, step, initial)
    return [like(x, one) for one in outputs]


def _side_by_side(x: Any, layout: Layout, step: Step, initial: Sequence[Any]) -> list[Any]:
    """Runs all sequences at once."""

    def body(states: Any, row: Any) -> tuple[Any, Any]:
        current, goes_on = row
        after, out = step(states, current)
        kept = (so.where(goes_on, new, old) for new, old in zip(after, states, strict=True))
        return tuple(kept), tuple(out)

    series = (layout.series(x.data), so.expand_dims(layout.inside, axis=2))
    _, outputs = so.sym.scan(body, tuple(initial), series)
    return [layout.rows(one) for one in outputs]


def _row_by_row(
    x: Any, layout: Layout, step: Step, initial: Sequence[Any], reverse: bool
) -> list[Any]:
    """Runs one row after the other."""
    offsets = last_offsets(x)
    data = so.sequence_reverse(x.data, offsets=offsets) if reverse else x.data
    fresh = [so.take(one, layout.ids, axis=0, mode="clip") for one in initial]

    def body(states: Any, row: Any) -> tuple[Any, Any]:
        current, begins, *first = row
        held = [so.where(begins, new, old) for new, old in zip(first, states, strict=True)]
        after, out = step(held, current)
        return tuple(after), tuple(out)

    zeros = tuple(so.zeros(shape=one.shape[1:], dtype=x.data.dtype) for one in initial)
    _, outputs = so.sym.scan(body, zeros, (data, so.equal(layout.own, 0), *fresh))
    if reverse:
        outputs = [so.sequence_reverse(one, offsets=offsets) for one in outputs]
    return list(outputs)


def _initial(x: Any, given: Any, width: int) -> Any:
    if given is not None:
        return data_of(given)
    count = last_offsets(x).shape[0] - 1
    return so.zeros(shape=(count, width), dtype=x.data.dtype)


def _parts(x: Any, count: int) -> list[Any]:
    width = x.shape[-1] // count
    return [so.slice_axis(x, axis=-1, begin=i * width, end=(i + 1) * width) for i in range(count)]


@operator("lstm", outputs="Hidden Cell BatchGate BatchCellPreAct", ragged=True, ignored="is_test")
def lstm(
    Input: Any,
    Weight: Any,
    Bias: Any,
    H0: Any = None,
    C0: Any = None,
    *,
    use_peepholes: bool = True,
    is_reverse: bool = False,
    gate_activation: str = "sigmoid",
    cell_activation: str = "tanh",
    candidate_activation: str = "tanh",
    call: Any,
) -> Any:
    x, weight = ragged("lstm", Input), data_of(Weight)
    width = weight.shape[0]
    bias = so.reshape(data_of(Bias), shape=(-1,))
    peepholes = (
        _parts(so.slice_axis(bias, axis=0, begin=4 * width, end=7 * width), 3)
        if use_peepholes
        else None
    )
    gated = like(x, x.data + so.slice_axis(bias, axis=0, begin=0, end=4 * width))
    cell_of = _lstm_cell(peepholes, gate_activation, cell_activation, candidate_activation)

    def step(states: Any, row: Any) -> Any:
        hidden, cell = states
        gates, before, out, cell = cell_of(row + so.matmul(hidden, weight), cell)
        return (out, cell), (out, cell, gates, before)

    initial = [_initial(x, one, width) for one in (H0, C0)]
    hidden, cell, gates, before = _over_sequences(call, gated, step, initial, is_reverse)
    return hidden, cell, gates.data, before.data


def _lstm_cell(
    peepholes: Sequence[Any] | None, gate: str, activation: str, candidate: str
) -> Callable[[Any, Any], tuple[Any, Any, Any, Any]]:
    """Returns a step: of sums in the order candidate, input, forget, output, and the cell."""
    sigma, squash, propose = _function(gate), _function(activation), _function(candidate)

    def step(sums: Any, cell: Any) -> tuple[Any, Any, Any, Any]:
        c, i, f, o = _parts(sums, 4)
        if peepholes is not None:
            i, f = i + peepholes[0] * cell, f + peepholes[1] * cell
        proposed, entering, staying = propose(c), sigma(i), sigma(f)
        new = proposed * entering + cell * staying
        leaving = sigma(o if peepholes is None else o + peepholes[2] * new)
        shown = squash(new)
        gates = so.concat(proposed, entering, staying, leaving, axis=-1)
        return gates, shown, leaving * shown, new

    return step


@operator(
    "lstmp",
    outputs="Projection Cell BatchGate BatchCellPreAct BatchHidden",
    ragged=True,
    ignored="is_test",
)
def lstmp(
    Input: Any,
    Weight: Any,
    ProjWeight: Any,
    Bias: Any,
    H0: Any = None,
    C0: Any = None,
    *,
    use_peepholes: bool = True,
    is_reverse: bool = False,
    cell_clip: float = 0.0,
    proj_clip: float = 0.0,
    gate_activation: str = "sigmoid",
    cell_activation: str = "tanh",
    candidate_activation: str = "tanh",
    proj_activation: str = "tanh",
    call: Any,
) -> Any:
    x, weight, projection = ragged("lstmp", Input), data_of(Weight), data_of(ProjWeight)
    width, shown = projection.shape
    bias = so.reshape(data_of(Bias), shape=(-1,))
    peepholes = (
        _parts(so.slice_axis(bias, axis=0, begin=4 * width, end=7 * width), 3)
        if use_peepholes
        else None
    )
    gated = like(x, x.data + so.slice_axis(bias, axis=0, begin=0, end=4 * width))
    cell_of = _lstm_cell(peepholes, gate_activation, cell_activation, candidate_activation)
    if cell_clip > 0:
        raise PaddleError(f"lstmp: cell_clip must be 0, got {cell_clip}")
    project = _function(proj_activation)

    def step(states: Any, row: Any) -> Any:
        held, cell = states
        gates, before, out, cell = cell_of(row + so.matmul(held, weight), cell)
        new = project(so.matmul(out, projection))
        new = so.clip(new, low=-proj_clip, high=proj_clip) if proj_clip > 0 else new
        return (new, cell), (new, cell, gates, before, out)

    initial = [_initial(x, H0, shown), _initial(x, C0, width)]
    projected, cell, *rest = _over_sequences(call, gated, step, initial, is_reverse)
    return projected, cell, *(one.data for one in rest)


@operator(
    "gru",
    outputs="Hidden BatchGate BatchResetHiddenPrev BatchHidden",
    ragged=True,
    ignored="is_test",
)
def gru(
    Input: Any,
    Weight: Any,
    H0: Any = None,
    Bias: Any = None,
    *,
    is_reverse: bool = False,
    activation: str = "tanh",
    gate_activation: str = "sigmoid",
    origin_mode: bool = False,
    call: Any,
) -> Any:
    x, weight = ragged("gru", Input), data_of(Weight)
    width = weight.shape[0]
    sums = x.data if Bias is None else x.data + so.reshape(data_of(Bias), shape=(-1,))
    cell_of = _gru_cell(weight, activation, gate_activation, origin_mode)

    def step(states: Any, row: Any) -> Any:
        gates, reset, new = cell_of(row, states[0])
        return (new,), (new, gates, reset)

    initial = [_initial(x, H0, width)]
    hidden, gates, reset = _over_sequences(call, like(x, sums), step, initial, is_reverse)
    return hidden, gates.data, reset.data, hidden.data


def _gru_cell(
    weight: Any, activation: str | int, gate_activation: str | int, origin_mode: bool
) -> Callable[[Any, Any], tuple[Any, Any, Any]]:
    """Returns a step: of sums in the order update, reset, candidate, and the state.

    Paddle stores the weights of the two gates, then those of the candidate, as two matrices one
    after the other.
    """
    width = weight.shape[0]
    flat = so.reshape(weight, shape=(-1,))
    cut = 2 * width * width
    to_gates = so.reshape(so.slice_axis(flat, axis=0, begin=0, end=cut), shape=(width, 2 * width))
    to_new = so.reshape(
        so.slice_axis(flat, axis=0, begin=cut, end=3 * width * width), shape=(width, width)
    )
    squash, sigma = _function(activation), _function(gate_activation)

    def step(row: Any, hidden: Any) -> tuple[Any, Any, Any]:
        sums = so.slice_axis(row, axis=-1, begin=0, end=2 * width) + so.matmul(hidden, to_gates)
        update, reset = _parts(sigma(sums), 2)
        kept = reset * hidden
        last = so.slice_axis(row, axis=-1, begin=2 * width, end=3 * width)
        proposed = squash(last + so.matmul(kept, to_new))
        share = 1 - update if origin_mode else update
        new = hidden + share * (proposed - hidden)
        return so.concat(update, reset, proposed, axis=-1), kept, new

    return step


@operator("gru_unit", outputs="Gate ResetHiddenPrev Hidden")
def gru_unit(
    Input: Any,
    HiddenPrev: Any,
    Weight: Any,
    Bias: Any = None,
    *,
    activation: int = 2,
    gate_activation: int = 1,
    origin_mode: bool = False,
) -> Any:
    sums = Input if Bias is None else Input + so.reshape(Bias, shape=(-1,))
    return _gru_cell(Weight, activation, gate_activation, origin_mode)(sums, HiddenPrev)


@operator("lstm_unit", outputs="C H")
def lstm_unit(X: Any, C_prev: Any, *, forget_bias: float = 0.0) -> Any:
    i, f, o, g = _parts(X, 4)
    cell = C_prev * so.sigmoid(f + forget_bias) + so.sigmoid(i) * so.tanh(g)
    return cell, so.sigmoid(o) * so.tanh(cell)


# Padded sequences ----------------------------------------------------------------------------


@operator(
    "rnn",
    outputs="Out State DropoutState Reserve",
    several="State",
    no_gradient="SequenceLength",
    ignored="seed input_size",
)
def rnn(
    Input: Any,
    PreState: Values,
    WeightList: Values,
    SequenceLength: Any = None,
    *,
    dropout_prob: float = 0.0,
    is_bidirec: bool = False,
    hidden_size: int = 100,
    num_layers: int = 1,
    mode: str = "RNN_TANH",
    is_test: bool = False,
) -> Any:
    if mode not in ("LSTM", "GRU", "RNN_TANH", "RNN_RELU"):
        raise PaddleError(f"rnn: mode must be LSTM, GRU, RNN_TANH or RNN_RELU, got {mode!r}")
    directions = 2 if is_bidirec else 1
    cells = num_layers * directions
    matrices, biases = WeightList[: 2 * cells], WeightList[2 * cells :]
    drops = dropout_prob > 0 and not is_test
    out, ends = Input, []
    for layer in range(num_layers):
        if layer and drops:
            kept = so.greater_equal(so.sym.random_uniform(shape=out.shape), dropout_prob)
            out = so.where(kept, out / (1 - dropout_prob), so.zeros_like(out))
        first, last = 2 * layer * directions, 2 * (layer + 1) * directions
        states = [
            so.slice_axis(one, axis=0, begin=layer * directions, end=(layer + 1) * directions)
            for one in PreState
        ]
        weights = _interleaved(matrices[first:last], biases[first:last])
        out, *after = _layer(mode, out, states, SequenceLength, weights, hidden_size, is_bidirec)
        ends.append(after)
    states = [
        so.concat(*each, axis=0) if num_layers > 1 else each[0] for each in zip(*ends, strict=True)
    ]
    empty = so.zeros(shape=(0,), dtype="uint8")
    return out, states, empty, so.zeros(shape=(0,), dtype=Input.dtype)


def _interleaved(matrices: Values, biases: Values) -> Values:
    """Returns the weights of each direction: two matrices, then two biases."""
    return [
        one
        for i in range(0, len(matrices), 2)
        for one in (*matrices[i : i + 2], *biases[i : i + 2])
    ]


def _layer(
    mode: str,
    x: Any,
    states: Values,
    lengths: Any,
    weights: Values,
    width: int,
    both: bool,
) -> tuple[Any, ...]:
    settings: dict[str, Any] = {"hidden_size": width, "num_layers": 1, "bidirectional": both}
    if mode == "LSTM":
        return tuple(so.lstm(x, *states, lengths, *weights, **settings))
    if mode == "GRU":
        return tuple(so.gru(x, states[0], lengths, *weights, **settings))
    settings["activation"] = mode.removeprefix("RNN_").lower()
    return tuple(so.rnn(x, states[0], lengths, *weights, **settings))
