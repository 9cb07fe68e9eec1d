"""One leaf of a state: its type as text, the array that is stored for it, and the way back.

A leaf is an array of JAX or NumPy, an array of random keys, a number, or, where something is
restored, a ``jax.ShapeDtypeStruct``. A random key is stored as its data.
"""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from registry.errors import ArgumentError, DTypeError, FormatError
from symop.runtime.memory import copy_array

Types = Mapping[str, str | None]
"""The types of arrays, by name, as text; None for any."""

struct: Any = jax.ShapeDtypeStruct  # which has no types

_NUMBERS = (bool, int, float, complex)
_SHOWN = 5
"""The number of names of each kind in an error."""


def is_key(leaf: Any) -> bool:
    """Whether ``leaf`` is an array of random keys."""
    dtype = getattr(leaf, "dtype", None)
    return dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)


def is_number(leaf: Any) -> bool:
    """Whether ``leaf`` is a number of Python."""
    return isinstance(leaf, _NUMBERS) and not isinstance(leaf, np.generic)


def type_of(name: str, leaf: Any) -> str:
    """Returns the type of a leaf as text, such as ``float32[4,2]`` or ``key<fry>[]``.

    Raises:
        DTypeError: the leaf is neither an array nor a number.
    """
    if is_key(leaf):
        return _text(str(leaf.dtype), leaf.shape)
    return array_type_text(name, leaf)


def array_type_text(name: str, leaf: Any) -> str:
    """Returns the type of the array that is stored for a leaf, as text."""
    array = array_type(name, leaf)
    return _text(array.dtype.name, array.shape)


def _text(dtype: str, shape: tuple[int, ...]) -> str:
    return f"{dtype}[{','.join(map(str, shape))}]"


def array_type(name: str, leaf: Any) -> Any:
    """Returns shape and dtype of the array that is stored for a leaf.

    Raises:
        DTypeError: the leaf is neither an array nor a number.
    """
    if is_key(leaf):
        data = jax.eval_shape(jax.random.key_data, struct(leaf.shape, leaf.dtype))
        return struct(data.shape, data.dtype)
    if is_number(leaf):
        leaf = np.asarray(leaf)
    shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
    numeric = dtype is not None and any(jnp.issubdtype(dtype, one) for one in (np.bool_, np.number))
    if shape is None or not numeric:
        raise DTypeError(f"checkpoint: {name} must be an array or a number, got {leaf!r:.80}")
    return struct(shape, dtype)


def array_of(leaf: Any) -> Any:
    """Returns the array that is stored for a leaf; it may share the leaf's memory."""
    if is_key(leaf):
        return jax.random.key_data(leaf)
    return leaf if isinstance(leaf, jax.Array) else np.asarray(leaf)


def copy_of(leaf: Any) -> Any:
    """Returns the array that is stored for a leaf, whose content no later step can change.

    orbax copies arrays from other devices, but reads those on the CPU in place while it writes. XLA
    happens not to reuse memory that is read so, for a step that donates the array; JAX promises
    nothing.
    """
    array = array_of(leaf)
    if not isinstance(array, jax.Array) or _is_local(array):
        return np.array(array, array.dtype.newbyteorder("="), order="C")
    devices: Any = array.sharding.device_set
    if all(one.platform != "cpu" for one in devices):
        return array
    if array.is_fully_addressable:
        return copy_array(array)
    shards = [copy_array(one.data) for one in array.addressable_shards]
    return jax.make_array_from_single_device_arrays(array.shape, array.sharding, shards)


def _is_local(value: Any) -> bool:
    """Whether an array or a sharding is that of one of several processes, which have one each.

    Such an array has the same value in each of them, so that the first one writes it.
    """
    return jax.process_count() > 1 and bool(value.is_fully_addressable)


def sharding_of(leaf: Any) -> Any:
    """Returns the sharding that ``leaf`` asks for; None if JAX may choose, and on the host."""
    committed = getattr(leaf, "committed", True)
    return getattr(leaf, "sharding", None) if committed else None


def on_host(like: Any) -> bool:
    """Whether the value in the place of ``like`` is a number or an array of NumPy."""
    return isinstance(like, (np.ndarray, np.generic)) or is_number(like)


def global_sharding_of(like: Any) -> Any:
    """Returns the sharding with which a value is read; None if it is read on the host first."""
    sharding = None if like is None or on_host(like) else sharding_of(like)
    return None if sharding is None or _is_local(sharding) else sharding


def place(array: Any, like: Any) -> Any:
    """Converts a stored array to the kind of ``like``, on the devices that ``like`` asks for."""
    if is_number(like):
        return type(like)(array.item())
    if on_host(like):
        return array if isinstance(like, np.ndarray) else array[()]
    sharding = sharding_of(like)
    if isinstance(array, np.ndarray):
        array = jnp.asarray(array) if sharding is None else jax.device_put(array, sharding)
    return jax.random.wrap_key_data(array, impl=_implementation(like)) if is_key(like) else array


def _implementation(like: Any) -> Any:
    """Returns the implementation of random keys, also of those that are described only."""
    implementations = []

    def look(keys: Any) -> Any:
        implementations.append(jax.random.key_impl(keys))
        return keys

    jax.eval_shape(look, struct(like.shape, like.dtype))
    return implementations[0]


def require_divisible(name: str, like: Any) -> None:
    """Rejects a sharding that does not fit the shape.

    Raises:
        ArgumentError: an axis is not a multiple of the number of its parts.
    """
    sharding = None if on_host(like) else sharding_of(like)
    if sharding is None:
        return
    try:
        sharding.shard_shape(tuple(like.shape))
    except ValueError as error:
        raise ArgumentError(
            f"restore: the sharding of {name} must divide its shape, got "
            f"{type_of(name, like)} on {sharding}: {error}"
        ) from None


def require_same(where: str, wanted: Types, held: Types) -> None:
    """Rejects a checkpoint of another model.

    Args:
        where: the checkpoint.
        wanted: the types that are asked for.
        held: the types that the checkpoint holds.

    Raises:
        FormatError: names or types differ; the message shows the first of them.
    """
    strange, missing = sorted(set(held) - set(wanted)), sorted(set(wanted) - set(held))
    different = [
        f"{name}, where {asked} must be there, got {held[name]}"
        for name, asked in wanted.items()
        if asked is not None and held.get(name) not in (asked, None)
    ]
    if strange or missing or different:
        kinds = {"too much": strange, "too little": missing, "different": different}
        parts = "; ".join(f"{kind}: {_shown(names)}" for kind, names in kinds.items() if names)
        raise FormatError(f"{where}: it must hold what is asked for, got {parts}")


def _shown(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
