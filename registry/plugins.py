"""Plug-ins: installed packages that contribute operators, found by their entry points.

A package declares, in the group ``symop.operators``, a module that registers operators when it is
imported, or a function in one that does so when it is called::

    [project.entry-points."symop.operators"]
    special = "my_package.operators"
"""

import contextlib
import sys
import threading
import warnings
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points

from registry.errors import RegistrationError
from registry.operator.operator import Operator

GROUP = "symop.operators"
Transaction = Callable[[], contextlib.AbstractContextManager[None]]
"""A context in which the registrations of one plug-in are undone if it fails."""

_PATIENCE = 5.0
"""Seconds that a thread which is importing waits for another thread to load plug-ins."""


class Plugins:
    """The plug-ins of this process: those loaded and those still to be loaded.

    Args:
        transaction: encloses the loading of each plug-in.
    """

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._lock = threading.RLock()
        self._loading = False
        self._opened = False
        self._waiting: list[EntryPoint] | None = None
        self._loaded: dict[EntryPoint, None] = {}

    def open(self) -> None:
        """Allows plug-ins to be loaded: the modules that they may import are complete."""
        self._opened = True

    @property
    def pending(self) -> bool:
        """Whether some plug-ins may not be loaded yet."""
        return self._opened and (self._waiting is None or bool(self._waiting))

    def load(self, *, again: bool = False) -> list[str]:
        """Loads each plug-in that is not loaded yet; returns the names of all that are loaded.

        A plug-in that looks up operators while it is loaded finds those registered so far. A
        plug-in that fails is reported with a warning, and its registrations are undone.

        Args:
            again: look for new plug-ins, and retry those that failed.
        """
        if not self._opened or not self._lock.acquire(timeout=_PATIENCE if _importing() else -1):
            return [one.name for one in list(self._loaded)]
        try:
            failures = [] if self._loading else self._load(again)
            names = [one.name for one in self._loaded]
        finally:
            self._lock.release()
        # If warnings are errors, the first one raises here, after everything loadable was loaded.
        for failure in failures:
            warnings.warn(failure, RuntimeWarning, stacklevel=3)
        return names

    def _load(self, again: bool) -> list[str]:
        """Returns the reasons of failures."""
        failures: list[str] = []
        self._loading = True
        try:
            if again or self._waiting is None:
                self._waiting = [one for one in _entry_points() if one not in self._loaded]
            # A plug-in that is being imported already, by the caller, gets its turn the next
            # time.
            turns = [one for one in self._waiting if not _half_imported(one)]
            for one in turns:
                failure = self._load_one(one)
                self._waiting.remove(one)
                if failure is None:
                    self._loaded[one] = None
                else:
                    failures.append(failure)
        finally:
            self._loading = False
        return failures

    def _load_one(self, entry: EntryPoint) -> str | None:
        """Loads one plug-in; returns why it failed, or None."""
        try:
            with self._transaction():
                _run(entry)
            return None
        except (Exception, SystemExit) as error:
            origin = "an unknown distribution" if entry.dist is None else entry.dist.name
            return (
                f"the operators of the entry point {entry.name!r} ({entry.value}) of {origin} are "
                f"left out, because loading it failed: {type(error).__name__}: {error}"
            )


def _entry_points() -> list[EntryPoint]:
    """Returns the entry points of the group, in a deterministic order."""
    return sorted(set(entry_points(group=GROUP)), key=lambda one: (one.name, one.value))


def _run(entry: EntryPoint) -> None:
    """Imports the module, and calls the function if the entry point names one."""
    target = entry.load()
    if not entry.attr or isinstance(target, Operator):
        return
    if not callable(target):
        raise RegistrationError(
            f"an entry point of {GROUP} must name a module or a function, got {target!r}"
        )
    target()


def _half_imported(entry: EntryPoint) -> bool:
    """Whether the import of its module has started but not finished."""
    name = entry.value.partition(":")[0].strip()
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return bool(getattr(spec, "_initializing", False))


def _importing() -> bool:
    """Whether this thread is importing a module that the loading thread may have to wait for."""
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code.co_name == "_find_and_load" and "importlib" in frame.f_code.co_filename:
            return True
    return False
