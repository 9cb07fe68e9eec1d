"""Ragged: the data and offsets of a LoDTensor, and properties that need no operators."""

import functools
from typing import Any, Self

import numpy as np

from registry.errors import AttributeValueError
from registry.lod.offsets import Lod, differences, picked
from registry.types import DType, Shape, VarType


class Ragged:
    """Data, and the offsets of the sequences at each level."""

    __slots__ = ("__weakref__", "data", "lod")
    data: Any
    lod: Lod

    @classmethod
    def _of(cls, data: Any, lod: Lod) -> Self:
        """Creates an instance from consistent parts, or from parts whose values are unavailable."""
        instance = cls.__new__(cls)
        instance.data, instance.lod = data, lod
        return instance

    @property
    def type(self) -> VarType:
        """Shape, dtype and kind of the data."""
        return VarType(self.shape, self.dtype)

    @property
    def shape(self) -> Shape:
        """Shape of the data; the first length is the total of all sequences and padding."""
        return tuple(self.data.shape)

    @property
    def dtype(self) -> DType:
        """Dtype of the data."""
        dtype: DType = np.dtype(self.data.dtype)
        return dtype

    @property
    def lod_level(self) -> int:
        """The number of levels."""
        return len(self.lod)

    def __len__(self) -> int:
        """Returns the number of outermost sequences."""
        return self.count(0)

    def count(self, level: int = -1) -> int:
        """Returns the number of sequences of a level."""
        count: int = self.lod[self._level(level)].shape[0] - 1
        return count

    def _level(self, level: int) -> int:
        if not -self.lod_level <= level < self.lod_level:
            raise AttributeValueError(
                f"LoDTensor: level must be in [{-self.lod_level}, {self.lod_level}), got {level}"
            )
        return level % self.lod_level

    def offsets(self, level: int = -1) -> Any:
        """Returns the positions in ``data`` where the sequences of a level begin, at any level.

        These are the offsets that operators take.

        Example:
            >>> from registry import LoDTensor
            >>> LoDTensor(np.arange(6), [[0, 2, 3], [0, 2, 3, 6]]).offsets(0)
            array([0, 3, 6], dtype=int32)
        """
        return functools.reduce(picked, self.lod[self._level(level) :])

    def lengths(self, level: int = -1) -> Any:
        """Returns the number of steps in each sequence of a level.

        Example:
            >>> from registry import LoDTensor
            >>> LoDTensor(np.arange(6), [[0, 2, 3], [0, 2, 3, 6]]).lengths(0)
            array([3, 3], dtype=int32)
        """
        return differences(self.offsets(level))
