"""Bilinear samples averaged over regions of interest."""

import math
from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np

from registry.cases import case, misuse, workload
from registry.errors import ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import broadcast_to, cast, sum_to, unbroadcast
from registry.ops.core.comparison import greater
from registry.ops.core.elementwise import where
from registry.ops.core.indexing import never_weak
from registry.ops.core.reductions import sum as sum_over
from registry.ops.core.reshaping import permute_dims, reshape, squeeze
from registry.ops.shape.joining import stack, unstack
from registry.ops.vision.bilinear import (
    Images,
    corners_at,
    images_in,
    pixels,
    rows_of,
    rows_to_images,
    sampled,
    samples_to_places,
    samples_to_rows,
    spaced,
    with_kept,
)
from registry.ops.vision.regions import (
    POSITIVE,
    REGIONS,
    Pooled,
    many_regions,
    of_data,
    require_regions,
    rounded,
)
from registry.shapes import at_least_single, strong_real_inexact
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var, filled


def _roi_align_shape(
    data: Shape,
    rois: Shape,
    *,
    pooled_size: Pooled,
    sample_ratio: int,
    position_sensitive: bool,
) -> tuple[Shape, ...]:
    require_regions(data, rois)
    bins = math.prod(pooled_size)
    if position_sensitive and data[1] % bins:
        raise ShapeError(f"the {bins} bins must divide the channels of data, got {data}")
    count, (rows, columns) = rois[0], (n * sample_ratio for n in pooled_size)
    channels = data[1] // bins if position_sensitive else data[1]
    return (
        (count, channels, *pooled_size),
        (4, count, rows, columns),
        (count, rows, 1),
        (count, 1, columns),
    )


def _roi_align_dtype(data: VarType, rois: VarType) -> list[DType]:
    wide = at_least_single(strong_real_inexact(data, rois))
    return [of_data(data, rois), np.dtype(np.int32), wide, wide]


def _middles(count: int) -> tuple[float, float, int]:
    """The midpoints of ``count`` equal parts of [0, 1]: the first, the last, and their number."""
    return 0.5 / count, 1.0 - 0.5 / count, count


def _places_along(
    low: Array, high: Array, count: int, *, spatial_scale: float, aligned: bool
) -> Array:
    """The positions of the samples of each region along an axis, in pixels."""
    length = (high - low) * spatial_scale
    if not aligned:
        length = jnp.where(length > 1, length, 1)
    start = low * spatial_scale - (0.5 if aligned else 0.0)
    return start[:, None] + length[:, None] * jnp.linspace(*_middles(count), dtype=low.dtype)


def _edges_gradient(
    low: Var, high: Var, d_places: Var, *, spatial_scale: float, aligned: bool
) -> tuple[Var, Var]:
    # place = scale low + length middles, with length = scale (high - low), or 1 if that is less
    d_length = sum_over(d_places * spaced(d_places, *_middles(d_places.shape[1])), axis=1)
    if not aligned:
        free = greater((high - low) * spatial_scale, 1.0)
        d_length = where(free, d_length, filled(d_length, 0.0))
    d_start = sum_over(d_places, axis=1)
    return (d_start - d_length) * spatial_scale, d_length * spatial_scale


def _seen(data: Shape, pooled_size: Pooled, *, position_sensitive: bool) -> Images:
    """The images of ``data``, with channels distributed to the bins if position-sensitive."""
    return images_in(data, math.prod(pooled_size) if position_sensitive else 1, dealt=True)


def _first_pixels(rois: Array, pooled_size: Pooled, sample_ratio: int, of: Images) -> Array:
    """The row of the first pixel of the image, and of the group, that each sample reads."""
    image = rounded(rois[:, 0])[:, None, None]
    bins = np.arange(math.prod(pooled_size), dtype=np.int32).reshape(pooled_size) % of.groups
    group = bins.repeat(sample_ratio, 0).repeat(sample_ratio, 1)
    first = (image * of.groups + group) * (of.height * of.width)
    return jnp.where((image >= 0) & (image < of.batch), first, of.rows)


def _roi_align_reference(
    data: np.ndarray,
    rois: np.ndarray,
    *,
    pooled_size: Pooled,
    spatial_scale: float,
    sample_ratio: int,
    position_sensitive: bool,
    aligned: bool,
) -> np.ndarray:
    bins = pooled_size[0] * pooled_size[1]
    channels = data.shape[1] // bins if position_sensitive else data.shape[1]
    out = np.zeros((len(rois), channels, *pooled_size), data.dtype)
    for r, i, j in np.ndindex(len(rois), *pooled_size):
        n, *edges = rois[r]
        if not 0 <= n < len(data):
            continue
        x1, y1, x2, y2 = np.array(edges) * spatial_scale - 0.5 * aligned
        size = np.array([y2 - y1, x2 - x1])
        size = size if aligned else np.maximum(size, 1.0)
        seen = data[int(n)]
        if position_sensitive:
            seen = seen[i * pooled_size[1] + j :: bins]
        for k in np.ndindex(sample_ratio, sample_ratio):
            step = (np.array([i, j]) + (np.array(k) + 0.5) / sample_ratio) / pooled_size
            out[r, :, i, j] += _clamped_sample(seen, *(np.array([y1, x1]) + size * step))
    return out / sample_ratio**2


def _clamped_sample(image: np.ndarray, y: float, x: float) -> np.ndarray:
    """The image at a position: the border value up to one pixel outside, zero beyond."""
    height, width = image.shape[1:]
    if not (-1 <= y <= height and -1 <= x <= width):
        return np.zeros(len(image))
    y, x = np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)
    near_y = np.maximum(0, 1 - np.abs(y - np.arange(height)))
    near_x = np.maximum(0, 1 - np.abs(x - np.arange(width)))
    return np.asarray(np.einsum("chw,h,w->c", image, near_y, near_x))


@op(
    outputs=("out", "corners", "down", "right"),
    hidden=("corners", "down", "right"),
    shape=_roi_align_shape,
    dtype=_roi_align_dtype,
    reference=_roi_align_reference,
    cases=[
        case(data=(2, 1, 4, 5), rois=REGIONS, pooled_size=(2, 1)),
        case(
            data=(1, 4, 3, 4),
            rois=REGIONS[:2],
            pooled_size=(1, 2),
            spatial_scale=0.7,
            sample_ratio=1,
            aligned=True,
            position_sensitive=True,
            order=2,
        ),
        case(data=(2, 1, 3, 3), rois=(0, 5), pooled_size=(2, 2), order=1),
        workload(data=(4, 32, 32, 32), rois=many_regions(32, 4, 32.0), pooled_size=(7, 7)),
        misuse("rois must have shape", data=(1, 1, 4, 4), rois=(2, 4), pooled_size=(2, 2)),
        misuse(
            "the 4 bins must divide the channels of data, got (1, 6, 4, 4)",
            data=(1, 6, 4, 4),
            rois=(2, 5),
            pooled_size=(2, 2),
            position_sensitive=True,
        ),
        misuse(
            "attribute 'sample_ratio' must be positive, got -1",
            data=(1, 1, 4, 4),
            rois=(2, 5),
            pooled_size=(2, 2),
            sample_ratio=-1,
        ),
        misuse(
            "must be real",
            data=np.zeros((1, 1, 2, 2), np.complex64),
            rois=(1, 5),
            pooled_size=(1, 1),
        ),
    ],
)
def roi_align(
    data: Array,
    rois: Array,
    *,
    pooled_size: Annotated[Pooled, POSITIVE],
    spatial_scale: float = 1.0,
    sample_ratio: Annotated[int, POSITIVE] = 2,
    position_sensitive: bool = False,
    aligned: bool = False,
) -> tuple[Array, Array, Array, Array]:
    """Region of interest alignment: the mean of bilinear samples in each bin of each region.

    ``data`` has shape ``(batch, channels, height, width)``. Each row of ``rois`` holds the index of
    an image and the corners of a region, ``x1, y1, x2, y2``; multiplied by ``spatial_scale`` they
    are coordinates in ``data``. The result has shape ``(rois, channels, *pooled_size)``: a region
    is divided into equal bins, and ``sample_ratio`` times ``sample_ratio`` samples are spaced
    evenly in each.

    Without ``aligned``, integer coordinates are the centers of pixels, and a region is at least 1
    long; ``aligned`` shifts it by half a pixel, so that they are the corners of pixels, and leaves
    its length unchanged. A sample up to one pixel beyond the centers of the outermost pixels takes
    the value at the border; farther out, and in a region whose image index is out of range, it is
    0. With ``position_sensitive``, channel ``c`` of bin ``(i, j)`` is computed from channel
    ``(c * rows + i) * columns + j`` of data.

    The number of samples does not depend on the size of a region, as it does in other systems if
    their attribute is 0 or negative, because the shapes of a program are static. The gradient with
    respect to ``rois``, which other systems omit, is that with respect to the positions of the
    samples.

    Source: He et al. 2017, "Mask R-CNN", section 3; position-sensitive: Dai et al. 2016, "R-FCN".

    Example:
        >>> import jax.numpy as jnp
        >>> image = jnp.arange(16.0).reshape(1, 1, 4, 4)
        >>> roi_align(image, jnp.asarray([[0.0, 0.0, 0.0, 2.0, 2.0]]), pooled_size=(1, 2))
        Array([[[[4.5, 5.5]]]], dtype=float32)
    """
    rois = jnp.asarray(rois, at_least_single(jnp.result_type(data, rois)))
    data = never_weak(data)
    how: dict[str, Any] = {"spatial_scale": spatial_scale, "aligned": aligned}
    x1, y1, x2, y2 = jnp.unstack(rois[:, 1:], axis=1)
    y = _places_along(y1, y2, pooled_size[0] * sample_ratio, **how)[:, :, None]
    x = _places_along(x1, x2, pooled_size[1] * sample_ratio, **how)[:, None, :]
    of = _seen(data.shape, pooled_size, position_sensitive=position_sensitive)
    first = _first_pixels(rois, pooled_size, sample_ratio, of)
    corners, down, right = corners_at(y, x, first, of, clamped=True)
    samples = sampled(pixels(data, of), corners, down, right)
    height, width = pooled_size
    binned = samples.reshape(len(rois), height, sample_ratio, width, sample_ratio, of.channels)
    out = jnp.moveaxis(jnp.mean(binned, (2, 4)), -1, 1)
    return out.astype(data.dtype), corners, down, right


def _samples_gradient(d_out: Var, sample_ratio: int) -> Var:
    """The cotangent of the samples, given that of their mean in each bin."""
    count, channels, height, width = d_out.shape
    share = permute_dims(d_out, axes=(0, 2, 3, 1)) / float(sample_ratio**2)
    apart = reshape(share, shape=(count, height, 1, width, 1, channels))
    each = (count, height, sample_ratio, width, sample_ratio, channels)
    rows, columns = height * sample_ratio, width * sample_ratio
    samples: Var = reshape(broadcast_to(apart, shape=each), shape=(count, rows, columns, channels))
    return samples


@roi_align.gradient
def _roi_align_gradient(
    data: Var,
    rois: Var,
    corners: Var,
    down: Var,
    right: Var,
    d_out: Var,
    d_corners: Var | None,
    d_down: Var | None,
    d_right: Var | None,
    *,
    pooled_size: Pooled,
    spatial_scale: float,
    sample_ratio: int,
    position_sensitive: bool,
    aligned: bool,
) -> Grads:
    del d_corners  # they are integers
    of = _seen(data.shape, pooled_size, position_sensitive=position_sensitive)
    d_samples = _samples_gradient(cast(d_out, dtype=down.dtype), sample_ratio)

    def by_data() -> Var | None:
        return rows_to_images(samples_to_rows(of.rows, corners, down, right, d_samples), data, of)

    def by_rois() -> Var | None:
        places = samples_to_places(rows_of(data, of), corners, down, right, d_samples)
        gradients = [
            sum_to(d, shape=like.shape) for d, like in zip(places, (down, right), strict=True)
        ]
        d_y, d_x = with_kept(gradients, (d_down, d_right))
        how: dict[str, Any] = {"spatial_scale": spatial_scale, "aligned": aligned}
        image, x1, y1, x2, y2 = unstack(cast(rois, dtype=down.dtype), axis=1)
        d_y1, d_y2 = _edges_gradient(y1, y2, squeeze(d_y, axis=2), **how)
        d_x1, d_x2 = _edges_gradient(x1, x2, squeeze(d_x, axis=1), **how)
        edges = (filled(image, 0.0), d_x1, d_y1, d_x2, d_y2)
        return unbroadcast(stack(*edges, axis=1), rois)

    return {"data": by_data, "rois": by_rois}
