"""What eager code does with calls: whether they are recorded, and whether they train."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from symop.recording import park
from symop.segments import local


def is_recording() -> bool:
    """Whether calls of this thread are recorded for a backward pass."""
    return local.state.taped


def is_training() -> bool:
    """Whether operators that tell training from prediction train."""
    return local.state.training


def set_recording(is_record: bool) -> bool:
    """Switch recording on or off; returns what it was."""
    return _switched(taped=is_record)[0]


def set_training(train_mode: bool) -> bool:
    """Switch training on or off; returns what it was."""
    return _switched(training=train_mode)[1]


def _switched(taped: bool | None = None, training: bool | None = None) -> tuple[bool, bool]:
    before = local.state.taped, local.state.training
    after = (
        before[0] if taped is None else bool(taped),
        before[1] if training is None else bool(training),
    )
    if after != before:
        try:
            park()
        finally:  # a computation that fails leaves no mode behind
            local.state.taped, local.state.training = after
    return before


@contextmanager
def mode(taped: bool | None = None, training: bool | None = None) -> Iterator[None]:
    """A scope in which calls are recorded, or train, as told; None leaves it as it is."""
    before = local.state.taped, local.state.training
    try:
        _switched(taped, training)
        yield
    finally:
        _switched(*before)


def record(train_mode: bool = True) -> Any:
    """A scope in which calls are recorded, in training mode unless told otherwise.

    Example:
        >>> from symop import autograd
        >>> with autograd.record():
        ...     autograd.is_recording(), autograd.is_training()
        (True, True)
    """
    return mode(True, train_mode)


def pause(train_mode: bool = False) -> Any:
    """A scope in which calls are not recorded, in prediction mode unless told otherwise."""
    return mode(False, train_mode)


def train_mode() -> Any:
    """A scope in training mode, recorded or not."""
    return mode(training=True)


def predict_mode() -> Any:
    """A scope in prediction mode, recorded or not."""
    return mode(training=False)
