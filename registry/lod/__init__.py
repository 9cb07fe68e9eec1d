"""LoDTensor: ragged sequences of several levels in one dense array.

``tensor.LoDTensor`` is the entry point. This package imports ``registry.types`` and the modules
below it.
"""

from registry.lod.tensor import LoDTensor

__all__ = ["LoDTensor"]
