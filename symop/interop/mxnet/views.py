"""Views: arrays that share their entries with another array, like MXNet's slices.

A view holds its own value; writes to either array are copied to the other.
"""

import math
import weakref
from typing import Any

import symop as so

Index = tuple[Any, ...]


class Viewed:
    """An array that may be a view of another array, and may have views.

    Attributes:
        inner: symop's eager array that holds the value.
    """

    __slots__ = ("__weakref__", "_base", "_pieces", "inner")
    _base: "tuple[Viewed, Index | None] | None"
    _pieces: "weakref.WeakSet[Viewed] | None"

    def __init__(self, inner: so.NDArray) -> None:
        """Wraps ``inner``; users call ``mx.nd.array``."""
        self.inner = inner
        self._base = self._pieces = None

    def adopt(self, piece: "Viewed", index: Index | None) -> None:
        """Makes ``piece`` a view of the entries at ``index``, or of all in another shape."""
        piece._base = self, index
        if self._pieces is None:
            self._pieces = weakref.WeakSet()
        self._pieces.add(piece)

    def tell(self, teller: "Viewed | None" = None) -> None:
        """Copies the value of this array to all arrays that share it, except ``teller``."""
        if self._base is not None and self._base[0] is not teller:
            base, index = self._base
            base.receive(self, index)
            base.tell(self)
        for piece in self._pieces or ():
            if piece is not teller:
                assert piece._base is not None
                piece.inner.take_over(_like(self._at(piece._base[1]), piece.inner))
                piece.tell(self)

    @property
    def is_shared(self) -> bool:
        """Whether another array shares its entries."""
        return self._base is not None or bool(self._pieces)

    def receive(self, piece: "Viewed", index: Index | None) -> None:
        """Writes the value of a view back."""
        if index is None:
            self.inner.take_over(_like(piece.inner, self.inner))
        else:
            self.inner[index] = piece.inner

    def _at(self, index: Index | None) -> so.NDArray:
        return self.inner if index is None else self.inner[index]


def _like(value: so.NDArray, other: so.NDArray) -> so.NDArray:
    """``value`` in the shape of ``other``, as an unshared array."""
    result: so.NDArray = so.nd.reshape(value, tuple(other.shape))
    return result


def is_contiguous(index: Index, shape: tuple[int, ...]) -> bool:
    """Whether a slice is contiguous in memory, so that MXNet shares it.

    Args:
        index: integers, slices, None and Ellipsis.
        shape: the shape of the whole array.

    Example:
        >>> is_contiguous((1, slice(0, 2)), (2, 3)), is_contiguous((slice(None), 0), (2, 3))
        (True, False)
    """
    if not all(one is None or isinstance(one, (int, slice, type(...))) for one in index):
        return False
    taken = [one for one in index if one is not None]
    at = taken.index(...) if ... in taken else len(taken)
    rest = taken[at + 1 :]
    taken = [*taken[:at], *[slice(None)] * (len(shape) - at - len(rest)), *rest]
    spans = [
        range(1) if isinstance(one, int) else range(*one.indices(length))
        for one, length in zip(taken, shape, strict=True)
    ]
    if math.prod(map(len, spans)) <= 1:
        return True
    is_part = False
    for span, length in zip(reversed(spans), reversed(shape), strict=True):
        if len(span) > 1 and (is_part or span.step != 1):
            return False
        is_part = is_part or len(span) < length
    return True
