"""MXNetError: what MXNet raises, and every error of this interface with it."""

from registry.errors import FormatError, SymopError


class MXNetError(SymopError, RuntimeError):
    """An operator, an attribute or a shape is not as MXNet has it."""


class MXNetFormatError(MXNetError, FormatError):
    """A file of MXNet is damaged, truncated or of a kind that is not known."""
