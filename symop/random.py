"""The global seed, the random keys drawn from it in sequence, and the samplers.

``so.random.normal`` is the operator ``random_normal``, and likewise for other distributions.
"""

import threading
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from registry.errors import ArgumentError, FeedError
from registry.foreign_names import known_elsewhere
from registry.operator.operator import Operator
from registry.table import find, names
from registry.tracebacks import api_boundary

_PREFIX = "random_"


def __getattr__(name: str) -> Operator:
    """Returns the operator that samples from the distribution called ``name``."""
    operator = None if name.startswith("_") else find(_PREFIX + name)
    if operator is None:
        raise AttributeError(
            f"random: there is no distribution of this name, got {name!r}{known_elsewhere(name)}"
        )
    return operator


def __dir__() -> list[str]:
    """Returns the names of this module, including the distributions."""
    drawn = [one.removeprefix(_PREFIX) for one in names() if one.startswith(_PREFIX)]
    return sorted([*globals(), *drawn])


class _Source:
    """A root key and the number of keys drawn from it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # reentrant, as a signal handler may draw during a draw
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


@api_boundary
def seed(number: int) -> None:
    """Seeds the random numbers of this process with ``number``.

    Draw ``n`` after seeding uses the key ``fold_in(key(number), n)``, in eager calls and in graphs
    alike, so both give the same numbers.
    """
    with jax.ensure_compile_time_eval():
        _source.reset(jax.random.key(number))


def get_state() -> dict[str, np.ndarray]:
    """Returns the state of this process's random numbers, as arrays for ``set_state``."""
    root, drawn = _source.draw(0)
    return {"root": np.asarray(jax.random.key_data(root)), "drawn": np.asarray(drawn, np.int64)}


@api_boundary
def set_state(state: Mapping[str, Any]) -> None:
    """Restores a state that ``get_state`` returned; the numbers drawn after it are repeated.

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
    """Whether ``jax.jit`` or a similar transformation is tracing the current code."""
    return isinstance(jax.lax.neg(np.float32(0)), jax.core.Tracer)


def draw(count: int = 1, *, owner: str = "symbol") -> tuple[Any, int]:
    """Returns the root key and the number of the first of ``count`` draws by ``owner``.

    Raises:
        ArgumentError: a JAX transformation traces the draw, so every run would repeat it.
    """
    if is_staged():
        raise ArgumentError(f"{owner}: key= must be given inside a JAX transformation, got nothing")
    return _source.draw(count)


class Draw:
    """A call of ``draw`` that can be undone if its step is interrupted before it runs."""

    def __init__(self, count: int) -> None:
        """Creates a draw, which ``take`` makes."""
        self._count = count
        self._root: Any = None
        self._first = -1

    def take(self) -> tuple[Any, int]:
        """Makes the draw; returns the root key and the number of the first draw."""
        self._root, _ = draw(0)
        with _source.lock:
            self._root, self._first = _source.root, _source.drawn
            _source.drawn = self._first + self._count
        return self._root, self._first

    def give_back(self) -> None:
        """Undoes the draw, unless something else was drawn since."""
        with _source.lock:
            last = self._first >= 0 and _source.drawn == self._first + self._count
            if last and _source.root is self._root:
                _source.drawn = self._first


def next_key(owner: str) -> Any:
    """Returns the key of one draw by ``owner``."""
    root, number = draw(owner=owner)
    return jax.random.fold_in(root, number)


def as_key(key: Any) -> Any:
    """Returns ``key`` as a typed key; wraps old-style raw keys (uint32 arrays).

    Raises:
        FeedError: ``key`` is not a random key.
    """
    dtype = getattr(key, "dtype", None)
    if dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key):
        return key
    if dtype != np.uint32 or not key.shape:
        raise FeedError(f"symbol: key must be a JAX random key (jax.random.key(0)), got {key!r}")
    return jax.random.wrap_key_data(key)
