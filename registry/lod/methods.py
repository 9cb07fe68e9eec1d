"""Sequence operators as methods that supply offsets and static lengths."""

from typing import Any, Literal, Self

import numpy as np

from registry.errors import ArgumentError, ShapeError
from registry.lod.base import Ragged
from registry.lod.offsets import all_known, as_array, operator, plain, require_known, summed

Pool = Literal["sum", "mean", "sqrt", "max", "first", "last"]
"""The reduction of the steps of a sequence."""


class SequenceMethods(Ragged):
    """Operators on the sequences of ``data``; each operator's page documents the computation."""

    __slots__ = ()

    def sequence_pool(self, pool: Pool = "sum", *, pad_value: float = 0.0, level: int = -1) -> Any:
        """Returns one row per sequence of a level; a LoDTensor if it has levels above.

        Example:
            >>> from registry import LoDTensor
            >>> text = LoDTensor(np.arange(6.0), [[0, 2, 3], [0, 2, 3, 6]])
            >>> text.sequence_pool("max", level=0).tolist()
            [2.0, 5.0]
            >>> text.sequence_pool("max").to_lists()
            [[1.0, 2.0], [5.0]]
        """
        offsets, outer = self.offsets(level), self.lod[: self._level(level)]
        rows = operator("sequence_pool")(self.data, offsets, pool=pool, pad_value=pad_value)
        return self._of(rows, outer) if outer else rows

    def sequence_softmax(self, *, level: int = -1) -> Self:
        """Returns the softmax over the steps of each sequence of a level."""
        return self._of(operator("sequence_softmax")(self.data, self.offsets(level)), self.lod)

    def sequence_reverse(self) -> Self:
        """Returns the steps of each innermost sequence in reverse order."""
        reverse = operator("sequence_reverse")
        return self._of(reverse(self.data, offsets=self.lod[-1]), self.lod)

    def sequence_expand_as(self, rows: Any, *, level: int = -1) -> Self:
        """Repeats each row of a dense array for all steps of a sequence of a level.

        Example:
            >>> from registry import LoDTensor
            >>> words = LoDTensor(np.zeros(3), [[0, 1, 3]])
            >>> words.sequence_expand_as(np.array([7, 8])).to_lists()
            [[7], [8, 8]]
        """
        data = operator("sequence_expand_as")(rows, self.offsets(level), total_length=self.shape[0])
        return self._of(data, self.lod)

    def sequence_expand(
        self, y: Ragged, ref_level: int = -1, *, total_length: int | None = None
    ) -> Self:
        """Repeats each sequence once per part of the sequence of ``y`` at ``ref_level``.

        Parts are sequences of the next level, or steps. Both tensors have the same number of
        sequences there, and this tensor has one level. ``total_length`` is the length of the
        result; it is required if offsets are traced.

        Example:
            >>> from registry import LoDTensor
            >>> x = LoDTensor(np.array([1, 2, 3]), [[0, 2, 3]])
            >>> x.sequence_expand(LoDTensor(np.zeros(3), [[0, 2, 3]])).to_lists()
            [[1, 2], [1, 2], [3]]
        """
        level = y._level(ref_level)
        if self.lod_level != 1 or self.count() != y.count(level):
            raise ShapeError(
                f"sequence_expand: one level of {y.count(level)} sequences must be expanded, got "
                f"{[one.shape[0] - 1 for one in self.lod]} sequences"
            )
        inner = y.lod[level + 1 :]
        n_sequences = inner[0].shape[0] - 1 if inner else y.shape[0]
        new = None
        if seen := all_known(self.lod[0], y.lod[level]):
            own, times = map(np.diff, seen)
            lengths = np.zeros(n_sequences, np.int32)
            lengths[: times.sum()] = np.repeat(own, times)
            new = summed(lengths)
            total_length = int(new[-1]) if total_length is None else total_length
        require_known("sequence_expand", total_length=total_length)
        data, offsets = operator("sequence_expand")(
            self.data, self.lod[0], y.lod[level], total_length=total_length, n_sequences=n_sequences
        )
        return self._of(data, (_at_most(new, total_length, offsets),))

    def sequence_concat(self, *others: Ragged) -> Self:
        """Concatenates the innermost sequences with those of others; levels above are unchanged.

        Example:
            >>> from registry import LoDTensor
            >>> x = LoDTensor(np.array([1, 2, 3]), [[0, 1, 3]])
            >>> x.sequence_concat(x).to_lists()
            [[1, 1], [2, 3, 2, 3]]
        """
        every: tuple[Ragged, ...] = (self, *others)
        counts = [[one.shape[0] - 1 for one in each.lod] for each in every]
        if any(one != counts[0] for one in counts):
            raise ShapeError(
                "sequence_concat: all must have the same number of sequences at each level, "
                f"got {counts}"
            )
        bounds = [one.lod[-1] for one in every]
        seen = all_known(*bounds)
        stacked = operator("stack")(bounds) if seen is None else np.stack(seen)
        data, offsets = operator("sequence_concat")([one.data for one in every], stacked)
        new = None if seen is None else stacked.sum(axis=0, dtype=np.int32)
        return self._of(data, (*self.lod[:-1], _at_most(new, None, offsets)))

    def sequence_slice(self, begin: Any, length: Any, *, total_length: int | None = None) -> Self:
        """Returns ``length`` steps of each innermost sequence from ``begin`` on, up to its end.

        ``total_length`` is the length of the result. If offsets are traced it defaults to the
        length of this tensor, which always suffices: the rest is padding.

        Example:
            >>> from registry import LoDTensor
            >>> x = LoDTensor(np.array([1, 2, 3, 4]), [[0, 3, 4]])
            >>> x.sequence_slice([1, 0], [2, 1]).to_lists()
            [[2, 3], [4]]
        """
        begin, length, new = as_array(begin), as_array(length), None
        seen = all_known(self.lod[-1], begin, length)
        if seen and seen[1].shape == seen[2].shape == (self.count(),):
            own, first = np.diff(seen[0]), seen[1].astype(np.int64)
            end = np.clip(first + seen[2], 0, own)
            new = summed(np.maximum(end - np.clip(first, 0, own), 0))
            total_length = int(new[-1]) if total_length is None else total_length
        data, offsets = operator("sequence_slice")(
            self.data, self.lod[-1], begin, length, total_length=total_length
        )
        return self._of(data, (*self.lod[:-1], _at_most(new, total_length, offsets)))

    def sequence_conv(
        self,
        weight: Any = None,
        *,
        channels: int | None = None,
        context_length: int = 3,
        context_start: int | None = None,
        name: str | None = None,
    ) -> Self:
        """Returns the convolution over the steps of each innermost sequence.

        ``channels`` defaults to the number of columns of ``weight``. For symbols the weight may be
        omitted: it becomes a variable named after ``name``.

        Example:
            >>> from registry import LoDTensor
            >>> x = LoDTensor(np.array([[1.0], [2.0], [3.0]]), [[0, 2, 3]])
            >>> x.sequence_conv(np.ones((3, 1))).data.ravel().tolist()
            [3.0, 3.0, 3.0]
        """
        if channels is None and weight is not None:
            channels = weight.shape[-1]
        if channels is None:
            raise ArgumentError("sequence_conv: weight or channels must be given, got neither")
        data = operator("sequence_conv")(
            *(self.data, self.lod[-1], *([] if weight is None else [weight])),
            channels=channels,
            context_length=context_length,
            context_start=context_start,
            **({} if name is None else {"name": name}),
        )
        return self._of(data, self.lod)


def _at_most(known: np.ndarray | None, total_length: int | None, computed: Any) -> Any:
    """Returns the offsets of a result: known ones, clipped to its length, or computed ones."""
    if known is None:
        return plain(computed)
    return known if total_length is None else np.minimum(known, np.int32(total_length))
