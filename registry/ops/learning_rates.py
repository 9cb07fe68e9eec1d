"""Learning rates as functions of the count of steps: constant, decaying, piecewise, warming up."""

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
from registry.ops.updates import NotNegative, returned
from registry.shapes import default_float, same
from registry.signature import Array
from registry.table import op
from registry.types import DType, Shape, VarType, is_inexact
from registry.var import Var

Steps = Annotated[float, Check("be positive", lambda count: count > 0)]
"""A number of steps."""
_COUNT = "its input is an integer, the count of steps"


def _rate_dtype(step: VarType) -> DType:
    if step.dtype.kind not in "iu":
        raise DTypeError(f"step must be an integer, got {step.dtype.name}")
    return default_float()


def _after(step: Any, begin: float = 0.0) -> Any:
    """Steps since ``begin``, as a floating number; none before it."""
    return jnp.maximum(jnp.asarray(step).astype(default_float()) - begin, 0.0)


def _reference_after(step: np.ndarray, begin: float = 0.0) -> np.ndarray:
    return np.maximum(np.asarray(step, np.float64) - begin, 0.0)


def _cases(**attributes: Any) -> list[Any]:
    """Cases of a schedule: many steps at once, and single ones."""
    return [
        case(step=integers(20, high=40), **attributes),
        case(step=integers(high=40), **attributes),
        case(step=integers(0, high=9), **attributes),
        misuse("step must be an integer, got float", step=(3,), **attributes),
    ]


_SCHEDULE: dict[str, Any] = {"shape": same, "dtype": _rate_dtype}


@op(
    **_SCHEDULE,
    reference=lambda step, *, value: np.full(np.shape(step), value),
    cases=_cases(value=0.5),
)
def constant_schedule(step: Array, *, value: float) -> Array:
    """``value`` at every step.

    ``step`` counts the steps before this one, as in every schedule: the first has zero. It may be
    an array, of whose shape the result is then.

    Example:
        >>> import jax.numpy as jnp
        >>> constant_schedule(jnp.asarray([0, 9]), value=0.5)
        Array([0.5, 0.5], dtype=float32)
    """
    return jnp.full(jnp.shape(step), value, default_float())


constant_schedule.no_gradient(_COUNT)


# Decays ------------------------------------------------------------------------------------------


def _exponential_reference(
    step: np.ndarray,
    *,
    init_value: float,
    transition_steps: float,
    decay_rate: float,
    transition_begin: float = 0.0,
    staircase: bool = False,
    end_value: float | None = None,
) -> np.ndarray:
    spans = _reference_after(step, transition_begin) / transition_steps
    rate = init_value * decay_rate ** (np.floor(spans) if staircase else spans)
    if end_value is None:
        return np.asarray(rate)
    return np.asarray(
        np.maximum(rate, end_value) if decay_rate < 1 else np.minimum(rate, end_value)
    )


@op(
    **_SCHEDULE,
    reference=_exponential_reference,
    cases=[
        *_cases(init_value=0.5, transition_steps=10, decay_rate=0.75),
        *_cases(init_value=0.5, transition_steps=7, decay_rate=0.5, staircase=True)[:1],
        *_cases(
            init_value=0.5, transition_steps=9, decay_rate=0.5, transition_begin=4, end_value=0.1
        )[:1],
        *_cases(init_value=0.5, transition_steps=9, decay_rate=1.5, end_value=0.7)[:1],
        misuse(
            "'transition_steps' must be positive",
            step=integers(high=9),
            init_value=0.1,
            transition_steps=0,
            decay_rate=0.5,
        ),
    ],
)
def exponential_decay(
    step: Array,
    *,
    init_value: float,
    transition_steps: Steps,
    decay_rate: Annotated[float, Check("be positive", lambda rate: rate > 0)],
    transition_begin: NotNegative = 0.0,
    staircase: bool = False,
    end_value: float | None = None,
) -> Array:
    """``init_value * decay_rate ** (step / transition_steps)``, bounded by ``end_value``.

    Steps count from ``transition_begin``. With ``staircase`` the quotient is rounded down.

    Example:
        >>> import jax.numpy as jnp
        >>> exponential_decay(jnp.asarray(20), init_value=1.0, transition_steps=10, decay_rate=0.5)
        Array(0.25, dtype=float32)
    """
    spans = _after(step, transition_begin) / transition_steps
    rate = init_value * jnp.power(decay_rate, jnp.floor(spans) if staircase else spans)
    if end_value is None:
        return rate
    return (jnp.maximum if decay_rate < 1 else jnp.minimum)(rate, end_value)


exponential_decay.no_gradient(_COUNT)


def _natural_reference(
    step: np.ndarray,
    *,
    init_value: float,
    transition_steps: float,
    decay_rate: float,
    staircase: bool = False,
) -> np.ndarray:
    spans = _reference_after(step) / transition_steps
    return np.asarray(init_value * np.exp(-decay_rate * (np.floor(spans) if staircase else spans)))


@op(
    **_SCHEDULE,
    reference=_natural_reference,
    cases=[
        *_cases(init_value=0.5, transition_steps=10, decay_rate=0.75),
        *_cases(init_value=0.5, transition_steps=7, decay_rate=0.5, staircase=True)[:1],
    ],
)
def natural_exp_decay(
    step: Array,
    *,
    init_value: float,
    transition_steps: Steps,
    decay_rate: float,
    staircase: bool = False,
) -> Array:
    """``init_value * exp(-decay_rate * step / transition_steps)``.

    With ``staircase`` the quotient of steps is rounded down.

    Example:
        >>> import jax.numpy as jnp
        >>> natural_exp_decay(jnp.asarray(0), init_value=1.0, transition_steps=9, decay_rate=0.5)
        Array(1., dtype=float32)
    """
    spans = _after(step) / transition_steps
    return init_value * jnp.exp(-decay_rate * (jnp.floor(spans) if staircase else spans))


natural_exp_decay.no_gradient(_COUNT)


def _inverse_reference(
    step: np.ndarray,
    *,
    init_value: float,
    transition_steps: float,
    decay_rate: float,
    staircase: bool = False,
) -> np.ndarray:
    spans = _reference_after(step) / transition_steps
    return np.asarray(init_value / (1 + decay_rate * (np.floor(spans) if staircase else spans)))


@op(
    **_SCHEDULE,
    reference=_inverse_reference,
    cases=[
        *_cases(init_value=0.5, transition_steps=10, decay_rate=0.75),
        *_cases(init_value=0.5, transition_steps=7, decay_rate=0.5, staircase=True)[:1],
        misuse(
            "'decay_rate' must not be negative",
            step=integers(high=9),
            init_value=0.1,
            transition_steps=2,
            decay_rate=-0.5,
        ),
    ],
)
def inverse_time_decay(
    step: Array,
    *,
    init_value: float,
    transition_steps: Steps,
    decay_rate: NotNegative,
    staircase: bool = False,
) -> Array:
    """``init_value / (1 + decay_rate * step / transition_steps)``.

    With ``staircase`` the quotient of steps is rounded down.

    Example:
        >>> import jax.numpy as jnp
        >>> inverse_time_decay(jnp.asarray(20), init_value=1.0, transition_steps=10, decay_rate=0.5)
        Array(0.5, dtype=float32)
    """
    spans = _after(step) / transition_steps
    return init_value / (1.0 + decay_rate * (jnp.floor(spans) if staircase else spans))


inverse_time_decay.no_gradient(_COUNT)


def _polynomial_reference(
    step: np.ndarray,
    *,
    init_value: float,
    end_value: float,
    power: float = 1.0,
    transition_steps: float,
    transition_begin: float = 0.0,
) -> np.ndarray:
    left = 1 - np.minimum(_reference_after(step, transition_begin), transition_steps) / (
        transition_steps
    )
    return np.asarray((init_value - end_value) * left**power + end_value)


@op(
    **_SCHEDULE,
    reference=_polynomial_reference,
    aliases=["linear_schedule"],
    cases=[
        *_cases(init_value=0.5, end_value=0.1, transition_steps=10),
        *_cases(init_value=0.0, end_value=1.0, transition_steps=30, power=2.0)[:1],
        *_cases(init_value=0.5, end_value=0.1, transition_steps=20, transition_begin=5, power=0.5)[
            :1
        ],
    ],
)
def polynomial_schedule(
    step: Array,
    *,
    init_value: float,
    end_value: float,
    transition_steps: Steps,
    power: Annotated[float, Check("be positive", lambda power: power > 0)] = 1.0,
    transition_begin: NotNegative = 0.0,
) -> Array:
    """From ``init_value`` to ``end_value`` in ``transition_steps``: a straight line, or a power.

    ``end_value + (init_value - end_value) * (1 - step / transition_steps) ** power``, where steps
    count from ``transition_begin`` and no further than ``transition_steps``.

    Example:
        >>> import jax.numpy as jnp
        >>> polynomial_schedule(jnp.asarray(5), init_value=1.0, end_value=0.0, transition_steps=10)
        Array(0.5, dtype=float32)
    """
    # Not 1 - step / transition_steps, which may be rounded to less than zero at the end.
    left = jnp.maximum(transition_steps - _after(step, transition_begin), 0.0) / transition_steps
    return (init_value - end_value) * jnp.power(left, power) + end_value


polynomial_schedule.no_gradient(_COUNT)


def _cosine_reference(
    step: np.ndarray,
    *,
    init_value: float,
    decay_steps: float,
    alpha: float = 0.0,
    exponent: float = 1.0,
) -> np.ndarray:
    done = np.minimum(_reference_after(step), decay_steps) / decay_steps
    cosine = np.maximum((1 + np.cos(np.pi * done)) / 2, 0.0)
    return np.asarray(init_value * ((1 - alpha) * cosine**exponent + alpha))


@op(
    **_SCHEDULE,
    reference=_cosine_reference,
    cases=[
        *_cases(init_value=0.5, decay_steps=30),
        *_cases(init_value=0.5, decay_steps=50, alpha=0.1, exponent=2.0)[:1],
    ],
)
def cosine_decay_schedule(
    step: Array,
    *,
    init_value: float,
    decay_steps: Steps,
    alpha: float = 0.0,
    exponent: Annotated[float, Check("be positive", lambda power: power > 0)] = 1.0,
) -> Array:
    """Half a wave of a cosine from ``init_value`` down to ``alpha * init_value``.

    ``init_value * ((1 - alpha) * c ** exponent + alpha)`` with ``c = (1 + cos(pi * step /
    decay_steps)) / 2`` up to ``decay_steps`` (Loshchilov and Hutter, "SGDR: stochastic gradient
    descent with warm restarts", 2017).

    Example:
        >>> import jax.numpy as jnp
        >>> cosine_decay_schedule(jnp.asarray([0, 10]), init_value=1.0, decay_steps=10)
        Array([1., 0.], dtype=float32)
    """
    done = jnp.minimum(_after(step), decay_steps) / decay_steps
    cosine = 0.5 * (1.0 + jnp.cos(np.pi * done))
    return init_value * ((1.0 - alpha) * jnp.power(cosine, exponent) + alpha)


cosine_decay_schedule.no_gradient(_COUNT)


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
    dtype=_rate_dtype,
    reference=_piecewise_reference,
    cases=[
        *_cases(boundaries=(10, 20), values=(0.5, 0.25, 0.1)),
        *_cases(boundaries=(), values=(0.5,))[:1],
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


piecewise_decay.no_gradient(_COUNT)


# Warming up --------------------------------------------------------------------------------------


def _noam_reference(
    step: np.ndarray, *, d_model: float, warmup_steps: float, learning_rate: float = 1.0
) -> np.ndarray:
    t = np.maximum(np.asarray(step, np.float64), 1)
    return np.asarray(learning_rate * d_model**-0.5 * np.minimum(t**-0.5, t * warmup_steps**-1.5))


@op(
    **_SCHEDULE,
    reference=_noam_reference,
    cases=_cases(d_model=512, warmup_steps=20, learning_rate=2.0),
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
    t = jnp.maximum(_after(step), 1.0)
    peak = learning_rate / math.sqrt(d_model)
    return peak * jnp.minimum(t**-0.5, t * warmup_steps**-1.5)


noam_decay.no_gradient(_COUNT)


def _warmup_dtype(learning_rate: VarType, step: VarType) -> tuple[DType, bool]:
    _rate_dtype(step)
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
    wave = _cosine_reference(
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
    dtype=_rate_dtype,
    reference=_warmup_cosine_reference,
    cases=[
        *_cases(**_WAVE, decay_steps=30),
        *_cases(**_WAVE, decay_steps=50, end_value=0.1, exponent=2.0)[:1],
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
    count = _after(step)
    line = init_value + (peak_value - init_value) * count / warmup_steps
    span = decay_steps - warmup_steps
    done = jnp.clip(count - warmup_steps, 0.0, span) / span
    cosine = jnp.power(0.5 * (1.0 + jnp.cos(np.pi * done)), exponent)
    wave = (peak_value - end_value) * cosine + end_value
    return jnp.where(count < warmup_steps, line, wave)


warmup_cosine_decay_schedule.no_gradient(_COUNT)
