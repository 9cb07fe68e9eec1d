"""Softmin, and the softmax of what a mask or a length leaves of each row."""

from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.attributes import Check
from registry.cases import booleans, case, integers, misuse, workload
from registry.errors import DTypeError, ShapeError
from registry.operator import Grads
from registry.ops.elementwise import where
from registry.ops.neural import SOFTMAX_CASES, Axis, divided, has_axis, through_softmax
from registry.ops.normalization import statistics_dtype
from registry.ops.reductions import sum as sum_over
from registry.shapes import normalize_axes, normalize_axis, strong_real_inexact
from registry.signature import Array
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var


def exponentials_over_sum(x: Array, axis: Axis) -> Array:
    """The softmax, and zeros where all of ``x`` along ``axis`` is minus infinity."""
    powers, total, _ = _exponentials(x, axis)
    return powers / total


def _exponentials(x: Array, axis: Axis) -> tuple[Array, Array, Array]:
    """``exp(x - largest)``, its sum or one for a zero sum, and ``largest`` or zero for none."""
    largest = lax.stop_gradient(jnp.max(x, axis, keepdims=True, initial=-jnp.inf))
    largest = jnp.where(largest == -jnp.inf, 0, largest)
    powers = jnp.exp(x - largest)
    total = jnp.sum(powers, axis, keepdims=True)
    return powers, jnp.where(total == 0, 1, total), largest


def _dtype_of_x(x: VarType) -> DType:
    return strong_real_inexact(x)


def _softmax(x: np.ndarray, axis: Axis) -> np.ndarray:
    """The softmax in NumPy, and zeros where all is minus infinity."""
    largest = np.max(x, axis, keepdims=True, initial=-np.inf)
    powers = np.exp(x - np.where(np.isinf(largest), 0, largest))
    total = np.sum(powers, axis, keepdims=True)
    return np.asarray(powers / np.where(total == 0, 1, total))


# softmin ---------------------------------------------------------------------------------------


def _softmin_reference(x: np.ndarray, *, axis: Axis, temperature: float) -> np.ndarray:
    return _softmax(-x / temperature, axis)


@op(
    shape=has_axis,
    dtype=_dtype_of_x,
    reference=_softmin_reference,
    cases=SOFTMAX_CASES,
)
def softmin(
    x: Array,
    *,
    axis: int | tuple[int, ...] = -1,
    temperature: Annotated[float, Check("be positive", lambda value: value > 0)] = 1.0,
) -> Array:
    """``softmax(-x / temperature)`` along ``axis``: the smallest entry has the largest share.

    Example:
        >>> import jax.numpy as jnp
        >>> softmin(jnp.asarray([0.0, 1000.0]))
        Array([1., 0.], dtype=float32)
    """
    return jax.nn.softmax(divided(-x, temperature), axis)


@softmin.gradient
def _softmin_gradient(out: Var, d_out: Var, *, axis: Axis, temperature: float) -> Grads:
    return {"x": -through_softmax(out, d_out, axis, temperature)}


# With a mask -----------------------------------------------------------------------------------


def _masked_shape(x: Shape, mask: Shape, *, axis: Axis) -> Shape:
    normalize_axes(axis, len(x))
    try:
        fits = np.broadcast_shapes(x, mask) == x
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(f"mask must broadcast to the shape of x, {x}, got {mask}")
    return x


def _masked_dtype(x: VarType, mask: VarType) -> DType:
    if mask.dtype != np.bool_:
        raise DTypeError(f"mask must be boolean, got {mask.dtype.name}")
    return _dtype_of_x(x)


def _masked(x: Array, mask: Array, temperature: float) -> Array:
    """``x / temperature`` in float32 at least, minus infinity where the mask is false."""
    wide = x.astype(statistics_dtype(x.dtype))
    return jnp.where(mask, divided(wide, temperature), -jnp.inf)


def _masked_softmax_reference(
    x: np.ndarray, mask: np.ndarray, *, axis: Axis, temperature: float
) -> np.ndarray:
    return _softmax(np.where(mask, x / temperature, -np.inf), axis)


def _masked_log_softmax_reference(x: np.ndarray, mask: np.ndarray, **how: Any) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(_masked_softmax_reference(x, mask, **how)))


_MASKED: list[dict[str, Any]] = [
    {"x": (3, 4), "mask": booleans(3, 4)},
    {"x": (2, 3, 4), "mask": booleans(3, 1), "axis": 1, "temperature": 0.5, "seed": 1},
    {"x": (0, 3), "mask": booleans(0, 3)},
]
_WHOLE: dict[str, Any] = {"x": (2, 3), "mask": np.ones(3, np.bool_), "axis": (0, 1)}
_MISUSES = [
    workload(x=(1024, 1000), mask=booleans(1024, 1000)),
    misuse("mask must broadcast to the shape of x, (3, 4), got (3,)", x=(3, 4), mask=booleans(3)),
    misuse("mask must be boolean, got int32", x=(3,), mask=integers(3, high=2)),
    misuse("axis must be in [-2, 2), got 2", x=(3, 4), mask=booleans(4), axis=2),
    misuse("attribute 'temperature' must be positive", x=(2,), mask=booleans(2), temperature=0.0),
    misuse("the inputs must be floating, got int32", x=integers(3, high=4), mask=booleans(3)),
    misuse("the inputs must be real", x=np.ones(3, np.complex64), mask=booleans(3)),
]


@op(
    shape=_masked_shape,
    dtype=_masked_dtype,
    reference=_masked_softmax_reference,
    cases=[*(case(**call, order=2) for call in _MASKED), case(**_WHOLE, order=1), *_MISUSES],
)
def masked_softmax(
    x: Array,
    mask: Array,
    *,
    axis: int | tuple[int, ...] = -1,
    temperature: Annotated[float, Check("be positive", lambda value: value > 0)] = 1.0,
) -> Array:
    """The softmax of ``x / temperature`` over the entries along ``axis`` where ``mask`` is true.

    The others are zero, and so is their gradient. Where nothing is left all are zero. ``mask``
    broadcasts to the shape of ``x``. The sum is computed in float32 at least.

    Example:
        >>> import jax.numpy as jnp
        >>> mask = jnp.asarray([[True, True, False], [False, False, False]])
        >>> masked_softmax(jnp.zeros((2, 3)), mask)
        Array([[0.5, 0.5, 0. ],
               [0. , 0. , 0. ]], dtype=float32)
    """
    return exponentials_over_sum(_masked(x, mask, temperature), axis).astype(x.dtype)


@masked_softmax.gradient
def _masked_softmax_gradient(out: Var, d_out: Var, *, axis: Axis, temperature: float) -> Grads:
    # That of the softmax: what is masked is zero in out, and so is its factor.
    return {"x": through_softmax(out, d_out, axis, temperature), "mask": None}


@op(
    shape=_masked_shape,
    dtype=_masked_dtype,
    reference=_masked_log_softmax_reference,
    # A mask makes infinities, of which there are no differences.
    cases=[*(case(**call, order=0) for call in _MASKED), case(**_WHOLE, order=2), *_MISUSES],
)
def masked_log_softmax(
    x: Array,
    mask: Array,
    *,
    axis: int | tuple[int, ...] = -1,
    temperature: Annotated[float, Check("be positive", lambda value: value > 0)] = 1.0,
) -> Array:
    """``log(masked_softmax(x, mask))``, accurate where that underflows.

    Where ``mask`` is false it is minus infinity, and constant: nothing flows back from there.

    Example:
        >>> import jax.numpy as jnp
        >>> masked_log_softmax(jnp.asarray([0.0, 1000.0, 5.0]), jnp.asarray([True, True, False]))
        Array([-1000.,     0.,   -inf], dtype=float32)
    """
    masked = _masked(x, mask, temperature)
    _, total, largest = _exponentials(masked, axis)
    logs = jnp.where(mask, masked, 0) - largest - jnp.log(total)
    return jnp.where(mask, logs, -jnp.inf).astype(x.dtype)


@masked_log_softmax.gradient
def _masked_log_softmax_gradient(
    x: Var, mask: Var, d_out: Var, *, axis: Axis, temperature: float
) -> Grads:
    # As without a mask, over the cotangents of what is left; the softmax is zero elsewhere.
    d = where(mask, d_out, 0.0)
    shares = masked_softmax(x, mask, axis=axis, temperature=temperature)
    by_scaled = d - shares * sum_over(d, axis=axis, keepdims=True)
    return {"x": divided(by_scaled, temperature), "mask": None}


# With a length ---------------------------------------------------------------------------------


def _length_shape(x: Shape, length: Shape, *, axis: int) -> Shape:
    at = normalize_axis(axis, len(x))
    rows = (*x[:at], *x[at + 1 :])
    if length != rows:
        raise ShapeError(f"length must have shape {rows} for x of {x}, got {length}")
    return x


def _length_dtype(x: VarType, length: VarType) -> DType:
    if length.dtype.kind not in "iu":
        raise DTypeError(f"length must be integers, got {length.dtype.name}")
    return _dtype_of_x(x)


def _length_reference(
    x: np.ndarray, length: np.ndarray, *, axis: int, temperature: float
) -> np.ndarray:
    rows = np.moveaxis(x, axis, -1)
    kept = np.arange(rows.shape[-1]) < length[..., None]
    return np.moveaxis(_softmax(np.where(kept, rows / temperature, -np.inf), -1), -1, axis)


@op(
    shape=_length_shape,
    dtype=_length_dtype,
    reference=_length_reference,
    cases=[
        case(x=(3, 4), length=integers(3, high=6), order=2),
        case(x=(2, 4, 3), length=integers(2, 3, high=5), axis=1, temperature=0.5, order=1),
        case(x=(4,), length=integers(low=2, high=3, dtype="uint8"), order=1),
        case(x=(0, 3), length=integers(0, high=3), order=1),
        workload(x=(1024, 1000), length=integers(1024, high=1001)),
        misuse("length must have shape (3,) for x of (3, 4)", x=(3, 4), length=integers(4, high=3)),
        misuse("length must be integers, got float", x=(3, 4), length=(3,)),
        misuse("axis must be in [-2, 2), got 2", x=(3, 4), length=integers(3, high=3), axis=2),
        misuse(
            "attribute 'temperature' must be positive",
            x=(3, 4),
            length=integers(3, high=3),
            temperature=-1.0,
        ),
        misuse("the inputs must be floating", x=integers(2, 3, high=4), length=integers(2, high=3)),
    ],
)
def softmax_with_length(
    x: Array,
    length: Array,
    *,
    axis: int = -1,
    temperature: Annotated[float, Check("be positive", lambda value: value > 0)] = 1.0,
) -> Array:
    """The softmax of ``x / temperature`` over the first ``length`` entries along ``axis``.

    The others are zero, and so is their gradient; a length of zero leaves zeros alone. ``length``
    has the shape of ``x`` without ``axis``. The sum is computed in float32 at least.

    Example:
        >>> import jax.numpy as jnp
        >>> softmax_with_length(jnp.zeros((2, 3)), jnp.asarray([2, 1]))
        Array([[0.5, 0.5, 0. ],
               [1. , 0. , 0. ]], dtype=float32)
    """
    places = lax.broadcasted_iota(np.int32, x.shape, axis % x.ndim)
    kept = places < jnp.expand_dims(length, axis)
    return exponentials_over_sum(_masked(x, kept, temperature), axis).astype(x.dtype)


@softmax_with_length.gradient
def _softmax_with_length_gradient(out: Var, d_out: Var, *, axis: int, temperature: float) -> Grads:
    return {"x": through_softmax(out, d_out, axis, temperature), "length": None}
