"""Transposed convolution: the adjoint of convolution as a layer."""

from typing import Any, Literal

import numpy as np

from registry.cases import case, integers, misuse, workload
from registry.errors import AttributeValueError, ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array, Bias, Parameter
from registry.ops.conv.convolution import convolution_weight_gradient, unbiased
from registry.ops.conv.convolving import (
    bias_gradient,
    plus_bias,
    require_groups,
    require_shapes,
    sliding,
    transposed_convolve,
)
from registry.ops.conv.windows import (
    Layout,
    Lengths,
    Padding,
    Window,
    each_axis,
    full_layout,
    window,
)
from registry.ops.core.broadcasting import unbroadcast
from registry.shapes import inexact
from registry.table import op
from registry.types import Shape
from registry.var import Var


def _weight_shape(
    data: Shape,
    *,
    channels: int,
    kernel: Lengths,
    groups: int,
    layout: Layout | None,
    **others: Any,
) -> Shape:
    del others
    layout = full_layout(data, layout)
    features = data[layout.index("C")]
    require_groups(groups, features, channels)
    lengths = each_axis("kernel", kernel, len(data) - 2, at_least=1)
    return (features, channels // groups, *lengths)


def _adjoint(
    data: Shape,
    *,
    channels: int,
    kernel: Lengths,
    stride: Lengths,
    padding: Padding,
    output_padding: Lengths,
    dilation: Lengths,
    layout: Layout | None,
    **others: Any,
) -> tuple[Shape, Window]:
    """The shape of the result, and the window of the convolution that maps it to data.

    A convolution drops entries that do not fill its last stride; ``output_padding`` restores them.
    """
    del others
    how: dict[str, Any] = {"layout": layout, "kernel": kernel, "stride": stride}
    fixed = 0 if padding == "same" else padding
    over = window(data, **how, padding=fixed, dilation=dilation)
    extra = each_axis("output_padding", output_padding, len(over.axes), at_least=0)
    shape = list(data)
    for i, axis in enumerate(over.axes):
        limit = 1 if padding == "same" else over.stride[i]
        if extra[i] >= limit:
            raise AttributeValueError(
                f"output_padding must be less than stride, and 0 beside padding='same', got "
                f"{output_padding}"
            )
        full = (data[axis] - 1) * over.stride[i] + over.dilation[i] * (over.kernel[i] - 1) + 1
        same = data[axis] * over.stride[i]
        shape[axis] = same if padding == "same" else full - sum(over.pads[i]) + extra[i]
    shape[over.layout.index("C")] = channels
    if any(data[axis] < 1 or shape[axis] < 1 for axis in over.axes):
        raise ShapeError(
            f"data's spatial axes and the result's must not be empty, got {data} and {tuple(shape)}"
        )
    return tuple(shape), window(tuple(shape), **how, padding=padding, dilation=dilation)


def _transposed_convolution_shape(
    data: Shape, weight: Shape, bias: Shape | None, *, channels: int, **how: Any
) -> Shape:
    expected = _weight_shape(data, channels=channels, **how)
    require_shapes(data, weight=(weight, expected), bias=(bias, (channels,)))
    return _adjoint(data, channels=channels, **how)[0]


def _transposed_convolution_reference(
    data: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None,
    *,
    groups: int,
    use_bias: bool,
    **how: Any,
) -> np.ndarray:
    # Each entry of data adds the scaled weight to its window of the result.
    shape, over = _adjoint(data.shape, **how)
    at = over.layout.index("C")
    x = np.moveaxis(data, at, -1)
    last = np.moveaxis(np.empty(shape), at, -1).shape
    room = [
        (n + k * d) * s + sum(p) for n, k, s, d, p in zip(x.shape[1:-1], *over[2:6], strict=True)
    ]
    out = np.zeros((last[0], *room, last[-1]), data.dtype)
    for place in np.ndindex(*over.kernel):
        parts = [
            part @ taps[(slice(None), slice(None), *place)]
            for part, taps in zip(np.split(x, groups, -1), np.split(weight, groups), strict=True)
        ]
        to = [
            slice(i * d, i * d + s * n, s)
            for i, d, s, n in zip(place, over.dilation, over.stride, x.shape[1:-1], strict=True)
        ]
        out[(slice(None), *to)] += np.concatenate(parts, -1)
    cut = [slice(low, low + n) for (low, _), n in zip(over.pads, last[1:-1], strict=True)]
    out = out[(slice(None), *cut)]
    return np.moveaxis(out + bias if use_bias else out, -1, at)


_IMAGE: dict[str, Any] = {"data": (2, 3, 4, 3), "weight": (3, 4, 3, 2), "bias": (4,)}
_LINE: dict[str, Any] = {"data": (1, 2, 4), "weight": (2, 3, 3), "bias": (3,)}


@op(
    shape=_transposed_convolution_shape,
    dtype=inexact,
    reference=_transposed_convolution_reference,
    cases=[
        case(**_IMAGE, channels=4, kernel=(3, 2), stride=2, padding=1, order=2),
        case(
            **_IMAGE,
            channels=4,
            kernel=(3, 2),
            stride=(2, 3),
            padding=((0, 1), 0),
            output_padding=(1, 2),
            order=1,
        ),
        case(**_LINE, channels=3, kernel=3, stride=2, padding="same", order=1),
        case(
            data=(1, 4, 4),
            weight=(4, 1, 2),
            channels=2,
            kernel=2,
            dilation=2,
            groups=2,
            layout="NWC",
            use_bias=False,
            order=1,
        ),
        case(
            data=(1, 2, 2, 3, 2), weight=(2, 1, 2, 2, 2), bias=(1,), channels=1, kernel=2, order=1
        ),
        case(data=(1, 1, 2), weight=(1, 1, 2), bias=(1,), channels=1, kernel=2),
        case(data=(0, 1, 2), weight=(1, 1, 2), bias=(1,), channels=1, kernel=2, order=1),
        workload(
            data=(8, 32, 16, 16),
            weight=(32, 16, 4, 4),
            bias=(16,),
            channels=16,
            kernel=4,
            stride=2,
            padding=1,
        ),
        misuse(
            "weight must have shape (3, 4, 3, 2) for data of (2, 3, 4, 3), got (4, 3, 3, 2)",
            data=(2, 3, 4, 3),
            weight=(4, 3, 3, 2),
            bias=(4,),
            channels=4,
            kernel=(3, 2),
        ),
        misuse(
            "bias must have shape (5,)",
            data=(1, 2, 4),
            weight=(2, 5, 3),
            bias=(3,),
            channels=5,
            kernel=3,
        ),
        misuse(
            "output_padding must be less than stride",
            **_LINE,
            channels=3,
            kernel=3,
            output_padding=1,
        ),
        misuse("groups must divide the 2 channels", **_LINE, channels=3, kernel=3, groups=2),
        misuse(
            "must not be empty, got (1, 2, 4) and (1, 3, -4)",
            **_LINE,
            channels=3,
            kernel=3,
            padding=5,
        ),
        misuse(
            "the inputs must be floating",
            data=integers(1, 1, 2, high=3),
            weight=integers(1, 1, 2, high=3),
            use_bias=False,
            channels=1,
            kernel=2,
        ),
    ],
    costly=True,
)
def transposed_convolution(
    data: Array,
    weight: Parameter,
    bias: Bias | None = None,
    *,
    channels: int,
    kernel: int | tuple[int, ...],
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int | tuple[int, int], ...] | Literal["same", "valid"] = 0,
    output_padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
    layout: Literal["NCW", "NWC", "NCHW", "NHWC", "NCDHW", "NDHWC"] | None = None,
    use_bias: bool = True,
) -> Array:
    """Transposed convolution: the adjoint of ``convolution`` with respect to data, plus ``bias``.

    There are one to three spatial axes. Each entry of ``data`` adds the weight, times itself, to
    the window of the result at ``stride`` times its position: ``out[n, o, y * stride + i * dilation
    - padding, ...] += data[n, c, y, ...] * weight[c, o, i, ...]``. ``weight`` has shape
    ``(in_channels, channels / groups, *kernel)`` whatever the ``layout`` of data and result, which
    defaults to channels first.

    ``padding`` is that of the convolution and removes entries: a length ``n`` becomes ``(n - 1) *
    stride + dilation * (kernel - 1) + 1 - padding before and after + output_padding``.
    ``output_padding`` (MXNet's ``adj``) is less than ``stride``. ``"same"`` makes the result
    ``n * stride`` long.

    Source: Dumoulin and Visin, A guide to convolution arithmetic for deep learning, 2016.

    Example:
        >>> import jax.numpy as jnp
        >>> data, weight = jnp.asarray([[[1.0, 10.0]]]), jnp.asarray([[[1.0, 2.0, 3.0]]])
        >>> transposed_convolution(data, weight, jnp.zeros(1), channels=1, kernel=3, stride=2)
        Array([[[ 1.,  2., 13., 20., 30.]]], dtype=float32)
    """
    del use_bias
    shape, over = _adjoint(
        data.shape,
        channels=channels,
        kernel=kernel,
        stride=stride,
        padding=padding,
        output_padding=output_padding,
        dilation=dilation,
        layout=layout,
    )
    out = transposed_convolve(data, weight, over, groups, shape)
    return plus_bias(out, bias, over.layout)


@transposed_convolution.gradient
def _transposed_convolution_gradient(
    data: Var, weight: Var, bias: Var | None, d_out: Var, *, layout: Layout | None, **how: Any
) -> Grads:
    # <transposed(data, weight), d> = <data, convolution(d, weight)>, and as a form in the weight
    # it is that of the convolution of d with cotangent data.
    how = sliding(layout=layout, **how)
    by_data = unbiased(d_out, weight, **how)
    by_weight = convolution_weight_gradient(d_out, data, shape=weight.shape, **how)
    return {
        "data": unbroadcast(by_data, data),
        "weight": unbroadcast(by_weight, weight),
        "bias": bias_gradient(d_out, bias, layout),
    }


@transposed_convolution.complete
def _transposed_convolution_complete(
    data: Shape | None, *, channels: int, use_bias: bool, **how: Any
) -> dict[str, Shape]:
    shapes: dict[str, Shape] = {"bias": (channels,)} if use_bias else {}
    if data is not None:
        shapes["weight"] = _weight_shape(data, channels=channels, **how)
    return shapes
