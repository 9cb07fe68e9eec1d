"""Adding to and replacing rows of an array selected by index arrays."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse, workload
from registry.errors import ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import unbroadcast
from registry.ops.core.indexing import require_integers, take, wide_index, wide_index_dtype
from registry.ops.indexing.gathering import scattered_dtype
from registry.shapes import normalize_axis, strong
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var, filled


def _index_add_shape(x: Shape, indices: Shape, updates: Shape, *, axis: int) -> Shape:
    at = normalize_axis(axis, len(x))
    expected = (*x[:at], *indices, *x[at + 1 :])
    if updates != expected:
        raise ShapeError(f"updates must have shape {expected}, got {updates}")
    return x


def _named(
    x: np.ndarray, indices: np.ndarray, updates: np.ndarray, axis: int
) -> list[tuple[int, Any]]:
    """Each row index in row-major order, counted from the front, and its row of updates."""
    length = x.shape[axis]
    at = axis % x.ndim
    rows = np.moveaxis(updates.reshape(*x.shape[:at], indices.size, *x.shape[at + 1 :]), at, 0)
    return [
        (int(index) % length, row)
        for index, row in zip(indices.flat, rows, strict=True)
        if -length <= index < length
    ]


def _index_add_reference(
    x: np.ndarray, indices: np.ndarray, updates: np.ndarray, *, axis: int
) -> np.ndarray:
    out = x.astype(np.result_type(x, updates))
    for place, row in _named(x, indices, updates, axis):
        np.moveaxis(out, axis, 0)[place] += row
    return out


@op(
    shape=_index_add_shape,
    dtype=scattered_dtype,
    reference=_index_add_reference,
    cases=[
        case(x=(4, 3), indices=integers(7, low=-5, high=5), updates=(7, 3)),
        case(x=(2, 3, 2), indices=integers(2, 2, high=3), updates=(2, 2, 2, 2), axis=1, order=2),
        case(x=(4,), indices=integers(high=4), updates=()),
        case(x=(0, 2), indices=integers(3, high=4), updates=(3, 2), order=1),
        case(x=integers(4, high=9), indices=integers(6, high=4), updates=integers(6, high=9)),
        workload(x=(100000, 64), indices=integers(20000, high=100000), updates=(20000, 64)),
        misuse("axis must be in", x=(5,), indices=integers(5, high=3), updates=(5,), axis=1),
        misuse(
            "updates must have shape (4, 3), got (4, 2)",
            x=(5, 3),
            indices=integers(4, high=3),
            updates=(4, 2),
        ),
        misuse("indices must be integers, got float", x=(4,), indices=(4,), updates=(4,)),
    ],
)
def index_add(x: Array, indices: Array, updates: Array, *, axis: int = 0) -> Array:
    """Adds ``updates`` to the entries ``indices`` of ``x`` along ``axis``.

    For the first axis: ``out[indices[i]] += updates[i]``. ``updates`` have the shape of
    ``take(x, indices, axis=axis)``, whose adjoint gives the array that is added to ``x``. An entry
    that is named twice receives the sum. Negative indices count from the end; updates out of bounds
    are dropped.

    Example:
        >>> import jax.numpy as jnp
        >>> index_add(jnp.zeros(3), jnp.asarray([0, 2, 0]), jnp.asarray([1.0, 2.0, 3.0]))
        Array([4., 0., 2.], dtype=float32)
    """
    dtype = jnp.result_type(x, updates)
    x, updates = jnp.asarray(x, dtype), jnp.asarray(updates, dtype)
    if 0 in x.shape:
        return x
    return x.at[_rows(x, axis, wide_index(indices))].add(updates, mode="drop")


def _rows(x: Array, axis: int, indices: Array) -> tuple[slice | Array, ...]:
    """The index that selects entries of ``x`` along ``axis``."""
    return (*[slice(None)] * (axis % x.ndim), indices)


@index_add.gradient
def _index_add_gradient(x: Var, indices: Var, updates: Var, d_out: Var, *, axis: int) -> Grads:
    return {
        "x": unbroadcast(d_out, x),
        "indices": None,
        "updates": lambda: unbroadcast(take(d_out, indices, axis=axis, fill_value=0.0), updates),
    }


def _index_update_shape(
    x: Shape, indices: Shape, updates: Shape, *, axis: int
) -> tuple[Shape, Shape]:
    return _index_add_shape(x, indices, updates, axis=axis), indices


def _index_update_dtype(x: VarType, indices: VarType, updates: VarType) -> list[DType]:
    require_integers(indices, "indices")
    return [strong(x, updates), wide_index_dtype(indices)]


def _index_update_reference(
    x: np.ndarray, indices: np.ndarray, updates: np.ndarray, *, axis: int
) -> np.ndarray:
    out = x.astype(np.result_type(x, updates))
    for place, row in _named(x, indices, updates, axis):
        np.moveaxis(out, axis, 0)[place] = row
    return out


@op(
    outputs=("out", "places"),
    hidden=("places",),
    shape=_index_update_shape,
    dtype=_index_update_dtype,
    reference=_index_update_reference,
    cases=[
        case(x=(4, 3), indices=integers(7, low=-5, high=5), updates=(7, 3)),
        case(x=(2, 3, 2), indices=integers(2, 2, high=3), updates=(2, 2, 2, 2), axis=1, order=2),
        case(x=(4,), indices=integers(high=4), updates=()),
        case(x=(0, 2), indices=integers(3, high=4), updates=(3, 2), order=1),
        case(x=integers(4, high=9), indices=integers(6, high=4), updates=(6,)),
        workload(x=(100000, 64), indices=integers(20000, high=100000), updates=(20000, 64)),
        misuse("axis must be in", x=(5,), indices=integers(5, high=3), updates=(5,), axis=1),
        misuse(
            "updates must have shape (4, 3), got (4, 2)",
            x=(5, 3),
            indices=integers(4, high=3),
            updates=(4, 2),
        ),
        misuse("indices must be integers, got float", x=(4,), indices=(4,), updates=(4,)),
    ],
)
def index_update(x: Array, indices: Array, updates: Array, *, axis: int = 0) -> tuple[Array, Array]:
    """Replaces the entries ``indices`` of ``x`` along ``axis`` by ``updates``.

    For the first axis: ``out[indices[i]] = updates[i]``. ``updates`` have the shape of
    ``take(x, indices, axis=axis)``. If an entry is named several times, the last update in
    row-major order of ``indices`` is kept, and only that one receives a gradient. Negative indices
    count from the end; updates out of bounds are dropped.

    Example:
        >>> import jax.numpy as jnp
        >>> index_update(jnp.zeros(3), jnp.asarray([0, 2, 0]), jnp.asarray([1.0, 2.0, 3.0]))
        Array([3., 0., 2.], dtype=float32)
    """
    dtype = jnp.result_type(x, updates)
    x, updates = jnp.asarray(x, dtype), jnp.asarray(updates, dtype)
    places = _last_places(wide_index(indices), x.shape[axis])
    if 0 in x.shape:
        return x, places
    at = _rows(x, axis, places)
    return x.at[at].set(updates, mode="drop", unique_indices=True), places


def _last_places(indices: Array, length: int) -> Array:
    """``indices`` counted from the front; those that a later one repeats become out of bounds.

    The out-of-bounds indices are distinct as well, so the order of the scatter does not matter.
    """
    turn = jnp.arange(indices.size, dtype=np.int32).reshape(indices.shape)
    beyond = (length + turn).astype(indices.dtype)
    if length == 0:
        return beyond
    places = jnp.where(indices < 0, indices + length, indices)
    # An index that is still negative would count from the end once more.
    places = jnp.where((places < 0) | (places >= length), beyond, places)
    last = jnp.full(length, -1, turn.dtype).at[places].max(turn, mode="drop")
    last_here = last.at[places].get(mode="fill", fill_value=-1)
    return jnp.where(last_here == turn, places, beyond)


@index_update.gradient
def _index_update_gradient(
    x: Var,
    indices: Var,
    updates: Var,
    places: Var,
    d_out: Var,
    d_places: Var | None,
    *,
    axis: int,
) -> Grads:
    del d_places  # they are integers

    def kept() -> Var | None:
        zeros = filled(updates, 0.0)
        return unbroadcast(index_update(d_out, indices, zeros, axis=axis), x)

    return {
        "x": kept,
        "indices": None,
        "updates": lambda: unbroadcast(take(d_out, places, axis=axis, fill_value=0.0), updates),
    }
