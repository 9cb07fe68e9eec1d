"""Indexing of eager arrays: ``x[...]`` with NumPy's semantics, as calls of operators."""

import operator
from typing import Any, NamedTuple, SupportsIndex

import jax
import numpy as np

from registry import var
from registry.errors import BoundsError, InvalidIndexError
from registry.types import is_boolean, is_integer
from registry.var import Var


class Parsed(NamedTuple):
    """A normalized index.

    Attributes:
        shape: the shape of the array, with an axis of length one for each boolean scalar in the
            index.
        entries: one entry for each axis, and None for each new axis. A ``...`` between integers or
            arrays is kept even if it covers no axis, since it makes them non-adjacent.
    """

    shape: tuple[int, ...]
    entries: list[Any]


def parse(index: Any, shape: tuple[int, ...]) -> Parsed:
    """Normalizes an index of an array of ``shape``.

    Slices contain Python integers, masks become the positions where they are true, and integers on
    the host are checked and made non-negative. A boolean scalar selects all or nothing of a new
    axis. Arrays on a device (eager or JAX arrays) are not inspected, since that would wait for
    their values.

    Raises:
        InvalidIndexError: an entry is of an unsupported type, or the index has several ``...``.
        BoundsError: an integer is outside its axis, a mask has the wrong shape, arrays do not
            broadcast together, or the index has too many entries.
    """
    parts = [
        np.asarray(one, None if one else np.int32) if isinstance(one, list) else one
        for one in (index if isinstance(index, tuple) else (index,))
    ]
    entries: list[Any] = []
    lengths: list[int] = []
    axis = 0
    for entry in _spread(parts, len(shape)):
        if _is_truth(entry):
            entries.append(np.zeros(int(bool(entry)), np.int32))
            lengths.append(1)
            continue
        entries += _parsed(entry, axis, shape)
        count = _axes_of(entry)
        lengths += shape[axis : axis + count]
        axis += count
    _common_shape(entries)
    return Parsed(tuple(lengths), entries)


def _spread(entries: list[Any], count: int) -> list[Any]:
    """Returns entries for ``count`` axes: full slices replace ``...``, or are appended."""
    named = sum(_axes_of(entry) for entry in entries)
    if named > count:
        raise BoundsError(f"x[...]: at most {count} axes must be indexed, got {named}")
    dots = [i for i, entry in enumerate(entries) if entry is Ellipsis]
    if len(dots) > 1:
        raise InvalidIndexError("x[...]: at most one ... must be in an index, got more")
    whole: list[Any] = [slice(None)] * (count - named)
    if not dots:
        return [*entries, *whole]
    before, behind = entries[: dots[0]], entries[dots[0] + 1 :]
    apart = any(map(_is_chosen, before)) and any(map(_is_chosen, behind))
    return [*before, *(whole or [Ellipsis] * apart), *behind]


def _axes_of(entry: Any) -> int:
    """Returns the number of axes that an entry indexes."""
    if entry is None or entry is Ellipsis or _is_truth(entry):
        return 0
    return np.ndim(entry) if _kind(entry) == "b" else 1


def _parsed(entry: Any, axis: int, shape: tuple[int, ...]) -> list[Any]:
    """Returns the normalized entries, one for each axis, of an entry that begins at ``axis``."""
    if entry is None or entry is Ellipsis:
        return [entry]
    if isinstance(entry, slice):
        return [_whole(entry)]
    if _is_number(entry):
        return [_within(operator.index(entry), axis, shape[axis])]
    kind = _kind(entry)
    if kind == "b":
        return _true_places(entry, axis, shape)
    if kind != "i":
        raise InvalidIndexError(
            "x[...]: an index must hold integers, slices, ..., None, or arrays of integers or "
            f"truth values, got {entry!r}"
        )
    return [_all_within(entry, axis, shape[axis]) if isinstance(entry, np.ndarray) else entry]


def _within(place: int, axis: int, length: int) -> int:
    """Returns ``place`` as a non-negative position.

    Raises:
        BoundsError: it is outside the axis.
    """
    if not -length <= place < length:
        raise _outside(place, axis, length)
    return place % length


def _all_within(places: np.ndarray, axis: int, length: int) -> np.ndarray:
    """Returns ``places`` as non-negative positions.

    Raises:
        BoundsError: a position is outside the axis.
    """
    wrong = places[(places < -length) | (places >= length)]
    if wrong.size:
        raise _outside(wrong[0], axis, length)
    return np.where(places < 0, places + length, places).astype(np.int32)


def _outside(place: int, axis: int, length: int) -> BoundsError:
    return BoundsError(
        f"x[...]: index {place} is out of bounds for axis {axis} with size {length}: it must be "
        f"in [{-length}, {length})"
    )


def _true_places(mask: Any, axis: int, shape: tuple[int, ...]) -> list[Any]:
    """Returns the positions where a mask is true.

    As in the array API, an axis of the mask may have length zero instead of the array's length.
    """
    expected, got = shape[axis : axis + np.ndim(mask)], tuple(np.shape(mask))
    if any(one not in (0, other) for one, other in zip(got, expected, strict=True)):
        raise BoundsError(
            f"x[...]: a mask must have the shape {expected} of the axes that it indexes, from "
            f"axis {axis}, got {got}"
        )
    return list(np.nonzero(np.asarray(mask)))


def _is_truth(entry: Any) -> bool:
    """Whether an entry is a boolean scalar, which selects all or nothing."""
    if isinstance(entry, (bool, np.bool_)):
        return True
    return _kind(entry) == "b" and np.ndim(entry) == 0


def _kind(entry: Any) -> str:
    dtype = getattr(entry, "dtype", None)
    if dtype is None:
        return ""
    known = np.dtype(dtype)
    return "b" if is_boolean(known) else "i" if is_integer(known) else "f"


def take_index(x: Any, index: Any) -> Any:
    """Computes ``x[index]``.

    Slices and single integers become slice and take operators. Several arrays in the index are
    broadcast together and gathered, with their axes placed as in NumPy.

    Raises:
        InvalidIndexError, BoundsError: see ``parse``.
    """
    result = _taken(x, *parse(index, x.shape))
    return result.copy() if result is x else result  # the result must not alias x


def _taken(x: Any, shape: tuple[int, ...], entries: list[Any]) -> Any:
    if shape != x.shape:
        x = _method("reshape")(x, shape=shape)
    chosen = [i for i, entry in enumerate(entries) if _is_chosen(entry)]
    arrays = sum(not _is_single(entries[i]) for i in chosen)
    if arrays > 1 or (arrays and len(chosen) > arrays):
        return _gathered(x, entries, chosen)
    entries = [entry for entry in entries if entry is not Ellipsis]
    chosen = [i for i, entry in enumerate(entries) if _is_chosen(entry)]
    plain = _without(entries)
    if any(not _is_all(entry) for entry in plain):
        x = _sliced(x, plain)
    for axis in reversed(chosen):  # an integer drops the axis, an array replaces it
        x = _method("take")(x, entries[axis], axis=axis)
    return x


_VARIETY = 4
"""The number of different starts, of slices of equal lengths, after which starts become inputs."""
_KINDS = 4096
_places: dict[Any, set[Any]] = {}
"""The starts of slices seen so far, by the shape of the array and the lengths of the slices."""


def _sliced(x: Any, index: tuple[Any, ...]) -> Any:
    """Applies slices: as constants of the program, or as dynamic slices if their starts vary."""
    if len(index) == x.ndim and all(isinstance(one, slice) for one in index):
        ranges = [range(*one.indices(n)) for one, n in zip(index, x.shape, strict=True)]
        if all(one.step == 1 for one in ranges) and any(one.start for one in ranges):
            starts, sizes = tuple(one.start for one in ranges), tuple(map(len, ranges))
            if _moves(x.shape, sizes, starts):
                return _method("dynamic_slice")(x, np.asarray(starts, np.int32), sizes=sizes)
    return var.infix["[]"](x, index)


def _moves(shape: tuple[int, ...], sizes: tuple[int, ...], starts: tuple[int, ...]) -> bool:
    """Whether slices of these lengths had many different starts; records ``starts``."""
    if len(_places) > _KINDS:
        _places.clear()
    seen = _places.setdefault((shape, sizes), set())
    if len(seen) <= _VARIETY:
        seen.add(starts)
    return len(seen) > _VARIETY


def _method(name: str) -> Any:
    return var.Operators.find(name)


def _is_all(entry: Any) -> bool:
    return isinstance(entry, slice) and entry == slice(None)


def _is_number(entry: Any) -> bool:
    """Whether an entry is an integer with a known value."""
    if isinstance(entry, (bool, slice, Var, jax.core.Tracer)) or _kind(entry) not in "iu":
        return False
    return isinstance(entry, SupportsIndex) and getattr(entry, "shape", ()) == ()


def _is_chosen(entry: Any) -> bool:
    """Whether an entry selects positions of its axis: an integer or an array of integers."""
    return entry is not None and entry is not Ellipsis and not isinstance(entry, slice)


def _is_single(entry: Any) -> bool:
    """Whether an entry is a single integer, possibly a tracer."""
    return isinstance(entry, int) or (isinstance(entry, jax.core.Tracer) and entry.ndim == 0)


def _whole(entry: slice) -> slice:
    """Returns a slice with its bounds and step as Python integers."""
    bounds = (entry.start, entry.stop, entry.step)
    return slice(*(None if one is None else operator.index(one) for one in bounds))


def _without(entries: list[Any]) -> tuple[Any, ...]:
    """Returns ``entries`` with full slices in place of integers and arrays."""
    return tuple(slice(None) if _is_chosen(entry) else entry for entry in entries)


def _gathered(x: Any, entries: list[Any], chosen: list[int]) -> Any:
    """Indexes with several arrays, or an array and integers, which are broadcast together."""
    adjacent = chosen == list(range(chosen[0], chosen[-1] + 1))
    entries = [entry for entry in entries if entry is not Ellipsis]
    axes = [i for i, entry in enumerate(entries) if _is_chosen(entry)]
    x = var.infix["[]"](x, _without(entries))
    arrays = [_positions(entries[i]) for i in axes]
    together = _common_shape(arrays)
    spread = [_method("broadcast_to")(one, shape=together) for one in arrays]
    rows = _method("stack")(*spread, axis=-1)
    others = [i for i in range(x.ndim) if i not in axes]
    front = _method("permute_dims")(x, axes=(*axes, *others))
    result = _method("gather_nd")(front, rows)
    if not adjacent or axes[0] == 0:
        return result
    count = len(together)
    kept = [count + others.index(i) for i in others if i < axes[0]]
    rest = [count + others.index(i) for i in others if i > axes[-1]]
    return _method("permute_dims")(result, axes=(*kept, *range(count), *rest))


def _common_shape(entries: list[Any]) -> tuple[int, ...]:
    """Returns the shape to which the arrays among ``entries`` broadcast."""
    shapes = [tuple(entry.shape) for entry in entries if hasattr(entry, "shape")]
    if not shapes:
        return ()
    if shapes.count(shapes[0]) == len(shapes):
        return shapes[0]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise BoundsError(
            "x[...]: the arrays in an index must broadcast together, got shapes "
            f"{', '.join(map(str, shapes))}"
        ) from None


def _positions(entry: Any) -> Any:
    """Returns an entry as an array of positions; negative ones count from the end."""
    if isinstance(entry, (int, np.ndarray)):
        return np.asarray(entry, np.int32)
    # Promoted with signed positions, uint64 would become a float dtype.
    return _method("cast")(entry, dtype="int64") if entry.dtype == np.uint64 else entry
