"""Sliding windows as the columns of matrices, and back."""

from typing import Any

import symop as so
from symop.interop.mxnet.attributes import Shape
from symop.interop.mxnet.operators import operator


def _windows(kernel: Shape, stride: Shape, dilate: Shape, pad: Shape) -> dict[str, Shape]:
    """The attributes of the catalogue, a number for each axis."""
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
    """What a window sees at each of its places, as columns."""
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
    """The sum of windows that are laid out as columns, each at its place."""
    return so.col2im(data, output_size=output_size, **_windows(kernel, stride, dilate, pad))
