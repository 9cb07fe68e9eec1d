"""The current program of a thread, of which ``so.data`` and ``so.parameter`` make variables."""

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from registry.errors import ProgramError
from symop.program import Program
from symop.program_block import Variable


class _Current(threading.local):
    """This thread's current program."""

    def __init__(self) -> None:
        self.program: Program | None = None


_current = _Current()


@contextlib.contextmanager
def program_guard(program: Program) -> Iterator[Program]:
    """Within it, ``so.data`` and ``so.parameter`` make variables of ``program``.

    Example:
        >>> import symop as so
        >>> with so.program_guard(so.Program()) as program:
        ...     y = so.data("x", (2,)) * 2.0
        >>> program.run({"x": [1.0, 2.0]}, y).tolist()
        [2.0, 4.0]
    """
    before, _current.program = _current.program, program
    try:
        yield program
    finally:
        _current.program = before


def current_program() -> Program:
    """The program of the innermost ``program_guard``.

    Raises:
        ProgramError: there is none around.
    """
    if _current.program is None:
        raise ProgramError("program: there must be a program_guard around the call, and is none")
    return _current.program


def data(name: str, shape: Sequence[int] | int, dtype: Any = None, **kwargs: Any) -> Variable:
    """``Program.data`` of the current program."""
    return current_program().data(name, shape, dtype, **kwargs)


def parameter(name: str, shape: Sequence[int] | int, dtype: Any = None, **kwargs: Any) -> Variable:
    """``Program.parameter`` of the current program."""
    return current_program().parameter(name, shape, dtype, **kwargs)
