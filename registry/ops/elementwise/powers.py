"""Element-wise powers, square roots and reciprocals, with NumPy's broadcasting."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, misuse, nonzero, positive
from registry.errors import DTypeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import unbroadcast
from registry.ops.core.comparison import equal, logical_and
from registry.ops.core.elementwise import log, where
from registry.ops.core.entrywise import entrywise
from registry.shapes import (
    inexact,
    numeric,
    promote,
)
from registry.types import DType, VarType, is_exact, is_inexact, is_integer
from registry.values import known
from registry.var import Var, filled


@entrywise(np.square, dtype=numeric, rows="entrywise", d_x=lambda x, d_out: d_out * (2.0 * x))
def square(x: Array) -> Array:
    """Square, element-wise: ``out = x * x``.

    Example:
        >>> import jax.numpy as jnp
        >>> square(jnp.asarray([2.0, -3.0]))
        Array([4., 9.], dtype=float32)
    """
    return jnp.square(x)


@entrywise(lambda x: 1 / x, samples=nonzero, d_x=lambda out, d_out: -(d_out * square(out)))
def reciprocal(x: Array) -> Array:
    """Reciprocal, element-wise: ``out = 1 / x``.

    Example:
        >>> import jax.numpy as jnp
        >>> reciprocal(jnp.asarray([2.0, 4.0]))
        Array([0.5 , 0.25], dtype=float32)
    """
    return jnp.reciprocal(x)


# Powers ----------------------------------------------------------------------------------------


@entrywise(np.sqrt, samples=positive, rows="entrywise", d_x=lambda out, d_out: d_out * (0.5 / out))
def sqrt(x: Array) -> Array:
    """Square root, element-wise; NaN for negative numbers. The derivative at zero is infinite.

    Example:
        >>> import jax.numpy as jnp
        >>> sqrt(jnp.asarray([4.0, 9.0]))
        Array([2., 3.], dtype=float32)
    """
    return jnp.sqrt(x)


def _power_dtype(x: VarType, y: VarType) -> tuple[DType, bool]:
    dtype, weak = promote(x, y)
    if not is_inexact(dtype):
        return (np.dtype(np.int32) if dtype == np.bool_ else dtype), False
    # JAX promotes the base with the exponent before it raises it to an integer array.
    return dtype, weak and (y.weak or not is_integer(y.dtype))


@entrywise(
    np.power,
    samples={"x": positive, "y": None},
    dtype=_power_dtype,
    rtol=256,
    infix="**",
    aliases=["broadcast_power", "elementwise_pow", "pow", "integer_pow"],
    cases=[
        case(x=(3,), y=3),
        case(x=nonzero(3), y=-2),
        case(x=positive(3), y=0.5),
        case(x=(2, 3), y=integers(3, low=0, high=4)),
        misuse("raised to a power of at least 0, got -2", x=integers(3, high=5), y=-2),
    ],
)
def power(x: Array, y: Array) -> Array:
    """Power, element-wise: ``out = x ** y``; NaN for a negative ``x`` and a non-integer ``y``.

    ``x ** 0`` is one for every ``x``. At ``x = 0`` the derivative with respect to ``x`` is zero
    where ``y = 0``, and that with respect to ``y`` is taken as zero for ``y >= 0`` and is NaN for a
    negative ``y``. At a negative ``x`` the derivative with respect to ``y`` is NaN even where ``y``
    is an integer, because the power is undefined for neighboring exponents.

    Raises:
        DTypeError: an integer is raised to a negative integer, where that is known.

    Example:
        >>> import jax.numpy as jnp
        >>> power(jnp.asarray([2.0, 3.0]), 2)
        Array([4., 9.], dtype=float32)
    """
    return jnp.power(x, y)


@power.check
def _require_whole_power(x: Var, y: Var) -> None:
    least = _least_integer(y)
    if least < 0 and is_exact(_dtype_of(x)):
        raise DTypeError(f"an integer must be raised to a power of at least 0, got {least}")


def _least_integer(y: Any) -> int:
    """The smallest of the integers; 0 if it is unknown or they are not integers."""
    if isinstance(y, (int, float)):  # most calls
        return y if isinstance(y, int) else 0
    exponents = known(y) if is_exact(_dtype_of(y)) else None
    return 0 if exponents is None or not exponents.size else int(exponents.min())


def _dtype_of(value: Any) -> DType:
    dtype: DType = value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype
    return dtype


@power.gradient
def _power_gradient(x: Var, y: Var, out: Var, d_out: Var) -> Grads:
    # d/dx = y x^(y-1), where 0 * 0^(-1) must be 0: the base is replaced where both are zero, so
    # that every other point keeps its derivatives of all orders.
    # d/dy = x^y log(x), where 0 * log(0) must be 0.
    at_zero = equal(x, 0)
    base = where(logical_and(at_zero, equal(y, 0)), 1, x)
    return {
        "x": unbroadcast(d_out * (y * power(base, y - 1)), x) if is_inexact(x.dtype) else None,
        "y": _power_by_exponent(x, y, out, d_out),
    }


def _power_by_exponent(x: Var, y: Var, out: Var, d_out: Var) -> Var | None:
    if not is_inexact(y.dtype):
        return None
    safe = where(equal(x, 0), 1, x)
    return unbroadcast(d_out * (log(safe) * out), y)


@power.simplify
def _power_simplify(x: Var, y: Var) -> Var | None:
    if y.constant == 1:
        return x
    return filled(x, 1.0) if y.constant == 0 and is_inexact(x.dtype) else None


@entrywise(
    lambda x, *, exponent: np.power(x, np.asarray(exponent, x.dtype)),
    samples={"x": nonzero, "exponent": 5},
    dtype=inexact,
    cases=[
        case(x=(2, 3), exponent=3),
        case(x=np.array([-1.0, 0.0, 2.0], np.float32), exponent=2, order=2),
        case(x=nonzero(3), exponent=-2),
        case(x=(3,), exponent=1),
        case(x=(3,), exponent=0),
    ],
)
def integer_power(x: Array, *, exponent: int) -> Array:
    """Power with a fixed integer exponent, element-wise, by repeated multiplication.

    It is faster than ``power``, and exact where the products are. ``x ** 0`` is one for every
    ``x``.

    Example:
        >>> import jax.numpy as jnp
        >>> integer_power(jnp.asarray([2.0, -3.0]), exponent=3)
        Array([  8., -27.], dtype=float32)
    """
    return lax.integer_pow(x, exponent)


@integer_power.gradient
def _integer_power_gradient(x: Var, d_out: Var, *, exponent: int) -> Grads:
    if exponent == 0:
        return {"x": filled(d_out, 0.0)}
    return {"x": d_out * (exponent * integer_power(x, exponent=exponent - 1))}


@integer_power.simplify
def _integer_power_simplify(x: Var, *, exponent: int) -> Var | None:
    if exponent == 1:
        return x
    return filled(x, 1.0) if exponent == 0 else None
