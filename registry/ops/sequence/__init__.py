"""Ragged sequences.

Counterparts of Paddle's LoD operators, based on offsets.
"""

from registry.ops.sequence import (
    convolution,
    joining,
    offsets,
    padding,
    pooling,
    selection,
    slicing,
)

__all__ = [
    "convolution",
    "joining",
    "offsets",
    "padding",
    "pooling",
    "selection",
    "slicing",
]
