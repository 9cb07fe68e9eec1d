"""A network that solves Burgers' equation ``u_t + u u_x = nu u_xx`` from a sine."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn

POINTS, WIDTH, LAYERS, VISCOSITY = 1024, 64, 4, 0.01 / np.pi
OPTIMIZER = optax.adam(1e-3)


class Network(nn.Module):
    """The solution, which is the sine at first and zero at both ends."""

    @nn.compact
    def __call__(self, x: Any, t: Any) -> Any:
        """Columns of places and times to one of numbers."""
        h = jnp.concatenate([x, t], axis=1)
        for _ in range(LAYERS):
            h = jnp.tanh(nn.Dense(WIDTH)(h))
        inside = t * (1 - x * x) * nn.Dense(1)(h)
        return inside - jnp.sin(np.pi * x)


def batches() -> Iterator[dict[str, np.ndarray]]:
    """Points between -1 and 1, and times between 0 and 1."""
    generator = np.random.default_rng(0)
    while True:
        x, t = generator.uniform([[[-1]], [[0]]], 1, (2, POINTS, 1)).astype(np.float32)
        yield {"x": x, "t": t}


def initial(batch: Any) -> Any:
    """The variables and the optimizer's state before the first step."""
    variables = Network().init(jax.random.key(0), batch["x"], batch["t"])
    return variables, OPTIMIZER.init(variables)


def make_step() -> Callable[..., Any]:
    """The training step."""
    network = Network()

    @partial(jax.jit, donate_argnums=0)
    def step(state: Any, batch: Any) -> Any:
        variables, opt_state = state

        def loss(variables: Any) -> Any:
            def u(x: Any, t: Any) -> Any:
                return network.apply(variables, x, t)

            def along_x(x: Any, t: Any) -> Any:
                return jax.jvp(lambda x: u(x, t), (x,), (jnp.ones_like(x),))

            x, t = batch["x"], batch["t"]
            ones = jnp.ones_like(x)
            (value, u_x), (_, u_xx) = jax.jvp(lambda x: along_x(x, t), (x,), (ones,))
            _, u_t = jax.jvp(lambda t: u(x, t), (t,), (ones,))
            return jnp.square(u_t + value * u_x - VISCOSITY * u_xx).mean()

        value, gradients = jax.value_and_grad(loss)(variables)
        updates, opt_state = OPTIMIZER.update(gradients, opt_state, variables)
        return (optax.apply_updates(variables, updates), opt_state), value

    return step


def run(steps: int = 100) -> list[float]:
    """Trains, and returns the losses."""
    state, step, losses = initial(next(batches())), make_step(), list[float]()
    for _, batch in zip(range(steps), batches(), strict=False):
        state, value = step(state, batch)
        losses.append(float(value))
    return losses


if __name__ == "__main__":
    losses = run()
    print(f"loss {losses[0]:.3f}, then {losses[-1]:.3f}")
