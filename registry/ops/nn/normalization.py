"""Layer normalization, and code shared by layers that normalize to mean zero and variance one.

These layers differ in the entries that share a mean and a variance. With sums over the other axes
reshaped so that the statistics are over whole axes, as groups of channels require, the kernel and
gradient are the same.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, misuse, workload
from registry.errors import ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array, Bias, Gain
from registry.ops.core.broadcasting import broadcast_to, cast, unbroadcast
from registry.ops.core.reductions import averaged, count, kept, statistics_dtype
from registry.ops.core.reductions import sum as sum_over
from registry.ops.core.reshaping import reshape
from registry.shapes import inexact, normalize_axes, real
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var

Axis = int | tuple[int, ...]
Three = tuple[Shape, Shape, Shape]


class Statistics(NamedTuple):
    """The entries that share a mean and a variance.

    Entrywise operations take data as they are, and the axis of channels is divided into groups only
    after a reduction over the other axes: XLA's CPU code for entries of a divided axis takes twice
    as long, and so does its sum over axes that others separate.

    Attributes:
        common: the axes of data along which gamma and beta are constant, reduced first.
        parts: the shape of the result, with an axis divided so that the other entries that share
            statistics are whole axes.
        axes: these axes.
        gains: the shape in which gamma and beta broadcast against data.
        features: the shape of gamma and beta.
    """

    common: tuple[int, ...]
    parts: Shape
    axes: tuple[int, ...]
    gains: Shape
    features: Shape

    def count(self, data: Shape) -> int:
        """The number of entries of ``data`` that share statistics."""
        return count(data, self.common) * count(self.parts, self.axes)


def ones_but(shape: Shape, axes: tuple[int, ...]) -> Shape:
    """``shape`` with length 1 at all axes but ``axes``."""
    return tuple(n if i in axes else 1 for i, n in enumerate(shape))


def over_features(data: Shape, axis: Axis) -> Statistics:
    """Statistics over ``axis`` for each position of the other axes."""
    axes = normalize_axes(axis, len(data))
    return Statistics((), data, axes, ones_but(data, axes), tuple(data[i] for i in axes))


def of_data(data: VarType, gamma: VarType | None, beta: VarType | None) -> DType:
    """The dtype of ``data``; all inputs must be real and floating."""
    real(*(one for one in (data, gamma, beta) if one is not None))
    return inexact(data)[0]


def with_statistics(data: VarType, gamma: VarType | None, beta: VarType | None) -> list[DType]:
    """The dtypes of the result, the mean, and the reciprocal standard deviation."""
    dtype = of_data(data, gamma, beta)
    return [dtype, statistics_dtype(dtype), statistics_dtype(dtype)]


def check_features(features: Shape, data: Shape, **vectors: Shape | None) -> None:
    """Raises unless each given slot has the shape ``features``."""
    for slot, shape in vectors.items():
        if shape is not None and shape != features:
            raise ShapeError(f"{slot} must have shape {features} for data of {data}, got {shape}")


def with_features(data: Shape, gamma: Shape | None, beta: Shape | None, over: Statistics) -> Three:
    """The shapes of the result, the mean, and the reciprocal standard deviation."""
    check_features(over.features, data, gamma=gamma, beta=beta)
    statistic = kept(over.parts, over.axes)
    return data, statistic, statistic


def completed(features: Shape, **wanted: bool) -> dict[str, Shape]:
    """The shapes of the slots that a call requires."""
    return {slot: features for slot, uses in wanted.items() if uses}


def standardized(
    data: Array, gamma: Array | None, beta: Array | None, over: Statistics, eps: float
) -> tuple[Array, Array, Array]:
    """The result, the mean, and the reciprocal standard deviation."""
    dtype = statistics_dtype(data.dtype)
    x = data.astype(dtype)
    mean = _mean(x, over)
    centered = x - _spread(mean, data.shape, over)
    rstd = lax.rsqrt(_mean(jnp.square(centered), over) + eps)
    out = centered * _spread(rstd, data.shape, over)
    if gamma is not None:
        out = out * gamma.astype(dtype).reshape(over.gains)
    if beta is not None:
        out = out + beta.astype(dtype).reshape(over.gains)
    return out.astype(data.dtype), mean, rstd


def _mean(x: Array, over: Statistics) -> Array:
    """The means of the entries that share statistics: those of equally many entries, averaged."""
    first = jnp.mean(x, axis=over.common, keepdims=True) if over.common else x
    return jnp.mean(first.reshape(over.parts), axis=over.axes, keepdims=True)


def _spread(statistic: Array, data: Shape, over: Statistics) -> Array:
    """A statistic in a shape that broadcasts against ``data``."""
    whole = kept(data, over.common)
    if over.parts == whole:
        return statistic
    return jnp.broadcast_to(statistic, over.parts).reshape(whole)


def standardized_gradient(
    inputs: tuple[Var, Var | None, Var | None],
    kept_: tuple[Var, Var],
    d_out: Var,
    d_kept: tuple[Var | None, Var | None],
    over: Statistics,
) -> Grads:
    """The gradients of data, gamma and beta, given those of the result and of the residuals."""
    # With y = (x - mean) r, r = 1 / sqrt(variance + eps) and out = gamma y + beta over n entries:
    # d_gamma = sum(d_out y), d_beta = sum(d_out). With g = gamma d_out, d mean / d x = 1 / n and
    # d r / d x = -r^3 (x - mean) / n: d_x = r (g - sum(g) / n - y sum(g y) / n), plus the
    # cotangents of mean and r themselves if a gradient uses them. Along axes on which gamma is
    # constant, the sums for gamma and beta serve both: two passes over the data instead of four.
    (data, gamma, beta), (mean, rstd), (d_mean, d_rstd) = inputs, kept_, d_kept
    n, whole = over.count(data.shape), kept(data.shape, over.common)

    def scaled(x: Var) -> Any:
        return x if gamma is None else x * reshape(gamma, shape=over.gains)

    def spread(statistic: Var) -> Any:
        if over.parts == whole:
            return statistic
        return reshape(broadcast_to(statistic, shape=over.parts), shape=whole)

    r = spread(rstd)
    y = (cast(data, dtype=mean.dtype) - spread(mean)) * r
    d = cast(d_out, dtype=mean.dtype)
    g = scaled(d)
    of_beta, of_gamma = _summed(d, over.common), _summed(d * y, over.common)
    of_mean, of_rstd = (scaled(of_beta), scaled(of_gamma)) if over.common else (g, g * y)
    level = rstd * _summed(reshape(of_mean, shape=over.parts), over.axes)
    slope = rstd * _summed(reshape(of_rstd, shape=over.parts), over.axes)
    if d_mean is not None:
        level = level - d_mean
    if d_rstd is not None:
        slope = slope + rstd * rstd * d_rstd
    d_x = r * g - spread(averaged(level, n)) - y * spread(averaged(slope, n))
    return {
        "data": unbroadcast(d_x, data),
        "gamma": None if gamma is None else _over_examples(of_gamma, gamma, over),
        "beta": None if beta is None else _over_examples(of_beta, beta, over),
    }


def _summed(x: Var, axes: tuple[int, ...]) -> Any:
    return sum_over(x, axis=axes, keepdims=True) if axes else x


def _over_examples(d: Var, like: Var, over: Statistics) -> Var | None:
    """The cotangent of gamma or beta, from its sum over the axes that it shares with statistics."""
    others = tuple(i for i, n in enumerate(over.gains) if n == 1 and i not in over.common)
    return unbroadcast(reshape(_summed(d, others), shape=like.shape), like)


def standardized_reference(
    data: np.ndarray, gamma: np.ndarray | None, beta: np.ndarray | None, axis: Axis, eps: float
) -> np.ndarray:
    """Reference with the axes of the statistics last, and gamma and beta shaped accordingly."""
    axes = (axis,) if isinstance(axis, int) else axis
    last = tuple(range(-len(axes), 0))
    x = np.moveaxis(data, axes, last)
    out = (x - x.mean(last, keepdims=True)) / np.sqrt(x.var(last, keepdims=True) + eps)
    out = out * (1 if gamma is None else gamma) + (0 if beta is None else beta)
    return np.moveaxis(out, last, axes)


# layer_norm ------------------------------------------------------------------------------------


def _layer_norm_shape(data: Shape, gamma: Shape | None, beta: Shape | None, *, axis: Axis) -> Three:
    return with_features(data, gamma, beta, over_features(data, axis))


def _layer_norm_reference(
    data: np.ndarray,
    gamma: np.ndarray | None,
    beta: np.ndarray | None,
    *,
    axis: Axis,
    eps: float,
    use_gamma: bool,
    use_beta: bool,
) -> np.ndarray:
    assert (gamma is not None, beta is not None) == (use_gamma, use_beta)
    return standardized_reference(data, gamma, beta, axis, eps)


@op(
    shape=_layer_norm_shape,
    dtype=with_statistics,
    reference=_layer_norm_reference,
    outputs=("out", "mean", "rstd"),
    hidden=("mean", "rstd"),
    aliases=["LayerNorm"],
    cases=[
        case(data=(3, 6), gamma=(6,), beta=(6,), order=2, rtol=512),
        case(data=(2, 3, 4), gamma=(3, 4), beta=(3, 4), axis=(1, -1), eps=0.1, order=2, rtol=512),
        case(data=(4, 3), gamma=(4,), axis=0, use_beta=False, order=1, rtol=512),
        case(data=(2, 5), use_gamma=False, use_beta=False, order=1, rtol=512),
        case(data=(0, 3), gamma=(3,), beta=(3,), order=1),
        case(data=(2, 3), gamma=(3,), beta=(3,), rtol=512),
        workload(data=(2048, 512), gamma=(512,), beta=(512,)),
        misuse(
            "gamma must have shape (4,) for data of (3, 4), got (3,)",
            data=(3, 4),
            gamma=(3,),
            beta=(4,),
        ),
        misuse("axis must be in [-2, 2), got 2", data=(4, 3), gamma=(3,), beta=(3,), axis=2),
        misuse(
            "the inputs must be floating, got int32",
            data=integers(4, 3, high=9),
            gamma=(3,),
            beta=(3,),
        ),
        misuse(
            "must be real, got complex64", data=np.ones((2, 3), np.complex64), gamma=(3,), beta=(3,)
        ),
    ],
)
def layer_norm(
    data: Array,
    gamma: Gain | None = None,
    beta: Bias | None = None,
    *,
    axis: int | tuple[int, ...] = -1,
    eps: float = 1e-5,
    use_gamma: bool = True,
    use_beta: bool = True,
) -> tuple[Array, Array, Array]:
    """Layer normalization: ``gamma * (data - mean) / sqrt(variance + eps) + beta`` over ``axis``.

    The mean and the biased variance are taken over ``axis``. ``gamma`` and ``beta`` have the
    lengths of the axes in ``axis``, in the order of ``data``. Statistics are computed in at least
    float32; the result has the dtype of ``data``.

    Source: Ba, Kiros and Hinton, Layer normalization, 2016.

    Example:
        >>> import jax.numpy as jnp
        >>> layer_norm(jnp.asarray([[1.0, 3.0]]), jnp.ones(2), jnp.asarray([0.0, 1.0]), eps=0.0)
        Array([[-1.,  2.]], dtype=float32)
    """
    del use_gamma, use_beta
    return standardized(data, gamma, beta, over_features(data.shape, axis), eps)


@layer_norm.gradient
def _layer_norm_gradient(
    data: Var,
    gamma: Var | None,
    beta: Var | None,
    mean: Var,
    rstd: Var,
    d_out: Var,
    d_mean: Var | None,
    d_rstd: Var | None,
    *,
    axis: Axis,
) -> Grads:
    over = over_features(data.shape, axis)
    return standardized_gradient((data, gamma, beta), (mean, rstd), d_out, (d_mean, d_rstd), over)


@layer_norm.complete
def _layer_norm_complete(
    data: Shape | None, *, axis: Axis, use_gamma: bool, use_beta: bool
) -> dict[str, Shape]:
    if data is None:
        return {}
    return completed(over_features(data, axis).features, gamma=use_gamma, beta=use_beta)
