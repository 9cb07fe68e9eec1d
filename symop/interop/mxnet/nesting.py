"""Nested lists of arrays or symbols, as bodies of loops take and return them."""

from typing import Any


def leaves(nested: Any) -> list[Any]:
    """What is in nested lists, in order.

    Example:
        >>> leaves([1, (2, [3])])
        [1, 2, 3]
    """
    if isinstance(nested, (list, tuple)):
        return [one for part in nested for one in leaves(part)]
    return [nested]


def like(nested: Any, given: list[Any]) -> Any:
    """The entries of ``given``, which is used up, in the lists of ``nested``."""
    if isinstance(nested, (list, tuple)):
        return [like(one, given) for one in nested]
    return given.pop(0)
