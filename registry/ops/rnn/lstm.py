"""Long short-term memory (LSTM) layers over whole sequences."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from registry.cases import case, misuse, workload
from registry.operator.operator import Grads
from registry.operator.signature import Array, NewParameter, Parameter
from registry.ops.core.elementwise import tanh
from registry.ops.core.slicing import concat
from registry.ops.elementwise.powers import square
from registry.ops.indexing.getitem import getitem
from registry.ops.rnn.recurrence import linear_recurrence_adjoint
from registry.ops.rnn.recurrent_gradients import Back, Layers, pull_layers, stack_like, state_of
from registry.ops.rnn.recurrent_layers import (
    Place,
    Weights,
    affine,
    completed,
    layer_dtype,
    layer_shapes,
    logistic,
    looped,
    new_weights,
    places,
    recurrent_sums,
    run_layers,
    usual_weights,
)
from registry.ops.rnn.time_steps import Course, blocks, plus, summed_outer
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var

# lstm -------------------------------------------------------------------------------------------


def _lstm_shape(
    data: Shape,
    hidden: Shape | None,
    cell: Shape | None,
    lengths: Shape | None,
    weights: Sequence[Shape],
    *,
    hidden_size: int | None,
    num_layers: int,
    bidirectional: bool,
) -> tuple[Shape, ...]:
    out, last_hidden, last_cell, between, taken = layer_shapes(
        data,
        {"hidden": hidden, "cell": cell},
        lengths,
        weights,
        gates=4,
        num_layers=num_layers,
        hidden_size=hidden_size,
        bidirectional=bidirectional,
        projects=True,
    )
    whole, batch, length = last_cell
    series = (whole, data[0], batch)
    return out, last_hidden, last_cell, (*series, 4 * length), (*series, length), between, taken


def _lstm_dtype(
    data: VarType,
    hidden: VarType | None,
    cell: VarType | None,
    lengths: VarType | None,
    weights: Sequence[VarType],
) -> list[DType]:
    return [*[layer_dtype(data, [hidden, cell], lengths, weights)] * 6, np.dtype(np.bool_)]


def _lstm_reference_step(x: np.ndarray, state: Any, own: Any) -> tuple[np.ndarray, np.ndarray]:
    h, c = state
    i, f, g, o = np.split(sum(affine(x, h, own)), 4, axis=1)
    c = logistic(f) * c + logistic(i) * np.tanh(g)
    h = logistic(o) * np.tanh(c)
    return (h @ own[-1].T if len(own) % 2 else h), c


def _lstm_reference(
    data: np.ndarray,
    hidden: np.ndarray | None,
    cell: np.ndarray | None,
    lengths: np.ndarray | None,
    *weights: np.ndarray,
    **how: Any,
) -> list[np.ndarray]:
    return looped(_lstm_reference_step, 4, data, (hidden, cell), lengths, weights, **how)


_LSTM_WEIGHTS = [(8, 3), (8, 2), (8,), (8,)]


@op(
    shape=_lstm_shape,
    dtype=_lstm_dtype,
    reference=_lstm_reference,
    outputs=("out", "last_hidden", "last_cell", "gates", "cells", "between", "taken"),
    hidden=("gates", "cells", "between", "taken"),
    cases=[
        case(data=(3, 2, 3), hidden=(1, 2, 2), cell=(1, 2, 2), weights=_LSTM_WEIGHTS, order=2),
        case(data=(2, 1, 1), weights=[(4, 1), (4, 1)], order=2),
        case(
            data=(2, 2, 1),
            weights=[(8, 1), (8, 2)] * 2 + [(8, 4), (8, 2)] * 2,
            num_layers=2,
            bidirectional=True,
            order=1,
        ),
        case(
            data=(2, 2, 3),
            hidden=(1, 2, 1),
            weights=[(8, 3), (8, 1), (8,), (8,), (1, 2)],
            order=1,
        ),
        case(
            data=(3, 2, 1),
            hidden=(2, 2, 1),
            cell=(2, 2, 2),
            lengths=np.array([3, 1]),
            weights=[(8, 1), (8, 1), (1, 2)] * 2,
            bidirectional=True,
            order=1,
        ),
        case(data=(2, 0, 3), weights=_LSTM_WEIGHTS, hidden_size=2, order=1),
        case(data=(1, 1, 1), weights=[(4, 1), (4, 1)]),
        workload(data=(64, 32, 128), weights=usual_weights(512, 128)),
        misuse(
            "weights must be 2, 3, 4 or 5 for each of 1 layers and directions, got 1",
            data=(2, 2, 3),
            weights=[(8, 3)],
        ),
        misuse(
            "the weights of layer 0 must have the shapes [(8, 3), (8, 1), (8,), (8,), (1, 2)]",
            data=(2, 2, 3),
            weights=[(8, 3), (8, 1), (8,), (8,), (2, 1)],
        ),
        misuse(
            "the weights of layer 0 in reverse must have the shapes [(8, 3), (8, 2)]",
            data=(2, 2, 3),
            weights=[(8, 3), (8, 2), (8, 2), (8, 2)],
            bidirectional=True,
        ),
        misuse(
            "cell must have shape (1, 2, 2)", data=(2, 2, 3), cell=(2, 2, 2), weights=_LSTM_WEIGHTS
        ),
    ],
    costly=True,
)
def lstm(
    data: Array,
    hidden: Array | None = None,
    cell: Array | None = None,
    lengths: Array | None = None,
    *weights: Parameter,
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: bool = False,
) -> tuple[Array, ...]:
    """Long short-term memory (LSTM) layers over whole sequences.

    With ``a = W x[t] + b + R h[t-1] + c``, in four blocks of rows for the gates:

    ``i, f, o = sigmoid(a)`` in the first, second and fourth, ``g = tanh(a)`` in the third,

    ``cell[t] = f * cell[t-1] + i * g``

    ``h[t] = o * tanh(cell[t])``, or with a projection ``P (o * tanh(cell[t]))``

    Data, lengths, layers, directions, ``out`` and created weights are as in ``rnn``. ``weights``
    lists, for each layer and each of its directions: ``W`` of shape ``(4 * units, features)``;
    ``R`` of shape ``(4 * units, width)``; ``b`` and ``c`` of shape ``(4 * units,)``, or neither in
    all of them; and ``P`` of shape ``(width, units)``, or no ``P`` in all of them, in which case
    ``width`` is ``units``. ``hidden``, of shape ``(layers * directions, batch, width)``, and
    ``cell``, of shape ``(layers * directions, batch, units)``, are the initial values of ``h`` and
    ``cell``, by default zero. ``last_hidden`` and ``last_cell`` are their values after the last
    step of each direction. States are carried from step to step in at least float32.

    Source: Hochreiter and Schmidhuber, Long short-term memory, 1997, with the forget gate of Gers,
    Schmidhuber and Cummins, 2000, and the projection of Sak, Senior and Beaufays, 2014.

    Example:
        >>> import jax.numpy as jnp
        >>> zeros = jnp.zeros((4, 1))
        >>> data, cell = jnp.ones((3, 1, 1)), jnp.ones((1, 1, 1))
        >>> out, last_hidden, last_cell = lstm(data, None, cell, None, zeros, zeros)
        >>> last_cell.ravel()
        Array([0.125], dtype=float32)
    """
    run = run_layers(
        _lstm_step,
        4,
        data,
        (hidden, cell),
        lengths,
        weights,
        num_layers=num_layers,
        bidirectional=bidirectional,
    )
    return run.out, *run.last, *run.kept, run.between, run.taken


def _lstm_step(weights: Weights, state: tuple[Array, Array], sums: Array) -> Any:
    h, c = state
    i, f, g, o = jnp.split(sums + recurrent_sums(weights, h), 4, axis=1)
    i, f, g, o = jax.nn.sigmoid(i), jax.nn.sigmoid(f), jnp.tanh(g), jax.nn.sigmoid(o)
    c = f * c + i * g
    h = o * jnp.tanh(c)
    h = h if weights.projection is None else h @ weights.projection.T
    return (h, c), (h, jnp.concatenate([i, f, g, o], axis=1), c)


@lstm.parameters
def _lstm_parameters(
    data: Shape | None, *, hidden_size: int | None, num_layers: int, bidirectional: bool
) -> list[NewParameter]:
    return new_weights(
        data, hidden_size, gates=4, num_layers=num_layers, bidirectional=bidirectional
    )


@lstm.complete
def _lstm_complete(
    data: Shape | None,
    weights: Sequence[Shape | None],
    *,
    hidden_size: int | None,
    num_layers: int,
    bidirectional: bool,
) -> dict[str, Any]:
    how = {"num_layers": num_layers, "bidirectional": bidirectional}
    return completed(data, weights, hidden_size, gates=4, **how)


@lstm.gradient
def _lstm_gradient(
    data: Var,
    hidden: Var | None,
    cell: Var | None,
    lengths: Var | None,
    weights: tuple[Var, ...],
    out: Var,
    gates: Var,
    cells: Var,
    between: Var,
    taken: Var,
    d_out: Var | None,
    d_last_hidden: Var | None,
    d_last_cell: Var | None,
    d_gates: Var | None,
    d_cells: Var | None,
    d_between: Var | None,
    *,
    num_layers: int,
    bidirectional: bool,
) -> Grads:
    def pull(place: Place, course: Course, h: Var, d_h: Any) -> Back:
        del h
        c, last = getitem(cells, place.state), state_of(d_last_cell, place)
        d_c = None if d_cells is None else course.own(getitem(d_cells, place.state))
        d_c = plus(d_c, None if last is None else course.at_last(last, c))
        d_kept = None if d_gates is None else course.own(getitem(d_gates, place.state))
        saved = (getitem(gates, place.state), c, course.shifted(c, state_of(cell, place)))
        back = _pull_lstm(place, course, saved, d_h, d_c, d_kept)
        return back._replace(cell=plus(back.cell, course.none_of(last)))

    layer_places = places(weights, num_layers=num_layers, bidirectional=bidirectional)
    layers = Layers(data, hidden, layer_places, out, between, lengths, taken)
    grads, backs = pull_layers(layers, pull, d_out, d_between, d_last_hidden)
    return {**grads, "cell": stack_like([one.cell for one in backs], cell)}


def _pull_lstm(
    place: Place,
    course: Course,
    saved: tuple[Var, Var, Var],
    d_h: Any,
    d_c: Any,
    d_gates: Any,
) -> Back:
    # With sums a and gates i, f, o = sigmoid(a), g = tanh(a),
    #   c[t] = f c[t-1] + i g        dc = g di + c[t-1] df + i dg + f dc[t-1]
    #   m[t] = o tanh(c)             dm = tanh(c) do + o (1 - tanh(c)^2) dc
    #   da = (input terms) + recurrent projection dm[t-1],
    # where di = i (1 - i) da_i and dg = (1 - g^2) da_g: a linear recurrence.
    weights = place.weights
    gates, c, c_before = saved
    i, f, g, o = blocks(gates, 4)
    bent = tanh(c)
    bends = [i * (1.0 - i), f * (1.0 - f), 1.0 - square(g), o * (1.0 - o)]
    slopes = concat(*[x * y for x, y in zip(bends, [g, c_before, i, bent], strict=True)], axis=2)
    carry = o * (1.0 - square(bent))
    projection = weights.projection
    d_m = d_h if projection is None or d_h is None else d_h @ projection
    to_gates = None if d_gates is None else d_gates * concat(*bends, axis=2)
    d_sums, d_cell, _ = linear_recurrence_adjoint(
        weights.recurrent, slopes, f, carry, projection, to_gates, d_c, d_m, reverse=place.reverse
    )
    d_projection = None
    if projection is not None:
        m = o * bent
        received = course.after(d_sums) @ weights.recurrent
        d_projection = summed_outer(received, course.before(m))
        if d_h is not None:
            d_projection = d_projection + summed_outer(d_h, m)
    d_cell = course.first(f) * course.first(d_cell)
    return Back(d_sums, d_sums, cell=d_cell, projection=d_projection)
