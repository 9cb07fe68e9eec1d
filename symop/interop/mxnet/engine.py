"""``mx.engine``: how many operators run as one, which here is not for the script to say.

Eager calls are gathered and compiled together until a value is asked for, and graphs are compiled
as a whole. So the size is kept, and has no effect.
"""

import contextlib
from collections.abc import Iterator

__all__ = ["bulk", "set_bulk_size"]

_size = [15]


def set_bulk_size(size: int) -> int:
    """Keep ``size``, without effect; the one before."""
    before, _size[0] = _size[0], int(size)
    return before


@contextlib.contextmanager
def bulk(size: int) -> Iterator[None]:
    """Keep ``size`` for a while, without effect."""
    before = set_bulk_size(size)
    try:
        yield
    finally:
        set_bulk_size(before)
