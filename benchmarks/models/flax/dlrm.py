"""A recommender like DLRM: embeddings of categories, numbers, and their interactions."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn

TABLES, ROWS, WIDTH, NUMBERS, BATCH = 8, 20_000, 16, 13, 256
PAIRS = np.triu_indices(TABLES + 1, 1)
OPTIMIZER = optax.adagrad(0.05)


class Network(nn.Module):
    """The logit of a click."""

    @nn.compact
    def __call__(self, ids: Any, numbers: Any) -> Any:
        """Categories and numbers to logits."""

        def tower(x: Any, *widths: int) -> Any:
            for width in widths:
                x = nn.relu(nn.Dense(width)(x))
            return x

        dense = tower(numbers, 64, WIDTH)
        rows = nn.Embed(TABLES * ROWS, WIDTH, name="table")(ids + ROWS * np.arange(TABLES))
        features = jnp.concatenate([dense[:, None], rows], axis=1)
        products = features @ features.transpose(0, 2, 1)
        top = tower(jnp.concatenate([dense, products[:, *PAIRS]], axis=1), 64, 32)
        return nn.Dense(1)(top)[:, 0]


def batches() -> Iterator[dict[str, np.ndarray]]:
    """Clicks that depend on a category and a number; few categories are frequent."""
    generator = np.random.default_rng(0)
    while True:
        ids = (ROWS * generator.random((BATCH, TABLES)) ** 4).astype(np.int32)
        numbers = generator.normal(size=(BATCH, NUMBERS)).astype(np.float32)
        score = 3 * np.sin(ids[:, 0]) + numbers[:, 0]
        yield {"ids": ids, "numbers": numbers, "clicked": np.float32(score > 0)}


def initial(batch: Any) -> Any:
    """The variables and the optimizer's state before the first step."""
    variables = Network().init(jax.random.key(0), batch["ids"], batch["numbers"])
    return variables, OPTIMIZER.init(variables)


def make_step() -> Callable[..., Any]:
    """The training step."""
    network = Network()

    @partial(jax.jit, donate_argnums=0)
    def step(state: Any, batch: Any) -> Any:
        variables, opt_state = state

        def loss(variables: Any) -> Any:
            logits = network.apply(variables, batch["ids"], batch["numbers"])
            return optax.sigmoid_binary_cross_entropy(logits, batch["clicked"]).mean()

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
