"""MXNetError: what MXNet raises, and every error of this interface with it."""

import difflib
from collections.abc import Iterable

from registry.errors import FormatError, SymopError

_NEAR = 0.8
"""So much of two names must be alike for one to be meant by the other."""


class MXNetError(SymopError, RuntimeError):
    """An operator, an attribute or a shape is not as MXNet has it."""


class MXNetFormatError(MXNetError, FormatError):
    """A file of MXNet is damaged, truncated or of a kind that is not known."""


def near(name: str, legal: Iterable[str]) -> str:
    """``"; did you mean 'a' or 'b'?"`` for names that differ in little or in order, or nothing.

    Example:
        >>> near("fullyconected", ["FullyConnected", "Concat"]), near("linear", ["Concat"])
        ("; did you mean 'FullyConnected'?", '')
    """
    lower, by_lower = str(name).lower(), {one.lower(): one for one in legal}
    close = difflib.get_close_matches(lower, by_lower, n=3, cutoff=_NEAR)
    swapped = [one for one in by_lower if one not in close and sorted(one) == sorted(lower)]
    meant = " or ".join(repr(by_lower[one]) for one in (*close, *swapped))
    return f"; did you mean {meant}?" if meant else ""


def require_known(what: str, given: Iterable[str], legal: Iterable[str]) -> None:
    """Refuse a name that is not among ``legal``.

    Args:
        what: what the message is about, such as ``"forward: names"``.
        given: the names.
        legal: those that may be given.
    """
    known = list(legal)
    for name in given:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise MXNetError(f"{what} must be among {listed}, got {name!r}{near(name, known)}")
