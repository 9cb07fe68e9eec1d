"""Recording of eager code: calls become steps of a segment, which runs when a value is needed.

A segment is a path in a tree of steps. A step is a call of an operator on values of the segment,
or a leaf: an array from outside of it. Who takes a step that somebody took before pays one look
into a dictionary: the types of its results and the program so far are known.
"""

import cmath
import contextlib
import functools
import sys
import threading
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from registry.binding import LEFT_OUT
from registry.errors import ArgumentError, GradientError
from registry.table import get
from registry.types import KEY_TYPE, VarType
from registry.var import Var
from symop import random
from symop.alone import ApartError, TracedError, is_large, new
from symop.differentiate import carries_cotangent
from symop.eager_programs import Lean, Program, Recorded
from symop.emission import apply
from symop.entries import Entry, Link, Source, origin_of
from symop.graph import (
    TRAINING,
    Node,
    constant,
    placeholder,
    reaching,
    select,
    topological,
    training_flag,
)
from symop.lowering import type_of
from symop.steps import PROGRAM, Call, Step, tree

_LIMIT = 128
"""After so many values a segment runs, so that the machine computes while Python goes on."""
_VARIETY = 4
"""After so many different numbers in one place, further ones are no constants but inputs."""
_PATIENCE = 8
"""So many programs that were never seen before, more than known ones, and calls run one by one."""
REST = 2048
"""For so many calls, at first; twice as many each time."""
_LONGEST_REST = 65_536
_cell = [object()]
_REFERENCES = sys.getrefcount(_cell[0])
"""What Python counts for an object to which one list alone refers. Weak references would tell the
same, but making one takes a tenth of a call's time."""


# Segments --------------------------------------------------------------------------------------


class State:
    """The recording of one thread.

    Attributes:
        thread: whose state it is.
        segment: what is recorded at the moment, or None.
        parked: what was recorded for a backward pass and did not run yet, or None.
        taped: whether calls are recorded for a backward pass.
        training: what the training flag says.
        surprise: how many programs more were new than known of late.
        rest: how many more calls run by themselves, because programs never came again; -1 for all.
    """

    __slots__ = (
        "next_rest", "parked", "rest", "segment", "surprise", "taped", "thread", "training",
    )  # fmt: skip

    def __init__(self) -> None:
        """Nothing is recorded."""
        self.thread = threading.current_thread()
        self.segment: Segment | None = None
        self.parked: Segment | None = None
        self.taped = self.training = False
        self.surprise, self.rest, self.next_rest = 0, 0, REST

    def opened(self) -> "Segment":
        """A new segment."""
        self.segment = made = Segment(self)
        if self.rest:
            made.room = 0
            self.rest -= self.rest > 0
        return made

    def count_program(self, new: bool) -> None:
        """Count a program, and stop recording for a while where all are new."""
        self.surprise = self.surprise + 1 if new else max(0, self.surprise - 1)
        if self.surprise > _PATIENCE:
            self.surprise, self.rest = 0, self.next_rest
            self.next_rest = min(2 * self.next_rest, _LONGEST_REST)


class _Local(threading.local):
    """Each thread's state: one look finds all of it."""

    def __init__(self) -> None:
        self.state = State()


local = _Local()


class Segment:
    """Calls that did not run yet.

    Attributes:
        owner: the state of the thread that records it.
        step: the last of them.
        room: the value at this place, or behind it, is the last.
        outputs: the arrays that hold its values, by place; None for those from outside. An array
            that nobody else refers to any more need not be computed.
        leaves: the values from outside, in the order of their steps.
        sources: where each of them comes from on the tape, or None.
        held: the arrays that they are the values of.
        places: the places of arrays from outside, by identity.
        taped: whether it is recorded for a backward pass.
        training: what the training flag says.
        traced: whether JAX may trace its values.
        x64: whether JAX had 64-bit dtypes when it began.
        device: JAX's default device at that time.
        devices: where the arrays from outside lie that are bound to a place; None if none is.
        closed: whether no value from outside comes from another part of the tape.
        spent: the heads, by place, of backward passes that did not keep the record.
        error: why it could not be run.
    """

    __slots__ = (
        "closed", "device", "devices", "error", "held", "leaves", "outputs", "owner", "places",
        "room", "sources", "spent", "step", "taped", "traced", "training", "x64",
    )  # fmt: skip

    def __init__(self, owner: State) -> None:
        """An empty segment."""
        self.owner = owner
        self.taped, self.training, self.traced = owner.taped, owner.training, False
        self.step = tree.root(self.taped, self.training)
        self.room = _LIMIT - 1
        self.x64, self.device = surroundings()
        self.devices: Any = None
        self.closed = True
        self.spent: list[tuple[int, ...]] = []
        self.leaves: list[Any] = []
        self.sources: list[Source] = []
        self.held: list[Any] = []
        self.places: dict[int, int] = {}
        self.outputs: list[Any] = []
        self.error: BaseException | None = None

    # Leaves

    def place(self, call: Call, index: int, value: Any) -> Any:
        """What stands in a key for an input."""
        if value.__class__ is call.make:
            return value._index if value._segment is self else self.leaf(value)
        return self.foreign(call, index, value)

    def leaf(self, array: Any) -> int:
        """The place of an array from outside."""
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
        if place is not None:
            return place
        if isinstance(value, jax.core.Tracer) and not self.traced:
            raise TracedError
        self._require_near(value)
        place = self.places[known] = self.add_leaf(array.type, value, source)
        self.held.append(array)  # what has been seen must not be confused with what comes later
        return place

    def _require_near(self, value: Any) -> None:
        """What runs together must lie together, under the same flags of JAX.

        Raises:
            ApartError: another segment must begin.
        """
        if surroundings() != (self.x64, self.device):
            raise ApartError
        if not self.traced and getattr(value, "committed", False):
            devices = value.sharding.device_set
            if self.devices is None:
                self.devices = devices
            elif devices != self.devices:
                raise ApartError

    def add_leaf(self, type: VarType, value: Any, source: Source) -> int:
        """Put a value from outside into the segment."""
        step, active = self.step, source is not None and type.differentiable
        if active and source.__class__ is Link:
            self.closed = False
        key = (type,) if active else type
        found = step.children.get(key)
        if found is None:
            added = (placeholder("leaf", type),)
            found = step.children.setdefault(key, Step(step, added, True, active))
            tree.count += 1
        self.step = found
        self.leaves.append(value)
        self.sources.append(source if active else None)
        self.outputs.append(None)
        return len(self.outputs) - 1

    def foreign(self, call: Call, index: int, value: Any) -> Any:
        """What stands in a key for an input that is no array of this library."""
        if value is None:
            return None
        if value is LEFT_OUT:
            if call.operator.slot_of(index).role != "key":
                return LEFT_OUT
            self._require_near(None)
            root, number = random.draw(owner=call.operator.name)
            return self.add_leaf(KEY_TYPE, (root, np.uint32(number)), None)
        kind = value.__class__
        if kind is float or kind is int or kind is bool or kind is complex:
            if is_large(value) and self.room:
                raise ApartError  # it may not fit the dtype, which is to be told at once
            # zeros have a sign, those in complex numbers too, and NaN equals nothing
            plain = value and kind is not complex and not cmath.isnan(value)
            return (kind, value) if plain else (kind, repr(value), value)
        if isinstance(value, Var):
            raise ArgumentError(
                f"{call.operator.name}: arrays and symbols must not be mixed, got a "
                f"{kind.__name__} beside an NDArray"
            )
        if isinstance(value, np.ndarray) and value.dtype == object:
            raise ArgumentError(f"{call.operator.name}: the entries must be numbers, got {value!r}")
        return self.leaf(call.make(value))

    # Calls

    def extended(self, call: Call, key: tuple[Any, ...]) -> Step | None:
        """The step of a call that nobody took here before.

        None if the flags of JAX are not what they were when the segment began: another one must
        begin.
        """
        if surroundings() != (self.x64, self.device):
            return None
        step = self.step
        numbers = [i for i, one in enumerate(key) if type(one) is tuple]
        if numbers and call.operator.training_index is None:
            count = step.numbers[call] = step.numbers.get(call, 0) + 1
            if count > _VARIETY:
                return self._generalized(call, key, numbers)
        if None in key and call.plain:
            call.operator.bind(tuple(key[1:]), {})  # which refuses it
        nodes = self.nodes()
        inputs = tuple([_node(one, nodes) for one in key[1:]])
        added = self._added(call, inputs)
        if self.taped and not set(nodes).isdisjoint(added):
            added = self._added(call, _distinct(inputs, len(nodes)))
        made = Step(step, added, cut=added[len(call.shown) :])
        tree.count += 1
        return step.children.setdefault(key, made)

    def _added(self, call: Call, inputs: tuple[Node | None, ...]) -> tuple[Node, ...]:
        """The visible outputs of a call, and in training the new states."""
        node, operator = apply(call.operator, inputs, call.attributes), call.operator
        if operator.single or node.op is not operator:
            return (node,)
        updated = sorted(operator.update_indices.values()) if self.training else []
        states = [select(node, i) for i in updated]
        shown = [select(node, i) for i in call.shown]
        return (*shown, *(map(still, states) if self.taped else states))

    def flows(self, place: int) -> bool:
        """Whether a derivative may flow through the value at ``place``."""
        node = self.nodes()[place]
        return node in self.moving([node])

    def moving(self, ends: Sequence[Node]) -> set[Node]:
        """The nodes on the way to ``ends`` through which a derivative may flow."""
        path = self.step.path()
        active = [node for step in path if step.active for node in step.added]
        cut = self._cut(path)
        carrying = [one for one in topological(ends) if carries_cotangent(one) and one not in cut]
        return reaching([*active, *carrying], active)

    def _cut(self, path: Sequence[Step]) -> set[Node]:
        return {node for step in path for node in step.cut}

    def _generalized(self, call: Call, key: tuple[Any, ...], numbers: Sequence[int]) -> Step | None:
        """The same call on numbers that are inputs rather than constants."""
        general = list(key)
        for i in numbers:
            value = key[i][-1]
            general[i] = self.add_leaf(type_of(value), value, None)
        whole = tuple(general)
        found = self.step.children.get(whole)
        return self.extended(call, whole) if found is None else found

    def nodes(self) -> list[Node]:
        """The nodes of all values so far."""
        return [node for step in self.step.path() for node in step.added]

    def take(self, step: Step, make: type[Any]) -> list[Any]:
        """Go on to ``step``; the values that it adds, in arrays of class ``make``."""
        self.step = step
        made = []
        for node in step.added:
            out = new(make)
            out._value = out._link = out._grad = None
            out._segment, out._index, out._type = self, len(self.outputs), node.type
            self.outputs.append(out)
            made.append(out)
        return made

    def hold(self, place: int, array: Any) -> None:
        """Another array holds the value at ``place`` from now on."""
        self.outputs[place] = array

    def _is_held(self, place: int) -> bool:
        """Whether an array still stands for that value: it may have taken another one since."""
        array = self.outputs[place]
        return array is not None and array._segment is self and array._index == place

    # Running

    def run(self) -> None:
        """Compute what is still wanted.

        Raises:
            Exception: whatever a kernel raises; the values are lost, and asking for one raises it
                again.
        """
        if local.state.segment is self:
            local.state.segment = None
        elif local.state.parked is self:
            local.state.parked = None
        outputs, alone = self.outputs, _REFERENCES
        wanted = [i for i in range(len(outputs)) if sys.getrefcount(outputs[i]) > alone]
        wanted = [i for i in wanted if self._is_held(i)]
        if wanted:
            try:
                with self._at_its_device():
                    self._run([(i, outputs[i]) for i in wanted])
            except Exception as error:
                self.error = error
                self._rescue([(i, outputs[i]) for i in wanted])
                raise
            except BaseException:  # an interrupt loses nothing
                local.state.parked = self if local.state.parked is None else local.state.parked
                raise
        self.leaves, self.held, self.sources = [], [], []
        self.places, self.outputs = {}, []

    def _rescue(self, wanted: Sequence[tuple[int, Any]]) -> None:
        """Compute one by one what does not depend on what failed."""
        for one in wanted:
            with contextlib.suppress(Exception), self._at_its_device():
                self._run([one])

    def _at_its_device(self) -> contextlib.AbstractContextManager[None]:
        """A scope in which JAX's default device is that of the segment."""
        if self.device is surroundings()[1]:
            return contextlib.nullcontext()
        scope: contextlib.AbstractContextManager[None] = jax.default_device(self.device)
        return scope

    def _run(self, wanted: list[tuple[int, Any]]) -> None:
        key = tuple([i for i, _ in wanted])
        known = key, tuple(self.spent)
        program = self.step.programs.get(known)
        if not local.state.rest:
            local.state.count_program(program is None)
        if program is None:
            with jax.enable_x64(self.x64):
                program = self.step.programs.setdefault(known, self._program(key))
            tree.count += PROGRAM
        if isinstance(program, Program):
            for (_, array), value in zip(wanted, called(program, self.leaves), strict=True):
                _settled(array, value)
            return
        results, entry = self._entered(program)
        recorded = entry.recorded
        for (_, array), node, value in zip(wanted, recorded.wanted, results, strict=False):
            _settled(array, value)
            if array._link is None and recorded.links(node):
                array._link = Link(entry, node)

    def _entered(self, program: Recorded | Lean) -> tuple[list[Any], Entry]:
        """The results of a program, and its entry on the tape."""
        origins = [*map(origin_of, self.sources, self.leaves)]
        if isinstance(program, Recorded):
            results, saved, packed = program.run(self.leaves, called)
            return results, Entry(program, self.sources, saved, packed, origins)
        results = called(program.program, self.leaves)
        entry = Entry(program.whole, self.sources, [], False, origins)
        entry.spent = program.spent
        if program.done:
            entry.saved = None
        elif program.whole.residuals:
            entry.again = functools.partial(_residuals, program.whole, self.leaves)
        return results, entry

    def _program(self, wanted: Sequence[int]) -> Program | Recorded | Lean:
        path = self.step.path()
        nodes = [node for step in path for node in step.added]
        inputs = [node for step in path if step.leaf for node in step.added]
        active = [node for step in path if step.active for node in step.added]
        outputs = [nodes[i] for i in wanted]
        if not active:
            return Program(inputs, outputs, self.training)
        recorded = Recorded(inputs, outputs, active, self.training, self._cut(path))
        spent = [tuple(nodes[i] for i in heads) for heads in self.spent]
        return Lean(recorded, spent) if spent else recorded

    def peek(self, array: Any) -> Any:
        """A value, computed without running the segment: it belongs to another thread."""
        if self.error is not None:
            raise self.error
        leaves, path = self.leaves, self.step.path()
        inputs = [node for step in path if step.leaf for node in step.added]
        nodes = [node for step in path for node in step.added]
        if array._value is not None:  # its owner ran the segment meanwhile
            return array._value
        with jax.enable_x64(self.x64):
            program = Program(inputs, [nodes[array._index]], self.training)
        return called(program, leaves[: len(inputs)])[0]


def surroundings() -> tuple[bool, Any]:
    """The flags of JAX on which results depend: 64-bit dtypes, and the default device."""
    config: Any = jax.config
    return bool(config.jax_enable_x64), config.jax_default_device


def _residuals(recorded: Recorded, leaves: list[Any]) -> tuple[list[Any], bool]:
    """The residuals of a program, and whether they are packed."""
    return recorded.run(leaves, called)[1:]


def _settled(array: Any, value: Any) -> None:
    """``array`` holds ``value`` from now on; one that is traced does not know its type by heart."""
    array._value, array._segment = value, None
    if isinstance(value, jax.core.Tracer):
        array._type = None


def called(program: Program, values: Sequence[Any]) -> list[Any]:
    """The outputs of ``program`` for arrays; computed now, also inside of a JAX transformation."""
    if program.x64 != jax.config.jax_enable_x64:  # type: ignore[attr-defined]  # set at run time
        with jax.enable_x64(program.x64):
            return called(program, values)
    results = program(values)
    traced = results and isinstance(results[0], jax.core.Tracer)
    if traced and not any(isinstance(one, jax.core.Tracer) for one in values):
        with jax.ensure_compile_time_eval():
            return program(values)
    return results


def _node(one: Any, nodes: Sequence[Node]) -> Node | None:
    if one is None:
        return None
    if one is LEFT_OUT:
        return training_flag()
    return constant(one[-1]) if type(one) is tuple else nodes[one]


def _distinct(inputs: tuple[Node | None, ...], number: int) -> tuple[Node | None, ...]:
    """``inputs`` of which a call makes values of its own, not those of an equal call before.

    The tape knows an array by its node, so each array on it must have one of its own.
    """
    for i, one in enumerate(inputs):
        if one is not None and one.op is not TRAINING and one.type.differentiable:
            return (*inputs[:i], apply(get("alias"), (one,), (number,)), *inputs[i + 1 :])
    return inputs


def still(node: Node) -> Node:
    """The same value, through which no gradient flows."""
    return apply(get("stop_gradient"), (node,), ())
