"""Bilinear sampling of images, shared by warping, regions and deformable convolution.

Images are stored as rows of a matrix, one row per pixel, with the channels along the row. A sample
lies between four pixels, its corners, in the order top left, top right, bottom left, bottom right.
A corner is given by its row, or by the number of rows if it lies outside and counts as zero.
``down`` and ``right`` are the distances from the top left corner to the sample, from 0 to 1. The
derivative of a sample with respect to its position is that with respect to these two.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from registry.errors import ShapeError
from registry.operator.signature import Array
from registry.ops.core.broadcasting import unbroadcast
from registry.ops.core.indexing import add_rows, one_long, take
from registry.ops.core.reductions import sum as sum_over
from registry.ops.core.reshaping import expand_dims, permute_dims, reshape
from registry.ops.shape.creation import linspace
from registry.ops.shape.joining import stack, unstack
from registry.types import Shape
from registry.var import Var, emitter_of


class Images(NamedTuple):
    """The layout of data with axes batch, channels, height and width, and grouped channels.

    Attributes:
        batch: the number of images.
        groups: the number of groups of channels in each image.
        channels: the number of channels in each group.
        height: the height of each image in pixels.
        width: the width of each image in pixels.
        dealt: whether the channels are distributed to the groups in turn instead of group by group.
    """

    batch: int
    groups: int
    channels: int
    height: int
    width: int
    dealt: bool

    @property
    def rows(self) -> int:
        """The number of pixels, counted separately for each group."""
        return self.batch * self.groups * self.height * self.width

    @property
    def first(self) -> np.ndarray:
        """The row of the first pixel of each image and group."""
        each = np.arange(self.batch * self.groups, dtype=np.int32) * (self.height * self.width)
        return each.reshape(self.batch, self.groups, 1, 1, 1)

    @property
    def parted(self) -> Shape:
        """The shape of data with its channels split into groups."""
        both = (self.groups, self.channels)
        return (self.batch, *(both[::-1] if self.dealt else both), self.height, self.width)

    @property
    def axes(self) -> tuple[int, ...]:
        """The permutation of the split data to batch, group, height, width, channel."""
        return (0, 2, 3, 4, 1) if self.dealt else (0, 1, 3, 4, 2)


def require_images(data: Shape) -> None:
    """Raises if data are not images of at least one pixel."""
    if len(data) != 4 or 0 in data[2:]:
        raise ShapeError(f"data must be (batch, channels, height > 0, width > 0), got {data}")


def images_in(data: Shape, groups: int = 1, *, dealt: bool = False) -> Images:
    """The ``Images`` description of data of that shape."""
    batch, channels, height, width = data
    return Images(batch, groups, channels // groups, height, width, dealt)


def pixels(data: Array, of: Images) -> Array:
    """Images as rows."""
    return data.reshape(of.parted).transpose(of.axes).reshape(of.rows, of.channels)


def rows_of(data: Var, of: Images) -> Var:
    """Images as rows, in a gradient."""
    last = permute_dims(reshape(data, shape=of.parted), axes=of.axes)
    rows: Var = reshape(last, shape=(of.rows, of.channels))
    return rows


def rows_to_images(rows: Var, data: Var, of: Images) -> Var | None:
    """Rows as images like ``data``, in a gradient."""
    last = reshape(rows, shape=tuple(of.parted[axis] for axis in of.axes))
    back = permute_dims(last, axes=tuple(np.argsort(of.axes).tolist()))
    return unbroadcast(reshape(back, shape=data.shape), data)


def corners_at(
    y: Array, x: Array, first: Any, image: Images, *, clamped: bool = False
) -> tuple[Array, Array, Array]:
    """Corners, ``down`` and ``right`` of samples at places in pixels of images from row ``first``.

    Corners outside count as zero; if ``clamped``, a sample up to one pixel outside takes the value
    at the border. ``y``, ``x`` and ``first`` broadcast together.
    """
    down, rows = _neighbors(y, image.height, clamped=clamped)
    right, columns = _neighbors(x, image.width, clamped=clamped)
    ids = [
        jnp.where(below & beside, first + row * image.width + column, image.rows)
        for row, below in rows
        for column, beside in columns
    ]
    return jnp.stack(ids), down, right


def _neighbors(
    place: Array, length: int, *, clamped: bool
) -> tuple[Array, list[tuple[Array, Array]]]:
    """The offset of ``place`` from the entry before it, and both neighbors: index and validity."""
    place = jnp.where(jnp.isinf(place), -2, place)  # outside as well, with numbers around it
    low = jnp.floor(place)
    at, neighbors = low.astype(np.int32), []
    for step in (0, 1):
        inside = (low + step >= 0) & (low + step < length)
        if clamped:
            # Both neighbors are the same pixel beyond the border, so the sample is constant there.
            inside = (place >= -1) & (place <= length)
        neighbors.append((jnp.clip(at + step, 0, length - 1), inside))
    return place - low, neighbors


def weights(down: Any, right: Any) -> tuple[Any, Any, Any, Any]:
    """The bilinear weight of each corner, for arrays and other values."""
    up, left = 1.0 - down, 1.0 - right
    return up * left, up * right, down * left, down * right


def sampled(rows: Array, corners: Array, down: Array, right: Array) -> Array:
    """The samples, with the channels along the last axis."""
    if rows.shape[0] == 0:
        rows = one_long(rows, 0)
    out = jnp.zeros((), down.dtype)
    for ids, weight in zip(corners, weights(down, right), strict=True):
        out = out + weight[..., None] * jnp.take(rows, ids, axis=0, mode="fill", fill_value=0)
    return out


def samples_to_rows(height: int, corners: Var, down: Var, right: Var, d_samples: Var) -> Var:
    """The cotangent of the rows of the images, given that of the samples."""
    shares = expand_dims(stack(*weights(down, right)), axis=-1)
    rows: Var = add_rows(shares * d_samples, corners, height=height)
    return rows


def samples_to_places(
    rows: Var, corners: Var, down: Var, right: Var, d_samples: Var
) -> tuple[Var, Var]:
    """The cotangents of ``down`` and ``right``, given that of the samples."""
    # d sample = sum of d weight * corner, and the weights are products of down, right and their
    # complements to 1. The corners are gathered one by one, which is several times faster in XLA.
    a, b, c, d = (
        sum_over(take(rows, ids, fill_value=0.0) * d_samples, axis=-1) for ids in unstack(corners)
    )
    d_down = (1.0 - right) * (c - a) + right * (d - b)
    d_right = (1.0 - down) * (b - a) + down * (d - c)
    return d_down, d_right


def spaced(like: Var, start: float, stop: float, count: int) -> Var:
    """``linspace`` with the dtype of ``like``; in a graph it stays a call instead of an array."""
    keywords = {"start": start, "stop": stop, "num": count, "dtype": like.dtype}
    _, attributes, _ = linspace.bind((), keywords)
    numbers: Var = emitter_of((like,)).emit(linspace, (), attributes, None)
    return numbers


def with_kept(gradients: Sequence[Var], kept: Sequence[Var | None]) -> list[Any]:
    """Cotangents of ``down`` and ``right``, plus those that reach their stored copies."""
    return [d if k is None else d + k for d, k in zip(gradients, kept, strict=True)]
