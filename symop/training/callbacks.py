"""Callbacks of ``Trainer.fit``: what happens after a step or an epoch; early stopping."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp

from registry.errors import ArgumentError, nearest
from registry.tracebacks import api_boundary
from symop.training.history import History
from symop.training.state import Arrays, TrainState


@dataclasses.dataclass
class Fit:
    """A call of ``Trainer.fit``, as its callbacks see it.

    Attributes:
        state: the state, which each step replaces; copy what is to be kept of it.
        epochs: the number of epochs.
        steps: the number of steps of an epoch; None if only the data knows it.
        epoch: the number of epochs that are complete; in ``on_step``, before this one.
        position: the number of steps taken in this epoch.
        step: the number of steps taken in all, as ``state.step``.
        values: the loss and metrics of the last step, arrays that may still be computed.
        metrics: the metrics of the last epoch: means over its steps, and those of validation.
        history: the metrics of all epochs.
        stopped: why training ends before the last epoch; empty if it does not.
    """

    state: TrainState
    epochs: int
    steps: int | None = None
    epoch: int = 0
    position: int = 0
    step: int = 0
    values: Arrays = dataclasses.field(default_factory=dict)
    metrics: dict[str, Any] = dataclasses.field(default_factory=dict)
    history: History = dataclasses.field(default_factory=History)
    stopped: str = ""

    def stop(self, reason: str = "a callback asked for it") -> None:
        """Ends training after this step."""
        self.stopped = reason


class Callback:
    """Base class of callbacks of ``Trainer.fit``; each method does nothing.

    A callback need not derive from it: ``fit`` calls those of the methods that an object has. A
    plain function is called after each epoch.

    Example:
        >>> class Printing(Callback):
        ...     def on_epoch(self, fit):
        ...         print(f"epoch {fit.epoch}: loss {fit.metrics['loss']:.2f}")
    """

    def on_start(self, fit: Fit) -> None:
        """Called before the first step."""

    def on_step(self, fit: Fit) -> None:
        """Called after each step."""

    def on_epoch(self, fit: Fit) -> None:
        """Called after each epoch, and its validation."""

    def on_end(self, fit: Fit) -> None:
        """Called at the end, unless an exception ends training."""

    def saved(self) -> Any:
        """Returns what a checkpoint keeps: a pytree of arrays and numbers of a fixed structure."""
        return ()

    def restore(self, saved: Any) -> None:
        """Takes what ``saved`` returned when the checkpoint was written."""


Act = Callable[[Fit], Any]


def acts(callbacks: Sequence[Any], name: str) -> list[Act]:
    """Returns the methods ``name`` of callbacks that do something.

    Raises:
        ArgumentError: a callback is neither a function nor an object with one of the methods.
    """
    return [act for one in callbacks if (act := _act(one, name)) is not None]


_METHODS = ("on_start", "on_step", "on_epoch", "on_end")


def _act(callback: Any, name: str) -> Act | None:
    if not any(hasattr(callback, method) for method in _METHODS):
        if callable(callback):
            return callback if name == "on_epoch" else None
        raise ArgumentError(
            f"fit: a callback must be a function, or an object with some of "
            f"{', '.join(_METHODS)}, got {callback!r}"
        )
    method: Act | None = getattr(callback, name, None)
    inherited = getattr(method, "__func__", None) is getattr(Callback, name)
    return None if inherited else method


class EarlyStopping(Callback):
    """Ends training if a metric does not improve any more, and goes back to the best state.

    Attributes:
        best: the best value of the metric.
        epoch: the number of epochs after which it was reached.

    Example:
        >>> stopping = EarlyStopping("val_accuracy", patience=3, mode="max")
    """

    @api_boundary
    def __init__(
        self,
        monitor: str = "val_loss",
        *,
        patience: int = 5,
        mode: Literal["min", "max"] = "min",
        least: float = 0.0,
        restore_best: bool = True,
    ) -> None:
        """Describes when to stop.

        Args:
            monitor: the name of the metric.
            patience: the number of epochs without improvement after which training ends.
            mode: whether the smallest or the largest value is the best.
            least: the least change that counts as an improvement.
            restore_best: whether the state becomes that of the best epoch at the end. It is kept on
                the devices meanwhile.

        Raises:
            ArgumentError: ``mode`` or ``patience`` is invalid.
        """
        if mode not in ("min", "max"):
            raise ArgumentError(f"EarlyStopping: mode must be 'min' or 'max', got {mode!r}")
        if patience < 1:
            raise ArgumentError(f"EarlyStopping: patience must be at least 1, got {patience}")
        self.monitor, self.patience, self.least = monitor, patience, least
        self._sign, self._restores = 1 if mode == "min" else -1, restore_best
        self.best, self.epoch = self._sign * math.inf, 0
        self._kept: TrainState | None = None

    def on_start(self, fit: Fit) -> None:
        """Forgets an earlier training."""
        self.best, self.epoch = self._sign * math.inf, 0
        self._keep(fit.state)

    def on_epoch(self, fit: Fit) -> None:
        """Compares the metric with the best one.

        Raises:
            ArgumentError: there is no such metric.
        """
        if self.monitor not in fit.metrics:
            raise ArgumentError(
                f"EarlyStopping: the metric must be one of {', '.join(fit.metrics)}, got "
                f"{self.monitor!r}{nearest(self.monitor, fit.metrics)}"
            )
        value = float(fit.metrics[self.monitor])
        if self._sign * value < self._sign * self.best - self.least:
            self.best, self.epoch = value, fit.epoch
            self._keep(fit.state)
        elif fit.epoch - self.epoch >= self.patience:
            fit.stop(f"{self.monitor} has not improved for {self.patience} epochs")

    def on_end(self, fit: Fit) -> None:
        """Goes back to the best state, if there is one."""
        if self._kept is not None and self.epoch and self.epoch != fit.epoch:
            fit.state.become(_copy(self._kept))

    def saved(self) -> Any:
        """Returns the best value, its epoch and its state."""
        return {"best": self.best, "epoch": self.epoch, "state": self._kept}

    def restore(self, saved: Any) -> None:
        """Takes the best value, its epoch and its state."""
        self.best, self.epoch, self._kept = saved["best"], saved["epoch"], saved["state"]

    def _keep(self, state: TrainState) -> None:
        if self._restores:
            self._kept = _copy(state)


def _copy(state: TrainState) -> TrainState:
    """Returns a state of other arrays, which are placed alike."""
    copied: TrainState = jax.tree.map(jnp.copy, state)
    return copied
