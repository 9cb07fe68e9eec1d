"""Arrays by the names of variables, some of which lie in one array for all steps of a loop."""

import weakref
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from registry.apart import put_together


class Holdings(MutableMapping[str, Any]):
    """A dict of arrays; those of a stack are slices of it, which are made when asked for.

    Attributes:
        touched: the names whose arrays somebody replaced since the owner looked at them.
    """

    def __init__(
        self, arrays: Mapping[str, Any], stacks: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        """Hold ``arrays``; ``stacks`` names the variables that are to be stacked, in order."""
        self._own = dict(arrays)
        self._order = dict.fromkeys(arrays)
        self._members = dict(stacks or {})
        self._place = {
            name: (stack, i)
            for stack, members in self._members.items()
            for i, name in enumerate(members)
        }
        self._stacks: dict[str, Any] = {}
        self.touched: set[str] = set()

    # As a dict

    def __getitem__(self, name: str) -> Any:
        if name not in self._order:
            raise KeyError(name)
        found = self._own.get(name)
        if found is None:
            stack, i = self._place[name]
            return self._stacks[stack][i]
        return found

    def __setitem__(self, name: str, array: Any) -> None:
        self._own[name] = array
        self._order.setdefault(name)
        self.touched.add(name)

    def __delitem__(self, name: str) -> None:
        if name not in self._order:
            raise KeyError(name)
        self._scatter(name)
        self._own.pop(name, None)
        del self._order[name]
        self.touched.add(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._order)

    def __len__(self) -> int:
        return len(self._order)

    def __repr__(self) -> str:
        return repr(dict(self))

    def _scatter(self, name: str) -> None:
        """Hold the arrays of the stack in which ``name`` lies by themselves again."""
        stack, _ = self._place.get(name, ("", 0))
        whole = self._stacks.pop(stack, None)
        if whole is not None:
            own = dict(zip(self._members[stack], whole, strict=True))
            self._own = {**own, **self._own}

    # As what a compiled function takes and gives

    def whole(self, name: str) -> Any:
        """The array of a variable, or a stack."""
        if name in self._members:
            self._gather(name)
            return self._stacks[name]
        return self[name]

    def _gather(self, stack: str) -> None:
        """Put what was replaced into the stack."""
        members = self._members[stack]
        put = {i: self._own[name] for i, name in enumerate(members) if name in self._own}
        if not put:
            return
        parts = put_together(list(put.values()))
        if len(put) < len(members):
            parts = self._stacks[stack].at[jnp.asarray(list(put))].set(parts)
        self._stacks[stack] = parts
        for i in put:
            del self._own[members[i]]

    def replace(self, name: str, array: Any) -> None:
        """Hold ``array`` for a variable, or for a stack, of the declared type."""
        members = self._members.get(name)
        if members is None:
            self._own[name] = array
            self._order.setdefault(name)
            return
        self._stacks[name] = array
        for one in members:
            self._own.pop(one, None)

    def arrays(self) -> list[Any]:
        """All arrays that are held, as they lie."""
        return [*self._own.values(), *self._stacks.values()]

    # As other dicts

    def copy(self) -> dict[str, Any]:
        """A dict of the same arrays, each by itself."""
        return dict(self)

    def __or__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return {**self, **other}

    def __ror__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return {**other, **self}


_register: Any = jax.tree_util.register_pytree_with_keys
# To JAX it is like the dict that it stands for, and becomes one: arrays in the order of the names.
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
    """``arrays`` in a dict, which JAX knows as a tree; in a ``Holdings`` if some are stacked."""
    return Holdings(arrays, stacks) if stacks else dict(arrays)


def whole(held: Held, name: str) -> Any:
    """The array of a variable, or a stack."""
    return held.whole(name) if isinstance(held, Holdings) else held[name]


def replace(held: Held, name: str, array: Any) -> None:
    """Hold ``array`` for a variable, or for a stack, without being touched."""
    if isinstance(held, Holdings):
        held.replace(name, array)
    else:
        held[name] = array


def arrays_of(held: Held) -> list[Any]:
    """All arrays, as they lie."""
    return held.arrays() if isinstance(held, Holdings) else list(held.values())


class Seen:
    """Which arrays were looked at, so that others are known to be new.

    It refers to them weakly: an array that is replaced is gone at once.
    """

    def __init__(self) -> None:
        """Nothing was."""
        self._seen: dict[str, weakref.ref[Any]] = {}

    def trust(self, held: Held, names: Iterable[str]) -> None:
        """The arrays of ``names`` were looked at."""
        if isinstance(held, Holdings):
            held.touched.difference_update(names)
        else:
            self._seen.update({name: weakref.ref(held[name]) for name in names})

    def new(self, held: Held) -> list[str]:
        """The names of arrays that were not."""
        if isinstance(held, Holdings):
            return sorted(held.touched & held.keys())
        return [name for name, array in held.items() if self._seen[name]() is not array]
