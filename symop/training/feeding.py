"""Batches of several processes: each feeds its part, and all take the same number of steps."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from registry.errors import ArgumentError
from symop.graph.naming import require_known
from symop.runtime.placement import Placement
from symop.runtime.processes import Rows, Share, listed, require_same, told

Data = Mapping[str, Any]


class Feeding(NamedTuple):
    """How a process feeds an epoch.

    Attributes:
        placement: the mesh of several processes; None with one process.
        data: the arrays that it feeds from.
        length: their length.
        size: the number of examples of a batch that it feeds, or chooses from a ``Share``.
        steps: the number of batches.
    """

    placement: Placement | None
    data: Data
    length: int
    size: int
    steps: int

    def batches(self, order: np.ndarray, skip: int = 0) -> Iterator[dict[str, Any]]:
        """Yields the batches of an epoch in the given order; those of processes on the mesh.

        The first ``skip`` batches are left out.
        """
        for step in range(skip, self.steps):
            batch = self._chosen(order[step * self.size : (step + 1) * self.size])
            if self.placement is not None:
                # The processes have agreed on what determines the types of all batches.
                batch = self.placement.put_feed("fit", batch, agreed=step > skip)
            yield batch

    def _chosen(self, chosen: Any) -> dict[str, Any]:
        if isinstance(self.data, Share) and self.placement is not None:
            return Share({name: Rows(one, chosen) for name, one in self.data.items()})
        batch = {name: array[chosen] for name, array in self.data.items()}
        return Share(batch) if isinstance(self.data, Share) else batch


class Shuffled:
    """The batches of each epoch, of arrays in a random order.

    Attributes:
        steps: the number of steps of an epoch.
    """

    def __init__(self, plan: Feeding, seed: int) -> None:
        """Draws the orders of the epochs from a seed."""
        self._plan, self._seed = plan, seed
        self._drawn, self._generator = 0, np.random.default_rng(seed)
        self.steps = plan.steps

    def batches(self, epoch: int, skip: int = 0) -> Iterator[dict[str, Any]]:
        """Yields the batches of an epoch, without the first ``skip`` of them."""
        if epoch < self._drawn:
            self._drawn, self._generator = 0, np.random.default_rng(self._seed)
        for _ in range(self._drawn, epoch):
            self._generator.permutation(self._plan.length)
        self._drawn = epoch + 1
        return self._plan.batches(self._generator.permutation(self._plan.length), skip)


def common_length(data: Data, inputs: Sequence[str]) -> int:
    """Returns the length of the arrays of all inputs.

    Raises:
        ArgumentError: an input is missing, or lengths differ.
        FeedError: there is another array.
    """
    require_known("fit", data, inputs)
    lengths = {name: len(data[name]) for name in inputs if name in data}
    if len(lengths) < len(inputs) or len(set(lengths.values())) != 1:
        raise ArgumentError(
            f"fit: data must hold arrays of one length for {', '.join(inputs)}, got {lengths}"
        )
    return next(iter(lengths.values()))


def feeding(
    placement: Placement | None,
    data: Data,
    inputs: Sequence[str],
    batch_size: int,
    facts: Mapping[str, Any],
) -> Feeding:
    """Returns how this process feeds batches; all processes agree on the number of steps.

    Args:
        placement: the mesh, whose processes take the same steps; None for one device.
        data: the examples of this process, or all of them (``Share``).
        inputs: the names of the arrays.
        batch_size: the number of examples of a batch, of all processes together.
        facts: what else must be the same in all processes.

    Raises:
        ArgumentError: the processes differ in what must be the same, one has too few examples, or
            there are several processes, and no mesh.
    """
    length = common_length(data, inputs)
    if placement is None or not placement.spans:
        require_joined(placement)
        return _checked(Feeding(None, data, length, batch_size, length // batch_size))
    facts = {"batch_size": batch_size, **facts}
    if isinstance(data, Share):
        require_same("fit", placement.mesh, {**facts, "the number of examples": length})
        return _checked(Feeding(placement, data, length, batch_size, length // batch_size))
    require_same("fit", placement.mesh, facts)
    size = _part(placement, data, batch_size)
    lengths = told(placement.mesh, {"examples": length})["examples"]
    if min(lengths.values()) < size:
        raise ArgumentError(
            f"fit: each process must have the {size} examples that it feeds of a batch of "
            f"{batch_size}, got {listed(lengths)}"
        )
    return Feeding(placement, data, length, size, min(lengths.values()) // size)


def _checked(plan: Feeding) -> Feeding:
    if plan.steps == 0:
        raise ArgumentError(
            f"fit: the batch size must be at most {plan.length}, the number of examples, "
            f"got {plan.size}"
        )
    return plan


def require_joined(placement: Placement | None) -> None:
    """Checks that no process trains alone by mistake."""
    if placement is None and jax.process_count() > 1:
        raise ArgumentError(
            f"fit: with several processes, the trainer must have a mesh, got {jax.process_count()} "
            "processes and none"
        )


def _part(placement: Placement, data: Data, batch_size: int) -> int:
    """Returns the number of examples of a batch that this process feeds.

    Raises:
        ArgumentError: the batch cannot be split evenly, or the inputs are split differently.
    """
    parts = {
        name: placement.part_length(f"fit: {name!r}", name, (batch_size, *np.shape(one)[1:]))
        for name, one in data.items()
    }
    if len(set(parts.values())) > 1:
        raise ArgumentError(
            "fit: a process must feed the same number of examples of each input, unless it shares "
            f"the whole data (train.share), got {parts}"
        )
    return next(iter(parts.values()))
