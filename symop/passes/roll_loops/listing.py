"""A graph as a sequence of operators in the order in which they were made, and their letters.

A user's loop makes one block of operators after another, and so do a gradient and a file. In that
order, a loop is a word that is repeated many times.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from registry.operator.attributes import identity_key
from registry.operator.operator import Operator
from registry.pieces import Piece
from symop.graph.nodes import Node, topological
from symop.graph.policies import RematScope, is_costly, scope_of

Wire = tuple[int, int]
"""The source of an input: how many operators back it is, and which of its outputs. It is (0, 0) if
the source is not an operator of the sequence, and (-1, 0) if the slot is empty."""
OUTSIDE: Wire = (0, 0)
EMPTY: Wire = (-1, 0)
COSTLY = 4
"""The weight of an operator that is declared costly."""


def arrange(outputs: Sequence[Node], hints: Iterable[Node], until: Iterable[Node]) -> list[Node]:
    """Returns the nodes ``outputs`` need, inputs first, otherwise in the order of ``hints``.

    In ``hints``, each node must follow those of its inputs that are listed. The nodes in ``until``
    are taken as given, as by ``topological``.
    """
    ends = set(until)
    needed = set(topological(outputs, until=ends))
    wanted = [node for node in dict.fromkeys(hints) if node in needed]
    if len(wanted) == len(needed):
        return wanted
    return topological([*wanted, *outputs], until=ends)


class Listing:
    """The operators that compute ``outputs``, in order.

    Attributes:
        outputs: The values that are requested from outside.
        order: The nodes that apply operators, each after those that it reads.
        place: The position of each node in ``order``.
        letters: A number for each node; equal if two nodes differ only in their inputs.
        wires: The sources of the inputs of each node.
        selections: For nodes with several outputs, the nodes that select one, by output.
        readers: For each position, the positions of the nodes that read it, in order.
        weights: For each position, the total weight of the nodes before it: one for each node, and
            more for costly ones.
    """

    def __init__(self, outputs: Sequence[Node], order: Iterable[Node]) -> None:
        """Lists the operators in ``order``, in which each node follows its inputs."""
        self.outputs = tuple(outputs)
        self.order: list[Node] = []
        self.place: dict[Node, int] = {}
        self.letters: list[int] = []
        self.wires: list[tuple[Wire, ...]] = []
        self.readers: list[list[int]] = []
        self.weights = [0]
        self.selections: dict[Node, dict[int, Node]] = {}
        known: dict[Any, int] = {}
        self._entered: set[RematScope] = set()
        for node in order:
            if node.is_selection:
                self.selections.setdefault(node.source, {})[node.index] = node
            elif isinstance(node.op, Operator):
                self._append(node, known)

    def _append(self, node: Node, known: dict[Any, int]) -> None:
        place = self.place[node] = len(self.order)
        self.order.append(node)
        letter = _letter(node), self._scope_letter(node)
        self.letters.append(known.setdefault(letter, len(known)))
        self.readers.append([])
        self.weights.append(self.weights[-1] + (COSTLY if is_costly(node) else 1))
        wires = []
        for one in node.inputs:
            if one is None:
                wires.append(EMPTY)
                continue
            at = self.place.get(one.source)
            if at is None:
                wires.append(OUTSIDE)
                continue
            wires.append((place - at, one.index))
            readers = self.readers[at]
            if not readers or readers[-1] != place:
                readers.append(place)
        self.wires.append(tuple(wires))

    def _scope_letter(self, node: Node) -> Any:
        """Returns policy, depth and start of the scope of ``node``; None outside all scopes."""
        scope = scope_of(node)
        if scope is None:
            return None
        begins = scope not in self._entered
        self._entered.add(scope)
        return scope.policy, scope.depth, begins

    def value(self, place: int, index: int) -> Node | None:
        """Returns output ``index`` of an operator as a node; None if it is not read."""
        node = self.order[place]
        assert isinstance(node.op, Operator)
        return node if node.op.single else self.selections.get(node, {}).get(index)


class KnownSlice(NamedTuple):
    """A value that is a slice of another."""

    source: Node
    piece: Piece


def cut_of(node: Node) -> KnownSlice | None:
    """Returns the slice that ``node`` is known to be; else None."""
    maker, index = node.source, node.index
    operator = maker.op
    if not isinstance(operator, Operator) or operator.piece_rule is None:
        return None
    (source,) = maker.inputs
    if source is None or source.types is None:
        return None
    said = operator.piece_rule((source.type.shape,), maker.attributes)
    piece = said(index) if callable(said) else said
    return None if piece is None else KnownSlice(source, piece)


def is_cut(node: Node) -> bool:
    """Whether an operator takes one slice, so that equal calls may differ in its position."""
    operator = node.op
    return (
        isinstance(operator, Operator)
        and operator.single
        and operator.piece_rule is not None
        and cut_of(node) is not None
    )


def _letter(node: Node) -> Any:
    """Returns a key that two nodes must share to be computed by the same step of a loop."""
    attributes = node.attributes
    what = None if not attributes or is_cut(node) else identity_key(attributes)
    return node.op, what, node.types
