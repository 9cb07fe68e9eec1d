"""Indices of eager arrays: ``x[...]`` as calls of operators, whatever NumPy allows in brackets."""

import operator
from typing import Any, SupportsIndex

import jax
import numpy as np

from registry import var
from registry.errors import ArgumentError
from registry.var import Var


def entries_of(index: Any, shape: tuple[int, ...]) -> list[Any]:
    """The entries of an index: one for each axis, and None for each new one.

    Slices hold Python's integers, masks become the positions where they are true, and integers on
    the host lie within their axis: numbers count from the front. Arrays on a device (eager ones,
    those of JAX) are left as they are, since looking at them would wait for them.

    Raises:
        ArgumentError: an entry is of another type, or there are too many.
        IndexError: an integer lies outside of its axis, or a mask is of another shape.
    """
    given = [
        np.asarray(one, None if one else np.int32) if isinstance(one, list) else one
        for one in (index if isinstance(index, tuple) else (index,))
    ]
    entries: list[Any] = []
    axis = 0
    for entry in _spread(given, len(shape)):
        found = _parsed(entry, axis, shape)
        entries += found
        axis += len(found) if entry is not None else 0
    return entries


def _spread(given: list[Any], count: int) -> list[Any]:
    """Entries for ``count`` axes: whole ones where the dots are, or at the end."""
    named = sum(_axes_of(entry) for entry in given)
    if named > count:
        raise ArgumentError(f"x[...]: at most {count} axes must be indexed, got {named}")
    dots = [i for i, entry in enumerate(given) if entry is Ellipsis]
    if len(dots) > 1:
        raise ArgumentError("x[...]: at most one ... must be in an index, got more")
    at = dots[0] if dots else len(given)
    return [*given[:at], *[slice(None)] * (count - named), *given[at + 1 :]]


def _axes_of(entry: Any) -> int:
    """How many axes an entry indexes."""
    if entry is None or entry is Ellipsis:
        return 0
    return np.ndim(entry) if _kind(entry) == "b" else 1


def _parsed(entry: Any, axis: int, shape: tuple[int, ...]) -> list[Any]:
    """An entry that begins at ``axis``, as it says to each axis."""
    if entry is None:
        return [None]
    if isinstance(entry, slice):
        return [_whole(entry)]
    if _is_number(entry):
        return [_within(operator.index(entry), axis, shape[axis])]
    kind = _kind(entry)
    if kind == "b" and np.ndim(entry):
        return _true_places(entry, axis, shape)
    if kind not in ("i", "u"):
        raise ArgumentError(
            "x[...]: an index must hold integers, slices, ..., None, or arrays of integers or "
            f"truth values, got {entry!r}"
        )
    return [_all_within(entry, axis, shape[axis]) if isinstance(entry, np.ndarray) else entry]


def _within(place: int, axis: int, length: int) -> int:
    """``place`` counted from the front."""
    if not -length <= place < length:
        raise _outside(place, axis, length)
    return place % length


def _all_within(places: np.ndarray, axis: int, length: int) -> np.ndarray:
    """Positions counted from the front."""
    wrong = places[(places < -length) | (places >= length)]
    if wrong.size:
        raise _outside(wrong[0], axis, length)
    return np.where(places < 0, places + length, places).astype(np.int32)


def _outside(place: int, axis: int, length: int) -> IndexError:
    return IndexError(
        f"x[...]: index {place} is out of bounds for axis {axis} with size {length}: it must be "
        f"in [{-length}, {length})"
    )


def _true_places(mask: Any, axis: int, shape: tuple[int, ...]) -> list[Any]:
    expected, got = shape[axis : axis + np.ndim(mask)], tuple(np.shape(mask))
    if got != expected:
        raise IndexError(
            f"x[...]: a mask must have the shape {expected} of the axes that it indexes, from "
            f"axis {axis}, got {got}"
        )
    return list(np.nonzero(np.asarray(mask)))


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
    entries = entries_of(index, x.shape)
    chosen = [i for i, entry in enumerate(entries) if _is_chosen(entry)]
    arrays = sum(not _is_single(entries[i]) for i in chosen)
    if arrays > 1 or (arrays and len(chosen) > arrays):
        return _gathered(x, entries, chosen)
    plain = _without(entries, chosen)
    if any(not _is_all(entry) for entry in plain):
        x = _sliced(x, plain)
    for axis in reversed(chosen):  # an integer drops its axis, an array puts its own there
        x = _method("take")(x, entries[axis], axis=axis)
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


def _method(name: str) -> Any:
    return var.methods(name)


def _is_all(entry: Any) -> bool:
    return isinstance(entry, slice) and entry == slice(None)


def _is_number(entry: Any) -> bool:
    """Whether an entry is an integer whose value is at hand."""
    if isinstance(entry, (bool, slice, Var, jax.core.Tracer)) or _kind(entry) not in "iu":
        return False
    return isinstance(entry, SupportsIndex) and getattr(entry, "shape", ()) == ()


def _is_chosen(entry: Any) -> bool:
    """Whether an entry names places of its axis: integers or an array of them."""
    return entry is not None and not isinstance(entry, slice)


def _is_single(entry: Any) -> bool:
    """Whether an entry is one integer, which a transformation of JAX may hide."""
    return isinstance(entry, int) or (isinstance(entry, jax.core.Tracer) and entry.ndim == 0)


def _whole(entry: slice) -> slice:
    """A slice of Python integers."""
    bounds = (entry.start, entry.stop, entry.step)
    return slice(*(None if one is None else operator.index(one) for one in bounds))


def _without(entries: list[Any], chosen: list[int]) -> tuple[Any, ...]:
    """The slices and new axes among ``entries``; the ``chosen`` axes stay whole."""
    return tuple(slice(None) if i in chosen else entry for i, entry in enumerate(entries))


def _gathered(x: Any, entries: list[Any], chosen: list[int]) -> Any:
    """Several arrays, or an array beside integers: they are broadcast together."""
    x = var.infix["[]"](x, _without(entries, chosen))
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
    if isinstance(entry, (int, np.ndarray)):
        return np.asarray(entry, np.int32)
    return _method("where")(_method("less")(entry, 0), entry + length, entry)
