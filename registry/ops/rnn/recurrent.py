"""Recurrent layers over whole sequences: ``rnn`` with plain units, ``gru`` with gated ones."""

from collections.abc import Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse, workload
from registry.operator.operator import Grads
from registry.operator.signature import Array, NewParameter, Parameter
from registry.ops.core.broadcasting import cast
from registry.ops.core.comparison import greater
from registry.ops.core.slicing import concat
from registry.ops.elementwise.powers import square
from registry.ops.indexing.getitem import getitem
from registry.ops.rnn.recurrence import linear_recurrence_adjoint
from registry.ops.rnn.recurrent_gradients import Back, Layers, pull_layers, state_of
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
from registry.ops.rnn.time_steps import Course, blocks, plus
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var

# rnn --------------------------------------------------------------------------------------------

Activation = Literal["tanh", "relu"]


def _rnn_shape(
    data: Shape,
    hidden: Shape | None,
    lengths: Shape | None,
    weights: Sequence[Shape],
    *,
    hidden_size: int | None,
    num_layers: int,
    bidirectional: bool,
) -> tuple[Shape, ...]:
    out, last_hidden, _, between, taken = layer_shapes(
        data,
        {"hidden": hidden},
        lengths,
        weights,
        gates=1,
        num_layers=num_layers,
        hidden_size=hidden_size,
        bidirectional=bidirectional,
    )
    return out, last_hidden, between, taken


def _rnn_dtype(
    data: VarType, hidden: VarType | None, lengths: VarType | None, weights: Sequence[VarType]
) -> list[DType]:
    return [*[layer_dtype(data, [hidden], lengths, weights)] * 3, np.dtype(np.bool_)]


def _rnn_reference(
    data: np.ndarray,
    hidden: np.ndarray | None,
    lengths: np.ndarray | None,
    *weights: np.ndarray,
    activation: Activation,
    **how: Any,
) -> list[np.ndarray]:
    def step(x: np.ndarray, state: Any, own: Any) -> tuple[np.ndarray]:
        sums = sum(affine(x, state[0], own))
        return (np.tanh(sums) if activation == "tanh" else np.maximum(sums, 0),)

    return looped(step, 1, data, (hidden,), lengths, weights, **how)


_RNN_WEIGHTS = [(2, 3), (2, 2), (2,), (2,)]


@op(
    shape=_rnn_shape,
    dtype=_rnn_dtype,
    reference=_rnn_reference,
    outputs=("out", "last_hidden", "between", "taken"),
    hidden=("between", "taken"),
    cases=[
        # Some entries of tanh are near one: ``1 - out ** 2`` cancels digits of half precision.
        case(data=(3, 2, 3), hidden=(1, 2, 2), weights=_RNN_WEIGHTS, half_rtol=32),
        case(
            data=(2, 2, 1),
            weights=[(2, 1), (2, 2)] * 2 + [(2, 4), (2, 2)] * 2,
            num_layers=2,
            bidirectional=True,
            order=1,
        ),
        case(data=(2, 2, 3), weights=_RNN_WEIGHTS, activation="relu", order=1),
        case(
            data=(3, 2, 1),
            hidden=(2, 2, 2),
            lengths=np.array([3, 1]),
            weights=[(2, 1), (2, 2)] * 2,
            bidirectional=True,
            order=1,
        ),
        case(data=(2, 0, 3), weights=_RNN_WEIGHTS, hidden_size=2, order=1),
        case(data=integers(2, 2, 3, high=3), weights=_RNN_WEIGHTS, order=1),
        workload(data=(64, 32, 128), weights=usual_weights(128, 128)),
        misuse(
            "data must have the axes time, batch and feature", data=(2, 3), weights=_RNN_WEIGHTS
        ),
        misuse("data must have at least one step", data=(0, 2, 3), weights=_RNN_WEIGHTS),
        misuse("num_layers must be at least 1", data=(2, 2, 3), weights=_RNN_WEIGHTS, num_layers=0),
        misuse(
            "weights must be 2 or 4 for each of 2 layers and directions, got 7",
            data=(2, 2, 3),
            weights=[*_RNN_WEIGHTS, *_RNN_WEIGHTS[1:]],
            bidirectional=True,
        ),
        misuse(
            "the weights of layer 0 must have the shapes [(2, 3), (2, 2), (2,), (2,)]",
            data=(2, 2, 3),
            weights=[(2, 4), (2, 2), (2,), (2,)],
        ),
        misuse(
            "hidden must have shape (1, 2, 2)",
            data=(2, 2, 3),
            hidden=(2, 2),
            weights=_RNN_WEIGHTS,
        ),
        misuse(
            "lengths must have shape (2,), got (3,)",
            data=(2, 2, 3),
            lengths=np.ones(3, np.int32),
            weights=_RNN_WEIGHTS,
        ),
        misuse(
            "lengths must be integers, got float32",
            data=(2, 2, 3),
            lengths=(2,),
            weights=_RNN_WEIGHTS,
        ),
        misuse(
            "the inputs must be real",
            data=np.ones((2, 2, 3), np.complex64),
            weights=_RNN_WEIGHTS,
        ),
    ],
    costly=True,
)
def rnn(
    data: Array,
    hidden: Array | None = None,
    lengths: Array | None = None,
    *weights: Parameter,
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: bool = False,
    activation: Literal["tanh", "relu"] = "tanh",
) -> tuple[Array, ...]:
    """Elman recurrent layers over whole sequences.

    ``h[t] = activation(W x[t] + b + R h[t-1] + c)``

    ``data`` has the axes time, batch and feature. It passes through ``num_layers`` layers, each of
    which takes the result of the layer below. With ``bidirectional`` a layer has two directions, of
    which the second runs from the last step to the first, and its result at a step concatenates
    ``h`` of both. ``weights`` lists, for each layer and each of its directions: ``W`` of shape
    ``(units, features)``; ``R`` of shape ``(units, units)``; and ``b`` and ``c`` of shape
    ``(units,)``, or neither in all of them. ``hidden``, of shape
    ``(layers * directions, batch, units)``, is the initial value of ``h``, by default zero.

    A symbolic call may leave the weights out: ``hidden_size`` is then the number of units, and the
    call creates ``W``, which starts as ``glorot_uniform``, ``R``, which starts as ``orthogonal``,
    and biases at zero.

    ``lengths`` are the numbers of steps of the sequences in a batch, by default all. Entries of
    ``data`` beyond a sequence's end, if finite, have no effect: ``out`` is zero there, the state is
    kept, and the second direction starts at the end of the sequence.

    The results are ``out`` of the last layer, of shape ``(time, batch, directions * units)``, and
    ``last_hidden``, the value of ``h`` after the last step of each direction. The state is carried
    from step to step in at least float32. The derivative of ``"relu"`` is 0 at 0.

    Source: Elman, Finding structure in time, 1990; Schuster and Paliwal, Bidirectional recurrent
    neural networks, 1997.

    Example:
        >>> import jax.numpy as jnp
        >>> data = jnp.asarray([1.0, 0.0, 0.0]).reshape(3, 1, 1)
        >>> out, last_hidden = rnn(
        ...     data, None, None, jnp.ones((1, 1)), jnp.full((1, 1), 2.0), activation="relu"
        ... )
        >>> out.ravel()
        Array([1., 2., 4.], dtype=float32)
    """

    def step(weights: Weights, state: tuple[Array], sums: Array) -> Any:
        sums = sums + recurrent_sums(weights, state[0])
        h = jnp.tanh(sums) if activation == "tanh" else jax.nn.relu(sums)
        return (h,), (h,)

    run = run_layers(
        step,
        1,
        data,
        (hidden,),
        lengths,
        weights,
        num_layers=num_layers,
        bidirectional=bidirectional,
    )
    return run.out, *run.last, run.between, run.taken


@rnn.parameters
def _rnn_parameters(
    data: Shape | None, *, hidden_size: int | None, num_layers: int, bidirectional: bool
) -> list[NewParameter]:
    return new_weights(
        data, hidden_size, gates=1, num_layers=num_layers, bidirectional=bidirectional
    )


@rnn.complete
def _rnn_complete(
    data: Shape | None,
    weights: Sequence[Shape | None],
    *,
    hidden_size: int | None,
    num_layers: int,
    bidirectional: bool,
) -> dict[str, Any]:
    how = {"num_layers": num_layers, "bidirectional": bidirectional}
    return completed(data, weights, hidden_size, gates=1, **how)


@rnn.gradient
def _rnn_gradient(
    data: Var,
    hidden: Var | None,
    lengths: Var | None,
    weights: tuple[Var, ...],
    out: Var,
    between: Var,
    taken: Var,
    d_out: Var | None,
    d_last_hidden: Var | None,
    d_between: Var | None,
    *,
    num_layers: int,
    bidirectional: bool,
    activation: Activation,
) -> Grads:
    # With sums a and h = phi(a): dh = phi' (da + R dh[t-1]), and phi' follows from h.
    def pull(place: Place, course: Course, h: Var, d_h: Any) -> Back:
        slopes = 1.0 - square(h) if activation == "tanh" else cast(greater(h, 0.0), dtype=h.dtype)
        d_sums, _, _ = linear_recurrence_adjoint(
            place.weights.recurrent, course.own(slopes), to_out=d_h, reverse=place.reverse
        )
        return Back(d_sums, d_sums)

    layer_places = places(weights, num_layers=num_layers, bidirectional=bidirectional)
    layers = Layers(data, hidden, layer_places, out, between, lengths, taken)
    return pull_layers(layers, pull, d_out, d_between, d_last_hidden)[0]


# gru --------------------------------------------------------------------------------------------


def _gru_shape(
    data: Shape,
    hidden: Shape | None,
    lengths: Shape | None,
    weights: Sequence[Shape],
    *,
    hidden_size: int | None,
    num_layers: int,
    bidirectional: bool,
) -> tuple[Shape, ...]:
    out, last_hidden, (whole, batch, length), between, taken = layer_shapes(
        data,
        {"hidden": hidden},
        lengths,
        weights,
        gates=3,
        num_layers=num_layers,
        hidden_size=hidden_size,
        bidirectional=bidirectional,
    )
    return out, last_hidden, (whole, data[0], batch, 4 * length), between, taken


def _gru_dtype(
    data: VarType, hidden: VarType | None, lengths: VarType | None, weights: Sequence[VarType]
) -> list[DType]:
    return [*[layer_dtype(data, [hidden], lengths, weights)] * 4, np.dtype(np.bool_)]


def _gru_reference_step(x: np.ndarray, state: Any, own: Any) -> tuple[np.ndarray]:
    (h,) = state
    from_x, from_h = (np.split(one, 3, axis=1) for one in affine(x, h, own))
    r, z = (logistic(from_x[k] + from_h[k]) for k in range(2))
    return ((1 - z) * np.tanh(from_x[2] + r * from_h[2]) + z * h,)


def _gru_reference(
    data: np.ndarray,
    hidden: np.ndarray | None,
    lengths: np.ndarray | None,
    *weights: np.ndarray,
    **how: Any,
) -> list[np.ndarray]:
    return looped(_gru_reference_step, 3, data, (hidden,), lengths, weights, **how)


_GRU_WEIGHTS = [(6, 3), (6, 2), (6,), (6,)]


@op(
    shape=_gru_shape,
    dtype=_gru_dtype,
    reference=_gru_reference,
    outputs=("out", "last_hidden", "gates", "between", "taken"),
    hidden=("gates", "between", "taken"),
    cases=[
        case(data=(3, 2, 3), hidden=(1, 2, 2), weights=_GRU_WEIGHTS, order=2),
        case(data=(2, 1, 1), weights=[(3, 1), (3, 1)], order=2),
        case(
            data=(2, 2, 1),
            weights=[(6, 1), (6, 2)] * 2 + [(6, 4), (6, 2)] * 2,
            num_layers=2,
            bidirectional=True,
            order=1,
        ),
        case(
            data=(3, 2, 1),
            hidden=(2, 2, 2),
            lengths=np.array([3, 1]),
            weights=[(6, 1), (6, 2)] * 2,
            bidirectional=True,
            order=1,
        ),
        case(data=(2, 0, 3), weights=_GRU_WEIGHTS, hidden_size=2, order=1),
        case(data=(1, 1, 1), weights=[(3, 1), (3, 1)]),
        workload(data=(64, 32, 128), weights=usual_weights(384, 128)),
        misuse("the weights of layer 0 must", data=(2, 2, 4), weights=_GRU_WEIGHTS),
        misuse(
            "the inputs must be floating",
            data=integers(2, 2, 1, high=3),
            weights=[integers(3, 1, high=3), integers(3, 1, high=3)],
        ),
    ],
    costly=True,
)
def gru(
    data: Array,
    hidden: Array | None = None,
    lengths: Array | None = None,
    *weights: Parameter,
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: bool = False,
) -> tuple[Array, ...]:
    """Gated recurrent unit (GRU) layers over whole sequences.

    ``r, z = sigmoid(W x[t] + b + R h[t-1] + c)`` in the first two blocks of rows,

    ``n = tanh(W x[t] + b + r * (R h[t-1] + c))`` in the third,

    ``h[t] = (1 - z) * n + z * h[t-1]``

    Data, states, lengths, layers, directions and results are as in ``rnn``. ``weights`` lists, for
    each layer and each of its directions: ``W`` of shape ``(3 * units, features)``; ``R`` of shape
    ``(3 * units, units)``; and ``b`` and ``c`` of shape ``(3 * units,)``, or neither in all of
    them. The reset gate ``r`` is applied after the product with ``R``, as in cuDNN.

    Source: Cho et al., Learning phrase representations using RNN encoder-decoder for statistical
    machine translation, 2014, with the reset after the product.

    Example:
        >>> import jax.numpy as jnp
        >>> zeros = jnp.zeros((3, 1))
        >>> out, last_hidden = gru(jnp.ones((2, 1, 1)), jnp.ones((1, 1, 1)), None, zeros, zeros)
        >>> out.ravel()
        Array([0.5 , 0.25], dtype=float32)
    """
    run = run_layers(
        _gru_step,
        3,
        data,
        (hidden,),
        lengths,
        weights,
        num_layers=num_layers,
        bidirectional=bidirectional,
    )
    return run.out, *run.last, *run.kept, run.between, run.taken


def _gru_step(weights: Weights, state: tuple[Array], sums: Array) -> Any:
    (h,) = state
    x_r, x_z, x_n = jnp.split(sums, 3, axis=1)
    h_r, h_z, m = jnp.split(recurrent_sums(weights, h), 3, axis=1)
    r, z = jax.nn.sigmoid(x_r + h_r), jax.nn.sigmoid(x_z + h_z)
    n = jnp.tanh(x_n + r * m)
    h = (1 - z) * n + z * h
    return (h,), (h, jnp.concatenate([r, z, n, m], axis=1))


@gru.parameters
def _gru_parameters(
    data: Shape | None, *, hidden_size: int | None, num_layers: int, bidirectional: bool
) -> list[NewParameter]:
    return new_weights(
        data, hidden_size, gates=3, num_layers=num_layers, bidirectional=bidirectional
    )


@gru.complete
def _gru_complete(
    data: Shape | None,
    weights: Sequence[Shape | None],
    *,
    hidden_size: int | None,
    num_layers: int,
    bidirectional: bool,
) -> dict[str, Any]:
    how = {"num_layers": num_layers, "bidirectional": bidirectional}
    return completed(data, weights, hidden_size, gates=3, **how)


@gru.gradient
def _gru_gradient(
    data: Var,
    hidden: Var | None,
    lengths: Var | None,
    weights: tuple[Var, ...],
    out: Var,
    gates: Var,
    between: Var,
    taken: Var,
    d_out: Var | None,
    d_last_hidden: Var | None,
    d_gates: Var | None,
    d_between: Var | None,
    *,
    num_layers: int,
    bidirectional: bool,
) -> Grads:
    def pull(place: Place, course: Course, h: Var, d_h: Any) -> Back:
        k = place.state
        h_before = course.shifted(h, state_of(hidden, place))
        d_kept = None if d_gates is None else course.own(getitem(d_gates, k))
        return _pull_gru(place, course, getitem(gates, k), h_before, d_h, d_kept)

    layer_places = places(weights, num_layers=num_layers, bidirectional=bidirectional)
    layers = Layers(data, hidden, layer_places, out, between, lengths, taken)
    return pull_layers(layers, pull, d_out, d_between, d_last_hidden)[0]


def _pull_gru(
    place: Place, course: Course, gates: Var, h_before: Var, d_h: Any, d_gates: Any
) -> Back:
    # With sums a of the input, s of the state, m the third block of s, and r, z, n:
    #   dh = (1 - z) dn + (h[t-1] - n) dz + z dh[t-1],
    #   dr = r (1 - r) (da_r + ds_r), dz = z (1 - z) (da_z + ds_z),
    #   dn = (1 - n^2) (da_n + m dr + r dm), and ds = R dh[t-1]: a linear recurrence in dh, with
    # gates s and slopes q m r (1 - r), (h[t-1] - n) z (1 - z) and q r, where q = (1 - z) (1 - n^2).
    r, z, n, m = blocks(gates, 4)
    bend = 1.0 - square(n)
    q = course.own((1.0 - z) * bend)
    of_r, of_z = m * r * (1.0 - r), z * (1.0 - z)
    slopes = concat(q * of_r, (h_before - n) * of_z, q * r, axis=2)
    to_sums = to_n = None
    if d_gates is not None:
        d_r, d_z, d_n, d_m = blocks(d_gates, 4)
        to_n = bend * d_n
        to_sums = concat(d_r * r * (1.0 - r) + to_n * of_r, d_z * of_z, d_m + to_n * r, axis=2)
    d_sums, d_cell, _ = linear_recurrence_adjoint(
        place.weights.recurrent, slopes, z, to_gates=to_sums, to_out=d_h, reverse=place.reverse
    )
    d_r, d_z, _ = blocks(d_sums, 3)
    d_input = concat(d_r, d_z, plus(q * d_cell, to_n), axis=2)
    kept = course.first(z) * course.first(d_cell)
    return Back(d_input, d_sums, kept=kept)
