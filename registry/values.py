"""SelectedRows and TensorArray: run-time values other than dense arrays, as JAX pytrees."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike

from registry.errors import DTypeError, ShapeError
from registry.symbolic import Symbolic
from registry.types import DType, Shape, VarKind, VarType, is_integer

ArrayInput = ArrayLike | Sequence[complex] | Sequence[Sequence[complex]]
"""The values that operators accept as an array: arrays, numbers, and lists of numbers."""


@dataclasses.dataclass(frozen=True, eq=False)
class SelectedRows:
    """Some rows of an array with ``height`` rows; the others are zero.

    A row that is named twice holds the sum of its values.

    Attributes:
        rows: row numbers, an integer array of shape ``(n,)``.
        values: their values, of shape ``(n, *row_shape)``.
        height: the number of rows of the array.

    Example:
        >>> some = SelectedRows(jnp.array([2, 0, 2]), jnp.ones((3, 1)), height=4)
        >>> some.to_dense().ravel().tolist()
        [1.0, 0.0, 2.0, 0.0]
    """

    rows: Any
    values: Any
    height: int

    @property
    def type(self) -> VarType:
        """Shape and dtype of the whole array, and the kind.

        Raises:
            ShapeError: the numbers of rows and of values differ.
            DTypeError: the row numbers are not integers.
        """
        rows, values = tuple(self.rows.shape), tuple(self.values.shape)
        if len(rows) != 1 or values[:1] != rows:
            raise ShapeError(
                "SelectedRows: there must be one value for each of a list of rows, got rows of "
                f"shape {rows} and values of shape {values}"
            )
        if not is_integer(self.rows.dtype):
            raise DTypeError(f"SelectedRows: rows must be integers, got {self.rows.dtype}")
        return VarType(self.shape, self.dtype, VarKind.SELECTED_ROWS)

    @property
    def shape(self) -> Shape:
        """Shape of the whole array."""
        return (self.height, *self.values.shape[1:])

    @property
    def dtype(self) -> DType:
        """Dtype of the values."""
        dtype: DType = np.dtype(self.values.dtype)
        return dtype

    @property
    def held(self) -> jax.Array:
        """Row numbers; ``height``, which is dropped, in place of those outside the array."""
        rows = jnp.asarray(self.rows)
        rows = rows.astype(np.int32) if rows.dtype.itemsize < 4 else rows
        return jnp.where((rows >= 0) & (rows < self.height), rows, self.height)

    def merged(self) -> "SelectedRows":
        """Returns the same array with each row named once, in ascending order.

        The number of rows is unchanged: the remaining ones have the number ``height`` and values of
        zero.

        Example:
            >>> twice = SelectedRows(jnp.array([2, 0, 2]), jnp.ones((3, 1)), height=4)
            >>> twice.merged().rows.tolist(), twice.merged().values.ravel().tolist()
            ([0, 2, 4], [1.0, 2.0, 0.0])
        """
        held, values = self.held, jnp.asarray(self.values)
        count = held.shape[0]
        if count == 0:
            return SelectedRows(held, values, self.height)
        rows, order = _sorted(held, self.height)
        starts = jnp.concatenate([jnp.zeros(1, bool), rows[1:] != rows[:-1]])
        places = lax.platform_dependent(
            starts.astype(np.int32), cpu=_one_after_the_other, default=jnp.cumsum
        )
        inside = _beside(rows < self.height, values)
        sums = jax.ops.segment_sum(
            jnp.where(inside, values[order], jnp.zeros((), values.dtype)),
            places,
            count,
            indices_are_sorted=True,
        )
        once = jnp.full(count, self.height, rows.dtype)
        once = once.at[places].set(rows, wrap_negative_indices=False)
        return SelectedRows(once, sums, self.height)

    def mapped(self, function: Callable[[Any], Any]) -> "SelectedRows":
        """Returns the same rows with the values ``function(values)``."""
        return SelectedRows(self.rows, function(self.values), self.height)

    def of(self, table: Any) -> jax.Array:
        """Returns the rows of ``table``, of this height; zeros for rows that are dropped."""
        rows: jax.Array = (
            jnp.asarray(table)
            .at[self.held]
            .get(mode="fill", fill_value=0, wrap_negative_indices=False)
        )
        return rows

    def put_into(self, table: Any) -> jax.Array:
        """Returns ``table`` with these rows replaced; no row may be named twice."""
        table = _strong(table)
        values = self.values.astype(table.dtype)
        placed: jax.Array = table.at[self.held].set(
            values, mode="drop", wrap_negative_indices=False
        )
        return placed

    def added_to(self, table: Any) -> jax.Array:
        """Returns ``table`` with these rows added."""
        table = _strong(table)
        values = self.values.astype(table.dtype)
        total: jax.Array = table.at[self.held].add(values, mode="drop", wrap_negative_indices=False)
        return total

    def to_dense(self) -> jax.Array:
        """Returns the whole array; row numbers outside it are dropped."""
        return self.added_to(jnp.zeros(self.shape, self.dtype))


def _sorted(rows: jax.Array, height: int) -> tuple[jax.Array, jax.Array]:
    """Returns row numbers of at most ``height`` in ascending order, and where each of them was.

    XLA sorts single numbers faster than pairs, its CPU backend up to eight times as fast. So digits
    and places are sorted as one number, the digits of the row numbers from the last to the first: a
    radix sort (Knuth, "The Art of Computer Programming", volume 3, 5.2.5).
    """
    count = rows.shape[0]
    width = (count - 1).bit_length()
    digit = 32 - width
    if digit < _DIGIT or height.bit_length() > 32:
        order = jnp.argsort(rows)
        return rows[order], order
    places, numbers = jnp.arange(count, dtype=np.uint32), rows.astype(np.uint32)
    order = places
    if not height:
        return rows, order
    for shift in range(0, height.bit_length(), digit):
        keys = numbers[order] if shift else numbers
        both = jnp.sort((keys >> shift) << width | places)
        before = both & ((1 << width) - 1)
        order = order[before] if shift else before
    if height.bit_length() <= digit:
        return (both >> width).astype(rows.dtype), order
    return rows[order], order


def _one_after_the_other(x: jax.Array) -> jax.Array:
    """The cumulative sum of a vector by a loop.

    XLA's CPU backend compiles and runs it in less than half the time of ``jnp.cumsum``, which is
    made for devices that add many numbers at once.
    """

    def step(total: jax.Array, one: jax.Array) -> tuple[jax.Array, jax.Array]:
        return total + one, total + one

    sums: jax.Array = lax.scan(step, jnp.zeros((), x.dtype), x)[1]
    return sums


_DIGIT = 8
"""The fewest bits of a digit, below which pairs are sorted."""


def _strong(table: Any) -> jax.Array:
    array: jax.Array = jnp.asarray(table)
    return array.astype(array.dtype)


def _beside(marks: jax.Array, values: jax.Array) -> jax.Array:
    """Returns ``marks`` of rows, reshaped to broadcast to ``values``."""
    return marks.reshape(marks.shape + (1,) * (values.ndim - 1))


def known(value: Any) -> np.ndarray | None:
    """Returns the entries of an array, or None where they are unknown: traced, or in a graph."""
    if isinstance(value, Symbolic):
        return _of_number(value)
    try:
        return np.asarray(value)
    except jax.errors.TracerArrayConversionError:
        return None


def _of_number(value: Symbolic) -> np.ndarray | None:
    """Returns the number that fills a value of a graph, or None if it is unknown."""
    return None if value.constant is None else np.asarray(value.constant)


jax.tree_util.register_dataclass(SelectedRows, ["rows", "values"], ["height"])


@dataclasses.dataclass(frozen=True, eq=False)
class TensorArray:
    """A list of arrays of one shape, with a capacity of ``values.shape[0]``.

    Elements that were never written are zeros.

    Attributes:
        values: the arrays, stacked along the first axis: of shape ``(capacity, *element_shape)``.
        length: the number of elements: one more than the highest index that was written, an int32
            scalar.

    Example:
        >>> some = TensorArray(jnp.zeros((4, 2)), jnp.int32(1))
        >>> some.type
        VarType(lod_tensor_array float32[4,2])
    """

    values: Any
    length: Any

    @property
    def type(self) -> VarType:
        """Capacity and shape of the elements, their dtype, and the kind.

        Raises:
            ShapeError: the values have no axis of elements.
        """
        shape = tuple(self.values.shape)
        if not shape:
            raise ShapeError("TensorArray: values must have an axis of elements, got a scalar")
        return VarType(shape, np.dtype(self.values.dtype), VarKind.LOD_TENSOR_ARRAY)

    @property
    def shape(self) -> Shape:
        """Capacity and shape of the elements."""
        return tuple(self.values.shape)

    @property
    def dtype(self) -> DType:
        """Dtype of the elements."""
        dtype: DType = np.dtype(self.values.dtype)
        return dtype

    def __add__(self, other: "TensorArray") -> "TensorArray":
        """Returns the elementwise sum; as long as the longer of the two."""
        return TensorArray(self.values + other.values, jnp.maximum(self.length, other.length))

    @classmethod
    def filled(cls, type: VarType, value: Any) -> "TensorArray":
        """Returns an empty array of ``type`` whose capacity is filled with one number."""
        return cls(jnp.full(type.shape, value, type.dtype), jnp.zeros((), np.int32))


jax.tree_util.register_dataclass(TensorArray, ["values", "length"], [])
