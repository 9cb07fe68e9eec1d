"""Samples of pooling of regions whose bins are moved, or that are rotated."""

import math

import numpy as np

from mxnet_samples.sample import Sample

DRAW = np.random.default_rng(21)
NO_SLOPE = "MXNet has no gradient for the regions"


def rounded(number):
    """The nearest whole number, halves away from zero."""
    return math.copysign(math.floor(abs(number) + 0.5), number)


def between(image, y, x):
    """An image between its pixels."""
    y0, x0 = int(y), int(x)
    y1, x1 = min(y0 + 1, image.shape[0] - 1), min(x0 + 1, image.shape[1] - 1)
    v, u = y - y0, x - x0
    upper = (1 - u) * image[y0, x0] + u * image[y0, x1]
    return (1 - v) * upper + v * ((1 - u) * image[y1, x0] + u * image[y1, x1])


# Moved bins ------------------------------------------------------------------------------------


def moved(scale, dim, groups, bins, parts, samples, std):
    """Means of samples in bins, one bin after the other."""

    def one_bin(image, roi, offset, channel, i, j):
        left, top, right, bottom = [rounded(one) for one in roi]
        x, y = left * scale - 0.5, top * scale - 0.5
        width = max((right + 1) * scale - 0.5 - x, 0.1)
        height = max((bottom + 1) * scale - 0.5 - y, 0.1)
        part = i * parts // bins, j * parts // bins
        dx, dy = (0.0, 0.0) if offset is None else offset[:, part[0], part[1]] * std
        y0, x0 = y + i * height / bins + dy * height, x + j * width / bins + dx * width
        own = (channel * groups + i * groups // bins) * groups + j * groups // bins
        seen = []
        for a in range(samples):
            for b in range(samples):
                v, u = y0 + a * height / bins / samples, x0 + b * width / bins / samples
                h, w = image.shape[1:]
                if -0.5 <= v <= h - 0.5 and -0.5 <= u <= w - 0.5:
                    seen.append(between(image[own], np.clip(v, 0, h - 1), np.clip(u, 0, w - 1)))
        return np.mean(seen) if seen else 0.0

    def reference(data, rois, trans=None):
        found = np.zeros((len(rois), dim, bins, bins))
        for place in np.ndindex(found.shape):
            number, channel, i, j = place
            image, offset = data[int(rois[number, 0])], None
            if trans is not None:
                classes = trans.shape[1] // 2
                kind = channel // (dim // classes)
                offset = trans[number, 2 * kind : 2 * kind + 2]
            found[place] = one_bin(image, rois[number, 1:], offset, channel, i, j)
        return found

    return reference


def moved_sample(classes=None, *, scale=0.5, dim=2, groups=2, bins=3, parts=0, samples=2, std=0.3):
    """A sample with offsets for so many classes, or without."""
    told = {"spatial_scale": scale, "output_dim": dim, "group_size": groups, "pooled_size": bins}
    told |= {"part_size": parts, "sample_per_part": samples, "trans_std": std}
    single = float(np.float32(std))
    reference = moved(scale, dim, groups, bins, parts or bins, samples, single)
    rois = np.asarray(
        [[0, 1.2, 2.4, 9.7, 10.6], [1, -3.0, 0.0, 30.0, 6.0], [0, 4.0, 4.0, 4.0, 3.0]]
    )
    inputs = {"data": (2, dim * groups**2, 7, 8), "rois": rois}
    if classes:
        side = parts or bins
        inputs["trans"] = DRAW.normal(size=(3, 2 * classes, side, side)) * 0.4
    else:
        told["no_trans"] = True
    by = ["data", *(["trans"] if classes else [])]
    op = "_contrib_DeformablePSROIPooling"
    return Sample(op, inputs, told, reference, by=by, why=NO_SLOPE)


# Rotated regions -------------------------------------------------------------------------------


def rotated(scale, bins, ratio=-1):
    """Means of bilinear samples in bins that are rotated about the middle of a region."""

    def sample(image, y, x):
        h, w = image.shape
        if y < -1 or y > h or x < -1 or x > w:
            return 0.0
        return between(image, np.clip(y, 0, h - 1), np.clip(x, 0, w - 1))

    def reference(data, rois):
        found = np.zeros((len(rois), data.shape[1], *bins))
        for place in np.ndindex(found.shape):
            number, channel, i, j = place
            x, y, width, height = rois[number, 1:5] * scale
            width, height, angle = max(width, 1), max(height, 1), math.radians(rois[number, 5])
            rows, columns = height / bins[0], width / bins[1]
            counts = (ratio, ratio) if ratio > 0 else (math.ceil(rows), math.ceil(columns))
            total = 0.0
            for a, b in np.ndindex(*counts):
                v = -height / 2 + (i + (a + 0.5) / counts[0]) * rows
                u = -width / 2 + (j + (b + 0.5) / counts[1]) * columns
                at = v * math.cos(angle) - u * math.sin(angle) + y
                beside = u * math.cos(angle) + v * math.sin(angle) + x
                total += sample(data[int(rois[number, 0]), channel], at, beside)
            found[place] = total / math.prod(counts)
        return found

    return reference


def rotated_sample(ratio, **how):
    """A sample with so many samples along a side of a bin."""
    rois = [[0, 8, 6, 9, 5, 30], [1, 4, 9, 3, 12, -75], [0, 20, 20, 4, 4, 0], [1, 0, 0, 0.5, 1, 10]]
    inputs = {"data": (2, 3, 7, 8), "rois": np.asarray(rois, float)}
    told = {"pooled_size": (2, 3), "spatial_scale": 0.5, "sampling_ratio": ratio}
    reference = rotated(0.5, (2, 3), ratio)
    return Sample("_contrib_RROIAlign", inputs, told, reference, by=["data"], **how)


SAMPLES = [
    moved_sample(1),
    moved_sample(2, parts=2),
    moved_sample(samples=3, groups=3, dim=1),
    moved_sample(1, samples=1, bins=2, groups=1),
    rotated_sample(2),
    rotated_sample(1),
    Sample(
        "_contrib_RROIAlign",
        {
            "data": (2, 3, 7, 8),
            "rois": np.asarray([[0, 8.0, 6.0, 17.0, 9.0, 30.0], [1, 4.0, 9.0, 3.0, 12.0, -75.0]]),
        },
        {"pooled_size": (2, 3), "spatial_scale": 0.5},
        rotated(0.5, (2, 3)),
        gradient="zero",
        by=(),
    ),
]
