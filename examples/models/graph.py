"""A graph network: edges send messages, and nodes add up those that they receive."""

from collections.abc import Iterator

import numpy as np
import optax

import symop as so
from symop import train

NODES, EDGES, WIDTH, LAYERS = 512, 4096, 64, 4


def mlp(x: so.Symbol, *widths: int) -> so.Symbol:
    """Layers with ReLU between them."""
    for width in widths[:-1]:
        x = so.relu(so.fully_connected(x, units=width))
    return so.fully_connected(x, units=widths[-1])


def network(number: so.Symbol, sender: so.Symbol, receiver: so.Symbol) -> so.Symbol:
    """A number for each node."""
    h = mlp(number, WIDTH, WIDTH)
    for _ in range(LAYERS):
        ends = [so.take(h, sender), so.take(h, receiver)]
        messages = mlp(so.concat(*ends, axis=1), WIDTH, WIDTH)
        received = so.index_add(so.zeros_like(h), receiver, messages)
        h = so.layer_norm(h + mlp(so.concat(h, received, axis=1), WIDTH, WIDTH))
    return mlp(h, WIDTH, 1)


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


def trainer() -> train.Trainer:
    """The training step."""
    number, target = (so.var(name, shape=(NODES, 1)) for name in ("number", "target"))
    ends = [so.var(name, shape=(EDGES,), dtype="int32") for name in ("sender", "receiver")]
    loss = so.mean(so.square(network(number, *ends) - target))
    names = ["number", "sender", "receiver", "target"]
    return train.Trainer(loss, optax.adam(3e-4), inputs=names)


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
