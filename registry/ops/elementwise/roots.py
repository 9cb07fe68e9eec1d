"""Element-wise cube roots, reciprocal roots, and exponentials and logarithms to bases 2 and 10."""

import math

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import nonzero, positive
from registry.operator.signature import Array
from registry.ops.core.entrywise import entrywise
from registry.ops.elementwise.powers import reciprocal, square
from registry.shapes import floating, inexact, real_inexact
from registry.types import DType, VarType


def _logarithm(x: VarType) -> DType:
    return floating(x)[0]  # strong even for a Python number, as JAX's until 0.11 and log10's


# Roots ------------------------------------------------------------------------------------------


@entrywise(
    lambda x: 1 / np.sqrt(x),
    samples=positive,
    dtype=inexact,
    # d x^(-1/2) = -1/2 x^(-3/2) dx = -1/2 out^3 dx
    d_x=lambda out, d_out: d_out * (square(out) * out * -0.5),
)
def rsqrt(x: Array) -> Array:
    """Reciprocal square root: ``1 / sqrt(x)``; infinite at zero, NaN for negative numbers.

    Example:
        >>> import jax.numpy as jnp
        >>> rsqrt(jnp.asarray([4.0, 0.0]))
        Array([0.5, inf], dtype=float32)
    """
    return lax.rsqrt(jnp.asarray(x))


@entrywise(
    np.cbrt,
    samples=nonzero,
    dtype=real_inexact,
    rows="entrywise",
    # d x^(1/3) = 1/3 x^(-2/3) dx = 1/3 (1 / out)^2 dx: a power of a term that vanishes at infinity.
    # The derivatives of a quotient by out^2 would divide infinity by infinity there.
    d_x=lambda out, d_out: d_out * (square(reciprocal(out)) * (1.0 / 3.0)),
)
def cbrt(x: Array) -> Array:
    """Cube root, element-wise; negative for negative ``x``. The derivative at zero is infinite.

    Example:
        >>> import jax.numpy as jnp
        >>> cbrt(jnp.asarray([0.0, -8.0]))
        Array([ 0., -2.], dtype=float32)
    """
    return jnp.cbrt(x)


@entrywise(
    lambda x: 1 / np.cbrt(x),
    samples=nonzero,
    dtype=real_inexact,
    # d x^(-1/3) = -1/3 x^(-4/3) dx = -1/3 out^4 dx
    d_x=lambda out, d_out: d_out * (square(square(out)) * (-1.0 / 3.0)),
)
def rcbrt(x: Array) -> Array:
    """Reciprocal cube root, element-wise: ``1 / cbrt(x)``; infinite at zero.

    Example:
        >>> import jax.numpy as jnp
        >>> rcbrt(jnp.asarray([8.0, -8.0]))
        Array([ 0.5, -0.5], dtype=float32)
    """
    return 1.0 / jnp.cbrt(x)


# Other bases ------------------------------------------------------------------------------------


@entrywise(np.exp2, d_x=lambda out, d_out: d_out * (out * math.log(2.0)))
def exp2(x: Array) -> Array:
    """Exponential with base 2, element-wise: ``2^x``.

    Example:
        >>> import jax.numpy as jnp
        >>> exp2(jnp.asarray([0.0, 3.0]))
        Array([1., 8.], dtype=float32)
    """
    return jnp.exp2(x)


@entrywise(
    np.log2, samples=positive, dtype=_logarithm, d_x=lambda x, d_out: d_out / (x * math.log(2.0))
)
def log2(x: Array) -> Array:
    """Base-2 logarithm, element-wise; minus infinity at zero, NaN for negative numbers.

    Example:
        >>> import jax.numpy as jnp
        >>> log2(jnp.asarray([8.0, 0.0]))
        Array([  3., -inf], dtype=float32)
    """
    out = jnp.log2(x)
    return out.astype(out.dtype)


@entrywise(
    np.log10, samples=positive, dtype=_logarithm, d_x=lambda x, d_out: d_out / (x * math.log(10.0))
)
def log10(x: Array) -> Array:
    """Base-10 logarithm, element-wise; minus infinity at zero, NaN for negative numbers.

    Example:
        >>> import jax.numpy as jnp
        >>> log10(jnp.asarray([1.0, 0.0]))
        Array([  0., -inf], dtype=float32)
    """
    return jnp.log10(x)
