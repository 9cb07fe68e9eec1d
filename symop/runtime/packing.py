"""Trees of arrays in the form in which a compiled step takes and returns them."""

import contextlib
import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from symop.runtime.memory import copy_array, is_alive, memory_of

_WORD = np.dtype(np.uint32)
_DTYPES = ("int32", "uint32", "float32")
"""The dtypes of arrays that join others."""
_MOST = 8
"""The most entries of such an array."""
_MOST_BYTES = 1 << 10
"""The most bytes of a tree whose leaves are joined.

The steps of larger trees gained nothing measurable, and joint leaves have a price: reading a state
separates them, and XLA's CPU backend may order the operations of a step so that it holds one more
activation at once.
"""


class Packed(functools.partial[Any]):
    """A pytree that holds the leaves of another tree, which calling it rebuilds.

    JAX builds this class by one C call, whereas the class of another node (a row-sparse value, an
    optax state) may run Python code.

    Attributes:
        func: Builds the tree.
        args: The leaves, as a single tuple.
    """

    __slots__ = ()

    def is_of(self, structure: Any) -> bool:
        """Whether the tree that it builds has this structure."""
        return isinstance(self.func, _Builder) and bool(self.func.structure == structure)

    @property
    def joined(self) -> "tuple[_Joined, ...]":
        """The leaves that are one array; see ``pack``."""
        return self.func.joined if isinstance(self.func, _Builder) else ()

    @property
    def is_joined(self) -> bool:
        """Whether some leaves are one array."""
        return bool(self.joined)


class _Joined(NamedTuple):
    """A leaf that is part of a joint array.

    Attributes:
        position: its position among the leaves.
        dtype: its dtype, of 32 bits.
        shape: its shape.
    """

    position: int
    dtype: str
    shape: tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class _Builder:
    """Builds a tree from its leaves.

    Attributes:
        structure: The structure of the tree.
        keys: The positions of leaves that are random keys, with the implementation of each. JAX
            runs Python code if a compiled function returns a key, so it returns the key's data.
        joined: The leaves that are joined in one array, which comes last.
    """

    structure: Any
    keys: tuple[tuple[int, Any], ...]
    joined: tuple[_Joined, ...] = ()

    def __call__(self, leaves: Sequence[Any]) -> Any:
        # What is known stays known in the middle of a trace, which must not leak into a state.
        with _evaluating(leaves):
            return self.structure.unflatten(self._separated(leaves))

    def _separated(self, leaves: Sequence[Any]) -> list[Any]:
        """Returns the leaves of the structure."""
        values = list(leaves)
        if self.joined:
            for one, value in zip(self.joined, _separate(values.pop(), self.joined), strict=True):
                values.insert(one.position, value)  # positions ascend
        for i, implementation in self.keys:
            values[i] = jax.random.wrap_key_data(values[i], impl=implementation)
        return values


def pack(tree: Any, *, joins: bool | Packed = False) -> Packed:
    """Returns ``tree`` in the form in which a step takes and returns other pytrees than lists.

    Args:
        tree: A pytree of arrays.
        joins: Whether to join arrays of 32 bits with at most 8 entries, such as counters and the
            data of keys, in one array, if the whole tree is small. Each argument and each result
            of a compiled function costs about a microsecond, whatever its size. JAX does not
            differentiate joined arrays. An earlier result joins the same leaves as there.
    """
    leaves, structure = jax.tree_util.tree_flatten(tree)
    with _evaluating(leaves):
        return _packed(leaves, structure, joins=joins)


def is_traced(tree: Any) -> bool:
    """Whether a leaf of a tree is a tracer."""
    return any(map(_is_tracer, jax.tree.leaves(tree)))


def _evaluating(leaves: Sequence[Any]) -> Any:
    """Returns a context in which operations on leaves that are known are evaluated at once."""
    traced = any(map(_is_tracer, leaves))
    return contextlib.nullcontext() if traced else jax.ensure_compile_time_eval()


def _packed(leaves: list[Any], structure: Any, *, joins: bool | Packed) -> Packed:
    leaves = _distinct(leaves)
    keys = [(i, jax.random.key_impl(one)) for i, one in enumerate(leaves) if _is_key(one)]
    for i, _ in keys:
        leaves[i] = jax.random.key_data(leaves[i])
    if isinstance(joins, Packed):
        joined = _joined_before(joins, leaves)
    else:
        joined = _to_join(leaves) if joins else ()
    if joined:
        parts = [leaves[one.position] for one in joined]
        positions = {one.position for one in joined}
        leaves = [one for i, one in enumerate(leaves) if i not in positions] + [_join(parts)]
    return Packed(_builder(structure, tuple(keys), joined), tuple(leaves))


def _distinct(leaves: list[Any]) -> list[Any]:
    """Copies each leaf that shares memory with an earlier one: memory is donated only once."""
    seen: set[Any] = set()
    result = []
    for one in leaves:
        memory = memory_of(one) if is_alive(one) else None
        result.append(copy_array(one) if memory in seen else one)
        if memory is not None:
            seen.add(memory)
    return result


def _is_key(leaf: Any) -> bool:
    dtype = getattr(leaf, "dtype", None)
    return dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)


def _to_join(leaves: Sequence[Any]) -> tuple[_Joined, ...]:
    """Returns the leaves to join: at least two, on one device or traced."""
    arrays = [one for one in leaves if isinstance(one, (jax.Array, np.ndarray))]
    if sum(one.size * one.dtype.itemsize for one in arrays) > _MOST_BYTES:
        return ()
    small = [(i, one) for i, one in enumerate(leaves) if _is_small(one)]
    places = {one.sharding for _, one in small if not _is_tracer(one)}
    on_one_device = len(places) <= 1 and all(len(one.device_set) == 1 for one in places)
    if len(small) < 2 or not on_one_device:
        return ()
    return tuple(_Joined(i, one.dtype.name, one.shape) for i, one in small)


def _joined_before(state: Packed, leaves: Sequence[Any]) -> tuple[_Joined, ...]:
    """Returns the leaves that an earlier state joins, if they still have their types."""
    joined = state.joined
    found = [(leaves[one.position].dtype.name, leaves[one.position].shape) for one in joined]
    return joined if found == [(one.dtype, one.shape) for one in joined] else ()


def _is_small(leaf: Any) -> bool:
    return (
        isinstance(leaf, jax.Array)
        and leaf.dtype.name in _DTYPES
        and leaf.size <= _MOST
        and not leaf.weak_type
        and (_is_tracer(leaf) or is_alive(leaf))
    )


def _is_tracer(leaf: Any) -> bool:
    return isinstance(leaf, jax.core.Tracer)


def _join(parts: Sequence[Any]) -> Any:
    """Returns one array of the bits of all parts."""
    words: list[Any]
    if any(map(_is_tracer, parts)):
        words = [jax.lax.bitcast_convert_type(one, _WORD).ravel() for one in parts]
        return jnp.concatenate(words)
    words = [np.asarray(one).view(_WORD).ravel() for one in parts]
    like = next((one for one in parts if one.committed), parts[0])
    return _put_beside(like, np.concatenate(words))


def _separate(joint: Any, joined: tuple[_Joined, ...]) -> list[Any]:
    """Returns the parts of a joint array."""
    if _is_tracer(joint):
        return _parts(joint, joined)
    if len(joint.devices()) > 1 or next(iter(joint.devices())).platform != "cpu":
        separate: list[Any] = _compiled_parts(joint, joined)  # without waiting for the device
        return separate
    words = np.asarray(joint)
    parts, start = [], 0
    for one in joined:
        end = start + math.prod(one.shape)
        part = words[start:end].view(one.dtype).reshape(one.shape)
        parts.append(_put_beside(joint, part.copy()))
        start = end
    return parts


def _put_beside(like: jax.Array, array: np.ndarray) -> jax.Array:
    """Returns ``array`` on the only device of ``like``, and committed to it if ``like`` is."""
    placed: jax.Array
    if like.committed:
        placed = jax.device_put(array, like.sharding)
    else:
        with jax.default_device(next(iter(like.devices()))):
            placed = jax.device_put(array)
    return placed


def _parts(joint: Any, joined: tuple[_Joined, ...]) -> list[Any]:
    """Returns the parts of a traced joint array."""
    parts, start = [], 0
    for one in joined:
        end = start + math.prod(one.shape)
        words = joint[start:end].reshape(one.shape)
        parts.append(jax.lax.bitcast_convert_type(words, np.dtype(one.dtype)))
        start = end
    return parts


_compiled_parts: Any = jax.jit(_parts, static_argnums=1)


@functools.lru_cache(maxsize=1024)
def _builder(
    structure: Any, keys: tuple[tuple[int, Any], ...], joined: tuple[_Joined, ...]
) -> _Builder:
    """Returns the cached builder of a structure, since JAX compares it in each call."""
    return _Builder(structure, keys, joined)


jax.tree_util.register_pytree_node(Packed, lambda one: (one.args[0], one.func), Packed)


def unpack(value: Any) -> Any:
    """Returns the tree of a ``Packed`` value, and any other value unchanged."""
    return value() if value.__class__ is Packed else value
