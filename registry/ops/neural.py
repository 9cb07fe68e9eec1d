"""Layers that normalize: softmax, batch normalization, dropout, and the choice by training mode."""

from collections.abc import Sequence
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.attributes import Check
from registry.cases import case, integers, misuse, positive, uniform, workload
from registry.errors import AttributeValueError, DTypeError, ShapeError
from registry.operator import Grads
from registry.ops.broadcasting import cast, unbroadcast
from registry.ops.elementwise import exp
from registry.ops.powers import sqrt
from registry.ops.reductions import averaged, count
from registry.ops.reductions import sum as sum_over
from registry.ops.shape import reshape
from registry.shapes import (
    inexact,
    normalize_axes,
    normalize_axis,
    real,
    strong,
    strong_real_inexact,
)
from registry.signature import Array, Bias, Gain, GainState, Key, State, Training
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var, filled

# softmax ---------------------------------------------------------------------------------------

Axis = int | tuple[int, ...]


def has_axis(x: Shape, *, axis: Axis) -> Shape:
    """``x``, which must have ``axis``."""
    normalize_axes(axis, len(x))
    return x


def divided(x: Any, temperature: float) -> Any:
    """``x / temperature``, for arrays and what stands for them."""
    return x if temperature == 1.0 else x / temperature


def through_softmax(out: Var, d_out: Var, axis: Axis, temperature: float) -> Any:
    """The gradient of a softmax ``out``: ``d out_i / d x_j = out_i (delta_ij - out_j) / T``."""
    return divided(out * (d_out - sum_over(out * d_out, axis=axis, keepdims=True)), temperature)


def _softmax_reference(x: np.ndarray, *, axis: Axis = -1, temperature: float) -> np.ndarray:
    x = x / temperature
    powers = np.exp(x - np.max(x, axis=axis, keepdims=True, initial=-np.inf))
    return np.asarray(powers / np.sum(powers, axis=axis, keepdims=True))


def _log_softmax_reference(x: np.ndarray, *, axis: Axis = -1, temperature: float) -> np.ndarray:
    x = x / temperature
    shifted = x - np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    return np.asarray(shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True)))


SOFTMAX_CASES = [
    case(x=(3, 4)),
    case(x=(2, 3, 4), axis=1),
    case(x=(2, 3), axis=(0, 1), temperature=0.5, order=2),
    case(x=(5,)),
    case(x=uniform(4, low=900.0, high=904.0), order=2, rtol=4096),
    case(x=(0, 3)),
    workload(x=(1024, 1000)),
    misuse("axis must be in [-2, 2), got 2", x=(3, 4), axis=2),
    misuse("attribute 'temperature' must be positive, got 0.0", x=(3, 4), temperature=0.0),
    misuse("the inputs must be floating, got int32", x=integers(3, high=4)),
    misuse("the inputs must be real, got complex64", x=np.ones(3, np.complex64)),
]


@op(
    shape=has_axis,
    dtype=strong_real_inexact,
    reference=_softmax_reference,
    cases=SOFTMAX_CASES,
)
def softmax(
    x: Array,
    *,
    axis: int | tuple[int, ...] = -1,
    temperature: Annotated[float, Check("be positive", lambda value: value > 0)] = 1.0,
) -> Array:
    """``exp(x / T) / sum(exp(x / T))`` along ``axis``: positive numbers that sum to one.

    ``T`` is the ``temperature``: a high one evens the numbers out. It does not overflow.

    Example:
        >>> import jax.numpy as jnp
        >>> softmax(jnp.asarray([1000.0, 1000.0]))
        Array([0.5, 0.5], dtype=float32)
    """
    return jax.nn.softmax(divided(x, temperature), axis)


@softmax.gradient
def _softmax_gradient(out: Var, d_out: Var, *, axis: Axis, temperature: float) -> Grads:
    return {"x": through_softmax(out, d_out, axis, temperature)}


@op(
    shape=has_axis,
    dtype=strong_real_inexact,
    reference=_log_softmax_reference,
    cases=SOFTMAX_CASES,
)
def log_softmax(
    x: Array,
    *,
    axis: int | tuple[int, ...] = -1,
    temperature: Annotated[float, Check("be positive", lambda value: value > 0)] = 1.0,
) -> Array:
    """``log(softmax(x / temperature))`` along ``axis``, accurate where the softmax underflows.

    Example:
        >>> import jax.numpy as jnp
        >>> log_softmax(jnp.asarray([0.0, 1000.0]))
        Array([-1000.,     0.], dtype=float32)
    """
    return jax.nn.log_softmax(divided(x, temperature), axis)


@log_softmax.gradient
def _log_softmax_gradient(out: Var, d_out: Var, *, axis: Axis, temperature: float) -> Grads:
    by_scaled = d_out - exp(out) * sum_over(d_out, axis=axis, keepdims=True)
    return {"x": divided(by_scaled, temperature)}


# choose ----------------------------------------------------------------------------------------


def _choose_shape(when_training: Shape, otherwise: Shape) -> Shape:
    if when_training != otherwise:
        raise ShapeError(
            f"both branches must have the same shape, got {when_training} and {otherwise}"
        )
    return when_training


def _choose_dtype(when_training: VarType, otherwise: VarType) -> DType:
    if when_training.dtype != otherwise.dtype:
        raise DTypeError(
            f"both branches must have the same dtype, got {when_training.dtype.name} and "
            f"{otherwise.dtype.name}"
        )
    return when_training.dtype


@op(
    shape=_choose_shape,
    dtype=_choose_dtype,
    reference=lambda when_training, otherwise, training: when_training if training else otherwise,
    cases=[
        case(training=True, when_training=(3, 4), otherwise=(3, 4)),
        case(training=False, when_training=(3, 4), otherwise=(3, 4)),
        misuse("both branches must have the same shape", when_training=(3,), otherwise=(4,)),
    ],
)
def choose(training: Training, when_training: Array, otherwise: Array) -> Array:
    """One value for training and another for prediction; only one of them is computed.

    Example:
        >>> import jax.numpy as jnp
        >>> choose(jnp.asarray([1.0]), jnp.asarray([2.0]), training=False)
        Array([2.], dtype=float32)
    """
    chosen = jnp.asarray(when_training if training else otherwise)
    return lax.convert_element_type(chosen, chosen.dtype)


@choose.gradient
def _choose_gradient(training: Var, d_out: Var) -> Grads:
    zero = filled(d_out, 0.0)
    return {
        "when_training": choose(d_out, zero, training=training),
        "otherwise": choose(zero, d_out, training=training),
    }


@choose.simplify
def _choose_simplify(training: Var, when_training: Var, otherwise: Var) -> Var | None:
    if training.constant is None:
        return when_training if when_training is otherwise else None
    return when_training if training.constant else otherwise


# dropout ---------------------------------------------------------------------------------------


def _dropout_shape(data: Shape, *, rate: float) -> Shape:
    if not 0 <= rate <= 1:
        raise AttributeValueError(f"rate must be in [0, 1], got {rate}")
    return data


def _dropout_dtype(data: VarType) -> DType:
    return inexact(data)[0]


def _dropout_reference(
    data: np.ndarray,
    key: Array,
    training: bool,
    *,
    rate: float,
) -> np.ndarray:
    if not training or rate == 0:
        return data
    kept = np.asarray(jax.random.bernoulli(key, 1 - rate, data.shape))
    return np.where(kept, data / data.dtype.type(max(1 - rate, 1e-6)), 0).astype(data.dtype)


@op(
    shape=_dropout_shape,
    dtype=_dropout_dtype,
    reference=_dropout_reference,
    cases=[
        case(data=(20, 30), training=True, order=2),
        case(data=(3, 4), training=True, rate=0.25),
        case(data=(3, 4), training=True, rate=0.0),
        case(data=(3, 4), training=True, rate=1.0),
        case(data=(3, 4), training=False),
        case(data=(0, 4), training=True),
        misuse("rate must be in [0, 1], got 1.5", data=(3, 4), rate=1.5),
        misuse("the inputs must be floating, got int32", data=integers(3, high=4)),
    ],
)
def dropout(data: Array, key: Key, training: Training, *, rate: float = 0.5) -> Array:
    """In training each entry is zero with probability ``rate``, else divided by ``1 - rate``.

    So the expectation stays. In prediction it is the identity.

    Source: Srivastava et al., Dropout: a simple way to prevent neural networks from overfitting,
    2014; the scaling in training is called inverted dropout.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> dropout(jnp.ones(4), key=jax.random.key(0), training=False)
        Array([1., 1., 1., 1.], dtype=float32)
    """
    data = lax.convert_element_type(data, jnp.asarray(data).dtype)  # the result is never weak
    if not training or rate == 0:
        return data
    if rate == 1:
        return jnp.zeros_like(data)
    kept = jax.random.bernoulli(key, 1 - rate, data.shape)
    return lax.select(kept, data / (1 - rate), jnp.zeros_like(data))


@dropout.gradient
def _dropout_gradient(key: Var, training: Var, d_out: Var, *, rate: float) -> Grads:
    # Linear with a diagonal matrix that the key alone determines.
    return {"data": dropout(d_out, key=key, training=training, rate=rate)}


@dropout.simplify
def _dropout_simplify(data: Var, training: Var) -> Var | None:
    # A rate of zero draws its key nevertheless, as in an eager call: later draws stay the same.
    return data if training.constant is False else None


# batch_norm ------------------------------------------------------------------------------------

Shapes = tuple[Shape, Shape, Shape, Shape, Shape]


def _batch_norm_shape(
    data: Shape, gamma: Shape, beta: Shape, moving_mean: Shape, moving_var: Shape, *, axis: int
) -> Shapes:
    features = (data[normalize_axis(axis, len(data))],)
    given = {"gamma": gamma, "beta": beta, "moving_mean": moving_mean, "moving_var": moving_var}
    for slot, shape in given.items():
        if shape != features:
            raise ShapeError(f"{slot} must have shape {features} for data of {data}, got {shape}")
    return data, features, features, features, features


def _batch_norm_dtype(
    data: VarType, gamma: VarType, beta: VarType, moving_mean: VarType, moving_var: VarType
) -> list[DType]:
    real(data, gamma, beta, moving_mean, moving_var)
    for one in (data, moving_mean, moving_var):
        inexact(one)
    wide = strong(data.strong(), moving_mean.strong(), moving_var.strong())
    return [data.dtype, wide, wide, moving_mean.dtype, moving_var.dtype]


def _channels_last_to(axis: int, ndim: int) -> tuple[int, ...]:
    """The shape that broadcasts one number for each channel."""
    return tuple(-1 if i == axis % ndim else 1 for i in range(ndim))


def _batch_norm_reference(
    data: np.ndarray,
    gamma: np.ndarray,
    beta: np.ndarray,
    moving_mean: np.ndarray,
    moving_var: np.ndarray,
    training: bool,
    *,
    axis: int,
    eps: float,
    momentum: float,
) -> Sequence[np.ndarray]:
    last = np.moveaxis(data, axis, -1)
    mean, variance = moving_mean, moving_var
    if training:
        flat = last.reshape(-1, last.shape[-1])
        mean, variance = flat.mean(0), flat.var(0)
        moving_mean = momentum * moving_mean + (1 - momentum) * mean
        moving_var = momentum * moving_var + (1 - momentum) * variance
    out = (last - mean) / np.sqrt(variance + eps) * gamma + beta
    return np.moveaxis(out, -1, axis), mean, variance, moving_mean, moving_var


_STATISTICS: dict[str, Any] = {
    "gamma": (3,),
    "beta": (3,),
    "moving_mean": (3,),
    "moving_var": positive(3),
}


@op(
    shape=_batch_norm_shape,
    dtype=_batch_norm_dtype,
    reference=_batch_norm_reference,
    outputs=("out", "mean", "variance", "new_moving_mean", "new_moving_var"),
    hidden=("mean", "variance"),
    updates={"moving_mean": "new_moving_mean", "moving_var": "new_moving_var"},
    cases=[
        case(data=(8, 3), **_STATISTICS, training=True, rtol=512),
        case(data=(2, 3, 2, 3), **_STATISTICS, training=True, order=2, rtol=512),
        case(data=(4, 2, 3), **_STATISTICS, axis=-1, eps=0.1, momentum=0.5, training=True, order=2),
        case(data=(4, 3), **_STATISTICS, training=False),
        case(data=(2, 3, 2), **_STATISTICS, training=False),
        workload(
            data=(16, 64, 32, 32),
            gamma=(64,),
            beta=(64,),
            moving_mean=(64,),
            moving_var=positive(64),
            training=True,
        ),
        misuse(
            "gamma must have shape (2,) for data of (3, 4, 2), got (3,)",
            data=(3, 4, 2),
            **_STATISTICS,
            axis=2,
        ),
        misuse("axis must be in [-2, 2), got 2", data=(4, 3), **_STATISTICS, axis=2),
        misuse("the inputs must be floating", data=integers(4, 3, high=9), **_STATISTICS),
    ],
)
def batch_norm(
    data: Array,
    gamma: Gain,
    beta: Bias,
    moving_mean: State,
    moving_var: GainState,
    training: Training,
    *,
    axis: int = 1,
    eps: float = 1e-5,
    momentum: float = 0.9,
) -> tuple[Array, Array, Array, Array, Array]:
    """``gamma * (data - mean) / sqrt(variance + eps) + beta``, with statistics for each channel.

    In training, mean and (biased) variance are those of the batch over all axes but ``axis``, and
    ``moving = momentum * moving + (1 - momentum) * batch`` updates the running statistics. In
    prediction the running statistics are used and stay. Statistics are computed in the wider of
    the dtypes of ``data`` and the running statistics; ``out`` has the dtype of ``data``.

    Source: Ioffe and Szegedy, Batch normalization: accelerating deep network training by reducing
    internal covariate shift, 2015.

    Example:
        >>> import jax.numpy as jnp
        >>> one, zero = jnp.ones(1), jnp.zeros(1)
        >>> data = jnp.asarray([[1.0], [3.0]])
        >>> out, moving_mean, moving_var = batch_norm(
        ...     data, one, zero, zero, one, training=True, eps=0.0
        ... )
        >>> out
        Array([[-1.],
               [ 1.]], dtype=float32)
        >>> moving_mean
        Array([0.2], dtype=float32)
    """
    at, shape = axis % data.ndim, _channels_last_to(axis, data.ndim)
    others = tuple(i for i in range(data.ndim) if i != at)
    moving_mean = lax.convert_element_type(moving_mean, moving_mean.dtype)
    moving_var = lax.convert_element_type(moving_var, moving_var.dtype)
    wide = jnp.promote_types(data.dtype, jnp.promote_types(moving_mean.dtype, moving_var.dtype))
    x = data.astype(wide)
    mean, variance = moving_mean.astype(wide), moving_var.astype(wide)
    if training:
        mean = jnp.mean(x, axis=others)
        variance = jnp.mean(jnp.square(x - mean.reshape(shape)), axis=others)
        moving_mean = _moved(moving_mean, mean, momentum)
        moving_var = _moved(moving_var, variance, momentum)
    factor = gamma.astype(wide) * lax.rsqrt(variance + eps)
    out = (x - mean.reshape(shape)) * factor.reshape(shape) + beta.astype(wide).reshape(shape)
    new = lax.stop_gradient((moving_mean, moving_var))  # no gradient reaches a state
    return out.astype(data.dtype), mean, variance, *new


def _moved(moving: Array, batch: Array, momentum: float) -> Array:
    return (momentum * moving + (1 - momentum) * batch).astype(moving.dtype)


@batch_norm.gradient
def _batch_norm_gradient(
    data: Var,
    gamma: Var,
    beta: Var,
    training: Var,
    mean: Var,
    variance: Var,
    d_out: Var,
    d_mean: Var | None,
    d_variance: Var | None,
    *,
    axis: int,
    eps: float,
) -> Grads:
    # With y = (x - mean) / s, s = sqrt(variance + eps), out = gamma y + beta over n entries:
    # d_gamma = sum(d_out y), d_beta = sum(d_out), and in prediction d_x = d_out gamma / s.
    # In training mean and variance follow x: d mean / d x = 1 / n, d variance / d x
    # = 2 (x - mean) / n, so d_x = gamma / s (d_out - d_beta / n - y d_gamma / n), plus what
    # reaches mean and variance themselves from a gradient that uses them.
    at = axis % data.ndim
    others = tuple(i for i in range(data.ndim) if i != at)
    n = count(data.shape, others)
    shape = tuple(data.shape[at] if i == at else 1 for i in range(data.ndim))

    def spread(statistic: Var) -> Var:
        wide: Var = reshape(statistic, shape=shape)
        return wide

    d_out = cast(d_out, dtype=mean.dtype)  # sums over a batch in half precision would saturate
    scale = 1.0 / sqrt(variance + eps)
    centered = data - spread(mean)
    d_beta = sum_over(d_out, axis=others)
    d_gamma = sum_over(d_out * centered, axis=others) * scale
    factor = spread(gamma * scale)
    fixed = factor * d_out
    slope = gamma * scale * scale * d_gamma
    moving = fixed - spread(averaged(gamma * scale * d_beta, n))
    moving = moving - centered * spread(averaged(slope, n))
    if d_mean is not None:
        moving = moving + spread(averaged(d_mean, n))
    if d_variance is not None:
        moving = moving + centered * spread(averaged(2.0 * d_variance, n))
    chosen = choose(unbroadcast(moving, data), unbroadcast(fixed, data), training=training)
    return {"data": chosen, "gamma": unbroadcast(d_gamma, gamma), "beta": unbroadcast(d_beta, beta)}


@batch_norm.complete
def _batch_norm_complete(data: Shape | None, *, axis: int) -> dict[str, Shape]:
    if data is None:
        return {}
    features = (data[normalize_axis(axis, len(data))],)
    return dict.fromkeys(("gamma", "beta", "moving_mean", "moving_var"), features)
