"""Deformable convolutions, whose taps are moved by offsets."""

import math
from typing import Any

import numpy as np

import symop as so
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.ops.layers import along, convolved_shapes
from symop.interop.mxnet.partial_shapes import Shapes, enter, numbered, require_table

Lengths = tuple[int, ...]
_IGNORED = ("workspace", "layout", "im2col_step")
_EXACT = 1 << 24
"""The largest position that single precision represents exactly."""


def _offset_shapes(
    given: Shapes,
    found: Shapes,
    kernel: Lengths,
    num_filter: int,
    stride: Lengths,
    dilate: Lengths,
    pad: Lengths,
    num_group: int,
    num_deformable_group: int,
    at: int,
) -> None:
    """Infers shapes of a convolution, and of the arrays that move and weight its taps."""
    convolved_shapes(given, found, kernel, num_filter, stride, dilate, pad, num_group, weight_at=at)
    if found[0] is not None:
        taps = num_deformable_group * math.prod(kernel)
        for i in range(1, at):
            enter(given, i, (found[0][0], taps * (3 - i), *found[0][2:]))


def _deformable_shapes(
    given: Shapes,
    found: Shapes,
    kernel: Lengths,
    num_filter: int,
    stride: Lengths,
    dilate: Lengths,
    pad: Lengths,
    num_group: int,
    num_deformable_group: int,
) -> None:
    how = (kernel, num_filter, stride, dilate, pad, num_group, num_deformable_group)
    _offset_shapes(given, found, *how, at=2)


def _modulated_shapes(
    given: Shapes,
    found: Shapes,
    kernel: Lengths,
    num_filter: int,
    stride: Lengths,
    dilate: Lengths,
    pad: Lengths,
    num_group: int,
    num_deformable_group: int,
) -> None:
    how = (kernel, num_filter, stride, dilate, pad, num_group, num_deformable_group)
    _offset_shapes(given, found, *how, at=3)


def _inputs(no_bias: bool) -> tuple[str, ...]:
    return ("data", "offset", "weight", *(() if no_bias else ("bias",)))


def _modulated_inputs(no_bias: bool) -> tuple[str, ...]:
    return ("data", "offset", "mask", "weight", *(() if no_bias else ("bias",)))


def _kept_inside(
    offset: Any, lengths: Lengths, kernel: Lengths, stride: Lengths, dilate: Lengths, pad: Lengths
) -> Any:
    """Offsets adjusted such that taps stay at the last pixel, or read zero.

    A tap before the first pixel reads zero, and one less than one pixel after the last reads that
    pixel; without the adjustment both would be interpolated with zero.
    """
    rows, columns = kernel
    n, _, height, width = offset.shape
    if max(height, width, *map(abs, (*stride, *dilate, *pad))) > _EXACT:
        raise MXNetError(
            f"DeformableConvolution: places must be at most {_EXACT}, which single precision "
            f"tells apart, got an output of {height} by {width}, stride {stride}, dilate {dilate} "
            f"and pad {pad}"
        )
    apart = so.reshape(offset, shape=(n, -1, rows, columns, 2, height, width))
    moved = []
    for axis, (length, shape) in enumerate(
        zip(lengths, ((rows, 1, height, 1), (1, columns, 1, width)), strict=True)
    ):
        taps, places = (numbered(count) for count in (kernel[axis], (height, width)[axis]))
        base = taps[:, None] * dilate[axis] + places * stride[axis] - pad[axis]
        base = base.astype(offset.dtype).reshape(shape)
        delta = so.reshape(
            so.slice_axis(apart, axis=4, begin=axis, end=axis + 1),
            shape=(n, -1, rows, columns, height, width),
        )
        at = delta + base
        edge = so.full_like(at, fill_value=float(length - 1))
        inside = so.where(so.greater_equal(at, float(length - 1)), edge, at)
        outside = so.logical_or(so.less(at, 0.0), so.greater_equal(at, float(length)))
        moved.append(so.where(outside, so.full_like(at, fill_value=-2.0), inside) - base)
    return so.reshape(so.stack(*moved, axis=4), shape=offset.shape)


@operator(
    "_contrib_DeformableConvolution",
    present=_inputs,
    shapes=_deformable_shapes,
    ignored=_IGNORED,
    at_once=True,
)
def deformable_convolution(
    data: Any,
    offset: Any,
    weight: Any,
    bias: Any = None,
    *,
    kernel: Lengths,
    num_filter: int,
    stride: Lengths = (),
    dilate: Lengths = (),
    pad: Lengths = (),
    num_group: int = 1,
    num_deformable_group: int = 1,
    no_bias: bool = False,
) -> Any:
    """A convolution of images with taps moved by ``offset``, plus ``bias``."""
    steps, taps, sides = along(stride, 2, 1), along(dilate, 2, 1), along(pad, 2, 0)
    return so.deformable_convolution(
        data,
        _kept_inside(offset, data.shape[2:], kernel, steps, taps, sides),
        weight,
        bias,
        channels=num_filter,
        kernel=kernel,
        stride=steps,
        dilation=taps,
        padding=sides,
        groups=num_group,
        deformable_groups=num_deformable_group,
        use_bias=not no_bias,
    )


def _seen(data: Any, offset: Any, kernel: Lengths, **how: Any) -> Any:
    """The value of each tap: a convolution per channel, with a filter for each tap."""
    channels, count = data.shape[1], math.prod(kernel)
    require_table(count, count, channels)
    one_tap = np.tile(np.eye(count, dtype=data.dtype), (channels, 1))
    return so.deformable_convolution(
        data,
        offset,
        one_tap.reshape(channels * count, 1, *kernel),
        None,
        channels=channels * count,
        kernel=kernel,
        groups=channels,
        use_bias=False,
        **how,
    )


@operator(
    "_contrib_ModulatedDeformableConvolution",
    present=_modulated_inputs,
    shapes=_modulated_shapes,
    ignored=_IGNORED,
    at_once=True,
)
def modulated_deformable_convolution(
    data: Any,
    offset: Any,
    mask: Any,
    weight: Any,
    bias: Any = None,
    *,
    kernel: Lengths,
    num_filter: int,
    stride: Lengths = (),
    dilate: Lengths = (),
    pad: Lengths = (),
    num_group: int = 1,
    num_deformable_group: int = 1,
    no_bias: bool = False,
) -> Any:
    """A deformable convolution whose taps are multiplied by ``mask``."""
    seen = _seen(
        data,
        offset,
        kernel,
        stride=along(stride, 2, 1),
        dilation=along(dilate, 2, 1),
        padding=along(pad, 2, 0),
        deformable_groups=num_deformable_group,
    )
    n, _, height, width = seen.shape
    count = math.prod(kernel)
    apart = so.reshape(seen, shape=(n, num_deformable_group, -1, count, height, width))
    factor = so.reshape(mask, shape=(n, num_deformable_group, 1, count, height, width))
    return so.convolution(
        so.reshape(apart * factor, shape=seen.shape),
        so.reshape(weight, shape=(num_filter, -1, 1, 1)),
        bias,
        channels=num_filter,
        kernel=1,
        groups=num_group,
        use_bias=not no_bias,
    )
