"""The progress bar of a training run."""

import contextlib
import functools
import logging
from collections.abc import Mapping
from typing import Any

from registry.errors import missing_extra


class _NoBar:
    """A progress bar that shows nothing, and does not need tqdm."""

    def update(self, count: int) -> None:
        """Does nothing."""

    def set_postfix(self, values: Mapping[str, str]) -> None:
        """Does nothing."""


def progress_bar(total: int | None, start: int, *, enabled: bool) -> Any:
    """Returns a context of a bar of ``total`` steps, of which ``start`` are taken already."""
    if not enabled:
        return contextlib.nullcontext(_NoBar())
    try:
        from tqdm import tqdm  # noqa: PLC0415  # optional dependency
    except ImportError:
        say_that_no_bar_is_shown()
        return contextlib.nullcontext(_NoBar())
    return tqdm(total=total, initial=start, unit="step")


@functools.cache
def say_that_no_bar_is_shown() -> None:
    """Logs, once in a process, that the progress bar needs a package."""
    missing = missing_extra("progress bar of fit", "tqdm", "train")
    logging.getLogger(__name__).warning("%s; fit goes on without it", missing)
