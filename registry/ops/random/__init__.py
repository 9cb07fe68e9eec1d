"""Random draws and log densities.

Samplers, whose draws are differentiable where theory permits, and densities.
"""

from registry.ops.random import (
    count_densities,
    counting,
    densities,
    discrete_draws,
    gamma_draws,
    rounding,
    sampling,
)

__all__ = [
    "count_densities",
    "counting",
    "densities",
    "discrete_draws",
    "gamma_draws",
    "rounding",
    "sampling",
]
