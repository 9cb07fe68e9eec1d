"""``mx.profiler`` over JAX's: traces that TensorBoard and Perfetto show."""

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
    """Where the trace is written, and whether one is recorded."""

    folder = Path("profile")
    is_running = False


def set_config(filename: str = "profile.json", **kwargs: Any) -> None:
    """Say where traces are written: in a folder called as the file, without its ending.

    What is profiled (``profile_all`` and the like) has no effect: JAX traces everything.
    """
    del kwargs
    _Profiler.folder = Path(filename).with_suffix("")


def profiler_set_config(mode: str = "symbolic", filename: str = "profile.json") -> None:
    """``set_config``, by an older name."""
    del mode
    set_config(filename)


def set_state(state: str = "stop", profile_process: str = "worker") -> None:
    """Begin a trace (``"run"``) or write it (``"stop"``).

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
    """``set_state``, by an older name."""
    set_state(state)


def dump(finished: bool = True, profile_process: str = "worker") -> None:
    """Write the trace; without ``finished`` another one begins."""
    was_running = _Profiler.is_running
    set_state("stop")
    if was_running and not finished:
        set_state("run")


def dump_profile() -> None:
    """``dump``, by an older name."""
    dump()


def dumps(*args: Any, **kwargs: Any) -> NoReturn:
    """MXNet's table of times, which is not here.

    Raises:
        MXNetError: always; the message says what to use.
    """
    raise MXNetError(
        f"dumps: there are no sums of times by operator, since operators run together; look at the "
        f"trace in {str(_Profiler.folder)!r} with TensorBoard or Perfetto"
    )


def pause(profile_process: str = "worker") -> None:
    """Write the trace so far."""
    set_state("stop")


def resume(profile_process: str = "worker") -> None:
    """Begin another trace."""
    set_state("run")


# What a script marks ---------------------------------------------------------------------------


class Domain:
    """A name under which marks are grouped."""

    def __init__(self, name: str) -> None:
        """A name."""
        self.name = name

    def __str__(self) -> str:
        return self.name

    def new_task(self, name: str) -> "Task":
        """A task of the domain."""
        return Task(self, name)

    def new_frame(self, name: str) -> "Frame":
        """A frame of the domain."""
        return Frame(self, name)

    def new_counter(self, name: str, value: float | None = None) -> "Counter":
        """A counter of the domain."""
        return Counter(self, name, value)

    def new_marker(self, name: str) -> "Marker":
        """A marker of the domain."""
        return Marker(self, name)


class Event:
    """A stretch of time that the trace shows, from ``start`` to ``stop``."""

    def __init__(self, name: str) -> None:
        """A name."""
        self.name = name
        self._mark: Any = None

    def __str__(self) -> str:
        return self.name

    def start(self) -> None:
        """It begins."""
        self.stop()
        self._mark = jax.profiler.TraceAnnotation(self.name)
        self._mark.__enter__()

    def stop(self) -> None:
        """It is over, if it began."""
        if self._mark is not None:
            self._mark.__exit__(None, None, None)
        self._mark = None


class Task(Event):
    """An event of a domain."""

    def __init__(self, domain: Domain, name: str) -> None:
        """A domain and a name."""
        super().__init__(f"{domain}/{name}")
        self.domain = domain


class Frame(Task):
    """An event of a domain that comes again and again."""


class Counter:
    """A number; JAX's traces show none."""

    def __init__(self, domain: Domain, name: str, value: float | None = None) -> None:
        """A domain, a name and a first value."""
        self.domain, self.name, self.value = domain, name, value or 0

    def __str__(self) -> str:
        return self.name

    def set_value(self, value: float) -> None:
        """Another value."""
        self.value = value

    def increment(self, delta: float = 1) -> None:
        """More."""
        self.value += delta

    def decrement(self, delta: float = 1) -> None:
        """Less."""
        self.value -= delta

    def __iadd__(self, delta: float) -> "Counter":
        self.increment(delta)
        return self

    def __isub__(self, delta: float) -> "Counter":
        self.decrement(delta)
        return self


class Marker:
    """A moment that the trace shows."""

    def __init__(self, domain: Domain, name: str) -> None:
        """A domain and a name."""
        self.domain, self.name = domain, name

    def mark(self, scope: str = "process") -> None:
        """It is now."""
        del scope
        with jax.profiler.TraceAnnotation(f"{self.domain}/{self.name}"):
            time.sleep(0)
