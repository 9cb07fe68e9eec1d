"""Logs of ``Trainer.fit``: lines of JSON, and files for TensorBoard."""

import importlib
import json
import math
import os
import time
from pathlib import Path
from typing import Any

import jax

from registry.errors import ArgumentError, missing_extra
from symop.training.callbacks import Callback, Fit
from symop.training.optimizers import learning_rate_of


class Log(Callback):
    """Base class of logs: the metrics of each epoch, and of each n-th step.

    Of several processes, the first one writes.
    """

    def __init__(self, every: int | None = None) -> None:
        """Describes when to write: after each epoch, and after each ``every``-th step."""
        if every is not None and every < 1:
            raise ArgumentError(f"{type(self).__name__}: every must be at least 1, got {every}")
        self.every = every
        self._since = time.monotonic()

    def on_step(self, fit: Fit) -> None:
        """Writes the loss and metrics of the step."""
        if self.every is not None and fit.step % self.every == 0 and jax.process_index() == 0:
            self._write("step", fit, {**_numbers(fit.values), **_rate(fit)})

    def on_epoch(self, fit: Fit) -> None:
        """Writes the metrics of the epoch."""
        if jax.process_index() == 0:
            self._write("epoch", fit, {**_numbers(fit.metrics), **_rate(fit)})

    def _write(self, event: str, fit: Fit, values: dict[str, float]) -> None:
        """Writes the metrics after a step or an epoch."""
        raise NotImplementedError  # by subclasses


def _numbers(values: Any) -> dict[str, float]:
    return {name: float(value) for name, value in values.items()}


def _rate(fit: Fit) -> dict[str, float]:
    rate = learning_rate_of(fit.state.opt_state)
    return {} if rate is None else {"learning_rate": float(rate)}


class JsonLines(Log):
    """A log of one JSON object a line: ``event``, ``epoch``, ``step``, ``seconds``, and metrics.

    A training that goes on after some steps, resumed or not, continues the file, if there is one,
    behind the lines of these steps; a training from the first step begins it anew. Numbers that are
    not finite, which JSON lacks, are null.

    Example:
        >>> log = JsonLines("runs/log.jsonl", every=100)
    """

    def __init__(self, path: str | os.PathLike[str], *, every: int | None = None) -> None:
        """Describes the log.

        Args:
            path: the file.
            every: the number of steps after which the metrics of a step are written; None for
                those of epochs alone.
        """
        super().__init__(every)
        self._path = Path(path)

    def on_start(self, fit: Fit) -> None:
        """Begins the file, or drops what a resumed training writes again."""
        self._since = time.monotonic()
        if jax.process_index() != 0:
            return
        goes_on = fit.step and self._path.exists()
        before = self._path.read_text(encoding="utf-8").splitlines() if goes_on else []
        self._path.parent.mkdir(parents=True, exist_ok=True)
        kept = [line for line in before if _step_of(line) <= fit.step]
        self._path.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")

    def _write(self, event: str, fit: Fit, values: dict[str, float]) -> None:
        finite = {name: one if math.isfinite(one) else None for name, one in values.items()}
        seconds = round(time.monotonic() - self._since, 3)
        line = {"event": event, "epoch": fit.epoch, "step": fit.step, "seconds": seconds, **finite}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def _step_of(line: str) -> float:
    """Returns the step of a line; infinity for one that a killed process has not finished."""
    try:
        return int(json.loads(line)["step"])
    except json.JSONDecodeError:
        return math.inf


_WRITERS = ("tensorboardX", "torch.utils.tensorboard")


class TensorBoard(Log):
    """A log for TensorBoard, by the package tensorboardX, or by PyTorch or TensorFlow.

    Example:
        >>> TensorBoard("runs/first", every=100)  # doctest: +SKIP
    """

    def __init__(self, folder: str | os.PathLike[str], *, every: int | None = None) -> None:
        """Describes the log.

        Args:
            folder: the folder of the run.
            every: as for ``JsonLines``.

        Raises:
            MissingExtraError: no package that writes such files is installed.
        """
        super().__init__(every)
        self._folder, self._open = os.fspath(folder), _writer_class()
        self._writer: Any = None

    def on_start(self, fit: Fit) -> None:
        """Opens the log."""
        if jax.process_index() == 0:
            self._writer = self._open(self._folder)

    def on_end(self, fit: Fit) -> None:
        """Closes the log."""
        if self._writer is not None:
            self._writer.close()

    def _write(self, event: str, fit: Fit, values: dict[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(f"{event}/{name}", value, fit.step)
        self._writer.flush()


def _writer_class() -> Any:
    """Returns the class of a writer with ``add_scalar``, ``flush`` and ``close``.

    Raises:
        MissingExtraError: there is none.
    """
    for name in _WRITERS:
        try:
            return importlib.import_module(name).SummaryWriter
        except ImportError:
            continue
    try:
        return _OfTensorFlow.of(importlib.import_module("tensorflow").summary)
    except ImportError:
        raise missing_extra("TensorBoard", "tensorboardX", "tensorboard") from None


class _OfTensorFlow:
    """A writer of TensorFlow, with the methods of the other ones."""

    def __init__(self, summary: Any, folder: str) -> None:
        self._summary, self._writer = summary, summary.create_file_writer(folder)

    @classmethod
    def of(cls, summary: Any) -> Any:
        """Returns the function that opens a writer in a folder."""
        return lambda folder: cls(summary, folder)

    def add_scalar(self, name: str, value: float, step: int) -> None:
        """Writes a number."""
        with self._writer.as_default():
            self._summary.scalar(name, value, step)

    def flush(self) -> None:
        """Writes what is not yet in the file."""
        self._writer.flush()

    def close(self) -> None:
        """Closes the file."""
        self._writer.close()
