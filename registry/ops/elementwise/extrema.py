"""Element-wise maximum and minimum of two arrays, absolute values and signs."""

from typing import Any, Literal, get_args

import jax.numpy as jnp
import numpy as np

from registry.cases import case, distinct, integers, misuse, nonzero, uniform
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import cast, unbroadcast
from registry.ops.core.comparison import equal, greater, greater_equal
from registry.ops.core.complex_parts import conj, part_dtype
from registry.ops.core.elementwise import where
from registry.ops.core.entrywise import entrywise
from registry.shapes import (
    broadcast,
    numeric,
    real,
)
from registry.table import op
from registry.types import DType, VarType, is_complex, is_inexact
from registry.var import Var

# Extrema of two arrays -------------------------------------------------------------------------

Ties = Literal["split", "first", "last"]
"""The rule for ties: half the gradient for each input, or all for the first or the last."""


def larger(x: Array, y: Array, ties: Ties) -> Array:
    """The larger of two numbers, with the derivative that ``ties`` prescribes."""
    return _either(x, y, jnp.maximum(x, y), ties, larger=True)


def smaller(x: Array, y: Array, ties: Ties) -> Array:
    """The smaller of two numbers, with the derivative that ``ties`` prescribes."""
    return _either(x, y, jnp.minimum(x, y), ties, larger=False)


def _either(x: Array, y: Array, split: Array, ties: Ties, *, larger: bool) -> Array:
    """Halves the gradient at ties for ``"split"``, or selects the input that receives all of it."""
    if ties == "split":
        return split
    first, last = (x, y) if ties == "first" else (y, x)
    return jnp.where(first >= last if larger else first <= last, first, split)


def parted(x: Var, y: Any, d_out: Var, ties: Ties, *, larger: bool) -> tuple[Any, Any]:
    """The cotangents of ``x`` and ``y`` at the selected entries, not yet summed to their shapes.

    An entry is selected if it is the larger (or the smaller); neither is next to a NaN.
    """

    def ahead(one: Var, other: Var) -> Var:
        strictly: Var = greater(one, other) if larger else greater(other, one)
        return strictly

    def not_behind(one: Var, other: Var) -> Var:
        at_least: Var = greater_equal(one, other) if larger else greater_equal(other, one)
        return at_least

    if ties == "split":
        tied = where(equal(x, y), 0.5 * d_out, 0.0)
        return where(ahead(x, y), d_out, tied), where(ahead(y, x), d_out, tied)
    of_x, of_y = (not_behind, ahead) if ties == "first" else (ahead, not_behind)
    return where(of_x(x, y), d_out, 0.0), where(of_y(y, x), d_out, 0.0)


def _extremum_gradient(x: Var, y: Var, d_out: Var, ties: Ties, *, larger: bool) -> Grads:
    shares = parted(x, y, d_out, ties, larger=larger)
    of_x, of_y = (
        unbroadcast(share, like) if is_inexact(like.dtype) else None
        for share, like in zip(shares, (x, y), strict=True)
    )
    return {"x": of_x, "y": of_y}


def _at_ties(ties: Ties) -> Any:
    """Cases with ties, compared with JAX's derivative of the kernel, not finite differences."""
    return case(x=np.array([1.0, 2.0, -3.0]), y=np.array([1.0, 5.0, -3.0]), ties=ties, order=0)


_COMPLEX = misuse("the inputs must be real, got complex", x=np.ones(2, np.complex64), y=(2,))
_APART = misuse("the inputs' shapes must broadcast together, got (3,) and (4,)", x=(3,), y=(4,))
_EXTREMA: dict[str, Any] = {
    "shape": broadcast,
    "dtype": real,
    "cases": [
        case(x=distinct(3, 4), y=uniform(3, 4, low=0.01, high=0.2)),
        case(x=distinct(3, 1), y=uniform(4, low=0.01, high=0.2)),
        case(x=distinct(2), y=uniform(low=0.01, high=0.2)),
        case(x=(0, 2), y=(2,)),
        case(x=integers(3, high=9), y=integers(3, high=9)),
        case(x=distinct(3), y=uniform(2, 1, low=0.01, high=0.2), ties="first", order=2),
        case(x=distinct(2, 1), y=uniform(3, low=0.01, high=0.2), ties="last", order=2),
        *map(_at_ties, get_args(Ties)),
        _APART,
        _COMPLEX,
        misuse("attribute 'ties' must be", x=(3,), y=(3,), ties="all"),
    ],
}


def _maximum_reference(x: np.ndarray, y: np.ndarray, *, ties: Ties) -> np.ndarray:
    del ties
    return np.asarray(np.maximum(x, y))


@op(
    **_EXTREMA,
    reference=_maximum_reference,
    aliases=["broadcast_maximum", "elementwise_max"],
)
def maximum(x: Array, y: Array, *, ties: Ties = "split") -> Array:
    """Element-wise maximum of two arrays; NaN if either entry is NaN.

    Where both entries are equal, ``ties`` determines which receives the gradient: each half of it
    with ``"split"``, as in JAX and PyTorch; ``x`` alone with ``"first"``, as in MXNet and
    TensorFlow; ``y`` alone with ``"last"``, as in Paddle. Neither receives one if either entry is
    NaN.

    Example:
        >>> import jax.numpy as jnp
        >>> maximum(jnp.asarray([1.0, -2.0]), 0.0)
        Array([1., 0.], dtype=float32)
    """
    return larger(x, y, ties)


@maximum.gradient
def _maximum_gradient(x: Var, y: Var, d_out: Var, *, ties: Ties) -> Grads:
    return _extremum_gradient(x, y, d_out, ties, larger=True)


def _minimum_reference(x: np.ndarray, y: np.ndarray, *, ties: Ties) -> np.ndarray:
    del ties
    return np.asarray(np.minimum(x, y))


@op(
    **_EXTREMA,
    reference=_minimum_reference,
    aliases=["broadcast_minimum", "elementwise_min"],
)
def minimum(x: Array, y: Array, *, ties: Ties = "split") -> Array:
    """Element-wise minimum of two arrays; NaN if either entry is NaN.

    Where both entries are equal, ``ties`` determines which receives the gradient: each half of it
    with ``"split"``, as in JAX and PyTorch; ``x`` alone with ``"first"``, as in MXNet and
    TensorFlow; ``y`` alone with ``"last"``, as in Paddle. Neither receives one if either entry is
    NaN.

    Example:
        >>> import jax.numpy as jnp
        >>> minimum(jnp.asarray([1.0, -2.0]), 0.0)
        Array([ 0., -2.], dtype=float32)
    """
    return smaller(x, y, ties)


@minimum.gradient
def _minimum_gradient(x: Var, y: Var, d_out: Var, *, ties: Ties) -> Grads:
    return _extremum_gradient(x, y, d_out, ties, larger=False)


# Absolute value and sign -----------------------------------------------------------------------


def _abs_dtype(x: VarType) -> tuple[DType, bool]:
    dtype, weak = numeric(x)
    return part_dtype(x) if is_complex(dtype) else (dtype, weak)


@entrywise(
    np.abs,
    samples=nonzero,
    dtype=_abs_dtype,
    infix="abs",
    aliases=["absolute"],
    rows="entrywise",
    cases=[case(x=integers(3, low=-4, high=4))],
)
def abs(x: Array) -> Array:
    """Absolute value, element-wise.

    The derivative at zero is one for real numbers, as in JAX, and zero for complex numbers.

    Example:
        >>> import jax.numpy as jnp
        >>> abs(jnp.asarray([1.0, -2.0]))
        Array([1., 2.], dtype=float32)
    """
    return jnp.abs(x)


@abs.gradient
def _abs_gradient(x: Var, out: Var, d_out: Var) -> Grads:
    if is_complex(x.dtype):
        # |z|^2 = z conj(z), so d|z| = Re(conj(z) dz) / |z|; out is divided by only where it counts.
        size = where(equal(out, 0), 1.0, out)
        return {"x": conj(x) * cast(d_out / size, dtype=x.dtype)}
    return {"x": d_out * where(greater_equal(x, 0), 1.0, -1.0)}


def _sign_reference(x: np.ndarray) -> np.ndarray:
    size = np.abs(x)
    return np.asarray(np.where(size == 0, 0, x / np.where(size == 0, 1, size)).astype(x.dtype))


@entrywise(
    _sign_reference,
    samples=nonzero,
    dtype=numeric,
    aliases=["sgn"],
    rows="entrywise",
    cases=[
        case(x=integers(3, low=-4, high=4)),
        case(x=np.array([3 - 4j, -2j, 1]), order=2),
        case(x=np.array([0j, 1 + 1j]), order=0),
    ],
)
def sign(x: Array) -> Array:
    """Sign of each entry: -1, 0 or 1 for real numbers, ``x / |x|`` or 0 for complex numbers.

    The derivative is zero for real numbers. For complex numbers it is
    ``i Im(dx conj(x)) x / |x|^3``, a rotation, and zero at 0.

    Source: Python array API standard 2024.12, ``sign``.

    Example:
        >>> import jax.numpy as jnp
        >>> sign(jnp.asarray([1.5, -2.0, 0.0]))
        Array([ 1., -1.,  0.], dtype=float32)
        >>> sign(jnp.asarray([2j]))
        Array([0.+1.j], dtype=complex64)
    """
    array = jnp.asarray(x)
    if not jnp.iscomplexobj(array):
        return jnp.sign(array)
    # JAX defines no derivative of the complex sign.
    turning = jnp.where(array == 0, 1, array)
    return jnp.where(array == 0, 0, turning / jnp.abs(turning))


@sign.gradient
def _sign_gradient(x: Var, out: Var, d_out: Var) -> Grads:
    # dz / |z| - z Re(conj(z) dz) / |z|^3 = (dz - s^2 conj(dz)) / (2 |z|) with s = z / |z|, and
    # Re(u s^2 conj(dz)) = Re(conj(u s^2) dz).
    if not is_complex(x.dtype):
        return {"x": None}
    size = abs(x)
    across = d_out - conj(d_out * out * out)
    halved = across * cast(0.5 / where(equal(size, 0), 1.0, size), dtype=x.dtype)
    return {"x": where(equal(x, 0), 0.0, halved)}
