"""Nested lists of arrays or symbols, as in arguments and results of loop bodies."""

from typing import Any


def leaves(nested: Any) -> list[Any]:
    """The leaves of nested lists, in order.

    Example:
        >>> leaves([1, (2, [3])])
        [1, 2, 3]
    """
    if isinstance(nested, (list, tuple)):
        return [one for part in nested for one in leaves(part)]
    return [nested]


def like(nested: Any, given: list[Any]) -> Any:
    """Nests the items of ``given`` like ``nested``; ``given`` is consumed."""
    if isinstance(nested, (list, tuple)):
        return [like(one, given) for one in nested]
    return given.pop(0)
