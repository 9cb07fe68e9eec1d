"""Gathering of entries by index arrays, and the adjoints that add entries back."""

from typing import Literal

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, misuse, workload
from registry.errors import AttributeValueError, ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import broadcast_to, unbroadcast
from registry.ops.core.indexing import (
    never_weak,
    nothing,
    one_long,
    require_integers,
    wide_index,
    wide_index_dtype,
)
from registry.ops.core.reshaping import Several, reshape
from registry.shapes import listed, normalize_axis, numeric, reduced, require_held
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var, filled

# take_along_axis and scatter_add ---------------------------------------------------------------


def _put(shape: Shape, axis: int, length: int) -> Shape:
    """``shape`` with another length at ``axis``, counted from the front."""
    return (*shape[:axis], length, *shape[axis + 1 :])


def _broadcasts(shape: Shape, to: Shape) -> bool:
    return len(shape) == len(to) and all(n in (1, m) for n, m in zip(shape, to, strict=True))


def _take_along_axis_shape(x: Shape, indices: Shape, *, axis: int) -> Shape:
    at = normalize_axis(axis, len(x))
    if len(indices) == len(x):
        beside = _put(x, at, 1), _put(indices, at, 1)
        both = tuple(n if m == 1 else m for m, n in zip(*beside, strict=True))
        if all(_broadcasts(one, both) for one in beside):
            return _put(both, at, indices[at])
    raise ShapeError(
        f"indices must have the axes of x and broadcast with x beside axis {axis}, got {indices} "
        f"and {x}"
    )


def _take_dtype(x: VarType, indices: VarType, *, fill_value: float | None) -> tuple[DType, bool]:
    require_integers(indices, "indices")
    require_held("fill_value", fill_value, x.dtype)
    return x.dtype, x.weak


def _take_along_axis_reference(
    x: np.ndarray, indices: np.ndarray, *, axis: int, fill_value: float | None
) -> np.ndarray:
    out = np.full(
        _take_along_axis_shape(x.shape, indices.shape, axis=axis),
        nothing(x.dtype, fill_value),
        x.dtype,
    )
    at, length = axis % x.ndim, x.shape[axis]
    x = np.broadcast_to(x, _put(out.shape, at, length))
    indices = np.broadcast_to(indices, out.shape)
    for place in np.ndindex(out.shape):
        if -length <= indices[place] < length:
            out[place] = x[_put(place, at, int(indices[place]))]
    return out


@op(
    shape=_take_along_axis_shape,
    dtype=_take_dtype,
    reference=_take_along_axis_reference,
    aliases=["index_sample"],
    cases=[
        case(x=(3, 4), indices=integers(3, 2, low=-4, high=4)),
        case(x=(3, 1, 2), indices=integers(1, 4, 2, low=-4, high=4), axis=0, fill_value=0.0),
        case(x=(5, 3), indices=integers(4, 1, high=5), axis=0),
        case(x=(4,), indices=integers(0, high=4)),
        case(x=(2, 0), indices=integers(2, 3, high=4), order=1),
        case(x=integers(3, 4, high=9), indices=integers(3, 2, high=6)),
        case(x=(300,), indices=integers(6, high=256, dtype="uint8"), order=1),
        workload(x=(100000, 64), indices=integers(100000, 8, high=64)),
        misuse("axis must be in [-2, 2), got 2", x=(5, 3), indices=integers(5, 3, high=3), axis=2),
        misuse("indices must have the axes of x", x=(5, 3), indices=integers(5, high=3)),
        misuse("broadcast with x beside axis -1, got", x=(5, 3), indices=integers(4, 3, high=3)),
        misuse("indices must be integers, got float", x=(4,), indices=(4,)),
        misuse(
            "fill_value must be of dtype int32, got 0.5",
            x=integers(4, high=9),
            indices=integers(4, high=9),
            fill_value=0.5,
        ),
    ],
)
def take_along_axis(
    x: Array, indices: Array, *, axis: int = -1, fill_value: float | None = None
) -> Array:
    """Selects entries of ``x`` along ``axis`` by an array of indices with the same axes.

    For the last axis: ``out[..., j] = x[..., indices[..., j]]``. Both arrays have the same number
    of axes and broadcast along all axes but ``axis``. Negative indices count from the end. An index
    out of bounds gives ``fill_value``: by default NaN for inexact dtypes, the smallest value for
    signed integers, and the largest for unsigned integers.

    Source: Python array API standard 2024.12, ``take_along_axis``.

    Example:
        >>> import jax.numpy as jnp
        >>> take_along_axis(jnp.asarray([[1.0, 2.0], [3.0, 4.0]]), jnp.asarray([[1], [0]]))
        Array([[2.],
               [3.]], dtype=float32)
    """
    x, indices = jnp.asarray(x), wide_index(indices)
    if x.shape[axis] == 0:
        x, indices = one_long(x, axis), jnp.ones_like(indices)
    return jnp.take_along_axis(x, indices, axis, mode="fill", fill_value=fill_value)


@take_along_axis.gradient
def _take_along_axis_gradient(x: Var, indices: Var, d_out: Var, *, axis: int) -> Grads:
    zeros = broadcast_to(filled(x, 0.0), shape=_put(d_out.shape, axis % x.ndim, x.shape[axis]))
    d_x = scatter_add(zeros, indices, d_out, axis=axis)
    return {"x": unbroadcast(d_x, x), "indices": None}


def _scatter_add_shape(x: Shape, indices: Shape, updates: Shape, *, axis: int) -> Shape:
    at = normalize_axis(axis, len(x))
    if len(updates) != len(x) or _put(updates, at, 1) != _put(x, at, 1):
        raise ShapeError(
            f"updates must have the shape of x beside axis {axis}, got {updates} and {x}"
        )
    if not _broadcasts(indices, updates) or indices[at] != updates[at]:
        raise ShapeError(
            f"indices must broadcast to the shape of updates beside axis {axis}, got {indices} and "
            f"{updates}"
        )
    return x


def scattered_dtype(x: VarType, indices: VarType, updates: VarType) -> DType:
    """The dtype of ``x``, to which ``updates`` are added."""
    require_integers(indices, "indices")
    return numeric(x, updates)[0]


def _scatter_add_reference(
    x: np.ndarray, indices: np.ndarray, updates: np.ndarray, *, axis: int
) -> np.ndarray:
    out, at, length = x.astype(np.result_type(x, updates)), axis % x.ndim, x.shape[axis]
    indices = np.broadcast_to(indices, updates.shape)
    for place in np.ndindex(updates.shape):
        if -length <= indices[place] < length:
            out[_put(place, at, int(indices[place]))] += updates[place]
    return out


@op(
    shape=_scatter_add_shape,
    dtype=scattered_dtype,
    reference=_scatter_add_reference,
    cases=[
        case(x=(3, 4), indices=integers(3, 6, low=-5, high=5), updates=(3, 6)),
        case(x=(4, 2, 3), indices=integers(5, 1, 3, low=-5, high=5), updates=(5, 2, 3), axis=0),
        case(x=(2, 4), indices=integers(2, 0, high=4), updates=(2, 0)),
        case(x=(2, 0), indices=integers(2, 3, high=4), updates=(2, 3), order=1),
        case(x=integers(4, high=9), indices=integers(6, high=4), updates=integers(6, high=9)),
        case(x=(300,), indices=integers(6, low=-128, high=128, dtype="int8"), updates=(6,)),
        workload(x=(100000, 64), indices=integers(100000, 8, high=64), updates=(100000, 8)),
        misuse("axis must be in", x=(5,), indices=integers(5, high=3), updates=(5,), axis=1),
        misuse(
            "updates must have the shape of x beside axis -1, got (4, 2) and (5, 3)",
            x=(5, 3),
            indices=integers(4, 2, high=3),
            updates=(4, 2),
        ),
        misuse("indices must broadcast to", x=(5,), indices=integers(1, high=3), updates=(4,)),
        misuse("indices must be integers, got float", x=(4,), indices=(4,), updates=(4,)),
        misuse(
            "the inputs must be numbers, got bool",
            x=np.zeros(4, bool),
            indices=integers(1, high=3),
            updates=np.zeros(1, bool),
        ),
    ],
)
def scatter_add(x: Array, indices: Array, updates: Array, *, axis: int = -1) -> Array:
    """Adds ``updates`` to the entries ``indices`` of ``x`` along ``axis``.

    For the last axis: ``out[..., indices[..., j]] += updates[..., j]``. This is the adjoint of
    ``take_along_axis``: an entry that is named twice receives the sum. ``indices`` have the shape
    of ``updates``, or length 1 along axes other than ``axis``. Negative indices count from the end;
    updates out of bounds are dropped.

    Example:
        >>> import jax.numpy as jnp
        >>> scatter_add(jnp.zeros(3), jnp.asarray([0, 2, 0]), jnp.asarray([1.0, 2.0, 3.0]))
        Array([4., 0., 2.], dtype=float32)
    """
    dtype = jnp.result_type(x, updates)
    x, indices, updates = jnp.asarray(x, dtype), wide_index(indices), jnp.asarray(updates, dtype)
    if 0 in x.shape:
        return x
    at = axis % x.ndim
    whole = tuple(i for i, n in enumerate(indices.shape) if n == 1 and i != at)
    kept = [i for i in range(x.ndim) if i not in whole]
    batch = tuple(i for i in kept if i != at)
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=whole,
        inserted_window_dims=(at,),
        scatter_dims_to_operand_dims=(at,),
        operand_batching_dims=batch,
        scatter_indices_batching_dims=tuple(kept.index(i) for i in batch),
    )
    places = jnp.where(indices < 0, indices + x.shape[at], indices)
    places = jnp.expand_dims(jnp.squeeze(places, whole), -1)
    out: Array = lax.scatter_add(x, places, updates, numbers, mode="drop")
    return out


@scatter_add.gradient
def _scatter_add_gradient(x: Var, indices: Var, updates: Var, d_out: Var, *, axis: int) -> Grads:
    return {
        "x": unbroadcast(d_out, x),
        "indices": None,
        "updates": lambda: unbroadcast(
            take_along_axis(d_out, indices, axis=axis, fill_value=0.0), updates
        ),
    }


# gather_nd and scatter_nd ----------------------------------------------------------------------


def _split(x: Shape, indices: Shape, axis: int) -> tuple[Shape, Shape]:
    """The axes of ``indices`` except the coordinates, and the axes of ``x`` that are kept."""
    at = normalize_axis(axis, len(indices))
    if not 1 <= indices[at] <= len(x):
        raise ShapeError(
            f"indices must hold 1 to {len(x)} coordinates along axis {axis}, got shape {indices}"
        )
    return (*indices[:at], *indices[at + 1 :]), x[indices[at] :]


def _gather_nd_shape(x: Shape, indices: Shape, *, axis: int) -> Shape:
    named, kept = _split(x, indices, axis)
    return named + kept


def _gather_nd_reference(
    x: np.ndarray, indices: np.ndarray, *, axis: int, fill_value: float | None
) -> np.ndarray:
    named, kept = _split(x.shape, indices.shape, axis)
    out = np.full(named + kept, nothing(x.dtype, fill_value), x.dtype)
    for place in np.ndindex(named):
        entry = tuple(np.moveaxis(indices, axis, -1)[place].tolist())
        if all(-n <= i < n for i, n in zip(entry, x.shape, strict=False)):
            out[place] = x[entry]
    return out


@op(
    shape=_gather_nd_shape,
    dtype=_take_dtype,
    reference=_gather_nd_reference,
    cases=[
        case(x=(3, 4, 2), indices=integers(5, 2, low=-3, high=4)),
        case(x=(3, 4), indices=integers(2, 2, 3, low=-4, high=5), axis=0, fill_value=0.0),
        case(x=(5,), indices=integers(1, high=5)),
        case(x=(0, 3), indices=integers(2, 1, high=5), order=1),
        case(x=integers(4, high=9), indices=integers(3, 1, high=6)),
        workload(x=(100000, 64), indices=integers(20000, 1, high=100000)),
        misuse("must hold 1 to 2 coordinates", x=(5, 3), indices=integers(4, 3, high=3)),
        misuse("axis must be in [-2, 2), got 2", x=(5,), indices=integers(4, 1, high=3), axis=2),
        misuse("indices must be integers, got float", x=(4,), indices=(4, 1)),
    ],
)
def gather_nd(
    x: Array, indices: Array, *, axis: int = -1, fill_value: float | None = None
) -> Array:
    """Gathers entries or slices of ``x`` by their leading coordinates, listed in ``indices``.

    ``out[i..., j...] = x[indices[i..., 0], indices[i..., 1], ..., j...]``. The coordinates are
    listed along ``axis`` of ``indices``: the last one by default, as in Paddle and ONNX; ``axis=0``
    is MXNet's order. Negative coordinates count from the end. An entry out of bounds gives
    ``fill_value``: by default NaN for inexact dtypes, the smallest value for signed integers, and
    the largest for unsigned integers.

    Source: ONNX, operator ``GatherND``.

    Example:
        >>> import jax.numpy as jnp
        >>> x = jnp.asarray([[1.0, 2.0], [3.0, 4.0]])
        >>> gather_nd(x, jnp.asarray([[0, 1], [1, 1]]))
        Array([2., 4.], dtype=float32)
    """
    x, places = jnp.asarray(x), list(jnp.moveaxis(wide_index(indices), axis, 0))
    for i, place in enumerate(places):
        if x.shape[i] == 0:
            x, places[i] = one_long(x, i), jnp.ones_like(place)
    return x.at[tuple(places)].get(mode="fill", fill_value=fill_value)


@gather_nd.gradient
def _gather_nd_gradient(x: Var, indices: Var, d_out: Var, *, axis: int) -> Grads:
    return {"x": scatter_nd(d_out, indices, shape=x.shape, axis=axis), "indices": None}


def _scatter_nd_shape(updates: Shape, indices: Shape, *, shape: Shape, axis: int) -> Shape:
    if any(n < 0 for n in shape):
        raise AttributeValueError(f"shape must not be negative, got {shape}")
    named, kept = _split(shape, indices, axis)
    if updates != named + kept:
        raise ShapeError(f"updates must have shape {named + kept}, got {updates}")
    return shape


def _scatter_nd_dtype(updates: VarType, indices: VarType) -> DType:
    require_integers(indices, "indices")
    return numeric(updates)[0]


def _scatter_nd_reference(
    updates: np.ndarray, indices: np.ndarray, *, shape: Shape, axis: int
) -> np.ndarray:
    out = np.zeros(shape, updates.dtype)
    for place in np.ndindex(_split(shape, indices.shape, axis)[0]):
        entry = tuple(np.moveaxis(indices, axis, -1)[place].tolist())
        if all(-n <= i < n for i, n in zip(entry, shape, strict=False)):
            out[entry] += updates[place]
    return out


@op(
    shape=_scatter_nd_shape,
    dtype=_scatter_nd_dtype,
    reference=_scatter_nd_reference,
    cases=[
        case(updates=(5, 2), indices=integers(5, 2, low=-3, high=4), shape=(3, 4, 2)),
        case(updates=(9,), indices=integers(2, 9, low=-3, high=3), shape=(2, 2), axis=0),
        case(updates=(), indices=integers(1, high=5), shape=(5,)),
        case(updates=(3,), indices=integers(3, 1, high=5), shape=5, order=1),
        case(updates=(2, 3), indices=integers(2, 1, high=5), shape=(0, 3), order=1),
        case(updates=(0, 2), indices=integers(0, 1, high=3), shape=(3, 2), order=1),
        case(updates=integers(3, high=9), indices=integers(3, 1, high=6), shape=(4,)),
        workload(updates=(20000, 64), indices=integers(20000, 1, high=100000), shape=(100000, 64)),
        misuse(
            "updates must have shape (4, 3), got (4,)",
            updates=(4,),
            indices=integers(4, 1, high=3),
            shape=(5, 3),
        ),
        misuse("shape must not be", updates=(4,), indices=integers(4, 1, high=3), shape=(-5,)),
        misuse("indices must be integers, got float", updates=(4,), indices=(4, 1), shape=(5,)),
    ],
)
def scatter_nd(updates: Array, indices: Array, *, shape: Several, axis: int = -1) -> Array:
    """Adds ``updates`` to an array of zeros of ``shape`` at the coordinates ``indices``.

    This is the adjoint of ``gather_nd``, with its ``axis``: an entry that is named twice receives
    the sum. Negative coordinates count from the end; updates out of bounds are dropped.

    Example:
        >>> import jax.numpy as jnp
        >>> scatter_nd(jnp.asarray([1.0, 2.0, 4.0]), jnp.asarray([[0], [2], [0]]), shape=(3,))
        Array([5., 0., 2.], dtype=float32)
    """
    updates, places = jnp.asarray(updates), tuple(jnp.moveaxis(wide_index(indices), axis, 0))
    zeros = jnp.zeros(shape, updates.dtype)
    return zeros if 0 in shape else zeros.at[places].add(updates, mode="drop")


@scatter_nd.gradient
def _scatter_nd_gradient(indices: Var, d_out: Var, *, axis: int) -> Grads:
    return {"updates": gather_nd(d_out, indices, axis=axis, fill_value=0.0), "indices": None}


# pick ------------------------------------------------------------------------------------------


def _pick_shape(x: Shape, indices: Shape, *, axis: int, keepdims: bool) -> tuple[Shape, Shape]:
    kept, dropped = (reduced(x, axis=axis, keepdims=keeps) for keeps in (True, False))
    if indices not in (kept, dropped):
        raise ShapeError(f"indices must have shape {listed([dropped])} or {kept}, got {indices}")
    if x[axis] == 0:
        raise ShapeError(f"axis {axis} of x must not be empty, got shape {x}")
    return kept if keepdims else dropped, kept


def _pick_dtype(x: VarType, indices: VarType) -> list[object]:
    require_integers(indices, "indices")
    return [(x.dtype, x.weak), wide_index_dtype(indices)]


def _pick_reference(
    x: np.ndarray, indices: np.ndarray, *, axis: int, keepdims: bool, mode: str
) -> np.ndarray:
    kept = indices.reshape(reduced(x.shape, axis=axis, keepdims=True))
    places = np.clip(kept, 0, x.shape[axis] - 1) if mode == "clip" else kept % x.shape[axis]
    out = np.take_along_axis(x, places.astype(np.int64), axis)
    return out if keepdims else np.squeeze(out, axis)


@op(
    outputs=("out", "places"),
    hidden=("places",),
    shape=_pick_shape,
    dtype=_pick_dtype,
    reference=_pick_reference,
    cases=[
        case(x=(3, 4), indices=integers(3, low=-2, high=6)),
        case(x=(3, 4), indices=integers(1, 4, low=-2, high=6), axis=0, keepdims=True, mode="wrap"),
        case(x=(5,), indices=integers(high=5)),
        case(x=(0, 3), indices=integers(0, 1, high=5), order=1),
        case(x=(2, 300), indices=integers(2, high=256, dtype="uint8"), order=1),
        workload(x=(10000, 100), indices=integers(10000, high=100)),
        misuse("indices must have shape (5,) or (5, 1), got (4,)", x=(5, 3), indices=(4,)),
        misuse("axis 1 of x must not be empty", x=(5, 0), indices=integers(5, high=3), axis=1),
        misuse("axis must be in [-1, 1), got 1", x=(5,), indices=integers(high=3), axis=1),
        misuse("indices must be integers, got float", x=(5, 3), indices=(5,)),
    ],
)
def pick(
    x: Array,
    indices: Array,
    *,
    axis: int = -1,
    keepdims: bool = False,
    mode: Literal["clip", "wrap"] = "clip",
) -> tuple[Array, Array]:
    """Selects one entry of ``x`` along ``axis`` at each position of the other axes.

    For the last axis: ``out[...] = x[..., indices[...]]``. ``indices`` have the shape of ``x``
    without ``axis``, or with length 1 there; ``keepdims`` keeps that axis in the result. For an
    index out of bounds, ``clip`` takes the nearest entry and ``wrap`` wraps around.

    Example:
        >>> import jax.numpy as jnp
        >>> pick(jnp.asarray([[1.0, 2.0], [3.0, 4.0]]), jnp.asarray([1, 0]))
        Array([2., 3.], dtype=float32)
    """
    x, length = jnp.asarray(x), x.shape[axis]
    kept = wide_index(indices).reshape(reduced(x.shape, axis=axis, keepdims=True))
    places = jnp.clip(kept, 0, length - 1) if mode == "clip" else kept % length
    out = jnp.take_along_axis(x, places, axis, mode="promise_in_bounds")
    return (out if keepdims else jnp.squeeze(out, axis)), never_weak(places)


@pick.gradient
def _pick_gradient(x: Var, places: Var, d_out: Var, d_places: Var | None, *, axis: int) -> Grads:
    del d_places  # they are integers
    d_picked = reshape(d_out, shape=places.shape)
    return {"x": scatter_add(filled(x, 0.0), places, d_picked, axis=axis), "indices": None}
