"""A denoising diffusion model: a U-Net with an embedding of the time."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn

SIZE, WIDTH, TIMES, GROUPS, BATCH = 16, 32, 1000, 8, 8
OPTIMIZER = optax.adam(1e-3)


class Network(nn.Module):
    """The noise in an image."""

    @nn.compact
    def __call__(self, noisy: Any, time: Any) -> Any:
        """Noisy images and times to noise."""

        def convolved(x: Any, channels: int, kernel: int = 3) -> Any:
            return nn.Conv(channels, (kernel, kernel), padding=kernel // 2)(x)

        def activated(x: Any) -> Any:
            return nn.silu(nn.GroupNorm(GROUPS, epsilon=1e-5)(x))

        def block(x: Any, time: Any, channels: int) -> Any:
            h = convolved(activated(x), channels)
            h = h + nn.Dense(channels)(nn.silu(time))[:, None, None]
            h = convolved(activated(h), channels)
            return h + (x if x.shape[-1] == channels else convolved(x, channels, 1))

        rates = jnp.exp(-jnp.log(10_000) * jnp.arange(WIDTH // 2) / (WIDTH // 2))
        angles = time[:, None] * rates
        time = jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=1)
        time = nn.silu(nn.Dense(4 * WIDTH)(time))
        time = nn.Dense(4 * WIDTH)(time)
        h, kept = convolved(noisy, WIDTH), []
        for channels in (WIDTH, 2 * WIDTH):
            h = block(h, time, channels)
            kept.append(h)
            h = nn.avg_pool(h, (2, 2), (2, 2))
        h = block(h, time, 2 * WIDTH)
        for before in reversed(kept):
            h = jnp.repeat(jnp.repeat(h, 2, axis=1), 2, axis=2)
            h = block(jnp.concatenate([h, before], axis=-1), time, before.shape[-1])
        return convolved(activated(h), 1)


def batches() -> Iterator[dict[str, np.ndarray]]:
    """Noisy images of waves, the times that determine how noisy they are, and the noise."""
    generator = np.random.default_rng(0)
    grid = np.arange(SIZE) / SIZE * 2 * np.pi
    while True:
        phase = generator.uniform(0, 2 * np.pi, (BATCH, 1, 1, 1))
        image = np.sin(grid[:, None, None] + phase) * np.cos(grid[:, None])
        time = generator.integers(0, TIMES, BATCH, np.int32)
        kept = np.cos(0.5 * np.pi * (time + 1) / TIMES)[:, None, None, None]
        noise = generator.normal(size=(BATCH, SIZE, SIZE, 1))
        noisy = kept * image + np.sqrt(1 - kept**2) * noise
        yield {"noisy": np.float32(noisy), "time": time, "noise": np.float32(noise)}


def initial(batch: Any) -> Any:
    """The variables and the optimizer's state before the first step."""
    variables = Network().init(jax.random.key(0), batch["noisy"], batch["time"])
    return variables, OPTIMIZER.init(variables)


def make_step() -> Callable[..., Any]:
    """The training step."""
    network = Network()

    @partial(jax.jit, donate_argnums=0)
    def step(state: Any, batch: Any) -> Any:
        variables, opt_state = state

        def loss(variables: Any) -> Any:
            found = network.apply(variables, batch["noisy"], batch["time"])
            return jnp.square(found - batch["noise"]).mean()

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
