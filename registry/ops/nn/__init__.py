"""Layers of neural networks.

Normalization, the softmax family, attention, and activations with parameters.
"""

from registry.ops.nn import (
    attention,
    attention_derivatives,
    batch_normalization,
    float8,
    group_normalization,
    heads,
    length_softmax,
    magnitude_normalization,
    masked_softmax,
    normalization,
    parametric,
    softmax,
)

__all__ = [
    "attention",
    "attention_derivatives",
    "batch_normalization",
    "float8",
    "group_normalization",
    "heads",
    "length_softmax",
    "magnitude_normalization",
    "masked_softmax",
    "normalization",
    "parametric",
    "softmax",
]
