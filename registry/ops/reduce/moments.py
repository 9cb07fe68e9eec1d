"""Variance, standard deviation, norms, and sums computed without overflow."""

import builtins
import math
from collections.abc import Callable
from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, distinct, integers, misuse, nonzero, uniform, workload
from registry.errors import AttributeValueError, ShapeError
from registry.operator.attributes import Check
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import cast, unbroadcast
from registry.ops.core.comparison import equal, logical_and, logical_or
from registry.ops.core.complex_parts import conj, part_dtype
from registry.ops.core.complex_parts import real as real_part
from registry.ops.core.elementwise import exp, stop_gradient, where
from registry.ops.core.reductions import (
    Axis,
    argmax_mask,
    averaged,
    count,
    extremum_gradient,
    max,
    mean,
    min,
    spread,
    sum,
    sum_dtype,
)
from registry.ops.core.reshaping import reshape
from registry.ops.core.slicing import span
from registry.ops.elementwise.extrema import abs as absolute
from registry.ops.elementwise.extrema import sign
from registry.ops.elementwise.powers import power
from registry.ops.elementwise.rounding import isinf, isnan
from registry.ops.reduce.scans import wide
from registry.shapes import floating, reduced, strong_inexact
from registry.table import op
from registry.types import DType, Shape, VarType, is_complex, is_symbolic
from registry.var import Var
from registry.xla import device_types


def _size_dtype(x: VarType) -> DType:
    """The dtype of the absolute value of the mean."""
    return part_dtype(VarType(x.shape, floating(x)[0]))[0]


def _as_float(x: Array) -> Array:
    """``x`` in the dtype of its mean, or a wider one for accumulation."""
    x = jnp.asarray(x)
    return wide(lax.convert_element_type(x, floating(VarType(x.shape, x.dtype))[0]))


def _squares(x: Array) -> Array:
    """``|x|^2``."""
    if jnp.iscomplexobj(x):
        return jnp.square(jnp.real(x)) + jnp.square(jnp.imag(x))
    return jnp.square(x)


def _sizes(x: Array) -> Array:
    """``|x|``, with derivative zero at zero."""
    if not jnp.iscomplexobj(x):
        return x * jnp.sign(x)
    at_zero = x == 0
    return jnp.where(at_zero, 0.0, jnp.abs(jnp.where(at_zero, 1.0, x)))


_UNEQUAL = np.array([[3 - 4j, 1j, 1.0], [0.5 - 0.25j, -2.0, 2 + 0.5j]])
"""Sample numbers with distinct absolute values."""


# Moments ----------------------------------------------------------------------------------------

_MOMENT_CASES = [
    case(x=(3, 4)),
    case(x=(3, 4), axis=0, correction=1.0),
    case(x=(2, 3, 2), axis=(0, -1), keepdims=True, correction=0.5, order=2),
    case(x=integers(5, high=9), dtypes=("float32",)),
    case(x=(0, 2), axis=1),
    case(x=_UNEQUAL, axis=1, correction=1.0, order=2),
    workload(x=(1000, 1000), axis=1),
    misuse("axis must be in [-2, 2), got 2", x=(3, 4), axis=2),
]


def _numpy_moment(function: Any) -> Any:
    def reference(
        x: np.ndarray, axis: Axis = None, correction: float = 0.0, keepdims: bool = False
    ) -> np.ndarray:
        return np.asarray(function(x, axis=axis, ddof=correction, keepdims=keepdims))

    return reference


@op(
    shape=reduced,
    dtype=_size_dtype,
    reference=_numpy_moment(np.var),
    cases=_MOMENT_CASES,
)
def variance(
    x: Array,
    *,
    axis: int | tuple[int, ...] | None = None,
    correction: float = 0.0,
    keepdims: bool = False,
) -> Array:
    """Variance ``sum(|x - mean(x)|^2) / (n - correction)`` of ``n`` entries over ``axis``.

    By default the reduction is over all axes. A correction of one gives the unbiased sample
    estimate. The divisor is never below zero, so too few entries give NaN or infinity.

    Example:
        >>> import jax.numpy as jnp
        >>> x = jnp.asarray([1.0, 3.0])
        >>> variance(x), variance(x, correction=1)
        (Array(1., dtype=float32), Array(2., dtype=float32))
    """
    out = _variance(_as_float(x), axis, correction, keepdims)
    return out.astype(_size_dtype(VarType(jnp.shape(x), jnp.result_type(x))))


def _variance(x: Array, axis: Axis, correction: float, keepdims: bool) -> Array:
    centered = x - jnp.mean(x, axis=axis, keepdims=True)
    total = jnp.sum(_squares(centered), axis=axis, keepdims=keepdims)
    return total / _freedom(x.shape, axis, correction)


def _freedom(x: Shape, axis: Axis, correction: float) -> float:
    n = count(x, axis)
    if not is_symbolic(n):
        return builtins.max(n - correction, 0.0)
    if correction < 0 or correction % 1:
        raise AttributeValueError(
            f"correction must be a whole number where the length {n} is symbolic, got {correction}"
        )
    return span(n, int(correction), None).length


@variance.gradient
def _variance_gradient(x: Var, d_out: Var, *, axis: Axis, correction: float) -> Grads:
    # d |z|^2 = 2 Re(conj(z) dz). The term of the mean vanishes because the deviations from it sum
    # to zero.
    factor = averaged(2.0 * d_out, _freedom(x.shape, axis, correction))
    return {"x": conj(_centered(x, axis)) * spread(factor, x, axis)}


def _centered(x: Var, axis: Axis) -> Var:
    centered: Var = x - mean(x, axis=axis, keepdims=True)
    return centered


@op(
    shape=reduced,
    dtype=_size_dtype,
    reference=_numpy_moment(np.std),
    cases=_MOMENT_CASES,
)
def std(
    x: Array,
    *,
    axis: int | tuple[int, ...] | None = None,
    correction: float = 0.0,
    keepdims: bool = False,
) -> Array:
    """Standard deviation ``sqrt(sum(|x - mean(x)|^2) / (n - correction))`` over ``axis``.

    By default the reduction is over all axes; ``n`` is the number of entries, and ``correction`` is
    as in ``variance``. The squares do not overflow: they are scaled where they leave the range, as
    in ``norm``. Where all entries are equal the derivative does not exist; it is taken as zero.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> std(jnp.asarray([1.0, 3.0]))
        Array(1., dtype=float32)
        >>> jax.grad(std)(jnp.asarray([2.0, 2.0]))
        Array([0., 0.], dtype=float32)
    """
    wider = _as_float(x)
    freedom = _freedom(wider.shape, axis, correction)
    out = euclidean(wider, axis, lambda x: _deviations(x, axis), freedom)
    out = out.reshape(reduced(wider.shape, axis=axis, keepdims=keepdims))
    return out.astype(_size_dtype(VarType(jnp.shape(x), jnp.result_type(x))))


def _deviations(x: Array, axis: Axis) -> Array:
    """The absolute deviations from the mean over ``axis``; signed for real entries."""
    centered = x - jnp.mean(x, axis=axis, keepdims=True)
    return _sizes(centered) if jnp.iscomplexobj(centered) else centered


def _root(square: Array) -> Array:
    """The square root of the variance, with derivatives of zero at zero."""
    at_zero = square == 0
    return jnp.where(at_zero, 0.0, jnp.sqrt(jnp.where(at_zero, 1.0, square)))


@std.gradient
def _std_gradient(x: Var, out: Var, d_out: Var, *, axis: Axis, correction: float) -> Grads:
    # d sqrt(v) = dv / (2 sqrt(v)), without a division by zero. The deviations are divided by out,
    # which is of their magnitude: d_out / out would have a derivative of magnitude 1 / out^2.
    at_zero = equal(out, 0.0)
    factor = averaged(where(at_zero, 0.0, d_out), _freedom(x.shape, axis, correction))
    divisor = spread(where(at_zero, 1.0, out), x, axis)
    return {"x": conj(_centered(x, axis) / divisor) * spread(factor, x, axis)}


# Sums -------------------------------------------------------------------------------------------

_HOLES = np.array([[2.0, np.nan, 3.0], [np.nan, 5.0, 0.0]])


@op(
    shape=reduced,
    dtype=sum_dtype,
    reference=np.nansum,
    cases=[
        case(x=_HOLES),
        case(x=_HOLES, axis=1),
        case(x=(2, 3, 2), axis=(0, -1), keepdims=True),
        case(x=()),
        case(x=(0, 2), axis=0),
        case(x=integers(3, high=9)),
        workload(x=(1000, 1000), axis=1),
        misuse("axis must be in [-2, 2), got 2", x=(3, 4), axis=2),
    ],
)
def nansum(x: Array, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Array:
    """Sum over ``axis`` that ignores NaNs: a NaN counts as zero.

    The gradient at a NaN is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> nansum(jnp.asarray([2.0, jnp.nan, 3.0]))
        Array(5., dtype=float32)
    """
    x = jnp.asarray(x)
    return jnp.sum(jnp.where(jnp.isnan(x), jnp.zeros_like(x), x), axis=axis, keepdims=keepdims)


@nansum.gradient
def _nansum_gradient(x: Var, d_out: Var, *, axis: Axis) -> Grads:
    return {"x": where(isnan(x), 0.0, spread(d_out, x, axis))}


def _logsumexp_reference(x: np.ndarray, *, axis: Axis = None, keepdims: bool = False) -> np.ndarray:
    if is_complex(x.dtype):
        top = np.max(x.real, axis=axis, keepdims=True, initial=-math.inf)
        top = np.where(np.isinf(top), 0.0, top)
        with np.errstate(divide="ignore"):
            total = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=keepdims))
        return np.asarray(total + top.reshape(total.shape))
    reduce: Any = np.logaddexp.reduce
    return np.asarray(reduce(x, axis=axis, keepdims=keepdims))


@op(
    shape=reduced,
    dtype=strong_inexact,
    reference=_logsumexp_reference,
    cases=[
        case(x=(3, 4)),
        case(x=(2, 3), axis=1, order=2),
        case(x=(2, 3, 2), axis=(0, -1), keepdims=True, order=1),
        case(x=uniform(4, low=900.0, high=904.0), order=2),
        case(x=(), order=1),
        case(x=(0, 2), axis=0),
        case(x=np.array([[900 + 2j, 901 - 3j, -1j], [-math.inf, 1 + 3j, 1 - 2j]]), axis=1, order=2),
        workload(x=(1000, 1000), axis=1),
        misuse("axis must be in [-2, 2), got 2", x=(3, 4), axis=2),
        misuse("the inputs must be floating, got int32", x=integers(3, high=4)),
    ],
)
def logsumexp(
    x: Array, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False
) -> Array:
    """Logarithm of the sum of exponentials over ``axis``, by default over all axes.

    ``log(sum(exp(x)))``, computed without overflow; minus infinity for an empty sum. Where the
    result is infinite, the entries equal to it share the gradient equally, as in ``logaddexp``. For
    complex entries it is the principal logarithm, with imaginary part between -pi and pi; the real
    parts determine which entries are infinite, and the imaginary part of an infinite result is
    zero.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> logsumexp(jnp.asarray([1000.0, 1000.0, -jnp.inf]))
        Array(1000.693..., dtype=float32)
        >>> jax.grad(logsumexp)(jnp.asarray([-jnp.inf, -jnp.inf]))
        Array([0.5, 0.5], dtype=float32)
    """
    x = jnp.asarray(x)
    shape = reduced(x.shape, axis=axis, keepdims=keepdims)
    if count(x.shape, axis) == 0:
        return jnp.full(shape, -math.inf, x.dtype)
    dtype, x = x.dtype, wide(x)
    size = jnp.real(x)
    top = lax.stop_gradient(jnp.max(size, axis=axis, keepdims=True))
    same_infinity = jnp.isinf(size) & (size == top)
    powers = jnp.exp(jnp.where(same_infinity, 0.0, x - top))
    out = top + jnp.log(jnp.sum(powers, axis=axis, keepdims=True))
    return out.reshape(shape).astype(dtype)


@logsumexp.gradient
def _logsumexp_gradient(x: Var, d_out: Var, *, axis: Axis) -> Grads:
    # With total = sum(exp(x - top)) and out = top + log(total), d out = sum(exp(x - top) dx) /
    # total; no derivative depends on top. The kernel's intermediate values are recomputed by the
    # same expressions, so that the compiler shares them: exp(x - out) would need other
    # exponentials. Entries that equal top as the same infinity count one each.
    if count(x.shape, axis) == 0:
        return {"x": None}
    like, x = x, cast(x, dtype="float32") if x.dtype.itemsize < 4 else x
    size = real_part(x) if is_complex(x.dtype) else x
    top = stop_gradient(max(size, axis=axis, keepdims=True))
    same_infinity = logical_and(isinf(size), equal(size, top))
    powers = exp(where(same_infinity, 0.0, x - top))
    total = sum(powers, axis=axis, keepdims=True)
    return {"x": unbroadcast(powers * (reshape(d_out, shape=total.shape) / total), like)}


# Norms ------------------------------------------------------------------------------------------


def _norm_shape(x: Shape, *, ord: float, axis: Axis, keepdims: bool) -> Shape:
    if math.isinf(ord) and count(x, axis) == 0:
        raise ShapeError(f"the reduced axes must not be empty, got shape {x}")
    return reduced(x, axis=axis, keepdims=keepdims)


def _norm_reference(
    x: np.ndarray, *, ord: float = 2.0, axis: Axis = None, keepdims: bool = False
) -> np.ndarray:
    function: Any = np.linalg.vector_norm
    return np.asarray(function(x, ord=ord, axis=axis, keepdims=keepdims))


@op(
    shape=_norm_shape,
    dtype=_size_dtype,
    reference=_norm_reference,
    aliases=["vector_norm"],
    cases=[
        case(x=(3, 4)),
        case(x=nonzero(3, 2), ord=3.0, axis=1, order=2),
        case(x=nonzero(2, 3, 2), ord=1.0, axis=(0, -1), keepdims=True),
        case(x=np.array([[1.0, 0.0], [0.0, -2.0]]), ord=4.0, order=2),
        case(x=nonzero(4), ord=0.5, order=2),
        case(x=nonzero(4), ord=-1.0, order=2),
        case(x=distinct(3, 4), ord=math.inf, axis=0, order=2),
        case(x=distinct(5), ord=-math.inf, order=2),
        case(x=nonzero(5), ord=0.0),
        case(x=nonzero(), order=1),
        case(x=integers(5, low=1, high=9), dtypes=("float32",)),
        case(x=(0, 2), axis=0),
        *[case(x=_UNEQUAL, ord=ord, axis=1, order=2) for ord in (0.0, 1.0, 2.0, 3.0, 4.0, -1.0)],
        *[case(x=_UNEQUAL, ord=ord, axis=0, order=2) for ord in (math.inf, -math.inf)],
        workload(x=(1000, 1000), axis=1),
        misuse("axis must be in [-2, 2), got 2", x=(3, 4), axis=2),
        misuse("the reduced axes must not be empty, got shape (0,)", x=(0,), ord=math.inf),
        misuse("attribute 'ord' must be a number, got nan", x=(3,), ord=math.nan),
    ],
)
def norm(
    x: Array,
    *,
    ord: Annotated[float, Check("be a number", lambda ord: not math.isnan(ord))] = 2.0,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
) -> Array:
    """Vector norm ``sum(|x|^ord)^(1 / ord)`` of the entries over ``axis``, by default of all.

    An ``ord`` of ``inf`` gives the largest absolute value, ``-inf`` the smallest, and 0 the number
    of nonzero entries. Over two axes the entries also count as one vector, so that 2 gives the
    Frobenius norm of a matrix. Powers are taken of scaled numbers, so that they do not overflow.

    Where the derivative does not exist, the shortest subgradient is used: zero where the norm is
    zero (as are the higher derivatives, like those of ``hypot``), zero for an entry that is zero
    (for an ``ord`` of at most one), and equal shares for entries that tie for the extremum; for
    complex entries the first receives it.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> norm(jnp.asarray([3.0, -4.0])), norm(jnp.asarray([3.0, -4.0]), ord=1)
        (Array(5., dtype=float32), Array(7., dtype=float32))
        >>> jax.grad(norm)(jnp.zeros(2))
        Array([0., 0.], dtype=float32)
    """
    out = _norm(_as_float(x), ord, axis)
    shape = reduced(jnp.shape(x), axis=axis, keepdims=keepdims)
    return out.reshape(shape).astype(_size_dtype(VarType(jnp.shape(x), jnp.result_type(x))))


def _norm(x: Array, ord: float, axis: Axis) -> Array:
    if ord == 0:
        return jnp.count_nonzero(x, axis=axis, keepdims=True)
    if ord == 2:
        return euclidean(_sizes(x) if jnp.iscomplexobj(x) else x, axis)
    size = _sizes(x)
    if ord == 1:
        return jnp.sum(size, axis=axis, keepdims=True)
    if abs(ord) == math.inf:
        extreme = max if ord > 0 else min
        ties = "first" if jnp.iscomplexobj(x) else "split"
        return jnp.asarray(extreme.kernel(size, axis=axis, keepdims=True, ties=ties))
    return _scaled_norm(size if jnp.iscomplexobj(x) else x, ord, axis)


def euclidean(
    x: Array, axis: Axis, vector: Callable[[Array], Array] = lambda x: x, count: float = 1.0
) -> Array:
    """The Euclidean length over ``axis``, which is kept; squares are scaled only if out of range.

    It is the length of the real ``vector(x)``, which is recomputed for the scaling so that it need
    not be stored. Its derivatives at zero are zero. The sum of squares is divided by ``count``.
    """
    total = jnp.sum(jnp.square(vector(x)), axis=axis, keepdims=True)
    limits = jnp.finfo(total.dtype)  # type: ignore[no-untyped-call]
    beyond = (total < limits.tiny / limits.eps) | (total > limits.max)
    shrunk: Any = jnp.sqrt(count) if is_symbolic(count) else count**0.5

    def careful(x: Array, total: Array) -> Array:
        scaled = _scaled_norm(vector(x), 2.0, axis) / shrunk
        return jnp.where(beyond, scaled, _root(total / count))

    out: Array = device_types.cond(
        jnp.any(beyond), careful, lambda _, total: _root(total / count), x, total
    )
    return out


def _scaled_norm(x: Array, ord: float, axis: Axis) -> Array:
    """The norm computed as that of ``x / unit`` times ``unit``, so that no power overflows."""
    size = jnp.abs(lax.stop_gradient(x))
    if ord > 0:
        unit = jnp.max(size, axis=axis, keepdims=True, initial=0.0)
    else:
        unit = jnp.min(size, axis=axis, keepdims=True, initial=math.inf)
    unit = jnp.where((unit > 0) & jnp.isfinite(unit), unit, 1.0)
    total = jnp.sum(_absolute_power(x / unit, ord), axis=axis, keepdims=True)
    known = (total > 0) & (total < math.inf)
    root = jnp.power(jnp.where(known, total, 1.0), 1.0 / ord)
    return unit * jnp.where(known, root, jnp.power(lax.stop_gradient(total), 1.0 / ord))


def _absolute_power(x: Array, ord: float) -> Array:
    """``|x|^ord``, with derivatives of zero at zero where they do not exist."""
    if ord % 2 == 0 and ord > 0:
        return lax.integer_pow(x, int(ord))
    at_zero = x == 0
    powers = jnp.power(jnp.abs(jnp.where(at_zero, 1.0, x)), ord)
    return jnp.where(at_zero, 0.0 if ord > 0 else math.inf, powers)


@norm.gradient
def _norm_gradient(x: Var, out: Var, d_out: Var, *, ord: float, axis: Axis) -> Grads:
    if ord == 0:
        return {"x": None}
    # d |z| = Re(conj(z) dz) / |z|
    along = conj(sign(x))
    if ord == 1:
        return {"x": along * spread(d_out, x, axis)}
    if math.isinf(ord):
        return {"x": along * _of_extreme(x, out, d_out, axis, smallest=ord < 0)}
    # d out = sum((|x| / out)^(ord - 1) d |x|), where no division by zero must be
    at_zero = equal(out, 0.0)
    divisor = spread(where(at_zero, 1.0, out), x, axis)
    d = spread(where(at_zero, 0.0, d_out), x, axis)
    if ord == 2:
        return {"x": d * conj(x / divisor)}
    ratio = (absolute(x) if is_complex(x.dtype) else x) / divisor
    if ord % 2 == 0 and ord > 0 and not is_complex(x.dtype):
        return {"x": d * power(ratio, ord - 1.0)}
    none = equal(x, 0.0)
    if ord < 0:  # one zero is enough for a norm of zero
        none = logical_or(none, equal(spread(out, x, axis), 0.0))
    return {"x": d * (along * power(absolute(where(none, 1.0, ratio)), ord - 1.0))}


def _of_extreme(x: Var, out: Var, d_out: Var, axis: Axis, *, smallest: bool) -> Any:
    """The cotangent of ``|x|``, where ``out`` is its maximum or minimum."""
    size = absolute(x)
    if not is_complex(x.dtype):
        return extremum_gradient(size, out, d_out, axis)["x"]
    # The kernel's value may be rounded differently and might equal none of the magnitudes.
    chosen = argmax_mask(size, axis=axis, smallest=smallest)
    return where(chosen, spread(d_out, x, axis), 0.0)
