"""A small GPT that learns a text by heart, character by character, and goes on with it."""

from typing import Any

import numpy as np
import optax

import symop as so
from symop import train

TEXT = """\
One operator declares what it is: a kernel, a gradient, a page, a test.
From one declaration come the graph, the program and all of the rest.
One graph is trained, and the same graph speaks: its caches remember the past.
Each token costs as much as the first, and as little as the last.
"""
VOCABULARY = sorted(set(TEXT))
LENGTH, WIDTH, HEADS, LAYERS = 32, 64, 4, 2


def network(tokens: so.Symbol) -> Any:
    """The logits of the next character, at each position."""
    h = so.lookup_table(tokens, rows=len(VOCABULARY), width=WIDTH)
    h = h + so.lookup_table(so.position_ids(tokens), rows=4 * LENGTH, width=WIDTH)
    for _ in range(LAYERS):
        x = so.layer_norm(h)
        h = h + so.multi_head_attention(x, heads=HEADS, width=WIDTH, causal=True)
        x = so.fully_connected(so.layer_norm(h), units=4 * WIDTH, flatten=False)
        h = h + so.fully_connected(so.gelu(x), units=WIDTH, flatten=False)
    return so.fully_connected(so.layer_norm(h), units=len(VOCABULARY), flatten=False)


def batches(count: int, batch: int = 16) -> Any:
    """Yields pieces of the text, and the characters that follow."""
    codes = np.array([VOCABULARY.index(one) for one in TEXT], np.int32)
    generator = np.random.default_rng(0)
    for _ in range(count):
        starts = generator.integers(0, len(codes) - LENGTH - 1, (batch, 1))
        pieces = codes[starts + np.arange(LENGTH + 1)]
        yield {"tokens": pieces[:, :-1], "next": pieces[:, 1:]}


def run(steps: int = 300, prompts: tuple[str, ...] = ("One g", "Each token")) -> list[str]:
    """Trains, and returns the prompts with what follows them."""
    logits = network(so.var("tokens", dtype="int32"))
    loss = so.mean(so.softmax_cross_entropy(logits, so.var("next", dtype="int32")))
    trainer = train.Trainer(loss, optax.adam(3e-3), inputs=["tokens", "next"])
    state = trainer.init(0, tokens=(16, LENGTH), next=(16, LENGTH))
    for batch in batches(steps):
        state, _ = trainer.step(state, batch)
    generate = so.Generator(logits, length=LENGTH)
    codes = [[VOCABULARY.index(one) for one in prompt] for prompt in prompts]
    found = generate(state.params, codes, 20)
    return [p + "".join(VOCABULARY[i] for i in row) for p, row in zip(prompts, found, strict=True)]


if __name__ == "__main__":
    print("\n".join(run()))
