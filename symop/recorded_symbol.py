"""The symbol of eager values: what the tape knows of them, as a graph over variables."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from registry.errors import GradientError
from registry.operator import Operator
from registry.signature import Slot
from registry.types import KEY_TYPE, VarType
from symop.emission import apply, substitute
from symop.entries import Custom, Entry, Link, Marked, Origin
from symop.graph import SELECT, VARIABLE, Node, fresh_key, topological, variable
from symop.symbol import Symbol

Needed = dict[Entry, list[Node]]


def symbol_of(sources: Sequence[Link | Marked]) -> Symbol:
    """The graph that computes recorded values; its variables are ``var0``, ``var1``, ...

    An array with a gradient of its own is one of them. What an operator updates is an auxiliary
    state, as in a graph built by hand.

    Raises:
        GradientError: a function of one's own lies on the way, which is no graph.
    """
    links = [_computed(one) if isinstance(one, Link) else one for one in sources]
    needed = _needed([one for one in links if isinstance(one, Link)])
    graph = _Graph(_states(needed))
    for entry in sorted(needed, key=lambda one: one.serial):
        graph.add(entry, needed[entry])
    return Symbol(_rooted([graph.node(one) for one in links]))


def _computed(link: Link) -> Link:
    """Where a graph computes the value of ``link``."""
    found: Link | None = link
    while found is not None and isinstance(found.entry, Custom):
        found = found.entry.computed
    if found is None:
        raise GradientError(
            "get_symbol: the value must be made of operators, but an autograd.Function lies on "
            "the way"
        )
    return found


def _needed(links: Sequence[Link]) -> Needed:
    """The entries that values are computed by, and which of their values they need."""
    needed: Needed = defaultdict(list)
    waiting = list(links)
    while waiting:
        entry, node = _computed(waiting.pop())
        assert isinstance(entry, Entry)
        if node in needed[entry]:
            continue
        needed[entry].append(node)
        waiting += [one for one in entry.origins if isinstance(one, Link)]
    return needed


class _Graph:
    """What is built so far: the values of entries, and the variables behind them."""

    def __init__(self, states: dict[object, Slot]) -> None:
        self._states = states
        self._built: dict[tuple[int, Node], Node] = {}
        self._variables: dict[object, Node] = {}

    def add(self, entry: Entry, outputs: list[Node]) -> None:
        """Build ``outputs`` of an entry; those before it are built."""
        order = set(topological(outputs))
        inputs = {
            node: self._stand_in(entry, node, origin)
            for node, origin in _leaves(entry)
            if node in order
        }
        found = substitute(outputs, inputs)
        keys = [(entry.serial, node) for node in outputs]
        self._built.update(zip(keys, found, strict=True))

    def node(self, source: Link | Marked) -> Node:
        """The value of ``source``."""
        if isinstance(source, Link):
            link = _computed(source)
            return self._built[link.entry.serial, link.node]
        return self._variable(id(source), source.type)

    def _stand_in(self, entry: Entry, node: Node, origin: Origin) -> Node:
        if isinstance(origin, Link):
            return self.node(origin)
        if node.type is KEY_TYPE:
            return fresh_key()
        return self._variable(_key(entry, node, origin), node.type)

    def _variable(self, key: object, type: VarType) -> Node:
        if key not in self._variables:
            name, slot = f"var{len(self._variables)}", self._states.get(key)
            role = "argument" if slot is None else "state"
            initial = None if slot is None else slot.initial
            extra = () if initial is None else (("initial", repr(initial)),)
            self._variables[key] = variable(name, type.shape, type.dtype, role, extra)
        return self._variables[key]


def _leaves(entry: Entry) -> Iterator[tuple[Node, Origin]]:
    """The inputs of an entry, and what each stands for."""
    return zip(entry.recorded.inputs, entry.origins, strict=True)


def _key(entry: Entry, node: Node, origin: Origin) -> object:
    """What tells one variable from another; a constant without a trace is one by itself."""
    return (entry.serial, node) if origin is None else id(origin)


# Auxiliary states --------------------------------------------------------------------------------


def _states(needed: Needed) -> dict[object, Slot]:
    """The slots of auxiliary states, by the keys of the variables in them."""
    found: dict[object, Slot] = {}
    for entry, outputs in needed.items():
        slots = {node: slot for one in topological(outputs) for node, slot in _state_slots(one)}
        found |= {
            _key(entry, node, origin): slots[node]
            for node, origin in _leaves(entry)
            if node in slots
        }
    return found


def _state_slots(node: Node) -> list[tuple[Node, Slot]]:
    """The inputs of ``node`` that are auxiliary states."""
    if not isinstance(node.op, Operator):
        return []
    pairs = [(child, node.op.slot_of(i)) for i, child in enumerate(node.inputs)]
    return [(child, slot) for child, slot in pairs if child is not None and slot.role == "state"]


def _rooted(outputs: list[Node]) -> list[Node]:
    """The same graph, in which operators that share a state read its variable.

    Recorded, the second of them reads what the first one wrote. In a graph both name the variable,
    which they update one after the other, so that the last value of it stays. The tape does not
    follow states from one entry to the next: there they are different variables.
    """
    changed: dict[Node, Node] = {}
    for node in topological(outputs):
        if not isinstance(node.op, Operator) or not node.op.stateful:
            continue
        inputs = list(node.inputs)
        for i in node.op.update_indices:
            inputs[i] = _root(inputs[i])
        if inputs != list(node.inputs):
            present = substitute([one for one in inputs if one is not None], changed)
            supply = iter(present)
            given = tuple(None if one is None else next(supply) for one in inputs)
            changed[node] = apply(node.op, given, node.attributes, node.name)
    return substitute(outputs, changed)


def _root(state: Node | None) -> Node | None:
    """The variable of which ``state`` is a new value; ``state`` itself, where there is none."""
    at = state
    while at is not None and isinstance(at.op, Operator) and at.op.name == "stop_gradient":
        at = _before(at.inputs[0])
    return at if at is not None and at.op is VARIABLE else state


def _before(value: Node | None) -> Node | None:
    """The state that an operator replaced by ``value``."""
    if value is None or value.op is not SELECT:
        return None
    (source,), place = value.operands, value.attributes[0]
    if not isinstance(source.op, Operator):
        return None
    replaced = [i for i, output in source.op.update_indices.items() if output == place]
    return source.inputs[replaced[0]] if replaced else None
