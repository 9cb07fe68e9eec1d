"""Rounding, clipping, and questions about single numbers."""

import math
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse, nonzero, uniform
from registry.errors import AttributeValueError
from registry.operator import Grads
from registry.ops.broadcasting import unbroadcast
from registry.ops.comparison import greater_equal, less_equal, logical_and
from registry.ops.elementwise import where
from registry.shapes import boolean, real, same, strong_real
from registry.signature import Array
from registry.table import op
from registry.types import DType, Shape, is_inexact
from registry.var import Var

_CASES = [case(x=nonzero(3, 4)), case(x=nonzero()), case(x=(0, 2)), case(x=integers(3, high=9))]
_COMPLEX = misuse("the inputs must be real, got complex64", x=np.ones(2, np.complex64))


# Rounding ---------------------------------------------------------------------------------------


@op(shape=same, dtype=real, reference=np.floor, cases=[*_CASES, _COMPLEX])
def floor(x: Array) -> Array:
    """Greatest whole number that is at most ``x``; integers stay as they are.

    Example:
        >>> import jax.numpy as jnp
        >>> floor(jnp.asarray([1.5, -1.5]))
        Array([ 1., -2.], dtype=float32)
    """
    return jnp.floor(x)


@op(shape=same, dtype=real, reference=np.ceil, cases=[*_CASES, _COMPLEX])
def ceil(x: Array) -> Array:
    """Least whole number that is at least ``x``; integers stay as they are.

    Example:
        >>> import jax.numpy as jnp
        >>> ceil(jnp.asarray([1.5, -1.5]))
        Array([ 2., -1.], dtype=float32)
    """
    return jnp.ceil(x)


@op(shape=same, dtype=real, reference=np.trunc, aliases=["fix"], cases=[*_CASES, _COMPLEX])
def trunc(x: Array) -> Array:
    """``x`` without its fraction; integers stay as they are.

    Example:
        >>> import jax.numpy as jnp
        >>> trunc(jnp.asarray([1.5, -1.5]))
        Array([ 1., -1.], dtype=float32)
    """
    return jnp.trunc(x)


@op(
    shape=same,
    dtype=real,
    reference=np.round,
    aliases=["rint", "around"],
    cases=[*_CASES, _COMPLEX],
)
def round(x: Array) -> Array:
    """Nearest whole number, halves to the even one; integers stay as they are.

    Example:
        >>> import jax.numpy as jnp
        >>> round(jnp.asarray([1.4, 2.5, -1.5]))
        Array([ 1.,  2., -2.], dtype=float32)
    """
    array = jnp.asarray(x)
    return jnp.rint(array) if jnp.issubdtype(array.dtype, jnp.floating) else array


floor.zero_gradient("it is constant between the jumps")
ceil.zero_gradient("it is constant between the jumps")
trunc.zero_gradient("it is constant between the jumps")
round.zero_gradient("it is constant between the jumps")

# Questions --------------------------------------------------------------------------------------


@op(shape=same, dtype=boolean, reference=np.isnan, cases=_CASES)
def isnan(x: Array) -> Array:
    """Whether each entry is not a number.

    Example:
        >>> import jax.numpy as jnp
        >>> isnan(jnp.asarray([1.0, jnp.nan]))
        Array([False,  True], dtype=bool)
    """
    return jnp.isnan(x)


@op(shape=same, dtype=boolean, reference=np.isinf, cases=_CASES)
def isinf(x: Array) -> Array:
    """Whether each entry is infinite.

    Example:
        >>> import jax.numpy as jnp
        >>> isinf(jnp.asarray([1.0, -jnp.inf]))
        Array([False,  True], dtype=bool)
    """
    return jnp.isinf(x)


@op(shape=same, dtype=boolean, reference=np.isfinite, aliases=["is_finite"], cases=_CASES)
def isfinite(x: Array) -> Array:
    """Whether each entry is a number and not infinite.

    Example:
        >>> import jax.numpy as jnp
        >>> isfinite(jnp.asarray([1.0, jnp.nan]))
        Array([ True, False], dtype=bool)
    """
    return jnp.isfinite(x)


isnan.zero_gradient("it is a question")
isinf.zero_gradient("it is a question")
isfinite.zero_gradient("it is a question")

# Clipping ---------------------------------------------------------------------------------------


def _clip_shape(x: Shape, *, low: float | None, high: float | None) -> Shape:
    if low is not None and high is not None and not low <= high:
        raise AttributeValueError(f"low must be at most high, got {low!r} and {high!r}")
    return x


def _clip_reference(x: np.ndarray, *, low: float | None, high: float | None) -> np.ndarray:
    clipped = x if low is None and high is None else np.clip(x, low, high)
    return np.trunc(clipped).astype(x.dtype) if x.dtype.kind in "iu" else clipped


@op(
    shape=_clip_shape,
    dtype=strong_real,
    reference=_clip_reference,
    cases=[
        case(x=uniform(3, 4, low=-0.9, high=0.9), low=-1.0, high=1.0),
        case(x=nonzero(5), low=0.1),
        case(x=nonzero(), high=0.25),
        case(x=(0,), low=0.0, high=1.0),
        case(x=np.array([0, 5, 200], np.uint8), low=-1.0, high=300.0),
        case(x=integers(5, low=-3, high=4), low=-1.5, high=1e12),
        misuse("low must be at most high, got 1.0 and 0.0", x=(3,), low=1.0, high=0.0),
        misuse("attribute 'low' must be", x=(3,), low="a"),
    ],
)
def clip(x: Array, *, low: float | None = None, high: float | None = None) -> Array:
    """``min(max(x, low), high)``, in the dtype of ``x``; a bound that is None does not bind.

    The derivative is one from ``low`` to ``high``, bounds included, and zero beyond.

    Example:
        >>> import jax.numpy as jnp
        >>> clip(jnp.asarray([-2.0, 0.5, 2.0]), low=-1.0, high=1.0)
        Array([-1. ,  0.5,  1. ], dtype=float32)
    """
    array = jnp.asarray(x)
    bounds = [
        None if one is None else jnp.asarray(_bound(one, inward, array.dtype), array.dtype)
        for one, inward in ((low, math.ceil), (high, math.floor))
    ]
    return jnp.clip(array, *bounds)


def _bound(value: float, inward: Callable[[float], int], dtype: DType) -> float:
    """A bound as the dtype holds it: the next whole number inside, and none beyond its range."""
    if is_inexact(dtype):
        largest = float(jnp.finfo(dtype).max)  # type: ignore[no-untyped-call]
        return math.copysign(math.inf, value) if abs(value) > largest else value
    limits = np.iinfo(np.uint8 if dtype == np.bool_ else dtype)
    top = 1 if dtype == np.bool_ else limits.max
    return max(min(inward(max(min(value, 2.0**64), -(2.0**64))), top), limits.min)


@clip.gradient
def _clip_gradient(x: Var, d_out: Var, *, low: float | None, high: float | None) -> Grads:
    inside = d_out
    if low is not None and high is not None:
        inside = where(logical_and(greater_equal(x, low), less_equal(x, high)), d_out, 0.0)
    elif low is not None:
        inside = where(greater_equal(x, low), d_out, 0.0)
    elif high is not None:
        inside = where(less_equal(x, high), d_out, 0.0)
    return {"x": unbroadcast(inside, x)}
