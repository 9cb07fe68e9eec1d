"""The loop of ``Trainer.fit``: epochs of steps, validation, callbacks and checkpoints."""

import functools
import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from registry.errors import ArgumentError
from symop.training.callbacks import Act, Fit, acts
from symop.training.history import VALIDATION, History
from symop.training.optimizers import learning_rate_of
from symop.training.state import Arrays, TrainState

_AHEAD = 64
"""The number of steps whose metrics may still be computed when the next one starts."""


class Source(Protocol):
    """The batches of each epoch."""

    steps: int | None

    def batches(self, epoch: int, skip: int = 0) -> Iterator[dict[str, Any]]:
        """Yields the batches of an epoch, without the first ``skip`` of them."""


class Folder(Protocol):
    """A folder of checkpoints, such as ``so.checkpoint.Folder``."""

    metric: str | None
    preemption: Any
    latest: int | None

    def save(  # as of the class
        self, step: int, state: Any, metrics: Any, *, force: bool, notes: Callable[[], str]
    ) -> bool:
        """Saves a step."""

    def restore(self, like: Any) -> Any:
        """Returns the latest step."""

    def notes(self, step: int) -> str:
        """Returns the notes of a step."""

    def wait(self) -> None:
        """Waits until the steps are written."""


class Checkpoints(NamedTuple):
    """When ``Trainer.fit`` saves its state, and where.

    Attributes:
        folder: a ``so.checkpoint.Folder``.
        epochs: the number of epochs after which the state is saved; None for never.
        steps: the number of steps after which it is saved, also in the middle of an epoch; None
            for never.

    Example:
        >>> import symop as so
        >>> folder = so.checkpoint.Folder("runs/first", keep=3)
        >>> often = Checkpoints(folder, steps=1000)
    """

    folder: Any
    epochs: int | None = 1
    steps: int | None = None


class Means:
    """The means of the metrics of the steps of an epoch, added in float64."""

    def __init__(self, sums: Mapping[str, float] | None = None, count: int = 0) -> None:
        """Starts from the sums of ``count`` steps."""
        self._sums, self._count = dict(sums or {}), count
        self._waiting: deque[Arrays] = deque()

    def add(self, values: Arrays) -> None:
        """Adds the metrics of a step, which need not be computed yet."""
        self._waiting.append(values)
        if len(self._waiting) > _AHEAD:
            self._take()

    def _take(self) -> None:
        for name, value in self._waiting.popleft().items():
            # The method of JAX's arrays that float() calls takes six times as long.
            number = float(np.asarray(value))
            self._sums[name] = self._sums.get(name, 0.0) + number
        self._count += 1

    def so_far(self) -> tuple[dict[str, float], int]:
        """Returns the sums, and the number of steps."""
        while self._waiting:
            self._take()
        return self._sums, self._count

    def means(self) -> dict[str, float]:
        """Returns the means."""
        sums, count = self.so_far()
        return {name: value / count for name, value in sums.items()}


class Loop:
    """The loop of one call of ``Trainer.fit``."""

    def __init__(
        self,
        step: Callable[[TrainState, Any], tuple[TrainState, Arrays]],
        source: Source,
        *,
        callbacks: Sequence[Any],
        checkpoints: Checkpoints | None,
        validate: Callable[[TrainState], Mapping[str, float]] | None,
        after_epoch: Callable[[int, TrainState, Arrays], Arrays | None] | None,
    ) -> None:
        """Describes the loop.

        Args:
            step: takes a step.
            source: the batches.
            callbacks: the callbacks.
            checkpoints: when the state is saved; None for never.
            validate: returns the metrics of validation; None without.
            after_epoch: returns further metrics of an epoch, or None.
        """
        self._step, self._source = step, source
        self._callbacks, self._checkpoints = callbacks, checkpoints
        self._validate, self._after_epoch = validate, after_epoch
        self._means = Means()
        self._on_step = acts(callbacks, "on_step")

    def run(self, fit: Fit, bar: Callable[[Fit], Any]) -> None:
        """Trains; ``bar`` returns the progress bar, once it is known where training starts."""
        self._start(fit)
        with bar(fit) as shown:
            while fit.epoch < fit.epochs and not fit.stopped:
                self._epoch(fit, shown)
        _call(acts(self._callbacks, "on_end"), fit)
        if self._checkpoints is not None:
            self._checkpoints.folder.wait()

    def _epoch(self, fit: Fit, shown: Any) -> None:
        """Runs the rest of an epoch, unless a callback stops it in the middle."""
        for batch in self._source.batches(fit.epoch, fit.position):
            fit.state, fit.values = self._step(fit.state, batch)
            self._means.add(fit.values)
            fit.step, fit.position = fit.step + 1, fit.position + 1
            shown.update(1)
            _call(self._on_step, fit)
            if fit.stopped:
                break
            # The last step of an epoch is saved with the metrics of the epoch.
            if self._checkpoints is not None and fit.position != fit.steps:
                due = _is_due(self._checkpoints.steps, fit.step)
                self._save(fit, self._checkpoints.folder, due, {})
        if not fit.position:
            raise ArgumentError("fit: an epoch must have a batch, got none")
        self._end_epoch(fit)
        shown.set_postfix({name: f"{value:.4g}" for name, value in fit.metrics.items()})

    def _end_epoch(self, fit: Fit) -> None:
        metrics: dict[str, Any] = self._means.means()
        if self._validate is not None:
            validation = self._validate(fit.state)
            metrics.update({VALIDATION + name: value for name, value in validation.items()})
        if self._after_epoch is not None:
            metrics.update(self._after_epoch(fit.epoch, fit.state, metrics) or {})
        rate = learning_rate_of(fit.state.opt_state)
        if rate is not None:
            metrics.setdefault("learning_rate", float(rate))
        fit.metrics = metrics
        fit.history.append(metrics)
        fit.epoch, fit.position, self._means = fit.epoch + 1, 0, Means()
        _call(acts(self._callbacks, "on_epoch"), fit)
        if self._checkpoints is not None:
            self._save_epoch(fit, self._checkpoints)

    # Checkpoints

    def _save_epoch(self, fit: Fit, checkpoints: Checkpoints) -> None:
        """Saves the state after an epoch, if the epoch or the step is due, or at the end."""
        epochs, steps = checkpoints.epochs, checkpoints.steps
        ends = bool(fit.stopped) or fit.epoch == fit.epochs
        due = ends or _is_due(epochs, fit.epoch) or _is_due(steps, fit.step)
        self._save(fit, checkpoints.folder, due, fit.metrics)

    def _save(self, fit: Fit, folder: Folder, due: bool, metrics: Mapping[str, Any]) -> None:
        """Saves the state if that is due, or if the process must end."""
        if not due and (folder.preemption is None or not folder.preemption.reached(fit.step)):
            return
        numbers = {name: one for name, one in metrics.items() if _is_number(one)}
        if folder.metric is not None:  # in the middle of an epoch there is none
            numbers.setdefault(folder.metric, float("nan"))
        notes = functools.partial(self._notes, fit)
        folder.save(fit.step, self._tree(fit), numbers, force=True, notes=notes)

    def _tree(self, fit: Fit) -> Any:
        """Returns the arrays and numbers of a checkpoint."""
        kept = [one.saved() for one in self._callbacks if hasattr(one, "saved")]
        return {"state": fit.state, "callbacks": kept}

    def _notes(self, fit: Fit) -> str:
        """Returns what a checkpoint contains in addition to arrays: how far training has come."""
        sums, count = self._means.so_far()
        history = [{n: float(v) for n, v in one.items() if _is_number(v)} for one in fit.history]
        return json.dumps(
            {
                **{"epoch": fit.epoch, "position": fit.position, "stopped": fit.stopped},
                **{"sums": sums, "count": count, "history": history},
            }
        )

    def _start(self, fit: Fit) -> None:
        """Starts callbacks, and goes on from the latest checkpoint if there is one."""
        folder = None if self._checkpoints is None else self._checkpoints.folder
        latest = None if folder is None else folder.latest
        if folder is not None and latest is not None:
            self._resume(fit, latest, json.loads(folder.notes(latest)))
        _call(acts(self._callbacks, "on_start"), fit)
        if folder is not None and latest is not None:
            tree = folder.restore(self._tree(fit))
            fit.state.become(tree["state"])
            savers = [one for one in self._callbacks if hasattr(one, "saved")]
            for one, saved in zip(savers, tree["callbacks"], strict=True):
                one.restore(saved)

    def _resume(self, fit: Fit, step: int, notes: Mapping[str, Any]) -> None:
        fit.step, fit.epoch, fit.position = step, notes["epoch"], notes["position"]
        fit.history, fit.stopped = History(notes["history"]), notes["stopped"]
        fit.metrics = dict(fit.history[-1]) if fit.history else {}
        self._means = Means(notes["sums"], notes["count"])


def _call(functions: Sequence[Act], fit: Fit) -> None:
    for one in functions:
        one(fit)


def _is_due(every: int | None, count: int) -> bool:
    return every is not None and count % every == 0


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def checkpoints_of(value: Any) -> Checkpoints | None:
    """Returns when and where states are saved: after each epoch, if only the folder is given.

    Raises:
        ArgumentError: ``value`` is neither a folder nor ``Checkpoints``, or a number is invalid.
    """
    if value is None:
        return None
    result = value if isinstance(value, Checkpoints) else Checkpoints(value)
    if not hasattr(result.folder, "restore"):
        raise ArgumentError(
            "fit: checkpoints must be a so.checkpoint.Folder, or train.Checkpoints of one, got "
            f"{value!r}"
        )
    for name in ("epochs", "steps"):
        number = getattr(result, name)
        if number is not None and (not isinstance(number, int) or number < 1):
            raise ArgumentError(f"Checkpoints: {name} must be an integer from 1 on, got {number!r}")
    return result
