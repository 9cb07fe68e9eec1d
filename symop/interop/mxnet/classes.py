"""Registries of classes: initializers, metrics and optimizers by name or description."""

import json
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from symop.interop.mxnet.errors import MXNetError, near

T = TypeVar("T")
C = TypeVar("C", bound=type)


class Classes(Generic[T]):
    """A registry of classes of one kind.

    Example:
        >>> numbers = Classes("number", int)
        >>> numbers.create("bool", 1)
        Traceback (most recent call last):
        ...
        symop.interop.mxnet.errors.MXNetError: number: there must be one called so, got 'bool'
        >>> numbers.register(bool)
        <class 'bool'>
        >>> numbers.create("Bool", 1), numbers.create('["bool", {}]')
        (True, False)
    """

    def __init__(self, kind: str, base: type[T]) -> None:
        """Creates an empty registry; ``kind`` is used in messages and in descriptions.

        All registered classes must derive from ``base``.
        """
        self.kind, self.base = kind, base
        self.known: dict[str, Callable[..., T]] = {}

    def register(self, made: C, name: str | None = None) -> C:
        """Registers the class ``made`` by ``name``, or its own name, in lower case; a decorator.

        Raises:
            MXNetError: it does not derive from ``base``.
        """
        classes: tuple[type, ...] = made.__mro__
        if self.base not in classes:
            raise MXNetError(
                f"register: a class derived from {self.base.__name__} must be given, got {made!r}"
            )
        self.known[(name or made.__name__).lower()] = made
        return made

    def alias(self, *names: str) -> Callable[[C], C]:
        """A decorator that registers a class under further names."""

        def decorate(made: C) -> C:
            for name in names:
                self.register(made, name)
            return made

        return decorate

    def create(self, given: Any, *args: Any, **kwargs: Any) -> T:
        """Creates an instance of a registered class.

        Args:
            given: its name; an instance, which is returned unchanged; or a description in JSON:
                ``["name", {arguments}]`` or an object of arguments that includes the name.
            *args: positional arguments for a named class.
            **kwargs: keyword arguments for a named class.

        Raises:
            MXNetError: there is no class of this name.
        """
        if isinstance(given, self.base):
            if args or kwargs:
                raise MXNetError(f"{self.kind}: an instance must be given alone, got {kwargs}")
            return given
        if isinstance(given, str) and given[:1] in ("[", "{"):
            given = json.loads(given)
        if isinstance(given, list):
            return self.create(given[0], **given[1])
        if isinstance(given, dict):
            return self.create(**{("given" if k == self.kind else k): v for k, v in given.items()})
        entry = self.known.get(str(given).lower())
        if entry is None:
            meant = near(str(given), self.known)
            raise MXNetError(f"{self.kind}: there must be one called so, got {given!r}{meant}")
        return entry(*args, **kwargs)
