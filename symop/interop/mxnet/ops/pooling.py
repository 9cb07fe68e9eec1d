"""Pooling over windows of fixed size, with MXNet's conventions for the last window."""

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

import symop as so
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.ops.layers import along
from symop.interop.mxnet.partial_shapes import Shapes, enter

Lengths = tuple[int, ...]
Convention = Literal["full", "valid", "same"]
Pairs = Sequence[tuple[int, int]]


def _pooled_length(n: int, kernel: int, stride: int, pad: int, convention: str) -> int:
    """The number of windows along an axis of length ``n``."""
    if convention == "same":
        return -(-(n + 2 * pad) // stride)
    span = n + 2 * pad - kernel
    return 1 + (-(-span // stride) if convention == "full" else span // stride)


def _excess(
    lengths: Lengths, kernel: Lengths, stride: Lengths, pad: Lengths, convention: str
) -> list[int]:
    """The reach of the last window beyond the padding, along each axis."""
    return [
        max((_pooled_length(n, k, s, p, convention) - 1) * s + k - n - 2 * p, 0)
        for n, k, s, p in zip(lengths, kernel, stride, pad, strict=True)
    ]


def _spatial(shape: Lengths, layout: str | None) -> list[int]:
    """The spatial axes."""
    is_last = layout is not None and layout.endswith("C")
    return list(range(1, len(shape) - 1) if is_last else range(2, len(shape)))


def _padded(data: Any, axes: Sequence[int], pairs: Pairs, value: float) -> Any:
    """``data`` padded by ``pairs`` of entries before and after the spatial axes."""
    if not any(map(any, pairs)):
        return data
    width = [(0, 0)] * len(data.shape)
    for axis, pair in zip(axes, pairs, strict=True):
        width[axis] = pair
    return so.pad(data, pad_width=tuple(width), constant_value=value)


def _lowest(data: Any) -> float:
    return float(np.finfo(data.dtype).min)


def _max(data: Any, axes: Sequence[int], pairs: Pairs, kernel: Lengths, **how: Any) -> Any:
    if any(side >= k for k, pair in zip(kernel, pairs, strict=True) for side in pair):
        data, pairs = _padded(data, axes, pairs, _lowest(data)), [(0, 0)] * len(kernel)
    return so.max_pooling(data, kernel=kernel, padding=tuple(pairs), **how)


def _sum(data: Any, axes: Sequence[int], pairs: Pairs, kernel: Lengths, **how: Any) -> Any:
    padded = _padded(data, axes, pairs, 0)
    return so.average_pooling(padded, kernel=kernel, **how) * math.prod(kernel)


def _lp(data: Any, axes: Sequence[int], pairs: Pairs, kernel: Lengths, p: int, **how: Any) -> Any:
    if p == 1:
        return _sum(data, axes, pairs, kernel, **how)
    if p == 2:
        return so.lp_pooling(_padded(data, axes, pairs, 0), kernel=kernel, **how)
    if p != 3:
        raise MXNetError(f"Pooling: p_value must be 1, 2 or 3, got {p}")
    total = _sum(data * data * data, axes, pairs, kernel, **how)  # signed, as in MXNet
    is_zero = so.equal(total, 0.0)
    return so.where(is_zero, total, so.cbrt(so.where(is_zero, so.ones_like(total), total)))


def _average(
    data: Any,
    axes: Sequence[int],
    pad: Lengths,
    excess: list[int],
    kernel: Lengths,
    include: bool,
    **how: Any,
) -> Any:
    """Means; entries beyond the padding are not counted."""
    lengths = [data.shape[axis] for axis in axes]
    stride = how["stride"]
    last = [
        (n + 2 * p + e - k) // s * s
        for n, p, e, k, s in zip(lengths, pad, excess, kernel, stride, strict=True)
    ]
    idle = [int(at >= p + n) for at, p, n in zip(last, pad, lengths, strict=True)]
    pairs = tuple((p, p) for p in pad)
    means = so.average_pooling(
        data,
        kernel=kernel,
        padding=pairs,
        count_include_pad=include,
        ceil_mode=any(excess),
        **how,
    )
    return _padded(means, axes, [(0, more) for more in idle], 0)  # windows of only padding


def _pooled(
    data: Any,
    kernel: Lengths,
    pool_type: str,
    convention: str,
    stride: Lengths,
    pad: Lengths,
    p_value: int | None,
    include: bool,
    layout: str | None,
) -> Any:
    axes = _spatial(data.shape, layout)
    count = len(kernel)
    if len(axes) != count:
        raise MXNetError(f"Pooling: kernel must have {len(axes)} lengths, got {kernel}")
    if convention == "same" and (count != 1 or any(pad)):
        raise MXNetError("Pooling: 'same' must be along one axis without pad, got another")
    stride, pad = along(stride, count, 1), along(pad if any(pad) else (), count, 0)
    excess = _excess(tuple(data.shape[a] for a in axes), kernel, stride, pad, convention)
    pairs = [(p, p + more) for p, more in zip(pad, excess, strict=True)]
    how: dict[str, Any] = {"stride": stride, "layout": layout}
    if pool_type == "max":
        return _max(data, axes, pairs, kernel, **how)
    if pool_type == "sum":
        return _sum(data, axes, pairs, kernel, **how)
    if pool_type == "avg" and convention == "same":
        return so.average_pooling(
            data, kernel=kernel, padding=tuple(pairs), count_include_pad=False, **how
        )
    if pool_type == "avg":
        return _average(data, axes, pad, excess, kernel, include, **how)
    if p_value is None:
        raise MXNetError("Pooling: p_value must be given for pool_type='lp', got none")
    return _lp(data, axes, pairs, kernel, p_value, **how)


def _over_all(data: Any, pool_type: str, p_value: int | None, layout: str | None) -> Any:
    """Pools one window over all spatial axes."""
    lengths = tuple(data.shape[axis] for axis in _spatial(data.shape, layout))
    return _pooled(data, lengths, pool_type, "valid", (), (), p_value, True, layout)


def _pooling_outputs(kernel: Lengths, pool_type: str, layout: str | None) -> tuple[str, ...]:
    """Max pooling in one of the usual layouts has an additional workspace output."""
    hidden = pool_type == "max" and kernel and not (layout or "").endswith("C")
    return ("output", "workspace") if hidden else ("output",)


def _pooling_shapes(
    given: Shapes,
    found: Shapes,
    kernel: Lengths,
    global_pool: bool,
    pooling_convention: str,
    stride: Lengths,
    pad: Lengths,
    layout: str | None = None,
) -> None:
    """Keeps batch and channels; infers spatial lengths from those of the data."""
    for one, other in ((given, found), (found, given)):
        known = one[0]
        if known is not None:
            free = [0 if i in _spatial(known, layout) else n for i, n in enumerate(known)]
            enter(other, 0, tuple(free))
    data = given[0]
    if data is None:
        return
    lengths, count = list(data), len(kernel)
    steps, sides = along(stride, count, 1), along(pad if any(pad) else (), count, 0)
    for i, axis in enumerate(_spatial(data, layout)):
        if global_pool:
            lengths[axis] = 1
        elif data[axis] and i < count:
            lengths[axis] = _pooled_length(
                data[axis], kernel[i], steps[i], sides[i], pooling_convention
            )
    enter(found, 0, tuple(lengths))


@operator(
    "Pooling",
    shapes=_pooling_shapes,
    outputs=_pooling_outputs,
    visible=lambda: 1,
    ignored=("cudnn_off",),
)
def pooling(
    data: Any,
    *,
    kernel: Lengths = (),
    pool_type: Literal["max", "avg", "sum", "lp"] = "max",
    global_pool: bool = False,
    pooling_convention: Convention = "valid",
    stride: Lengths = (),
    pad: Lengths = (),
    p_value: int | None = None,
    count_include_pad: bool | None = None,
    layout: Literal["NCW", "NCHW", "NCDHW", "NWC", "NHWC", "NDHWC"] | None = None,
) -> Any:
    """The maximum, the mean, the sum or a norm of each window."""
    if global_pool:
        return _over_all(data, pool_type, p_value, layout)
    if not kernel:
        raise MXNetError("Pooling: kernel must be given unless global_pool=True, got none")
    include = count_include_pad is not False
    return _pooled(
        data, kernel, pool_type, pooling_convention, stride, pad, p_value, include, layout
    )


def _pooling_v1_shapes(
    given: Shapes,
    found: Shapes,
    kernel: Lengths,
    global_pool: bool,
    pooling_convention: str,
    stride: Lengths,
    pad: Lengths,
) -> None:
    _pooling_shapes(given, found, kernel, global_pool, pooling_convention, stride, pad)


@operator(
    "Pooling_v1",
    shapes=_pooling_v1_shapes,
    note="of several largest entries the first gets the gradient, not each all of it",
)
def pooling_v1(
    data: Any,
    *,
    kernel: Lengths = (),
    pool_type: Literal["max", "avg", "sum"] = "max",
    global_pool: bool = False,
    pooling_convention: Literal["full", "valid"] = "valid",
    stride: Lengths = (),
    pad: Lengths = (),
) -> Any:
    """Pooling where maxima include zero padding, and all means have the same divisor."""
    if global_pool:
        return _over_all(data, pool_type, None, None)
    axes, sides = _spatial(data.shape, None), along(pad, len(kernel), 0)
    data = _padded(data, axes, [(side, side) for side in sides], 0)
    kind = "sum" if pool_type == "avg" else pool_type
    out = _pooled(data, kernel, kind, pooling_convention, stride, (), None, True, None)
    return out * (1.0 / math.prod(kernel)) if pool_type == "avg" else out


def _adaptive_shapes(given: Shapes, found: Shapes, output_size: Lengths) -> None:
    size = _two(output_size)
    if given[0] is not None:
        enter(found, 0, (*given[0][:2], *size))
    if found[0] is not None:
        enter(given, 0, (*found[0][:2], 0, 0))


def _two(output_size: Lengths) -> Lengths:
    return (output_size or (1,)) * 2 if len(output_size) < 2 else output_size


@operator("_contrib_AdaptiveAvgPooling2D", shapes=_adaptive_shapes)
def adaptive_average_pooling(data: Any, *, output_size: Lengths = ()) -> Any:
    """The means of ``output_size`` windows along each axis."""
    return so.adaptive_average_pooling(data, output_size=_two(output_size))
