"""Predicts ratings from what users and items have in common, as a script for MXNet does.

An embedding of users times an embedding of items, and a bias for each, trained on ratings that are
made up; the metric is a function of one's own. Only the import differs from what runs on MXNet.
"""

import argparse
import logging
import math

import numpy as np

import symop.interop.mxnet as mx

USERS, ITEMS, TASTES, NOISE = 300, 200, 4, 0.25


def ratings(count: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Who rates what, and how: tastes of users times topics of items, biases, and noise."""
    user, item = np.random.randint(USERS, size=count), np.random.randint(ITEMS, size=count)
    taste = np.random.normal(size=(USERS, TASTES))
    topic = np.random.normal(size=(ITEMS, TASTES))
    liked = (taste[user] * topic[item]).sum(axis=1) / math.sqrt(TASTES)
    popular = np.random.normal(scale=0.5, size=ITEMS)[item]
    return {"user": user, "item": item}, 3 + liked + popular + NOISE * np.random.normal(size=count)


def rmse(label: np.ndarray, pred: np.ndarray) -> float:
    """The root of the mean squared error."""
    return math.sqrt(np.mean((label.ravel() - pred.ravel()) ** 2))


def plain_net(factor_size: int) -> mx.sym.Symbol:
    """The product of two embeddings, plus two biases and what all ratings have in common."""
    user, item = mx.symbol.Variable("user"), mx.symbol.Variable("item")
    score = mx.symbol.Variable("score")
    user_taste = mx.symbol.Embedding(user, input_dim=USERS, output_dim=factor_size, name="taste")
    item_topic = mx.symbol.Embedding(item, input_dim=ITEMS, output_dim=factor_size, name="topic")
    common = mx.symbol.sum_axis(user_taste * item_topic, axis=1)
    user_bias = mx.symbol.Embedding(user, input_dim=USERS, output_dim=1, name="user_offset")
    item_bias = mx.symbol.Embedding(item, input_dim=ITEMS, output_dim=1, name="item_offset")
    pred = common + mx.symbol.Flatten(user_bias + item_bias).reshape((-1,))
    mean = mx.symbol.Variable("mean_bias", shape=(1,), init=mx.init.Constant(3.0))
    pred = mx.symbol.broadcast_add(pred, mean)
    return mx.symbol.LinearRegressionOutput(data=pred, label=score, name="lro")


def main(
    epochs: int = 12,
    examples: int = 20_000,
    batch_size: int = 250,
    factor_size: int = 6,
    lr: float = 0.02,
    wd: float = 5e-5,
) -> dict[str, float]:
    """Train; the error on ratings that were not trained on, and that of always telling the mean."""
    mx.random.seed(4)
    np.random.seed(4)
    data, score = ratings(examples + 4000)
    train = mx.io.NDArrayIter(
        {name: one[:examples] for name, one in data.items()},
        {"score": score[:examples]},
        batch_size,
        shuffle=True,
    )
    val = mx.io.NDArrayIter(
        {name: one[examples:] for name, one in data.items()},
        {"score": score[examples:]},
        batch_size,
    )
    mod = mx.mod.Module(
        plain_net(factor_size),
        data_names=["user", "item"],
        label_names=["score"],
        context=mx.cpu(),
    )
    mod.fit(
        train,
        eval_data=val,
        eval_metric=rmse,
        optimizer="adam",
        optimizer_params={"learning_rate": lr, "wd": wd, "rescale_grad": 1.0 / batch_size},
        initializer=mx.init.Normal(0.1),
        num_epoch=epochs,
        batch_end_callback=mx.callback.Speedometer(batch_size, 40),
    )
    reached = dict(mod.score(val, mx.metric.np(rmse)))["rmse"]
    of_mean = rmse(score[examples:], score[:examples].mean())
    print(f"error {reached:.3f}; of the mean {of_mean:.3f}; of the noise {NOISE:.3f}")
    return {"rmse": float(reached), "of the mean": of_mean, "of the noise": NOISE}


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--examples", type=int, default=20_000, help="ratings to train on")
    parser.add_argument("--batch-size", type=int, default=250)
    parser.add_argument("--factor-size", type=int, default=6)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--wd", type=float, default=5e-5)
    main(**vars(parser.parse_args()))
