"""Requests as callers give them: a name, and what to do with the place of a result or gradient."""

from collections.abc import Sequence
from typing import Any

from registry.errors import ArgumentError, nearest
from registry.types import OpReqType


def as_request(owner: str, given: Any, legal: Sequence[OpReqType] = tuple(OpReqType)) -> OpReqType:
    """The request among ``legal`` ones that ``given`` is or names; None stands for ``write``.

    Raises:
        ArgumentError: there is no such request.
    """
    request = OpReqType.WRITE if given is None else given
    if request in legal:
        return OpReqType(request)
    names = [one.value for one in legal]
    raise ArgumentError(
        f"{owner}: req must be one of {', '.join(names)}, got {given!r}{nearest(given, names)}"
    )


def refuse_name(owner: str, name: str | None) -> None:
    """Refuse a name for the result of a call that computes: names are for graphs.

    Raises:
        ArgumentError: one is given.
    """
    if name is not None:
        raise ArgumentError(f"{owner}: only symbols can be named, got name={name!r}")
