"""Symbols of recorded eager values, rebuilt from the tape as graphs over variables."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from registry.errors import GradientError
from registry.operator.operator import Operator
from registry.operator.signature import Slot
from registry.table import get
from registry.types import KEY_TYPE, VarType
from symop.autodiff.differentiate import zeros
from symop.eager.tape_nodes import (
    Custom,
    DerivedTapeNode,
    Link,
    Marked,
    Number,
    Origin,
    Source,
    TapeNode,
)
from symop.graph.emission import apply
from symop.graph.nodes import VARIABLE, Node, by_age, constant, fresh_key, topological, variable
from symop.graph.rewriting import Images, substitute
from symop.symbol.symbol import Symbol

Needed = dict[TapeNode, list[Node]]


def symbol_of(sources: Sequence[Link | Marked]) -> Symbol:
    """Returns the graph that computes recorded values, with variables ``var0``, ``var1``, ...

    A marked array is a variable. An array that an operator updates is an auxiliary state, as in a
    graph built by hand.

    Raises:
        GradientError: the computation contains an ``autograd.Function``, which is not a graph.
    """
    links = [_computed(one) if isinstance(one, Link) else one for one in sources]
    needed = _needed([one for one in links if isinstance(one, Link)])
    graph = _Graph(_states(needed))
    for entry in sorted(needed, key=lambda one: one.serial):
        graph.add(entry, needed[entry])
    return Symbol(_rooted([graph.node(one) for one in links]))


def _computed(link: Link) -> Link | Marked:
    """Returns the source that computes the value of ``link`` by operators or as a zero gradient."""
    result: Source = link
    while isinstance(result, Link) and isinstance(result.entry, Custom):
        if isinstance(result.entry, DerivedTapeNode) and result.entry.is_zero:
            return result
        result = result.entry.computed
    if result is None:
        raise GradientError(
            "get_symbol: the value must be made of operators, but an autograd.Function lies on "
            "the way"
        )
    return result


def _needed(links: Sequence[Link]) -> Needed:
    """Returns the tape nodes that compute the values, each with the values needed of it."""
    needed: Needed = defaultdict(list)
    waiting = list(links)
    while waiting:
        computed = _computed(waiting.pop())
        if not isinstance(computed, Link) or not isinstance(computed.entry, TapeNode):
            continue
        entry, node = computed.entry, computed.node
        if node in needed[entry]:
            continue
        needed[entry].append(node)
        waiting += [one for one in entry.origins if isinstance(one, Link)]
    return needed


class _Graph:
    """A graph under construction: the values of tape nodes, and the variables."""

    def __init__(self, states: dict[object, Slot]) -> None:
        self._states = states
        self._built: dict[tuple[int, Node], Node] = {}
        self._variables: dict[object, Node] = {}

    def add(self, entry: TapeNode, outputs: list[Node]) -> None:
        """Builds ``outputs`` of a tape node, after those of earlier nodes."""
        order = set(topological(outputs))
        inputs = {
            node: self._stand_in(entry, node, origin)
            for node, origin in _leaves(entry)
            if node in order
        }
        images = substitute(outputs, inputs)
        keys = [(entry.serial, node) for node in outputs]
        self._built.update(zip(keys, images, strict=True))

    def node(self, source: Link | Marked) -> Node:
        """Returns the graph node of the value of ``source``."""
        at = _computed(source) if isinstance(source, Link) else source
        if not isinstance(at, Link):
            return self._variable(id(at), at.type)
        if isinstance(at.entry, Custom):
            return zeros(at.node.type)
        return self._built[at.entry.serial, at.node]

    def _stand_in(self, entry: TapeNode, node: Node, origin: Origin) -> Node:
        if isinstance(origin, Link):
            return self.node(origin)
        if isinstance(origin, Number):
            return constant(origin)
        if node.type is KEY_TYPE:
            return fresh_key()
        return self._variable(_key(entry, node, origin), node.type)

    def _variable(self, key: object, type: VarType) -> Node:
        if key not in self._variables:
            name, slot = f"var{len(self._variables)}", self._states.get(key)
            role = "argument" if slot is None else "state"
            initial = None if slot is None else slot.initial_text
            extra = () if initial is None else (("initial", initial),)
            self._variables[key] = variable(name, type.shape, type.dtype, role, extra)
        return self._variables[key]


def _leaves(entry: TapeNode) -> Iterator[tuple[Node, Origin]]:
    """Returns the inputs of a tape node, each with its origin."""
    return zip(entry.recorded.inputs, entry.origins, strict=True)


def _key(entry: TapeNode, node: Node, origin: Origin) -> object:
    """Returns the key of a variable; each constant that cannot be identified has its own."""
    return (entry.serial, node) if origin is None else id(origin)


# Auxiliary states --------------------------------------------------------------------------------


def _states(needed: Needed) -> dict[object, Slot]:
    """Returns the slots of auxiliary states, by the keys of the variables in them."""
    result: dict[object, Slot] = {}
    for entry, outputs in needed.items():
        slots = {node: slot for one in topological(outputs) for node, slot in _state_slots(one)}
        result |= {
            _key(entry, node, origin): slots[node]
            for node, origin in _leaves(entry)
            if node in slots
        }
    return result


def _state_slots(node: Node) -> list[tuple[Node, Slot]]:
    """Returns the inputs of ``node`` that are auxiliary states, each with its slot."""
    if not isinstance(node.op, Operator):
        return []
    pairs = [(child, node.op.slot_of(i)) for i, child in enumerate(node.inputs)]
    return [(child, slot) for child, slot in pairs if child is not None and slot.role == "state"]


def _rooted(outputs: list[Node]) -> list[Node]:
    """Rewrites operators that update the same state to read its variable.

    As recorded, the second operator reads the state that the first one wrote. In a graph, both read
    the variable, which they update in turn, and the last value remains. The tape does not follow a
    state from one tape node to the next, so it becomes a separate variable there.
    """
    image = Images()
    for node in by_age(topological(outputs)):
        if not isinstance(node.op, Operator) or not node.op.stateful:
            image.rebuild(node)
            continue
        inputs = list(image.inputs(node))
        for i in node.op.update_indices:
            state = _root(node.inputs[i])
            inputs[i] = None if state is None else image.value(state)
        if inputs != list(node.inputs):
            image[node] = apply(node.op, tuple(inputs), node.attributes, node.name)
    return [image.value(one) for one in outputs]


def _root(state: Node | None) -> Node | None:
    """Returns the variable whose updated value is ``state``; otherwise ``state`` itself."""
    at = state
    while at is not None and at.op is get("stop_gradient"):  # added by recording
        at = _before(at.inputs[0])
    return at if at is not None and at.op is VARIABLE else state


def _before(value: Node | None) -> Node | None:
    """Returns the state that an operator replaced by ``value``, or None."""
    if value is None or not isinstance(value.source.op, Operator):
        return None
    places = value.source.op.update_indices
    replaced = [i for i, output in places.items() if output == value.index]
    return value.source.inputs[replaced[0]] if replaced else None
