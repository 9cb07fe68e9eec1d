"""A denoising diffusion model: a U-Net with an embedding of the time."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  # its usual name

SIZE, WIDTH, TIMES, GROUPS, BATCH = 16, 32, 1000, 8, 8


class Block(nn.Module):
    """A residual block; the time adds a shift between its convolutions."""

    def __init__(self, channels: int, found: int) -> None:
        """Creates the layers."""
        super().__init__()
        self.norm1, self.first = nn.GroupNorm(GROUPS, channels), nn.Conv2d(channels, found, 3, 1, 1)
        self.shift = nn.Linear(4 * WIDTH, found)
        self.norm2, self.second = nn.GroupNorm(GROUPS, found), nn.Conv2d(found, found, 3, 1, 1)
        self.skip = nn.Identity() if channels == found else nn.Conv2d(channels, found, 1)

    def forward(self, x: Any, time: Any) -> Any:
        """Images and embedded times to images."""
        h = self.first(F.silu(self.norm1(x)))
        h = h + self.shift(F.silu(time))[:, :, None, None]
        return self.second(F.silu(self.norm2(h))) + self.skip(x)


class Network(nn.Module):
    """The noise in an image."""

    def __init__(self) -> None:
        """Creates the layers."""
        super().__init__()
        units = 4 * WIDTH
        self.time = nn.Sequential(nn.Linear(WIDTH, units), nn.SiLU(), nn.Linear(units, units))
        self.start = nn.Conv2d(1, WIDTH, 3, 1, 1)
        self.down = nn.ModuleList([Block(WIDTH, WIDTH), Block(WIDTH, 2 * WIDTH)])
        self.middle = Block(2 * WIDTH, 2 * WIDTH)
        self.up = nn.ModuleList([Block(4 * WIDTH, 2 * WIDTH), Block(3 * WIDTH, WIDTH)])
        self.norm, self.end = nn.GroupNorm(GROUPS, WIDTH), nn.Conv2d(WIDTH, 1, 3, 1, 1)

    def forward(self, noisy: Any, time: Any) -> Any:
        """Noisy images, their channels last, and times to noise."""
        half = WIDTH // 2
        angles = time[:, None] * torch.exp(-math.log(10_000) * torch.arange(half) / half)
        time = self.time(torch.cat([angles.sin(), angles.cos()], 1))
        h, kept = self.start(noisy.permute(0, 3, 1, 2)), []
        for block in self.down:
            h = block(h, time)
            kept.append(h)
            h = F.avg_pool2d(h, 2)
        h = self.middle(h, time)
        for block in self.up:
            h = F.interpolate(h, scale_factor=2)
            h = block(torch.cat([h, kept.pop()], 1), time)
        return self.end(F.silu(self.norm(h))).permute(0, 2, 3, 1)


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


def loss(network: Any, batch: Any) -> Any:
    """The mean square of the error."""
    return F.mse_loss(network(batch["noisy"], batch["time"]), batch["noise"])


def make_step(network: Network) -> Callable[[Any], Any]:
    """The training step, which returns the loss.

    With ``torch.compile`` it takes as long: nearly all of its time is that of convolutions.
    """
    optimizer = torch.optim.Adam(network.parameters(), 1e-3, fused=True)

    def step(batch: Any) -> Any:
        optimizer.zero_grad()
        value = loss(network, batch)
        value.backward()
        optimizer.step()
        return value.detach()

    return step


def run(steps: int = 100) -> list[float]:
    """Trains, and returns the losses."""
    step, losses = make_step(Network()), list[float]()
    for _, batch in zip(range(steps), batches(), strict=False):
        value = step({name: torch.from_numpy(one) for name, one in batch.items()})
        losses.append(float(value))
    return losses


if __name__ == "__main__":
    losses = run()
    print(f"loss {losses[0]:.3f}, then {losses[-1]:.3f}")
