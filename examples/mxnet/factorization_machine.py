"""Predicts clicks from pairs of columns by a factorization machine, as a script for MXNet does.

Each column has a vector; the product of the vectors of two columns is the weight of their pair
(Rendle, 2010). Data are csr matrices from a LibSVM file; vectors and weights are row-sparse, and a
step reads and updates only the rows that a batch names. The data are made up. Only the import
differs from what runs on MXNet.
"""

import argparse
import logging
import tempfile
from pathlib import Path

import numpy as np

import symop.interop.mxnet as mx


def write_libsvm(path: Path, examples: int, columns: int, entries: int, seed: int) -> None:
    """Writes examples that are clicked or not because of the pairs of their columns."""
    taste = np.random.default_rng(0).normal(size=(columns, 2))
    draw = np.random.default_rng(seed)
    with path.open("w") as file:
        for _ in range(examples):
            named = np.unique(draw.integers(columns, size=entries))
            total = taste[named].sum(axis=0)
            pairs = 0.5 * (total @ total - (taste[named] ** 2).sum())
            label = int(pairs > 0)
            file.write(f"{label} {' '.join(f'{i}:1' for i in named)}\n")


def factorization_machine(factors: int, columns: int) -> mx.sym.Symbol:
    """A bias, a weight for each column, and the products of vectors for each pair of columns."""
    x = mx.symbol.Variable("data", stype="csr")
    v = mx.symbol.Variable(
        "v", shape=(columns, factors), stype="row_sparse", init=mx.init.Normal(0.1)
    )
    w = mx.symbol.Variable("w", shape=(columns, 1), stype="row_sparse", init=mx.init.Zero())
    w0 = mx.symbol.Variable("w0", shape=(1,), init=mx.init.Zero())
    linear = mx.symbol.broadcast_add(mx.symbol.sparse.dot(x, w), w0)
    # The sum over pairs is half of the square of the sum without the squares of its terms.
    norms = mx.symbol.sparse.square_sum(data=v, axis=1, keepdims=True)
    of_itself = mx.symbol.sparse.dot(mx.symbol.sparse.square(x), norms)
    together = mx.symbol.sum(mx.symbol.square(mx.symbol.sparse.dot(x, v)), axis=1, keepdims=True)
    score = linear + 0.5 * (together - of_itself)
    return mx.symbol.LogisticRegressionOutput(score.reshape((-1,)), name="out")


def rows_of(batch: mx.io.DataBatch) -> dict[str, mx.nd.NDArray]:
    """The rows of the parameters that a batch reads: its columns."""
    columns = batch.data[0].indices
    return {"v": columns, "w": columns}


def share_right(label: np.ndarray, pred: np.ndarray) -> float:
    """The share of clicks that are told."""
    return float(((pred.ravel() > 0.5) == label.ravel()).mean())


def main(
    epochs: int = 10,
    examples: int = 8000,
    columns: int = 400,
    entries: int = 6,
    factors: int = 4,
    batch_size: int = 100,
    lr: float = 0.02,
) -> dict[str, float]:
    """Train; the share of clicks that are told, among examples that were not trained on."""
    mx.random.seed(1)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{name}.libsvm" for name in ("train", "test")]
        write_libsvm(paths[0], examples, columns, entries, seed=1)
        write_libsvm(paths[1], examples // 4, columns, entries, seed=2)
        train, test = (
            mx.io.LibSVMIter(
                data_libsvm=str(path),
                data_shape=(columns,),
                batch_size=batch_size,
                label_name="out_label",
            )
            for path in paths
        )
    module = mx.mod.Module(
        factorization_machine(factors, columns), data_names=["data"], label_names=["out_label"]
    )
    module.fit(
        train,
        eval_metric=mx.metric.np(share_right),
        kvstore=mx.kvstore.create("local"),
        optimizer="adam",
        optimizer_params={"learning_rate": lr, "rescale_grad": 1.0 / batch_size},
        num_epoch=epochs,
        sparse_row_id_fn=rows_of,
    )
    metric = mx.metric.np(share_right)
    test.reset()
    after = module.score(test, metric, sparse_row_id_fn=rows_of)[0][1]
    vectors = module.get_params()[0]["v"]
    print(f"{after:.3f} of clicks are told; the vectors are {vectors.stype}")
    return {"right": after}


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--examples", type=int, default=8000)
    parser.add_argument("--columns", type=int, default=400)
    parser.add_argument("--entries", type=int, default=6, help="entries of an example")
    parser.add_argument("--factors", type=int, default=4, help="the length of a vector")
    parser.add_argument("--batch-size", type=int, default=100)
    parser.add_argument("--lr", type=float, default=0.02)
    main(**vars(parser.parse_args()))
