"""Sliding windows over the spatial axes of an array, shared by convolution and pooling."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import numpy as np

from registry.errors import AttributeValueError, ShapeError
from registry.operator.infer import abstract
from registry.types import Shape, VarType
from registry.xla import device_types

Layout = Literal["NCW", "NWC", "NCHW", "NHWC", "NCDHW", "NDHWC"]
"""The meaning of each axis: batch, channels, and width, height and depth."""
WeightLayout = Literal["OIW", "OWI", "WIO", "OIHW", "OHWI", "HWIO", "OIDHW", "ODHWI", "DHWIO"]
"""The meaning of each axis of a weight: channels of the result, of the data, and places."""
Lengths = int | tuple[int, ...]
"""One number for each spatial axis, or one for all of them."""
Padding = int | tuple[int | tuple[int, int], ...] | Literal["same", "valid"]
"""Zeros around the data: one number, one per axis, a pair per axis, or a rule."""

_DEFAULT_WEIGHT_LAYOUTS: dict[int, WeightLayout] = {3: "OIW", 4: "OIHW", 5: "OIDHW"}
_DEFAULT_LAYOUTS: dict[int, Layout] = {3: "NCW", 4: "NCHW", 5: "NCDHW"}


class Window(NamedTuple):
    """A sliding window over the spatial axes of data; each field has one entry per spatial axis.

    Attributes:
        layout: the meaning of each axis of the data.
        axes: the spatial axes.
        kernel: the lengths of the window.
        stride: the step between positions of the window.
        dilation: the distance between entries within the window.
        pads: the numbers of zeros before and after the data.
        overhang: how far the last position of the window extends beyond the padded data.
    """

    layout: Layout
    axes: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    overhang: tuple[int, ...]

    def lengths(self, data: Shape) -> tuple[int, ...]:
        """The number of positions of the window along each spatial axis.

        Raises:
            ShapeError: the window is longer than the padded data.
        """
        around = self.all_pads()
        padded = [data[axis] + sum(around[axis]) for axis in self.axes]
        spans = [d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True)]
        if any(n < span for n, span in zip(padded, spans, strict=True)):
            raise ShapeError(
                f"the kernel, {tuple(spans)} with its dilation, must fit into the padded data, "
                f"{tuple(padded)}; got data of shape {data}"
            )
        return tuple(
            (n - span) // by + 1 for n, span, by in zip(padded, spans, self.stride, strict=True)
        )

    def out_shape(self, data: Shape, channels: int | None = None) -> Shape:
        """The shape after sliding over ``data``, with another number of channels if given."""
        out = list(data)
        for axis, length in zip(self.axes, self.lengths(data), strict=True):
            out[axis] = length
        if channels is not None:
            out[self.layout.index("C")] = channels
        return tuple(out)

    def over_all_axes(self, values: tuple[int, ...]) -> tuple[int, ...]:
        """``values`` for the spatial axes, with 1 for batch and channels."""
        return tuple(
            values[self.axes.index(i)] if i in self.axes else 1 for i in range(len(self.layout))
        )

    def all_pads(self) -> list[tuple[int, int]]:
        """The padding of each axis including the overhang; none for batch and channels."""
        pads = [(0, 0)] * len(self.layout)
        for axis, (low, high), beyond in zip(self.axes, self.pads, self.overhang, strict=True):
            pads[axis] = (low, high + beyond)
        return pads


def window(
    data: Shape,
    *,
    layout: Layout | None,
    kernel: Lengths,
    stride: Lengths,
    padding: Padding,
    dilation: Lengths = 1,
) -> Window:
    """The window that these attributes describe over data of that shape.

    Raises:
        ShapeError: the data has the wrong number of axes.
        AttributeValueError: an attribute has the wrong number of entries, or one is too small.
    """
    layout = full_layout(data, layout)
    axes = tuple(i for i, letter in enumerate(layout) if letter not in "NC")
    kernel = each_axis("kernel", kernel, len(axes), at_least=1)
    stride = each_axis("stride", stride, len(axes), at_least=1)
    dilation = each_axis("dilation", dilation, len(axes), at_least=1)
    spatial = tuple(data[axis] for axis in axes)
    pads = _pads(padding, spatial, kernel, stride, dilation)
    return Window(layout, axes, kernel, stride, dilation, pads, (0,) * len(axes))


def full_layout(data: Shape, layout: Layout | None) -> Layout:
    """``layout``, which defaults to channels before the spatial axes.

    Raises:
        ShapeError: data of that shape cannot have the layout.
    """
    if len(data) not in _DEFAULT_LAYOUTS:
        raise ShapeError(f"data must have 3, 4 or 5 axes, got shape {data}")
    if layout is None:
        return _DEFAULT_LAYOUTS[len(data)]
    if len(layout) != len(data):
        raise ShapeError(f"data must have the axes {layout}, got shape {data}")
    return layout


def full_weight_layout(ndim: int, layout: WeightLayout | None) -> WeightLayout:
    """``layout`` of a weight with that number of axes; by default its channels come first.

    Raises:
        ShapeError: a weight with that number of axes cannot have the layout.
    """
    if layout is None:
        return _DEFAULT_WEIGHT_LAYOUTS[ndim]
    if len(layout) != ndim:
        raise ShapeError(f"weight must have {ndim} axes, got weight_layout={layout!r}")
    return layout


def each_axis(name: str, value: Lengths, count: int, *, at_least: int) -> tuple[int, ...]:
    """The attribute ``name`` for each of ``count`` axes.

    Raises:
        AttributeValueError: it has the wrong number of entries, or one is too small.
    """
    values = (value,) * count if isinstance(value, int) else value
    if len(values) != count:
        raise AttributeValueError(f"{name} must have {count} entries, got {value}")
    if any(one < at_least for one in values):
        raise AttributeValueError(f"{name} must be at least {at_least}, got {value}")
    return values


def _pads(
    padding: Padding,
    lengths: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
) -> tuple[tuple[int, int], ...]:
    if padding == "valid":
        return ((0, 0),) * len(lengths)
    if padding == "same":
        return tuple(map(_same_pads, lengths, kernel, stride, dilation))
    assert not isinstance(padding, str)
    each = (padding,) * len(lengths) if isinstance(padding, int) else padding
    if len(each) != len(lengths):
        raise AttributeValueError(f"padding must have {len(lengths)} entries, got {padding}")
    pads = tuple((one, one) if isinstance(one, int) else one for one in each)
    if any(side < 0 for pair in pads for side in pair):
        raise AttributeValueError(f"padding must be at least 0, got {padding}")
    return pads


def _same_pads(length: int, kernel: int, stride: int, dilation: int) -> tuple[int, int]:
    """Padding that makes the result ``length / stride`` long, rounded up; the odd zero is last."""
    places = -(-length // stride)
    span = dilation * (kernel - 1) + 1
    total = max((places - 1) * stride + span - length, 0)
    return total // 2, total - total // 2


def transposed(
    linear: Callable[[jax.Array], jax.Array], shape: Shape, cotangent: jax.Array
) -> jax.Array:
    """The transpose of ``linear``, a function of arrays of ``shape``, applied to ``cotangent``."""
    of = abstract(VarType(shape, np.dtype(cotangent.dtype)))
    of, cotangent = device_types.transposable(linear, of, cotangent)
    (out,) = jax.linear_transpose(linear, of)(cotangent)
    result: jax.Array = out
    return result


def windows_of(data: np.ndarray, over: Window, fill: float = 0.0) -> np.ndarray:
    """The entries of the window at each position, in NumPy: axes of ``data``, then the window's."""
    padded = np.pad(data, over.all_pads(), constant_values=fill)
    spans = [d * (k - 1) + 1 for k, d in zip(over.kernel, over.dilation, strict=True)]
    seen = np.lib.stride_tricks.sliding_window_view(padded, spans, axis=over.axes)
    strides = [slice(None, None, step) for step in over.over_all_axes(over.stride)]
    dilations = [slice(None, None, step) for step in over.dilation]
    return seen[(*strides, *dilations)]
