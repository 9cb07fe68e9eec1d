"""Evaluation of a trained network: means of the loss and the metrics over all examples."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from registry.errors import ArgumentError
from symop.runtime.placement import Placement
from symop.runtime.processes import Share
from symop.training.feeding import common_length
from symop.training.state import Arrays
from symop.training.streams import Stream

Weighted = tuple[dict[str, Any], float]
"""A batch and the number of examples that it stands for."""


def batches_of(
    data: Any, inputs: Sequence[str], batch_size: int | None, pieces: int
) -> Iterator[Weighted]:
    """Yields the batches of all examples, in their order.

    The length of each is a multiple of ``pieces``: examples that are left over are repeated, and
    count once.

    Raises:
        ArgumentError: ``data`` is not what ``Trainer.evaluate`` takes.
    """
    if not isinstance(data, Mapping):
        for batch in Stream("evaluate", data, inputs, None).batches(0):
            yield from _pieces(batch, _length(batch), pieces)
        return
    _require_share(data)
    length = common_length(data, inputs)
    size = length if batch_size is None else batch_size
    for start in range(0, length, size or 1):
        batch = {name: one[start : start + size] for name, one in data.items()}
        for piece, weight in _pieces(batch, min(size, length - start), pieces):
            yield (Share(piece) if isinstance(data, Share) else piece), weight


def _require_share(data: Any) -> None:
    if jax.process_count() > 1 and not isinstance(data, Share):
        raise ArgumentError(
            "evaluate: of several processes, each must have all examples, train.share(data), got "
            f"{type(data).__name__}"
        )


def _length(batch: Mapping[str, Any]) -> int:
    """Returns the number of examples of a batch."""
    return next((np.shape(one)[0] for one in batch.values() if np.ndim(one)), 1)


def _pieces(batch: Mapping[str, Any], length: int, pieces: int) -> Iterator[Weighted]:
    """Yields a batch in parts whose lengths are multiples of ``pieces``."""
    if length % pieces == 0:
        yield dict(batch), length
        return
    even = length - length % pieces
    if even:
        yield _cut(batch, 0, even, 1), even
    start = even
    while start < length:
        # The largest divisor of ``pieces`` that is not more than what is left.
        size = max(k for k in range(1, length - start + 1) if pieces % k == 0)
        yield _cut(batch, start, start + size, pieces // size), size
        start += size


def _cut(batch: Mapping[str, Any], start: int, stop: int, times: int) -> dict[str, Any]:
    """Returns some examples of a batch, each of them ``times`` times."""
    if start == 0 and times == 1:
        return {n: one[:stop] if np.ndim(one) else one for n, one in batch.items()}
    return {
        name: np.repeat(np.asarray(one[start:stop]), times, axis=0) if np.ndim(one) else one
        for name, one in batch.items()
    }


def pieces_of(placement: Placement | None, inputs: Sequence[str]) -> int:
    """Returns the number that the length of a batch must be a multiple of."""
    if placement is None:
        return 1
    return int(np.lcm.reduce([1, *[placement.pieces(name) for name in inputs]]))


def weighted_means(
    evaluate: Callable[[dict[str, Any]], Arrays], batches: Iterator[Weighted]
) -> dict[str, float]:
    """Returns the means of what ``evaluate`` returns, weighted by the numbers of examples.

    Raises:
        ArgumentError: there is no batch.
    """
    pairs = [(evaluate(batch), weight) for batch, weight in batches]
    total = sum(weight for _, weight in pairs)
    if not total:
        raise ArgumentError("evaluate: there must be an example, got none")
    return {
        name: sum(float(values[name]) * weight for values, weight in pairs) / total
        for name in pairs[0][0]
    }
