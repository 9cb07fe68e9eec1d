"""Recurrent networks.

``rnn``, ``lstm``, ``gru``, and the linear recurrences used in their gradients.
"""

from registry.ops.rnn import (
    lstm,
    recurrence,
    recurrent,
    recurrent_gradients,
    recurrent_layers,
    time_steps,
)

__all__ = [
    "lstm",
    "recurrence",
    "recurrent",
    "recurrent_gradients",
    "recurrent_layers",
    "time_steps",
]
