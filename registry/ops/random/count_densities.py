"""Log densities of counts, of classes, and of their probabilities.

They follow the conventions of ``densities`` for supports and parameters.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, fixed, integers, misuse, positive, uniform, workload
from registry.errors import ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import unbroadcast
from registry.ops.core.comparison import greater_equal, less, less_equal, logical_and
from registry.ops.core.elementwise import sigmoid, where
from registry.ops.core.reductions import sum as sum_over
from registry.ops.core.reshaping import expand_dims
from registry.ops.elementwise.stirling import (
    LARGE,
    deviance,
    log_and_digamma_step,
    log_minus_digamma,
    remainder,
)
from registry.ops.elementwise.zero_products import divisor
from registry.ops.random.counting import all as all_of
from registry.ops.random.densities import (
    APART,
    LOG_2_PI,
    density_dtype,
    of_scipy,
    supported,
    widened,
    within,
)
from registry.shapes import broadcast
from registry.table import op
from registry.types import Shape
from registry.var import Var

_LARGE_NUMBERS = uniform(3, low=40, high=60)

# Counts and classes -----------------------------------------------------------------------------


@op(
    shape=broadcast,
    dtype=density_dtype,
    # Between integers, too: the density of a gamma distribution at the rate.
    reference=of_scipy(
        "gamma", lambda d, x, rate: np.where(x < 0, -np.inf, d.logpdf(rate, np.maximum(x, 0) + 1))
    ),
    cases=[
        case(x=positive(3, 4), rate=positive(4), rtol=256),
        case(x=_LARGE_NUMBERS, rate=_LARGE_NUMBERS, rtol=1024, order=1),
        case(x=integers(3, 4, high=6), rate=positive(4), rtol=256),
        case(x=integers(high=6), rate=positive(), rtol=256),
        case(x=integers(3, low=-3, high=0), rate=positive(), order=1),
        misuse(APART, x=(3,), rate=(4,)),
    ],
)
def poisson_log_density(x: Array, rate: Array) -> Array:
    """Log density of the Poisson distribution: ``x log(rate) - rate - log(x!)``.

    ``x`` is 0, 1, 2, ... Between integers the same formula holds, with ``x! = Gamma(x + 1)``.

    Example:
        >>> import jax.numpy as jnp
        >>> poisson_log_density(jnp.asarray([2, -1]), 1.0)
        Array([-1.693..., -inf], dtype=float32)
    """
    (x, rate), dtype = widened(x, rate)
    inside = (x >= 0) & (x < jnp.inf)
    at = jnp.where(inside, x, 0.0)
    close = jax.scipy.special.xlogy(at, rate) - rate - lax.lgamma(at + 1.0)
    large = (at >= LARGE) & (rate > 0) & (rate < jnp.inf)
    count, mean = jnp.where(large, at, LARGE), jnp.where(large, rate, LARGE)
    far = -0.5 * (jnp.log(count) + LOG_2_PI) - remainder(count) - deviance(count, mean)
    return supported(inside, jnp.where(large, far, close), dtype)


@poisson_log_density.gradient
def _poisson_log_density_gradient(x: Var, rate: Var, d_out: Var) -> Grads:
    inside = logical_and(greater_equal(x, 0), less(x, math.inf))
    at = where(inside, x, 0)
    return {
        "x": lambda: unbroadcast(within(inside, d_out * log_minus_digamma(rate, at + 1.0)), x),
        "rate": unbroadcast(within(inside, d_out * (at / divisor(rate, at) - 1.0)), rate),
    }


@op(
    shape=broadcast,
    dtype=density_dtype,
    reference=of_scipy(
        "logistic", lambda d, x, logits: x * d.logcdf(logits) + (1 - x) * d.logcdf(-logits)
    ),
    cases=[
        case(x=uniform(3, 4, low=0.1, high=0.9), logits=(4,)),
        case(x=integers(3, 4, high=2), logits=(4,)),
        case(x=integers(high=2), logits=()),
        case(x=integers(0, high=2), logits=()),
        misuse(APART, x=(3,), logits=(4,)),
    ],
)
def bernoulli_log_density(x: Array, logits: Array) -> Array:
    """Log density of the Bernoulli distribution: ``x log(p) + (1 - x) log(1 - p)``.

    ``p = sigmoid(logits)``, and ``x`` is 0 or 1. It is computed as
    ``x logits - log(1 + exp(logits))``, such that infinite logits give the logarithms 0 and minus
    infinity. Between 0 and 1 the same formula holds.

    Example:
        >>> import jax.numpy as jnp
        >>> bernoulli_log_density(jnp.asarray([1, 0]), jnp.asarray([1000.0, 1000.0]))
        Array([    0., -1000.], dtype=float32)
    """
    (x, logits), dtype = widened(x, logits)
    endless = jnp.isinf(logits)
    at = jnp.where(endless, 0.0, logits)
    ends = jnp.where(x == (logits > 0), 0.0, -jnp.inf)
    density = jnp.where(endless, ends, x * at - jax.nn.softplus(at))
    return supported((x >= 0) & (x <= 1), density, dtype)


@bernoulli_log_density.gradient
def _bernoulli_log_density_gradient(x: Var, logits: Var, d_out: Var) -> Grads:
    inside = logical_and(greater_equal(x, 0), less_equal(x, 1))
    return {
        "x": lambda: unbroadcast(within(inside, d_out * logits), x),
        "logits": unbroadcast(within(inside, d_out * (x - sigmoid(logits))), logits),
    }


# Shares -----------------------------------------------------------------------------------------


_SHARES = fixed(
    "rows of [[1, 2, 3], [3, 2, 1]] / 6",
    (np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]) / 6.0).astype,
)


def _dirichlet_shape(x: Shape, a: Shape) -> Shape:
    if not x or x[-1:] != a[-1:]:
        raise ShapeError(f"x and a must have the same last axis, got {x} and {a}")
    return broadcast(x[:-1], a[:-1])


@op(
    shape=_dirichlet_shape,
    dtype=density_dtype,
    reference=of_scipy(
        "dirichlet",
        lambda d, x, a: np.asarray(
            [d.logpdf(one, a) for one in x.reshape(-1, x.shape[-1])]
        ).reshape(x.shape[:-1]),
    ),
    cases=[
        case(x=_SHARES, a=positive(3), rtol=512, dtypes=("float64",)),
        workload(x=uniform(4096, 128, low=0.1, high=0.9), a=positive(128)),
        misuse("x and a must have the same last axis, got (2, 3) and (4,)", x=(2, 3), a=(4,)),
    ],
)
def dirichlet_log_density(x: Array, a: Array) -> Array:
    """Log density of the Dirichlet distribution along the last axis.

    ``sum((a - 1) log(x)) + log Gamma(sum(a)) - sum(log Gamma(a))``. ``x`` holds nonnegative numbers
    that sum to one; the sum is not checked.

    Example:
        >>> import jax.numpy as jnp
        >>> dirichlet_log_density(jnp.asarray([0.5, 0.5]), jnp.asarray([2.0, 2.0]))
        Array(0.405..., dtype=float32)
    """
    (x, a), dtype = widened(x, a)
    inside = jnp.all(x >= 0, -1)
    at = jnp.where(x >= 0, x, 1.0)
    total = jnp.sum(a, -1)
    large = (total >= LARGE) & (total < jnp.inf)
    far = _narrow_dirichlet(at, a, jnp.where(large, total, LARGE))
    close = jnp.sum(_power_over_gamma(at, a), -1) + lax.lgamma(total)
    return supported(inside, jnp.where(large, far, close), dtype)


def _power_over_gamma(x: Array, a: Array) -> Array:
    """``log(x^(a - 1) / Gamma(a))``."""
    return jax.scipy.special.xlogy(a - 1.0, x) - lax.lgamma(a)


def _narrow_dirichlet(x: Array, a: Array, total: Array) -> Array:
    """The log density where the sum of the parameters, ``total``, is at least ``LARGE``.

    ``log Gamma(total)`` is ``total log(total) - total`` plus small terms; ``total log(total)`` is
    distributed to the parameters, ``a log(total)`` to each. For a large parameter this leaves ``a
    log(total x / a) + a = total x - deviance(a, total x)`` plus small terms.
    """
    mean = total[..., None] * x
    large = (a >= LARGE) & (mean > 0)
    count, middle = jnp.where(large, a, LARGE), jnp.where(large, mean, LARGE)
    far = 0.5 * (jnp.log(count) - LOG_2_PI) - remainder(count) - deviance(count, middle)
    far -= jnp.log(jnp.where(large, x, 1.0))
    small = jnp.where(large, 1.0, a)
    close = _power_over_gamma(jnp.where(large, 1.0, x), small) + small * jnp.log(total)[..., None]
    terms = jnp.sum(jnp.where(large, far, close), -1)
    excess = total * (jnp.sum(jnp.where(large, x, 0.0), -1) - 1.0)
    return terms + excess + 0.5 * (LOG_2_PI - jnp.log(total)) + remainder(total)


@dirichlet_log_density.gradient
def _dirichlet_log_density_gradient(x: Var, a: Var, d_out: Var) -> Grads:
    d = expand_dims(within(all_of(greater_equal(x, 0.0), axis=-1), d_out), axis=-1)
    at = where(greater_equal(x, 0.0), x, 1.0)
    return {
        "x": unbroadcast(d * ((a - 1.0) / divisor(at, a - 1.0)), x),
        "a": lambda: unbroadcast(
            d * log_and_digamma_step(at, a, sum_over(a, axis=-1, keepdims=True)), a
        ),
    }
