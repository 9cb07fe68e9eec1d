"""Learning rates that change with the step, computed by operators of the program."""

import math
from collections.abc import Sequence

from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.guards import default_main_program, role_guard
from symop.interop.paddle.programs import Variable
from symop.interop.paddle.roles import SCHEDULE
from symop.interop.paddle.static.initializer import Constant
from symop.interop.paddle.static.layers.activations import ceil, cos, exp, floor
from symop.interop.paddle.static.layers.control_flow import Switch
from symop.interop.paddle.static.layers.elementwise import (
    elementwise_max,
    elementwise_min,
    less_than,
)
from symop.interop.paddle.static.layers.tensors import assign, cast, fill_constant
from symop.interop.paddle.static.parameters import create_global_var, initialize

COUNTER = "@LR_DECAY_COUNTER@"
"""The variable that counts steps."""


def autoincreased_step_counter(
    counter_name: str | None = None, begin: int = 1, step: int = 1
) -> Variable:
    """Returns a variable that counts the runs of the program.

    Args:
        counter_name: its name.
        begin: its value in the first run.
        step: what each run adds.
    """
    name = counter_name or "@STEP_COUNTER@"
    block = default_main_program().global_block()
    if block.has_var(name):
        return block.var(name)
    counter = block.create_var(name, [1], "int64", persistable=True, stop_gradient=True)
    initialize(counter, Constant(begin - 1, force_cpu=True))
    block.prepend_op("increment", {"X": counter}, {"Out": counter}, {"step": float(step)})
    return counter


def _step(begin: int = 0) -> Variable:
    return cast(autoincreased_step_counter(COUNTER, begin), "float32")


def noam_decay(d_model: float, warmup_steps: float, learning_rate: float = 1.0) -> Variable:
    """Returns the rate of the transformer: linear, then by the inverse square root of the step."""
    with role_guard(default_main_program(), SCHEDULE):
        step = _step(1)
        rate: Variable = elementwise_min(step**-0.5, step * float(warmup_steps**-1.5))
        return rate * float(learning_rate * d_model**-0.5)


def exponential_decay(
    learning_rate: float, decay_steps: int, decay_rate: float, staircase: bool = False
) -> Variable:
    """Returns ``learning_rate * decay_rate ** (step / decay_steps)``."""
    with role_guard(default_main_program(), SCHEDULE):
        steps = _divided(_step(), decay_steps, staircase)
        return exp(steps * math.log(decay_rate)) * learning_rate


def natural_exp_decay(
    learning_rate: float, decay_steps: int, decay_rate: float, staircase: bool = False
) -> Variable:
    """Returns ``learning_rate * exp(-decay_rate * step / decay_steps)``."""
    with role_guard(default_main_program(), SCHEDULE):
        steps = _divided(_step(), decay_steps, staircase)
        return exp(steps * -decay_rate) * learning_rate


def inverse_time_decay(
    learning_rate: float, decay_steps: int, decay_rate: float, staircase: bool = False
) -> Variable:
    """Returns ``learning_rate / (1 + decay_rate * step / decay_steps)``."""
    with role_guard(default_main_program(), SCHEDULE):
        steps = _divided(_step(), decay_steps, staircase)
        return learning_rate / (steps * decay_rate + 1.0)


def _divided(step: Variable, decay_steps: int, staircase: bool) -> Variable:
    steps = step / float(decay_steps)
    return floor(steps) if staircase else steps


def polynomial_decay(
    learning_rate: float,
    decay_steps: int,
    end_learning_rate: float = 0.0001,
    power: float = 1.0,
    cycle: bool = False,
) -> Variable:
    """Returns a rate that falls to ``end_learning_rate`` by a power of the remaining steps."""
    with role_guard(default_main_program(), SCHEDULE):
        step = _step()
        whole = fill_constant([1], "float32", float(decay_steps))
        if cycle:
            turns = elementwise_max(
                ceil(step / float(decay_steps)), fill_constant([1], "float32", 1.0)
            )
            whole = turns * float(decay_steps)
        else:
            step = elementwise_min(step, whole)
        remaining = (1.0 - step / whole) ** power
        return remaining * (learning_rate - end_learning_rate) + end_learning_rate


def piecewise_decay(boundaries: Sequence[float], values: Sequence[float]) -> Variable:
    """Returns a rate that is constant between boundaries.

    Args:
        boundaries: the steps at which it changes.
        values: the rates, one more than boundaries.

    Raises:
        PaddleError: the numbers of boundaries and of rates do not fit.
    """
    if len(values) != len(boundaries) + 1:
        raise PaddleError(
            f"piecewise_decay: there must be {len(boundaries) + 1} values, got {len(values)}"
        )
    with role_guard(default_main_program(), SCHEDULE):
        step = _step()
        rate = create_global_var([1], 0.0, "float32", persistable=True, name="learning_rate")
        with Switch() as switch:
            for boundary, value in zip(boundaries, values[:-1], strict=True):
                bound = fill_constant([1], "float32", float(boundary), force_cpu=True)
                chosen = fill_constant([1], "float32", float(value))
                with switch.case(step < bound):
                    assign(chosen, rate)
            last = fill_constant([1], "float32", float(values[-1]))
            with switch.default():
                assign(last, rate)
        return rate


def cosine_decay(learning_rate: float, step_each_epoch: int, epochs: int) -> Variable:
    """Returns half a wave of the cosine over all epochs."""
    with role_guard(default_main_program(), SCHEDULE):
        epoch = floor(_step() / float(step_each_epoch))
        return (cos(epoch * (math.pi / epochs)) + 1.0) * (0.5 * learning_rate)


def linear_lr_warmup(
    learning_rate: float | Variable, warmup_steps: int, start_lr: float, end_lr: float
) -> Variable:
    """Returns a rate that rises linearly, then ``learning_rate``."""
    with role_guard(default_main_program(), SCHEDULE):
        step = _step()
        bound = fill_constant([1], "float32", float(warmup_steps))
        rising = cast(less_than(step, bound), "float32")
        slope = (end_lr - start_lr) / float(warmup_steps)
        return rising * (step * slope + start_lr) + (1.0 - rising) * learning_rate
