"""Elementary functions and activations, entry by entry, and the choice between two arrays."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import booleans, case, integers, misuse, nonzero, positive, uniform
from registry.operator import Grads
from registry.ops.broadcasting import unbroadcast
from registry.shapes import (
    HAS_NO_AXIS,
    broadcast,
    canonical,
    floating,
    inexact,
    numeric,
    promote,
    real,
    same,
)
from registry.signature import Array
from registry.table import op
from registry.types import DType, Shape, VarType, is_inexact
from registry.var import Var, filled

# Exponentials and logarithms -------------------------------------------------------------------


@op(
    shape=same,
    dtype=floating,
    reference=np.exp,
    cases=[case(x=(3, 4)), case(x=()), case(x=(0, 2)), case(x=integers(3, high=4)), HAS_NO_AXIS],
)
def exp(x: Array) -> Array:
    """Exponential function.

    Example:
        >>> import jax.numpy as jnp
        >>> exp(jnp.asarray([0.0, -jnp.inf]))
        Array([1., 0.], dtype=float32)
    """
    return jnp.exp(x)


@exp.gradient
def _exp_gradient(x: Var, out: Var, d_out: Var) -> Grads:
    return {"x": unbroadcast(d_out * out, x)}


@op(
    shape=same,
    dtype=floating,
    reference=np.expm1,
    rows="entrywise",
    cases=[case(x=(3, 4)), case(x=()), case(x=(0, 2)), HAS_NO_AXIS],
)
def expm1(x: Array) -> Array:
    """``exp(x) - 1``, accurate near zero.

    Example:
        >>> import jax.numpy as jnp
        >>> expm1(jnp.asarray([0.0, 1e-10]))
        Array([0.e+00, 1.e-10], dtype=float32)
    """
    return jnp.expm1(x)


@expm1.gradient
def _expm1_gradient(x: Var, d_out: Var) -> Grads:
    # Not out + 1, which loses its digits where out is near -1.
    return {"x": unbroadcast(d_out * exp(x), x)}


@op(
    shape=same,
    dtype=floating,
    reference=np.log,
    cases=[case(x=positive(3, 4)), case(x=positive()), case(x=positive(0, 2)), HAS_NO_AXIS],
)
def log(x: Array) -> Array:
    """Natural logarithm; minus infinity at zero, not a number below.

    Example:
        >>> import jax.numpy as jnp
        >>> log(jnp.asarray([1.0, 0.0]))
        Array([  0., -inf], dtype=float32)
    """
    return jnp.log(x)


@log.gradient
def _log_gradient(x: Var, d_out: Var) -> Grads:
    return {"x": unbroadcast(d_out / x, x)}


@op(
    shape=same,
    dtype=floating,
    reference=np.log1p,
    rows="entrywise",
    cases=[
        case(x=positive(3, 4)),
        case(x=uniform(3, low=-0.5, high=0.5)),
        case(x=positive(0)),
        case(x=positive()),
        HAS_NO_AXIS,
    ],
)
def log1p(x: Array) -> Array:
    """``log(1 + x)``, accurate near zero.

    Example:
        >>> import jax.numpy as jnp
        >>> log1p(jnp.asarray([0.0, 1e-10]))
        Array([0.e+00, 1.e-10], dtype=float32)
    """
    return jnp.log1p(x)


@log1p.gradient
def _log1p_gradient(x: Var, d_out: Var) -> Grads:
    return {"x": unbroadcast(d_out / (x + 1.0), x)}


# Trigonometric and hyperbolic functions --------------------------------------------------------


@op(
    shape=same,
    dtype=floating,
    reference=np.sin,
    rows="entrywise",
    cases=[case(x=(3, 4)), case(x=()), case(x=(0, 2)), case(x=integers(3, high=4)), HAS_NO_AXIS],
)
def sin(x: Array) -> Array:
    """Sine of an angle in radians.

    Example:
        >>> import jax.numpy as jnp
        >>> sin(jnp.asarray([0.0, jnp.pi / 2]))
        Array([0., 1.], dtype=float32)
    """
    return jnp.sin(x)


@sin.gradient
def _sin_gradient(x: Var, d_out: Var) -> Grads:
    return {"x": unbroadcast(d_out * cos(x), x)}


@op(
    shape=same,
    dtype=floating,
    reference=np.cos,
    cases=[case(x=(3, 4)), case(x=()), case(x=(0, 2)), case(x=integers(3, high=4)), HAS_NO_AXIS],
)
def cos(x: Array) -> Array:
    """Cosine of an angle in radians.

    Example:
        >>> import jax.numpy as jnp
        >>> cos(jnp.asarray([0.0, jnp.pi]))
        Array([ 1., -1.], dtype=float32)
    """
    return jnp.cos(x)


@cos.gradient
def _cos_gradient(x: Var, d_out: Var) -> Grads:
    return {"x": unbroadcast(-(d_out * sin(x)), x)}


@op(
    shape=same,
    dtype=floating,
    reference=np.tanh,
    rows="entrywise",
    cases=[case(x=(3, 4)), case(x=()), case(x=(0, 2)), case(x=integers(3, high=4)), HAS_NO_AXIS],
)
def tanh(x: Array) -> Array:
    """Hyperbolic tangent.

    The derivative is ``1 - out^2``, which is rounded to zero where ``out`` is to one.

    Example:
        >>> import jax.numpy as jnp
        >>> tanh(jnp.asarray([0.0, jnp.inf]))
        Array([0., 1.], dtype=float32)
    """
    return jnp.tanh(x)


@tanh.gradient
def _tanh_gradient(x: Var, out: Var, d_out: Var) -> Grads:
    return {"x": unbroadcast(d_out * (1.0 - out * out), x)}


# Activations -----------------------------------------------------------------------------------


def _sigmoid_reference(x: np.ndarray) -> np.ndarray:
    wide = x.astype(np.result_type(x, np.float64))
    return np.asarray(1 / (1 + np.exp(-wide)), x.dtype)


@op(
    shape=same,
    dtype=inexact,
    reference=_sigmoid_reference,
    aliases=["logistic", "expit"],
    cases=[
        case(x=(3, 4)),
        case(x=()),
        case(x=(0, 2)),
        case(x=uniform(3, low=-90, high=-80), order=1, rtol=256),
        misuse("the inputs must be floating, got int32", x=integers(3, high=4)),
    ],
)
def sigmoid(x: Array) -> Array:
    """Logistic function ``1 / (1 + exp(-x))``, which does not overflow.

    The derivative is ``out (1 - out)``, which is rounded to zero where ``out`` is to one.

    Example:
        >>> import jax.numpy as jnp
        >>> sigmoid(jnp.asarray([0.0, -1000.0]))
        Array([0.5, 0. ], dtype=float32)
    """
    return lax.logistic(x)


@sigmoid.gradient
def _sigmoid_gradient(out: Var, d_out: Var) -> Grads:
    return {"x": d_out * (out * (1.0 - out))}


def _relu_dtype(x: VarType) -> tuple[DType, bool]:
    numeric(x)
    return real(x)


@op(
    shape=same,
    dtype=_relu_dtype,
    reference=lambda x: np.maximum(x, 0),
    rows="entrywise",
    cases=[
        case(x=nonzero(3, 4)),
        case(x=nonzero()),
        case(x=(0, 2)),
        case(x=integers(4, low=-3, high=4)),
        misuse("the inputs must be numbers, got bool", x=np.zeros(3, bool)),
    ],
)
def relu(x: Array) -> Array:
    """Rectified linear unit ``max(x, 0)``; its derivative at zero is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> relu(jnp.asarray([-1.0, 2.0]))
        Array([0., 2.], dtype=float32)
    """
    return jax.nn.relu(x)


@relu.gradient
def _relu_gradient(out: Var, d_out: Var) -> Grads:
    # out > 0 just where x > 0, and out is what the next operator keeps anyway.
    return {"x": where(out > 0, d_out, 0.0)}


# Choice ----------------------------------------------------------------------------------------


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
    """``x`` where ``condition`` is true (a number: is not zero), ``y`` elsewhere.

    The branch that is not chosen gets the gradient zero. If that branch computes an infinity or a
    NaN on the way, its own derivative turns the zero into a NaN: choose its input, too.

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
    """Whether ``dtype`` is that of ``x``, and floating or complex."""
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


@op(
    shape=same,
    dtype=promote,
    reference=lambda x: x,
    aliases=["block_grad", "BlockGrad", "detach"],
    rows="linear",
    cases=[case(x=(3, 4)), case(x=()), case(x=(0,)), case(x=integers(3, high=4)), HAS_NO_AXIS],
)
def stop_gradient(x: Array) -> Array:
    """``x`` itself, through which no gradient passes.

    Example:
        >>> import jax.numpy as jnp
        >>> stop_gradient(jnp.asarray([1.0, 2.0]))
        Array([1., 2.], dtype=float32)
    """
    return lax.stop_gradient(x)


stop_gradient.zero_gradient("it stops gradients on purpose")


@op(
    shape=same,
    dtype=promote,
    reference=lambda x, *, number: x,
    cases=[
        case(x=(3, 4), number=1),
        case(x=()),
        case(x=(0,), number=2),
        case(x=integers(3, high=4)),
        misuse("attribute 'number' must be", x=(2,), number="first"),
    ],
)
def alias(x: Array, *, number: int = 0) -> Array:
    """``x`` itself, as a value of its own: equal calls are one node, unless the number differs.

    Eager code that is recorded knows arrays by their nodes, so that a gradient by one of two equal
    values is not one by both.

    Example:
        >>> import jax.numpy as jnp
        >>> alias(jnp.asarray([1.0, 2.0]), number=1)
        Array([1., 2.], dtype=float32)
    """
    return jnp.asarray(x)


@alias.gradient
def _alias_gradient(d_out: Var) -> Grads:
    return {"x": d_out}


@op(
    shape=same,
    dtype=_like_dtype,
    reference=lambda x, *, dtype: np.zeros_like(x, dtype),
    aliases=["fill_zeros_like"],
    cases=_LIKE_CASES,
)
def zeros_like(x: Array, *, dtype: np.dtype | None = None) -> Array:
    """Zeros of the shape of ``x`` and, without ``dtype``, of its dtype.

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
    """Ones of the shape of ``x`` and, without ``dtype``, of its dtype.

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
