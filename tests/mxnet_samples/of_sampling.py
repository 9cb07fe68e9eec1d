"""Samples of sampling on grids, of resizing, and of convolutions whose taps are moved."""

import math

import numpy as np

from mxnet_samples.sample import Sample


def pixel(image, y, x):
    """An image of shape (..., rows, columns) between its pixels; beyond them it is zero."""
    total = np.zeros(image.shape[:-2])
    for row in (math.floor(y), math.floor(y) + 1):
        for column in (math.floor(x), math.floor(x) + 1):
            if 0 <= row < image.shape[-2] and 0 <= column < image.shape[-1]:
                share = (1 - abs(y - row)) * (1 - abs(x - column))
                total = total + image[..., row, column] * share
    return total


def sampled(data, grid):
    """Images at the places of a grid, on which they reach from -1 to 1."""
    made = np.zeros((*data.shape[:2], *grid.shape[2:]))
    scale = (np.asarray(data.shape[:1:-1]) - 1) / 2
    for n, i, j in np.ndindex(len(data), *grid.shape[2:]):
        x, y = (grid[n, :, i, j] + 1) * scale
        made[n, :, i, j] = pixel(data[n], y, x)
    return made


def affine(height, width):
    """A regular grid, moved by affine maps."""

    def reference(maps):
        rows, columns = np.meshgrid(
            np.linspace(-1, 1, height), np.linspace(-1, 1, width), indexing="ij"
        )
        places = np.stack([columns.ravel(), rows.ravel(), np.ones(rows.size)])
        return (maps.reshape(-1, 2, 3) @ places).reshape(-1, 2, height, width)

    return reference


def warp(flow):
    """The grid of all pixels, moved by a flow."""
    height, width = flow.shape[2:]
    rows, columns = np.mgrid[:height, :width]
    size = np.asarray([width - 1, height - 1]).reshape(1, 2, 1, 1)
    return (flow + np.stack([columns, rows])) * 2 / size - 1


def transformed(height, width):
    """Images on a grid that affine maps move."""
    return lambda data, loc: sampled(data, affine(height, width)(loc))


def share_of(length, size, aligned):
    """What each entry of an axis gives to each of its resized one."""
    made = np.zeros((size, length))
    for i in range(size):
        if aligned:
            at = i * (length - 1) / (size - 1) if size > 1 else 0.0
        else:
            at = max(length / size * (i + 0.5) - 0.5, 0)
        low = int(at)
        made[i, low] += 1 - (at - low)
        made[i, min(low + 1, length - 1)] += at - low
    return made


def resized(height, width, aligned=True):
    """Images with other lengths."""

    def reference(data, like=None):
        del like
        rows = share_of(data.shape[2], height, aligned)
        columns = share_of(data.shape[3], width, aligned)
        return np.einsum("ih,nchw,jw->ncij", rows, data, columns)

    return reference


# Moved taps ------------------------------------------------------------------------------------


def seen_by(image, y, x, is_masked):
    """What a tap sees: without a mask it stays at the last pixel, and sees nothing before 0."""
    height, width = image.shape
    if is_masked:
        return pixel(image, y, x)
    if not (0 <= y < height and 0 <= x < width):
        return 0.0
    return pixel(image, min(y, height - 1), min(x, width - 1))


def deformable(kernel, is_masked=False, **told):
    """A convolution of what the moved taps see."""
    stride, dilate = told.get("stride", (1, 1)), told.get("dilate", (1, 1))
    pad, groups = told.get("pad", (0, 0)), told.get("num_group", 1)
    taps, movers = math.prod(kernel), told.get("num_deformable_group", 1)

    def reference(data, offset, *others):
        mask, weight, *bias = others if is_masked else (None, *others)
        n, channels = data.shape[:2]
        places = offset.shape[2:]
        moves = offset.reshape(n, movers, taps, 2, *places)
        factors = mask.reshape(n, movers, taps, *places) if is_masked else None
        seen = np.zeros((n, channels, taps, *places))
        for i, c, k, row, column in np.ndindex(*seen.shape):
            own = c // (channels // movers)
            dy, dx = moves[i, own, k, :, row, column]
            y = row * stride[0] - pad[0] + k // kernel[1] * dilate[0] + dy
            x = column * stride[1] - pad[1] + k % kernel[1] * dilate[1] + dx
            factor = factors[i, own, k, row, column] if is_masked else 1.0
            seen[i, c, k, row, column] = factor * seen_by(data[i, c], y, x, is_masked)
        seen = seen.reshape(n, groups, -1, *places)
        filters = weight.reshape(groups, len(weight) // groups, -1)
        made = np.einsum("ngkyx,gfk->ngfyx", seen, filters).reshape(n, -1, *places)
        return made + (bias[0][:, None, None] if bias else 0)

    return reference


def moved(op, data, places, filters, has_bias=True, **told):
    """A sample of a convolution of which the taps are moved."""
    is_masked, kernel = op.startswith("_contrib_Mod"), told["kernel"]
    count = told.get("num_deformable_group", 1) * math.prod(kernel)
    inputs = {"data": data, "offset": (data[0], 2 * count, *places)}
    if is_masked:
        drawn = np.random.default_rng(8).uniform(0.1, 1, (data[0], count, *places))
        inputs["mask"] = drawn
    inputs["weight"] = (filters, data[1] // told.get("num_group", 1), *kernel)
    if has_bias:
        inputs["bias"] = (filters,)
    else:
        told["no_bias"] = True
    told["num_filter"] = filters
    known = {key: one for key, one in told.items() if key not in ("num_filter", "no_bias")}
    return Sample(op, inputs, told, deformable(is_masked=is_masked, **known))


GRID = np.random.default_rng(9).uniform(-1.3, 1.3, (2, 2, 2, 3))
MAPS = np.asarray([[0.9, 0.1, 0.05, -0.23, 0.8, 0.1], [0.4, -0.7, 0.35, 0.6, 0.5, -0.35]])
BILINEAR = {"transform_type": "affine", "sampler_type": "bilinear"}
SIZES = [
    ({"height": 5, "width": 3}, (5, 3)),
    ({"height": 3, "width": 1}, (3, 1)),
    ({"height": 6, "width": 2, "align_corners": False}, (6, 2, False)),
    ({"height": 1, "width": 5, "align_corners": False}, (1, 5, False)),
    ({"scale_height": 1.5, "scale_width": 0.5}, (4, 2)),
    ({"scale_height": 2, "scale_width": 3, "align_corners": False}, (6, 12, False)),
    ({"mode": "odd_scale", "scale_height": 2, "scale_width": 2}, (5, 8)),
    ({"mode": "to_even_down"}, (2, 4)),
    ({"mode": "to_even_up"}, (4, 4)),
    ({"mode": "to_odd_down"}, (3, 3)),
    ({"mode": "to_odd_up"}, (3, 5)),
]

SAMPLES = [
    Sample("BilinearSampler", {"data": (2, 2, 3, 4), "grid": GRID}, {}, sampled),
    Sample(
        "BilinearSampler",
        {"data": (1, 1, 4, 3), "grid": GRID[1:] * 1.6},
        {"cudnn_off": True},
        sampled,
    ),
    *[
        Sample(
            "GridGenerator",
            {"data": (2, 6)},
            {"transform_type": "affine", "target_shape": size},
            affine(*size),
        )
        for size in ((3, 4), (2, 2))
    ],
    Sample("GridGenerator", {"data": (2, 2, 3, 4)}, {"transform_type": "warp"}, warp),
    *[
        Sample(
            "SpatialTransformer",
            {"data": (2, 2, 3, 4), "loc": MAPS},
            {"target_shape": size, **BILINEAR},
            transformed(*size),
        )
        for size in ((3, 4), (2, 5))
    ],
    *[
        Sample("_contrib_BilinearResize2D", {"data": (1, 2, 3, 4)}, told, resized(*to))
        for told, to in SIZES
    ],
    *[
        Sample(
            "_contrib_BilinearResize2D",
            {"data": (1, 2, 3, 4), "like": (1, 1, 5, 2)},
            {"mode": "like", "align_corners": aligned},
            resized(5, 2, aligned),
        )
        for aligned in (True, False)
    ],
    *[
        one
        for op in ("_contrib_DeformableConvolution", "_contrib_ModulatedDeformableConvolution")
        for one in (
            moved(op, (1, 2, 4, 4), (3, 3), 2, kernel=(2, 2)),
            moved(op, (2, 1, 3, 3), (3, 3), 2, has_bias=False, kernel=(3, 3), pad=(1, 1)),
            moved(
                op,
                (1, 4, 5, 5),
                (3, 3),
                2,
                kernel=(3, 2),
                num_group=2,
                num_deformable_group=2,
                stride=(2, 2),
                pad=(1, 1),
                dilate=(1, 2),
                im2col_step=1,
            ),
        )
    ],
]
