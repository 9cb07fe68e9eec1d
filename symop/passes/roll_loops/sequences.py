"""Maximal repetitions of a sequence: the parts that consist of one word repeated.

Source: Bannai, I, Inenaga, Nakashima, Takeda, Tsuruta, "The 'Runs' Theorem" (2017). The root of
every maximal repetition is the longest Lyndon word at some position, for an order of the letters
or for the inverse order; that word ends where the next smaller suffix begins. Suffixes are ranked
by doubling (Karp, Miller, Rosenberg, 1972), which also gives the length of common prefixes.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

Numbers = np.ndarray[Any, np.dtype[np.int64]]


class Repeat(NamedTuple):
    """The entries ``start : stop``, each of which equals the one ``period`` before it."""

    start: int
    stop: int
    period: int


def maximal_repeats(letters: Sequence[int]) -> list[Repeat]:
    """Returns all repetitions that cannot be extended, each at least two periods long.

    They are fewer than the letters. The time is ``O(n log(n)**2)``.

    Example:
        >>> maximal_repeats([7, 1, 2, 1, 2, 1])
        [Repeat(start=1, stop=6, period=2)]
    """
    if len(letters) <= 1:
        return []
    word = np.unique(np.asarray(letters, np.int64), return_inverse=True)[1].astype(np.int64)
    forwards, backwards = _ranks(word), _ranks(word[::-1])
    repeats: set[Repeat] = set()
    for ranks in (forwards[-1], _ranks(word.max() - word)[-1]):
        repeats.update(_of_roots(_next_smaller(ranks), forwards, backwards))
    return sorted(repeats)


def _ranks(word: Numbers) -> list[Numbers]:
    """Ranks suffixes by their first letters, for each power of two; an end comes first."""
    levels, width = [word], 1
    while width < len(word) and levels[-1].max() + 1 < len(word):
        behind = np.zeros_like(word)
        behind[:-width] = levels[-1][width:] + 1
        pairs = levels[-1] * (len(word) + 1) + behind
        levels.append(np.unique(pairs, return_inverse=True)[1].astype(np.int64))
        width *= 2
    return levels


def _next_smaller(ranks: Numbers) -> Numbers:
    """Returns the next position of smaller rank for each position, or the length."""
    after = np.full(len(ranks), len(ranks), np.int64)
    waiting: list[int] = []
    listed = ranks.tolist()
    for i, rank in enumerate(listed):
        while waiting and listed[waiting[-1]] > rank:
            after[waiting.pop()] = i
        waiting.append(i)
    return after


def _of_roots(ends: Numbers, forwards: list[Numbers], backwards: list[Numbers]) -> set[Repeat]:
    """Returns the repetitions of the words from each position to its end, extended maximally."""
    n = len(ends)
    starts = np.arange(n)
    periods = ends - starts
    after = _agreement(forwards, starts, ends)
    before = _agreement(backwards, n - starts, n - ends)
    hits = np.flatnonzero(after + before >= periods)
    rows = zip(starts[hits] - before[hits], ends[hits] + after[hits], periods[hits], strict=True)
    return {Repeat(int(start), int(stop), int(period)) for start, stop, period in rows}


def _agreement(levels: list[Numbers], first: Numbers, second: Numbers) -> Numbers:
    """Returns the lengths of the common prefixes of suffixes at pairs of different positions."""
    n = len(levels[0])
    common = np.zeros_like(first)
    for level in reversed(range(len(levels))):
        a, b = first + common, second + common
        inside = (a < n) & (b < n)
        ranks = levels[level]
        equal = inside & (ranks[np.where(inside, a, 0)] == ranks[np.where(inside, b, 0)])
        common = np.where(equal, common + (1 << level), common)
    return common
