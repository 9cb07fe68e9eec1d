"""Checks of the arguments ``req`` and ``name``: how to write a result or gradient, and its name."""

from collections.abc import Sequence
from typing import Any

from registry.errors import ArgumentError, nearest
from registry.types import OpReqType


def as_request(owner: str, value: Any, legal: Sequence[OpReqType] = tuple(OpReqType)) -> OpReqType:
    """Returns the request in ``legal`` that ``value`` is or names; None stands for ``write``.

    Raises:
        ArgumentError: The request does not exist.
    """
    request = OpReqType.WRITE if value is None else value
    if request in legal:
        return OpReqType(request)
    names = [one.value for one in legal]
    raise ArgumentError(
        f"{owner}: req must be one of {', '.join(names)}, got {value!r}{nearest(value, names)}"
    )


def refuse_name(owner: str, name: str | None) -> None:
    """Raises an error if an eager call is given a name for its result: only graphs have names.

    Raises:
        ArgumentError: A name is given.
    """
    if name is not None:
        raise ArgumentError(f"{owner}: only symbols can be named, got name={name!r}")
