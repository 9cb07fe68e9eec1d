"""Origins: the user's line that each node of a graph comes from, and how a message tells it."""

import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple


class Origin(NamedTuple):
    """Where a node comes from: the user's line and, in a gradient, the operator it belongs to.

    What a gradient does not keep is told by ``scope``, if the node was built in one.
    """

    file: str
    line: int
    forward: str | None = None
    scope: Any = None

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}"
        return f"{place} (in the gradient of {self.forward})" if self.forward else place


class _Ambient(threading.local):
    """What surrounds the building of nodes in this thread."""

    origin: Origin | None = None
    scope: Any = None
    """What ``so.remat.scope`` says of what is built."""
    node_of: Callable[[Any], Any] | None = None
    """Gives the node of a variable of a program, inside of the bodies of its control flow."""


ambient = _Ambient()


def built_at(origin: Origin | None) -> str:
    """The end of a message: where the user built the node."""
    return f"\n  built at {origin}" if origin is not None else ""


@contextmanager
def copied_origin(origin: Origin | None) -> Iterator[None]:
    """Nodes built inside have ``origin``."""
    before = ambient.origin
    ambient.origin = origin
    try:
        yield
    finally:
        ambient.origin = before


_own_files: dict[str, bool] = {}


def _is_own(code_file: str, module: str) -> bool:
    # What JAX traces is called by JAX, but built by whoever called that.
    skipped = module.partition(".")[0] in ("symop", "registry", "jax")
    own = skipped or code_file.startswith("<frozen")
    return _own_files.setdefault(code_file, own)


@contextmanager
def outside_scopes() -> Iterator[None]:
    """Nodes built inside are in none of the scopes that are entered."""
    before = ambient.scope
    ambient.scope = None
    try:
        yield
    finally:
        ambient.scope = before


def current_scope() -> Any:
    """The scope of a node that is built now."""
    origin = ambient.origin
    return ambient.scope if origin is None else origin.scope


def user_origin(own_frames: int = 1) -> Origin:
    """The innermost line outside of symop that led here, ``own_frames`` calls out or more."""
    origin = ambient.origin
    if origin is not None:
        return origin
    frame = sys._getframe(own_frames)  # the public inspect.stack() reads source files
    while frame.f_back is not None:
        file = frame.f_code.co_filename
        own = _own_files.get(file)
        if own is None:
            own = _is_own(file, frame.f_globals.get("__name__", ""))
        if not own:
            break
        frame = frame.f_back
    return _origin(frame.f_code.co_filename, frame.f_lineno, ambient.scope)


@functools.lru_cache(maxsize=1024)
def _origin(file: str, line: int, scope: Any) -> Origin:
    """One object for each line: a loop builds many nodes on the same.

    A notebook keeps each cell in a temporary file whose name tells nobody anything.
    """
    in_notebook = os.path.basename(os.path.dirname(file)).startswith("ipykernel_")
    return Origin("<cell>" if in_notebook else file, line, None, scope)
