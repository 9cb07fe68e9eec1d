"""MXNet's ``-symbol.json``: reads all versions since 0.8, writes the format of 1.9.1."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from symop.interop.mxnet import ops as _table  # noqa: F401  # filled by importing it
from symop.interop.mxnet.attributes import is_hidden
from symop.interop.mxnet.errors import MXNetError, MXNetFormatError
from symop.interop.mxnet.graph import Entry, Node, describe_initial, state_ids, topological
from symop.interop.mxnet.np_shapes import is_np_shape
from symop.interop.mxnet.operators import Operator, find

VERSION = 10901
LIMIT = 1 << 28
"""The default limit on the size of a file in bytes."""
HIDDEN = ("ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage")
"""Hidden attributes that old versions wrote without underscores."""


class _NodeRecord(msgspec.Struct):
    op: str
    name: str
    inputs: list[list[int]] = []
    param: dict[str, str] = {}
    attr: dict[str, str] = {}
    attrs: dict[str, str] = {}
    subgraphs: list["_GraphRecord"] = []


class _GraphRecord(msgspec.Struct):
    nodes: list[_NodeRecord]
    heads: list[list[int]]
    arg_nodes: list[int] = []
    attrs: dict[str, Any] = {}


# Reading ---------------------------------------------------------------------------------------


def decode(text: str | bytes, limit: int = LIMIT) -> list[Entry]:
    """Parses the heads of a graph, upgraded to the format of 1.9.1.

    Raises:
        MXNetFormatError: the text is damaged; the message shows where.
        MXNetError: a node's operator is not mapped, or its attributes are invalid.
    """
    if len(text) > limit:
        raise MXNetFormatError(f"symbol: at most {limit} bytes must be read, got {len(text)}")
    try:
        record = msgspec.json.decode(text, type=_GraphRecord)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MXNetFormatError(f"symbol: MXNet's JSON must be given: {error}") from None
    return _graph(record, _version(record))


def _version(record: _GraphRecord) -> int:
    """The MXNet version that wrote the graph; 0.8 did not record one."""
    entry = record.attrs.get("mxnet_version", ["int", 800])
    if not (isinstance(entry, list) and len(entry) == 2 and isinstance(entry[1], int)):
        raise MXNetFormatError(f'symbol: mxnet_version must be ["int", number], got {entry!r:.80}')
    return entry[1]


def _graph(record: _GraphRecord, version: int) -> list[Entry]:
    nodes: list[Node] = []
    for one in record.nodes:
        inputs = [_entry(nodes, entry, f"input of {one.name!r}") for entry in one.inputs]
        nodes.append(_node(one, inputs, version))
    if not record.heads:
        raise MXNetFormatError("symbol: heads must name at least one output, got none")
    return [_entry(nodes, entry, "head") for entry in record.heads]


def _entry(nodes: Sequence[Node], entry: Sequence[int], what: str) -> Entry:
    """The output referred to by ``entry``: node, output, and a version in newer files."""
    if len(entry) not in (2, 3) or not 0 <= entry[0] < len(nodes):
        raise MXNetFormatError(
            f"symbol: the {what} must be [node, output, version] of a node before it, got {entry}"
        )
    node = nodes[entry[0]]
    if not 0 <= entry[1] < node.total:
        raise MXNetFormatError(
            f"symbol: the {what} must be one of {node.total} outputs of {node.name!r}, got "
            f"{entry[1]}"
        )
    return node, entry[1]


def _node(record: _NodeRecord, inputs: list[Entry], version: int) -> Node:
    try:
        return _variable(record, version) if record.op == "null" else _call(record, inputs, version)
    except MXNetFormatError:
        raise
    except MXNetError as error:
        place = "" if "(node " in str(error) else f" (node {record.name!r})"
        raise MXNetError(f"{error}{place}") from None


def _variable(record: _NodeRecord, version: int) -> Node:
    if record.inputs:
        raise MXNetFormatError(f"symbol: the variable {record.name!r} must have no inputs")
    attributes = {**record.param, **record.attr, **record.attrs}
    return Node(None, record.name, _upgraded(None, attributes, [], version))


def _call(record: _NodeRecord, inputs: list[Entry], version: int) -> Node:
    operator = find(record.op)
    attributes = {**record.param, **record.attr, **record.attrs}
    attributes = _upgraded(operator, attributes, inputs, version)
    if len(record.subgraphs) != operator.bodies:
        raise MXNetError(
            f"{operator.name}: {operator.bodies} subgraphs must be given, got "
            f"{len(record.subgraphs)}"
        )
    subgraphs = [_graph(one, version) for one in record.subgraphs]
    if version < 900:  # auxiliary states were not written
        inputs = _completed(operator, record.name, attributes, inputs)
    result = Node(operator, record.name, attributes, inputs, subgraphs)
    if version < 904:  # initializers were not attached
        describe_initial(operator, operator.present(result.values), inputs)
    return result


# Older files -----------------------------------------------------------------------------------


def _upgraded(
    operator: Operator | None, attributes: dict[str, str], inputs: list[Entry], version: int
) -> dict[str, str]:
    """The attributes in the form of 1.9.1."""
    if version < VERSION:
        attributes = _with_hidden(operator, attributes, inputs)
    # A missing axis was written as -1.
    arguments = operator is not None and operator.name in ("argmax", "argmin")
    if version < 905 and arguments and attributes.get("axis") == "-1":
        del attributes["axis"]
    return attributes


def _with_hidden(
    operator: Operator | None, attributes: Mapping[str, str], inputs: list[Entry]
) -> dict[str, str]:
    """Adds underscores to hidden attributes; moves ``weight_lr_mult`` to the weight's variable."""
    result: dict[str, str] = {}
    for name, value in attributes.items():
        key = next((key for key in HIDDEN if name.endswith(key)), None)
        if key is None or is_hidden(name):
            result[name] = value
        elif name == key:
            result[f"__{key}__"] = value
        else:
            owner = _input_named(operator, name[: -len(key) - 1], attributes, inputs)
            target = result if owner is None else owner.attributes
            target[name if owner is None else f"__{key}__"] = value
    return result


def _input_named(
    operator: Operator | None, name: str, attributes: Mapping[str, str], inputs: list[Entry]
) -> Node | None:
    """The variable that is the input ``name`` of a call."""
    if operator is None:
        return None
    own = {key: one for key, one in attributes.items() if not key.endswith(HIDDEN)}
    names = operator.present(operator.read(own, len(inputs)))
    for other, (node, _) in zip(names, inputs, strict=False):
        if other == name and node.is_variable:
            return node
    return None


def _completed(
    operator: Operator, name: str, attributes: Mapping[str, str], inputs: list[Entry]
) -> list[Entry]:
    """The inputs, with new variables for those missing in the file."""
    own = {key: one for key, one in attributes.items() if not is_hidden(key)}
    names = operator.present(operator.read(own, len(inputs)))
    new = [Node(None, f"{name}_{one}", attributes) for one in names[len(inputs) :]]
    return [*inputs, *[(node, 0) for node in new]]


# Writing ---------------------------------------------------------------------------------------


def encode(heads: Sequence[Entry]) -> str:
    """The graph in the format of MXNet 1.9.1, byte for byte."""
    return _written(_record(heads, top=True))


def _record(heads: Sequence[Entry], *, top: bool) -> dict[str, Any]:
    nodes = topological(heads)
    at = {id(node): i for i, node in enumerate(nodes)}
    states = state_ids(nodes)

    def entry(one: Entry) -> list[int]:
        return [at[id(one[0])], one[1], int(id(one[0]) in states)]

    rows = [0]
    for node in nodes:
        rows.append(rows[-1] + node.total)
    record = {
        "nodes": [_node_record(node, [entry(one) for one in node.inputs]) for node in nodes],
        "arg_nodes": [i for i, node in enumerate(nodes) if node.is_variable],
        "node_row_ptr": rows,
        "heads": [entry(one) for one in heads],
    }
    if not top:
        return record
    told: dict[str, Any] = {"is_np_shape": ["int", 1]} if is_np_shape() else {}
    return {**record, "attrs": {**told, "mxnet_version": ["int", VERSION]}}


def _node_record(node: Node, inputs: list[list[int]]) -> dict[str, Any]:
    record: dict[str, Any] = {
        "op": "null" if node.operator is None else node.operator.name,
        "name": node.name,
    }
    if node.attributes:
        record["attrs"] = dict(sorted(node.attributes.items()))
    record["inputs"] = inputs
    if node.subgraphs:
        record["subgraphs"] = [_record(one, top=False) for one in node.subgraphs]
    return record


def _written(value: Any, depth: int = 0) -> str:
    """JSON with MXNet's line breaks: items of long lists and of objects on separate lines."""
    if isinstance(value, dict):
        parts = [f"{_text(key)}: {_written(one, depth + 1)}" for key, one in value.items()]
        return _joined("{", parts, "}", depth, lines=len(parts) > 1 or depth == 0)
    if isinstance(value, list):
        long = len(value) > 10 or any(isinstance(one, dict) for one in value)
        return _joined("[", [_written(one, depth + 1) for one in value], "]", depth, lines=long)
    return _text(value) if isinstance(value, str) else str(value)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _joined(opening: str, parts: Sequence[str], closing: str, depth: int, *, lines: bool) -> str:
    if not lines:
        return opening + ", ".join(parts) + closing
    indent = "  " * (depth + 1)
    inner = ", ".join(f"\n{indent}{one}" for one in parts)
    return f"{opening}{inner}\n{indent[2:]}{closing}"
