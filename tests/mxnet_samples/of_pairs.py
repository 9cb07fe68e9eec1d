"""Samples of functions of two arrays, entry by entry, and of sums of many."""

import numpy as np

from mxnet_samples.of_numbers import NO_SLOPE, QUESTIONS, remainder
from mxnet_samples.sample import Sample

draw = np.random.default_rng(2)
LEFT, RIGHT = draw.normal(size=(3, 4)) * 2, draw.normal(size=(3, 4)) * 2
WIDE, ROW, LINE = (draw.uniform(0.3, 2.0, size=n) for n in [(2, 3, 4), (2, 1, 4), (4,)])
COLUMN = draw.uniform(0.3, 2.0, size=(3, 1))
WHOLE = {
    "lhs": np.array([[-7, 7, 5, 0], [3, -2, 1, 4]], np.int32),
    "rhs": np.array([[2, -2, 3, 5], [3, 3, -1, 4]], np.int32),
}
ARITHMETIC = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "power": np.power,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "hypot": np.hypot,
    "mod": remainder,
}
FIRST = ("add", "sub", "mul", "div")


def of_equals(name):
    """The operator for arrays of one shape."""
    return f"elemwise_{name}" if name in FIRST else f"_{name}"


def kept(function):
    """``function`` in the dtype of the arrays; to integers it is rounded toward zero."""
    return lambda lhs, rhs: np.trunc(function(lhs, rhs)).astype(lhs.dtype)


def told(function):
    """The answer in the dtype of the arrays."""
    return lambda lhs, rhs: function(lhs, rhs).astype(lhs.dtype)


def nothing(lhs, rhs):
    """A gradient of zero."""
    return {"lhs": np.zeros(lhs.shape), "rhs": np.zeros(rhs.shape)}


SAMPLES = []
for _name, _function in ARITHMETIC.items():
    left = np.abs(LEFT) if _name == "power" else LEFT
    whole = {**WHOLE, "lhs": abs(WHOLE["lhs"]) + 1} if _name == "power" else WHOLE
    of_whole = (lambda x, y: np.power(x.astype(float), y)) if _name == "power" else _function
    SAMPLES += [
        Sample(of_equals(_name), {"lhs": left, "rhs": RIGHT}, {}, _function),
        Sample(of_equals(_name), whole, {}, kept(of_whole), "zero", why=NO_SLOPE),
        Sample(f"broadcast_{_name}", {"lhs": WIDE, "rhs": ROW}, {}, _function),
        Sample(f"broadcast_{_name}", {"lhs": COLUMN, "rhs": LINE}, {}, _function),
    ]
TIES = {"lhs": np.array([[1.0, 2, 3, 0, 0]]), "rhs": np.array([[1.0, 3, 2, 0, 4]])}
COLUMNS = {"lhs": np.array([[1.0, 2.0, 0.0]]), "rhs": np.array([[1.0], [0.0]])}
for _name, _function in QUESTIONS.items():
    SAMPLES += [
        Sample(f"_{_name}", TIES, {}, told(_function), "declared", nothing),
        Sample(f"_{_name}", WHOLE, {}, told(_function), "zero", why=NO_SLOPE),
        Sample(f"broadcast_{_name}", COLUMNS, {}, told(_function), "declared", nothing),
    ]

# Of two equal entries that of lhs is taken.
SLOPES = {
    "_maximum": (np.maximum, [[1.0, 0, 1, 1, 0]]),
    "_minimum": (np.minimum, [[1.0, 1, 0, 1, 1]]),
}
SAMPLES += [
    Sample(
        op,
        TIES,
        {},
        function,
        "declared",
        lambda lhs, rhs, left=left: {"lhs": np.array(left), "rhs": 1 - np.array(left)},
    )
    for op, (function, left) in SLOPES.items()
]
SAMPLES += [
    Sample(
        "broadcast_maximum",
        COLUMNS,
        {},
        np.maximum,
        "declared",
        lambda lhs, rhs: {"lhs": np.array([[2.0, 2.0, 1.0]]), "rhs": np.array([[1.0], [0.0]])},
    ),
    Sample(
        "_mod",
        {"lhs": np.array([1, -2, 3], np.int32), "rhs": np.array([0, 2, -2], np.int32)},
        {},
        told(remainder),
        "zero",
        why=NO_SLOPE,
    ),
    Sample(
        "_hypot",
        {"lhs": np.array([3.0, 0.0]), "rhs": np.array([4.0, -2.0])},
        {},
        np.hypot,
        "declared",
        lambda lhs, rhs: {"lhs": np.array([0.6, 0.0]), "rhs": np.array([0.8, -1.0])},
    ),
    Sample("_grad_add", {"lhs": (2, 3), "rhs": (2, 3)}, {}, np.add),
    Sample("_scatter_elemwise_div", {"lhs": LEFT, "rhs": RIGHT}, {}, np.divide),
    Sample("add_n", {"arg0": (2, 3), "arg1": (2, 3), "arg2": (2, 3)}, {}, lambda *x: sum(x)),
    Sample("ElementWiseSum", {"arg0": (2, 3)}, {"num_args": 1}, lambda x: x),
    Sample(
        "add_n",
        {"arg0": WHOLE["lhs"], "arg1": WHOLE["rhs"]},
        {"num_args": 2},
        np.add,
        "zero",
        why=NO_SLOPE,
    ),
]
