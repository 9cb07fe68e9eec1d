"""A convolutional classifier of handwritten digits, trained with optax."""

from typing import Any

import jax
import numpy as np
import optax
from sklearn.datasets import load_digits

import symop as so
from symop import train


def network(image: so.Symbol) -> Any:
    """The logits of ten classes."""
    how = {"layout": "NHWC", "weight_layout": "HWIO", "padding": 1}
    h = so.relu(so.convolution(image, channels=16, kernel=3, **how))
    h = so.max_pooling(h, kernel=(2, 2), stride=(2, 2), layout="NHWC")
    h = so.relu(so.fully_connected(h, units=64))
    return so.fully_connected(h, units=10)


def run(epochs: int = 10) -> float:
    """Trains, and returns the accuracy on 360 images that were not seen."""
    pixels, digits = load_digits(return_X_y=True)
    images, labels = np.float32(pixels / 16).reshape(-1, 8, 8, 1), np.int32(digits)
    logits = network(so.var("image"))
    loss = so.mean(so.softmax_cross_entropy(logits, so.var("label", dtype="int32")))
    trainer = train.Trainer(loss, optax.adam(3e-3), inputs=["image", "label"])
    state = trainer.init(0, image=(64, 8, 8, 1), label=(64,))
    seen = {"image": images[360:], "label": labels[360:]}
    state, _ = trainer.fit(state, seen, epochs=epochs, batch_size=64, progress=False)
    scores = jax.jit(logits.to_jax())(image=images[:360], **state.params)
    return float((np.argmax(scores, axis=1) == labels[:360]).mean())


if __name__ == "__main__":
    print(f"accuracy {run():.3f}")
