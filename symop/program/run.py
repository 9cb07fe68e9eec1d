"""Running a program: one compiled function of the fed and the kept values; donates the latter."""

import contextlib
import functools
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from registry.errors import BusyError, FeedError, ProgramError
from registry.lod import LoDTensor
from registry.operator.bodies import settled
from registry.types import VarKind, VarType, is_integer
from registry.values import SelectedRows
from symop import random
from symop.eager.ndarray import NDArray
from symop.graph.naming import require_known
from symop.graph.nodes import Node, topological
from symop.lowering.rules import bare_where_native
from symop.lowering.steps import Schedule, type_of
from symop.passes.fusion import fuse_loops
from symop.passes.roll_loops.loops import Aim
from symop.passes.roll_loops.rolling import roll
from symop.passes.roll_loops.switch import is_rolling
from symop.program.block import Block
from symop.program.scope import Scope
from symop.runtime.array_store import Name
from symop.runtime.donation import (
    ChangedError,
    DonatingStep,
    KeepsError,
    TracedError,
)
from symop.runtime.function import Specialized, as_fed, over_stacks, require_whole
from symop.runtime.memory import copy_array
from symop.runtime.packing import pack, unpack
from symop.runtime.placement import Placement, constrained_by

Key = tuple[Any, ...]
_TIMES = 100
_NEVER = ("",)
"""Names that match no run."""


@functools.cache
def _array_class() -> type:
    """Returns the class of JAX's arrays; called at the first run, as it initializes devices."""
    with jax.ensure_compile_time_eval():
        return type(jnp.zeros(()))


class _OddError(Exception):
    """Raised if a fed or kept value is not already an array of the declared type."""


class Keeper(Protocol):
    """The source of a run's kept values: a program.

    Attributes:
        scope: the values.
    """

    scope: Scope

    def fill(self, names: Sequence[str]) -> None:
        """Initializes the named values."""


class RunOnce(Protocol):
    """The type of a function that runs a program once."""

    def __call__(self, feed: Mapping[str, Any], program: Keeper, key: Key = ()) -> Any:
        """Returns the fetched values; the scope of ``program`` then holds the updated values.

        Args:
            feed: fed values by name.
            program: the source of the kept values.
            key: the random key and its number; drawn if empty.

        Raises:
            FeedError: a fed or kept value does not fit.
            ProgramError: JAX traces the run of a program that updates something.
        """


class Runner:
    """The inputs and outputs of one choice of fetched values, compiled on the first run.

    Types are checked while JAX traces, which happens once for each new combination of types: a run
    of arrays like the previous ones has no checking cost.

    Attributes:
        kept: names of the parameters and states that must have values.
        serial: the serial number of the block when the runner was made.
        run: runs the program once.
    """

    def __init__(
        self,
        block: Block,
        fetch: Sequence[str],
        *,
        single: bool,
        training: bool,
        placement: Placement | None = None,
    ) -> None:
        """Plans to compute ``fetch``, one value or a list, and the block's updates."""
        self.serial, self._single = block.serial, single
        self._placement = placement
        graph = _graph_of(block, fetch, placement)
        new_of = graph.updates
        needed = set(topological([*graph.outputs, *new_of.values()]))
        self._own = {graph.stacks.get(name, name): one for name, one in graph.variables.items()}
        self._arguments = [n for n, one in block.variables.items() if one.role == "argument"]
        self._feeds = {n: self._own[n] for n in self._arguments if self._own[n] in needed}
        self._fed = tuple(self._feeds)
        dtypes = {name: one.type.dtype for name, one in self._feeds.items()}
        self._integers = {name: one for name, one in dtypes.items() if is_integer(one)}
        changed = [name for name, one in self._own.items() if one in new_of]
        written = [name for name in changed if self._own[name] in needed]
        # JAX reuses donated memory for the first results of the same type, so these results come in
        # the order of the donated values and before all others; otherwise XLA copies whole tables.
        self._updated = (*written, *[name for name in changed if self._own[name] not in needed])
        new = [new_of[self._own[name]] for name in self._updated]
        there = [name for name, one in self._own.items() if one in needed]
        read = [name for name in there if name not in changed and name not in self._feeds]
        self.kept = [*written, *read]
        self._count = len(new)
        # Kept values are donated by the next run, so fetched values need their own memory.
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
        # After a run of the same kind, the scope has all the input needed apart from the feed.
        alone = self._all_written and not self._draws
        self._steady = self._updated if alone else _NEVER
        self._careful = False
        self._rows = any(one.type.kind is not VarKind.LOD_TENSOR for one in graph.outputs)
        self._compiled = DonatingStep(self._run)
        self.run: RunOnce = self._make_run()

    def _run(self, written: list[Any], *rest: Any) -> list[list[Any]]:
        # Fed values come one by one: for a dict, JAX would sort the keys in each call.
        feeds, rest = rest[: len(self._feeds)], rest[len(self._feeds) :]
        (read,), key = (rest[:1], rest[1:]) if self._read else (([],), rest)
        operands = [*map(unpack, written), *read, *feeds]
        nodes: dict[Name, Node] = {name: self._own[name] for name in self.kept}
        nodes.update(self._feeds)
        for (name, node), value in zip(nodes.items(), operands, strict=True):
            self._require_type(name, node, value)
        # A Python number is weakly typed: it would take the dtype of the other operand.
        types = [node.type.strong() for node in nodes.values()]
        exact = [settled(one, type) for one, type in zip(operands, types, strict=True)]
        results, _ = self._schedule(exact, *key)
        fetched = results[self._count :]
        for i in self._copied:
            fetched[i] = jax.tree_util.tree_map(jnp.copy, fetched[i])
        new = constrained_by(self._placement, self._updated, results[: self._count])
        return [[_as_given(one) for one in part] for part in (new, fetched)]

    def lower(self) -> Any:
        """Lowers the run for values of the declared types, like ``jax.jit(...).lower``."""
        struct: Any = jax.ShapeDtypeStruct
        kept, fed = (
            [struct(one.type.shape, one.type.dtype) for one in nodes]
            for nodes in ((self._own[n] for n in self.kept), self._feeds.values())
        )
        count = len(self._written)
        read = [kept[count:]] if self._read else []
        draws = () if not self._draws else (jax.eval_shape(lambda: jax.random.key(0)),)
        return self._compiled.lower(kept[:count], *fed, *read, *draws)

    def _require_type(self, name: Name, node: Node, value: Any) -> None:
        """Raises if a value is not of the declared type."""
        got = type_of(value) if _has_type(value) else value.__class__.__name__
        declared = node.type.strong()
        if isinstance(got, VarType) and got.strong() is declared:
            return
        if not self._careful:
            raise _OddError
        what = "rows" if declared.kind is VarKind.SELECTED_ROWS else "an array"
        shown = name if isinstance(name, str) else f"{name[0]}..{name[-1]}"
        raise FeedError(f"{shown}: {what} of type {declared} must be given, got {got}")

    def _make_run(self) -> RunOnce:
        """Returns ``run`` for runs that follow one of the same kind, as a closure.

        It reads local variables: each attribute lookup costs a hundredth of a small jitted call.
        """
        donate, fed, steady = self._compiled.donate, self._fed, self._steady
        single, room = self._single, [None]
        count, rows, array_class = len(fed), self._rows, _array_class()

        def run(feed: Mapping[str, Any], program: Keeper, key: Key = ()) -> Any:
            scope = program.scope
            cell = scope.cell
            if scope.ready is not steady or len(feed) != count:
                return self._first(feed, program, key)
            operands: list[Any] = room[:]
            try:
                for name in fed:
                    value = feed[name]
                    if value.__class__ is not array_class:
                        self._look_at(name, value)
                    operands.append(value)
            except LookupError:
                return self._first(feed, program, key)
            try:
                with cell.lock:
                    if cell.given:
                        raise ChangedError  # a signal handler interrupts another run
                    cell.given = operands
                    last = cell.last  # a change by a handler from here on empties ``given``
                    rest = scope.rest
                    if scope.ready is not steady or rest is None:
                        raise ChangedError
                    operands += rest
                    before = last[0]
                    operands[0] = before[0]  # an error if either was emptied
                    donate(last.extend, operands)
                    pair = last[0]
                    if pair is before:
                        raise ChangedError
                    operands.clear()  # no batch is kept until the next run
            except (ChangedError, KeepsError, IndexError):
                return self._first(feed, program, key)
            except Exception as error:
                return self._after(error, operands[0] if operands else (), feed, program, key)
            fetched = pair.pop()  # the fetched values belong to the user alone
            if rows:
                fetched = [unpack(one) for one in fetched]
            return fetched[0] if single else fetched

        return run

    def _first(self, feed: Mapping[str, Any], program: Keeper, key: Key = ()) -> Any:
        """Runs if the last run was of another kind, or if more than its results is needed."""
        for name, value in feed.items():
            if value.__class__ is not _array_class():
                self._look_at(name, value)
        if self._careful or any(isinstance(one, LoDTensor) for one in feed.values()):
            feed = self._as_arrays(feed)
        else:
            feed = self._needed(feed)
        if key or not self._draws:
            return self._again(feed, program, key)
        draw = random.Draw(self._draws)
        before = [*program.scope.cell.last]
        try:
            return self._again(feed, program, draw.take())
        except BaseException:
            if [*map(id, before)] == [*map(id, program.scope.cell.last)]:
                draw.give_back()
            raise

    def _again(self, feed: Mapping[str, Any], program: Keeper, key: Key) -> Any:
        """Runs, and starts again if a signal handler or another thread changes the state.

        Raises:
            BusyError: They do so every time.
        """
        for _ in range(_TIMES):
            try:
                return self._tried(feed, program, key)
            except ChangedError:
                pass
        raise BusyError(
            f"run: what it updates must not change during the run, got {_TIMES} changes by "
            "a callback, a signal handler or another thread"
        )

    def _tried(self, feed: Mapping[str, Any], program: Keeper, key: Key) -> Any:
        """Runs with the values in the scope.

        Raises:
            ChangedError: The scope has other values by now.
        """
        scope, home = program.scope, deque[Any](maxlen=1)
        if self._updated and scope.ready is not self._updated:
            scope.expect(self._updated)
        operands: list[Any] = [None]
        with scope.cell.lock:
            scope.cell.start(operands)
            if self._updated:
                if scope.ready is not self._updated:
                    raise ChangedError
                home = scope.cell.last
        written, rest = self._kept_values(program)
        _fill(operands, [[_as_given(one) for one in written], *feed.values(), *rest, *key])
        if self._updated:
            scope.keep(rest, operands)
        # JAX warns about donated values that have no memory yet.
        keeping = any(map(_has_no_room, written))
        try:
            fetched = self._replaced(home, operands, scope, keeping=keeping)
        except ChangedError:
            raise
        except Exception as error:
            return self._after(error, written, feed, program, key)
        operands.clear()
        fetched = [unpack(one) for one in fetched]
        return fetched[0] if self._single else fetched

    def _replaced(
        self, home: Any, operands: list[Any], scope: Scope, *, keeping: bool
    ) -> list[Any]:
        """Returns the fetched values; ``home`` holds the updated ones."""
        step = self._compiled
        try:
            # A host callback may read the scope, so nothing waits for one while holding the lock.
            with contextlib.nullcontext() if keeping else scope.cell.lock:
                pair = (step.replace_keeping if keeping else step.replace)(home, operands)
        except KeepsError:
            return self._replaced(home, operands, scope, keeping=True)
        except TracedError:
            if self._updated:
                raise
            pair = step.inline(operands)
        return list(pair.pop())

    def _after(
        self,
        error: Exception,
        written: Sequence[Any],
        feed: Mapping[str, Any],
        program: Keeper,
        key: Key,
    ) -> Any:
        """Runs again with converted values if ``error`` may result from a value not yet an array.

        A fed array that the run would also donate is copied first.
        """
        if isinstance(error, TracedError):
            self._refuse_trace()
        _require_alive(written, error)
        shared = [name for name, one in feed.items() if any(one is other for other in written)]
        if shared:
            copies = {name: copy_array(feed[name]) for name in shared}
            return self.run({**feed, **copies}, program, key)
        if self._careful or not isinstance(error, (_OddError, TypeError, OverflowError)):
            raise error
        return self._carefully(feed, program, key)

    def _carefully(self, feed: Mapping[str, Any], program: Keeper, key: Key) -> Any:
        """Runs with all values converted to arrays, in this and later runs."""
        run, self._careful, self.run = self.run, True, self._first
        try:
            return self._first(feed, program, key)
        except BaseException:
            self._careful, self.run = False, run
            raise

    def _look_at(self, name: str, value: Any) -> None:
        """Rejects a fed tracer if the program updates something, and ids that overflow the dtype.

        Raises:
            FeedError: JAX would truncate values that the declared dtype cannot hold.
            ProgramError: a state would become a tracer after the old value was donated.
        """
        if not isinstance(value, np.ndarray):
            self._require_still(jax.tree_util.tree_leaves(value))
        elif name in self._integers and is_integer(value.dtype):
            require_whole(name, self._integers[name], value)

    def _require_still(self, values: Sequence[Any]) -> None:
        """Rejects traced values if the program updates something.

        Raises:
            ProgramError: it does, and ``values`` contain tracers.
        """
        if any(isinstance(one, jax.core.Tracer) for one in values):
            self._refuse_trace()

    def _refuse_trace(self) -> None:
        """Rejects tracing.

        Raises:
            ProgramError: the program updates something.
        """
        if self._updated:
            raise ProgramError(
                "run: a program that updates something must not run inside of a JAX "
                "transformation, got one; use program.to_symbol(...).to_jax()"
            )

    def _kept_values(self, program: Keeper) -> tuple[list[Any], tuple[Any, ...]]:
        """Returns the values of updated variables and, if any, of those that are only read."""
        scope = program.scope
        held = scope.held
        alike = scope.cell.last and scope.names is self._updated and self._all_written
        if alike and held.keys() >= self._read_names:
            written = [unpack(one) for one in scope.cell.last[0][0]]
            return written, ([held[name] for name in self._read],) if self._read else ()
        names = [n for name in self.kept for n in ((name,) if isinstance(name, str) else name)]
        program.fill([name for name in names if name not in scope])
        for name in self.kept:
            if not isinstance(name, str) and name not in scope.held:
                self._require_alike(name, scope)
        written = [scope.whole(name) for name in self._written]
        read = [scope[n] if isinstance(n, str) else scope.whole(n) for n in self._read]
        return written, (read,) if read else ()

    def _require_alike(self, names: tuple[str, ...], scope: Scope) -> None:
        """Rejects values to be stacked that are not of the declared type."""
        whole = self._own[names].type
        declared = VarType(whole.shape[1:], whole.dtype)
        for name in names:
            value = scope[name]
            got = type_of(value) if _has_type(value) else value.__class__.__name__
            if not isinstance(got, VarType) or got.strong() != declared:
                raise FeedError(f"{name}: an array of type {declared} must be given, got {got}")

    def _needed(self, feed: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the fed values that are needed, in the order of the variables."""
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
        """Returns the fed values in the form that the compiled function takes."""
        parts = [(name, one) for name, one in feed.items() if isinstance(one, LoDTensor)]
        if parts:
            feed = dict(feed)
            for name, one in parts:
                feed.update(one.as_feed(name))
        needed = self._needed(feed)
        return {name: _array(name, self._feeds[name], one) for name, one in needed.items()}


def _graph_of(block: Block, fetch: Sequence[str], placement: Placement | None) -> Specialized:
    """Returns the values ``fetch`` and all updates of a block, over its variables.

    Repeated blocks become loops. Parameters and states that a loop reads and updates one per step
    are stacked in one variable.
    """
    updates = dict(block.desc.updates)
    outputs = [block.values[updates.get(name, name)] for name in fetch]
    own = {n: block.values[n] for n, v in block.variables.items() if v.role != "intermediate"}
    graph = Specialized(outputs, own, [], {own[n]: block.values[v] for n, v in updates.items()}, {})
    if not is_rolling():
        return graph
    ends = [*graph.outputs, *graph.updates.values()]
    # Not sorted by age: equal nodes of another program may be older.
    order, count = list(block.values.values()), len(graph.outputs)

    def settled(apart: frozenset[Node]) -> Specialized:
        rolled = fuse_loops(roll(ends, order, aim=Aim(stacking=True, apart=apart)))
        updates = dict(zip(graph.updates, rolled[count:], strict=True))
        return graph._replace(outputs=rolled[:count], updates=updates)

    kept = {name for name in own if block.variables[name].persistable}

    def allows(names: tuple[str, ...]) -> bool:
        alike = placement is None or len({placement.sharding(name) for name in names}) == 1
        return alike and kept.issuperset(names)

    return over_stacks(settled, allows)


def _fill(operands: list[Any], values: Sequence[Any]) -> None:
    """Puts ``values`` into ``operands``.

    Raises:
        ChangedError: ``operands`` was emptied meanwhile.
    """
    operands.extend(values[1:])
    try:
        operands[len(values) - 1]
        operands[0] = values[0]
    except IndexError:
        raise ChangedError from None


def _as_given(value: Any) -> Any:
    """Returns a value in the form that the compiled run takes and returns."""
    return value if isinstance(value, (jax.Array, np.ndarray)) else pack(value)


def _has_no_room(value: Any) -> bool:
    """Whether a value is row-sparse and has no rows yet."""
    return isinstance(value, SelectedRows) and value.rows.shape[0] == 0


def _require_alive(written: Sequence[Any], error: Exception) -> None:
    """Reports a run that failed after its state was donated.

    Raises:
        ProgramError: the state is lost.
    """
    leaves = jax.tree_util.tree_leaves(list(written))
    if any(isinstance(one, jax.Array) and one.is_deleted() for one in leaves):
        raise ProgramError(
            "run: it failed after the parameters were donated to it, so they are lost; load a "
            f"checkpoint or initialize again ({error})"
        ) from error


def _array(name: str, node: Node, value: Any) -> Any:
    """Returns ``value`` as an array if it is a number or a list."""
    if isinstance(value, (SelectedRows, jax.Array)):
        return value
    return as_fed(name, node, value.value if isinstance(value, NDArray) else value)


def _has_type(value: Any) -> bool:
    return isinstance(value, SelectedRows) or hasattr(value, "dtype")
