"""Running a program: one compiled function over what is fed and what is kept, which it donates."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from registry.errors import FeedError
from registry.types import VarKind, VarType
from registry.values import SelectedRows
from symop import random
from symop.function import bare_where_native, fed
from symop.graph import topological
from symop.lowering import Schedule
from symop.naming import require_known
from symop.ndarray import NDArray
from symop.program_block import Block

_NO_KEY = None, 0


class Runner:
    """What one choice of values to fetch takes and gives, compiled when it first runs.

    Attributes:
        kept: names of the parameters and states that must have values.
    """

    def __init__(self, block: Block, fetch: Sequence[str], training: bool) -> None:
        """Plan to compute ``fetch`` and what the block updates."""
        updates = dict(block.desc.updates)
        ends = [block.values[updates.get(name, name)] for name in fetch]
        new = [block.values[name] for name in updates.values()]
        needed = set(topological([*ends, *new]))
        own = {n: block.values[n] for n, v in block.variables.items() if v.role != "intermediate"}
        self._arguments = [n for n in own if block.variables[n].role == "argument"]
        self._feeds = [(n, own[n]) for n in self._arguments if own[n] in needed]
        self._updated = list(updates)
        self._written = [name for name in updates if own[name] in needed]
        read = [n for n in own if block.variables[n].persistable and own[n] in needed]
        self._read = [name for name in read if name not in updates]
        self.kept = [*self._written, *self._read]
        order = [own[name] for name in self.kept] + [node for _, node in self._feeds]
        self._schedule = Schedule(
            [*ends, *new],
            order,
            bare_where_native,
            training=training,
            keys=list(block.key_nodes.values()),
            chained=False,
        )
        self._count = len(ends)
        # What is kept is donated by the next run, so what is fetched must lie in memory of its own.
        self._copied = [i for i, name in enumerate(fetch) if name in updates]
        self._checked: list[tuple[Any, Any]] = [(None, None)] * len(self._feeds)
        self._fed_names: Any = None
        self._compiled = jax.jit(self._run, donate_argnums=0)

    def _run(
        self, written: list[Any], read: list[Any], feeds: list[Any], root: Any, offset: Any
    ) -> tuple[list[Any], list[Any]]:
        results, _ = self._schedule([*written, *read, *feeds], root, offset)
        found = results[: self._count]
        for i in self._copied:
            found[i] = jax.tree_util.tree_map(jnp.copy, found[i])
        return found, results[self._count :]

    def __call__(self, feed: Mapping[str, Any], scope: dict[str, Any]) -> list[Any]:
        """The fetched values; ``scope`` holds the new ones of what is updated afterwards."""
        if feed.keys() != self._fed_names:
            self._check_names(feed)
        feeds = [self._array(i, name, feed[name]) for i, (name, _) in enumerate(self._feeds)]
        written = [scope[name] for name in self._written]
        read = [scope[name] for name in self._read]
        schedule = self._schedule
        root, offset = random.draw(schedule.draws) if schedule.needs_key else _NO_KEY
        found: list[Any]
        found, new = self._compiled(written, read, feeds, root, offset)
        for name, value in zip(self._updated, new, strict=True):
            scope[name] = value
        return found

    def _check_names(self, feed: Mapping[str, Any]) -> None:
        require_known("run", feed, self._arguments)
        require_known("run: what is needed", [n for n, _ in self._feeds], list(feed))
        self._fed_names = set(feed)

    def _array(self, index: int, name: str, value: Any) -> Any:
        """``value`` checked; what is of the shape and dtype of the last time needs no more."""
        if isinstance(value, jax.Array):
            if (value.shape, value.dtype) == self._checked[index]:
                return value
        elif isinstance(value, NDArray):
            value = value.value
        node = self._feeds[index][1]
        if node.type.kind is VarKind.SELECTED_ROWS:
            return _rows(name, node.type, value)
        array = fed(name, node, value)
        if isinstance(array, jax.Array):
            self._checked[index] = array.shape, array.dtype
        return array


def _rows(name: str, type: VarType, value: Any) -> SelectedRows:
    """``value``, which must be rows of ``type``."""
    if not isinstance(value, SelectedRows) or value.type is not type:
        got = value.type if isinstance(value, SelectedRows) else value.__class__.__name__
        raise FeedError(f"{name}: a value of type {type} must be fed, got {got}")
    return value
