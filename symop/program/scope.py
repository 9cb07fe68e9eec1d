"""The values of a program's parameters and states, by name."""

import functools
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from itertools import compress
from typing import Any, Concatenate, ParamSpec, TypeVar

import jax

from registry.errors import BusyError
from symop.runtime.array_store import Name, Stored
from symop.runtime.donation import Cell, set_together
from symop.runtime.memory import copy_array
from symop.runtime.packing import unpack

P = ParamSpec("P")
R = TypeVar("R")


def _change(
    method: Callable[Concatenate["Scope", P], R],
) -> Callable[Concatenate["Scope", P], R]:
    """Wraps a method that changes the values of a scope, so that a run about to start restarts.

    Raises:
        BusyError: A signal handler calls the method in the middle of another change.
    """

    @functools.wraps(method)
    def change(self: "Scope", /, *args: P.args, **named: P.kwargs) -> R:
        with self.cell.lock:
            if self._changes:
                raise BusyError(
                    "scope: a signal handler must not run a program or set values while they are "
                    "being set, got it in the middle"
                )
            try:
                self._changes, self.ready, self.rest = True, None, None
                self.cell.given.clear()
                return method(self, *args, **named)
            finally:
                self._changes = False

    return change


class Scope(MutableMapping[str, Any]):
    """Values of parameters and states by name; the results of the last run are merged on access.

    If a loop of a program reads one of several values in each step, they may be stacked in one
    array; a value is then extracted on access.

    An exception at any moment, including one raised by a signal handler, leaves the values as they
    were either before or after an operation.

    Attributes:
        names: the values that the last run updated.
        ready: ``names`` if a run can take the result of the last run directly, or None.
        rest: the other arguments of that run, except fed ones, or None if they are not known.
        cell: the result of the last run, whose state is the new values in the order of ``names``.
    """

    __slots__ = (
        "_changes",
        "_entered",
        "_named",
        "_values",
        "cell",
        "names",
        "ready",
        "rest",
    )

    def __init__(self) -> None:
        """Creates a scope without values."""
        self.names: tuple[Name, ...] = ()
        self.cell = Cell()
        self.ready: tuple[Name, ...] | None = None
        self.rest: tuple[Any, ...] | None = None
        self._values = Stored({}, {})
        self._entered: list[Any] | None = None
        self._changes = False
        self._named: dict[int, Name] | None = None

    @property
    def held(self) -> dict[Name, Any]:
        """The values, without those of the last run."""
        return self._values.held

    @_change
    def expect(self, names: tuple[Name, ...]) -> None:
        """Prepares for a run that updates ``names``."""
        if self.names is not names:
            self._forget()
            self.names = names
        self.ready = names

    def keep(self, rest: tuple[Any, ...], operands: list[Any]) -> None:
        """Keeps what a run reads and does not update, for the next run of the same kind.

        Nothing is kept if a change emptied ``operands``. One operation checks and sets, so that no
        signal handler runs in between.
        """
        with self.cell.lock:
            set_together((self,), "rest", compress((rest,), (operands,)))

    def settled(self) -> dict[Name, Any]:
        """Returns all values."""
        return self._settled().held

    def _settled(self) -> Stored:
        """Returns all values, with the result of the last run, which a run can still donate."""
        if not self.cell.last:
            return self._values
        with self.cell.lock:
            last = self.cell.last[0] if self.cell.last else None
            if last is None or last is self._entered:
                return self._values
            by_name = dict(zip(self.names, map(unpack, last[0]), strict=True))
            held, places = self._values.apart([one for one in by_name if isinstance(one, str)])
            values = Stored({**held, **by_name}, places)
            # A signal handler may have run the program since; its values are merged on access.
            self._values, self._entered, self._named = values, last, None
            return values

    def _forget(self) -> None:
        """Merges the result of the last run, which the cell then no longer holds."""
        self._settled()
        self.cell.clear()
        self._entered = None

    def whole(self, name: Name) -> Any:
        """Returns the value of a variable, unstacked if needed, or the stack of several variables.

        Raises:
            KeyError: a value is missing.
        """
        held, places = self._settled()
        if name in held and name not in places:
            return held[name]
        return self._put_together(name)

    @_change
    def _put_together(self, name: Name) -> Any:
        """Stacks or unstacks values so that ``name`` has an array of its own; returns it."""
        self._forget()
        held = self._values.held
        if isinstance(name, str):
            self._take_apart([name])
        elif name not in held:
            self._named, self._values = None, self._values.together(name)
        return self._values.held[name]

    def _take_apart(self, names: Iterable[str]) -> dict[Name, Any]:
        """Unstacks the arrays that contain one of ``names``; returns all values."""
        self._forget()
        values = self._values.apart(names)
        if values is not self._values:
            self._named, self._values = None, values
        return self._values.held

    def _own(self, name: str, value: Any) -> Any:
        """Returns ``value``, copied if another name holds it: an array cannot be donated twice."""
        held = self._values.held
        if self._named is None:
            self._named = {id(one): key for key, one in held.items()}
        other = self._named.setdefault(id(value), name)
        shared = other != name and held.get(other) is value
        self._named[id(value)] = other if shared else name
        return copy_array(value) if shared and isinstance(value, jax.Array) else value

    def __getitem__(self, name: str) -> Any:
        return self._settled().value(name)

    @_change
    def __setitem__(self, name: str, value: Any) -> None:
        held = self._take_apart([name])
        held[name] = self._own(name, value)

    @_change
    def __delitem__(self, name: str) -> None:
        del self._take_apart([name])[name]

    def __iter__(self) -> Iterator[str]:
        return self._settled().names()

    def __len__(self) -> int:
        held, places = self._settled()
        return sum(isinstance(name, str) for name in held) + len(places)

    def __contains__(self, name: object) -> bool:
        return name in self._settled()

    def __repr__(self) -> str:
        return f"<Scope of {', '.join(self) or 'nothing'}>"

    @_change
    def update(self, *args: Any, **named: Any) -> None:
        """Sets all values, or none if an exception is raised."""
        new: dict[str, Any] = dict(*args, **named)
        held = self._take_apart(new)
        first: dict[int, str] = {}
        owned: dict[Name, Any] = {}
        for name, value in new.items():
            twice = first.setdefault(id(value), name) != name and isinstance(value, jax.Array)
            owned[name] = copy_array(value) if twice else self._own(name, value)
        held.update(owned)
