"""The catalogue: importing it declares every operator, one file per family."""

from registry.ops import (
    arithmetic,
    broadcasting,
    comparison,
    convolution,
    elementwise,
    indexing,
    linear,
    reductions,
    shape,
    structure,
)

__all__ = [
    "arithmetic",
    "broadcasting",
    "comparison",
    "convolution",
    "elementwise",
    "indexing",
    "linear",
    "reductions",
    "shape",
    "structure",
]
