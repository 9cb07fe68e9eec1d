"""Cumulative sums, maxima, minima and log-sum-exps along an axis."""

import math
from collections.abc import Callable
from typing import Any, Literal, get_args

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, distinct, integers, misuse, uniform, workload
from registry.errors import AttributeValueError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import cast, unbroadcast
from registry.ops.core.comparison import (
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_not,
    logical_or,
)
from registry.ops.core.elementwise import sigmoid, where
from registry.ops.core.reductions import sum_dtype
from registry.ops.core.slicing import concat, slice_
from registry.ops.elementwise.rounding import isnan
from registry.shapes import (
    at_least_single,
    normalize_axis,
    same,
    strong_inexact,
    strong_real,
    strong_real_inexact,
)
from registry.table import op
from registry.types import Shape, VarType
from registry.var import Var, filled

Comparison = Callable[[Any, Any], Any]


def scanned_axis(axis: int | None, ndim: int) -> int:
    """The axis of a scan, counted from the front; None means the only axis.

    Raises:
        AttributeValueError: the axis does not exist, or ``axis`` is None and there is not exactly
            one.
    """
    if axis is not None:
        return normalize_axis(axis, ndim)
    if ndim != 1:
        raise AttributeValueError(f"axis must be given unless x has one axis, got x with {ndim}")
    return 0


def scanned(x: Shape, *, axis: int | None) -> Shape:
    """The shape of a scan's result, which is that of ``x``."""
    scanned_axis(axis, len(x))
    return x


def wide(x: Array) -> Array:
    """``x`` in a dtype for accumulation: 16-bit floats become float32."""
    return x.astype(at_least_single(x.dtype))


def shifted(x: Var, axis: int, *, reverse: bool, fill: float = 0.0) -> Var:
    """The entries of ``x`` shifted by one in the direction of a scan, beginning with ``fill``."""
    n = x.shape[axis]
    if n == 0:
        return x
    kept = _span(x, axis, 1, n) if reverse else _span(x, axis, 0, n - 1)
    first = filled(_span(x, axis, 0, 1), fill)
    moved: Var = concat(*((kept, first) if reverse else (first, kept)), axis=axis)
    return moved


def _span(x: Var, axis: int, start: int, end: int) -> Var:
    begins, ends = [0] * x.ndim, list(x.shape)
    begins[axis], ends[axis] = start, end
    span: Var = slice_(x, begin=tuple(begins), end=tuple(ends))
    return span


def shifted_array(x: Array, axis: int, *, reverse: bool, fill: float) -> Array:
    """``shifted`` for arrays in a kernel."""
    config = [(0, 0, 0)] * x.ndim
    config[axis] = (-1, 1, 0) if reverse else (1, -1, 0)
    return lax.pad(x, jnp.asarray(fill, x.dtype), config)


def by_numpy(function: Callable[..., Any], start: float) -> Callable[..., np.ndarray]:
    """A NumPy reference: ``function`` along an axis in either direction, beginning at ``start``."""

    def reference(
        x: np.ndarray, *, axis: int | None, reverse: bool, exclusive: bool = False, **_: Any
    ) -> np.ndarray:
        rows = np.moveaxis(x, -1 if axis is None else axis, -1)
        rows = rows[..., ::-1] if reverse else rows
        out = np.asarray(function(rows, axis=-1))
        if exclusive:
            out = np.concatenate([np.full_like(out[..., :1], start), out[..., :-1]], axis=-1)
        out = out[..., ::-1] if reverse else out
        return np.moveaxis(out, -1, -1 if axis is None else axis)

    return reference


NEEDS_AXIS = [
    misuse("axis must be given unless x has one axis, got x with 2", x=(3, 4)),
    misuse("axis must be given unless x has one axis, got x with 0", x=()),
    misuse("axis must be in [-2, 2), got 2", x=(3, 4), axis=2),
]

# Sums -------------------------------------------------------------------------------------------


@op(
    shape=scanned,
    dtype=sum_dtype,
    reference=by_numpy(np.cumsum, 0.0),
    aliases=["cumulative_sum"],
    cases=[
        case(x=(3, 4), axis=1),
        case(x=(5,), reverse=True, exclusive=True),
        case(x=(3, 2), axis=-2, exclusive=True),
        case(x=(0,)),
        case(x=integers(5, high=99, dtype="int8")),
        workload(x=(1000, 1000), axis=1),
        *NEEDS_AXIS,
    ],
)
def cumsum(
    x: Array, *, axis: int | None = None, reverse: bool = False, exclusive: bool = False
) -> Array:
    """Cumulative sum along ``axis``: ``out[i] = x[0] + ... + x[i]``.

    ``axis`` may be omitted if there is only one. ``exclusive`` omits ``x[i]`` itself; ``reverse``
    sums from the end. Small integers and booleans are accumulated in the default integer dtype.

    Example:
        >>> import jax.numpy as jnp
        >>> cumsum(jnp.asarray([1.0, 2.0, 3.0]))
        Array([1., 3., 6.], dtype=float32)
        >>> cumsum(jnp.asarray([1.0, 2.0, 3.0]), reverse=True, exclusive=True)
        Array([5., 3., 0.], dtype=float32)
    """
    array = jnp.asarray(x)
    dtype = sum_dtype(VarType(array.shape, array.dtype))
    at = scanned_axis(axis, array.ndim)
    array = wide(lax.convert_element_type(array, dtype))
    if exclusive:
        array = shifted_array(array, at, reverse=reverse, fill=0)
    return lax.cumsum(array, at, reverse=reverse).astype(dtype)


@cumsum.gradient
def _cumsum_gradient(d_out: Var, *, axis: int | None, reverse: bool, exclusive: bool) -> Grads:
    # x[k] contributes to the sums from its position on, so the cotangent is summed from the end.
    return {"x": cumsum(d_out, axis=axis, reverse=not reverse, exclusive=exclusive)}


def _linear_scan_shape(x: Shape, decay: Shape, *, axis: int | None) -> Shape:
    return scanned(same(x, decay), axis=axis)


def _linear_scan_reference(
    x: np.ndarray, decay: np.ndarray, *, axis: int | None = None, reverse: bool = False
) -> np.ndarray:
    at = -1 if axis is None else axis
    out = np.zeros_like(np.moveaxis(x, at, 0))
    before = np.zeros_like(out[0]) if len(out) else None
    steps = range(len(out))
    for i in reversed(steps) if reverse else steps:
        before = np.moveaxis(decay, at, 0)[i] * before + np.moveaxis(x, at, 0)[i]
        out[i] = before
    return np.moveaxis(out, 0, at)


@op(
    shape=_linear_scan_shape,
    dtype=strong_inexact,
    reference=_linear_scan_reference,
    cases=[
        case(x=(4,), decay=(4,)),
        case(x=(2, 3), decay=(2, 3), axis=0, reverse=True),
        case(x=(2, 3), decay=(2, 3), axis=-1, order=2),
        case(x=(1,), decay=(1,)),
        case(x=(0,), decay=(0,)),
        workload(x=(1000, 1000), decay=uniform(1000, 1000, low=0.0, high=1.0), axis=1),
        misuse("the inputs must have the same shape, got (3,) and (4,)", x=(3,), decay=(4,)),
        misuse("axis must be given unless x has one axis", x=(3, 4), decay=(3, 4)),
        misuse("must be floating", x=integers(3, high=4), decay=integers(3, high=4)),
    ],
)
def linear_scan(x: Array, decay: Array, *, axis: int | None = None, reverse: bool = False) -> Array:
    """First-order linear recurrence along ``axis``: ``out[i] = decay[i] out[i - 1] + x[i]``.

    It starts from zero. With ``reverse`` it runs from the end:
    ``out[i] = decay[i] out[i + 1] + x[i]``. ``axis`` may be omitted if there is only one. All steps
    are computed in parallel, in a tree.

    Source: Blelloch, "Prefix sums and their applications" (1990).

    Example:
        >>> import jax.numpy as jnp
        >>> linear_scan(jnp.asarray([1.0, 1.0, 1.0]), jnp.asarray([9.0, 0.5, 0.5]))
        Array([1.  , 1.5 , 1.75], dtype=float32)
    """
    dtype = jnp.result_type(x, decay)
    x, decay = jnp.asarray(x), jnp.asarray(decay)
    pair = wide(decay.astype(dtype)), wide(x.astype(dtype))
    at = scanned_axis(axis, x.ndim)
    out: Array = lax.associative_scan(_after, pair, reverse=reverse, axis=at)[1]
    return out.astype(dtype)


def _after(first: tuple[Array, Array], second: tuple[Array, Array]) -> tuple[Array, Array]:
    """Composes two steps ``h -> decay h + x``."""
    return first[0] * second[0], second[0] * first[1] + second[1]


@linear_scan.gradient
def _linear_scan_gradient(
    x: Var, decay: Var, out: Var, d_out: Var, *, axis: int | None, reverse: bool
) -> Grads:
    # out[i] contributes to the output itself and, by decay[i + 1], to out[i + 1]. So its cotangent
    # is d[i] = d_out[i] + decay[i + 1] d[i + 1], and d decay[i] = d[i] out[i - 1].
    at = scanned_axis(axis, x.ndim)
    back = not reverse
    d = linear_scan(d_out, shifted(decay, at, reverse=back), axis=axis, reverse=back)
    return {
        "x": unbroadcast(d, x),
        "decay": lambda: unbroadcast(d * shifted(out, at, reverse=reverse), decay),
    }


# Extrema ----------------------------------------------------------------------------------------

Ties = Literal["first", "last"]
"""The entry that receives the gradient among equal extreme entries."""


def _running(x: Array, axis: int | None, reverse: bool, wins: Comparison) -> Array:
    """The extreme entry so far, or the last NaN; a later one replaces it if it ``wins``."""

    def later(a: Array, b: Array) -> Array:
        return jnp.where(wins(b, a) | jnp.isnan(b), b, a)

    x = jnp.asarray(x)
    at = scanned_axis(axis, x.ndim)
    return lax.convert_element_type(
        lax.associative_scan(later, x, reverse=reverse, axis=at), x.dtype
    )


def _running_gradient(
    x: Var, out: Var, d_out: Var, axis: int | None, reverse: bool, wins: Comparison, worst: float
) -> Grads:
    # An entry that sets a record receives the cotangents from its position up to the next record.
    at = scanned_axis(axis, x.ndim)
    before = shifted(out, at, reverse=reverse, fill=worst)
    record = logical_or(wins(x, before), isnan(x))
    if wins in (greater, less):
        # An entry equal to the worst value does not win, but there is nothing before the first
        # entry.
        start = shifted(filled(out, 0.0), at, reverse=reverse, fill=1.0)
        record = logical_or(record, equal(start, 1.0))
    stays = cast(logical_not(record), dtype=d_out.dtype)
    back = not reverse
    d = linear_scan(d_out, shifted(stays, at, reverse=back), axis=axis, reverse=back)
    return {"x": where(record, d, 0.0)}


def _tied(ties: Ties, **how: Any) -> Any:
    """Cases with ties, compared with JAX's derivative of the kernel, not finite differences."""
    endless = [[-math.inf, -math.inf, 1.0, 1.0, -2.0], [math.inf, math.inf, 1.0, -2.0, 1.0]]
    return case(x=np.array(endless), axis=1, ties=ties, order=0, **how)


_RUNNING_CASES = [
    case(x=distinct(3, 4), axis=1),
    case(x=distinct(5), reverse=True),
    case(x=distinct(3, 2), axis=-2, order=1),
    case(x=(0,)),
    case(x=integers(6, high=9)),
    case(x=distinct(2, 3), axis=1, ties="first", order=2),
    case(x=integers(6, high=2), ties="first"),
    *[_tied(ties, reverse=reverse) for ties in get_args(Ties) for reverse in (False, True)],
    workload(x=(1000, 1000), axis=1),
    *NEEDS_AXIS,
    misuse("the inputs must be real, got complex64", x=np.ones(2, np.complex64)),
    misuse("attribute 'ties' must be", x=(3,), ties="split"),
]


@op(
    shape=scanned,
    dtype=strong_real,
    reference=by_numpy(np.maximum.accumulate, -math.inf),
    cases=_RUNNING_CASES,
)
def cummax(
    x: Array, *, axis: int | None = None, reverse: bool = False, ties: Ties = "last"
) -> Array:
    """Cumulative maximum along ``axis``, which may be omitted if there is only one.

    Of equal entries the last receives the gradient, as in PyTorch and Paddle, or with
    ``ties="first"`` the first. A NaN makes itself and all later results NaN. ``reverse`` starts at
    the end.

    Example:
        >>> import jax.numpy as jnp
        >>> cummax(jnp.asarray([1.0, 3.0, 2.0]))
        Array([1., 3., 3.], dtype=float32)
    """
    wins = jnp.greater_equal if ties == "last" else jnp.greater
    return _running(x, axis, reverse, wins)


@cummax.gradient
def _cummax_gradient(
    x: Var, out: Var, d_out: Var, *, axis: int | None, reverse: bool, ties: Ties
) -> Grads:
    wins = greater_equal if ties == "last" else greater
    return _running_gradient(x, out, d_out, axis, reverse, wins, -math.inf)


@op(
    shape=scanned,
    dtype=strong_real,
    reference=by_numpy(np.minimum.accumulate, math.inf),
    cases=_RUNNING_CASES,
)
def cummin(
    x: Array, *, axis: int | None = None, reverse: bool = False, ties: Ties = "last"
) -> Array:
    """Cumulative minimum along ``axis``, which may be omitted if there is only one.

    Of equal entries the last receives the gradient, as in PyTorch and Paddle, or with
    ``ties="first"`` the first. A NaN makes itself and all later results NaN. ``reverse`` starts at
    the end.

    Example:
        >>> import jax.numpy as jnp
        >>> cummin(jnp.asarray([2.0, 3.0, 1.0]))
        Array([2., 2., 1.], dtype=float32)
    """
    wins = jnp.less_equal if ties == "last" else jnp.less
    return _running(x, axis, reverse, wins)


@cummin.gradient
def _cummin_gradient(
    x: Var, out: Var, d_out: Var, *, axis: int | None, reverse: bool, ties: Ties
) -> Grads:
    wins = less_equal if ties == "last" else less
    return _running_gradient(x, out, d_out, axis, reverse, wins, math.inf)


# Logarithms of sums of exponentials -------------------------------------------------------------


@op(
    shape=scanned,
    dtype=strong_real_inexact,
    reference=by_numpy(np.logaddexp.accumulate, -math.inf),
    aliases=["cumlogsumexp"],
    cases=[
        case(x=(2, 3), axis=1),
        case(x=(4,), reverse=True, order=2),
        case(x=uniform(4, low=900.0, high=904.0), order=2, rtol=4096),
        case(x=(3, 2), axis=-2, order=1),
        case(x=(0,)),
        workload(x=(1000, 1000), axis=1),
        *NEEDS_AXIS,
        misuse("the inputs must be floating, got int32", x=integers(3, high=4)),
    ],
)
def logcumsumexp(x: Array, *, axis: int | None = None, reverse: bool = False) -> Array:
    """Cumulative log-sum-exp along ``axis``: ``log(exp(x[0]) + ... + exp(x[i]))``. No overflow.

    ``axis`` may be omitted if there is only one; ``reverse`` sums from the end. As long as only
    equal infinities have occurred, the last of them receives the whole gradient.

    Example:
        >>> import jax.numpy as jnp
        >>> logcumsumexp(jnp.asarray([-jnp.inf, 1000.0, 1000.0]))
        Array([     -inf, 1000.    , 1000.69...], dtype=float32)
    """
    x = jnp.asarray(x)
    at = scanned_axis(axis, x.ndim)
    out: Array = lax.associative_scan(_logaddexp, wide(x), reverse=reverse, axis=at)
    return out.astype(x.dtype)


def _logaddexp(a: Array, b: Array) -> Array:
    same_infinity = jnp.isinf(a) & (a == b)
    a, safe = jnp.where(same_infinity, 0.0, a), jnp.where(same_infinity, 0.0, b)
    return jnp.where(same_infinity, b, jnp.logaddexp(a, safe))


@logcumsumexp.gradient
def _logcumsumexp_gradient(
    x: Var, out: Var, d_out: Var, *, axis: int | None, reverse: bool
) -> Grads:
    # out[i] = logaddexp(out[i - 1], x[i]) reaches x[i] with the share s[i] = exp(x[i] - out[i])
    # and out[i - 1] with 1 - s[i]: both are at most one, where exp(x[k]) and exp(-out[i]), which
    # the sum d x[k] = sum over i >= k of d_out[i] exp(x[k] - out[i]) is made of, would overflow.
    at, like = scanned_axis(axis, x.ndim), x
    if x.dtype.itemsize < at_least_single(x.dtype).itemsize:
        # The rounding error of large sums in half precision would appear in the exponent.
        x, d_out = (cast(one, dtype="float32") for one in (x, d_out))
        out = logcumsumexp(x, axis=axis, reverse=reverse)
    lead = x - shifted(out, at, reverse=reverse, fill=-math.inf)
    lead = where(isnan(lead), math.inf, lead)
    back = not reverse
    stays = shifted(sigmoid(-lead), at, reverse=back)
    d_x = sigmoid(lead) * linear_scan(d_out, stays, axis=axis, reverse=back)
    return {"x": cast(d_x, dtype=like.dtype)}
