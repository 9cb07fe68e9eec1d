"""Families of Paddle's operators, each defined as a composition of the catalogue.

Importing the package fills the table of ``symop.interop.paddle.operators``.
"""

from symop.interop.paddle.ops import (
    activations,
    creation,
    elementwise,
    losses,
    matrices,
    optimizers,
    reductions,
    shapes,
    tables,
)

__all__ = [
    "activations",
    "creation",
    "elementwise",
    "losses",
    "matrices",
    "optimizers",
    "reductions",
    "shapes",
    "tables",
]
