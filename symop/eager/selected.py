"""Reductions of the entries that a mask selects, and with an initial value, as NumPy has them."""

import math
from typing import Any

from registry.errors import AttributeValueError, DTypeError
from registry.table import get
from registry.types import is_boolean, is_complex
from symop.eager import array_api
from symop.eager.array_calls import array_function
from symop.eager.ndarray import NDArray

_NEUTRAL = {"sum": 0, "prod": 1, "any": 0, "all": 1, "mean": 0}
"""The number that takes the place of an entry that is not selected."""
_JOINED = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}
"""The operators that join the result and the initial value."""


def reduce_selected(
    name: str, x: NDArray, axis: Any = None, *, where: Any = None, initial: Any = None, **how: Any
) -> NDArray:
    """Reduces the entries of ``x`` at which ``where`` is true, by default all, and ``initial``.

    ``initial`` is cast to the dtype of the result, as in NumPy. Variances also take their mean.

    Raises:
        DTypeError: ``where`` is not boolean.
        AttributeValueError: a maximum or minimum has a mask without an initial value, or another
            reduction has an initial value.
    """
    if initial is not None and name not in _JOINED:
        raise AttributeValueError(f"{name}: initial must not be given, got {initial!r}")
    mask = None if where is None or where is True else _mask(name, where, x)
    if name in ("var", "std"):
        result = _variance(x, axis, mask, **how)
        return result if name == "var" else _call("sqrt", result)
    if name == "mean":
        return _mean(x, axis, mask, 0, **how)
    if mask is not None:
        x = _call("where", mask, x, _replacement(name, x, initial))
    if initial is None:
        return _reduction(name, x, axis, **how)
    if name in ("max", "min") and x.size == 0:
        places = _reduction("sum", x, axis, **how).shape
        return _call("broadcast_to", _cast(initial, x.dtype), shape=places)
    result = _reduction(name, x, axis, **how)
    return _call(_JOINED[name], result, _cast(initial, result.dtype))


def _mask(name: str, where: Any, x: NDArray) -> NDArray:
    mask = array_api.asarray(where)
    if not is_boolean(mask.dtype):
        raise DTypeError(f"{name}: where must be boolean, got {mask.dtype.name}")
    return _call("broadcast_to", mask, shape=x.shape)


def _replacement(name: str, x: NDArray, initial: Any) -> Any:
    if name not in ("max", "min"):
        return _NEUTRAL[name]
    if initial is None:
        raise AttributeValueError(f"{name}: initial must be given with where, got None")
    return _cast(initial, x.dtype)


def _mean(x: NDArray, axis: Any, mask: NDArray | None, ddof: float, **how: Any) -> NDArray:
    """Returns the sum of the selected entries over their count minus ``ddof``."""
    if mask is None and not ddof:
        return _reduction("mean", x, axis, **how)
    if mask is None:
        mask = array_api.ones(x.shape, dtype="bool")
    # The mean of all entries is accumulated in a sufficient dtype, and the count is exact.
    mean = _reduction("mean", _call("where", mask, x, 0), axis, **how)
    count = _reduction("sum", mask, axis, **how)
    length = math.prod(x.shape) / max(math.prod(mean.shape), 1)
    ratio = length / _call("maximum", count - ddof, 0)
    result: NDArray = mean * ratio.astype(mean.dtype)
    return result


def _variance(
    x: NDArray,
    axis: Any,
    mask: NDArray | None,
    *,
    correction: float = 0.0,
    mean: Any = None,
    **how: Any,
) -> NDArray:
    if mask is not None:  # what is not selected may be infinite
        x = _call("where", mask, x, 0)
    center = _mean(x, axis, mask, 0, keepdims=True) if mean is None else array_api.asarray(mean)
    distance = x - center
    squares = distance * distance
    if is_complex(distance.dtype):
        squares = _call("real", distance * _call("conj", distance))
    return _mean(squares, axis, mask, correction, **how)


def _reduction(name: str, x: NDArray, axis: Any, **how: Any) -> NDArray:
    functions: dict[str, Any] = {"sum": array_api.sum, "prod": array_api.prod}
    function = functions.get(name) or array_function(get(name))
    keywords = {key: one for key, one in how.items() if one is not None}
    result: NDArray = (
        function(x, **keywords) if axis is None else function(x, axis=axis, **keywords)
    )
    return result


def _cast(value: Any, dtype: Any) -> NDArray:
    return array_api.asarray(value).astype(dtype)


def _call(name: str, *inputs: Any, **attributes: Any) -> NDArray:
    result: NDArray = array_function(get(name))(*inputs, **attributes)
    return result
