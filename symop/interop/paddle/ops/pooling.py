"""Pooling over spatial axes."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import symop as so
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.operators import operator
from symop.interop.paddle.ops.convolutions import (
    Pairs,
    channels_last,
    layout_of,
    padding_pairs,
    spatial_lengths,
)
from symop.interop.paddle.ops.tensors import put_along_axis
from symop.interop.paddle.ops.versions import version_of

_FUSED = "is_test use_quantizer fuse_activation fuse_alpha fuse_beta"
_COUNTS_WINDOW = 2_000_000
"""Before this release an inclusive average always divides by the size of the window."""


class _Windows(NamedTuple):
    """Where a pooling looks.

    Attributes:
        lengths: the lengths of the input.
        kernel: the lengths of a window.
        strides: the steps from one window to the next.
        padding: the padding that counts if an average is inclusive.
        reach: the padding over which windows extend.
        layout: the order of the input's axes.
    """

    lengths: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    padding: Pairs
    reach: Pairs
    layout: str

    def arguments(self) -> dict[str, Any]:
        """Returns the attributes of the catalogue's pooling."""
        return {
            "kernel": self.kernel,
            "stride": self.strides,
            "padding": self.reach,
            "layout": self.layout,
        }


def _windows(
    x: Any,
    kernel: Sequence[int],
    strides: Sequence[int],
    paddings: Sequence[int],
    padding_algorithm: str = "EXPLICIT",
    *,
    ceil_mode: bool = False,
    data_format: str = "NCHW",
) -> _Windows:
    """Returns the windows that a call describes; ``ceil_mode`` lets the last one extend further."""
    lengths = spatial_lengths(x, data_format)
    padding = padding_pairs("pool2d", paddings, padding_algorithm, lengths, kernel, strides)
    reach = _extended(lengths, kernel, strides, padding) if ceil_mode else padding
    layout = layout_of(data_format, x.ndim)
    return _Windows(lengths, tuple(kernel), tuple(strides), padding, reach, layout)


def _extended(
    lengths: Sequence[int], kernel: Sequence[int], strides: Sequence[int], pairs: Pairs
) -> Pairs:
    """Returns the padding with which the last window fits, so that the output rounds up."""
    wider = []
    for n, k, stride, (before, after) in zip(lengths, kernel, strides, pairs, strict=True):
        windows = -(-(n + before + after - k) // stride) + 1
        wider.append((before, (windows - 1) * stride + k - n - before))
    return tuple((before, max(after, 0)) for before, after in wider)


def _pooling(count: int, name: str, layout: str) -> None:
    """Defines pooling over a number of spatial axes."""

    @operator(name, ignored=_FUSED)
    def composed(
        X: Any,
        *,
        pooling_type: str = "max",
        ksize: Sequence[int],
        global_pooling: bool = False,
        strides: Sequence[int] = (1,) * count,
        paddings: Sequence[int] = (0,) * count,
        exclusive: bool = True,
        adaptive: bool = False,
        ceil_mode: bool = False,
        data_format: str = layout,
        padding_algorithm: str = "EXPLICIT",
        call: Any,
    ) -> Any:
        largest = _is_largest(pooling_type)
        if global_pooling or (adaptive and all(one == 1 for one in ksize)):
            return _whole(X, largest, data_format)
        if adaptive:
            shrunk = so.adaptive_max_pooling if largest else so.adaptive_average_pooling
            return shrunk(X, output_size=tuple(ksize), layout=layout_of(data_format, X.ndim))
        windows = _windows(
            X,
            ksize,
            strides,
            paddings,
            padding_algorithm,
            ceil_mode=ceil_mode,
            data_format=data_format,
        )
        return _pooled(X, windows, largest, exclusive, version_of(call))


_pooling(2, "pool2d", "NCHW")
_pooling(3, "pool3d", "NCDHW")


def _is_largest(pooling_type: str) -> bool:
    """Returns whether the largest entry is wanted, not the average.

    Raises:
        PaddleError: ``pooling_type`` names neither.
    """
    if pooling_type not in ("max", "avg"):
        raise PaddleError(f"pool2d: pooling_type must be 'max' or 'avg', got {pooling_type!r}")
    return pooling_type == "max"


def _whole(x: Any, largest: bool, data_format: str) -> Any:
    """Returns the largest entry or the average of each channel."""
    axes = tuple(range(1, x.ndim - 1) if channels_last(data_format) else range(2, x.ndim))
    return (so.max if largest else so.mean)(x, axis=axes, keepdims=True)


def _pooled(x: Any, windows: _Windows, largest: bool, exclusive: bool, version: int) -> Any:
    """Returns the largest entries or the averages of windows.

    Args:
        x: the input.
        windows: the windows.
        largest: whether the largest entries are wanted.
        exclusive: whether padding does not count in averages.
        version: the release that wrote the program.
    """
    if largest:
        return so.max_pooling(x, **windows.arguments())
    if windows.reach == windows.padding:
        return so.average_pooling(x, count_include_pad=not exclusive, **windows.arguments())
    divisors = _divisors(windows, exclusive, version)
    last = channels_last(windows.layout)
    shape = (1, *divisors.shape, 1) if last else (1, 1, *divisors.shape)
    scale = (math.prod(windows.kernel) / divisors).reshape(shape).astype(x.dtype)
    return so.average_pooling(x, count_include_pad=True, **windows.arguments()) * scale


def _divisors(windows: _Windows, exclusive: bool, version: int) -> np.ndarray:
    """Returns the number of entries by which the sum of each window is divided."""
    whole = not exclusive and version < _COUNTS_WINDOW
    counts = np.ones(())
    for n, k, stride, (before, after), (_, reach) in zip(*windows[:5], strict=True):
        starts = np.arange((n + before + reach - k) // stride + 1) * stride - before
        low, high = (0, n) if exclusive else (-before, n + after)
        inside = np.minimum(starts + k, high) - np.maximum(starts, low)
        counts = np.multiply.outer(
            counts, np.full_like(starts, k) if whole else np.maximum(inside, 1)
        )
    return counts


def _pooling_with_index(count: int, name: str) -> None:
    @operator(name, outputs="Out Mask", ignored=_FUSED)
    def composed(
        X: Any,
        *,
        ksize: Sequence[int],
        global_pooling: bool = False,
        adaptive: bool = False,
        ceil_mode: bool = False,
        strides: Sequence[int] = (1,) * count,
        paddings: Sequence[int] = (0,) * count,
    ) -> Any:
        return _largest(X, ksize, global_pooling, adaptive, ceil_mode, strides, paddings)


_pooling_with_index(2, "max_pool2d_with_index")
_pooling_with_index(3, "max_pool3d_with_index")


def _largest(
    X: Any,
    ksize: Sequence[int],
    global_pooling: bool,
    adaptive: bool,
    ceil_mode: bool,
    strides: Sequence[int],
    paddings: Sequence[int],
) -> tuple[Any, Any]:
    """Returns the largest entries of windows, and their places."""
    lengths = tuple(X.shape[2:])
    if adaptive and not global_pooling:
        out = so.adaptive_max_pooling(X, output_size=tuple(ksize))
        return out, _places(X, [_adaptive(*one) for one in zip(lengths, ksize, strict=True)])
    if global_pooling:
        ksize, paddings = lengths, [0] * len(lengths)
    windows = _windows(X, ksize, strides, paddings, ceil_mode=ceil_mode)
    out = so.max_pooling(X, **windows.arguments())
    return out, _places(X, _positions(windows, out.shape[2:]))


def _adaptive(length: int, count: int) -> np.ndarray:
    """Returns the positions in adaptive windows along one axis, -1 beyond the end of a window."""
    starts = np.arange(count) * length // count
    ends = -(-np.arange(1, count + 1) * length // count)
    positions = starts[:, None] + np.arange((ends - starts).max())
    return np.where(positions < ends[:, None], positions, -1)


def _positions(windows: _Windows, counts: Sequence[int]) -> list[np.ndarray]:
    """Returns the positions in windows along each axis, -1 in the padding."""
    found = []
    for n, k, stride, (before, _), count in zip(
        windows.lengths, windows.kernel, windows.strides, windows.reach, counts, strict=True
    ):
        at = np.arange(count)[:, None] * stride - before + np.arange(k)
        found.append(np.where(at < n, np.maximum(at, -1), -1))
    return found


def _places(x: Any, positions: Sequence[np.ndarray]) -> Any:
    """Returns where the largest entry of each window is, among the entries of its channel.

    Args:
        x: the input.
        positions: along each axis the positions in each window; -1 where there is none.
    """
    windows = _entries(positions, x.shape[2:])
    flat = so.reshape(x, shape=(*x.shape[:2], -1))
    taken = so.take(flat, np.maximum(windows, 0), axis=2)
    kept = so.where(windows >= 0, taken, -np.inf)
    best = so.expand_dims(so.argmax(kept, axis=-1), axis=-1)
    every = so.broadcast_to(windows[None, None], shape=(*x.shape[:2], *windows.shape))
    return so.squeeze(so.take_along_axis(every, best, axis=-1), axis=-1)


def _entries(positions: Sequence[np.ndarray], lengths: Sequence[int]) -> np.ndarray:
    """Returns the numbers of the entries in each window, which are along the last axis."""
    count = len(positions)
    ids, inside = np.zeros((1,) * (2 * count), np.int32), np.ones((1,) * (2 * count), bool)
    for i, (at, n) in enumerate(zip(positions, lengths, strict=True)):
        shape = [1] * (2 * count)
        shape[i], shape[count + i] = at.shape
        ids = ids * n + np.maximum(at, 0).reshape(shape).astype(np.int32)
        inside = inside & (at >= 0).reshape(shape)
    numbers = np.where(inside, ids, np.int32(-1))
    return numbers.reshape(*numbers.shape[:count], -1)


@operator(no_gradient="Indices")
def unpool(
    X: Any,
    Indices: Any,
    *,
    unpooling_type: str = "max",
    ksize: Sequence[int],
    strides: Sequence[int] = (1, 1),
    paddings: Sequence[int] = (0, 0),
    output_size: Sequence[int] = (),
    data_format: str = "NCHW",
) -> Any:
    """Returns the largest entries at the places where a pooling found them, zeros elsewhere."""
    if unpooling_type != "max" or data_format != "NCHW":
        raise PaddleError(
            "unpool: unpooling_type must be 'max' and data_format 'NCHW', "
            f"got {unpooling_type!r} and {data_format!r}"
        )
    sides = zip(X.shape[2:], ksize, strides, paddings, strict=True)
    lengths = tuple(output_size) or tuple((n - 1) * s - 2 * pad + k for n, k, s, pad in sides)
    channels = X.shape[0] * X.shape[1]
    values, places = (so.reshape(one, shape=(channels, -1)) for one in (X, Indices))
    whole = so.zeros(shape=(channels, math.prod(lengths)), dtype=X.dtype)
    found = put_along_axis(whole, places, values, Axis=1)
    return so.reshape(found, shape=(*X.shape[:2], *lengths))


@operator()
def spp(X: Any, *, pyramid_height: int, pooling_type: str = "max", call: Any) -> Any:
    """Pools the image into 1, 4, 16, ... parts, and joins the channels of all of them."""
    levels = [_parts(X, 2**level, pooling_type, call) for level in range(pyramid_height)]
    return so.concat(*levels, axis=1) if len(levels) > 1 else levels[0]


def _parts(x: Any, count: int, pooling_type: str, call: Any) -> Any:
    """Returns an image pooled into ``count`` parts along each axis, flattened."""
    kernel = [-(-n // count) for n in x.shape[2:]]
    pads = [(k * count - n + 1) // 2 for n, k in zip(x.shape[2:], kernel, strict=True)]
    windows = _windows(x, kernel, kernel, pads)
    out = _pooled(x, windows, _is_largest(pooling_type), True, version_of(call))
    return so.reshape(out, shape=(x.shape[0], -1))
