"""A recommender like DLRM: embeddings of categories, numbers, and their interactions."""

from collections.abc import Iterator

import numpy as np

import symop as so
from symop import train

TABLES, ROWS, WIDTH, NUMBERS, BATCH = 8, 20_000, 16, 13, 256
PAIRS = np.flatnonzero(np.triu(np.ones((TABLES + 1, TABLES + 1)), 1))


def tower(x: so.Symbol, *widths: int) -> so.Symbol:
    """Layers with ReLU."""
    for width in widths:
        x = so.relu(so.fully_connected(x, units=width))
    return x


def network(ids: so.Symbol, numbers: so.Symbol) -> so.Symbol:
    """The logit of a click."""
    dense = tower(numbers, 64, WIDTH)
    table = so.var("table", shape=(TABLES * ROWS, WIDTH))
    rows = so.lookup_table(table, ids + ROWS * np.arange(TABLES, dtype=np.int32), sparse=True)
    features = so.concat(so.expand_dims(dense, axis=1), rows, axis=1)
    products = so.flatten(features @ so.permute_dims(features, axes=(0, 2, 1)))
    top = tower(so.concat(dense, so.take(products, PAIRS, axis=1), axis=1), 64, 32)
    return so.fully_connected(top, units=1)[:, 0]


def batches() -> Iterator[dict[str, np.ndarray]]:
    """Clicks that depend on a category and a number; few categories are frequent."""
    generator = np.random.default_rng(0)
    while True:
        ids = (ROWS * generator.random((BATCH, TABLES)) ** 4).astype(np.int32)
        numbers = generator.normal(size=(BATCH, NUMBERS)).astype(np.float32)
        score = 3 * np.sin(ids[:, 0]) + numbers[:, 0]
        yield {"ids": ids, "numbers": numbers, "clicked": np.float32(score > 0)}


def trainer() -> train.Trainer:
    """The training step, which updates only the rows that a batch names."""
    ids = so.var("ids", shape=(BATCH, TABLES), dtype="int32")
    numbers = so.var("numbers", shape=(BATCH, NUMBERS))
    clicked = so.var("clicked", shape=(BATCH,))
    loss = so.mean(so.sigmoid_cross_entropy(network(ids, numbers), clicked))
    return train.Trainer(loss, so.optim.Adagrad(0.05), inputs=["ids", "numbers", "clicked"])


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
