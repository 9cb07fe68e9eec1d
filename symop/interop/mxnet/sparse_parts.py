"""The parts of sparse arrays: structure on the host, entries on the device.

Row indices, columns and offsets are NumPy arrays, since the shapes of results depend on them.
Entries are JAX arrays. Their number is rounded up to a capacity, so that batches with about as many
entries share compiled programs: surplus entries are zero, surplus rows have the height as number,
which drops them.
"""

import dataclasses
import functools
from typing import Any

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
    return jnp.asarray(full)


# Rows ------------------------------------------------------------------------------------------


def rows_from(rows: np.ndarray, values: Any, height: int) -> Rows:
    """The stored rows, from unique row numbers in ascending order and their values on the host."""
    if len(rows) == height:
        return jnp.asarray(values)
    count = capacity(len(rows))
    return SelectedRows(_padded_rows(rows, count, height), padded(values, count), height)


def _padded_rows(rows: np.ndarray, count: int, height: int) -> np.ndarray:
    full = np.full(count, height, index_dtype(height + 1))
    full[: len(rows)] = rows
    return full


def no_rows(shape: Shape, dtype: Any) -> SelectedRows:
    """An array of zeros that stores no row."""
    values = jnp.zeros((0, *shape[1:]), dtype)
    return SelectedRows(np.zeros(0, np.int32), values, int(shape[0]))


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


def _distinct(rows: np.ndarray, height: int) -> tuple[np.ndarray, np.ndarray]:
    """The distinct numbers, ascending, and the place of each of ``rows`` among them.

    Sorting pairs of number and position packed into one integer takes half the time of
    ``np.unique``.
    """
    if max(height, len(rows)) >= 2**31:
        once, inverse = np.unique(rows, return_inverse=True)
        return once, inverse
    keys = (rows.astype(np.int64) << 32) | np.arange(len(rows))
    keys.sort()
    ascending = keys >> 32
    first = np.ones(len(rows), bool)
    np.not_equal(ascending[1:], ascending[:-1], out=first[1:])
    inverse = np.empty(len(rows), np.int64)
    inverse[keys & 0xFFFFFFFF] = np.cumsum(first) - 1
    return ascending[first], inverse


def merged(some: SelectedRows) -> Rows:
    """The same array with each row stored once, in ascending order, its structure on the host."""
    numbers = np.asarray(some.rows)
    inside = (numbers >= 0) & (numbers < some.height)
    rows = numbers[inside]
    ascending = bool((rows[1:] > rows[:-1]).all())
    if ascending and len(rows) < some.height and inside[: len(rows)].all():
        return SelectedRows(numbers, some.values, some.height)
    once, inverse = _distinct(rows, some.height)
    places = np.full(len(numbers), len(numbers) + some.height, np.int32)
    places[inside] = inverse
    if len(once) == some.height:
        every: jax.Array = _summed(jnp.asarray(some.values), places, some.height)
        return every
    count = capacity(len(once))
    values = _summed(jnp.asarray(some.values), places, count)
    return SelectedRows(_padded_rows(once, count, some.height), values, some.height)


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


@functools.partial(jax.jit, static_argnums=2)
def _found(values: jax.Array, places: jax.Array, count: int) -> jax.Array:
    del count
    return values.at[places].get(mode="fill", fill_value=0)


def selected(some: Rows, rows: np.ndarray) -> Rows:
    """The array restricted to the stored ones among ``rows``, which are unique and ascending."""
    if not isinstance(some, SelectedRows):
        height, kept, places = some.shape[0], rows, rows
        values: Any = some
    else:
        height, values = some.height, some.values
        kept, places, _ = np.intersect1d(row_numbers(some), rows, True, return_indices=True)
    if len(kept) == height:
        return values if not isinstance(some, SelectedRows) else some.to_dense()
    count = capacity(len(kept))
    beyond = np.full(count, values.shape[0], np.int32)
    beyond[: len(kept)] = places
    return SelectedRows(_padded_rows(kept, count, height), _found(values, beyond, count), height)


# Matrices --------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, eq=False)
class Csr:
    """A matrix stored row by row, with its structure on the host.

    Attributes:
        data: the entries; surplus ones are zero.
        columns: the columns of the entries, without surplus ones.
        starts: the offsets of the rows, one more than there are rows.
        shape: the numbers of rows and columns.
    """

    data: jax.Array
    columns: np.ndarray
    starts: np.ndarray
    shape: tuple[int, int]

    @property
    def count(self) -> int:
        """The number of stored entries."""
        return len(self.columns)

    @functools.cached_property
    def host_rows(self) -> np.ndarray:
        """The row of each stored entry."""
        return np.repeat(np.arange(self.shape[0], dtype=np.int32), np.diff(self.starts))

    @functools.cached_property
    def rows(self) -> jax.Array:
        """The row of each entry; the number of rows for surplus ones."""
        full = np.full(self.data.shape[0], self.shape[0], np.int32)
        full[: self.count] = self.host_rows
        return jnp.asarray(full)

    @functools.cached_property
    def places(self) -> jax.Array:
        """The column of each entry; that of the last one for surplus ones, which are zero.

        A column of its own would make the gradient of a product store one row more.
        """
        full = np.zeros(self.data.shape[0], index_dtype(self.shape[1]))
        full[: self.count] = self.columns
        full[self.count :] = self.columns[-1] if self.count else 0
        return jnp.asarray(full)

    def with_data(self, data: jax.Array) -> "Csr":
        """The same structure with other entries."""
        return Csr(data, self.columns, self.starts, self.shape)

    def to_dense(self) -> jax.Array:
        """The dense matrix."""
        result: jax.Array = _filled(self.data, self.rows, self.places, self.shape)
        return result

    def parts(self) -> CSRArray:
        """The components, without surplus entries, as NumPy arrays."""
        data = np.asarray(self.data)[: self.count]
        return CSRArray(data, self.columns, self.starts, self.shape)


@functools.partial(jax.jit, static_argnums=3)
def _filled(data: jax.Array, rows: jax.Array, columns: jax.Array, shape: Shape) -> jax.Array:
    return jnp.zeros(shape, data.dtype).at[rows, columns].add(data, mode="drop")


def csr_from(data: Any, columns: np.ndarray, starts: np.ndarray, shape: Shape) -> Csr:
    """A matrix of components on the host, of which the columns of each row are ascending."""
    entries = padded(data, capacity(len(columns)))
    whole = starts if len(starts) else np.zeros(shape[0] + 1, np.int64)
    return Csr(entries, columns.astype(np.int64), whole.astype(np.int64), (shape[0], shape[1]))


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
