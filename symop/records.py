"""Graphs as records and back: every written form of a graph goes through its ``ProgramDesc``.

A variable is a ``VarDesc``; everything else is an ``OpDesc``, leaves included: ``constant``,
``array``, ``random_key``, ``training`` and ``deferred`` are their types. A choice among several
outputs needs no record, because an ``OpDesc`` names each of them.
"""

import math
import re
import typing
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec
import numpy as np

from registry.attributes import REQUIRED, dtype_named, from_plain, make_attribute, to_plain
from registry.desc import FORMAT_VERSION, BlockDesc, OpDesc, ProgramDesc, VarDesc
from registry.errors import ArgumentError, FormatError, NameConflictError, nearest
from registry.operator import LEFT_OUT, Operator, get
from registry.types import VarKind, VarType
from symop.gradients import GradExpansion, JvpExpansion
from symop.graph import (
    ARRAY,
    CONSTANT,
    DEFERRED,
    KEY,
    SELECT,
    TRAINING,
    VARIABLE,
    Expansion,
    Node,
    Origin,
    Structure,
    apply,
    array,
    constant,
    copied_origin,
    expanded,
    fresh_key,
    select,
    topological,
    training_flag,
    variable,
)
from symop.naming import names_of

INPUTS = "inputs"
"""The one slot of a deferred derivative."""
UNKNOWN_FILE = "<loaded>"
"""The file of a node whose record does not say where it was built; its line is the record's."""


Factory = Callable[[dict[str, Any]], Expansion]
"""Makes an expansion anew from its attributes, those of ``to_attrs`` without the name."""


def factory_of(kind: type[Any]) -> Factory:
    """What makes the named tuple ``kind`` from its fields, each checked by its annotation."""
    name = kind._field_defaults["name"]
    hints = {key: hint for key, hint in typing.get_type_hints(kind).items() if key != "name"}
    fields = {key: make_attribute(key, hint, REQUIRED) for key, hint in hints.items()}

    def make(attrs: dict[str, Any]) -> Expansion:
        _check_keys("attribute", attrs, fields)
        missing = [key for key in fields if key not in attrs]
        if missing:
            raise FormatError(f"the attribute {missing[0]!r} must be given, got none")
        values = {key: fields[key].canonical(value, name) for key, value in attrs.items()}
        made: Expansion = kind(**values)
        return made

    return make


deferred_factories: dict[str, Factory] = {
    kind._field_defaults["name"]: factory_of(kind) for kind in (GradExpansion, JvpExpansion)
}
"""By its name, what makes each kind of expansion anew."""


class Description(NamedTuple):
    """A graph as records, and what is known of its values.

    Attributes:
        desc: the program.
        types: types by name, of the values whose type is known.
    """

    desc: ProgramDesc
    types: dict[str, VarType]


# Attributes of the leaves ----------------------------------------------------------------------


class _Attrs(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Attributes of one of the types that are no operators."""


class ConstantAttrs(_Attrs):
    """One number; a Python scalar when it has no dtype."""

    value: Any
    dtype: str | None = None
    shape: list[int] = []
    kind: str = VarKind.LOD_TENSOR.value


class ArrayAttrs(_Attrs):
    """An array, its bytes little-endian in C order; without data where a text leaves it out."""

    dtype: str
    shape: list[int]
    data: bytes | None = None


class KeyAttrs(_Attrs):
    """A random key's place among those of the program, in the order in which they were made."""

    rank: int


class NoAttrs(_Attrs):
    """No attributes."""


# Writing ---------------------------------------------------------------------------------------


def to_desc(outputs: Sequence[Node], also: Sequence[Node] = ()) -> ProgramDesc:
    """The graph of ``outputs`` as records: one block, operators in topological order.

    The variables in ``also`` are recorded first, whether or not an output needs them. All
    attributes are recorded, defaults too, so that a later change of a default does not change
    what a file means. Of the place where a node was built only the file's base name is kept.

    Raises:
        NameConflictError: two nodes were given one name.
        ArgumentError: an output is all the outputs of an operator at once.
    """
    return describe(outputs, also).desc


def describe(
    outputs: Sequence[Node], also: Sequence[Node] = (), *, array_limit: float = math.inf
) -> Description:
    """``to_desc`` with the types of the values; arrays of more entries leave out their data."""
    writer = _Writer(topological([*also, *outputs]), array_limit)
    for i, node in enumerate(outputs):
        if isinstance(node.op, Operator) and not node.op.single:
            raise ArgumentError(
                f"{node.op.name}: output {i} must be one value, got all {len(node.op.outputs)} "
                "outputs of a node; select one"
            )
    desc = ProgramDesc(blocks=[writer.block()], fetch=[writer.label(node) for node in outputs])
    return Description(desc, writer.types())


class _Writer:
    """Writes records of the nodes of one graph."""

    def __init__(self, order: Sequence[Node], array_limit: float) -> None:
        self.order = order
        self.array_limit = array_limit
        self.labels = _labels(order)
        keys = sorted((n for n in order if n.op is KEY), key=lambda node: node.serial)
        self.ranks = {node: rank for rank, node in enumerate(keys)}

    def label(self, node: Node) -> str:
        """The name of one value."""
        if node.op is SELECT:
            (source,) = node.operands
            return self.labels[source][node.attributes[0]]
        return self.labels[node][0]

    def types(self) -> dict[str, VarType]:
        return {
            label: node.types[i]
            for node, labels in self.labels.items()
            if node.types is not None
            for i, label in labels.items()
        }

    def block(self) -> BlockDesc:
        return BlockDesc(
            vars=[_var_desc(node) for node in self.order if node.op is VARIABLE],
            ops=[self._op_desc(n) for n in self.order if n.op not in (VARIABLE, SELECT)],
        )

    def _op_desc(self, node: Node) -> OpDesc:
        outputs = {
            key: [self.labels[node][i]] for i, key in _ports(node, self.labels[node]).items()
        }
        desc = OpDesc(node.op.name, self._inputs(node), outputs, self._attrs(node), node.name)
        # One constant serves graphs that have nothing else in common: where it was built first
        # says nothing of this one, and would make files differ that hold the same graph.
        if node.op not in (CONSTANT, TRAINING) and node.origin is not None:
            desc.site, desc.gradient_of = _site(node.origin), node.origin.forward
        return desc

    def _inputs(self, node: Node) -> dict[str, list[str]]:
        if isinstance(node.op, Operator):
            return {
                slot.name: [self.label(value) for value in values]
                for slot, values in node.op.input_groups(node.inputs)
                if values
            }
        return {INPUTS: [self.label(value) for value in node.operands]} if node.inputs else {}

    def _attrs(self, node: Node) -> dict[str, Any]:
        if isinstance(node.op, Operator):
            if node.op.name in _LEAVES:
                raise NameConflictError(
                    f"{node.op.name}: an operator of this name cannot be saved, the name is taken"
                )
            return {k: to_plain(v) for k, v in node.op.attribute_dict(node.attributes).items()}
        if node.op is DEFERRED:
            return _expansion_attrs(node.attributes[0])
        attrs: dict[str, Any] = msgspec.to_builtins(self._leaf(node))
        return attrs

    def _leaf(self, node: Node) -> _Attrs:
        if node.op is CONSTANT:
            return _constant_attrs(node)
        if node.op is ARRAY:
            return _array_attrs(np.asarray(node.attributes[0].value), self.array_limit)
        return KeyAttrs(self.ranks[node]) if node.op is KEY else NoAttrs()


def _labels(order: Sequence[Node]) -> dict[Node, dict[int, str]]:
    """The name of each output of each node, by the output's index; names differ."""
    names = names_of(order)
    taken = {name for node, name in names.items() if node.op is not SELECT}
    selected: dict[Node, list[int]] = defaultdict(list)
    for node in order:
        if node.op is SELECT:
            selected[node.operands[0]].append(node.attributes[0])
    labels: dict[Node, dict[int, str]] = {}
    for node in order:
        if node.op is SELECT:
            continue
        if node.op is not DEFERRED and (isinstance(node.op, Structure) or node.op.single):
            labels[node] = {0: names[node]}
            continue
        ports = _ports(node, sorted(selected[node]))
        labels[node] = {i: _free(f"{names[node]}.{key}", taken) for i, key in ports.items()}
    return labels


def _free(name: str, taken: set[str]) -> str:
    """``name``, which a user may have given to something else: then with underscores behind it."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _ports(node: Node, selected: Sequence[int] | Mapping[int, str]) -> dict[int, str]:
    """What a record calls the outputs of ``node``; only of a deferred one are some unknown."""
    if isinstance(node.op, Operator):
        return dict(enumerate(node.op.outputs))
    return {i: str(i) for i in selected} if node.op is DEFERRED else {0: "out"}


def _site(origin: Origin) -> str | None:
    if origin.file in ("", UNKNOWN_FILE):
        return None
    name = re.split(r"[/\\]", origin.file)[-1]
    return f"{name}:{origin.line}"


def _var_desc(node: Node) -> VarDesc:
    shape, dtype, role, extra = node.attributes
    assert node.name is not None
    return VarDesc(
        node.name,
        None if shape is None else list(shape),
        None if dtype is None else dtype.name,
        role=role,
        attrs=dict(extra),
    )


def _constant_attrs(node: Node) -> ConstantAttrs:
    value, dtype, shape = node.attributes
    return ConstantAttrs(
        to_plain(_number(value)),
        None if dtype is None else dtype.name,
        [int(length) for length in shape],
        node.type.kind.value,
    )


def _number(value: bool | int | float | complex) -> bool | int | float | complex:
    """``value`` as Python's own type, where it is of a type derived from that."""
    if isinstance(value, (bool, int)):
        return value if isinstance(value, bool) else int(value)
    return float(value) if isinstance(value, float) else complex(value)


def _array_attrs(value: np.ndarray, limit: float) -> ArrayAttrs:
    if value.dtype.byteorder == ">":
        value = value.astype(value.dtype.newbyteorder("<"))
    data = None if value.size > limit else value.tobytes()
    return ArrayAttrs(value.dtype.name, list(value.shape), data)


def _expansion_attrs(expansion: Any) -> dict[str, Any]:
    if not hasattr(expansion, "to_attrs"):
        raise ArgumentError(f"{expansion.name}: a deferred value of this kind cannot be saved")
    attrs = {key: to_plain(value) for key, value in expansion.to_attrs().items()}
    return {"name": expansion.name, **attrs}


# Reading ---------------------------------------------------------------------------------------

Place = Callable[[str, int], str]
"""Says where record ``index`` of ``"vars"``, ``"ops"`` or ``"fetch"`` stands, for a message."""


def from_desc(desc: ProgramDesc, place: Place | None = None) -> list[Node]:
    """The graph that ``desc`` records; nodes that exist already are shared, as they are.

    Calls are inferred and simplified as when they were first made, so what ``to_desc`` made of a
    graph gives that graph again.

    Args:
        desc: a program of one block.
        place: says where a record stands, in place of its JSON path.

    Raises:
        FormatError: something in the records is wrong; nothing is kept of them.
    """
    place = _json_place(desc) if place is None else place
    return fetched(desc, rebuild(desc, place), place)


def graph_of(desc: ProgramDesc) -> tuple[list[Node], list[Node]]:
    """The graph that ``desc`` records: its values, and all its variables in their order.

    Raises:
        FormatError: something in the records is wrong; nothing is kept of them.
    """
    place = _json_place(desc)
    values = rebuild(desc, place)
    variables = [values[var.name] for var in desc.blocks[0].vars]
    return fetched(desc, values, place), variables


def fetched(desc: ProgramDesc, values: Mapping[str, Node], place: Place) -> list[Node]:
    """The values that ``desc`` fetches."""
    for i, name in enumerate(desc.fetch):
        if name not in values:
            raise FormatError(
                f"{place('fetch', i)}: {name!r} is not defined{_nearest_value(name, values)}"
            )
    return [values[name] for name in desc.fetch]


def rebuild(desc: ProgramDesc, place: Place) -> dict[str, Node]:
    """Every value that ``desc`` defines, by name."""
    check_version(desc.format, desc.version)
    if len(desc.blocks) != 1:
        raise FormatError(f"blocks: a graph must have exactly one block, got {len(desc.blocks)}")
    return _Loader(desc.blocks[0], place).load()


def check_version(format: str, version: int) -> None:
    """Raise FormatError unless this is a program that this version of symop can read."""
    if format != "symop":
        raise FormatError(f"format: must be 'symop', got {format!r}")
    if version > FORMAT_VERSION:
        raise FormatError(
            f"version: must be at most {FORMAT_VERSION}, got {version}; the file was written by a "
            "newer symop, update to read it"
        )
    if version < 1:
        raise FormatError(f"version: must be at least 1, got {version}")


def _json_place(desc: ProgramDesc) -> Place:
    def place(part: str, index: int) -> str:
        if part == "fetch":
            return f"fetch[{index}]"
        path = f"blocks[0].{part}[{index}]"
        block = desc.blocks[0]
        return f"{path} ({title(block.ops[index] if part == 'ops' else block.vars[index])})"

    return place


def title(desc: OpDesc | VarDesc) -> str:
    """A record in a message: ``sin 'y'``."""
    if isinstance(desc, VarDesc):
        return f"variable {desc.name!r}"
    first = next((names[0] for names in desc.outputs.values() if names), None)
    name = desc.name or first
    return desc.type if name is None else f"{desc.type} {name!r}"


def _nearest_value(name: str, values: Mapping[str, Any]) -> str:
    # Comparing with every value of a huge program would take longer than loading it.
    return nearest(name, list(values)[-1000:])


class _Loader:
    """Builds the nodes of one block."""

    def __init__(self, block: BlockDesc, place: Place) -> None:
        self.block = block
        self.place = place
        self.values: dict[str, Node] = {}
        self.given: set[str] = set()
        self.keys: dict[int, Node] = {}

    def load(self) -> dict[str, Node]:
        for i, var in enumerate(self.block.vars):
            with self._placed("vars", i):
                self._load_variable(var)
        self._load_keys()
        for i, op in enumerate(self.block.ops):
            with self._placed("ops", i), copied_origin(_origin(op, i)):
                self._load_op(op, i)
        return self.values

    @contextmanager
    def _placed(self, part: str, index: int) -> Iterator[None]:
        """Whatever a record makes go wrong is the record's fault, and the message says which."""
        try:
            yield
        except FormatError as error:
            raise FormatError(f"{self.place(part, index)}: {error}") from error.__cause__
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise FormatError(f"{self.place(part, index)}: {reason}") from error

    def _load_variable(self, var: VarDesc) -> None:
        if var.kind != VarKind.LOD_TENSOR.value:
            kinds = [kind.value for kind in VarKind]
            problem = "cannot be fed to a graph" if var.kind in kinds else "is no variable kind"
            raise FormatError(f"the kind {var.kind!r} {problem}{nearest(var.kind, kinds)}")
        shape = None if var.shape is None else _shape(var.shape)
        dtype = None if var.dtype is None else dtype_named(var.dtype)
        # Of an intermediate value the operator that computes it tells the type.
        if var.role != "intermediate":
            self._give(var.name)
            extra = tuple(var.attrs.items())
            self._define(var.name, variable(var.name, shape, dtype, var.role, extra))

    def _give(self, name: str) -> None:
        if not name:
            raise FormatError("a name must not be empty")
        if name in self.given:
            raise FormatError(f"the name {name!r} must be given once, got it twice")
        self.given.add(name)

    def _define(self, name: str, node: Node) -> None:
        if name in self.values:
            raise FormatError(f"{name!r} must be defined once, and is defined before")
        self.values[name] = node

    def _load_keys(self) -> None:
        """Make the random keys first, in the order in which they were made before."""
        ranks: dict[int, int] = {}
        for i, op in enumerate(self.block.ops):
            if op.type == KEY.name:
                with self._placed("ops", i):
                    rank = _attrs_of(op, KeyAttrs).rank
                    if rank in ranks:
                        raise FormatError(f"rank {rank} must be given once, got it twice")
                    ranks[rank] = i
        for rank in sorted(ranks):
            i = ranks[rank]
            with self._placed("ops", i), copied_origin(_origin(self.block.ops[i], i)):
                self.keys[i] = fresh_key()

    def _load_op(self, op: OpDesc, index: int) -> None:
        if op.name is not None:
            self._give(op.name)
        if op.type not in _LEAVES:
            self._define_outputs(op, self._load_call(op))
            return
        if op.name is not None:
            raise FormatError(f"a name is given to calls of operators only, got {op.name!r}")
        inputs = self._slots(op, [INPUTS] if op.type == DEFERRED.name else [])
        if op.type == DEFERRED.name:
            self._define_outputs(op, _load_deferred(op, inputs.get(INPUTS, [])))
        elif op.type == KEY.name:
            self._define_outputs(op, {"out": self.keys[index]})
        else:
            self._define_outputs(op, {"out": _LOADERS[op.type](op)})

    def _load_call(self, op: OpDesc) -> dict[str, Node]:
        operator = get(op.type)
        filled = self._slots(op, operator.slot_names)
        arguments: dict[str, Any] = {}
        for name, nodes in filled.items():
            slot = operator.slots[operator.slot_index[name]]
            if not slot.variadic and len(nodes) > 1:
                raise FormatError(f"slot {name!r} must hold one value, got {len(nodes)}")
            if nodes:
                arguments[name] = nodes if slot.variadic else nodes[0]
        _check_keys("attribute", op.attrs, operator.attribute_index)
        arguments.update((key, from_plain(value)) for key, value in op.attrs.items())
        inputs, attributes, _ = operator.bind((), arguments)
        for slot, value in zip(operator.slots, inputs, strict=False):
            if value is LEFT_OUT:
                raise FormatError(f"slot {slot.name!r} must be filled, got nothing")
        node = apply(operator, inputs, attributes, op.name)
        if operator.single:
            return {operator.outputs[0]: node}
        return {key: select(node, i) for i, key in enumerate(operator.outputs)}

    def _slots(self, op: OpDesc, legal: Sequence[str]) -> dict[str, list[Node]]:
        _check_keys("slot", op.inputs, legal)
        return {slot: [self._value(n) for n in names] for slot, names in op.inputs.items()}

    def _value(self, name: str) -> Node:
        found = self.values.get(name)
        if found is not None:
            return found
        for i, op in enumerate(self.block.ops):
            if any(name in names for names in op.outputs.values()):
                raise FormatError(
                    f"{name!r} must be defined before it is used, but {self.place('ops', i)} "
                    "defines it"
                )
        raise FormatError(f"{name!r} is not defined{_nearest_value(name, self.values)}")

    def _define_outputs(self, op: OpDesc, nodes: Mapping[str, Node]) -> None:
        _check_keys("output", op.outputs, list(nodes))
        if not op.outputs:
            raise FormatError("at least one output must be named, got none")
        for key, names in op.outputs.items():
            if len(names) != 1:
                raise FormatError(f"output {key!r} must have one name, got {len(names)}")
            self._define(names[0], nodes[key])


def _check_keys(
    what: str, given: Mapping[str, Any], legal: Mapping[str, Any] | Sequence[str]
) -> None:
    for key in given:
        if key not in legal:
            among = ", ".join(legal) or "none"
            raise FormatError(f"the {what}s are {among}, got {key!r}{nearest(key, legal)}")


def _origin(op: OpDesc, index: int) -> Origin:
    if op.site is None:
        return Origin(UNKNOWN_FILE, index, op.gradient_of)
    file, _, line = op.site.rpartition(":")
    if not (file and re.fullmatch(r"[0-9]{1,9}", line)):
        raise FormatError(f"the site must be file:line, got {op.site!r:.200}")
    return Origin(file, int(line), op.gradient_of)


def _shape(lengths: Sequence[int]) -> tuple[int, ...]:
    if not all(0 <= length < 2**63 for length in lengths):
        raise FormatError(f"the lengths of a shape must not be negative or huge, got {lengths}")
    return tuple(lengths)


def _attrs_of(op: OpDesc, kind: type[Any]) -> Any:
    try:
        return msgspec.convert(op.attrs, kind)
    except msgspec.ValidationError as error:
        raise FormatError(f"attrs: {error}") from None


def _load_constant(op: OpDesc) -> Node:
    attrs: ConstantAttrs = _attrs_of(op, ConstantAttrs)
    value = from_plain(attrs.value)
    if not isinstance(value, (bool, int, float, complex)):
        raise FormatError(f"the value of a constant must be a number, got {attrs.value!r:.200}")
    if attrs.dtype is None:
        if attrs.shape or attrs.kind != VarKind.LOD_TENSOR.value:
            raise FormatError("a constant that has a shape or a kind must have a dtype, got none")
        return constant(value)
    made = VarType(_shape(attrs.shape), dtype_named(attrs.dtype), VarKind(attrs.kind))
    return constant(value, made)


def _load_array(op: OpDesc) -> Node:
    attrs: ArrayAttrs = _attrs_of(op, ArrayAttrs)
    shape, dtype = _shape(attrs.shape), dtype_named(attrs.dtype)
    if attrs.data is None:
        raise FormatError("the array's entries were left out; save the graph to a file instead")
    # In Python's integers, which do not overflow however large the shape pretends to be.
    expected = math.prod(shape) * dtype.itemsize
    if len(attrs.data) != expected:
        raise FormatError(
            f"the data of an array {dtype.name}{list(shape)} must be {expected} bytes long, "
            f"got {len(attrs.data)}"
        )
    if dtype == np.bool_ and attrs.data.strip(b"\0\1"):
        raise FormatError("the data of a bool array must be zeros and ones")
    return array(np.frombuffer(attrs.data, dtype).reshape(shape))


def _load_training(op: OpDesc) -> Node:
    _attrs_of(op, NoAttrs)
    return training_flag()


def _load_deferred(op: OpDesc, inputs: Sequence[Node]) -> dict[str, Node]:
    attrs = {key: from_plain(value) for key, value in op.attrs.items()}
    name = attrs.pop("name", None)
    if name not in deferred_factories:
        raise FormatError(
            f"no deferred value is called {name!r}{nearest(str(name), deferred_factories)}"
        )
    keys = list(op.outputs)
    if not all(re.fullmatch(r"0|[1-9][0-9]{0,5}", key) for key in keys):
        raise FormatError(f"the outputs of a deferred value must be numbers, got {keys}")
    image = expanded(deferred_factories[name](attrs), inputs)
    if isinstance(image, list):
        return {key: image[int(key)] for key in keys}
    return {key: select(image, int(key)) for key in keys}


_LOADERS: dict[str, Callable[[OpDesc], Node]] = {
    CONSTANT.name: _load_constant,
    ARRAY.name: _load_array,
    TRAINING.name: _load_training,
}
_LEAVES = frozenset([*_LOADERS, KEY.name, DEFERRED.name])
"""The types of records that are no operators."""
