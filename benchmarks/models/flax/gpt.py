"""A GPT with tied embeddings: trains on a chain of tokens, and generates with caches."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn

VOCABULARY, LENGTH, WIDTH, HEADS, BATCH = 512, 64, 128, 4, 8
OPTIMIZER = optax.adam(1e-3)


class Network(nn.Module):
    """The logits of the next token at each position."""

    layers: int = 4
    decode: bool = False

    @nn.compact
    def __call__(self, tokens: Any) -> Any:
        """Tokens to logits; in decoding, of one token at a time."""
        table = nn.Embed(VOCABULARY, WIDTH, name="table")
        place = jnp.arange(tokens.shape[1])
        if self.decode:
            index = self.variable("cache", "index", lambda: jnp.int32(0))
            place = place + index.value
            if not self.is_initializing():
                index.value += 1
        h = table(tokens) + nn.Embed(2 * LENGTH, WIDTH)(place)
        mask = None if self.decode else nn.make_causal_mask(tokens)
        for _ in range(self.layers):
            attention = nn.MultiHeadDotProductAttention(HEADS, decode=self.decode)
            h = h + attention(nn.LayerNorm(epsilon=1e-5)(h), mask=mask)
            x = nn.Dense(4 * WIDTH)(nn.LayerNorm(epsilon=1e-5)(h))
            h = h + nn.Dense(WIDTH)(nn.gelu(x))
        return table.attend(nn.LayerNorm(epsilon=1e-5)(h))


def batches() -> Iterator[dict[str, np.ndarray]]:
    """Chains in which three tokens may follow each token, at random."""
    generator = np.random.default_rng(0)
    while True:
        chain = generator.integers(0, VOCABULARY, (BATCH, LENGTH + 1), np.int32)
        for i in range(LENGTH):
            chain[:, i + 1] = (5 * chain[:, i] + chain[:, i + 1] % 3) % VOCABULARY
        yield {"tokens": chain[:, :-1], "next": chain[:, 1:]}


def initial(batch: Any, layers: int = 4) -> Any:
    """The variables and the optimizer's state before the first step."""
    variables = Network(layers).init(jax.random.key(0), batch["tokens"])
    return variables, OPTIMIZER.init(variables)


def make_step(layers: int = 4) -> Callable[..., Any]:
    """The training step."""
    network = Network(layers)

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


def make_generate(count: int, layers: int = 4) -> Callable[..., Any]:
    """The function that continues prompts by the likeliest tokens, with caches."""
    network = Network(layers, decode=True)

    @jax.jit
    def generate(params: Any, prompts: Any) -> Any:
        empty = jnp.zeros((len(prompts), LENGTH), jnp.int32)
        cache = jax.eval_shape(lambda: network.init(jax.random.key(0), empty)["cache"])
        cache = jax.tree.map(lambda one: jnp.zeros(one.shape, one.dtype), cache)

        def forward(cache: Any, tokens: Any) -> Any:
            logits, new = network.apply(
                {"params": params, "cache": cache}, tokens[:, None], mutable="cache"
            )
            return new["cache"], jnp.argmax(logits[:, 0], axis=-1)

        def follow(carry: Any, _: Any) -> Any:
            cache, last = carry
            return forward(cache, last), last

        cache, seen = jax.lax.scan(forward, cache, prompts.T)
        _, found = jax.lax.scan(follow, (cache, seen[-1]), None, count)
        return found.T

    return generate


def run(steps: int = 100, layers: int = 4) -> tuple[list[float], Any]:
    """Trains; returns the losses, and 16 tokens that follow a prompt."""
    step, losses = make_step(layers), list[float]()
    state = initial(next(batches()), layers)
    for _, batch in zip(range(steps), batches(), strict=False):
        state, value = step(state, batch)
        losses.append(float(value))
    return losses, make_generate(16, layers)(state[0]["params"], np.array([[1, 5, 26]]))


if __name__ == "__main__":
    losses, found = run()
    print(f"loss {losses[0]:.3f}, then {losses[-1]:.3f}; generated {found[0]}")
