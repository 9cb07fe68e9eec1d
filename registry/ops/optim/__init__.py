"""Optimizer updates.

Update rules, one operator each, learning-rate schedules, and gradient clipping.
"""

from registry.ops.optim import (
    adam,
    adam_variants,
    adaptive,
    first_order,
    follow_the_leader,
    gradient_clipping,
    learning_rates,
    piecewise_rates,
    rmsprop,
    rmsprop_velocity,
    updates,
)

__all__ = [
    "adam",
    "adam_variants",
    "adaptive",
    "first_order",
    "follow_the_leader",
    "gradient_clipping",
    "learning_rates",
    "piecewise_rates",
    "rmsprop",
    "rmsprop_velocity",
    "updates",
]
