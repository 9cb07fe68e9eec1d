"""Samples for cases that fill a slot with ``SelectedRows``."""

import dataclasses

import numpy as np

from registry.values import SelectedRows


@dataclasses.dataclass(frozen=True)
class _Rows:
    """Normal draws at random rows, some repeated and some outside the array."""

    count: int
    row: tuple[int, ...]
    height: int

    def __call__(self, generator: np.random.Generator, dtype: np.dtype) -> SelectedRows:
        rows = generator.integers(-1, self.height + 1, self.count).astype(np.int32)
        values = generator.standard_normal((self.count, *self.row))
        return SelectedRows(rows, values.astype(dtype), self.height)

    def __repr__(self) -> str:
        shape = "".join(f", {length}" for length in self.row)
        return f"selected_rows({self.count}{shape}, height={self.height})"


def selected_rows(count: int, *row: int, height: int) -> _Rows:
    """Returns a sample of ``count`` rows of shape ``row`` from an array of ``height`` rows.

    Example:
        >>> selected_rows(4, 2, height=3)
        selected_rows(4, 2, height=3)
    """
    return _Rows(count, row, height)
