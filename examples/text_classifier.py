"""Trains a small classifier of texts of any length: embedding, convolution over words, pooling.

The texts are synthetic: filler with words of praise and blame, some of them negated. The label
depends on the words before "good" and "bad", so a bag of words cannot predict it.
"""

import argparse
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import optax

import symop as so
from symop import train

PRAISE, BLAME, NEGATION = ("good", "great", "fine"), ("bad", "poor", "dull"), ("not", "never")
FILLER = ("the", "a", "film", "plot", "cast", "music", "was", "is", "and", "with", "very", "this")
VOCABULARY = (*PRAISE, *BLAME, *NEGATION, *FILLER)
LONGEST = 24
FEATURES = 16
CHANNELS = 32


# Texts -----------------------------------------------------------------------------------------


def texts(count: int, seed: int) -> tuple[list[list[int]], np.ndarray]:
    """Texts as lists of word numbers, and a label of each: praise (1) or blame (0)."""
    generator = np.random.default_rng(seed)
    made = [_text(generator) for _ in range(count)]
    return [words for words, _ in made], np.asarray([label for _, label in made], np.int32)


def _text(generator: np.random.Generator) -> tuple[list[int], int]:
    """One or three judgments with filler in between; the majority is the label."""
    words: list[str] = []
    verdict = 0
    for _ in range(generator.choice([1, 3])):
        words += generator.choice(FILLER, generator.integers(0, 6)).tolist()
        praise, negated = generator.random(2) < 0.5
        words += [str(generator.choice(NEGATION))] if negated else []
        words.append(str(generator.choice(PRAISE if praise else BLAME)))
        verdict += 1 if praise != negated else -1
    words += generator.choice(FILLER, generator.integers(0, 4)).tolist()
    return [VOCABULARY.index(word) for word in words], int(verdict > 0)


def batches(
    words: list[list[int]], labels: np.ndarray, size: int, seed: int
) -> Iterator[dict[str, Any]]:
    """Shuffled batches; all have the same static length, so that one program serves all."""
    order = np.random.default_rng(seed).permutation(len(words))
    for start in range(0, len(order) - size + 1, size):
        chosen = order[start : start + size]
        yield {**fed([words[i] for i in chosen]), "label": labels[chosen]}


def fed(words: list[list[int]]) -> dict[str, Any]:
    """The network's inputs: all words one after another, and the offset of each text."""
    text = so.LoDTensor.from_lists(words, dtype=np.int32).with_total_length(LONGEST * len(words))
    return text.as_feed("words")


# The network -----------------------------------------------------------------------------------


def network(context_length: int = 3) -> so.Symbol:
    """Maps words in texts of any length to two logits for each text."""
    text = so.LoDTensor(so.var("words", dtype="int32"), [so.var("words@LOD0", dtype="int32")])
    table = so.var("table", shape=(len(VOCABULARY), FEATURES))
    embedded = text.with_data(so.lookup_table(table, text.data))
    hidden = embedded.sequence_conv(
        channels=CHANNELS, context_length=context_length, name="context"
    )
    pooled = hidden.with_data(so.relu(hidden.data)).sequence_pool("mean")
    return so.fully_connected(pooled, units=2, name="dense")


def run(
    epochs: int = 5, batch_size: int = 32, *, context_length: int = 3, progress: bool = True
) -> float:
    """Train and return the accuracy on held-out texts."""
    training, test = texts(2000, seed=0), texts(500, seed=1)
    logits = network(context_length)
    loss = so.mean(so.softmax_cross_entropy(logits, so.var("label", dtype="int32")))
    trainer = train.Trainer(loss, optax.adam(1e-2), inputs=["words", "words@LOD0", "label"])
    shapes = {"words": (LONGEST * batch_size,), "words@LOD0": (batch_size + 1,)}
    state = trainer.init(0, **shapes, label=(batch_size,))
    predict = jax.jit(logits.to_jax())
    reached = 0.0
    for epoch in range(epochs):
        for batch in batches(*training, batch_size, seed=epoch):
            state, metrics = trainer.step(state, batch)
        scores = predict(**fed(test[0]), **state.params)
        reached = float((np.argmax(scores, axis=-1) == test[1]).mean())
        if progress:
            loss_now = float(metrics["loss"])
            print(f"epoch {epoch + 1}: loss {loss_now:.3f}, test accuracy {reached:.3f}")
    return reached


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--context-length", type=int, default=3, help="1 is a bag of words")
    arguments = parser.parse_args()
    reached = run(arguments.epochs, context_length=arguments.context_length)
    print(f"test accuracy {reached:.3f}")


if __name__ == "__main__":
    main()
