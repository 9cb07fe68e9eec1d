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
    """Ragged sequences, concatenated along the first axis of ``data``.

    ``lod`` (the level of detail) holds a vector of ``n + 1`` offsets for each level, outermost
    first. The offsets of the last level count steps: sequence ``s`` is
    ``data[lod[-1][s]:lod[-1][s + 1]]``. Those of a level above count the sequences of the next
    level: for words in sentences in texts, ``lod[0]`` counts sentences and ``lod[1]`` words.
    Offsets start with 0, never decrease, and end with the number of items that they count. Their
    dtype is int32. A method needs their values only if the shape of its result depends on them;
    thus they may be traced under ``jax.jit``, while their number and the length of ``data`` are
    static.

    With ``padded=True`` the offsets may end earlier: the data after the last offset are padding and
    belong to no sequence.

    Args:
        data: an array, eager array or symbol; its first axis counts steps.
        lod: the offsets of each level; lists, arrays or symbols.
        padded: whether there may be padding.

    Raises:
        ShapeError: the offsets do not delimit sequences of ``data``. Values of tracers and symbols
            are not checked.
        DTypeError: the offsets are not integers.
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

    # Construction ---------------------------------------------------------------------------------

    @classmethod
    def from_lists(
        cls, sequences: Sequence[Any], *, lod_level: int = 1, dtype: Any = None
    ) -> "LoDTensor":
        """Creates a LoDTensor from nested lists of ``lod_level`` levels, with steps inside.

        The innermost sequences may be arrays. If all are empty, their steps are numbers.

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
        """Creates a LoDTensor from data and a vector of lengths for each level, outermost first.

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
        """Creates a LoDTensor from padded rows, given the lengths or a mask of their steps.

        Args:
            padded: of shape ``(sequences, steps, ...)``.
            length: the number of steps in each row.
            mask: alternatively, a mask of the steps, true before it is false, of shape
                ``(sequences, steps)``.
            total_length: length of the data; needed only if the lengths are traced.

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

    # Conversion ----------------------------------------------------------------------------------

    def recursive_sequence_lengths(self) -> list[list[int]]:
        """Returns the lengths of each level, counted in items of the next; see ``from_lengths``.

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
        """Returns the sequences as nested lists.

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
        """Returns the innermost sequences as rows of one length, and the mask of their steps.

        ``padded_length`` defaults to the longest length, and is required if the offsets are traced;
        longer sequences are truncated.

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
        """Returns the feeds of the variables that represent a tensor called ``name``.

        They are ``name`` itself and ``name@LOD0``, ``name@LOD1`` ... for the offsets of each level,
        outermost first.

        Example:
            >>> sorted(LoDTensor(jnp.zeros(2), [[0, 1], [0, 2]]).as_feed("words"))
            ['words', 'words@LOD0', 'words@LOD1']
        """
        return {name: self.data, **{f"{name}@LOD{i}": one for i, one in enumerate(self.lod)}}

    def with_data(self, data: Any) -> "LoDTensor":
        """Returns the same sequences with other steps, such as the result of a stepwise operator.

        Raises:
            ShapeError: the number of steps differs.

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
        """Returns the same sequences, with ``data`` zero-padded or cut to ``total_length`` steps.

        Batches of one total length have the same shapes.

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

    # Indexing and display -------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Any:
        """Returns one outermost sequence, an array or one level less; or those of a slice."""
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                raise ArgumentError(f"LoDTensor: a slice must have step 1, got {step}")
            return self._between(start, max(start, stop))
        number = range(len(self))[index]  # like a list, including errors
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
        # NumPy would stack sequences that happen to have equal lengths, and fail for others.
        del dtype, copy
        raise KindError(
            "LoDTensor: an array must be chosen, .data or to_padded(), got the whole tensor"
        )

    def __repr__(self) -> str:
        return text(self.data, self.lod)

    def _repr_html_(self) -> str:
        """Returns the table that a notebook displays."""
        return table(self.data, self.lod)


def _steps(sequence: Any) -> int:
    """Returns the number of steps in a sequence of a nested list."""
    if hasattr(sequence, "__len__") and not isinstance(sequence, str):
        return len(sequence)
    raise ShapeError(f"from_lists: a sequence must be a list or an array, got {sequence!r:.200}")


def _array(sequence: Any, dtype: Any) -> np.ndarray:
    """Returns the steps of an innermost sequence."""
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
