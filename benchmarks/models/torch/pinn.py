"""A network that solves Burgers' equation ``u_t + u u_x = nu u_xx`` from a sine."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import nn

POINTS, WIDTH, LAYERS, VISCOSITY = 1024, 64, 4, 0.01 / np.pi


class Network(nn.Module):
    """The solution, which is the sine at first and zero at both ends."""

    def __init__(self) -> None:
        """Creates the layers."""
        super().__init__()
        widths = [2, *LAYERS * [WIDTH]]
        self.hidden = nn.ModuleList(nn.Linear(*sizes) for sizes in pairwise(widths))
        self.end = nn.Linear(WIDTH, 1)

    def forward(self, x: Any, t: Any) -> Any:
        """Columns of places and times to one of numbers."""
        h = torch.cat([x, t], 1)
        for layer in self.hidden:
            h = layer(h).tanh()
        return t * (1 - x * x) * self.end(h) - torch.sin(np.pi * x)


def batches() -> Iterator[dict[str, np.ndarray]]:
    """Points between -1 and 1, and times between 0 and 1."""
    generator = np.random.default_rng(0)
    while True:
        x, t = generator.uniform([[[-1]], [[0]]], 1, (2, POINTS, 1)).astype(np.float32)
        yield {"x": x, "t": t}


def loss(network: Any, batch: Any) -> Any:
    """The mean square of the residual."""
    x, t = (batch[name].clone().requires_grad_() for name in ("x", "t"))
    u = network(x, t)
    u_x, u_t = torch.autograd.grad(u.sum(), (x, t), create_graph=True)
    (u_xx,) = torch.autograd.grad(u_x.sum(), x, create_graph=True)
    return (u_t + u * u_x - VISCOSITY * u_xx).square().mean()


def make_step(network: Network) -> Callable[[Any], Any]:
    """The training step, which returns the loss.

    ``torch.compile`` cannot compile gradients of gradients, and fails for ``torch.func.jvp``.
    """
    optimizer = torch.optim.Adam(network.parameters(), 1e-3, fused=True)

    def step(batch: Any) -> Any:
        optimizer.zero_grad()
        value = loss(network, batch)
        value.backward(inputs=list(network.parameters()))
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
