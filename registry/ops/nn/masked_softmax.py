"""Softmin, and masked softmax, softmin and log-softmax."""

from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import booleans, case, integers, misuse, workload
from registry.errors import DTypeError, ShapeError
from registry.operator.attributes import Check
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.elementwise import where
from registry.ops.core.reductions import statistics_dtype
from registry.ops.core.reductions import sum as sum_over
from registry.ops.nn.softmax import SOFTMAX_CASES, Axis, divided, has_axis, through_softmax
from registry.shapes import normalize_axes, strong_real_inexact
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var


def exponentials_over_sum(x: Array, axis: Axis) -> Array:
    """The softmax; zeros where ``x`` is minus infinity, whatever the other entries are."""
    powers, total, _ = exponentials(x, axis)
    return jnp.where(x == -jnp.inf, 0, powers / total)


def exponentials(x: Array, axis: Axis) -> tuple[Array, Array, Array]:
    """``exp(x - largest)``, its sum (one if zero), and ``largest`` (zero if minus infinity)."""
    largest = lax.stop_gradient(jnp.max(x, axis, keepdims=True, initial=-jnp.inf))
    largest = jnp.where(largest == -jnp.inf, 0, largest)
    powers = jnp.exp(x - largest)
    total = jnp.sum(powers, axis, keepdims=True)
    return powers, jnp.where(total == 0, 1, total), largest


def dtype_of_x(x: VarType) -> DType:
    """The dtype of ``x``, which must be real and floating."""
    return strong_real_inexact(x)


def softmax_reference(x: np.ndarray, axis: Axis) -> np.ndarray:
    """The softmax in NumPy, with zeros where all entries are minus infinity."""
    largest = np.max(x, axis, keepdims=True, initial=-np.inf)
    powers = np.exp(x - np.where(np.isinf(largest), 0, largest))
    total = np.sum(powers, axis, keepdims=True)
    return np.asarray(powers / np.where(total == 0, 1, total))


# softmin ---------------------------------------------------------------------------------------


def _softmin_reference(x: np.ndarray, *, axis: Axis, temperature: float) -> np.ndarray:
    return softmax_reference(-x / temperature, axis)


@op(
    shape=has_axis,
    dtype=dtype_of_x,
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
    return dtype_of_x(x)


def masked(x: Array, mask: Array, temperature: float) -> Array:
    """``x / temperature`` in at least float32, minus infinity where the mask is false."""
    wide = x.astype(statistics_dtype(x.dtype))
    return jnp.where(mask, divided(wide, temperature), -jnp.inf)


def log_of_masked(x: Array, mask: Array, axis: Axis, temperature: float) -> Array:
    """The logarithm of the softmax over the unmasked entries, minus infinity elsewhere."""
    scaled = masked(x, mask, temperature)
    _, total, largest = exponentials(scaled, axis)
    logs = jnp.where(mask, scaled, 0) - largest - jnp.log(total)
    return jnp.where(mask, logs, -jnp.inf).astype(x.dtype)


def _masked_softmax_reference(
    x: np.ndarray, mask: np.ndarray, *, axis: Axis, temperature: float
) -> np.ndarray:
    return softmax_reference(np.where(mask, x / temperature, -np.inf), axis)


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
_MASKED_CASES = [
    case(**_MASKED[0]),
    *(case(**call, order=2) for call in _MASKED[1:]),
    case(**_WHOLE, order=1),
    *_MISUSES,
]


@op(
    shape=_masked_shape,
    dtype=_masked_dtype,
    reference=_masked_softmax_reference,
    cases=_MASKED_CASES,
)
def masked_softmax(
    x: Array,
    mask: Array,
    *,
    axis: int | tuple[int, ...] = -1,
    temperature: Annotated[float, Check("be positive", lambda value: value > 0)] = 1.0,
) -> Array:
    """Softmax of ``x / temperature`` over the entries along ``axis`` where ``mask`` is true.

    The other entries are zero, and so is their gradient. Where no entry is unmasked, all are zero.
    ``mask`` broadcasts to the shape of ``x``. The sum is computed in at least float32.

    Example:
        >>> import jax.numpy as jnp
        >>> mask = jnp.asarray([[True, True, False], [False, False, False]])
        >>> masked_softmax(jnp.zeros((2, 3)), mask)
        Array([[0.5, 0.5, 0. ],
               [0. , 0. , 0. ]], dtype=float32)
    """
    return exponentials_over_sum(masked(x, mask, temperature), axis).astype(x.dtype)


@masked_softmax.gradient
def _masked_softmax_gradient(
    mask: Var, out: Var, d_out: Var, *, axis: Axis, temperature: float
) -> Grads:
    return {"x": through_masked_softmax(mask, out, d_out, axis, temperature), "mask": None}


def through_masked_softmax(mask: Var, out: Var, d_out: Var, axis: Axis, temperature: float) -> Any:
    """The gradient of a masked softmax ``out``: zero where ``mask`` is false.

    There ``out`` is zero and so are all factors, but not next to an infinity or a NaN. A selection
    excludes both.
    """
    through = through_softmax(out, where(mask, d_out, 0.0), axis, temperature)
    return where(mask, through, 0.0)


@op(
    shape=_masked_shape,
    dtype=_masked_dtype,
    reference=lambda x, mask, **how: _masked_softmax_reference(-x, mask, **how),
    cases=_MASKED_CASES,
)
def masked_softmin(
    x: Array,
    mask: Array,
    *,
    axis: int | tuple[int, ...] = -1,
    temperature: Annotated[float, Check("be positive", lambda value: value > 0)] = 1.0,
) -> Array:
    """Softmin over the entries where ``mask`` is true: ``masked_softmax(-x, mask)``.

    Example:
        >>> import jax.numpy as jnp
        >>> masked_softmin(jnp.asarray([0.0, 1000.0, -5.0]), jnp.asarray([True, True, False]))
        Array([1., 0., 0.], dtype=float32)
    """
    return exponentials_over_sum(masked(-x, mask, temperature), axis).astype(x.dtype)


@masked_softmin.gradient
def _masked_softmin_gradient(
    mask: Var, out: Var, d_out: Var, *, axis: Axis, temperature: float
) -> Grads:
    return {"x": -through_masked_softmax(mask, out, d_out, axis, temperature), "mask": None}


@op(
    shape=_masked_shape,
    dtype=_masked_dtype,
    reference=_masked_log_softmax_reference,
    # A mask produces infinities, for which finite differences do not exist.
    cases=[*(case(**call, order=0) for call in _MASKED), case(**_WHOLE), *_MISUSES],
)
def masked_log_softmax(
    x: Array,
    mask: Array,
    *,
    axis: int | tuple[int, ...] = -1,
    temperature: Annotated[float, Check("be positive", lambda value: value > 0)] = 1.0,
) -> Array:
    """Logarithm of ``masked_softmax(x, mask)``, accurate where that underflows.

    Where ``mask`` is false it is minus infinity and constant: no gradient flows back from there.

    Example:
        >>> import jax.numpy as jnp
        >>> masked_log_softmax(jnp.asarray([0.0, 1000.0, 5.0]), jnp.asarray([True, True, False]))
        Array([-1000.,     0.,   -inf], dtype=float32)
    """
    return log_of_masked(x, mask, axis, temperature)


@masked_log_softmax.gradient
def _masked_log_softmax_gradient(
    x: Var, mask: Var, d_out: Var, *, axis: Axis, temperature: float
) -> Grads:
    return {"x": through_masked_logarithm(x, mask, d_out, axis, temperature), "mask": None}


def through_masked_logarithm(x: Var, mask: Var, d_out: Var, axis: Axis, temperature: float) -> Any:
    """The gradient of ``log_of_masked`` with respect to ``x``."""
    # As without a mask, over the cotangents of the unmasked entries; the softmax is zero elsewhere.
    d = where(mask, d_out, 0.0)
    shares = masked_softmax(x, mask, axis=axis, temperature=temperature)
    by_scaled = d - shares * sum_over(d, axis=axis, keepdims=True)
    return where(mask, divided(by_scaled, temperature), 0.0)
