"""Probability densities at samples, or their logarithms.

Parameters have the leading axes of the samples. Samples outside the support are not detected.
"""

from typing import Any

import symop as so
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.ops.values import SINGLE_PI, at_least_1d, fixed
from symop.interop.mxnet.partial_shapes import Shapes, enter

_DISCRETE = "the derivative with respect to a sample, which is a whole number, is zero"


def _along(sample: Any, *parameters: Any) -> list[Any]:
    """Parameters with trailing axes of length one, for the additional axes of samples."""
    return [
        so.reshape(one, shape=(*one.shape, *[1] * (len(sample.shape) - len(one.shape))))
        for one in parameters
    ]


def _density(log_density: Any, is_log: bool) -> Any:
    return log_density if is_log else so.exp(log_density)


def _shapes(given: Shapes, found: Shapes) -> None:
    """Parameters have the leading axes of samples, densities the shape of samples."""
    sample = given[0]
    enter(found, 0, sample)
    ranks = [len(one) for one in given[1:] if one]
    if sample is not None and ranks:
        for i in range(1, len(given)):
            enter(given, i, sample[: ranks[0]])


def _vector_shapes(given: Shapes, found: Shapes) -> None:
    """As ``_shapes``, for samples and parameters along the last axis."""
    sample, alpha = given
    if sample is not None:
        enter(found, 0, sample[:-1] or (1,))
        if alpha:
            enter(given, 1, (*sample[: len(alpha) - 1], sample[-1]))


@operator("_random_pdf_uniform", "random_pdf_uniform", shapes=_shapes)
def uniform(sample: Any, low: Any, high: Any, *, is_log: bool = False) -> Any:
    """``1 / (high - low)``, for any sample."""
    low, high = _along(sample, low, high)
    width = so.subtract(high, low)
    found = so.negative(so.log(width)) if is_log else so.reciprocal(width)
    return fixed(so.broadcast_to(found, shape=tuple(sample.shape)), sample)


@operator(
    "_random_pdf_normal",
    "random_pdf_normal",
    shapes=_shapes,
    note="in float64, too, its constant is that of float32, as in MXNet",
)
def normal(sample: Any, mu: Any, sigma: Any, *, is_log: bool = False) -> Any:
    """``exp(-((sample - mu) / sigma)^2 / 2) / (sqrt(2 pi) sigma)``."""
    mu, sigma = _along(sample, mu, sigma)
    exponent = so.multiply(so.square(so.divide(so.subtract(sample, mu), sigma)), -0.5)
    normalizer = so.multiply(sigma, float(2.0 * float(SINGLE_PI)) ** 0.5)
    if is_log:
        return so.subtract(exponent, so.log(normalizer))
    return so.divide(so.exp(exponent), normalizer)


@operator("_random_pdf_gamma", "random_pdf_gamma", shapes=_shapes)
def gamma(sample: Any, alpha: Any, beta: Any, *, is_log: bool = False) -> Any:
    """``beta^alpha sample^(alpha - 1) exp(-beta sample) / Gamma(alpha)``."""
    alpha, beta = _along(sample, alpha, beta)
    return _density(so.gamma_log_density(sample, alpha, so.reciprocal(beta)), is_log)


@operator("_random_pdf_exponential", "random_pdf_exponential", shapes=_shapes)
def exponential(sample: Any, lam: Any, *, is_log: bool = False) -> Any:
    """``lam exp(-lam sample)``."""
    (lam,) = _along(sample, lam)
    exponent = so.negative(so.multiply(lam, sample))
    if is_log:
        return so.add(so.log(lam), exponent)
    return so.multiply(lam, so.exp(exponent))


@operator("_random_pdf_poisson", "random_pdf_poisson", shapes=_shapes, note=_DISCRETE)
def poisson(sample: Any, lam: Any, *, is_log: bool = False) -> Any:
    """``lam^sample exp(-lam) / sample!``."""
    (lam,) = _along(sample, lam)
    return _density(so.poisson_log_density(so.stop_gradient(sample), lam), is_log)


def _negative_binomial(sample: Any, k: Any, p: Any, is_log: bool) -> Any:
    """``Gamma(x + k) / (x! Gamma(k)) p^k (1 - p)^x``."""
    x = so.stop_gradient(sample)
    ways = so.subtract(
        so.subtract(so.lgamma(so.add(x, k)), so.lgamma(so.add(x, 1.0))), so.lgamma(k)
    )
    chance = so.add(so.multiply(k, so.log(p)), so.multiply(x, so.log1p(so.negative(p))))
    return _density(so.add(ways, chance), is_log)


@operator(
    "_random_pdf_negative_binomial", "random_pdf_negative_binomial", shapes=_shapes, note=_DISCRETE
)
def negative_binomial(sample: Any, k: Any, p: Any, *, is_log: bool = False) -> Any:
    """The probability of ``sample`` failures before ``k`` successes of probability ``p``."""
    k, p = _along(sample, k, p)
    return _negative_binomial(sample, k, p, is_log)


@operator(
    "_random_pdf_generalized_negative_binomial",
    "random_pdf_generalized_negative_binomial",
    shapes=_shapes,
    note=_DISCRETE,
)
def generalized_negative_binomial(sample: Any, mu: Any, alpha: Any, *, is_log: bool = False) -> Any:
    """The negative binomial with mean ``mu`` and dispersion ``alpha``: ``k = 1 / alpha``."""
    mu, alpha = _along(sample, mu, alpha)
    p = so.reciprocal(so.add(so.multiply(mu, alpha), 1.0))
    return _negative_binomial(sample, so.reciprocal(alpha), p, is_log)


@operator("_random_pdf_dirichlet", "random_pdf_dirichlet", shapes=_vector_shapes)
def dirichlet(sample: Any, alpha: Any, *, is_log: bool = False) -> Any:
    """``Gamma(sum(alpha)) prod(sample^(alpha - 1) / Gamma(alpha))`` along the last axis."""
    *leading, count = alpha.shape
    between = [1] * (len(sample.shape) - len(alpha.shape))
    wide = so.reshape(alpha, shape=(*leading, *between, count))
    return at_least_1d(_density(so.dirichlet_log_density(sample, wide), is_log))
