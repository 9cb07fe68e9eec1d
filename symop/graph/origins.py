"""Origins: the user's source line of each graph node, for error messages."""

import inspect
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from registry.caches import memoized
from symop.graph.scoping import Scopes


class Origin(NamedTuple):
    """The origin of a node: the user's line and, in a gradient, the operator it belongs to.

    ``scope`` is the rematerialization scope the node was built in, if any; it decides what a
    gradient keeps. ``prefix`` is that of the name scope around the call.
    """

    file: str
    line: int
    forward: str | None = None
    scope: Any = None
    prefix: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}"
        return f"{place} (in the gradient of {self.forward})" if self.forward else place


scopes: Scopes[Any] = Scopes("remat", None)
"""The rematerialization scopes entered by ``so.remat.scope``."""
_present = scopes.present
name_prefix: Scopes[str] = Scopes("name_prefix", "")
"""The prefix of names in the scopes entered by ``so.name_scope``."""
_present_prefix = name_prefix.present


class _Ambient(threading.local):
    """Per-thread state that affects how nodes are built.

    It is set only around calls that build nodes and never await. Scopes that users enter are in
    ``scopes``.
    """

    origin: Origin | None = None
    node_of: Callable[[Any], Any] | None = None
    """Maps a variable of a program to its node, inside the bodies of its control flow."""
    derivation: Any = None
    """The ``emission.Derivation`` whose nodes are being built."""
    inside: set[Any] | None = None
    """The nodes applied by the functions of control flow while they are traced."""


ambient = _Ambient()


def built_at(origin: Origin | None) -> str:
    """Returns the suffix of an error message that says where the user built the node."""
    return f"\n  built at {origin}" if origin is not None else ""


UNKNOWN_FILE = "<loaded>"
"""The file of a node whose record has no site; the line is then the index of the record."""


@memoized(4096)
def site_of(origin: Origin) -> str | None:
    """Returns the place in the form used by records: the base name of the file and the line."""
    if origin.file in ("", UNKNOWN_FILE):
        return None
    name = re.split(r"[/\\]", origin.file)[-1]
    return f"{name}:{origin.line}"


@contextmanager
def copied_origin(origin: Origin | None) -> Iterator[None]:
    """Gives the nodes built inside the context ``origin``."""
    before = ambient.origin
    ambient.origin = origin
    try:
        yield
    finally:
        ambient.origin = before


_own_files: dict[str, bool] = {}


def _is_own(code_file: str, module: str) -> bool:
    # JAX calls the functions it traces, but their nodes belong to the caller outside JAX. So do
    # those built in a context manager of symop, in a function that one decorates, or in a value
    # that functools keeps.
    skipped = module.partition(".")[0] in ("symop", "registry", "jax", "contextlib", "functools")
    own = skipped or code_file.startswith("<frozen")
    return _own_files.setdefault(code_file, own)


@contextmanager
def outside_scopes() -> Iterator[None]:
    """Builds the nodes inside the context outside all rematerialization scopes."""
    with scopes.entered(None):
        yield


@contextmanager
def undisturbed() -> Iterator[None]:
    """Builds the nodes inside the context as if no caller were building any."""
    before = dict(vars(ambient))
    vars(ambient).clear()
    try:
        with outside_scopes():
            yield
    finally:
        vars(ambient).clear()
        vars(ambient).update(before)


@contextmanager
def noting_calls() -> Iterator[set[Any]]:
    """Collects the nodes of all calls inside the context, new or already interned."""
    before, calls = ambient.inside, set[Any]()
    ambient.inside = calls
    try:
        yield calls
    finally:
        ambient.inside = before
        if before is not None:
            before |= calls


def current_scope() -> Any:
    """Returns the scope of a node that is built now."""
    origin = ambient.origin
    return _present()[-1].value if origin is None else origin.scope


def user_origin(own_frames: int = 1) -> Origin:
    """Returns the innermost source line outside symop, at least ``own_frames`` frames up."""
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
    scope, prefix = _present()[-1].value, _present_prefix()[-1].value
    return _origin(frame.f_code.co_filename, frame.f_lineno, scope, prefix)


def defined_at(function: Callable[..., Any]) -> Origin | None:
    """Returns the line at which ``function`` is defined, if it is a function of Python."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return None if code is None else _origin(code.co_filename, code.co_firstlineno, None, "")


@memoized(1024)
def _origin(file: str, line: int, scope: Any, prefix: str) -> Origin:
    """Returns one shared object per line, since a loop builds many nodes on the same line.

    The temporary file of a notebook cell has a meaningless name, so it is shown as ``<cell>``.
    """
    in_notebook = os.path.basename(os.path.dirname(file)).startswith("ipykernel_")
    return Origin("<cell>" if in_notebook else file, line, None, scope, prefix)
