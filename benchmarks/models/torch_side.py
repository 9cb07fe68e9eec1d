"""The models in PyTorch: their training steps, compilation, and memory."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

from models.copying import to_torch

torch.compiler.config.force_disable_caches = True
Arrays = dict[str, Any]


class TorchRunning:
    """Training steps in PyTorch; each call runs one and returns its loss."""

    def __init__(
        self, script: Any, arrays: Arrays, batches: list[Arrays], options: dict[str, Any]
    ) -> None:
        """Creates the network of a script with copies of symop's parameters.

        The script must have the same batches.
        """
        for own, one in zip(script.batches(), batches, strict=False):
            for name, value in one.items():
                np.testing.assert_array_equal(own[name], value)
        self.network = script.Network(**options)
        values = {name: tensor(one) for name, one in to_torch(arrays, self.network).items()}
        self.network.load_state_dict(values, strict=False)
        self._make_step = script.make_step
        self._batches = [{name: tensor(one) for name, one in b.items()} for b in batches]
        self._step, self._count = self._make_step(self.network), 0

    def __call__(self) -> float:
        """One step."""
        batch = self._batches[self._count % len(self._batches)]
        self._count += 1
        return float(self._step(batch))

    def compilation(self) -> float:
        """The seconds by which a first step takes longer than later ones, with empty caches."""
        torch.compiler.reset()
        self._step = self._make_step(self.network)
        first, *later = (_seconds(self) for _ in range(6))
        return first - statistics.median(later)

    def peak(self) -> int:
        """The most memory that a step holds besides the state and the batch, in bytes.

        PyTorch's allocator counts it. Libraries that it calls may allocate more.
        """
        self()
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
            self()
        events = seen.profiler.kineto_results.events()
        changes = sorted((e for e in events if e.name() == "[memory]"), key=lambda e: e.start_ns())
        held = np.cumsum([0, *(one.nbytes() for one in changes)])
        return int(held.max() - held.min())


def tensor(array: Any) -> Any:
    """A copy of an array."""
    return torch.from_numpy(np.array(array))


def _seconds(program: Callable[[], Any]) -> float:
    start = time.perf_counter()
    program()
    return time.perf_counter() - start
