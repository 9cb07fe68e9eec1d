"""Softmax and its kin with a mask."""

import jax.numpy as jnp
from jax import lax

from registry.signature import Array


def exponentials_over_sum(x: Array, axis: int | tuple[int, ...]) -> Array:
    """The softmax, and zeros where all of ``x`` along ``axis`` is minus infinity."""
    largest = lax.stop_gradient(jnp.max(x, axis, keepdims=True, initial=-jnp.inf))
    powers = jnp.exp(x - jnp.where(largest == -jnp.inf, 0, largest))
    total = jnp.sum(powers, axis, keepdims=True)
    return powers / jnp.where(total == 0, 1, total)
