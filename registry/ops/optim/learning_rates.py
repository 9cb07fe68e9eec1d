"""Constant and decaying learning rates as functions of the step count."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np

from registry.cases import Case, Misuse, case, integers, misuse
from registry.errors import DTypeError
from registry.operator.attributes import Check
from registry.operator.operator import Operator
from registry.operator.signature import Array
from registry.ops.optim.updates import NotNegative
from registry.shapes import default_float, same
from registry.table import op
from registry.types import DType, VarType, is_integer

Steps = Annotated[float, Check("be positive", lambda count: count > 0)]
"""A number of steps."""


def rate_dtype(step: VarType) -> DType:
    """Returns the default float, for a step count."""
    if not is_integer(step.dtype):
        raise DTypeError(f"step must be an integer, got {step.dtype.name}")
    return default_float()


def after(step: Any, begin: float = 0.0) -> Any:
    """Returns the number of steps since ``begin`` in floating point; zero before it."""
    return jnp.maximum(jnp.asarray(step).astype(default_float()) - begin, 0.0)


def schedule_cases(**attributes: Any) -> list[Any]:
    """Returns cases of a schedule: many steps at once, and single ones."""
    return [
        case(step=integers(20, high=40), **attributes),
        case(step=integers(high=40), **attributes),
        case(step=integers(0, high=9), **attributes),
        misuse("step must be an integer, got float", step=(3,), **attributes),
    ]


def schedule(
    reference: Callable[..., Any], *, cases: Sequence[Case | Misuse], **options: Any
) -> Callable[[Callable[..., Any]], Operator]:
    """Declares a function of step counts: one rate of the default float for each.

    Args:
        reference: the same function in NumPy, of step counts in double precision.
        cases: sample calls.
        **options: those of ``op``.
    """

    def rates(step: np.ndarray, **attributes: Any) -> np.ndarray:
        return np.asarray(reference(np.asarray(step, np.float64), **attributes))

    def declare(kernel: Callable[..., Any]) -> Operator:
        operator: Operator = op(
            **{"shape": same, "dtype": rate_dtype, "reference": rates, "cases": cases, **options}
        )(kernel)
        operator.no_gradient("its input is an integer, the count of steps")
        return operator

    return declare


@schedule(
    lambda t, *, value: np.full(np.shape(t), value),
    cases=schedule_cases(value=0.5),
)
def constant_schedule(step: Array, *, value: float) -> Array:
    """``value`` at every step.

    As in every schedule, ``step`` is the number of previous steps: zero at the first one. It may be
    an array, and the result has its shape.

    Example:
        >>> import jax.numpy as jnp
        >>> constant_schedule(jnp.asarray([0, 9]), value=0.5)
        Array([0.5, 0.5], dtype=float32)
    """
    return jnp.full(jnp.shape(step), value, default_float())


# Decays ------------------------------------------------------------------------------------------


def _spans(
    t: np.ndarray, *, transition_steps: float, staircase: bool, transition_begin: float = 0.0
) -> Any:
    """The number of transitions since their beginning, in NumPy."""
    spans = np.maximum(t - transition_begin, 0.0) / transition_steps
    return np.floor(spans) if staircase else spans


def _exponential_reference(
    t: np.ndarray, *, init_value: float, decay_rate: float, end_value: float | None, **spans: Any
) -> Any:
    rate = init_value * decay_rate ** _spans(t, **spans)
    if end_value is None:
        return rate
    return np.maximum(rate, end_value) if decay_rate < 1 else np.minimum(rate, end_value)


@schedule(
    _exponential_reference,
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

    Steps are counted from ``transition_begin``. With ``staircase`` the quotient is rounded down.

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


@schedule(
    lambda t, *, init_value, decay_rate, **spans: (
        init_value * np.exp(-decay_rate * _spans(t, **spans))
    ),
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


@schedule(
    lambda t, *, init_value, decay_rate, **spans: (
        init_value / (1 + decay_rate * _spans(t, **spans))
    ),
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


def _polynomial_reference(
    t: np.ndarray, *, init_value: float, end_value: float, power: float, **spans: float
) -> Any:
    left = 1 - np.minimum(_spans(t, staircase=False, **spans), 1)
    return (init_value - end_value) * left**power + end_value


@schedule(
    _polynomial_reference,
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
    """From ``init_value`` to ``end_value`` in ``transition_steps``, linearly or by a power law.

    ``end_value + (init_value - end_value) * (1 - step / transition_steps) ** power``, where steps
    are counted from ``transition_begin`` and at most up to ``transition_steps``.

    Example:
        >>> import jax.numpy as jnp
        >>> polynomial_schedule(jnp.asarray(5), init_value=1.0, end_value=0.0, transition_steps=10)
        Array(0.5, dtype=float32)
    """
    # Not 1 - step / transition_steps, which may round to less than zero at the end.
    left = jnp.maximum(transition_steps - after(step, transition_begin), 0.0) / transition_steps
    return (init_value - end_value) * jnp.power(left, power) + end_value


def cosine_reference(
    t: np.ndarray, *, init_value: float, decay_steps: float, alpha: float, exponent: float
) -> Any:
    """Computes ``cosine_decay_schedule`` in NumPy."""
    cosine = np.maximum((1 + np.cos(np.pi * np.clip(t / decay_steps, 0, 1))) / 2, 0.0)
    return init_value * ((1 - alpha) * cosine**exponent + alpha)


@schedule(
    cosine_reference,
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
    """Half a cosine wave from ``init_value`` down to ``alpha * init_value``.

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
