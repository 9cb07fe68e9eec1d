"""Predicates of whole arrays: finiteness and closeness; and histograms."""

from typing import Any

import numpy as np

import symop as so
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.ops.values import at_least_1d, constant, kept
from symop.interop.mxnet.partial_dtypes import same_inputs
from symop.interop.mxnet.partial_shapes import Shapes, enter, numbered


def _is_finite(data: Any) -> Any:
    """Whether all entries are finite in float32."""
    return so.all(so.isfinite(so.cast(data, dtype="float32")))


def _one(given: Shapes, found: Shapes) -> None:
    del given
    enter(found, 0, (1,))


@operator("all_finite", dtypes="free", shapes=_one, ignored=("init_output",))
def all_finite(data: Any) -> Any:
    """One if all entries are finite, otherwise zero."""
    return at_least_1d(so.cast(_is_finite(data), dtype="float32"))


@operator("multi_all_finite", dtypes=same_inputs, shapes=_one, ignored=("init_output",))
def multi_all_finite(*args: Any, num_arrays: int = 1) -> Any:
    """One if all entries of all arrays are finite, otherwise zero."""
    if len(args) != num_arrays:
        raise MXNetError(f"multi_all_finite: num_arrays must be {len(args)}, got {num_arrays}")
    found = _is_finite(args[0])
    for one in args[1:]:
        found = so.logical_and(found, _is_finite(one))
    return at_least_1d(so.cast(found, dtype="float32"))


@operator("_contrib_allclose", dtypes=same_inputs)
def allclose(
    a: Any, b: Any, *, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = True
) -> Any:
    """One if all entries differ by at most ``atol + rtol * |b|``, otherwise zero; without axes."""
    near = so.less_equal(so.abs(so.subtract(a, b)), so.add(so.multiply(so.abs(b), rtol), atol))
    found = so.logical_or(near, so.equal(a, b))
    if equal_nan:
        found = so.logical_or(found, so.logical_and(so.isnan(a), so.isnan(b)))
    return so.cast(so.all(found), dtype="uint8")


def _has_bins(bin_cnt: int | None) -> tuple[str, ...]:
    return ("data", "bins") if bin_cnt is None else ("data",)


@operator(
    "_histogram",
    present=_has_bins,
    dtypes=same_inputs,
    outputs=lambda: ("output0", "output1"),
    at_once=True,
)
def histogram(
    data: Any,
    bins: Any = None,
    *,
    bin_cnt: int | None = None,
    range: tuple[float, ...] | None = None,
) -> tuple[Any, Any]:
    """The counts of bins, of which the last includes both bounds, and the bounds."""
    if (bin_cnt is None) is not (range is None):
        raise MXNetError(f"_histogram: bin_cnt and range must be given together, got {bin_cnt}")
    if bin_cnt is not None and range is not None:
        bins = kept(data, constant(_bounds(bin_cnt, range), data))
    x = so.reshape(data, shape=(-1,))
    count = bins.shape[0] - 1
    ends = [so.slice_axis(bins, axis=0, begin=i, end=i + 1) for i in (0, count)]
    places = so.subtract(so.searchsorted(bins, x, side="right"), 1)
    places = so.where(so.equal(x, ends[1]), count - 1, places)
    inside = so.logical_and(so.greater_equal(x, ends[0]), so.less_equal(x, ends[1]))
    hits = so.one_hot(so.where(inside, places, -1), num_classes=count, dtype="int64")
    return so.cast(so.sum(hits, axis=0), dtype="int64"), so.identity(bins)


def _bounds(count: int, range: tuple[float, ...]) -> np.ndarray:
    """The bounds of ``count`` bins of equal width."""
    if len(range) != 2 or range[0] > range[1]:
        raise MXNetError(f"_histogram: range must be two numbers in order, got {range}")
    low, high = range
    steps = numbered(count + 1)
    return (high * steps + (count - steps) * low) / count
