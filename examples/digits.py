"""Trains a convolutional classifier on scikit-learn's handwritten digits; ``make run`` runs it.

It writes to ``runs/digits/``: the symbol, its parameters, the learning curve and a drawing. Then a
new process loads symbol and parameters, and its predictions must be identical.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
from sklearn.datasets import load_digits

import symop as so
from symop import train

RUN = Path("runs/digits")
CLASSES = 10
TEST = 360


def network() -> so.Symbol:
    """Maps images of shape (batch, 1, 8, 8) to logits of shape (batch, 10)."""
    hidden = so.var("image")
    for stage, channels in enumerate((32, 64), start=1):
        hidden = so.convolution(
            hidden, channels=channels, kernel=(3, 3), padding=1, use_bias=False, name=f"conv{stage}"
        )
        hidden = so.relu(so.batch_norm(hidden, name=f"norm{stage}"))
    hidden = so.max_pooling(hidden, kernel=(2, 2), stride=(2, 2))
    hidden = so.dropout(so.flatten(hidden), rate=0.3)
    hidden = so.relu(so.fully_connected(hidden, units=128, name="dense1"))
    return so.fully_connected(so.dropout(hidden, rate=0.3), units=CLASSES, name="dense2")


def digits(seed: int = 0) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Training and test examples, split at random: 1,437 and 360 images."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(images))
    image = (images[order] / 16.0).astype(np.float32).reshape(-1, 1, 8, 8)
    label = labels[order].astype(np.int32)
    return (
        {"image": image[TEST:], "label": label[TEST:]},
        {"image": image[:TEST], "label": label[:TEST]},
    )


def run(
    epochs: int = 30, batch_size: int = 64, *, folder: Path = RUN, progress: bool = True
) -> float:
    """Train, write the results to ``folder`` and return the accuracy on the test images."""
    training, test = digits()
    logits, label = network(), so.var("label", dtype="int32")
    loss = so.mean(so.softmax_cross_entropy(logits, label))
    right = so.mean(so.equal(so.argmax(logits, axis=-1), label))
    steps = epochs * (len(training["label"]) // batch_size)
    optimizer = optax.adamw(optax.cosine_decay_schedule(3e-3, steps), weight_decay=1e-3)
    trainer = train.Trainer(loss, optimizer, inputs=["image", "label"], metrics={"accuracy": right})
    state, history = trainer.fit(
        trainer.init(0, image=(batch_size, 1, 8, 8), label=(batch_size,)),
        training,
        epochs=epochs,
        batch_size=batch_size,
        validation=test,
        progress=progress,
    )
    weights = {**state.params, **state.states}
    write(folder, logits, weights, history)
    predict = jax.jit(logits.to_jax())
    np.save(folder / "predictions.npy", predict(image=test["image"], **weights))
    return accuracy(np.load(folder / "predictions.npy"), test)


def accuracy(scores: Any, data: dict[str, np.ndarray]) -> float:
    """The fraction of examples whose largest score is that of their label."""
    return float((np.argmax(scores, axis=-1) == data["label"]).mean())


def write(folder: Path, logits: so.Symbol, weights: dict[str, Any], history: list[Any]) -> None:
    """Save the symbol, its parameters, the drawing of its gradient and the learning curve."""
    folder.mkdir(parents=True, exist_ok=True)
    logits.save(folder / "symbol.json")
    so.save_parameters(folder / "parameters.safetensors", weights)
    typed = logits.with_types(image=(1, 1, 8, 8))
    (folder / "graph.svg").write_text(typed.to_svg(), encoding="utf-8")
    train.plot_history(history, folder / "curve.png")


def verify(folder: Path = RUN) -> None:
    """Load symbol and parameters, and compare the predictions with those written by training.

    Raises:
        SystemExit: the predictions differ.
    """
    _, test = digits()
    logits = so.load(folder / "symbol.json")
    weights = so.load_parameters(folder / "parameters.safetensors")
    scores = jax.jit(logits.to_jax())(image=test["image"], **weights)
    if not np.array_equal(scores, np.load(folder / "predictions.npy")):
        raise SystemExit("the reloaded model predicts differently")
    print(f"reloaded in a fresh process: {len(scores)} predictions identical")


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--folder", type=Path, default=RUN)
    parser.add_argument("--verify", action="store_true", help="only compare reloaded predictions")
    arguments = parser.parse_args()
    if arguments.verify:
        verify(arguments.folder)
        return
    reached = run(arguments.epochs, folder=arguments.folder)
    command = [sys.executable, __file__, "--verify", "--folder", str(arguments.folder)]
    subprocess.run(command, check=True)
    print(f"wrote {', '.join(sorted(path.name for path in arguments.folder.iterdir()))}")
    print(f"test accuracy {reached:.3f}")


if __name__ == "__main__":
    main()
