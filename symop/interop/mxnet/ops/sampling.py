"""Sampling of images on grids, and resizing."""

from typing import Any, Literal

import numpy as np

import symop as so
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.ops.values import fixed
from symop.interop.mxnet.partial_shapes import Shapes, enter

Lengths = tuple[int, ...]


def _sampler_shapes(given: Shapes, found: Shapes) -> None:
    data, grid = given
    if data is not None:
        enter(given, 1, (data[0], 2, 0, 0))
        enter(found, 0, (data[0], data[1], 0, 0))
    if grid is not None:
        enter(given, 0, (grid[0], 0, 0, 0))
        enter(found, 0, (grid[0], 0, grid[2], grid[3]))


@operator(
    "BilinearSampler",
    shapes=_sampler_shapes,
    outputs=lambda: ("output", "tmp"),
    visible=lambda: 1,
    ignored=("cudnn_off",),
)
def bilinear_sampler(data: Any, grid: Any) -> Any:
    """``data`` sampled at the positions of ``grid``; zero outside of the image."""
    return so.bilinear_sampler(data, grid)


def _grid_shapes(given: Shapes, found: Shapes, transform_type: str, target_shape: Lengths) -> None:
    if transform_type == "affine":
        enter(given, 0, (0, 6))
        enter(found, 0, (0, 2, *target_shape))
    else:
        enter(given, 0, (0, 2, 0, 0))
        enter(found, 0, given[0])
        enter(given, 0, found[0])
    assert given[0] is not None
    assert found[0] is not None
    enter(found, 0, (given[0][0], 0, 0, 0))
    enter(given, 0, (found[0][0], *given[0][1:]))


@operator(
    "GridGenerator",
    shapes=_grid_shapes,
    outputs=lambda: ("output", "grid_dst"),
    visible=lambda: 1,
)
def grid_generator(
    data: Any, *, transform_type: Literal["affine", "warp"], target_shape: Lengths = (0, 0)
) -> Any:
    """Sampling positions from an affine map or a flow."""
    if transform_type == "warp":
        return so.grid_generator(data, transform_type="warp")
    _check_target("GridGenerator", target_shape)
    return so.grid_generator(data, transform_type="affine", target_shape=target_shape)


def _check_target(name: str, target_shape: Lengths) -> None:
    if len(target_shape) != 2 or not all(target_shape):
        raise MXNetError(f"{name}: target_shape must be a height and a width, got {target_shape}")


def _transformer_shapes(given: Shapes, found: Shapes, target_shape: Lengths) -> None:
    enter(given, 1, (0, 6))
    for one, other in ((0, 1), (1, 0)):
        known, wanted = given[one], given[other]
        if known is not None and wanted is not None:
            enter(given, other, (known[0], *[0] * (len(wanted) - 1)))
    if given[0] is not None:
        enter(found, 0, (given[0][0], given[0][1], *target_shape))


@operator(
    "SpatialTransformer",
    shapes=_transformer_shapes,
    outputs=lambda: ("output", "grid_dst", "grid_src"),
    visible=lambda: 1,
    ignored=("cudnn_off",),
)
def spatial_transformer(
    data: Any,
    loc: Any,
    *,
    transform_type: Literal["affine"],
    sampler_type: Literal["bilinear"],
    target_shape: Lengths = (0, 0),
) -> Any:
    """``data`` sampled on a regular grid transformed by the affine maps ``loc``."""
    del transform_type, sampler_type  # only one value each
    _check_target("SpatialTransformer", target_shape)
    return so.spatial_transformer(data, loc, target_shape=target_shape)


# Resizing --------------------------------------------------------------------------------------

ResizeMode = Literal[
    "size", "odd_scale", "like", "to_even_down", "to_even_up", "to_odd_down", "to_odd_up"
]


def _resized(n: int, mode: str, size: int, scale: float | None) -> int:
    """The new length of an axis of length ``n``."""
    if mode == "size":
        return size if scale is None else int(np.float32(scale) * np.float32(n))
    if mode == "odd_scale":
        if scale is None:
            raise MXNetError("BilinearResize2D: 'odd_scale' must have both scales, got none")
        factor, odd = np.float32(scale), n % 2
        return int(np.float32(n - odd) * factor) + odd
    _, parity, side = mode.split("_")
    if n % 2 == (0 if parity == "even" else 1):
        return n
    return n + (1 if side == "up" else -1)


def _resize_inputs(mode: str) -> tuple[str, ...]:
    return ("data", "like") if mode == "like" else ("data",)


def _resize_shapes(
    given: Shapes,
    found: Shapes,
    mode: str,
    height: int,
    width: int,
    scale_height: float | None,
    scale_width: float | None,
) -> None:
    for shapes, other in ((given, found), (found, given)):
        known = shapes[0]
        if known is not None:
            enter(other, 0, (known[0], known[1], 0, 0))
    data, sizes = given[0], ((height, scale_height), (width, scale_width))
    if data is not None and all(data[2:]) and mode != "like":
        size = [_resized(n, mode, *one) for n, one in zip(data[2:], sizes, strict=True)]
        enter(found, 0, (0, 0, *size))


@operator("_contrib_BilinearResize2D", present=_resize_inputs, shapes=_resize_shapes)
def bilinear_resize(
    data: Any,
    like: Any = None,
    *,
    height: int = 1,
    width: int = 1,
    scale_height: float | None = None,
    scale_width: float | None = None,
    mode: ResizeMode = "size",
    align_corners: bool = True,
) -> Any:
    """``data`` resized to another height and width by bilinear interpolation."""
    if (scale_height is None) != (scale_width is None):
        raise MXNetError("BilinearResize2D: both scales must be given, or none, got one")
    if mode == "like":
        size = like.shape[2:4]
    else:
        size = (
            _resized(data.shape[2], mode, height, scale_height),
            _resized(data.shape[3], mode, width, scale_width),
        )
    out = so.resize(data, size=tuple(size), method="linear", align_corners=align_corners)
    return fixed(out, like) if mode == "like" else out
