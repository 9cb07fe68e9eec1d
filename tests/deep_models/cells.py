"""Recurrent cells: one step as symbols and in JAX; a state is a tuple that its output leads."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import symop as so

State = tuple[Any, ...]


class Cell(NamedTuple):
    """A kind of cell.

    Attributes:
        shapes: of its parameters, from the numbers of inputs and units.
        step: from parameters, input and state to the next state, as symbols.
        by_hand: the same in JAX.
        parts: how many arrays a state has.
    """

    shapes: Callable[[int, int], dict[str, tuple[int, ...]]]
    step: Callable[[Any, Any, State], State]
    by_hand: Callable[[Any, Any, State], State]
    parts: int

    def variables(self, prefix: str, inputs: int, units: int) -> dict[str, so.Symbol]:
        """A variable for each parameter."""
        return {
            name: so.var(f"{prefix}_{name}", shape)
            for name, shape in self.shapes(inputs, units).items()
        }


# rnn -------------------------------------------------------------------------------------------


def _rnn_shapes(inputs, units):
    return {"w": (inputs, units), "u": (units, units), "b": (units,)}


def _rnn(p, x, state):
    return (so.tanh(x @ p["w"] + state[0] @ p["u"] + p["b"]),)


def _rnn_by_hand(p, x, state):
    return (jnp.tanh(x @ p["w"] + state[0] @ p["u"] + p["b"]),)


# lstm ------------------------------------------------------------------------------------------


def _lstm_shapes(inputs, units):
    return {"w": (inputs, 4 * units), "u": (units, 4 * units), "b": (4 * units,)}


def _lstm(p, x, state):
    h, c = state
    i, f, g, o = so.split(x @ p["w"] + h @ p["u"] + p["b"], sections=4, axis=1)
    c = so.sigmoid(f) * c + so.sigmoid(i) * so.tanh(g)
    return so.sigmoid(o) * so.tanh(c), c


def _lstm_by_hand(p, x, state):
    h, c = state
    i, f, g, o = jnp.split(x @ p["w"] + h @ p["u"] + p["b"], 4, axis=1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


# gru, a weight for each gate -------------------------------------------------------------------


def _gru_shapes(inputs, units):
    kinds = {"w": (inputs, units), "u": (units, units), "b": (units,)}
    return {f"{kind}{gate}": shape for gate in "zrn" for kind, shape in kinds.items()}


def _gru(p, x, state):
    (h,) = state
    z = so.sigmoid(x @ p["wz"] + h @ p["uz"] + p["bz"])
    r = so.sigmoid(x @ p["wr"] + h @ p["ur"] + p["br"])
    n = so.tanh(x @ p["wn"] + r * (h @ p["un"]) + p["bn"])
    return ((1.0 - z) * n + z * h,)


def _gru_by_hand(p, x, state):
    (h,) = state
    z = jax.nn.sigmoid(x @ p["wz"] + h @ p["uz"] + p["bz"])
    r = jax.nn.sigmoid(x @ p["wr"] + h @ p["ur"] + p["br"])
    n = jnp.tanh(x @ p["wn"] + r * (h @ p["un"]) + p["bn"])
    return ((1.0 - z) * n + z * h,)


CELLS = {
    "rnn": Cell(_rnn_shapes, _rnn, _rnn_by_hand, 1),
    "lstm": Cell(_lstm_shapes, _lstm, _lstm_by_hand, 2),
    "gru": Cell(_gru_shapes, _gru, _gru_by_hand, 1),
}
