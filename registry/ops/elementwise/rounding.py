"""Rounding, clipping, and tests of single numbers."""

import builtins
import math
from collections.abc import Callable
from typing import Any, get_args

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, misuse, nonzero, uniform
from registry.errors import AttributeValueError, KindError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import unbroadcast
from registry.ops.core.entrywise import entrywise
from registry.ops.elementwise.extrema import Ties, larger, maximum, parted, smaller
from registry.shapes import boolean, broadcast, promote, real, strong_real
from registry.table import op
from registry.types import DType, Shape, VarKind, VarType, integer_limits, is_inexact, is_integer
from registry.values import SelectedRows
from registry.var import Var

_STEPS = "it is constant between the jumps"
_QUESTION = "it is a question"


# Rounding ---------------------------------------------------------------------------------------


@entrywise(np.floor, samples=nonzero, dtype=real, rows="entrywise", zero_gradient=_STEPS)
def floor(x: Array) -> Array:
    """Floor, element-wise: the greatest integer that is at most ``x``. Integers are unchanged.

    Example:
        >>> import jax.numpy as jnp
        >>> floor(jnp.asarray([1.5, -1.5]))
        Array([ 1., -2.], dtype=float32)
    """
    return jnp.floor(x)


@entrywise(np.ceil, samples=nonzero, dtype=real, rows="entrywise", zero_gradient=_STEPS)
def ceil(x: Array) -> Array:
    """Ceiling, element-wise: the least integer that is at least ``x``. Integers are unchanged.

    Example:
        >>> import jax.numpy as jnp
        >>> ceil(jnp.asarray([1.5, -1.5]))
        Array([ 2., -1.], dtype=float32)
    """
    return jnp.ceil(x)


@entrywise(
    np.trunc, samples=nonzero, dtype=real, aliases=["fix"], rows="entrywise", zero_gradient=_STEPS
)
def trunc(x: Array) -> Array:
    """Truncates ``x`` towards zero, element-wise. Integers are unchanged.

    Example:
        >>> import jax.numpy as jnp
        >>> trunc(jnp.asarray([1.5, -1.5]))
        Array([ 1., -1.], dtype=float32)
    """
    return jnp.trunc(x)


@entrywise(
    lambda x, *, decimals: np.round(x, decimals),
    samples=nonzero,
    dtype=promote,
    aliases=["rint", "around"],
    rows="entrywise",
    zero_gradient=_STEPS,
    cases=[
        case(x=uniform(3, 4, low=-9, high=9), decimals=2),
        case(x=uniform(5, low=-900, high=900), decimals=-2),
        case(x=integers(5, low=-900, high=900), decimals=-2),
        case(x=integers(5, low=-900, high=900), decimals=3),
        case(x=np.array([5, 15, 25, -5, -15, 250], np.int32), decimals=-1),
        misuse("attribute 'decimals' must be an int", x=(3,), decimals=0.5),
    ],
)
def round(x: Array, *, decimals: int = 0) -> Array:
    """Rounds to the given number of ``decimals``, with halves to even.

    The result is ``rint(x * 10^decimals) / 10^decimals``, or ``x`` where that product overflows.
    Negative ``decimals`` round to that many zeros before the decimal point. For complex numbers
    both parts are rounded.

    Example:
        >>> import jax.numpy as jnp
        >>> round(jnp.asarray([1.4, 2.5, -1.5]))
        Array([ 1.,  2., -2.], dtype=float32)
        >>> round(jnp.asarray([16, 35]), decimals=-1)
        Array([20, 40], dtype=int32)
    """
    array = jnp.asarray(x)
    if jnp.iscomplexobj(array):
        parts = [round.kernel(part, decimals=decimals) for part in (array.real, array.imag)]
        return lax.complex(*parts)
    if not jnp.issubdtype(array.dtype, jnp.floating):
        return _round_whole(array, -decimals) if decimals < 0 else array
    if decimals == 0:
        return jnp.rint(array)
    half = array.dtype.itemsize < 4
    wide = array.astype(np.float32) if half else array
    # XLA would multiply by the reciprocal of a constant, which does not give the nearest number.
    power = float(f"1e{builtins.abs(decimals)}")  # infinite where ** would raise
    unit = lax.optimization_barrier(power)  # type: ignore[no-untyped-call]  # jax has no type here
    scaled = wide * unit if decimals > 0 else wide / unit
    whole = jnp.rint(scaled)
    rounded = whole / unit if decimals > 0 else whole * unit
    rounded = jnp.where(jnp.isfinite(rounded), rounded, wide)
    return rounded.astype(array.dtype) if half else rounded


def _round_whole(x: Array, zeros: int) -> Array:
    """The nearest multiple of a power of ten, with halves to the even multiple."""
    unit = 10**zeros
    if x.dtype == jnp.bool_ or unit > np.iinfo(x.dtype).max:
        return jnp.zeros_like(x)
    below = jnp.floor_divide(x, unit)
    rest = x - below * unit
    up = (rest > unit // 2) | ((rest == unit // 2) & (below % 2 == 1))
    nearest: Array = (below + up) * unit
    return nearest


# Tests ------------------------------------------------------------------------------------------


@entrywise(np.isnan, samples=nonzero, dtype=boolean, zero_gradient=_QUESTION)
def isnan(x: Array) -> Array:
    """Tests each entry for NaN.

    Example:
        >>> import jax.numpy as jnp
        >>> isnan(jnp.asarray([1.0, jnp.nan]))
        Array([False,  True], dtype=bool)
    """
    return jnp.isnan(x)


@entrywise(np.isinf, samples=nonzero, dtype=boolean, zero_gradient=_QUESTION)
def isinf(x: Array) -> Array:
    """Tests each entry for positive or negative infinity.

    Example:
        >>> import jax.numpy as jnp
        >>> isinf(jnp.asarray([1.0, -jnp.inf]))
        Array([False,  True], dtype=bool)
    """
    return jnp.isinf(x)


@entrywise(
    np.isfinite, samples=nonzero, dtype=boolean, aliases=["is_finite"], zero_gradient=_QUESTION
)
def isfinite(x: Array) -> Array:
    """Tests whether each entry is finite: neither infinite nor NaN.

    Example:
        >>> import jax.numpy as jnp
        >>> isfinite(jnp.asarray([1.0, jnp.nan]))
        Array([ True, False], dtype=bool)
    """
    return jnp.isfinite(x)


# Clipping ---------------------------------------------------------------------------------------


def _clip_shape(
    x: Shape, min: Shape | None, max: Shape | None, *, low: float | None, high: float | None
) -> Shape:
    if low is not None and high is not None and not low <= high:
        raise AttributeValueError(f"low must be at most high, got {low!r} and {high!r}")
    for slot, bound, name, number in (("min", min, "low", low), ("max", max, "high", high)):
        if bound is not None and number is not None:
            raise AttributeValueError(f"{slot} and {name} must not both be given, got {number!r}")
    return broadcast(*[shape for shape in (x, min, max) if shape is not None])


def _clip_dtype(x: VarType, min: VarType | None, max: VarType | None) -> DType:
    return strong_real(*[type for type in (x, min, max) if type is not None])


def _clip_reference(
    x: np.ndarray,
    min: np.ndarray | None = None,
    max: np.ndarray | None = None,
    *,
    low: float | None,
    high: float | None,
    ties: Ties,
) -> np.ndarray:
    del ties
    lower, upper = (low if min is None else min), (high if max is None else max)
    clipped: np.ndarray = x if lower is None and upper is None else np.clip(x, lower, upper)
    whole = is_integer(x.dtype) and min is None and max is None
    return np.trunc(clipped).astype(x.dtype) if whole else clipped


def _at_bounds(ties: Ties, **bounds: Any) -> Any:
    """Cases at the bounds, compared with JAX's derivative of the kernel, not finite differences."""
    return case(x=np.array([-1.0, 0.5, 2.0, 3.0, -4.0]), **bounds, ties=ties, order=0)


_MIN, _MAX = np.array([-1.0, 0.5, 0.0, 1.0, 1.0]), np.array([0.0, 0.5, 2.0, 1.0, -1.0])


@op(
    shape=_clip_shape,
    dtype=_clip_dtype,
    reference=_clip_reference,
    aliases=["clip_by_value"],
    cases=[
        case(x=uniform(3, 4, low=-0.9, high=0.9), low=-1.0, high=1.0),
        case(x=nonzero(5), low=0.1),
        case(x=nonzero(), high=0.25),
        case(x=(0,), low=0.0, high=1.0),
        case(x=np.array([0, 5, 200], np.uint8), low=-1.0, high=300.0),
        case(x=integers(5, low=-3, high=4), low=-1.5, high=1e12),
        case(x=nonzero(3, 4), min=uniform(4, low=-0.4, high=0.0), max=uniform(3, 1, low=0, high=1)),
        case(x=nonzero(3), min=uniform(2, 1, low=-0.4, high=0.4), ties="split", order=2),
        case(x=nonzero(3), max=uniform(low=-0.4, high=0.4), low=-1.0, ties="last", order=2),
        case(x=nonzero(3), min=0.25),
        case(x=integers(3, high=9), min=integers(2, 1, high=3), max=integers(3, low=4, high=6)),
        case(x=integers(3, high=9), min=(3,)),
        *[_at_bounds(ties, low=-1.0, high=2.0) for ties in get_args(Ties)],
        *[_at_bounds(ties, min=_MIN, max=_MAX) for ties in get_args(Ties)],
        misuse("low must be at most high, got 1.0 and 0.0", x=(3,), low=1.0, high=0.0),
        misuse("attribute 'low' must be", x=(3,), low="a"),
        misuse("min and low must not both be given, got 1.0", x=(3,), min=(3,), low=1.0),
        misuse("must broadcast together, got (3,) and (4,)", x=(3,), max=(4,)),
        misuse("the inputs must be real, got complex64", x=np.ones(2, np.complex64), low=0.0),
    ],
)
def clip(
    x: Array,
    min: Array | None = None,
    max: Array | None = None,
    *,
    low: float | None = None,
    high: float | None = None,
    ties: Ties = "first",
) -> Array:
    """Clips ``x`` to bounds: ``minimum(maximum(x, min), max)``; a bound of None has no effect.

    A bound is either an array, ``min`` or ``max``, which broadcasts and promotes as in a sum, or a
    constant number, ``low`` or ``high``, which leaves the dtype that of ``x``. Where ``min``
    exceeds ``max``, the result is ``max``.

    The gradient flows to a bound where it is active, and to ``x`` elsewhere. Where ``x`` equals a
    bound, ``ties`` determines which of them receives it: ``x`` with ``"first"``, as in PyTorch,
    MXNet and TensorFlow; the bound with ``"last"``, so that ``x`` receives none, as in Paddle; each
    half of it with ``"split"``, as in JAX.

    Example:
        >>> import jax.numpy as jnp
        >>> clip(jnp.asarray([-2.0, 0.5, 2.0]), low=-1.0, high=1.0)
        Array([-1. ,  0.5,  1. ], dtype=float32)
        >>> clip(jnp.asarray([-2.0, 0.5, 2.0]), jnp.asarray([0.0, 1.0, -1.0]))
        Array([0., 1., 2.], dtype=float32)
    """
    return clip_kernel(x, min, max, low=low, high=high, ties=ties)


def clip_kernel(
    x: Array,
    min: Array | None = None,
    max: Array | None = None,
    *,
    low: float | None,
    high: float | None,
    ties: Ties,
) -> Array:
    """``x`` within its bounds."""
    operands = [one for one in (x, min, max) if one is not None]
    out = jnp.asarray(x, jnp.result_type(*operands))
    lower = _number(low, math.ceil, out.dtype) if min is None else min
    upper = _number(high, math.floor, out.dtype) if max is None else max
    if lower is not None:
        out = larger(out, jnp.asarray(lower, out.dtype), ties)
    if upper is not None:
        out = smaller(out, jnp.asarray(upper, out.dtype), ties)
    return out


def _number(value: float | None, inward: Callable[[float], int], dtype: DType) -> float | None:
    return None if value is None else _bound(value, inward, dtype)


def _bound(value: float, inward: Callable[[float], int], dtype: DType) -> float:
    """A bound as the dtype represents it: rounded inward, without effect beyond the dtype's range.

    A traced bound of a floating array is a program operand and overflows by itself.
    """
    if is_inexact(dtype):
        largest = float(jnp.finfo(dtype).max)  # type: ignore[no-untyped-call]
        beyond = isinstance(value, float) and abs(value) > largest
        return math.copysign(math.inf, value) if beyond else value
    least, most = integer_limits(dtype)
    return max(min(inward(max(min(value, 2.0**64), -(2.0**64))), most), least)


@clip.kind
def _clip_kind(x: VarKind, *, low: float | None, high: float | None) -> VarKind:
    zero = (low is None or low <= 0) and (high is None or high >= 0)
    if x is VarKind.SELECTED_ROWS and not zero:
        raise KindError(
            f"low and high must enclose zero for selected_rows, got {low} and {high}; "
            "get_tensor_from_selected_rows makes a dense array of x"
        )
    return x


@clip.on_rows("x")
def _clip_rows(
    x: SelectedRows, min: Array | None = None, max: Array | None = None, **attributes: Any
) -> SelectedRows:
    if min is not None or max is not None:
        raise KindError("min and max must be None where x is selected_rows; give low and high")
    return x.merged().mapped(lambda values: clip_kernel(values, **attributes))


@clip.gradient
def _clip_gradient(
    x: Var,
    min: Var | None,
    max: Var | None,
    d_out: Var,
    *,
    low: float | None,
    high: float | None,
    ties: Ties,
) -> Grads:
    lower, upper = (low if min is None else min), (high if max is None else max)
    d_x, d_min, d_max = d_out, None, None
    if upper is not None:
        raised = x if lower is None else maximum(x, lower)
        d_x, d_max = parted(raised, upper, d_x, ties, larger=False)
    if lower is not None:
        d_x, d_min = parted(x, lower, d_x, ties, larger=True)
    return {
        "x": _summed(d_x, x),
        "min": None if min is None else _summed(d_min, min),
        "max": None if max is None else _summed(d_max, max),
    }


def _summed(cotangent: Any, like: Var) -> Any:
    return unbroadcast(cotangent, like) if is_inexact(like.dtype) else None
