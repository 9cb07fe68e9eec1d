"""The first contact of the processes of a job.

JAX ends a process, without an exception, if it cannot reach the others in time. The processes
therefore meet before JAX connects them: process 0 listens at the address of the coordinator, and
the others tell it who they are.
"""

import contextlib
import socket
import time
from typing import NamedTuple

from registry.errors import ArgumentError, ProcessError

_GREETING = b"symop"
_GO = "go"
_PAUSE = 0.1
_PATIENCE = 5.0
"""The seconds that a program that has connected has to say who it is."""


class Place(NamedTuple):
    """A process of a job.

    Attributes:
        coordinator: the address at which process 0 listens, ``host:port``.
        processes: the number of processes.
        process: the index of this one.
    """

    coordinator: str
    processes: int
    process: int


def host_and_port(address: str) -> tuple[str, int]:
    """Returns the parts of an address.

    Raises:
        ArgumentError: it is not of the form ``host:port``.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise ArgumentError(
            f"distributed: the coordinator's address must be host:port, got {address!r}"
        )
    return host.removeprefix("[").removesuffix("]"), int(port)


def is_loopback(host: str) -> bool:
    """Whether only processes of the same machine reach ``host``."""
    return host in ("localhost", "::1") or host.startswith("127.")


def meet(place: Place, timeout: float) -> None:
    """Waits until all processes are there.

    Raises:
        ProcessError: they are not there in time, or have been told different things.
    """
    end = time.monotonic() + timeout
    (_receive if place.process == 0 else _call)(place, timeout, end)


def _receive(place: Place, timeout: float, end: float) -> None:
    """Meets the others as process 0."""
    host, port = host_and_port(place.coordinator)
    with contextlib.ExitStack() as stack:
        try:
            server = stack.enter_context(_listening(host, port))
        except OSError as error:
            raise ProcessError(
                f"distributed: process 0 must be able to listen at {place.coordinator}, "
                f"got: {error}"
            ) from None
        callers: dict[int, socket.socket] = {}
        fault = None
        while fault is None and len(callers) < place.processes - 1:
            server.settimeout(max(end - time.monotonic(), 1e-3))
            try:
                caller = stack.enter_context(server.accept()[0])
            except TimeoutError:
                fault = _missing(place, callers, timeout)
                break
            greeting = _heard(caller).split()
            if greeting[:1] != [_GREETING] or len(greeting) != 3:
                continue
            fault = _fault(place, callers, *map(int, greeting[1:]))
            callers[int(greeting[1])] = caller
        for one in callers.values():
            _say(one, fault or _GO)
        if fault is not None:
            raise ProcessError(f"distributed: {fault}")


def _listening(host: str, port: int) -> socket.socket:
    """Returns a server: at loopback only there, else, as JAX's, at all addresses."""
    if is_loopback(host):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))


def _missing(place: Place, callers: dict[int, socket.socket], timeout: float) -> str:
    missing = [str(one) for one in range(1, place.processes) if one not in callers]
    return (
        f"all {place.processes} processes must reach {place.coordinator} within {timeout:g} "
        f"seconds, got no call of process {', '.join(missing)}"
    )


def _fault(
    place: Place, callers: dict[int, socket.socket], process: int, processes: int
) -> str | None:
    """Returns what is wrong with a caller, or None."""
    if processes != place.processes:
        return (
            f"all processes must be told their number, {place.processes} in process 0, got "
            f"{processes} in process {process}"
        )
    if process in callers or not 0 < process < processes:
        return f"each process must have an index of its own, got {process} twice"
    return None


def _call(place: Place, timeout: float, end: float) -> None:
    """Meets the others as another process than 0."""
    server = _reached(place, timeout, end)
    with server:
        _say(server, f"{_GREETING.decode()} {place.process} {place.processes}")
        server.settimeout(max(end - time.monotonic(), 0) + _PATIENCE)
        answer = _heard(server).decode(errors="replace").strip()
    if answer == _GO:
        return
    what = answer or "process 0 must answer, got no answer from what listens there"
    raise ProcessError(f"distributed: process {place.process} at {place.coordinator}: {what}")


def _reached(place: Place, timeout: float, end: float) -> socket.socket:
    host, port = host_and_port(place.coordinator)
    error: OSError | None = None
    while (left := end - time.monotonic()) > 0:
        try:
            return socket.create_connection((host, port), timeout=left)
        except OSError as now:  # process 0 may not listen yet
            error = now
        time.sleep(min(_PAUSE, max(left, 0)))
    raise ProcessError(
        f"distributed: process {place.process} must reach process 0 at {place.coordinator} within "
        f"{timeout:g} seconds, got: {error}"
    ) from None


def _say(peer: socket.socket, text: str) -> None:
    with contextlib.suppress(OSError):  # it has gone, and notices that itself
        peer.settimeout(_PATIENCE)
        peer.sendall(text.encode() + b"\n")


def _heard(peer: socket.socket) -> bytes:
    """Returns a line, or what there is of it."""
    if peer.gettimeout() is None:
        peer.settimeout(_PATIENCE)
    line = b""
    with contextlib.suppress(OSError):
        while not line.endswith(b"\n") and len(line) < 1000:
            part = peer.recv(1000)
            if not part:
                break
            line += part
    return line
