"""Trigonometric and hyperbolic functions other than sin, cos and tanh; angles in degrees."""

import math

import jax.numpy as jnp
import numpy as np

from registry.cases import nonzero
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import single, unbroadcast
from registry.ops.core.elementwise import where
from registry.ops.core.entrywise import entrywise
from registry.ops.elementwise.powers import sqrt
from registry.ops.elementwise.rounding import isinf
from registry.shapes import float_for, floating, real
from registry.types import DType, VarType, is_complex, is_inexact
from registry.var import Var


def _real_floating(x: VarType) -> tuple[DType, bool]:
    real(x)
    dtype, weak = floating(x)
    return dtype, weak and is_inexact(x.dtype)


def _times(x: Array, factor: float) -> Array:
    """``factor x``, with integers converted to floats of the matching size."""
    number = jnp.asarray(x)
    return (number if is_inexact(number.dtype) else number.astype(float_for(number.dtype))) * factor


# Trigonometric functions ---------------------------------------------------------------------


@entrywise(
    np.tan,
    samples=(-1.2, 1.2),
    rows="entrywise",
    # d tan(x) = (1 + tan(x)^2) dx
    d_x=lambda out, d_out: d_out * (1.0 + out * out),
)
def tan(x: Array) -> Array:
    """Tangent of an angle in radians, element-wise.

    Example:
        >>> import jax.numpy as jnp
        >>> tan(jnp.asarray([0.0, jnp.pi / 4]))
        Array([0., 1.], dtype=float32)
    """
    return jnp.tan(x)


@entrywise(
    np.arcsin,
    samples=(-0.9, 0.9),
    aliases=["arcsin"],
    rows="entrywise",
    # d asin(x) = dx / sqrt(1 - x^2); the product is accurate near -1 and 1
    d_x=lambda x, d_out: d_out / sqrt((1.0 - x) * (1.0 + x)),
)
def asin(x: Array) -> Array:
    """Inverse sine, element-wise: the angle in ``[-pi/2, pi/2]`` whose sine is ``x``.

    Example:
        >>> import jax.numpy as jnp
        >>> asin(jnp.asarray([0.0, 1.0]))
        Array([0.       , 1.5707964], dtype=float32)
    """
    return jnp.arcsin(x)


@entrywise(
    np.arccos,
    samples=(-0.9, 0.9),
    aliases=["arccos"],
    # d acos(x) = -dx / sqrt(1 - x^2)
    d_x=lambda x, d_out: -d_out / sqrt((1.0 - x) * (1.0 + x)),
)
def acos(x: Array) -> Array:
    """Inverse cosine, element-wise: the angle in ``[0, pi]`` whose cosine is ``x``.

    Example:
        >>> import jax.numpy as jnp
        >>> acos(jnp.asarray([1.0, 0.0]))
        Array([0.       , 1.5707964], dtype=float32)
    """
    return jnp.arccos(x)


@entrywise(np.arctan, aliases=["arctan"], rows="entrywise")
def atan(x: Array) -> Array:
    """Inverse tangent, element-wise: the angle in ``[-pi/2, pi/2]`` whose tangent is ``x``.

    Example:
        >>> import jax.numpy as jnp
        >>> atan(jnp.asarray([0.0, jnp.inf]))
        Array([0.       , 1.5707964], dtype=float32)
    """
    return jnp.arctan(x)


@atan.gradient
def _atan_gradient(x: Var, d_out: Var) -> Grads:
    # d atan(x) = dx / (1 + x^2)
    wide = single(x)
    far = isinf(wide)
    at = where(far, 0.0, wide)
    return {"x": unbroadcast(where(far, 0.0, d_out / (1.0 + at * at)), x)}


# Hyperbolic functions -------------------------------------------------------------------------


@entrywise(np.sinh, rows="entrywise")
def sinh(x: Array) -> Array:
    """Hyperbolic sine, element-wise.

    Example:
        >>> import jax.numpy as jnp
        >>> sinh(jnp.asarray([0.0, jnp.inf]))
        Array([ 0., inf], dtype=float32)
    """
    return jnp.sinh(x)


@sinh.gradient
def _sinh_gradient(x: Var, d_out: Var) -> Grads:
    # d sinh(x) = cosh(x) dx
    return {"x": d_out * cosh(x)}


@entrywise(
    np.cosh,
    # d cosh(x) = sinh(x) dx
    d_x=lambda x, d_out: d_out * sinh(x),
)
def cosh(x: Array) -> Array:
    """Hyperbolic cosine, element-wise.

    Example:
        >>> import jax.numpy as jnp
        >>> cosh(jnp.asarray([0.0, -jnp.inf]))
        Array([ 1., inf], dtype=float32)
    """
    return jnp.cosh(x)


@entrywise(np.arcsinh, samples=nonzero, aliases=["arcsinh"], rows="entrywise")
def asinh(x: Array) -> Array:
    """Inverse hyperbolic sine, element-wise: the number whose hyperbolic sine is ``x``.

    Example:
        >>> import jax.numpy as jnp
        >>> asinh(jnp.asarray([0.0, jnp.inf]))
        Array([ 0., inf], dtype=float32)
    """
    return jnp.arcsinh(x)


@asinh.gradient
def _asinh_gradient(x: Var, d_out: Var) -> Grads:
    # d asinh(x) = dx / sqrt(x^2 + 1)
    if is_complex(x.dtype):
        return {"x": d_out / sqrt(x * x + 1.0)}
    size = abs(single(x))
    far = size > _beyond_one(d_out)
    at = where(far, 1.0, size)
    return {"x": unbroadcast(d_out / where(far, size, sqrt(at * at + 1.0)), x)}


def _beyond_one(x: Var) -> float:
    """The bound from which a square plus or minus one rounds to the square."""
    limits = jnp.finfo(x.dtype)  # type: ignore[no-untyped-call]  # of JAX
    return 1.0 / math.sqrt(limits.eps)


@entrywise(np.arccosh, samples=(1.5, 4.0), aliases=["arccosh"])
def acosh(x: Array) -> Array:
    """Inverse hyperbolic cosine: the nonnegative number whose hyperbolic cosine is ``x``.

    Example:
        >>> import jax.numpy as jnp
        >>> acosh(jnp.asarray([1.0, jnp.inf]))
        Array([ 0., inf], dtype=float32)
    """
    return jnp.arccosh(x)


@acosh.gradient
def _acosh_gradient(x: Var, d_out: Var) -> Grads:
    # d acosh(x) = dx / sqrt(x^2 - 1)
    if is_complex(x.dtype):
        return {"x": d_out / sqrt((x - 1.0) * (x + 1.0))}
    wide = single(x)
    far = wide > _beyond_one(d_out)
    at = where(far, 2.0, wide)
    return {"x": unbroadcast(d_out / where(far, wide, sqrt((at - 1.0) * (at + 1.0))), x)}


@entrywise(
    np.arctanh,
    samples=(-0.9, 0.9),
    aliases=["arctanh"],
    rows="entrywise",
    # d atanh(x) = dx / (1 - x^2)
    d_x=lambda x, d_out: d_out / ((1.0 - x) * (1.0 + x)),
)
def atanh(x: Array) -> Array:
    """Inverse hyperbolic tangent, element-wise: the number whose hyperbolic tangent is ``x``.

    Example:
        >>> import jax.numpy as jnp
        >>> atanh(jnp.asarray([0.0, 1.0]))
        Array([ 0., inf], dtype=float32)
    """
    return jnp.arctanh(x)


# Degrees --------------------------------------------------------------------------------------


@entrywise(
    np.degrees,
    dtype=_real_floating,
    aliases=["rad2deg"],
    rows="linear",
    # d out = (180 / pi) dx
    d_x=lambda d_out: d_out * (180.0 / math.pi),
)
def degrees(x: Array) -> Array:
    """Converts angles from radians to degrees: ``out = 180 x / pi``.

    Example:
        >>> import jax.numpy as jnp
        >>> degrees(jnp.asarray([0.0, jnp.pi]))
        Array([  0., 180.], dtype=float32)
    """
    return _times(x, 180.0 / math.pi)


@entrywise(
    np.radians,
    dtype=_real_floating,
    aliases=["deg2rad"],
    rows="linear",
    # d out = (pi / 180) dx
    d_x=lambda d_out: d_out * (math.pi / 180.0),
)
def radians(x: Array) -> Array:
    """Converts angles from degrees to radians: ``out = pi x / 180``.

    Example:
        >>> import jax.numpy as jnp
        >>> radians(jnp.asarray([0.0, 180.0]))
        Array([0.       , 3.1415927], dtype=float32)
    """
    return _times(x, math.pi / 180.0)
