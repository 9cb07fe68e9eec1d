"""The layout of the weights and biases of each gate in the flat parameters of the operator RNN."""

import math
from typing import NamedTuple

from symop.interop.mxnet.errors import MXNetError

GATES = {
    "rnn_relu": ("",),
    "rnn_tanh": ("",),
    "lstm": ("_i", "_f", "_c", "_o"),
    "gru": ("_r", "_z", "_o"),
}
"""Name suffixes of the gates, in order."""


class Part(NamedTuple):
    """The weight or the bias of one gate.

    Attributes:
        name: its name, such as ``l0_i2h_f_weight``.
        shape: its shape.
        place: its position in the flat parameters.
    """

    name: str
    shape: tuple[int, ...]
    place: slice


def gates_of(mode: str) -> tuple[str, ...]:
    """The gates of a mode.

    Raises:
        MXNetError: there is no such mode.
    """
    if mode not in GATES:
        raise MXNetError(f"RNN: mode must be one of {', '.join(GATES)}, got {mode!r}")
    return GATES[mode]


def size_of(inputs: int, units: int, layers: int, mode: str, bidirectional: bool = False) -> int:
    """The number of parameters of a network whose input has ``inputs`` features."""
    rows = units * len(gates_of(mode)) * (1 + bidirectional)
    above = units * (1 + bidirectional)
    return rows * (inputs + units + 2 + (layers - 1) * (above + units + 2))


def parts_of(
    size: int, units: int, layers: int, mode: str, bidirectional: bool = False
) -> list[Part]:
    """The parts of ``size`` parameters: all weights, then all biases.

    Raises:
        MXNetError: no number of input features gives this size.

    Example:
        >>> [(part.name, part.shape) for part in parts_of(12, units=2, layers=1, mode="rnn_tanh")]
        [('l0_i2h_weight', (2, 2)), ('l0_h2h_weight', (2, 2)), ('l0_i2h_bias', (2,)), \
('l0_h2h_bias', (2,))]
    """
    gates = gates_of(mode)
    rest = size - size_of(0, units, layers, mode, bidirectional)
    inputs, left = divmod(rest, units * len(gates) * (1 + bidirectional))
    if inputs < 1 or left:
        raise MXNetError(
            f"RNN: parameters of {layers} layers of {units} units ({mode}) cannot be {size}"
        )
    result: list[Part] = []
    start = 0
    for kind in ("weight", "bias"):
        for layer in range(layers):
            below = inputs if layer == 0 else units * (1 + bidirectional)
            for direction in "lr"[: 1 + bidirectional]:
                for group, columns in (("i2h", below), ("h2h", units)):
                    shape = (units, columns) if kind == "weight" else (units,)
                    for gate in gates:
                        place = slice(start, start + math.prod(shape))
                        name = f"{direction}{layer}_{group}{gate}_{kind}"
                        result.append(Part(name, shape, place))
                        start = place.stop
    return result
