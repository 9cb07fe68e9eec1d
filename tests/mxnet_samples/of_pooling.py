"""Samples of pooling."""

import itertools
import math

import numpy as np

from mxnet_samples.sample import Sample

MEANS = {"max": np.max, "avg": np.mean, "sum": np.sum}


def count(length, kernel, stride, pad, convention):
    """How many windows there are along an axis."""
    if convention == "same":
        return math.ceil((length + 2 * pad) / stride)
    steps = (length + 2 * pad - kernel) / stride
    return 1 + int(math.ceil(steps) if convention == "full" else math.floor(steps))


def one_window(seen, divisor, kind, p_value):
    """What a window gives, for each example and channel."""
    axes = tuple(range(2, seen.ndim))
    if kind == "max":
        return seen.max(axes)
    if kind == "lp":
        total = (seen**p_value).sum(axes)
        return {1: total, 2: np.sqrt(np.abs(total)), 3: np.cbrt(total)}[p_value]
    return seen.sum(axes) / (max(divisor, 1) if kind == "avg" else 1)


def windows(data, told):
    """Pooling of data with the channels on axis 1."""
    kernel = told["kernel"]
    zeros, ones = (0,) * len(kernel), (1,) * len(kernel)
    stride, pad = told.get("stride", ones), told.get("pad", zeros)
    convention, lengths = told.get("pooling_convention", "valid"), data.shape[2:]
    places = [count(*one, convention) for one in zip(lengths, kernel, stride, pad, strict=True)]
    made = np.zeros((*data.shape[:2], *places))
    for position in np.ndindex(*places):
        start = [i * s - p for i, s, p in zip(position, stride, pad, strict=True)]
        end = [min(a + k, n + p) for a, k, n, p in zip(start, kernel, lengths, pad, strict=True)]
        inside = [slice(max(a, 0), min(b, n)) for a, b, n in zip(start, end, lengths, strict=True)]
        seen = data[:, :, *inside]
        divisor = math.prod(b - a for a, b in zip(start, end, strict=True))
        if told.get("count_include_pad") is False:
            divisor = math.prod(seen.shape[2:])
        made[:, :, *position] = one_window(
            seen, divisor, told.get("pool_type", "max"), told.get("p_value")
        )
    return made


def pooling(**told):
    """Each window, or one over all."""
    is_last = told.get("layout", "").endswith("C")

    def reference(data):
        data = np.moveaxis(data, -1, 1) if is_last else data
        how = told
        if told.get("global_pool"):
            alone = {key: told[key] for key in ("pool_type", "p_value") if key in told}
            how = {"kernel": data.shape[2:], **alone}
        made = windows(data, how)
        return np.moveaxis(made, 1, -1) if is_last else made

    return reference


def pooling_v1(**told):
    """The same where the padding is zeros, and the divisor that of a whole window."""

    def reference(data):
        if told.get("global_pool"):
            return MEANS[told["pool_type"]](data, (2, 3), keepdims=True)
        pad = told.get("pad", (0, 0))
        data = np.pad(data, [(0, 0), (0, 0), *[(p, p) for p in pad]])
        is_mean = told.get("pool_type") == "avg"
        kind = "sum" if is_mean else told.get("pool_type", "max")
        found = windows(data, {**told, "pad": (0, 0), "pool_type": kind})
        return found / math.prod(told["kernel"]) if is_mean else found

    return reference


def adaptive(height, width):
    """Means of as many windows."""

    def reference(data):
        def cut(length, parts):
            return [slice(i * length // parts, -(-(i + 1) * length // parts)) for i in range(parts)]

        rows, columns = cut(data.shape[2], height), cut(data.shape[3], width)
        return np.stack(
            [np.stack([data[:, :, i, j].mean((2, 3)) for j in columns], -1) for i in rows], -2
        )

    return reference


def magnitudes(*shape):
    """Numbers of which no two are equal, and none is near zero."""
    draw = np.random.default_rng(5)
    return draw.permutation(np.linspace(0.3, 3.0, math.prod(shape))).reshape(shape)


def pooled(data, **told):
    """A sample of pooling; norms are of positive numbers."""
    if told.get("pool_type") == "lp":
        data = magnitudes(*data)
    return Sample("Pooling", {"data": data}, told, pooling(**told))


KINDS = [
    {"pool_type": "max"},
    {"pool_type": "avg"},
    {"pool_type": "sum"},
    *[{"pool_type": "lp", "p_value": p} for p in (1, 2, 3)],
]
UNEVEN = {"kernel": (3, 2), "stride": (2, 2), "pad": (1, 0)}
BEYOND = {"kernel": (3, 2), "stride": (2, 3), "pad": (1, 1)}  # the last window may see nothing
CONVENTIONS = ("valid", "full")
TIED = np.asarray([[[[1.0, 2.0, 2.0], [2.0, 2.0, 0.0], [0.0, 0.0, 0.0]]]])


def slopes_of_ties(data):
    """The first of several largest entries gets all."""
    del data
    return {"data": np.asarray([[[[0.0, 2.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]]])}


SAMPLES = [
    *[
        pooled((1, 2, 6, 5), **UNEVEN, **kind, pooling_convention=convention)
        for kind, convention in itertools.product(KINDS, CONVENTIONS)
    ],
    *[
        pooled((1, 2, 6, 5), **UNEVEN, **told, pool_type="avg", count_include_pad=False)
        for told in ({}, {"pooling_convention": "full"})
    ],
    *[
        pooled((1, 2, 5, 5), **BEYOND, **told, pooling_convention="full")
        for told in (*KINDS[1:3], {"pool_type": "avg", "count_include_pad": False})
    ],
    *[pooled((1, 2, 3, 4), kernel=(7, 7), pad=(3, 3), global_pool=True, **kind) for kind in KINDS],
    pooled((2, 3, 4), global_pool=True, pool_type="avg"),
    pooled((2, 3, 7), kernel=(3,), pad=(1,)),
    pooled((1, 2, 5), kernel=(3,), stride=(2,), pad=(2,), pool_type="avg"),
    *[
        pooled((1, 2, 7), kernel=(3,), stride=(2,), pool_type=kind, pooling_convention="same")
        for kind in ("max", "avg", "sum")
    ],
    *[
        pooled((1, 3, 4, 3), kernel=(2, 2), stride=(2, 2), pad=(1, 1), layout="NHWC", **kind)
        for kind in KINDS[:2]
    ],
    pooled((2, 4, 3), kernel=(2,), layout="NWC", pool_type="sum"),
    pooled((1, 3, 4, 2), global_pool=True, layout="NHWC", pool_type="avg"),
    *[
        pooled(
            (1, 1, 4, 3, 5),
            kernel=(2, 2, 2),
            stride=(2, 1, 3),
            pad=(1, 0, 0),
            pool_type=kind,
            pooling_convention="full",
        )
        for kind in ("max", "avg")
    ],
    pooled((1, 1, 3, 3), kernel=(1, 1), stride=(4, 4)),
    Sample(
        "Pooling",
        {"data": TIED},
        {"kernel": (2, 2)},
        pooling(kernel=(2, 2)),
        "declared",
        slopes_of_ties,
    ),
    *[
        Sample("Pooling_v1", {"data": (1, 2, 4, 5)}, told, pooling_v1(**told))
        for told in (
            *[
                {
                    "kernel": (3, 2),
                    "stride": (2, 2),
                    "pad": (1, 1),
                    "pool_type": kind,
                    "pooling_convention": convention,
                }
                for kind, convention in itertools.product(MEANS, CONVENTIONS)
            ],
            *[{"kernel": (3, 2), "global_pool": True, "pool_type": kind} for kind in MEANS],
            {"kernel": (2, 2)},
        )
    ],
    *[
        Sample("_contrib_AdaptiveAvgPooling2D", {"data": (1, 2, 5, 4)}, told, adaptive(*size))
        for told, size in (
            ({}, (1, 1)),
            ({"output_size": 3}, (3, 3)),
            ({"output_size": (3,)}, (3, 3)),
            ({"output_size": (2, 3)}, (2, 3)),
            ({"output_size": (7, 4)}, (7, 4)),
        )
    ],
]
