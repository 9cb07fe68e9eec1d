"""Samples of orders along an axis, and of what whole arrays are asked."""

import numpy as np

from mxnet_samples.sample import Sample

draw = np.random.default_rng(4)
CUBE = draw.permutation(24).reshape(2, 3, 4) / 4.0 - 2.0
TIED = np.array([[1.0, 3.0, 3.0, 0.0, 0.0], [2.0, 2.0, 0.0, 2.0, -1.0]])
WHOLE = np.array([[1, 3, 2], [9, -1, 0]], np.int32)
NO_SLOPE = "integers have no gradient"
POSITIONS = "positions are integers, whatever their dtype"


def nothing(data):
    """A gradient of zero."""
    return {"data": np.zeros(data.shape)}


# Extrema ---------------------------------------------------------------------------------------


def position(function, axis=None, keepdims=False):
    """The first position of the extremum, in the dtype of the data."""
    return lambda data: np.atleast_1d(function(data, axis=axis, keepdims=keepdims)).astype(
        data.dtype
    )


FINDERS = {"argmax": np.argmax, "argmin": np.argmin}
HOW = [{}, {"axis": 1}, {"axis": -1, "keepdims": True}, {"keepdims": True}]
SAMPLES = [
    *[
        Sample(op, {"data": data}, how, position(function, **how), "declared", nothing)
        for op, function in FINDERS.items()
        for data, hows in ((CUBE, HOW), (TIED, HOW[1:2]), (TIED[0], [{"axis": 0}]))
        for how in hows
    ],
    *[
        Sample(op, {"data": WHOLE}, {"axis": 0}, position(function, 0), "zero", why=NO_SLOPE)
        for op, function in FINDERS.items()
    ],
    Sample("argmax_channel", {"data": TIED}, {}, position(np.argmax, 1), "declared", nothing),
]

# Orders ----------------------------------------------------------------------------------------


def line(data, axis):
    """What is ordered, and along which axis: the flattened array if there is none."""
    return (data.ravel(), 0) if axis == "None" else (data, axis)


def order(data, axis, ascends):
    """The positions of the entries in order; those of equal entries ascend."""
    return np.argsort(data if ascends else -data, axis=axis, kind="stable")


def argsort(axis=-1, is_ascend=True, dtype="float32"):
    """The positions of the entries in order."""
    return lambda data: order(*line(data, axis), is_ascend).astype(dtype)


def ordered(axis=-1, is_ascend=True):
    """The entries in order."""

    def call(data):
        x, at = line(data, axis)
        return np.take_along_axis(x, order(x, at, is_ascend), at)

    return call


def topk(axis=-1, k=1, ret_typ="indices", is_ascend=False, dtype="float32"):
    """The first few entries in order, their positions, or where they are."""

    def call(data):
        x, at = line(data, axis)
        places = np.take(order(x, at, is_ascend), np.arange(k if k > 0 else x.shape[at]), axis=at)
        mask = np.zeros_like(x)
        np.put_along_axis(mask, places, 1, at)
        values, indices = np.take_along_axis(x, places, at), places.astype(dtype)
        return {
            "value": values,
            "indices": indices,
            "mask": mask.reshape(data.shape),
            "both": [values, indices],
        }[ret_typ]

    return call


SORTS = [{}, {"axis": 0}, {"axis": 1, "is_ascend": False}, {"axis": "None"}]
PLACES = [*SORTS, {"dtype": "int32"}, {"is_ascend": False, "axis": -2, "dtype": "float64"}]
VALUES = [
    {"ret_typ": "value"},
    {"ret_typ": "value", "k": 2, "axis": 1},
    {"ret_typ": "value", "k": 0, "is_ascend": True},
    {"ret_typ": "value", "k": 3, "axis": "None"},
    {"ret_typ": "both", "k": 2, "axis": 0},
    {"ret_typ": "both", "k": 2, "is_ascend": True, "dtype": "int32"},
]
TOPK_PLACES = [
    {},
    {"k": 3},
    {"k": 2, "axis": 1, "is_ascend": True},
    {"k": 4, "axis": "None", "dtype": "int32"},
    {"k": 2, "ret_typ": "mask"},
    {"k": 2, "ret_typ": "mask", "axis": 1, "is_ascend": True},
    {"k": 3, "ret_typ": "mask", "axis": "None"},
]
SAMPLES += [
    *[Sample("sort", {"data": CUBE}, how, ordered(**how)) for how in SORTS],
    *[Sample("topk", {"data": CUBE}, how, topk(**how)) for how in VALUES],
    *[
        Sample("argsort", {"data": CUBE}, how, argsort(**how), "zero", why=POSITIONS)
        for how in PLACES
    ],
    *[
        Sample("topk", {"data": CUBE}, how, topk(**how), "zero", why=POSITIONS)
        for how in TOPK_PLACES
    ],
    *[
        Sample(
            "argsort",
            {"data": TIED},
            {"is_ascend": ascends},
            argsort(is_ascend=ascends),
            "zero",
            why=POSITIONS,
        )
        for ascends in (True, False)
    ],
    *[
        Sample(
            "topk",
            {"data": TIED},
            {"k": 3, "ret_typ": wanted},
            topk(k=3, ret_typ=wanted),
            "zero",
            why=POSITIONS,
        )
        for wanted in ("indices", "mask")
    ],
    Sample("sort", {"data": WHOLE}, {}, ordered(), "zero", why=NO_SLOPE),
    Sample(
        "topk",
        {"data": WHOLE},
        {"k": 2, "ret_typ": "value"},
        topk(k=2, ret_typ="value"),
        "zero",
        why=NO_SLOPE,
    ),
]

# Questions -------------------------------------------------------------------------------------

ANSWER = "an answer has no gradient"
GAP = np.array([1.0, np.nan, 3.0])
ENDLESS = np.array([1.0, -np.inf, 3.0])
PLAIN = np.array([1.0, -2.0, 3.0])


def answer(truth, dtype="float32", shape=(1,)):
    """One answer."""
    return lambda *arrays: np.full(shape, truth, dtype)


SAMPLES += [
    *[
        Sample("all_finite", {"data": data}, {}, answer(truth), "zero", why=ANSWER)
        for data, truth in ((PLAIN, 1), (GAP, 0), (ENDLESS, 0), (CUBE, 1))
    ],
    *[
        Sample(
            "multi_all_finite",
            {"arg0": CUBE, "arg1": data},
            {"num_arrays": 2},
            answer(truth),
            "zero",
            why=ANSWER,
        )
        for data, truth in ((PLAIN, 1), (GAP, 0))
    ],
    *[
        Sample("_contrib_allclose", {"a": a, "b": b}, how, answer(truth, "uint8", ()), "zero",
               why=ANSWER)
        for a, b, how, truth in (
            (PLAIN, PLAIN, {}, 1),
            (PLAIN, 1.01 * PLAIN, {}, 0),
            (PLAIN, 1.01 * PLAIN, {"rtol": 0.02}, 1),
            (PLAIN, PLAIN + 0.1, {"rtol": 0.0, "atol": 0.2}, 1),
            (GAP, GAP, {}, 1),
            (GAP, GAP, {"equal_nan": False}, 0),
            (ENDLESS, ENDLESS, {}, 1),
            (ENDLESS, -ENDLESS, {}, 0),
        )
    ],
]  # fmt: skip


def histogram(bins=None, bounds=None):
    """How many entries lie in each bin; the bounds."""

    def call(data, *given):
        counts, edges = np.histogram(data, *given, **({} if given else how))
        return [counts, edges.astype(data.dtype)]

    how = {"bins": bins, "range": bounds}
    return call


BINNED = np.array([[0.0, 1.0], [2.0, 2.0], [3.0, 4.0], [5.0, -1.0], [6.0, 4.9]])
SAMPLES += [
    *[
        Sample(
            "_histogram",
            {"data": BINNED},
            {"bin_cnt": count, "range": bounds},
            histogram(count, bounds),
            "zero",
            why="counts are integers",
        )
        for count, bounds in ((5, (0, 5)), (4, (-1, 5)))
    ],
    Sample(
        "_histogram",
        {"data": BINNED, "bins": np.array([0.0, 2.1, 3.0, 5.0])},
        {},
        histogram(),
        "zero",
        by=("data",),  # the bounds are handed on
        why="counts are integers",
    ),
    Sample(
        "_histogram",
        {"data": np.arange(10, dtype=np.int32)},
        {"bin_cnt": 3, "range": (0, 9)},
        histogram(3, (0, 9)),
        "zero",
        why=NO_SLOPE,
    ),
]
