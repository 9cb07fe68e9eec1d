"""Activations other than sigmoid and relu: smooth, leaky, clipped and self-gated ones."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, nonzero, uniform
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.comparison import logical_and
from registry.ops.core.elementwise import exp, sigmoid, tanh, where
from registry.ops.core.entrywise import entrywise
from registry.ops.elementwise.rounding import clip
from registry.ops.elementwise.special import erfc, gaussian
from registry.shapes import real_inexact
from registry.var import Var

# Smooth -----------------------------------------------------------------------------------------


@entrywise(
    lambda x: np.logaddexp(x, np.zeros((), x.dtype)),
    dtype=real_inexact,
    cases=[case(x=uniform(3, low=80, high=90))],
    # d log(1 + e^x) = e^x / (1 + e^x) dx
    d_x=lambda x, d_out: d_out * sigmoid(x),
)
def softplus(x: Array) -> Array:
    """Softplus, element-wise: ``log(1 + exp(x))``, computed without overflow.

    Example:
        >>> import jax.numpy as jnp
        >>> softplus(jnp.asarray([-jnp.inf, 1000.0]))
        Array([   0., 1000.], dtype=float32)
    """
    return jax.nn.softplus(x)


@entrywise(
    lambda x: -np.logaddexp(-x, np.zeros((), x.dtype)),
    dtype=real_inexact,
    aliases=["logsigmoid"],
    cases=[case(x=uniform(3, low=-90, high=-80))],
    # d log(sigmoid(x)) = (1 - sigmoid(x)) dx = sigmoid(-x) dx
    d_x=lambda x, d_out: d_out * sigmoid(-x),
)
def log_sigmoid(x: Array) -> Array:
    """Logarithm of the sigmoid, element-wise: ``log(sigmoid(x))``, computed without underflow.

    Example:
        >>> import jax.numpy as jnp
        >>> log_sigmoid(jnp.asarray([-1000.0, jnp.inf]))
        Array([-1000.,    -0.], dtype=float32)
    """
    return jax.nn.log_sigmoid(x)


@entrywise(
    lambda x: x / (1 + np.abs(x)),
    samples=nonzero,
    dtype=real_inexact,
    aliases=["soft_sign"],
    rows="entrywise",
)
def softsign(x: Array) -> Array:
    """Softsign, element-wise: ``x / (1 + |x|)``.

    Example:
        >>> import jax.numpy as jnp
        >>> softsign(jnp.asarray([0.0, -1.0]))
        Array([ 0. , -0.5], dtype=float32)
    """
    # The limit: infinity divided by infinity is NaN.
    return jnp.where(jnp.isinf(x), jnp.sign(x), jax.nn.soft_sign(x))


@softsign.gradient
def _softsign_gradient(x: Var, d_out: Var) -> Grads:
    # d out = dx / (1 + |x|)^2
    share = 1.0 / (abs(x) + 1.0)
    return {"x": d_out * (share * share)}


# Self-gated -------------------------------------------------------------------------------------


def _closed(x: Array, gated: Array) -> Array:
    """``gated``, with its limit zero at minus infinity, where the gate is closed."""
    return jnp.where(x == -jnp.inf, 0.0, gated)


def _finite(x: Var, far: float = 800.0) -> Var:
    """``x`` clipped to ``[-far, far]``, as a factor of a term that vanishes before that bound.

    From 800 on ``exp(-x)`` is zero in double precision.
    """
    bounded: Var = clip(x, low=-far, high=far)
    return bounded


@entrywise(lambda x: x / (1 + np.exp(-x)), dtype=real_inexact, aliases=["swish"], rows="entrywise")
def silu(x: Array) -> Array:
    """Sigmoid-weighted linear unit, element-wise: ``x sigmoid(x)``.

    Example:
        >>> import jax.numpy as jnp
        >>> silu(jnp.asarray([0.0, 1000.0]))
        Array([   0., 1000.], dtype=float32)
    """
    return _closed(x, jax.nn.silu(x))


@silu.gradient
def _silu_gradient(x: Var, d_out: Var) -> Grads:
    # d (x s) = s + x s (1 - s), where s = sigmoid(x)
    gate = sigmoid(x)
    return {"x": d_out * (gate * (1.0 + _finite(x) * (1.0 - gate)))}


@entrywise(
    lambda x: x * np.tanh(np.logaddexp(x, np.zeros((), x.dtype))),
    dtype=real_inexact,
    rows="entrywise",
)
def mish(x: Array) -> Array:
    """Mish, element-wise: ``x tanh(softplus(x))``.

    Source: Misra, "Mish: a self regularized non-monotonic activation function" (2019).

    Example:
        >>> import jax.numpy as jnp
        >>> mish(jnp.asarray([0.0, 1000.0]))
        Array([   0., 1000.], dtype=float32)
    """
    return _closed(x, jax.nn.mish(x))


@mish.gradient
def _mish_gradient(x: Var, d_out: Var) -> Grads:
    # d (x t) = t + x (1 - t^2) sigmoid(x), where t = tanh(softplus(x))
    gate = tanh(softplus(x))
    return {"x": d_out * (gate + _finite(x) * (1.0 - gate * gate) * sigmoid(x))}


# Exponential below zero -------------------------------------------------------------------------


@entrywise(
    lambda x, *, alpha: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))),
    samples=nonzero,
    dtype=real_inexact,
    rows="entrywise",
    cases=[case(x=nonzero(), alpha=0.5)],
)
def elu(x: Array, *, alpha: float = 1.0) -> Array:
    """Exponential linear unit: ``x`` where positive, ``alpha (exp(x) - 1)`` elsewhere.

    The derivative at zero is ``alpha``.

    Source: Clevert, Unterthiner and Hochreiter, "Fast and accurate deep network learning by
    exponential linear units" (2015).

    Example:
        >>> import jax.numpy as jnp
        >>> elu(jnp.asarray([-jnp.inf, 1.0]))
        Array([-1.,  1.], dtype=float32)
    """
    # The branch that is not selected must not overflow: its derivative would be a NaN.
    return jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0.0, x)))


@elu.gradient
def _elu_gradient(x: Var, d_out: Var, *, alpha: float) -> Grads:
    below = exp(where(x > 0, 0.0, x)) * alpha
    return {"x": d_out * where(x > 0, 1.0, below)}


_SELU_SCALE = 1.0507009873554804934193349852946
_SELU_ALPHA = 1.6732632423543772848170429916717


@entrywise(
    lambda x: _SELU_SCALE * np.where(x > 0, x, _SELU_ALPHA * np.expm1(np.minimum(x, 0))),
    samples=nonzero,
    dtype=real_inexact,
    rows="entrywise",
)
def selu(x: Array) -> Array:
    """Scaled exponential linear unit, element-wise: ``1.0507 elu(x, alpha=1.67326)``.

    The constants preserve mean 0 and variance 1 from layer to layer.

    Source: Klambauer, Unterthiner, Mayr and Hochreiter, "Self-normalizing neural networks" (2017).

    Example:
        >>> import jax.numpy as jnp
        >>> selu(jnp.asarray([0.0, 1.0]))
        Array([0.      , 1.050701], dtype=float32)
    """
    return _SELU_SCALE * jnp.where(x > 0, x, _SELU_ALPHA * jnp.expm1(jnp.where(x > 0, 0.0, x)))


@selu.gradient
def _selu_gradient(x: Var, d_out: Var) -> Grads:
    below = exp(where(x > 0, 0.0, x)) * _SELU_ALPHA
    return {"x": d_out * (where(x > 0, 1.0, below) * _SELU_SCALE)}


@entrywise(
    lambda x, *, alpha: np.maximum(x, 0) + alpha * np.expm1(np.minimum(x, 0) / alpha),
    samples=nonzero,
    dtype=real_inexact,
    rows="entrywise",
    cases=[case(x=nonzero(), alpha=0.5)],
    d_x=lambda x, d_out, *, alpha: d_out * exp(where(x > 0, 0.0, x) / alpha),
)
def celu(x: Array, *, alpha: float = 1.0) -> Array:
    """Continuously differentiable exponential linear unit, element-wise.

    ``max(x, 0) + alpha (exp(min(x, 0) / alpha) - 1)``, whose derivative is continuous at zero.

    Source: Barron, "Continuously differentiable exponential linear units" (2017).

    Example:
        >>> import jax.numpy as jnp
        >>> celu(jnp.asarray([-jnp.inf, 1.0]))
        Array([-1.,  1.], dtype=float32)
    """
    return jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0.0, x) / alpha))


# Piecewise linear -------------------------------------------------------------------------------


@entrywise(
    lambda x, *, slope: np.where(x > 0, x, slope * x),
    samples=nonzero,
    dtype=real_inexact,
    rows="entrywise",
    cases=[case(x=nonzero(), slope=0.5)],
    # One factor for each entry is all that JAX keeps of it; of a selection it keeps both branches.
    d_x=lambda x, d_out, *, slope: d_out * where(x > 0, 1.0, slope),
)
def leaky_relu(x: Array, *, slope: float = 0.01) -> Array:
    """Leaky rectified linear unit: ``x`` where positive, ``slope x`` elsewhere.

    The derivative at zero is ``slope``.

    Example:
        >>> import jax.numpy as jnp
        >>> leaky_relu(jnp.asarray([-1.0, 2.0]), slope=0.5)
        Array([-0.5,  2. ], dtype=float32)
    """
    return jnp.where(x > 0, x, slope * x)


@entrywise(
    lambda x: np.clip(x, 0, 6),
    samples=(0.5, 5.5),
    dtype=real_inexact,
    cases=[case(x=nonzero(3))],
    rows="entrywise",
)
def relu6(x: Array) -> Array:
    """Rectified linear unit capped at 6: ``min(max(x, 0), 6)``. Its derivative at 0 and 6 is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> relu6(jnp.asarray([-1.0, 2.0, 9.0]))
        Array([0., 2., 6.], dtype=float32)
    """
    return jnp.minimum(jnp.maximum(x, 0.0), 6.0)


@relu6.gradient
def _relu6_gradient(out: Var, d_out: Var) -> Grads:
    # A selection, not a factor: an infinite cotangent of a constant part must not become a NaN.
    return {"x": where(logical_and(out > 0, out < 6), d_out, 0.0)}


# Gates of a normal distribution -----------------------------------------------------------------


def _gelu_reference(x: np.ndarray, *, approximate: bool) -> np.ndarray:
    z = np.asarray(x, np.float64)
    if approximate:
        gate = 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))
    else:
        gate = 0.5 * (1 + np.vectorize(math.erf, otypes=[np.float64])(z / math.sqrt(2)))
    return np.asarray(z * gate).astype(x.dtype)


@entrywise(
    _gelu_reference, dtype=real_inexact, rows="entrywise", cases=[case(x=(), approximate=True)]
)
def gelu(x: Array, *, approximate: bool = False) -> Array:
    """Gaussian error linear unit: ``x Phi(x)`` with the normal distribution function ``Phi``.

    With ``approximate`` it is ``x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2``.

    Source: Hendrycks and Gimpel, "Gaussian error linear units" (2016).

    Example:
        >>> import jax.numpy as jnp
        >>> gelu(jnp.asarray([0.0, 100.0]))
        Array([  0., 100.], dtype=float32)
    """
    z = jnp.asarray(x)
    if approximate:
        gate = 1.0 + jnp.tanh(math.sqrt(2.0 / math.pi) * (z + 0.044715 * z**3))
        return _closed(z, 0.5 * z * gate)
    return _closed(z, 0.5 * z * lax.erfc(-math.sqrt(0.5) * z))


@gelu.gradient
def _gelu_gradient(x: Var, d_out: Var, *, approximate: bool) -> Grads:
    if approximate:
        # gate = (1 + t) / 2 with t = tanh(c (x + a x^3)); gate' = (1 - t^2) / 2 c (1 + 3 a x^2)
        c = math.sqrt(2.0 / math.pi)
        at = _finite(x, 32.0)  # tanh is one long before
        t = tanh((at + at * at * at * 0.044715) * c)
        slope = (1.0 - t * t) * (at * at * (3 * 0.044715) + 1.0) * (0.5 * c)
        return {"x": d_out * ((t + 1.0) * 0.5 + at * slope)}
    # d (x Phi) = Phi + x phi, where phi(x) = exp(-x^2 / 2) / sqrt(2 pi)
    # Phi is half of erfc(z), which stays accurate where it is small.
    z = x * -math.sqrt(0.5)
    density = gaussian(z) * (1.0 / math.sqrt(2.0 * math.pi))
    return {"x": d_out * (erfc(z) * 0.5 + _finite(x) * density)}


# Clipped ----------------------------------------------------------------------------------------


@entrywise(
    lambda x: np.clip(x / 6 + 0.5, 0, 1),
    samples=(-2.5, 2.5),
    dtype=real_inexact,
    aliases=["hardsigmoid"],
    cases=[case(x=uniform(3, low=4, high=5))],
    d_x=lambda x, d_out: where(abs(x) < 3.0, d_out * (1.0 / 6.0), 0.0),
)
def hard_sigmoid(x: Array) -> Array:
    """Piecewise linear sigmoid, element-wise: ``min(max(x / 6 + 1/2, 0), 1)``.

    The derivative at -3 and 3 is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> hard_sigmoid(jnp.asarray([-9.0, 0.0, 9.0]))
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    return jax.nn.hard_sigmoid(x)


@entrywise(
    lambda x: np.clip(x, -1, 1),
    samples=(-0.9, 0.9),
    dtype=real_inexact,
    aliases=["hardtanh"],
    cases=[case(x=uniform(3, low=2, high=3))],
    rows="entrywise",
    d_x=lambda x, d_out: where(abs(x) < 1.0, d_out, 0.0),
)
def hard_tanh(x: Array) -> Array:
    """Piecewise linear tanh: ``min(max(x, -1), 1)``. Its derivative at -1 and 1 is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> hard_tanh(jnp.asarray([-9.0, 0.5, 9.0]))
        Array([-1. ,  0.5,  1. ], dtype=float32)
    """
    return jnp.where(x > 1, 1.0, jnp.where(x < -1, -1.0, x))


@entrywise(
    lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    samples=(-2.5, 2.5),
    dtype=real_inexact,
    aliases=["hard_silu", "hardswish"],
    cases=[case(x=uniform(3, low=4, high=5))],
    rows="entrywise",
)
def hard_swish(x: Array) -> Array:
    """Piecewise quadratic approximation of ``silu``, element-wise: ``x hard_sigmoid(x)``.

    Source: Howard et al., "Searching for MobileNetV3" (2019).

    Example:
        >>> import jax.numpy as jnp
        >>> hard_swish(jnp.asarray([-9.0, 0.0, 9.0]))
        Array([-0.,  0.,  9.], dtype=float32)
    """
    return _closed(x, jax.nn.hard_silu(x))


@hard_swish.gradient
def _hard_swish_gradient(x: Var, d_out: Var) -> Grads:
    # d (x g) = g + x g', where g = hard_sigmoid(x) and g' = 1/6 between -3 and 3
    slope = where(abs(x) < 3.0, x * (1.0 / 6.0), 0.0)
    return {"x": d_out * (hard_sigmoid(x) + slope)}
