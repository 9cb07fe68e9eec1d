"""Convolution whose taps are displaced by learned offsets."""

import math
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np

from registry.cases import case, misuse, uniform, workload
from registry.errors import AttributeValueError
from registry.operator.operator import Grads
from registry.operator.signature import Array, Bias, Parameter
from registry.ops.conv.convolving import bias_gradient, plus_bias, require_groups, require_shapes
from registry.ops.conv.windows import Lengths, Padding, Window, each_axis, window
from registry.ops.core.broadcasting import cast, unbroadcast
from registry.ops.core.reshaping import permute_dims, reshape, swapped
from registry.ops.linalg.linear import matmul
from registry.ops.shape.joining import stack
from registry.ops.vision.bilinear import (
    Images,
    corners_at,
    images_in,
    pixels,
    require_images,
    rows_of,
    rows_to_images,
    sampled,
    samples_to_places,
    samples_to_rows,
    with_kept,
)
from registry.shapes import at_least_single, strong_real_inexact
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var


def _window(
    data: Shape,
    *,
    kernel: Lengths,
    stride: Lengths,
    padding: Padding,
    dilation: Lengths,
    **others: Any,
) -> Window:
    del others
    require_images(data)
    return window(
        data, layout="NCHW", kernel=kernel, stride=stride, padding=padding, dilation=dilation
    )


def _weight_shape(
    data: Shape, *, channels: int, kernel: Lengths, groups: int, **others: Any
) -> Shape:
    del others
    require_groups(groups, data[1], channels)
    return (channels, data[1] // groups, *each_axis("kernel", kernel, 2, at_least=1))


def _offset_shape(data: Shape, over: Window, deformable_groups: int) -> Shape:
    if deformable_groups < 1 or data[1] % deformable_groups:
        raise AttributeValueError(
            f"deformable_groups must divide the {data[1]} channels of data, got {deformable_groups}"
        )
    return (data[0], 2 * deformable_groups * math.prod(over.kernel), *over.lengths(data))


def _deformable_shape(
    data: Shape,
    offset: Shape,
    weight: Shape,
    bias: Shape | None,
    *,
    channels: int,
    groups: int,
    deformable_groups: int,
    **how: Any,
) -> tuple[Shape, ...]:
    over = _window(data, **how)
    require_shapes(
        data,
        offset=(offset, _offset_shape(data, over, deformable_groups)),
        weight=(weight, _weight_shape(data, channels=channels, groups=groups, **how)),
        bias=(bias, (channels,)),
    )
    taps, places = math.prod(over.kernel), over.lengths(data)
    columns = (data[0], groups, data[1] // groups * taps, math.prod(places))
    kept = (data[0], deformable_groups, taps, *places)
    return over.out_shape(data, channels), columns, (4, *kept), kept, kept


def _deformable_dtype(*types: VarType) -> list[DType]:
    dtype = strong_real_inexact(*types)
    wide = at_least_single(dtype)
    return [dtype, dtype, np.dtype(np.int32), wide, wide]


def _taps(over: Window, data: Shape) -> list[np.ndarray]:
    """The undisplaced positions of the taps along y and along x, with axes taps, then places."""
    within = np.indices(over.kernel).reshape(2, -1, 1, 1)
    places = np.indices(over.lengths(data))[:, None]
    every = zip(within, places, over.dilation, over.stride, over.pads, strict=True)
    return [tap * apart + place * by - low for tap, place, apart, by, (low, _) in every]


def _deformable_reference(
    data: np.ndarray,
    offset: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None,
    *,
    groups: int,
    deformable_groups: int,
    **how: Any,
) -> np.ndarray:
    over = _window(data.shape, **how)
    batch, features, height, width = data.shape
    channels, each = weight.shape[:2]
    out = np.zeros((batch, channels, *over.lengths(data.shape)), data.dtype)
    apart = offset.reshape(batch, deformable_groups, *over.kernel, 2, *out.shape[2:])
    for n, o, i, j, c, k, m in np.ndindex(*out.shape, each, *over.kernel):
        channel = o // (channels // groups) * each + c
        by = apart[n, channel // (features // deformable_groups), k, m, :, i, j]
        place = np.array([i, j]) * over.stride + np.array([k, m]) * over.dilation + by
        y, x = place - [low for low, _ in over.pads]
        near_y = np.maximum(0, 1 - np.abs(y - np.arange(height)))
        near_x = np.maximum(0, 1 - np.abs(x - np.arange(width)))
        out[n, o, i, j] += weight[o, c, k, m] * (near_y @ data[n, channel] @ near_x)
    return out if bias is None else out + bias[:, None, None]


@op(
    outputs=("out", "columns", "corners", "down", "right"),
    hidden=("columns", "corners", "down", "right"),
    shape=_deformable_shape,
    dtype=_deformable_dtype,
    reference=_deformable_reference,
    cases=[
        case(
            data=(2, 2, 3, 3),
            offset=uniform(2, 8, 2, 2, low=-1.5, high=1.5),
            weight=(2, 2, 2, 2),
            bias=(2,),
            channels=2,
            kernel=2,
            order=2,
        ),
        case(
            data=(1, 4, 4, 3),
            offset=uniform(1, 8, 2, 4, low=-1.5, high=1.5),
            weight=(2, 2, 2, 1),
            channels=2,
            kernel=(2, 1),
            stride=(2, 1),
            padding=((0, 1), (1, 0)),
            dilation=(2, 1),
            groups=2,
            deformable_groups=2,
            use_bias=False,
            order=1,
        ),
        case(
            data=(0, 1, 2, 2),
            offset=(0, 2, 2, 2),
            weight=(1, 1, 1, 1),
            bias=(1,),
            channels=1,
            kernel=1,
            order=1,
        ),
        case(
            data=(1, 1, 2, 2),
            offset=uniform(1, 2, 1, 1, low=0.2, high=0.8),
            weight=(1, 1, 1, 1),
            bias=(1,),
            channels=1,
            kernel=1,
            stride=2,
        ),
        workload(
            data=(4, 32, 32, 32),
            offset=uniform(4, 18, 32, 32, low=-1.5, high=1.5),
            weight=(32, 32, 3, 3),
            bias=(32,),
            channels=32,
            kernel=3,
            padding=1,
        ),
        misuse(
            "offset must have shape (1, 8, 2, 2) for data of (1, 2, 3, 3), got (1, 4, 2, 2)",
            data=(1, 2, 3, 3),
            offset=(1, 4, 2, 2),
            weight=(2, 2, 2, 2),
            bias=(2,),
            channels=2,
            kernel=2,
        ),
        misuse(
            "weight must have shape (2, 2, 2, 2)",
            data=(1, 2, 3, 3),
            offset=(1, 8, 2, 2),
            weight=(2, 1, 2, 2),
            bias=(2,),
            channels=2,
            kernel=2,
        ),
        misuse(
            "groups must divide the 2 channels of data and the 3 of the result, got 2",
            data=(1, 2, 3, 3),
            offset=(1, 8, 2, 2),
            weight=(3, 1, 2, 2),
            bias=(3,),
            channels=3,
            kernel=2,
            groups=2,
        ),
        misuse(
            "deformable_groups must divide the 2 channels of data, got 4",
            data=(1, 2, 3, 3),
            offset=(1, 8, 2, 2),
            weight=(2, 2, 2, 2),
            bias=(2,),
            channels=2,
            kernel=2,
            deformable_groups=4,
        ),
        misuse(
            "data must be (batch, channels, height > 0, width > 0), got (2, 3, 3)",
            data=(2, 3, 3),
            offset=(1, 8, 2, 2),
            weight=(2, 2, 2, 2),
            bias=(2,),
            channels=2,
            kernel=2,
        ),
        misuse(
            "must be real",
            data=np.zeros((1, 1, 2, 2), np.complex64),
            offset=(1, 2, 2, 2),
            weight=(1, 1, 1, 1),
            bias=(1,),
            channels=1,
            kernel=1,
        ),
    ],
    costly=True,
)
def deformable_convolution(
    data: Array,
    offset: Array,
    weight: Parameter,
    bias: Bias | None = None,
    *,
    channels: int,
    kernel: int | tuple[int, ...],
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int | tuple[int, int], ...] | Literal["same", "valid"] = 0,
    dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
    deformable_groups: int = 1,
    use_bias: bool = True,
) -> tuple[Array, Array, Array, Array, Array]:
    """Deformable convolution: ``convolution`` plus ``bias`` with taps displaced by ``offset``.

    The tap ``(i, j)`` of the output place ``(y, x)`` reads ``data`` at ``(y * stride + i * dilation
    - padding + dy, x * stride + j * dilation - padding + dx)``, interpolated between the four
    pixels around it; pixels outside count as zero.

    ``data`` has shape ``(batch, in_channels, height, width)``. ``weight``, ``bias`` and the result
    have the same shapes as in ``convolution``. ``offset`` has the height and width of the result,
    and ``2 * deformable_groups`` channels for each tap: for each group of the channels of data and
    each tap in row-major order, dy and dx. Where a tap lies exactly on a pixel, the derivative with
    respect to its position is the one-sided derivative downwards and to the right.

    Source: Dai et al. 2017, "Deformable Convolutional Networks", section 2.1.

    Example:
        >>> import jax.numpy as jnp
        >>> image = jnp.asarray([[[[1.0, 2.0], [3.0, 4.0]]]])
        >>> right = jnp.zeros((1, 2, 2, 2)).at[:, 1].set(0.5)
        >>> weight, bias = jnp.ones((1, 1, 1, 1)), jnp.zeros(1)
        >>> deformable_convolution(image, right, weight, bias, channels=1, kernel=1)
        Array([[[[1.5, 1. ],
                 [3.5, 2. ]]]], dtype=float32)
    """
    del use_bias
    operands = [one for one in (data, offset, weight, bias) if one is not None]
    dtype = jnp.result_type(*operands)
    wide = at_least_single(dtype)
    data, weight = jnp.asarray(data, dtype), jnp.asarray(weight, dtype)
    over = _window(data.shape, kernel=kernel, stride=stride, padding=padding, dilation=dilation)
    of = images_in(data.shape, deformable_groups)
    places = over.lengths(data.shape)
    corners, down, right = _around_taps(jnp.asarray(offset, wide), over, data.shape, of)
    samples = jnp.moveaxis(sampled(pixels(data, of), corners, down, right), -1, 2)
    filters = weight.reshape(groups, channels // groups, -1)
    columns = samples.astype(dtype).reshape(of.batch, groups, filters.shape[2], math.prod(places))
    out = jnp.matmul(filters, columns)
    out = out.reshape(of.batch, channels, *places)
    bias = None if bias is None else jnp.asarray(bias, dtype)
    return plus_bias(out, bias, over.layout), columns, corners, down, right


def _around_taps(
    offset: Array, over: Window, data: Shape, of: Images
) -> tuple[Array, Array, Array]:
    """The pixels around each tap, and its distances below and to the right of the first."""
    taps, places = math.prod(over.kernel), over.lengths(data)
    moved = offset.reshape(of.batch, of.groups, taps, 2, *places)
    y, x = _taps(over, data)
    return corners_at(moved[:, :, :, 0] + y, moved[:, :, :, 1] + x, of.first, of)


@deformable_convolution.gradient
def _deformable_convolution_gradient(
    data: Var,
    offset: Var,
    weight: Var,
    bias: Var | None,
    columns: Var,
    corners: Var,
    down: Var,
    right: Var,
    d_out: Var,
    d_columns: Var | None,
    d_corners: Var | None,
    d_down: Var | None,
    d_right: Var | None,
    *,
    groups: int,
    deformable_groups: int,
) -> Grads:
    del d_corners  # they are integers
    of = images_in(data.shape, deformable_groups)
    shape = (*columns.shape[:2], weight.shape[0] // groups, columns.shape[3])
    d_product = reshape(d_out, shape=shape)

    def by_samples() -> Var:
        return _gradient_of_samples(weight, columns, down, d_product, d_columns, of)

    def by_data() -> Var | None:
        rows = samples_to_rows(of.rows, corners, down, right, by_samples())
        return rows_to_images(rows, data, of)

    def by_offset() -> Var | None:
        gradients = samples_to_places(rows_of(data, of), corners, down, right, by_samples())
        both = stack(*with_kept(gradients, (d_down, d_right)), axis=3)
        return unbroadcast(reshape(both, shape=offset.shape), offset)

    def by_weight() -> Var | None:
        product = matmul(_side_by_side(d_product), swapped(_side_by_side(columns)))
        return unbroadcast(reshape(product, shape=weight.shape), weight)

    return {
        "data": by_data,
        "offset": by_offset,
        "weight": by_weight,
        "bias": None if bias is None else lambda: bias_gradient(d_out, bias, "NCHW"),
    }


def _gradient_of_samples(
    weight: Var, columns: Var, down: Var, d_product: Var, d_columns: Var | None, of: Images
) -> Var:
    """The cotangent of the samples of all taps, with the channels along the last axis."""
    groups, each = d_product.shape[1:3]
    filters = reshape(cast(weight, dtype=columns.dtype), shape=(groups, each, columns.shape[2]))
    d_all = matmul(swapped(filters), d_product)
    d_all = d_all if d_columns is None else d_all + d_columns
    apart = reshape(d_all, shape=(of.batch, of.groups, of.channels, *down.shape[2:]))
    last: Var = cast(permute_dims(apart, axes=(0, 1, 3, 4, 5, 2)), dtype=down.dtype)
    return last


def _side_by_side(x: Var) -> Var:
    """The matrices of all images of a batch next to each other, for each group."""
    batch, groups, rows, columns = x.shape
    first: Var = reshape(permute_dims(x, axes=(1, 2, 0, 3)), shape=(groups, rows, batch * columns))
    return first


@deformable_convolution.complete
def _deformable_convolution_complete(
    data: Shape | None, *, channels: int, use_bias: bool, **how: Any
) -> dict[str, Shape]:
    shapes: dict[str, Shape] = {"bias": (channels,)} if use_bias else {}
    if data is not None:
        shapes["weight"] = _weight_shape(data, channels=channels, **how)
    return shapes
