"""Simulated quantization: values rounded to a grid of integers, with its scale.

The gradient of what is quantized and dequantized at once is that of the identity.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

import symop as so
from symop.interop.paddle.operators import Values, operator

_SMALLEST = 1e-6
"""Scales up to this one are divided by with as much added."""


def _levels(bits: int) -> float:
    return float((1 << (bits - 1)) - 1)


def _along(scale: Any, axis: int, ndim: int) -> Any:
    return so.reshape(scale, shape=tuple(-1 if i == axis else 1 for i in range(ndim)))


def _rounded(x: Any) -> Any:
    """Returns the nearest integers, halves away from zero."""
    return so.sign(x) * so.floor(so.abs(x) + 0.5)


def _quantized(x: Any, scale: Any, levels: float, round_type: int) -> Any:
    """Returns integers: with type 0 halves go to even ones, and one more negative level is used."""
    factor = levels / so.where(scale <= _SMALLEST, scale + _SMALLEST, scale)
    if round_type == 0:
        return so.maximum(so.minimum(so.round(x * factor), levels), -levels - 1)
    return _rounded(so.maximum(so.minimum(x, scale), -scale) * factor)


def _simulated(x: Any, scale: Any, levels: float, round_type: int) -> Any:
    """Returns quantized and dequantized values, with the gradient of the identity."""
    grid = _quantized(x, scale, levels, round_type) * scale / levels
    return x + so.stop_gradient(grid - x)


def _largest(x: Any) -> Any:
    return so.reshape(so.max(so.abs(x)), shape=(1,))


def _largest_of(x: Any, axis: int) -> Any:
    return so.max(so.abs(x), axis=tuple(i for i in range(x.ndim) if i != axis))


@operator(outputs="Out OutScale")
def fake_quantize_abs_max(X: Any, *, bit_length: int = 8, round_type: int = 1) -> Any:
    scale = so.stop_gradient(_largest(X))
    return so.stop_gradient(_quantized(X, scale, _levels(bit_length), round_type)), scale


@operator(outputs="Out OutScale")
def fake_quantize_dequantize_abs_max(X: Any, *, bit_length: int = 8, round_type: int = 1) -> Any:
    scale = so.stop_gradient(_largest(X))
    return _simulated(X, scale, _levels(bit_length), round_type), scale


@operator(outputs="Out OutScale", ignored="is_test")
def fake_channel_wise_quantize_abs_max(
    X: Any, *, quant_axis: int = 0, bit_length: int = 8, round_type: int = 1
) -> Any:
    scale = so.stop_gradient(_largest_of(X, quant_axis))
    along = _along(scale, quant_axis, X.ndim)
    return so.stop_gradient(_quantized(X, along, _levels(bit_length), round_type)), scale


@operator(outputs="Out OutScale")
def fake_channel_wise_quantize_dequantize_abs_max(
    X: Any, *, quant_axis: int = 0, bit_length: int = 8, round_type: int = 1
) -> Any:
    scale = so.stop_gradient(_largest_of(X, quant_axis))
    return _simulated(X, _along(scale, quant_axis, X.ndim), _levels(bit_length), round_type), scale


@operator(outputs="Out OutScale OutScales", no_gradient="InScale Iter")
def fake_quantize_range_abs_max(
    X: Any,
    InScale: Any,
    Iter: Any = None,
    *,
    window_size: int = 10000,
    bit_length: int = 8,
    round_type: int = 1,
    is_test: bool = False,
    call: Any,
) -> Any:
    """Scales by the largest entry of the latest steps, which the output ``OutScales`` keeps."""
    if is_test:
        return _quantized(X, InScale, _levels(bit_length), round_type), None, None
    now = _largest(X)
    (name,) = call.op.output("OutScales") or ("",)
    window = call.environment.get(name)
    if window is None:
        window = so.zeros(shape=(window_size,), dtype=X.dtype)
    step = so.reshape(Iter, shape=())
    at = so.cast(so.reshape(so.mod(step, window_size), shape=(1,)), dtype="int32")
    removed = so.take(window, at, axis=0)
    window = so.index_update(window, at, now, axis=0)
    is_past = so.less(so.abs(removed - InScale), 1e-6)
    scale = so.where(
        so.less(InScale, now), now, so.where(is_past, so.reshape(so.max(window), (1,)), InScale)
    )
    return so.stop_gradient(_quantized(X, scale, _levels(bit_length), round_type)), scale, window


@operator(
    "stright_throuth_estimator_grad",
    outputs="X@GRAD",
    ignored="bit_length round_type quant_axis moving_rate is_test",
)
def straight_through_gradient(Out_GRAD: Any) -> Any:
    """Returns the gradient unchanged; the name is spelled as in Paddle."""
    return so.identity(Out_GRAD)


def _moved(
    x: Any, scale: Any, accum: Any, state: Any, rate: float, is_test: bool
) -> tuple[Any, Any, Any]:
    """Returns a moving average of largest entries, and the sum and the weight it consists of."""
    if is_test:
        return scale, None, None
    weight = rate * state + 1 if state is not None else jnp.ones(1)
    total = rate * accum + _largest(x) if accum is not None else _largest(x)
    return so.stop_gradient(total / weight), weight, total


def _moving(name: str, *, dequantizes: bool) -> None:
    @operator(
        name,
        outputs="Out OutScale OutState OutAccum",
        no_gradient="InScale InAccum InState",
    )
    def composed(
        X: Any,
        InScale: Any,
        InAccum: Any = None,
        InState: Any = None,
        *,
        moving_rate: float = 0.9,
        bit_length: int = 8,
        round_type: int = 1,
        is_test: bool = False,
    ) -> Any:
        scale, state, accum = _moved(X, InScale, InAccum, InState, moving_rate, is_test)
        levels = _levels(bit_length)
        if dequantizes:
            return _simulated(X, scale, levels, round_type), scale, state, accum
        return so.stop_gradient(_quantized(X, scale, levels, round_type)), scale, state, accum


_moving("fake_quantize_moving_average_abs_max", dequantizes=False)
_moving("fake_quantize_dequantize_moving_average_abs_max", dequantizes=True)


@operator(outputs="Out OutScale OutState OutAccum", no_gradient="InAccum InState")
def moving_average_abs_max_scale(
    X: Any,
    InAccum: Any = None,
    InState: Any = None,
    *,
    moving_rate: float = 0.9,
    is_test: bool = False,
) -> Any:
    scale, state, accum = _moved(X, None, InAccum, InState, moving_rate, is_test)
    return so.identity(X), scale, state, accum


@operator(no_gradient="Scale")
def fake_dequantize_max_abs(X: Any, Scale: Any, *, max_range: float) -> Any:
    return X * Scale / max_range


@operator(no_gradient="Scales")
def fake_channel_wise_dequantize_max_abs(
    X: Any,
    Scales: Values,
    *,
    quant_bits: Sequence[int] = (8,),
    quant_axis: int = 0,
    x_num_col_dims: int = 1,
) -> Any:
    """Divides by scales of channels: of weights, or of a product and then that of the inputs."""
    bounds = [_levels(one) for one in quant_bits]
    if len(Scales) == 1:
        return X * _along(Scales[0], quant_axis, X.ndim) / bounds[0]
    first = _along(Scales[0], x_num_col_dims, X.ndim)
    return X * first * so.reshape(Scales[1], shape=()) / (bounds[0] * bounds[1])


def _linear(
    scale: Any, accum: Any, state: Any, x: Any, axis: int, rate: float, is_test: bool
) -> tuple[Any, Any, Any, Any]:
    """Returns a scale that lies along its axis, and the new state, sum and scale."""
    if not is_test and axis < 0:
        scale, state, accum = _moved(x, scale, accum, state, rate, False)
    elif not is_test:
        scale, state, accum = so.stop_gradient(_largest_of(x, axis)), None, None
    along = _along(scale, axis, x.ndim) if axis >= 0 else so.reshape(scale, shape=())
    return along, state, accum, scale


@operator(
    outputs="Y OutState OutAccum OutScale",
    no_gradient="Scale ZeroPoint InAccum InState",
)
def quantize_linear(
    X: Any,
    Scale: Any,
    ZeroPoint: Any,
    InAccum: Any = None,
    InState: Any = None,
    *,
    quant_axis: int = 0,
    bit_length: int = 8,
    round_type: int = 0,
    moving_rate: float = 0.9,
    is_test: bool = True,
    only_observer: bool = False,
) -> Any:
    scale, state, accum, new = _linear(Scale, InAccum, InState, X, quant_axis, moving_rate, is_test)
    out = so.identity(X) if only_observer else _quantized(X, scale, _levels(bit_length), round_type)
    return out, state, accum, new


@operator(
    outputs="Y OutState OutAccum OutScale",
    no_gradient="Scale ZeroPoint InAccum InState",
    ignored="round_type is_test moving_rate",
)
def dequantize_linear(
    X: Any,
    Scale: Any,
    ZeroPoint: Any,
    InAccum: Any = None,
    InState: Any = None,
    *,
    quant_axis: int = 0,
    bit_length: int = 8,
    only_observer: bool = False,
) -> Any:
    if only_observer:
        return so.identity(X)
    axis = quant_axis if Scale.size > 1 else -1
    along = _along(Scale, axis, X.ndim) if axis >= 0 else so.reshape(Scale, shape=())
    return so.cast(X, dtype=Scale.dtype) * along / _levels(bit_length)
