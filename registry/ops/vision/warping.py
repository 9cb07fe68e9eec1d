"""Sampling grids, and images sampled at their points."""

from typing import Annotated, Literal

import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse, uniform, workload
from registry.errors import AttributeValueError, ShapeError
from registry.operator.attributes import Check
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import cast, unbroadcast
from registry.ops.core.reductions import sum as sum_over
from registry.ops.core.reshaping import permute_dims, reshape
from registry.ops.shape.joining import stack
from registry.ops.vision.bilinear import (
    corners_at,
    images_in,
    pixels,
    require_images,
    rows_of,
    rows_to_images,
    sampled,
    samples_to_places,
    samples_to_rows,
    spaced,
    with_kept,
)
from registry.shapes import at_least_single, real_inexact, strong_real_inexact
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var

Target = tuple[int, int]
"""The height and width of the sampled result."""
_POSITIVE = Check("be positive", lambda target: target is None or min(target) > 0)


# grid_generator --------------------------------------------------------------------------------


def _ends(length: int) -> tuple[float, float, int]:
    """The first and last coordinate of a regular grid, and their number; one point is centered."""
    return (-1.0, 1.0, length) if length > 1 else (0.0, 0.0, 1)


def _grid_shape(data: Shape, *, transform_type: str, target_shape: Target | None) -> Shape:
    if transform_type == "warp":
        if target_shape is not None:
            raise AttributeValueError(
                f"target_shape must be left out of a warp, whose data tells it, got {target_shape}"
            )
        if len(data) != 4 or data[1] != 2 or min(data[2:]) < 2:
            raise ShapeError(f"data must be (batch, 2, height > 1, width > 1), got {data}")
        return data
    if target_shape is None:
        raise AttributeValueError("target_shape must be given for an affine transform, got None")
    if len(data) != 2 or data[1] != 6:
        raise ShapeError(f"data must have shape (batch, 6), got {data}")
    return (data[0], 2, *target_shape)


def _affine_grid(loc: Array, target_shape: Target) -> Array:
    """The affine grid, in at least single precision."""
    wide = at_least_single(loc.dtype)
    y, x = (jnp.linspace(*_ends(n), dtype=wide) for n in target_shape)
    matrix = loc.reshape(-1, 2, 3, 1, 1).astype(wide)
    return matrix[:, :, 0] * x + matrix[:, :, 1] * y[:, None] + matrix[:, :, 2]


def _affine_gradient(d_grid: Var, loc: Var, target_shape: Target) -> Var | None:
    # grid[k] = loc[k, 0] x + loc[k, 1] y + loc[k, 2]
    y, x = (spaced(d_grid, *_ends(n)) for n in target_shape)
    along_y, along_x = sum_over(d_grid, axis=3), sum_over(d_grid, axis=2)
    parts = (
        sum_over(along_x * x, axis=2),
        sum_over(along_y * y, axis=2),
        sum_over(along_x, axis=2),
    )
    return unbroadcast(reshape(stack(*parts, axis=2), shape=loc.shape), loc)


def _one_pixel(flow: Shape) -> tuple[float, float]:
    """The size of one pixel in grid coordinates, along x and along y."""
    _, _, height, width = flow
    return 2.0 / (width - 1), 2.0 / (height - 1)


def _warp_grid(flow: Array) -> Array:
    wide = flow.astype(at_least_single(flow.dtype))
    _, _, height, width = flow.shape
    places = jnp.meshgrid(*(jnp.arange(n, dtype=wide.dtype) for n in (width, height)))
    units = jnp.asarray(_one_pixel(flow.shape), wide.dtype).reshape(2, 1, 1)
    return (wide + jnp.stack(places)) * units - 1.0


def _grid_reference(
    data: np.ndarray, *, transform_type: str, target_shape: Target | None
) -> np.ndarray:
    *_, height, width = _grid_shape(
        data.shape, transform_type=transform_type, target_shape=target_shape
    )
    if transform_type == "warp":
        y, x = np.mgrid[:height, :width]
        out = np.stack([data[:, 0] + x, data[:, 1] + y], 1)
        return np.asarray(out * 2 / np.reshape([width - 1, height - 1], (2, 1, 1)) - 1)
    y, x = np.mgrid[:height, :width] * 2.0 / np.reshape([height - 1, width - 1], (2, 1, 1)) - 1
    ones = np.ones_like(x)
    grid = np.einsum("nkj,jhw->nkhw", data.reshape(-1, 2, 3), np.stack([x, y, ones]))
    return np.asarray(grid)


@op(
    shape=_grid_shape,
    dtype=strong_real_inexact,
    reference=_grid_reference,
    aliases=["GridGenerator"],
    cases=[
        case(data=(2, 6), target_shape=(3, 4)),
        case(data=(2, 2, 3, 4), transform_type="warp"),
        case(data=(0, 6), target_shape=(2, 2), order=1),
        workload(data=(64, 6), target_shape=(128, 128)),
        misuse("data must have shape (batch, 6), got (2, 3)", data=(2, 3), target_shape=(2, 2)),
        misuse("target_shape must be given for an affine transform", data=(2, 6)),
        misuse("attribute 'target_shape' must be positive", data=(2, 6), target_shape=(0, 2)),
        misuse(
            "target_shape must be left out of a warp",
            data=(1, 2, 3, 3),
            transform_type="warp",
            target_shape=(3, 3),
        ),
        misuse(
            "data must be (batch, 2, height > 1, width > 1), got (1, 2, 3, 1)",
            data=(1, 2, 3, 1),
            transform_type="warp",
        ),
        misuse("must be floating, got int32", data=integers(1, 6, high=2), target_shape=(2, 2)),
    ],
)
def grid_generator(
    data: Array,
    *,
    transform_type: Literal["affine", "warp"] = "affine",
    target_shape: Annotated[Target | None, _POSITIVE] = None,
) -> Array:
    """Generates a sampling grid for ``bilinear_sampler`` from an affine map or a flow.

    The result has shape ``(batch, 2, height, width)`` and holds x, then y. Both run from -1 at the
    center of the first pixel of an axis to 1 at the center of the last.

    ``"affine"``: ``data`` of shape ``(batch, 6)`` holds the rows of a two-row matrix, and the grid
    is that matrix times ``(x, y, 1)``, for x and y of a regular grid of ``target_shape``. An axis
    of length 1 has its point at 0.

    ``"warp"``: ``data`` of shape ``(batch, 2, height, width)`` gives the displacement of each point
    of a regular grid in pixels.

    Source: Jaderberg et al. 2015, "Spatial Transformer Networks", section 3.2.

    Example:
        >>> import jax.numpy as jnp
        >>> unchanged = jnp.asarray([[1.0, 0.0, 0.0, 0.0, 1.0, 0.0]])
        >>> grid_generator(unchanged, target_shape=(1, 3))
        Array([[[[-1.,  0.,  1.]],
        <BLANKLINE>
                [[ 0.,  0.,  0.]]]], dtype=float32)
    """
    data = jnp.asarray(data)
    if transform_type == "warp":
        return _warp_grid(data).astype(data.dtype)
    assert target_shape is not None
    return _affine_grid(data, target_shape).astype(data.dtype)


@grid_generator.gradient
def _grid_generator_gradient(
    data: Var, d_out: Var, *, transform_type: str, target_shape: Target | None
) -> Grads:
    d_grid = cast(d_out, dtype=at_least_single(data.dtype))
    if transform_type == "affine":
        assert target_shape is not None
        return {"data": _affine_gradient(d_grid, data, target_shape)}
    units = reshape(spaced(d_grid, *_one_pixel(data.shape), 2), shape=(2, 1, 1))
    return {"data": unbroadcast(d_grid * units, data)}


# bilinear_sampler ------------------------------------------------------------------------------


def _sampled_shapes(data: Shape, height: int, width: int) -> tuple[Shape, ...]:
    """The shapes of the samples and of the stored positions."""
    places = (data[0], height, width)
    return (data[0], data[1], height, width), (4, *places), places, places


def _sampled_dtypes(*types: VarType) -> list[DType]:
    wide = at_least_single(strong_real_inexact(*types))
    return [real_inexact(*types)[0], np.dtype(np.int32), wide, wide]


def _sampler_shape(data: Shape, grid: Shape) -> tuple[Shape, ...]:
    require_images(data)
    if len(grid) != 4 or grid[1] != 2 or grid[0] != data[0]:
        raise ShapeError(f"grid must be ({data[0]}, 2, height, width), got {grid}")
    return _sampled_shapes(data, *grid[2:])


def _sample(data: Array, grid: Array) -> tuple[Array, ...]:
    """The samples, and the stored data of their positions."""
    of = images_in(data.shape)
    dtype = jnp.result_type(data, grid)
    grid = grid.astype(at_least_single(jnp.result_type(data, grid)))
    by_x, by_y = _pixels_per_unit(data.shape)
    x, y = (grid[:, 0] + 1.0) * by_x, (grid[:, 1] + 1.0) * by_y
    corners, down, right = corners_at(y, x, of.first[:, 0, 0], of)
    out = sampled(pixels(data, of), corners, down, right)
    return jnp.moveaxis(out, -1, 1).astype(dtype), corners, down, right


def _pixels_per_unit(data: Shape) -> tuple[float, float]:
    return (data[3] - 1) / 2, (data[2] - 1) / 2


def _data_gradient(data: Var, corners: Var, down: Var, right: Var, d_out: Var) -> Var | None:
    d_samples = permute_dims(cast(d_out, dtype=down.dtype), axes=(0, 2, 3, 1))
    of = images_in(data.shape)
    return rows_to_images(samples_to_rows(of.rows, corners, down, right, d_samples), data, of)


def _grid_gradient(
    data: Var,
    corners: Var,
    down: Var,
    right: Var,
    d_out: Var,
    d_kept: tuple[Var | None, Var | None],
) -> Var:
    d_samples = permute_dims(cast(d_out, dtype=down.dtype), axes=(0, 2, 3, 1))
    gradients = samples_to_places(
        rows_of(data, images_in(data.shape)), corners, down, right, d_samples
    )
    d_down, d_right = with_kept(gradients, d_kept)
    by_x, by_y = _pixels_per_unit(data.shape)
    d_grid: Var = stack(d_right * by_x, d_down * by_y, axis=1)
    return d_grid


def _sampler_reference(data: np.ndarray, grid: np.ndarray) -> np.ndarray:
    batch, channels, height, width = data.shape
    out = np.zeros((batch, channels, *grid.shape[2:]), np.result_type(data, grid))
    for n, i, j in np.ndindex(batch, *grid.shape[2:]):
        x, y = (grid[n, :, i, j] + 1) * (np.array([width, height]) - 1) / 2
        for row, column in np.ndindex(height, width):
            near = max(0, 1 - abs(y - row)) * max(0, 1 - abs(x - column))
            out[n, :, i, j] += data[n, :, row, column] * near
    return out


@op(
    outputs=("out", "corners", "down", "right"),
    hidden=("corners", "down", "right"),
    shape=_sampler_shape,
    dtype=_sampled_dtypes,
    reference=_sampler_reference,
    aliases=["BilinearSampler"],
    cases=[
        case(data=(2, 1, 4, 3), grid=uniform(2, 2, 2, 3, low=-1.3, high=1.3)),
        case(data=(1, 2, 2, 4), grid=uniform(1, 2, 3, 2, low=-3.0, high=3.0), order=2),
        case(data=(0, 2, 2, 2), grid=uniform(0, 2, 1, 2, low=-1.0, high=1.0), order=1),
        workload(data=(8, 32, 64, 64), grid=uniform(8, 2, 64, 64, low=-1.1, high=1.1)),
        misuse("grid must be (2, 2, height, width)", data=(2, 1, 4, 4), grid=(1, 2, 3, 3)),
        misuse("data must be (batch, channels, height > 0", data=(2, 1, 0, 4), grid=(2, 2, 3, 3)),
        misuse(
            "must be floating", data=integers(1, 1, 2, 2, high=9), grid=integers(1, 2, 1, 1, high=2)
        ),
        misuse("must be real", data=np.zeros((1, 1, 2, 2), np.complex64), grid=(1, 2, 1, 1)),
    ],
)
def bilinear_sampler(data: Array, grid: Array) -> tuple[Array, Array, Array, Array]:
    """Samples ``data`` at the points of ``grid`` by bilinear interpolation.

    ``data`` has shape ``(batch, channels, height, width)``; ``grid``, of shape
    ``(batch, 2, h, w)``, holds x, then y, from -1 at the center of the first pixel of an axis to 1
    at the center of the last; the result has shape ``(batch, channels, h, w)``. Pixels outside
    count as zero, so the result falls to zero within one pixel around the image. Where a sample
    lies exactly on a pixel, the derivative with respect to its position is the one-sided derivative
    to the right and downwards.

    ``out[n, c, i, j] = sum over rows r and columns s of data[n, c, r, s] * max(0, 1 - |y - r|) *
    max(0, 1 - |x - s|)``

    Source: Jaderberg et al. 2015, "Spatial Transformer Networks", equation 5.

    Example:
        >>> import jax.numpy as jnp
        >>> image = jnp.asarray([[[[0.0, 1.0], [2.0, 3.0]]]])
        >>> bilinear_sampler(image, jnp.zeros((1, 2, 1, 1)))
        Array([[[[1.5]]]], dtype=float32)
    """
    out, corners, down, right = _sample(jnp.asarray(data), jnp.asarray(grid))
    return out, corners, down, right


@bilinear_sampler.gradient
def _bilinear_sampler_gradient(
    data: Var,
    grid: Var,
    corners: Var,
    down: Var,
    right: Var,
    d_out: Var,
    d_corners: Var | None,
    d_down: Var | None,
    d_right: Var | None,
) -> Grads:
    del d_corners  # they are integers
    kept = corners, down, right
    return {
        "data": lambda: _data_gradient(data, *kept, d_out),
        "grid": lambda: unbroadcast(_grid_gradient(data, *kept, d_out, (d_down, d_right)), grid),
    }


# spatial_transformer ---------------------------------------------------------------------------


def _transformer_shape(data: Shape, loc: Shape, *, target_shape: Target) -> tuple[Shape, ...]:
    require_images(data)
    if loc != (data[0], 6):
        raise ShapeError(f"loc must have shape {(data[0], 6)}, got {loc}")
    return _sampled_shapes(data, *target_shape)


def _transformer_reference(
    data: np.ndarray, loc: np.ndarray, *, target_shape: Target
) -> np.ndarray:
    grid = _grid_reference(loc, transform_type="affine", target_shape=target_shape)
    return _sampler_reference(data, grid)


@op(
    outputs=("out", "corners", "down", "right"),
    hidden=("corners", "down", "right"),
    shape=_transformer_shape,
    dtype=_sampled_dtypes,
    reference=_transformer_reference,
    cases=[
        case(data=(2, 1, 4, 3), loc=uniform(2, 6, low=-0.8, high=0.8), target_shape=(2, 3)),
        case(data=(0, 1, 2, 2), loc=(0, 6), target_shape=(2, 2), order=1),
        workload(
            data=(8, 32, 64, 64), loc=uniform(8, 6, low=-0.8, high=0.8), target_shape=(64, 64)
        ),
        misuse(
            "loc must have shape (2, 6), got (2, 4)",
            data=(2, 1, 4, 4),
            loc=(2, 4),
            target_shape=(2, 2),
        ),
        misuse(
            "attribute 'target_shape' must be positive",
            data=(2, 1, 4, 4),
            loc=(2, 6),
            target_shape=(2, -1),
        ),
        misuse(
            "must be real",
            data=np.zeros((1, 1, 2, 2), np.complex64),
            loc=(1, 6),
            target_shape=(1, 1),
        ),
    ],
)
def spatial_transformer(
    data: Array, loc: Array, *, target_shape: Annotated[Target, _POSITIVE]
) -> tuple[Array, Array, Array, Array]:
    """Samples ``data`` on a grid of ``target_shape`` transformed by the affine maps ``loc``.

    ``bilinear_sampler(data, grid_generator(loc, target_shape=target_shape))``: ``data`` has shape
    ``(batch, channels, height, width)``, ``loc`` has shape ``(batch, 6)``.

    Source: Jaderberg et al. 2015, "Spatial Transformer Networks".

    Example:
        >>> import jax.numpy as jnp
        >>> image = jnp.asarray([[[[0.0, 1.0], [2.0, 3.0]]]])
        >>> turned = jnp.asarray([[0.0, -1.0, 0.0, 1.0, 0.0, 0.0]])
        >>> spatial_transformer(image, turned, target_shape=(2, 2))
        Array([[[[1., 3.],
                 [0., 2.]]]], dtype=float32)
    """
    data, loc = jnp.asarray(data), jnp.asarray(loc)
    dtype = jnp.result_type(data, loc)
    grid = _affine_grid(loc.astype(dtype), target_shape)
    out, corners, down, right = _sample(data, grid)
    return out.astype(dtype), corners, down, right


@spatial_transformer.gradient
def _spatial_transformer_gradient(
    data: Var,
    loc: Var,
    corners: Var,
    down: Var,
    right: Var,
    d_out: Var,
    d_corners: Var | None,
    d_down: Var | None,
    d_right: Var | None,
    *,
    target_shape: Target,
) -> Grads:
    del d_corners  # they are integers
    kept = corners, down, right

    def by_loc() -> Var | None:
        d_grid = _grid_gradient(data, *kept, d_out, (d_down, d_right))
        return _affine_gradient(d_grid, loc, target_shape)

    return {"data": lambda: _data_gradient(data, *kept, d_out), "loc": by_loc}
