"""The operators from which most gradient makers are composed.

Arithmetic, broadcasting, sums, comparisons, selection, reshaping, slicing and indexing.
"""

from registry.ops.core import (
    arithmetic,
    arranging,
    broadcasting,
    comparison,
    complex_parts,
    elementwise,
    indexing,
    matrices,
    reductions,
    reshaping,
    slicing,
)

__all__ = [
    "arithmetic",
    "arranging",
    "broadcasting",
    "comparison",
    "complex_parts",
    "elementwise",
    "indexing",
    "matrices",
    "reductions",
    "reshaping",
    "slicing",
]
