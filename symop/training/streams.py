"""Batches from iterables: loaders, generators, functions that return an iterator for an epoch."""

import inspect
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import jax
import numpy as np

from registry.errors import ArgumentError, FeedError
from symop.runtime.placement import Placement

Batch = dict[str, Any]
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Stream:
    """The batches of each epoch, from an iterable or a function.

    Attributes:
        steps: the number of steps of an epoch; None if the data determines it.
    """

    def __init__(self, what: str, data: Any, inputs: Sequence[str], steps: int | None) -> None:
        """Describes the batches.

        Args:
            what: the caller, for messages.
            data: an iterable, which is iterated again for each epoch; an iterator, whose next
                ``steps`` batches are an epoch; or a function that returns either, without
                arguments, or of the number of the epoch (one that it needs, or calls ``epoch``).
            inputs: the names of the inputs, in the order of those of a batch that is a tuple.
            steps: the number of steps of an epoch; None for all batches.

        Raises:
            ArgumentError: ``data`` is none of these.
        """
        if not (callable(data) or isinstance(data, Iterable)):
            raise ArgumentError(
                f"{what}: data must be a dict of arrays, an iterable of batches, or a function "
                f"that returns one, got {type(data).__name__}"
            )
        self._what, self._data, self._inputs, self.steps = what, data, list(inputs), steps
        self._once = isinstance(data, Iterator)
        self._taken = 0

    def batches(self, epoch: int, skip: int = 0) -> Iterator[Batch]:
        """Yields the batches of an epoch, without the first ``skip`` of them.

        Raises:
            ArgumentError: an iterator without a number of steps is asked for another epoch.
        """
        if self._once:
            return self._rest(epoch, skip)
        data = self._of_epoch(epoch) if callable(self._data) else self._data
        return map(self._batch, islice(iter(data), skip, self.steps))

    def _rest(self, epoch: int, skip: int) -> Iterator[Batch]:
        """Yields the next batches of an iterator; a resumed epoch comes after those before it."""
        if self.steps is None and self._taken:
            raise ArgumentError(
                f"{self._what}: an iterator yields its batches once, so that several epochs need "
                "steps=, the number of steps of each; or pass a function that returns an iterator"
            )
        start = skip if self.steps is None else max(epoch * self.steps + skip - self._taken, 0)
        stop = None if self.steps is None else start + self.steps - skip
        for i, batch in enumerate(islice(self._data, start, stop)):
            self._taken += start + 1 if i == 0 else 1
            yield self._batch(batch)

    def _of_epoch(self, epoch: int) -> Any:
        try:
            parameters = inspect.signature(self._data).parameters.values()
        except ValueError:  # a function of C without a signature
            return self._data()
        positional = [one for one in parameters if one.kind in _POSITIONAL]
        takes = any(one.default is one.empty or one.name == "epoch" for one in positional)
        return self._data(epoch) if takes else self._data()

    def _batch(self, batch: Any) -> Batch:
        """Returns a batch by names.

        Raises:
            FeedError: it is neither a dict nor a tuple of as many arrays as there are inputs.
        """
        if isinstance(batch, Mapping):
            return dict(batch)
        if isinstance(batch, (tuple, list)) and len(batch) == len(self._inputs):
            return dict(zip(self._inputs, batch, strict=True))
        raise FeedError(
            f"{self._what}: a batch must be a dict of, or a tuple of {len(self._inputs)} arrays: "
            f"{', '.join(self._inputs)}, got {type(batch).__name__}"
        )


def prefetched(
    batches: Iterable[Batch], count: int, placement: Placement | None
) -> Iterator[Batch]:
    """Yields batches, of which the next ``count`` are being copied to the devices meanwhile.

    On the CPU, whose memory holds them already, nothing is copied.
    """
    devices = jax.devices() if placement is None else list(placement.mesh.devices.flat)
    if count == 0 or devices[0].platform == "cpu":
        yield from batches
        return
    waiting: deque[Batch] = deque()
    place = _copied_to_device if placement is None else _placing(placement)
    for batch in batches:
        waiting.append(place(batch))
        if len(waiting) > count:
            yield waiting.popleft()
    while waiting:
        yield waiting.popleft()


def _copied_to_device(batch: Batch) -> Batch:
    # A loader may use the memory of a batch again while it is being copied.
    copied = {n: one.copy() if isinstance(one, np.ndarray) else one for n, one in batch.items()}
    return {name: jax.device_put(one) for name, one in copied.items()}


def _placing(placement: Placement) -> Callable[[Batch], Batch]:
    return lambda batch: placement.put_feed("fit", batch)
