"""Selecting, scattering and sorting by indices.

Gathering, scattering, ``x[...]``, ``x.at[...]``, sorting and top-k.
"""

from registry.ops.indexing import (
    gathering,
    getitem,
    scattering,
    sorting,
    updating,
)

__all__ = [
    "gathering",
    "getitem",
    "scattering",
    "sorting",
    "updating",
]
