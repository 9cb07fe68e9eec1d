"""Convolution and its two adjoints, which are bilinear and form a closed set under differentiation.

With ``<., .>`` for the sum of products, the three share one trilinear form:
``<convolution(data, weight), cotangent> = <data, data_gradient(cotangent, weight)>
"""

from typing import Any, Literal

import jax.numpy as jnp
import numpy as np

from registry.cases import case, misuse, workload
from registry.errors import ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array, Bias, Parameter
from registry.ops.conv.convolving import (
    bias_gradient,
    channels_and_kernel,
    convolve,
    plus_bias,
    require_groups,
    require_shapes,
    sliding,
    transposed_convolve,
    window_over,
)
from registry.ops.conv.windows import (
    Layout,
    Lengths,
    WeightLayout,
    full_layout,
    full_weight_layout,
    transposed,
    window,
    windows_of,
)
from registry.ops.core.broadcasting import unbroadcast
from registry.shapes import inexact
from registry.table import op
from registry.types import Shape
from registry.var import Var
from registry.xla.canonical_layouts import convolved


def _weight_shape(
    data: Shape,
    *,
    channels: int,
    kernel: Lengths,
    groups: int,
    layout: Layout | None,
    weight_layout: WeightLayout | None,
    **others: Any,
) -> Shape:
    del others
    layout = full_layout(data, layout)
    features = data[layout.index("C")]
    require_groups(groups, features, channels)
    lengths = (kernel,) * (len(data) - 2) if isinstance(kernel, int) else kernel
    by_letter = {"O": channels, "I": features // groups}
    by_letter.update(zip(layout.replace("N", "").replace("C", ""), lengths, strict=True))
    return tuple(by_letter[one] for one in full_weight_layout(len(data), weight_layout))


# convolution -----------------------------------------------------------------------------------


def _convolution_shape(
    data: Shape, weight: Shape, bias: Shape | None, *, channels: int, kernel: Lengths, **how: Any
) -> Shape:
    over = window_over(data, kernel, **sliding(**how))
    expected = _weight_shape(data, channels=channels, kernel=kernel, **how)
    require_shapes(data, weight=(weight, expected), bias=(bias, (channels,)))
    return over.out_shape(data, channels)


def _convolution_reference(
    data: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None,
    *,
    kernel: Lengths,
    groups: int,
    weight_layout: WeightLayout | None,
    **how: Any,
) -> np.ndarray:
    sizes = sliding(groups=groups, weight_layout=weight_layout, **how)
    over = window_over(data.shape, kernel, **sizes)
    letters = full_weight_layout(weight.ndim, weight_layout)
    places = [i for i, letter in enumerate(letters) if letter not in "OI"]
    weight = np.transpose(weight, (letters.index("O"), letters.index("I"), *places))
    at, ndim = over.layout.index("C"), data.ndim
    seen = np.moveaxis(windows_of(data, over), at, ndim - 1)  # batch, places, channels, window
    parts = [
        np.tensordot(group, filters, (range(ndim - 1, seen.ndim), range(1, weight.ndim)))
        for group, filters in zip(
            np.split(seen, groups, ndim - 1), np.split(weight, groups), strict=True
        )
    ]
    out = np.concatenate(parts, -1)
    return np.moveaxis(out if bias is None else out + bias, -1, at)


_IMAGE: dict[str, Any] = {"data": (2, 3, 6, 5), "weight": (4, 3, 3, 2), "bias": (4,)}
_SMALL: dict[str, Any] = {"data": (1, 2, 4, 4), "weight": (2, 2, 2, 2), "use_bias": False}
_VOLUME: dict[str, Any] = {"data": (1, 2, 3, 4, 3), "weight": (2, 2, 2, 2, 2), "bias": (2,)}
_GROUPED: dict[str, Any] = {"data": (2, 4, 5, 5), "weight": (6, 2, 2, 2), "bias": (6,)}
_CHANNELS_LAST: dict[str, Any] = {"data": (2, 5, 5, 3), "weight": (4, 3, 3, 3), "bias": (4,)}
_PLACES_FIRST: dict[str, Any] = {"data": (2, 5, 4, 3), "weight": (3, 2, 3, 4), "bias": (4,)}


@op(
    shape=_convolution_shape,
    dtype=inexact,
    reference=_convolution_reference,
    cases=[
        case(**_IMAGE, channels=4, kernel=(3, 2), order=2),
        case(**_IMAGE, channels=4, kernel=(3, 2), stride=2, padding=1, order=1),
        case(**_IMAGE, channels=4, kernel=(3, 2), padding="same", stride=(2, 1), order=1),
        case(**_IMAGE, channels=4, kernel=(3, 2), padding=((0, 2), 1), dilation=(2, 1), order=1),
        case(**_SMALL, channels=2, kernel=2),
        case(data=(2, 3, 7), weight=(4, 3, 3), bias=(4,), channels=4, kernel=3, padding="valid"),
        case(**_VOLUME, channels=2, kernel=2, order=1),
        case(**_GROUPED, channels=6, kernel=2, groups=2, order=1),
        case(**_CHANNELS_LAST, channels=4, kernel=3, layout="NHWC", order=1),
        case(**_PLACES_FIRST, channels=4, kernel=(3, 2), layout="NHWC", weight_layout="HWIO"),
        case(
            data=(1, 4, 5),
            weight=(6, 3, 2),
            channels=6,
            kernel=3,
            groups=2,
            use_bias=False,
            weight_layout="OWI",
            order=1,
        ),
        case(data=(0, 3, 6, 5), weight=(4, 3, 3, 2), bias=(4,), channels=4, kernel=(3, 2), order=1),
        workload(
            data=(8, 32, 32, 32),
            weight=(64, 32, 3, 3),
            bias=(64,),
            channels=64,
            kernel=3,
            padding=1,
        ),
        misuse(
            "weight must have shape (4, 3, 3, 3) for data of (2, 3, 6, 5), got (4, 3, 3, 2)",
            **_IMAGE,
            channels=4,
            kernel=3,
        ),
        misuse("groups must divide the 3 channels", **_IMAGE, channels=4, kernel=(3, 2), groups=2),
        misuse("kernel must have 2 entries, got (3,)", **_IMAGE, channels=4, kernel=(3,)),
        misuse("stride must be at least 1, got 0", **_IMAGE, channels=4, kernel=(3, 2), stride=0),
        misuse(
            "must be one of 'same', 'valid'", **_IMAGE, channels=4, kernel=(3, 2), padding="full"
        ),
        misuse(
            "data must have 3, 4 or 5 axes",
            data=(2, 3),
            weight=(4, 3),
            bias=(4,),
            channels=4,
            kernel=1,
        ),
        misuse("data must have the axes NCW", **_IMAGE, channels=4, kernel=(3, 2), layout="NCW"),
        misuse(
            "weight must have 4 axes, got weight_layout='WIO'",
            **_IMAGE,
            channels=4,
            kernel=(3, 2),
            weight_layout="WIO",
        ),
        misuse(
            "the kernel, (7, 2) with its dilation, must fit into the padded data, (6, 5)",
            data=(2, 3, 6, 5),
            weight=(4, 3, 7, 2),
            bias=(4,),
            channels=4,
            kernel=(7, 2),
        ),
    ],
    costly=True,
)
def convolution(
    data: Array,
    weight: Parameter,
    bias: Bias | None = None,
    *,
    channels: int,
    kernel: int | tuple[int, ...],
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int | tuple[int, int], ...] | Literal["same", "valid"] = 0,
    dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
    layout: Literal["NCW", "NWC", "NCHW", "NHWC", "NCDHW", "NDHWC"] | None = None,
    weight_layout: Literal["OIW", "OWI", "WIO", "OIHW", "OHWI", "HWIO", "OIDHW", "ODHWI", "DHWIO"]
    | None = None,
    use_bias: bool = True,
) -> Array:
    """Convolution (cross-correlation) of ``data`` with ``weight`` over spatial axes, plus ``bias``.

    ``out[n, o, y, x] = bias[o] + sum over c, i, j of weight[o, c, i, j]
    * data[n, c, y * stride + i * dilation - padding, x * stride + j * dilation - padding]``

    There are one to three spatial axes. The ``layout`` of data and result defaults to channels
    first. ``weight`` has shape ``(channels, in_channels / groups, *kernel)`` whatever that layout
    is, unless ``weight_layout`` names its axes: ``O`` for the channels of the result, ``I`` for
    those of the data. XLA converts data and weights to ``"NHWC"`` and ``"HWIO"`` on the CPU.
    ``padding`` is a number of zeros on both sides, for all axes or for each axis, or a pair before
    and after each axis, or a rule: ``"same"`` makes the result ``length / stride`` long, rounded
    up, with the odd zero at the end; ``"valid"`` adds none.

    Example:
        >>> import jax.numpy as jnp
        >>> image, filters = jnp.ones((1, 3, 8, 8)), jnp.ones((4, 3, 3, 3))
        >>> convolution(image, filters, jnp.zeros(4), channels=4, kernel=3, padding="same").shape
        (1, 4, 8, 8)
    """
    del channels, use_bias
    over = window(
        data.shape, layout=layout, kernel=kernel, stride=stride, padding=padding, dilation=dilation
    )
    dtype = jnp.result_type(data, weight)

    def slid(data: Array, weight: Array) -> Array:
        return convolve(data, weight, over, groups, weight_layout)

    out = convolved(slid, data.astype(dtype), weight.astype(dtype))
    return plus_bias(out, bias, over.layout)


@convolution.gradient
def _convolution_gradient(
    data: Var, weight: Var, bias: Var | None, d_out: Var, *, layout: Layout | None, **how: Any
) -> Grads:
    how = sliding(layout=layout, **how)
    by_data = convolution_data_gradient(d_out, weight, shape=data.shape, **how)
    by_weight = convolution_weight_gradient(data, d_out, shape=weight.shape, **how)
    return {
        "data": unbroadcast(by_data, data),
        "weight": unbroadcast(by_weight, weight),
        "bias": bias_gradient(d_out, bias, layout),
    }


@convolution.complete
def _convolution_complete(
    data: Shape | None, *, channels: int, use_bias: bool, **how: Any
) -> dict[str, Shape]:
    shapes: dict[str, Shape] = {"bias": (channels,)} if use_bias else {}
    if data is not None:
        shapes["weight"] = _weight_shape(data, channels=channels, **how)
    return shapes


# The adjoint in the data -----------------------------------------------------------------------


def _data_gradient_shape(cotangent: Shape, weight: Shape, *, shape: Shape, **how: Any) -> Shape:
    if len(weight) != len(shape):
        raise ShapeError(f"weight and data must have the same axes, got {weight} and {shape}")
    channels, _, kernel = channels_and_kernel(weight, how["weight_layout"])
    expected = _convolution_shape(shape, weight, None, channels=channels, kernel=kernel, **how)
    if cotangent != expected:
        raise ShapeError(f"cotangent must have shape {expected}, got {cotangent}")
    return shape


@op(
    shape=_data_gradient_shape,
    dtype=inexact,
    cases=[
        case(cotangent=(2, 4, 4, 4), weight=(4, 3, 3, 2), shape=(2, 3, 6, 5), order=2),
        case(cotangent=(2, 4, 3, 3), weight=(4, 3, 3, 2), shape=(2, 3, 6, 5), stride=2, padding=1),
        case(cotangent=(1, 4, 3), weight=(4, 1, 3), shape=(1, 2, 7), dilation=2, groups=2),
        case(cotangent=(1, 3, 4), weight=(4, 2, 3), shape=(1, 5, 2), layout="NWC", order=1),
        case(
            cotangent=(1, 3, 4),
            weight=(3, 2, 4),
            shape=(1, 5, 2),
            layout="NWC",
            weight_layout="WIO",
        ),
        workload(
            cotangent=(8, 64, 32, 32), weight=(64, 32, 3, 3), shape=(8, 32, 32, 32), padding=1
        ),
        misuse(
            "cotangent must have shape (1, 4, 5), got (1, 4, 4)",
            cotangent=(1, 4, 4),
            weight=(4, 2, 3),
            shape=(1, 2, 7),
        ),
    ],
    costly=True,
)
def convolution_data_gradient(
    cotangent: Array,
    weight: Array,
    *,
    shape: tuple[int, ...],
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int | tuple[int, int], ...] | Literal["same", "valid"] = 0,
    dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
    layout: Literal["NCW", "NWC", "NCHW", "NHWC", "NCDHW", "NDHWC"] | None = None,
    weight_layout: Literal["OIW", "OWI", "WIO", "OIHW", "OHWI", "HWIO", "OIDHW", "ODHWI", "DHWIO"]
    | None = None,
) -> Array:
    """Adjoint of ``convolution`` with respect to data of ``shape``: a transposed convolution.

    Example:
        >>> import jax.numpy as jnp
        >>> convolution_data_gradient(jnp.ones((1, 1, 2)), jnp.ones((1, 1, 2)), shape=(1, 1, 3))
        Array([[[1., 2., 1.]]], dtype=float32)
    """
    over = window(
        shape,
        layout=layout,
        kernel=channels_and_kernel(weight.shape, weight_layout)[2],
        stride=stride,
        padding=padding,
        dilation=dilation,
    )
    return transposed_convolve(cotangent, weight, over, groups, shape, weight_layout)


@convolution_data_gradient.gradient
def _data_gradient_gradient(
    cotangent: Var, weight: Var, d_out: Var, *, shape: Shape, **how: Any
) -> Grads:
    del shape
    forward = unbiased(d_out, weight, **how)
    by_weight = convolution_weight_gradient(d_out, cotangent, shape=weight.shape, **how)
    return {
        "cotangent": unbroadcast(forward, cotangent),
        "weight": unbroadcast(by_weight, weight),
    }


def unbiased(data: Var, weight: Var, **how: Any) -> Var:
    """The convolution without bias, with channels and kernel taken from the weight's shape."""
    channels, _, kernel = channels_and_kernel(weight.shape, how.get("weight_layout"))
    result: Var = convolution(data, weight, channels=channels, kernel=kernel, use_bias=False, **how)
    return result


# The adjoint in the weight ---------------------------------------------------------------------


def _weight_gradient_shape(data: Shape, cotangent: Shape, *, shape: Shape, **how: Any) -> Shape:
    _data_gradient_shape(cotangent, shape, shape=data, **how)
    return shape


@op(
    shape=_weight_gradient_shape,
    dtype=inexact,
    cases=[
        case(data=(2, 3, 6, 5), cotangent=(2, 4, 4, 4), shape=(4, 3, 3, 2), order=2),
        case(data=(2, 3, 6, 5), cotangent=(2, 4, 3, 3), shape=(4, 3, 3, 2), stride=2, padding=1),
        case(data=(1, 2, 7), cotangent=(1, 4, 3), shape=(4, 1, 3), dilation=2, groups=2),
        case(data=(1, 5, 2), cotangent=(1, 3, 4), shape=(4, 2, 3), layout="NWC", order=1),
        case(
            data=(1, 5, 2), cotangent=(1, 3, 4), shape=(3, 2, 4), layout="NWC", weight_layout="WIO"
        ),
        workload(data=(8, 32, 32, 32), cotangent=(8, 64, 32, 32), shape=(64, 32, 3, 3), padding=1),
        misuse(
            "cotangent must have shape (1, 4, 5), got (1, 4, 4)",
            data=(1, 2, 7),
            cotangent=(1, 4, 4),
            shape=(4, 2, 3),
        ),
    ],
    costly=True,
)
def convolution_weight_gradient(
    data: Array,
    cotangent: Array,
    *,
    shape: tuple[int, ...],
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int | tuple[int, int], ...] | Literal["same", "valid"] = 0,
    dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
    layout: Literal["NCW", "NWC", "NCHW", "NHWC", "NCDHW", "NDHWC"] | None = None,
    weight_layout: Literal["OIW", "OWI", "WIO", "OIHW", "OHWI", "HWIO", "OIDHW", "ODHWI", "DHWIO"]
    | None = None,
) -> Array:
    """Adjoint of ``convolution`` with respect to a weight of ``shape``.

    Example:
        >>> import jax.numpy as jnp
        >>> data, cotangent = jnp.arange(3.0).reshape(1, 1, 3), jnp.ones((1, 1, 2))
        >>> convolution_weight_gradient(data, cotangent, shape=(1, 1, 2))
        Array([[[1., 3.]]], dtype=float32)
    """
    over = window(
        data.shape,
        layout=layout,
        kernel=channels_and_kernel(shape, weight_layout)[2],
        stride=stride,
        padding=padding,
        dilation=dilation,
    )
    dtype = jnp.result_type(data, cotangent)

    def adjoint(data: Array, cotangent: Array) -> Array:
        return transposed(
            lambda w: convolve(data, w, over, groups, weight_layout), shape, cotangent
        )

    return convolved(adjoint, data.astype(dtype), cotangent.astype(dtype))


@convolution_weight_gradient.gradient
def _weight_gradient_gradient(
    data: Var, cotangent: Var, d_out: Var, *, shape: Shape, **how: Any
) -> Grads:
    del shape
    by_data = convolution_data_gradient(cotangent, d_out, shape=data.shape, **how)
    forward = unbiased(data, d_out, **how)
    return {"data": unbroadcast(by_data, data), "cotangent": unbroadcast(forward, cotangent)}
