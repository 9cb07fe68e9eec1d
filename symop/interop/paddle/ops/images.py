"""Images: resizing, rearranging channels, sampling and windows."""

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

import symop as so
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.operators import Values, operator
from symop.interop.paddle.ops.convolutions import channels_last
from symop.interop.paddle.values import known, numbers


def _interpolation(name: str, method: str, count: int, version: int) -> None:
    @operator(
        *((f"{name}_interp",) if version == 1 else (f"{name}_interp_v2",)),
        no_gradient="OutSize SizeTensor Scale",
        ignored="interp_method",
    )
    def composed(
        X: Any,
        OutSize: Any = None,
        SizeTensor: Values | None = None,
        Scale: Any = None,
        *,
        out_d: int = 0,
        out_h: int = 0,
        out_w: int = 0,
        scale: float | Sequence[float] = 0.0 if version == 1 else (),
        align_corners: bool = True,
        align_mode: int = 1,
        data_layout: str = "NCHW",
    ) -> Any:
        last = channels_last(data_layout)
        lengths = X.shape[1:-1] if last else X.shape[2:]
        sizes = (out_d, out_h, out_w)[3 - count :]
        factors = _factors(name, scale, Scale, count)
        if SizeTensor:
            sizes = tuple(numbers(f"{name}: SizeTensor", one)[0] for one in SizeTensor)
        elif OutSize is not None:
            sizes = tuple(numbers(f"{name}: OutSize", OutSize))
        elif factors:
            sizes = tuple(int(n * one) for n, one in zip(lengths, factors, strict=True))
        used = factors if version == 2 and factors and not SizeTensor and OutSize is None else None
        result = X
        for i, size in enumerate(sizes):
            ratio = _ratio(lengths[i], size, align_corners, used[i] if used else None)
            axis = i + 1 if last else i + 2
            result = _resized(result, axis, size, ratio, method, align_corners, align_mode)
        return result


def _factors(name: str, scale: Any, tensor: Any, count: int) -> list[float]:
    if tensor is not None:
        given = [float(one) for one in known(f"{name}: Scale", tensor).ravel()]
    else:
        given = [scale] if isinstance(scale, (int, float)) else list(scale)
    given = [one for one in given if one > 0]
    return given * count if len(given) == 1 else given


def _ratio(length: int, size: int, align_corners: bool, factor: float | None) -> float:
    """Returns how far apart outputs are, in entries of the input."""
    if align_corners:
        return (length - 1) / (size - 1) if size > 1 else 0.0
    return 1 / factor if factor else length / size


def _resized(
    x: Any, axis: int, size: int, ratio: float, method: str, align_corners: bool, align_mode: int
) -> Any:
    """Returns ``x`` with ``size`` entries along an axis, interpolated."""
    length, steps = x.shape[axis], np.arange(size, dtype=np.float32)
    scale = np.float32(ratio)
    if method == "cubic":
        return _cubic(x, axis, scale * steps if align_corners else scale * (steps + 0.5) - 0.5)
    if method == "nearest":
        places = np.floor(scale * steps + (0.5 if align_corners else 0)).astype(np.int32)
        return so.take(x, jnp.asarray(np.clip(places, 0, length - 1)), axis=axis)
    halves = align_mode == 0 and not align_corners
    places = scale * (steps + 0.5) - 0.5 if halves else scale * steps
    places = np.maximum(places, 0)
    low = np.minimum(places.astype(np.int32), length - 1)
    high = np.minimum(low + 1, length - 1)
    weight = (places - low).astype(np.float32)
    weight = weight.reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    first, second = (so.take(x, jnp.asarray(one), axis=axis) for one in (low, high))
    return first * jnp.asarray(1 - weight) + second * jnp.asarray(weight)


_CUBIC = -0.75


def _cubic(x: Any, axis: int, places: np.ndarray) -> Any:
    """Returns ``x`` at places along an axis, by cubic convolution of four neighbors."""
    low = np.floor(places).astype(np.int32)
    distance = np.abs(places[:, None] - (low[:, None] + np.arange(-1, 3)))
    near = ((_CUBIC + 2) * distance - (_CUBIC + 3)) * distance**2 + 1
    far = ((distance - 5) * distance + 8) * distance * _CUBIC - 4 * _CUBIC
    weights = np.where(distance <= 1, near, far).astype(np.float32)
    total = []
    for i in range(4):
        ids = np.clip(low + i - 1, 0, x.shape[axis] - 1)
        weight = weights[:, i].reshape([-1 if j == axis else 1 for j in range(x.ndim)])
        total.append(so.take(x, jnp.asarray(ids), axis=axis) * jnp.asarray(weight))
    return so.add_n(*total)


for _name, _method, _count in (
    ("nearest", "nearest", 2),
    ("bilinear", "linear", 2),
    ("linear", "linear", 1),
    ("trilinear", "linear", 3),
    ("bicubic", "cubic", 2),
):
    for _version in (1, 2):
        _interpolation(_name, _method, _count, _version)


@operator()
def pixel_shuffle(X: Any, *, upscale_factor: int = 1, data_format: str = "NCHW") -> Any:
    last, r = channels_last(data_format), upscale_factor
    x = so.transpose(X, axes=(0, 3, 1, 2)) if last else X
    n, c, h, w = x.shape
    parts = so.reshape(x, shape=(n, c // (r * r), r, r, h, w))
    out = so.reshape(
        so.transpose(parts, axes=(0, 1, 4, 2, 5, 3)), shape=(n, c // (r * r), h * r, w * r)
    )
    return so.transpose(out, axes=(0, 2, 3, 1)) if last else out


@operator()
def space_to_depth(X: Any, *, blocksize: int = 2) -> Any:
    """Moves channels into blocks of space, and reads the result in the shape with more channels.

    That is what Paddle computes, as the layer of YOLO v2 did; it is not the usual rearrangement.
    """
    n, c, h, w = X.shape
    b = blocksize
    parts = so.reshape(X, shape=(n, b, b, c // (b * b), h, w))
    spread = so.transpose(parts, axes=(0, 3, 4, 1, 5, 2))
    return so.reshape(spread, shape=(n, c * b * b, h // b, w // b))


@operator()
def shuffle_channel(X: Any, *, group: int = 1) -> Any:
    n, c, h, w = X.shape
    parts = so.swapaxes(so.reshape(X, shape=(n, group, c // group, h, w)), 1, 2)
    return so.reshape(parts, shape=X.shape)


@operator()
def temporal_shift(
    X: Any, *, seg_num: int, shift_ratio: float = 0.25, data_format: str = "NCHW"
) -> Any:
    last = channels_last(data_format)
    x = so.transpose(X, axes=(0, 3, 1, 2)) if last else X
    nt, c, h, w = x.shape
    clips = so.reshape(x, shape=(nt // seg_num, seg_num, c, h, w))
    first, second = int(c * shift_ratio), int(c * 2 * shift_ratio)
    padded = so.pad(clips, pad_width=((0, 0), (1, 1), (0, 0), (0, 0), (0, 0)))
    pieces = [
        so.slice(
            padded,
            begin=(None, start, low, None, None),
            end=(None, start + seg_num, high, None, None),
        )
        for start, low, high in ((0, 0, first), (2, first, second), (1, second, c))
        if high > low
    ]
    out = so.reshape(so.concat(*pieces, axis=2), shape=x.shape)
    return so.transpose(out, axes=(0, 2, 3, 1)) if last else out


@operator(outputs="Y")
def unfold(
    X: Any,
    *,
    kernel_sizes: Sequence[int],
    strides: Sequence[int],
    paddings: Sequence[int],
    dilations: Sequence[int],
) -> Any:
    before, after = tuple(paddings[:2]), tuple(paddings[2:]) or tuple(paddings[:2])
    pairs = tuple(zip(before, after, strict=True))
    return so.im2col(
        X,
        kernel=tuple(kernel_sizes),
        stride=tuple(strides),
        padding=pairs,
        dilation=tuple(dilations),
    )


@operator(outputs="Output", no_gradient="OutputShape")
def affine_grid(
    Theta: Any,
    OutputShape: Any = None,
    *,
    align_corners: bool = True,
    output_shape: Sequence[int] = (),
) -> Any:
    lengths = output_shape if OutputShape is None else numbers("affine_grid", OutputShape)
    height, width = lengths[2:]
    ys, xs = (_ticks(n, align_corners) for n in (height, width))
    base = np.stack([*np.meshgrid(xs, ys), np.ones((height, width))], axis=-1).reshape(-1, 3)
    points = so.matmul(jnp.asarray(base, jnp.float32), so.swapaxes(Theta, 1, 2))
    return so.reshape(points, shape=(Theta.shape[0], height, width, 2))


def _ticks(count: int, align_corners: bool) -> np.ndarray:
    ticks = np.linspace(-1, 1, count)
    return ticks if align_corners else ticks * (count - 1) / count


@operator("grid_sampler", outputs="Output")
def grid_sampler(
    X: Any,
    Grid: Any,
    *,
    align_corners: bool = True,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
) -> Any:
    if mode not in ("bilinear", "nearest"):
        raise PaddleError(f"grid_sampler: mode must be bilinear or nearest, got {mode!r}")
    if padding_mode not in ("zeros", "border"):
        raise PaddleError(
            f"grid_sampler: padding_mode must be zeros or border, got {padding_mode!r}"
        )
    lengths = X.shape[3], X.shape[2]
    places = []
    for i, length in enumerate(lengths):
        unit = so.squeeze(so.slice_axis(Grid, axis=3, begin=i, end=i + 1), axis=3)
        place = (
            (unit + 1) * (0.5 * (length - 1)) if align_corners else ((unit + 1) * length - 1) * 0.5
        )
        places.append(
            so.clip(place, low=0.0, high=length - 1.0) if padding_mode == "border" else place
        )
    xs, ys = places
    if mode == "nearest":
        return _sampled(X, so.round(xs), so.round(ys))
    return _bilinear(X, xs, ys)


def _bilinear(x: Any, xs: Any, ys: Any) -> Any:
    """Returns an image between its pixels; it is zero outside."""
    left, top = so.floor(xs), so.floor(ys)
    total = []
    for dx in (0, 1):
        for dy in (0, 1):
            across = xs - left if dx else 1 - (xs - left)
            down = ys - top if dy else 1 - (ys - top)
            weight = so.expand_dims(across * down, axis=1)
            total.append(weight * _sampled(x, left + dx, top + dy))
    return so.add_n(*total)


def _sampled(x: Any, xs: Any, ys: Any) -> Any:
    """Returns the pixels at whole places, zero outside of the image."""
    n, c, height, width = x.shape
    inside = so.logical_and(
        so.logical_and(xs >= 0, xs <= width - 1), so.logical_and(ys >= 0, ys <= height - 1)
    )
    column = so.cast(so.clip(xs, low=0, high=width - 1), dtype="int32")
    row = so.cast(so.clip(ys, low=0, high=height - 1), dtype="int32")
    flat = so.reshape(row * width + column, shape=(n, 1, math.prod(xs.shape[1:])))
    found = so.take_along_axis(so.reshape(x, shape=(n, c, height * width)), flat, axis=2)
    found = so.reshape(found, shape=(n, c, *xs.shape[1:]))
    return so.where(so.expand_dims(inside, axis=1), found, so.zeros_like(found))


@operator(ignored="data_format")
def add_position_encoding(X: Any, *, alpha: float = 1.0, beta: float = 1.0) -> Any:
    steps, width = X.shape[-2:]
    half = width // 2
    scales = 10000.0 ** (np.arange(half) / max(half - 1, 1))
    angles = np.arange(steps)[:, None] / scales
    table = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    return alpha * X + jnp.asarray(beta * table, X.dtype)


@operator()
def fsp(X: Any, Y: Any) -> Any:
    flat = [so.reshape(one, shape=(*one.shape[:2], -1)) for one in (X, Y)]
    return so.matmul(flat[0], so.swapaxes(flat[1], 1, 2)) / flat[0].shape[2]


@operator("deformable_conv", "deformable_conv_v1", outputs="Output", ignored="im2col_step")
def deformable_conv(
    Input: Any,
    Offset: Any,
    Filter: Any,
    Mask: Any = None,
    *,
    strides: Sequence[int] = (1, 1),
    paddings: Sequence[int] = (0, 0),
    dilations: Sequence[int] = (1, 1),
    groups: int = 1,
    deformable_groups: int = 1,
) -> Any:
    """Returns a convolution whose taps are moved by ``Offset`` and weighted by ``Mask``."""
    n, c = Input.shape[:2]
    taps, (height, width) = math.prod(Filter.shape[2:]), Offset.shape[2:]
    parts, count = [], c // deformable_groups
    moves = so.reshape(Offset, shape=(n, deformable_groups, taps, 2, height, width))
    centers = _tap_places(Filter.shape[2:], (height, width), strides, paddings, dilations)
    for group in range(deformable_groups):
        ys, xs = (
            so.reshape(moves[:, group, :, i] + centers[i], shape=(n, taps * height, width))
            for i in range(2)
        )
        own = so.slice_axis(Input, axis=1, begin=group * count, end=(group + 1) * count)
        found = so.reshape(_bilinear(own, xs, ys), shape=(n, count, taps, height, width))
        if Mask is not None:
            shares = so.reshape(Mask, shape=(n, deformable_groups, 1, taps, height, width))
            found = found * shares[:, group]
        parts.append(found)
    columns = so.concat(*parts, axis=1) if len(parts) > 1 else parts[0]
    columns = so.reshape(columns, shape=(n, groups, c // groups * taps, height * width))
    weights = so.reshape(Filter, shape=(groups, Filter.shape[0] // groups, -1))
    return so.reshape(so.matmul(weights, columns), shape=(n, Filter.shape[0], height, width))


def _tap_places(
    kernel: Sequence[int],
    lengths: Sequence[int],
    strides: Sequence[int],
    paddings: Sequence[int],
    dilations: Sequence[int],
) -> tuple[Any, Any]:
    """Returns the rows and the columns that taps read, of shape (taps, height, width)."""
    down, across = np.indices(tuple(kernel)).reshape(2, -1)
    rows, columns = (np.arange(n) * stride for n, stride in zip(lengths, strides, strict=True))
    ys = down[:, None, None] * dilations[0] - paddings[0] + rows[:, None]
    xs = across[:, None, None] * dilations[1] - paddings[1] + columns
    shape = (len(down), *lengths)
    places = (np.broadcast_to(one, shape) for one in (ys, xs))
    first, second = (jnp.asarray(one, jnp.float32) for one in places)
    return first, second
