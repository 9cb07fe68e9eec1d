"""A language model of two LSTM layers."""

from collections.abc import Iterator

import numpy as np
import optax

import symop as so
from symop import train

VOCABULARY, LENGTH, WIDTH, LAYERS, BATCH = 512, 64, 128, 2, 16


def network(tokens: so.Symbol) -> so.Symbol:
    """The logits of the next token at each position, positions first."""
    h = so.lookup_table(so.permute_dims(tokens, axes=(1, 0)), rows=VOCABULARY, width=WIDTH)
    for i in range(LAYERS):
        shapes = {"input": (4 * WIDTH, WIDTH), "recurrent": (4 * WIDTH, WIDTH)}
        weights = [so.var(f"{name}{i}", shape=shape) for name, shape in shapes.items()]
        bias = so.var(f"bias{i}", shape=(4 * WIDTH,), initial=0)
        h = so.lstm(h, None, None, None, *weights, bias, so.zeros_like(bias))[0]
    return so.fully_connected(h, units=VOCABULARY, flatten=False)


def batches() -> Iterator[dict[str, np.ndarray]]:
    """Chains in which three tokens may follow each token, at random."""
    generator = np.random.default_rng(0)
    while True:
        chain = generator.integers(0, VOCABULARY, (BATCH, LENGTH + 1), np.int32)
        for i in range(LENGTH):
            chain[:, i + 1] = (5 * chain[:, i] + chain[:, i + 1] % 3) % VOCABULARY
        yield {"tokens": chain[:, :-1], "next": chain[:, 1:]}


def trainer() -> train.Trainer:
    """The training step."""
    tokens, label = (so.var(n, shape=(BATCH, LENGTH), dtype="int32") for n in ("tokens", "next"))
    label = so.permute_dims(label, axes=(1, 0))
    loss = so.mean(so.softmax_cross_entropy(network(tokens), label))
    return train.Trainer(loss, optax.adam(1e-3), inputs=["tokens", "next"])


def run(steps: int = 100) -> list[float]:
    """Trains, and returns the losses."""
    training = trainer()
    state, losses = training.init(0), list[float]()
    for _, batch in zip(range(steps), batches(), strict=False):
        state, metrics = training.step(state, batch)
        losses.append(float(metrics["loss"]))
    return losses


if __name__ == "__main__":
    losses = run()
    print(f"loss {losses[0]:.3f}, then {losses[-1]:.3f}")
