"""Reductions over axes, and the inverse broadcasts; results have at least one axis."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import symop as so
from registry.types import is_floating
from symop.interop.mxnet import partial_dtypes
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.ops.elementwise import absolute
from symop.interop.mxnet.ops.values import (
    at_least_1d,
    axis_of,
    fixed,
    floating,
    kept,
    require_fits,
)
from symop.interop.mxnet.partial_dtypes import Dtypes
from symop.interop.mxnet.partial_shapes import Shapes, enter

Axes = tuple[int, ...]
Function = Callable[..., Any]


def reduced_axes(name: str, count: int, axis: Axes | None, exclude: bool = False) -> Axes | None:
    """The axes to reduce, as non-negative numbers; None for all.

    Args:
        name: the operator's name, for errors.
        count: the number of axes.
        axis: the attribute; None or an empty tuple means all axes, whatever ``exclude``.
        exclude: whether to reduce all other axes.

    Raises:
        MXNetError: an axis is out of range, or repeated.
    """
    if not axis:
        return None
    axes = tuple(axis_of(name, one, count) for one in axis)
    if len(set(axes)) < len(axes):
        raise MXNetError(f"{name}: axis must name different axes, got {axis}")
    return tuple(i for i in range(count) if i not in axes) if exclude else tuple(sorted(axes))


def _reduced_shape(
    given: Shapes, found: Shapes, axis: Axes | None, keepdims: bool, exclude: bool
) -> None:
    shape = given[0]
    if shape is None:
        return
    axes = reduced_axes("reduction", len(shape), axis, exclude)
    gone = range(len(shape)) if axes is None else axes
    lengths = [1 if i in gone else n for i, n in enumerate(shape) if keepdims or i not in gone]
    enter(found, 0, tuple(lengths) or (1,))


# Sums, products, extrema -----------------------------------------------------------------------


def _extremum(function: Function) -> Function:
    """``function``, the maximum or minimum, with NaN where an entry is NaN.

    XLA's CPU backend loses NaN in a maximum of many entries (seen in jaxlib 0.10.2).
    """

    def call(data: Any, *, axis: Any, keepdims: bool) -> Any:
        found = function(data, axis=axis, keepdims=keepdims, ties="all")
        if not is_floating(data.dtype):
            return found
        unknown = so.any(so.isnan(data), axis=axis, keepdims=keepdims)
        return so.where(unknown, math.nan, found)

    return call


_REDUCTIONS: Mapping[tuple[str, ...], Function] = {
    ("sum", "sum_axis", "_sparse_sum"): so.sum,
    ("mean", "_sparse_mean"): so.mean,
    ("prod",): so.prod,
    ("nansum",): so.nansum,
    ("nanprod",): so.nanprod,
    ("max", "max_axis"): _extremum(so.max),
    ("min", "min_axis"): _extremum(so.min),
}


def _declare(names: Sequence[str], function: Function) -> None:
    @operator(*names, shapes=_reduced_shape)
    def call(
        data: Any, *, axis: Axes | None = None, keepdims: bool = False, exclude: bool = False
    ) -> Any:
        axes = reduced_axes(names[0], len(data.shape), axis, exclude)
        return kept(data, at_least_1d(function(data, axis=axes, keepdims=keepdims)))


for _names, _function in _REDUCTIONS.items():
    _declare(_names, _function)


def _norm_dtypes(given: Dtypes, found: Dtypes, out_dtype: str | None) -> None:
    if out_dtype is None:
        partial_dtypes.same(given, found)
    else:
        partial_dtypes.told(given, found, out_dtype)


@operator("norm", "_sparse_norm", dtypes=_norm_dtypes)
def norm(
    data: Any,
    *,
    ord: int = 2,
    axis: Axes | None = None,
    out_dtype: Literal["float16", "float32", "float64", "int64", "int32", "int8"] | None = None,
    keepdims: bool = False,
) -> Any:
    """The sum of absolute values over axes, or the root of the sum of squares."""
    axes = reduced_axes("norm", len(data.shape), axis)
    if ord == 1:
        found = so.sum(absolute(data), axis=axes, keepdims=keepdims)
    elif ord == 2:
        found = so.norm(floating(data), axis=axes, keepdims=keepdims)
    else:
        raise MXNetError(f"norm: ord must be 1 or 2, got {ord}")
    found = at_least_1d(found)
    return kept(data, found) if out_dtype is None else so.cast(found, dtype=out_dtype)


@operator("moments", outputs=lambda: ("output0", "output1"))
def moments(data: Any, *, axes: Axes | None = None, keepdims: bool = False) -> tuple[Any, Any]:
    """The mean and the variance over ``axes``."""
    if not axes:
        raise MXNetError(f"moments: axes must be named, got {axes}")
    over = reduced_axes("moments", len(data.shape), axes)
    found = (one(data, axis=over, keepdims=keepdims) for one in (so.mean, so.variance))
    mean, variance = (kept(data, at_least_1d(one)) for one in found)
    return mean, variance


@operator("_np_cumsum", "cumsum")
def cumsum(
    a: Any,
    *,
    axis: int | None = None,
    dtype: Literal["float16", "float32", "float64", "int8", "int32", "int64"] | None = None,
) -> Any:
    """Cumulative sums along an axis, or of the flattened array."""
    x = so.reshape(a, shape=(-1,)) if axis is None else a
    x = x if dtype is None else so.cast(x, dtype=dtype)
    return kept(x, so.cumsum(x, axis=0 if axis is None else axis))


# Broadcasts ------------------------------------------------------------------------------------


def _checked(name: str, data: Any, shape: Axes) -> Any:
    """``data`` broadcast to ``shape``, which must have the same rank."""
    require_fits(name, shape)
    fits = len(data.shape) == len(shape)
    if not fits or any(n not in (1, m) for n, m in zip(data.shape, shape, strict=True)):
        raise MXNetError(f"{name}: {data.shape} must be broadcastable, got {shape}")
    return so.broadcast_to(data, shape=shape)


@operator("broadcast_axis", "broadcast_axes")
def broadcast_axis(data: Any, *, axis: Axes = (), size: Axes = ()) -> Any:
    """``data`` broadcast along axes of length one."""
    if len(axis) != len(size):
        raise MXNetError(f"broadcast_axis: size must have one length for each axis, got {size}")
    shape = list(data.shape)
    for one, length in zip(axis, size, strict=True):
        shape[axis_of("broadcast_axis", one, len(shape))] = length
    return _checked("broadcast_axis", data, tuple(shape))


def _broadcast_shapes(given: Shapes, found: Shapes, shape: Axes) -> None:
    if given[0] is not None and len(given[0]) == len(shape):
        enter(found, 0, tuple(m or n for n, m in zip(given[0], shape, strict=True)))


@operator("broadcast_to", shapes=_broadcast_shapes)
def broadcast_to(data: Any, *, shape: Axes = ()) -> Any:
    """``data`` broadcast to ``shape``, in which zero keeps a length."""
    own = [*data.shape, *shape[len(data.shape) :]]
    return _checked("broadcast_to", data, tuple(m or n for n, m in zip(own, shape, strict=False)))


@operator("broadcast_like", dtypes=partial_dtypes.like_data)
def broadcast_like(
    lhs: Any, rhs: Any, *, lhs_axes: Axes | None = None, rhs_axes: Axes | None = None
) -> Any:
    """``lhs`` broadcast to the shape of ``rhs``, along some axes or all."""
    if lhs_axes is None or rhs_axes is None:
        return fixed(_checked("broadcast_like", lhs, tuple(rhs.shape)), rhs)
    if not lhs_axes or len(lhs_axes) != len(rhs_axes):
        raise MXNetError(
            f"broadcast_like: as many rhs_axes as lhs_axes must be given, got {rhs_axes}"
        )
    shape = list(lhs.shape)
    for one, other in zip(lhs_axes, rhs_axes, strict=True):
        length = rhs.shape[axis_of("broadcast_like", other, len(rhs.shape))]
        shape[axis_of("broadcast_like", one, len(shape))] = length
    return fixed(_checked("broadcast_like", lhs, tuple(shape)), rhs)


# A loss ----------------------------------------------------------------------------------------


def _loss_shapes(given: Shapes, found: Shapes) -> None:
    data, label = given
    enter(found, 0, (1,))
    if data is not None:
        enter(given, 1, data[:1])
        enter(given, 0, (label[0], 0) if label else None)


@operator(
    "softmax_cross_entropy",
    shapes=_loss_shapes,
    note="a probability below 1e-8 counts as it is, not as 1e-8",
)
def softmax_cross_entropy(data: Any, label: Any) -> Any:
    """The sum over all rows of ``-log(softmax(data))`` at the row's label."""
    rows = so.softmax_cross_entropy(data, so.cast(label, dtype="int32"))
    return fixed(so.sum(rows, keepdims=True), label)
