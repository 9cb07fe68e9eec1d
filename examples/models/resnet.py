"""ResNet-18 for small images, with batch normalization."""

from collections.abc import Iterator

import numpy as np
import optax

import symop as so
from symop import train

SIZE, CLASSES, BATCH, WIDTHS = 16, 10, 16, (16, 32, 64, 128)


def convolved(x: so.Symbol, channels: int, kernel: int, stride: int = 1) -> so.Symbol:
    """A convolution without bias, and batch normalization."""
    how = {"layout": "NHWC", "weight_layout": "HWIO", "padding": kernel // 2, "use_bias": False}
    y = so.convolution(x, channels=channels, kernel=kernel, stride=stride, **how)
    return so.batch_norm(y, axis=-1)


def network(image: so.Symbol) -> so.Symbol:
    """The logits of the classes."""
    h = so.relu(convolved(image, WIDTHS[0], 3))
    for i, channels in enumerate(WIDTHS):
        for j in range(2):
            stride = 2 if i and not j else 1
            x = so.relu(convolved(h, channels, 3, stride))
            x = convolved(x, channels, 3)
            h = so.relu(x + (convolved(h, channels, 1, stride) if stride > 1 else h))
    return so.fully_connected(so.mean(h, axis=(1, 2)), units=CLASSES)


def batches() -> Iterator[dict[str, np.ndarray]]:
    """Noisy images with a bright square, whose position is the class."""
    generator = np.random.default_rng(0)
    while True:
        label = generator.integers(0, CLASSES, BATCH, np.int32)
        image = generator.normal(size=(BATCH, SIZE, SIZE, 3)).astype(np.float32)
        for i, one in enumerate(label):
            image[i, one : one + 6, 3:9] += 1
        yield {"image": image, "label": label}


def trainer() -> train.Trainer:
    """The training step."""
    logits = network(so.var("image", shape=(BATCH, SIZE, SIZE, 3)))
    label = so.var("label", shape=(BATCH,), dtype="int32")
    loss = so.mean(so.softmax_cross_entropy(logits, label))
    return train.Trainer(loss, optax.sgd(0.002, momentum=0.9), inputs=["image", "label"])


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
