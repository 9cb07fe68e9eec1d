"""Pooling over spatial axes."""

import math
from collections.abc import Sequence
from typing import Any

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
        return _pooled(
            X,
            pooling_type,
            ksize,
            global_pooling,
            strides,
            paddings,
            exclusive,
            adaptive,
            ceil_mode,
            data_format,
            padding_algorithm,
            call,
        )


_pooling(2, "pool2d", "NCHW")
_pooling(3, "pool3d", "NCDHW")


def _pooled(
    X: Any,
    pooling_type: str,
    ksize: Sequence[int],
    global_pooling: bool,
    strides: Sequence[int],
    paddings: Sequence[int],
    exclusive: bool,
    adaptive: bool,
    ceil_mode: bool,
    data_format: str,
    padding_algorithm: str,
    call: Any,
) -> Any:
    if pooling_type not in ("max", "avg"):
        raise PaddleError(f"pool2d: pooling_type must be 'max' or 'avg', got {pooling_type!r}")
    largest = pooling_type == "max"
    layout, lengths = layout_of(data_format, X.ndim), spatial_lengths(X, data_format)
    if global_pooling or (adaptive and all(one == 1 for one in ksize)):
        function = so.max if largest else so.mean
        axes = tuple(range(1, X.ndim - 1) if channels_last(data_format) else range(2, X.ndim))
        return function(X, axis=axes, keepdims=True)
    if adaptive:
        shrunk = so.adaptive_max_pooling if largest else so.adaptive_average_pooling
        return shrunk(X, output_size=tuple(ksize), layout=layout)
    pairs = padding_pairs("pool2d", paddings, padding_algorithm, lengths, ksize, strides)
    wider = _extended(lengths, ksize, strides, pairs) if ceil_mode else pairs
    window = {"kernel": tuple(ksize), "stride": tuple(strides), "padding": wider, "layout": layout}
    if largest:
        return so.max_pooling(X, **window)
    if not ceil_mode:
        return so.average_pooling(X, count_include_pad=not exclusive, **window)
    whole = not exclusive and version_of(call) < _COUNTS_WINDOW
    divisors = _counts(lengths, ksize, strides, pairs, wider, exclusive, whole)
    shape = (1, *divisors.shape, 1) if channels_last(data_format) else (1, 1, *divisors.shape)
    scale = (math.prod(ksize) / divisors).reshape(shape).astype(X.dtype)
    return so.average_pooling(X, count_include_pad=True, **window) * scale


def _extended(
    lengths: Sequence[int], kernel: Sequence[int], strides: Sequence[int], pairs: Pairs
) -> Pairs:
    """Returns the padding with which the last window fits, so that the output rounds up."""
    wider = []
    for n, k, stride, (before, after) in zip(lengths, kernel, strides, pairs, strict=True):
        windows = -(-(n + before + after - k) // stride) + 1
        wider.append((before, (windows - 1) * stride + k - n - before))
    return tuple((before, max(after, 0)) for before, after in wider)


def _counts(
    lengths: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    pairs: Pairs,
    wider: Pairs,
    exclusive: bool,
    whole: bool,
) -> np.ndarray:
    """Returns the number of entries by which the sum of each window is divided.

    Args:
        lengths: the lengths of the input.
        kernel: the lengths of the window.
        strides: the steps of the window.
        pairs: the padding that counts if the average is inclusive.
        wider: the padding over which windows extend.
        exclusive: whether padding does not count.
        whole: whether all entries of a window count.
    """
    counts = np.ones(())
    for n, k, stride, (before, after), (_, reach) in zip(
        lengths, kernel, strides, pairs, wider, strict=True
    ):
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
        return out, None
    kernel = lengths if global_pooling else tuple(ksize)
    pairs = tuple((0, 0) if global_pooling else (one, one) for one in paddings)
    wider = _extended(lengths, kernel, strides, pairs) if ceil_mode else pairs
    out = so.max_pooling(X, kernel=kernel, stride=tuple(strides), padding=wider)
    return out, _places(X, kernel, tuple(strides), wider, out.shape)


def _places(
    x: Any, kernel: Sequence[int], strides: Sequence[int], pairs: Pairs, shape: Sequence[int]
) -> Any:
    """Returns where the largest entry of each window is, among the entries of its channel."""
    lengths = tuple(x.shape[2:])
    ids = np.arange(math.prod(lengths), dtype=np.int32).reshape(1, 1, *lengths)
    widths = [(0, 0), (0, 0), *pairs]
    padded = np.pad(ids, widths, constant_values=-1)
    outer = np.indices(shape[2:])
    inner = np.indices(kernel).reshape(len(kernel), -1)
    at = [outer[i][..., None] * strides[i] + inner[i] for i in range(len(kernel))]
    windows = padded[(0, 0, *at)]
    flat = so.reshape(x, shape=(*x.shape[:2], -1))
    taken = so.take(flat, np.maximum(windows, 0), axis=2)
    kept = so.where(windows >= 0, taken, -np.inf)
    best = so.expand_dims(so.argmax(kept, axis=-1), axis=-1)
    every = so.broadcast_to(windows[None, None], shape=(*x.shape[:2], *windows.shape))
    return so.squeeze(so.take_along_axis(every, best, axis=-1), axis=-1)


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
    window = (kernel, False, kernel, pads, True, False, False, "NCHW", "EXPLICIT")
    return so.reshape(_pooled(x, pooling_type, *window, call), shape=(x.shape[0], -1))
