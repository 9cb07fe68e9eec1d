"""Windows, shapes and attributes shared by the pooling operators."""

from typing import Any

from jax import lax

from registry.errors import AttributeValueError
from registry.operator.signature import Array
from registry.ops.conv.windows import (
    Layout,
    Lengths,
    Padding,
    Window,
    full_layout,
    window,
)
from registry.types import Shape


def pooling_window(
    data: Shape,
    *,
    kernel: Lengths | None,
    stride: Lengths | None,
    padding: Padding,
    layout: Layout | None,
    global_pool: bool,
    ceil_mode: bool,
) -> Window:
    """The window that pooling attributes describe; the stride defaults to the kernel."""
    if global_pool:
        layout = full_layout(data, layout)
        kernel = tuple(n for n, letter in zip(data, layout, strict=True) if letter not in "NC")
        return window(data, layout=layout, kernel=kernel, stride=1, padding=0)
    if kernel is None:
        raise AttributeValueError("kernel must be given unless global_pool=True, got None")
    over = window(
        data,
        layout=layout,
        kernel=kernel,
        stride=kernel if stride is None else stride,
        padding=padding,
    )
    if any(side >= k for k, pair in zip(over.kernel, over.pads, strict=True) for side in pair):
        raise AttributeValueError(f"padding must be less than kernel {kernel}, got {padding}")
    return over._replace(overhang=_overhang(data, over)) if ceil_mode else over


def _overhang(data: Shape, over: Window) -> tuple[int, ...]:
    """How far the window may extend beyond the padded data to cover remaining entries.

    It does not if it would cover only padding.
    """
    beyond = []
    for axis, kernel, stride, (low, high) in zip(
        over.axes, over.kernel, over.stride, over.pads, strict=True
    ):
        padded = data[axis] + low + high
        last = -((kernel - padded) // stride) * stride  # where the last window starts
        if last >= low + data[axis]:
            last -= stride
        beyond.append(max(last + kernel - padded, 0) if last >= 0 else 0)
    return tuple(beyond)


def shared(
    kernel: Lengths | None,
    stride: Lengths | None,
    padding: Padding,
    layout: Layout | None,
    global_pool: bool,
    ceil_mode: bool,
) -> dict[str, Any]:
    """The attributes that the pooling operators share."""
    return {
        "kernel": kernel,
        "stride": stride,
        "padding": padding,
        "layout": layout,
        "global_pool": global_pool,
        "ceil_mode": ceil_mode,
    }


def pooled_shape(
    data: Shape,
    *,
    kernel: Lengths | None,
    stride: Lengths | None,
    padding: Padding,
    layout: Layout | None,
    global_pool: bool,
    ceil_mode: bool,
) -> Shape:
    """The shape of the pooled result."""
    return pooling_window(
        data, **shared(kernel, stride, padding, layout, global_pool, ceil_mode)
    ).out_shape(data)


def reduced_windows(x: Array, over: Window, start: Any, combine: Any) -> Array:
    """Each window of ``x``, reduced by ``combine`` from ``start``."""
    x = lax.convert_element_type(x, x.dtype)  # a Python number's dtype becomes the array's own
    kernel, stride = over.over_all_axes(over.kernel), over.over_all_axes(over.stride)
    out: Array = lax.reduce_window(x, start, combine, kernel, stride, over.all_pads())
    return out
