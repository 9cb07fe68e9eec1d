"""Scopes of symbol creation: automatic names, prefixes, and attributes."""

import threading
from collections import ChainMap
from typing import Any

from symop.graph.scoping import Scopes
from symop.interop.mxnet.errors import MXNetError


def _replace(scopes: Scopes[Any], scope: Any) -> None:
    """Makes ``scope`` the only one that the current thread has entered."""
    for one in scopes.values()[1:]:
        scopes.leave_last(one)
    scopes.enter(scope)


class _NamesType(type):
    """The class of ``NameManager``, whose attribute ``current`` is the innermost one."""

    @property
    def current(cls) -> "NameManager":
        """The innermost name manager of this thread."""
        return current_names()

    @current.setter
    def current(cls, names: "NameManager") -> None:
        _replace(_names, names)


class _AttributesType(type):
    """The class of ``AttrScope``, whose attribute ``current`` is the innermost one."""

    @property
    def current(cls) -> "AttrScope":
        """The innermost scope of this thread."""
        return current_attributes()

    @current.setter
    def current(cls, scope: "AttrScope") -> None:
        _replace(_attributes, scope)


class NameManager(metaclass=_NamesType):
    """Names symbols without a name after their operator, with a number.

    Example:
        >>> with NameManager() as names:
        ...     names.get(None, "fc"), names.get(None, "fc"), names.get("mine", "fc")
        ('fc0', 'fc1', 'mine')
    """

    def __init__(self) -> None:
        """Starts counting from zero."""
        self._counter: dict[str, int] = {}

    def get(self, name: str | None, hint: str) -> str:
        """``name`` if given, otherwise a new name derived from ``hint``."""
        if name:
            return name
        number = self._counter.get(hint, 0)
        self._counter[hint] = number + 1
        return f"{hint}{number}"

    def __enter__(self) -> "NameManager":
        _names.enter(self)
        return self

    def __exit__(self, *error: object) -> None:
        _names.leave_last(self)


class Prefix(NameManager):
    """Prepends a prefix to every name."""

    def __init__(self, prefix: str) -> None:
        """``prefix`` is prepended to names."""
        super().__init__()
        self._prefix = prefix

    def get(self, name: str | None, hint: str) -> str:
        """The name with the prefix."""
        return self._prefix + super().get(name, hint)


class AttrScope(metaclass=_AttributesType):
    """Sets attributes of all symbols created inside; inner scopes extend outer ones."""

    def __init__(self, **attributes: str) -> None:
        """Creates a scope of attributes, which are strings by name.

        Raises:
            MXNetError: an attribute is not a string.
        """
        for name, value in attributes.items():
            if not isinstance(value, str):
                raise MXNetError(f"AttrScope: {name} must be a str, got {value!r}")
        self._own = attributes

    @property
    def _attr(self) -> dict[str, str]:
        return self.get(None)

    def get(self, attributes: dict[str, str] | None) -> dict[str, str]:
        """``attributes`` combined with those of this scope and of its enclosing scopes."""
        entered = _attributes.values()
        places = [i for i, one in enumerate(entered) if one is self]
        outer = entered[: places[-1]] if places else []
        return dict(ChainMap(attributes or {}, self._own, *[one._own for one in reversed(outer)]))

    def __enter__(self) -> "AttrScope":
        _attributes.enter(self)
        return self

    def __exit__(self, *error: object) -> None:
        _attributes.leave_last(self)


class _Outermost(threading.local):
    """The name manager of a thread outside of all scopes: each thread counts separately."""

    def __init__(self) -> None:
        self.names = NameManager()


_outermost = _Outermost()
_names: Scopes[NameManager | None] = Scopes("mxnet_names", None)
_attributes = Scopes("mxnet_attributes", AttrScope())


def current_names() -> NameManager:
    """The innermost name manager."""
    return _names.current() or _outermost.names


def current_attributes() -> AttrScope:
    """The innermost attribute scope."""
    return _attributes.current()
