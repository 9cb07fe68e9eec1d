"""Conversion between sliding windows and matrix columns."""

from typing import Any

import symop as so
from symop.interop.mxnet.attributes import Shape
from symop.interop.mxnet.operators import operator


def _windows(kernel: Shape, stride: Shape, dilate: Shape, pad: Shape) -> dict[str, Shape]:
    """The attributes of the catalogue's operator, with a number for each axis."""
    ones = (1,) * len(kernel)
    return {
        "kernel": kernel,
        "stride": stride or ones,
        "dilation": dilate or ones,
        "padding": pad or (0,) * len(kernel),
    }


@operator("im2col")
def im2col(
    data: Any, *, kernel: Shape, stride: Shape = (), dilate: Shape = (), pad: Shape = ()
) -> Any:
    """The contents of a sliding window at each position, as columns."""
    return so.im2col(data, **_windows(kernel, stride, dilate, pad))


@operator("col2im")
def col2im(
    data: Any,
    *,
    output_size: Shape,
    kernel: Shape,
    stride: Shape = (),
    dilate: Shape = (),
    pad: Shape = (),
) -> Any:
    """The sum of windows, given as columns, at their positions."""
    return so.col2im(data, output_size=output_size, **_windows(kernel, stride, dilate, pad))
