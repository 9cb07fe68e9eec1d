"""Processes that train together: how a process joins the others."""

import os
import sys
import warnings
from collections.abc import Sequence
from types import TracebackType
from typing import Any, NamedTuple

import jax

from registry import caches
from registry.errors import ArgumentError
from symop.runtime.jax_messages import ALONE
from symop.training.meeting import Place, host_and_port, is_loopback, meet

_COORDINATOR, _PROCESSES, _PROCESS = (
    "JAX_COORDINATOR_ADDRESS",
    "JAX_NUM_PROCESSES",
    "JAX_PROCESS_ID",
)
_LAUNCHERS = ("SLURM_STEP_NODELIST", "OMPI_MCA_orte_hnp_uri")
"""Variables that launchers of several processes set, in addition to those of JAX."""


class Job(NamedTuple):
    """The processes that train together, seen from one of them.

    Attributes:
        process: the index of this process.
        processes: the number of processes.
    """

    process: int = 0
    processes: int = 1

    @property
    def writes(self) -> bool:
        """Whether this process is the one that writes logs and files."""
        return self.process == 0


def distributed(
    coordinator: str | None = None,
    processes: int | None = None,
    process: int | None = None,
    *,
    local_devices: Sequence[int] | None = None,
    timeout: int = 300,
    heartbeat: int = 100,
    cache: str | os.PathLike[str] | None = None,
) -> Job:
    """Joins this process with the others of its job, by ``jax.distributed.initialize``.

    A script calls it before anything that makes JAX look for devices. Alone, without arguments
    and outside of a launcher, a process has nothing to join, and nothing happens, so that the same
    script runs as one process and as many. Calls after the first return the same.

    Args:
        coordinator: the address at which process 0 listens, ``host:port``; by default the variable
            ``JAX_COORDINATOR_ADDRESS`` of the environment, or what JAX finds out from Slurm, Open
            MPI, Kubernetes or Cloud TPU.
        processes: the number of processes; by default the variable ``JAX_NUM_PROCESSES``, or what
            JAX finds out. With 1, nothing happens.
        process: the index of this process; by default the variable ``JAX_PROCESS_ID``, or what JAX
            finds out.
        local_devices: the indices of the machine's accelerators that this process uses; by default
            all of them, or what JAX finds out.
        timeout: the seconds to wait for the other processes.
        heartbeat: the seconds without a sign of life after which a process counts as dead, and the
            others end.
        cache: a folder for compiled programs, as for ``so.caches.set_folder``.

    Returns:
        The index of this process, the number of processes, and whether this one writes logs.

    Raises:
        ArgumentError: an argument is invalid or missing, JAX has devices already, or an earlier
            call was different.
        ProcessError: another process cannot be reached in time, or was told other numbers.

    If an exception ends one of several processes, it ends at once, so that the others, which wait
    for its part of the next step, fail too.

    Example:
        >>> job = distributed()
        >>> job, job.writes
        (Job(process=0, processes=1), True)
    """
    if cache is not None:
        caches.set_folder(cache)
    coordinator = coordinator or os.environ.get(_COORDINATOR)
    processes = _number("processes", processes, _PROCESSES)
    process = _number("process", process, _PROCESS)
    if jax.distributed.is_initialized():
        return _joined(processes, process)
    if processes == 1:
        return Job()
    if _is_late():
        if coordinator is None and not any(one in os.environ for one in _LAUNCHERS):
            return Job()
        raise ArgumentError(
            "distributed: it must be called before JAX makes its devices, got a call after "
            "a computation or jax.devices()"
        )
    return _join(coordinator, processes, process, local_devices, timeout, heartbeat)


def _number(name: str, value: int | None, variable: str) -> int | None:
    """Returns an argument, or the number that a variable of the environment holds."""
    text = os.environ.get(variable)
    if value is None and text is not None:
        if not text.isdecimal():
            raise ArgumentError(f"distributed: {variable} must be a number, got {text!r}")
        return int(text)
    least = 0 if name == "process" else 1
    if value is not None and (not isinstance(value, int) or value < least):
        raise ArgumentError(f"distributed: {name} must be at least {least}, got {value!r}")
    return value


def _joined(processes: int | None, process: int | None) -> Job:
    """Returns the job that this process has joined.

    Raises:
        ArgumentError: the arguments are those of another job.
    """
    job = Job(jax.process_index(), jax.process_count())
    if processes not in (None, job.processes) or process not in (None, job.process):
        raise ArgumentError(
            f"distributed: a process joins one job, got {process} of {processes} in process "
            f"{job.process} of {job.processes}"
        )
    return job


def _is_late() -> bool:
    """Whether JAX has devices, so that it refuses to join."""
    try:  # it checks that before its arguments, of which these are invalid
        jax.distributed.initialize("127.0.0.1:1", 1, 1, cluster_detection_method="deactivate")
    except ValueError:
        return False
    except RuntimeError:
        return True
    raise AssertionError("JAX takes process 1 of 1")


def _join(
    coordinator: str | None,
    processes: int | None,
    process: int | None,
    local_devices: Sequence[int] | None,
    timeout: int,
    heartbeat: int,
) -> Job:
    asked = {"coordinator": coordinator, "processes": processes, "process": process}
    options: dict[str, Any] = {
        "local_device_ids": local_devices,
        "initialization_timeout": timeout,
        "heartbeat_timeout_seconds": heartbeat,
    }
    if coordinator is not None and processes is not None and process is not None:
        options |= _met(Place(coordinator, processes, process), timeout)
    try:
        with warnings.catch_warnings():
            # Of a launcher whose package is missing: without it, the process is alone.
            warnings.simplefilter("ignore")
            jax.distributed.initialize(coordinator, processes, process, **options)
    except ValueError as error:
        if ALONE.is_in(error) and asked == dict.fromkeys(asked):
            return Job()
        got = ", ".join(f"{name}={value!r}" for name, value in asked.items())
        raise ArgumentError(
            f"distributed: the coordinator, the number of processes and the index of this one "
            f"must be given or known to a launcher, got {got}: {error}"
        ) from None
    if jax.process_count() > 1:
        _end_all_if_one_fails()
    return Job(jax.process_index(), jax.process_count())


def _met(place: Place, timeout: int) -> dict[str, Any]:
    """Meets the other processes; returns options of JAX that follow from their address.

    Raises:
        ArgumentError: the index does not fit the number of processes.
        ProcessError: a process is missing.
    """
    host, _ = host_and_port(place.coordinator)
    if place.process >= place.processes:
        raise ArgumentError(
            f"distributed: process must be less than {place.processes}, the number of processes, "
            f"got {place.process}"
        )
    meet(place, timeout)
    # JAX listens at all addresses of the machine otherwise.
    return {"coordinator_bind_address": place.coordinator} if is_loopback(host) else {}


def _end_all_if_one_fails() -> None:
    """Ends this process at an exception that nobody handles, once it is reported.

    JAX would wait at the exit for the other processes, which wait for this one's part of a step.
    The closed connections tell them.
    """
    report = sys.excepthook

    def report_and_end(
        type: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        report(type, error, traceback)
        if not hasattr(sys, "ps1"):
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            os._exit(1)

    sys.excepthook = report_and_end
