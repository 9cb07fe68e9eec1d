"""Cube roots, reciprocal roots, and exponentials and logarithms to the bases 2 and 10."""

import math

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, nonzero, positive
from registry.operator import Grads
from registry.ops.broadcasting import unbroadcast
from registry.ops.powers import reciprocal, square
from registry.shapes import HAS_NO_AXIS, REFUSES_INTEGERS, floating, inexact, real_inexact, same
from registry.signature import Array
from registry.table import op
from registry.types import DType, VarType
from registry.var import Var


def _logarithm(x: VarType) -> DType:
    return floating(x)[0]  # JAX makes it strong also of a Python number


# Roots ------------------------------------------------------------------------------------------


@op(
    shape=same,
    dtype=inexact,
    reference=lambda x: 1 / np.sqrt(x),
    cases=[case(x=positive(3, 4)), case(x=positive()), case(x=positive(0)), REFUSES_INTEGERS],
)
def rsqrt(x: Array) -> Array:
    """``1 / sqrt(x)``; infinite at zero, not a number below.

    Example:
        >>> import jax.numpy as jnp
        >>> rsqrt(jnp.asarray([4.0, 0.0]))
        Array([0.5, inf], dtype=float32)
    """
    return lax.rsqrt(jnp.asarray(x))


@rsqrt.gradient
def _rsqrt_gradient(out: Var, d_out: Var) -> Grads:
    # d x^(-1/2) = -1/2 x^(-3/2) dx = -1/2 out^3 dx
    return {"x": d_out * (square(out) * out * -0.5)}


@op(
    shape=same,
    dtype=real_inexact,
    reference=np.cbrt,
    rows="entrywise",
    cases=[case(x=nonzero(3, 4)), case(x=nonzero()), case(x=nonzero(0)), REFUSES_INTEGERS],
)
def cbrt(x: Array) -> Array:
    """Cube root, negative for negative ``x``; its derivative at zero is infinite.

    Example:
        >>> import jax.numpy as jnp
        >>> cbrt(jnp.asarray([0.0, -8.0]))
        Array([ 0., -2.], dtype=float32)
    """
    return jnp.cbrt(x)


@cbrt.gradient
def _cbrt_gradient(out: Var, d_out: Var) -> Grads:
    # d x^(1/3) = 1/3 x^(-2/3) dx = 1/3 (1 / out)^2 dx: a power of what vanishes at infinity, where
    # the derivatives of a quotient by out^2 would be an infinity by another.
    return {"x": d_out * (square(reciprocal(out)) * (1.0 / 3.0))}


@op(
    shape=same,
    dtype=real_inexact,
    reference=lambda x: 1 / np.cbrt(x),
    cases=[case(x=nonzero(3, 4)), case(x=nonzero()), case(x=nonzero(0)), REFUSES_INTEGERS],
)
def rcbrt(x: Array) -> Array:
    """``1 / cbrt(x)``; infinite at zero.

    Example:
        >>> import jax.numpy as jnp
        >>> rcbrt(jnp.asarray([8.0, -8.0]))
        Array([ 0.5, -0.5], dtype=float32)
    """
    return 1.0 / jnp.cbrt(x)


@rcbrt.gradient
def _rcbrt_gradient(out: Var, d_out: Var) -> Grads:
    # d x^(-1/3) = -1/3 x^(-4/3) dx = -1/3 out^4 dx
    return {"x": d_out * (square(square(out)) * (-1.0 / 3.0))}


# Other bases ------------------------------------------------------------------------------------


@op(
    shape=same,
    dtype=floating,
    reference=np.exp2,
    cases=[case(x=(3, 4)), case(x=()), case(x=(0, 2)), case(x=integers(3, high=4)), HAS_NO_AXIS],
)
def exp2(x: Array) -> Array:
    """``2^x``.

    Example:
        >>> import jax.numpy as jnp
        >>> exp2(jnp.asarray([0.0, 3.0]))
        Array([1., 8.], dtype=float32)
    """
    return jnp.exp2(x)


@exp2.gradient
def _exp2_gradient(x: Var, out: Var, d_out: Var) -> Grads:
    return {"x": unbroadcast(d_out * (out * math.log(2.0)), x)}


@op(
    shape=same,
    dtype=_logarithm,
    reference=np.log2,
    cases=[case(x=positive(3, 4)), case(x=positive()), case(x=positive(0, 2)), HAS_NO_AXIS],
)
def log2(x: Array) -> Array:
    """Logarithm to the base 2; minus infinity at zero, not a number below.

    Example:
        >>> import jax.numpy as jnp
        >>> log2(jnp.asarray([8.0, 0.0]))
        Array([  3., -inf], dtype=float32)
    """
    return jnp.log2(x)


@log2.gradient
def _log2_gradient(x: Var, d_out: Var) -> Grads:
    return {"x": unbroadcast(d_out / (x * math.log(2.0)), x)}


@op(
    shape=same,
    dtype=_logarithm,
    reference=np.log10,
    cases=[case(x=positive(3, 4)), case(x=positive()), case(x=positive(0, 2)), HAS_NO_AXIS],
)
def log10(x: Array) -> Array:
    """Logarithm to the base 10; minus infinity at zero, not a number below.

    Example:
        >>> import jax.numpy as jnp
        >>> log10(jnp.asarray([1.0, 0.0]))
        Array([  0., -inf], dtype=float32)
    """
    return jnp.log10(x)


@log10.gradient
def _log10_gradient(x: Var, d_out: Var) -> Grads:
    return {"x": unbroadcast(d_out / (x * math.log(10.0)), x)}
