"""Scopes that users enter, such as ``so.name_scope``: one context variable for each kind.

An asyncio task inherits the scopes that are active when it starts; scopes it enters are its own. A
new thread starts outside all scopes, unless it runs in a copy of a context, as with
``asyncio.to_thread``.
"""

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Generic, TypeVar

Value = TypeVar("Value")


class _Entered(Generic[Value]):
    """One entry of a scope, distinct from other entries with the same value."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value


class Scopes(Generic[Value]):
    """The scopes of one kind that the current task or thread has entered.

    Leaving a scope removes only that scope, not those entered after it. Scopes may therefore be
    left out of order, as generators do, or in another task, where leaving has no effect.

    Attributes:
        present: A function that returns the entered scopes, from the outermost (the default) to
            the innermost. Node construction calls it directly to avoid the cost of a method call.

    Example:
        >>> depth = Scopes("depth", 0)
        >>> with depth.entered(3):
        ...     depth.current()
        3
        >>> depth.current()
        0
    """

    __slots__ = ("_variable", "present")

    def __init__(self, name: str, default: Value) -> None:
        """Creates a kind of scope; ``default`` is the value outside all scopes."""
        self._variable: ContextVar[tuple[_Entered[Value], ...]] = ContextVar(
            f"symop_{name}", default=(_Entered(default),)
        )
        self.present: Callable[[], tuple[_Entered[Value], ...]] = self._variable.get

    def current(self) -> Value:
        """Returns the value of the innermost scope."""
        return self.present()[-1].value

    def values(self) -> list[Value]:
        """Returns the values of all scopes, from the outermost (the default) to the innermost."""
        return [one.value for one in self.present()]

    def enter(self, value: Value) -> _Entered[Value]:
        """Enters a scope and returns the entry to pass to ``leave``."""
        entered = _Entered(value)
        self._variable.set((*self.present(), entered))
        return entered

    def leave(self, entered: _Entered[Value]) -> None:
        """Leaves a scope; has no effect in a context that has not entered it."""
        self._variable.set(tuple([one for one in self.present() if one is not entered]))

    def leave_last(self, value: Value) -> None:
        """Leaves the innermost scope whose value is the object ``value``."""
        for one in reversed(self.present()):
            if one.value is value:
                self.leave(one)
                return

    @contextlib.contextmanager
    def entered(self, value: Value) -> Iterator[Value]:
        """Returns a context manager in which ``value`` is the current value."""
        entered = self.enter(value)
        try:
            yield value
        finally:
            self.leave(entered)
