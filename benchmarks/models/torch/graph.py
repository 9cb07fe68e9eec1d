"""A graph network: edges send messages, and nodes add up those that they receive."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  # its usual name

NODES, EDGES, WIDTH, LAYERS = 512, 4096, 64, 4


def mlp(width: int, found: int = WIDTH) -> nn.Sequential:
    """Two layers with ReLU between them."""
    return nn.Sequential(nn.Linear(width, WIDTH), nn.ReLU(), nn.Linear(WIDTH, found))


class Layer(nn.Module):
    """A round of messages."""

    def __init__(self) -> None:
        """Creates the layers."""
        super().__init__()
        self.edges, self.nodes, self.norm = mlp(2 * WIDTH), mlp(2 * WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, h: Any, sender: Any, receiver: Any) -> Any:
        """Adds what the nodes compute from their messages."""
        messages = self.edges(torch.cat([h[sender], h[receiver]], 1))
        received = torch.zeros_like(h).index_add(0, receiver, messages)
        return self.norm(h + self.nodes(torch.cat([h, received], 1)))


class Network(nn.Module):
    """A number for each node."""

    def __init__(self) -> None:
        """Creates the layers."""
        super().__init__()
        self.start = mlp(1)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.end = mlp(WIDTH, 1)

    def forward(self, number: Any, sender: Any, receiver: Any) -> Any:
        """Numbers of the nodes and ends of the edges to numbers."""
        h = self.start(number)
        for layer in self.layers:
            h = layer(h, sender, receiver)
        return self.end(h)


def batches() -> Iterator[dict[str, np.ndarray]]:
    """Random graphs, whose nodes have the mean of their neighbors' numbers as targets."""
    generator = np.random.default_rng(0)
    while True:
        sender, receiver = generator.integers(0, NODES, (2, EDGES), np.int32)
        number = generator.normal(size=(NODES, 1)).astype(np.float32)
        total, count = np.zeros((NODES, 1), np.float32), np.ones((NODES, 1), np.float32)
        np.add.at(total, receiver, number[sender])
        np.add.at(count, receiver, 1)
        target = total / count
        yield {"number": number, "sender": sender, "receiver": receiver, "target": target}


def loss(network: Any, batch: Any) -> Any:
    """The mean square of the error."""
    ends = batch["sender"].long(), batch["receiver"].long()
    return F.mse_loss(network(batch["number"], *ends), batch["target"])


def make_step(network: Network) -> Callable[[Any], Any]:
    """The training step, which returns the loss."""
    optimizer = torch.optim.Adam(network.parameters(), 3e-4, fused=True)
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
