"""Tape nodes: recorded programs with their residuals and the sources of their inputs."""

import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import jax
from jax.extend.core import get_opaque_trace_state

from registry.errors import GradientError
from registry.types import OpReqType, VarType
from registry.values import SelectedRows
from symop.eager.programs import LinearizedProgram
from symop.graph.nodes import Node, placeholder

serials = itertools.count()
"""Serial numbers of tape nodes, in the order of creation."""


class Link(NamedTuple):
    """The source of a recorded value: a tape node, and the graph node of the value in it."""

    entry: "AnyEntry"
    node: Node


class Marked(Protocol):
    """An array marked by ``attach_grad``."""

    @property
    def type(self) -> VarType:
        """The shape, dtype and kind."""


class Gradient:
    """The stored gradient of a marked array.

    Attributes:
        req: whether a backward pass writes the gradient or adds to it.
        value: the gradient, an ``NDArray``; None while it is zero.
    """

    __slots__ = ("_trace", "req", "value")

    def __init__(self, req: OpReqType) -> None:
        """Creates a gradient that is zero."""
        self.req = req
        self.value: Any = None
        self._trace = _trace()

    def outlives(self, value: Any) -> bool:
        """Whether the array was marked outside the JAX trace that computed ``value``."""
        entries = value.values if isinstance(value, SelectedRows) else value
        return isinstance(entries, jax.core.Tracer) and self._trace != _trace()

    def require_lasting(self, value: Any) -> None:
        """Rejects a gradient that would be lost with the trace that computed it.

        Raises:
            GradientError: the array was marked outside the trace.
        """
        if self.outlives(value):
            raise GradientError(
                "gradient: inside of a JAX transformation the array must be marked there, got one "
                "that was marked outside, whose gradient would be lost with the trace; pass the "
                "array as an argument and mark it, or use autograd.grad and return what it gives"
            )


def _trace() -> Any:
    """Returns JAX's current trace state, which can be compared for equality."""
    return get_opaque_trace_state()  # type: ignore[no-untyped-call]  # of JAX


NEVER = ()
"""The link of a value without a derivative: an updated state, or a gradient that was computed
without ``create_graph``."""
Source = Link | Marked | None
"""The destination of a value's gradient: a tape node, a marked array, or None."""
Number = bool | int | float | complex
Origin = Link | Marked | weakref.ref[Any] | Number | None
"""The origin of a tape node's input: a ``Source``, a weak reference that identifies a constant, or
a Python number, which is an input since its value varied between calls."""
Origins = Sequence[Origin]


class TapeNode:
    """A tape node of a program that ran.

    Attributes:
        recorded: the program.
        sources: the sources of its inputs; None where no derivative flows.
        saved: the values of its residuals; None after they are freed.
        packed: whether small residuals are concatenated.
        spent: the calls used by backward passes that did not retain the record, and the heads at
            which these began.
        again: a function that reruns the program and returns its residuals and whether they are
            packed, if the program saved none because its gradients were recorded before it ran;
            None otherwise.
        serial: the serial number; later tape nodes have larger ones.
    """

    __slots__ = ("_origins", "again", "packed", "recorded", "saved", "serial", "sources", "spent")

    def __init__(
        self,
        recorded: LinearizedProgram,
        sources: list[Source],
        saved: list[Any],
        packed: bool,
        origins: Origins | Callable[[], Origins] | None = None,
    ) -> None:
        """Creates the node; ``origins`` are those of all inputs, including constants."""
        self.recorded, self.sources, self.packed = recorded, sources, packed
        self.saved: list[Any] | None = saved
        self.spent: frozenset[Node] = frozenset()
        self.again: Callable[[], tuple[list[Any], bool]] | None = None
        self.serial = next(serials)
        self._origins = origins

    def open(self) -> None:
        """Computes the residuals if the program did not save them."""
        if self.again is not None:
            self.saved, self.packed = self.again()
            self.again = None

    def spend(self, heads: tuple[Node, ...], first: frozenset[Node]) -> None:
        """Marks the residuals that the gradients of ``heads`` read as spent.

        The values are freed once no other head needs them. A backward pass began at the heads in
        ``first``; no other may begin there, even if the gradients read no residuals.
        """
        self.spent |= self.recorded.using(heads) | first
        reading = self.recorded.using(tuple(self.recorded.heads))
        if reading and self.spent >= reading:
            self._origins = self.origins  # before the values that identify constants are freed
            self.saved = self.again = None

    def is_spent(self, heads: tuple[Node, ...], first: frozenset[Node]) -> bool:
        """Whether gradients of ``heads`` read spent residuals, or a pass began at ``first``."""
        return not self.spent.isdisjoint(self.recorded.using(heads) | first)

    @property
    def origins(self) -> Origins:
        """The origin of each input; None for a constant that cannot be identified."""
        names = self._origins
        if names is None:
            kept = dict(zip(self.recorded.plain, self.saved or (), strict=False))
            pairs = zip(self.recorded.inputs, self.sources, strict=True)
            names = [origin_of(source, kept.get(node)) for node, source in pairs]
        self._origins = known = names() if callable(names) else names
        return known


def origin_of(source: Source, value: Any) -> Origin:
    """Returns the origin of a value with the given source.

    A constant is identified by a weak reference, which Python shares between all users of an array
    and which does not keep the array alive. A number is its own origin.
    """
    if source is None and isinstance(value, Number):
        return value
    if source is not None or not isinstance(value, jax.Array):
        return source
    return weakref.ref(value)


class Custom:
    """A tape node whose backward pass is a Python function.

    Attributes:
        sources: the sources of its inputs.
        backward: maps the cotangents of all outputs to the gradients of all inputs.
        nodes: placeholders for its outputs.
        computed: the source that computes its only output; None if Python computes it.
        spent: whether a backward pass that did not retain the record used it.
        serial: the serial number; later tape nodes have larger ones.
        takes_rows: whether the function accepts row-sparse cotangents of dense values.
    """

    __slots__ = ("backward", "computed", "nodes", "serial", "sources", "spent", "takes_rows")

    def __init__(
        self,
        sources: Sequence[Source],
        nodes: list[Node],
        backward: Callable[[list[Any]], Sequence[Any]],
        computed: Source = None,
    ) -> None:
        """Creates the node."""
        self.sources, self.nodes, self.backward = sources, nodes, backward
        self.computed, self.spent, self.takes_rows = computed, False, False
        self.serial = next(serials)

    def spend(self) -> None:
        """Drops the function and its values, unless ``computed`` computes the output."""
        if self.computed is None:
            self.spent, self.backward = True, _forgotten

    def gradients(self, cotangents: dict[Node, Any]) -> Sequence[Any]:
        """Returns the gradients of the inputs for the cotangents of outputs, which are arrays."""
        if not cotangents:
            return [None] * len(self.sources)
        result = self.backward([cotangents.get(node) for node in self.nodes])
        if len(result) != len(self.sources):
            raise GradientError(
                f"backward: it must return a gradient for each of {len(self.sources)} inputs, "
                f"got {len(result)}"
            )
        return result


class DerivedTapeNode(Custom):
    """A tape node of a recorded gradient, which is a function of all inputs of its heads.

    The computation of the gradient may read fewer of them, or none if it is a constant. Its
    derivatives with respect to the others are then zero rather than disconnected. The node holds no
    residuals and is never freed.

    Attributes:
        is_zero: whether no cotangent arrived.
    """

    __slots__ = ("is_zero",)

    def __init__(
        self, computed: Source, formal: Sequence[Source], type: VarType, *, is_zero: bool
    ) -> None:
        """Creates the node of a gradient; its source ``computed`` is None if it is constant."""
        self.is_zero = is_zero
        values = [] if computed is None else [computed]
        behind = [one for one in formal if one is not None]

        def passed(cotangents: list[Any]) -> Sequence[Any]:
            return [*cotangents[: len(values)], *[None] * len(behind)]

        super().__init__([*values, *behind], [placeholder("gradient", type)], passed, computed)

    def spend(self) -> None:
        """Does nothing: the node holds no residuals."""


def _forgotten(_cotangents: list[Any]) -> Sequence[Any]:
    """Replaces a dropped backward function; it is never called."""
    return []


AnyEntry = TapeNode | Custom
