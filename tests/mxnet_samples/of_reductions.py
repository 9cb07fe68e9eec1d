"""Samples of reductions over axes, of broadcasts, and of the loss that is a sum."""

import numpy as np
from scipy import special

from mxnet_samples.sample import Sample

draw = np.random.default_rng(3)
CUBE = draw.normal(size=(2, 3, 4))
GAPS = CUBE.copy()
GAPS[0, 1, 2] = GAPS[1, 0] = np.nan
FACTORS = draw.uniform(0.4, 1.6, size=(2, 3, 2))
WITH_ZERO = np.array([[1.5, 0.0, -2.0], [0.5, 3.0, 1.0]])
WHOLE = draw.integers(-3, 7, size=(3, 5)).astype(np.int32)
NO_SLOPE = "integers have no gradient"


def axes_of(count, axis=None, exclude=False):
    """The axes that are reduced: all, if none is named."""
    if axis is None or axis == ():
        return tuple(range(count))
    named = [one % count for one in ((axis,) if isinstance(axis, int) else axis)]
    return tuple(i for i in range(count) if (i in named) is not exclude)


def reduced(function, axis=None, keepdims=False, exclude=False):
    """``function`` over the axes that the attributes mean."""

    def call(data):
        over = axes_of(data.ndim, axis, exclude)
        found = np.atleast_1d(function(data, axis=over, keepdims=keepdims))
        return np.trunc(found).astype(data.dtype) if data.dtype.kind == "i" else found

    return call


REDUCTIONS = {
    "sum": (CUBE, np.sum),
    "mean": (CUBE, np.mean),
    "prod": (FACTORS, np.prod),
    "nansum": (GAPS, np.nansum),
    "nanprod": (GAPS, np.nanprod),
    "max": (CUBE, np.max),
    "min": (CUBE, np.min),
}
EVERY = [
    {},
    {"axis": ()},
    {"axis": 1},
    {"axis": -1, "keepdims": True},
    {"axis": (0, 2)},
    {"axis": (-1, 0), "keepdims": True},
    {"axis": (0, 1, 2)},
    {"keepdims": True},
    {"axis": 1, "exclude": True},
    {"axis": (0, -1), "exclude": True, "keepdims": True},
    {"axis": (0, 1, 2), "exclude": True},
]
SOME = [{}, {"axis": 1}, {"axis": (0, -1), "keepdims": True}, {"axis": 0, "exclude": True}]

SAMPLES = [
    *[
        Sample(op, {"data": data}, how, reduced(function, **how))
        for op, (data, function) in REDUCTIONS.items()
        for how in (EVERY if op in ("sum", "max") else SOME)
    ],
    *[
        Sample(op, {"data": WHOLE}, {"axis": 1}, reduced(function, 1), "zero", why=NO_SLOPE)
        for op, (_, function) in REDUCTIONS.items()
        if not op.startswith("nan")
    ],
    Sample("sum_axis", {"data": (3,)}, {"axis": 0}, reduced(np.sum, 0)),
    Sample("prod", {"data": WITH_ZERO}, {"axis": 1}, reduced(np.prod, 1)),
    Sample("nansum", {"data": np.full((2, 2), np.nan)}, {"axis": 0}, lambda data: np.zeros(2)),
]

# All entries that are largest get the whole gradient.
TIED = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 0.0]])
SLOPES = {
    "max": (np.max, [[0, 1, 1], [1, 1, 0]]),
    "min": (np.min, [[1, 0, 0], [0, 0, 1]]),
}
SAMPLES += [
    Sample(
        op,
        {"data": TIED},
        {"axis": 1},
        reduced(function, 1),
        "declared",
        lambda data, slopes=slopes: {"data": np.array(slopes)},
    )
    for op, (function, slopes) in SLOPES.items()
]

# Norms and moments -----------------------------------------------------------------------------


def absolute_sum(data, **how):
    """The sum of absolute values."""
    return np.abs(data).sum(**how)


def root(data, **how):
    """The root of the sum of squares."""
    return np.sqrt(np.square(data).sum(**how))


def moments(axes, keepdims=False):
    """The mean and the variance."""
    return lambda data: [reduced(one, axes, keepdims)(data) for one in (np.mean, np.var)]


NORMS = [{}, {"axis": 0}, {"axis": -1, "keepdims": True}, {"axis": (1, 2)}, {"keepdims": True}]
MOMENTS = [{"axes": 0}, {"axes": (0, 2), "keepdims": True}, {"axes": (-1,)}, {"axes": (0, 1, 2)}]
SAMPLES += [
    *[
        Sample("norm", {"data": CUBE}, {"ord": order, **how}, reduced(function, **how))
        for order, function in ((1, absolute_sum), (2, root))
        for how in NORMS
    ],
    Sample("norm", {"data": CUBE}, {}, reduced(root)),
    Sample(
        "norm",
        {"data": CUBE},
        {"axis": 1, "out_dtype": "float32"},
        reduced(root, 1),
        "zero",
        by=(),
        rtol=1e-6,
        why="differences of float32 are too coarse",
    ),
    Sample("norm", {"data": np.array([3, 4], np.int32)}, {}, reduced(root), "zero", why=NO_SLOPE),
    *[Sample("moments", {"data": CUBE}, how, moments(**how)) for how in MOMENTS],
    Sample(
        "norm",
        {"data": np.array([[0.0, -2.0, 3.0]])},
        {"ord": 1},
        reduced(absolute_sum),
        "declared",
        lambda data: {"data": np.sign(data)},
    ),
]

# Sums so far, and broadcasts -------------------------------------------------------------------


def sums_so_far(axis=None, dtype=None):
    """The sums of all entries up to each."""
    return lambda a: np.cumsum(a, axis=axis, dtype=dtype or a.dtype)


SAMPLES += [
    *[Sample("cumsum", {"a": (2, 3)}, how, sums_so_far(**how)) for how in ({}, {"axis": 1})],
    Sample("_np_cumsum", {"a": (2, 3)}, {"axis": -2}, sums_so_far(-2)),
    Sample(
        "cumsum",
        {"a": WHOLE},
        {"axis": 0, "dtype": "float32"},
        sums_so_far(0, "float32"),
        "zero",
        why=NO_SLOPE,
    ),
]


def to(*shape):
    """The first array, repeated to a shape."""
    return lambda data, *others: np.broadcast_to(data, shape)


THIN = {"data": (2, 1, 1)}
SAMPLES += [
    Sample("broadcast_axis", THIN, {"axis": 2, "size": 3}, to(2, 1, 3)),
    Sample("broadcast_axis", THIN, {"axis": (1, 2), "size": (4, 3)}, to(2, 4, 3)),
    Sample("broadcast_axes", THIN, {"axis": (1,), "size": (5,)}, to(2, 5, 1)),
    Sample("broadcast_axis", THIN, {}, to(2, 1, 1)),
    Sample("broadcast_to", THIN, {"shape": (2, 4, 3)}, to(2, 4, 3)),
    Sample("broadcast_to", THIN, {"shape": (0, 4, 0)}, to(2, 4, 1)),
    Sample("broadcast_like", {"lhs": (2, 1, 1), "rhs": (2, 3, 4)}, {}, to(2, 3, 4)),
    Sample(
        "broadcast_like",
        {"lhs": (2, 1, 1), "rhs": (7, 5)},
        {"lhs_axes": (1,), "rhs_axes": (-1,)},
        to(2, 5, 1),
    ),
    Sample(
        "broadcast_like",
        {"lhs": (1, 1), "rhs": (3, 2, 4)},
        {"lhs_axes": (0, -1), "rhs_axes": (1, 2)},
        to(2, 4),
    ),
]

# A loss ----------------------------------------------------------------------------------------


def cross_entropy(data, label):
    """The sum over all rows of minus the logarithm of the probability of the label."""
    rows = special.log_softmax(data, axis=1)
    return -rows[np.arange(len(label)), label.astype(int)].sum(keepdims=True)


LABELS = np.array([0.0, 2.0, 3.0])
SAMPLES += [
    Sample(
        "softmax_cross_entropy",
        {"data": (3, 4), "label": LABELS},
        {},
        cross_entropy,
        by=["data"],
    ),
]
