"""Memory of arrays: which arrays share it, and whether it can be donated."""

from typing import Any, TypeGuard

import jax


def memory_of(array: jax.Array) -> Any:
    """Returns an identifier of an array's memory, equal for arrays that share it."""
    if array.size == 0:
        return id(array)  # nothing is stored, so nothing is shared
    try:
        return tuple(one.data.unsafe_buffer_pointer() for one in array.addressable_shards)
    except (RuntimeError, ValueError, AttributeError, NotImplementedError):
        # An array of random keys has no buffer pointer of its own, and some backends do not report
        # addresses. Such an array is assumed not to share its memory.
        return id(array)


def copy_array(array: Any) -> Any:
    """Returns a copy in its own memory; unlike ``jnp.copy``, it compiles nothing for the shape."""
    return jax.device_put(array, may_alias=False)


def is_alive(array: Any) -> TypeGuard[jax.Array]:
    """Whether ``array`` is a concrete array whose memory has not been deleted."""
    concrete = isinstance(array, jax.Array) and not isinstance(array, jax.core.Tracer)
    return concrete and not array.is_deleted()
