"""What surrounds the making of symbols: automatic names, prefixes, and attributes of a block."""

import threading
from typing import Any

from symop.interop.mxnet.errors import MXNetError


class NameManager:
    """Gives names to symbols that were given none: the operator's with a number.

    Example:
        >>> with NameManager() as names:
        ...     names.get(None, "fc"), names.get(None, "fc"), names.get("mine", "fc")
        ('fc0', 'fc1', 'mine')
    """

    def __init__(self) -> None:
        """No name is given yet."""
        self._counter: dict[str, int] = {}
        self._outer: list[NameManager] = []

    def get(self, name: str | None, hint: str) -> str:
        """``name``, or a new one after ``hint``."""
        if name:
            return name
        number = self._counter.get(hint, 0)
        self._counter[hint] = number + 1
        return f"{hint}{number}"

    def __enter__(self) -> "NameManager":
        self._outer.append(_current.names)
        _current.names = self
        return self

    def __exit__(self, *error: object) -> None:
        _current.names = self._outer.pop()


class Prefix(NameManager):
    """Puts a prefix before every name."""

    def __init__(self, prefix: str) -> None:
        """``prefix`` comes first."""
        super().__init__()
        self._prefix = prefix

    def get(self, name: str | None, hint: str) -> str:
        """The name with the prefix."""
        return self._prefix + super().get(name, hint)


class AttrScope:
    """Attributes of all symbols that are made inside; inner scopes add to outer ones."""

    def __init__(self, **attributes: str) -> None:
        """Attributes by name, strings.

        Raises:
            MXNetError: one is no string.
        """
        for name, value in attributes.items():
            if not isinstance(value, str):
                raise MXNetError(f"AttrScope: {name} must be a str, got {value!r}")
        self._own, self._all = attributes, attributes
        self._outer: list[AttrScope] = []

    def get(self, attributes: dict[str, str] | None) -> dict[str, str]:
        """``attributes`` beside those of the scope."""
        return {**self._all, **(attributes or {})}

    def __enter__(self) -> "AttrScope":
        self._outer.append(_current.attributes)
        self._all = {**_current.attributes._all, **self._own}
        _current.attributes = self
        return self

    def __exit__(self, *error: object) -> None:
        _current.attributes = self._outer.pop()


class _Current(threading.local):
    """The scopes of a thread."""

    def __init__(self) -> None:
        self.names, self.attributes = NameManager(), AttrScope()


_current: Any = _Current()


def current_names() -> NameManager:
    """The innermost manager of names."""
    names: NameManager = _current.names
    return names


def current_attributes() -> AttrScope:
    """The innermost scope of attributes."""
    scope: AttrScope = _current.attributes
    return scope
