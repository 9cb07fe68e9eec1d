"""The errors of MXNet's interface: MXNetError and its subclasses."""

import difflib
from collections.abc import Iterable

from registry.errors import FormatError, SymopError

_NEAR = 0.8
"""The similarity from which a name is suggested for another."""


class MXNetError(SymopError, RuntimeError):
    """An invalid operator, attribute or shape."""


class MXNetIndexError(MXNetError, IndexError):
    """An index outside of its axis, or an index with too many axes."""


class MXNetValueError(MXNetError, ValueError):
    """An argument for which MXNet raises ValueError."""


class MXNetAssertionError(MXNetError, AssertionError):
    """A body of control flow for which MXNet raises AssertionError."""


class MXNetUserWarning(MXNetError, UserWarning):  # noqa: N818  # it is raised for a warning
    """A call for which MXNet raises UserWarning."""


class NotImplementedForSymbol(MXNetError, NotImplementedError):  # noqa: N818  # MXNet's name
    """Raised for methods of arrays that symbols do not support, such as ``asnumpy``.

    MXNet's class of this name is a ``NotImplementedError``, which scripts catch.
    """


class MXNetFormatError(MXNetError, FormatError):
    """An MXNet file that is damaged, truncated or of an unknown kind."""


def near(name: str, legal: Iterable[str]) -> str:
    """``"; did you mean 'a' or 'b'?"`` for names similar up to order; empty if there are none.

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
    """Raises MXNetError for a name that is not among ``legal``.

    Args:
        what: the subject of the message, such as ``"forward: names"``.
        given: the names.
        legal: the permitted names.
    """
    known = list(legal)
    for name in given:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise MXNetError(f"{what} must be among {listed}, got {name!r}{near(name, known)}")
