"""Trains a wide-and-deep recommender on synthetic clicks: sparse tables and a dense tower.

Each click has a user, an item, a few words and two numbers. Users and items follow a long-tailed
distribution, as in practice. Whether a user clicks depends on latent tastes, on the words that
match a taste, and on a bias of each item. The tables' gradients are row-sparse, so a step costs
only the rows that a batch names, whatever the tables' heights (Cheng et al., "Wide & Deep Learning
for Recommender Systems", 2016).
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import symop as so

USERS, ITEMS, WORDS = 10_000, 4_000, 200
TASTES, WORDS_EACH, FEATURES = 8, 4, 16
BATCH = 512
Clicks = dict[str, np.ndarray]


# Clicks ----------------------------------------------------------------------------------------


def clicks(count: int, seed: int) -> Clicks:
    """Clicks, and views without a click, by latent tastes that are the same for each seed."""
    hidden = np.random.default_rng(0)
    taste = hidden.normal(size=(USERS, TASTES))
    topic = hidden.normal(size=(ITEMS, TASTES))
    theme = hidden.integers(0, TASTES, WORDS)
    bias = hidden.normal(-0.5, 1.0, ITEMS)
    generator = np.random.default_rng(seed)
    user, item = _long_tail(generator, USERS, count), _long_tail(generator, ITEMS, count)
    words = generator.integers(0, WORDS, (count, WORDS_EACH))
    numbers = generator.normal(size=(count, 2))
    liked = (taste[user] * topic[item]).sum(1) / TASTES**0.5
    fitting = np.take_along_axis(taste[user], theme[words], 1).mean(1)
    score = bias[item] + 1.2 * liked + fitting + 0.5 * numbers[:, 0] * numbers[:, 1]
    clicked = generator.random(count) < 1 / (1 + np.exp(-score))
    return {
        "user": user.astype(np.int32),
        "item": item.astype(np.int32),
        "words": words.astype(np.int32),
        "numbers": numbers.astype(np.float32),
        "clicked": clicked.astype(np.float32),
    }


def _long_tail(generator: np.random.Generator, count: int, size: int) -> np.ndarray:
    """Numbers below ``count``, of which low ones are far more frequent."""
    return (count * generator.random(size) ** 4).astype(np.int64)


def batches(data: Clicks, size: int, seed: int) -> Iterator[Clicks]:
    """Shuffled batches."""
    order = np.random.default_rng(seed).permutation(len(data["user"]))
    for start in range(0, len(order) - size + 1, size):
        chosen = order[start : start + size]
        yield {name: values[chosen] for name, values in data.items()}


# The program -----------------------------------------------------------------------------------


def recommender(batch: int = BATCH) -> tuple[so.Program, so.Variable, so.Variable]:
    """The program of a training step, its loss, and the scores of the batch."""
    with so.program_guard(so.Program()) as program:
        user, item = so.data("user", (batch,), "int32"), so.data("item", (batch,), "int32")
        words = so.data("words", (batch, WORDS_EACH), "int32")
        numbers, clicked = so.data("numbers", (batch, 2)), so.data("clicked", (batch,))
        wide = _table("item_bias", ITEMS, 1, item) + _table("user_bias", USERS, 1, user)
        bag = so.mean(_table("word", WORDS, FEATURES, words), axis=1)
        of_user, of_item = (
            _table("user_taste", USERS, FEATURES, user),
            _table("item_topic", ITEMS, FEATURES, item),
        )
        product = numbers[:, 0:1] * numbers[:, 1:2]
        deep = so.concat(of_user, of_item, bag, of_user * of_item, of_user * bag, numbers, axis=1)
        for i, units in enumerate((64, 32)):
            deep = so.relu(so.fully_connected(deep, units=units, name=f"tower{i}"))
        parts = wide + product * so.parameter("cross", (1,), initial=0)
        logits = so.fully_connected(deep, units=1, name="top") + parts
        scores = so.reshape(logits, shape=(batch,))
        loss = so.mean(so.sigmoid_cross_entropy(scores, clicked))
    return program, loss, scores


def _table(name: str, height: int, width: int, ids: so.Variable) -> so.Variable:
    """The rows of a table that a batch names; the gradient of the table holds only these rows."""
    table = so.parameter(name, (height, width), initial="normal(0.05)")
    return so.lookup_table(table, ids, sparse=True)


def area_under_curve(scores: np.ndarray, clicked: np.ndarray) -> float:
    """The probability that a click has a higher score than a view without a click."""
    order = np.argsort(scores)
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    positive = clicked > 0.5
    count = positive.sum()
    area = ranks[positive].sum() - count * (count + 1) / 2
    return float(area / (count * (len(scores) - count)))


def evaluated(program: so.Program, scores: so.Variable, data: Clicks) -> float:
    """The area under the curve on held-out clicks."""
    found, seen = [], []
    for batch in batches(data, BATCH, seed=0):
        fed = {name: values for name, values in batch.items() if name != "clicked"}
        found.append(np.asarray(program.run(fed, scores.name)))
        seen.append(batch["clicked"])
    return area_under_curve(np.concatenate(found), np.concatenate(seen))


def run(
    epochs: int = 2,
    examples: int = 200_000,
    folder: Path | None = None,
    *,
    progress: bool = True,
) -> list[float]:
    """Train; returns the area under the curve on held-out clicks after each epoch."""
    so.random.seed(0)
    data, held_out = clicks(examples, seed=1), clicks(20_480, seed=2)
    program, loss, scores = recommender()
    prediction = program.clone(updates=False)
    so.optim.Adam(0.002, lazy=True, clip=so.optim.ClipByGlobalNorm(5.0)).minimize(loss)
    reached = []
    for epoch in range(epochs):
        losses = [program.run(batch, loss) for batch in batches(data, BATCH, seed=epoch)]
        reached.append(evaluated(prediction, scores, held_out))
        if folder is not None:
            program.save(folder / "program.json")
            so.checkpoint.save(folder / "state.safetensors", program)
        if progress:
            mean = float(np.mean([float(one) for one in losses]))
            print(f"epoch {epoch + 1}: loss {mean:.4f}, area under the curve {reached[-1]:.4f}")
    return reached


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--examples", type=int, default=200_000)
    parser.add_argument("--out", type=Path, help="where to write program and state")
    arguments = parser.parse_args()
    if arguments.out is not None:
        arguments.out.mkdir(parents=True, exist_ok=True)
    run(arguments.epochs, arguments.examples, arguments.out)


if __name__ == "__main__":
    main()
