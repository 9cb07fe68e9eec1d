"""Caches of earlier calls, bounded, with eviction of the least recently used entries.

A memo keeps small results by their arguments and is bounded by a number of entries. The program
store bounds the memory, by estimate, of the programs that JAX has compiled for calls that no user
object owns (eager calls and their gradients). Programs that a program, an executor or a trainer has
compiled live as long as that object does.
Example:
    >>> from registry import caches
    >>> before = caches.limits()
    >>> caches.set_limits(programs=512 << 20).programs
    536870912
    >>> caches.set_limits(*before) == before
    True
"""

import contextlib
import functools
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, NamedTuple, ParamSpec, Protocol, TypeVar

import jax
from jax.experimental.compilation_cache.compilation_cache import reset_cache

from registry.errors import ArgumentError

__all__ = [
    "Bounded", "Info", "Jitted", "Limits", "Memo", "clear", "hold", "info", "limits", "memoized",
    "set_folder", "set_limits", "store", "weight_of",
]  # fmt: skip

P = ParamSpec("P")
R = TypeVar("R")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
R_co = TypeVar("R_co", covariant=True)

PROGRAMS = 1 << 30
"""The default bound of the program store, in bytes."""
ENTRIES = 8192
"""The default bound of each memo without a bound of its own."""
STEPS = 100_000
"""The default bound of the trace cache of eager code, in steps."""
_PROGRAM = 3 << 19
"""The size of a compiled program of one operator on the CPU, in bytes, as measured."""
_OPERATOR = 1 << 15
"""The size that each further operator adds."""
OFTEN = 32
"""The number of compilations between two checks of the store."""
_ROOM = 0.75
"""The fraction of the bound that is in use after an eviction."""


class Limits(NamedTuple):
    """The bounds of all caches.

    Attributes:
        programs: bytes of compiled programs, by estimate.
        entries: the maximum number of entries of each memo; a memo may have a smaller bound.
        steps: the maximum number of steps in the trace cache of eager code; a program counts as
            100.
    """

    programs: int
    entries: int
    steps: int


class Info(NamedTuple):
    """The contents of the caches.

    Attributes:
        programs: number of compiled programs.
        bytes: their size, by estimate.
        entries: number of entries of memos.
    """

    programs: int
    bytes: int
    entries: int


# Programs ---------------------------------------------------------------------------------------


class Owner(Protocol):
    """An object that has compiled programs and can recompile them.

    Attributes:
        used: the time of the store when the object was last used.
    """

    used: int

    def count(self) -> int:
        """Returns the number of programs it has compiled."""

    def weight(self) -> int:
        """Returns their size in bytes, by estimate."""

    def forget(self) -> None:
        """Drops them; they are recompiled when needed."""


class Programs:
    """The program store: bounds the compiled programs of its owners.

    Attributes:
        limits: the bounds of all caches.
        now: the store's clock, which advances with each compilation. A use of a program only
            records this number, which is the whole cost of the store per call.
    """

    def __init__(self) -> None:
        """Creates an empty store."""
        self.limits = Limits(PROGRAMS, ENTRIES, STEPS)
        self.now = self._looked = 0
        self._owners: weakref.WeakSet[Any] = weakref.WeakSet()
        self._lock = threading.RLock()  # a signal handler may interrupt a change

    def add(self, owner: Owner) -> None:
        """Includes the programs of ``owner`` in the bound."""
        with self._lock:
            self._owners.add(owner)

    def owners(self) -> list[Owner]:
        """Returns all owners that are alive."""
        with self._lock:
            return list(self._owners)

    def compiled(self) -> None:
        """Records a compilation, by symop or by other code."""
        self.now += 1
        if self.now - self._looked >= OFTEN:
            self.look_through()

    def look_through(self) -> None:
        """Drops the least recently used programs if the total size exceeds the bound."""
        self._looked = self.now
        owners = sorted(self.owners(), key=lambda one: one.used)
        weights = [one.weight() for one in owners]
        total = sum(weights)
        if total <= self.limits.programs:
            return
        for owner, weight in zip(owners, weights, strict=True):
            if total <= _ROOM * self.limits.programs:
                return
            total -= weight
            owner.forget()


store = Programs()


def weight_of(operators: int) -> int:
    """Returns the size of a compiled program of ``operators`` operators in bytes, by estimate."""
    return _PROGRAM + _OPERATOR * (operators - 1)


class Jitted:
    """``jax.jit`` of a function, whose compiled programs the store may drop.

    Attributes:
        used: the time of the store at the last call.
        call: the result of ``jax.jit``; None before the first call and after an eviction.
        operators: the number of operators in the function.
    """

    __slots__ = ("__weakref__", "_function", "_options", "call", "operators", "used")

    def __init__(self, function: Callable[..., Any], operators: int = 1, **options: Any) -> None:
        """Wraps ``jax.jit(function, **options)``."""
        self._function, self._options, self.operators = function, options, operators
        self.call: Any = None
        self.used = 0

    def __call__(self, *values: Any) -> Any:
        """Calls the function."""
        self.used = store.now
        return (self.call or self.create())(*values)

    def create(self) -> Any:
        """Recreates ``call``."""
        self.call = call = jax.jit(self._function, **self._options)
        store.add(self)
        return call

    def count(self) -> int:
        """Returns the number of compiled programs: one for each signature it was called with."""
        call = self.call
        return 0 if call is None else call._cache_size()

    def weight(self) -> int:
        """Returns their size in bytes, by estimate."""
        return self.count() * weight_of(self.operators)

    def forget(self) -> None:
        """Drops the compiled programs, which JAX keeps as long as the function lives."""
        call, self.call = self.call, None
        if call is not None:
            call.clear_cache()


# Memos ------------------------------------------------------------------------------------------


class Bounded(Protocol):
    """A bounded cache of small values."""

    def bound(self, limits: Limits) -> None:
        """Applies ``limits`` from now on."""

    def clear(self) -> None:
        """Drops all entries."""

    def __len__(self) -> int: ...


_bounded: "weakref.WeakSet[Any]" = weakref.WeakSet()


def hold(memo: Bounded) -> None:
    """Makes ``set_limits`` bound ``memo``, and ``clear`` clear it."""
    _bounded.add(memo)


class Memo(Generic[K, V]):
    """A dictionary of at most ``size`` entries that evicts the least recently used one."""

    def __init__(self, size: int = ENTRIES) -> None:
        """Creates an empty memo."""
        self._own = self._size = size
        self._entries: OrderedDict[K, V] = OrderedDict()
        self.bound(store.limits)
        hold(self)

    def get(self, key: K) -> V | None:
        """Returns the entry of ``key``, or None."""
        entry = self._entries.get(key)
        if entry is not None:
            try:
                self._entries.move_to_end(key)
            except KeyError:  # another thread dropped it meanwhile
                return entry
        return entry

    def put(self, key: K, value: V) -> V:
        """Stores ``value`` for ``key`` and returns it, or the one that another thread stored."""
        entry = self._entries.setdefault(key, value)
        self._shrink()
        return entry

    def bound(self, limits: Limits) -> None:
        """Limits the entries to ``limits.entries`` and to the memo's own size."""
        self._size = min(self._own, limits.entries)
        self._shrink()

    def clear(self) -> None:
        """Drops all entries."""
        self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)

    def _shrink(self) -> None:
        while len(self._entries) > self._size:
            with contextlib.suppress(KeyError):  # another thread was faster
                self._entries.popitem(last=False)


class _Memoized(Generic[P, R]):
    """The cached results of a function."""

    def __init__(self, function: Callable[..., R], size: int) -> None:
        self._function, self._own = function, size
        self.call: Any = None
        self.bound(store.limits)
        hold(self)

    def bound(self, limits: Limits) -> None:
        """Limits the results to ``limits.entries`` and to the memo's own size."""
        size = min(self._own, limits.entries)
        if self.call is None or self.call.cache_parameters()["maxsize"] != size:
            self.call = functools.lru_cache(maxsize=size)(self._function)

    def clear(self) -> None:
        """Drops all results."""
        self.call.cache_clear()

    def info(self) -> Any:
        """Returns the statistics of ``functools.lru_cache``."""
        return self.call.cache_info()

    def __len__(self) -> int:
        count: int = self.call.cache_info().currsize
        return count


class _Keyed:
    """Arguments of a call that a cache compares by a key."""

    __slots__ = ("arguments", "key")

    def __init__(self, arguments: tuple[Any, ...], key: Hashable) -> None:
        self.arguments, self.key = arguments, key

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Keyed) and self.key == other.key


class Remembered(Protocol[P, R_co]):
    """A function whose results are cached, with the methods that ``functools.lru_cache`` has."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Returns the result, computed or cached."""

    def cache_clear(self) -> None:
        """Drops all results."""

    def cache_info(self) -> Any:
        """Returns hits, misses and sizes."""


def memoized(
    size: int = ENTRIES, key: Callable[[tuple[Any, ...]], Hashable] | None = None
) -> Callable[[Callable[P, R]], Remembered[P, R]]:
    """Decorates a function so that the ``size`` most recently used results are cached.

    Results are found by the arguments, which are positional, or by ``key`` of them.
    """

    def decorate(function: Callable[P, R]) -> Remembered[P, R]:
        memo: _Memoized[Any, R]
        if key is None:
            memo = _Memoized(function, size)
        else:
            called: Any = function
            memo = _Memoized(lambda keyed: called(*keyed.arguments), size)

        @functools.wraps(function)
        def remembered(*args: P.args, **kwargs: P.kwargs) -> R:
            if key is None:
                result: R = memo.call(*args, **kwargs)
            else:
                result = memo.call(_Keyed(args, key(args)))
            return result

        vars(remembered).update(memo=memo, cache_clear=memo.clear, cache_info=memo.info)
        decorated: Any = remembered
        return decorated  # type: ignore[no-any-return]

    return decorate


# All caches -------------------------------------------------------------------------------------


def limits() -> Limits:
    """Returns the bounds in force."""
    return store.limits


def set_limits(
    programs: int | None = None, entries: int | None = None, steps: int | None = None
) -> Limits:
    """Sets new bounds of the caches.

    Args:
        programs: bytes of compiled programs, by estimate; unchanged if None.
        entries: the maximum number of entries of each memo; unchanged if None.
        steps: the maximum number of steps in the trace cache of eager code; unchanged if None.

    Returns:
        The bounds now in force.

    Raises:
        ArgumentError: a bound is negative.
    """
    bounds = {"programs": programs, "entries": entries, "steps": steps}
    asked = store.limits._replace(**{k: one for k, one in bounds.items() if one is not None})
    if min(asked) < 0:
        raise ArgumentError(f"caches: a bound must not be negative, got {asked}")
    store.limits = asked
    for memo in list(_bounded):
        memo.bound(asked)
    store.look_through()
    return asked


def set_folder(path: str | os.PathLike[str] | None) -> None:
    """Keeps compiled programs in a folder, where later processes find them; None ends that.

    It is JAX's persistent compilation cache, of programs of every size and compile time, those of
    JAX functions included. A program is found if its code, the versions of JAX and XLA, XLA's flags
    and the devices are the same; programs that call Python on the host are not kept. Of several
    processes the first one writes, and all of them read, so that the folder must be on a file
    system that they share. JAX runs what it finds there: nobody else may be able to write to it.

    Args:
        path: the folder, which is created if it does not exist.

    Raises:
        OSError: the folder cannot be created.
    """
    if path is not None:
        path = os.path.abspath(path)
        os.makedirs(path, exist_ok=True)
    _configure("jax_compilation_cache_dir", path)
    _configure("jax_persistent_cache_min_compile_time_secs", 0.0)
    _configure("jax_persistent_cache_min_entry_size_bytes", -1)
    reset_cache()  # JAX reads the settings once


def info() -> Info:
    """Returns the current contents of the caches."""
    owners = store.owners()
    return Info(
        sum(one.count() for one in owners),
        sum(one.weight() for one in owners),
        sum(map(len, list(_bounded))),
    )


def clear() -> None:
    """Drops everything; values needed again are recomputed and recompiled.

    JAX's own caches are cleared by ``jax.clear_caches()``.
    """
    for memo in list(_bounded):
        memo.clear()
    for owner in store.owners():
        owner.forget()


_configure: Any = jax.config.update  # JAX declares no types for it
_COMPILED = "/jax/core/compile/backend_compile_duration"


def _listen(event: str, duration_secs: float, **_more: Any) -> None:
    del duration_secs
    if event == _COMPILED:
        store.compiled()


jax.monitoring.register_event_duration_secs_listener(_listen)
