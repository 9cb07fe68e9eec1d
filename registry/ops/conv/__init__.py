"""Convolution and pooling.

Operators that slide a window over an image, and their adjoints.
"""

from registry.ops.conv import (
    adaptive_pooling,
    average_pooling,
    columns,
    convolution,
    convolving,
    correlation,
    lp_pooling,
    max_pooling,
    patches,
    pooling,
    transposed_convolution,
    windows,
)

__all__ = [
    "adaptive_pooling",
    "average_pooling",
    "columns",
    "convolution",
    "convolving",
    "correlation",
    "lp_pooling",
    "max_pooling",
    "patches",
    "pooling",
    "transposed_convolution",
    "windows",
]
