"""An LSTM that reads texts of different lengths, and says whether their brackets match."""

from typing import Any

import numpy as np
import optax

import symop as so
from symop import train

LONGEST = 24


def texts(count: int, seed: int) -> dict[str, np.ndarray]:
    """Texts as rows of characters, 1 for "(" and 2 for ")", their lengths and labels."""
    generator = np.random.default_rng(seed)
    length = 2 * generator.integers(1, LONGEST // 2 + 1, count, dtype=np.int32)
    text = np.zeros((count, LONGEST), np.int32)
    label = np.zeros(count, np.int32)
    for i, n in enumerate(length):
        while True:
            closes = generator.random(n) < 0.5
            depth = np.cumsum(1 - 2 * closes)
            label[i] = depth[-1] == 0 and depth.min() >= 0
            if label[i] == i % 2:  # as many of both
                break
        text[i, :n] = 1 + closes
    return {"text": text, "length": length, "label": label}


def network(text: so.Symbol, length: so.Symbol) -> Any:
    """Two logits for each text."""
    h = so.lookup_table(so.permute_dims(text, axes=(1, 0)), rows=3, width=8)
    _, last, _ = so.lstm(h, hidden_size=32, lengths=length)
    return so.fully_connected(so.squeeze(last, axis=0), units=2)


def run(epochs: int = 12) -> float:
    """Trains on 2,048 texts, and returns the accuracy on 500 others."""
    text, length, label = (so.var(n, dtype="int32") for n in ("text", "length", "label"))
    logits = network(text, length)
    loss = so.mean(so.softmax_cross_entropy(logits, label))
    trainer = train.Trainer(loss, optax.adam(1e-2), inputs=["text", "length", "label"])
    state = trainer.init(0, text=(64, LONGEST), length=(64,), label=(64,))
    state, _ = trainer.fit(state, texts(2048, 1), epochs=epochs, batch_size=64, progress=False)
    test = texts(500, seed=0)
    answer = test.pop("label")
    return float((np.argmax(logits.eval(**test, **state.params), axis=1) == answer).mean())


if __name__ == "__main__":
    print(f"accuracy {run():.3f}")
