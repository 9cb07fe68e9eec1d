"""The parts of sparse arrays: structure on the host, entries on the device.

Row indices, columns and offsets are NumPy arrays, since the shapes of results depend on them.
Entries are JAX arrays. Their number is rounded up to a capacity, so that batches with about as many
entries share compiled programs: surplus entries and rows have the height or the width as number,
which drops them, and surplus rows are zero.
"""

import dataclasses
import functools
import sys
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from registry.types import DType, Shape
from registry.values import SelectedRows
from symop.interop.mxnet.sparse import CSRArray

Rows = SelectedRows | jax.Array
"""The stored rows of an array; a JAX array if all are stored."""
_STEPS = 8
"""The number of capacities from one power of two to the next: at most an eighth is surplus."""

_UPPER = 1 if sys.byteorder == "little" else 0
"""Which of the two halves of an int64 in memory is the upper one."""


def capacity(count: int) -> int:
    """The number of entries for which memory is kept, at least ``count``.

    Example:
        >>> [capacity(count) for count in (0, 3, 16, 17, 1000)]
        [0, 8, 16, 18, 1024]
    """
    if count <= _STEPS:
        return _STEPS if count else 0
    step = max(1 << (count - 1).bit_length() >> 4, 1)
    return -(-count // step) * step


def index_dtype(bound: int) -> DType:
    """The dtype of indices below ``bound``."""
    return np.dtype(np.int32 if bound < 2**31 else np.int64)


def padded(entries: Any, count: int) -> jax.Array:
    """The entries along the first axis, with zeros up to ``count`` of them."""
    host = np.asarray(entries)
    full = np.zeros((count, *host.shape[1:]), host.dtype)
    full[: len(host)] = host
    result: jax.Array = jax.device_put(full)
    return result


# Rows ------------------------------------------------------------------------------------------


def rows_from(rows: np.ndarray, values: Any, height: int) -> Rows:
    """The stored rows, from unique row numbers in ascending order and their values on the host."""
    if len(rows) == height:
        return jnp.asarray(values)
    return SelectedRows(padded_rows(rows, height), padded(values, capacity(len(rows))), height)


def padded_rows(rows: np.ndarray, height: int) -> np.ndarray:
    """Numbers of rows with surplus ones, which are ``height``."""
    full = np.full(capacity(len(rows)), height, index_dtype(height + 1))
    full[: len(rows)] = rows
    return full


def no_rows(shape: Shape, dtype: Any) -> SelectedRows:
    """An array of zeros that stores no row."""
    values = _nothing(tuple(shape[1:]), np.dtype(dtype))
    return SelectedRows(np.zeros(0, np.int32), values, int(shape[0]))


@functools.lru_cache(maxsize=256)
def _nothing(shape: Shape, dtype: Any) -> jax.Array:
    """No rows of this shape, an array that all share."""
    with jax.ensure_compile_time_eval():
        return jnp.zeros((0, *shape), dtype)


def rows_of_dense(value: Any) -> Rows:
    """The rows of a dense array that have a nonzero entry."""
    host = np.asarray(value)
    rows = np.flatnonzero(host.reshape(len(host), -1).any(axis=1)) if host.size else np.arange(0)
    if len(rows) == len(host):
        return jnp.asarray(value)
    return rows_from(rows, host[rows], len(host))


@functools.partial(jax.jit, static_argnums=2)
def _summed(values: jax.Array, places: jax.Array, count: int) -> jax.Array:
    """The sums of the values at each of ``count`` places; places beyond are dropped."""
    return jnp.zeros((count, *values.shape[1:]), values.dtype).at[places].add(values, mode="drop")


def distinct(numbers: np.ndarray, bound: int) -> tuple[np.ndarray, np.ndarray]:
    """The distinct numbers, ascending, and the place of each of ``numbers`` among them.

    Numbers are at least 0 and less than ``bound``. Sorting pairs of number and position packed into
    one integer takes a fraction of the time of ``np.unique``.

    Example:
        >>> distinct(np.array([7, 2, 7]), 9)
        (array([2, 7], dtype=int32), array([1, 0, 1], dtype=int32))
    """
    if max(bound, len(numbers)) >= 2**31:
        once, inverse = np.unique(numbers, return_inverse=True)
        return once, inverse
    # Few temporary arrays: those of this size are fresh pages, which cost more than the loops.
    keys = numbers.astype(np.int64)
    keys <<= 32
    keys += np.arange(len(keys), dtype=np.int32)
    keys.sort()
    ascending, first = keys.view(np.int32)[_UPPER::2], np.ones(len(keys), bool)
    np.not_equal(ascending[1:], ascending[:-1], out=first[1:])
    once = ascending[first]
    keys &= 0xFFFFFFFF
    places = np.cumsum(first, dtype=np.int32)
    places -= 1
    inverse = np.empty(len(keys), np.int32)
    inverse[keys] = places
    return once, inverse


def named_once(numbers: np.ndarray, height: int) -> np.ndarray:
    """The rows among ``numbers`` that exist, each once, ascending, as ``SelectedRows`` have them.

    Surplus ones have the number ``height``.
    """
    inside = (numbers >= 0) & (numbers < height)
    once, _ = distinct(numbers if inside.all() else numbers[inside], height)
    return padded_rows(once, height)


def merged(some: SelectedRows) -> Rows:
    """The same array with each row stored once, in ascending order, its structure on the host."""
    numbers = np.asarray(some.rows)
    if len(numbers) < some.height and _ascends(numbers, some.height):
        return SelectedRows(numbers, some.values, some.height)
    period = _period(numbers)
    if period < min(len(numbers), some.height) and _ascends(numbers[:period], some.height):
        return SelectedRows(numbers[:period], _folded(some.values, period), some.height)
    inside = (numbers >= 0) & (numbers < some.height)
    once, inverse = distinct(numbers[inside], some.height)
    places = np.full(len(numbers), len(numbers) + some.height, np.int32)
    places[inside] = inverse
    if len(once) == some.height:
        every: jax.Array = _summed(jnp.asarray(some.values), places, some.height)
        return every
    values = _summed(jnp.asarray(some.values), places, capacity(len(once)))
    return SelectedRows(padded_rows(once, some.height), values, some.height)


def _ascends(numbers: np.ndarray, height: int) -> bool:
    """Whether rows are named once, in ascending order, before surplus ones."""
    count = int(np.searchsorted(numbers, height))
    own = numbers[:count]
    return bool(
        (own[1:] > own[:-1]).all() and (own[:1] >= 0).all() and (numbers[count:] == height).all()
    )


def _period(numbers: np.ndarray) -> int:
    """The length of the list of rows that is repeated, as in a sum of gradients."""
    again = np.flatnonzero(numbers[1:] == numbers[:1])
    period = int(again[0]) + 1 if len(again) else len(numbers)
    if len(numbers) % max(period, 1):
        return len(numbers)
    parts = numbers.reshape(-1, max(period, 1))
    return period if (parts == parts[:1]).all() else len(numbers)


@functools.partial(jax.jit, static_argnums=1)
def _folded(values: jax.Array, period: int) -> jax.Array:
    """The sum of consecutive parts of ``period`` rows."""
    count = values.shape[0] // period
    return values.reshape(count, period, *values.shape[1:]).sum(0)


def row_numbers(some: Rows) -> np.ndarray:
    """The numbers of the stored rows, without surplus ones."""
    if not isinstance(some, SelectedRows):
        return np.arange(some.shape[0])
    rows = np.asarray(some.rows)
    return rows[: int(np.searchsorted(rows, some.height))]


def row_values(some: Rows) -> Any:
    """The values of the stored rows, without surplus ones."""
    if not isinstance(some, SelectedRows):
        return some
    count = len(row_numbers(some))
    return some.values if count == len(some.rows) else jnp.asarray(np.asarray(some.values)[:count])


@jax.jit
def _found(values: jax.Array, places: jax.Array) -> jax.Array:
    return values.at[places].get(mode="fill", fill_value=0)


def values_at(some: Rows, rows: np.ndarray) -> jax.Array:
    """The given rows of an array, which are unique, ascending and padded; zeros for surplus ones.

    A row-sparse array must be merged.
    """
    if not isinstance(some, SelectedRows):
        found: jax.Array = _found(some, rows)
        return found
    if some.rows is rows or np.array_equal(some.rows, rows):
        return jnp.asarray(some.values)
    if not len(some.rows):
        return jnp.zeros((len(rows), *some.shape[1:]), some.dtype)
    found = _found(some.values, _places_among(some.rows, rows, some.height))
    return found


def _places_among(own: np.ndarray, rows: np.ndarray, height: int) -> np.ndarray:
    """The place of each of ``rows`` in ``own``, both ascending; one beyond for those not there."""
    places = np.searchsorted(own, rows).astype(np.int32)
    there = own[np.minimum(places, len(own) - 1)] == rows
    return np.where(there & (rows < height), places, np.int32(len(own)))


def selected(some: Rows, rows: np.ndarray) -> Rows:
    """The array restricted to the stored ones among ``rows``, unique, ascending and padded."""
    height = some.height if isinstance(some, SelectedRows) else some.shape[0]
    if isinstance(some, SelectedRows):
        rows = padded_rows(np.intersect1d(row_numbers(some), rows, True), height)
    if int(np.searchsorted(rows, height)) == height:
        return some.to_dense() if isinstance(some, SelectedRows) else some
    return SelectedRows(rows, values_at(some, rows), height)


# Matrices --------------------------------------------------------------------------------------


class Named(NamedTuple):
    """The distinct columns of a matrix.

    Attributes:
        rows: the columns as rows of a factor, each once, ascending; surplus ones are the width.
        places: the place of each entry's column among them; one beyond for surplus entries.
    """

    rows: np.ndarray
    places: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class Pattern:
    """The positions of the entries of a matrix, on the host.

    Attributes:
        columns: the columns of the entries, without surplus ones.
        starts: the offsets of the rows, one more than there are rows.
        shape: the numbers of rows and columns.
        size: the number of entries, with surplus ones.
    """

    columns: np.ndarray
    starts: np.ndarray
    shape: tuple[int, int]
    size: int

    @property
    def count(self) -> int:
        """The number of stored entries."""
        return len(self.columns)

    @functools.cached_property
    def host_rows(self) -> np.ndarray:
        """The row of each stored entry."""
        return np.repeat(np.arange(self.shape[0], dtype=np.int32), np.diff(self.starts))

    @functools.cached_property
    def rows(self) -> np.ndarray:
        """The row of each entry; the number of rows for surplus ones."""
        return self._filled_up(self.host_rows, self.shape[0], np.int32)

    @functools.cached_property
    def places(self) -> np.ndarray:
        """The column of each entry; the number of columns for surplus ones."""
        width = self.shape[1]
        return self._filled_up(self.columns, width, index_dtype(width + 1))

    @functools.cached_property
    def _on_device(self) -> dict[Any, jax.Array]:
        return {}

    def columns_of(self, dtype: DType) -> jax.Array:
        """The columns as an array on the default device, which is made once for each dtype."""
        key = dtype, jax.config.jax_default_device  # type: ignore[attr-defined]  # of JAX
        found = self._on_device.get(key)
        if found is None or found.is_deleted():
            with jax.ensure_compile_time_eval():
                found = self._on_device[key] = jax.device_put(np.array(self.columns, dtype))
        return found

    @functools.cached_property
    def named(self) -> Named:
        """The distinct columns."""
        width = self.shape[1]
        once, inverse = distinct(self.columns, width)
        rows = padded_rows(once, width)
        return Named(rows, self._filled_up(inverse, len(rows), np.int32))

    def _filled_up(self, numbers: np.ndarray, surplus: int, dtype: Any) -> np.ndarray:
        full = np.empty(self.size, dtype)
        full[: self.count], full[self.count :] = numbers, surplus
        return full


@dataclasses.dataclass(frozen=True, eq=False)
class Csr:
    """A matrix stored row by row.

    Attributes:
        data: the entries, with surplus ones.
        pattern: their positions, which matrices share.
    """

    data: jax.Array
    pattern: Pattern

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        return self.pattern.shape

    @property
    def columns(self) -> np.ndarray:
        """The columns of the entries, without surplus ones."""
        return self.pattern.columns

    @property
    def starts(self) -> np.ndarray:
        """The offsets of the rows."""
        return self.pattern.starts

    def with_data(self, data: jax.Array) -> "Csr":
        """The same positions with other entries."""
        return Csr(data, self.pattern)

    def to_dense(self) -> jax.Array:
        """The dense matrix."""
        pattern = self.pattern
        result: jax.Array = _filled(self.data, pattern.rows, pattern.places, self.shape)
        return result

    def rows_at(self, rows: np.ndarray) -> "Csr":
        """The matrix of some rows, which may repeat."""
        lengths = np.diff(self.starts)[rows]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        within = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths)
        places = np.repeat(self.starts[:-1][rows], lengths) + within
        shape = len(rows), self.shape[1]
        return csr_from(self.parts().data[places], self.columns[places], starts, shape)

    def parts(self) -> CSRArray:
        """The components, without surplus entries, as NumPy arrays."""
        data = np.asarray(self.data)[: self.pattern.count]
        return CSRArray(data, self.columns, self.starts, self.shape)


@functools.partial(jax.jit, static_argnums=3)
def _filled(data: jax.Array, rows: jax.Array, columns: jax.Array, shape: Shape) -> jax.Array:
    return jnp.zeros(shape, data.dtype).at[rows, columns].add(data, mode="drop")


def csr_from(data: Any, columns: np.ndarray, starts: np.ndarray, shape: Shape) -> Csr:
    """A matrix of components on the host, of which the columns of each row are ascending."""
    size = capacity(len(columns))
    whole = starts if len(starts) else np.zeros(shape[0] + 1, np.int64)
    positions = columns.astype(np.int64, copy=False), whole.astype(np.int64, copy=False)
    return Csr(padded(data, size), Pattern(*positions, (shape[0], shape[1]), size))


def csr_of_dense(value: Any) -> Csr:
    """The nonzero entries of a dense matrix."""
    host = np.asarray(value)
    rows, columns = np.nonzero(host)
    return csr_from(host[rows, columns], columns, starts_of(rows, host.shape[0]), host.shape)


def starts_of(rows: np.ndarray, height: int) -> np.ndarray:
    """The offsets of rows, from the rows of entries in ascending order."""
    return np.searchsorted(rows, np.arange(height + 1)).astype(np.int64)


def no_entries(shape: Shape, dtype: Any) -> Csr:
    """A matrix of zeros that stores no entry."""
    return csr_from(
        np.zeros(0, dtype), np.zeros(0, np.int64), np.zeros(shape[0] + 1, np.int64), shape
    )
