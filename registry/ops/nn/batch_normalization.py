"""Normalization of each channel by the statistics of a batch."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, misuse, positive, workload
from registry.errors import ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array, Bias, Gain, GainState, State, Training
from registry.ops.core.broadcasting import cast, unbroadcast
from registry.ops.core.reductions import averaged, count
from registry.ops.core.reductions import sum as sum_over
from registry.ops.core.reshaping import reshape
from registry.ops.elementwise.powers import sqrt
from registry.ops.nn.normalization import ones_but
from registry.ops.nn.softmax import choose
from registry.shapes import (
    inexact,
    normalize_axis,
    real,
    strong,
)
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var

Shapes = tuple[Shape, Shape, Shape, Shape, Shape]


def _batch_norm_shape(
    data: Shape, gamma: Shape, beta: Shape, moving_mean: Shape, moving_var: Shape, *, axis: int
) -> Shapes:
    features = (data[normalize_axis(axis, len(data))],)
    vectors = {"gamma": gamma, "beta": beta, "moving_mean": moving_mean, "moving_var": moving_var}
    for slot, shape in vectors.items():
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


class _Channels(NamedTuple):
    """The axes of data over which the statistics are taken.

    Attributes:
        others: all axes but that of the channels.
        entries: the number of entries along these axes.
        shape: the shape in which one number per channel broadcasts.
    """

    others: tuple[int, ...]
    entries: int
    shape: Shape

    def spread(self, statistic: Var) -> Var:
        """One number per channel, broadcast against data, in a gradient."""
        wide: Var = reshape(statistic, shape=self.shape)
        return wide

    def share(self, statistic: Var) -> Var:
        """The same, divided by the number of entries per channel."""
        return self.spread(averaged(statistic, self.entries))


def _channels(data: Shape, axis: int) -> _Channels:
    at = axis % len(data)
    others = tuple(i for i in range(len(data)) if i != at)
    return _Channels(others, count(data, others), ones_but(data, (at,)))


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
        others = tuple(range(last.ndim - 1))
        mean, variance = last.mean(others), last.var(others)
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
        case(data=(4, 0), gamma=(0,), beta=(0,), moving_mean=(0,), moving_var=(0,), order=1),
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
    """Batch normalization: ``gamma * (data - mean) / sqrt(variance + eps) + beta`` per channel.

    In training, the mean and the biased variance are those of the batch over all axes but ``axis``,
    and ``moving = momentum * moving + (1 - momentum) * batch`` updates the running statistics. In
    prediction the running statistics are used and left unchanged. Statistics are computed in the
    wider of the dtypes of ``data`` and the running statistics; ``out`` has the dtype of ``data``.
    The statistics of an empty batch are NaN.

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
    others, _, shape = _channels(data.shape, axis)
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
    over = _channels(data.shape, axis)
    d_out = cast(d_out, dtype=mean.dtype)  # sums over a batch in half precision would saturate
    scale = 1.0 / sqrt(variance + eps)
    centered = data - over.spread(mean)
    d_beta = sum_over(d_out, axis=over.others)
    d_gamma = sum_over(d_out * centered, axis=over.others) * scale
    fixed = over.spread(gamma * scale) * d_out
    slope = gamma * scale * scale * d_gamma
    moving = _with_statistics(
        fixed, centered, (gamma * scale * d_beta, slope), (d_mean, d_variance), over
    )
    chosen = choose(unbroadcast(moving, data), unbroadcast(fixed, data), training=training)
    return {"data": chosen, "gamma": unbroadcast(d_gamma, gamma), "beta": unbroadcast(d_beta, beta)}


def _with_statistics(
    fixed: Var,
    centered: Var,
    through: tuple[Var, Var],
    d_statistics: tuple[Var | None, Var | None],
    over: _Channels,
) -> Var:
    """``fixed``, the gradient in prediction, plus the cotangent of data through its statistics.

    In training mean and variance depend on x: d mean / d x = 1 / n, d variance / d x = 2 (x - mean)
    / n, so d_x = gamma / s (d_out - d_beta / n - y d_gamma / n), plus the cotangents of mean and
    variance themselves if a gradient uses them.
    """
    (level, slope), (d_mean, d_variance) = through, d_statistics
    moving: Var = fixed - over.share(level)
    moving = moving - centered * over.share(slope)
    if d_mean is not None:
        moving = moving + over.share(d_mean)
    if d_variance is not None:
        moving = moving + centered * over.share(2.0 * d_variance)
    return moving


@batch_norm.complete
def _batch_norm_complete(data: Shape | None, *, axis: int) -> dict[str, Shape]:
    if data is None:
        return {}
    features = (data[normalize_axis(axis, len(data))],)
    return dict.fromkeys(("gamma", "beta", "moving_mean", "moving_var"), features)
