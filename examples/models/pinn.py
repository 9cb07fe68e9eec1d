"""A network that solves Burgers' equation ``u_t + u u_x = nu u_xx`` with a sine at ``t = 0``."""

from collections.abc import Iterator

import numpy as np
import optax

import symop as so
from symop import train

POINTS, WIDTH, LAYERS, VISCOSITY = 1024, 64, 4, 0.01 / np.pi


def network(x: so.Symbol, t: so.Symbol) -> so.Symbol:
    """The solution at columns of points: a sine at ``t = 0``, and zero at both ends."""
    h = so.concat(x, t, axis=1)
    for _ in range(LAYERS):
        h = so.tanh(so.fully_connected(h, units=WIDTH))
    inside = t * (1 - x * x) * so.fully_connected(h, units=1)
    return inside - so.sin(np.pi * x)


def batches() -> Iterator[dict[str, np.ndarray]]:
    """Points between -1 and 1, and times between 0 and 1."""
    generator = np.random.default_rng(0)
    while True:
        x, t = generator.uniform([[[-1]], [[0]]], 1, (2, POINTS, 1)).astype(np.float32)
        yield {"x": x, "t": t}


def trainer() -> train.Trainer:
    """The training step."""
    x, t = (so.var(name, shape=(POINTS, 1)) for name in ("x", "t"))
    u, ones = network(x, t), so.ones_like(x)
    u_x, u_t, u_xx = (so.derivative(u, along, direction=ones) for along in (x, t, (x, x)))
    loss = so.mean(so.square(u_t + u * u_x - VISCOSITY * u_xx))
    return train.Trainer(loss, optax.adam(1e-3), inputs=["x", "t"])


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
