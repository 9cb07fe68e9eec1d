"""Reductions over axes."""

from collections.abc import Callable
from typing import Any

import symop as so
from symop.interop.paddle.operators import operator
from symop.interop.paddle.ops.dtypes import dtype_of


@operator()
def mean(X: Any) -> Any:
    return so.reshape(so.mean(X), shape=(1,))


_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "reduce_sum": so.sum,
    "reduce_mean": so.mean,
    "reduce_max": so.max,
    "reduce_min": so.min,
    "reduce_prod": so.prod,
    "reduce_all": so.all,
    "reduce_any": so.any,
}


def _reduction(name: str, function: Callable[..., Any]) -> None:
    @operator(name)
    def composed(
        X: Any,
        *,
        dim: list[int] = [0],  # noqa: B006
        keep_dim: bool = False,
        reduce_all: bool = False,
        in_dtype: int = -1,
        out_dtype: int = -1,
    ) -> Any:
        every = reduce_all or not dim or len(dim) == X.ndim
        axis = None if every else tuple(dim)
        x = X if in_dtype == -1 else so.cast(X, dtype=dtype_of(in_dtype))
        result = function(x, axis=axis, keepdims=keep_dim)
        return result if out_dtype == -1 else so.cast(result, dtype=dtype_of(out_dtype))


for _name, _function in _REDUCTIONS.items():
    _reduction(_name, _function)
