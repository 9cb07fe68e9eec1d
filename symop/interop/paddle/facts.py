"""What is known of fed values when a program is compiled, besides their types.

Most programs need the types alone. Where a shape follows from a value, as that of ``sequence_pad``
follows from the offsets of its input, the translation raises ``UnknownValueError``; the executor
then translates again with that value as a constant. A layer over ragged sequences asks only for the
length of the longest one, rounded up, so that most batches share a compiled program.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symop.interop.paddle.errors import UnknownValueError
from symop.interop.paddle.values import data_of, is_constant

OFFSETS = "@LOD"
"""Joins a ragged variable and a level to the name of the offsets."""


@dataclass(frozen=True)
class Facts:
    """Known values and lengths.

    Attributes:
        values: arrays in place of variables, by name.
        longest: for offsets by name a bound on the longest sequence; None if nothing is fed.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    longest: Mapping[str, int] | None = None

    def bound(self, offsets: Any, rows: int) -> int:
        """Returns a bound on the length of sequences.

        Args:
            offsets: their offsets.
            rows: the number of all rows, which bounds it if nothing else is known.

        Raises:
            UnknownValueError: the offsets are fed, and the bound was not asked for yet.
        """
        if is_constant(offsets):
            return int(np.diff(np.asarray(data_of(offsets))).max(initial=0))
        names = data_of(offsets).list_inputs()
        if self.longest is None or data_of(offsets).name != names[0]:
            return rows
        if names[0] not in self.longest:
            raise UnknownValueError(f"the longest sequence of {names[0]}", names, of_longest=True)
        return min(self.longest[names[0]], rows)


def rounded(length: int) -> int:
    """Returns a length rounded up by less than a quarter, so that few different ones occur."""
    step = 1 << max(length.bit_length() - 3, 0)
    return -(-length // step) * step
