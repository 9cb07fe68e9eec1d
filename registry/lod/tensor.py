"""LoDTensor: ragged sequences of several levels in one dense array, a JAX pytree."""

from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from registry.errors import ArgumentError, AttributeValueError, KindError, ShapeError
from registry.lod.display import table, text
from registry.lod.methods import SequenceMethods
from registry.lod.offsets import (
    all_known,
    as_array,
    check,
    counted,
    kept,
    known,
    length_of,
    of_lengths,
    operator,
    plain,
    require_known,
    summed,
)
from registry.var import Var


class LoDTensor(SequenceMethods):
    """Ragged sequences, one after the other along the first axis of ``data``.

    ``lod`` (the level of detail) holds a vector of ``n + 1`` offsets for each level, the outermost
    first. Those of the last level count steps: sequence ``s`` is
    ``data[lod[-1][s]:lod[-1][s + 1]]``. Those of a level above count the sequences of the next one:
    with words in sentences in texts, ``lod[0]`` counts sentences and ``lod[1]`` words. Offsets
    start with 0, never decrease, and end with the number of what they count. They are of dtype
    int32. A method needs their values only where the shape of its result depends on them; so
    under ``jax.jit`` they may be traced, while their number and the length of ``data`` are static.

    With ``padded=True`` the offsets may end earlier: what is behind the last one is padding and
    belongs to no sequence.

    Args:
        data: an array, eager array or symbol; its first axis counts steps.
        lod: the offsets of each level; lists, arrays or symbols.
        padded: whether there may be padding.

    Raises:
        ShapeError: the offsets do not bound sequences of ``data``. Values that are traced or
            symbols are not checked.
        DTypeError: they are no integers.

    Example:
        >>> words = LoDTensor(jnp.array([3, 1, 4, 1, 5]), [[0, 3, 3, 5]])
        >>> words
        LoDTensor(int32[5], lod=[[0, 3, 3, 5]])
          0: [3 1 4]
          1: []
          2: [1 5]
        >>> words.sequence_pool("sum")
        Array([8, 0, 6], dtype=int32)
    """

    __slots__ = ()

    def __init__(self, data: Any, lod: Sequence[Any], *, padded: bool = False) -> None:
        array = isinstance(data, Var) or hasattr(data, "dtype")
        self.data = data if array else jnp.asarray(data)
        self.lod = tuple(kept(one, i) for i, one in enumerate(lod))
        check(self.data, self.lod, padded)

    # Made from ------------------------------------------------------------------------------------

    @classmethod
    def from_lists(
        cls, sequences: Sequence[Any], *, lod_level: int = 1, dtype: Any = None
    ) -> "LoDTensor":
        """Of nested lists: ``lod_level`` of them are sequences, those inside are single steps.

        The innermost sequences may be arrays. Where all are empty, their steps are numbers.

        Example:
            >>> LoDTensor.from_lists([[[1, 2], [3]], [[4, 5, 6]]], lod_level=2).lod
            (array([0, 2, 3], dtype=int32), array([0, 2, 3, 6], dtype=int32))
        """
        if lod_level < 1:
            raise AttributeValueError(f"from_lists: lod_level must be positive, got {lod_level}")
        lengths, level = [], list(sequences)
        for _ in range(lod_level - 1):
            lengths.append([_steps(one) for one in level])
            level = [part for one in level for part in one]
        arrays = [_array(one, dtype) for one in level]
        lengths.append([_steps(one) for one in arrays])
        steps = [one for one in arrays if len(one)] or arrays[:1] or [np.zeros(0, dtype)]
        return cls(jnp.asarray(np.concatenate(steps)), [summed(one) for one in lengths])

    @classmethod
    def from_lengths(
        cls, data: Any, lengths: Sequence[Any], *, padded: bool = False
    ) -> "LoDTensor":
        """Of data and the lengths of its sequences, a vector for each level, the outermost first.

        The lengths of a level count sequences of the next one; those of the last count steps.

        Example:
            >>> LoDTensor.from_lengths(jnp.arange(4), [[3, 1]]).lod
            (array([0, 3, 4], dtype=int32),)
        """
        return cls(data, [of_lengths(one, i) for i, one in enumerate(lengths)], padded=padded)

    @classmethod
    def from_padded(
        cls, padded: Any, *, length: Any = None, mask: Any = None, total_length: int | None = None
    ) -> "LoDTensor":
        """Of rows with padding behind their steps; ``length`` or ``mask`` tells the steps.

        Args:
            padded: of shape ``(sequences, steps, ...)``.
            length: how many steps of each row are its own.
            mask: or where they are, true before it is false, of shape ``(sequences, steps)``.
            total_length: of the data; needed only where the lengths are traced.

        Example:
            >>> rows = jnp.array([[1, 0], [2, 3]])
            >>> LoDTensor.from_padded(rows, mask=rows > 0).data
            Array([1, 2, 3], dtype=int32)
        """
        if (length is None) == (mask is None):
            raise ArgumentError("from_padded: length or mask must be given, and not both")
        length, new = as_array(counted(mask) if length is None else length), None
        seen = known(length)
        if seen is not None:
            new = summed(np.clip(seen, 0, padded.shape[1]))
            total_length = int(new[-1]) if total_length is None else total_length
            new = np.minimum(new, np.int32(total_length))
        require_known("from_padded", total_length=total_length)
        data, offsets = operator("sequence_unpad")(padded, length, total_length=total_length)
        return cls._of(data, (plain(offsets) if new is None else new,))

    # Read back -----------------------------------------------------------------------------------

    def recursive_sequence_lengths(self) -> list[list[int]]:
        """The lengths of each level, counted in what it consists of; see ``from_lengths``.

        Raises:
            UnknownTypeError: the offsets are traced.
        """
        lod = self._known_lod("recursive_sequence_lengths")
        return [np.diff(one).tolist() for one in lod]

    def _known_lod(self, what: str) -> list[np.ndarray]:
        seen = all_known(*self.lod)
        require_known(what, lod=seen)
        return seen or []

    def to_lists(self) -> list[Any]:
        """The sequences as nested lists.

        Example:
            >>> LoDTensor(jnp.arange(3), [[0, 2, 2, 3]]).to_lists()
            [[0, 1], [], [2]]
        """
        lod = self._known_lod("to_lists")
        parts: list[Any] = np.asarray(self.data).tolist()
        for offsets in reversed(lod):
            parts = [parts[offsets[s] : offsets[s + 1]] for s in range(len(offsets) - 1)]
        return parts

    def to_padded(self, padded_length: int | None = None, *, pad_value: float = 0.0) -> Any:
        """The innermost sequences as rows of one length, and the mask of their steps.

        ``padded_length`` is that of the longest sequence, and has to be given where the offsets are
        traced; sequences that are longer are cut.

        Example:
            >>> rows, mask = LoDTensor(jnp.arange(1, 4), [[0, 1, 3]]).to_padded()
            >>> rows.tolist(), mask.tolist()
            ([[1, 0], [2, 3]], [[True, False], [True, True]])
        """
        seen = known(self.lod[-1])
        if seen is not None and padded_length is None:
            padded_length = int(np.max(np.diff(seen), initial=0))
        require_known("to_padded", padded_length=padded_length)
        rows, length = operator("sequence_pad")(
            self.data, self.lod[-1], padded_length=padded_length, pad_value=pad_value
        )
        return rows, operator("length_mask")(length, size=padded_length)

    def as_feed(self, name: str) -> dict[str, Any]:
        """What is fed to the variables that stand for a tensor called ``name``.

        They are ``name`` itself and ``name@LOD0``, ``name@LOD1`` ... for the offsets of each level,
        the outermost first.

        Example:
            >>> sorted(LoDTensor(jnp.zeros(2), [[0, 1], [0, 2]]).as_feed("words"))
            ['words', 'words@LOD0', 'words@LOD1']
        """
        return {name: self.data, **{f"{name}@LOD{i}": one for i, one in enumerate(self.lod)}}

    def with_data(self, data: Any) -> "LoDTensor":
        """The same sequences of other steps: what an operator made of each step by itself.

        Raises:
            ShapeError: there are not as many.

        Example:
            >>> words = LoDTensor(jnp.array([1, 2, 3]), [[0, 1, 3]])
            >>> words.with_data(words.data * 10).to_lists()
            [[10], [20, 30]]
        """
        lengths = [length_of(one) for one in (self.data, data)]
        if None not in lengths and lengths[0] != lengths[1]:
            raise ShapeError(f"with_data: there must be {lengths[0]} steps, got {lengths[1]}")
        return self._of(data, self.lod)

    def with_total_length(self, total_length: int) -> "LoDTensor":
        """The same sequences with zeros behind them, or less padding, so that batches are alike.

        Raises:
            ShapeError: the sequences are longer.
        """
        last, height = known(self.lod[-1]), self.shape[0]
        if last is not None and last[-1] > total_length:
            raise ShapeError(
                f"with_total_length: total_length must be at least {last[-1]}, got {total_length}"
            )
        if total_length <= height:
            return self._of(self.data[:total_length], self.lod)
        widths = [(0, total_length - height), *[(0, 0)] * (len(self.shape) - 1)]
        if isinstance(self.data, np.ndarray):
            return self._of(np.pad(self.data, widths), self.lod)
        return self._of(operator("pad")(self.data, pad_width=widths), self.lod)

    # Its parts ------------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Any:
        """One outermost sequence, an array or with a level less; or those of a slice."""
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                raise ArgumentError(f"LoDTensor: a slice must have step 1, got {step}")
            return self._between(start, max(start, stop))
        number = range(len(self))[index]  # as of a list, errors included
        one = self._between(number, number + 1)
        return self._of(one.data, one.lod[1:]) if one.lod[1:] else one.data

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def _between(self, start: int, stop: int) -> "LoDTensor":
        lod = []
        for offsets in self._known_lod("LoDTensor[...]"):
            kept = offsets[start : stop + 1]
            lod.append(kept - kept[0])
            start, stop = int(kept[0]), int(kept[-1])
        return self._of(self.data[start:stop], tuple(lod))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        # NumPy would stack sequences that happen to be equally long, and refuse others.
        del dtype, copy
        raise KindError(
            "LoDTensor: an array must be chosen, .data or to_padded(), got the whole tensor"
        )

    def __repr__(self) -> str:
        return text(self.data, self.lod)

    def _repr_html_(self) -> str:
        """The table that a notebook shows."""
        return table(self.data, self.lod)


def _steps(sequence: Any) -> int:
    """How many steps a sequence in a nested list has."""
    if hasattr(sequence, "__len__") and not isinstance(sequence, str):
        return len(sequence)
    raise ShapeError(f"from_lists: a sequence must be a list or an array, got {sequence!r:.200}")


def _array(sequence: Any, dtype: Any) -> np.ndarray:
    """The steps of an innermost sequence."""
    _steps(sequence)
    try:
        return np.asarray(sequence, dtype)
    except ValueError as error:
        raise ShapeError(
            f"from_lists: the steps of a sequence must have one shape, got {sequence!r:.200}"
        ) from error


def _flatten_with_keys(tensor: LoDTensor) -> tuple[Any, None]:
    keys = jax.tree_util.GetAttrKey("data"), jax.tree_util.GetAttrKey("lod")
    return tuple(zip(keys, (tensor.data, tensor.lod), strict=True)), None


def _unflatten(_: None, children: Any) -> LoDTensor:
    return LoDTensor._of(*children)


jax.tree_util.register_pytree_with_keys(LoDTensor, _flatten_with_keys, _unflatten)
