"""Tracebacks that show a user's lines: the frames of symop and of JAX are removed from them.

A public function removes the frames of errors that pass through it: ``api_boundary`` wraps one, and
functions that are called often catch the error themselves. As JAX's own filter does, this changes
only what a traceback shows. ``SYMOP_TRACEBACKS=full`` in the environment, or
``JAX_TRACEBACK_FILTERING=off``, keeps all frames.
"""

import dataclasses
import functools
import importlib.util
import os
from collections.abc import Callable, Iterator
from types import FunctionType, TracebackType
from typing import ParamSpec, TypeVar

import jax

from registry.errors import SymopError

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Class = TypeVar("_Class", bound=type)
SETTING = "SYMOP_TRACEBACKS"
"""The environment variable that keeps all frames if its value is ``full``."""


def api_boundary(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Returns ``function`` such that errors that it raises show no frames of symop.

    Example:
        >>> @api_boundary
        ... def double(x: int) -> int:
        ...     return 2 * x
        >>> double(3)
        6
    """

    @functools.wraps(function)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            hide_frames(error)
            raise

    return run


def api_class(owner: _Class) -> _Class:
    """Makes each public method of a class an API boundary, and calls of its instances.

    So is the constructor of a dataclass.

    Properties are left alone: they are read where every nanosecond counts.
    """
    for name, member in list(vars(owner).items()):
        if name.startswith("_") and name != "__call__":
            continue
        if isinstance(member, FunctionType):
            setattr(owner, name, api_boundary(member))
        elif isinstance(member, (classmethod, staticmethod)):
            setattr(owner, name, type(member)(api_boundary(member.__func__)))
    if dataclasses.is_dataclass(owner):  # whose constructor checks values in __post_init__
        setattr(owner, "__init__", api_boundary(vars(owner)["__init__"]))  # noqa: B010  # for mypy
    return owner


def hide_frames(error: BaseException) -> None:
    """Removes the frames of symop and JAX from the traceback of ``error`` and of its causes.

    Called in an ``except`` clause before a bare ``raise``, so that the frame of the caller is
    removed, too. An error that symop did not raise on purpose keeps its frames, unless it comes
    from a user's function that symop called: they are needed to find the defect.
    """
    if _keeps_all():
        return
    deliberate = isinstance(error, (SymopError, OSError))
    for one in _chain(error):
        frames = list(_entries(one.__traceback__))
        shown = [entry for entry in frames if not _is_hidden(entry)]
        if deliberate or shown or len(frames) == 1:
            one.__traceback__ = _joined(shown)
        context = one.__context__
        if context is not None and type(context).__module__.startswith("symop."):
            one.__suppress_context__ = True  # it controls the flow within symop


def _keeps_all() -> bool:
    return (
        os.environ.get(SETTING) == "full"
        or getattr(jax.config, "jax_traceback_filtering", None) == "off"
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yields ``error`` and the errors that a traceback shows above it."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        yield one
        seen.add(id(one))
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)


def _entries(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _is_hidden(entry: TracebackType) -> bool:
    frame = entry.tb_frame
    if frame.f_code.co_filename == "<string>":  # of a dataclass, or a user's
        return frame.f_globals.get("__name__", "").partition(".")[0] in ("symop", "registry")
    return is_own_file(frame.f_code.co_filename)


def _joined(entries: list[TracebackType]) -> TracebackType | None:
    """Returns ``entries`` as one traceback."""
    result: TracebackType | None = None
    for one in reversed(entries):
        result = TracebackType(result, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return result


def is_own_file(file: str) -> bool:
    """Whether ``file`` belongs to symop, JAX or Python's import system, not to a user."""
    return file.startswith(("<frozen", *_own_folders()))


@functools.cache
def _own_folders() -> tuple[str, ...]:
    """Returns the folders of the packages whose lines are never a user's."""
    specs = [importlib.util.find_spec(one) for one in ("symop", "registry", "jax", "jaxlib")]
    places = [folder for one in specs if one for folder in one.submodule_search_locations or ()]
    return tuple(os.path.join(folder, "") for folder in places)
