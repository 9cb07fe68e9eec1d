"""Segments: recorded calls of eager code, which run together when a value is needed.

A segment is a path in the trace cache. Each step is a call of an operator on values of the segment,
or a leaf: an array from outside the segment. A step that was recorded before costs one dictionary
lookup, as the types of its results and the program up to it are cached.
"""

import cmath
import contextlib
import functools
import sys
import threading
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from threading import get_ident
from typing import Any

import jax
import numpy as np

from registry.errors import ArgumentError, GradientError
from registry.operator.binding import LEFT_OUT
from registry.table import get
from registry.tuning import present as tuned
from registry.types import KEY_TYPE, VarType, is_inexact
from registry.var import Var
from symop import random
from symop.autodiff.differentiate import carries_cotangent
from symop.eager.alone import CannotJoinError, TracedInputError, is_large, new
from symop.eager.programs import Lean, LinearizedProgram, SegmentProgram
from symop.eager.settings import default_device, present_settings
from symop.eager.tape_nodes import Link, Source, TapeNode, origin_of
from symop.eager.trace_cache import PROGRAM, InternedCall, TraceNode, tree
from symop.graph.emission import apply
from symop.graph.nodes import (
    TRAINING,
    Node,
    constant,
    placeholder,
    reaching,
    select,
    topological,
    training_flag,
)
from symop.lowering.steps import type_of

_VARIETY = 4
"""After this many different numbers in a call, its numbers become inputs rather than constants."""
_cell = [object()]
_REFERENCES = sys.getrefcount(_cell[0])
"""The reference count of an object that only a list refers to. Weak references would also work, but
creating one takes a tenth of a call's time: 1.6 us of 17 us; counting references takes 0.07 us."""


# Segments --------------------------------------------------------------------------------------

Modes = tuple[tuple[object, bool | None, bool | None], ...]
"""Scopes, outermost first: an object that identifies the scope, and the values that it sets for
recording and for training; None leaves a mode unchanged."""
_OUTSIDE: Modes = ((None, False, False),)


class Shared:
    """Data shared by all states of one thread.

    Attributes:
        thread: the thread.
        ident: the thread's identifier.
        waiting: the segments that have not run, in the order of creation.
    """

    __slots__ = ("ident", "thread", "waiting")

    def __init__(self) -> None:
        """Creates the data of the current thread, without segments."""
        self.thread = threading.current_thread()
        self.ident = get_ident()
        self.waiting: dict[Segment, None] = {}


class State:
    """The recording state of a thread or of one of its tasks, held by a context variable.

    The modes of a state are fixed: ``record()`` and the other scopes create another state, which
    interleaved tasks do not see.

    A call removes the segment from its state and puts it back when the segment is consistent again.
    A signal handler that makes calls meanwhile therefore begins its own segment.

    Attributes:
        scopes: the scopes that set the modes, innermost last; the first entry is the default
            outside all scopes.
        shared: the data that all states of the thread share.
        ident: the thread's identifier.
        segment: the segment that is being recorded; None without one, or while a call works on it.
        parked: the segment that was recorded for a backward pass and has not run, or None.
        taped: whether calls are recorded for a backward pass.
        training: the value of the training flag.
        surprise: the recent excess of new programs over known ones.
        rest: the number of further calls that run one by one, since programs were not reused; -1
            for all calls.
    """

    __slots__ = (
        "ident", "next_rest", "parked", "rest", "scopes", "segment", "shared", "surprise", "taped",
        "training",
    )  # fmt: skip

    def __init__(self, shared: Shared | None = None, scopes: Modes = _OUTSIDE) -> None:
        """Creates a state without a segment."""
        self.shared = Shared() if shared is None else shared
        self.scopes = scopes
        self.ident = self.shared.ident
        self.segment: Segment | None = None
        self.parked: Segment | None = None
        self.taped = self.training = False
        for _, taped, training in scopes:
            if taped is not None:
                self.taped = taped
            if training is not None:
                self.training = training
        self.surprise, self.rest, self.next_rest = 0, 0, tuned.tuning.rest

    def inherit(self, other: "State") -> None:
        """Takes over the counts, the parked segment and the current segment of ``other``.

        If the modes differ, the current segment is parked for a backward pass, or runs.

        Raises:
            Exception: any error of a segment that runs.
        """
        self.surprise, self.rest, self.next_rest = other.surprise, other.rest, other.next_rest
        parked, other.parked = other.parked, None
        if parked is not None:
            self.park(parked)
        segment, other.segment = other.segment, None
        if segment is None:
            return
        same = segment.taped is self.taped and segment.training is self.training
        if same and self.segment is None:
            self.segment, segment.owner = segment, self
        elif segment.taped and segment.closed:
            self.park(segment)
        else:
            segment.run()

    def park(self, segment: "Segment") -> None:
        """Parks ``segment``; runs the segment that was parked before it.

        Raises:
            Exception: any error of that segment.
        """
        before, self.parked, segment.owner = self.parked, segment, self
        if before is not None:
            before.run()

    def open_segment(self) -> "Segment":
        """Returns a new segment, busy with the call that requested it."""
        result = Segment(self)
        if self.rest:
            result.room = 0
            self.rest -= self.rest > 0
        elif result.nans or result.infs:  # the results of each call are checked immediately
            result.room = 0
        self.shared.waiting[result] = None
        return result

    def give_back(self, segment: "Segment") -> None:
        """Makes ``segment`` the current one again, without the additions of a failed call."""
        segment.mend()
        segment.busy, self.segment = False, segment

    def run_nested(self) -> None:
        """Runs the segment that a signal handler began during a call.

        An error is raised when the value is requested.
        """
        nested = self.segment
        if nested is not None:
            with contextlib.suppress(Exception):
                nested.run()

    def renew(self, segment: "Segment") -> "Segment":
        """Runs ``segment`` and returns a new one, since JAX's settings have changed."""
        segment.run()
        return self.open_segment()

    def count_program(self, new: bool) -> None:
        """Counts a program; pauses recording for a while if most programs are new."""
        self.surprise = self.surprise + 1 if new else max(0, self.surprise - 1)
        if self.surprise > tuned.tuning.patience:
            self.surprise, self.rest = 0, self.next_rest
            self.next_rest = min(2 * self.next_rest, tuned.tuning.longest_rest)


class _Threads(threading.local):
    """The initial state of each thread."""

    def __init__(self) -> None:
        self.first = State()


_threads = _Threads()
_nobody = State()
_nobody.ident = 0
_current: ContextVar[State] = ContextVar("symop_recording", default=_nobody)
active = _current.get
"""Returns the state of the current context, which may be another thread's: see ``belonging``."""
activate = _current.set
"""Sets the state of the current context."""


def belonging(state: State) -> State:
    """Returns this thread's initial state, for a context with another thread's state or none.

    A context that is copied into another thread does not share its record.
    """
    if state is _nobody:
        _current.set(_threads.first)
    return _threads.first


class _Local:
    """Access to the state of the current task and thread, outside the fast path of calls."""

    @property
    def state(self) -> State:
        """The current state."""
        current = active()
        return current if current.ident == get_ident() else belonging(current)

    @state.setter
    def state(self, state: State) -> None:
        _current.set(state)


local = _Local()


@functools.cache
def has_devices() -> bool:
    """Whether arrays may be on several devices; the host is one beside an accelerator."""
    return jax.device_count() > 1 or jax.default_backend() != "cpu"


class Segment:
    """A sequence of recorded calls that run together.

    Attributes:
        owner: the state that records it or has parked it.
        busy: whether a call works on it. Other calls meanwhile, by a signal handler, do not change
            it.
        step: the step of the last call or leaf.
        room: the index of the value after which the segment runs.
        outputs: the arrays that hold its values, by index; None for leaves. An array without other
            references need not be computed.
        leaves: the values from outside, in the order of their steps.
        sources: the source of each leaf, or None.
        held: the arrays that hold the leaves.
        places: the indices of leaves, by the identity of the array or its value.
        taped: whether it is recorded for a backward pass.
        training: the value of the training flag.
        traced: whether its values may be tracers.
        settings: the JAX settings when it began, under which it runs.
        nans: whether results are checked for NaN; each call compares it with the current setting.
        infs: likewise for infinities.
        devices: the devices of committed leaves; None if no leaf is committed.
        uncommitted: those of uncommitted leaves, if there are several devices.
        strays: the indices of uncommitted leaves on other devices than the committed ones.
        stray: whether the call being added reads such a leaf.
        closed: whether no leaf is a value of a tape node.
        spent: the indices of the heads of each backward pass that did not retain the record.
        error: the exception raised when it ran, or None.
    """

    __slots__ = (
        "busy", "closed", "devices", "error", "held", "infs", "leaves", "nans", "outputs", "owner",
        "places", "room", "settings", "sources", "spent", "step", "stray", "strays", "taped",
        "traced", "training", "uncommitted",
    )  # fmt: skip

    def __init__(self, owner: State) -> None:
        """Creates an empty segment, busy with the call that begins it."""
        self.owner, self.busy = owner, True
        self.taped, self.training, self.traced = owner.taped, owner.training, False
        self.settings = present_settings()
        self.nans, self.infs = self.settings.nans, self.settings.infs
        self.step = tree.root(self.taped, self.training, self.settings)
        self.room = tuned.tuning.segment - 1
        self.devices: Any = None
        self.uncommitted: Any = None
        self.strays: set[int] = set()
        self.stray = False
        self.closed = True
        self.spent: list[tuple[int, ...]] = []
        self.leaves: list[Any] = []
        self.sources: list[Source] = []
        self.held: list[Any] = []
        self.places: dict[int, int] = {}
        self.outputs: list[Any] = []
        self.error: BaseException | None = None

    @property
    def is_own(self) -> bool:
        """Whether it has not run, and this thread recorded it, perhaps in another task.

        False while a call works on it.
        """
        shared = self.owner.shared
        return shared is local.state.shared and self in shared.waiting and not self.busy

    @property
    def is_left(self) -> bool:
        """Whether it has not run, and the thread that recorded it has ended."""
        shared = self.owner.shared
        return self in shared.waiting and not shared.thread.is_alive()

    # Leaves

    def place(self, call: InternedCall, index: int, value: Any) -> Any:
        """Returns the key of an input: its index in the segment, or a constant."""
        if value.__class__ is call.make:
            return value._index if value._segment is self else self.leaf(value)
        return self.foreign(call, index, value)

    def leaf(self, array: Any) -> int:
        """Returns the index of an array from outside the segment; adds a leaf if it is new.

        Raises:
            GradientError: another thread recorded the array.
            TracedInputError: JAX traces the array.
            CannotJoinError: another segment must begin.
        """
        value = array._value
        if value is None:
            value = array.value
        if self.taped and array._segment is not None and array.flows:
            raise GradientError(
                "record: a value that another thread recorded must be computed there before it is "
                "differentiated here; ask for its value there"
            )
        source = array.source if self.taped else None
        known = id(value) if source is None else id(array)
        place = self.places.get(known)
        if place is None:
            if isinstance(value, jax.core.Tracer) and not self.traced:
                raise TracedInputError
            self._require_near(value)
            self.held.append(array)  # kept alive, so that its id is not reused
            place = self.places[known] = self.add_leaf(array.type, value, source)
        if self.uncommitted is not None and self.devices not in (None, self.uncommitted):
            self._enter_stray(value, place)
        return place

    def _require_near(self, value: Any) -> None:
        """Checks that a leaf is on the devices of the segment, and that JAX has its settings.

        Raises:
            CannotJoinError: either differs; another segment must begin.
        """
        if present_settings() != self.settings:
            raise CannotJoinError
        committed = None if self.traced else getattr(value, "committed", None)
        if committed:
            self._enter_devices(value.sharding.device_set)
        elif committed is False and has_devices():
            self.uncommitted = value.sharding.device_set

    def _enter_devices(self, devices: Any) -> None:
        """Enters the devices of a committed leaf, where the segment will run.

        Earlier calls of uncommitted arrays alone must not move there.
        """
        if self.devices is None:
            if len(self.outputs) > len(self.leaves) and self.uncommitted not in (None, devices):
                raise CannotJoinError
            self.devices = devices
        elif devices != self.devices:
            raise CannotJoinError

    def _enter_stray(self, value: Any, place: int) -> None:
        """Notes an uncommitted leaf that is not on the devices of the segment."""
        if not getattr(value, "committed", True) and value.sharding.device_set != self.devices:
            self.strays.add(place)
            self.stray = True

    def _require_company(self, key: tuple[Any, ...]) -> None:
        """Checks that a call with an uncommitted leaf from elsewhere has another array, too.

        As in JAX, such a leaf moves to the devices of the other arrays, and a call of such leaves
        alone stays where they are.

        Raises:
            CannotJoinError: there is no other array.
        """
        self.stray = False
        if all(place in self.strays for place in key[1:] if place.__class__ is int):
            raise CannotJoinError

    def add_leaf(self, type: VarType, value: Any, source: Source) -> int:
        """Adds a value from outside the segment as a leaf; returns its index."""
        step, active = self.step, source is not None and type.differentiable
        if active and source.__class__ is Link:
            self.closed = False
        key = (type,) if active else type
        known = step.children.get(key)
        if known is None:
            added = (placeholder("leaf", type),)
            known = step.children.setdefault(key, TraceNode(step, added, True, active))
            tree.count += 1
        self.leaves.append(value)
        self.sources.append(source if active else None)
        self.outputs.append(None)
        self.step = known  # completes the leaf: ``mend`` keeps what the step counts
        return known.values - 1

    def foreign(self, call: InternedCall, index: int, value: Any) -> Any:
        """Returns the key of an input that is not an eager array."""
        if value is None:
            return None
        if value is LEFT_OUT:
            if call.operator.slot_of(index).role != "key":
                return LEFT_OUT
            self._require_near(None)
            if len(call.operator.slots) == 1 and has_devices():
                self._require_default()
            root, number = random.draw(owner=call.operator.name)
            return self.add_leaf(KEY_TYPE, (root, np.uint32(number)), None)
        kind = value.__class__
        if kind is float or kind is int or kind is bool or kind is complex:
            if is_large(value) and self.room:
                raise CannotJoinError  # it may overflow its dtype; run now to raise the error
            # 0.0 equals -0.0, also in complex numbers, and NaN is unequal to itself
            plain = value and kind is not complex and not cmath.isnan(value)
            return (kind, value) if plain else (kind, repr(value), value)
        if isinstance(value, Var):
            raise ArgumentError(
                f"{call.operator.name}: arrays and symbols must not be mixed, got a "
                f"{kind.__name__} next to an NDArray"
            )
        if isinstance(value, np.ndarray) and value.dtype == object:
            raise ArgumentError(f"{call.operator.name}: the entries must be numbers, got {value!r}")
        return self.leaf(call.make(value))

    def _require_default(self) -> None:
        """Checks that a draw that reads no array runs where JAX computes by default.

        Raises:
            CannotJoinError: the segment runs elsewhere.
        """
        here = {default_device()}
        if self.devices not in (None, here):
            raise CannotJoinError
        self.uncommitted = here

    # Calls

    @property
    def _checks_ranks(self) -> bool:
        """Whether a call on inputs of different ranks runs immediately, so that JAX checks it."""
        return bool(self.room) and self.settings.ranks != "allow"

    def admit(self, call: InternedCall, key: tuple[Any, ...], step: TraceNode | None) -> TraceNode:
        """Returns the step of a call: ``step``, if it is known, or a new one.

        Raises:
            CannotJoinError: the call must run on other devices, or under other settings.
        """
        if self.stray:
            self._require_company(key)
        return self.extend(call, key) if step is None else self.confirm(step)

    def confirm(self, step: TraceNode) -> TraceNode:
        """Returns ``step``, which is known, if JAX's settings are those of the segment.

        Raises:
            CannotJoinError: JAX's settings have changed since the segment began, or JAX must check
                the ranks of the inputs.
        """
        if present_settings() != self.settings or (step.raises_rank and self._checks_ranks):
            raise CannotJoinError
        return step

    def extend(self, call: InternedCall, key: tuple[Any, ...]) -> TraceNode:
        """Adds a step for a call that is new at this point of the trace cache; returns the step.

        Raises:
            CannotJoinError: JAX's settings have changed since the segment began, or JAX must check
                the ranks of the inputs.
        """
        if present_settings() != self.settings:
            raise CannotJoinError
        step = self.step
        numbers = [i for i, one in enumerate(key) if type(one) is tuple]
        if numbers and call.operator.training_index is None:
            count = step.numbers[call] = step.numbers.get(call, 0) + 1
            if count > _VARIETY:
                return self._generalized(call, key, numbers)
        if None in key and call.plain:
            call.operator.bind(tuple(key[1:]), {})  # raises an error
        nodes = self.nodes()
        inputs = tuple([_node(one, nodes) for one in key[1:]])
        raises_rank = _raises_rank(inputs)
        if raises_rank and self._checks_ranks:
            raise CannotJoinError
        added = self._added(call, inputs)
        if self.taped and not set(nodes).isdisjoint(added):
            added = self._added(call, _distinct(inputs, len(nodes)))
        careful = raises_rank or _is_careful(call, inputs, added)
        hidden = added[len(call.shown) :]
        next_step = TraceNode(step, added, cut=hidden, careful=careful, raises_rank=raises_rank)
        tree.count += 1
        return step.children.setdefault(key, next_step)

    def _added(self, call: InternedCall, inputs: tuple[Node | None, ...]) -> tuple[Node, ...]:
        """Returns the visible outputs of a call and, in training mode, the updated states."""
        node, operator = apply(call.operator, inputs, call.attributes), call.operator
        if operator.single:
            return (node,)
        updated = sorted(operator.update_indices.values()) if self.training else []
        states = [select(node, i) for i in updated]
        shown = [select(node, i) for i in call.shown]
        return (*shown, *(map(still, states) if self.taped else states))

    def flows(self, place: int) -> bool:
        """Whether a derivative may flow through the value at index ``place``."""
        node = self.nodes()[place]
        return node in self.moving([node])

    def moving(self, ends: Sequence[Node]) -> set[Node]:
        """Returns the nodes that ``ends`` depend on and through which a derivative may flow."""
        path = self.step.path()
        active = [node for step in path if step.active for node in step.added]
        cut = self._cut(path)
        carrying = [one for one in topological(ends) if carries_cotangent(one) and one not in cut]
        return reaching([*active, *carrying], active)

    def _cut(self, path: Sequence[TraceNode]) -> set[Node]:
        return {node for step in path for node in step.cut}

    def formal(self) -> dict[Node, tuple[Node, ...]]:
        """Returns the heads of each gradient among the values.

        A gradient is a function of all inputs of its heads, even of those that it does not read.
        """
        result: dict[Node, tuple[Node, ...]] = {}
        for step in self.step.path():
            for node in step.added if step.formal else ():
                result[node] = (*result.get(node, ()), *step.formal)
        return result

    def _generalized(
        self, call: InternedCall, key: tuple[Any, ...], numbers: Sequence[int]
    ) -> TraceNode:
        """Returns the step of the same call with numbers as inputs rather than constants."""
        general = list(key)
        for i in numbers:
            value = key[i][-1]
            general[i] = self.add_leaf(type_of(value), value, None)
        whole = tuple(general)
        entry = self.step.children.get(whole)
        return self.extend(call, whole) if entry is None else entry

    def nodes(self) -> list[Node]:
        """Returns the graph nodes of all values so far."""
        return [node for step in self.step.path() for node in step.added]

    def take(self, step: TraceNode, make: type[Any]) -> list[Any]:
        """Advances to ``step``; returns the values that it adds, as arrays of class ``make``."""
        result = []
        for place, node in enumerate(step.added, len(self.outputs)):
            out = new(make)
            out._value = out._link = out._grad = None
            out._segment, out._index, out._type = self, place, node.type
            result.append(out)
        self.outputs += result
        self.step = step
        return result

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Returns a scope that works on the segment, as a call does."""
        owner, self.busy = self.owner, True
        present = owner.segment is self
        if present:
            owner.segment = None
        try:
            yield
        finally:
            self.mend()
            self.busy = False
            if present:
                owner.segment = self

    def mend(self) -> None:
        """Removes what an incomplete call added after the last step."""
        step = self.step
        del self.leaves[step.leaves :], self.sources[step.leaves :], self.outputs[step.values :]

    def _is_held(self, place: int) -> bool:
        """Whether the array at index ``place`` still holds that value rather than another one."""
        array = self.outputs[place]
        return array is not None and array._segment is self and array._index == place

    # Running

    def run(self) -> None:
        """Computes the values that are still referenced; does nothing while a call works on it.

        Raises:
            Exception: any error of a kernel. Values that depend on it are lost, and accessing one
                raises the error again.
        """
        if self.busy:
            return
        owner, wanted, outputs = self.owner, list[int](), self.outputs
        if owner.segment is self:
            owner.segment = None
        elif owner.parked is self:
            owner.parked = None
        try:
            owner.shared.waiting.pop(self, None)
            alone = _REFERENCES
            wanted = [i for i in range(len(outputs)) if sys.getrefcount(outputs[i]) > alone]
            wanted = [i for i in wanted if self._is_held(i)]
            if wanted:
                with self.settings.scope():
                    self._run([(i, outputs[i]) for i in wanted])
        except Exception as error:
            self.error = error
            self._rescue([(i, outputs[i]) for i in wanted])
            raise
        except BaseException:  # after an interrupt, the segment can run again
            owner.shared.waiting[self] = None
            raise
        self.leaves, self.held, self.sources = [], [], []
        self.places, self.outputs = {}, []

    def _rescue(self, wanted: Sequence[tuple[int, Any]]) -> None:
        """Computes the values one by one after an error; skips those that fail."""
        for one in wanted:
            with contextlib.suppress(Exception), self.settings.scope():
                self._run([one])

    def _run(self, wanted: list[tuple[int, Any]]) -> None:
        key = tuple([i for i, _ in wanted])
        known = key, tuple(self.spent)
        program = self.step.programs.get(known)
        tree.now = self.step.used = tree.now + 1
        new = False
        if program is None:
            program = self.step.programs.setdefault(known, self._program(key))
            tree.count += PROGRAM
            new = program.is_new
        if not local.state.rest:
            local.state.count_program(new)
        if isinstance(program, SegmentProgram):
            for (_, array), value in zip(wanted, run_program(program, self.leaves), strict=True):
                _settled(array, value)
            return
        results, entry = self._entered(program)
        recorded = entry.recorded
        for (_, array), node, value in zip(wanted, recorded.wanted, results, strict=False):
            _settled(array, value)
            if array._link is None and recorded.links(node):
                array._link = Link(entry, node)

    def _entered(self, program: LinearizedProgram | Lean) -> tuple[list[Any], TapeNode]:
        """Runs a program; returns its results and its tape node."""
        origins = [*map(origin_of, self.sources, self.leaves)]
        if isinstance(program, LinearizedProgram):
            results, saved, packed = program.run(self.leaves, run_program)
            return results, TapeNode(program, self.sources, saved, packed, origins)
        results = run_program(program.program, self.leaves)
        entry = TapeNode(program.whole, self.sources, [], False, origins)
        entry.spent = program.spent
        if program.done:
            entry.saved = None
        elif program.whole.residuals:
            entry.again = functools.partial(_residuals, program.whole, self.leaves)
        return results, entry

    def _program(self, wanted: Sequence[int]) -> SegmentProgram | LinearizedProgram | Lean:
        path = self.step.path()
        nodes = [node for step in path for node in step.added]
        inputs = [node for step in path if step.leaf for node in step.added]
        active = [node for step in path if step.active for node in step.added]
        outputs = [nodes[i] for i in wanted]
        if not active:
            return SegmentProgram(inputs, outputs, self.training)
        recorded = LinearizedProgram(
            inputs, outputs, active, self.training, self._cut(path), formal=self.formal()
        )
        spent = [tuple(nodes[i] for i in heads) for heads in self.spent]
        return Lean(recorded, spent) if spent else recorded

    def peek(self, array: Any) -> Any:
        """Computes one value without running the segment, which belongs to another thread."""
        if self.error is not None:
            raise self.error
        leaves, path = self.leaves, self.step.path()
        inputs = [node for step in path if step.leaf for node in step.added]
        nodes = [node for step in path for node in step.added]
        if array._value is not None:  # meanwhile, the owner has run the segment
            return array._value
        with self.settings.scope():
            program = SegmentProgram(inputs, [nodes[array._index]], self.training)
            return run_program(program, leaves[: len(inputs)])[0]


def _residuals(recorded: LinearizedProgram, leaves: list[Any]) -> tuple[list[Any], bool]:
    """Returns the residuals of a program, and whether they are packed."""
    return recorded.run(leaves, run_program)[1:]


def _settled(array: Any, value: Any) -> None:
    """Stores a computed ``value`` in ``array``; the type of a tracer is not cached."""
    array._value, array._segment = value, None
    if isinstance(value, jax.core.Tracer):
        array._type = None


def run_program(program: SegmentProgram, values: Sequence[Any]) -> list[Any]:
    """Runs ``program``; for concrete inputs, outputs are concrete even if JAX is tracing."""
    if program.x64 != jax.config.jax_enable_x64:  # type: ignore[attr-defined]  # set at run time
        with jax.enable_x64(program.x64):
            return run_program(program, values)
    results = program(values)
    traced = results and isinstance(results[0], jax.core.Tracer)
    if traced and not any(isinstance(one, jax.core.Tracer) for one in values):
        with jax.ensure_compile_time_eval():
            return program(values)
    return results


def _raises_rank(inputs: Sequence[Node | None]) -> bool:
    """Whether arrays of different numbers of axes, except numbers, are among the inputs."""
    types = [one.type for one in inputs if one is not None and one.op is not TRAINING]
    return len({len(one.shape) for one in types if one.shape}) > 1


def _is_careful(call: InternedCall, inputs: Sequence[Node | None], added: Sequence[Node]) -> bool:
    """Whether the result of a call depends on JAX settings other than the NaN and infinity checks.

    It does if it depends on the precision of matrix products, or on a dtype that is promoted,
    requested as an attribute, or JAX's default. It does not if inputs and outputs are of one
    inexact dtype.
    """
    types = [one.type for one in inputs if one is not None and one.op is not TRAINING]
    dtypes = {one.dtype for one in (*types, *[one.type for one in added]) if not one.weak}
    entrywise = len(dtypes) == 1 and all(map(is_inexact, dtypes)) and bool(types)
    asked = any(isinstance(one, np.dtype) for one in call.attributes)
    return call.operator.costly or asked or not entrywise


def _node(one: Any, nodes: Sequence[Node]) -> Node | None:
    if one is None:
        return None
    if one is LEFT_OUT:
        return training_flag()
    return constant(one[-1]) if type(one) is tuple else nodes[one]


def _distinct(inputs: tuple[Node | None, ...], number: int) -> tuple[Node | None, ...]:
    """Returns ``inputs`` with an alias, so that the call is not merged with an earlier equal one.

    The tape identifies an array by its graph node, so each recorded array needs a separate node.
    """
    for i, one in enumerate(inputs):
        if one is not None and one.op is not TRAINING and one.type.differentiable:
            return (*inputs[:i], apply(get("alias"), (one,), (number,)), *inputs[i + 1 :])
    return inputs


def still(node: Node) -> Node:
    """Returns the value of ``node`` without its gradient: ``stop_gradient``."""
    return apply(get("stop_gradient"), (node,), ())
