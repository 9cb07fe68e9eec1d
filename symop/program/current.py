"""The current program, in which ``so.data`` and ``so.parameter`` declare variables."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from registry.errors import ProgramError
from registry.tracebacks import api_boundary
from symop.graph.scoping import Scopes
from symop.program.block import Variable
from symop.program.program import Program

_guards: Scopes[Program | None] = Scopes("program", None)


@contextlib.contextmanager
def program_guard(program: Program) -> Iterator[Program]:
    """Makes ``program`` the current program, used by ``so.data`` and ``so.parameter``.

    Example:
        >>> import symop as so
        >>> with so.program_guard(so.Program()) as program:
        ...     y = so.data("x", (2,)) * 2.0
        >>> program.run({"x": [1.0, 2.0]}, y).tolist()
        [2.0, 4.0]
    """
    with _guards.entered(program):
        yield program


def current_program() -> Program:
    """Returns the program of the innermost ``program_guard``.

    Raises:
            ProgramError: no ``program_guard`` is active.
    """
    program = _guards.current()
    if program is None:
        raise ProgramError("program: there must be a program_guard around the call, and is none")
    return program


@api_boundary
def data(name: str, shape: Sequence[int] | int, dtype: Any = None, **kwargs: Any) -> Variable:
    """Calls ``Program.data`` of the current program."""
    return current_program().data(name, shape, dtype, **kwargs)


@api_boundary
def parameter(name: str, shape: Sequence[int] | int, dtype: Any = None, **kwargs: Any) -> Variable:
    """Calls ``Program.parameter`` of the current program."""
    return current_program().parameter(name, shape, dtype, **kwargs)
