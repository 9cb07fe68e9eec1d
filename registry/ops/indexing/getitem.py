"""Python's indexing ``x[...]``, composed of slice, take, squeeze and expand_dims."""

from typing import Any, NamedTuple, SupportsIndex

import numpy as np

from registry.errors import ArgumentError, BoundsError, InvalidIndexError, UnknownTypeError
from registry.ops.core.arranging import flip, moveaxis
from registry.ops.core.indexing import take
from registry.ops.core.reshaping import expand_dims, squeeze
from registry.ops.core.slicing import slice_
from registry.types import is_boolean, is_integer
from registry.var import Var, infix


class _Plan(NamedTuple):
    """The operations that an index requires on each axis.

    Attributes:
        bounds: begin, end and step of a forward slice for each axis.
        reversed: axes, and the positions of a backward slice along them.
        gathers: the axis of an index array, and the array.
        dropped: axes to squeeze after that.
        added: axes of length 1 to insert at the end.
    """

    bounds: list[tuple[int | None, int | None, int | None]]
    reversed: list[tuple[int, Any]]
    gathers: list[tuple[int, Any]]
    dropped: list[int]
    added: list[int]


def getitem(x: Any, index: Any) -> Any:
    """Indexes ``x`` with integers, slices, ``...``, ``None`` and integer arrays (one per index).

    While the shape of ``x`` is unknown, axes after ``...`` are counted from the end. An index that
    does not fit raises an error as soon as the shape is known; an integer out of bounds is then a
    ``ShapeError``, since the graph holds a slice of one entry, which is empty.

    Raises:
        InvalidIndexError: an entry of the index is of another type, or there are several ``...``.
        ArgumentError: an array is not the only entry that selects positions.
        BoundsError: an integer is out of bounds, or there are too many entries.

    Example:
        >>> import jax.numpy as jnp
        >>> getitem(jnp.arange(6).reshape(2, 3), (0, slice(None, None, -1))).tolist()
        [2, 1, 0]
    """
    entries = index if isinstance(index, tuple) else (index,)
    for entry in entries:
        if entry is not None and entry is not Ellipsis and not _is_basic(entry):
            _positions(entry)  # raises an error if it is no index, before the others are read
    try:
        shape = tuple(x.shape)
    except UnknownTypeError:
        return _of_unknown_shape(x, entries)
    plan = _planned(entries, shape)
    if any(bound != (None, None, None) for bound in plan.bounds):
        begin, end, step = (tuple(column) for column in zip(*plan.bounds, strict=True))
        x = slice_(x, begin=begin, end=end, step=step)
    for axis, positions in [*plan.reversed, *plan.gathers]:
        x = take(x, positions, axis=axis)
    if plan.dropped:
        x = squeeze(x, axis=tuple(plan.dropped))
    return expand_dims(x, axis=tuple(plan.added)) if plan.added else x


def _planned(index: tuple[Any, ...], shape: tuple[int, ...]) -> _Plan:
    """Reads the entries of an index from left to right."""
    plan = _Plan([], [], [], [], [])
    kept = 0
    for entry in _without_ellipsis(index, len(shape)):
        if entry is None:
            plan.added.append(kept)
            kept += 1
            continue
        axis = len(plan.bounds)
        if isinstance(entry, slice):
            _plan_slice(plan, entry, axis, shape[axis])
            kept += 1
        elif _is_position(entry):
            place = _position(entry, axis, shape[axis])
            plan.bounds.append((place, place + 1, None))
            plan.dropped.append(axis)
        else:
            plan.bounds.append((None, None, None))
            plan.gathers.append((axis, _positions(entry)))
            kept += _rank(entry)
    _require_alone(len(plan.gathers), len(plan.dropped), index)
    return plan


def _require_alone(gathers: int, dropped: int, index: tuple[Any, ...]) -> None:
    if gathers and (gathers > 1 or dropped):
        raise ArgumentError(
            "getitem: an array among the indices must be the only one, and without integers "
            f"beside it, got {index!r}"
        )


def _without_ellipsis(index: tuple[Any, ...], ndim: int) -> list[Any]:
    """The entries of an index, with ``...`` and omitted axes replaced by full slices."""
    named = sum(entry is not None and entry is not Ellipsis for entry in index)
    if named > ndim:
        raise BoundsError(f"getitem: at most {ndim} axes must be indexed, got {named}")
    before, behind = _around_ellipsis(index)
    return [*before, *[slice(None)] * (ndim - named), *behind]


def _around_ellipsis(index: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    dots = [i for i, entry in enumerate(index) if entry is Ellipsis]
    if len(dots) > 1:
        raise InvalidIndexError("getitem: at most one ... must be in an index, got more")
    at = dots[0] if dots else len(index)
    return index[:at], index[at + 1 :]


def _plan_slice(plan: _Plan, entry: slice, axis: int, length: int) -> None:
    """Plans a slice: one with a negative step becomes a gather, others stay slices."""
    if entry.step is not None and entry.step < 0:
        positions = np.arange(length, dtype=np.int32)[entry]
        plan.bounds.append((None, None, None))
        plan.reversed.append((axis, positions))
    else:
        plan.bounds.append((entry.start, entry.stop, entry.step))


def _is_position(entry: Any) -> bool:
    if not isinstance(entry, SupportsIndex) or isinstance(entry, (bool, np.ndarray, Var)):
        return False
    return getattr(entry, "shape", ()) == ()  # any array of JAX's has the method


def _position(entry: SupportsIndex, axis: int, length: int) -> int:
    place = entry.__index__()
    if not -length <= place < length:
        raise BoundsError(
            f"getitem: the index of axis {axis} must be in [{-length}, {length}), got {place}"
        )
    return place % length


def _positions(entry: Any) -> Any:
    if isinstance(entry, Var):
        return entry
    positions = np.asarray(entry)
    if is_boolean(positions.dtype):
        raise InvalidIndexError(
            "getitem: an index of a symbol must not hold truth values; use where, or the positions "
            f"np.flatnonzero(mask), got {entry!r}"
        )
    if not is_integer(positions.dtype):
        raise InvalidIndexError(
            "getitem: an index must hold integers, slices, ..., None or one integer array, "
            f"got {entry!r}"
        )
    return positions.astype(np.int32)


def _rank(entry: Any) -> int:
    return entry.ndim if hasattr(entry, "ndim") else np.ndim(entry)


# Values of unknown shape -----------------------------------------------------------------------


def _of_unknown_shape(x: Any, index: tuple[Any, ...]) -> Any:
    """Indexes ``x`` of unknown shape: axes in front count from the front, others from the back."""
    before, behind = _around_ellipsis(index)
    named = [*_named(before, 0, 1), *_named(behind[::-1], -1, -1)]
    arrays = [(axis, entry) for axis, entry in named if not _is_basic(entry)]
    dropped = tuple(axis for axis, entry in named if _is_position(entry))
    _require_alone(len(arrays), len(dropped), index)
    x = _cut(x, [(axis, _bounds(entry)) for axis, entry in named if _is_basic(entry)])
    for axis, entry in arrays:
        x = take(x, _positions(entry), axis=axis)
    if dropped:
        x = squeeze(x, axis=dropped)
    added = (*_added(before, 0, 1), *_added(behind[::-1], -1, -1))
    return expand_dims(x, axis=added) if added else x


def _named(entries: tuple[Any, ...], start: int, by: int) -> list[tuple[int, Any]]:
    """Axes of ``x`` and the index entry for each."""
    said = [entry for entry in entries if entry is not None]
    return [(start + by * i, entry) for i, entry in enumerate(said)]


def _added(entries: tuple[Any, ...], start: int, by: int) -> list[int]:
    """The positions of axes of length 1 in the result."""
    places, at = [], start
    for i, entry in enumerate(entries):
        if entry is None:
            places.append(at)
        if not _is_position(entry):
            array = entry is not None and not isinstance(entry, slice)
            asked = array and any(one is None for one in entries[i:])
            at += by * (_rank(entry) if asked else 1)
    return places


def _is_basic(entry: Any) -> bool:
    return isinstance(entry, slice) or _is_position(entry)


def _bounds(entry: Any) -> slice:
    """A slice itself; for an integer the slice of that position, which is empty out of bounds."""
    if isinstance(entry, slice):
        return entry
    place = entry.__index__()
    return slice(place, None if place == -1 else place + 1)


def _cut(x: Any, axes: list[tuple[int, slice]]) -> Any:
    """Slices along axes, with the leading axes combined into one slice."""
    backward = tuple(axis for axis, one in axes if one.step is not None and one.step < 0)
    if backward:
        x = flip(x, axis=backward)
    forward = [(axis, _turned(one) if axis in backward else one) for axis, one in axes]
    front = {axis: one for axis, one in forward if axis >= 0}
    whole = slice(None)
    if any(one != whole for one in front.values()):
        x = _sliced(x, [front.get(axis, whole) for axis in range(max(front) + 1)])
    for axis, one in forward:
        if axis < 0 and one != whole:
            moved = _sliced(moveaxis(x, source=axis, destination=0), [one])
            x = moveaxis(moved, source=0, destination=axis)
    return x


def _turned(one: slice) -> slice:
    """A backward slice in positions counted in the opposite direction."""
    start, stop = (None if end is None else ~end for end in (one.start, one.stop))
    return slice(start, stop, -one.step)


def _sliced(x: Any, slices: list[slice]) -> Any:
    """Slices of the leading axes."""
    begin, end = tuple(one.start for one in slices), tuple(one.stop for one in slices)
    return slice_(x, begin=begin, end=end, step=tuple(one.step for one in slices))


infix["[]"] = getitem
