"""Samples of functions of an array and a number, entry by entry."""

import numpy as np

from mxnet_samples.sample import Sample

draw = np.random.default_rng(1)
ANY = draw.normal(size=(3, 4)) * 2
POSITIVE = draw.uniform(0.3, 2.0, size=(3, 4))
WHOLE = np.array([-7, 7, 5, 1, 3], np.int32)
NO_SLOPE = "integers have no gradient"


def remainder(data, number):
    """What the quotient rounded down leaves; of a division by zero, zero."""
    data, number = np.broadcast_arrays(data, number)
    by = np.where(number == 0, 1, number)
    return np.where(number == 0, 0, data - by * np.floor(data / by))


def swapped(function):
    """``function`` with the number first."""
    return lambda data, number: function(number, data)


ARITHMETIC = {
    "plus": np.add,
    "minus": np.subtract,
    "rminus": swapped(np.subtract),
    "mul": np.multiply,
    "div": np.divide,
    "rdiv": swapped(np.divide),
    "power": np.power,
    "rpower": swapped(np.power),
    "mod": remainder,
    "rmod": swapped(remainder),
    "maximum": np.maximum,
    "minimum": np.minimum,
    "hypot": np.hypot,
    "scatter_plus": np.add,
    "scatter_minus": np.subtract,
}
QUESTIONS = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "lesser": np.less,
    "lesser_equal": np.less_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}
NUMBERS = {"power": (2.0, 0.5, -1.5), "rpower": (2.0, 0.3), "rmod": (2.6,), "mod": (1.5, -1.5, 0.0)}
# Of integers, quotients, powers and roots are rounded toward zero.
OF_WHOLE = {
    "plus": (WHOLE, 2.7, lambda x: x + 2),
    "mul": (WHOLE, -3, lambda x: x * -3),
    "div": (WHOLE, 2, lambda x: np.trunc(x / 2)),
    "rdiv": (WHOLE, 9, lambda x: np.trunc(9 / x)),
    "mod": (WHOLE, -3, lambda x: remainder(x, -3)),
    "rmod": (WHOLE, 4, lambda x: remainder(4, x)),
    "power": (WHOLE, 2, lambda x: x**2),
    "rpower": (np.array([0, 1, 3], np.int32), 2, lambda x: 2**x),
    "maximum": (WHOLE, 2, lambda x: np.maximum(x, 2)),
    "hypot": (WHOLE, 3, lambda x: np.trunc(np.hypot(x, 3))),
    "greater": (WHOLE, 3, lambda x: x > 3),
}


def with_number(function, number):
    """``function`` of the array alone, in its dtype."""
    return lambda data: function(data, number).astype(data.dtype)


def tied(number):
    """Entries below, at, and above a number."""
    return np.array([number - 1, number, number + 1, 0.0, -2.0])


def nothing(data):
    """A gradient of zero."""
    return {"data": np.zeros(data.shape)}


SAMPLES = [
    *[
        Sample(
            f"_{name}_scalar",
            {"data": POSITIVE if name in ("power", "rdiv", "rmod") else ANY},
            {"scalar": number},
            with_number(function, number),
        )
        for name, function in ARITHMETIC.items()
        for number in NUMBERS.get(name, (1.5, -0.5))
    ],
    Sample("_plus_scalar", {"data": ANY}, {}, lambda data: data + 1),
    Sample("_PlusScalar", {"data": ANY}, {"scalar": 0.1}, lambda data: data + 0.1),
    *[
        Sample(
            f"_{name}_scalar",
            {"data": tied(number)},
            {"scalar": number},
            with_number(function, number),
            "declared",
            nothing,
        )
        for name, function in QUESTIONS.items()
        for number in (1.5, 0.0)
    ],
    *[
        Sample(
            f"_{name}_scalar",
            {"data": data},
            {"scalar": number},
            lambda data, function=function: function(data).astype(data.dtype),
            "zero",
            why=NO_SLOPE,
        )
        for name, (data, number, function) in OF_WHOLE.items()
    ],
    Sample(
        "_plus_scalar",
        {"data": WHOLE},
        {"scalar": 2.5, "is_int": False},
        lambda data: data + 2.5,
        "zero",
        why=NO_SLOPE,
    ),
]

# Of two equal numbers, the array's is taken.
TIED = {
    "_maximum_scalar": (np.maximum, [0.0, 1.0, 1.0]),
    "_minimum_scalar": (np.minimum, [1.0, 1.0, 0.0]),
}
SAMPLES += [
    Sample(
        op,
        {"data": np.array([0.5, 1.0, 2.0])},
        {"scalar": 1.0},
        with_number(function, 1.0),
        "declared",
        lambda data, slopes=slopes: {"data": np.array(slopes)},
    )
    for op, (function, slopes) in TIED.items()
]
# Powers at zero.
SAMPLES += [
    Sample(
        "_power_scalar",
        {"data": np.array([0.0, -2.0, 3.0])},
        {"scalar": exponent},
        with_number(np.power, exponent),
    )
    for exponent in (0.0, 1.0, 2.0, 3.0)
]
