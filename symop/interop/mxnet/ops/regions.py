"""Pooling of regions of interest, and correlation of feature maps."""

from typing import Any

import numpy as np

import symop as so
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.partial_shapes import Shapes, enter, merged, numbered

Lengths = tuple[int, ...]


def _pooled_shapes(given: Shapes, found: Shapes, pooled_size: Lengths) -> None:
    """Infers shapes from ``rois``; channels are not inferred, since a region may split them."""
    enter(found, 0, (0, 0, *pooled_size))
    count = given[1][0] if given[1] is not None else 0
    enter(found, 0, (count, 0, 0, 0))
    if found[0] is not None and given[1] is not None:
        enter(given, 1, (found[0][0], 0))


def _roi_pooling_shapes(given: Shapes, found: Shapes, pooled_size: Lengths) -> None:
    _pooled_shapes(given, found, pooled_size)
    if given[0] is not None:
        enter(found, 0, (0, given[0][1], 0, 0))


@operator(
    "ROIPooling",
    shapes=_roi_pooling_shapes,
    outputs=lambda: ("output", "maxidx"),
    visible=lambda: 1,
)
def roi_pooling(data: Any, rois: Any, *, pooled_size: Lengths, spatial_scale: float) -> Any:
    """The maximum of each bin of each region."""
    return so.roi_pooling(data, rois, pooled_size=pooled_size, spatial_scale=spatial_scale)


# Bins with arbitrary bounds --------------------------------------------------------------------
#
# The mean over a bin, a product of two intervals, is a product of two matrices, each of the bins
# along one axis by the entries of that axis.


def images_of(data: Any, rois: Any) -> tuple[Any, Any]:
    """The image and the corners of each region; zeros for an invalid image index."""
    ids = so.cast(so.slice_axis(rois, axis=1, begin=0, end=1), dtype="int32")
    flat = so.reshape(ids, shape=(-1,))
    images = so.take(data, flat, axis=0, mode="clip")
    legal = so.logical_and(so.greater_equal(ids, 0), so.less(ids, data.shape[0]))
    inside = so.reshape(so.cast(legal, dtype=data.dtype), shape=(-1, 1, 1, 1))
    return images * inside, so.slice_axis(rois, axis=1, begin=1, end=5)


def columns_of(corners: Any) -> list[Any]:
    """Left, top, right and bottom as columns of shape (regions, 1)."""
    return [so.slice_axis(corners, axis=1, begin=i, end=i + 1) for i in range(4)]


def _sampled(start: Any, extent: Any, bins: int, length: int) -> Any:
    """The weight of each entry of an axis in each bin, for evenly sampled bins.

    The number of samples of a bin is its length, rounded up. Only those on the axis are computed:
    if a bin is longer than k and has k + 1 samples, these are more than k / (k + 1) apart, and
    fewer than length + 4 of them lie between -1 and length.
    """
    dtype, most = start.dtype, length + 4
    number, sample = numbered(bins).astype(dtype), numbered(most).astype(dtype)
    count = so.ceil(extent * (1.0 / bins))
    start, extent, count = (so.reshape(x, shape=(-1, 1, 1)) for x in (start, extent, count))
    size = extent * (1.0 / bins)
    apart, begin = size / count, start + size * number[:, None]
    first = so.maximum(so.floor((-1.0 - begin) / apart - 0.5), 0.0)
    chosen = first + sample
    place = begin + apart * (chosen + 0.5)
    seen = so.logical_and(so.greater_equal(place, -1.0), so.less_equal(place, float(length)))
    seen = so.logical_and(seen, so.less(chosen, count))
    at = so.clip(place, low=0.0, high=float(length - 1))
    away = so.abs(so.expand_dims(at, axis=3) - numbered(length).astype(dtype))
    share = so.maximum(1.0 - away, 0.0) * so.expand_dims(so.cast(seen, dtype=dtype), axis=3)
    return so.sum(share, axis=2) / count


def _aligned_by_extent(
    data: Any, rois: Any, pooled_size: Lengths, scale: float, is_split: bool, aligned: bool
) -> Any:
    images, corners = images_of(data, so.stop_gradient(rois))
    offset = 0.5 if aligned else 0.0
    left, top, right, bottom = (one * scale - offset for one in columns_of(corners))
    down, across = bottom - top, right - left
    if not aligned:
        down, across = so.maximum(down, 1.0), so.maximum(across, 1.0)
    height, width = pooled_size
    rows = _sampled(top, down, height, data.shape[2])
    columns = _sampled(left, across, width, data.shape[3])
    if not is_split:
        return so.einsum(rows, images, columns, equation="rih,rchw,rjw->rcij")
    split = so.reshape(images, shape=(rois.shape[0], -1, height, width, *data.shape[2:]))
    return so.einsum(rows, split, columns, equation="rih,rcijhw,rjw->rcij")


@operator("_contrib_ROIAlign", shapes=_pooled_shapes, at_once=True)
def roi_align(
    data: Any,
    rois: Any,
    *,
    pooled_size: Lengths,
    spatial_scale: float,
    sample_ratio: int = -1,
    position_sensitive: bool = False,
    aligned: bool = False,
) -> Any:
    """The mean of bilinear samples in each bin of each region; regions have no gradient."""
    if rois.shape[1] == 4:
        first = so.zeros_like(so.slice_axis(rois, axis=1, begin=0, end=1))
        rois = so.concat(first, rois, axis=1)
    if sample_ratio > 0:
        return so.roi_align(
            data,
            so.stop_gradient(rois),
            pooled_size=pooled_size,
            spatial_scale=spatial_scale,
            sample_ratio=sample_ratio,
            position_sensitive=position_sensitive,
            aligned=aligned,
        )
    return _aligned_by_extent(data, rois, pooled_size, spatial_scale, position_sensitive, aligned)


def rounded(x: Any) -> Any:
    """The nearest integer; halves are rounded away from zero."""
    return so.sign(x) * so.floor(so.abs(x) + 0.5)


def _whole_bins(start: Any, end: Any, bins: int, length: int) -> Any:
    """The weight of each entry of an axis in each bin, with bins extended to integer bounds."""
    dtype = start.dtype
    size = so.maximum(end - start, 0.1) * (1.0 / bins)
    number = numbered(bins).astype(dtype)
    low = so.clip(so.floor(size * number + start), low=0.0, high=float(length))
    high = so.clip(so.ceil(size * (number + 1) + start), low=0.0, high=float(length))
    count = so.expand_dims(so.maximum(high - low, 1.0), axis=2)
    entry = numbered(length).astype(dtype)
    low, high = so.expand_dims(low, axis=2), so.expand_dims(high, axis=2)
    place = so.zeros_like(low) + entry
    inside = so.logical_and(so.greater_equal(place, low), so.less(place, high))
    return so.cast(inside, dtype=dtype) / count


@operator("_contrib_PSROIPooling", at_once=True)
def psroi_pooling(
    data: Any,
    rois: Any,
    *,
    spatial_scale: float,
    output_dim: int,
    pooled_size: int,
    group_size: int = 0,
) -> Any:
    """The mean of each bin of each region; each bin has its own channels."""
    groups = group_size or pooled_size
    if data.shape[1] != output_dim * groups * groups:
        raise MXNetError(
            f"PSROIPooling: data must have {output_dim * groups * groups} channels, "
            f"got {data.shape[1]}"
        )
    images, corners = images_of(data, so.stop_gradient(rois))
    left, top, right, bottom = map(rounded, columns_of(corners))
    height, width = data.shape[2:]
    rows = _whole_bins(top * spatial_scale, (bottom + 1.0) * spatial_scale, pooled_size, height)
    columns = _whole_bins(left * spatial_scale, (right + 1.0) * spatial_scale, pooled_size, width)
    own = (numbered(pooled_size) * groups // pooled_size).astype(np.int32)
    split = so.reshape(images, shape=(rois.shape[0], output_dim, groups, groups, height, width))
    split = so.take(so.take(split, own, axis=2), own, axis=3)
    return so.einsum(rows, split, columns, equation="rih,rcijhw,rjw->rcij")


# Correlation -----------------------------------------------------------------------------------


def _same_inputs(given: Shapes, found: Shapes) -> None:
    del found
    given[:] = [merged(*given)] * 2


@operator(
    "Correlation",
    shapes=_same_inputs,
    outputs=lambda: ("output", "tmp1", "tmp2"),
    visible=lambda: 1,
)
def correlation(
    data1: Any,
    data2: Any,
    *,
    kernel_size: int = 1,
    max_displacement: int = 1,
    stride1: int = 1,
    stride2: int = 1,
    pad_size: int = 0,
    is_multiply: bool = True,
) -> Any:
    """The correlation of patches of one map with displaced patches of another."""
    if kernel_size % 2 == 0:
        raise MXNetError(f"Correlation: kernel_size must be odd, got {kernel_size}")
    return so.correlation(
        data1,
        data2,
        kernel_size=kernel_size,
        max_displacement=max_displacement,
        stride1=stride1,
        stride2=stride2,
        pad_size=pad_size,
        is_multiply=is_multiply,
    )
