"""Methods of eager arrays that are functions of the array API rather than operators.

Every operator is a method of every value. If ``so.nd`` defines a function that takes an array as
its first argument, ``x.name(...)`` is ``nd.name(x, ...)`` for eager arrays, even if an operator has
that name; for symbols, the method remains the operator. As in NumPy, ``reshape`` and ``transpose``
also take lengths or axes as separate arguments, and reductions take ``dtype``, ``out``, ``ddof``,
``where`` and ``initial``.
"""

from collections.abc import Callable
from typing import Any, SupportsIndex

import numpy as np

from registry.errors import ArgumentError
from registry.hooks import define
from registry.table import get
from registry.tracebacks import api_boundary, hide_frames
from registry.types import as_dtype
from symop.eager import array_api
from symop.eager.array_calls import array_function
from symop.eager.ndarray import NDArray
from symop.eager.selected import reduce_selected

METHODS = (
    "clip concat cumulative_prod cumulative_sum diff divmod full_like matrix_transpose meshgrid "
    "nextafter nonzero ones_like pow repeat searchsorted signbit stack unique_all "
    "unique_counts unique_inverse unique_values unstack zeros_like"
)
"""The functions whose first argument is an array; the class itself defines ``astype``."""


@api_boundary
def reshape(x: NDArray, /, *shape: Any, **options: Any) -> Any:
    """Reshapes ``x``; the shape is a tuple or separate lengths, and one length may be -1."""
    if not shape:
        return array_api.reshape(x, **options)
    return array_api.reshape(x, shape=shape[0] if len(shape) == 1 else shape, **options)


@api_boundary
def transpose(x: NDArray, /, *axes: Any, **options: Any) -> Any:
    """Permutes the axes; the order is a tuple or separate axes, and reversed by default."""
    if not axes:
        return get("permute_dims")(x, **options)
    single = len(axes) == 1 and not isinstance(axes[0], SupportsIndex)
    return get("permute_dims")(x, axes=axes[0] if single else axes, **options)


def _reduce(name: str) -> Callable[..., Any]:
    """Returns a reduction method with NumPy's arguments, such as ``dtype`` and ``where``."""
    function, of_dtype = REDUCTIONS[name], name in _OF_DTYPE

    def method(
        x: NDArray, /, *args: Any, dtype: Any = None, out: Any = None, **options: Any
    ) -> Any:
        try:
            if "ddof" in options:
                options["correction"] = float(options.pop("ddof"))
            if of_dtype:
                options["dtype"] = dtype
            elif dtype is not None and x.dtype != as_dtype(dtype):
                x = x.astype(dtype)
            keywords = {key: one for key, one in options.items() if one is not None}
            if keywords.keys() & _SELECTING:
                result = reduce_selected(name, x, *args, **keywords)
                if isinstance(out, NDArray):
                    out.take_over(result)
                    return out
            else:
                written = {"out": out} if isinstance(out, NDArray) else {}
                result = function(x, *args, **keywords, **written)
            return result if out is None or result is out else _write(name, out, result)
        except Exception as error:
            hide_frames(error)
            raise

    method.__name__ = name
    method.__doc__ = f"``nd.{name}``, with the arguments of NumPy's method of that name."
    return method


def _write(name: str, out: Any, result: NDArray) -> Any:
    """Writes the entries of ``result`` into the NumPy array ``out``; returns ``out``."""
    if not isinstance(out, np.ndarray) or out.shape != result.shape:
        raise ArgumentError(f"{name}: out must be an array of shape {result.shape}, got {out!r}")
    np.copyto(out, np.asarray(result), casting="same_kind")
    return out


REDUCTIONS: dict[str, Callable[..., Any]] = {
    "mean": array_function(get("mean")), "std": array_function(get("std")),
    "max": array_function(get("max")), "min": array_function(get("min")),
    "any": array_function(get("any")), "all": array_function(get("all")),
    "sum": array_api.sum, "prod": array_api.prod, "var": array_api.var,
}  # fmt: skip
_SELECTING = {"where", "initial", "mean"}
"""The arguments of NumPy's reductions that the functions of the array API do not take."""
_OF_DTYPE = ("sum", "prod")
"""The reductions whose functions take ``dtype``."""

define(
    NDArray,
    reshape=reshape,
    transpose=transpose,
    **{name: getattr(array_api, name) for name in METHODS.split()},
    **{name: _reduce(name) for name in REDUCTIONS},
)
