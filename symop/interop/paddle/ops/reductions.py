"""Reductions over axes, norms and cumulative sums."""

from collections.abc import Callable, Sequence
from typing import Any

import symop as so
from symop.interop.paddle.operators import Values, operator
from symop.interop.paddle.ops.dtypes import dtype_of
from symop.interop.paddle.ops.versions import scalar
from symop.interop.paddle.values import numbers


@operator()
def mean(X: Any, *, call: Any) -> Any:
    return scalar(call, so.mean(X))


_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "reduce_sum": so.sum,
    "reduce_mean": so.mean,
    "reduce_max": so.max,
    "reduce_min": so.min,
    "reduce_amax": so.amax,
    "reduce_amin": so.amin,
    "reduce_prod": so.prod,
    "reduce_all": so.all,
    "reduce_any": so.any,
    "frobenius_norm": lambda x, **axes: so.sqrt(so.sum(so.square(x), **axes)),
}


def _reduction(name: str, function: Callable[..., Any]) -> None:
    @operator(name, no_gradient="AxisTensor AxisTensorList")
    def composed(
        X: Any,
        AxisTensor: Any = None,
        AxisTensorList: Values | None = None,
        *,
        dim: Sequence[int] = (0,),
        keep_dim: bool = False,
        reduce_all: bool = False,
        in_dtype: int = -1,
        out_dtype: int = -1,
        call: Any,
    ) -> Any:
        if AxisTensorList:
            dim = [numbers(f"{name}: AxisTensorList", one)[0] for one in AxisTensorList]
        elif AxisTensor is not None:
            dim = numbers(f"{name}: AxisTensor", AxisTensor)
        axis = _axes(X, dim, reduce_all)
        x = X if in_dtype == -1 else so.cast(X, dtype=dtype_of(in_dtype))
        result = scalar(call, function(x, axis=axis, keepdims=keep_dim))
        return result if out_dtype == -1 else so.cast(result, dtype=dtype_of(out_dtype))


def _axes(x: Any, dim: Sequence[int], every: bool) -> tuple[int, ...] | None:
    """Returns the axes of a reduction, or None for all of them."""
    return None if every or not dim or len(dim) == x.ndim else tuple(dim)


for _name, _function in _REDUCTIONS.items():
    _reduction(_name, _function)


@operator()
def logsumexp(
    X: Any,
    *,
    axis: Sequence[int] = (0,),
    keepdim: bool = False,
    reduce_all: bool = False,
    call: Any,
) -> Any:
    return scalar(call, so.logsumexp(X, axis=_axes(X, axis, reduce_all), keepdims=keepdim))


@operator()
def p_norm(
    X: Any,
    *,
    porder: float = 2.0,
    axis: int = -1,
    epsilon: float = 1e-12,
    keepdim: bool = False,
    asvector: bool = False,
    call: Any,
) -> Any:
    x, at = (so.reshape(X, shape=(-1,)), 0) if asvector else (X, axis)
    norm = so.vector_norm(x, ord=porder, axis=at, keepdims=keepdim and not asvector)
    if keepdim and asvector:
        norm = so.reshape(norm, shape=(1,) * X.ndim)
    return scalar(call, norm)


@operator()
def squared_l2_norm(X: Any) -> Any:
    return so.reshape(so.square(so.global_norm(X)), shape=(1,))


@operator()
def l1_norm(X: Any, *, call: Any) -> Any:
    return scalar(call, so.sum(so.abs(X)))


@operator()
def cumsum(
    X: Any, *, axis: int = -1, flatten: bool = False, exclusive: bool = False, reverse: bool = False
) -> Any:
    x = so.reshape(X, shape=(-1,)) if flatten else X
    return so.cumsum(x, axis=0 if flatten else axis, exclusive=exclusive, reverse=reverse)


@operator()
def cumprod(X: Any, *, dim: int, exclusive: bool = False, reverse: bool = False) -> Any:
    x = so.flip(X, axis=dim) if reverse else X
    if exclusive:
        length = x.shape[dim]
        ones = so.ones_like(so.slice_axis(x, axis=dim, begin=0, end=1))
        x = so.concat(ones, so.slice_axis(x, axis=dim, begin=0, end=length - 1), axis=dim)
    result = so.cumprod(x, axis=dim)
    return so.flip(result, axis=dim) if reverse else result


@operator()
def logcumsumexp(
    X: Any, *, axis: int = -1, flatten: bool = False, exclusive: bool = False, reverse: bool = False
) -> Any:
    x, at = (so.reshape(X, shape=(-1,)), 0) if flatten else (X, axis % X.ndim)
    if exclusive:
        length = x.shape[at]
        cut = (1, length) if reverse else (0, length - 1)
        rest = so.slice_axis(x, axis=at, begin=cut[0], end=cut[1])
        none = so.full(
            shape=(*x.shape[:at], 1, *x.shape[at + 1 :]), fill_value=-float("inf"), dtype=x.dtype
        )
        x = so.concat(rest, none, axis=at) if reverse else so.concat(none, rest, axis=at)
    x = so.flip(x, axis=at) if reverse else x
    result = so.cumlogsumexp(x, axis=at)
    return so.flip(result, axis=at) if reverse else result


@operator()
def clip_by_norm(X: Any, *, max_norm: float) -> Any:
    return so.clip_by_norm(X, max_norm=max_norm)


@operator(no_gradient="Min Max")
def clip(X: Any, Min: Any = None, Max: Any = None, *, min: float = 0.0, max: float = 0.0) -> Any:
    if Min is None and Max is None:
        return so.clip(X, low=min, high=max, ties="last")
    low = min if Min is None else so.reshape(Min, shape=())
    high = max if Max is None else so.reshape(Max, shape=())
    return so.clip(X, min=low, max=high, ties="last")
