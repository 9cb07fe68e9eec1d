"""Trains a network by hand with ``mx.nd`` and ``mx.autograd``, with and without a gradient penalty.

There is no Module: parameters are arrays with gradients, the loss is recorded, and the update is
written in place. The penalty is on the slope of the score in its input, which smooths the score of
noisy data. Its gradient is one of a gradient: MXNet stops there, since its ``dot`` has none.
"""

import argparse

import numpy as np
from sklearn.datasets import make_moons

import symop.interop.mxnet as mx
from symop.interop.mxnet import autograd, nd


class Net:
    """A hidden layer with tanh, and a score."""

    def __init__(self, hidden: int) -> None:
        self.params = []
        for before, after in ((2, hidden), (hidden, 1)):
            self.params.append(nd.random.normal(scale=before**-0.5, shape=(before, after)))
            self.params.append(nd.zeros(shape=(after,)))
        for one in self.params:
            one.attach_grad()

    def __call__(self, x: nd.NDArray) -> nd.NDArray:
        """The score of each point; positive is the first moon."""
        w1, b1, w2, b2 = self.params
        h = nd.tanh(nd.dot(x, w1) + b1)
        return (nd.dot(h, w2) + b2).reshape((-1,))


class Momentum:
    """Steps down the gradient with momentum."""

    def __init__(self, params: list[nd.NDArray], lr: float, momentum: float = 0.9) -> None:
        self.params, self.lr, self.momentum = params, lr, momentum
        self.velocity = [nd.zeros_like(one) for one in params]

    def step(self) -> None:
        """Change the parameters in place."""
        for one, velocity in zip(self.params, self.velocity, strict=True):
            velocity[:] = self.momentum * velocity - self.lr * one.grad
            one[:] += velocity


def cross_entropy(score: nd.NDArray, label: nd.NDArray) -> nd.NDArray:
    """How unlikely the labels are, on average."""
    return nd.mean(nd.Activation(score, act_type="softrelu") - label * score)


def slope_penalty(score: nd.NDArray, x: nd.NDArray) -> nd.NDArray:
    """The mean squared slope of the score in its input, itself on the record."""
    (slope,) = autograd.grad(score.sum(), [x], create_graph=True, retain_graph=True)
    return nd.mean(nd.sum(nd.square(slope), axis=1))


def train(
    strength: float, data: tuple[np.ndarray, np.ndarray], epochs: int, hidden: int, lr: float
) -> tuple[Net, list[float]]:
    """A network, and the loss of each epoch."""
    mx.random.seed(6)
    batches = mx.io.NDArrayIter(*data, batch_size=40, shuffle=True)
    net = Net(hidden)
    trainer = Momentum(net.params, lr)
    losses = []
    for epoch in range(epochs):
        batches.reset()
        total = 0.0
        for batch in batches:
            x, label = batch.data[0], batch.label[0]
            x.attach_grad()
            with autograd.record():
                score = net(x)
                loss = cross_entropy(score, label)
                if strength:
                    loss = loss + strength * slope_penalty(score, x)
            loss.backward()
            trainer.step()
            total += loss.asscalar()
        losses.append(float(total) * batches.batch_size / batches.num_data)
        if epoch % 10 == 9:
            print(f"penalty {strength}: epoch {epoch + 1}, loss {losses[-1]:.4f}")
    return net, losses


def measured(net: Net, points: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """The accuracy, and how steep the score is on average."""
    x = nd.array(points)
    x.attach_grad()
    with autograd.record(train_mode=False):
        score = net(x)
    score.backward()
    right = (score > 0) == nd.array(labels)
    return right.mean().asscalar(), nd.norm(x.grad, axis=1).mean().asscalar()


def main(
    epochs: int = 60, hidden: int = 64, lr: float = 0.2, strength: float = 0.02
) -> dict[str, float]:
    """Train without and with the penalty; losses, and accuracy and steepness on other points."""
    np.random.seed(6)
    data = make_moons(80, noise=0.35, random_state=0)
    held_out = make_moons(2000, noise=0.35, random_state=1)
    figures = {}
    for name, penalty in (("plain", 0.0), ("smooth", strength)):
        net, losses = train(penalty, data, epochs, hidden, lr)
        accuracy, slope = measured(net, *held_out)
        figures |= {
            f"{name}: first loss": losses[0],
            f"{name}: last loss": losses[-1],
            f"{name}: accuracy": float(accuracy),
            f"{name}: slope": float(slope),
        }
        print(f"{name}: accuracy {accuracy:.3f} on other points, slope {slope:.2f}")
    return figures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.2)
    parser.add_argument("--strength", type=float, default=0.02, help="of the penalty")
    main(**vars(parser.parse_args()))
