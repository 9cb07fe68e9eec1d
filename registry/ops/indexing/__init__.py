"""Selecting, scattering and sorting by indices.

Gathering, scattering, ``x[...]``, sorting and top-k.
"""

from registry.ops.indexing import (
    gathering,
    getitem,
    scattering,
    sorting,
)

__all__ = [
    "gathering",
    "getitem",
    "scattering",
    "sorting",
]
