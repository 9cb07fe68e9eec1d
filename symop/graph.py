"""Graph nodes: hash-consed, so that one computation is one node, and simplified as they are built.

A ``Node`` is one value. An operator with several outputs is a node that is never seen alone: each
of its outputs is a ``SELECT`` node over it. Leaves and selections are ``Structure``; every other
node applies a registered operator. Nodes are immutable, and inputs exist before what uses them, so
a graph has no cycle; nothing here recurses, so its depth is bounded by memory alone.
"""

import functools
import itertools
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol
from weakref import ref

import jax
import numpy as np

from registry.attributes import identity_key
from registry.errors import ArgumentError, SymopError, UnknownTypeError
from registry.infer import promoted
from registry.operator import LEFT_OUT, Operator
from registry.shapes import canonical, default_float, default_int
from registry.types import KEY_TYPE, TRAINING_TYPE, VarType
from registry.var import Attributes, Inputs, Var

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
TRAINING = Structure("training")
"""Whether the graph runs for training."""
DEFERRED = Structure("deferred")
"""A derivative that is built once the types are known. Attributes: the ``Expansion``."""


class Expansion(Protocol):
    """A rewrite that waits until the types of its inputs are known."""

    @property
    def name(self) -> str:
        """What kind of derivative it is."""

    def expand(self, inputs: Sequence["Node"]) -> list["Node"]:
        """The values that it stands for; ``SELECT`` nodes choose among them."""


class Origin(NamedTuple):
    """Where a node comes from: the user's line and, in a gradient, the operator it belongs to."""

    file: str
    line: int
    forward: str | None = None

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}"
        return f"{place} (in the gradient of {self.forward})" if self.forward else place


class HeldArray:
    """A constant array that compares by identity."""

    __slots__ = ("value",)

    def __init__(self, value: np.ndarray | jax.Array) -> None:
        self.value = value


class Node(Var):
    """One value of a graph.

    Attributes:
        op: the operator, or the structure.
        inputs: nodes in the operator's slots; None where an optional slot is empty.
        attributes: canonical attribute values.
        types: types of the outputs, or None when they are not known yet.
        name: the name that the user gave, or None.
        serial: a number that grows with each node made.
        origin: where the user built it.
        memo: what was compiled for graphs whose first output this is.
    """

    __slots__ = (
        "__weakref__",
        "attributes",
        "inputs",
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
    name: str | None
    serial: int
    origin: Origin | None
    memo: dict[Any, Any] | None

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
        """Inputs and attributes, when this node applies ``operator`` and has no given name."""
        return (self.inputs, self.attributes) if self.op is operator and not self.name else None

    @property
    def operands(self) -> list["Node"]:
        """The inputs that are present."""
        return [node for node in self.inputs if node is not None]

    def __repr__(self) -> str:
        return f"<node {self.name or self.op.name}#{self.serial}>"


class _Ambient(threading.local):
    """What surrounds the building of nodes in this thread."""

    origin: Origin | None = None


_ambient = _Ambient()
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


def built_at(origin: Origin | None) -> str:
    """The end of a message: where the user built the node."""
    return f"\n  built at {origin}" if origin is not None else ""


@contextmanager
def origin_of(node: Node) -> Iterator[None]:
    """Nodes built inside belong to the gradient of ``node``."""
    before = _ambient.origin
    forward = node.name or node.op.name
    file, line = (node.origin.file, node.origin.line) if node.origin else ("", 0)
    _ambient.origin = Origin(file, line, forward)
    try:
        yield
    finally:
        _ambient.origin = before


@contextmanager
def copied_origin(origin: Origin | None) -> Iterator[None]:
    """Nodes built inside have ``origin``."""
    before = _ambient.origin
    _ambient.origin = origin
    try:
        yield
    finally:
        _ambient.origin = before


_own_files: dict[str, bool] = {}


def _is_own(code_file: str, module: str) -> bool:
    own = module.partition(".")[0] in ("symop", "registry") or code_file.startswith("<frozen")
    return _own_files.setdefault(code_file, own)


def user_origin(own_frames: int = 1) -> Origin:
    """The innermost line outside of symop that led here, ``own_frames`` calls out or more."""
    origin = _ambient.origin
    if origin is not None:
        return origin
    frame = sys._getframe(own_frames)  # the public inspect.stack() reads source files
    while frame.f_back is not None:
        file = frame.f_code.co_filename
        own = _own_files.get(file)
        if own is None:
            own = _is_own(file, frame.f_globals.get("__name__", ""))
        if not own:
            break
        frame = frame.f_back
    return _origin(frame.f_code.co_filename, frame.f_lineno)


@functools.lru_cache(maxsize=1024)
def _origin(file: str, line: int) -> Origin:
    """One object for each line: a loop builds many nodes on the same."""
    return Origin(file, line)


# Making nodes ----------------------------------------------------------------------------------


def _make(
    op: Operator | Structure,
    inputs: tuple[Node | None, ...],
    attributes: Attributes,
    types: Types | None,
    name: str | None,
) -> Node:
    node = Node()
    node.op = op
    node.inputs = inputs
    node.attributes = attributes
    node.types = types
    node.name = name
    node.serial = next(_serial)
    node.origin = user_origin(2)
    node.memo = None
    return node


def _interned(
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
    node = _make(op, inputs, attributes, types, name)
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
) -> Node:
    """The variable of that name and declaration."""
    types = None
    if shape is not None:
        types = (VarType(shape, default_float() if dtype is None else canonical(dtype)),)
    attributes = (shape, dtype, role, extra)
    return _interned((VARIABLE, name, attributes), VARIABLE, (), attributes, types, name)


def placeholder(name: str, type: VarType) -> Node:
    """A variable of a template: it equals no other."""
    return _make(VARIABLE, (), (type.shape, type.dtype, "argument", ()), (type,), name)


def constant(value: bool | int | float | complex, type: VarType | None = None) -> Node:
    """A value filled with one number: of ``type``, or a Python scalar without one."""
    of = _scalar_type(value) if type is None else type.strong()
    attributes = (value, None if type is None else of.dtype, of.shape)
    key = (CONSTANT, of, identity_key(value), value.__class__, type is None)
    return _interned(key, CONSTANT, (), attributes, (of,))


def _scalar_type(value: bool | int | float | complex) -> VarType:
    if isinstance(value, bool):
        return VarType((), np.dtype(np.bool_))
    if isinstance(value, int):
        return VarType((), default_int(), weak=True)
    if isinstance(value, float):
        return VarType((), default_float(), weak=True)
    return VarType((), canonical(np.dtype(np.complex128)), weak=True)


def array(value: Any) -> Node:
    """A constant that holds the array ``value``."""
    held = value if isinstance(value, jax.Array) else np.asarray(value)
    if held.dtype == object:
        raise ArgumentError(f"array: the entries must be numbers, got {value!r}")
    made = VarType(tuple(held.shape), canonical(held.dtype))
    return _make(ARRAY, (), (HeldArray(held),), (made,), None)


def fresh_key() -> Node:
    """A random key that no other node shares."""
    return _make(KEY, (), (next(_key_serial),), (KEY_TYPE,), None)


def training_flag() -> Node:
    """The node that tells whether the graph runs for training."""
    return _interned((TRAINING,), TRAINING, (), (), (TRAINING_TYPE,))


def select(node: Node, index: int) -> Node:
    """Output ``index`` of a node that has several."""
    types = None if node.types is None else (node.types[index],)
    return _interned((SELECT, node, index), SELECT, (node,), (index,), types)


def as_node(value: Any) -> Node:
    """``value`` as a node: numbers and arrays become constants."""
    if isinstance(value, Node):
        return value
    if isinstance(value, np.generic):
        return constant(value.item(), VarType((), canonical(value.dtype)))
    if isinstance(value, (bool, int, float, complex)):
        return constant(value)
    if isinstance(value, jax.core.Tracer):
        raise ArgumentError(
            f"a traced array must not enter a symbol; make it a variable and feed it, got {value!r}"
        )
    if isinstance(value, (np.ndarray, jax.Array, list, tuple)):
        return array(value)
    raise ArgumentError(f"an input must be a symbol, an array or a number, got {value!r}")


# Applying operators ----------------------------------------------------------------------------


class GraphEmitter:
    """Calling an operator on nodes makes a node."""

    def emit(
        self, operator: Operator, inputs: Inputs, attributes: Attributes, name: str | None
    ) -> Any:
        """One node, or a tuple of them when the operator has several visible outputs."""
        node = apply(operator, inputs, attributes, name)
        if operator.single:
            return node
        chosen = tuple(select(node, i) for i in operator.visible)
        return chosen[0] if len(chosen) == 1 else chosen

    def filled(self, value: bool | int | float | complex, type: VarType) -> Node:
        """A constant of ``type``."""
        return constant(value, type)


Node.emitter = GraphEmitter()


def apply(
    operator: Operator, inputs: Inputs, attributes: Attributes, name: str | None = None
) -> Node:
    """The node that applies ``operator``; an equal one that exists already, when there is one.

    Raises:
        ShapeError, DTypeError, KindError: the inputs do not fit together.
    """
    given = _filled(operator, inputs) if operator.fillable else inputs
    nodes = tuple([v if type(v) is Node or v is None else as_node(v) for v in given])
    types = _infer(operator, nodes, attributes)
    simplifies = operator.foldable or operator.simplify_rule is not None
    if simplifies and name is None and types is not None:
        simpler = _simplified(operator, nodes, attributes, types)
        if simpler is not None:
            return simpler
    if operator.stateful:
        return _make(operator, nodes, attributes, types, name)
    operands: Any = nodes
    if operator.commutative and len(nodes) == 2 and _later(nodes[0], nodes[1]):
        operands = (nodes[1], nodes[0])
    key = (operator, operands, identity_key(attributes) if attributes else (), name)
    return _interned(key, operator, nodes, attributes, types, name)


def _later(first: Node | None, second: Node | None) -> bool:
    return first is not None and second is not None and first.serial > second.serial


def _filled(operator: Operator, inputs: Inputs) -> Inputs:
    """``inputs`` with random key and training flag where the call left them out."""
    return tuple(
        _implicit(operator, i) if value is LEFT_OUT else value for i, value in enumerate(inputs)
    )


def _implicit(operator: Operator, index: int) -> Node:
    slot = operator.slot_of(index)
    if slot.role == "key":
        return fresh_key()
    if slot.role == "training":
        return training_flag()
    raise ArgumentError(f"{operator.name}: slot {slot.name!r} must be filled, got nothing")


def _infer(
    operator: Operator, nodes: Sequence[Node | None], attributes: Attributes
) -> Types | None:
    types: list[VarType | None] = []
    for node in nodes:
        if node is None:
            types.append(None)
        elif (known := node.types) is None:
            return None
        else:
            types.append(known[0])
    return infer_node(operator, types, attributes, None)


def infer_node(
    operator: Operator,
    types: Sequence[VarType | None],
    attributes: Attributes,
    origin: Origin | None,
) -> Types:
    """Types of the outputs; what does not fit is refused with the line that built the node.

    The training flag has a type of its own, whether it is still open or a constant already.
    """
    if operator.training_index is not None:
        types = list(types)
        types[operator.training_index] = TRAINING_TYPE
    try:
        return operator.inference(tuple(types), attributes)
    except SymopError as error:
        place = built_at(user_origin() if origin is None else origin)
        raise type(error)(f"{error}{place}") from error.__cause__


def _simplified(
    operator: Operator, nodes: tuple[Node | None, ...], attributes: Attributes, types: Types
) -> Node | None:
    """A node of equal value and type that needs no new one, or None."""
    if operator.simplify_rule is not None:
        simpler: Node | None = operator.simplify_rule(nodes, attributes)
        if simpler is not None and simpler.types == types:
            return simpler
    if operator.rearranges:
        return _rearranged(nodes, types[0])
    if operator.foldable and all(node is not None and node.op is CONSTANT for node in nodes):
        return _folded(operator, nodes, attributes, types[0])
    return None


def _rearranged(nodes: tuple[Node | None, ...], out: VarType) -> Node | None:
    """Entries of arrays that all hold one number, in another arrangement: that number."""
    filled = [node for node in nodes if node is not None and node.op is CONSTANT]
    if len(filled) < len(nodes):
        return None
    keys = {identity_key(node.attributes[0]) for node in filled}
    return constant(filled[0].attributes[0], out) if len(keys) == 1 else None


def _folded(
    operator: Operator, nodes: tuple[Node | None, ...], attributes: Attributes, out: VarType
) -> Node | None:
    """The constant that ``operator`` makes of constants, computed in the dtype of the result.

    Python scalars stay Python scalars: they are computed in double precision, as Python would.
    """
    if operator.reference is None:
        return None
    weak = all(node is not None and node.attributes[1] is None for node in nodes)
    with np.errstate(all="ignore"):
        if weak:
            numbers = [node.attributes[0] for node in nodes if node is not None]
        else:
            # A comparison compares in its operands' dtype, not in that of its result.
            operands = [node.type for node in nodes if node is not None]
            dtype = promoted(*operands)[0] if out.dtype == np.bool_ else out.dtype
            numbers = [np.asarray(node.attributes[0], dtype) for node in nodes if node is not None]
        value = np.asarray(
            operator.reference(*numbers, **operator.attribute_dict(attributes))
        ).item()
    folded = constant(value) if weak else constant(value, out)
    return folded if folded.types == (out,) else None


# Walking and rebuilding ------------------------------------------------------------------------


def topological(outputs: Iterable[Node], until: Iterable[Node] = ()) -> list[Node]:
    """Every node that ``outputs`` need, each after its inputs, in depth-first order.

    The nodes in ``until`` are taken as given: neither they nor what only they need are listed.
    """
    order: list[Node] = []
    seen: set[Node] = set(until)
    for output in outputs:
        stack: list[tuple[Node, int]] = [(output, 0)]
        while stack:
            node, position = stack.pop()
            if position == 0:
                if node in seen:
                    continue
                seen.add(node)
            inputs = node.inputs
            while position < len(inputs):
                child = inputs[position]
                position += 1
                if child is not None and child not in seen:
                    stack.append((node, position))
                    stack.append((child, 0))
                    break
            else:
                order.append(node)
    return order


def reaching(order: Sequence[Node], targets: Iterable[Node]) -> set[Node]:
    """The nodes of ``order`` (topological) that are, or depend on, one of ``targets``."""
    found = set(targets)
    for node in order:
        if node not in found and any(child in found for child in node.inputs if child is not None):
            found.add(node)
    return found


Image = Node | list[Node]
"""What a node becomes when a graph is rebuilt: a list for a deferred node that expanded."""


def substitute(outputs: Sequence[Node], replacements: Mapping[Node, Node]) -> list[Node]:
    """``outputs`` with some nodes replaced; what depends on them is rebuilt, the rest is shared."""
    image: dict[Node, Image] = dict(replacements)
    for node in topological(outputs):
        if node not in image:
            with copied_origin(node.origin):
                image[node] = _rebuilt(node, image)
    return [_value(image[output]) for output in outputs]


def _rebuilt(node: Node, image: Mapping[Node, Image]) -> Image:
    """``node`` over the images of its inputs; inferred and simplified anew."""
    if node.op is SELECT:
        (source,) = node.operands
        became = image[source]
        if isinstance(became, list):
            return became[node.attributes[0]]
        return node if became is source else select(became, node.attributes[0])
    inputs = tuple([None if child is None else _value(image[child]) for child in node.inputs])
    if node.op is DEFERRED:
        return expanded(node.attributes[0], [child for child in inputs if child is not None])
    if inputs == node.inputs:
        return node
    assert isinstance(node.op, Operator)
    return apply(node.op, inputs, node.attributes, node.name)


def _value(image: Image) -> Node:
    assert not isinstance(image, list)
    return image


def expanded(expansion: Expansion, inputs: Sequence[Node]) -> Image:
    """What ``expansion`` stands for when all types are known, else a node that waits for them."""
    if all(node.types is not None for node in topological(inputs)):
        return expansion.expand(inputs)
    return _make(DEFERRED, tuple(inputs), (expansion,), None, None)


def leaves(order: Iterable[Node], structure: Structure) -> list[Node]:
    """The nodes of ``order`` that are of one structure."""
    return [node for node in order if node.op is structure]
