"""Learning rates as functions of the count of steps: constant and decaying ones."""

from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np

from registry.attributes import Check
from registry.cases import case, integers, misuse
from registry.errors import DTypeError
from registry.ops.updates import NotNegative
from registry.shapes import default_float, same
from registry.signature import Array
from registry.table import op
from registry.types import DType, VarType

Steps = Annotated[float, Check("be positive", lambda count: count > 0)]
"""A number of steps."""
NOT_FLOATING = "its input is an integer, the count of steps"
"""Why a schedule has no gradient."""


def rate_dtype(step: VarType) -> DType:
    """The default float, for a count of steps."""
    if step.dtype.kind not in "iu":
        raise DTypeError(f"step must be an integer, got {step.dtype.name}")
    return default_float()


def after(step: Any, begin: float = 0.0) -> Any:
    """Steps since ``begin``, as a floating number; none before it."""
    return jnp.maximum(jnp.asarray(step).astype(default_float()) - begin, 0.0)


def reference_after(step: np.ndarray, begin: float = 0.0) -> np.ndarray:
    """``after`` in NumPy."""
    return np.maximum(np.asarray(step, np.float64) - begin, 0.0)


def schedule_cases(**attributes: Any) -> list[Any]:
    """Cases of a schedule: many steps at once, and single ones."""
    return [
        case(step=integers(20, high=40), **attributes),
        case(step=integers(high=40), **attributes),
        case(step=integers(0, high=9), **attributes),
        misuse("step must be an integer, got float", step=(3,), **attributes),
    ]


_SCHEDULE: dict[str, Any] = {"shape": same, "dtype": rate_dtype}


@op(
    **_SCHEDULE,
    reference=lambda step, *, value: np.full(np.shape(step), value),
    cases=schedule_cases(value=0.5),
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


constant_schedule.no_gradient(NOT_FLOATING)


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
    spans = reference_after(step, transition_begin) / transition_steps
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
        *schedule_cases(init_value=0.5, transition_steps=10, decay_rate=0.75),
        *schedule_cases(init_value=0.5, transition_steps=7, decay_rate=0.5, staircase=True)[:1],
        *schedule_cases(
            init_value=0.5, transition_steps=9, decay_rate=0.5, transition_begin=4, end_value=0.1
        )[:1],
        *schedule_cases(init_value=0.5, transition_steps=9, decay_rate=1.5, end_value=0.7)[:1],
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
    spans = after(step, transition_begin) / transition_steps
    rate = init_value * jnp.power(decay_rate, jnp.floor(spans) if staircase else spans)
    if end_value is None:
        return rate
    return (jnp.maximum if decay_rate < 1 else jnp.minimum)(rate, end_value)


exponential_decay.no_gradient(NOT_FLOATING)


def _natural_reference(
    step: np.ndarray,
    *,
    init_value: float,
    transition_steps: float,
    decay_rate: float,
    staircase: bool = False,
) -> np.ndarray:
    spans = reference_after(step) / transition_steps
    return np.asarray(init_value * np.exp(-decay_rate * (np.floor(spans) if staircase else spans)))


@op(
    **_SCHEDULE,
    reference=_natural_reference,
    cases=[
        *schedule_cases(init_value=0.5, transition_steps=10, decay_rate=0.75),
        *schedule_cases(init_value=0.5, transition_steps=7, decay_rate=0.5, staircase=True)[:1],
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
    spans = after(step) / transition_steps
    return init_value * jnp.exp(-decay_rate * (jnp.floor(spans) if staircase else spans))


natural_exp_decay.no_gradient(NOT_FLOATING)


def _inverse_reference(
    step: np.ndarray,
    *,
    init_value: float,
    transition_steps: float,
    decay_rate: float,
    staircase: bool = False,
) -> np.ndarray:
    spans = reference_after(step) / transition_steps
    return np.asarray(init_value / (1 + decay_rate * (np.floor(spans) if staircase else spans)))


@op(
    **_SCHEDULE,
    reference=_inverse_reference,
    cases=[
        *schedule_cases(init_value=0.5, transition_steps=10, decay_rate=0.75),
        *schedule_cases(init_value=0.5, transition_steps=7, decay_rate=0.5, staircase=True)[:1],
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
    spans = after(step) / transition_steps
    return init_value / (1.0 + decay_rate * (jnp.floor(spans) if staircase else spans))


inverse_time_decay.no_gradient(NOT_FLOATING)


def _polynomial_reference(
    step: np.ndarray,
    *,
    init_value: float,
    end_value: float,
    power: float = 1.0,
    transition_steps: float,
    transition_begin: float = 0.0,
) -> np.ndarray:
    left = 1 - np.minimum(reference_after(step, transition_begin), transition_steps) / (
        transition_steps
    )
    return np.asarray((init_value - end_value) * left**power + end_value)


@op(
    **_SCHEDULE,
    reference=_polynomial_reference,
    aliases=["linear_schedule"],
    cases=[
        *schedule_cases(init_value=0.5, end_value=0.1, transition_steps=10),
        *schedule_cases(init_value=0.0, end_value=1.0, transition_steps=30, power=2.0)[:1],
        *schedule_cases(
            init_value=0.5, end_value=0.1, transition_steps=20, transition_begin=5, power=0.5
        )[:1],
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
    left = jnp.maximum(transition_steps - after(step, transition_begin), 0.0) / transition_steps
    return (init_value - end_value) * jnp.power(left, power) + end_value


polynomial_schedule.no_gradient(NOT_FLOATING)


def cosine_reference(
    step: np.ndarray,
    *,
    init_value: float,
    decay_steps: float,
    alpha: float = 0.0,
    exponent: float = 1.0,
) -> np.ndarray:
    """``cosine_decay_schedule`` in NumPy."""
    done = np.minimum(reference_after(step), decay_steps) / decay_steps
    cosine = np.maximum((1 + np.cos(np.pi * done)) / 2, 0.0)
    return np.asarray(init_value * ((1 - alpha) * cosine**exponent + alpha))


@op(
    **_SCHEDULE,
    reference=cosine_reference,
    cases=[
        *schedule_cases(init_value=0.5, decay_steps=30),
        *schedule_cases(init_value=0.5, decay_steps=50, alpha=0.1, exponent=2.0)[:1],
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
    done = jnp.minimum(after(step), decay_steps) / decay_steps
    cosine = 0.5 * (1.0 + jnp.cos(np.pi * done))
    return init_value * ((1.0 - alpha) * jnp.power(cosine, exponent) + alpha)


cosine_decay_schedule.no_gradient(NOT_FLOATING)
