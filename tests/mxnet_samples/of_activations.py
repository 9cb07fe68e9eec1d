"""Samples of activations and of softmax."""

import itertools

import numpy as np
from scipy import special

from mxnet_samples.sample import Sample

ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": special.expit,
    "tanh": np.tanh,
    "softrelu": lambda x: np.logaddexp(x, 0),
    "softsign": lambda x: x / (1 + np.abs(x)),
}
GAIN, CURVE = 1.0507009873554804934, 1.6732632423543772848


def negative(function):
    """``function`` where data are negative, or zero."""
    return lambda data: np.where(data > 0, data, function(data))


TENTH, THIRD = float(np.float32(0.1)), float(np.float32(0.3))
MEAN = (float(np.float32(0.125)) + float(np.float32(0.334))) / 2
LEAKY = [
    ({}, negative(lambda x: 0.25 * x)),
    ({"slope": 0.1}, negative(lambda x: TENTH * x)),
    ({"act_type": "elu"}, negative(lambda x: 0.25 * np.expm1(x))),
    ({"act_type": "elu", "slope": 0.3}, negative(lambda x: THIRD * np.expm1(x))),
    ({"act_type": "selu"}, lambda x: GAIN * negative(lambda y: CURVE * np.expm1(y))(x)),
    ({"act_type": "gelu"}, lambda x: x * special.ndtr(x)),
    (
        {"act_type": "rrelu"},
        lambda x: [negative(lambda y: MEAN * y)(x), np.full_like(x, MEAN)],
    ),
]
SLOPES = [
    ((2, 3, 2), (3,), (3, 1)),
    ((2, 3, 2), (1,), (1,)),
    ((2, 3, 2), (1, 3), (3, 1)),
    ((2, 3, 2), (2, 3), (2, 3, 1)),
    ((4, 3), (3,), (3,)),
    ((4,), (4,), (4,)),
]


def prelu(shape):
    """Slopes of ``shape``."""
    return lambda data, gamma: np.where(data > 0, data, gamma.reshape(shape) * data)


SHARES = {
    "softmax": special.softmax,
    "softmin": lambda x, axis: special.softmax(-x, axis),
    "log_softmax": special.log_softmax,
}


def shares(op, axis=-1, temperature=1.0):
    """Shares along an axis, of the first entries if there are lengths; zeros behind."""

    def reference(data, length=None):
        if length is None:
            return SHARES[op](data / temperature, axis)
        rows = np.moveaxis(data, axis, -1)
        made = np.zeros_like(rows)
        for place in np.ndindex(*rows.shape[:-1]):
            end = int(np.reshape(length, rows.shape[:-1])[place])
            if end:
                made[place][:end] = SHARES[op](rows[place][:end] / temperature, -1)
        return np.moveaxis(made, -1, axis)

    return reference


def of_rounded(op):
    """The gradient of the sum of all shares, or of their logarithms."""

    def slopes(data):
        if op != "log_softmax":
            return {"data": np.zeros_like(data)}
        return {"data": 1 - data.shape[-1] * special.softmax(data, -1)}

    return slopes


LENGTHS = [
    ((4, 2), np.asarray([4, 1], "int64"), 0),
    ((2, 3, 4), np.asarray([[0, 1, 2], [3, 4, 4]], "int32"), -1),
    ((2, 3, 4), np.asarray([[0.0, 1.0, 2.0, 3.0], [3.0, 2.0, 1.0, 1.0]]), 1),
    ((4,), np.asarray([2], "int32"), -1),
]

LARGE = np.asarray([[1000.0, 999.0, -1000.0], [0.0, -2.0, 1.0]])

SAMPLES = [
    *[
        Sample("Activation", {"data": (3, 4)}, {"act_type": name}, function)
        for name, function in ACTIVATIONS.items()
    ],
    *[Sample("LeakyReLU", {"data": (2, 3, 2)}, told, function) for told, function in LEAKY],
    Sample(
        "LeakyReLU",
        {"data": (2, 3, 2)},
        {"act_type": "rrelu", "lower_bound": 0.2, "upper_bound": 0.4},
        draws=True,
        train=True,
    ),
    *[
        Sample("LeakyReLU", {"data": data, "gamma": gamma}, {"act_type": "prelu"}, prelu(shape))
        for data, gamma, shape in SLOPES
    ],
    *[
        Sample(op, {"data": data}, told, shares(op, **told))
        for op, (data, told) in itertools.product(
            SHARES,
            (
                ((2, 3, 4), {}),
                ((2, 3, 4), {"axis": 1, "temperature": 2.5}),
                ((3, 4), {"axis": 0, "temperature": 0.5}),
                (LARGE, {}),
            ),
        )
    ],
    *[Sample(op, {"data": (2, 3)}, {"dtype": "float64"}, shares(op)) for op in SHARES],
    *[
        Sample(
            op,
            {"data": (2, 3)},
            {"dtype": "float32"},
            shares(op),
            "declared",
            of_rounded(op),
            rtol=1e-6,
            why="differences of rounded values are none",
        )
        for op in SHARES
    ],
    *[
        Sample(
            op,
            {"data": data, "length": length},
            {"use_length": True, "axis": axis, "temperature": 2.0},
            shares(op, axis, 2.0),
            by=["data"],
        )
        for op, (data, length, axis) in itertools.product(SHARES, LENGTHS)
    ],
    Sample("SoftmaxActivation", {"data": (3, 4)}, {}, shares("softmax")),
    Sample("SoftmaxActivation", {"data": (2, 3, 4)}, {"mode": "instance"}, shares("softmax")),
    *[
        Sample("SoftmaxActivation", {"data": data}, {"mode": "channel"}, shares("softmax", 1))
        for data in ((2, 3, 4), (2, 3, 2, 2))
    ],
]
