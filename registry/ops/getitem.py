"""Python's indexing ``x[...]`` as a composition of slice, take, squeeze and expand_dims."""

from typing import Any, NamedTuple, SupportsIndex

import numpy as np

from registry.errors import ArgumentError
from registry.ops.indexing import take
from registry.ops.shape import expand_dims, squeeze
from registry.ops.slicing import slice_
from registry.var import Var, infix


class _Plan(NamedTuple):
    """What an index asks of each axis.

    Attributes:
        bounds: begin, end and step of a forward slice of each axis.
        reversed: axes, and positions of a backward slice along them.
        gathers: the axis of an array among the indices, and the array.
        dropped: axes to squeeze after that.
        added: axes of length 1 to insert at last.
    """

    bounds: list[tuple[int | None, int | None, int | None]]
    reversed: list[tuple[int, Any]]
    gathers: list[tuple[int, Any]]
    dropped: list[int]
    added: list[int]


def getitem(x: Any, index: Any) -> Any:
    """``x[index]`` for integers, slices, ``...``, ``None`` and integer arrays (one per index).

    Raises:
        ArgumentError: an entry of the index is of another type, or there are too many.

    Example:
        >>> import jax.numpy as jnp
        >>> getitem(jnp.arange(6).reshape(2, 3), (0, slice(None, None, -1))).tolist()
        [2, 1, 0]
    """
    plan = _planned(index if isinstance(index, tuple) else (index,), tuple(x.shape))
    if any(bound != (None, None, None) for bound in plan.bounds):
        begin, end, step = (tuple(column) for column in zip(*plan.bounds, strict=True))
        x = slice_(x, begin=begin, end=end, step=step)
    for axis, positions in [*plan.reversed, *plan.gathers]:
        x = take(x, positions, axis=axis)
    if plan.dropped:
        x = squeeze(x, axis=tuple(plan.dropped))
    return expand_dims(x, axis=tuple(plan.added)) if plan.added else x


def _planned(index: tuple[Any, ...], shape: tuple[int, ...]) -> _Plan:
    """Read the entries of an index from left to right."""
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
    if plan.gathers and (len(plan.gathers) > 1 or plan.dropped):
        raise ArgumentError(
            "getitem: an array among the indices must be the only one, and without integers "
            f"beside it, got {index!r}"
        )
    return plan


def _without_ellipsis(index: tuple[Any, ...], ndim: int) -> list[Any]:
    """The entries of an index, ``...`` and what is left out replaced by full slices."""
    named = sum(entry is not None and entry is not Ellipsis for entry in index)
    if named > ndim:
        raise ArgumentError(f"getitem: at most {ndim} axes must be indexed, got {named}")
    full = [slice(None)] * (ndim - named)
    dots = [i for i, entry in enumerate(index) if entry is Ellipsis]
    if len(dots) > 1:
        raise ArgumentError("getitem: at most one ... must be in an index, got more")
    at = dots[0] if dots else len(index)
    return [*index[:at], *full, *index[at + 1 :]]


def _plan_slice(plan: _Plan, entry: slice, axis: int, length: int) -> None:
    """A slice with a negative step gathers; others stay slices."""
    if entry.step is not None and entry.step < 0:
        positions = np.arange(length, dtype=np.int32)[entry]
        plan.bounds.append((None, None, None))
        plan.reversed.append((axis, positions))
    else:
        plan.bounds.append((entry.start, entry.stop, entry.step))


def _is_position(entry: Any) -> bool:
    return isinstance(entry, SupportsIndex) and not isinstance(entry, (bool, np.ndarray, Var))


def _position(entry: SupportsIndex, axis: int, length: int) -> int:
    place = entry.__index__()
    if not -length <= place < length:
        raise ArgumentError(
            f"getitem: the index of axis {axis} must be in [{-length}, {length}), got {place}"
        )
    return place % length


def _positions(entry: Any) -> Any:
    if isinstance(entry, Var):
        return entry
    positions = np.asarray(entry)
    if positions.dtype.kind not in "iu":
        raise ArgumentError(
            "getitem: an index must hold integers, slices, ..., None or one integer array, "
            f"got {entry!r}"
        )
    return positions.astype(np.int32)


def _rank(entry: Any) -> int:
    return entry.ndim if hasattr(entry, "ndim") else np.ndim(entry)


infix["[]"] = getitem
