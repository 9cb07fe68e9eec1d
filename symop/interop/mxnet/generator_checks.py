"""Statistical checks of random generators: mean, variance, and frequencies of buckets."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from symop.interop.mxnet.comparisons import plain

Generator = Callable[[int], Any]


def mean_check(generator: Generator, mu: float, sigma: float, nsamples: int = 1_000_000) -> bool:
    """Whether the mean of draws is within three standard errors of ``mu``."""
    found = plain(generator(nsamples)).mean()
    return bool(abs(found - mu) < 3 * sigma / math.sqrt(nsamples))


def var_check(generator: Generator, sigma: float, nsamples: int = 1_000_000) -> bool:
    """Whether the variance of normal draws is within three standard errors of ``sigma**2``."""
    found = plain(generator(nsamples)).var(ddof=1)
    return bool(abs(found - sigma**2) < 3 * math.sqrt(2 * sigma**4 / (nsamples - 1)))


def gen_buckets_probs_with_ppf(
    ppf: Callable[[float], float], nbuckets: int
) -> tuple[list[tuple[float, float]], list[float]]:
    """Buckets of equal probability, and their probabilities.

    Args:
        ppf: the quantile function.
        nbuckets: the number of buckets.
    """
    bounds = [ppf(i / nbuckets) for i in range(nbuckets + 1)]
    return list(itertools.pairwise(bounds)), [1.0 / nbuckets] * nbuckets


def chi_square_check(
    generator: Generator,
    buckets: Sequence[Any],
    probs: Sequence[float],
    nsamples: int = 1_000_000,
) -> tuple[float, np.ndarray, np.ndarray]:
    """Pearson's chi-square test: the p-value, and observed and expected counts per bucket.

    Args:
        generator: returns a given number of draws.
        buckets: ranges in ascending order, or numbers.
        probs: the probability of each bucket.
        nsamples: the number of draws.
    """
    drawn = plain(generator(nsamples)).ravel()
    if isinstance(buckets[0], (list, tuple)):
        found = np.array([np.sum((low <= drawn) & (drawn < high)) for low, high in buckets])
    else:
        found = np.array([np.sum(drawn == one) for one in buckets])
    expected = (nsamples * np.asarray(probs, np.float32)).astype(np.int64)
    statistic = float(np.sum((found - expected) ** 2 / np.maximum(expected, 1)))
    freedom = (len(buckets) - 1) / 2
    chance = float(jax.scipy.special.gammaincc(freedom, statistic / 2))
    return chance, found, expected


def verify_generator(
    generator: Generator,
    buckets: Sequence[Any],
    probs: Sequence[float],
    nsamples: int = 1_000_000,
    nrepeat: int = 5,
    success_rate: float = 0.2,
    alpha: float = 0.05,
) -> list[float]:
    """Asserts that enough chi-square p-values exceed ``alpha``; returns the p-values.

    Raises:
        AssertionError: too few do.
    """
    result = [chi_square_check(generator, buckets, probs, nsamples)[0] for _ in range(nrepeat)]
    if sum(one > alpha for one in result) < nrepeat * success_rate:
        raise AssertionError(
            f"the draws must be distributed as {list(probs)} over {list(buckets)}, got chances of "
            f"{result}"
        )
    return result
