"""Graphs as records and back: every written form of a graph goes through its ``ProgramDesc``.

A variable is a ``VarDesc``; everything else is an ``OpDesc``, leaves included: ``constant``,
``array``, ``random_key``, ``training`` and ``deferred`` are their types. A choice among several
outputs needs no record, because an ``OpDesc`` names each of them.
"""

import itertools
import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from registry.attributes import to_plain
from registry.bodies import Body
from registry.desc import BlockDesc, OpDesc, ProgramDesc, VarDesc
from registry.errors import ArgumentError, NameConflictError
from registry.operator import Operator
from registry.types import VarKind, VarType
from registry.var import Attributes
from symop.graph import (
    ARRAY,
    CONSTANT,
    DEFERRED,
    KEY,
    SELECT,
    TRAINING,
    VARIABLE,
    Node,
    Origin,
    Structure,
    topological,
)
from symop.naming import names_of

SUB_BLOCK = "block"
"""The key of an attribute's value that is a body."""
INPUTS = "inputs"
"""The one slot of a deferred derivative."""
UNKNOWN_FILE = "<loaded>"
"""The file of a node whose record does not say where it was built; its line is the record's."""


LEAVES = frozenset([CONSTANT.name, ARRAY.name, TRAINING.name, KEY.name, DEFERRED.name])
"""The types of records that are no operators."""


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
    order = topological([*also, *outputs])
    keys = sorted((n for n in order if n.op is KEY), key=lambda node: node.serial)
    ranks = {node: rank for rank, node in enumerate(keys)}
    sub_blocks = SubBlocks(array_limit)
    writer = Writer(_labels(order, names_of(order)), ranks, sub_blocks, array_limit)
    for i, node in enumerate(outputs):
        if isinstance(node.op, Operator) and not node.op.single:
            raise ArgumentError(
                f"{node.op.name}: output {i} must be one value, got all {len(node.op.outputs)} "
                "outputs of a node; select one"
            )
    blocks = [writer.block(order), *sub_blocks.blocks]
    desc = ProgramDesc(blocks=blocks, fetch=[writer.label(node) for node in outputs])
    return Description(desc, writer.types())


class SubBlocks:
    """Bodies of control flow, each a further block of the program; equal ones are one block.

    Attributes:
        blocks: the blocks behind the first.
        indices: the number of the block of each body.
    """

    def __init__(self, array_limit: float = math.inf) -> None:
        """There is none yet; arrays of more entries leave out their data."""
        self.blocks: list[BlockDesc] = []
        self.indices: dict[Any, int] = {}
        self._array_limit = array_limit

    def index(self, body: Any) -> int:
        """The number of the block of ``body``, a ``bodies.GraphBody``."""
        found = self.indices.get(body)
        if found is None:
            found = self.indices[body] = len(self.blocks) + 1
            self.blocks.append(BlockDesc())  # its place, before those of the bodies inside
            self.blocks[found - 1] = self._block(body)
        return found

    def forget(self, count: int) -> None:
        """Keep the first ``count`` blocks alone."""
        del self.blocks[count:]
        self.indices = {body: i for body, i in self.indices.items() if i <= count}

    def _block(self, body: Any) -> BlockDesc:
        order = topological(body.results, until=body.parameters)
        order += [key for key in body.keys if key not in order]
        names = {node: f"x{i}" for i, node in enumerate(body.parameters)}
        counters: dict[str, itertools.count[int]] = defaultdict(itertools.count)
        for node in order:
            names[node] = f"{node.op.name}{next(counters[node.op.name])}"
        labels = _labels([*body.parameters, *order], names)
        ranks = {key: rank for rank, key in enumerate(body.keys)}
        writer = Writer(labels, ranks, self, self._array_limit)
        variables = zip(names.values(), body.inputs, strict=False)
        return BlockDesc(
            vars=[_argument(name, type) for name, type in variables],
            ops=[_unnamed(writer.op_desc(node)) for node in order if node.op is not SELECT],
            parent=0,
            fetch=[writer.label(node) for node in body.results],
        )


def _argument(name: str, type: VarType) -> VarDesc:
    return VarDesc(name, list(type.shape), type.dtype.name, type.kind.value, "argument")


def _unnamed(op: OpDesc) -> OpDesc:
    op.name = None
    return op


class Writer:
    """Writes records of nodes whose values have names.

    Attributes:
        labels: for each node the names of its outputs, by their index.
        ranks: places of random keys in the order in which they were made.
        sub_blocks: where bodies are written.
        array_limit: of arrays with more entries the data is left out.
    """

    def __init__(
        self,
        labels: Mapping[Node, dict[int, str]],
        ranks: Mapping[Node, int],
        sub_blocks: SubBlocks,
        array_limit: float = math.inf,
    ) -> None:
        """Write by these names."""
        self.labels, self.ranks, self.array_limit = labels, ranks, array_limit
        self.sub_blocks = sub_blocks

    def label(self, node: Node) -> str:
        """The name of one value."""
        if node.op is SELECT:
            (source,) = node.operands
            return self.labels[source][node.attributes[0]]
        return self.labels[node][0]

    def types(self) -> dict[str, VarType]:
        """Types of all values by name, where known."""
        return {
            label: node.types[i]
            for node, labels in self.labels.items()
            if node.types is not None
            for i, label in labels.items()
        }

    def block(self, order: Sequence[Node]) -> BlockDesc:
        """The records of a whole graph."""
        return BlockDesc(
            vars=[_var_desc(node) for node in order if node.op is VARIABLE],
            ops=[self.op_desc(n) for n in order if n.op not in (VARIABLE, SELECT)],
        )

    def op_desc(self, node: Node) -> OpDesc:
        """The record of a call or of a leaf."""
        outputs = {
            key: [self.labels[node][i]] for i, key in ports_of(node, self.labels[node]).items()
        }
        desc = OpDesc(node.op.name, self._inputs(node), outputs, self._attrs(node), node.name)
        # One constant serves graphs that have nothing else in common: where it was built first
        # says nothing of this one, and would make files differ that hold the same graph.
        if node.op not in (CONSTANT, TRAINING) and node.origin is not None:
            desc.site = site_of(node.origin)
            # Nor does it for any other node without inputs, but such a node has a place.
            desc.gradient_of = node.origin.forward if node.inputs else None
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
            return plain_attributes(node.op, node.attributes, self.sub_blocks)
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


def plain_attributes(
    operator: Operator, attributes: Attributes, sub_blocks: SubBlocks
) -> dict[str, Any]:
    """All attributes of a call, defaults too, as JSON can hold them; a body is a block's number."""
    if operator.name in LEAVES:
        raise NameConflictError(
            f"{operator.name}: an operator of this name cannot be saved, the name is taken"
        )
    return {
        key: {SUB_BLOCK: sub_blocks.index(one)} if isinstance(one, Body) else to_plain(one)
        for key, one in operator.attribute_dict(attributes).items()
    }


def _labels(order: Sequence[Node], names: Mapping[Node, str]) -> dict[Node, dict[int, str]]:
    """The name of each output of each node, by the output's index; names differ."""
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
        ports = ports_of(node, sorted(selected[node]))
        labels[node] = {i: _free(f"{names[node]}.{key}", taken) for i, key in ports.items()}
    return labels


def _free(name: str, taken: set[str]) -> str:
    """``name``, which a user may have given to something else: then with underscores behind it."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def ports_of(node: Node, selected: Sequence[int] | Mapping[int, str]) -> dict[int, str]:
    """What a record calls the outputs of ``node``; only of a deferred one are some unknown."""
    if isinstance(node.op, Operator):
        return dict(enumerate(node.op.outputs))
    return {i: str(i) for i in selected} if node.op is DEFERRED else {0: "out"}


def site_of(origin: Origin) -> str | None:
    """The place as a record tells it: the file without its folders."""
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
