"""Deep models in MXNet's spelling: cells of ``mx.rnn`` unrolled, and a deep perceptron."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import symop as so
import symop.interop.mxnet as mx
from deep_models.base import Arrays, Loop, Model, mean_square
from deep_models.recurrent import Size

GATES = {"rnn": 1, "lstm": 4, "gru": 3}
CELLS = {"rnn": mx.rnn.RNNCell, "lstm": mx.rnn.LSTMCell, "gru": mx.rnn.GRUCell}
MOMENTUM = float(np.float32(0.9))  # MXNet's attributes are of single precision
KINDS = ("i2h_weight", "i2h_bias", "h2h_weight", "h2h_bias")


def as_loss(symbol: mx.sym.Symbol, **shapes: tuple[int, ...]) -> so.Symbol:
    """The symbol of the catalogue, of JAX's default dtype and with the loss of shape ``()``."""
    names = [*symbol.list_arguments(), *symbol.list_auxiliary_states()]
    graph = symbol.to_graph(dict.fromkeys(names, jnp.zeros(()).dtype), **shapes)
    return so.reshape(graph, shape=())


# Cells by hand ---------------------------------------------------------------------------------


def _sums(p: Arrays, x: Any, h: Any) -> tuple[Any, Any]:
    return x @ p["i2h_weight"].T + p["i2h_bias"], h @ p["h2h_weight"].T + p["h2h_bias"]


def _rnn(p: Arrays, x: Any, state: Any) -> Any:
    first, second = _sums(p, x, state[0])
    return (jnp.tanh(first + second),)


def _lstm(p: Arrays, x: Any, state: Any) -> Any:
    first, second = _sums(p, x, state[0])
    i, f, c, o = jnp.split(first + second, 4, axis=1)
    c = jax.nn.sigmoid(f) * state[1] + jax.nn.sigmoid(i) * jnp.tanh(c)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def _gru(p: Arrays, x: Any, state: Any) -> Any:
    (h,) = state
    (r, z, n), (hr, hz, hn) = (jnp.split(one, 3, axis=1) for one in _sums(p, x, h))
    r, z = jax.nn.sigmoid(r + hr), jax.nn.sigmoid(z + hz)
    return ((1.0 - z) * jnp.tanh(n + r * hn) + z * h,)


BY_HAND: dict[str, Callable[[Arrays, Any, Any], Any]] = {"rnn": _rnn, "lstm": _lstm, "gru": _gru}


def _run(kind: str, p: Arrays, xs: Any, units: int, loop: Loop) -> Any:
    zeros = jnp.zeros((xs.shape[1], units), xs.dtype)

    def step(state: Any, x: Any) -> tuple[Any, Any]:
        state = BY_HAND[kind](p, x, state)
        return state, state[0]

    return loop(step, (zeros,) * (2 if kind == "lstm" else 1), xs)[1]


def _own(params: Arrays, prefix: str) -> Arrays:
    return {kind: params[f"{prefix}_{kind}"] for kind in KINDS}


# Models ----------------------------------------------------------------------------------------


def cells(kind: str, size: Size, layers: int = 1) -> Model:
    """Cells one above the other, unrolled, the outputs of all steps merged."""

    def foreign() -> mx.sym.Symbol:
        stack = mx.rnn.SequentialRNNCell()
        for i in range(layers):
            stack.add(CELLS[kind](size.units, prefix=f"layer{i}_"))
        data = mx.sym.var("data")
        begin = stack.begin_state(dtype="float64")
        outputs, _ = stack.unroll(
            size.steps, data, begin_state=begin, layout="NTC", merge_outputs=True
        )
        return mx.sym.mean(mx.sym.square(outputs - mx.sym.var("target")))

    def loss() -> so.Symbol:
        data = (size.batch, size.steps, size.inputs)
        return as_loss(foreign(), data=data, target=(*data[:2], size.units))

    def by_hand(params: Arrays, states: Arrays, loop: Loop, key: Any) -> tuple[Any, Arrays]:
        hs = params["data"].swapaxes(0, 1)
        for i in range(layers):
            hs = _run(kind, _own(params, f"layer{i}"), hs, size.units, loop)
        return mean_square(hs.swapaxes(0, 1) - params["target"]), states

    return Model(f"mx.rnn {kind}, {layers} layers", loss, by_hand, foreign=foreign)


def bidirectional(size: Size) -> Model:
    """Two cells, forwards and backwards."""

    def foreign() -> mx.sym.Symbol:
        both = mx.rnn.BidirectionalCell(
            mx.rnn.GRUCell(size.units, prefix="ahead_"), mx.rnn.GRUCell(size.units, prefix="back_")
        )
        data = mx.sym.var("data")
        begin = both.begin_state(dtype="float64")
        outputs, _ = both.unroll(
            size.steps, data, begin_state=begin, layout="NTC", merge_outputs=True
        )
        return mx.sym.mean(mx.sym.square(outputs - mx.sym.var("target")))

    def loss() -> so.Symbol:
        data = (size.batch, size.steps, size.inputs)
        return as_loss(foreign(), data=data, target=(*data[:2], 2 * size.units))

    def by_hand(params: Arrays, states: Arrays, loop: Loop, key: Any) -> tuple[Any, Arrays]:
        xs = params["data"].swapaxes(0, 1)
        ahead = _run("gru", _own(params, "ahead"), xs, size.units, loop)
        back = _run("gru", _own(params, "back"), jnp.flip(xs, 0), size.units, loop)
        hs = jnp.concatenate([ahead, jnp.flip(back, 0)], axis=-1)
        return mean_square(hs.swapaxes(0, 1) - params["target"]), states

    return Model("mx.rnn bidirectional", loss, by_hand, foreign=foreign)


def perceptron(depth: int, width: int = 4, batch: int = 3) -> Model:
    """Dense layers, each normalized over the batch."""

    def foreign() -> mx.sym.Symbol:
        h = mx.sym.var("data")
        for i in range(depth):
            h = mx.sym.FullyConnected(h, num_hidden=width, name=f"fc{i}")
            h = mx.sym.BatchNorm(h, fix_gamma=False, eps=1e-3, name=f"bn{i}")
            h = mx.sym.Activation(h, act_type="tanh", name=f"tanh{i}")
        return mx.sym.mean(mx.sym.square(h - mx.sym.var("target")))

    def by_hand(params: Arrays, states: Arrays, loop: Loop, key: Any) -> tuple[Any, Arrays]:
        h, new = loop(_dense, params["data"], ({k: params[k] for k in stacks}, states))
        return mean_square(h - params["target"]), new

    stacks = {kind: [f"fc{i}_{kind}" for i in range(depth)] for kind in ("weight", "bias")}
    stacks |= {kind: [f"bn{i}_{kind}" for i in range(depth)] for kind in ("gamma", "beta")}
    held = {kind: [f"bn{i}_{kind}" for i in range(depth)] for kind in ("moving_mean", "moving_var")}
    shape = (batch, width)
    return Model(
        "mx.sym perceptron",
        lambda: as_loss(foreign(), data=shape, target=shape),
        by_hand,
        stacks,
        held,
        foreign=foreign,
    )


def _dense(h: Any, xs: Any) -> tuple[Any, Arrays]:
    p, held = xs
    h = h @ p["weight"].T + p["bias"]
    found = {"moving_mean": h.mean(0), "moving_var": h.var(0)}
    h = (h - found["moving_mean"]) * jax.lax.rsqrt(found["moving_var"] + 1e-3)
    new = {n: MOMENTUM * held[n] + (1.0 - MOMENTUM) * value for n, value in found.items()}
    return jnp.tanh(h * p["gamma"] + p["beta"]), new
