"""What a LoDTensor holds, and what follows from it without an operator's work."""

import functools
from typing import Any, Self

import numpy as np

from registry.errors import AttributeValueError
from registry.lod.offsets import Lod, differences, picked
from registry.types import DType, Shape, VarType


class Ragged:
    """Data and the offsets of each level of its sequences."""

    __slots__ = ("__weakref__", "data", "lod")
    data: Any
    lod: Lod

    @classmethod
    def _of(cls, data: Any, lod: Lod) -> Self:
        """Of parts that fit together, or whose values nobody may look at."""
        made = cls.__new__(cls)
        made.data, made.lod = data, lod
        return made

    @property
    def type(self) -> VarType:
        """Shape, dtype and kind of the data."""
        return VarType(self.shape, self.dtype)

    @property
    def shape(self) -> Shape:
        """Shape of the data; its first length is that of all sequences and the padding."""
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
        """The number of outermost sequences."""
        return self.count(0)

    def count(self, level: int = -1) -> int:
        """The number of sequences of a level."""
        count: int = self.lod[self._level(level)].shape[0] - 1
        return count

    def _level(self, level: int) -> int:
        if not -self.lod_level <= level < self.lod_level:
            raise AttributeValueError(
                f"LoDTensor: level must be in [{-self.lod_level}, {self.lod_level}), got {level}"
            )
        return level % self.lod_level

    def offsets(self, level: int = -1) -> Any:
        """Where the sequences of a level begin in ``data``, whatever the levels below are.

        These are the offsets that operators take.

        Example:
            >>> from registry import LoDTensor
            >>> LoDTensor(np.arange(6), [[0, 2, 3], [0, 2, 3, 6]]).offsets(0)
            array([0, 3, 6], dtype=int32)
        """
        return functools.reduce(picked, self.lod[self._level(level) :])

    def lengths(self, level: int = -1) -> Any:
        """How many steps each sequence of a level has.

        Example:
            >>> from registry import LoDTensor
            >>> LoDTensor(np.arange(6), [[0, 2, 3], [0, 2, 3, 6]]).lengths(0)
            array([3, 3], dtype=int32)
        """
        return differences(self.offsets(level))
