"""Running a program: one compiled function over what is fed and what is kept, which it donates."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from registry.bodies import settled
from registry.errors import FeedError, ProgramError
from registry.lod import LoDTensor
from registry.types import VarKind, VarType
from registry.values import SelectedRows
from symop import random
from symop.function import Settled, bare_where_native, fed, over_stacks, require_whole
from symop.graph import Node, topological
from symop.lowering import Schedule, type_of
from symop.naming import require_known
from symop.ndarray import NDArray
from symop.program_block import Block
from symop.repeats.loops import Aim
from symop.repeats.rolling import rolled
from symop.repeats.switch import is_rolling
from symop.scope import Name, Scope

_Array = type(jnp.zeros(()))
Key = tuple[Any, ...]
_NEVER = ("",)
"""The names of no run."""


class _OddError(Exception):
    """Something that is fed or kept is not an array of the declared type as it stands."""


class Keeper(Protocol):
    """What a run takes kept values from: a program.

    Attributes:
        scope: the values.
    """

    scope: Scope

    def fill(self, names: Sequence[str]) -> None:
        """Give their initial values to what has none in ``scope``."""


class Run(Protocol):
    """One run."""

    def __call__(self, feed: Mapping[str, Any], program: Keeper, key: Key = ()) -> Any:
        """The fetched values; the scope of ``program`` holds what is updated afterwards.

        Args:
            feed: what is fed, by name.
            program: what holds the rest.
            key: the random key and its number; drawn if there is none.

        Raises:
            FeedError: what is fed or kept does not fit.
            ProgramError: JAX traces the run of a program that updates something.
        """


class Runner:
    """What one choice of values to fetch takes and gives, compiled when it first runs.

    Types are checked when JAX traces it, which it does anew for each new type: a run of arrays
    like those before pays for no check.

    Attributes:
        kept: names of the parameters and states that must have values.
        serial: that of the block when it was made.
        run: runs it once.
    """

    def __init__(self, block: Block, fetch: Sequence[str], *, single: bool, training: bool) -> None:
        """Plan to compute ``fetch``, one value or a list, and what the block updates."""
        self.serial, self._single = block.serial, single
        graph = _graph_of(block, fetch)
        new_of = graph.updates
        needed = set(topological([*graph.outputs, *new_of.values()]))
        self._own = {graph.stacks.get(name, name): one for name, one in graph.variables.items()}
        self._arguments = [n for n, one in block.variables.items() if one.role == "argument"]
        self._feeds = {n: self._own[n] for n in self._arguments if self._own[n] in needed}
        self._fed = tuple(self._feeds)
        changed = [name for name, one in self._own.items() if one in new_of]
        written = [name for name in changed if self._own[name] in needed]
        # JAX gives the memory of what is donated to the first results of its type, so these come
        # in the order of what is donated, and before all others; else XLA copies whole tables.
        self._updated = (*written, *[name for name in changed if self._own[name] not in needed])
        new = [new_of[self._own[name]] for name in self._updated]
        there = [name for name, one in self._own.items() if one in needed]
        read = [name for name in there if name not in changed and name not in self._feeds]
        self.kept = [*written, *read]
        self._count = len(new)
        # What is kept is donated by the next run, so what is fetched must lie in memory of its own.
        self._copied = [i for i, name in enumerate(fetch) if name in block.desc.updates]
        self._schedule = Schedule(
            [*new, *graph.outputs],
            [*[self._own[name] for name in self.kept], *self._feeds.values()],
            bare_where_native,
            training=training,
            keys=list(block.key_nodes.values()),
        )
        self._draws = self._schedule.draws if self._schedule.needs_key else 0
        self._written, self._read, self._read_names = written, read, set(read)
        self._all_written = bool(changed) and len(written) == len(changed)
        # After a run like it, what that left is all that this one takes, beside what is fed.
        alone = self._all_written and not (read or self._draws)
        self._steady = self._updated if alone else _NEVER
        self._careful = False
        self._compiled = jax.jit(self._run, donate_argnums=0)
        # What has no room yet has no memory to give away, of which JAX would warn.
        self._growing = jax.jit(self._run)
        self.run: Run = self._made_run()

    def _run(self, written: list[Any], *rest: Any) -> tuple[list[Any], list[Any]]:
        # What is fed comes one by one: JAX would sort the keys of a dict in each call.
        feeds, rest = rest[: len(self._feeds)], rest[len(self._feeds) :]
        (read,), key = (rest[:1], rest[1:]) if self._read else (([],), rest)
        given = [*written, *read, *feeds]
        nodes: dict[Name, Node] = {name: self._own[name] for name in self.kept}
        nodes.update(self._feeds)
        for (name, node), value in zip(nodes.items(), given, strict=True):
            self._require_type(name, node, value)
        # A Python number is weakly typed: it would take the dtype of what it meets.
        types = [node.type.strong() for node in nodes.values()]
        exact = [settled(one, type) for one, type in zip(given, types, strict=True)]
        results, _ = self._schedule(exact, *key)
        found = results[self._count :]
        for i in self._copied:
            found[i] = jax.tree_util.tree_map(jnp.copy, found[i])
        return results[: self._count], found

    def _require_type(self, name: Name, node: Node, value: Any) -> None:
        """Refuse a value that is not of the declared type."""
        got = type_of(value) if _has_type(value) else value.__class__.__name__
        declared = node.type.strong()
        if isinstance(got, VarType) and got.strong() is declared:
            return
        if not self._careful:
            raise _OddError
        what = "rows" if declared.kind is VarKind.SELECTED_ROWS else "an array"
        shown = name if isinstance(name, str) else f"{name[0]}..{name[-1]}"
        raise FeedError(f"{shown}: {what} of type {declared} must be given, got {got}")

    def _made_run(self) -> Run:
        """``run`` of what is like the run before, over locals.

        Of a small program, each attribute looked up is a hundredth of what a jitted call takes.
        """
        compiled, fed, steady, single = self._compiled, self._fed, self._steady, self._single
        count = len(fed)

        def run(feed: Mapping[str, Any], program: Keeper, key: Key = ()) -> Any:
            scope = program.scope
            if scope.names is not steady or len(feed) != count:
                return self._first(feed, program, key)
            given = [scope.new]
            try:
                for name in fed:
                    value = feed[name]
                    if value.__class__ is not _Array:
                        self._look_at(name, value)
                    given.append(value)
            except KeyError:
                return self._first(feed, program, key)
            try:
                new, found = compiled(*given)
            except Exception as error:
                return self._after(error, scope.new, feed, program, key)
            if new[0].__class__ is not _Array:
                self._require_still(new)
            scope.new = new
            return found[0] if single else found

        return run

    def _first(self, feed: Mapping[str, Any], program: Keeper, key: Key = ()) -> Any:
        """A run that follows no run like it, or that takes more than is fed and was left."""
        for name, value in feed.items():
            if value.__class__ is not _Array:
                self._look_at(name, value)
        if self._careful or any(isinstance(one, LoDTensor) for one in feed.values()):
            feed = self._as_arrays(feed)
        else:
            feed = self._needed(feed)
        written, rest = self._kept_values(program)
        compiled = self._growing if any(map(_has_no_room, written)) else self._compiled
        if self._draws:
            key = key or random.draw(self._draws)
            rest = (*rest, *key)
        try:
            new, found = compiled(written, *feed.values(), *rest)
        except Exception as error:
            return self._after(error, written, feed, program, key)
        self._require_still(new)
        program.scope.names, program.scope.new = self._updated, new
        return found[0] if self._single else found

    def _after(
        self,
        error: Exception,
        written: Sequence[Any],
        feed: Mapping[str, Any],
        program: Keeper,
        key: Key,
    ) -> Any:
        """Run once more with what is not an array made one first, if ``error`` may come of that.

        So it is where an array is fed that the run would donate: with a copy.
        """
        _require_alive(written, error)
        shared = [name for name, one in feed.items() if any(one is other for other in written)]
        if shared:
            copies = {name: jnp.copy(feed[name]) for name in shared}
            return self.run({**feed, **copies}, program, key)
        if self._careful or not isinstance(error, (_OddError, TypeError, OverflowError)):
            raise error
        return self._carefully(feed, program, key)

    def _carefully(self, feed: Mapping[str, Any], program: Keeper, key: Key) -> Any:
        """Run with what is not an array made one first, from now on."""
        run, self._careful, self.run = self.run, True, self._first
        try:
            return self._first(feed, program, key)
        except BaseException:
            self._careful, self.run = False, run
            raise

    def _look_at(self, name: str, value: Any) -> None:
        """Refuse what is fed and cannot be: a tracer to a run that updates, ids that do not fit.

        Raises:
            FeedError: JAX would cut off what the declared dtype cannot hold.
            ProgramError: a state would become a tracer, after the old one was given away.
        """
        if not isinstance(value, np.ndarray):
            self._require_still(jax.tree_util.tree_leaves(value))
        elif name in self._feeds and value.dtype.kind in "iu":
            require_whole(name, self._feeds[name].type.dtype, value)

    def _require_still(self, values: Sequence[Any]) -> None:
        """Refuse to run under a transformation of JAX what updates something.

        Raises:
            ProgramError: it does, and ``values`` are traced.
        """
        if self._updated and any(isinstance(one, jax.core.Tracer) for one in values):
            raise ProgramError(
                "run: a program that updates something must not run inside of a JAX "
                "transformation, got one; use program.to_symbol(...).to_jax()"
            )

    def _kept_values(self, program: Keeper) -> tuple[list[Any], tuple[Any, ...]]:
        """The values of what is updated and, if there is such, of what is only read."""
        scope = program.scope
        held = scope.held
        if scope.names is self._updated and self._all_written and held.keys() >= self._read_names:
            return scope.new, ([held[name] for name in self._read],) if self._read else ()
        names = [n for name in self.kept for n in ((name,) if isinstance(name, str) else name)]
        program.fill([name for name in names if name not in scope])
        for name in self.kept:
            if not isinstance(name, str) and name not in held:
                self._require_alike(name, scope)
        written = [scope.whole(name) for name in self._written]
        read = [scope[n] if isinstance(n, str) else scope.whole(n) for n in self._read]
        return written, (read,) if read else ()

    def _require_alike(self, names: tuple[str, ...], scope: Scope) -> None:
        """Refuse values that are about to lie in one array and are not of the declared type."""
        whole = self._own[names].type
        declared = VarType(whole.shape[1:], whole.dtype)
        for name in names:
            value = scope[name]
            got = type_of(value) if _has_type(value) else value.__class__.__name__
            if not isinstance(got, VarType) or got.strong() != declared:
                raise FeedError(f"{name}: an array of type {declared} must be given, got {got}")

    def _needed(self, feed: Mapping[str, Any]) -> dict[str, Any]:
        """What is fed of what is needed, in the order of the variables."""
        if not all(isinstance(name, str) for name in feed):
            raise FeedError(f"run: what is fed must be named by str, got {list(feed)!r:.200}")
        require_known("run", feed, self._arguments)
        missing = [name for name in self._feeds if name not in feed]
        if missing:
            raise FeedError(
                f"run: {', '.join(self._feeds)} must be fed, got no {', '.join(missing)}"
            )
        return {name: feed[name] for name in self._feeds}

    def _as_arrays(self, feed: Mapping[str, Any]) -> dict[str, Any]:
        """What is fed, as the compiled function takes it."""
        parts = [(name, one) for name, one in feed.items() if isinstance(one, LoDTensor)]
        if parts:
            feed = dict(feed)
            for name, one in parts:
                feed.update(one.as_feed(name))
        needed = self._needed(feed)
        return {name: _array(name, self._feeds[name], one) for name, one in needed.items()}


def _graph_of(block: Block, fetch: Sequence[str]) -> Settled:
    """The values ``fetch`` and all updates of a block, over its variables.

    What is repeated becomes loops. Of parameters and states those of which a loop reads and updates
    one in each step lie in one variable.
    """
    updates = dict(block.desc.updates)
    outputs = [block.values[updates.get(name, name)] for name in fetch]
    own = {n: block.values[n] for n, v in block.variables.items() if v.role != "intermediate"}
    graph = Settled(outputs, own, [], {own[n]: block.values[v] for n, v in updates.items()}, {})
    if not is_rolling():
        return graph
    ends = [*graph.outputs, *graph.updates.values()]
    # Not by age: equal nodes of another program may be older.
    order, count = list(block.values.values()), len(graph.outputs)

    def settled(apart: frozenset[Node]) -> Settled:
        found = rolled(ends, order, aim=Aim(stacking=True, apart=apart))
        updates = dict(zip(graph.updates, found[count:], strict=True))
        return graph._replace(outputs=found[:count], updates=updates)

    kept = {name for name in own if block.variables[name].persistable}
    return over_stacks(settled, kept.issuperset)


def _has_no_room(value: Any) -> bool:
    """Whether a value is rows that were not put together yet."""
    return isinstance(value, SelectedRows) and value.rows.shape[0] == 0


def _require_alive(written: Sequence[Any], error: Exception) -> None:
    """Tell what it means that a run failed after its state was donated.

    Raises:
        ProgramError: the state is gone.
    """
    if any(isinstance(one, jax.Array) and one.is_deleted() for one in written):
        raise ProgramError(
            "run: it failed after the parameters were donated to it, so they are lost; load a "
            f"checkpoint or initialize anew ({error})"
        ) from error


def _array(name: str, node: Node, value: Any) -> Any:
    """``value`` as an array, where it is a number or a list."""
    if isinstance(value, (SelectedRows, jax.Array)):
        return value
    return fed(name, node, value.value if isinstance(value, NDArray) else value)


def _has_type(value: Any) -> bool:
    return isinstance(value, SelectedRows) or hasattr(value, "dtype")
