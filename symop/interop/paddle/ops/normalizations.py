"""Normalizations by mean and variance, or by a norm."""

import math
from typing import Any

import symop as so
from symop.interop.paddle.operators import operator

_ENGINE = "fuse_with_relu fuse_with_add is_test_ begin_axis sync_stats"


def _along(value: Any, axis: int, ndim: int) -> Any:
    """Returns a vector with axes of length one, so that it lies along ``axis``."""
    return so.reshape(value, shape=tuple(-1 if i == axis else 1 for i in range(ndim)))


def _channel_axis(x: Any, layout: str) -> int:
    ndim = int(x.ndim)
    return ndim - 1 if layout.endswith("C") and ndim > 2 else min(1, ndim - 1)


@operator(
    "batch_norm",
    "sync_batch_norm",
    outputs="Y MeanOut VarianceOut SavedMean SavedVariance ReserveSpace",
    ignored=_ENGINE,
    no_gradient="Mean Variance MomentumTensor",
)
def batch_norm(
    X: Any,
    Mean: Any,
    Variance: Any,
    Scale: Any = None,
    Bias: Any = None,
    MomentumTensor: Any = None,
    *,
    is_test: bool = False,
    momentum: float = 0.9,
    epsilon: float = 1e-5,
    data_layout: str = "NCHW",
    use_global_stats: bool = False,
    trainable_statistics: bool = False,
) -> Any:
    kept = momentum if MomentumTensor is None else so.reshape(MomentumTensor, shape=())
    axis = _channel_axis(X, data_layout)
    if use_global_stats or (is_test and not trainable_statistics):
        mean, variance, new = Mean, Variance, (Mean, Variance)
    else:
        axes = tuple(i for i in range(X.ndim) if i != axis)
        mean, variance = so.mean(X, axis=axes), so.variance(X, axis=axes)
        new = (
            kept * Mean + (1 - kept) * mean,
            kept * Variance + (1 - kept) * variance,
        )
    slope = so.rsqrt(variance + epsilon)
    centered = X - _along(mean, axis, X.ndim)
    factor = slope if Scale is None else slope * Scale
    result = centered * _along(factor, axis, X.ndim)
    result = result if Bias is None else result + _along(Bias, axis, X.ndim)
    reserve = so.zeros(shape=(0,), dtype=X.dtype)
    return so.cast(result, dtype=X.dtype), *new, mean, slope, reserve


@operator(outputs="Y Mean Variance", ignored=_ENGINE + " is_test")
def layer_norm(
    X: Any, Scale: Any = None, Bias: Any = None, *, epsilon: float = 1e-5, begin_norm_axis: int = 1
) -> Any:
    rows, lengths = X.shape[:begin_norm_axis], X.shape[begin_norm_axis:]
    axes = tuple(range(begin_norm_axis, X.ndim))
    mean, variance = (each(X, axis=axes, keepdims=True) for each in (so.mean, so.variance))
    result = (X - mean) * so.rsqrt(variance + epsilon)
    result = result if Scale is None else result * so.reshape(Scale, shape=lengths)
    result = result if Bias is None else result + so.reshape(Bias, shape=lengths)
    flat = (math.prod(rows),)
    return result, so.reshape(mean, shape=flat), so.reshape(variance, shape=flat)


@operator(outputs="Y Mean Variance")
def group_norm(
    X: Any,
    Scale: Any = None,
    Bias: Any = None,
    *,
    epsilon: float = 1e-5,
    groups: int = -1,
    data_layout: str = "NCHW",
) -> Any:
    axis = _channel_axis(X, data_layout)
    channels = X.shape[axis]
    split = (*X.shape[:axis], groups, channels // groups, *X.shape[axis + 1 :])
    grouped = so.reshape(X, shape=split)
    axes = tuple(i for i in range(1, grouped.ndim) if i != axis)
    mean, variance = (each(grouped, axis=axes, keepdims=True) for each in (so.mean, so.variance))
    result = so.reshape((grouped - mean) * so.rsqrt(variance + epsilon), shape=X.shape)
    result = result if Scale is None else result * _along(Scale, axis, X.ndim)
    result = result if Bias is None else result + _along(Bias, axis, X.ndim)
    flat = (X.shape[0], groups)
    return result, so.reshape(mean, shape=flat), so.reshape(variance, shape=flat)


@operator(outputs="Y SavedMean SavedVariance")
def instance_norm(X: Any, Scale: Any = None, Bias: Any = None, *, epsilon: float = 1e-5) -> Any:
    axes = tuple(range(2, X.ndim))
    mean, variance = (each(X, axis=axes, keepdims=True) for each in (so.mean, so.variance))
    slope = so.rsqrt(variance + epsilon)
    result = (X - mean) * slope
    result = result if Scale is None else result * _along(Scale, 1, X.ndim)
    result = result if Bias is None else result + _along(Bias, 1, X.ndim)
    flat = (X.shape[0] * X.shape[1],)
    return result, so.reshape(mean, shape=flat), so.reshape(slope, shape=flat)


_SUMMARIES = (
    "slot_dim sync_stats is_test summary_decay_rate data_layout do_model_average_for_mean_and_var"
)


@operator(
    outputs="Y Means Scales",
    no_gradient="BatchSize BatchSum BatchSquareSum",
    ignored=_SUMMARIES + " epsilon",
)
def data_norm(
    X: Any,
    BatchSize: Any,
    BatchSum: Any,
    BatchSquareSum: Any,
    scale_w: Any = None,
    bias: Any = None,
    *,
    enable_scale_and_shift: bool = False,
) -> Any:
    means, scales = BatchSum / BatchSize, so.sqrt(BatchSize / BatchSquareSum)
    result = (X - means) * scales
    if enable_scale_and_shift:
        result = result * scale_w + bias
    return result, means, scales


@operator(
    "data_norm_grad",
    outputs="X@GRAD BatchSize@GRAD BatchSum@GRAD BatchSquareSum@GRAD scale_w@GRAD bias@GRAD",
    ignored=_SUMMARIES,
)
def data_norm_gradient(
    X: Any,
    Means: Any,
    Scales: Any,
    Y_GRAD: Any,
    scale_w: Any = None,
    bias: Any = None,
    BatchSize: Any = None,
    BatchSum: Any = None,
    BatchSquareSum: Any = None,
    *,
    epsilon: float = 1e-4,
    enable_scale_and_shift: bool = False,
) -> Any:
    """Returns the gradient by ``X``; those by the sums are what the batch adds to them."""
    head = Y_GRAD * scale_w if enable_scale_and_shift else Y_GRAD
    count = so.full_like(Means, X.shape[0])
    squares = so.sum(so.square(X - Means), axis=0) + X.shape[0] * epsilon
    others: tuple[Any, ...] = ()
    if enable_scale_and_shift:
        unscaled = (X - Means) * Scales
        others = so.sum(Y_GRAD * unscaled, axis=0), so.sum(Y_GRAD, axis=0)
    return head * Scales, count, so.sum(X, axis=0), squares, *others


@operator(outputs="Out MidOut", ignored="is_test")
def lrn(
    X: Any,
    *,
    n: int = 5,
    k: float = 2.0,
    alpha: float = 0.0001,
    beta: float = 0.75,
    data_format: str = "AnyLayout",
) -> Any:
    axis = 3 if data_format == "NHWC" else 1
    before = (n - 1) // 2
    widths = [0] * (2 * X.ndim)
    widths[2 * axis : 2 * axis + 2] = [before, n - 1 - before]
    squares = so.pad(so.square(X), pad_width=_pairs(widths))
    count = X.shape[axis]
    total = so.add_n(*(so.slice_axis(squares, axis=axis, begin=i, end=i + count) for i in range(n)))
    middle = k + alpha * total
    return X * so.power(middle, -beta), middle


def _pairs(widths: list[int]) -> tuple[tuple[int, int], ...]:
    return tuple(zip(widths[::2], widths[1::2], strict=True))


@operator(outputs="Out Norm", ignored="is_test")
def norm(X: Any, *, axis: int, epsilon: float = 1e-10) -> Any:
    length = so.sqrt(so.sum(so.square(X), axis=axis, keepdims=True) + epsilon)
    return X / length, length


@operator(no_gradient="U V", outputs="Out UOut VOut", ignored="is_test")
def spectral_norm(
    Weight: Any, U: Any, V: Any, *, dim: int = 0, power_iters: int = 1, eps: float = 1e-12
) -> Any:
    matrix = so.reshape(so.moveaxis(Weight, dim, 0), shape=(Weight.shape[dim], -1))
    u, v = so.reshape(U, shape=(-1, 1)), so.reshape(V, shape=(-1, 1))
    for _ in range(power_iters):
        v = _unit(so.matmul(so.swapaxes(matrix, 0, 1), u), eps)
        u = _unit(so.matmul(matrix, v), eps)
    u, v = so.stop_gradient(u), so.stop_gradient(v)
    size = so.sum(u * so.matmul(matrix, v))
    return Weight / size, so.reshape(u, shape=U.shape), so.reshape(v, shape=V.shape)


def _unit(x: Any, eps: float) -> Any:
    return x / (so.global_norm(x) + eps)


@operator()
def affine_channel(X: Any, Scale: Any, Bias: Any, *, data_layout: str = "AnyLayout") -> Any:
    axis = X.ndim - 1 if data_layout == "NHWC" else 1
    return X * _along(Scale, axis, X.ndim) + _along(Bias, axis, X.ndim)
