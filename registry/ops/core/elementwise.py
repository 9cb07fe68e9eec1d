"""Element-wise elementary functions and activations, and selection between two arrays."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import booleans, case, integers, misuse, nonzero, positive, uniform
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import unbroadcast
from registry.ops.core.entrywise import entrywise
from registry.shapes import (
    broadcast,
    canonical,
    inexact,
    numeric,
    promote,
    real,
    same,
)
from registry.table import op
from registry.types import DType, Shape, VarType, is_inexact
from registry.var import Var, filled

# Exponentials and logarithms -------------------------------------------------------------------


@entrywise(np.exp, d_x=lambda out, d_out: d_out * out)
def exp(x: Array) -> Array:
    """Exponential of ``x``, element-wise.

    Example:
        >>> import jax.numpy as jnp
        >>> exp(jnp.asarray([0.0, -jnp.inf]))
        Array([1., 0.], dtype=float32)
    """
    return jnp.exp(x)


@entrywise(
    np.expm1,
    rows="entrywise",
    # Not out + 1, which loses digits where out is near -1.
    d_x=lambda x, d_out: d_out * exp(x),
)
def expm1(x: Array) -> Array:
    """Element-wise ``exp(x) - 1``, accurate near zero.

    Example:
        >>> import jax.numpy as jnp
        >>> expm1(jnp.asarray([0.0, 1e-10]))
        Array([0.e+00, 1.e-10], dtype=float32)
    """
    return jnp.expm1(x)


@entrywise(np.log, samples=positive, d_x=lambda x, d_out: d_out / x)
def log(x: Array) -> Array:
    """Natural logarithm, element-wise; minus infinity at zero, NaN for negative numbers.

    Example:
        >>> import jax.numpy as jnp
        >>> log(jnp.asarray([1.0, 0.0]))
        Array([  0., -inf], dtype=float32)
    """
    return jnp.log(x)


@entrywise(
    np.log1p,
    samples=positive,
    rows="entrywise",
    cases=[case(x=uniform(3, low=-0.5, high=0.5))],
    d_x=lambda x, d_out: d_out / (x + 1.0),
)
def log1p(x: Array) -> Array:
    """Element-wise ``log(1 + x)``, accurate near zero.

    Example:
        >>> import jax.numpy as jnp
        >>> log1p(jnp.asarray([0.0, 1e-10]))
        Array([0.e+00, 1.e-10], dtype=float32)
    """
    return jnp.log1p(x)


# Trigonometric and hyperbolic functions --------------------------------------------------------


@entrywise(np.sin, rows="entrywise")
def sin(x: Array) -> Array:
    """Sine of an angle in radians, element-wise.

    Example:
        >>> import jax.numpy as jnp
        >>> sin(jnp.asarray([0.0, jnp.pi / 2]))
        Array([0., 1.], dtype=float32)
    """
    return jnp.sin(x)


@sin.gradient
def _sin_gradient(x: Var, d_out: Var) -> Grads:
    return {"x": d_out * cos(x)}


@entrywise(np.cos, d_x=lambda x, d_out: -(d_out * sin(x)))
def cos(x: Array) -> Array:
    """Cosine of an angle in radians, element-wise.

    Example:
        >>> import jax.numpy as jnp
        >>> cos(jnp.asarray([0.0, jnp.pi]))
        Array([ 1., -1.], dtype=float32)
    """
    return jnp.cos(x)


@entrywise(np.tanh, rows="entrywise", d_x=lambda out, d_out: d_out * (1.0 - out * out))
def tanh(x: Array) -> Array:
    """Hyperbolic tangent, element-wise.

    The derivative is ``1 - out^2``, which rounds to zero where ``out`` rounds to -1 or 1.

    Example:
        >>> import jax.numpy as jnp
        >>> tanh(jnp.asarray([0.0, jnp.inf]))
        Array([0., 1.], dtype=float32)
    """
    return jnp.tanh(x)


# Activations -----------------------------------------------------------------------------------


def _sigmoid_reference(x: np.ndarray) -> np.ndarray:
    wide = x.astype(np.result_type(x, np.float64))
    return np.asarray(1 / (1 + np.exp(-wide)), x.dtype)


@entrywise(
    _sigmoid_reference,
    dtype=inexact,
    aliases=["logistic", "expit"],
    cases=[case(x=uniform(3, low=-90, high=-80), order=1, rtol=256)],
    d_x=lambda out, d_out: d_out * (out * (1.0 - out)),
)
def sigmoid(x: Array) -> Array:
    """Logistic sigmoid, element-wise: ``1 / (1 + exp(-x))``, computed without overflow.

    The derivative is ``out (1 - out)``, which rounds to zero where ``out`` rounds to one.

    Example:
        >>> import jax.numpy as jnp
        >>> sigmoid(jnp.asarray([0.0, -1000.0]))
        Array([0.5, 0. ], dtype=float32)
    """
    return lax.logistic(x)


def _relu_dtype(x: VarType) -> tuple[DType, bool]:
    numeric(x)
    return real(x)


@entrywise(
    lambda x: np.maximum(x, 0),
    samples=nonzero,
    dtype=_relu_dtype,
    rows="entrywise",
    cases=[case(x=integers(4, low=-3, high=4))],
)
def relu(x: Array) -> Array:
    """Rectified linear unit, element-wise: ``max(x, 0)``. Its derivative at zero is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> relu(jnp.asarray([-1.0, 2.0]))
        Array([0., 2.], dtype=float32)
    """
    return jax.nn.relu(x)


@relu.gradient
def _relu_gradient(out: Var, d_out: Var) -> Grads:
    # out > 0 exactly where x > 0, and the next operator usually keeps out anyway.
    return {"x": where(out > 0, d_out, 0.0)}


# Selection -------------------------------------------------------------------------------------


def _where_shape(condition: Shape, x: Shape, y: Shape) -> Shape:
    return broadcast(condition, x, y)


def _where_dtype(x: VarType, y: VarType) -> tuple[DType, bool]:
    return promote(x, y)


@op(
    shape=_where_shape,
    dtype=_where_dtype,
    reference=np.where,
    cases=[
        case(condition=booleans(3, 4), x=(3, 4), y=(3, 4)),
        case(condition=booleans(3, 1), x=(4,), y=()),
        case(condition=booleans(4), x=(), y=(2, 1)),
        case(condition=booleans(0), x=(), y=()),
        case(condition=integers(5, high=2), x=(5,), y=integers(5, high=9)),
        misuse("must broadcast together", condition=booleans(3), x=(4,), y=(4,)),
    ],
)
def where(condition: Array, x: Array, y: Array) -> Array:
    """Selects ``x`` where ``condition`` is true (or a nonzero number) and ``y`` elsewhere.

    The branch that is not selected receives a zero gradient. If that branch computes an infinity or
    a NaN on the way, its own derivative turns this zero into a NaN: apply ``where`` to its input,
    too.

    Example:
        >>> import jax.numpy as jnp
        >>> where(jnp.asarray([True, False]), jnp.asarray([1.0, 2.0]), 0.0)
        Array([1., 0.], dtype=float32)
    """
    return jnp.where(condition, x, y)


@where.gradient
def _where_gradient(condition: Var, x: Var, y: Var, d_out: Var) -> Grads:
    return {
        "condition": None,
        "x": unbroadcast(where(condition, d_out, 0.0), x),
        "y": unbroadcast(where(condition, 0.0, d_out), y),
    }


@where.simplify
def _where_simplify(condition: Var, x: Var, y: Var) -> Var | None:
    if condition.constant is None:
        return None
    return x if condition.constant else y


# Constants and barriers ------------------------------------------------------------------------


def _like_dtype(x: VarType, *, dtype: DType | None) -> tuple[DType, bool]:
    return promote(x) if dtype is None else (canonical(dtype), False)


def _alike(x: Var, dtype: DType | None) -> bool:
    """Whether ``dtype`` is the dtype of ``x`` and is floating or complex."""
    return is_inexact(x.dtype) and (dtype is None or canonical(dtype) == x.dtype)


_LIKE_CASES = [
    case(x=(3, 4)),
    case(x=()),
    case(x=(0,)),
    case(x=integers(3, high=4)),
    case(x=(2, 3), dtype="int32"),
    case(x=integers(3, high=4), dtype="float32"),
    misuse("attribute 'dtype' must be", x=(2,), dtype="real"),
]


@entrywise(
    lambda x: x,
    dtype=promote,
    aliases=["block_grad", "BlockGrad", "detach"],
    rows="linear",
    zero_gradient="it stops gradients on purpose",
)
def stop_gradient(x: Array) -> Array:
    """Returns ``x`` and stops its gradient: nothing flows back through it.

    Example:
        >>> import jax.numpy as jnp
        >>> stop_gradient(jnp.asarray([1.0, 2.0]))
        Array([1., 2.], dtype=float32)
    """
    return lax.stop_gradient(x)


@entrywise(
    lambda x, *, number: x,
    samples={"x": None, "number": 1},
    dtype=promote,
    cases=[
        case(x=()),
        case(x=(0,), number=2),
        misuse("attribute 'number' must be", x=(2,), number="first"),
    ],
    d_x=lambda d_out: d_out,
)
def alias(x: Array, *, number: int = 0) -> Array:
    """Returns ``x`` as a separate value: equal calls are one node unless ``number`` differs.

    Recorded eager code identifies arrays by their nodes; a separate node keeps the gradient with
    respect to one of two equal values from being the gradient with respect to both.

    Example:
        >>> import jax.numpy as jnp
        >>> alias(jnp.asarray([1.0, 2.0]), number=1)
        Array([1., 2.], dtype=float32)
    """
    return jnp.asarray(x)


@op(
    shape=same,
    dtype=_like_dtype,
    reference=lambda x, *, dtype: np.zeros_like(x, dtype),
    aliases=["fill_zeros_like"],
    cases=_LIKE_CASES,
)
def zeros_like(x: Array, *, dtype: np.dtype | None = None) -> Array:
    """An array of zeros with the shape of ``x`` and, without ``dtype``, its dtype.

    Example:
        >>> import jax.numpy as jnp
        >>> zeros_like(jnp.asarray([1.0, 2.0]))
        Array([0., 0.], dtype=float32)
    """
    return jnp.zeros_like(x, dtype=dtype and canonical(dtype))


@op(
    shape=same,
    dtype=_like_dtype,
    reference=lambda x, *, dtype: np.ones_like(x, dtype),
    cases=_LIKE_CASES,
)
def ones_like(x: Array, *, dtype: np.dtype | None = None) -> Array:
    """An array of ones with the shape of ``x`` and, without ``dtype``, its dtype.

    Example:
        >>> import jax.numpy as jnp
        >>> ones_like(jnp.asarray([1.0, 2.0]))
        Array([1., 1.], dtype=float32)
    """
    return jnp.ones_like(x, dtype=dtype and canonical(dtype))


zeros_like.zero_gradient("it is constant")
ones_like.zero_gradient("it is constant")


@zeros_like.simplify
def _zeros_like_simplify(x: Var, *, dtype: DType | None) -> Var | None:
    return filled(x, 0.0) if _alike(x, dtype) else None


@ones_like.simplify
def _ones_like_simplify(x: Var, *, dtype: DType | None) -> Var | None:
    return filled(x, 1.0) if _alike(x, dtype) else None
