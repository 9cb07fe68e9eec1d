"""A network that solves a differential equation: ``u'' = -pi^2 sin(pi x)``, zero at -1 and 1."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn


class Solution(nn.Module):
    """The solution at one point, zero at both ends."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        """A number to a number."""
        h = x[None]
        for _ in range(3):
            h = jnp.tanh(nn.Dense(32, kernel_init=nn.initializers.glorot_normal())(h))
        return (1.0 - x * x) * nn.Dense(1)(h)[0]


def run(steps: int = 1000) -> float:
    """Trains, and returns the largest error at 201 points."""
    points = jnp.linspace(-1, 1, 256)
    network = Solution()
    optimizer = optax.adam(optax.cosine_decay_schedule(5e-3, steps))
    params = network.init(jax.random.key(0), points[0])
    opt_state = optimizer.init(params)

    @jax.jit
    def step(params: Any, opt_state: Any, points: Any) -> Any:
        def loss(params: Any) -> Any:
            def u(x: Any) -> Any:
                return network.apply(params, x)

            u_xx = jax.vmap(jax.grad(jax.grad(u)))(points)
            return jnp.mean(jnp.square(u_xx + jnp.pi**2 * jnp.sin(jnp.pi * points)))

        value, grads = jax.value_and_grad(loss)(params)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, value

    for _ in range(steps):
        params, opt_state, _ = step(params, opt_state, points)
    fine = np.linspace(-1, 1, 201, dtype=np.float32)
    found = jax.jit(jax.vmap(lambda x: network.apply(params, x)))(fine)
    return float(np.abs(found - np.sin(np.pi * fine)).max())


if __name__ == "__main__":
    print(f"largest error {run():.1e}")
