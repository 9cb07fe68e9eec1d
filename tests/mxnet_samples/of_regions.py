"""Samples of pooling of regions, and of correlation of feature maps."""

import itertools
import math

import numpy as np

from mxnet_samples.of_sampling import pixel
from mxnet_samples.sample import Sample


def rounded(number):
    """The nearest whole number, halves away from zero."""
    return int(math.copysign(math.floor(abs(number) + 0.5), number))


def cut(start, low, high, length):
    """A slice of an axis."""
    return slice(*(min(max(start + one, 0), length) for one in (low, high)))


def roi_pooling(height, width, scale):
    """The largest entry of each bin, zero for those that have none."""

    def reference(data, rois):
        made = np.zeros((len(rois), data.shape[1], height, width))
        for n, (image, *corners) in enumerate(rois):
            left, top, right, bottom = (rounded(one * scale) for one in corners)
            down, across = max(bottom - top + 1, 1), max(right - left + 1, 1)
            for i, j in np.ndindex(height, width):
                rows = cut(top, i * down // height, -(-(i + 1) * down // height), data.shape[2])
                columns = cut(
                    left, j * across // width, -(-(j + 1) * across // width), data.shape[3]
                )
                if 0 <= image < len(data) and data[0, 0, rows, columns].size:
                    made[n, :, i, j] = data[int(image), :, rows, columns].max((1, 2))
        return made

    return reference


def clamped(image, y, x):
    """An image between its pixels; it fades out one pixel beyond its border."""
    height, width = image.shape[-2:]
    if not (-1 <= y <= height and -1 <= x <= width):
        return np.zeros(image.shape[:-2])
    return pixel(image, min(max(y, 0), height - 1), min(max(x, 0), width - 1))


def roi_align(pooled_size, spatial_scale, sample_ratio=-1, position_sensitive=False, aligned=False):
    """The mean of samples in each bin."""
    height, width = pooled_size

    def reference(data, rois):
        split = data.shape[1] // (height * width) if position_sensitive else data.shape[1]
        rois = rois if rois.shape[1] == 5 else np.pad(rois, [(0, 0), (1, 0)])
        made = np.zeros((len(rois), split, height, width))
        for n, (image, *corners) in enumerate(rois):
            ends = [one * spatial_scale - (0.5 if aligned else 0) for one in corners]
            left, top, across, down = ends[0], ends[1], ends[2] - ends[0], ends[3] - ends[1]
            if not aligned:
                across, down = max(across, 1), max(down, 1)
            rows = sample_ratio if sample_ratio > 0 else math.ceil(down / height)
            columns = sample_ratio if sample_ratio > 0 else math.ceil(across / width)
            for i, j in np.ndindex(height, width):
                maps = data[int(image)]
                maps = maps[i * width + j :: height * width] if position_sensitive else maps
                for k, m in np.ndindex(rows, columns):
                    y = top + (i + (k + 0.5) / rows) * down / height
                    x = left + (j + (m + 0.5) / columns) * across / width
                    made[n, :, i, j] += clamped(maps, y, x) / (rows * columns)
        return made

    return reference


def psroi_pooling(spatial_scale, output_dim, pooled_size, group_size=None):
    """The mean of each bin, of channels of its own."""
    size, groups = pooled_size, group_size or pooled_size

    def bounds(start, end, i, length):
        each = max(end - start, 0.1) / size
        return cut(0, math.floor(i * each + start), math.ceil((i + 1) * each + start), length)

    def reference(data, rois):
        made = np.zeros((len(rois), output_dim, size, size))
        for n, (image, *corners) in enumerate(rois):
            left, top, right, bottom = (
                (rounded(one) + more) * spatial_scale
                for one, more in zip(corners, (0, 0, 1, 1), strict=True)
            )
            for d, i, j in np.ndindex(output_dim, size, size):
                channel = (d * groups + i * groups // size) * groups + j * groups // size
                seen = data[int(image), channel][
                    bounds(top, bottom, i, data.shape[2]), bounds(left, right, j, data.shape[3])
                ]
                made[n, d, i, j] = seen.mean() if seen.size else 0
        return made

    return reference


def correlation(
    kernel_size=1, max_displacement=1, stride1=1, stride2=1, pad_size=0, is_multiply=True
):
    """The mean product, or distance, of patches that are displaced."""
    border, radius = max_displacement + kernel_size // 2, max_displacement // stride2

    def reference(data1, data2):
        pads = [(0, 0), (0, 0), *[(pad_size, pad_size)] * 2]
        one, other = np.pad(data1, pads), np.pad(data2, pads)
        places = [math.ceil((n - 2 * border) / stride1) for n in one.shape[2:]]
        moves = list(itertools.product(range(-radius, radius + 1), repeat=2))
        made = np.zeros((len(data1), len(moves), *places))
        for k, i, j in np.ndindex(len(moves), *places):
            y, x = i * stride1 + max_displacement, j * stride1 + max_displacement
            down, across = moves[k][0] * stride2, moves[k][1] * stride2
            patch = one[:, :, y : y + kernel_size, x : x + kernel_size]
            moved = other[
                :, :, y + down : y + down + kernel_size, x + across : x + across + kernel_size
            ]
            found = patch * moved if is_multiply else np.abs(patch - moved)
            made[:, k, i, j] = found.mean((1, 2, 3))
        return made

    return reference


ROIS = np.asarray(
    [
        [0, 1.2, 0.7, 6.9, 6.1],
        [1, 3.0, 3.0, 3.0, 3.0],
        [0, -4.0, -5.0, 3.0, 12.0],
        [1, 5.1, 4.2, 15.0, 15.5],
    ]
)
WHOLE = np.asarray([[0.0, 0, 0, 3, 3], [1, 1, 1, 4, 4], [1, 2, 0, 2, 3], [5, 0, 0, 3, 3]])
POOLED = [
    (ROIS, {"pooled_size": (2, 2), "spatial_scale": 0.5}),
    (ROIS, {"pooled_size": (2, 3), "spatial_scale": 0.5}),
    (WHOLE, {"pooled_size": (2, 2), "spatial_scale": 1.0}),
]
ALIGNED = [
    (ROIS[[0, 2, 3]] if aligned else ROIS, (2, 2), ratio, {"position_sensitive": split, **more})
    for ratio, split in itertools.product((2, -1), (False, True))
    for aligned, more in ((False, {}), (True, {"aligned": True}))
]
PAIRS = [
    {},
    {"pad_size": 1},
    {"kernel_size": 3, "max_displacement": 1, "pad_size": 1},
    {"max_displacement": 2, "stride1": 2, "stride2": 2, "pad_size": 2},
    {"pad_size": 1, "is_multiply": False},
    {
        "kernel_size": 3,
        "max_displacement": 2,
        "pad_size": 3,
        "stride1": 2,
        "stride2": 2,
        "is_multiply": False,
    },
]

SAMPLES = [
    *[
        Sample(
            "ROIPooling",
            {"data": (2, 2, 4, 5), "rois": rois},
            told,
            roi_pooling(*told["pooled_size"], told["spatial_scale"]),
            by=["data"],
        )
        for rois, told in POOLED
    ],
    *[
        Sample(
            "_contrib_ROIAlign",
            {"data": (2, 4, 4, 5), "rois": rois},
            {"pooled_size": size, "spatial_scale": 0.5, "sample_ratio": ratio, **more},
            roi_align(size, 0.5, ratio, **more),
            by=["data"],
        )
        for rois, size, ratio, more in ALIGNED
    ],
    Sample(
        "_contrib_ROIAlign",
        {"data": (1, 2, 4, 5), "rois": ROIS[:, 1:]},
        {"pooled_size": (2, 3), "spatial_scale": 0.5},
        roi_align((2, 3), 0.5),
        by=["data"],
    ),
    *[
        Sample(
            "_contrib_PSROIPooling",
            {"data": (2, 8, 4, 5), "rois": ROIS},
            {"spatial_scale": 0.5, "output_dim": 2, **told},
            psroi_pooling(0.5, 2, **told),
            by=["data"],
        )
        for told in ({"pooled_size": 2}, {"pooled_size": 3, "group_size": 2})
    ],
    *[
        Sample(
            "Correlation", {"data1": (1, 2, 4, 4), "data2": (1, 2, 4, 4)}, told, correlation(**told)
        )
        for told in PAIRS
    ],
]
