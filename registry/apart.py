"""Taking an array apart so that XLA's CPU backend compiles one kernel for all parts, and back.

A slice at a fixed place is a kernel of its own, which takes XLA's CPU backend some ten milliseconds
to compile. Slices at places that it does not know are one kernel. So the places are results of a
condition that always holds, which XLA cannot know: some bit of a number with its last bit set.
"""

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Parts = tuple[jax.Array, ...]
FEWEST = 4
"""Fewer parts are slices."""
_AT_ONCE = 64
"""So many arrays are put together by one operation: the time to compile one grows as the square."""


class _Local(threading.local):
    transposed = False


_local = _Local()


@contextlib.contextmanager
def transposing() -> Iterator[None]:
    """JAX transposes what is traced inside: slices, whose transpose puts them side by side."""
    before, _local.transposed = _local.transposed, True
    try:
        yield
    finally:
        _local.transposed = before


def taken_apart(x: jax.Array, axis: int) -> Parts:
    """The arrays that stand along ``axis``."""
    if _local.transposed or x.shape[axis] < FEWEST or x.size == 0:
        return tuple(jnp.unstack(x, axis=axis))
    return _apart(jnp.moveaxis(x, axis, 0))


def put_together(parts: Sequence[Any]) -> jax.Array:
    """Arrays of one shape along a new first axis, outside of what is compiled."""
    groups = [parts[i : i + _AT_ONCE] for i in range(0, len(parts), _AT_ONCE)]
    found = [jnp.stack([jnp.asarray(one) for one in group]) for group in groups]
    while len(found) > 1:
        found = [jnp.concatenate(found[i : i + _AT_ONCE]) for i in range(0, len(found), _AT_ONCE)]
    return found[0]


@jax.custom_jvp
def _apart(x: jax.Array) -> Parts:
    found: Parts = lax.platform_dependent(x, cpu=_by_one_kernel, default=_unstacked)
    return found


@_apart.defjvp
def _apart_jvp(primals: Any, tangents: Any) -> Any:
    return _apart(*primals), _unstacked(*tangents)


def _unstacked(x: jax.Array) -> Parts:
    return tuple(jnp.unstack(x))


def _by_one_kernel(x: jax.Array) -> Parts:
    count = x.shape[0]

    def places() -> Parts:
        return tuple(jnp.asarray(i, np.int32) for i in range(count))

    def first() -> Parts:
        return (jnp.zeros((), np.int32),) * count

    others = (jnp.zeros((), np.int32),) * (x.ndim - 1)
    shape = (1, *x.shape[1:])
    return tuple(
        lax.dynamic_slice(x, (place, *others), shape).reshape(x.shape[1:])
        for place in lax.cond(_holds(x), places, first)
    )


def _holds(x: jax.Array) -> jax.Array:
    """True, which XLA does not know."""
    one = x.reshape(-1)[:1].reshape(())
    if jnp.issubdtype(one.dtype, jnp.complexfloating):
        one = one.real
    if jnp.issubdtype(one.dtype, jnp.floating):
        one = lax.bitcast_convert_type(one, np.dtype(f"uint{8 * one.dtype.itemsize}"))
    elif one.dtype == np.bool_:
        one = one.astype(np.uint8)
    return (one | 1) != 0
