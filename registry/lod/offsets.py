"""Vectors of offsets of a LoDTensor: conversion, validation, and conversion of units."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from registry import var
from registry.errors import DTypeError, ShapeError, UnknownTypeError
from registry.types import is_integer

Lod = tuple[Any, ...]
"""A vector of offsets for each level, outermost first."""


def operator(name: str) -> Callable[..., Any]:
    """Returns the operator called ``name``."""
    result = var.Operators.find(name)
    assert result is not None, name
    return result


# Values ----------------------------------------------------------------------------------------


def plain(offsets: Any) -> Any:
    """Converts an eager array to a JAX array; returns other values unchanged."""
    asjax = getattr(offsets, "asjax", None)
    return offsets if asjax is None else asjax()


def as_array(value: Any) -> Any:
    """Converts a list to a NumPy array; returns other values unchanged."""
    return np.asarray(value) if isinstance(value, (list, tuple)) else value


def known(array: Any) -> np.ndarray | None:
    """Returns the array in NumPy, or None if it is traced or a symbol."""
    array = plain(array)
    if isinstance(array, (var.Var, jax.core.Tracer)) or not hasattr(array, "dtype"):
        return None
    return np.asarray(array)


def all_known(*arrays: Any) -> list[np.ndarray] | None:
    """Returns all arrays in NumPy, or None if one is traced or a symbol."""
    values = [one for one in map(known, arrays) if one is not None]
    return values if len(values) == len(arrays) else None


def require_known(what: str, **values: Any) -> None:
    """Requires values to be known.

    Raises:
        UnknownTypeError: a value is None.
    """
    for name, value in values.items():
        if value is None:
            raise UnknownTypeError(
                f"{what}: {name} must be known, got offsets or lengths that are not computed yet"
            )


def length_of(array: Any) -> int | None:
    """Returns the length of the first axis, or None if unknown."""
    try:
        length: int = array.shape[0]
    except UnknownTypeError:
        return None
    return length


# Storage ---------------------------------------------------------------------------------------


def kept(offsets: Any, level: int) -> Any:
    """Returns offsets in their stored form: int32, in NumPy if they are lists."""
    offsets = plain(offsets)
    if isinstance(offsets, var.Var):
        return offsets
    array = offsets if isinstance(offsets, jax.Array) else np.asarray(offsets)
    if array.size and not is_integer(array.dtype):
        raise DTypeError(
            f"LoDTensor: offsets of level {level} must be integers, got {array.dtype.name}"
        )
    return array.astype(np.int32)


def of_lengths(lengths: Any, level: int) -> Any:
    """Returns offsets of sequences with these lengths."""
    lengths = plain(lengths)
    if isinstance(lengths, (var.Var, jax.Array)):
        return operator("sequence_offsets")(lengths)
    lengths = np.asarray(lengths)
    if lengths.ndim != 1 or (lengths.size and lengths.min() < 0):
        raise ShapeError(
            f"from_lengths: lengths of level {level} must be a vector without negative numbers, "
            f"got {listed(lengths)}"
        )
    if lengths.size and not is_integer(lengths.dtype):
        raise DTypeError(
            f"from_lengths: lengths of level {level} must be integers, got {lengths.dtype.name}"
        )
    return summed(lengths)


def summed(lengths: Any) -> np.ndarray:
    """Returns the starts of sequences with these lengths, and the end of the last one."""
    return np.cumsum([0, *lengths]).astype(np.int32)


def counted(mask: Any) -> Any:
    """Returns the number of steps in each row of a mask; they must precede the padding."""
    seen = known(mask)
    if seen is None:
        return operator("sum")(mask, axis=1)
    seen = seen.astype(bool)
    if np.any(seen[:, 1:] & ~seen[:, :-1]):
        raise ShapeError("from_padded: mask must be true before it is false in each row")
    return seen.sum(axis=1)


def picked(outer: Any, inner: Any) -> Any:
    """Converts offsets of a level to the units of the next level."""
    if isinstance(inner, np.ndarray) and isinstance(outer, np.ndarray):
        return inner[outer]
    return operator("take")(inner, outer)


def differences(offsets: Any) -> Any:
    """Returns the lengths of the sequences that ``offsets`` delimit."""
    if isinstance(offsets, np.ndarray):
        return np.diff(offsets)
    return operator("sequence_lengths")(offsets)


def listed(numbers: Any) -> str:
    """Formats numbers for a message."""
    array = np.asarray(numbers)
    return one_line(np.array2string(array, separator=", ", threshold=12, edgeitems=3))


def one_line(text: str) -> str:
    """Formats the text of an array on one line, without the alignment of columns."""
    return " ".join(text.split()).replace("[ ", "[")


# Validation ------------------------------------------------------------------------------------


def check(data: Any, lod: Lod, padded: bool) -> None:
    """Validates that the offsets delimit sequences of ``data``, as far as values are known.

    Raises:
        ShapeError: they do not.
    """
    if not lod:
        raise ShapeError("LoDTensor: there must be a level of offsets, got none")
    _require_vectors(lod)
    below = [None if n is None else n - 1 for n in map(length_of, lod[1:])]
    for level, (offsets, count) in enumerate(zip(lod, [*below, _height(data)], strict=True)):
        seen = known(offsets)
        if seen is not None:
            _check_values(seen, level, count, padded)


def _height(data: Any) -> int | None:
    try:
        shape = tuple(data.shape)
    except UnknownTypeError:
        return None
    if not shape:
        raise ShapeError("LoDTensor: data must have an axis for the steps, got shape ()")
    return int(shape[0])


def _require_vectors(lod: Sequence[Any]) -> None:
    for level, offsets in enumerate(lod):
        if length_of_shape(offsets) not in (None, 1) or length_of(offsets) == 0:
            raise ShapeError(
                f"LoDTensor: offsets of level {level} must be a vector with one number more than "
                f"there are sequences, got shape {tuple(offsets.shape)}"
            )


def length_of_shape(array: Any) -> int | None:
    """Returns the number of axes, or None if unknown."""
    try:
        return len(array.shape)
    except UnknownTypeError:
        return None


def _check_values(offsets: np.ndarray, level: int, count: int | None, padded: bool) -> None:
    place = f"LoDTensor: offsets of level {level}"
    if offsets[0] != 0:
        raise ShapeError(f"{place} must start with 0, got {listed(offsets)}")
    if np.any(offsets[1:] < offsets[:-1]):
        raise ShapeError(f"{place} must never decrease, got {listed(offsets)}")
    if count is None or offsets[-1] == count or (padded and offsets[-1] < count):
        return
    most = "at most " if padded else ""
    hint = "" if offsets[-1] > count else "; padded=True allows padding behind them"
    raise ShapeError(
        f"{place} must end with {most}{count}, the number of what they count, got "
        f"{listed(offsets)}{hint}"
    )
