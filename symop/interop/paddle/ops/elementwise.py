"""Entrywise functions of two tensors, sums, scaling, comparisons and casts."""

from collections.abc import Callable
from typing import Any

import symop as so
from symop.interop.paddle.arrays import combined, is_tensor_array
from symop.interop.paddle.operators import Values, operator
from symop.interop.paddle.ops.dtypes import dtype_of
from symop.interop.paddle.ops.versions import scalar


def aligned(x: Any, y: Any, axis: int) -> Any:
    """Returns ``y`` with axes of length one, so that its first axis meets ``axis`` of ``x``.

    Paddle broadcasts ``y`` of shape (3, 4) to ``x`` of shape (2, 3, 4, 5) with ``axis=1``; -1
    aligns the last axes, as NumPy does. Trailing axes of ``y`` of length one are left out first.
    """
    if axis == -1 or y.ndim > x.ndim:
        return y
    shape = list(y.shape)
    while len(shape) > 1 and shape[-1] == 1 and axis + len(shape) > x.ndim:
        shape.pop()
    lengths = [*shape, *(1 for _ in range(x.ndim - axis - len(shape)))]
    return so.reshape(y, shape=tuple(lengths))


_BINARY: dict[str, Callable[..., Any]] = {
    "elementwise_add": so.add,
    "elementwise_sub": so.subtract,
    "elementwise_mul": so.multiply,
    "elementwise_div": so.divide,
    "elementwise_max": so.maximum,
    "elementwise_min": so.minimum,
    "elementwise_pow": so.power,
    "elementwise_mod": so.mod,
    "elementwise_floordiv": so.floor_divide,
}


def _binary(name: str, function: Callable[..., Any]) -> None:
    @operator(name)
    def composed(X: Any, Y: Any, *, axis: int = -1) -> Any:
        return function(X, aligned(X, Y, axis))


for _name, _function in _BINARY.items():
    _binary(_name, _function)

_COMPARISONS: dict[str, Callable[..., Any]] = {
    "equal": so.equal,
    "not_equal": so.not_equal,
    "less_than": so.less,
    "less_equal": so.less_equal,
    "greater_than": so.greater,
    "greater_equal": so.greater_equal,
}


def _comparison(name: str, function: Callable[..., Any]) -> None:
    @operator(name)
    def composed(X: Any, Y: Any, *, axis: int = -1) -> Any:
        return function(X, aligned(X, Y, axis))


for _name, _function in _COMPARISONS.items():
    _comparison(_name, _function)


@operator()
def logical_and(X: Any, Y: Any) -> Any:
    return so.logical_and(X, Y)


@operator()
def logical_or(X: Any, Y: Any) -> Any:
    return so.logical_or(X, Y)


@operator()
def logical_xor(X: Any, Y: Any) -> Any:
    return so.logical_xor(X, Y)


@operator()
def logical_not(X: Any) -> Any:
    return so.logical_not(X)


@operator("sum")
def sum_(X: Values) -> Any:
    """Adds tensors, or tensor arrays element by element; those that have no value are left out."""
    values = [one for one in X if one is not None]
    if any(map(is_tensor_array, values)):
        return combined(sum_, values)
    return so.add_n(*values) if len(values) > 1 else values[0] if values else None


@operator()
def scale(
    X: Any,
    ScaleTensor: Any = None,
    *,
    scale: float = 1.0,
    bias: float = 0.0,
    bias_after_scale: bool = True,
) -> Any:
    factor = scale if ScaleTensor is None else so.reshape(ScaleTensor, shape=())
    is_plain = ScaleTensor is None and scale == 1
    if bias == 0 and is_plain:
        return so.identity(X)
    if bias_after_scale or bias == 0:
        scaled = X if is_plain else so.multiply(X, factor)
        result = so.add(scaled, bias) if bias else scaled
    else:
        result = so.multiply(so.add(X, bias), factor)
    return result if result.dtype == X.dtype else so.cast(result, dtype=X.dtype)


@operator()
def cast(X: Any, *, in_dtype: int = 5, out_dtype: int = 5) -> Any:
    return so.cast(X, dtype=dtype_of(out_dtype))


@operator()
def minus(X: Any, Y: Any) -> Any:
    return so.subtract(X, Y)


@operator("elementwise_fmax", "fmax")
def fmax(X: Any, Y: Any, *, axis: int = -1) -> Any:
    y = aligned(X, Y, axis)
    return so.where(so.isnan(X), y, so.where(so.isnan(y), X, so.maximum(X, y)))


@operator("elementwise_fmin", "fmin")
def fmin(X: Any, Y: Any, *, axis: int = -1) -> Any:
    y = aligned(X, Y, axis)
    return so.where(so.isnan(X), y, so.where(so.isnan(y), X, so.minimum(X, y)))


_TESTS: dict[str, Callable[..., Any]] = {
    "isfinite_v2": so.isfinite,
    "isinf_v2": so.isinf,
    "isnan_v2": so.isnan,
    "bitwise_not": so.bitwise_invert,
}


def _test(name: str, function: Callable[..., Any]) -> None:
    @operator(name, no_gradient="X")
    def composed(X: Any) -> Any:
        return function(X)


for _name, _function in _TESTS.items():
    _test(_name, _function)


def _anywhere(name: str, function: Callable[..., Any]) -> None:
    @operator(name, no_gradient="X")
    def composed(X: Any) -> Any:
        return so.reshape(function(X), shape=(1,))


_anywhere("isfinite", lambda x: so.all(so.isfinite(x)))
_anywhere("isinf", lambda x: so.any(so.isinf(x)))
_anywhere("isnan", lambda x: so.any(so.isnan(x)))

_BITS: dict[str, Callable[..., Any]] = {
    "bitwise_and": so.bitwise_and,
    "bitwise_or": so.bitwise_or,
    "bitwise_xor": so.bitwise_xor,
}


def _bits(name: str, function: Callable[..., Any]) -> None:
    @operator(name, no_gradient="X Y")
    def composed(X: Any, Y: Any) -> Any:
        return function(X, Y)


for _name, _function in _BITS.items():
    _bits(_name, _function)


@operator()
def atan2(X1: Any, X2: Any) -> Any:
    return so.arctan2(X1, X2)


@operator()
def lerp(X: Any, Y: Any, Weight: Any) -> Any:
    return X + Weight * (Y - X)


@operator(no_gradient="X Y", ignored="axis")
def equal_all(X: Any, Y: Any, *, call: Any) -> Any:
    same = (
        so.all(so.equal(X, Y))
        if X.shape == Y.shape
        else so.full(shape=(), fill_value=False, dtype="bool")
    )
    return scalar(call, same)


@operator(no_gradient="Input Other Rtol Atol")
def allclose(
    Input: Any,
    Other: Any,
    Rtol: Any = None,
    Atol: Any = None,
    *,
    rtol: str = "1e-5",
    atol: str = "1e-8",
    equal_nan: bool = False,
    call: Any,
) -> Any:
    relative = float(rtol) if Rtol is None else so.reshape(Rtol, shape=())
    absolute = float(atol) if Atol is None else so.reshape(Atol, shape=())
    near = so.less_equal(so.abs(Input - Other), absolute + relative * so.abs(Other))
    near = so.logical_or(near, so.equal(Input, Other))
    if equal_nan:
        near = so.logical_or(near, so.logical_and(so.isnan(Input), so.isnan(Other)))
    return scalar(call, so.all(near))


@operator()
def assign(X: Any = None) -> Any:
    return X if X is None or is_tensor_array(X) else so.identity(X)
