"""Classifies examples of many columns, few of which are not zero, as a script for MXNet does.

Data are csr matrices from a LibSVM file, the weight and its gradient are row-sparse, and a store
keeps the weight: a step reads and updates only the rows that a batch names. The data are made up.
Only the import differs from what runs on MXNet.
"""

import argparse
import logging
import tempfile
from pathlib import Path

import numpy as np

import symop.interop.mxnet as mx


def write_libsvm(path: Path, examples: int, columns: int, entries: int, seed: int) -> None:
    """Writes examples whose label is the sign of a fixed linear function, with a little noise."""
    truth = np.random.default_rng(0).normal(size=columns)
    draw = np.random.default_rng(seed)
    with path.open("w") as file:
        for _ in range(examples):
            # Low columns are far more frequent, as words are.
            named = np.unique((columns * draw.random(entries) ** 6).astype(int))
            values = draw.normal(size=len(named))
            label = int(truth[named] @ values + 0.1 * draw.normal() > 0)
            pairs = " ".join(f"{i}:{x:.5f}" for i, x in zip(named, values, strict=True))
            file.write(f"{label} {pairs}\n")


def linear_model(columns: int, positive_class_weight: float) -> mx.sym.Symbol:
    """Two scores for each example, and a softmax loss weighted by class."""
    data = mx.symbol.Variable("data", stype="csr")
    label = mx.symbol.Variable("softmax_label")
    weight = mx.symbol.Variable(
        "weight", stype="row_sparse", init=mx.init.Normal(0.01), shape=(columns, 2)
    )
    bias = mx.symbol.Variable("bias", shape=(2,), init=mx.init.Zero())
    scores = mx.symbol.broadcast_add(mx.symbol.sparse.dot(data, weight), bias)
    shares = mx.symbol.log_softmax(scores)
    costs = label * positive_class_weight + (1.0 - label)
    loss = mx.symbol.MakeLoss(-mx.symbol.pick(shares, label, axis=1) * costs)
    return mx.symbol.Group([mx.symbol.BlockGrad(mx.symbol.softmax(scores)), loss])


def rows_of(batch: mx.io.DataBatch) -> dict[str, mx.nd.NDArray]:
    """The rows of the weight that a batch reads: its columns."""
    return {"weight": batch.data[0].indices}


def accuracy(module: mx.mod.Module, batches: mx.io.DataIter) -> float:
    """The share of examples whose larger score is right."""
    right = seen = 0
    batches.reset()
    for batch in batches:
        module.prepare(batch, sparse_row_id_fn=rows_of)
        module.forward(batch, is_train=False)
        found = module.get_outputs()[0].asnumpy().argmax(axis=1)
        kept = len(found) - batch.pad
        right += int((found == batch.label[0].asnumpy())[:kept].sum())
        seen += kept
    return right / seen


def main(
    epochs: int = 8,
    examples: int = 4000,
    columns: int = 20_000,
    entries: int = 30,
    batch_size: int = 100,
    optimizer: str = "adagrad",
    lr: float = 0.2,
) -> dict[str, float]:
    """Train; the accuracy before and after, on examples that were not trained on."""
    mx.random.seed(3)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{name}.libsvm" for name in ("train", "test")]
        write_libsvm(paths[0], examples, columns, entries, seed=1)
        write_libsvm(paths[1], examples // 4, columns, entries, seed=2)
        train, test = (
            mx.io.LibSVMIter(data_libsvm=str(path), data_shape=(columns,), batch_size=batch_size)
            for path in paths
        )
    module = mx.mod.Module(
        linear_model(columns, 1.0), data_names=["data"], label_names=["softmax_label"]
    )
    module.bind(data_shapes=train.provide_data, label_shapes=train.provide_label)
    module.init_params()
    module.init_optimizer(
        kvstore=mx.kvstore.create("local"),
        optimizer=optimizer,
        optimizer_params={"learning_rate": lr, "rescale_grad": 1.0 / batch_size},
    )
    before = accuracy(module, test)
    for epoch in range(epochs):
        train.reset()
        losses = []
        for batch in train:
            module.prepare(batch, sparse_row_id_fn=rows_of)
            module.forward_backward(batch)
            module.update()
            losses.append(float(module.get_outputs()[1].asnumpy().mean()))
        logging.info("epoch %d, loss %.4f", epoch, np.mean(losses))
    after = accuracy(module, test)
    weight = module.get_params()[0]["weight"]
    print(f"accuracy {before:.3f} before, {after:.3f} after; the weight is {weight.stype}")
    return {"before": before, "after": after}


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--examples", type=int, default=4000)
    parser.add_argument("--columns", type=int, default=20_000)
    parser.add_argument("--entries", type=int, default=30, help="entries of an example")
    parser.add_argument("--batch-size", type=int, default=100)
    parser.add_argument("--optimizer", default="adagrad")
    parser.add_argument("--lr", type=float, default=0.2)
    main(**vars(parser.parse_args()))
