"""Trains LeNet on handwritten digits of 16 by 16 pixels, as a script for MXNet does.

Convolutions, pooling, a learning rate that falls in steps, top-k accuracy, and a monitor if one is
asked for. Only the import differs from what runs on MXNet.
"""

import argparse
import logging

import numpy as np
from sklearn.datasets import load_digits

import symop.interop.mxnet as mx

TEST = 360


def get_symbol(num_classes: int = 10) -> mx.sym.Symbol:
    """Two stages of convolution, tanh and pooling, and two fully connected layers."""
    data = mx.symbol.Variable("data")
    # first stage
    conv1 = mx.symbol.Convolution(data=data, kernel=(5, 5), num_filter=20, name="conv1")
    tanh1 = mx.symbol.Activation(data=conv1, act_type="tanh")
    pool1 = mx.symbol.Pooling(data=tanh1, pool_type="max", kernel=(2, 2), stride=(2, 2))
    # second stage
    conv2 = mx.symbol.Convolution(data=pool1, kernel=(5, 5), num_filter=50, name="conv2")
    tanh2 = mx.symbol.Activation(data=conv2, act_type="tanh")
    pool2 = mx.symbol.Pooling(data=tanh2, pool_type="max", kernel=(2, 2), stride=(2, 2))
    # classifier
    flatten = mx.symbol.Flatten(data=pool2)
    fc1 = mx.symbol.FullyConnected(data=flatten, num_hidden=128, name="fc1")
    tanh3 = mx.symbol.Activation(data=fc1, act_type="tanh")
    drop = mx.symbol.Dropout(data=tanh3, p=0.3)
    fc2 = mx.symbol.FullyConnected(data=drop, num_hidden=num_classes, name="fc2")
    return mx.symbol.SoftmaxOutput(data=fc2, name="softmax")


def get_iters(batch_size: int) -> tuple[mx.io.DataIter, mx.io.DataIter]:
    """Digits with each pixel made four, of shape (1, 16, 16)."""
    digits = load_digits()
    order = np.random.permutation(len(digits.target))
    images = mx.nd.array(digits.images[order, None] / 16.0 - 0.5)
    images = mx.nd.UpSampling(images, scale=2, sample_type="nearest")
    labels = mx.nd.array(digits.target[order])
    train = mx.io.NDArrayIter(
        images[TEST:], labels[TEST:], batch_size, shuffle=True, last_batch_handle="discard"
    )
    val = mx.io.NDArrayIter(images[:TEST], labels[:TEST], batch_size)
    return train, val


def main(
    epochs: int = 10,
    batch_size: int = 64,
    lr: float = 0.1,
    lr_factor: float = 0.3,
    lr_step_epochs: str = "5,8",
    monitor: int = 0,
) -> dict[str, float]:
    """Train; metrics on digits that were not trained on."""
    mx.random.seed(2)
    np.random.seed(2)
    train, val = get_iters(batch_size)
    network = get_symbol()
    mx.viz.print_summary(network, shape={"data": (1, 1, 16, 16)}, line_length=90)

    batches = train.num_data // batch_size
    steps = [batches * int(epoch) for epoch in lr_step_epochs.split(",")]
    optimizer_params = {
        "learning_rate": lr,
        "momentum": 0.9,
        "wd": 1e-4,
        "lr_scheduler": mx.lr_scheduler.MultiFactorScheduler(step=steps, factor=lr_factor),
    }
    mod = mx.mod.Module(symbol=network, context=mx.cpu())
    mod.fit(
        train,
        eval_data=val,
        eval_metric=["accuracy", mx.metric.create("top_k_accuracy", top_k=3)],
        kvstore="device",
        optimizer="sgd",
        optimizer_params=optimizer_params,
        initializer=mx.init.Xavier(rnd_type="gaussian", factor_type="in", magnitude=2),
        num_epoch=epochs,
        batch_end_callback=mx.callback.Speedometer(batch_size, 10),
        monitor=mx.mon.Monitor(monitor, pattern=".*weight") if monitor else None,
    )

    metrics = mx.metric.CompositeEvalMetric()
    for name in ("accuracy", "ce"):
        metrics.add(name)
    figures = dict(mod.score(val, metrics))
    print(" ".join(f"{name} {value:.4f}" for name, value in figures.items()))
    return figures


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)-15s %(message)s")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--lr-factor", type=float, default=0.3, help="by which the rate falls")
    parser.add_argument("--lr-step-epochs", default="5,8", help="after which epochs it falls")
    parser.add_argument("--monitor", type=int, default=0, help="log weights every so many batches")
    main(**vars(parser.parse_args()))
