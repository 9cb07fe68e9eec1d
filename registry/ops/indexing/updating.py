"""Changed copies ``x.at[index].set(value)``, composed of other operators.

Where the index selects a box, of integers and contiguous slices, the box is replaced. Otherwise the
entries of ``x`` are numbered, ``x[index]`` is taken of the numbers, and the entries with these
numbers are changed.
"""

import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from registry.errors import ArgumentError, BoundsError, DTypeError, UnknownTypeError
from registry.tracebacks import api_class
from registry.types import is_complex
from registry.var import Operators, Var, infix


class At:
    """``x.at``: indexing it selects the entries that a method of the result changes."""

    __slots__ = ("_x",)

    def __init__(self, x: Any) -> None:
        """Prepares changed copies of ``x``."""
        self._x = x

    def __getitem__(self, index: Any) -> "Place":
        """Selects the entries ``x[index]``."""
        return Place(self._x, index)

    def __repr__(self) -> str:
        return f"<{self._x!r}.at>"


@api_class
class Place:
    """The entries ``x[index]``; the methods return copies of ``x`` in which they are changed.

    A value broadcasts to the shape of ``x[index]`` and is cast to the dtype of ``x``. The index is
    one that ``x[index]`` takes. Positions out of bounds that only the running graph knows are not
    changed.

    Example:
        >>> import symop as so
        >>> x = so.nd.array([1.0, 2.0, 3.0])
        >>> x.at[1:].add(10.0)
        NDArray([ 1., 12., 13.], dtype=float32)
    """

    __slots__ = ("_index", "_x")

    def __init__(self, x: Any, index: Any) -> None:
        """Selects the entries; users call ``x.at[index]``."""
        self._x, self._index = x, index

    def __repr__(self) -> str:
        return f"<{self._x!r}.at[{self._index!r}]>"

    def get(self) -> Any:
        """Returns the entries themselves: ``x[index]``."""
        return self._x[self._index]

    def set(self, value: Any) -> Any:
        """Returns ``x`` with ``value`` at the index; of repeated positions the last one counts."""
        box = _box(self._x, self._index)
        if box is None:
            return self._scattered("index_update", value)
        update = _call("reshape", self._update(value), shape=box.sizes)
        return _call("dynamic_update_slice", self._x, update, np.asarray(box.starts, np.int32))

    def add(self, value: Any) -> Any:
        """Returns ``x`` with ``value`` added at the index, several times at repeated positions."""
        if _box(self._x, self._index) is None:
            return self._scattered("index_add", value)
        return self.set(self.get() + self._cast(value))

    def subtract(self, value: Any) -> Any:
        """Returns ``x`` with ``value`` subtracted at the index."""
        return self.add(_call("negative", value))

    def multiply(self, value: Any) -> Any:
        """Returns ``x`` with the entries at the index, all different ones, times ``value``."""
        return self._changed("multiply", value)

    def divide(self, value: Any) -> Any:
        """Returns ``x`` with the entries at the index, all different ones, over ``value``."""
        return self._changed("divide", value)

    def power(self, value: Any) -> Any:
        """Returns ``x`` with the entries at the index, all different ones, raised to ``value``."""
        return self._changed("power", value)

    def min(self, value: Any) -> Any:
        """Returns ``x`` with its entries at the index, all different ones, or a smaller value."""
        return self._changed("minimum", value)

    def max(self, value: Any) -> Any:
        """Returns ``x`` with its entries at the index, all different ones, or a larger value."""
        return self._changed("maximum", value)

    def apply(self, function: Callable[[Any], Any]) -> Any:
        """Returns ``x`` with ``function`` of the entries at the index, all different ones.

        Raises:
            ArgumentError: the index repeats a position, or only the running graph knows whether.
        """
        if not all(one is None or _is_basic(one) for one in _entries(self._index)):
            _require_different(self._x, self._index, self._numbers)
        return self.set(function(self.get()))

    mul = multiply

    def _changed(self, name: str, value: Any) -> Any:
        return self.apply(lambda entries: _call(name, entries, self._cast(value)))

    def _scattered(self, name: str, value: Any) -> Any:
        """Applies an operator that changes entries of an array of one axis."""
        flat = _call("reshape", self._x, shape=(-1,))
        changed = _call(name, flat, self._numbers(), self._update(value))
        return _call("reshape_like", changed, self._x)

    def _update(self, value: Any) -> Any:
        """Returns ``value``, cast and broadcast to the entries."""
        return _call("broadcast_like", self._cast(value), self.get())

    def _cast(self, value: Any) -> Any:
        """Returns ``value`` in the dtype of ``x``, where both are known.

        Raises:
            DTypeError: ``value`` is complex, and ``x`` is not.
        """
        try:
            own, other = np.dtype(self._x.dtype), np.dtype(_dtype_of(value))
        except UnknownTypeError:
            return value
        if is_complex(other) and not is_complex(own):
            raise DTypeError(
                f"x.at[...]: the value must be real where x is {own.name}, got {other.name}"
            )
        if isinstance(value, (bool, int, float, complex)):
            return np.asarray(value, own)
        return value if own == other else _call("cast", value, dtype=own)

    def _numbers(self) -> Any:
        """Returns the numbers of the entries, counted in row-major order."""
        shape = _known_shape(self._x)
        if shape is None:
            ones = _call("ones_like", _call("reshape", self._x, shape=(-1,)), dtype=np.int32)
            counted = _call("cumsum", ones) - 1
            return _call("reshape_like", counted, self._x)[self._index]
        numbers = np.arange(math.prod(shape), dtype=np.int32).reshape(shape)
        if any(_is_computed(one) for one in _entries(self._index)):
            return _like(self._x, numbers)[self._index]
        try:
            return numbers[self._index]
        except IndexError as error:
            raise BoundsError(f"x.at[...]: {error}") from None


infix["at"] = At


def _call(name: str, *inputs: Any, **attributes: Any) -> Any:
    found = Operators.find(name)
    assert found is not None  # the catalogue declares it
    return found(*inputs, **attributes)


def _like(x: Any, numbers: np.ndarray) -> Any:
    """Returns an array as a value of the kind of ``x``."""
    zeros = _call("zeros_like", x, dtype=np.int32)
    return zeros + numbers


def _dtype_of(value: Any) -> Any:
    return value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype


def _entries(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def _known_shape(x: Any) -> tuple[int, ...] | None:
    """Returns the shape of ``x`` if all lengths are known numbers."""
    try:
        shape = tuple(x.shape)
    except UnknownTypeError:
        return None
    return shape if all(isinstance(one, int) for one in shape) else None


class _Box(NamedTuple):
    """A range of positions on each axis.

    Attributes:
        starts: the first positions.
        sizes: the numbers of positions, at least one.
    """

    starts: tuple[int, ...]
    sizes: tuple[int, ...]


def _box(x: Any, index: Any) -> _Box | None:
    """Returns the box of ``x`` that ``index`` selects, or None if it selects other entries."""
    shape, entries = _known_shape(x), [one for one in _entries(index) if one is not None]
    if shape is None or not all(_is_basic(one) for one in entries):
        return None
    named = [one for one in entries if one is not Ellipsis]
    if len(named) > len(shape) or len(entries) - len(named) > 1:
        return None  # x[index] raises the error
    at = next((i for i, one in enumerate(entries) if one is Ellipsis), len(entries))
    whole = [slice(None)] * (len(shape) - len(named))
    full = [*entries[:at], *whole, *entries[at + 1 :]]
    ranges = [_range(one, length) for one, length in zip(full, shape, strict=True)]
    if any(one.step != 1 or not one for one in ranges):
        return None
    return _Box(tuple(one.start for one in ranges), tuple(map(len, ranges)))


def _is_basic(entry: Any) -> bool:
    """Whether an entry is ``...``, a slice or an integer with a known value."""
    if entry is Ellipsis or isinstance(entry, slice):
        return True
    return isinstance(entry, (int, np.integer)) and not isinstance(entry, bool)


def _range(entry: Any, length: int) -> range:
    """Returns the positions that an entry selects; none if it is out of bounds."""
    if isinstance(entry, slice):
        return range(*entry.indices(length))
    place = operator.index(entry)
    return range(length)[place:][:1] if -length <= place < length else range(0)


def _require_different(x: Any, index: Any, numbers: Callable[[], Any]) -> None:
    """Refuses positions that are repeated, or that may be.

    While the shape of ``x`` is unknown, positions are different if an array holds different ones
    that are all counted from the same end.

    Raises:
        ArgumentError: a position is repeated, or only the running graph knows.
    """
    arrays = [one for one in _entries(index) if one is not None and not _is_basic(one)]
    unknown = _known_shape(x) is None and len(arrays) == 1 and not _is_computed(arrays[0])
    places = np.asarray(arrays[0]) if unknown else None
    if places is None or not (np.all(places >= 0) or np.all(places < 0)):
        places = numbers()
    if not isinstance(places, np.ndarray):
        raise ArgumentError(
            "x.at[...]: the positions must be known to be different, got an index that holds a "
            f"{type(places).__name__}; use set or add, or an index of NumPy"
        )
    if np.unique(places).size < places.size:
        raise ArgumentError(
            "x.at[...]: the positions must be different, got an index that repeats one; use set "
            "or add"
        )


def _is_computed(entry: Any) -> bool:
    """Whether only a graph or a trace that runs knows an entry."""
    return isinstance(entry, (Var, jax.core.Tracer))
