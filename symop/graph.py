"""Graph nodes: hash-consed, so that one computation is one node, and simplified as they are built.

A ``Node`` is one value. An operator with several outputs is a node that is never seen alone: each
of its outputs is a ``SELECT`` node over it. Leaves and selections are ``Structure``; every other
node applies a registered operator. Nodes are immutable, and inputs exist before what uses them, so
a graph has no cycle; nothing here recurses, so its depth is bounded by memory alone.
"""

import itertools
import threading
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol
from weakref import ref

import jax
import numpy as np

from registry.attributes import identity_key
from registry.errors import ArgumentError, UnknownTypeError
from registry.operator import Operator
from registry.shapes import canonical, default_float, default_int
from registry.types import KEY_TYPE, TRAINING_TYPE, VarKind, VarType
from registry.var import Attributes, Inputs, Var
from symop.constants import HeldArray, lasting, require_fits, scalar_type
from symop.origins import Origin, ambient, built_at, copied_origin, user_origin

__all__ = [
    "ARRAY", "CONSTANT", "DEFERRED", "KEY", "KEYS", "SELECT", "TRAINING", "VARIABLE",
    "Expansion", "HeldArray", "Node", "Origin", "Structure", "Types",
    "array", "as_node", "built_at", "by_age", "constant", "contains_gradient", "copied_origin",
    "fresh_key", "interned", "leaves", "make", "origin_of", "placeholder", "reaching", "select",
    "topological", "training_flag", "user_origin", "variable",
]  # fmt: skip

Types = tuple[VarType, ...]


class Structure:
    """What a node is when it applies no operator."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<{self.name}>"


VARIABLE = Structure("variable")
"""An input of the graph. Attributes: declared shape or None, dtype or None, role."""
CONSTANT = Structure("constant")
"""An array filled with one number. Attributes: value, dtype or None (a Python scalar), shape."""
ARRAY = Structure("array")
"""A given array. Attributes: the ``HeldArray``."""
SELECT = Structure("select")
"""One output of a node that has several. Attributes: its index."""
KEY = Structure("random_key")
"""A fresh random key. Attributes: a number that no other node has."""
KEYS = Structure("random_keys")
"""Keys of the steps of a loop. Attributes: ``KEY`` nodes, in tuples as deep as there are axes."""
TRAINING = Structure("training")
"""Whether the graph runs for training."""
DEFERRED = Structure("deferred")
"""A derivative that is built once the types are known. Attributes: the ``Expansion``."""


class Expansion(Protocol):
    """A rewrite that waits until the types of its inputs are known."""

    @property
    def name(self) -> str:
        """What kind of derivative it is."""

    def expand(self, inputs: Sequence["Node"], originals: Sequence["Node"]) -> list["Node"]:
        """The values that it stands for; ``SELECT`` nodes choose among them."""


class Node(Var):
    """One value of a graph.

    Attributes:
        op: the operator, or the structure.
        inputs: nodes in the operator's slots; None where an optional slot is empty.
        attributes: canonical attribute values.
        types: types of the outputs, or None when they are not known yet.
        kinds: kinds of the outputs while types are not known; None where all are dense.
        name: the name that the user gave, or None.
        serial: a number that grows with each node made.
        origin: where the user built it.
        shown: whether a symbol holds this value, so that a user may differentiate by it.
        memo: what was compiled for graphs whose newest output this is.
    """

    __slots__ = (
        "__weakref__",
        "attributes",
        "inputs",
        "kinds",
        "memo",
        "name",
        "op",
        "origin",
        "serial",
        "shown",
        "types",
    )
    op: Operator | Structure
    inputs: tuple["Node | None", ...]
    attributes: Attributes
    types: Types | None
    kinds: tuple[VarKind, ...] | None
    name: str | None
    serial: int
    origin: Origin | None
    memo: dict[Any, Any] | None
    shown: bool

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
    def constant(self) -> bool | int | float | complex | None:
        """The number that fills this value, when the graph knows it."""
        return self.attributes[0] if self.op is CONSTANT else None

    def applied(self, operator: Any) -> tuple[Inputs, Attributes] | None:
        """Inputs and attributes, when this node applies ``operator`` and may be looked through.

        Only differentiation looks through nodes, and only through those that no user has named or
        holds: who asks for a derivative by such a value must find it on the way.
        """
        if self.op is not operator or self.shown or self.name:
            return None
        around = ambient.origin
        return (self.inputs, self.attributes) if around and around.forward else None

    @property
    def operands(self) -> list["Node"]:
        """The inputs that are present."""
        return [node for node in self.inputs if node is not None]

    def __repr__(self) -> str:
        return f"<node {self.name or self.op.name}#{self.serial}>"


_serial = itertools.count()
_key_serial = itertools.count()
_lock = threading.RLock()
"""Held while the table changes. Reentrant: collecting garbage may drop a node in the midst."""
_table: dict[Any, "_Reference"] = {}


class _Reference(ref[Node]):
    """A weak reference to an interned node that knows under which key the table holds it.

    Building is mostly this: making the entries of a ``WeakValueDictionary`` takes a quarter of it.
    """

    __slots__ = ("key",)
    key: Any


def _drop(reference: "ref[Node]") -> None:
    """Take a node that is gone off the table, unless an equal one took its place."""
    assert isinstance(reference, _Reference)
    with _lock:
        if _table.get(reference.key) is reference:
            del _table[reference.key]


def _found(key: Any) -> Node | None:
    reference = _table.get(key)
    return None if reference is None else reference()


def origin_of(node: Node) -> AbstractContextManager[None]:
    """Nodes built inside belong to the gradient of ``node``."""
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
    """A new node, whether or not an equal one exists."""
    node = Node()
    node.op = op
    node.inputs = inputs
    node.attributes = attributes
    node.types = types
    node.kinds = None
    node.name = name
    node.serial = next(_serial)
    node.origin = user_origin(2)
    node.memo = None
    node.shown = False
    return node


def interned(
    key: Any,
    op: Operator | Structure,
    inputs: tuple[Node | None, ...],
    attributes: Attributes,
    types: Types | None,
    name: str | None = None,
) -> Node:
    """The node of ``key``; made when there is none."""
    found = _found(key)
    if found is not None:
        return found
    node = make(op, inputs, attributes, types, name)
    reference = _Reference(node, _drop)
    reference.key = key
    with _lock:
        found = _found(key)  # another thread may have made it meanwhile
        if found is not None:
            return found
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
    """The variable of that name and declaration."""
    types = None
    if shape is not None:
        types = (VarType(shape, default_float() if dtype is None else canonical(dtype), kind),)
    attributes = (shape, dtype, role, extra)
    return interned((VARIABLE, name, attributes, types), VARIABLE, (), attributes, types, name)


def placeholder(name: str, type: VarType) -> Node:
    """A variable of a template: it equals no other."""
    return make(VARIABLE, (), (type.shape, type.dtype, "argument", ()), (type,), name)


def next_serial() -> int:
    """A number between those of the nodes that exist and those that will be made."""
    return next(_serial)


def constant(value: bool | int | float | complex, type: VarType | None = None) -> Node:
    """A value filled with one number: of ``type``, or a Python scalar without one."""
    of = scalar_type(value) if type is None else type.strong()
    attributes = (value, None if type is None else of.dtype, of.shape)
    key = (CONSTANT, of, identity_key(value), value.__class__, type is None)
    return interned(key, CONSTANT, (), attributes, (of,))


def array(value: Any) -> Node:
    """A constant that holds the array ``value`` as it is now, in the dtype that JAX gives it.

    Raises:
        ArgumentError: its entries are no numbers, or integers that the dtype cannot hold.
    """
    held = lasting(value)
    type = VarType(tuple(held.shape), canonical(held.dtype))
    return make(ARRAY, (), (HeldArray(held),), (type,), None)


def fresh_key() -> Node:
    """A random key that no other node shares."""
    return make(KEY, (), (next(_key_serial),), (KEY_TYPE,), None)


def training_flag() -> Node:
    """The node that tells whether the graph runs for training."""
    return interned((TRAINING,), TRAINING, (), (), (TRAINING_TYPE,))


def select(node: Node, index: int) -> Node:
    """Output ``index`` of a node that has several."""
    types = None if node.types is None else (node.types[index],)
    selected = interned((SELECT, node, index), SELECT, (node,), (index,), types)
    if node.kinds is not None:
        selected.kinds = (node.kinds[index],)
    return selected


def contains_gradient(order: Iterable[Node]) -> bool:
    """Whether some node of a graph was made by differentiation.

    Leaves do not count: a number belongs to all graphs, whichever of them it was made for.
    """
    return any(node.inputs and node.origin is not None and node.origin.forward for node in order)


def as_node(value: Any) -> Node:
    """``value`` as a node: numbers and arrays become constants."""
    if isinstance(value, Node):
        return value
    if isinstance(value, np.generic):
        dtype = canonical(value.dtype)
        if dtype.kind in "iu":
            require_fits(int(value), dtype)
        return constant(value.item(), VarType((), dtype))
    if isinstance(value, (bool, int, float, complex)):
        if isinstance(value, int):
            require_fits(value, default_int())
        return constant(value)
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
    raise ArgumentError(f"an input must be a symbol, an array or a number, got {value!r}")


# Walking ------------------------------------------------------------------------------------


def topological(outputs: Iterable[Node], until: Iterable[Node] = ()) -> list[Node]:
    """Every node that ``outputs`` need, each after its inputs, in depth-first order.

    The nodes in ``until`` are taken as given: neither they nor what only they need are listed.
    """
    order: list[Node] = []
    seen: set[Node] = set(until)
    for output in outputs:
        # A node waits below None for its inputs, which lie above.
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
    """``nodes`` in the order in which they were made: each comes after its inputs."""
    return sorted(nodes, key=_serial_of)


def _serial_of(node: Node) -> int:
    return node.serial


def reaching(order: Sequence[Node], targets: Iterable[Node]) -> set[Node]:
    """The nodes of ``order`` (topological) that are, or depend on, one of ``targets``."""
    found = set(targets)
    for node in order:
        if node not in found and any(child in found for child in node.inputs if child is not None):
            found.add(node)
    return found


def leaves(order: Iterable[Node], structure: Structure) -> list[Node]:
    """The nodes of ``order`` that are of one structure."""
    return [node for node in order if node.op is structure]
