"""Memory of arrays: which arrays share it, and whether it is there to be given away."""

from typing import Any, TypeGuard

import jax


def memory_of(array: jax.Array) -> Any:
    """What tells the memory of an array from that of others: two arrays may share it."""
    if array.size == 0:
        return id(array)  # nothing is stored, so nothing is shared
    try:
        return tuple(one.data.unsafe_buffer_pointer() for one in array.addressable_shards)
    except (RuntimeError, ValueError, AttributeError, NotImplementedError):
        # An array of random keys has no buffer of its own to point to, and some backends tell no
        # addresses: such an array is taken for one that shares its memory with none.
        return id(array)


def is_alive(array: Any) -> TypeGuard[jax.Array]:
    """Whether it is an array with memory of its own, not deleted."""
    concrete = isinstance(array, jax.Array) and not isinstance(array, jax.core.Tracer)
    return concrete and not array.is_deleted()
