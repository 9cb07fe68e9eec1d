"""ResNet-18 for small images, with batch normalization."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  # its usual name

SIZE, CLASSES, BATCH, WIDTHS = 16, 10, 16, (16, 32, 64, 128)


def convolved(channels: int, found: int, kernel: int, stride: int = 1) -> nn.Sequential:
    """A convolution without bias, and batch normalization."""
    convolution = nn.Conv2d(channels, found, kernel, stride, kernel // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(found))


class Block(nn.Module):
    """A residual block."""

    def __init__(self, channels: int, found: int, stride: int) -> None:
        """Creates the layers."""
        super().__init__()
        self.first = convolved(channels, found, 3, stride)
        self.second = convolved(found, found, 3)
        self.skip = convolved(channels, found, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, h: Any) -> Any:
        """Adds the skipped input."""
        return F.relu(self.second(F.relu(self.first(h))) + self.skip(h))


class Network(nn.Module):
    """The logits of the classes."""

    def __init__(self) -> None:
        """Creates the layers."""
        super().__init__()
        self.start, before, blocks = convolved(3, WIDTHS[0], 3), WIDTHS[0], list[Block]()
        for i, channels in enumerate(WIDTHS):
            blocks += [Block(before, channels, 2 if i else 1), Block(channels, channels, 1)]
            before = channels
        self.blocks, self.end = nn.Sequential(*blocks), nn.Linear(before, CLASSES)

    def forward(self, image: Any) -> Any:
        """Images, their channels last, to logits."""
        h = self.blocks(F.relu(self.start(image.permute(0, 3, 1, 2))))
        return self.end(h.mean((2, 3)))


def batches() -> Iterator[dict[str, np.ndarray]]:
    """Noisy images with a bright square, whose position is the class."""
    generator = np.random.default_rng(0)
    while True:
        label = generator.integers(0, CLASSES, BATCH, np.int32)
        image = generator.normal(size=(BATCH, SIZE, SIZE, 3)).astype(np.float32)
        for i, one in enumerate(label):
            image[i, one : one + 6, 3:9] += 1
        yield {"image": image, "label": label}


def loss(network: Any, batch: Any) -> Any:
    """The cross entropy of the classes."""
    return F.cross_entropy(network(batch["image"]), batch["label"].long())


def make_step(network: Network) -> Callable[[Any], Any]:
    """The training step, which returns the loss."""
    optimizer = torch.optim.SGD(network.parameters(), 0.002, momentum=0.9, fused=True)
    compiled = torch.compile(loss)

    def step(batch: Any) -> Any:
        optimizer.zero_grad()
        value = compiled(network, batch)
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
