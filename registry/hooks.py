"""Members that a class declares and a higher layer defines, on import.

Imports point down, so a class cannot name members of a higher layer. It lists such members in
``HOOKS``, and the module that implements them calls ``define``. No other form of hook exists.
"""

from typing import Any

from registry.errors import DeclarationError


def define(owner: type, /, **members: Any) -> None:
    """Defines members that ``owner``, or a class that it derives from, lists in ``HOOKS``.

    The last definition counts: a module that is imported again, after an interrupt, redefines them.

    Args:
        owner: the class.
        **members: the members, by name; a function is a method, unless it is a ``staticmethod``.

    Raises:
        DeclarationError: a member is not a hook.

    Example:
        >>> class Square:
        ...     HOOKS = frozenset({"area"})
        >>> define(Square, area=lambda self: 1.0)
        >>> Square().area()
        1.0
    """
    hooks = frozenset[str]().union(*(vars(one).get("HOOKS", ()) for one in owner.__mro__))
    for name in members:
        if name not in hooks:
            raise DeclarationError(
                f"{owner.__name__}: a hook must be one of {', '.join(sorted(hooks)) or 'none'}, "
                f"got {name!r}"
            )
    for name, member in members.items():
        setattr(owner, name, member)
