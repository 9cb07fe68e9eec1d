"""Partially known shapes, and rules by which the inputs and outputs of a call determine each other.

As in MXNet, a length of 0 is unknown, and the shape None has an unknown rank.
"""

import math
from typing import Any

import numpy as np

from symop.interop.mxnet.errors import MXNetError

Partial = tuple[int, ...] | None
"""A partially known shape."""
Shapes = list[Partial]
MOST = 2**36
"""The maximal number of entries of an array."""
MOST_CONSTANT = 2**24
"""The maximal number of entries of a constant created for a graph."""


def is_known(shape: Partial) -> bool:
    """Whether ``shape`` is fully known."""
    return shape is not None and all(length > 0 for length in shape)


def merged(one: Partial, other: Partial) -> Partial:
    """Combines two partial descriptions of a shape.

    Raises:
        MXNetError: they contradict each other.

    Example:
        >>> merged((0, 3), (2, 0)), merged(None, (2,))
        ((2, 3), (2,))
    """
    if one is None or other is None:
        return other if one is None else one
    if len(one) != len(other) or any(a and b and a != b for a, b in zip(one, other, strict=True)):
        raise MXNetError(f"shapes must agree, got {one} and {other}")
    return tuple(a or b for a, b in zip(one, other, strict=True))


def enter(shapes: Shapes, at: int, shape: Partial) -> None:
    """Records the shape at ``at``; has no effect if the call has no such input."""
    if at < len(shapes):
        shapes[at] = merged(shapes[at], shape)


def same(given: Shapes, found: Shapes) -> None:
    """All inputs and outputs have the same shape."""
    shape: Partial = None
    for one in (*given, *found):
        shape = merged(shape, one)
    given[:], found[:] = [shape] * len(given), [shape] * len(found)


def like_data(given: Shapes, found: Shapes) -> None:
    """The first input and the first output have the same shape."""
    shape = merged(given[0], found[0])
    given[0] = found[0] = shape


def require_size(shape: tuple[int, ...]) -> None:
    """Rejects shapes that exceed any memory.

    Raises:
        MXNetError: an array of this shape has too many entries.
    """
    if math.prod(shape) > MOST:
        raise MXNetError(f"an array must have at most {MOST} entries, got shape {shape}")


def require_table(*lengths: int) -> None:
    """Rejects tables of these lengths that would be too large as constants of a graph.

    Raises:
        MXNetError: the table has too many entries.
    """
    if math.prod(max(one, 1) for one in lengths) > MOST_CONSTANT:
        raise MXNetError(
            f"a constant of a graph must have at most {MOST_CONSTANT} entries, got "
            f"{' by '.join(map(str, lengths))}"
        )


def numbered(count: int, dtype: Any = None) -> np.ndarray:
    """The integers from 0 to ``count - 1``, as a constant of a graph.

    Raises:
        MXNetError: there are too many.
    """
    require_table(count)
    return np.arange(count, dtype=dtype)


def require_output(shape: tuple[int, ...]) -> None:
    """Rejects empty shapes of outputs, whose length 0 would mean unknown, and huge ones.

    Raises:
        MXNetError: the shape is empty or too large.
    """
    if 0 in shape:
        raise MXNetError(f"an output must have a length of at least 1 along each axis, got {shape}")
    require_size(shape)


def product(shape: tuple[int, ...]) -> int:
    """The number of elements, 0 if a length is unknown."""
    return math.prod(shape)
