"""Max pooling over regions of interest, and code shared by both poolings of regions."""

from typing import Annotated

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, distinct, integers, misuse, workload
from registry.errors import ShapeError
from registry.operator.attributes import Check
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import unbroadcast
from registry.ops.core.indexing import add_rows, never_weak
from registry.ops.core.reshaping import reshape
from registry.ops.vision.bilinear import require_images
from registry.shapes import at_least_single, real_inexact
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var

Pooled = tuple[int, int]
"""The height and width of the pooled result."""
POSITIVE = Check("be positive", lambda value: np.min(value) > 0)
"""The same, or one number for both."""

REGIONS = np.array(
    [
        [0.0, 0.2, 0.9, 3.1, 2.8],
        [1.0, 2.2, -1.2, 6.1, 3.3],  # beyond two borders
        [0.0, 3.2, 2.1, 1.8, 0.7],  # turned around
        [2.0, 0.1, 0.2, 2.2, 2.3],  # of no image
    ]
)
"""A few regions for cases, of two images about 4 pixels long, away from where pixels change."""


def many_regions(count: int, batch: int, length: float) -> np.ndarray:
    """Regions anywhere in a batch of images."""
    generator = np.random.default_rng(0)
    low, high = np.sort(generator.uniform(0.0, length, (2, count, 2)), 0)
    return np.concatenate([generator.integers(0, batch, (count, 1)), low, high], 1)


def require_regions(data: Shape, rois: Shape) -> None:
    """Raises if data are not images, or if the regions do not have the right shape."""
    require_images(data)
    if len(rois) != 2 or rois[1] != 5:
        raise ShapeError(f"rois must have shape (count, 5), got {rois}")


def of_data(data: VarType, rois: VarType) -> DType:
    """The dtype of data; regions must be real."""
    real_inexact(data, rois)
    return real_inexact(data)[0]


# roi_pooling -----------------------------------------------------------------------------------


def _roi_pooling_shape(data: Shape, rois: Shape, *, pooled_size: Pooled) -> tuple[Shape, Shape]:
    require_regions(data, rois)
    out = (rois[0], data[1], *pooled_size)
    return out, out


def _roi_pooling_dtype(data: VarType, rois: VarType) -> list[DType]:
    return [of_data(data, rois), np.dtype(np.int32)]


def rounded(places: Array) -> Array:
    """The nearest integers, halves away from zero, clipped to a range that is wide enough."""
    away = jnp.sign(places) * jnp.floor(jnp.abs(places) + 0.5)
    return jnp.clip(away, -(2**20), 2**20).astype(np.int32)


def _bins(low: Array, high: Array, count: int, length: int) -> tuple[Array, Array]:
    """The start and end of each of ``count`` bins between two pixels, both inclusive."""
    span = jnp.maximum(high - low + 1, 1)
    nth = jnp.arange(count, dtype=np.int32)
    begin, end = low + nth * span // count, low - (-(nth + 1) * span // count)
    return jnp.clip(begin, 0, length), jnp.clip(end, 0, length)


def _winners(x: Array, begin: Array, end: Array) -> tuple[Array, Array]:
    """The largest entry of each bin along the last axis, and the first position that has it.

    The bins replace that axis; for an empty bin the position lies beyond the axis. Two plain
    reductions are several times faster than ``argmax``.
    """
    at = jnp.arange(x.shape[-1], dtype=np.int32)
    inside = (at >= begin[:, None]) & (at < end[:, None])
    seen = jnp.where(inside, x[..., None, :], -jnp.inf)
    most = jnp.max(seen, -1)
    matches = inside & ((seen == most[..., None]) | jnp.isnan(seen))
    return most, jnp.min(jnp.where(matches, at, x.shape[-1]), -1)


def _places_of_region(data: Array, roi: Array, pooled_size: Pooled) -> Array:
    """The position of the largest entry of each channel and bin in the flattened data."""
    batch, channels, height, width = data.shape
    n, x1, y1, x2, y2 = roi
    tops, bottoms = _bins(y1, y2, pooled_size[0], height)
    lefts, rights = _bins(x1, x2, pooled_size[1], width)
    by_row, column = _winners(data[jnp.clip(n, 0, batch - 1)], lefts, rights)
    _, row = _winners(jnp.swapaxes(by_row, 1, 2), tops, bottoms)  # channel, bin x, bin y
    row = jnp.swapaxes(row, 1, 2)
    column = jnp.take_along_axis(column, row, 1, mode="clip")
    channel = jnp.arange(channels, dtype=np.int32)[:, None, None]
    place = ((n * channels + channel) * height + row) * width + column
    nonempty = (tops < bottoms)[:, None] & (lefts < rights) & (n >= 0) & (n < batch)
    return jnp.where(nonempty, place, data.size)


def _roi_pooling_reference(
    data: np.ndarray, rois: np.ndarray, *, pooled_size: Pooled, spatial_scale: float
) -> np.ndarray:
    batch, channels, height, width = data.shape
    out = np.zeros((len(rois), channels, *pooled_size), data.dtype)
    for r, (n, *edges) in enumerate(rois.tolist()):
        if not 0 <= n < batch:
            continue
        x1, y1, x2, y2 = (
            int(np.copysign(np.floor(abs(e * spatial_scale) + 0.5), e)) for e in edges
        )
        for i, j in np.ndindex(*pooled_size):
            rows = _bin_reference(y1, y2, i, pooled_size[0], height)
            columns = _bin_reference(x1, x2, j, pooled_size[1], width)
            seen = data[int(n)][:, rows, columns]
            if seen.shape[1] and seen.shape[2]:
                out[r, :, i, j] = seen.max(axis=(1, 2))
    return out


def _bin_reference(low: int, high: int, nth: int, count: int, length: int) -> slice:
    size = max(high - low + 1, 1) / count
    begin, end = np.floor(nth * size + 1e-9), np.ceil((nth + 1) * size - 1e-9)
    return slice(*(int(np.clip(one + low, 0, length)) for one in (begin, end)))


@op(
    outputs=("out", "places"),
    hidden=("places",),
    shape=_roi_pooling_shape,
    dtype=_roi_pooling_dtype,
    reference=_roi_pooling_reference,
    aliases=["ROIPooling"],
    cases=[
        case(data=distinct(2, 2, 4, 5), rois=REGIONS, pooled_size=(2, 3)),
        case(data=distinct(1, 2, 5, 4), rois=REGIONS, pooled_size=(3, 1), spatial_scale=0.5),
        case(data=distinct(2, 1, 3, 3), rois=(0, 5), pooled_size=(2, 2), order=1),
        workload(data=(4, 32, 32, 32), rois=many_regions(32, 4, 32.0), pooled_size=(7, 7)),
        misuse(
            "rois must have shape (count, 5)", data=(1, 1, 4, 4), rois=(2, 4), pooled_size=(2, 2)
        ),
        misuse(
            "data must be (batch, channels, height > 0, width > 0), got (1, 4, 4)",
            data=(1, 4, 4),
            rois=(2, 5),
            pooled_size=(2, 2),
        ),
        misuse(
            "attribute 'pooled_size' must be positive, got (0, 2)",
            data=(1, 1, 4, 4),
            rois=(2, 5),
            pooled_size=(0, 2),
        ),
        misuse(
            "must be real",
            data=np.zeros((1, 1, 2, 2), np.complex64),
            rois=(1, 5),
            pooled_size=(1, 1),
        ),
        misuse(
            "must be floating",
            data=integers(1, 1, 2, 2, high=9),
            rois=(1, 5),
            pooled_size=(1, 1),
        ),
    ],
)
def roi_pooling(
    data: Array,
    rois: Array,
    *,
    pooled_size: Annotated[Pooled, POSITIVE],
    spatial_scale: float = 1.0,
) -> tuple[Array, Array]:
    """Region of interest pooling: the largest entry of each bin of each region.

    ``data`` has shape ``(batch, channels, height, width)``. Each row of ``rois`` holds the index of
    an image and the corners of a region, ``x1, y1, x2, y2``; multiplied by ``spatial_scale`` and
    rounded, halves away from zero, they are pixels of ``data``, both inclusive, and the region is
    at least one pixel long. The result has shape ``(rois, channels, *pooled_size)``: along an axis
    of ``count`` bins, the n-th extends from ``floor(n * length / count)`` up to and excluding
    ``ceil((n + 1) * length / count)``, clipped at the border of the image. An empty bin, and a
    region whose image index is out of range, give 0.

    The first of the largest entries of a bin receives the gradient. The gradient with respect to
    ``rois`` is zero, since they are rounded.

    Source: Girshick 2015, "Fast R-CNN", section 2.1; the rounding is that of MXNet's
    ``ROIPooling``.

    Example:
        >>> import jax.numpy as jnp
        >>> image = jnp.arange(16.0).reshape(1, 1, 4, 4)
        >>> roi_pooling(image, jnp.asarray([[0.0, 0.0, 0.0, 3.0, 2.0]]), pooled_size=(1, 2))
        Array([[[[ 9., 11.]]]], dtype=float32)
    """
    data, rois = jnp.asarray(data), jnp.asarray(rois)
    wide = rois.astype(at_least_single(rois.dtype))
    whole = rounded(wide * jnp.where(jnp.arange(5) == 0, 1.0, spatial_scale))
    fixed = lax.stop_gradient(data)  # only the selected entries have a derivative
    places = lax.map(lambda roi: _places_of_region(fixed, roi, pooled_size), whole)
    out = jnp.take(data.reshape(-1), places, mode="fill", fill_value=0)
    return never_weak(out), places


@roi_pooling.gradient
def _roi_pooling_gradient(data: Var, places: Var, d_out: Var, d_places: Var | None) -> Grads:
    del d_places  # they are integers
    d_data = reshape(add_rows(d_out, places, height=data.size), shape=data.shape)
    return {"data": unbroadcast(d_data, data), "rois": None}
