"""Entries of the tape: what it keeps of each program that was run, and where values come from."""

import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import jax
from jax.extend.core import get_opaque_trace_state

from registry.errors import GradientError
from registry.types import OpReqType, VarType
from registry.values import SelectedRows
from symop.eager_programs import Recorded
from symop.graph import Node

serials = itertools.count()
"""Numbers for the entries of the tape, in the order in which they were made."""


class Link(NamedTuple):
    """Where a recorded value comes from: a node of an entry of the tape."""

    entry: "AnyEntry"
    node: Node


class Marked(Protocol):
    """An array with a gradient of its own."""

    @property
    def type(self) -> VarType:
        """Shape, dtype and kind."""


class Gradient:
    """What an array with a gradient of its own keeps of it.

    Attributes:
        req: whether a backward pass writes the gradient, adds to it, or leaves it.
        value: the gradient, an ``NDArray``; None as long as it is zero.
    """

    __slots__ = ("_trace", "req", "value")

    def __init__(self, req: OpReqType) -> None:
        """A gradient that is zero so far."""
        self.req = req
        self.value: Any = None
        self._trace = _trace()

    def outlives(self, value: Any) -> bool:
        """Whether the array was marked outside of a trace of JAX in which ``value`` was made."""
        entries = value.values if isinstance(value, SelectedRows) else value
        return isinstance(entries, jax.core.Tracer) and self._trace != _trace()

    def require_lasting(self, value: Any) -> None:
        """Refuse a gradient that would be of no use after the trace in which it was made.

        Raises:
            GradientError: the array was marked outside of the trace.
        """
        if self.outlives(value):
            raise GradientError(
                "gradient: inside of a JAX transformation the array must be marked there, got one "
                "that was marked outside, whose gradient would be lost with the trace; pass the "
                "array as an argument and mark it, or use autograd.grad and return what it gives"
            )


def _trace() -> Any:
    """What JAX traces at the moment; equal to itself."""
    return get_opaque_trace_state()  # type: ignore[no-untyped-call]  # of JAX


NEVER = ()
"""In place of a link: the value is no function of what is differentiated, as a new state is none,
and a gradient that was not asked to move."""
Source = Link | Marked | None
"""Where the gradient by a value goes: on along the tape, to an array of its own, or nowhere."""
Origin = Link | Marked | weakref.ref[Any] | None
"""What an input of an entry stands for: a ``Source``, or what tells one constant from another."""
Origins = Sequence[Origin]


class Entry:
    """What the tape holds of a program that was run.

    Attributes:
        recorded: the program.
        sources: where its inputs come from; None where no derivative flows.
        saved: the values of its residuals; None when they were freed.
        packed: whether small ones among them lie end to end.
        spent: the calls that a backward pass went through which did not keep the record, and the
            heads that one began at.
        again: runs the program again for its residuals and whether they are packed: it saved none,
            since gradients had been taken before it ran. None where it need not.
        serial: grows with each entry.
    """

    __slots__ = ("_origins", "again", "packed", "recorded", "saved", "serial", "sources", "spent")

    def __init__(
        self,
        recorded: Recorded,
        sources: list[Source],
        saved: list[Any],
        packed: bool,
        origins: Origins | Callable[[], Origins] | None = None,
    ) -> None:
        """Enter a program on the tape; ``origins`` tell what its inputs are, also constant ones."""
        self.recorded, self.sources, self.packed = recorded, sources, packed
        self.saved: list[Any] | None = saved
        self.spent: frozenset[Node] = frozenset()
        self.again: Callable[[], tuple[list[Any], bool]] | None = None
        self.serial = next(serials)
        self._origins = origins

    def open(self) -> None:
        """Compute the residuals, if it is still to be done."""
        if self.again is not None:
            self.saved, self.packed = self.again()
            self.again = None

    def spend(self, heads: tuple[Node, ...], first: frozenset[Node]) -> None:
        """Forget what the gradients of ``heads`` read; the values go when no other needs them.

        A backward pass began at those in ``first``: none may begin there again, also where
        gradients read nothing.
        """
        self.spent |= self.recorded.using(heads) | first
        reading = self.recorded.using(tuple(self.recorded.heads))
        if reading and self.spent >= reading:
            self._origins = self.origins  # before the values are gone that tell constants apart
            self.saved = self.again = None

    def is_spent(self, heads: tuple[Node, ...], first: frozenset[Node]) -> bool:
        """Whether the gradients of ``heads`` read what is forgotten, or began there before."""
        return not self.spent.isdisjoint(self.recorded.using(heads) | first)

    @property
    def origins(self) -> Origins:
        """What each input stands for; None for a constant that cannot be told from others."""
        found = self._origins
        if found is None:
            kept = dict(zip(self.recorded.plain, self.saved or (), strict=False))
            pairs = zip(self.recorded.inputs, self.sources, strict=True)
            found = [origin_of(source, kept.get(node)) for node, source in pairs]
        self._origins = known = found() if callable(found) else found
        return known


def origin_of(source: Source, value: Any) -> Origin:
    """What a value stands for that comes from ``source``.

    A constant is told by a weak reference: an array has one of them, which does not keep it.
    """
    if source is not None or not isinstance(value, jax.Array):
        return source
    return weakref.ref(value)


class Custom:
    """An entry whose backward pass is a Python function.

    Attributes:
        sources: where its inputs come from.
        backward: from the cotangents of all outputs to the gradients of all inputs.
        nodes: what stands for its outputs.
        computed: where a graph computes its only output; None where it is Python that does.
        spent: whether a backward pass went through that did not keep the record.
        serial: grows with each entry.
    """

    __slots__ = ("backward", "computed", "nodes", "serial", "sources", "spent")

    def __init__(
        self,
        sources: Sequence[Source],
        nodes: list[Node],
        backward: Callable[[list[Any]], Sequence[Any]],
        computed: Link | None = None,
    ) -> None:
        """Enter a function on the tape."""
        self.sources, self.nodes, self.backward = sources, nodes, backward
        self.computed, self.spent = computed, False
        self.serial = next(serials)

    def spend(self) -> None:
        """Forget the function, and what it holds, where it is Python's."""
        if self.computed is None:
            self.spent, self.backward = True, _forgotten

    def gradients(self, cotangents: dict[Node, Any]) -> Sequence[Any]:
        """What arrives at the inputs for the cotangents of outputs, which are arrays."""
        if not cotangents:
            return [None] * len(self.sources)
        found = self.backward([cotangents.get(node) for node in self.nodes])
        if len(found) != len(self.sources):
            raise GradientError(
                f"backward: it must return a gradient for each of {len(self.sources)} inputs, "
                f"got {len(found)}"
            )
        return found


def _forgotten(_cotangents: list[Any]) -> Sequence[Any]:
    """In place of a function that is not there any more, nor asked for."""
    return []


AnyEntry = Entry | Custom
