"""The values of a program's parameters and states, by name."""

from collections.abc import Iterator, MutableMapping
from typing import Any

import jax
import jax.numpy as jnp

from registry.apart import put_together

Name = str | tuple[str, ...]
"""A parameter or a state; of several that lie in one array, as the weights of layers, all names."""


class Scope(MutableMapping[str, Any]):
    """Values of parameters and states by name; those of the last run are entered when looked at.

    Of values that lie in one array, because a loop of a program reads one in each step, one is
    taken out when it is looked at.

    Attributes:
        held: the values, but for those of the last run.
        names: what the last run updated.
        new: the values that it left.
    """

    __slots__ = ("_places", "held", "names", "new")

    def __init__(self) -> None:
        """Nothing has a value."""
        self.held: dict[Name, Any] = {}
        self.names: tuple[Name, ...] = ()
        self.new: list[Any] = []
        self._places: dict[str, tuple[tuple[str, ...], int]] = {}

    def settled(self) -> dict[Name, Any]:
        """All values."""
        if self.names:
            found = dict(zip(self.names, self.new, strict=True))
            self.names, self.new = (), []
            for name in [one for one in self._places if one in found]:
                self._take_apart(name)
            self.held.update(found)
        return self.held

    def whole(self, name: Name) -> Any:
        """The value of a variable that lies alone, or the array in which several lie from now on.

        Raises:
            KeyError: there is none.
        """
        held = self.settled()
        if isinstance(name, str):
            self._take_apart(name)
        elif name not in held:
            parts = [self[one] for one in name]
            for one in name:
                self._take_apart(one)
                del held[one]
            held[name] = put_together(parts)
            self._places.update((one, (name, i)) for i, one in enumerate(name))
        return held[name]

    def _take_apart(self, name: str) -> None:
        """Let what lies in one array with ``name`` lie alone."""
        if name in self._places:
            names, _ = self._places[name]
            for one, value in zip(names, self.settled().pop(names), strict=True):
                self.held[one] = value
                del self._places[one]

    def __getitem__(self, name: str) -> Any:
        held = self.settled()
        if name not in self._places:
            return held[name]
        names, i = self._places[name]
        return held[names][i]

    def __setitem__(self, name: str, value: Any) -> None:
        self._take_apart(name)
        held = self.settled()
        # An array under two names could not be donated for both.
        shared = any(one is value for key, one in held.items() if key != name)
        held[name] = jnp.copy(value) if shared and isinstance(value, jax.Array) else value

    def __delitem__(self, name: str) -> None:
        self._take_apart(name)
        del self.settled()[name]

    def __iter__(self) -> Iterator[str]:
        for name in self.settled():
            if isinstance(name, str):
                yield name
            else:
                yield from name

    def __len__(self) -> int:
        return sum(isinstance(name, str) for name in self.settled()) + len(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self.settled() or name in self._places

    def __repr__(self) -> str:
        return f"<Scope of {', '.join(self) or 'nothing'}>"
