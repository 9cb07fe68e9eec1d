"""The seed, the random keys that calls draw from it one after another, and the samplers.

``so.random.normal`` is the operator ``random_normal``, and so on.
"""

import threading
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from registry.errors import ArgumentError, FeedError
from registry.foreign_names import known_elsewhere
from registry.operator import Operator
from registry.table import find, names

_PREFIX = "random_"


def __getattr__(name: str) -> Operator:
    """The operator that draws from the distribution called ``name``."""
    operator = None if name.startswith("_") else find(_PREFIX + name)
    if operator is None:
        raise AttributeError(
            f"random: there is no distribution of this name, got {name!r}{known_elsewhere(name)}"
        )
    return operator


def __dir__() -> list[str]:
    """Names of this module, distributions included."""
    drawn = [one.removeprefix(_PREFIX) for one in names() if one.startswith(_PREFIX)]
    return sorted([*globals(), *drawn])


class _Source:
    """A root key and how many keys were drawn from it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.root: Any = None
        self.drawn = 0

    def draw(self, count: int) -> tuple[Any, int]:
        with self.lock:
            if self.root is None:
                with jax.ensure_compile_time_eval():  # the first draw may be inside a trace
                    self.root = jax.random.key(0)
            first, self.drawn = self.drawn, self.drawn + count
            return self.root, first

    def reset(self, root: Any, drawn: int = 0) -> None:
        with self.lock:
            self.root, self.drawn = root, drawn


_source = _Source()


def seed(number: int) -> None:
    """Start the random numbers of this process anew from ``number``.

    Draw ``n`` after a seed has the key ``fold_in(key(number), n)``, in eager calls and in graphs
    alike, so both give the same numbers.
    """
    with jax.ensure_compile_time_eval():
        _source.reset(jax.random.key(number))


def get_state() -> dict[str, np.ndarray]:
    """Where the random numbers of this process stand, as arrays; ``set_state`` goes back there."""
    root, drawn = _source.draw(0)
    return {"root": np.asarray(jax.random.key_data(root)), "drawn": np.asarray(drawn, np.int64)}


def set_state(state: Mapping[str, Any]) -> None:
    """Go on with the random numbers that followed ``get_state``.

    Example:
        >>> import symop as so
        >>> state = so.random.get_state()
        >>> first = so.random.normal(shape=(2,))
        >>> so.random.set_state(state)
        >>> bool((so.random.normal(shape=(2,)) == first).all())
        True
    """
    with jax.ensure_compile_time_eval():
        root = jax.random.wrap_key_data(jnp.asarray(state["root"], np.uint32))
        _source.reset(root, int(state["drawn"]))


def is_staged() -> bool:
    """Whether what runs now is recorded by ``jax.jit`` or its kin, to be run many times later."""
    return isinstance(jax.lax.neg(np.float32(0)), jax.core.Tracer)


def draw(count: int = 1, *, owner: str = "symbol") -> tuple[Any, int]:
    """The root key and the number of the first of ``count`` draws, which ``owner`` makes.

    Raises:
        ArgumentError: a JAX transformation records the draw, so every run would repeat it.
    """
    if is_staged():
        raise ArgumentError(f"{owner}: key= must be given inside a JAX transformation, got nothing")
    return _source.draw(count)


def next_key(owner: str) -> Any:
    """The key of one draw, which ``owner`` makes."""
    root, number = draw(owner=owner)
    return jax.random.fold_in(root, number)


def as_key(key: Any) -> Any:
    """``key`` as a typed key: old-style raw keys (uint32 arrays) are wrapped.

    Raises:
        FeedError: it is no random key.
    """
    dtype = getattr(key, "dtype", None)
    if dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key):
        return key
    if dtype != np.uint32 or not key.shape:
        raise FeedError(f"symbol: key must be a JAX random key (jax.random.key(0)), got {key!r}")
    return jax.random.wrap_key_data(key)
