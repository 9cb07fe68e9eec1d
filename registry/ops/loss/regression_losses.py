"""Losses for real-valued predictions."""

from typing import Annotated

import jax.numpy as jnp
import numpy as np

from registry.cases import case, distinct, integers, misuse, nonzero, workload
from registry.errors import ShapeError
from registry.operator.attributes import Check
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import unbroadcast
from registry.ops.core.reductions import Axis, averaged, count, spread
from registry.ops.elementwise.extrema import sign
from registry.ops.elementwise.rounding import clip
from registry.shapes import inexact, real, reduced, same
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var

_POSITIVE = Check("be positive", lambda v: v > 0)
_MISUSES = [
    misuse("the inputs must have the same shape", predictions=(3, 1), targets=(3,)),
    misuse("the inputs must be floating, got int32", predictions=integers(3, high=9), targets=(3,)),
    misuse(
        "the inputs must be real, got complex64",
        predictions=np.ones(3, np.complex64),
        targets=(3,),
    ),
]


def _predicted(predictions: VarType, targets: VarType) -> tuple[DType, bool]:
    inexact(predictions)
    return real(predictions, targets)


# l1_loss ---------------------------------------------------------------------------------------


@op(
    shape=same,
    dtype=_predicted,
    reference=lambda predictions, targets: np.abs(predictions - targets),
    aliases=["l1"],
    cases=[
        case(predictions=distinct(3, 4), targets=(3, 4)),
        case(predictions=nonzero(), targets=integers(high=1)),
        case(predictions=(0, 2), targets=(0, 2)),
        *_MISUSES,
    ],
)
def l1_loss(predictions: Array, targets: Array) -> Array:
    """Absolute error, element-wise: ``abs(predictions - targets)``; its derivative at zero is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> l1_loss(jnp.asarray([1.0, -2.0]), jnp.asarray([3.0, -2.0]))
        Array([2., 0.], dtype=float32)
    """
    error = jnp.subtract(predictions, targets)
    return error * jnp.sign(error)  # unlike abs it is flat at zero for JAX, too


@l1_loss.gradient
def _l1_loss_gradient(predictions: Var, targets: Var, d_out: Var) -> Grads:
    slope = d_out * sign(predictions - targets)
    return {"predictions": unbroadcast(slope, predictions), "targets": unbroadcast(-slope, targets)}


# mean_squared_error ----------------------------------------------------------------------------


def _one_shape(predictions: Shape, targets: Shape) -> Shape:
    if predictions != targets:
        raise ShapeError(f"the inputs must have the same shape, got {predictions} and {targets}")
    return predictions


def _mean_squared_error_shape(
    predictions: Shape, targets: Shape, *, axis: Axis, keepdims: bool
) -> Shape:
    return reduced(_one_shape(predictions, targets), axis=axis, keepdims=keepdims)


def _mean_squared_error_dtype(predictions: VarType, targets: VarType) -> DType:
    return _predicted(predictions, targets)[0]


def _mean_squared_error_reference(
    predictions: np.ndarray, targets: np.ndarray, *, axis: Axis = None, keepdims: bool = False
) -> np.ndarray:
    return np.asarray(np.mean(np.square(predictions - targets), axis=axis, keepdims=keepdims))


@op(
    shape=_mean_squared_error_shape,
    dtype=_mean_squared_error_dtype,
    reference=_mean_squared_error_reference,
    aliases=["mse_loss"],
    cases=[
        case(predictions=(3, 4), targets=(3, 4)),
        case(predictions=(3, 4), targets=(3, 4), axis=-1),
        case(predictions=(2, 3, 2), targets=(2, 3, 2), axis=(0, 2), keepdims=True),
        case(predictions=(), targets=integers(high=9)),
        case(predictions=(0, 2), targets=(0, 2), axis=1),
        workload(predictions=(1024, 1024), targets=(1024, 1024)),
        misuse("axis must be in [-1, 1), got 1", predictions=(3,), targets=(3,), axis=1),
        *_MISUSES,
    ],
)
def mean_squared_error(
    predictions: Array,
    targets: Array,
    *,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
) -> Array:
    """Mean squared error ``mean((predictions - targets)^2)`` over ``axis``, by default all axes.

    It is NaN over no entries. ``squared_difference`` is the same without the mean.

    Example:
        >>> import jax.numpy as jnp
        >>> mean_squared_error(jnp.asarray([1.0, 4.0]), jnp.asarray([1.0, 2.0]))
        Array(2., dtype=float32)
    """
    return jnp.mean(jnp.square(jnp.subtract(predictions, targets)), axis=axis, keepdims=keepdims)


@mean_squared_error.gradient
def _mean_squared_error_gradient(
    predictions: Var, targets: Var, d_out: Var, *, axis: Axis
) -> Grads:
    error = predictions - targets
    share = spread(averaged(2.0 * d_out, count(error.shape, axis)), error, axis)
    slope = share * error
    return {"predictions": unbroadcast(slope, predictions), "targets": unbroadcast(-slope, targets)}


# huber and smooth_l1 ---------------------------------------------------------------------------


def _huber(error: Array, delta: float) -> Array:
    # The square is taken only of errors within delta: its derivative is infinite at an infinity,
    # and zero times that would be NaN.
    inside = jnp.abs(error) <= delta
    return jnp.where(
        inside,
        0.5 * jnp.square(jnp.where(inside, error, 0)),
        delta * (jnp.abs(error) - 0.5 * delta),
    )


def _huber_reference(
    predictions: np.ndarray, targets: np.ndarray, *, delta: float = 1.0
) -> np.ndarray:
    # The integral of the derivative: a triangle up to delta, a rectangle beyond.
    size = np.abs(predictions - targets)
    return np.asarray(np.minimum(size, delta) ** 2 / 2 + delta * np.maximum(size - delta, 0))


@op(
    shape=same,
    dtype=_predicted,
    reference=_huber_reference,
    aliases=["huber_loss"],
    cases=[
        case(predictions=(3, 4), targets=(3, 4)),
        case(predictions=(3, 4), targets=(3, 4), delta=0.5),
        case(predictions=(), targets=integers(low=-3, high=3)),
        case(predictions=(0, 2), targets=(0, 2)),
        misuse(
            "attribute 'delta' must be positive, got 0.0", predictions=(3,), targets=(3,), delta=0.0
        ),
        *_MISUSES,
    ],
)
def huber(predictions: Array, targets: Array, *, delta: Annotated[float, _POSITIVE] = 1.0) -> Array:
    """Huber loss, element-wise: squared error near zero and absolute error far away.

    ``e^2 / 2`` where ``abs(e) <= delta``, else ``delta * (abs(e) - delta / 2)``, with the errors
    ``e = predictions - targets``. The derivative is ``e``, clipped to ``[-delta, delta]``.

    Source: Huber, Robust Estimation of a Location Parameter (1964).

    Example:
        >>> import jax.numpy as jnp
        >>> huber(jnp.asarray([1.0, 5.0]), jnp.asarray([0.0, 0.0]), delta=2.0)
        Array([0.5, 8. ], dtype=float32)
    """
    return _huber(jnp.subtract(predictions, targets), delta)


@huber.gradient
def _huber_gradient(predictions: Var, targets: Var, d_out: Var, *, delta: float) -> Grads:
    slope = d_out * clip(predictions - targets, low=-delta, high=delta)
    return {"predictions": unbroadcast(slope, predictions), "targets": unbroadcast(-slope, targets)}


def _smooth_l1_dtype(data: VarType) -> tuple[DType, bool]:
    real(data)
    return inexact(data)


def _smooth_l1_reference(data: np.ndarray, *, scalar: float = 1.0) -> np.ndarray:
    near = np.abs(data) < 1 / scalar**2
    return np.where(near, 0.5 * (scalar * data) ** 2, np.abs(data) - 0.5 / scalar**2)


@op(
    shape=same,
    dtype=_smooth_l1_dtype,
    reference=_smooth_l1_reference,
    cases=[
        case(data=(3, 4)),
        case(data=(3, 4), scalar=2.0),
        case(data=()),
        case(data=(0, 2)),
        misuse("attribute 'scalar' must be positive, got -1.0", data=(3,), scalar=-1.0),
        misuse("the inputs must be floating, got int32", data=integers(3, high=4)),
        misuse("the inputs must be real, got complex64", data=np.ones(3, np.complex64)),
    ],
)
def smooth_l1(data: Array, *, scalar: Annotated[float, _POSITIVE] = 1.0) -> Array:
    """Smooth L1 loss, element-wise: the absolute value with a rounded corner at zero.

    ``(scalar * x)^2 / 2`` where ``abs(x) <= 1 / scalar^2``, else ``abs(x) - 1 / (2 scalar^2)``.

    Source: Girshick, Fast R-CNN (2015), where ``scalar`` is called sigma.

    Example:
        >>> import jax.numpy as jnp
        >>> smooth_l1(jnp.asarray([0.5, -3.0]))
        Array([0.125, 2.5  ], dtype=float32)
    """
    sharpness = scalar * scalar
    return sharpness * _huber(jnp.asarray(data), 1 / sharpness)


@smooth_l1.gradient
def _smooth_l1_gradient(data: Var, d_out: Var, *, scalar: float) -> Grads:
    return {"data": d_out * clip(scalar * scalar * data, low=-1.0, high=1.0)}
