"""Samples of normalizations and dropout."""

import itertools

import numpy as np

from mxnet_samples.sample import Sample


def single(number):
    """What an attribute in single precision is."""
    return float(np.float32(number))


def along(array, axis, rank):
    """A vector along one axis."""
    return array.reshape([-1 if i == axis % rank else 1 for i in range(rank)])


def l2_normalization(axes, eps=1e-10):
    """Vectors of length one."""
    return lambda data: data / np.sqrt((data**2).sum(axes, keepdims=True) + single(eps))


def lrn(nsize, alpha=1e-4, beta=0.75, knorm=2.0):
    """Each channel by the squares of its neighbors."""

    def reference(data):
        half = nsize // 2
        wide = np.pad(data**2, [(0, 0), (half, half), *[(0, 0)] * (data.ndim - 2)])
        total = sum(wide[:, i : i + data.shape[1]] for i in range(nsize))
        return data * (knorm + single(alpha) / nsize * total) ** -single(beta)

    return reference


def centered(data, axes, eps):
    """Normalized data, means and deviations."""
    mean = data.mean(axes, keepdims=True)
    deviation = np.sqrt(data.var(axes, keepdims=True) + single(eps))
    return (data - mean) / deviation, mean, deviation


def instance_norm(eps=1e-3):
    """Normalized over all spatial axes."""

    def reference(data, gamma, beta):
        found, *_ = centered(data, tuple(range(2, data.ndim)), eps)
        return found * along(gamma, 1, data.ndim) + along(beta, 1, data.ndim)

    return reference


def layer_norm(axis=-1, eps=1e-5, output_mean_var=False):
    """Normalized over an axis."""

    def reference(data, gamma, beta):
        found, mean, deviation = centered(data, axis, eps)
        found = found * along(gamma, axis, data.ndim) + along(beta, axis, data.ndim)
        return [found, mean, deviation] if output_mean_var else found

    return reference


def group_norm(num_groups=1, eps=1e-5, output_mean_var=False):
    """Normalized over groups of channels."""

    def reference(data, gamma, beta):
        grouped = data.reshape(len(data), num_groups, -1)
        found, mean, deviation = centered(grouped, 2, eps)
        found = (found * gamma[:, None] + beta[:, None]).reshape(data.shape)
        return [found, mean[..., 0], deviation[..., 0]] if output_mean_var else found

    return reference


# Batches ---------------------------------------------------------------------------------------

OLD = ("BatchNorm_v1", "_contrib_SyncBatchNorm")


def batch_norm(op, told, train):
    """Normalized by the batch, or by the moving mean and variance."""

    def reference(data, gamma, beta, moving_mean, moving_var):
        axis, eps = told.get("axis", 1), told.get("eps", 1e-3)
        eps = single(eps) if op in OLD else eps
        mean, variance = moving_mean, moving_var
        if train and not told.get("use_global_stats", False):
            others = tuple(i for i in range(data.ndim) if i != axis % data.ndim)
            mean, variance = data.mean(others), data.var(others)
        gains = np.ones_like(gamma) if told.get("fix_gamma", True) else gamma
        shift, scale, gains, mean_ = (
            along(one, axis, data.ndim) for one in (beta, np.sqrt(variance + eps), gains, mean)
        )
        found = (data - mean_) / scale * gains + shift
        found = np.maximum(found, 0) if op == "_contrib_BatchNormWithReLU" else found
        third = variance if op in OLD else 1 / np.sqrt(variance + eps)
        return [found, mean, third] if told.get("output_mean_var") else found

    return reference


def normed(op, train, shape=(4, 3, 2), **told):
    """A sample of batch normalization."""
    if op == "_contrib_SyncBatchNorm":
        told = {"key": "one", "ndev": 1, **told}
    length = shape[told.get("axis", 1)]
    inputs = {
        "data": shape,
        "gamma": (length,),
        "beta": (length,),
        "moving_mean": (length,),
        "moving_var": np.linspace(0.6, 1.8, length),
    }
    by = ["data", "gamma", "beta"]
    return Sample(op, inputs, told, batch_norm(op, told, train), train=train, by=by)


FREE, PUT_OUT = {"fix_gamma": False}, {"output_mean_var": True}
GLOBAL = {"use_global_stats": True}
BATCHES = [
    *[
        (op, train, {"data": one})
        for op in ("BatchNorm", "_contrib_BatchNormWithReLU", *OLD)
        for train, one in (
            (True, {}),
            (True, {**FREE, **PUT_OUT}),
            (True, {**FREE, **GLOBAL}),
            (False, {**FREE, **PUT_OUT, "eps": 0.01, "momentum": 0.7}),
        )
    ],
    *[(op, True, {"data": {**FREE, "axis": -1}}) for op in ("BatchNorm", "CuDNNBatchNorm")],
    ("BatchNorm", True, {"data": {**FREE, **PUT_OUT, "axis": 2}}),
    ("BatchNorm", False, {"data": {"cudnn_off": True}}),
    ("BatchNorm", True, {"data": FREE, "shape": (5, 3)}),
    ("BatchNorm", True, {"data": FREE, "shape": (2, 3, 2, 2)}),
    ("_contrib_BatchNormWithReLU", True, {"data": {**FREE, **PUT_OUT, "axis": -1}}),
]


# Others ----------------------------------------------------------------------------------------


def slopes_of_sparsity(sparseness_target=0.1, penalty=0.001, momentum=0.9):
    """What flows back, and what a divergence adds to it."""
    target, factor, kept = map(single, (sparseness_target, penalty, momentum))

    def slopes(data, moving_avg):
        level = kept * moving_avg + (1 - kept) * data.mean(0)
        added = factor * (-target / level + (1 - target) / (1 - level))
        return {"data": np.broadcast_to(1 + added, data.shape)}

    return slopes


def drops(train, **told):
    """A sample of dropout: what is drawn in training, and what is not."""
    if train or told.get("mode") == "always":
        return Sample("Dropout", {"data": (3, 4)}, told, draws=True, train=train)
    return Sample("Dropout", {"data": (3, 4)}, told, lambda data: data)


SMALL = np.asarray([[0.5, -0.2, 0.1], [0.02, 0.03, -0.01]])

SAMPLES = [
    *[
        Sample("L2Normalization", {"data": data}, told, l2_normalization(axes, told.get("eps", 0)))
        for data, told, axes in (
            ((2, 3, 2), {"eps": 1e-3}, (1, 2)),
            ((2, 3, 2), {"mode": "channel", "eps": 1e-3}, 1),
            ((2, 3, 2, 2), {"mode": "channel", "eps": 0.5}, 1),
            ((2, 3, 2, 2), {"mode": "spatial", "eps": 1e-3}, (2, 3)),
            (SMALL, {"mode": "instance", "eps": 0.01}, 1),
        )
    ],
    Sample("L2Normalization", {"data": (2, 4)}, {}, l2_normalization(1)),
    *[
        Sample("LRN", {"data": (2, 5, 2, 2)}, told, lrn(**told))
        for told in (
            {"nsize": 3},
            {"nsize": 5, "alpha": 0.1, "beta": 0.6, "knorm": 1.5},
            {"nsize": 1, "alpha": 0.3},
            {"nsize": 9, "alpha": 0.2, "knorm": 1.0},
        )
    ],
    *[
        Sample(
            "InstanceNorm", {"data": data, "gamma": (3,), "beta": (3,)}, told, instance_norm(**told)
        )
        for data, told in (((2, 3, 4), {}), ((2, 3, 2, 3), {"eps": 0.01}))
    ],
    *[
        Sample(
            "LayerNorm",
            {"data": (2, 3, 4), "gamma": ((2, 3, 4)[axis],), "beta": ((2, 3, 4)[axis],)},
            {"axis": axis, **more},
            layer_norm(axis, **more),
        )
        for axis, more in itertools.product((-1, 0, 1), ({}, {**PUT_OUT, "eps": 0.01}))
    ],
    Sample("LayerNorm", {"data": (3, 4), "gamma": (4,), "beta": (4,)}, {}, layer_norm()),
    *[
        Sample(
            "GroupNorm",
            {"data": data, "gamma": (groups,), "beta": (groups,)},
            {"num_groups": groups, **more},
            group_norm(groups, **more),
        )
        for data, groups, more in (
            ((2, 4, 3), 2, {}),
            ((2, 4, 3), 2, {**PUT_OUT, "eps": 0.01}),
            ((2, 3, 2, 2), 1, {}),
            ((1, 3, 4), 3, PUT_OUT),
        )
    ],
    *[
        normed(op, train, *([more["shape"]] if "shape" in more else []), **more["data"])
        for op, train, more in BATCHES
    ],
    drops(False),
    drops(False, p=0.3, axes=(1,)),
    drops(True, p=0.3),
    drops(True, p=0.3, axes=(0,)),
    drops(True, p=0.3, axes=(0, 1)),
    drops(False, p=0.3, mode="always"),
    Sample("Dropout", {"data": (3, 4)}, {"p": 0.0}, lambda data: data, train=True),
    *[
        Sample(
            "IdentityAttachKLSparseReg",
            {
                "data": np.random.default_rng(2).uniform(0.1, 0.9, (4, 3)),
                "moving_avg": np.asarray([0.3, 0.5, 0.2]),
            },
            told,
            lambda data, moving_avg: data,
            "declared",
            slopes_of_sparsity(**told),
            train=train,
        )
        for told in ({}, {"sparseness_target": 0.2, "penalty": 0.01, "momentum": 0.8})
        for train in (True, False)
    ],
]
