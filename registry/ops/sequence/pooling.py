"""Pooling, expansion and softmax over ragged sequences."""

import itertools
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, distinct, integers, misuse, workload
from registry.errors import ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.arithmetic import divide
from registry.ops.core.broadcasting import cast
from registry.ops.core.comparison import equal, greater
from registry.ops.core.elementwise import where
from registry.ops.core.indexing import add_rows, never_weak, wide_index
from registry.ops.core.reshaping import reshape
from registry.ops.elementwise.extrema import maximum
from registry.ops.elementwise.powers import sqrt
from registry.ops.indexing.gathering import take_along_axis
from registry.ops.nn.heads import position_ids
from registry.ops.sequence.offsets import (
    INT32,
    Length,
    at,
    beyond,
    even,
    ids_of,
    require_offsets,
    require_steps,
    rows_at,
    sequence_count,
    sequence_lengths,
)
from registry.ops.shape.dynamic_slicing import slice_axis
from registry.shapes import (
    at_least_single,
    floating,
    numeric,
    real,
    require_held,
    strong_real_inexact,
)
from registry.table import op
from registry.types import DType, Shape, VarType, integer_limits, is_exact, is_inexact
from registry.var import Var

# sequence_expand_as ----------------------------------------------------------------------------


def _expand_as_shape(x: Shape, offsets: Shape, *, total_length: int) -> Shape:
    require_steps(x)
    if x[0] != sequence_count(offsets):
        raise ShapeError(
            f"x must have a row for each of {sequence_count(offsets)} sequences, got shape {x}"
        )
    return (total_length, *x[1:])


def _expand_as_dtype(x: VarType, offsets: VarType) -> DType:
    require_offsets(offsets)
    return x.dtype


def _expand_as_reference(x: np.ndarray, offsets: np.ndarray, *, total_length: int) -> np.ndarray:
    out = np.zeros((total_length, *x.shape[1:]), x.dtype)
    for s, row in enumerate(x):
        out[offsets[s] : offsets[s + 1]] = row
    return out


@op(
    shape=_expand_as_shape,
    dtype=_expand_as_dtype,
    reference=_expand_as_reference,
    cases=[
        case(x=(3, 2), offsets=at(0, 2, 2, 5), total_length=5),
        case(x=(2,), offsets=at(0, 1, 4), total_length=6),
        case(x=(2, 2, 2), offsets=at(0, 3, 5, dtype="uint8"), total_length=4, order=2),
        case(x=(0, 2), offsets=at(0), total_length=3, order=1),
        case(x=(2,), offsets=at(0, 0, 0), total_length=0, order=1),
        case(x=integers(2, high=9), offsets=at(0, 2, 3), total_length=4),
        workload(x=(1000, 64), offsets=even(20, 20000), total_length=20000),
        misuse(
            "a row for each of 2 sequences, got shape (3,)",
            x=(3,),
            offsets=at(0, 1, 2),
            total_length=2,
        ),
        misuse("x must have an axis for the steps", x=(), offsets=at(0, 1), total_length=2),
        misuse("offsets must be integers, got float", x=(2,), offsets=(3,), total_length=2),
    ],
)
def sequence_expand_as(x: Array, offsets: Array, *, total_length: Length) -> Array:
    """Repeats each row of ``x`` for every step of its sequence.

    ``out[i] = x[s]`` for the steps ``i`` from ``offsets[s]`` up to ``offsets[s + 1]``. Padding
    after the last offset is zero; steps from ``total_length`` on are dropped. It is the adjoint of
    ``sequence_pool`` with ``pool="sum"``.

    Source: PaddlePaddle, operator ``sequence_expand_as``.

    Example:
        >>> import jax.numpy as jnp
        >>> sequence_expand_as(jnp.asarray([1.0, 2.0]), jnp.asarray([0, 3, 4]), total_length=5)
        Array([1., 1., 1., 2., 0.], dtype=float32)
    """
    return rows_at(never_weak(x), ids_of(offsets, total_length))


@sequence_expand_as.gradient
def _sequence_expand_as_gradient(offsets: Var, d_out: Var) -> Grads:
    return {"x": sequence_pool(d_out, offsets, pool="sum"), "offsets": None}


# sequence_argmax -------------------------------------------------------------------------------


def pooled_shape(x: Shape, offsets: Shape) -> Shape:
    """Returns a shape with one row for each sequence."""
    require_steps(x)
    return (sequence_count(offsets), *x[1:])


def _argmax_dtype(x: VarType, offsets: VarType) -> DType:
    require_offsets(offsets)
    numeric(x)
    real(x)
    return INT32


def _argmax_reference(x: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    out = np.full((len(offsets) - 1, *x.shape[1:]), len(x), INT32)
    for s in range(len(out)):
        if offsets[s] < offsets[s + 1]:
            out[s] = offsets[s] + np.argmax(x[offsets[s] : offsets[s + 1]], axis=0)
    return out


def _largest(x: Array, ids: Array, count: int) -> Array:
    """The largest entries of each sequence; the minimum of the dtype for an empty sequence."""
    least = -np.inf if is_inexact(x.dtype) else integer_limits(x.dtype)[0]
    start = jnp.full((count, *x.shape[1:]), least, x.dtype)
    if not count:
        return start
    if not is_inexact(x.dtype):
        return start.at[ids].max(x, mode="drop", indices_are_sorted=True)
    found = _in_order(start).at[ids].max(_in_order(x), mode="drop", indices_are_sorted=True)
    return _of_order(found, x.dtype)


def _in_order(x: Array) -> Array:
    """Integers in the order of the floating-point numbers ``x``, where NaN is the largest.

    A scatter compares integers in two thirds of the time. The bits of positive numbers are in
    their order, those of negative numbers in the reverse order (IEEE 754-2019, 5.10).
    """
    number = np.dtype(f"int{8 * x.dtype.itemsize}")
    bits = lax.bitcast_convert_type(
        jnp.where(jnp.isnan(x), jnp.asarray(np.nan, x.dtype), x), number
    )
    return jnp.where(bits < 0, bits ^ np.iinfo(number).max, bits)


def _of_order(order: Array, dtype: DType) -> Array:
    """The inverse of ``_in_order``."""
    bits = jnp.where(order < 0, order ^ np.iinfo(order.dtype).max, order)
    return lax.bitcast_convert_type(bits, dtype)


def _per_step(steps: Array, like: Array) -> Array:
    """A vector over steps or sequences, reshaped to broadcast against the rows of ``like``."""
    return jnp.reshape(steps, (-1, *(1,) * (like.ndim - 1)))


@op(
    shape=pooled_shape,
    dtype=_argmax_dtype,
    reference=_argmax_reference,
    cases=[
        case(x=distinct(5, 2), offsets=at(0, 2, 2, 5)),
        case(x=integers(6, high=2), offsets=at(0, 3, 5)),
        case(x=integers(4, 2, high=3, dtype="uint8"), offsets=at(0, 4, dtype="uint8")),
        case(x=(0, 2), offsets=at(0, 0)),
        case(x=(3,), offsets=at(0)),
        misuse("the inputs must be real, got complex64", x=np.ones(2, np.complex64), offsets=at(0)),
        misuse("the inputs must be numbers, got bool", x=np.ones(2, bool), offsets=at(0)),
        misuse("offsets must be integers, got float", x=(2,), offsets=(3,)),
    ],
)
def sequence_argmax(x: Array, offsets: Array) -> Array:
    """The step of ``x`` with the first of the largest entries of each sequence.

    Steps are counted from the beginning of ``x``, not of the sequence, and are found separately for
    each entry of a step. For an empty sequence the result is the length of ``x``. A NaN counts as
    largest. The result is int32.

    Example:
        >>> import jax.numpy as jnp
        >>> sequence_argmax(jnp.asarray([1.0, 7.0, 5.0, 5.0]), jnp.asarray([0, 2, 4, 4]))
        Array([1, 2, 4], dtype=int32)
    """
    x = lax.stop_gradient(never_weak(x))
    height, count = x.shape[0], offsets.shape[0] - 1
    ids = ids_of(offsets, height)
    tied = (x == rows_at(_largest(x, ids, count), ids)) | jnp.isnan(x)
    steps = jnp.where(tied, _per_step(jnp.arange(height, dtype=INT32), x), height)
    start = jnp.full((count, *x.shape[1:]), height, INT32)
    return start.at[ids].min(steps.astype(INT32), mode="drop", indices_are_sorted=True)


sequence_argmax.zero_gradient("it is piecewise constant")

# sequence_pool ---------------------------------------------------------------------------------

Pool = Literal["sum", "mean", "sqrt", "max", "first", "last"]
"""The reduction of the steps of a sequence."""


def _pool_dtype(x: VarType, offsets: VarType, *, pool: Pool, pad_value: float) -> DType:
    require_offsets(offsets)
    if pool in ("mean", "sqrt"):
        dtype = floating(x)[0]
    else:
        dtype = x.dtype if pool in ("first", "last") else numeric(x)[0]
    if pool == "max":
        real(x)
    require_held("pad_value", pad_value, dtype)
    return dtype


def _pooled(steps: np.ndarray, pool: Pool) -> Any:
    """The pool of one nonempty sequence, in NumPy."""
    if pool in ("first", "last"):
        return steps[0 if pool == "first" else -1]
    if pool == "max":
        return np.max(steps, axis=0)
    total = np.sum(steps, axis=0)
    return total / {"sum": 1, "mean": len(steps), "sqrt": np.sqrt(len(steps))}[pool]


def _pool_reference(
    x: np.ndarray, offsets: np.ndarray, *, pool: Pool, pad_value: float
) -> np.ndarray:
    divides = pool in ("mean", "sqrt") and is_exact(x.dtype)
    dtype = np.dtype(np.float64) if divides else x.dtype
    out = np.full((len(offsets) - 1, *x.shape[1:]), pad_value, dtype)
    for s in range(len(out)):
        if offsets[s] < offsets[s + 1]:
            out[s] = _pooled(x[offsets[s] : offsets[s + 1]], pool)
    return out


def _ends(offsets: Array, pool: Pool, height: int) -> Array:
    """The first or last step of each sequence; out of bounds for an empty sequence."""
    offsets = wide_index(offsets)
    places = offsets[:-1] if pool == "first" else offsets[1:] - 1
    return beyond(offsets[:-1] < offsets[1:], places, height)


def _divisor(length: Array, pool: Pool, dtype: DType) -> Array:
    """The divisor of the sum."""
    count = jnp.maximum(length, 1).astype(dtype)
    return count if pool == "mean" else jnp.sqrt(count)


def _summed(x: Array, offsets: Array, pool: Pool, pad_value: float) -> Array:
    dtype = x.dtype if pool == "sum" else floating(VarType(x.shape, np.dtype(x.dtype)))[0]
    wide = x.astype(at_least_single(dtype))
    ids, length = ids_of(offsets, x.shape[0]), sequence_lengths.kernel(offsets)
    out = segment_sum(wide, ids, length.size)
    if pool != "sum":
        out = out / _per_step(_divisor(length, pool, wide.real.dtype), out)
    return jnp.where(_per_step(length > 0, out), out, pad_value).astype(dtype)


def segment_sum(x: Array, ids: Array, count: int) -> Array:
    """Returns the sum of the rows of each sequence, in the dtype of ``x``."""
    zeros = jnp.zeros((count, *x.shape[1:]), x.dtype)
    # XLA has no adjoint of a scatter to zero rows.
    return zeros.at[ids].add(x, mode="drop", indices_are_sorted=True) if count else zeros


_POOL_CASES = [
    case(x=(5, 2), offsets=at(0, 2, 2, 5)),
    case(x=(6,), offsets=at(0, 0, 4, 5, 5), pool="mean", pad_value=-1.5),
    case(x=(6, 2), offsets=at(0, 1, 5), pool="sqrt"),
    case(x=distinct(6, 2), offsets=at(0, 3, 3, 5), pool="max", pad_value=-9.0),
    case(x=(6, 2), offsets=at(0, 3, 3, 5), pool="first"),
    case(x=(6, 2, 2), offsets=at(0, 3, 3, 5, dtype="uint8"), pool="last", pad_value=0.5),
    *[case(x=(0, 2), offsets=at(0, 0), pool=pool, order=1) for pool in ("sum", "max", "last")],
    *[case(x=(3,), offsets=at(0), pool=pool, order=1) for pool in ("mean", "max", "first")],
    *[case(x=integers(5, high=9), offsets=at(0, 2, 2, 5), pool=p) for p in ("sum", "mean", "max")],
    case(x=np.asarray([3.0, 3.0, 1.0, 2.0, 2.0]), offsets=at(0, 3, 5), pool="max", order=0),
    *[workload(x=(20000, 64), offsets=even(20, 20000), pool=pool) for pool in ("sum", "max")],
    misuse("a vector with one number more", x=(3,), offsets=integers(2, 2, high=3)),
    misuse("x must have an axis for the steps", x=(), offsets=at(0, 1)),
    misuse("offsets must be integers, got float", x=(3,), offsets=(3,)),
    misuse("attribute 'pool' must be one of 'sum', 'mean'", x=(3,), offsets=at(0, 3), pool="avg"),
    misuse(
        "pad_value must be of dtype int32, got 0.5",
        x=integers(3, high=9),
        offsets=at(0, 3),
        pad_value=0.5,
    ),
    misuse(
        "the inputs must be real, got complex64",
        x=np.ones(2, np.complex64),
        offsets=at(0, 2),
        pool="max",
    ),
]


@op(
    shape=pooled_shape,
    dtype=_pool_dtype,
    reference=_pool_reference,
    cases=_POOL_CASES,
)
def sequence_pool(
    x: Array,
    offsets: Array,
    *,
    pool: Literal["sum", "mean", "sqrt", "max", "first", "last"] = "sum",
    pad_value: float = 0.0,
) -> Array:
    """Reduces the steps of each sequence to one row by ``pool``; ``pad_value`` for empty sequences.

    Sequence ``s`` has the steps ``x[offsets[s]:offsets[s + 1]]``; ``sum``, ``mean`` and ``max``
    reduce them, ``sqrt`` is the sum divided by the root of their number, ``first`` and ``last``
    select one of them. Padding after the last offset is not read. If several steps are largest, the
    first of them receives the gradient of ``max``; a NaN counts as largest. Sums are computed in
    float32 at least; a sum of integers has their dtype.

    Source: PaddlePaddle, operator ``sequence_pool``, whose ``average`` is ``mean``.

    Example:
        >>> import jax.numpy as jnp
        >>> x, offsets = jnp.asarray([1.0, 2.0, 3.0, 5.0]), jnp.asarray([0, 3, 3, 4])
        >>> sequence_pool(x, offsets, pool="mean")
        Array([2., 0., 5.], dtype=float32)
        >>> sequence_pool(x, offsets, pool="max", pad_value=-1.0)
        Array([ 3., -1.,  5.], dtype=float32)
    """
    x = never_weak(x)
    if pool == "max":
        chosen = sequence_argmax.kernel(x, offsets)
        largest: Array = take_along_axis.kernel(x, chosen, axis=0, fill_value=pad_value)
        return largest
    if pool in ("first", "last"):
        return rows_at(x, _ends(offsets, pool, x.shape[0]), pad_value)
    return _summed(x, offsets, pool, pad_value)


@sequence_pool.gradient
def _sequence_pool_gradient(x: Var, offsets: Var, d_out: Var, *, pool: Pool) -> Grads:
    height = x.shape[0]
    if pool == "max":
        d_x = _at_largest(x, offsets, d_out)
    elif pool in ("first", "last"):
        d_x = add_rows(d_out, _end_steps(offsets, pool, height), height=height)
    else:
        d_x = sequence_expand_as(_averaged(d_out, offsets, pool), offsets, total_length=height)
    return {"x": d_x, "offsets": None}


def _at_largest(x: Var, offsets: Var, d_out: Var) -> Any:
    """Returns each row of ``d_out`` at the first largest step of its sequence, zeros elsewhere.

    XLA fuses lookups of whole rows and a comparison with what reads them, and computes a scatter of
    single entries one after the other.
    """
    height = x.shape[0]
    chosen = sequence_expand_as(sequence_argmax(x, offsets), offsets, total_length=height)
    steps = reshape(position_ids(x, axis=0), shape=(-1, *(1,) * (x.ndim - 1)))
    rows = sequence_expand_as(d_out, offsets, total_length=height)
    return where(equal(chosen, steps), rows, 0.0)


def _end_steps(offsets: Var, pool: Pool, height: int) -> Any:
    """Computes ``_ends`` by operators."""
    wide, length = cast(offsets, dtype="int32"), sequence_lengths(offsets)
    first = slice_axis(wide, axis=0, begin=0, end=-1)
    places = first if pool == "first" else first + length - 1
    return where(greater(length, 0), places, height)


def _averaged(d_out: Var, offsets: Var, pool: Pool) -> Any:
    if pool == "sum":
        return d_out
    length = reshape(sequence_lengths(offsets), shape=(-1, *(1,) * (d_out.ndim - 1)))
    count = cast(maximum(length, 1), dtype=d_out.dtype)
    return divide(d_out, count if pool == "mean" else sqrt(count))


# sequence_softmax ------------------------------------------------------------------------------


def _softmax_shape(x: Shape, offsets: Shape) -> Shape:
    require_steps(x)
    sequence_count(offsets)
    return x


def _softmax_dtype(x: VarType, offsets: VarType) -> DType:
    require_offsets(offsets)
    return strong_real_inexact(x)


def _softmax_reference(x: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    out = np.zeros_like(x)
    for start, end in itertools.pairwise(offsets):
        if start < end:
            powers = np.exp(x[start:end] - np.max(x[start:end], axis=0))
            out[start:end] = powers / np.sum(powers, axis=0)
    return out


@op(
    shape=_softmax_shape,
    dtype=_softmax_dtype,
    reference=_softmax_reference,
    cases=[
        case(x=(6,), offsets=at(0, 2, 2, 5)),
        case(x=(5, 2), offsets=at(0, 1, 5)),
        case(x=(3, 2), offsets=at(0, 3, dtype="uint8"), order=2),
        case(x=(2, 2), offsets=at(0), order=1),
        case(x=(0,), offsets=at(0, 0), order=1),
        workload(x=(20000, 64), offsets=even(20, 20000)),
        misuse("x must have an axis for the steps", x=(), offsets=at(0, 1)),
        misuse("a vector with one number more", x=(3,), offsets=integers(0, high=3)),
        misuse("offsets must be integers, got float", x=(3,), offsets=(3,)),
        misuse("the inputs must be floating, got int32", x=integers(3, high=4), offsets=at(0, 3)),
    ],
)
def sequence_softmax(x: Array, offsets: Array) -> Array:
    """The softmax over the steps of each sequence, separately for each entry of a step.

    ``out[i] = exp(x[i]) / sum over j of exp(x[j])``, where ``j`` are the steps of the sequence of
    step ``i``. It does not overflow. Padding after the last offset becomes zero, and its gradient
    is zero. The sum is computed in float32 at least.

    Source: PaddlePaddle, operator ``sequence_softmax``.

    Example:
        >>> import jax.numpy as jnp
        >>> sequence_softmax(jnp.asarray([5.0, 5.0, 900.0]), jnp.asarray([0, 2, 3]))
        Array([0.5, 0.5, 1. ], dtype=float32)
    """
    x, count = never_weak(x), offsets.shape[0] - 1
    ids = ids_of(offsets, x.shape[0])
    inside = _per_step(ids < count, x)
    steps = jnp.where(inside, x.astype(at_least_single(x.dtype)), 0)
    largest = _largest(lax.stop_gradient(steps), ids, count)
    largest = jnp.where(largest == -np.inf, 0, largest)
    powers = jnp.where(inside, jnp.exp(steps - rows_at(largest, ids)), 0)
    total = rows_at(segment_sum(powers, ids, count), ids)
    return (powers / jnp.where(total == 0, 1, total)).astype(x.dtype)


@sequence_softmax.gradient
def _sequence_softmax_gradient(offsets: Var, out: Var, d_out: Var) -> Grads:
    # The gradient of the softmax, with its sum over each sequence: out_i (d_i - sum_j out_j d_j).
    means = sequence_pool(out * d_out, offsets, pool="sum")
    spread = sequence_expand_as(means, offsets, total_length=out.shape[0])
    return {"x": out * (d_out - spread), "offsets": None}
