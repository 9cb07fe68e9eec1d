"""Samples of densities of distributions."""

import numpy as np
from scipy import special, stats

from mxnet_samples.sample import Sample

draw = np.random.default_rng(5)
POINTS = draw.uniform(0.3, 2.0, size=(2, 3))
COUNTS = np.array([[0.0, 1.0, 4.0], [2.0, 3.0, 7.0]])
FIRST, SECOND = np.array([1.3, 2.4]), np.array([0.7, 1.6])
ROOT = np.sqrt(np.pi / float(np.float32(np.pi)))


def negative_binomial(x, k, p):
    """The logarithm of the probability of ``x`` failures before ``k`` successes."""
    ways = special.gammaln(x + k) - special.gammaln(x + 1) - special.gammaln(k)
    return ways + k * np.log(p) + x * np.log1p(-p)


def generalized(x, mu, alpha):
    """The same by the mean and the dispersion."""
    return negative_binomial(x, 1 / alpha, 1 / (mu * alpha + 1))


def poisson(x, lam):
    """The logarithm of the probability of ``x`` events."""
    return x * np.log(lam) - special.gammaln(x + 1) - lam


# Logarithms of densities by distribution: where, with which parameters, which.
CONTINUOUS = {
    "uniform": (
        {"low": FIRST - 3, "high": SECOND + 2},
        lambda x, low, high: np.zeros(x.shape) - np.log(high - low),
    ),
    "normal": (
        {"mu": FIRST, "sigma": SECOND},
        lambda x, mu, sigma: stats.norm.logpdf(x, mu, sigma) + np.log(ROOT),
    ),
    "gamma": (
        {"alpha": FIRST, "beta": SECOND},
        lambda x, alpha, beta: stats.gamma.logpdf(x, alpha, scale=1 / beta),
    ),
    "exponential": ({"lam": FIRST}, lambda x, lam: stats.expon.logpdf(x, scale=1 / lam)),
}
DISCRETE = {
    "poisson": ({"lam": FIRST}, poisson),
    "negative_binomial": ({"k": FIRST, "p": SECOND / 4}, negative_binomial),
    "generalized_negative_binomial": ({"mu": FIRST, "alpha": SECOND}, generalized),
}


def density(log_density, is_log):
    """The density, or its logarithm, with the parameters along the leading axes."""

    def call(sample, *parameters):
        wide = [one.reshape(*one.shape, *[1] * (sample.ndim - one.ndim)) for one in parameters]
        found = log_density(sample, *wide)
        return found if is_log else np.exp(found)

    return call


def full(parameters):
    """A parameter for each point."""
    return {
        name: np.repeat(one[:, None], 3, 1) + np.array([0.0, 0.1, 0.2])
        for name, one in parameters.items()
    }


def no_slope_by_sample(sample, *parameters):
    """What a whole number is differentiated by."""
    return {"sample": np.zeros(sample.shape)}


SAMPLES = []
for _name, (_parameters, _log_density) in {**CONTINUOUS, **DISCRETE}.items():
    op, discrete = f"_random_pdf_{_name}", _name in DISCRETE
    points = COUNTS if discrete else POINTS
    by = list(_parameters) if discrete else None
    SAMPLES += [
        Sample(
            op,
            {"sample": points, **parameters},
            {"is_log": is_log},
            density(_log_density, is_log),
            by=by,
        )
        for parameters in (_parameters, full(_parameters))
        for is_log in (False, True)
    ]
    if discrete:
        SAMPLES += [
            Sample(
                op,
                {"sample": points, **_parameters},
                {},
                density(_log_density, is_log=False),
                "declared",
                no_slope_by_sample,
            )
        ]
    deep = np.stack([points, points + 1], -1)
    SAMPLES += [
        Sample(
            f"random_pdf_{_name}",
            {"sample": deep, **_parameters},
            {},
            density(_log_density, is_log=False),
            by=by,
        )
    ]

# Vectors ---------------------------------------------------------------------------------------


def dirichlet(is_log):
    """The density of Dirichlet's distribution, or its logarithm."""

    def call(sample, alpha):
        wide = alpha.reshape(*alpha.shape[:-1], *[1] * (sample.ndim - alpha.ndim), -1)
        scale = special.gammaln(wide.sum(-1)) - special.gammaln(wide).sum(-1)
        found = np.atleast_1d(((wide - 1) * np.log(sample)).sum(-1) + scale)
        return found if is_log else np.exp(found)

    return call


SHARES = draw.dirichlet([1.0, 2.0, 3.0], size=(2, 2))
ALPHA = draw.uniform(0.5, 3.0, size=(2, 3))
SAMPLES += [
    Sample(
        "_random_pdf_dirichlet",
        {"sample": sample, "alpha": alpha},
        {"is_log": is_log},
        dirichlet(is_log),
    )
    for sample, alpha in (
        (SHARES, ALPHA),
        (SHARES[0], ALPHA[0]),
        (SHARES[0, 0], ALPHA[0]),
        (SHARES[0], ALPHA),
    )
    for is_log in (False, True)
]
