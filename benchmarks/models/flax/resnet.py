"""ResNet-18 for small images, with batch normalization."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import numpy as np
import optax
from flax import linen as nn

SIZE, CLASSES, BATCH, WIDTHS = 16, 10, 16, (16, 32, 64, 128)
OPTIMIZER = optax.sgd(0.002, momentum=0.9)


class Network(nn.Module):
    """The logits of the classes."""

    @nn.compact
    def __call__(self, image: Any) -> Any:
        """Images to logits."""

        def convolved(x: Any, channels: int, kernel: int, stride: int = 1) -> Any:
            window, pad = (kernel, kernel), kernel // 2
            x = nn.Conv(channels, window, stride, padding=pad, use_bias=False)(x)
            return nn.BatchNorm(use_running_average=False, momentum=0.9)(x)

        h = nn.relu(convolved(image, WIDTHS[0], 3))
        for i, channels in enumerate(WIDTHS):
            for j in range(2):
                stride = 2 if i and not j else 1
                x = nn.relu(convolved(h, channels, 3, stride))
                x = convolved(x, channels, 3)
                h = nn.relu(x + (convolved(h, channels, 1, stride) if stride > 1 else h))
        return nn.Dense(CLASSES)(h.mean((1, 2)))


def batches() -> Iterator[dict[str, np.ndarray]]:
    """Noisy images with a bright square, whose position is the class."""
    generator = np.random.default_rng(0)
    while True:
        label = generator.integers(0, CLASSES, BATCH, np.int32)
        image = generator.normal(size=(BATCH, SIZE, SIZE, 3)).astype(np.float32)
        for i, one in enumerate(label):
            image[i, one : one + 6, 3:9] += 1
        yield {"image": image, "label": label}


def initial(batch: Any) -> Any:
    """The variables and the optimizer's state before the first step."""
    variables = Network().init(jax.random.key(0), batch["image"])
    return variables, OPTIMIZER.init(variables["params"])


def make_step() -> Callable[..., Any]:
    """The training step."""
    network = Network()

    @partial(jax.jit, donate_argnums=0)
    def step(state: Any, batch: Any) -> Any:
        variables, opt_state = state
        params, stats = variables["params"], variables["batch_stats"]

        def loss(params: Any) -> Any:
            given = {"params": params, "batch_stats": stats}
            logits, new = network.apply(given, batch["image"], mutable=["batch_stats"])
            losses = optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"])
            return losses.mean(), new

        (value, new), gradients = jax.value_and_grad(loss, has_aux=True)(params)
        updates, opt_state = OPTIMIZER.update(gradients, opt_state, params)
        return ({"params": optax.apply_updates(params, updates), **new}, opt_state), value

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
