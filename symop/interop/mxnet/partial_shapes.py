"""Shapes that are known in part, and rules by which inputs and outputs of a call tell each other's.

A length 0 is unknown, and so is the rank of None: as MXNet has it.
"""

import math

from symop.interop.mxnet.errors import MXNetError

Partial = tuple[int, ...] | None
"""A shape as far as it is known."""
Shapes = list[Partial]
MOST = 2**36
"""An array has no more entries."""


def is_known(shape: Partial) -> bool:
    """Whether nothing about ``shape`` is unknown."""
    return shape is not None and 0 not in shape


def merged(one: Partial, other: Partial) -> Partial:
    """What two descriptions of one shape tell together.

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
    """Tell that the shape at ``at`` is ``shape``; nothing where a call has no such input."""
    if at < len(shapes):
        shapes[at] = merged(shapes[at], shape)


def same(given: Shapes, found: Shapes) -> None:
    """All inputs and outputs have one shape."""
    shape: Partial = None
    for one in (*given, *found):
        shape = merged(shape, one)
    given[:], found[:] = [shape] * len(given), [shape] * len(found)


def like_data(given: Shapes, found: Shapes) -> None:
    """The first input and the first output have one shape."""
    shape = merged(given[0], found[0])
    given[0] = found[0] = shape


def require_size(shape: tuple[int, ...]) -> None:
    """Refuse the shape of what no memory holds.

    Raises:
        MXNetError: an array of it has too many entries.
    """
    if math.prod(shape) > MOST:
        raise MXNetError(f"an array must have at most {MOST} entries, got shape {shape}")


def require_output(shape: tuple[int, ...]) -> None:
    """Refuse the shape of an output that is empty, since a length 0 would be unknown, or too large.

    Raises:
        MXNetError: it is.
    """
    if 0 in shape:
        raise MXNetError(f"an output must have a length of at least 1 along each axis, got {shape}")
    require_size(shape)


def product(shape: tuple[int, ...]) -> int:
    """The number of elements, 0 if a length is unknown."""
    return math.prod(shape)
