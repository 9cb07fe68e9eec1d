"""Values of arrays that are donated to compiled steps; values held elsewhere are copied."""

import sys
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from symop.eager.recording import flush
from symop.interop.mxnet.arrays import NDArray


class _Holder:
    """Holds a value, as an array does."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = object()


def _counts(values: Sequence[Any]) -> list[int]:
    """Returns the reference count of each of ``values``."""
    return list(map(sys.getrefcount, values))


_held = [_Holder()]
_OURS = _counts([one.value for one in _held])[0]
"""The reference count of a value held only by its array, while a list of values is inspected."""


def taken(arrays: Sequence[NDArray]) -> list[Any]:
    """The values of ``arrays``, to be donated; values that are held elsewhere are copied."""
    flush()  # recorded calls may read them
    values = [one.stored.value for one in arrays]
    counts = _counts(values)
    if max(counts, default=0) <= _OURS:
        return values
    pairs = zip(values, counts, strict=True)
    return [jnp.copy(one) if count > _OURS else one for one, count in pairs]
