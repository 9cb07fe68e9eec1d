"""Unstacking of arrays with one kernel for all parts on XLA's CPU backend, and its inverse.

Each slice at a fixed position is a separate kernel, which takes XLA's CPU backend some ten
milliseconds to compile. Slices at positions unknown at compile time share one kernel. The positions
are therefore results of a condition that always holds but that XLA cannot evaluate: whether a
number with its last bit set is nonzero.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Parts = tuple[jax.Array, ...]
FEWEST = 4
"""Fewer parts are taken as slices."""
_AT_ONCE = 64
"""Maximum number of arrays per stack operation, whose compile time grows quadratically."""


_jax: Any = jax  # JAX declares no types for its contexts
_transposing: Any = _jax.make_user_context(default_value=False)
"""Whether code will be transposed: part of the key of JAX's trace caches."""


def transposing() -> AbstractContextManager[None]:
    """Returns a context for code to be transposed: the transpose of slices is a concatenation."""
    context: AbstractContextManager[None] = _transposing(True)
    return context


def is_transposing() -> bool:
    """Whether code is traced that will be transposed."""
    return bool(_transposing.value)


def taken_apart(x: jax.Array, axis: int) -> Parts:
    """Unstacks ``x`` along ``axis``."""
    if is_transposing() or _on_mesh() or x.shape[axis] < FEWEST or x.size == 0:
        return tuple(jnp.unstack(x, axis=axis))
    return _apart(jnp.moveaxis(x, axis, 0))


def put_together(parts: Sequence[Any]) -> jax.Array:
    """Stacks arrays of one shape along a new first axis, outside compiled code."""
    groups = [parts[i : i + _AT_ONCE] for i in range(0, len(parts), _AT_ONCE)]
    arrays = [jnp.stack([jnp.asarray(one) for one in group]) for group in groups]
    while len(arrays) > 1:
        arrays = [
            jnp.concatenate(arrays[i : i + _AT_ONCE]) for i in range(0, len(arrays), _AT_ONCE)
        ]
    return arrays[0]


def _on_mesh() -> bool:
    """Whether an array may be split over devices, of which one alone holds the number to read."""
    return int(_jax.sharding.get_abstract_mesh().size) > 1


@jax.custom_jvp
def _apart(x: jax.Array) -> Parts:
    parts: Parts = lax.platform_dependent(x, cpu=_by_one_kernel, default=_unstacked)
    return parts


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
    """Returns True, in a form that XLA cannot evaluate at compile time."""
    # Of an array that is split over devices, a reshape would gather all of it.
    one = lax.slice(x, (0,) * x.ndim, (1,) * x.ndim).reshape(())
    if jnp.issubdtype(one.dtype, jnp.complexfloating):
        one = one.real
    if jnp.issubdtype(one.dtype, jnp.floating):
        one = lax.bitcast_convert_type(one, np.dtype(f"uint{8 * one.dtype.itemsize}"))
    elif one.dtype == np.bool_:
        one = one.astype(np.uint8)
    return (one | 1) != 0
