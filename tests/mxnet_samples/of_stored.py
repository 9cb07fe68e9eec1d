"""Samples of operators of sparse arrays, on dense ones."""

import numpy as np

from mxnet_samples.sample import Sample

ROWS = np.array([1, 3, 3])
MATRIX = np.array([[0.0, 1.5, 0.0], [2.0, 0.0, -1.0], [0.0, 0.0, 0.0]])


def retained(data, indices):
    """The rows that are named."""
    kept = np.isin(np.arange(len(data)), indices)
    return data * kept.reshape(-1, *(1,) * (data.ndim - 1))


SAMPLES = [
    Sample("_sparse_retain", {"data": (5, 2), "indices": ROWS}, reference=retained),
    Sample(
        "_sparse_retain",
        {"data": (4, 2, 3), "indices": ROWS * 1.0},
        reference=retained,
        by=["data"],
    ),
    Sample(
        "_square_sum",
        {"data": (4, 3)},
        reference=lambda data: np.sum(data * data, keepdims=True).reshape(1),
    ),
    Sample(
        "_square_sum",
        {"data": (4, 3)},
        {"axis": 1, "keepdims": True},
        reference=lambda data: np.sum(data * data, axis=1, keepdims=True),
    ),
    Sample(
        "_contrib_getnnz",
        {"data": MATRIX},
        reference=lambda data: np.array([np.count_nonzero(data)]),
        gradient="zero",
        why="a count has no gradient",
    ),
    Sample(
        "_contrib_getnnz",
        {"data": MATRIX},
        {"axis": 1},
        reference=lambda data: np.count_nonzero(data, axis=1),
        gradient="zero",
        why="a count has no gradient",
    ),
]
