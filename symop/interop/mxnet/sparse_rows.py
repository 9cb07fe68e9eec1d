"""Rows of arrays on the tape: as dense arrays of the rows alone, and back.

Operators compute on the rows without knowing of the whole array; the gradient of an array of which
rows were taken stores these rows. Rows are NumPy arrays of numbers, unique, ascending and padded as
in ``sparse_parts``.
"""

from typing import Any

import jax
import numpy as np

import symop as so
from registry.types import VarKind
from registry.values import SelectedRows
from symop.eager.ndarray import array_of as eager
from symop.interop.mxnet.sparse_parts import merged, values_at


class _Taken(so.autograd.Function):
    """Rows of an array; its gradient stores these rows."""

    def __init__(self, rows: np.ndarray, height: int) -> None:
        super().__init__()
        self._rows, self._height = rows, height

    def forward(self, *inputs: Any) -> Any:
        return eager(rows_of(inputs[0], self._rows))

    def backward(self, *cotangents: Any) -> Any:
        return stored_at(cotangents[0], self._rows, self._height)


class _Stored(so.autograd.Function):
    """A row-sparse array of the given rows; its gradient is that of the rows alone."""

    takes_rows = True

    def __init__(self, rows: np.ndarray, height: int) -> None:
        super().__init__()
        self._rows, self._height = rows, height

    def forward(self, *inputs: Any) -> Any:
        return eager(SelectedRows(self._rows, inputs[0].value, self._height))

    def backward(self, *cotangents: Any) -> Any:
        return taken(cotangents[0], self._rows)


def rows_of(array: so.NDArray, rows: np.ndarray) -> jax.Array:
    """Some rows of a dense or row-sparse array, not recorded."""
    value = array.value
    if isinstance(value, SelectedRows) and not isinstance(value.rows, np.ndarray):
        value = merged(value)
    return values_at(value, rows)


def holds_rows(array: so.NDArray) -> bool:
    """Whether the value is row-sparse."""
    return array.type.kind is VarKind.SELECTED_ROWS


def is_marked(array: so.NDArray) -> bool:
    """Whether the gradient is stored in the array, instead of flowing on to what computed it."""
    return isinstance(array.source, so.NDArray)


def _is_recorded(array: so.NDArray) -> bool:
    return so.autograd.is_recording() and array.is_recorded


def taken(array: so.NDArray, rows: np.ndarray) -> so.NDArray:
    """Some rows of a dense or row-sparse array, whose gradient stores these rows."""
    if _is_recorded(array):
        result: so.NDArray = _Taken(rows, array.shape[0])(array)
        return result
    return eager(rows_of(array, rows))


def stored_at(values: so.NDArray, rows: np.ndarray, height: int) -> so.NDArray:
    """A row-sparse array of ``height`` rows that stores ``values`` at ``rows``."""
    if _is_recorded(values):
        result: so.NDArray = _Stored(rows, height)(values)
        return result
    return eager(SelectedRows(rows, values.value, height))
