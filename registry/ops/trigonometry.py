"""Trigonometric and hyperbolic functions beside sine, cosine and tanh, and angles in degrees."""

import math

import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse, nonzero, uniform
from registry.operator import Grads
from registry.ops.broadcasting import cast, unbroadcast
from registry.ops.elementwise import where
from registry.ops.powers import sqrt
from registry.ops.rounding import isinf
from registry.shapes import HAS_NO_AXIS, float_for, floating, real, same
from registry.signature import Array
from registry.table import op
from registry.types import DType, VarType, is_inexact
from registry.var import Var


def _real_floating(x: VarType) -> tuple[DType, bool]:
    real(x)
    dtype, weak = floating(x)
    return dtype, weak and is_inexact(x.dtype)


def _times(x: Array, factor: float) -> Array:
    """``factor x``, integers as floats of a size of their own."""
    number = jnp.asarray(x)
    return (number if is_inexact(number.dtype) else number.astype(float_for(number.dtype))) * factor


# Trigonometric functions ---------------------------------------------------------------------


@op(
    shape=same,
    dtype=floating,
    reference=np.tan,
    rows="entrywise",
    cases=[
        case(x=uniform(3, 4, low=-1.2, high=1.2)),
        case(x=uniform(low=-1.0, high=1.0)),
        case(x=(0,)),
        HAS_NO_AXIS,
    ],
)
def tan(x: Array) -> Array:
    """Tangent of an angle in radians.

    Example:
        >>> import jax.numpy as jnp
        >>> tan(jnp.asarray([0.0, jnp.pi / 4]))
        Array([0., 1.], dtype=float32)
    """
    return jnp.tan(x)


@tan.gradient
def _tan_gradient(x: Var, out: Var, d_out: Var) -> Grads:
    # d tan(x) = (1 + tan(x)^2) dx
    return {"x": unbroadcast(d_out * (1.0 + out * out), x)}


@op(
    shape=same,
    dtype=floating,
    reference=np.arcsin,
    aliases=["arcsin"],
    rows="entrywise",
    cases=[
        case(x=uniform(3, 4, low=-0.9, high=0.9)),
        case(x=uniform(low=-0.9, high=0.9)),
        case(x=(0,)),
        HAS_NO_AXIS,
    ],
)
def asin(x: Array) -> Array:
    """Angle in ``[-pi/2, pi/2]`` whose sine is ``x``.

    Example:
        >>> import jax.numpy as jnp
        >>> asin(jnp.asarray([0.0, 1.0]))
        Array([0.       , 1.5707964], dtype=float32)
    """
    return jnp.arcsin(x)


@asin.gradient
def _asin_gradient(x: Var, d_out: Var) -> Grads:
    # d asin(x) = dx / sqrt(1 - x^2); the product is accurate near -1 and 1
    return {"x": unbroadcast(d_out / sqrt((1.0 - x) * (1.0 + x)), x)}


@op(
    shape=same,
    dtype=floating,
    reference=np.arccos,
    aliases=["arccos"],
    cases=[
        case(x=uniform(3, 4, low=-0.9, high=0.9)),
        case(x=uniform(low=-0.9, high=0.9)),
        case(x=(0,)),
        HAS_NO_AXIS,
    ],
)
def acos(x: Array) -> Array:
    """Angle in ``[0, pi]`` whose cosine is ``x``.

    Example:
        >>> import jax.numpy as jnp
        >>> acos(jnp.asarray([1.0, 0.0]))
        Array([0.       , 1.5707964], dtype=float32)
    """
    return jnp.arccos(x)


@acos.gradient
def _acos_gradient(x: Var, d_out: Var) -> Grads:
    # d acos(x) = -dx / sqrt(1 - x^2)
    return {"x": unbroadcast(-d_out / sqrt((1.0 - x) * (1.0 + x)), x)}


@op(
    shape=same,
    dtype=floating,
    reference=np.arctan,
    aliases=["arctan"],
    rows="entrywise",
    cases=[case(x=(3, 4)), case(x=()), case(x=(0, 2)), case(x=integers(3, high=4)), HAS_NO_AXIS],
)
def atan(x: Array) -> Array:
    """Angle in ``[-pi/2, pi/2]`` whose tangent is ``x``.

    Example:
        >>> import jax.numpy as jnp
        >>> atan(jnp.asarray([0.0, jnp.inf]))
        Array([0.       , 1.5707964], dtype=float32)
    """
    return jnp.arctan(x)


@atan.gradient
def _atan_gradient(x: Var, d_out: Var) -> Grads:
    # d atan(x) = dx / (1 + x^2)
    wide = _single(x)
    far = isinf(wide)
    at = where(far, 0.0, wide)
    return {"x": unbroadcast(where(far, 0.0, d_out / (1.0 + at * at)), x)}


def _single(x: Var) -> Var:
    """``x``, halves as float32, in which their squares do not overflow."""
    wide: Var = cast(x, dtype="float32") if x.dtype.itemsize < 4 else x
    return wide


# Hyperbolic functions -------------------------------------------------------------------------


@op(
    shape=same,
    dtype=floating,
    reference=np.sinh,
    rows="entrywise",
    cases=[case(x=(3, 4)), case(x=()), case(x=(0, 2)), case(x=integers(3, high=4)), HAS_NO_AXIS],
)
def sinh(x: Array) -> Array:
    """Hyperbolic sine.

    Example:
        >>> import jax.numpy as jnp
        >>> sinh(jnp.asarray([0.0, jnp.inf]))
        Array([ 0., inf], dtype=float32)
    """
    return jnp.sinh(x)


@sinh.gradient
def _sinh_gradient(x: Var, d_out: Var) -> Grads:
    # d sinh(x) = cosh(x) dx
    return {"x": unbroadcast(d_out * cosh(x), x)}


@op(
    shape=same,
    dtype=floating,
    reference=np.cosh,
    cases=[case(x=(3, 4)), case(x=()), case(x=(0, 2)), case(x=integers(3, high=4)), HAS_NO_AXIS],
)
def cosh(x: Array) -> Array:
    """Hyperbolic cosine.

    Example:
        >>> import jax.numpy as jnp
        >>> cosh(jnp.asarray([0.0, -jnp.inf]))
        Array([ 1., inf], dtype=float32)
    """
    return jnp.cosh(x)


@cosh.gradient
def _cosh_gradient(x: Var, d_out: Var) -> Grads:
    # d cosh(x) = sinh(x) dx
    return {"x": unbroadcast(d_out * sinh(x), x)}


@op(
    shape=same,
    dtype=floating,
    reference=np.arcsinh,
    aliases=["arcsinh"],
    rows="entrywise",
    cases=[
        case(x=nonzero(3, 4)),
        case(x=nonzero()),
        case(x=(0, 2)),
        case(x=integers(3, low=1, high=4)),
        HAS_NO_AXIS,
    ],
)
def asinh(x: Array) -> Array:
    """Number whose hyperbolic sine is ``x``.

    Example:
        >>> import jax.numpy as jnp
        >>> asinh(jnp.asarray([0.0, jnp.inf]))
        Array([ 0., inf], dtype=float32)
    """
    return jnp.arcsinh(x)


@asinh.gradient
def _asinh_gradient(x: Var, d_out: Var) -> Grads:
    # d asinh(x) = dx / sqrt(x^2 + 1)
    if x.dtype.kind == "c":
        return {"x": d_out / sqrt(x * x + 1.0)}
    size = abs(_single(x))
    far = size > _beyond_one(d_out)
    at = where(far, 1.0, size)
    return {"x": unbroadcast(d_out / where(far, size, sqrt(at * at + 1.0)), x)}


def _beyond_one(x: Var) -> float:
    """The number from which on its square plus or minus one is rounded to its square."""
    limits = jnp.finfo(x.dtype)  # type: ignore[no-untyped-call]  # of JAX
    return 1.0 / math.sqrt(limits.eps)


@op(
    shape=same,
    dtype=floating,
    reference=np.arccosh,
    aliases=["arccosh"],
    cases=[
        case(x=uniform(3, 4, low=1.5, high=4.0)),
        case(x=uniform(low=1.5, high=4.0)),
        case(x=(0,)),
        HAS_NO_AXIS,
    ],
)
def acosh(x: Array) -> Array:
    """Number, not negative, whose hyperbolic cosine is ``x``.

    Example:
        >>> import jax.numpy as jnp
        >>> acosh(jnp.asarray([1.0, jnp.inf]))
        Array([ 0., inf], dtype=float32)
    """
    return jnp.arccosh(x)


@acosh.gradient
def _acosh_gradient(x: Var, d_out: Var) -> Grads:
    # d acosh(x) = dx / sqrt(x^2 - 1)
    if x.dtype.kind == "c":
        return {"x": d_out / sqrt((x - 1.0) * (x + 1.0))}
    wide = _single(x)
    far = wide > _beyond_one(d_out)
    at = where(far, 2.0, wide)
    return {"x": unbroadcast(d_out / where(far, wide, sqrt((at - 1.0) * (at + 1.0))), x)}


@op(
    shape=same,
    dtype=floating,
    reference=np.arctanh,
    aliases=["arctanh"],
    rows="entrywise",
    cases=[
        case(x=uniform(3, 4, low=-0.9, high=0.9)),
        case(x=uniform(low=-0.9, high=0.9)),
        case(x=(0,)),
        HAS_NO_AXIS,
    ],
)
def atanh(x: Array) -> Array:
    """Number whose hyperbolic tangent is ``x``.

    Example:
        >>> import jax.numpy as jnp
        >>> atanh(jnp.asarray([0.0, 1.0]))
        Array([ 0., inf], dtype=float32)
    """
    return jnp.arctanh(x)


@atanh.gradient
def _atanh_gradient(x: Var, d_out: Var) -> Grads:
    # d atanh(x) = dx / (1 - x^2)
    return {"x": unbroadcast(d_out / ((1.0 - x) * (1.0 + x)), x)}


# Degrees --------------------------------------------------------------------------------------


@op(
    shape=same,
    dtype=_real_floating,
    reference=np.degrees,
    aliases=["rad2deg"],
    rows="linear",
    cases=[
        case(x=(3, 4)),
        case(x=()),
        case(x=(0, 2)),
        case(x=integers(3, high=4)),
        misuse("the inputs must be real, got complex64", x=np.ones(2, np.complex64)),
    ],
)
def degrees(x: Array) -> Array:
    """Angle in degrees of one in radians: ``out = 180 x / pi``.

    Example:
        >>> import jax.numpy as jnp
        >>> degrees(jnp.asarray([0.0, jnp.pi]))
        Array([  0., 180.], dtype=float32)
    """
    return _times(x, 180.0 / math.pi)


@degrees.gradient
def _degrees_gradient(x: Var, d_out: Var) -> Grads:
    # d out = (180 / pi) dx
    return {"x": unbroadcast(d_out * (180.0 / math.pi), x)}


@op(
    shape=same,
    dtype=_real_floating,
    reference=np.radians,
    aliases=["deg2rad"],
    rows="linear",
    cases=[
        case(x=(3, 4)),
        case(x=()),
        case(x=(0, 2)),
        case(x=integers(3, high=4)),
        misuse("the inputs must be real, got complex64", x=np.ones(2, np.complex64)),
    ],
)
def radians(x: Array) -> Array:
    """Angle in radians of one in degrees: ``out = pi x / 180``.

    Example:
        >>> import jax.numpy as jnp
        >>> radians(jnp.asarray([0.0, 180.0]))
        Array([0.       , 3.1415927], dtype=float32)
    """
    return _times(x, math.pi / 180.0)


@radians.gradient
def _radians_gradient(x: Var, d_out: Var) -> Grads:
    # d out = (pi / 180) dx
    return {"x": unbroadcast(d_out * (math.pi / 180.0), x)}
