"""Softmax, softmin and log-softmax over the first entries of each row."""

from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, misuse, workload
from registry.errors import AttributeValueError, DTypeError, ShapeError
from registry.operator.attributes import Check
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.nn.masked_softmax import (
    dtype_of_x,
    exponentials_over_sum,
    log_of_masked,
    masked,
    softmax_reference,
    through_masked_logarithm,
    through_masked_softmax,
)
from registry.shapes import normalize_axis
from registry.table import op
from registry.types import DType, Shape, VarType, is_integer
from registry.var import Var

# length_mask -----------------------------------------------------------------------------------


def _mask_shape(length: Shape, *, size: int, axis: int) -> Shape:
    if size < 0:
        raise AttributeValueError(f"size must not be negative, got {size}")
    at = normalize_axis(axis, len(length) + 1)
    return (*length[:at], size, *length[at:])


def _require_integers(length: VarType) -> None:
    if not is_integer(length.dtype):
        raise DTypeError(f"length must be integers, got {length.dtype.name}")


def _mask_dtype(length: VarType) -> DType:
    _require_integers(length)
    return np.dtype(np.bool_)


@op(
    shape=_mask_shape,
    dtype=_mask_dtype,
    reference=lambda length, *, size, axis: np.moveaxis(
        np.arange(size) < length[..., None], -1, axis
    ),
    cases=[
        case(length=integers(3, high=6), size=4),
        case(length=integers(2, 3, low=-1, high=5), size=4, axis=1),
        case(length=integers(high=3), size=2),
        case(length=integers(2, high=3, dtype="uint8"), size=0),
        misuse("size must not be negative, got -1", length=integers(3, high=6), size=-1),
        misuse("length must be integers, got float", length=(3,), size=2),
        misuse("axis must be in [-2, 2), got 2", length=integers(3, high=6), size=2, axis=2),
    ],
)
def length_mask(length: Array, *, size: int, axis: int = -1) -> Array:
    """A mask of positions before each end: a new ``axis`` of ``size`` entries, one row per length.

    Example:
        >>> import jax.numpy as jnp
        >>> length_mask(jnp.asarray([2, 0]), size=3)
        Array([[ True,  True, False],
               [False, False, False]], dtype=bool)
    """
    at = axis % (length.ndim + 1)
    return _before_end(length, (*length.shape[:at], size, *length.shape[at:]), at)


length_mask.no_gradient("its input are integers")


def _before_end(length: Array, shape: Shape, at: int) -> Array:
    return lax.broadcasted_iota(np.int32, shape, at) < jnp.expand_dims(length, at)


# softmax, softmin ------------------------------------------------------------------------------


def _length_shape(x: Shape, length: Shape, *, axis: int) -> Shape:
    at = normalize_axis(axis, len(x))
    rows = (*x[:at], *x[at + 1 :])
    if length != rows:
        raise ShapeError(f"length must have shape {rows} for x of {x}, got {length}")
    return x


def _length_dtype(x: VarType, length: VarType) -> DType:
    _require_integers(length)
    return dtype_of_x(x)


def _by_length(x: Array, length: Array, axis: int, temperature: float) -> Array:
    """``x / temperature`` in at least float32, minus infinity from the ends on."""
    return masked(x, _before_end(length, x.shape, axis % x.ndim), temperature)


def _length_reference(
    x: np.ndarray, length: np.ndarray, *, axis: int, temperature: float
) -> np.ndarray:
    rows = np.moveaxis(x, axis, -1)
    kept = np.arange(rows.shape[-1]) < length[..., None]
    return np.moveaxis(softmax_reference(np.where(kept, rows / temperature, -np.inf), -1), -1, axis)


def _log_reference(x: np.ndarray, length: np.ndarray, **how: Any) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(_length_reference(x, length, **how)))


_CALLS: list[dict[str, Any]] = [
    {"x": (3, 4), "length": integers(3, high=6)},
    {"x": (2, 4, 3), "length": integers(2, 3, high=5), "axis": 1, "temperature": 0.5},
    {"x": (4,), "length": integers(low=2, high=3, dtype="uint8")},
    {"x": (0, 3), "length": integers(0, high=3)},
]
_FULL: dict[str, Any] = {"x": (2, 3), "length": np.asarray([3, 4], np.int32)}
_MISUSES = [
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
]
_SOFTMAX_CASES = [case(**_CALLS[0]), *(case(**call, order=1) for call in _CALLS[1:]), *_MISUSES]


@op(
    shape=_length_shape,
    dtype=_length_dtype,
    reference=_length_reference,
    cases=_SOFTMAX_CASES,
)
def softmax_with_length(
    x: Array,
    length: Array,
    *,
    axis: int = -1,
    temperature: Annotated[float, Check("be positive", lambda value: value > 0)] = 1.0,
) -> Array:
    """Softmax of ``x / temperature`` over the first ``length`` entries along ``axis``.

    The other entries are zero, and so is their gradient; a length of zero gives only zeros.
    ``length`` has the shape of ``x`` without ``axis``. The sum is computed in at least float32.

    Example:
        >>> import jax.numpy as jnp
        >>> softmax_with_length(jnp.zeros((2, 3)), jnp.asarray([2, 1]))
        Array([[0.5, 0.5, 0. ],
               [1. , 0. , 0. ]], dtype=float32)
    """
    return exponentials_over_sum(_by_length(x, length, axis, temperature), axis).astype(x.dtype)


@softmax_with_length.gradient
def _softmax_with_length_gradient(
    length: Var, out: Var, d_out: Var, *, axis: int, temperature: float
) -> Grads:
    kept = length_mask(length, size=out.shape[axis], axis=axis)
    by_x = through_masked_softmax(kept, out, d_out, axis, temperature)
    return {"x": by_x, "length": None}


@op(
    shape=_length_shape,
    dtype=_length_dtype,
    reference=lambda x, length, **how: _length_reference(-x, length, **how),
    cases=_SOFTMAX_CASES,
)
def softmin_with_length(
    x: Array,
    length: Array,
    *,
    axis: int = -1,
    temperature: Annotated[float, Check("be positive", lambda value: value > 0)] = 1.0,
) -> Array:
    """Softmin over the first ``length`` entries: ``softmax_with_length(-x, length)``.

    Example:
        >>> import jax.numpy as jnp
        >>> softmin_with_length(jnp.asarray([0.0, 1000.0, -5.0]), jnp.asarray(2))
        Array([1., 0., 0.], dtype=float32)
    """
    return exponentials_over_sum(_by_length(-x, length, axis, temperature), axis).astype(x.dtype)


@softmin_with_length.gradient
def _softmin_with_length_gradient(
    length: Var, out: Var, d_out: Var, *, axis: int, temperature: float
) -> Grads:
    kept = length_mask(length, size=out.shape[axis], axis=axis)
    by_x = through_masked_softmax(kept, out, d_out, axis, temperature)
    return {"x": -by_x, "length": None}


# log_softmax -----------------------------------------------------------------------------------


@op(
    shape=_length_shape,
    dtype=_length_dtype,
    reference=_log_reference,
    # Entries beyond the end are infinite, so finite differences do not exist.
    cases=[case(**_FULL), *(case(**call, order=0) for call in _CALLS), *_MISUSES],
)
def log_softmax_with_length(
    x: Array,
    length: Array,
    *,
    axis: int = -1,
    temperature: Annotated[float, Check("be positive", lambda value: value > 0)] = 1.0,
) -> Array:
    """Logarithm of ``softmax_with_length(x, length)``, accurate where that underflows.

    Beyond the end it is minus infinity and constant: no gradient flows back from there.

    Example:
        >>> import jax.numpy as jnp
        >>> log_softmax_with_length(jnp.asarray([0.0, 1000.0, 5.0]), jnp.asarray(2))
        Array([-1000.,     0.,   -inf], dtype=float32)
    """
    kept = _before_end(length, x.shape, axis % x.ndim)
    return log_of_masked(x, kept, axis, temperature)


@log_softmax_with_length.gradient
def _log_softmax_with_length_gradient(
    x: Var, length: Var, d_out: Var, *, axis: int, temperature: float
) -> Grads:
    kept = length_mask(length, size=x.shape[axis], axis=axis)
    by_x = through_masked_logarithm(x, kept, d_out, axis, temperature)
    return {"x": by_x, "length": None}
