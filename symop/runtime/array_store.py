"""Array stores: arrays by variable name, stacked in one array where a loop reads one per step."""

import weakref
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, NamedTuple

import jax

from registry.xla.unstack import put_together

Name = str | tuple[str, ...]
"""The name of an array, or the names of all arrays that one stack holds."""


class Stored(NamedTuple):
    """Arrays by name, some stacked in one array; replaced as a whole so that both fields agree.

    Attributes:
        held: Arrays by name; a stack is keyed by the tuple of its names.
        places: For each stacked name, all names in its stack and its index.
    """

    held: dict[Name, Any]
    places: dict[str, tuple[tuple[str, ...], int]]

    def __contains__(self, name: object) -> bool:
        return name in self.held or name in self.places

    def value(self, name: str) -> Any:
        """Returns one array; a slice of its stack if it has one."""
        if name not in self.places:
            return self.held[name]
        names, i = self.places[name]
        return self.held[names][i]

    def names(self) -> Iterator[str]:
        """Yields the names of all arrays."""
        for name in self.held:
            yield from (name,) if isinstance(name, str) else name

    def apart(self, names: Iterable[str]) -> "Stored":
        """Returns the same arrays, with the stacks that hold one of ``names`` split."""
        stacks = {self.places[name][0] for name in names if name in self.places}
        if not stacks:
            return self
        held = {name: one for name, one in self.held.items() if name not in stacks}
        for stack in stacks:
            held.update(zip(stack, self.held[stack], strict=True))
        places = {name: one for name, one in self.places.items() if one[0] not in stacks}
        return Stored(held, places)

    def together(self, names: tuple[str, ...]) -> "Stored":
        """Returns the same arrays, with those of ``names`` as one stack, in this order."""
        if names in self.held:
            return self
        array = put_together([self.value(name) for name in names])
        alone, places = self.apart(names)
        rest = {name: one for name, one in alone.items() if name not in names}
        inside = {name: (names, i) for i, name in enumerate(names)}
        return Stored({**rest, names: array}, {**places, **inside})


class Holdings(MutableMapping[str, Any]):
    """A dict of arrays; members of a stack are slices of it, made on access.

    Attributes:
        touched: The names whose arrays a user has replaced since the owner last examined them.
    """

    def __init__(
        self, arrays: Mapping[str, Any], stacks: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        """Stores ``arrays``; ``stacks`` names the variables to stack, in order."""
        held: dict[Name, Any] = {}
        held.update(arrays)
        self._stored = Stored(held, {})
        self._order = dict.fromkeys(arrays)
        self._stacks = {stack: tuple(names) for stack, names in (stacks or {}).items()}
        self.touched: set[str] = set()

    # Dict methods

    def __getitem__(self, name: str) -> Any:
        return self._stored.value(name)

    def __setitem__(self, name: str, array: Any) -> None:
        self._stored = self._stored.apart([name])
        self._stored.held[name] = array
        self._order.setdefault(name)
        self.touched.add(name)

    def __delitem__(self, name: str) -> None:
        del self._order[name]
        self._stored = self._stored.apart([name])
        del self._stored.held[name]
        self.touched.add(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._order)

    def __len__(self) -> int:
        return len(self._order)

    def __repr__(self) -> str:
        return repr(dict(self))

    # Inputs and outputs of compiled functions

    def whole(self, name: str) -> Any:
        """Returns the array of a variable or of a stack."""
        key = self._stacked(name)
        return self[key] if isinstance(key, str) else self._stored.held[key]

    def _stacked(self, name: str) -> Name:
        """Returns the key of a variable or of a stack, after stacking its arrays."""
        if name not in self._stacks:
            return name
        self._stored = self._stored.together(self._stacks[name])
        return self._stacks[name]

    def replace(self, names: Sequence[str], arrays: Iterable[Any]) -> None:
        """Stores ``arrays`` of the declared types for variables or stacks.

        A single operation of the interpreter consumes and stores the arrays.
        """
        keys = [self._stacked(name) for name in names]
        alone = [key for key in keys if isinstance(key, str)]
        self._order.update(dict.fromkeys(alone))
        self._stored = self._stored.apart(alone)
        self._stored.held.update(zip(keys, arrays, strict=False))

    def arrays(self) -> list[Any]:
        """Returns all stored arrays; those of a stack as one array."""
        return list(self._stored.held.values())

    # Conversion to dicts

    def copy(self) -> dict[str, Any]:
        """Returns a dict of the same arrays, with the stacks split."""
        return dict(self)

    def __or__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return {**self, **other}

    def __ror__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return {**other, **self}


_register: Any = jax.tree_util.register_pytree_with_keys
# As a pytree it equals the dict it represents, and unflattens to one, with keys in sorted order.
_register(
    Holdings,
    lambda held: (
        [(jax.tree_util.DictKey(name), held[name]) for name in sorted(held)],
        tuple(sorted(held)),
    ),
    lambda names, arrays: dict(zip(names, arrays, strict=True)),
)


Held = dict[str, Any] | Holdings


def held_by(arrays: Mapping[str, Any], stacks: Mapping[str, Sequence[str]]) -> Held:
    """Returns ``arrays`` as a dict, which is a pytree; as ``Holdings`` if some are stacked."""
    return Holdings(arrays, stacks) if stacks else dict(arrays)


def whole(held: Held, name: str) -> Any:
    """Returns the array of a variable or of a stack."""
    return held.whole(name) if isinstance(held, Holdings) else held[name]


def replace(held: Held, names: Sequence[str], arrays: Iterable[Any]) -> None:
    """Stores ``arrays`` for variables or stacks, without marking them as touched.

    A single operation of the interpreter consumes and stores the arrays, so that an interrupt comes
    either before or after.
    """
    if isinstance(held, Holdings):
        held.replace(names, arrays)
    else:
        held.update(zip(names, arrays, strict=False))


def arrays_of(held: Held) -> list[Any]:
    """Returns all arrays; those of a stack as one array."""
    return held.arrays() if isinstance(held, Holdings) else list(held.values())


class Seen:
    """A record of the arrays already examined, by which new ones are detected.

    References are weak, so an array that is replaced is freed immediately.
    """

    def __init__(self) -> None:
        """Creates an empty record."""
        self._seen: dict[str, weakref.ref[Any]] = {}

    def trust(self, held: Held, names: Iterable[str]) -> None:
        """Records the arrays of ``names`` as examined."""
        if isinstance(held, Holdings):
            held.touched.difference_update(names)
        else:
            self._seen.update({name: weakref.ref(held[name]) for name in names})

    def new(self, held: Held) -> list[str]:
        """Returns the names of arrays not examined yet."""
        if isinstance(held, Holdings):
            return sorted(held.touched & held.keys())
        return [name for name, array in held.items() if self._seen[name]() is not array]
