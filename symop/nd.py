"""``so.nd``: the operators on arrays, with a place for the result and what to do with it."""

from registry.foreign_names import foreign as _foreign
from registry.table import find as _find
from registry.table import get as _get
from registry.table import names as _names
from registry.types import OpReqType
from symop.array_calls import ArrayOperator

__all__ = ["ArrayOperator", "OpReqType"]


def __getattr__(name: str) -> ArrayOperator:
    """The operator called ``name``, on arrays; also one that computes a gradient."""
    if name.startswith("_") and not _foreign(name):
        found = None if name.startswith("__") else _find(name)
        if found is None:
            raise AttributeError(name)
        return ArrayOperator(found)
    try:
        return ArrayOperator(_get(name))
    except LookupError as error:
        raise AttributeError(f"nd: {error}", name=name) from None


def __dir__() -> list[str]:
    """The operators, and what this module exports beside them."""
    return sorted([*__all__, *_names(aliases=True)])
