"""Shapes and the arrangement of entries.

Joining, padding, repeating, diagonals, creation, structure and dynamic slices.
"""

from registry.ops.shape import (
    blocks,
    creation,
    diagonals,
    dynamic_slicing,
    joining,
    masks,
    padding,
    repeating,
    structure,
)

__all__ = [
    "blocks",
    "creation",
    "diagonals",
    "dynamic_slicing",
    "joining",
    "masks",
    "padding",
    "repeating",
    "structure",
]
