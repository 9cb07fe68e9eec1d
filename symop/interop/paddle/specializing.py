"""Programs that are compiled for values of what is fed, where their shapes depend on these."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from registry.types import is_exact
from symop.interop.paddle.compiling import Compiled, Translated
from symop.interop.paddle.errors import UnknownValueError
from symop.interop.paddle.facts import Facts, rounded
from symop.runtime.function import require_whole

KEPT = 64
"""How many programs are kept for different values of the same types."""
LARGEST = 1 << 16
"""The number of entries up to which an array of integers selects a compiled program."""


class Specialized:
    """The compiled programs for one combination of types.

    Most programs need no values; then there is one. Offsets, lengths and other integers that shapes
    depend on select one of several. A program whose shapes depend on other values, such as one that
    selects boxes by their scores, is interpreted in each run: its operators then compute at once.
    """

    def __init__(
        self, translation: Callable[[Facts], Translated], scope: Any, kept: Sequence[str]
    ) -> None:
        """Compiles nothing yet.

        Args:
            translation: translates the program with what is known of its feeds.
            scope: the persistable variables.
            kept: the names of those that the program may read.
        """
        self._translation = translation
        self._scope = scope
        self._kept = kept
        self._values: set[str] = set()
        self._lengths: set[str] = set()
        self._is_interpreted = False
        self._compiled: OrderedDict[Any, Compiled] = OrderedDict()

    def of(self, arrays: Mapping[str, Any]) -> Compiled:
        """Returns the program for fed arrays.

        Raises:
            UnknownValueError: a shape depends on a value that neither is fed nor persistable.
        """
        while True:
            key = self._key(arrays) if self._values or self._lengths else ()
            if key in self._compiled and not self._is_interpreted:
                self._compiled.move_to_end(key)
                return self._compiled[key]
            try:
                compiled = Compiled(self._translation(self._facts(arrays)), self._scope)
            except UnknownValueError as error:
                self._ask(error, arrays)
                continue
            if not self._is_interpreted:
                self._compiled[key] = compiled
                if len(self._compiled) > KEPT:
                    self._compiled.popitem(last=False)
            return compiled

    def _key(self, arrays: Mapping[str, Any]) -> tuple[Any, ...]:
        """Returns what selects a program, in an order that only a new request changes."""
        values = [np.asarray(arrays[name]).tobytes() for name in self._values]
        longest = [rounded(_longest(arrays[name])) for name in self._lengths]
        return (*self._values, *values, *self._lengths, *longest)

    def _facts(self, arrays: Mapping[str, Any]) -> Facts:
        longest = {name: rounded(_longest(arrays[name])) for name in self._lengths}
        if not self._is_interpreted:
            return Facts({name: _known(name, arrays[name]) for name in self._values}, longest)
        kept = {name: self._scope[name] for name in self._kept if name not in arrays}
        values = {**{name: one for name, one in kept.items() if _is_dense(one)}, **arrays}
        return Facts({name: _known(name, one) for name, one in values.items()}, longest)

    def _ask(self, error: UnknownValueError, arrays: Mapping[str, Any]) -> None:
        """Notes what a translation must know.

        Raises:
            UnknownValueError: ``error``, if nobody can know it.
        """
        names = set(error.names)
        if self._is_interpreted or not names <= arrays.keys() | set(self._kept):
            raise error
        if error.of_longest and names <= arrays.keys():
            self._lengths |= names
        elif all(name in arrays and _selects(arrays[name]) for name in names - self._values):
            if names <= self._values:
                raise error
            self._values |= names
        else:
            self._is_interpreted = True


def _known(name: str, array: Any) -> jax.Array:
    """Returns a constant, which shares no memory with what is fed.

    Raises:
        FeedError: an integer does not fit into the integers of JAX.
    """
    if isinstance(array, np.ndarray):
        require_whole(name, jax.dtypes.canonicalize_dtype(array.dtype), array)
    return jnp.array(array)


def _selects(array: Any) -> bool:
    return is_exact(np.dtype(array.dtype)) and array.size <= LARGEST


def _is_dense(value: Any) -> bool:
    return isinstance(value, (jax.Array, np.ndarray))


def _longest(offsets: Any) -> int:
    return int(np.diff(np.asarray(offsets)).max(initial=0))
