"""A language model of two LSTM layers."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import numpy as np
import optax
from flax import linen as nn

VOCABULARY, LENGTH, WIDTH, LAYERS, BATCH = 512, 64, 128, 2, 16
OPTIMIZER = optax.adam(1e-3)


class Network(nn.Module):
    """The logits of the next token at each position."""

    @nn.compact
    def __call__(self, tokens: Any) -> Any:
        """Tokens to logits."""
        h = nn.Embed(VOCABULARY, WIDTH)(tokens)
        for _ in range(LAYERS):
            h = nn.RNN(nn.OptimizedLSTMCell(WIDTH))(h)
        return nn.Dense(VOCABULARY)(h)


def batches() -> Iterator[dict[str, np.ndarray]]:
    """Chains in which three tokens may follow each token, at random."""
    generator = np.random.default_rng(0)
    while True:
        chain = generator.integers(0, VOCABULARY, (BATCH, LENGTH + 1), np.int32)
        for i in range(LENGTH):
            chain[:, i + 1] = (5 * chain[:, i] + chain[:, i + 1] % 3) % VOCABULARY
        yield {"tokens": chain[:, :-1], "next": chain[:, 1:]}


def initial(batch: Any) -> Any:
    """The variables and the optimizer's state before the first step."""
    variables = Network().init(jax.random.key(0), batch["tokens"])
    return variables, OPTIMIZER.init(variables)


def make_step() -> Callable[..., Any]:
    """The training step."""
    network = Network()

    @partial(jax.jit, donate_argnums=0)
    def step(state: Any, batch: Any) -> Any:
        variables, opt_state = state

        def loss(variables: Any) -> Any:
            logits = network.apply(variables, batch["tokens"])
            return optax.softmax_cross_entropy_with_integer_labels(logits, batch["next"]).mean()

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
