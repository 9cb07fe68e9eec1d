"""Activations and softmax."""

from typing import Any, Literal

import numpy as np

import symop as so
from symop.interop.mxnet import partial_dtypes
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.ops.indexing import whole
from symop.interop.mxnet.ops.precision import single
from symop.interop.mxnet.partial_dtypes import Dtypes
from symop.interop.mxnet.partial_shapes import Shapes, enter, like_data, same

_ACTIVATIONS = {
    "relu": so.relu,
    "sigmoid": so.sigmoid,
    "tanh": so.tanh,
    "softrelu": so.softplus,
    "softsign": so.softsign,
}


@operator("Activation", shapes=same)
def activation(
    data: Any, *, act_type: Literal["relu", "sigmoid", "tanh", "softrelu", "softsign"]
) -> Any:
    """The activation function called ``act_type``."""
    return _ACTIVATIONS[act_type](data)


# Leaky rectifiers ------------------------------------------------------------------------------


def _leaky_inputs(act_type: str) -> tuple[str, ...]:
    return ("data", "gamma") if act_type == "prelu" else ("data",)


def _leaky_outputs(act_type: str) -> tuple[str, ...]:
    return ("output", "mask") if act_type == "rrelu" else ("output",)


def _leaky_shapes(given: Shapes, found: Shapes) -> None:
    like_data(given, found)
    data = given[0]
    if data is not None:
        if len(found) > 1:
            enter(found, 1, data)
        if len(given) > 1 and given[1] is None:
            given[1] = data[1:2]


def _prelu(data: Any, gamma: Any) -> Any:
    """A leaky rectifier with a slope per channel, one for all, or per example and channel."""
    slopes = [1] * len(data.shape)
    left = list(gamma.shape)
    for axis in reversed(range(min(2, len(data.shape)))):
        if left and left[-1] in (1, data.shape[axis]):
            slopes[axis] = left.pop()
    if left:
        raise MXNetError(
            f"LeakyReLU: gamma must broadcast to the first two axes of {data.shape}, "
            f"got {gamma.shape}"
        )
    if len(gamma.shape) == 1 and len(data.shape) > 1:
        return so.prelu(data, gamma, axis=1)
    return so.where(so.greater(data, 0.0), data, data * so.reshape(gamma, shape=tuple(slopes)))


def _rrelu(data: Any, low: float, high: float) -> tuple[Any, Any]:
    """A leaky rectifier with random slopes in training, and their mean in prediction."""
    drawn = so.random_uniform(
        so.full_like(data, fill_value=low), so.full_like(data, fill_value=high)
    )
    slope = so.choose(drawn, so.full_like(data, fill_value=(low + high) / 2.0))
    return so.where(so.greater(data, 0.0), data, slope * data), slope


@operator(
    "LeakyReLU",
    present=_leaky_inputs,
    outputs=_leaky_outputs,
    shapes=_leaky_shapes,
    initial={"gamma": '["Constant", {"value": 0.25}]'},
)
def leaky_relu(
    data: Any,
    gamma: Any = None,
    *,
    act_type: Literal["rrelu", "leaky", "prelu", "elu", "selu", "gelu"] = "leaky",
    slope: float = 0.25,
    lower_bound: float = 0.125,
    upper_bound: float = 0.334,
) -> Any:
    """``data`` where it is positive; elsewhere the function ``act_type``."""
    if act_type == "prelu":
        return _prelu(data, gamma)
    if act_type == "rrelu":
        return _rrelu(data, single(lower_bound, data), single(upper_bound, data))
    if act_type == "leaky":
        return so.leaky_relu(data, slope=single(slope, data))
    if act_type == "elu":
        return so.elu(data, alpha=single(slope, data))
    return so.selu(data) if act_type == "selu" else so.gelu(data)


# Softmax ---------------------------------------------------------------------------------------


def _softmax_inputs(use_length: bool | None) -> tuple[str, ...]:
    return ("data", "length") if use_length else ("data",)


def _softmax_shapes(given: Shapes, found: Shapes, axis: int) -> None:
    like_data(given, found)
    data = given[0]
    if data is not None and len(given) > 1:
        at = axis % len(data)
        enter(given, 1, (data[:at] + data[at + 1 :]) or (1,))


def _softmax_dtypes(given: Dtypes, found: Dtypes, dtype: str | None) -> None:
    if dtype is None:
        partial_dtypes.like_data(given, found)
    else:
        partial_dtypes.told(given, found, dtype)


def _declare_softmax(name: str, full: Any, cut: Any, beyond: float | None) -> None:
    """Declares one of the three softmax operators, which differ in the computed function.

    Args:
        name: MXNet's name.
        full: the function of all entries.
        cut: the function of the leading entries.
        beyond: the value of the other entries, if it differs from that of ``cut``.
    """

    def softmax(
        data: Any,
        length: Any = None,
        *,
        axis: int = -1,
        temperature: float | None = None,
        dtype: Literal["float16", "float32", "float64"] | None = None,
        use_length: bool | None = False,
    ) -> Any:
        """Softmax along ``axis``, in at least the precision of ``data``."""
        to = np.dtype(dtype or data.dtype)
        wide = np.promote_types(to, data.dtype)
        x, heat = so.cast(data, dtype=wide), 1.0 if temperature is None else temperature
        if not use_length:
            return so.cast(full(x, axis=axis, temperature=heat), dtype=to)
        at = axis % len(data.shape)
        ends = so.reshape(whole(length), shape=(*data.shape[:at], *data.shape[at + 1 :]))
        out = cut(x, ends, axis=axis, temperature=heat)
        if beyond is not None:
            out = so.where(so.length_mask(ends, size=data.shape[at], axis=at), out, beyond)
        return so.cast(out, dtype=to)

    operator(name, present=_softmax_inputs, shapes=_softmax_shapes, dtypes=_softmax_dtypes)(softmax)


_declare_softmax("softmax", so.softmax, so.softmax_with_length, None)
_declare_softmax("softmin", so.softmin, so.softmin_with_length, None)
_declare_softmax("log_softmax", so.log_softmax, so.log_softmax_with_length, 0.0)


@operator("SoftmaxActivation", shapes=same)
def softmax_activation(data: Any, *, mode: Literal["instance", "channel"] = "instance") -> Any:
    """Softmax along the last axis, or over channels."""
    return so.softmax(data, axis=1 if mode == "channel" else -1)
