"""Operators that select entries by index, and their adjoints, which put entries back."""

import math
from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, distinct, integers, misuse, workload
from registry.errors import AttributeValueError, DTypeError, KindError, ShapeError
from registry.operator import row_kernels
from registry.operator.attributes import Check
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.reshaping import permute_dims
from registry.row_samples import selected_rows
from registry.shapes import (
    canonical,
    default_float,
    default_int,
    normalize_axis,
    numeric,
    real,
    reduced,
    require_held,
)
from registry.table import op
from registry.types import (
    DType,
    Shape,
    VarKind,
    VarType,
    integer_limits,
    is_inexact,
    is_integer,
    is_unsigned,
)
from registry.values import SelectedRows
from registry.var import Var

Mode = Literal["fill", "clip", "wrap"]
"""The treatment of an out-of-bounds index: a fill value, the nearest entry, or wrapping around."""


def require_integers(indices: VarType, slot: str = "ids") -> None:
    """Raises unless the value in ``slot`` holds integers."""
    if not is_integer(indices.dtype):
        raise DTypeError(f"{slot} must be integers, got {indices.dtype.name}")


def wide_index(ids: Array) -> Array:
    """``ids`` in a dtype of at least 32 bits, which holds the length of any axis."""
    ids = jnp.asarray(ids)
    return ids.astype(np.int32) if ids.dtype.itemsize < 4 else ids


def never_weak(x: Array) -> Array:
    """``x`` as an array that is not weakly typed, even if it was a Python number."""
    x = jnp.asarray(x)
    return x.astype(x.dtype)


def wide_index_dtype(ids: VarType) -> DType:
    """The dtype of ``wide_index(ids)``."""
    return np.dtype(np.int32) if ids.dtype.itemsize < 4 else ids.dtype


# take and add_rows -----------------------------------------------------------------------------


def _take_shape(x: Shape, ids: Shape, *, axis: int, mode: Mode) -> Shape:
    at = normalize_axis(axis, len(x))
    if x[at] == 0 and mode != "fill":
        raise ShapeError(f"axis {axis} of x must not be empty with mode={mode!r}, got shape {x}")
    return (*x[:at], *ids, *x[at + 1 :])


def _take_dtype(
    x: VarType, ids: VarType, *, axis: int, fill_value: float | None
) -> tuple[DType, bool]:
    require_integers(ids)
    if x.kind is VarKind.SELECTED_ROWS and normalize_axis(axis, x.ndim) != 0:
        raise KindError(f"axis must be 0 where x is selected_rows, got {axis}")
    require_held("fill_value", fill_value, x.dtype)
    return x.dtype, x.weak


def _take_reference(
    x: np.ndarray, ids: np.ndarray, *, axis: int, mode: Mode, fill_value: float | None
) -> np.ndarray:
    if mode != "fill":
        return np.take(x, ids, axis, mode=mode)
    height = x.shape[axis]
    beyond = np.broadcast_to(nothing(x.dtype, fill_value), np.delete(x.shape, axis)).astype(x.dtype)
    rows = np.concatenate([x, np.expand_dims(beyond, axis)], axis)
    ids = np.where((-height <= ids) & (ids < height), ids % max(height, 1), height)
    return np.take(rows, ids, axis)


def nothing(dtype: DType, fill_value: float | None) -> Any:
    """The NumPy value that represents an entry beyond an axis."""
    if fill_value is not None:
        return fill_value
    if dtype == np.bool_ or is_inexact(dtype):
        return True if dtype == np.bool_ else math.nan
    return integer_limits(dtype)[is_unsigned(dtype)]


@op(
    shape=_take_shape,
    dtype=_take_dtype,
    reference=_take_reference,
    aliases=["gather"],
    cases=[
        case(x=(5, 3), ids=integers(4, high=5)),
        case(x=(2, 5, 3), ids=integers(2, 2, high=5), axis=1),
        case(x=(3, 5), ids=integers(low=-5, high=5), axis=-1),
        case(x=(4,), ids=integers(6, low=-9, high=9), mode="clip"),
        case(x=(4,), ids=integers(6, low=-9, high=9), mode="wrap"),
        case(x=(5, 3), ids=integers(0, high=5)),
        case(x=(2, 4), ids=integers(9, low=-7, high=7), axis=1, fill_value=0.0),
        case(x=(2, 0), ids=integers(3, high=5), axis=1, fill_value=2.0, order=1),
        case(x=integers(5, high=9), ids=integers(9, high=9)),
        case(x=(300,), ids=integers(6, high=256, dtype="uint8"), mode="clip", order=1),
        case(x=(300,), ids=integers(6, low=-128, high=128, dtype="int8"), mode="wrap", order=1),
        case(x=selected_rows(5, 2, height=3), ids=integers(4, low=-5, high=5), fill_value=0.0),
        workload(x=(100000, 64), ids=integers(20000, high=100000)),
        misuse("axis must be in [-2, 2), got 2", x=(5, 3), ids=integers(4, high=5), axis=2),
        misuse("ids must be integers, got float", x=(5, 3), ids=(4,)),
        misuse("did you mean 'clip'", x=(5,), ids=integers(4, high=5), mode="clop"),
        misuse("axis 0 of x must not be empty", x=(0, 2), ids=integers(1, high=2), mode="clip"),
    ],
)
def take(
    x: Array,
    ids: Array,
    *,
    axis: int = 0,
    mode: Literal["fill", "clip", "wrap"] = "fill",
    fill_value: float | None = None,
) -> Array:
    """Selects the entries ``ids`` of ``x`` along ``axis``; the axes of ``ids`` replace that axis.

    ``mode`` determines the result for an index out of bounds: ``fill`` gives ``fill_value``
    (negative indices count from the end), ``clip`` the nearest entry, and ``wrap`` wraps around. By
    default ``fill_value`` is NaN for inexact dtypes, the smallest value for signed integers, the
    largest for unsigned integers, and True for booleans.

    Example:
        >>> import jax.numpy as jnp
        >>> take(jnp.asarray([10.0, 20.0, 30.0]), jnp.asarray([2, 0]))
        Array([30., 10.], dtype=float32)
    """
    x, ids = jnp.asarray(x), wide_index(ids)
    if x.shape[axis] == 0:  # XLA cannot gather from an empty axis, not even the fill value
        x, ids = one_long(x, axis), jnp.ones_like(ids)
    taken = jnp.take(x, ids.reshape(-1), axis=axis, mode=mode, fill_value=fill_value)
    # JAX gives the result of an empty x and empty ids the shape of x, so the axes are split here.
    return taken.reshape(_take_shape(x.shape, ids.shape, axis=axis, mode=mode))


def one_long(x: Array, axis: int) -> Array:
    """``x``, which is empty along ``axis``, extended by one zero there."""
    edges = [(0, int(i == axis % x.ndim), 0) for i in range(x.ndim)]
    return lax.pad(x, lax.full_like(x, 0, shape=()), edges)


@take.on_rows("x")
def _take_of_rows(
    x: SelectedRows, ids: Array, *, axis: int, mode: Mode, fill_value: float | None
) -> Array:
    del axis  # it is the first
    ids = wide_index(ids)
    rows = _row_numbers(ids, x.height, mode)
    entries = row_kernels.found_in(x, rows)
    beyond = (rows == x.height).reshape(ids.shape + (1,) * (entries.ndim - ids.ndim))
    return jnp.where(beyond, jnp.asarray(nothing(x.dtype, fill_value), x.dtype), entries)


def _row_numbers(ids: Array, height: int, mode: Mode) -> Array:
    """The row numbers that ``ids`` denote; ``height`` for those out of bounds."""
    if mode == "clip":
        return jnp.clip(ids, 0, height - 1)
    if mode == "wrap":
        return ids % height
    if is_unsigned(ids.dtype):
        return jnp.minimum(ids, height).astype(np.int32)
    inside = (ids < height) & (ids >= -height)
    return jnp.where(inside, jnp.where(ids < 0, ids + height, ids), height)


@take.gradient
def _take_gradient(x: Var, ids: Var, d_out: Var, *, axis: int, mode: Mode) -> Grads:
    at, height = axis % x.ndim, x.shape[axis]
    if at == 0:
        sparse = x.kind is VarKind.SELECTED_ROWS
        return {"x": add_rows(d_out, ids, height=height, mode=mode, sparse=sparse), "ids": None}
    # add_rows adds along the first axis: bring the axes of ids to the front, and the sum back.
    front = tuple(range(at, at + ids.ndim))
    rest = (*range(at), *range(at + ids.ndim, d_out.ndim))
    rows = add_rows(permute_dims(d_out, axes=(*front, *rest)), ids, height=height, mode=mode)
    back = (*range(1, at + 1), 0, *range(at + 1, x.ndim))
    return {"x": permute_dims(rows, axes=back), "ids": None}


def _add_rows_shape(values: Shape, ids: Shape, *, height: int, mode: Mode) -> Shape:
    if values[: len(ids)] != ids:
        raise ShapeError(f"values must begin with the shape of ids, got {values} and {ids}")
    if height < 0:
        raise AttributeValueError(f"height must not be negative, got {height}")
    if height == 0 and mode != "fill":
        raise AttributeValueError(f"height must be positive with mode={mode!r}, got 0")
    return (height, *values[len(ids) :])


def _add_rows_dtype(values: VarType, ids: VarType) -> DType:
    require_integers(ids)
    return numeric(values)[0]


def _add_rows_reference(
    values: np.ndarray, ids: np.ndarray, *, height: int, mode: Mode = "fill", sparse: bool = False
) -> np.ndarray:
    del sparse
    out = np.zeros((height, *values.shape[ids.ndim :]), values.dtype)
    ids = ids.astype(np.int64)
    kept = (-height <= ids) & (ids < height) if mode == "fill" else np.ones(ids.shape, bool)
    rows = np.clip(ids, 0, height - 1) if mode == "clip" else ids % max(height, 1)
    np.add.at(out, rows[kept], values[kept])
    return out


@op(
    shape=_add_rows_shape,
    dtype=_add_rows_dtype,
    reference=_add_rows_reference,
    cases=[
        case(values=(4, 3), ids=integers(4, high=5), height=5),
        case(values=(2, 2, 3), ids=integers(2, 2, low=-5, high=5), height=5),
        case(values=(), ids=integers(high=5), height=5),
        case(values=(9,), ids=integers(9, low=-7, high=7), height=4),
        case(values=(2, 3), ids=integers(2, high=5), height=0, order=1),
        case(values=(6,), ids=integers(6, low=-9, high=9), height=4, mode="clip"),
        case(values=(6,), ids=integers(6, low=-9, high=9), height=4, mode="wrap"),
        case(values=(0, 3), ids=integers(0, high=5), height=2),
        case(values=(6,), ids=integers(6, high=256, dtype="uint8"), height=300, mode="clip"),
        case(
            values=(6,),
            ids=integers(6, low=-128, high=128, dtype="int8"),
            height=300,
            mode="wrap",
        ),
        case(values=(6,), ids=integers(6, low=-128, high=128, dtype="int8"), height=300),
        case(values=(2, 2, 3), ids=integers(2, 2, low=-6, high=6), height=5, sparse=True),
        workload(values=(20000, 64), ids=integers(20000, high=100000), height=100000),
        misuse(
            "values must begin with the shape of ids, got (3, 4) and (4,)",
            values=(3, 4),
            ids=integers(4, high=5),
            height=5,
        ),
        misuse("ids must be integers, got float", values=(4, 3), ids=(4,), height=5),
        misuse("height must not be", values=(1,), ids=integers(1, high=5), height=-1),
        misuse("height must be", values=(1,), ids=integers(1, high=5), height=0, mode="wrap"),
    ],
)
def add_rows(
    values: Array,
    ids: Array,
    *,
    height: int,
    mode: Literal["fill", "clip", "wrap"] = "fill",
    sparse: bool = False,
) -> Array | SelectedRows:
    """Adds ``values`` to the rows ``ids`` of an array of zeros with ``height`` rows.

    This is the adjoint of ``take`` along the first axis: a row that is named twice receives the
    sum. ``mode`` is as in ``take``; with ``fill``, values for rows outside ``range(height)`` are
    dropped. With ``sparse`` the result is a ``SelectedRows``: the same array, of which only the
    named rows are stored.

    Example:
        >>> import jax.numpy as jnp
        >>> add_rows(jnp.asarray([1.0, 2.0, 3.0]), jnp.asarray([0, 2, 0]), height=3)
        Array([4., 0., 2.], dtype=float32)
    """
    values, ids = jnp.asarray(values), wide_index(ids)
    if sparse:
        flat = values.reshape(ids.size, *values.shape[ids.ndim :])
        return SelectedRows(_row_numbers(ids, height, mode).reshape(-1), flat, height)
    out = jnp.zeros((height, *values.shape[ids.ndim :]), values.dtype)
    if height == 0:
        return out
    if mode == "clip":
        ids = jnp.clip(ids, 0, height - 1)
    elif mode == "wrap":
        ids = ids % height
    return out.at[ids].add(values, mode="drop")


@add_rows.kind
def _add_rows_kind(*, sparse: bool) -> VarKind:
    return VarKind.SELECTED_ROWS if sparse else VarKind.LOD_TENSOR


@add_rows.gradient
def _add_rows_gradient(ids: Var, d_out: Var, *, mode: Mode) -> Grads:
    if mode == "fill":  # dropped values receive no gradient
        return {"values": take(d_out, ids, fill_value=0.0), "ids": None}
    return {"values": take(d_out, ids, axis=0, mode=mode), "ids": None}


# one_hot, argmax and argmin --------------------------------------------------------------------


def _one_hot_shape(ids: Shape, *, num_classes: int, axis: int) -> Shape:
    at = normalize_axis(axis, len(ids) + 1)
    return (*ids[:at], num_classes, *ids[at:])


def _one_hot_dtype(ids: VarType, *, dtype: DType | None) -> DType:
    require_integers(ids)
    return default_float() if dtype is None else canonical(dtype)


def _one_hot_reference(
    ids: np.ndarray, *, num_classes: int, axis: int = -1, dtype: DType | None = None
) -> np.ndarray:
    hot = np.equal(ids[..., None], np.arange(num_classes))
    return np.asarray(np.moveaxis(hot, -1, axis), default_float() if dtype is None else dtype)


@op(
    shape=_one_hot_shape,
    dtype=_one_hot_dtype,
    reference=_one_hot_reference,
    cases=[
        case(ids=integers(4, high=3), num_classes=3),
        case(ids=integers(2, 4, low=-1, high=5), num_classes=3, axis=0),
        case(ids=integers(high=3), num_classes=3, dtype="int32"),
        case(ids=integers(2, 3, high=3), num_classes=2, axis=1, dtype="bool"),
        case(ids=integers(0, high=3), num_classes=3),
        case(ids=integers(4, high=256, dtype="uint8"), num_classes=300),
        misuse("ids must be integers, got float", ids=(4,), num_classes=3),
        misuse("axis must be in [-2, 2), got 2", ids=integers(4, high=3), num_classes=3, axis=2),
        misuse("'num_classes' must be at least 0, got -1", ids=integers(4, high=3), num_classes=-1),
    ],
)
def one_hot(
    ids: Array,
    *,
    num_classes: Annotated[int, Check("be at least 0", lambda count: count >= 0)],
    axis: int = -1,
    dtype: np.dtype | None = None,
) -> Array:
    """One-hot encoding: one at the position of each id along the new ``axis``, zero elsewhere.

    An id outside ``range(num_classes)`` gives zeros. ``dtype`` defaults to the default floating
    dtype.

    Example:
        >>> import jax.numpy as jnp
        >>> one_hot(jnp.asarray([1, 0]), num_classes=3)
        Array([[0., 1., 0.],
               [1., 0., 0.]], dtype=float32)
    """
    of = default_float() if dtype is None else canonical(dtype)
    return jax.nn.one_hot(wide_index(ids), num_classes, dtype=of, axis=axis)


one_hot.no_gradient("its input is an integer")


def _position_shape(x: Shape, *, axis: int | None, keepdims: bool) -> Shape:
    out = reduced(x, axis=axis, keepdims=keepdims)
    if 0 in (x if axis is None else (x[axis],)):
        raise ShapeError(f"the reduced axes must not be empty, got shape {x}")
    return out


def _position_dtype(x: VarType) -> DType:
    real(x)
    return default_int()


_POSITION_CASES = [
    case(x=distinct(3, 4)),
    case(x=distinct(3, 4), axis=-1),
    case(x=distinct(3, 4), axis=0, keepdims=True),
    case(x=(0, 3), axis=1),
    case(x=integers(6, high=3)),
    misuse("axis must be in [-2, 2), got 2", x=(3, 4), axis=2),
    misuse("the reduced axes must not be empty, got shape (0, 3)", x=(0, 3), axis=0),
    misuse("the inputs must be real, got complex64", x=np.ones(2, np.complex64)),
]


@op(
    shape=_position_shape,
    dtype=_position_dtype,
    reference=np.argmax,
    cases=_POSITION_CASES,
)
def argmax(x: Array, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Index of the largest entry along ``axis``, the first in case of ties; NaN counts as largest.

    Without ``axis`` it is the index among all entries in row-major order.

    Example:
        >>> import jax.numpy as jnp
        >>> argmax(jnp.asarray([[1.0, 3.0], [4.0, 2.0]]), axis=1)
        Array([1, 0], dtype=int32)
    """
    return jnp.argmax(x, axis=axis, keepdims=keepdims)


argmax.no_gradient("its result is an integer")


@op(
    shape=_position_shape,
    dtype=_position_dtype,
    reference=np.argmin,
    cases=_POSITION_CASES,
)
def argmin(x: Array, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Index of the smallest entry along ``axis``, the first in case of ties; NaN counts as least.

    Without ``axis`` it is the index among all entries in row-major order.

    Example:
        >>> import jax.numpy as jnp
        >>> argmin(jnp.asarray([[1.0, 3.0], [4.0, 2.0]]), axis=1)
        Array([0, 1], dtype=int32)
    """
    return jnp.argmin(x, axis=axis, keepdims=keepdims)


argmin.no_gradient("its result is an integer")
