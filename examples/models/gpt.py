"""A GPT with tied embeddings: trains on a chain of tokens, and generates with caches."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import optax

import symop as so
from symop import train

VOCABULARY, LENGTH, WIDTH, HEADS, BATCH = 512, 64, 128, 4, 8


def network(tokens: so.Symbol, layers: int) -> so.Symbol:
    """The logits of the next token at each position."""
    table = so.var("table", shape=(VOCABULARY, WIDTH), initial="normal(0.02)")
    places = so.lookup_table(so.position_ids(tokens), rows=2 * LENGTH, width=WIDTH)
    h = so.lookup_table(table, tokens) + places
    for _ in range(layers):
        x = so.layer_norm(h)
        h = h + so.multi_head_attention(x, heads=HEADS, causal=True)
        x = so.fully_connected(so.layer_norm(h), units=4 * WIDTH, flatten=False)
        h = h + so.fully_connected(so.gelu(x, approximate=True), units=WIDTH, flatten=False)
    h = so.layer_norm(h)
    return so.fully_connected(h, table, units=VOCABULARY, use_bias=False, flatten=False)


def batches() -> Iterator[dict[str, np.ndarray]]:
    """Chains in which three tokens may follow each token, at random."""
    generator = np.random.default_rng(0)
    while True:
        chain = generator.integers(0, VOCABULARY, (BATCH, LENGTH + 1), np.int32)
        for i in range(LENGTH):
            chain[:, i + 1] = (5 * chain[:, i] + chain[:, i + 1] % 3) % VOCABULARY
        yield {"tokens": chain[:, :-1], "next": chain[:, 1:]}


def logits_of(layers: int = 4) -> so.Symbol:
    """The logits of a batch; parameters have the same names in each graph."""
    with so.name_scope():
        return network(so.var("tokens", shape=(BATCH, LENGTH), dtype="int32"), layers)


def trainer(layers: int = 4) -> train.Trainer:
    """The training step."""
    label = so.var("next", shape=(BATCH, LENGTH), dtype="int32")
    loss = so.mean(so.softmax_cross_entropy(logits_of(layers), label))
    return train.Trainer(loss, optax.adam(1e-3), inputs=["tokens", "next"], stacked=True)


def run(steps: int = 100, layers: int = 4) -> tuple[list[float], Any]:
    """Trains; returns the losses, and 16 tokens that follow a prompt."""
    training = trainer(layers)
    state, losses = training.init(0), list[float]()
    for _, batch in zip(range(steps), batches(), strict=False):
        state, metrics = training.step(state, batch)
        losses.append(float(metrics["loss"]))
    generate = so.Generator(logits_of(layers), length=LENGTH)
    return losses, generate(training.unstack(state.params), [[1, 5, 26]], 16)


if __name__ == "__main__":
    losses, found = run()
    print(f"loss {losses[0]:.3f}, then {losses[-1]:.3f}; generated {found[0]}")
