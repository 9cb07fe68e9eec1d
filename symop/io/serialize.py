"""Graphs as JSON: versioned, with one record per line for readable files and diffs."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from registry.desc import BlockDesc, ProgramDesc
from registry.errors import FormatError
from symop.graph.nodes import Node
from symop.io.contents import JSON, contents_of
from symop.io.leaf_records import deferred_factories
from symop.io.rebuilding import check_version, from_desc
from symop.io.records import to_desc
from symop.runtime.initial import require_named_initials

__all__ = [
    "LIMIT",
    "decode",
    "deferred_factories",
    "dumps",
    "encode",
    "from_desc",
    "loads",
    "to_desc",
]

LIMIT = 1 << 30
"""The default limit on the number of bytes of JSON to read."""


def dumps(outputs: Sequence[Node]) -> str:
    """Returns the graph of ``outputs`` as JSON.

    Raises:
        NameConflictError: two nodes were given one name.
    """
    return encode(to_desc(outputs))


def loads(text: str | bytes, *, limit: int = LIMIT) -> list[Node]:
    """Loads the outputs of the graph in ``text``; nothing in it is executed.

    Existing nodes are shared, so a graph saved in the same process loads as the same graph.

    Raises:
        FormatError: the text is damaged, too large or of a newer version; nothing is loaded.
    """
    return from_desc(decode(text, limit=limit))


def encode(desc: ProgramDesc) -> str:
    """Returns ``desc`` as JSON, with each variable and each operator on one line.

    Raises:
        FormatError: a variable has an initializer that a file cannot hold.
    """
    require_named_initials(desc)
    blocks = ",\n".join([_block(block) for block in desc.blocks])
    return (
        f'{{\n "format": {_line(desc.format)},\n "version": {desc.version},\n'
        f' "blocks": [\n{blocks}\n ],\n "fetch": {_line(desc.fetch)}\n}}\n'
    )


def _block(block: BlockDesc) -> str:
    parent = "" if block.parent == BlockDesc().parent else f'   "parent": {block.parent},\n'
    updates = f',\n   "updates": {_line(block.updates)}' if block.updates else ""
    fetch = f',\n   "fetch": {_line(block.fetch)}' if block.fetch else ""
    return (
        f'  {{\n{parent}   "vars": {_lines(block.vars)},\n'
        f'   "ops": {_lines(block.ops)}{updates}{fetch}\n  }}'
    )


def _lines(records: Iterable[Any]) -> str:
    lines = ",\n    ".join([_line(record) for record in records])
    return f"[\n    {lines}\n   ]" if lines else "[]"


def _line(value: Any) -> str:
    # Without indentation, format() puts spaces after commas and colons and adds no line breaks.
    return msgspec.json.format(msgspec.json.encode(value), indent=0).decode()


# Reading ---------------------------------------------------------------------------------------


class _Head(msgspec.Struct):
    """The fields that identify the format; a newer version may change all others."""

    format: str = ""
    version: int = 0


_head_decoder = msgspec.json.Decoder(_Head)
_decoder = msgspec.json.Decoder(ProgramDesc)


def decode(text: str | bytes, *, limit: int = LIMIT) -> ProgramDesc:
    """Decodes the records in ``text``; checks the types of their fields, but not their meaning.

    Raises:
        FormatError: the text is not such JSON, is longer than ``limit`` bytes, or has an unknown
            version.
    """
    data = _bytes(text)
    _refuse_other_contents(data)
    if len(data) > limit:
        raise FormatError(
            f"the text must be at most {limit} bytes long, got {len(data)}; pass limit= to read it"
        )
    try:
        head = _head_decoder.decode(data)
        check_version(head.format, head.version)
        return _decoder.decode(data)
    except FormatError:
        raise
    except msgspec.ValidationError as error:
        raise FormatError(_validation_message(data, str(error))) from None
    except msgspec.DecodeError as error:
        raise FormatError(_syntax_message(data, str(error))) from None
    except RecursionError:
        raise FormatError("the text nests too deeply") from None
    except ValueError as error:
        raise FormatError(f"the text must be UTF-8 JSON; {error}") from None


def _refuse_other_contents(data: bytes) -> None:
    """Raises an error if ``data`` are the bytes of another kind of file."""
    what = contents_of(data)
    if what not in (None, JSON):
        raise FormatError(f"the file must hold the JSON of a graph, got {what}")


def _bytes(text: str | bytes) -> bytes:
    try:
        return text.encode() if isinstance(text, str) else text
    except UnicodeEncodeError as error:
        raise FormatError(f"the text must be UTF-8 JSON; {error}") from None


def _syntax_message(data: bytes, message: str) -> str:
    """Returns ``message`` with a line and a column in place of a byte offset."""
    match = re.search(r" \(byte (\d+)\)$", message)
    before = data if match is None else data[: int(match[1])]
    line = before.count(b"\n") + 1
    column = len(before) - before.rfind(b"\n")
    return f"line {line}, column {column}: {message if match is None else message[: match.start()]}"


def _validation_message(data: bytes, message: str) -> str:
    """Returns ``message``, which ends with a JSON path, with the record at that path."""
    reason, _, path = message.partition(" - at ")
    path = path.strip("`").removeprefix("$").removeprefix(".")
    match = re.match(r"blocks\[(\d+)\]\.(ops|vars)\[(\d+)\]", path)
    what = "" if match is None else _named(data, int(match[1]), match[2], int(match[3]))
    return f"{path or 'the text':.200}{what}: {reason:.200}"


class _LooseRecord(msgspec.Struct):
    """The fields of a record that name it."""

    type: Any = None
    name: Any = None


class _LooseBlock(msgspec.Struct):
    ops: list[_LooseRecord] = []
    vars: list[_LooseRecord] = []


class _Loose(msgspec.Struct):
    blocks: list[_LooseBlock] = []


def _named(data: bytes, block: int, part: str, index: int) -> str:
    try:
        record = getattr(msgspec.json.decode(data, type=_Loose).blocks[block], part)[index]
    except (msgspec.MsgspecError, RecursionError, ValueError, IndexError):
        return ""
    words = [f"{word!s:.100}" for word in (record.type, record.name) if word is not None]
    return f" ({' '.join(words)})" if words else ""
