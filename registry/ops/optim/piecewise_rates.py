"""Piecewise learning rates: step functions, and warmup before a schedule."""

from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse
from registry.errors import AttributeValueError, DTypeError
from registry.operator.attributes import Check
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.comparison import less
from registry.ops.core.elementwise import where
from registry.ops.optim.learning_rates import (
    Steps,
    after,
    cosine_reference,
    rate_dtype,
    schedule,
    schedule_cases,
)
from registry.ops.optim.updates import returned
from registry.shapes import default_float, same
from registry.table import op
from registry.types import DType, Shape, VarType, is_floating
from registry.var import Var

# Pieces ------------------------------------------------------------------------------------------


def _piecewise_shape(
    step: Shape, *, boundaries: tuple[int, ...], values: tuple[float, ...]
) -> Shape:
    if len(values) != len(boundaries) + 1:
        raise AttributeValueError(
            f"values must be one more than boundaries, got {len(values)} and {len(boundaries)}"
        )
    if list(boundaries) != sorted(set(boundaries)):
        raise AttributeValueError(f"boundaries must increase, got {boundaries}")
    return step


@schedule(
    lambda t, *, boundaries, values: np.asarray(values)[
        np.searchsorted(np.asarray(boundaries, int), t, side="right")
    ],
    shape=_piecewise_shape,
    cases=[
        *schedule_cases(boundaries=(10, 20), values=(0.5, 0.25, 0.1)),
        *schedule_cases(boundaries=(), values=(0.5,))[:1],
        misuse(
            "values must be one more than boundaries, got 1 and 1",
            step=integers(high=9),
            boundaries=(3,),
            values=(0.1,),
        ),
        misuse(
            "boundaries must increase, got (3, 3)",
            step=integers(high=9),
            boundaries=(3, 3),
            values=(0.1, 0.2, 0.3),
        ),
    ],
)
def piecewise_decay(
    step: Array, *, boundaries: tuple[int, ...], values: tuple[float, ...]
) -> Array:
    """A step function: ``values[i]`` from step ``boundaries[i - 1]`` to before ``boundaries[i]``.

    Example:
        >>> import jax.numpy as jnp
        >>> piecewise_decay(jnp.asarray([0, 9, 10]), boundaries=(10,), values=(1.0, 0.5))
        Array([1. , 1. , 0.5], dtype=float32)
    """
    step = jnp.asarray(step)
    passed = [(step >= one).astype(np.int32) for one in boundaries]
    piece = sum(passed, jnp.zeros(step.shape, np.int32))
    rates: Array = jnp.asarray(values, default_float())[piece]
    return rates


# Warming up --------------------------------------------------------------------------------------


@schedule(
    lambda t, *, d_model, warmup_steps, learning_rate: (
        learning_rate
        / d_model**0.5
        * np.minimum(np.maximum(t, 1) ** -0.5, np.maximum(t, 1) / warmup_steps**1.5)
    ),
    cases=schedule_cases(d_model=512, warmup_steps=20, learning_rate=2.0),
)
def noam_decay(
    step: Array, *, d_model: Steps, warmup_steps: Steps, learning_rate: float = 1.0
) -> Array:
    """Linear warmup, then decay with the root of the steps: the schedule of the Transformer.

    ``learning_rate * d_model ** -0.5 * min(t ** -0.5, t * warmup_steps ** -1.5)`` where ``t`` is
    ``step``, but at least 1 (Vaswani et al., "Attention is all you need", 2017).

    Example:
        >>> import jax.numpy as jnp
        >>> noam_decay(jnp.asarray([4, 16]), d_model=4, warmup_steps=4)
        Array([0.25 , 0.125], dtype=float32)
    """
    t = jnp.maximum(after(step), 1.0)
    peak: float = learning_rate / d_model**0.5
    return peak * jnp.minimum(t**-0.5, t * warmup_steps**-1.5)


def _warmup_dtype(learning_rate: VarType, step: VarType) -> tuple[DType, bool]:
    rate_dtype(step)
    if not is_floating(learning_rate.dtype):
        raise DTypeError(f"learning_rate must be real floating, got {learning_rate.dtype.name}")
    return learning_rate.dtype, False


def _linear_warmup_reference(
    learning_rate: np.ndarray,
    step: np.ndarray,
    *,
    warmup_steps: float,
    start_value: float,
    end_value: float,
) -> np.ndarray:
    line = start_value + (end_value - start_value) * np.asarray(step) / warmup_steps
    rate = np.where(np.asarray(step) < warmup_steps, line, learning_rate)
    return rate.astype(np.asarray(learning_rate).dtype)


_LINE: dict[str, Any] = {"warmup_steps": 20, "start_value": 0.125, "end_value": 0.5}


@op(
    shape=same,
    dtype=_warmup_dtype,
    reference=_linear_warmup_reference,
    cases=[
        case(learning_rate=(20,), step=integers(20, high=40), **_LINE),
        case(learning_rate=(), step=integers(high=40), **_LINE),
        case(learning_rate=(0,), step=integers(0, high=40), **_LINE),
        misuse("must have the same shape", learning_rate=(2,), step=integers(3, high=40), **_LINE),
        misuse("step must be an integer", learning_rate=(2,), step=(2,), **_LINE),
    ],
)
def linear_warmup(
    learning_rate: Array,
    step: Array,
    *,
    warmup_steps: Steps,
    start_value: float,
    end_value: float,
) -> Array:
    """Linear warmup from ``start_value`` to ``end_value`` before any schedule.

    ``start_value + (end_value - start_value) * step / warmup_steps`` before ``warmup_steps``, and
    ``learning_rate`` from then on.

    Example:
        >>> import jax.numpy as jnp
        >>> rates, line = jnp.asarray([9.0, 9.0]), {"start_value": 0.0, "end_value": 1.0}
        >>> linear_warmup(rates, jnp.asarray([1, 2]), warmup_steps=2, **line)
        Array([0.5, 9. ], dtype=float32)
    """
    learning_rate = jnp.asarray(learning_rate)
    count = jnp.asarray(step).astype(default_float())
    line = start_value + (end_value - start_value) * count / warmup_steps
    early = line.astype(learning_rate.dtype)
    return jnp.where(count < warmup_steps, early, learning_rate.astype(learning_rate.dtype))


@linear_warmup.gradient
def _linear_warmup_gradient(
    learning_rate: Var, step: Var, d_out: Var, *, warmup_steps: float
) -> Grads:
    late = where(less(step, warmup_steps), 0.0, d_out)
    return {"learning_rate": returned(late, learning_rate), "step": None}


def _warmup_cosine_reference(
    t: np.ndarray,
    *,
    init_value: float,
    peak_value: float,
    warmup_steps: float,
    decay_steps: float,
    end_value: float,
    exponent: float,
) -> Any:
    line = init_value + (peak_value - init_value) * t / warmup_steps
    alpha = 0.0 if peak_value == 0 else end_value / peak_value
    span = {"init_value": peak_value, "decay_steps": decay_steps - warmup_steps}
    wave = cosine_reference(t - warmup_steps, **span, alpha=alpha, exponent=exponent)
    return np.where(t < warmup_steps, line, wave)


def _warmup_cosine_shape(step: Shape, *, warmup_steps: float, decay_steps: float) -> Shape:
    if decay_steps <= warmup_steps:
        raise AttributeValueError(
            f"decay_steps must exceed warmup_steps, got {decay_steps} and {warmup_steps}"
        )
    return step


_WAVE: dict[str, Any] = {"init_value": 0.0, "peak_value": 0.5, "warmup_steps": 10}


@schedule(
    _warmup_cosine_reference,
    shape=_warmup_cosine_shape,
    cases=[
        *schedule_cases(**_WAVE, decay_steps=30),
        *schedule_cases(**_WAVE, decay_steps=50, end_value=0.1, exponent=2.0)[:1],
        misuse(
            "decay_steps must exceed warmup_steps", step=integers(high=9), **_WAVE, decay_steps=5
        ),
    ],
)
def warmup_cosine_decay_schedule(
    step: Array,
    *,
    init_value: float,
    peak_value: float,
    warmup_steps: Steps,
    decay_steps: Steps,
    end_value: float = 0.0,
    exponent: Annotated[float, Check("be positive", lambda power: power > 0)] = 1.0,
) -> Array:
    """Linear warmup to ``peak_value``, then ``cosine_decay_schedule`` down to ``end_value``.

    The warmup takes ``warmup_steps``; both phases together take ``decay_steps``.

    Example:
        >>> import jax.numpy as jnp
        >>> steps, shape = jnp.asarray([0, 2, 6]), {"warmup_steps": 2, "decay_steps": 6}
        >>> warmup_cosine_decay_schedule(steps, init_value=0.0, peak_value=1.0, **shape)
        Array([0., 1., 0.], dtype=float32)
    """
    count = after(step)
    line = init_value + (peak_value - init_value) * count / warmup_steps
    span = decay_steps - warmup_steps
    done = jnp.clip(count - warmup_steps, 0.0, jnp.asarray(span)) / span
    cosine = jnp.power(0.5 * (1.0 + jnp.cos(np.pi * done)), exponent)
    wave = (peak_value - end_value) * cosine + end_value
    return jnp.where(count < warmup_steps, line, wave)
