"""A denoising diffusion model: a U-Net with an embedding of the time."""

from collections.abc import Iterator

import numpy as np
import optax

import symop as so
from symop import train

SIZE, WIDTH, TIMES, GROUPS, BATCH = 16, 32, 1000, 8, 8


def embedded(time: so.Symbol) -> so.Symbol:
    """Sines and cosines of the time, and two layers."""
    rates = np.float32(np.exp(-np.log(10_000) * np.arange(WIDTH // 2) / (WIDTH // 2)))
    angles = so.reshape(so.cast(time, dtype="float32"), shape=(-1, 1)) * rates
    h = so.concat(so.sin(angles), so.cos(angles), axis=1)
    return so.fully_connected(so.silu(so.fully_connected(h, units=4 * WIDTH)), units=4 * WIDTH)


def convolved(x: so.Symbol, channels: int, kernel: int = 3) -> so.Symbol:
    """A convolution that preserves the size."""
    how = {"layout": "NHWC", "weight_layout": "HWIO", "padding": kernel // 2}
    return so.convolution(x, channels=channels, kernel=kernel, **how)


def block(x: so.Symbol, time: so.Symbol, channels: int) -> so.Symbol:
    """A residual block; the time adds a shift between its convolutions."""
    h = convolved(so.silu(so.group_norm(x, num_groups=GROUPS, axis=-1)), channels)
    shift = so.fully_connected(so.silu(time), units=channels)
    h = h + so.reshape(shift, shape=(-1, 1, 1, channels))
    h = convolved(so.silu(so.group_norm(h, num_groups=GROUPS, axis=-1)), channels)
    return h + (x if x.shape[-1] == channels else convolved(x, channels, 1))


def network(noisy: so.Symbol, time: so.Symbol) -> so.Symbol:
    """The predicted noise in an image."""
    time, h, kept = embedded(time), convolved(noisy, WIDTH), []
    for channels in (WIDTH, 2 * WIDTH):
        h = block(h, time, channels)
        kept.append(h)
        h = so.average_pooling(h, kernel=(2, 2), layout="NHWC")
    h = block(h, time, 2 * WIDTH)
    for before in reversed(kept):
        h = so.repeat(so.repeat(h, repeats=2, axis=1), repeats=2, axis=2)
        h = block(so.concat(h, before, axis=-1), time, before.shape[-1])
    return convolved(so.silu(so.group_norm(h, num_groups=GROUPS, axis=-1)), 1)


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


def trainer() -> train.Trainer:
    """The training step."""
    noisy, noise = (so.var(name, shape=(BATCH, SIZE, SIZE, 1)) for name in ("noisy", "noise"))
    time = so.var("time", shape=(BATCH,), dtype="int32")
    loss = so.mean(so.square(network(noisy, time) - noise))
    return train.Trainer(loss, optax.adam(1e-3), inputs=["noisy", "time", "noise"])


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
