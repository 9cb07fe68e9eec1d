"""A small GPT that learns a text by heart, character by character, and goes on with it."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn

TEXT = """\
One operator declares what it is: a kernel, a gradient, a page, a test.
From one declaration come the graph, the program and all of the rest.
One graph is trained, and the same graph speaks: its caches remember the past.
Each token costs as much as the first, and as little as the last.
"""
VOCABULARY = sorted(set(TEXT))
LENGTH, WIDTH, HEADS, LAYERS = 32, 64, 4, 2


class Network(nn.Module):
    """The logits of the next character, at each position."""

    decode: bool = False

    @nn.compact
    def __call__(self, tokens: Any) -> Any:
        """Characters to logits; in decoding, of one character at a time."""
        h = nn.Embed(len(VOCABULARY), WIDTH)(tokens)
        place = jnp.arange(tokens.shape[1])
        if self.decode:
            index = self.variable("cache", "index", lambda: jnp.int32(0))
            place = place + index.value
            if not self.is_initializing():
                index.value += 1
        h = h + nn.Embed(4 * LENGTH, WIDTH)(place)
        mask = None if self.decode else nn.make_causal_mask(tokens)
        for _ in range(LAYERS):
            attention = nn.MultiHeadDotProductAttention(HEADS, decode=self.decode)
            h = h + attention(nn.LayerNorm()(h), mask=mask)
            x = nn.Dense(4 * WIDTH)(nn.LayerNorm()(h))
            h = h + nn.Dense(WIDTH)(nn.gelu(x))
        return nn.Dense(len(VOCABULARY))(nn.LayerNorm()(h))


def batches(count: int, batch: int = 16) -> Any:
    """Yields pieces of the text, and the characters that follow."""
    codes = np.array([VOCABULARY.index(one) for one in TEXT], np.int32)
    generator = np.random.default_rng(0)
    for _ in range(count):
        starts = generator.integers(0, len(codes) - LENGTH - 1, (batch, 1))
        pieces = codes[starts + np.arange(LENGTH + 1)]
        yield {"tokens": pieces[:, :-1], "next": pieces[:, 1:]}


def generate(params: Any, prompt: Any, count: int) -> Any:
    """The likeliest characters after one prompt."""
    network = Network(decode=True)
    cache = network.init(jax.random.key(0), jnp.zeros((1, LENGTH), jnp.int32))["cache"]

    @jax.jit
    def step(cache: Any, token: Any) -> Any:
        logits, new = network.apply({**params, "cache": cache}, token[None, None], mutable="cache")
        return new["cache"], jnp.argmax(logits[0, 0])

    for token in prompt:
        cache, last = step(cache, jnp.int32(token))
    found = [last]
    for _ in range(count - 1):
        cache, last = step(cache, last)
        found.append(last)
    return found


def run(steps: int = 300, prompts: tuple[str, ...] = ("One g", "Each token")) -> list[str]:
    """Trains, and returns the prompts with what follows them."""
    network, optimizer = Network(), optax.adam(3e-3)
    params = network.init(jax.random.key(0), jnp.zeros((16, LENGTH), jnp.int32))
    opt_state = optimizer.init(params)

    @jax.jit
    def step(params: Any, opt_state: Any, batch: Any) -> Any:
        def loss(params: Any) -> Any:
            logits = network.apply(params, batch["tokens"])
            return optax.softmax_cross_entropy_with_integer_labels(logits, batch["next"]).mean()

        value, grads = jax.value_and_grad(loss)(params)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, value

    for batch in batches(steps):
        params, opt_state, _ = step(params, opt_state, batch)
    codes = [[VOCABULARY.index(one) for one in prompt] for prompt in prompts]
    found = [generate(params, one, 20) for one in codes]
    return [p + "".join(VOCABULARY[i] for i in row) for p, row in zip(prompts, found, strict=True)]


if __name__ == "__main__":
    print("\n".join(run()))
