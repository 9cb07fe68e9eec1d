"""Checks of nested lists as data, in which recorded arrays would lose their gradients."""

from typing import Any

from registry.errors import GradientError
from symop.eager.segments import local


def refuse_recorded(what: str, data: Any) -> None:
    """Rejects lists with recorded arrays, since an array made from them would be a constant.

    Raises:
        GradientError: inside ``autograd.record()``, the list contains a recorded array.
    """
    if local.state.taped and _holds_recorded(data):
        raise GradientError(
            f"{what}: a list of recorded arrays would lose their gradients; use stack"
        )


def _holds_recorded(data: Any) -> bool:
    if isinstance(data, (list, tuple)):
        return any(map(_holds_recorded, data))
    return getattr(data, "is_recorded", False) is True
