"""The larger and the smaller of two arrays, absolute values and signs, entry by entry."""

import jax.numpy as jnp
import numpy as np

from registry.cases import case, distinct, integers, misuse, nonzero, uniform
from registry.operator import Grads
from registry.ops.broadcasting import cast, unbroadcast
from registry.ops.comparison import equal, greater, greater_equal
from registry.ops.complex_parts import conj, part_dtype
from registry.ops.elementwise import where
from registry.shapes import (
    broadcast,
    numeric,
    real,
    same,
)
from registry.signature import Array
from registry.table import op
from registry.types import DType, VarType, is_inexact
from registry.var import Var


@op(
    shape=broadcast,
    dtype=real,
    reference=np.maximum,
    aliases=["broadcast_maximum", "elementwise_max"],
    commutative=True,
    cases=[
        case(x=distinct(3, 4), y=uniform(3, 4, low=0.01, high=0.2)),
        case(x=distinct(3, 1), y=uniform(4, low=0.01, high=0.2)),
        case(x=distinct(2), y=uniform(low=0.01, high=0.2)),
        case(x=(0, 2), y=(2,)),
        case(x=integers(3, high=9), y=integers(3, high=9)),
        misuse("the inputs' shapes must broadcast together, got (3,) and (4,)", x=(3,), y=(4,)),
        misuse("the inputs must be real, got complex", x=np.ones(2, np.complex64), y=(2,)),
    ],
)
def maximum(x: Array, y: Array) -> Array:
    """The larger of two numbers; not a number if either is none. A tie halves its gradient.

    Example:
        >>> import jax.numpy as jnp
        >>> maximum(jnp.asarray([1.0, -2.0]), 0.0)
        Array([1., 0.], dtype=float32)
    """
    return jnp.maximum(x, y)


@maximum.gradient
def _maximum_gradient(x: Var, y: Var, d_out: Var) -> Grads:
    return {"x": _winner(x, y, x, d_out), "y": _winner(y, x, y, d_out)}


def _winner(larger: Var, smaller: Var, like: Var, d_out: Var) -> Var | None:
    """The cotangent for ``like`` where ``larger`` exceeds ``smaller``, half of it at ties."""
    if not is_inexact(like.dtype):
        return None
    tied = where(equal(larger, smaller), 0.5 * d_out, 0.0)
    return unbroadcast(where(greater(larger, smaller), d_out, tied), like)


@op(
    shape=broadcast,
    dtype=real,
    reference=np.minimum,
    aliases=["broadcast_minimum", "elementwise_min"],
    commutative=True,
    cases=[
        case(x=distinct(3, 4), y=uniform(3, 4, low=0.01, high=0.2)),
        case(x=distinct(3, 1), y=uniform(4, low=0.01, high=0.2)),
        case(x=(0, 2), y=(2,)),
        misuse("the inputs' shapes must broadcast together, got (3,) and (4,)", x=(3,), y=(4,)),
    ],
)
def minimum(x: Array, y: Array) -> Array:
    """The smaller of two numbers; not a number if either is none. A tie halves its gradient.

    Example:
        >>> import jax.numpy as jnp
        >>> minimum(jnp.asarray([1.0, -2.0]), 0.0)
        Array([ 0., -2.], dtype=float32)
    """
    return jnp.minimum(x, y)


@minimum.gradient
def _minimum_gradient(x: Var, y: Var, d_out: Var) -> Grads:
    return {"x": _winner(y, x, x, d_out), "y": _winner(x, y, y, d_out)}


def _abs_dtype(x: VarType) -> tuple[DType, bool]:
    dtype, weak = numeric(x)
    return part_dtype(x) if dtype.kind == "c" else (dtype, weak)


@op(
    shape=same,
    dtype=_abs_dtype,
    reference=np.abs,
    infix="abs",
    aliases=["absolute"],
    cases=[
        case(x=nonzero(3, 4)),
        case(x=nonzero()),
        case(x=(0,)),
        case(x=integers(3, low=-4, high=4)),
        misuse("the inputs must be numbers, got bool", x=np.zeros(3, bool)),
    ],
)
def abs(x: Array) -> Array:
    """Absolute value; its derivative at zero is one as in JAX, and zero for complex numbers.

    Example:
        >>> import jax.numpy as jnp
        >>> abs(jnp.asarray([1.0, -2.0]))
        Array([1., 2.], dtype=float32)
    """
    return jnp.abs(x)


@abs.gradient
def _abs_gradient(x: Var, out: Var, d_out: Var) -> Grads:
    if x.dtype.kind == "c":
        # |z|^2 = z conj(z), so d|z| = Re(conj(z) dz) / |z|; out is divided by only where it counts.
        size = where(equal(out, 0), 1.0, out)
        return {"x": conj(x) * cast(d_out / size, dtype=x.dtype)}
    return {"x": where(greater_equal(x, 0), d_out, -d_out)}


def _sign_dtype(x: VarType) -> tuple[DType, bool]:
    numeric(x)
    return real(x)


@op(
    shape=same,
    dtype=_sign_dtype,
    reference=np.sign,
    aliases=["sgn"],
    cases=[
        case(x=nonzero(3, 4)),
        case(x=nonzero()),
        case(x=(0,)),
        case(x=integers(3, low=-4, high=4)),
        misuse("the inputs must be numbers, got bool", x=np.zeros(3, bool)),
    ],
)
def sign(x: Array) -> Array:
    """-1, 0 or 1: the sign of each entry.

    Example:
        >>> import jax.numpy as jnp
        >>> sign(jnp.asarray([1.5, -2.0, 0.0]))
        Array([ 1., -1.,  0.], dtype=float32)
    """
    return jnp.sign(x)


sign.zero_gradient("it is piecewise constant")
