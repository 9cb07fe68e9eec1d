"""The errors of Paddle's interface: PaddleError and its subclasses."""

from collections.abc import Iterable
from typing import Self

from registry.errors import FormatError, SymopError


class PaddleError(SymopError, RuntimeError):
    """A program, operator or argument that contradicts Paddle's rules."""

    def located(self, where: str) -> Self:
        """Returns the error with the place where it occurred."""
        return type(self)(f"{self} {where}")


class PaddleFormatError(PaddleError, FormatError):
    """A Paddle file that is damaged, truncated or of an unknown kind."""


class UnknownValueError(PaddleError):
    """A value must be known when a program is compiled.

    Attributes:
        names: the variables that it depends on.
        of_longest: whether the length of the longest sequence of offsets is enough.
    """

    def __init__(self, message: str, names: Iterable[str] = (), of_longest: bool = False) -> None:
        """Creates the error."""
        super().__init__(message)
        self.names = tuple(names)
        self.of_longest = of_longest

    def located(self, where: str) -> Self:
        """Returns the error with the place where it occurred."""
        return type(self)(f"{self} {where}", self.names, self.of_longest)
