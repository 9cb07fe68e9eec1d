"""Nested lists as data: what a record would lose of them."""

from typing import Any

from registry.errors import GradientError
from symop.segments import local


def refuse_recorded(what: str, data: Any) -> None:
    """Refuse lists with recorded arrays, of which an array of the entries would be a constant.

    Raises:
        GradientError: inside ``autograd.record()``, one of them is recorded.
    """
    if local.state.taped and _holds_recorded(data):
        raise GradientError(
            f"{what}: a list of recorded arrays would lose their gradients; use stack"
        )


def _holds_recorded(data: Any) -> bool:
    if isinstance(data, (list, tuple)):
        return any(map(_holds_recorded, data))
    return getattr(data, "is_recorded", False) is True
