"""The seed, and the random keys that calls draw from it one after another."""

import threading
from typing import Any

import jax
import jax.numpy as jnp


class _Source:
    """A root key and how many keys were drawn from it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.root: Any = None
        self.drawn = 0

    def draw(self, count: int) -> tuple[Any, int]:
        with self.lock:
            if self.root is None:
                self.root = jax.random.key(0)
            first, self.drawn = self.drawn, self.drawn + count
            return self.root, first

    def reset(self, root: Any) -> None:
        with self.lock:
            self.root, self.drawn = root, 0


_source = _Source()


def seed(number: int) -> None:
    """Start the random numbers of this process anew from ``number``.

    Draw ``n`` after a seed has the key ``fold_in(key(number), n)``, in eager calls and in graphs
    alike, so both give the same numbers.
    """
    with jax.ensure_compile_time_eval():
        _source.reset(jax.random.key(number))


def draw(count: int = 1) -> tuple[Any, int]:
    """The root key and the number of the first of ``count`` draws."""
    return _source.draw(count)


def next_key() -> Any:
    """The key of one draw."""
    root, number = draw()
    return jax.random.fold_in(root, number)


def as_key(key: Any) -> Any:
    """``key`` as a typed key: old-style raw keys (uint32 arrays) are wrapped."""
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return key
    return jax.random.wrap_key_data(key)
