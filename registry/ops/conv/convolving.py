"""Code shared by the convolutions: sliding windows of weights and shape checks."""

from typing import Any

import jax.numpy as jnp
from jax import lax

from registry.errors import AttributeValueError, ShapeError
from registry.operator.signature import Array
from registry.ops.conv.windows import (
    Layout,
    Lengths,
    Padding,
    WeightLayout,
    Window,
    full_layout,
    full_weight_layout,
    transposed,
    window,
)
from registry.ops.core.broadcasting import unbroadcast
from registry.ops.core.reductions import sum as sum_over
from registry.types import Shape
from registry.var import Var
from registry.xla.canonical_layouts import convolved


def sliding(
    *,
    stride: Lengths,
    padding: Padding,
    dilation: Lengths,
    groups: int,
    layout: Layout | None,
    weight_layout: WeightLayout | None = None,
    **others: Any,
) -> dict[str, Any]:
    """The attributes of an operator that describe how a weight slides over data."""
    del others
    return {
        "stride": stride,
        "padding": padding,
        "dilation": dilation,
        "groups": groups,
        "layout": layout,
        "weight_layout": weight_layout,
    }


def window_over(
    data: Shape, kernel: Lengths, *, groups: int, weight_layout: WeightLayout | None, **how: Any
) -> Window:
    """The window of a weight that slides according to ``sliding``."""
    del groups, weight_layout
    return window(data, kernel=kernel, **how)


def channels_and_kernel(
    weight: Shape, layout: WeightLayout | None
) -> tuple[int, int, tuple[int, ...]]:
    """The channels of the result and of the data of a weight of that shape, and its window."""
    by_letter = dict(zip(full_weight_layout(len(weight), layout), weight, strict=True))
    return by_letter.pop("O"), by_letter.pop("I"), tuple(by_letter.values())


def convolve(
    x: Array, weight: Array, over: Window, groups: int, weight_layout: WeightLayout | None
) -> Array:
    """The convolution without a bias."""
    return lax.conv_general_dilated(
        x,
        weight,
        over.stride,
        over.pads,
        rhs_dilation=over.dilation,
        dimension_numbers=(
            over.layout,
            full_weight_layout(weight.ndim, weight_layout),
            over.layout,
        ),
        feature_group_count=groups,
    )


def transposed_convolve(
    y: Array,
    weight: Array,
    over: Window,
    groups: int,
    shape: Shape,
    weight_layout: WeightLayout | None = None,
) -> Array:
    """The adjoint of a convolution of arrays of ``shape``, applied to ``y``."""
    dtype = jnp.result_type(y, weight)

    def adjoint(weight: Array, y: Array) -> Array:
        return transposed(lambda x: convolve(x, weight, over, groups, weight_layout), shape, y)

    return convolved(adjoint, weight.astype(dtype), y.astype(dtype))


def require_groups(groups: int, features: int, channels: int) -> None:
    """Raises unless the channels of data and of the result are divisible by ``groups``."""
    if groups < 1 or features % groups or channels % groups:
        raise AttributeValueError(
            f"groups must divide the {features} channels of data and the {channels} of the "
            f"result, got {groups}"
        )


def require_shapes(data: Shape, **slots: tuple[Shape | None, Shape]) -> None:
    """Raises unless each present slot has the second of its two shapes."""
    for name, (shape, expected) in slots.items():
        if shape not in (expected, None):
            raise ShapeError(f"{name} must have shape {expected} for data of {data}, got {shape}")


def plus_bias(out: Array, bias: Array | None, layout: Layout) -> Array:
    """``out`` plus the bias of each channel, if there is one."""
    if bias is None:
        return out
    at = layout.index("C")
    return out + bias.reshape([-1 if i == at else 1 for i in range(out.ndim)])


def bias_gradient(d_out: Var, bias: Var | None, layout: Layout | None) -> Var | None:
    """The sum of the cotangent over all axes but that of the channels."""
    if bias is None:
        return None
    at = full_layout(d_out.shape, layout).index("C")
    return unbroadcast(sum_over(d_out, axis=tuple(i for i in range(d_out.ndim) if i != at)), bias)
