"""A convolutional classifier of handwritten digits, trained with optax."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from sklearn.datasets import load_digits


class Network(nn.Module):
    """The logits of ten classes."""

    @nn.compact
    def __call__(self, image: Any) -> Any:
        """Images of shape (batch, 8, 8, 1) to logits."""
        h = nn.relu(nn.Conv(16, (3, 3))(image))
        h = nn.max_pool(h, (2, 2), strides=(2, 2))
        h = nn.relu(nn.Dense(64)(h.reshape(len(h), -1)))
        return nn.Dense(10)(h)


def run(epochs: int = 10) -> float:
    """Trains, and returns the accuracy on 360 images that were not seen."""
    pixels, digits = load_digits(return_X_y=True)
    images, labels = np.float32(pixels / 16).reshape(-1, 8, 8, 1), np.int32(digits)
    network, optimizer = Network(), optax.adam(3e-3)
    params = network.init(jax.random.key(0), images[:64])
    opt_state = optimizer.init(params)

    @jax.jit
    def step(params: Any, opt_state: Any, image: Any, label: Any) -> Any:
        def loss(params: Any) -> Any:
            logits = network.apply(params, image)
            return optax.softmax_cross_entropy_with_integer_labels(logits, label).mean()

        value, grads = jax.value_and_grad(loss)(params)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, value

    generator = np.random.default_rng(0)
    for _ in range(epochs):
        order = 360 + generator.permutation(len(images) - 360)
        for i in range(0, len(order) - 63, 64):
            batch = order[i : i + 64]
            params, opt_state, _ = step(params, opt_state, images[batch], labels[batch])
    scores = jax.jit(network.apply)(params, images[:360])
    return float((jnp.argmax(scores, axis=1) == labels[:360]).mean())


if __name__ == "__main__":
    print(f"accuracy {run():.3f}")
