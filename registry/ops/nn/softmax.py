"""Softmax, dropout, and selection by training mode."""

from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, misuse, uniform, workload
from registry.errors import AttributeValueError, DTypeError, ShapeError
from registry.operator.attributes import Check
from registry.operator.operator import Grads
from registry.operator.signature import Array, Key, Training
from registry.ops.core.elementwise import exp
from registry.ops.core.reductions import sum as sum_over
from registry.shapes import (
    inexact,
    normalize_axes,
    strong_real_inexact,
)
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var, filled

# softmax ---------------------------------------------------------------------------------------

Axis = int | tuple[int, ...]


def has_axis(x: Shape, *, axis: Axis) -> Shape:
    """The shape ``x``, which must have ``axis``."""
    normalize_axes(axis, len(x))
    return x


def divided(x: Any, temperature: float) -> Any:
    """``x / temperature``, for arrays and variables.

    A traced temperature is a program operand and divides, whatever its value.
    """
    return x if isinstance(temperature, float) and temperature == 1.0 else x / temperature


def through_softmax(out: Var, d_out: Var, axis: Axis, temperature: float) -> Any:
    """The gradient of a softmax: ``d out_i / d x_j = out_i (delta_ij - out_j) / T``."""
    return divided(out * (d_out - sum_over(out * d_out, axis=axis, keepdims=True)), temperature)


def _softmax_reference(x: np.ndarray, *, axis: Axis = -1, temperature: float) -> np.ndarray:
    x = x / temperature
    powers = np.exp(x - np.max(x, axis=axis, keepdims=True, initial=-np.inf))
    return np.asarray(powers / np.sum(powers, axis=axis, keepdims=True))


def _log_softmax_reference(x: np.ndarray, *, axis: Axis = -1, temperature: float) -> np.ndarray:
    x = x / temperature
    shifted = x - np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    return np.asarray(shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True)))


SOFTMAX_CASES = [
    case(x=(3, 4)),
    case(x=(2, 3, 4), axis=1),
    case(x=(2, 3), axis=(0, 1), temperature=0.5, order=2),
    case(x=(5,)),
    case(x=uniform(4, low=900.0, high=904.0), order=2, rtol=4096),
    case(x=(0, 3)),
    workload(x=(1024, 1000)),
    misuse("axis must be in [-2, 2), got 2", x=(3, 4), axis=2),
    misuse("attribute 'temperature' must be positive, got 0.0", x=(3, 4), temperature=0.0),
    misuse("the inputs must be floating, got int32", x=integers(3, high=4)),
    misuse("the inputs must be real, got complex64", x=np.ones(3, np.complex64)),
]


@op(
    shape=has_axis,
    dtype=strong_real_inexact,
    reference=_softmax_reference,
    cases=SOFTMAX_CASES,
)
def softmax(
    x: Array,
    *,
    axis: int | tuple[int, ...] = -1,
    temperature: Annotated[float, Check("be positive", lambda value: value > 0)] = 1.0,
) -> Array:
    """Softmax along ``axis``: ``exp(x / T) / sum(exp(x / T))``, positive numbers that sum to one.

    ``T`` is the ``temperature``: the higher, the more uniform the result. Nothing overflows.

    Example:
        >>> import jax.numpy as jnp
        >>> softmax(jnp.asarray([1000.0, 1000.0]))
        Array([0.5, 0.5], dtype=float32)
    """
    return jax.nn.softmax(divided(x, temperature), axis)


@softmax.gradient
def _softmax_gradient(out: Var, d_out: Var, *, axis: Axis, temperature: float) -> Grads:
    return {"x": through_softmax(out, d_out, axis, temperature)}


@op(
    shape=has_axis,
    dtype=strong_real_inexact,
    reference=_log_softmax_reference,
    cases=SOFTMAX_CASES,
)
def log_softmax(
    x: Array,
    *,
    axis: int | tuple[int, ...] = -1,
    temperature: Annotated[float, Check("be positive", lambda value: value > 0)] = 1.0,
) -> Array:
    """Log-softmax: ``log(softmax(x / temperature))`` along ``axis``, without underflow.

    Example:
        >>> import jax.numpy as jnp
        >>> log_softmax(jnp.asarray([0.0, 1000.0]))
        Array([-1000.,     0.], dtype=float32)
    """
    return jax.nn.log_softmax(divided(x, temperature), axis)


@log_softmax.gradient
def _log_softmax_gradient(out: Var, d_out: Var, *, axis: Axis, temperature: float) -> Grads:
    by_scaled = d_out - exp(out) * sum_over(d_out, axis=axis, keepdims=True)
    return {"x": divided(by_scaled, temperature)}


# choose ----------------------------------------------------------------------------------------


def _choose_shape(when_training: Shape, otherwise: Shape) -> Shape:
    if when_training != otherwise:
        raise ShapeError(
            f"both branches must have the same shape, got {when_training} and {otherwise}"
        )
    return when_training


def _choose_dtype(when_training: VarType, otherwise: VarType) -> DType:
    if when_training.dtype != otherwise.dtype:
        raise DTypeError(
            f"both branches must have the same dtype, got {when_training.dtype.name} and "
            f"{otherwise.dtype.name}"
        )
    return when_training.dtype


@op(
    shape=_choose_shape,
    dtype=_choose_dtype,
    reference=lambda when_training, otherwise, training: when_training if training else otherwise,
    cases=[
        case(training=True, when_training=(3, 4), otherwise=(3, 4)),
        case(training=False, when_training=(3, 4), otherwise=(3, 4)),
        misuse("both branches must have the same shape", when_training=(3,), otherwise=(4,)),
    ],
)
def choose(training: Training, when_training: Array, otherwise: Array) -> Array:
    """Selects one value in training and another in prediction; only the selected one is computed.

    Example:
        >>> import jax.numpy as jnp
        >>> choose(jnp.asarray([1.0]), jnp.asarray([2.0]), training=False)
        Array([2.], dtype=float32)
    """
    chosen = jnp.asarray(when_training if training else otherwise)
    return lax.convert_element_type(chosen, chosen.dtype)


@choose.gradient
def _choose_gradient(training: Var, d_out: Var) -> Grads:
    zero = filled(d_out, 0.0)
    return {
        "when_training": choose(d_out, zero, training=training),
        "otherwise": choose(zero, d_out, training=training),
    }


@choose.simplify
def _choose_simplify(training: Var, when_training: Var, otherwise: Var) -> Var | None:
    if training.constant is None:
        return when_training if when_training is otherwise else None
    return when_training if training.constant else otherwise


# dropout ---------------------------------------------------------------------------------------


def _dropout_shape(data: Shape, *, rate: float) -> Shape:
    if not 0 <= rate <= 1:
        raise AttributeValueError(f"rate must be in [0, 1], got {rate}")
    return data


def _dropout_dtype(data: VarType) -> DType:
    return inexact(data)[0]


def _dropout_reference(
    data: np.ndarray,
    key: Array,
    training: bool,
    *,
    rate: float,
) -> np.ndarray:
    if not training or rate == 0:
        return data
    kept = np.asarray(jax.random.bernoulli(key, 1 - rate, data.shape))
    return np.where(kept, data / data.dtype.type(max(1 - rate, 1e-6)), 0).astype(data.dtype)


@op(
    shape=_dropout_shape,
    dtype=_dropout_dtype,
    reference=_dropout_reference,
    cases=[
        case(data=(20, 30), training=True, order=2),
        case(data=(3, 4), training=True, rate=0.25),
        case(data=(3, 4), training=True, rate=0.0),
        case(data=(3, 4), training=True, rate=1.0),
        case(data=(3, 4), training=False),
        case(data=(0, 4), training=True),
        misuse("rate must be in [0, 1], got 1.5", data=(3, 4), rate=1.5),
        misuse("the inputs must be floating, got int32", data=integers(3, high=4)),
    ],
    keeps_inputs=True,  # JAX would keep the mask, and zeros
)
def dropout(data: Array, key: Key, training: Training, *, rate: float = 0.5) -> Array:
    """Dropout: in training each entry is zero with probability ``rate``, else scaled up.

    Entries that are kept are divided by ``1 - rate``, so the expectation is preserved. In
    prediction it is the identity.

    Source: Srivastava et al., Dropout: a simple way to prevent neural networks from overfitting,
    2014; the scaling in training is called inverted dropout.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> dropout(jnp.ones(4), key=jax.random.key(0), training=False)
        Array([1., 1., 1., 1.], dtype=float32)
    """
    data = lax.convert_element_type(data, jnp.asarray(data).dtype)  # the result is never weak
    if not training or rate == 0:
        return data
    if rate == 1:
        return jnp.zeros_like(data)
    kept = jax.random.bernoulli(key, jnp.asarray(1 - rate), data.shape)
    return lax.select(kept, data / (1 - rate), jnp.zeros_like(data))


@dropout.gradient
def _dropout_gradient(key: Var, training: Var, d_out: Var, *, rate: float) -> Grads:
    # The operator is linear, with a diagonal matrix determined by the key alone.
    return {"data": dropout(d_out, key=key, training=training, rate=rate)}


@dropout.simplify
def _dropout_simplify(data: Var, training: Var) -> Var | None:
    # A rate of zero still draws its key, as in an eager call, so that later draws stay the same.
    return data if training.constant is False else None
