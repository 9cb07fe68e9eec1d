"""A folder of checkpoints, one for each saved step: sharded, asynchronous, written by orbax.

A step is written under a temporary name and renamed when it is complete, so that a step that is
listed is complete. A step that is no longer kept is first renamed, then deleted, for the same
reason. Both hold at a kill of the process at any moment.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, Self

import jax
import msgspec
import numpy as np

from registry.errors import ArgumentError, FormatError, missing_extra
from symop.checkpoint import checksums
from symop.checkpoint.arrays import (
    copied,
    on_host,
    placed,
    require_divisible,
    require_same,
    sharding_of,
    stored_type,
)
from symop.checkpoint.states import state_of
from symop.io.files import PathLike

_ARRAYS, _INDEX, _DELETED = "arrays", "index", "deleted"
_INDEX_FILE = "metadata"
"""The file of an item that orbax's handler of JSON writes."""


_Empty = dict[str, tuple[str, list[int]]]


class _Index(msgspec.Struct, forbid_unknown_fields=True):
    """What a step holds besides arrays.

    Attributes:
        types: the types of the leaves, by name.
        empty: dtype and shape of the arrays without elements, which are stored nowhere else.
        metrics: the metrics of the step; None for one that is not finite, which JSON lacks.
        checked: whether there are checksums of the files.
    """

    types: dict[str, str]
    empty: _Empty
    metrics: dict[str, float | None]
    checked: bool


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
        for name, value in {"every": every, "keep": keep}.items():
            if value is not None and (not isinstance(value, int) or value < 1):
                raise ArgumentError(f"Folder: {name} must be at least 1, got {value!r}")
        if mode not in ("min", "max"):
            raise ArgumentError(f"Folder: mode must be 'min' or 'max', got {mode!r}")
        self._orbax, self._path = _orbax(), _absolute(path)
        self.every, self.keep = every, keep
        self._metric, self._mode, self._asynchronous = best, mode, asynchronous
        self._manager: Any = None
        self._step: int | None = None
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
        found = self._index(self._require(step)).metrics
        return {name: math.nan if one is None else one for name, one in found.items()}

    # Saving

    def save(
        self,
        step: int,
        state: Any,
        metrics: Mapping[str, Any] | None = None,
        *,
        force: bool = False,
    ) -> bool:
        """Copies ``state`` and starts to write it; waits for the step before, if it is not written.

        The arrays may be donated, and assigned to, as soon as this returns. A process that exits
        must call ``wait`` or ``close`` first, or use the folder in a ``with`` statement.

        Args:
            step: the number of the step, larger than those that are saved; nothing happens if it is
                the latest of them.
            state: a ``Program``, with the state of the process's random numbers; or a pytree of
                arrays and numbers, such as a ``train.TrainState``.
            metrics: numbers to keep with the step, such as those that ``Trainer.step`` returns.
            force: whether to save a step that is not a multiple of ``every``.

        Returns:
            Whether the step is now being written, or complete.

        Raises:
            ArgumentError: a later step is saved already, or the metric of ``best`` is missing.
            DTypeError: a leaf is neither an array nor a number.
            OSError: the step before could not be written, and this one has not been started.
            SystemExit: a preemption has been announced (``on_preemption``), and the step is saved.
        """
        preemption = self.preemption
        leaving = preemption is not None and preemption.reached(step)
        if not (leaving or force or step % self.every == 0):
            return False
        with contextlib.suppress(*[OSError] if leaving else []):
            self.wait()
        self._start(step, state, self._numbers(metrics))
        if leaving or not self._asynchronous:
            self.wait()
        if preemption is not None and leaving:
            preemption.leave()
        return True

    def _numbers(self, metrics: Mapping[str, Any] | None) -> dict[str, float]:
        numbers = {name: float(value) for name, value in (metrics or {}).items()}
        if self._metric is not None and self._metric not in numbers:
            raise ArgumentError(
                f"save: the metrics must hold {self._metric!r}, got {', '.join(numbers) or 'none'}"
            )
        return numbers

    def _start(self, step: int, state: Any, metrics: dict[str, float]) -> None:
        latest = self.latest
        if latest == step:
            return
        if latest is not None and step < latest:
            raise ArgumentError(
                f"save: the step must come after {latest}, the latest in {self._path}, got {step}; "
                "delete the later steps, or use another folder"
            )
        args = self._arguments(state, metrics)
        self._known[step], self._step = metrics, step
        manager = self._opened()
        with self._reporting(step):
            manager.save(step, args=args, force=True)

    def _arguments(self, state: Any, metrics: dict[str, float]) -> Any:
        """Returns what orbax writes: copies of the arrays, and the index."""
        named = state_of(state)
        leaves, types = named.leaves(), named.types()
        stored = {name: stored_type(name, leaf) for name, leaf in leaves.items()}
        # orbax refuses arrays without elements.
        arrays = {name: copied(leaf) for name, leaf in leaves.items() if stored[name].size}
        empty = {
            name: (one.dtype.name, list(one.shape)) for name, one in stored.items() if not one.size
        }
        finite = {name: one if math.isfinite(one) else None for name, one in metrics.items()}
        index = msgspec.to_builtins(_Index(types, empty, finite, jax.process_count() == 1))
        args = self._orbax.args
        items = {_ARRAYS: args.PyTreeSave(arrays)} if arrays else {}
        return args.Composite(**items, **{_INDEX: args.JsonSave(index)})

    def wait(self) -> None:
        """Waits until the step that is being written is complete.

        Raises:
            OSError: it could not be written; the steps that are complete are unchanged.
        """
        if self._manager is None:
            return
        with self._reporting(self._step):
            self._manager.wait_until_finished()
        self._remove_deleted()

    @contextlib.contextmanager
    def _reporting(self, step: int | None) -> Iterator[None]:
        """Reports an error of orbax; the next save starts from what the folder then holds."""
        try:
            yield
        except Exception as error:
            manager, self._manager = self._manager, None
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
                async_options=self._orbax.AsyncOptions(post_finalization_callback=self._check),
            )
            self._manager = self._orbax.CheckpointManager(self._path, options=options)
        return self._manager

    def _check(self) -> None:
        """Writes the checksums of the step that is about to be renamed.

        Of several processes, the first would have to read what all of them have written.
        """
        if jax.process_count() > 1:
            return
        for folder in self._path.iterdir():
            if folder.name.partition(".")[0] == str(self._step):
                checksums.write(folder, [_ARRAYS, _INDEX])

    def _remove_deleted(self) -> None:
        """Deletes the steps that were renamed to be deleted."""
        if jax.process_index() == 0 and (self._path / _DELETED).exists():
            (self._path / _DELETED).rmtree()

    def _kept(self, steps: list[int]) -> set[int]:
        latest = steps if self.keep is None else steps[-self.keep :]
        best = self._best_of(steps)
        return {*latest} if best is None else {*latest, best}

    def _best_of(self, steps: list[int]) -> int | None:
        if self._metric is None:
            return None
        sign = 1 if self._mode == "min" else -1
        values = {step: sign * self._value_of(step, self._metric) for step in steps}
        known = [step for step in steps if math.isfinite(values[step])]
        return min(known, key=lambda step: (values[step], step), default=None)

    def _value_of(self, step: int, metric: str) -> float:
        if step not in self._known:
            try:
                self._known[step] = self.metrics(step)
            except FormatError:
                self._known[step] = {}
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
        step = self._require(step)
        whole = checksums.verify(self._path / str(step))
        index, named = self._index(step), state_of(like)
        if index.checked and not whole:
            raise FormatError(f"{self._path / str(step)}: there must be checksums, got none")
        require_same(f"{self._path}: step {step}", named.types(), index.types)
        likes = named.likes()
        for name, one in likes.items():
            require_divisible(name, one)
        arrays = self._arrays(step, likes, index.empty)
        return named.replaced({name: placed(arrays[name], one) for name, one in likes.items()})

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

    def _index(self, step: int) -> _Index:
        path = self._path / str(step) / _INDEX / _INDEX_FILE
        with _reading(path):
            return msgspec.json.decode(path.read_bytes(), type=_Index)

    def _arrays(self, step: int, likes: Mapping[str, Any], empty: _Empty) -> dict[str, Any]:
        """Reads the stored arrays, on the devices that ``likes`` asks for."""
        arrays: dict[str, Any] = {n: np.zeros(shape, dtype) for n, (dtype, shape) in empty.items()}
        wanted = {name: self._how(name, one) for name, one in likes.items() if name not in empty}
        if not wanted:
            return arrays
        ocp, path = self._orbax, self._path / str(step)
        args = ocp.args.PyTreeRestore(item=dict.fromkeys(wanted, 0), restore_args=wanted)
        with (
            _reading(path),
            contextlib.closing(ocp.Checkpointer(ocp.CompositeCheckpointHandler())) as reader,
        ):
            found = reader.restore(path, args=ocp.args.Composite(**{_ARRAYS: args}))
        arrays.update(found[_ARRAYS])
        return arrays

    def _how(self, name: str, like: Any) -> Any:
        """Returns how orbax reads an array: to the host, or to devices."""
        sharding = None if like is None or on_host(like) else sharding_of(like)
        if sharding is None:
            return self._orbax.RestoreArgs(restore_type=np.ndarray)
        stored = stored_type(name, like)
        return self._orbax.ArrayRestoreArgs(
            sharding=sharding, global_shape=stored.shape, dtype=stored.dtype
        )


class _Policy:
    """orbax's policy of what to preserve, by steps."""

    def __init__(self, kept: Callable[[list[int]], set[int]]) -> None:
        self._kept = kept

    def should_preserve(self, checkpoints: Sequence[Any], *, context: Any) -> list[bool]:
        """Returns for each checkpoint whether it stays."""
        del context
        kept = self._kept([one.step for one in checkpoints])
        return [one.step in kept for one in checkpoints]


@contextlib.contextmanager
def _reading(path: Any) -> Iterator[None]:
    """Reports a damaged file."""
    try:
        yield
    except PermissionError:
        raise
    except (MemoryError, FormatError):
        raise
    except Exception as error:
        raise FormatError(f"{path}: the checkpoint must be whole, got {error!s:.300}") from error


def _orbax() -> Any:
    """Imports orbax.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import orbax.checkpoint as ocp  # noqa: PLC0415  # optional dependency
    except ImportError:
        raise missing_extra("Folder", "orbax-checkpoint", "scale") from None
    return ocp


def _absolute(path: PathLike) -> Any:
    """Returns a path as orbax takes it: absolute, on a file system or in a bucket."""
    from etils import epath  # noqa: PLC0415  # a dependency of orbax

    return epath.Path(path).resolve()
