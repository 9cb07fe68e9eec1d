"""A language model of two LSTM layers."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  # its usual name

VOCABULARY, LENGTH, WIDTH, LAYERS, BATCH = 512, 64, 128, 2, 16


class Network(nn.Module):
    """The logits of the next token at each position."""

    def __init__(self) -> None:
        """Creates the layers; cells have one bias, as in symop and in flax."""
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.cells = nn.LSTM(WIDTH, WIDTH, LAYERS, batch_first=True)
        for i in range(LAYERS):
            nn.init.zeros_(getattr(self.cells, f"bias_hh_l{i}")).requires_grad_(False)
        self.end = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: Any) -> Any:
        """Tokens to logits."""
        return self.end(self.cells(self.embedding(tokens))[0])


def batches() -> Iterator[dict[str, np.ndarray]]:
    """Chains in which three tokens may follow each token, at random."""
    generator = np.random.default_rng(0)
    while True:
        chain = generator.integers(0, VOCABULARY, (BATCH, LENGTH + 1), np.int32)
        for i in range(LENGTH):
            chain[:, i + 1] = (5 * chain[:, i] + chain[:, i + 1] % 3) % VOCABULARY
        yield {"tokens": chain[:, :-1], "next": chain[:, 1:]}


def loss(network: Any, batch: Any) -> Any:
    """The cross entropy of the next tokens."""
    logits = network(batch["tokens"])
    return F.cross_entropy(logits.flatten(0, 1), batch["next"].flatten().long())


def make_step(network: Network) -> Callable[[Any], Any]:
    """The training step, which returns the loss."""
    optimizer = torch.optim.Adam(network.parameters(), 1e-3, fused=True)
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
