"""``mx.engine``: MXNet's bulk size of operators, which has no effect.

Eager calls are collected and compiled together until a value is needed, and graphs are compiled as
a whole.
"""

import contextlib
from collections.abc import Iterator

__all__ = ["bulk", "set_bulk_size"]

_size = [15]


def set_bulk_size(size: int) -> int:
    """Stores ``size``, without further effect; returns the previous size."""
    before, _size[0] = _size[0], int(size)
    return before


@contextlib.contextmanager
def bulk(size: int) -> Iterator[None]:
    """Stores ``size`` within a context, without further effect."""
    before = set_bulk_size(size)
    try:
        yield
    finally:
        set_bulk_size(before)
