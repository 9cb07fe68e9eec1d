"""Families of Paddle's operators, each defined as a composition of the catalogue.

Importing the package fills the table of ``symop.interop.paddle.operators``.
"""

from symop.interop.paddle.ops import (
    activations,
    control_flow,
    convolutions,
    creation,
    elementwise,
    images,
    indexing,
    losses,
    matrices,
    measures,
    normalizations,
    optimizers,
    pooling,
    randomness,
    recurrent,
    reductions,
    sequences,
    shapes,
    tables,
    trees,
)

__all__ = [
    "activations",
    "control_flow",
    "convolutions",
    "creation",
    "elementwise",
    "images",
    "indexing",
    "losses",
    "matrices",
    "measures",
    "normalizations",
    "optimizers",
    "pooling",
    "randomness",
    "recurrent",
    "reductions",
    "sequences",
    "shapes",
    "tables",
    "trees",
]
