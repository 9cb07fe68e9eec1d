"""Pooling of regions of interest with moved bins, or with rotated regions."""

import math
from typing import Any

import numpy as np

import symop as so
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.ops.precision import single
from symop.interop.mxnet.ops.regions import columns_of, images_of, rounded
from symop.interop.mxnet.partial_shapes import Shapes, enter, numbered, require_table

Lengths = tuple[int, ...]


# Moved bins ------------------------------------------------------------------------------------
#
# Rows and columns of a bin are sampled separately, so the weights of an image's entries are a
# product of two matrices, each of the bins along one axis by the entries of that axis.


def _has_offsets(no_trans: bool) -> tuple[str, ...]:
    return ("data", "rois") if no_trans else ("data", "rois", "trans")


def _sampled(begin: Any, step: Any, samples: int, length: int) -> tuple[Any, Any]:
    """The weight of each entry of an axis in the sum over samples, and the samples inside.

    A sample between two entries is interpolated. A sample exactly on an entry uses it as both
    neighbors, so that it has no gradient with respect to its position.
    """
    number = numbered(samples).astype(begin.dtype)
    place = so.expand_dims(begin, axis=-1) + so.expand_dims(step, axis=-1) * number
    seen = so.logical_and(so.greater_equal(place, -0.5), so.less_equal(place, length - 0.5))
    seen = so.cast(seen, dtype=begin.dtype)
    at = so.clip(place, low=0.0, high=float(length - 1))
    low, high = so.floor(so.stop_gradient(at)), so.ceil(so.stop_gradient(at))
    after = at - low
    entry = numbered(length).astype(begin.dtype)
    share = so.expand_dims(seen * (1.0 - after), axis=-1) * _marks(low, entry)
    share = share + so.expand_dims(seen * after, axis=-1) * _marks(high, entry)
    return so.sum(share, axis=-2), so.sum(seen, axis=-1)


def _marks(place: Any, entry: np.ndarray) -> Any:
    """A one-hot encoding of ``place``, along a new axis."""
    wide = so.expand_dims(place, axis=-1)
    return so.cast(so.equal(so.zeros_like(wide) + entry, wide), dtype=place.dtype)


def _along(start: Any, end: Any, moved: Any, bins: int, samples: int, axis: int) -> Any:
    """The start and the spacing of the samples of each bin: (regions, classes, h, w)."""
    extent = so.maximum(end - start, 0.1)
    start, extent = (so.reshape(one, shape=(-1, 1, 1, 1)) for one in (start, extent))
    shape = (1, 1, bins, 1) if axis == 0 else (1, 1, 1, bins)
    number = numbered(bins).astype(start.dtype).reshape(shape)
    size = extent * (1.0 / bins)
    begin = start + size * number + moved * extent
    return begin, so.zeros_like(begin) + size * (1.0 / samples)


def _ends(corners: Any, scale: float) -> list[tuple[Any, Any]]:
    """The bounds of regions: rows, then columns."""
    left, top, right, bottom = map(rounded, columns_of(corners))
    return [
        (low * scale - 0.5, (high + 1.0) * scale - 0.5)
        for low, high in ((top, bottom), (left, right))
    ]


def _offsets(trans: Any, corners: Any, bins: int, parts: int, scale: float) -> list[Any]:
    """The offsets of bins down and across, relative to regions: (regions, classes, h, w)."""
    if trans is None:
        first = so.slice_axis(corners, axis=1, begin=0, end=1)
        still = so.zeros_like(so.reshape(first, shape=(-1, 1, 1, 1)))
        require_table(bins, bins)
        return [still + np.zeros((1, 1, bins, bins), corners.dtype)] * 2
    own = (numbered(bins) * parts // bins).astype(np.int32)
    parted = so.take(so.take(trans, own, axis=2), own, axis=3)
    pairs = so.reshape(parted, shape=(trans.shape[0], -1, 2, bins, bins))
    down_and_across = [so.slice_axis(pairs, axis=2, begin=i, end=i + 1) for i in (1, 0)]
    shape = (trans.shape[0], -1, bins, bins)
    return [so.reshape(one, shape=shape) * scale for one in down_and_across]


def _moved_shapes(given: Shapes, found: Shapes, output_dim: int, pooled_size: int) -> None:
    count = given[1][0] if given[1] is not None else 0
    for i in range(2):
        enter(found, i, (count, output_dim, pooled_size, pooled_size))
    enter(given, 1, (found[0][0] if found[0] else 0, 5))


@operator(
    "_contrib_DeformablePSROIPooling",
    present=_has_offsets,
    outputs=lambda: ("output", "top_count"),
    visible=lambda: 1,
    shapes=_moved_shapes,
    at_once=True,
)
def deformable_psroi_pooling(
    data: Any,
    rois: Any,
    trans: Any = None,
    *,
    spatial_scale: float,
    output_dim: int,
    group_size: int,
    pooled_size: int,
    part_size: int = 0,
    sample_per_part: int = 1,
    trans_std: float = 0.0,
    no_trans: bool = False,
) -> Any:
    """The mean of samples in each moved bin of each region; each bin has its own channels."""
    if data.shape[1] != output_dim * group_size**2:
        raise MXNetError(
            f"DeformablePSROIPooling: data must have {output_dim * group_size**2} channels, got "
            f"{data.shape[1]}"
        )
    bins, scale = pooled_size, single(spatial_scale, data)
    images, corners = images_of(data, so.stop_gradient(rois))
    given = None if no_trans else trans
    moved = _offsets(given, corners, bins, part_size or bins, single(trans_std, data))
    places = [
        _along(low, high, moved[axis], bins, sample_per_part, axis)
        for axis, (low, high) in enumerate(_ends(corners, scale))
    ]
    (rows, of_rows), (columns, of_columns) = [
        _sampled(begin, step, sample_per_part, length)
        for (begin, step), length in zip(places, data.shape[2:], strict=True)
    ]
    seen = _channels(images, output_dim, group_size, bins, rows.shape[1])
    total = so.einsum(rows, seen, columns, equation="rkijh,rkdijhw,rkijw->rkdij")
    count = so.expand_dims(so.maximum(of_rows * of_columns, 1.0), axis=2)
    return so.reshape(total / count, shape=(rois.shape[0], output_dim, bins, bins))


def _channels(images: Any, count: int, groups: int, bins: int, classes: int) -> Any:
    """The input of each bin: (regions, classes, channels of a class, bins, bins, height, width)."""
    own = (numbered(bins) * groups // bins).astype(np.int32)
    lengths = images.shape[2:]
    split = so.reshape(images, shape=(images.shape[0], count, groups, groups, *lengths))
    split = so.take(so.take(split, own, axis=2), own, axis=3)
    return so.reshape(split, shape=(images.shape[0], classes, -1, bins, bins, *lengths))


# Rotated regions -------------------------------------------------------------------------------


def _rotated_shapes(given: Shapes, found: Shapes, pooled_size: Lengths) -> None:
    channels = given[0][1] if given[0] is not None else 0
    count = given[1][0] if given[1] is not None else 0
    enter(found, 0, (count, channels, *pooled_size))
    enter(given, 1, (found[0][0] if found[0] else 0, 6))


def _samples(box: Any, number: Any, grid: Any, size: Any, bins: int, axis: int) -> Any:
    """Positions of samples along a region's side, from its center: (regions, h, w, samples)."""
    shape = (1, bins, 1, 1) if axis == 0 else (1, 1, bins, 1)
    at = numbered(bins).astype(size.dtype).reshape(shape)
    return box * -0.5 + size * (at + (number + 0.5) / grid)


def _bilinear(images: Any, y: Any, x: Any) -> Any:
    """The sum over samples of bilinearly interpolated ``images``: (regions, channels, h, w)."""
    regions, channels, height, width = images.shape
    inside = so.logical_and(so.greater_equal(y, -1.0), so.less_equal(y, float(height)))
    inside = so.logical_and(inside, so.greater_equal(x, -1.0))
    inside = so.logical_and(inside, so.less_equal(x, float(width)))
    y, x = (
        so.clip(one, low=0.0, high=float(length - 1)) for one, length in ((y, height), (x, width))
    )
    top, left = so.floor(y), so.floor(x)
    flat = so.reshape(images, shape=(regions, channels, height * width))
    total = None
    for row, down in ((top, 1.0 - (y - top)), (so.ceil(y), y - top)):
        for column, across in ((left, 1.0 - (x - left)), (so.ceil(x), x - left)):
            places = so.cast(row * float(width) + column, dtype="int32")
            places = so.reshape(places, shape=(regions, 1, -1))
            share = so.reshape(down * across * so.cast(inside, dtype=x.dtype), shape=places.shape)
            seen = so.take_along_axis(flat, places, axis=2) * share
            total = seen if total is None else total + seen
    assert total is not None
    return so.sum(so.reshape(total, shape=(regions, channels, *x.shape[1:])), axis=-1)


@operator(
    "_contrib_RROIAlign",
    shapes=_rotated_shapes,
    note="a gradient for the data, where sampling_ratio tells how many samples; MXNet has none",
    at_once=True,
)
def rroi_align(
    data: Any,
    rois: Any,
    *,
    pooled_size: Lengths,
    spatial_scale: float,
    sampling_ratio: int = -1,
) -> Any:
    """The mean of bilinear samples in each bin of each rotated region."""
    rois = so.stop_gradient(rois)
    images, _ = images_of(data, rois)
    fields = [so.slice_axis(rois, axis=1, begin=i, end=i + 1) for i in range(1, 6)]
    across, down, width, height, angle = (so.reshape(x, shape=(-1, 1, 1, 1)) for x in fields)
    scale, (rows, columns) = single(spatial_scale, data), pooled_size
    across, down = across * scale, down * scale
    height, width = so.maximum(height * scale, 1.0), so.maximum(width * scale, 1.0)
    sizes = height * (1.0 / rows), width * (1.0 / columns)
    cos, sin = so.cos(angle * (math.pi / 180)), so.sin(angle * (math.pi / 180))

    def sums(of_rows: Any, of_columns: Any, grids: tuple[Any, Any]) -> Any:
        yy = _samples(height, of_rows, grids[0], sizes[0], rows, 0)
        xx = _samples(width, of_columns, grids[1], sizes[1], columns, 1)
        return _bilinear(images, yy * cos - xx * sin + down, xx * cos + yy * sin + across)

    if sampling_ratio > 0:
        number = numbered(sampling_ratio**2).astype(data.dtype)
        ratio = float(sampling_ratio)
        of_rows = np.floor(number / ratio).astype(data.dtype)
        return sums(of_rows, number - of_rows * sampling_ratio, (ratio, ratio)) * ratio**-2
    grids = so.ceil(sizes[0]), so.ceil(sizes[1])
    return _looped(sums, grids, (images.shape[0], data.shape[1], rows, columns))


def _looped(sums: Any, grids: tuple[Any, Any], shape: Lengths) -> Any:
    """The mean over grids of samples, whose sizes differ by region as given by ``grids``.

    Regions with fewer samples ignore further ones.
    """
    count = grids[0] * grids[1]
    most = so.max(count)

    def step(carry: Any) -> Any:
        number, total = carry
        row = so.floor(number / grids[1])
        own = so.cast(so.less(so.zeros_like(count) + number, count), dtype=count.dtype)
        found = sums(row, number - row * grids[1], grids)
        return number + 1.0, total + found * own

    start = so.zeros_like(most), so.zeros_like(count) + np.zeros(shape, count.dtype)
    _, total = so.while_loop(lambda carry: carry[0] < most, step, start)
    return total / count
