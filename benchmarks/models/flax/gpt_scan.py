"""The GPT with its layers in a loop that is written by hand: ``nn.scan``."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn

VOCABULARY, LENGTH, WIDTH, HEADS, BATCH = 512, 64, 128, 4, 8
OPTIMIZER = optax.adam(1e-3)


class Layer(nn.Module):
    """One layer, as the body of a loop."""

    @nn.compact
    def __call__(self, h: Any, mask: Any) -> Any:
        """Hidden values to hidden values."""
        attention = nn.MultiHeadDotProductAttention(HEADS)
        h = h + attention(nn.LayerNorm(epsilon=1e-5)(h), mask=mask)
        x = nn.Dense(4 * WIDTH)(nn.LayerNorm(epsilon=1e-5)(h))
        return h + nn.Dense(WIDTH)(nn.gelu(x)), None


class Network(nn.Module):
    """The logits of the next token at each position."""

    layers: int

    @nn.compact
    def __call__(self, tokens: Any) -> Any:
        """Tokens to logits."""
        table = nn.Embed(VOCABULARY, WIDTH, name="table")
        h = table(tokens) + nn.Embed(2 * LENGTH, WIDTH)(jnp.arange(tokens.shape[1]))
        loop = nn.scan(
            Layer,
            variable_axes={"params": 0},
            split_rngs={"params": True},
            in_axes=nn.broadcast,
            length=self.layers,
        )
        h, _ = loop()(h, nn.make_causal_mask(tokens))
        return table.attend(nn.LayerNorm(epsilon=1e-5)(h))


def initial(batch: Any, layers: int) -> Any:
    """The variables and the optimizer's state before the first step."""
    variables = Network(layers).init(jax.random.key(0), batch["tokens"])
    return variables, OPTIMIZER.init(variables)


def make_step(layers: int) -> Callable[..., Any]:
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
