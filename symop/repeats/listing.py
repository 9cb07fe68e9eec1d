"""A graph as a sequence: its operators in the order in which they were made, and their letters.

A user's loop makes one block of operators after the other, and so do a gradient and a file. Who
reads the operators in that order sees the loop: a word that comes again and again.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from registry.attributes import identity_key
from registry.operator import Operator
from registry.pieces import Piece
from symop.graph import SELECT, Node, topological
from symop.policies import Scope, is_costly, scope_of

Wire = tuple[int, int]
"""Where an input comes from: how many operators ago, and which output of it; (0, 0) where it comes
from no operator of the sequence, (-1, 0) where the slot is empty."""
OUTSIDE: Wire = (0, 0)
EMPTY: Wire = (-1, 0)
COSTLY = 4
"""What an operator weighs that declares to be costly."""


def maker_of(node: Node) -> tuple[Node, int]:
    """The node that computes a value, and which of its outputs it is."""
    if node.op is SELECT:
        return node.operands[0], node.attributes[0]
    return node, 0


def arranged(outputs: Sequence[Node], hints: Iterable[Node], until: Iterable[Node]) -> list[Node]:
    """What ``outputs`` need, each after its inputs, otherwise in the order of ``hints``.

    In ``hints`` each node stands behind those of its inputs that are there.
    The nodes in ``until`` are taken as given, as by ``topological``.
    """
    given = set(until)
    needed = set(topological(outputs, until=given))
    wanted = [node for node in dict.fromkeys(hints) if node in needed]
    if len(wanted) == len(needed):
        return wanted
    return topological([*wanted, *outputs], until=given)


class Listing:
    """The operators that compute ``outputs``, in order.

    Attributes:
        outputs: the values that somebody outside asks for.
        order: nodes that apply operators, each after those that it reads.
        place: where each of them stands in ``order``.
        letters: a number for each of them; equal where two are alike but for what they read.
        wires: for each of them where its inputs come from.
        selections: of nodes with several outputs, the nodes that select one, by output.
        readers: for each place, the places of those that read it, in order.
        weights: for each place what those before it weigh together: one each, costly ones more.
    """

    def __init__(self, outputs: Sequence[Node], order: Iterable[Node]) -> None:
        """List the operators among ``order``, in which each node follows its inputs."""
        self.outputs = tuple(outputs)
        self.order: list[Node] = []
        self.place: dict[Node, int] = {}
        self.letters: list[int] = []
        self.wires: list[tuple[Wire, ...]] = []
        self.readers: list[list[int]] = []
        self.weights = [0]
        self.selections: dict[Node, dict[int, Node]] = {}
        known: dict[Any, int] = {}
        self._entered: set[Scope] = set()
        for node in order:
            if node.op is SELECT:
                source, index = maker_of(node)
                self.selections.setdefault(source, {})[index] = node
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
            source, index = (one, 0) if one.op is not SELECT else maker_of(one)
            at = self.place.get(source)
            if at is None:
                wires.append(OUTSIDE)
                continue
            wires.append((place - at, index))
            readers = self.readers[at]
            if not readers or readers[-1] != place:
                readers.append(place)
        self.wires.append(tuple(wires))

    def _scope_letter(self, node: Node) -> Any:
        """What a step must keep of ``node``, and whether a block of its own begins with it."""
        scope = scope_of(node)
        if scope is None:
            return None
        begins = scope not in self._entered
        self._entered.add(scope)
        return scope.policy, scope.depth, begins

    def value(self, place: int, index: int) -> Node | None:
        """Output ``index`` of an operator as a node of the graph; None if nobody reads it."""
        node = self.order[place]
        assert isinstance(node.op, Operator)
        return node if node.op.single else self.selections.get(node, {}).get(index)


class Cut(NamedTuple):
    """One value as a piece of another."""

    source: Node
    piece: Piece


def cut_of(node: Node) -> Cut | None:
    """Of what value ``node`` is a piece; None if it is not known to be one."""
    maker, index = maker_of(node)
    operator = maker.op
    if not isinstance(operator, Operator) or operator.piece_rule is None:
        return None
    (source,) = maker.inputs
    if source is None or source.types is None:
        return None
    said = operator.piece_rule((source.type.shape,), maker.attributes)
    piece = said(index) if callable(said) else said
    return None if piece is None else Cut(source, piece)


def is_cut(node: Node) -> bool:
    """Whether an operator cuts one piece out, so that like calls may differ in where they cut."""
    operator = node.op
    return (
        isinstance(operator, Operator)
        and operator.single
        and operator.piece_rule is not None
        and cut_of(node) is not None
    )


def _letter(node: Node) -> Any:
    """What two nodes must have in common to be computed by one step of a loop."""
    attributes = node.attributes
    what = None if not attributes or is_cut(node) else identity_key(attributes)
    return node.op, what, node.types
