"""A folder of checkpoints, one for each saved step: sharded, asynchronous, written by orbax.

A step is written under a temporary name and renamed when it is complete, so that a step that is
listed is complete. A step that is no longer kept is first renamed, then deleted, for the same
reason. Both hold at a kill of the process at any moment.
"""

import contextlib
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, Self

import jax

from registry.errors import ArgumentError, FormatError
from symop.checkpoint.step import contents, metrics_of, notes_of, orbax, restore, seal
from symop.io.files import PathLike

_DELETED = "deleted"
"""The folder of steps that are being deleted."""


class Preemption(Protocol):
    """Says at a step whether the process must save and exit."""

    def reached(self, step: int) -> bool:
        """Whether to save ``step`` and exit; all processes get the same answer."""

    def leave(self) -> None:
        """Exits."""


class Folder:
    """A folder of checkpoints of one training run, one for each saved step.

    ``save`` copies the state and returns; the step is written meanwhile, and listed by ``steps``
    once it is complete. The arrays may be sharded over the devices of several processes, each of
    which calls ``save`` and ``restore``; ``path`` is then on a file system that all of them share.
    One job at a time writes to a folder; others may read it.

    Needs the extra ``scale``.

    Example:
        >>> import tempfile, jax.numpy as jnp, symop as so
        >>> state = {"w": jnp.zeros(3), "epoch": 0}
        >>> with tempfile.TemporaryDirectory() as path:
        ...     with so.checkpoint.Folder(path, keep=2, best="loss") as checkpoints:
        ...         for step, loss in enumerate([3.0, 1.0, 2.0, 4.0]):
        ...             state = {"w": state["w"] + 1, "epoch": step}
        ...             started = checkpoints.save(step, state, {"loss": loss})
        ...     checkpoints.steps(), checkpoints.best, checkpoints.restore(state, step=1)
        ([1, 2, 3], 1, {'epoch': 1, 'w': Array([2., 2., 2.], dtype=float32)})
    """

    def __init__(
        self,
        path: PathLike,
        *,
        every: int = 1,
        keep: int | None = 3,
        best: str | None = None,
        mode: Literal["min", "max"] = "min",
        asynchronous: bool = True,
    ) -> None:
        """Describes the folder; the first ``save`` creates it.

        Args:
            path: the folder.
            every: ``save`` skips steps that are not multiples of this number.
            keep: the number of steps to keep, the latest ones; None to keep all.
            best: the metric by which one more step is kept, the best of all.
            mode: whether the smallest or the largest metric is the best.
            asynchronous: whether ``save`` returns while the step is being written.

        Raises:
            ArgumentError: an argument is not one of these.
            MissingExtraError: orbax is not installed.
        """
        for name, value in {"every": every, "keep": 1 if keep is None else keep}.items():
            if not isinstance(value, int) or value < 1:
                raise ArgumentError(f"Folder: {name} must be an integer from 1 on, got {value!r}")
        if mode not in ("min", "max"):
            raise ArgumentError(f"Folder: mode must be 'min' or 'max', got {mode!r}")
        self._orbax, self._path = orbax(), _absolute(path)
        self.every, self.keep = every, keep
        self.metric, self._mode, self._asynchronous = best, mode, asynchronous
        self._manager: Any = None
        self._writing: int | None = None  # the step that is being written, or was the last to be
        self._started: int | None = None  # the same, unless it has to be started again
        self._known: dict[int, dict[str, float]] = {}
        self.preemption: Preemption | None = None

    def __repr__(self) -> str:
        return f"Folder({str(self._path)!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What is saved

    def steps(self) -> list[int]:
        """Returns the steps that are complete, in ascending order."""
        return sorted(self._orbax.utils.checkpoint_steps(self._path))

    @property
    def latest(self) -> int | None:
        """The latest step that is complete."""
        return max(self.steps(), default=None)

    @property
    def best(self) -> int | None:
        """The complete step with the best metric, the earliest of equal ones."""
        return self._best_of(self.steps())

    def metrics(self, step: int) -> dict[str, float]:
        """Returns the metrics of a step.

        Raises:
            ArgumentError: the step is not saved.
            FormatError: the step is damaged.
        """
        return metrics_of(self._path_of(self._require(step)))

    def notes(self, step: int) -> str:
        """Returns the notes that were saved with a step.

        Raises:
            ArgumentError: the step is not saved.
            FormatError: the step is damaged.
        """
        return notes_of(self._path_of(self._require(step)))

    # Saving

    def save(
        self,
        step: int,
        state: Any,
        metrics: Mapping[str, Any] | None = None,
        *,
        force: bool = False,
        notes: Callable[[], str] = str,
    ) -> bool:
        """Copies ``state`` and starts to write it; waits for the step before, if it is not written.

        The arrays may be donated, and assigned to, as soon as this returns. A process that exits
        must call ``wait`` or ``close`` first, or use the folder in a ``with`` statement.

        Args:
            step: the number of the step, larger than those that are saved. Nothing happens if it is
                the latest of them, so that a long evaluation may call this again and again, to
                leave in time at a preemption.
            state: a ``Program``, with the state of the process's random numbers; or a pytree of
                arrays and numbers, such as a ``train.TrainState``.
            metrics: numbers to keep with the step, such as those that ``Trainer.step`` returns.
            force: whether to save a step that is not a multiple of ``every``.
            notes: returns a text to keep with the step; called only if the step is saved.

        Returns:
            Whether the step is now being written, or complete.

        Raises:
            ArgumentError: the step is not an integer from 0 on, a later one is saved already, or
                the metric of ``best`` is missing; if a preemption has been announced, it is NaN.
            DTypeError: a leaf is neither an array nor a number.
            OSError: the step before could not be written, and this one has not been started.
            SystemExit: a preemption has been announced (``on_preemption``), and the step is saved.
        """
        step, preemption = _whole(step), self.preemption
        leaving = preemption is not None and preemption.reached(step)
        if not (leaving or force or step % self.every == 0):
            return False
        if step == self._started and not leaving:
            return True
        with contextlib.suppress(*[OSError] if leaving else []):
            self.wait()
        # A preemption comes at any step, also at one that computes no metrics.
        numbers = self._numbers(metrics, {self.metric: math.nan} if leaving and self.metric else {})
        self._start(step, state, numbers, notes)
        if leaving or not self._asynchronous:
            self.wait()
        if preemption is not None and leaving:
            preemption.leave()
        return True

    def _numbers(
        self, metrics: Mapping[str, Any] | None, missing: Mapping[str, float]
    ) -> dict[str, float]:
        numbers = {**missing, **{name: float(value) for name, value in (metrics or {}).items()}}
        if self.metric is not None and self.metric not in numbers:
            raise ArgumentError(
                f"save: the metrics must hold {self.metric!r}, got {', '.join(numbers) or 'none'}"
            )
        return numbers

    def _start(
        self, step: int, state: Any, metrics: dict[str, float], notes: Callable[[], str]
    ) -> None:
        latest = self.latest
        if latest == step:
            return
        if latest is not None and step < latest:
            raise ArgumentError(
                f"save: the step must come after {latest}, the latest in {self._path}, got {step}; "
                "delete the later steps, or use another folder"
            )
        args = contents(state, metrics, notes())
        manager = self._opened()
        self._known[step], self._writing, self._started = metrics, step, None
        with self._reporting(step):
            manager.save(step, args=args, force=True)
        self._started = step

    def wait(self) -> None:
        """Waits until the step that is being written is complete.

        Raises:
            OSError: it could not be written; the steps that are complete are unchanged.
        """
        if self._manager is None:
            return
        with self._reporting(self._writing):
            self._manager.wait_until_finished()
        self._remove_deleted()

    @contextlib.contextmanager
    def _reporting(self, step: int | None) -> Iterator[None]:
        """Reports an error of orbax; the next save starts from what the folder then holds."""
        try:
            yield
        except Exception as error:
            manager, self._manager, self._started = self._manager, None, None
            with contextlib.suppress(Exception):
                manager.close()
            raise OSError(f"{self._path}: step {step} could not be written: {error}") from error

    def delete(self, step: int) -> None:
        """Deletes a step.

        Raises:
            ArgumentError: the step is not saved.
        """
        self.wait()
        self._opened().delete(self._require(step))
        self._started = None
        self._remove_deleted()

    def close(self) -> None:
        """Waits as ``wait`` does, and ends the threads that write. ``save`` starts them again.

        Raises:
            OSError: the step that was being written could not be.
        """
        self.wait()
        if self._manager is not None:
            self._manager.close()
            self._manager = None

    def _opened(self) -> Any:
        """Returns orbax's manager, which removes what a killed process has left unfinished."""
        if self._manager is None:
            self._remove_deleted()
            options = self._orbax.CheckpointManagerOptions(
                preservation_policy=_Policy(self._kept),
                cleanup_tmp_directories=True,
                todelete_subdir=_DELETED,
                async_options=self._orbax.AsyncOptions(post_finalization_callback=self._seal),
            )
            self._manager = self._orbax.CheckpointManager(self._path, options=options)
        return self._manager

    def _seal(self) -> None:
        """Completes the step that is being written, before its temporary name goes."""
        for folder in self._path.iterdir():
            if folder.name.partition(".")[0] == str(self._writing):
                seal(folder)

    def _remove_deleted(self) -> None:
        """Deletes the steps that were renamed to be deleted."""
        if jax.process_index() == 0 and (self._path / _DELETED).exists():
            (self._path / _DELETED).rmtree()

    def _kept(self, steps: list[int]) -> set[int]:
        latest = steps if self.keep is None else steps[-self.keep :]
        best = self._best_of(steps)
        return {*latest} if best is None else {*latest, best}

    def _best_of(self, steps: list[int]) -> int | None:
        if self.metric is None:
            return None
        sign = 1 if self._mode == "min" else -1
        values = {step: sign * self._value_of(step, self.metric) for step in steps}
        finite = [step for step in steps if math.isfinite(values[step])]
        return min(finite, key=lambda step: (values[step], step), default=None)

    def _value_of(self, step: int, metric: str) -> float:
        if step not in self._known:
            self._known[step] = {}
            with contextlib.suppress(FormatError):
                self._known[step] = metrics_of(self._path_of(step))
        return self._known[step].get(metric, math.nan)

    # Restoring

    def restore(self, like: Any, step: int | None = None) -> Any:
        """Reads a step; the arrays may be placed on other devices than those they were saved from.

        Args:
            like: the program whose values are replaced; or a pytree with the structure, shapes and
                dtypes of the saved one, whose leaves are arrays, numbers or
                ``jax.ShapeDtypeStruct``. Their shardings say where the arrays are placed.
            step: the step; the latest by default.

        Returns:
            The pytree; None for a program.

        Raises:
            ArgumentError: the step is not saved, or a sharding of ``like`` does not divide a shape.
            FormatError: the step is damaged, or names, shapes or dtypes differ from those of
                ``like``, which is then unchanged.
        """
        self.wait()
        return restore(self._path_of(self._require(step)), like)

    def resume(self, state: Any) -> Any:
        """Returns the latest saved state, restored like ``state``; or ``state`` if there is none.

        A program keeps its values if there is none.
        """
        self.wait()
        return state if self.latest is None else self.restore(state)

    def _require(self, step: int | None) -> int:
        steps = self.steps()
        step = max(steps, default=None) if step is None else step
        if step is None or step not in steps:
            raise ArgumentError(
                f"{self._path}: the step must be one of those saved, "
                f"{', '.join(map(str, steps)) or 'none'}, got {'none' if step is None else step}"
            )
        return step

    def _path_of(self, step: int) -> Any:
        return self._path / str(step)


class _Policy:
    """orbax's policy of what to preserve, by steps."""

    def __init__(self, kept: Callable[[list[int]], set[int]]) -> None:
        self._kept = kept

    def should_preserve(self, checkpoints: Sequence[Any], *, context: Any) -> list[bool]:
        """Returns for each checkpoint whether it stays."""
        del context
        kept = self._kept([one.step for one in checkpoints])
        return [one.step in kept for one in checkpoints]


def _whole(step: Any) -> int:
    """Returns a step as an integer of Python."""
    try:
        number = operator.index(step)
    except TypeError:
        number = -1
    if number < 0:
        raise ArgumentError(f"save: the step must be an integer from 0 on, got {step!r}")
    return number


def _absolute(path: PathLike) -> Any:
    """Returns a path as orbax takes it: absolute, on a file system or in a bucket."""
    from etils import epath  # noqa: PLC0415  # a dependency of orbax

    return epath.Path(path).resolve()
