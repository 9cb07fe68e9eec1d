"""Leaving in time: a signal announces that the process will be killed; it saves and exits."""

import contextlib
import signal
import sys
from collections.abc import Iterator
from types import FrameType

import jax
from jax.experimental import multihost_utils

from registry.errors import ArgumentError
from symop.checkpoint.folder import Folder

EXIT_CODE = 75
"""The exit code after a preemption: EX_TEMPFAIL of sysexits.h, which asks for another try."""


@contextlib.contextmanager
def on_preemption(
    checkpoints: Folder, *, signal: signal.Signals = signal.SIGTERM, code: int = EXIT_CODE
) -> Iterator[None]:
    """Within this context, the next ``checkpoints.save`` after a SIGTERM saves its step and exits.

    Schedulers send SIGTERM some time before they kill a process. The training loop finishes its
    step and calls ``save``, which saves whatever ``every`` says, waits until the step is complete,
    and raises ``SystemExit(75)``. A process that SIGTERM ends without this has another exit code
    (143 in a shell), so that a job can be restarted by its exit code.

    With several processes (``jax.distributed``), JAX's preemption service tells all of them to
    leave at the same step, so each must call ``save`` in every step; ``signal`` must be SIGTERM.

    Args:
        checkpoints: the folder.
        signal: the signal that announces the end.
        code: the exit code.

    Raises:
        ArgumentError: this is not the main thread, or JAX's preemption service is not enabled.

    Example:
        >>> import os, signal, tempfile, jax.numpy as jnp, symop as so
        >>> state = {"w": jnp.zeros(3)}
        >>> with tempfile.TemporaryDirectory() as path:
        ...     checkpoints = so.checkpoint.Folder(path, every=100)
        ...     with checkpoints, so.checkpoint.on_preemption(checkpoints):
        ...         try:
        ...             for step in range(10):
        ...                 if step == 7:
        ...                     os.kill(os.getpid(), signal.SIGTERM)
        ...                 state = {"w": state["w"] + 1}
        ...                 started = checkpoints.save(step, state)
        ...         except SystemExit as end:
        ...             print("exit code", end.code)
        ...     checkpoints.steps()
        exit code 75
        [0, 7]
    """
    watch = _Service(code) if jax.distributed.is_initialized() else _Signal(code)
    before, checkpoints.preemption = checkpoints.preemption, watch
    try:
        with watch.listening(signal):
            yield
    finally:
        checkpoints.preemption = before


class _Signal:
    """Waits for a signal to this process."""

    def __init__(self, code: int) -> None:
        self._code, self._arrived = code, False

    def reached(self, step: int) -> bool:
        """Whether the signal has arrived."""
        return self._arrived

    def leave(self) -> None:
        """Exits."""
        sys.exit(self._code)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._arrived = True

    @contextlib.contextmanager
    def listening(self, number: signal.Signals) -> Iterator[None]:
        """Handles the signal."""
        try:
            before = signal.signal(number, self._handle)
        except ValueError:
            raise ArgumentError(
                "on_preemption: it must be entered in the main thread, got another"
            ) from None
        try:
            yield
        finally:
            # A handler that is not Python's, which None stands for, cannot be put back.
            signal.signal(number, signal.SIG_DFL if before is None else before)


class _Service:
    """Asks JAX's service, which handles the signal in whichever process it arrives."""

    def __init__(self, code: int) -> None:
        self._code = code

    def reached(self, step: int) -> bool:
        """Whether all processes save this step and leave."""
        try:
            return bool(multihost_utils.reached_preemption_sync_point(step))
        except RuntimeError as error:
            raise ArgumentError(
                f"on_preemption: JAX's preemption service must be enabled, got: {error}"
            ) from error

    def leave(self) -> None:
        """Exits."""
        sys.exit(self._code)

    @contextlib.contextmanager
    def listening(self, number: signal.Signals) -> Iterator[None]:
        """Does nothing: JAX listens from the start, and a handler of Python's would replace it."""
        if number != signal.SIGTERM:
            raise ArgumentError(
                f"on_preemption: with jax.distributed, the signal must be SIGTERM, got {number!r}"
            )
        yield
