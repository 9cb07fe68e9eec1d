"""A recommender like DLRM: embeddings of categories, numbers, and their interactions."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  # its usual name

TABLES, ROWS, WIDTH, NUMBERS, BATCH = 8, 20_000, 16, 13, 256
PAIRS = torch.from_numpy(np.flatnonzero(np.triu(np.ones((TABLES + 1, TABLES + 1)), 1)))


def tower(*widths: int) -> nn.Sequential:
    """Layers with ReLU."""
    layers = ((nn.Linear(*sizes), nn.ReLU()) for sizes in pairwise(widths))
    return nn.Sequential(*(one for pair in layers for one in pair))


class Network(nn.Module):
    """The logit of a click."""

    def __init__(self) -> None:
        """Creates the layers."""
        super().__init__()
        self.table = nn.Embedding(TABLES * ROWS, WIDTH, sparse=True)
        self.bottom = tower(NUMBERS, 64, WIDTH)
        self.top, self.end = tower(WIDTH + len(PAIRS), 64, 32), nn.Linear(32, 1)

    def forward(self, ids: Any, numbers: Any) -> Any:
        """Categories and numbers to logits."""
        dense = self.bottom(numbers)
        rows = self.table(ids + ROWS * torch.arange(TABLES))
        features = torch.cat([dense[:, None], rows], 1)
        products = (features @ features.transpose(1, 2)).flatten(1)
        return self.end(self.top(torch.cat([dense, products[:, PAIRS]], 1)))[:, 0]


def batches() -> Iterator[dict[str, np.ndarray]]:
    """Clicks that depend on a category and a number; few categories are frequent."""
    generator = np.random.default_rng(0)
    while True:
        ids = (ROWS * generator.random((BATCH, TABLES)) ** 4).astype(np.int32)
        numbers = generator.normal(size=(BATCH, NUMBERS)).astype(np.float32)
        score = 3 * np.sin(ids[:, 0]) + numbers[:, 0]
        yield {"ids": ids, "numbers": numbers, "clicked": np.float32(score > 0)}


def loss(network: Any, batch: Any) -> Any:
    """The cross entropy of the clicks."""
    logits = network(batch["ids"], batch["numbers"])
    return F.binary_cross_entropy_with_logits(logits, batch["clicked"])


def make_step(network: Network) -> Callable[[Any], Any]:
    """The training step, which returns the loss.

    ``torch.compile`` cannot compile sparse gradients.
    """
    optimizer = torch.optim.Adagrad(
        network.parameters(), 0.05, initial_accumulator_value=0.1, eps=1e-7
    )

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
