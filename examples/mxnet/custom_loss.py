"""Fits a line through data with outliers by losses of one's own, registered as simple operators.

What a script for MXNet had to write in C++ are two plain functions here; the operators are in
``mx.sym`` under their names. One is a layer like ``LinearRegressionOutput``, whose output is the
prediction and whose gradient is that of the loss; one is the loss itself, for ``MakeLoss``.
"""

import argparse
import logging
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

import symop.interop.mxnet as mx
from registry import register_simple_op

FEATURES, SCALE = 5, 4.0


# The operators ---------------------------------------------------------------------------------


def log_cosh(a: Any, env: Any) -> Any:
    """A parabola around zero that becomes a straight line; the scalar says how soon."""
    scaled = env.scalar * a
    return (jnp.logaddexp(scaled, -scaled) - jnp.log(2.0)) / env.scalar**2


def log_cosh_gradient(out_grad: Any, a: Any, env: Any) -> Any:
    """Never more than ``1 / scalar``, however far an outlier lies."""
    return out_grad * jnp.tanh(env.scalar * a) / env.scalar


def robust_gradient(out_grad: Any, data: Any, label: Any) -> Any:
    """That of ``log_cosh(data - label)``, whatever comes from above, as a loss layer does."""
    return jnp.tanh(SCALE * (data - label)) / SCALE, jnp.zeros_like(label)


register_simple_op("log_cosh", replace=True).set_enable_scalar(True).set_function(
    log_cosh
).set_gradient(log_cosh_gradient)

register_simple_op("robust_output", replace=True).set_function(
    lambda data, label: data
).set_gradient(robust_gradient, differs=True)


# The script ------------------------------------------------------------------------------------


def prediction() -> mx.sym.Symbol:
    """One number for each example."""
    data = mx.sym.Variable("data")
    return mx.sym.FullyConnected(data, num_hidden=1, name="fc")


def least_squares() -> mx.sym.Symbol:
    """MXNet's own layer: its gradient is the difference."""
    return mx.sym.LinearRegressionOutput(prediction(), mx.sym.Variable("label"), name="squares")


def output_layer() -> mx.sym.Symbol:
    """The layer of one's own."""
    return mx.sym.robust_output(prediction(), mx.sym.Variable("label"), name="robust")


def make_loss() -> mx.sym.Symbol:
    """The loss of one's own; its output is the loss of each example."""
    difference = prediction() - mx.sym.Variable("label")
    return mx.sym.MakeLoss(mx.sym.log_cosh(difference, SCALE), name="loss")


class Deviation(mx.metric.EvalMetric):
    """The median of the difference between labels and outputs, in each batch."""

    def __init__(self) -> None:
        super().__init__("deviation")

    def update(self, labels: list[mx.nd.NDArray], preds: list[mx.nd.NDArray]) -> None:
        """Take a batch."""
        for label, pred in zip(labels, preds, strict=True):
            self.sum_metric += np.median(np.abs(label.asnumpy() - pred.asnumpy()))
            self.num_inst += 1


def lines(examples: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points near a hyperplane, a fifth of them far above it; and its true slopes."""
    x = np.random.normal(size=(examples, FEATURES))
    slopes = np.random.normal(size=FEATURES)
    y = x @ slopes + 0.1 * np.random.normal(size=examples)
    outliers = np.random.random(examples) < 0.2
    y[outliers] += np.random.exponential(20.0, outliers.sum())
    return x, y[:, None], slopes


def main(epochs: int = 30, examples: int = 2000, batch_size: int = 50) -> dict[str, float]:
    """Train by each loss; how far the slopes and the offset are from those that made the data."""
    mx.random.seed(5)
    np.random.seed(5)
    x, y, slopes = lines(examples)
    losses: dict[str, Callable[[], mx.sym.Symbol]] = {
        "least squares": least_squares,
        "layer of one's own": output_layer,
        "MakeLoss": make_loss,
    }
    figures = {}
    for name, symbol in losses.items():
        batches = mx.io.NDArrayIter(x, y, batch_size, shuffle=True, label_name="label")
        mod = mx.mod.Module(symbol(), label_names=["label"])
        mod.fit(
            batches,
            eval_metric=mx.metric.Loss() if name == "MakeLoss" else Deviation(),
            optimizer="adam",
            optimizer_params={
                "learning_rate": 0.03,
                "lr_scheduler": mx.lr_scheduler.FactorScheduler(examples // batch_size, 0.85),
            },
            initializer=mx.init.Zero(),
            num_epoch=epochs,
        )
        args, _ = mod.get_params()
        found = np.append(args["fc_weight"].asnumpy(), args["fc_bias"].asnumpy())
        figures[name] = float(np.abs(found - np.append(slopes, 0)).max())
    for name, error in figures.items():
        print(f"{name}: slopes and offset are off by at most {error:.3f}")
    return figures


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--examples", type=int, default=2000)
    parser.add_argument("--batch-size", type=int, default=50)
    main(**vars(parser.parse_args()))
