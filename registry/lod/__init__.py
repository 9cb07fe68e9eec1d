"""LoDTensor: ragged sequences of several levels in one dense array."""

from registry.lod.tensor import LoDTensor

__all__ = ["LoDTensor"]
