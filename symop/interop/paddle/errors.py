"""The errors of Paddle's interface: PaddleError and its subclasses."""

from registry.errors import FormatError, SymopError


class PaddleError(SymopError, RuntimeError):
    """A program, operator or argument that contradicts Paddle's rules."""


class PaddleFormatError(PaddleError, FormatError):
    """A Paddle file that is damaged, truncated or of an unknown kind."""
