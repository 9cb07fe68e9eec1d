"""SelectedRows and TensorArray: run-time values that are no dense arrays, as JAX pytrees."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from registry.errors import DTypeError, ShapeError
from registry.types import DType, Shape, VarKind, VarType


@dataclasses.dataclass(frozen=True, eq=False)
class SelectedRows:
    """Some rows of an array that is ``height`` rows tall; the others are zero.

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
            ShapeError: there is not one value for each row.
            DTypeError: the row numbers are no integers.
        """
        rows, values = tuple(self.rows.shape), tuple(self.values.shape)
        if len(rows) != 1 or values[:1] != rows:
            raise ShapeError(
                "SelectedRows: there must be one value for each of a list of rows, got rows of "
                f"shape {rows} and values of shape {values}"
            )
        if self.rows.dtype.kind not in "iu":
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

    def to_dense(self) -> jax.Array:
        """The whole array; row numbers outside it are dropped."""
        zeros = jnp.zeros(self.shape, self.dtype)
        return zeros.at[self.rows].add(self.values, mode="drop", wrap_negative_indices=False)


jax.tree_util.register_dataclass(SelectedRows, ["rows", "values"], ["height"])


@dataclasses.dataclass(frozen=True, eq=False)
class TensorArray:
    """A list of arrays of one shape, with room for ``values.shape[0]`` of them.

    Where nothing was written it holds zeros.

    Attributes:
        values: the arrays, one behind the other: of shape ``(capacity, *element_shape)``.
        length: how many there are: one more than the highest place that was written to, an int32
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
            ShapeError: there is no axis of elements.
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
        """The sums of the elements; as long as the longer one."""
        return TensorArray(self.values + other.values, jnp.maximum(self.length, other.length))

    @classmethod
    def filled(cls, type: VarType, value: Any) -> "TensorArray":
        """An empty array of ``type`` whose room is filled with one number."""
        return cls(jnp.full(type.shape, value, type.dtype), jnp.zeros((), np.int32))


jax.tree_util.register_dataclass(TensorArray, ["values", "length"], [])
