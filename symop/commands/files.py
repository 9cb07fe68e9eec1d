"""Files of commands: graphs and programs in any written form, ``-`` for the standard streams."""

import sys
from collections.abc import Iterable
from typing import Any

import msgspec

from registry.desc import ProgramDesc
from registry.errors import ArgumentError, FormatError
from symop.commands.parser import Declared
from symop.io.files import read_bounded, write_atomically
from symop.io.parsing import parse_records
from symop.io.serialize import LIMIT, decode
from symop.program.program import Program
from symop.symbol.calls import from_desc, parse
from symop.symbol.symbol import Symbol

STREAM = "-"
"""Stands for standard input or output in place of a file."""


def read(path: str) -> Symbol | Program:
    """Reads a symbol or a program, as JSON or as printed text; nothing in it is executed.

    Raises:
        FormatError: the file is damaged, too large or of another kind.
        OSError: the file cannot be read.
    """
    data = _bytes(path)
    try:
        return _from_json(data) if data.lstrip()[:1] == b"{" else _from_text(_decoded(data))
    except FormatError as error:
        raise FormatError(f"{_title(path)}: {error}") from error.__cause__


def read_symbol(path: str, command: str) -> Symbol:
    """Reads a symbol, or the outputs of a program as one.

    Raises:
        ArgumentError: the file is a program without outputs.
    """
    graph = read(path)
    if isinstance(graph, Symbol):
        return graph
    if not graph.outputs:
        raise ArgumentError(
            f"{command}: the program must have outputs, got none in {_title(path)}; set "
            "program.outputs before it is saved"
        )
    return graph.to_symbol()


def write(path: str, data: str | bytes) -> None:
    """Writes a file atomically and reports it on standard output, or writes to that itself."""
    if path != STREAM:
        write_atomically(path, data.encode() if isinstance(data, str) else data)
        print(f"wrote {path}")
    elif isinstance(data, str):
        sys.stdout.write(data)
    else:
        sys.stdout.buffer.write(data)


def types_of(command: str, declared: Iterable[Declared]) -> dict[str, Any]:
    """Returns types as ``Symbol.with_types`` takes them, all of whose lengths must be numbers."""
    result: dict[str, Any] = {}
    for name, shape, dtype in declared:
        if any(isinstance(length, str) for length in shape):
            lengths = ",".join(map(str, shape))
            raise ArgumentError(f"{command}: --shape must hold numbers, got {name}={lengths}")
        result[name] = shape if dtype is None else (shape, dtype)
    return result


def _bytes(path: str) -> bytes:
    if path != STREAM:
        return read_bounded(path, LIMIT)
    data = sys.stdin.buffer.read(LIMIT + 1)
    if len(data) > LIMIT:
        raise FormatError(f"{_title(path)}: must be at most {LIMIT} bytes long, got more")
    return data


def _title(path: str) -> str:
    return "standard input" if path == STREAM else path


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise FormatError("must be a symbol or a program as JSON or text, got bytes") from None


def _from_json(data: bytes) -> Symbol | Program:
    desc = decode(data)
    return Program.from_desc(desc) if _is_program(desc) else from_desc(desc)


def _from_text(text: str) -> Symbol | Program:
    return Program.parse(text) if _is_program(parse_records(text).desc) else parse(text)


def _is_program(desc: ProgramDesc) -> bool:
    """Whether records hold what only a program has; a symbol has outputs, and trains nothing."""
    return not desc.fetch or any(
        block.updates or any(var.role == "parameter" for var in block.vars) for block in desc.blocks
    )


def as_json(value: Any) -> str:
    """Returns records of strings, numbers, lists and dicts as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
