"""Graph nodes, hash-consed so that equal computations are one node.

A ``Node`` is one value. An operator with several outputs makes a node that users never see; each
of its outputs is a ``SELECT`` node over it. Leaves and selections are of a
``Structure``; every other node applies a registered operator. Nodes are immutable, and the inputs
of a node exist before the node does, so graphs are acyclic. Nothing here recurses, so only memory
limits the depth of a graph.
"""

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol
from weakref import ref

import jax
import numpy as np

from registry.errors import ArgumentError, UnknownTypeError
from registry.naming import EMPTY
from registry.operator.attributes import identity_key
from registry.operator.operator import Operator
from registry.shapes import canonical, default_float, default_int
from registry.symbolic import Symbolic
from registry.table import get
from registry.types import KEY_TYPE, TRAINING_TYPE, VarKind, VarType, is_integer, is_symbolic
from registry.var import Attributes, Inputs, Var
from symop.graph.constants import HeldArray, lasting, require_fits, scalar_type
from symop.graph.origins import Origin, ambient, built_at, copied_origin, user_origin

__all__ = [
    "ARRAY", "CONSTANT", "DEFERRED", "KEY", "KEYS", "SELECT", "TRAINING", "VARIABLE",
    "Expansion", "HeldArray", "Node", "Origin", "Structure", "Types",
    "array", "as_node", "built_at", "by_age", "constant", "contains_gradient", "copied_origin",
    "fresh_key", "intern", "leaves", "make", "origin_of", "placeholder", "reaching", "residuals",
    "select", "topological", "training_flag", "user_origin", "variable",
]  # fmt: skip

Types = tuple[VarType, ...]


class Structure:
    """The kind of a node that does not apply an operator."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<{self.name}>"


VARIABLE = Structure("variable")
"""An input of the graph. Attributes: declared shape or None, dtype or None, role, extra pairs."""
CONSTANT = Structure("constant")
"""An array filled with one number. Attributes: value, dtype or None (a Python scalar), shape."""
ARRAY = Structure("array")
"""A constant array. Attributes: the ``HeldArray``."""
SELECT = Structure("select")
"""One output of a node with several outputs. Attributes: its index."""
KEY = Structure("random_key")
"""A fresh random key. Attributes: a number that no other key has."""
KEYS = Structure("random_keys")
"""The keys of a loop's steps. Attributes: ``KEY`` nodes, in tuples nested once per axis."""
TRAINING = Structure("training")
"""Whether the graph runs for training."""
DEFERRED = Structure("deferred")
"""A derivative that is built once types are known. Attributes: the ``Expansion``."""


class Expansion(Protocol):
    """A rewrite that is deferred until the types of its inputs are known."""

    @property
    def name(self) -> str:
        """The kind of derivative."""

    def expand(self, inputs: Sequence["Node"], originals: Sequence["Node"]) -> list["Node"]:
        """Returns the values it represents; ``SELECT`` nodes choose among them."""


class Node(Symbolic):
    """One value of a graph.

    Attributes:
        op: The operator or structure.
        inputs: The nodes in the operator's slots; None where an optional slot is empty.
        attributes: The canonical attribute values.
        types: The types of the outputs, or None if they are not known yet.
        kinds: The kinds of the outputs while types are unknown; None if all are dense.
        name: The name given by the user, or None.
        serial: A number that increases with each node made.
        built: The serial number at which it was made, or last requested.
        origin: Where the user last requested it.
        memo: A cache of functions compiled for graphs whose newest output is this node.
        equals: For each output of a call that was simplified, an equal value; None otherwise.
    """

    __slots__ = (
        "__weakref__",
        "attributes",
        "built",
        "equals",
        "inputs",
        "kinds",
        "memo",
        "name",
        "op",
        "origin",
        "serial",
        "types",
    )
    op: Operator | Structure
    inputs: tuple["Node | None", ...]
    attributes: Attributes
    types: Types | None
    kinds: tuple[VarKind, ...] | None
    name: str | None
    serial: int
    built: int
    origin: Origin | None
    memo: dict[Any, Any] | None
    equals: "tuple[Node, ...] | None"

    @property
    def type(self) -> VarType:
        """Shape, dtype and kind of the value."""
        if self.types is None:
            raise UnknownTypeError(
                f"{self.name or self.op.name}: its shape and dtype must be known, but they follow "
                "from variables without a shape; give so.var(..., shape=...) one, or bind first"
                f"{built_at(self.origin)}"
            )
        return self.types[0]

    @property
    def source(self) -> "Node":
        """The node that computes this value; itself, unless it is one of several outputs."""
        return self.inputs[0] if self.op is SELECT else self  # type: ignore[return-value]

    @property
    def index(self) -> int:
        """The index of this value among the outputs of ``source``."""
        return self.attributes[0] if self.op is SELECT else 0

    @property
    def is_selection(self) -> bool:
        """Whether this value is one of several outputs of ``source``."""
        return self.op is SELECT

    @property
    def constant(self) -> bool | int | float | complex | None:
        """The number that fills this value, if it is a constant; else None."""
        return self.attributes[0] if self.op is CONSTANT else None

    def applied(self, operator: Any) -> tuple[Inputs, Attributes] | None:
        """Returns inputs and attributes if the node applies ``operator`` and may be looked through.

        Only differentiation looks through nodes, and only through those that no user has named or
        may hold: a later derivative with respect to such a value must find it on the path.
        """
        derivation = ambient.derivation
        if self.op is not operator or self.name or derivation is None:
            return None
        return None if derivation.exposes(self) else (self.inputs, self.attributes)

    @property
    def derived(self) -> str | None:
        """The operator whose derivative the node belongs to; None if a user's call made it."""
        return None if self.origin is None else self.origin.forward

    @property
    def operands(self) -> list["Node"]:
        """The inputs that are present."""
        return [node for node in self.inputs if node is not None]

    def __repr__(self) -> str:
        return f"<node {self.name or self.op.name}#{self.serial}>"


_serial = itertools.count()
_key_serial = itertools.count()
_lock = threading.RLock()
"""Held while the table changes; reentrant because garbage collection may drop a node meanwhile."""
_table: dict[Any, "_Reference"] = {}


class _Reference(ref[Node]):
    """A weak reference to an interned node that stores its key in the table.

    Most of the cost of building a node is interning. Creating the entries of a
    ``WeakValueDictionary`` would take a quarter of that.
    """

    __slots__ = ("key",)
    key: Any


def _drop(reference: "ref[Node]") -> None:
    """Removes a collected node from the table, unless an equal node has taken its place."""
    assert isinstance(reference, _Reference)
    with _lock:
        if _table.get(reference.key) is reference:
            del _table[reference.key]


def _lookup(key: Any) -> Node | None:
    reference = _table.get(key)
    return None if reference is None else reference()


def origin_of(node: Node) -> AbstractContextManager[None]:
    """Returns a context manager: nodes built inside belong to the gradient of ``node``."""
    file, line = (node.origin.file, node.origin.line) if node.origin else ("", 0)
    return copied_origin(Origin(file, line, node.name or node.op.name))


# Making nodes ----------------------------------------------------------------------------------


def make(
    op: Operator | Structure,
    inputs: tuple[Node | None, ...],
    attributes: Attributes,
    types: Types | None,
    name: str | None,
) -> Node:
    """Returns a new node, whether or not an equal one exists."""
    node = Node()
    node.op = op
    node.inputs = inputs
    node.attributes = attributes
    node.types = types
    node.kinds = None
    node.name = name
    node.serial = node.built = next(_serial)
    node.origin = user_origin(2)
    node.memo = None
    node.equals = None
    return node


def intern(
    key: Any,
    op: Operator | Structure,
    inputs: tuple[Node | None, ...],
    attributes: Attributes,
    types: Types | None,
    name: str | None = None,
) -> Node:
    """Returns the node interned under ``key``, made if it does not exist.

    One that exists gets the age and the origin of a new one, so that the order and the lines of a
    graph are those of its own calls, even if other graphs have made some of its nodes before.
    """
    result = _lookup(key)
    if result is not None:
        if inputs:  # leaves, which many graphs share, are older than all that reads them
            result.built, result.origin = next(_serial), user_origin(2)
        return result
    node = make(op, inputs, attributes, types, name)
    reference = _Reference(node, _drop)
    reference.key = key
    with _lock:
        result = _lookup(key)  # another thread may have made it meanwhile
        if result is not None:
            return result
        _table[key] = reference
    return node


def variable(
    name: str,
    shape: tuple[int, ...] | None = None,
    dtype: np.dtype | None = None,
    role: str = "argument",
    extra: tuple[tuple[str, str], ...] = (),
    kind: VarKind = VarKind.LOD_TENSOR,
) -> Node:
    """Returns the variable of that name and declaration.

    Raises:
        ArgumentError: the name is the one that records use for an absent variable.
    """
    if name == EMPTY:
        raise ArgumentError(f"variable: the name must not be {EMPTY!r}, which means no variable")
    types = None
    if shape is not None:
        types = (VarType(shape, default_float() if dtype is None else canonical(dtype), kind),)
    attributes = (shape, dtype, role, extra)
    return intern((VARIABLE, name, attributes, types), VARIABLE, (), attributes, types, name)


def placeholder(name: str, type: VarType) -> Node:
    """Returns a new variable for a template, distinct from every other variable."""
    return make(VARIABLE, (), (type.shape, type.dtype, "argument", ()), (type,), name)


def next_serial() -> int:
    """Returns a number greater than all serials so far and less than all later ones."""
    return next(_serial)


def constant(value: bool | int | float | complex, type: VarType | None = None) -> Node:
    """Returns a value filled with one number: of ``type``, or a Python scalar if that is None."""
    of = scalar_type(value) if type is None else type.strong()
    attributes = (value, None if type is None else of.dtype, of.shape)
    key = (CONSTANT, of, identity_key(value), value.__class__, type is None)
    return intern(key, CONSTANT, (), attributes, (of,))


def length(value: Any) -> Node:
    """Returns the number that a dimension of ``jax.export.symbolic_shape`` has at run time."""
    type = VarType((), default_int(), weak=True)
    full, attributes = get("full"), ((), value, None)
    return intern((full, attributes, type), full, (), attributes, (type,))


def array(value: Any) -> Node:
    """Returns a constant that holds a snapshot of ``value`` in the dtype that JAX gives it.

    Raises:
        ArgumentError: The entries are not numbers, or are integers that the dtype cannot hold.
    """
    held = lasting(value)
    type = VarType(tuple(held.shape), canonical(held.dtype))
    return make(ARRAY, (), (HeldArray(held),), (type,), None)


def fresh_key() -> Node:
    """Returns a random key that no other node shares."""
    return make(KEY, (), (next(_key_serial),), (KEY_TYPE,), None)


def training_flag() -> Node:
    """Returns the node whose value is whether the graph runs for training."""
    return intern((TRAINING,), TRAINING, (), (), (TRAINING_TYPE,))


def select(node: Node, index: int) -> Node:
    """Returns output ``index`` of a node with several outputs."""
    if node.equals is not None:
        return node.equals[index]
    types = None if node.types is None else (node.types[index],)
    selected = intern((SELECT, node, index), SELECT, (node,), (index,), types)
    if node.kinds is not None:
        selected.kinds = (node.kinds[index],)
    return selected


def contains_gradient(order: Iterable[Node]) -> bool:
    """Whether differentiation made some node of the graph.

    Leaves do not count, since a constant is shared by all graphs. A selection belongs to the node
    it selects from.
    """
    return any(node.inputs and node.source.derived for node in order)


def as_node(value: Any) -> Node:
    """Converts ``value`` to a node: numbers and arrays become constants."""
    if isinstance(value, Node):
        return value
    if isinstance(value, np.generic):
        dtype = canonical(value.dtype)
        if is_integer(dtype):
            require_fits(int(value), dtype)
        return constant(value.item(), VarType((), dtype))
    if isinstance(value, (bool, int, float, complex)):
        if isinstance(value, int):
            require_fits(value, default_int())
        return constant(value)
    if is_symbolic(value):
        return length(value)
    if isinstance(value, jax.core.Tracer):
        raise ArgumentError(
            "a traced array must not enter a symbol; make it a variable and feed it, or where a "
            "function of control flow uses symbols, let one of the values that enter be a symbol, "
            f"got {value!r}"
        )
    if isinstance(value, (np.ndarray, jax.Array, list, tuple)):
        return array(value)
    if ambient.node_of is not None and isinstance(value, Var):
        node: Node = ambient.node_of(value)
        return node
    feed = "; feed eager arrays, or pass x.asjax()" if hasattr(value, "asjax") else ""
    raise ArgumentError(f"an input must be a symbol, an array or a number, got {value!r}{feed}")


# Walking ------------------------------------------------------------------------------------


def topological(outputs: Iterable[Node], until: Iterable[Node] = ()) -> list[Node]:
    """Returns every node that ``outputs`` need, inputs before users, in depth-first order.

    The nodes in ``until`` are treated as given: neither they nor nodes that only they need are
    listed.
    """
    order: list[Node] = []
    seen: set[Node] = set(until)
    for output in outputs:
        # A None above a node marks that its inputs, pushed above the None, come first.
        stack: list[Node | None] = [output]
        while stack:
            node = stack.pop()
            if node is None:
                order.append(stack.pop())  # type: ignore[arg-type]  # never None below None
            elif node not in seen:
                seen.add(node)
                ahead = [one for one in node.inputs[::-1] if one is not None and one not in seen]
                if ahead:
                    stack += (node, None, *ahead)
                else:
                    order.append(node)
    return order


def by_age(nodes: Iterable[Node]) -> list[Node]:
    """Returns ``nodes`` in the order in which they were built, inputs before users.

    A node that was requested again by a later call, also of another graph, comes where it is first
    needed.
    """
    ordered = sorted(nodes, key=_age)
    seen: set[Node] = set()
    waiting = set(ordered)
    for node in ordered:
        waiting.discard(node)
        if any(one in waiting for one in _sources(node)):
            return _repaired(ordered)
        seen.add(node)
    return ordered


def _age(node: Node) -> float:
    """Returns the age of a node; a selection comes right after the node it selects from."""
    return node.source.built + (0.5 if node.op is SELECT else 0)


def _sources(node: Node) -> Iterator[Node]:
    """Yields the inputs and the nodes they select from, even if selections are not listed."""
    for one in node.inputs:
        if one is not None:
            yield one
            yield one.source


def _repaired(ordered: Sequence[Node]) -> list[Node]:
    """Returns ``ordered`` with nodes moved forward where an earlier node needs them."""
    broken: dict[Node, None] = {}
    members = set(ordered)
    for node in ordered:
        stack: list[tuple[Node, bool]] = [(node, False)]
        while stack:
            one, ready = stack.pop()
            if one in broken:
                continue
            ahead = [] if ready else [s for s in _sources(one) if s in members and s not in broken]
            if ahead:
                stack.append((one, True))
                stack += [(each, False) for each in sorted(ahead, key=_age, reverse=True)]
            else:
                broken[one] = None
    return list(broken)


def reaching(order: Sequence[Node], targets: Iterable[Node]) -> set[Node]:
    """Returns the nodes of ``order`` (topological) that are, or depend on, one of ``targets``."""
    result = set(targets)
    for node in order:
        if node not in result and any(
            child in result for child in node.inputs if child is not None
        ):
            result.add(node)
    return result


def residuals(outputs: Iterable[Node], is_known: Callable[[Node], bool]) -> list[Node]:
    """Returns the known values that the rest of a graph reads, in depth-first order.

    This is partial evaluation, as in JAX: if a computation is split in two, and ``is_known`` tells
    the values of the first half, these are what the second half needs of it.
    """
    result: list[Node] = []
    seen: set[Node] = set()
    for output in outputs:
        waiting = [output]
        while waiting:
            node = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            if is_known(node):
                result.append(node)
            else:
                waiting += [one for one in node.inputs[::-1] if one is not None]
    return result


def leaves(order: Iterable[Node], structure: Structure) -> list[Node]:
    """Returns the nodes of ``order`` that have the given structure."""
    return [node for node in order if node.op is structure]
