"""Normalization by magnitude alone: root mean square, length, or local response."""

import math
from typing import Annotated

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, misuse, workload
from registry.operator.attributes import Check
from registry.operator.operator import Grads
from registry.operator.signature import Array, Gain
from registry.ops.conv.average_pooling import average_pooling
from registry.ops.core.broadcasting import cast, unbroadcast
from registry.ops.core.complex_parts import conj, part_dtype
from registry.ops.core.complex_parts import real as real_part
from registry.ops.core.reductions import averaged, count, kept, statistics_dtype
from registry.ops.core.reductions import sum as sum_over
from registry.ops.core.reshaping import reshape
from registry.ops.elementwise.powers import power
from registry.ops.nn.normalization import (
    Axis,
    check_features,
    completed,
    of_data,
    over_features,
)
from registry.ops.reduce.moments import euclidean
from registry.shapes import inexact, normalize_axes, normalize_axis, real
from registry.table import op
from registry.types import DType, Shape, VarType, is_complex
from registry.var import Var
from registry.xla import device_types


def _gradient_by_length(
    x: Var, factor: Var, d: Var, d_factor: Var | None, axis: Axis, n: int
) -> Var:
    """The gradient of ``x * factor``, ``factor = 1 / sqrt(sum(x^2) / n + eps)``."""
    # d factor / d x = -factor^3 x / n, so d_x = factor d - x factor^3 / n sum(d x), plus the
    # cotangent of the factor itself if a gradient uses it. The product x * factor is of moderate
    # magnitude, whereas a power of the factor would underflow for large x. For complex numbers,
    # d sum(|x|^2) = 2 Re sum(conj(x) dx), so x is conjugated, and the real part of the sum is used.
    unit = x * factor
    products, back = d * unit, unit
    if is_complex(x.dtype):
        products, back = real_part(products), conj(unit)
    slope = sum_over(products, axis=axis, keepdims=True)
    if d_factor is not None:
        slope = slope + d_factor * factor
    gradient: Var = d * factor - back * averaged(slope * factor, n)
    return gradient


# rms_norm --------------------------------------------------------------------------------------


def _rms_norm_shape(data: Shape, gamma: Shape | None, *, axis: Axis) -> tuple[Shape, Shape]:
    over = over_features(data, axis)
    check_features(over.features, data, gamma=gamma)
    return data, kept(data, over.axes)


def _rms_norm_dtype(data: VarType, gamma: VarType | None) -> list[DType]:
    dtype = of_data(data, gamma, None)
    return [dtype, statistics_dtype(dtype)]


def _rms_norm_reference(
    data: np.ndarray, gamma: np.ndarray | None, *, axis: Axis, eps: float, use_gamma: bool
) -> np.ndarray:
    axes = (axis,) if isinstance(axis, int) else axis
    last = tuple(range(-len(axes), 0))
    x = np.moveaxis(data, axes, last)
    out = x / np.sqrt(np.mean(x * x, last, keepdims=True) + eps)
    return np.moveaxis(out * gamma if use_gamma else out, last, axes)


@op(
    shape=_rms_norm_shape,
    dtype=_rms_norm_dtype,
    reference=_rms_norm_reference,
    outputs=("out", "rstd"),
    hidden=("rstd",),
    cases=[
        case(data=(3, 6), gamma=(6,)),
        case(data=(2, 3, 4), gamma=(2, 4), axis=(0, -1), eps=0.1, order=2),
        case(data=(2, 5), use_gamma=False, order=1),
        case(data=(0, 3), gamma=(3,), order=1),
        workload(data=(2048, 512), gamma=(512,)),
        misuse("gamma must have shape (4,) for data of (3, 4), got (3,)", data=(3, 4), gamma=(3,)),
        misuse("the inputs must be floating", data=integers(2, 3, high=9), gamma=(3,)),
        misuse("must be real, got complex64", data=np.ones((2, 3), np.complex64), gamma=(3,)),
    ],
)
def rms_norm(
    data: Array,
    gamma: Gain | None = None,
    *,
    axis: int | tuple[int, ...] = -1,
    eps: float = 1e-6,
    use_gamma: bool = True,
) -> tuple[Array, Array]:
    """Root mean square normalization: ``gamma * data / sqrt(mean(data^2) + eps)`` over ``axis``.

    ``gamma`` has the lengths of the axes in ``axis``, in the order of ``data``. The mean is
    computed in at least float32; the result has the dtype of ``data``.

    Source: Zhang and Sennrich, Root mean square layer normalization, 2019.

    Example:
        >>> import jax.numpy as jnp
        >>> rms_norm(jnp.asarray([[1.0, -7.0]]), jnp.asarray([5.0, 10.0]), eps=0.0)
        Array([[  1., -14.]], dtype=float32)
    """
    del use_gamma
    over = over_features(data.shape, axis)
    dtype = statistics_dtype(data.dtype)
    x = data.astype(dtype)
    rstd = lax.rsqrt(jnp.mean(jnp.square(x), axis=over.axes, keepdims=True) + eps)
    out = x * rstd
    if gamma is not None:
        out = out * gamma.astype(dtype).reshape(over.gains)
    return out.astype(data.dtype), rstd


@rms_norm.gradient
def _rms_norm_gradient(
    data: Var, gamma: Var | None, rstd: Var, d_out: Var, d_rstd: Var | None, *, axis: Axis
) -> Grads:
    over = over_features(data.shape, axis)
    x, d = cast(data, dtype=rstd.dtype), cast(d_out, dtype=rstd.dtype)
    n = count(data.shape, over.axes)
    if gamma is None:
        by_data = _gradient_by_length(x, rstd, d, d_rstd, over.axes, n)
        return {"data": unbroadcast(by_data, data), "gamma": None}
    g = d * reshape(gamma, shape=over.gains)
    by_data = _gradient_by_length(x, rstd, g, d_rstd, over.axes, n)
    others = tuple(i for i in range(data.ndim) if i not in over.axes)
    by_gamma = sum_over(d * (x * rstd), axis=others)
    return {"data": unbroadcast(by_data, data), "gamma": unbroadcast(by_gamma, gamma)}


@rms_norm.complete
def _rms_norm_complete(data: Shape | None, *, axis: Axis, use_gamma: bool) -> dict[str, Shape]:
    if data is None:
        return {}
    return completed(over_features(data, axis).features, gamma=use_gamma)


# l2_normalize ----------------------------------------------------------------------------------


def _l2_normalize_shape(x: Shape, *, axis: Axis) -> tuple[Shape, Shape]:
    return x, kept(x, normalize_axes(axis, len(x)))


def _with_factor(x: VarType) -> list[DType]:
    return [inexact(x)[0], statistics_dtype(part_dtype(x)[0])]


def _l2_normalize_reference(x: np.ndarray, *, axis: Axis, eps: float) -> np.ndarray:
    return np.asarray(x / np.sqrt(np.sum(np.abs(x) ** 2, axis, keepdims=True) + eps))


def _squared_size(x: Array) -> Array:
    """``|x|^2``, whose derivative at zero is zero for complex numbers too."""
    return jnp.square(x.real) + jnp.square(x.imag) if is_complex(x.dtype) else jnp.square(x)


@op(
    shape=_l2_normalize_shape,
    dtype=_with_factor,
    reference=_l2_normalize_reference,
    outputs=("out", "factor"),
    hidden=("factor",),
    cases=[
        case(x=(3, 4)),
        case(x=(2, 3, 4), axis=(1, 2), eps=0.1, order=2),
        case(x=(5,), axis=0, order=1),
        case(x=(0, 3), order=1),
        case(x=np.array([[3 - 4j, 1j], [0j, 2 + 1j], [0j, 0j]]), eps=0.5, order=2),
        workload(x=(2048, 512)),
        misuse("axis must be in [-2, 2), got 2", x=(3, 4), axis=2),
        misuse("attribute 'eps' must be positive, got 0.0", x=(3, 4), eps=0.0),
        misuse("the inputs must be floating, got int32", x=integers(3, high=9)),
    ],
)
def l2_normalize(
    x: Array,
    *,
    axis: int | tuple[int, ...] = -1,
    eps: Annotated[float, Check("be positive", lambda value: value > 0)] = 1e-10,
) -> tuple[Array, Array]:
    """Normalizes vectors along ``axis`` to length one: ``x / sqrt(sum(|x|^2) + eps)``.

    Since ``eps`` is added under the root, as in MXNet, the derivative is smooth, and
    ``1 / sqrt(eps)`` at a zero vector. MXNet's modes correspond to axes: ``channel`` is 1,
    ``spatial`` all from 2 on, and ``instance`` all from 1 on. The sum is computed in at least
    float32.

    Example:
        >>> import jax.numpy as jnp
        >>> l2_normalize(jnp.asarray([[3.0, 4.0], [0.0, 0.0]]))
        Array([[0.6, 0.8],
               [0. , 0. ]], dtype=float32)
    """
    wide = x.astype(statistics_dtype(x.dtype))
    total = jnp.sum(_squared_size(wide), axis=axis, keepdims=True)

    def careful(wide: Array, total: Array) -> Array:
        # eps is negligible in a sum that overflows.
        size = jnp.abs(wide) if is_complex(x.dtype) else wide
        return jnp.where(jnp.isinf(total), 1.0 / euclidean(size, axis), lax.rsqrt(total + eps))

    overflows = jnp.any(jnp.isinf(total))
    factor = device_types.cond(
        overflows, careful, lambda _, total: lax.rsqrt(total + eps), wide, total
    )
    return (wide * factor).astype(x.dtype), factor


@l2_normalize.gradient
def _l2_normalize_gradient(
    x: Var, factor: Var, d_out: Var, d_factor: Var | None, *, axis: Axis
) -> Grads:
    dtype = statistics_dtype(x.dtype)
    wide, d = cast(x, dtype=dtype), cast(d_out, dtype=dtype)
    return {"x": unbroadcast(_gradient_by_length(wide, factor, d, d_factor, axis, 1), x)}


# local_response_norm ---------------------------------------------------------------------------


def _local_response_norm_shape(data: Shape, *, axis: int) -> tuple[Shape, Shape]:
    normalize_axis(axis, len(data))
    return data, data


def _data_with_norm(data: VarType) -> list[DType]:
    real(data)
    return _with_factor(data)


def _window_sum(x: Array, axis: int, nsize: int) -> Array:
    """The sum of the ``nsize`` entries around each position."""
    half = nsize // 2
    padded = jnp.pad(x, [(half, half) if i == axis else (0, 0) for i in range(x.ndim)])
    length = x.shape[axis]
    terms = [lax.slice_in_dim(padded, i, i + length, axis=axis) for i in range(nsize)]
    return sum(terms[1:], start=terms[0])


def _window_mean(x: Var, axis: int, nsize: int) -> Var:
    """The sum of the ``nsize`` entries around each position, divided by ``nsize``."""
    at = axis % x.ndim
    lines = (math.prod(x.shape[:at]), x.shape[at], math.prod(x.shape[at + 1 :]))
    pooled = average_pooling(
        reshape(x, shape=lines), kernel=nsize, stride=1, padding=nsize // 2, layout="NWC"
    )
    mean: Var = reshape(pooled, shape=x.shape)
    return mean


def _local_response_norm_reference(
    data: np.ndarray, *, nsize: int, alpha: float, beta: float, knorm: float, axis: int
) -> np.ndarray:
    x = np.moveaxis(data, axis, -1)
    out, half, channels = np.empty_like(x), nsize // 2, x.shape[-1]
    for c in range(channels):
        near = x[..., max(0, c - half) : c + half + 1]
        out[..., c] = x[..., c] / (knorm + alpha / nsize * np.sum(near**2, -1)) ** beta
    return np.moveaxis(out, -1, axis)


@op(
    shape=_local_response_norm_shape,
    dtype=_data_with_norm,
    reference=_local_response_norm_reference,
    outputs=("out", "norm"),
    hidden=("norm",),
    aliases=["LRN"],
    cases=[
        case(data=(2, 5, 3), nsize=3, alpha=0.5),
        case(data=(2, 2, 6), nsize=5, alpha=0.5, beta=0.5, knorm=1.0, axis=-1, order=1),
        case(data=(3, 2), nsize=7, order=1),
        case(data=(0, 3), nsize=3, order=1),
        workload(data=(16, 64, 32, 32), nsize=5),
        misuse("attribute 'nsize' must be odd and positive, got 4", data=(2, 5), nsize=4),
        misuse("axis must be in [-2, 2), got 2", data=(2, 5), nsize=3, axis=2),
        misuse("must be real, got complex64", data=np.ones((2, 3), np.complex64), nsize=3),
        misuse("the inputs must be floating", data=integers(2, 3, high=9), nsize=3),
    ],
)
def local_response_norm(
    data: Array,
    *,
    nsize: Annotated[int, Check("be odd and positive", lambda value: value > 0 and value % 2 == 1)],
    alpha: float = 1e-4,
    beta: float = 0.75,
    knorm: float = 2.0,
    axis: int = 1,
) -> tuple[Array, Array]:
    """Local response normalization: ``data / (knorm + alpha / nsize * s)^beta``.

    ``s`` is the sum of the squares of the ``nsize`` channels along ``axis`` around each channel,
    with fewer at both ends. It is computed in at least float32.

    Source: Krizhevsky, Sutskever and Hinton, ImageNet classification with deep convolutional
    neural networks, 2012, where ``alpha`` is not divided by ``nsize``.

    Example:
        >>> import jax.numpy as jnp
        >>> data = jnp.asarray([[1.0, 2.0, 3.0]])
        >>> local_response_norm(data, nsize=3, alpha=3.0, beta=1.0, knorm=1.0)
        Array([[0.16666..., 0.13333..., 0.21428...]], dtype=float32)
    """
    x = data.astype(statistics_dtype(data.dtype))
    norm = knorm + alpha / nsize * _window_sum(jnp.square(x), axis % data.ndim, nsize)
    return (x * lax.pow(norm, jnp.asarray(-beta, norm.dtype))).astype(data.dtype), norm


@local_response_norm.gradient
def _local_response_norm_gradient(
    data: Var,
    norm: Var,
    d_out: Var,
    d_norm: Var | None,
    *,
    nsize: int,
    alpha: float,
    beta: float,
    axis: int,
) -> Grads:
    # norm = knorm + alpha M(x^2), where the mean M over a centered window is self-adjoint.
    # out = x p with p = norm^-beta and d p / d norm = -beta p / norm, so
    # d_x = d_out p - 2 alpha x M(beta d_out x p / norm - d_norm).
    x, d = cast(data, dtype=norm.dtype), cast(d_out, dtype=norm.dtype)
    scaled = d * power(norm, -beta)
    reached = beta * (scaled * x / norm)
    if d_norm is not None:
        reached = reached - d_norm
    d_x = scaled - (2.0 * alpha) * (x * _window_mean(reached, axis, nsize))
    return {"data": unbroadcast(d_x, data)}
