"""Trains a multilayer perceptron on handwritten digits, as a script for MXNet does.

``Module.fit`` with checkpoints after each epoch; then scores, predictions, and the same predictions
from the files that training wrote. Only the import differs from what runs on MXNet.
"""

import argparse
import logging
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import symop.interop.mxnet as mx

TEST = 360
PREFIX = "runs/mxnet/mlp"


def digits_iter(batch_size: int) -> tuple[mx.io.NDArrayIter, mx.io.NDArrayIter]:
    """Batches to train on, shuffled, and batches to validate with."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.permutation(len(images))
    images, labels = images[order] / 16.0, labels[order]
    train = mx.io.NDArrayIter(images[TEST:], labels[TEST:], batch_size, shuffle=True)
    val = mx.io.NDArrayIter(images[:TEST], labels[:TEST], batch_size)
    return train, val


def mlp(hidden: tuple[int, ...] = (128, 64), num_classes: int = 10) -> mx.sym.Symbol:
    """Fully connected layers with relu between them, and a softmax."""
    net = mx.sym.Variable("data")
    for i, num_hidden in enumerate(hidden, start=1):
        net = mx.sym.FullyConnected(net, num_hidden=num_hidden, name=f"fc{i}")
        net = mx.sym.Activation(net, act_type="relu", name=f"relu{i}")
    net = mx.sym.FullyConnected(net, num_hidden=num_classes, name=f"fc{len(hidden) + 1}")
    return mx.sym.SoftmaxOutput(net, name="softmax")


def reload_and_predict(
    prefix: str, epoch: int, val: mx.io.NDArrayIter, ctx: mx.Context
) -> np.ndarray:
    """The predictions of a checkpoint."""
    sym, arg_params, aux_params = mx.model.load_checkpoint(prefix, epoch)
    mod = mx.mod.Module(sym, context=ctx, label_names=None)
    mod.bind(data_shapes=val.provide_data, for_training=False)
    mod.set_params(arg_params, aux_params, allow_missing=True)
    return mod.predict(val).asnumpy()


def main(
    epochs: int = 12,
    batch_size: int = 64,
    lr: float = 0.1,
    momentum: float = 0.9,
    model_prefix: str = PREFIX,
    load_epoch: int | None = None,
    gpu: int | None = None,
) -> dict[str, float]:
    """Train; the accuracy on digits that were not trained on, and how it compares after loading."""
    mx.random.seed(1)
    np.random.seed(1)
    ctx = mx.cpu() if gpu is None else mx.gpu(gpu)
    train, val = digits_iter(batch_size)
    Path(model_prefix).parent.mkdir(parents=True, exist_ok=True)

    sym, arg_params, aux_params = mlp(), None, None
    if load_epoch is not None:
        sym, arg_params, aux_params = mx.model.load_checkpoint(model_prefix, load_epoch)
    mod = mx.mod.Module(sym, context=ctx)
    mod.fit(
        train,
        eval_data=val,
        eval_metric=["acc", "ce"],
        optimizer="sgd",
        optimizer_params={"learning_rate": lr, "momentum": momentum, "wd": 1e-4},
        initializer=mx.init.Xavier(factor_type="in", magnitude=2.34),
        arg_params=arg_params,
        aux_params=aux_params,
        begin_epoch=load_epoch or 0,
        num_epoch=epochs,
        batch_end_callback=mx.callback.Speedometer(batch_size, 10),
        epoch_end_callback=mx.callback.do_checkpoint(model_prefix),
    )

    scores = dict(mod.score(val, ["acc", mx.metric.TopKAccuracy(top_k=3)]))
    found = mod.predict(val).asnumpy()
    again = reload_and_predict(model_prefix, epochs, val, ctx)
    labels = val.label[0][1].asnumpy()
    by_hand = (found.argmax(axis=1) == labels).mean()
    change = np.abs(found - again).max()
    print(f"validation: {scores}; by hand {by_hand:.4f}")
    print(f"predictions of {model_prefix}-{epochs:04d}.params differ by at most {change:g}")
    return {**scores, "accuracy by hand": float(by_hand), "change": float(change)}


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--model-prefix", default=PREFIX, help="where checkpoints are written")
    parser.add_argument("--load-epoch", type=int, help="go on from this checkpoint")
    parser.add_argument("--gpu", type=int, help="number of a GPU; the CPU unless given")
    main(**vars(parser.parse_args()))
