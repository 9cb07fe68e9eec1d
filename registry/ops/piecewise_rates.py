"""Learning rates in pieces: constants that change, and warming up before a schedule."""

import math
from collections.abc import Sequence
from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np

from registry.attributes import Check
from registry.cases import case, integers, misuse
from registry.errors import AttributeValueError, DTypeError
from registry.operator import Grads
from registry.ops.comparison import less
from registry.ops.elementwise import where
from registry.ops.learning_rates import (
    NOT_FLOATING,
    Steps,
    after,
    cosine_reference,
    rate_dtype,
    schedule_cases,
)
from registry.ops.updates import returned
from registry.shapes import default_float, same
from registry.signature import Array
from registry.table import op
from registry.types import DType, Shape, VarType, is_inexact
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


def _piecewise_reference(
    step: np.ndarray, *, boundaries: Sequence[int], values: Sequence[float]
) -> np.ndarray:
    return np.asarray(values)[np.searchsorted(np.asarray(boundaries, int), step, side="right")]


@op(
    shape=_piecewise_shape,
    dtype=rate_dtype,
    reference=_piecewise_reference,
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
    """``values[i]`` from step ``boundaries[i - 1]`` on, up to and without ``boundaries[i]``.

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


piecewise_decay.no_gradient(NOT_FLOATING)


# Warming up --------------------------------------------------------------------------------------


def _noam_reference(
    step: np.ndarray, *, d_model: float, warmup_steps: float, learning_rate: float = 1.0
) -> np.ndarray:
    t = np.maximum(np.asarray(step, np.float64), 1)
    return np.asarray(learning_rate * d_model**-0.5 * np.minimum(t**-0.5, t * warmup_steps**-1.5))


@op(
    shape=same,
    dtype=rate_dtype,
    reference=_noam_reference,
    cases=schedule_cases(d_model=512, warmup_steps=20, learning_rate=2.0),
)
def noam_decay(
    step: Array, *, d_model: Steps, warmup_steps: Steps, learning_rate: float = 1.0
) -> Array:
    """Up in ``warmup_steps``, then down with the root of the steps: the Transformer's schedule.

    ``learning_rate * d_model ** -0.5 * min(t ** -0.5, t * warmup_steps ** -1.5)`` where ``t`` is
    ``step``, but 1 at the first (Vaswani et al., "Attention is all you need", 2017).

    Example:
        >>> import jax.numpy as jnp
        >>> noam_decay(jnp.asarray([4, 16]), d_model=4, warmup_steps=4)
        Array([0.25 , 0.125], dtype=float32)
    """
    t = jnp.maximum(after(step), 1.0)
    peak = learning_rate / math.sqrt(d_model)
    return peak * jnp.minimum(t**-0.5, t * warmup_steps**-1.5)


noam_decay.no_gradient(NOT_FLOATING)


def _warmup_dtype(learning_rate: VarType, step: VarType) -> tuple[DType, bool]:
    rate_dtype(step)
    if not is_inexact(learning_rate.dtype) or learning_rate.dtype.kind == "c":
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
    """In front of any schedule a straight line from ``start_value`` to ``end_value``.

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
    step: np.ndarray,
    *,
    init_value: float,
    peak_value: float,
    warmup_steps: float,
    decay_steps: float,
    end_value: float = 0.0,
    exponent: float = 1.0,
) -> np.ndarray:
    line = init_value + (peak_value - init_value) * np.asarray(step) / warmup_steps
    alpha = 0.0 if peak_value == 0 else end_value / peak_value
    wave = cosine_reference(
        np.asarray(step) - warmup_steps,
        init_value=peak_value,
        decay_steps=decay_steps - warmup_steps,
        alpha=alpha,
        exponent=exponent,
    )
    return np.where(np.asarray(step) < warmup_steps, line, wave)


def _warmup_cosine_shape(step: Shape, *, warmup_steps: float, decay_steps: float) -> Shape:
    if decay_steps <= warmup_steps:
        raise AttributeValueError(
            f"decay_steps must exceed warmup_steps, got {decay_steps} and {warmup_steps}"
        )
    return step


_WAVE: dict[str, Any] = {"init_value": 0.0, "peak_value": 0.5, "warmup_steps": 10}


@op(
    shape=_warmup_cosine_shape,
    dtype=rate_dtype,
    reference=_warmup_cosine_reference,
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
    """A straight line up to ``peak_value``, then ``cosine_decay_schedule`` down to ``end_value``.

    The line takes ``warmup_steps``; both together take ``decay_steps``.

    Example:
        >>> import jax.numpy as jnp
        >>> steps, shape = jnp.asarray([0, 2, 6]), {"warmup_steps": 2, "decay_steps": 6}
        >>> warmup_cosine_decay_schedule(steps, init_value=0.0, peak_value=1.0, **shape)
        Array([0., 1., 0.], dtype=float32)
    """
    count = after(step)
    line = init_value + (peak_value - init_value) * count / warmup_steps
    span = decay_steps - warmup_steps
    done = jnp.clip(count - warmup_steps, 0.0, span) / span
    cosine = jnp.power(0.5 * (1.0 + jnp.cos(np.pi * done)), exponent)
    wave = (peak_value - end_value) * cosine + end_value
    return jnp.where(count < warmup_steps, line, wave)


warmup_cosine_decay_schedule.no_gradient(NOT_FLOATING)
