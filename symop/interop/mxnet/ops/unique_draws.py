"""Draws without repetition from many classes, favoring low numbers."""

import math
from typing import Any

import symop as so
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.ops.values import made

Shape = tuple[int, ...]
_BELOW_ONE = 1.0 - 2.0**-23


def _chances(range_max: int) -> Any:
    """Probabilities of classes ``round(exp(x)) - 1`` for uniform ``x`` up to ``log(range_max)``.

    It is the length of ``[log(c + 1/2), log(c + 3/2)]`` within these bounds.
    """
    number = made("arange", start=0.0, stop=float(range_max), dtype="float32")
    inner = so.log1p(so.reciprocal(number + 0.5))
    last = math.log(range_max / (range_max - 0.5))
    ends = so.where(so.equal(number, 0.0), math.log(1.5), inner)
    ends = so.where(so.equal(number, range_max - 1.0), last, ends)
    return ends * (1.0 / math.log(range_max)) if range_max > 1 else so.ones_like(number)


def _waits(shape: Shape) -> Any:
    """Waiting times of events that occur at rate one."""
    one = made("full", shape=(), fill_value=1.0, dtype="float32")
    return so.random_exponential(one, shape=shape, dtype="float32")


def _sample_check(range_max: int, shape: Shape) -> None:
    if len(shape) != 2 or not 1 <= shape[1] <= range_max:
        raise MXNetError(
            f"_sample_unique_zipfian: shape must be two lengths, the second one from 1 to "
            f"{range_max}, got {shape}"
        )


@operator("_sample_unique_zipfian", outputs=lambda: ("output0", "output1"), check=_sample_check)
def sample_unique_zipfian(*, range_max: int, shape: Shape = ()) -> Any:
    """Distinct classes in each row, and the number of draws with repetition that each row took.

    The order of first occurrences is that of independent exponential clocks whose rates are the
    classes' probabilities. Once some classes are seen, the number of draws until a new one is
    geometric.
    """
    _sample_check(range_max, shape)
    chances = _chances(range_max)
    _, classes = so.topk(so.negative(_waits((shape[0], range_max)) / chances), k=shape[1])
    seen = so.cumsum(so.take(chances, classes, axis=0, mode="clip"), axis=1)
    seen = so.minimum(so.slice_axis(seen, axis=1, begin=0, end=shape[1] - 1), _BELOW_ONE)
    idle = so.floor(_waits((shape[0], shape[1] - 1)) / so.negative(so.log(seen)))
    tries = so.sum(idle, axis=1) + float(shape[1])
    return so.cast(classes, dtype="int64"), so.cast(tries, dtype="int64")
