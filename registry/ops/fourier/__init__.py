"""Discrete Fourier transforms.

Transforms along one or several axes, of real and complex entries.
"""

from registry.ops.fourier import (
    bins,
    lines,
    transforms,
)

__all__ = [
    "bins",
    "lines",
    "transforms",
]
