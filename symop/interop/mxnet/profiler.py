"""``mx.profiler`` over JAX's profiler: traces for TensorBoard and Perfetto."""

import time
from pathlib import Path
from typing import Any, NoReturn

import jax

from symop.interop.mxnet.errors import MXNetError

__all__ = [
    "Counter",
    "Domain",
    "Event",
    "Frame",
    "Marker",
    "Task",
    "dump",
    "dump_profile",
    "dumps",
    "pause",
    "profiler_set_config",
    "profiler_set_state",
    "resume",
    "set_config",
    "set_state",
]


class _Profiler:
    """The folder of the trace, and whether one is being recorded."""

    folder = Path("profile")
    is_running = False


def set_config(filename: str = "profile.json", **kwargs: Any) -> None:
    """Sets the folder of traces, named after the file without its extension.

    The choice of profiled parts (``profile_all`` etc.) has no effect: JAX traces everything.
    """
    del kwargs
    _Profiler.folder = Path(filename).with_suffix("")


def profiler_set_config(mode: str = "symbolic", filename: str = "profile.json") -> None:
    """An old alias of ``set_config``."""
    del mode
    set_config(filename)


def set_state(state: str = "stop", profile_process: str = "worker") -> None:
    """Starts a trace (``"run"``) or writes it (``"stop"``).

    Raises:
        MXNetError: ``state`` is neither.
    """
    del profile_process
    if state not in ("run", "stop"):
        raise MXNetError(f"set_state: state must be 'run' or 'stop', got {state!r}")
    is_wanted = state == "run"
    if is_wanted and not _Profiler.is_running:
        jax.profiler.start_trace(str(_Profiler.folder))
    if not is_wanted and _Profiler.is_running:
        jax.profiler.stop_trace()  # type: ignore[no-untyped-call]  # of JAX
    _Profiler.is_running = is_wanted


def profiler_set_state(state: str = "stop") -> None:
    """An old alias of ``set_state``."""
    set_state(state)


def dump(finished: bool = True, profile_process: str = "worker") -> None:
    """Writes the trace; starts another unless ``finished``."""
    was_running = _Profiler.is_running
    set_state("stop")
    if was_running and not finished:
        set_state("run")


def dump_profile() -> None:
    """An old alias of ``dump``."""
    dump()


def dumps(*args: Any, **kwargs: Any) -> NoReturn:
    """MXNet's table of times, which is not supported.

    Raises:
        MXNetError: always; the message names the alternative.
    """
    raise MXNetError(
        f"dumps: there are no sums of times by operator, since operators run together; look at the "
        f"trace in {str(_Profiler.folder)!r} with TensorBoard or Perfetto"
    )


def pause(profile_process: str = "worker") -> None:
    """Writes the trace so far."""
    set_state("stop")


def resume(profile_process: str = "worker") -> None:
    """Starts another trace."""
    set_state("run")


# Annotations by scripts ------------------------------------------------------------------------


class Domain:
    """A name that groups annotations."""

    def __init__(self, name: str) -> None:
        """Creates a domain."""
        self.name = name

    def __str__(self) -> str:
        return self.name

    def new_task(self, name: str) -> "Task":
        """Creates a task of the domain."""
        return Task(self, name)

    def new_frame(self, name: str) -> "Frame":
        """Creates a frame of the domain."""
        return Frame(self, name)

    def new_counter(self, name: str, value: float | None = None) -> "Counter":
        """Creates a counter of the domain."""
        return Counter(self, name, value)

    def new_marker(self, name: str) -> "Marker":
        """Creates a marker of the domain."""
        return Marker(self, name)


class Event:
    """A time span shown in the trace, from ``start`` to ``stop``."""

    def __init__(self, name: str) -> None:
        """Creates an event."""
        self.name = name
        self._mark: Any = None

    def __str__(self) -> str:
        return self.name

    def start(self) -> None:
        """Starts the event."""
        self.stop()
        self._mark = jax.profiler.TraceAnnotation(self.name)
        self._mark.__enter__()

    def stop(self) -> None:
        """Stops the event, if it was started."""
        if self._mark is not None:
            self._mark.__exit__(None, None, None)
        self._mark = None


class Task(Event):
    """An event of a domain."""

    def __init__(self, domain: Domain, name: str) -> None:
        """Creates a task of ``domain``."""
        super().__init__(f"{domain}/{name}")
        self.domain = domain


class Frame(Task):
    """A recurring event of a domain."""


class Counter:
    """A number, which JAX's traces do not show."""

    def __init__(self, domain: Domain, name: str, value: float | None = None) -> None:
        """Creates a counter of ``domain`` with an initial value."""
        self.domain, self.name, self.value = domain, name, value or 0

    def __str__(self) -> str:
        return self.name

    def set_value(self, value: float) -> None:
        """Sets the value."""
        self.value = value

    def increment(self, delta: float = 1) -> None:
        """Increases the value."""
        self.value += delta

    def decrement(self, delta: float = 1) -> None:
        """Decreases the value."""
        self.value -= delta

    def __iadd__(self, delta: float) -> "Counter":
        self.increment(delta)
        return self

    def __isub__(self, delta: float) -> "Counter":
        self.decrement(delta)
        return self


class Marker:
    """An instant shown in the trace."""

    def __init__(self, domain: Domain, name: str) -> None:
        """Creates a marker of ``domain``."""
        self.domain, self.name = domain, name

    def mark(self, scope: str = "process") -> None:
        """Marks the current time."""
        del scope
        with jax.profiler.TraceAnnotation(f"{self.domain}/{self.name}"):
            time.sleep(0)
