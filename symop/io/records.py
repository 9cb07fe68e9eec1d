"""Conversion of graphs to records: every written form of a graph goes through its ``ProgramDesc``.

A variable is a ``VarDesc``; every other node is an ``OpDesc``, including leaves, whose types are
``constant``, ``array``, ``random_key``, ``training`` and ``deferred``. Selecting one of several
outputs needs no record, because an ``OpDesc`` names each of them.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from registry.desc import SUB_BLOCK, BlockDesc, OpDesc, ProgramDesc, VarDesc
from registry.errors import ArgumentError, NameConflictError
from registry.operator.attributes import to_plain
from registry.operator.bodies import Body, bodies_of
from registry.operator.leaf_descs import LEAVES as VALUES
from registry.operator.operator import Operator
from registry.ops.lax.functions import holds_function
from registry.types import VarKind, VarType
from registry.var import Attributes
from symop.graph.naming import names_of
from symop.graph.nodes import (
    ARRAY,
    CONSTANT,
    DEFERRED,
    KEY,
    TRAINING,
    VARIABLE,
    Node,
    Structure,
    topological,
)
from symop.graph.origins import site_of
from symop.graph.rewriting import settle

INPUTS = "inputs"
"""The single slot of a deferred derivative."""


LEAVES = frozenset([*VALUES, DEFERRED.name])
"""The record types that are not operators."""


_NO_RULE = "nondifferentiable_call"
"""What a call is in a file whose derivative rule only this process can run."""


class Description(NamedTuple):
    """A graph as records, with the known types of its values.

    Attributes:
        desc: the program.
        types: known types of values, by name.
    """

    desc: ProgramDesc
    types: dict[str, VarType]


# Attributes of the leaves ----------------------------------------------------------------------


class _Attrs(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Attributes of a record type that is not an operator."""


class ConstantAttrs(_Attrs):
    """A number; a Python scalar if it has no dtype."""

    value: Any
    dtype: str | None = None
    shape: list[int] = []
    kind: str = VarKind.LOD_TENSOR.value


class ArrayAttrs(_Attrs):
    """An array: little-endian bytes in C order, or no data where a text omits it."""

    dtype: str
    shape: list[int]
    data: bytes | None = None


class KeyAttrs(_Attrs):
    """The rank of a random key among those of the program, in order of creation."""

    rank: int


class NoAttrs(_Attrs):
    """No attributes."""


# Writing ---------------------------------------------------------------------------------------


def to_desc(outputs: Sequence[Node], also: Sequence[Node] = ()) -> ProgramDesc:
    """Returns the graph of ``outputs`` as records: one block, operators in topological order.

    The variables in ``also`` are recorded first, whether or not an output needs them. All
    attributes are recorded, including defaults, so that changing a default later does not change
    the meaning of a file. Only the base name of the file where a node was built is kept.

    Raises:
        NameConflictError: two nodes were given one name.
        ArgumentError: an output is a node with several outputs; one must be selected.
    """
    return describe(outputs, also).desc


def describe(
    outputs: Sequence[Node], also: Sequence[Node] = (), *, array_limit: float = math.inf
) -> Description:
    """Returns records and known types; omits data of arrays above ``array_limit`` entries."""
    outputs = settle(outputs)
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
    """Bodies of control flow, each an additional block of the program; equal bodies share a block.

    Attributes:
        blocks: the blocks after the first.
        indices: the block index of each body.
    """

    def __init__(self, array_limit: float = math.inf) -> None:
        """Starts without blocks; omits data of arrays with more entries than ``array_limit``."""
        self.blocks: list[BlockDesc] = []
        self.indices: dict[Any, int] = {}
        self._array_limit = array_limit

    def index(self, body: Any) -> int:
        """Returns the block index of ``body``, a ``bodies.GraphBody``."""
        result = self.indices.get(body)
        if result is None:
            result = self.indices[body] = len(self.blocks) + 1
            self.blocks.append(BlockDesc())  # reserves its index, before those of inner bodies
            self.blocks[result - 1] = self._block(body)
        return result

    def forget(self, count: int) -> None:
        """Keeps only the first ``count`` blocks."""
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
            ops=[_unnamed(writer.op_desc(node)) for node in order if not node.is_selection],
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
        labels: the names of each node's outputs, by output index.
        ranks: ranks of random keys in order of creation.
        sub_blocks: the blocks of bodies.
        array_limit: the data of arrays with more entries is omitted.
    """

    def __init__(
        self,
        labels: Mapping[Node, dict[int, str]],
        ranks: Mapping[Node, int],
        sub_blocks: SubBlocks,
        array_limit: float = math.inf,
    ) -> None:
        """Creates a writer that uses these names."""
        self.labels, self.ranks, self.array_limit = labels, ranks, array_limit
        self.sub_blocks = sub_blocks

    def label(self, node: Node) -> str:
        """Returns the name of one value."""
        return self.labels[node.source][node.index]

    def types(self) -> dict[str, VarType]:
        """Returns the known types of all values, by name."""
        return {
            label: node.types[i]
            for node, labels in self.labels.items()
            if node.types is not None
            for i, label in labels.items()
        }

    def block(self, order: Sequence[Node]) -> BlockDesc:
        """Returns the records of a whole graph."""
        return BlockDesc(
            vars=[_var_desc(node) for node in order if node.op is VARIABLE],
            ops=[self.op_desc(n) for n in order if not (n.is_selection or n.op is VARIABLE)],
        )

    def op_desc(self, node: Node) -> OpDesc:
        """Returns the record of a call or of a leaf."""
        outputs = {
            key: [self.labels[node][i]] for i, key in ports_of(node, self.labels[node]).items()
        }
        name = _NO_RULE if _has_rule_of_process(node) else node.op.name
        desc = OpDesc(name, self._inputs(node), outputs, self._attrs(node), node.name)
        # A constant is shared by unrelated graphs. Its first site says nothing about this graph,
        # and would make files of equal graphs differ.
        if node.op not in (CONSTANT, TRAINING) and node.origin is not None:
            desc.site = site_of(node.origin)
            # The same holds for the gradient of any other node without inputs, but it has a site.
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
        if _has_rule_of_process(node):
            return {"body": {SUB_BLOCK: self.sub_blocks.index(bodies_of(node.attributes)[0])}}
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
    """Returns all attributes of a call, with defaults, as JSON; a body becomes a block index."""
    if operator.name in LEAVES:
        raise NameConflictError(
            f"{operator.name}: an operator of this name cannot be saved, the name is taken"
        )
    return {
        key: {SUB_BLOCK: sub_blocks.index(one)} if isinstance(one, Body) else to_plain(one)
        for key, one in operator.attribute_dict(attributes).items()
    }


def _has_rule_of_process(node: Node) -> bool:
    """Whether ``node`` is a call with a derivative rule that only this process can run."""
    if node.op.name != "call":
        return False
    rules: list[Any] = bodies_of(node.attributes)[1:]
    refuses = any(rule.lazy for rule in rules)  # others have been read
    return refuses or any(
        _is_of_process(one) for rule in rules for one in topological(rule.results)
    )


def _is_of_process(node: Node) -> bool:
    return isinstance(node.op, Operator) and holds_function(node.attributes)


def _labels(order: Sequence[Node], names: Mapping[Node, str]) -> dict[Node, dict[int, str]]:
    """Returns the unique name of each output of each node, by output index."""
    taken = {name for node, name in names.items() if not node.is_selection}
    selected: dict[Node, list[int]] = defaultdict(list)
    for node in order:
        if node.is_selection:
            selected[node.source].append(node.index)
    labels: dict[Node, dict[int, str]] = {}
    for node in order:
        if node.is_selection:
            continue
        if node.op is not DEFERRED and (isinstance(node.op, Structure) or node.op.single):
            labels[node] = {0: names[node]}
            continue
        ports = ports_of(node, sorted(selected[node]))
        labels[node] = {i: _free(f"{names[node]}.{key}", taken) for i, key in ports.items()}
    return labels


def _free(name: str, taken: set[str]) -> str:
    """Returns ``name``, with underscores appended if it is taken by a user's name."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def ports_of(node: Node, selected: Sequence[int] | Mapping[int, str]) -> dict[int, str]:
    """Returns the output names in a record of ``node``; if it is deferred, those ``selected``."""
    if isinstance(node.op, Operator):
        return dict(enumerate(node.op.outputs))
    return {i: str(i) for i in selected} if node.op is DEFERRED else {0: "out"}


def _var_desc(node: Node) -> VarDesc:
    shape, dtype, role, extra = node.attributes
    assert node.name is not None
    return VarDesc(
        node.name,
        None if shape is None else list(shape),
        None if dtype is None else dtype.name,
        VarKind.LOD_TENSOR.value if node.types is None else node.types[0].kind.value,
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
    """Returns ``value`` as an instance of the builtin type from which its type is derived."""
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
