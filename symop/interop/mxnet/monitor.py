"""Monitor: logs statistics of a model's arrays every few batches."""

import logging
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from symop.interop.mxnet.arrays import NDArray, array_of
from symop.interop.mxnet.executor import Executor

Entry = tuple[int, str, str]


class Monitor:
    """Computes a statistic of every array whose name matches, every ``interval`` batches.

    Args:
        interval: the number of batches.
        stat_func: the statistic, one or several arrays; defaults to ``|x| / sqrt(size)``.
        pattern: a regular expression that matches the start of names.
        sort: whether to sort results by name.
        monitor_all: whether inputs of operators are included, too.
    """

    def __init__(
        self,
        interval: int,
        stat_func: Callable[[NDArray], Any] | None = None,
        pattern: str = ".*",
        sort: bool = False,
        monitor_all: bool = False,
    ) -> None:
        """See the class."""
        self.interval, self.stat_func = interval, stat_func or _size_of
        self.re_prog, self.sort, self.monitor_all = re.compile(pattern), sort, monitor_all
        self.activated, self.step = False, 0
        self.queue: list[tuple[int, str, Any]] = []
        self.exes: list[Executor] = []

    def install(self, exe: Executor) -> None:
        """Monitors the passes of ``exe``."""
        self.exes.append(exe)
        exe.installed.append(self)

    def move(self, old: Executor, new: Executor) -> None:
        """Monitors the passes of ``new``, made from ``old`` for other shapes, in its place."""
        self.exes = [new if one is old else one for one in self.exes]
        new.installed.append(self)

    def stat_helper(self, name: str, array: NDArray) -> None:
        """Records the statistic of an array if the monitor is active and the name matches."""
        if self.activated and self.re_prog.match(name):
            self.queue.append((self.step, name, self.stat_func(array)))

    def tic(self) -> None:
        """Marks the start of a batch."""
        if self.step % self.interval == 0:
            self.queue, self.activated = [], True
            for one in self.exes:
                one.set_monitor_callback(self.stat_helper, self.monitor_all)
        self.step += 1

    def toc(self) -> list[Entry]:
        """Marks the end of a batch; returns step, name and text of each recorded statistic."""
        if not self.activated:
            return []
        for one in self.exes:
            one.set_monitor_callback(None)
            for name, array in {**one.arg_dict, **one.aux_dict}.items():
                self.stat_helper(name, array)
        self.activated = False
        found = sorted(self.queue, key=lambda entry: entry[1]) if self.sort else self.queue
        self.queue = []
        return [(step, name, _text(value)) for step, name, value in found]

    def toc_print(self) -> None:
        """Calls ``toc`` and logs the results."""
        for step, name, text in self.toc():
            logging.info("Batch: %7d %30s %s", step, name, text)


def _size_of(array: NDArray) -> NDArray:
    value = array.asnumpy()
    return array_of(np.reshape(np.linalg.norm(value) / math.sqrt(value.size), (1,)))


def _text(value: Any) -> str:
    arrays = value if isinstance(value, list) else [value]
    plain = [one.asnumpy() if isinstance(one, NDArray) else np.asarray(one) for one in arrays]
    return "".join(f"{one.item() if one.size == 1 else one}\t" for one in plain)
