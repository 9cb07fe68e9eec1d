"""Indices of eager arrays: ``x[...]`` as calls of operators, whatever NumPy allows in brackets."""

import operator
from typing import Any, SupportsIndex

import numpy as np

from registry import var
from registry.errors import ArgumentError
from registry.var import Var


def entries_of(index: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The entries of an index, one for each axis; masks as the positions where they are true.

    Raises:
        ArgumentError: there are too many.
        IndexError: an integer lies outside of its axis.
    """
    entries = _expanded(_parted(index), shape)
    axis = 0
    for entry in entries:
        if entry is not None:
            if not isinstance(entry, (slice, Var)) and not hasattr(entry, "aval"):
                _require_within(entry, axis, shape[axis])
            axis += 1
    return tuple(entries)


def _require_within(entry: Any, axis: int, length: int) -> None:
    places = np.asarray(entry)
    if places.size and not (-length <= places.min() and places.max() < length):
        raise IndexError(
            f"x[...]: the index of axis {axis} must be in [{-length}, {length}), got "
            f"{places.tolist()}"
        )


def _parted(index: Any) -> tuple[Any, ...]:
    """The entries of an index; arrays as they are, masks as the positions where they are true."""
    found: list[Any] = []
    for entry in index if isinstance(index, tuple) else (index,):
        if isinstance(entry, Var):
            entry = entry.value if entry.dtype.kind in "iu" else np.asarray(entry)  # noqa: PLW2901
        elif isinstance(entry, list):
            entry = np.asarray(entry, None if entry else np.int32)  # noqa: PLW2901
        mask = isinstance(entry, (bool, np.bool_)) or _kind(entry) == "b"
        found += np.nonzero(np.asarray(entry)) if mask else [entry]
    return tuple(found)


def is_truth(index: Any) -> bool:
    """Whether an index is one truth value, which takes all or nothing."""
    if isinstance(index, (bool, np.bool_)):
        return True
    return _kind(index) == "b" and np.ndim(index) == 0


def _kind(entry: Any) -> str:
    dtype = getattr(entry, "dtype", None)
    return "" if dtype is None else str(np.dtype(dtype).kind)


def taken(x: Any, index: Any) -> Any:
    """``x[index]``.

    Slices and single integers are slices and takes; arrays among the index are broadcast together,
    and their axes stand where NumPy puts them.

    Raises:
        ArgumentError: an entry is of another type, or there are too many.
        IndexError: an integer lies outside of its axis.
    """
    if is_truth(index):
        return var.infix["[]"](x, (None,))[: int(bool(index))]
    entries = _expanded(index if isinstance(index, tuple) else (index,), x.shape)
    arrays = [entry for entry in entries if _is_array(entry)]
    numbers = [_is_number(entry) for entry in entries]
    if len(arrays) > 1 or (arrays and any(numbers)):
        return _gathered(x, entries)
    plain = tuple(
        slice(None) if number else _whole(entry)
        for entry, number in zip(entries, numbers, strict=True)
    )
    if any(not _is_all(entry) for entry in plain):
        x = _sliced(x, plain)
    places = [(i, entry) for i, entry in enumerate(entries) if _is_number(entry)]
    for axis, entry in reversed(places):  # each drops its axis
        x = _one(x, entry, axis)
    return x


_VARIETY = 4
"""After so many different places of slices of the same lengths, further ones are no constants."""
_KINDS = 4096
_places: dict[Any, set[Any]] = {}
"""Where slices of an array began, by its shape and their lengths."""


def _sliced(x: Any, index: tuple[Any, ...]) -> Any:
    """Slices, as constants of the program, or where they move, with places that are inputs."""
    if len(index) == x.ndim and all(isinstance(one, slice) for one in index):
        ranges = [range(*one.indices(n)) for one, n in zip(index, x.shape, strict=True)]
        if all(one.step == 1 for one in ranges) and any(one.start for one in ranges):
            starts, sizes = tuple(one.start for one in ranges), tuple(map(len, ranges))
            if _moves(x.shape, sizes, starts):
                return _method("dynamic_slice")(x, np.asarray(starts, np.int32), sizes=sizes)
    return var.infix["[]"](x, index)


def _moves(shape: tuple[int, ...], sizes: tuple[int, ...], starts: tuple[int, ...]) -> bool:
    """Whether slices of these lengths were taken from many places."""
    if len(_places) > _KINDS:
        _places.clear()
    seen = _places.setdefault((shape, sizes), set())
    if len(seen) <= _VARIETY:
        seen.add(starts)
    return len(seen) > _VARIETY


def _one(x: Any, entry: SupportsIndex, axis: int) -> Any:
    place, length = operator.index(entry), x.shape[axis]
    if not -length <= place < length:
        raise IndexError(
            f"x[...]: the index of axis {axis} must be in [{-length}, {length}), got {place}"
        )
    return _method("take")(x, place % length, axis=axis)


def _method(name: str) -> Any:
    return var.methods(name)


def _is_all(entry: Any) -> bool:
    return isinstance(entry, slice) and entry == slice(None)


def _is_number(entry: Any) -> bool:
    if isinstance(entry, (bool, slice, Var)) or entry is None:
        return False
    return isinstance(entry, SupportsIndex) and getattr(entry, "shape", ()) == ()


def _is_array(entry: Any) -> bool:
    return entry is not None and not isinstance(entry, slice) and not _is_number(entry)


def _whole(entry: Any) -> Any:
    """A slice of Python integers."""
    if not isinstance(entry, slice):
        return entry
    bounds = (entry.start, entry.stop, entry.step)
    return slice(*(None if one is None else operator.index(one) for one in bounds))


def _expanded(index: tuple[Any, ...], shape: tuple[int, ...]) -> list[Any]:
    """The entries of an index, one for each axis and each new one."""
    entries: list[Any] = []
    for entry in index:
        masked = isinstance(entry, (bool, np.bool_)) or _kind(entry) == "b"
        if isinstance(entry, list):
            entries += _parted(entry)
        elif masked and not isinstance(entry, (bool, np.bool_)):
            entries += np.nonzero(np.asarray(entry))
        else:
            entries.append(entry)
    named = sum(entry is not None and entry is not Ellipsis for entry in entries)
    if named > len(shape):
        raise ArgumentError(f"x[...]: at most {len(shape)} axes must be indexed, got {named}")
    dots = [i for i, entry in enumerate(entries) if entry is Ellipsis]
    if len(dots) > 1:
        raise ArgumentError("x[...]: at most one ... must be in an index, got more")
    full = [slice(None)] * (len(shape) - named)
    at = dots[0] if dots else len(entries)
    return [*entries[:at], *full, *entries[at + 1 :]]


def _gathered(x: Any, entries: list[Any]) -> Any:
    """Several arrays, or an array beside integers: they are broadcast together."""
    chosen = [i for i, entry in enumerate(entries) if _is_array(entry) or _is_number(entry)]
    sliced = tuple(slice(None) if i in chosen else _whole(e) for i, e in enumerate(entries))
    x = var.infix["[]"](x, sliced)
    arrays = [_positions(entries[i], x.shape[i]) for i in chosen]
    together = np.broadcast_shapes(*(tuple(one.shape) for one in arrays))
    spread = [_method("broadcast_to")(one, shape=together) for one in arrays]
    rows = _method("stack")(*spread, axis=-1)
    others = [i for i in range(x.ndim) if i not in chosen]
    front = _method("permute_dims")(x, axes=(*chosen, *others))
    found = _method("gather_nd")(front, rows)
    adjacent = chosen == list(range(chosen[0], chosen[-1] + 1))
    if not adjacent or chosen[0] == 0:
        return found
    count = len(together)
    kept = [count + others.index(i) for i in others if i < chosen[0]]
    rest = [count + others.index(i) for i in others if i > chosen[-1]]
    return _method("permute_dims")(found, axes=(*kept, *range(count), *rest))


def _positions(entry: Any, length: int) -> Any:
    """An entry as an array of positions counted from the front."""
    if isinstance(entry, Var):
        if entry.dtype.kind not in "iu":
            raise ArgumentError(f"x[...]: an index must hold integers, got {entry.dtype.name}")
        return _method("where")(_method("less")(entry, 0), entry + length, entry)
    positions = np.asarray(entry)
    if positions.dtype.kind not in "iu":
        raise ArgumentError(f"x[...]: an index must hold integers, got {entry!r}")
    if positions.size and not (-length <= positions.min() and positions.max() < length):
        raise IndexError(
            f"x[...]: an index must be in [{-length}, {length}), got {positions.tolist()}"
        )
    return positions.astype(np.int32) % max(length, 1)
