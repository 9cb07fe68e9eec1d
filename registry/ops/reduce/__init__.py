"""Reductions and scans.

Moments, products, cumulative sums and chains of products.
"""

from registry.ops.reduce import (
    chains,
    moments,
    products,
    scans,
)

__all__ = [
    "chains",
    "moments",
    "products",
    "scans",
]
