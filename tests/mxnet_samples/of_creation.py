"""Samples of arrays that are made of numbers, and of random draws."""

import numpy as np

from mxnet_samples.sample import Sample

NO_INPUT = "the entries of no array are put in"
DRAWN = "no gradient passes from a draw to its parameters"


def made(array):
    """An array that is known."""
    return lambda *arrays: array


MADE = [
    ("_zeros", {"shape": (2, 3)}, np.zeros((2, 3), "f4")),
    ("_zeros", {"shape": (2,), "dtype": "float64"}, np.zeros(2)),
    ("_zeros_without_dtype", {"shape": (3,)}, np.zeros(3, "f4")),
    ("_ones", {"shape": (2, 3), "dtype": "int32"}, np.ones((2, 3), "i4")),
    ("_full", {"shape": (2,), "value": 2.5, "dtype": "float16"}, np.full(2, 2.5, "f2")),
    ("_full", {"shape": (2,), "value": 2.5, "dtype": "int32"}, np.full(2, 2, "i4")),
    ("_eye", {"N": 3}, np.eye(3, dtype="f4")),
    ("_eye", {"N": 3, "M": 4, "k": -1, "dtype": "int32"}, np.eye(3, 4, -1, "i4")),
    ("_eye", {"N": 2, "M": 3, "k": 1}, np.eye(2, 3, 1, "f4")),
    ("_arange", {"start": 5}, np.arange(5, dtype="f4")),
    (
        "_arange",
        {"start": 2, "stop": 6, "step": 1.5, "repeat": 2},
        np.repeat(np.arange(2, 6, 1.5, "f4"), 2),
    ),
    ("_arange", {"start": 5, "stop": 0, "step": -2, "dtype": "int32"}, np.arange(5, 0, -2, "i4")),
    ("_linspace", {"start": 0, "stop": 3, "num": 7, "dtype": "float64"}, np.linspace(0, 3, 7)),
    (
        "_linspace",
        {"start": 0, "stop": 3, "num": 6, "endpoint": False},
        np.linspace(0, 3, 6, endpoint=False, dtype="f4"),
    ),
]
SAMPLES = [
    Sample(op, {}, how, made(array), "zero", rtol=1e-6, why=NO_INPUT) for op, how, array in MADE
]


def nothing(data):
    """A gradient of zero."""
    return {"data": np.zeros(data.shape)}


def positions(axes):
    """For each entry its position, along some axes."""
    return lambda data: np.stack(np.indices(data.shape), -1)[..., axes].astype(np.int64)


LIKE = [
    ({}, np.arange(6).reshape(2, 3)),
    ({"start": 2, "step": 0.5, "repeat": 4}, (np.arange(6) // 4 * 0.5 + 2).reshape(2, 3)),
    ({"axis": -1, "start": 1}, np.arange(3) + 1),
    ({"axis": 0, "step": -2}, np.arange(2) * -2),
    ({"axis": 1, "repeat": 2}, np.arange(3) // 2),
]
SAMPLES += [
    *[
        Sample(
            "_contrib_arange_like", {"data": (2, 3)}, how, made(array * 1.0), "declared", nothing
        )
        for how, array in LIKE
    ],
    Sample("_contrib_index_array", {"data": (2, 3)}, {}, positions([0, 1]), "zero", why=NO_INPUT),
    Sample(
        "_contrib_index_array",
        {"data": (2, 3, 4)},
        {"axes": (-1, 0)},
        positions([2, 0]),
        "zero",
        why=NO_INPUT,
    ),
]

# Random draws ----------------------------------------------------------------------------------

PAIR, CHANCES = np.array([2.0, 5.0]), np.array([0.4, 0.5])
DISTRIBUTIONS = {
    "uniform": {"low": PAIR, "high": PAIR + 1},
    "normal": {"loc": PAIR, "scale": PAIR},
    "gamma": {"alpha": PAIR, "beta": PAIR},
    "exponential": {"lam": PAIR},
    "poisson": {"lam": PAIR},
    "negative_binomial": {"k": PAIR, "p": CHANCES},
    "generalized_negative_binomial": {"mu": PAIR, "alpha": CHANCES},
}
RENAMED = {"loc": "mu", "scale": "sigma"}


def whole(name, number):
    """``number``, an integer where the attribute is one."""
    return int(number) if name == "k" else float(number)


for _name, _parameters in DISTRIBUTIONS.items():
    numbers = {name: whole(name, one[0]) for name, one in _parameters.items()}
    inputs = {
        RENAMED.get(name, name) if _name == "normal" else name: one
        for name, one in _parameters.items()
    }
    calls = [
        (f"_random_{_name}", {}, {**numbers, "shape": (2, 3)}),
        (f"random_{_name}", {}, {"dtype": "float64"}),
        (f"_random_{_name}_like", {"data": (2, 3)}, numbers),
        (f"_sample_{_name}", inputs, {}),
        (f"_sample_{_name}", inputs, {"shape": (3, 2), "dtype": "float32"}),
    ]
    SAMPLES += [
        Sample(op, given, how, None, "zero", draws=True, why=DRAWN) for op, given, how in calls
    ]

ROWS = np.array([[0.1, 0.2, 0.7], [0.5, 0.0, 0.5]])
SURE = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
LIKELY = np.array([[0.1, 0.2, 0.7], [0.5, 0.1, 0.4]])


def classes(*shape, dtype="int32"):
    """The classes that are sure."""
    return lambda data: np.broadcast_to(np.array([1, 0], dtype).reshape(2, *[1] * len(shape)),
                                        (2, *shape))  # fmt: skip


SAMPLES += [
    Sample(op, given, how, None, "zero", draws=True, why=DRAWN)
    for op, given, how in (
        ("_random_randint", {}, {"low": -2, "high": 5, "shape": (2, 3)}),
        ("_random_randint", {}, {"low": 0, "high": 5, "dtype": "int64"}),
        ("_sample_multinomial", {"data": ROWS}, {}),
        ("_sample_multinomial", {"data": ROWS[0]}, {"shape": (2, 3), "dtype": "float32"}),
        ("_shuffle", {"data": np.arange(5, dtype=np.int32)}, {}),
    )
]
SAMPLES += [
    Sample("_sample_multinomial", {"data": SURE}, {}, classes(), "zero", why=DRAWN),
    Sample("_sample_multinomial", {"data": SURE}, {"shape": (2, 2)}, classes(2, 2), "zero",
           why=DRAWN),
    Sample(
        "_sample_multinomial",
        {"data": SURE},
        {"shape": (2,), "get_prob": True},
        lambda data: [classes(2)(data), np.zeros((2, 2))],
        "declared",
        lambda data: {"data": 2.0 * data},  # of two draws, each of probability one
    ),
    # What is drawn stays while the probabilities change by little; that of what is, has a slope.
    Sample("_sample_multinomial", {"data": LIKELY}, {"shape": 4, "get_prob": True}, draws=True),
    Sample("_shuffle", {"data": (4, 3)}, draws=True),  # the order does not depend on the entries
]  # fmt: skip
