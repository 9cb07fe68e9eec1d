"""Running a program: one compiled function over what is fed and what is kept, which it donates."""

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
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
from symop.function import bare_where_native, fed, require_whole
from symop.graph import Node, by_age, topological
from symop.lowering import Schedule, type_of
from symop.naming import require_known
from symop.ndarray import NDArray
from symop.program_block import Block
from symop.repeats.rolling import rolled
from symop.repeats.switch import is_rolling

_Array = type(jnp.zeros(()))
Key = tuple[Any, ...]
_NEVER = ("",)
"""The names of no run."""


class _OddError(Exception):
    """Something that is fed or kept is not an array of the declared type as it stands."""


class Scope(MutableMapping[str, Any]):
    """Values of parameters and states by name; those of the last run are entered when looked at.

    Attributes:
        held: the values, but for those of the last run.
        names: what the last run updated.
        new: the values that it left.
    """

    __slots__ = ("held", "names", "new")

    def __init__(self) -> None:
        """Nothing has a value."""
        self.held: dict[str, Any] = {}
        self.names: tuple[str, ...] = ()
        self.new: list[Any] = []

    def settled(self) -> dict[str, Any]:
        """All values."""
        if self.names:
            self.held.update(zip(self.names, self.new, strict=True))
            self.names, self.new = (), []
        return self.held

    def __getitem__(self, name: str) -> Any:
        return self.settled()[name]

    def __setitem__(self, name: str, value: Any) -> None:
        held = self.settled()
        # An array under two names could not be donated for both.
        shared = any(one is value for key, one in held.items() if key != name)
        held[name] = jnp.copy(value) if shared and isinstance(value, jax.Array) else value

    def __delitem__(self, name: str) -> None:
        del self.settled()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.settled())

    def __len__(self) -> int:
        return len(self.settled())

    def __repr__(self) -> str:
        return f"<Scope of {', '.join(self) or 'nothing'}>"


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
        updates = dict(block.desc.updates)
        ends = [block.values[updates.get(name, name)] for name in fetch]
        new = [block.values[value] for value in updates.values()]
        needed = set(topological([*ends, *new]))
        own = {n: block.values[n] for n, v in block.variables.items() if v.role != "intermediate"}
        self._arguments = [n for n in own if block.variables[n].role == "argument"]
        self._feeds = {name: own[name] for name in self._arguments if own[name] in needed}
        self._fed = tuple(self._feeds)
        written = [name for name in updates if own[name] in needed]
        # JAX gives the memory of what is donated to the first results of its type, so these come
        # in the order of what is donated, and before all others; else XLA copies whole tables.
        self._updated = (*written, *[name for name in updates if own[name] not in needed])
        new = [block.values[updates[name]] for name in self._updated]
        read = [n for n in own if block.variables[n].persistable and own[n] in needed]
        read = [name for name in read if name not in updates]
        self.kept = [*written, *read]
        self._kept_names = set(self.kept)
        self._own = own
        self._count = len(new)
        # What is kept is donated by the next run, so what is fetched must lie in memory of its own.
        self._copied = [i for i, name in enumerate(fetch) if name in updates]
        results = [*new, *ends]
        if is_rolling():
            results = rolled(results, by_age(topological(results)))
        self._schedule = Schedule(
            results,
            [*[own[name] for name in self.kept], *self._feeds.values()],
            bare_where_native,
            training=training,
            keys=list(block.key_nodes.values()),
        )
        self._draws = self._schedule.draws if self._schedule.needs_key else 0
        self._written, self._read = written, read
        self._all_written = bool(updates) and written == list(updates)
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
        nodes = {**{name: self._own[name] for name in self.kept}, **self._feeds}
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

    def _require_type(self, name: str, node: Node, value: Any) -> None:
        """Refuse a value that is not of the declared type."""
        got = type_of(value) if _has_type(value) else value.__class__.__name__
        declared = node.type.strong()
        if isinstance(got, VarType) and got.strong() is declared:
            return
        if not self._careful:
            raise _OddError
        what = "rows" if declared.kind is VarKind.SELECTED_ROWS else "an array"
        raise FeedError(f"{name}: {what} of type {declared} must be given, got {got}")

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
        if scope.names is self._updated and self._all_written:
            return scope.new, ([scope.held[name] for name in self._read],) if self._read else ()
        held = scope.settled()
        if not held.keys() >= self._kept_names:
            program.fill([name for name in self.kept if name not in held])
        read = [held[name] for name in self._read]
        return [held[name] for name in self._written], (read,) if read else ()

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
