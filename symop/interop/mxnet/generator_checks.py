"""Checks of what draws random numbers: mean, variance, and how often each range is met."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from symop.interop.mxnet.comparisons import plain

Generator = Callable[[int], Any]


def mean_check(generator: Generator, mu: float, sigma: float, nsamples: int = 1_000_000) -> bool:
    """Whether the mean of draws is within three deviations of ``mu``."""
    found = plain(generator(nsamples)).mean()
    return bool(abs(found - mu) < 3 * sigma / math.sqrt(nsamples))


def var_check(generator: Generator, sigma: float, nsamples: int = 1_000_000) -> bool:
    """Whether the variance of normal draws is that of ``sigma``, within three deviations."""
    found = plain(generator(nsamples)).var(ddof=1)
    return bool(abs(found - sigma**2) < 3 * math.sqrt(2 * sigma**4 / (nsamples - 1)))


def gen_buckets_probs_with_ppf(
    ppf: Callable[[float], float], nbuckets: int
) -> tuple[list[tuple[float, float]], list[float]]:
    """Ranges that are met equally often, and how likely each is.

    Args:
        ppf: the quantile function.
        nbuckets: how many ranges.
    """
    bounds = [ppf(i / nbuckets) for i in range(nbuckets + 1)]
    return list(itertools.pairwise(bounds)), [1.0 / nbuckets] * nbuckets


def chi_square_check(
    generator: Generator,
    buckets: Sequence[Any],
    probs: Sequence[float],
    nsamples: int = 1_000_000,
) -> tuple[float, np.ndarray, np.ndarray]:
    """How likely a worse fit is (Pearson), how often each bucket was met, and how often it should.

    Args:
        generator: gives so many draws.
        buckets: ranges in ascending order, or numbers.
        probs: how likely each is.
        nsamples: how many draws.
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
    """Fail unless enough chi-square checks are likelier than ``alpha``; how likely each was.

    Raises:
        AssertionError: too few are.
    """
    found = [chi_square_check(generator, buckets, probs, nsamples)[0] for _ in range(nrepeat)]
    if sum(one > alpha for one in found) < nrepeat * success_rate:
        raise AssertionError(
            f"the draws must be distributed as {list(probs)} over {list(buckets)}, got chances of "
            f"{found}"
        )
    return found
