"""A graph network: edges send messages, and nodes add up those that they receive."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn

NODES, EDGES, WIDTH, LAYERS = 512, 4096, 64, 4
OPTIMIZER = optax.adam(3e-4)


class Network(nn.Module):
    """A number for each node."""

    @nn.compact
    def __call__(self, number: Any, sender: Any, receiver: Any) -> Any:
        """Numbers of the nodes and ends of the edges to numbers."""

        def mlp(x: Any, *widths: int) -> Any:
            for width in widths[:-1]:
                x = nn.relu(nn.Dense(width)(x))
            return nn.Dense(widths[-1])(x)

        h = mlp(number, WIDTH, WIDTH)
        for _ in range(LAYERS):
            messages = mlp(jnp.concatenate([h[sender], h[receiver]], axis=1), WIDTH, WIDTH)
            received = jax.ops.segment_sum(messages, receiver, NODES)
            changed = mlp(jnp.concatenate([h, received], axis=1), WIDTH, WIDTH)
            h = nn.LayerNorm(epsilon=1e-5)(h + changed)
        return mlp(h, WIDTH, 1)


def batches() -> Iterator[dict[str, np.ndarray]]:
    """Random graphs, whose nodes have the mean of their neighbors' numbers as targets."""
    generator = np.random.default_rng(0)
    while True:
        sender, receiver = generator.integers(0, NODES, (2, EDGES), np.int32)
        number = generator.normal(size=(NODES, 1)).astype(np.float32)
        total, count = np.zeros((NODES, 1), np.float32), np.ones((NODES, 1), np.float32)
        np.add.at(total, receiver, number[sender])
        np.add.at(count, receiver, 1)
        target = total / count
        yield {"number": number, "sender": sender, "receiver": receiver, "target": target}


def initial(batch: Any) -> Any:
    """The variables and the optimizer's state before the first step."""
    variables = Network().init(
        jax.random.key(0), batch["number"], batch["sender"], batch["receiver"]
    )
    return variables, OPTIMIZER.init(variables)


def make_step() -> Callable[..., Any]:
    """The training step."""
    network = Network()

    @partial(jax.jit, donate_argnums=0)
    def step(state: Any, batch: Any) -> Any:
        variables, opt_state = state

        def loss(variables: Any) -> Any:
            given = batch["number"], batch["sender"], batch["receiver"]
            return jnp.square(network.apply(variables, *given) - batch["target"]).mean()

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
