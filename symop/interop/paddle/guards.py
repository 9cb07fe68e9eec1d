"""The programs that layers append to, and the scope in which programs keep their variables."""

import contextlib
from collections.abc import Iterator

from symop.interop.paddle.programs import Program
from symop.interop.paddle.roles import Role

_mains = [Program()]
_startups = [Program()]


def default_main_program() -> Program:
    """Returns the program that layers append to."""
    return _mains[-1]


def default_startup_program() -> Program:
    """Returns the program that gives parameters their initial values."""
    return _startups[-1]


@contextlib.contextmanager
def program_guard(main_program: Program, startup_program: Program | None = None) -> Iterator[None]:
    """Makes programs those that layers append to, inside of a ``with`` statement.

    Args:
        main_program: the program that layers append to.
        startup_program: the program that initializers append to; unchanged if None.
    """
    _mains.append(main_program)
    _startups.append(startup_program or default_startup_program())
    try:
        yield
    finally:
        _mains.pop()
        _startups.pop()


@contextlib.contextmanager
def role_guard(program: Program, number: int, variables: tuple[str, ...] = ()) -> Iterator[None]:
    """Gives a role to the calls that are appended inside of a ``with`` statement."""
    before = program.role
    program.role = Role(number, variables)
    try:
        yield
    finally:
        program.role = before


@contextlib.contextmanager
def name_scope(prefix: str | None = None) -> Iterator[None]:
    """Accepts the prefix of names of operators as Paddle does; it has no effect on values."""
    del prefix
    yield
