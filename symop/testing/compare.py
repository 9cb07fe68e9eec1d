"""Comparison of arrays, with a message that shows the first entry that differs."""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from registry.values import SelectedRows, TensorArray


def expect_close(
    got: Any,
    expected: Any,
    rtol: float,
    where: str,
    program: Callable[[], str] = str,
    scale: Sequence[Any] = (),
) -> None:
    """Checks that entries are equal up to ``rtol`` times the largest entry.

    Infinities and NaNs must be equal exactly.

    Args:
        got: an array.
        expected: the expected array.
        rtol: the relative tolerance.
        where: the start of the message.
        program: called for the end of the message.
        scale: further arrays of the same shape, included in the largest entry.

    Raises:
        AssertionError: shapes or entries differ.
    """
    mine, other = comparable(got), comparable(expected)
    if mine.shape != other.shape:
        raise AssertionError(
            f"{where}: the shape must be {other.shape}, got {mine.shape}{program()}"
        )
    sizes = np.abs(np.stack([other, *map(comparable, scale)]))
    largest = np.max(sizes, where=np.isfinite(sizes), initial=0.0)
    with np.errstate(invalid="ignore"):
        near = np.abs(mine - other) <= rtol * largest
    wrong = ~(near | (mine == other) | (np.isnan(mine) & np.isnan(other)))
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise AssertionError(
            f"{where}: entry {place} must be {other[place]!s}, got {mine[place]!s} "
            f"({int(wrong.sum())} of {wrong.size} entries differ){program()}"
        )


def eps(dtype: Any) -> float:
    """Returns the distance from 1 to the next number of a dtype; 0 if it has no fractions."""
    if not jnp.issubdtype(dtype, jnp.inexact):
        return 0.0
    return float(jnp.finfo(dtype).eps)  # type: ignore[no-untyped-call]


def tiny(dtype: Any) -> float:
    """Returns the smallest normal number of a floating dtype."""
    return float(jnp.finfo(dtype).smallest_normal)  # type: ignore[no-untyped-call]


def comparable(value: Any) -> Any:
    """Returns ``value`` as a dense array of the widest dtype."""
    array = np.asarray(dense(value))
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def dense(value: Any) -> Any:
    """Converts row-sparse values to arrays and tensor arrays to their elements."""
    if isinstance(value, TensorArray):
        return value.values
    return value.to_dense() if isinstance(value, SelectedRows) else value
