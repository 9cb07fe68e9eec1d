"""Samples of normalizations."""

import numpy as np

from mxnet_samples.sample import Sample


def layer_norm(data, gamma, beta):
    """Normalized over the last axis."""
    mean, variance = data.mean(-1, keepdims=True), data.var(-1, keepdims=True)
    return (data - mean) / np.sqrt(variance + 1e-5) * gamma + beta


SAMPLES = [
    Sample("LayerNorm", {"data": (3, 4), "gamma": (4,), "beta": (4,)}, {}, layer_norm),
    Sample("LRN", {"data": (2, 5, 3)}, {"nsize": 3}, None),
]
