"""Linear algebra.

Contractions, ``einsum``, BLAS routines, linear systems, determinants and decompositions.
"""

from registry.ops.linalg import (
    blas,
    cofactors,
    contractions,
    decompositions,
    determinants,
    einsum,
    factoring,
    linear,
    outer_products,
    solving,
    spectral,
    triangular,
)

__all__ = [
    "blas",
    "cofactors",
    "contractions",
    "decompositions",
    "determinants",
    "einsum",
    "factoring",
    "linear",
    "outer_products",
    "solving",
    "spectral",
    "triangular",
]
