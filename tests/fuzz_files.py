"""A campaign of damaged files: each loader returns a value, or raises the error that it documents.

Valid files of every kind are changed, in their structure (numbers become huge or of another type,
keys go missing or come twice, names are exchanged, values nest deeply) or in their bytes, and read
in a process of limited memory, within a limited time. What else happens is a fault: it is shrunk
and printed as a script. Run by ``make fuzz-files``.

python tests/fuzz_files.py --seconds 300 --seed 1
"""

import argparse
import contextlib
import copy
import io
import json
import os
import pickle
import random
import resource
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax  # the variable above is read when JAX is imported
import msgspec
import numpy as np
from mxnet_samples.table import SAMPLES

import registry
import symop as so
import symop.interop.mxnet as mx
from registry import LoDTensor, SelectedRows
from registry.operator.binding import LEFT_OUT
from symop.interop.mxnet.attributes import written
from symop.interop.mxnet.parameters import save_params
from symop.interop.paddle.framework import (
    AttrType,
    BlockDesc,
    OpDesc,
    ProgramDesc,
    VarDesc,
    serialize,
)
from symop.interop.paddle.pickles import dumps
from symop.interop.paddle.streams import write_stream
from symop.testing.trial import drawn_arguments

CPU_SECONDS, WALL_SECONDS, MEGABYTES = 10, 120, 1500
"""What reading one file may take."""
PER_PROCESS = 400
"""So many files are read by one process."""
TRIES = 300
"""So many smaller files are tried for a fault."""

READERS = {
    "graph": """
import symop as so
symbol = so.load_json(data)
text = symbol.tojson()
again = so.load_json(text).tojson()  # a derivative may be taken that was not before
assert again == text or "deferred" in text, "what is saved must load as it was"
""",
    "graph text": """
from symop.io.parsing import parse
parse(data.decode())
""",
    "program": """
import symop as so
from symop.io.serialize import decode
program = so.Program.from_desc(decode(data))
text = program.tojson()
assert so.Program.from_desc(decode(text)).tojson() == text, "what is saved must load as it was"
""",
    "program text": """
import symop as so
so.Program.parse(data.decode())
""",
    "parameters": """
import symop as so
with open(path, "wb") as file:
    file.write(data)
so.load_parameters(path)
""",
    "checkpoint": """
import jax, numpy as np, symop as so
with open(path, "wb") as file:
    file.write(data)
state = {"w": np.ones((2, 3), np.float32), "n": 3, "key": jax.random.key(0)}
so.checkpoint.load(path, state)
""",
    "program checkpoint": """
import symop as so
with open(path, "wb") as file:
    file.write(data)
program = so.Program()
with so.program_guard(program):
    so.parameter("w", (2,), initial=1.0)
so.checkpoint.load(path, program)
""",
    "mxnet symbol": """
import symop.interop.mxnet as mx
symbol = mx.sym.load_json(data.decode())
mx.sym.load_json(symbol.tojson())
symbol.infer_shape_partial()
symbol.to_graph()
""",
    "mxnet params": """
from symop.interop.mxnet.parameters import load_params
load_params(data)
""",
    "mxnet states": """
import symop.interop.mxnet as mx
mx.optimizer.get_updater(mx.optimizer.Adam()).set_states(data)
""",
    "paddle program": """
from symop.interop.paddle.framework import parse, serialize
again = serialize(parse(data))
assert serialize(parse(again)) == again, "what is saved must load as it was"
""",
    "paddle params": """
from symop.interop.paddle.files import read_combined
from symop.interop.paddle.framework import VarDesc, VarKind
kinds = {"dense": VarKind.LOD_TENSOR, "levels": VarKind.LOD_TENSOR, "rows": VarKind.SELECTED_ROWS}
read_combined(data, {name: VarDesc(name, kind) for name, kind in kinds.items()})
""",
    "paddle pickle": """
from symop.interop.paddle.pickles import loads
loads(data)
""",
}
"""By the kind of a file what reads it: ``data`` is what is in it, ``path`` where it may be."""
ERRORS = {
    "mxnet symbol": "MXNetError",
    "mxnet params": "MXNetFormatError",
    "mxnet states": "MXNetFormatError",
    "paddle program": "PaddleFormatError",
    "paddle params": "PaddleFormatError",
    "paddle pickle": "PaddleFormatError",
}
"""What a reader raises for a damaged file; the others ``FormatError``."""


class File(NamedTuple):
    """A file of one kind."""

    kind: str
    data: bytes


class Outcome(NamedTuple):
    """What became of reading a file.

    Attributes:
        fault: what went wrong, in a word; empty if nothing did.
        told: more of it.
    """

    fault: str
    told: str = ""


# Valid files -----------------------------------------------------------------------------------


def valid_files(share: float = 1.0) -> list[File]:
    """Files of all kinds: of each operator, or of a share of them."""
    makers = [*_graphs(share), *_flows(), *_arrays(), *_of_mxnet(share), *_of_paddle()]
    return [one for one in makers if one is not None]


def _graphs(share: float) -> Iterator[File | None]:
    for i, operator in enumerate(registry.operators()):
        if operator.slots and operator.cases and (i * share) % 1 < share:
            with contextlib.suppress(Exception):  # rows, for example, are fed to programs only
                yield from _of_symbol(_symbol(operator), i)


def _symbol(operator: Any) -> Any:
    drawn = drawn_arguments(operator, operator.cases[0], np.dtype("float32"))
    inputs, attributes, _ = operator.bind((), drawn)
    values = []
    for i, one in enumerate(inputs):
        slot = operator.slot_of(i)
        if hasattr(one, "shape"):
            state = slot.role == "state"
            values.append(so.var(f"{slot.name}{i}", one.shape, one.dtype, state=state))
        else:
            values.append(LEFT_OUT if slot.implicit and one is not None else one)
    member = operator.resolved(tuple(values), attributes)
    found = so.Symbol.emitter.emit(member, tuple(values), attributes, None)
    return so.Group(found) if isinstance(found, tuple) else found


def _of_symbol(symbol: Any, number: int) -> Iterator[File | None]:
    yield File("graph", symbol.tojson().encode())
    if number % 4 == 0:
        yield File("graph text", str(symbol).encode())
        program = symbol.to_program()
        yield File("program", program.tojson().encode())
        yield File("program text", str(program).encode())


def _flows() -> Iterator[File]:
    a, x = so.var("a"), so.var("x", shape=(3,))
    h = so.exp(so.sin(a)) * a
    for _ in range(3):
        h = so.grad(h, a)
    branch = so.cond(
        so.sum(x) > 0, lambda: so.cond(x[0] > 1, lambda: so.sin(x), lambda: x), lambda: x
    )
    loop = so.while_loop(lambda c: so.sum(c) < 9.0, lambda c: c * 2.0, x, max_steps=5)
    steps = so.scan(lambda c, v: (c + v, so.dropout(c * v)), so.sum(x), x)[1]
    for i, one in enumerate([h, so.jvp(so.sin(a), a, a), branch, loop, steps]):
        yield File("graph", one.tojson().encode())
        yield File("graph text", str(one).encode())
        if i > 1:
            whole = so.Group([one, so.grad(so.sum(one), x)])
            yield from (found for found in _of_symbol(whole, 0) if found is not None)
    with so.program_guard(so.Program()) as program:
        w = so.parameter("w", (2,), initial=1.0)
        loss = so.sum(so.square(w))
    so.optim.Adam(0.1).minimize(loss)
    yield File("program", program.tojson().encode())
    yield File("program text", str(program).encode())


def _arrays() -> Iterator[File]:

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        so.save_parameters(
            path, {"a": np.ones((2, 3)), "b": np.zeros(4, np.int8), "c": np.ones(())}
        )
        yield File("parameters", path.read_bytes())
        state = {"w": np.ones((2, 3), np.float32), "n": 3, "key": jax.random.key(0)}
        so.checkpoint.save(path, state)
        yield File("checkpoint", path.read_bytes())
        with so.program_guard(so.Program()) as program:
            so.parameter("w", (2,), initial=1.0)
        so.checkpoint.save(path, program)
        yield File("program checkpoint", path.read_bytes())
        rows = SelectedRows(np.asarray([1, 2]), np.ones((2, 3), np.float32), 5)
        save_params(path, {"arg:a": np.ones((2, 3), np.float32), "aux:r": rows})
        yield File("mxnet params", path.read_bytes())
    for kind in (mx.optimizer.Adam, mx.optimizer.SGD):
        updater = mx.optimizer.get_updater(
            kind(momentum=0.9) if kind is mx.optimizer.SGD else kind()
        )
        for i in range(2):
            updater(i, mx.nd.ones((2, 3)), mx.nd.ones((2, 3)))
        yield File("mxnet states", updater.get_states(dump_optimizer=True))


def _of_mxnet(share: float) -> Iterator[File]:
    for path in sorted((Path(__file__).parent / "data" / "mxnet").glob("*-symbol.json")):
        yield File("mxnet symbol", path.read_bytes())
    seen: set[str] = set()
    for i, sample in enumerate(SAMPLES):
        if sample.op in seen or (i * share) % 1 >= share:
            continue
        seen.add(sample.op)
        nodes: list[dict[str, Any]] = []
        for name, one in sample.inputs.items():
            shape = one if isinstance(one, tuple) else np.shape(one)
            attributes = {"__shape__": written(shape), "__dtype__": "0"}
            nodes.append({"op": "null", "name": name, "attrs": attributes, "inputs": []})
        inputs = [[place, 0, 0] for place in range(len(nodes))]
        own = {key: written(value) for key, value in sample.attributes.items()}
        nodes.append({"op": sample.op, "name": "call", "attrs": own, "inputs": inputs})
        graph = {
            "nodes": nodes,
            "arg_nodes": [place for place, _, _ in inputs],
            "heads": [[len(inputs), 0, 0]],
            "attrs": {"mxnet_version": ["int", 10901]},
        }
        yield File("mxnet symbol", json.dumps(graph, indent=1).encode())


def _of_paddle() -> Iterator[File]:
    folder = Path(__file__).parent / "data" / "paddle" / "files"
    for path in sorted(folder.glob("*.pb")):
        yield File("paddle program", zlib.decompress(path.read_bytes()))
    inner = OpDesc("while", attrs={"sub_block": 1}, attr_types={"sub_block": AttrType.BLOCK})
    blocks = [BlockDesc(0, -1, ops=[inner]), BlockDesc(1, 0, {"x": VarDesc("x")})]
    yield File("paddle program", serialize(ProgramDesc(blocks, 2_006_002)))
    values = {
        "dense": np.ones((2, 3), np.float32),
        "levels": LoDTensor(np.ones((4, 2), np.int64), [[0, 1, 2], [0, 3, 4]]),
        "rows": SelectedRows(np.asarray([1, 2]), np.ones((2, 3), np.float32), 5),
    }
    data = b"".join(piece for name in sorted(values) for piece in write_stream(name, values[name]))
    yield File("paddle params", data)
    arrays = {"a": np.ones((2, 3), np.float32), "b": np.zeros(3, bool)}
    yield File("paddle pickle", dumps(arrays))
    yield from (File("paddle pickle", pickle.dumps(arrays, protocol)) for protocol in (2, 4))


# Changes ---------------------------------------------------------------------------------------


NUMBERS = (
    *(0, -1, 1, 2, 3, 7, 1000, 65_537, 10**6, 10**9, 2**31 - 1, 2**31, 2**62, 2**63 - 1, 2**63),
    *(-(2**63), 10**30, 10**400, 0.5, -0.0, 1e300, float("nan"), float("inf")),
)
STRANGE = (
    None,
    True,
    False,
    "",
    "x",
    "\0",
    "inf",
    [],
    {},
    [0],
    [-1],
    {"float": "nan"},
    {"block": 1},
)
STRANGE += ({"block": 0}, {"block": 10**9}, {"dtype": "float32"}, {"dtype": "object"}, "float32")
DEPTHS = (5, 40, 1000, 20_000)
_JSON = ("graph", "program", "mxnet symbol")


def changed(file: File, draw: random.Random) -> File:
    """``file`` with one to four changes."""
    data = file.data
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        if draw.random() < 0.15:
            data = _with_other_bytes(data, draw)
        elif file.kind in _JSON:
            data = _with_other_json(data, draw)
        elif file.kind == "mxnet states":
            data = _with_other_states(data, draw)
        elif file.kind.endswith("text"):
            data = _with_other_words(data, draw)
        elif file.kind == "paddle program":
            data = _with_other_fields(data, draw)
        elif file.kind in ("mxnet params", "paddle params", "paddle pickle"):
            data = _with_other_words_of_bytes(data, draw)
        else:
            data = _with_other_header(data, draw)
    return File(file.kind, data)


def _with_other_bytes(data: bytes, draw: random.Random) -> bytes:
    found = bytearray(data or b"\0")
    at = draw.randrange(len(found))
    match draw.randrange(5):
        case 0:
            found[at] ^= 1 << draw.randrange(8)
        case 1:
            del found[at:]
        case 2:
            del found[at : at + draw.randrange(1, 20)]
        case 3:
            found[at:at] = bytes(draw.randrange(256) for _ in range(draw.randrange(1, 9)))
        case _:
            end = min(len(found), at + draw.randrange(1, 200))
            found[at:at] = found[at:end]
    return bytes(found)


def _with_other_words_of_bytes(data: bytes, draw: random.Random) -> bytes:
    """Four or eight bytes are another number."""
    code = draw.choice("iqIQ")
    size = struct.calcsize(f"<{code}")
    if len(data) < size:
        return _with_other_bytes(data, draw)
    at = draw.randrange(0, len(data) - size + 1, 4)
    number = int(draw.choice([one for one in NUMBERS if isinstance(one, int)])) % (1 << 8 * size)
    return data[:at] + number.to_bytes(size, "little") + data[at + size :]


def _with_other_fields(data: bytes, draw: random.Random) -> bytes:
    """A message of protobuf with another field somewhere, in which all lengths are right."""
    fields = _fields(data)
    if not fields:
        return _with_other_bytes(data, draw)
    at = draw.randrange(len(fields))
    tag, raw = fields[at]
    if tag & 7 == 2 and _fields(raw) and draw.random() < 0.85:
        fields[at] = tag, _with_other_fields(raw, draw)
    else:
        match draw.randrange(6):
            case 0:
                del fields[at]
            case 1:
                fields[at:at] = [fields[at]] * draw.choice((1, 2, 50))
            case 2:
                fields[at] = tag, draw.choice(fields)[1]
            case 3:
                fields[at] = (
                    draw.choice((0, 1, 3, 7, tag + 8, tag - 8, 1 << 40)) & ~7 | tag & 7,
                    raw,
                )
            case _:
                fields[at] = tag, _other_raw(tag & 7, raw, draw)
    return b"".join(_field(*one) for one in fields)


def _other_raw(wire: int, raw: bytes, draw: random.Random) -> bytes:
    if wire == 0:
        return _varint(int(draw.choice([one for one in NUMBERS if isinstance(one, int)])))
    if wire == 2:
        return _with_other_bytes(raw, draw)
    return bytes(draw.randrange(256) for _ in raw)


def _fields(data: bytes) -> list[tuple[int, bytes]]:
    """The tags and encoded values of a message; none if ``data`` is not one."""
    found, at = [], 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        wire, start = tag & 7, at
        if wire == 0:
            _, at = _read_varint(data, at)
        elif wire == 2:
            length, start = _read_varint(data, at)
            at = start + length
        else:
            at += {1: 8, 5: 4}.get(wire, len(data) + 1)
        if at > len(data) or tag < 8:
            return []
        found.append((tag, data[start:at]))
    return found


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for place in range(10):
        byte = data[at + place] if at + place < len(data) else 0
        number |= (byte & 127) << 7 * place
        if byte < 128:
            return number, at + place + 1
    return 0, len(data) + 1


def _varint(number: int) -> bytes:
    number %= 1 << 64
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def _field(tag: int, raw: bytes) -> bytes:
    return _varint(tag) + (_varint(len(raw)) if tag & 7 == 2 else b"") + raw


def _with_other_header(data: bytes, draw: random.Random) -> bytes:
    """The header of a safetensors file says something else, its own length is right."""
    length = int.from_bytes(data[:8], "little")
    head = _with_other_json(data[8 : 8 + length], draw)
    size = len(head) if draw.random() < 0.9 else int(draw.choice((0, 2**63, 2**64 - 1, 10**8)))
    return size.to_bytes(8, "little") + head + data[8 + length :]


def _with_other_json(data: bytes, draw: random.Random) -> bytes:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return _with_other_bytes(data, draw)
    text = _written(_with_other_value(value, draw))
    return _with_twice_the_key(text, draw) if draw.random() < 0.03 else text.encode()


def _written(value: Any) -> str:
    """JSON of a value that may nest deeper than ``json.dumps`` goes."""
    if isinstance(value, _Nested):
        return value.text(_written(value.inner))
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {_written(one)}" for key, one in value.items()]
        return "{" + ",\n".join(parts) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_written, value)) + "]"
    return json.dumps(value)


class _Nested(NamedTuple):
    """A value in so many lists or objects."""

    inner: Any
    opening: str
    closing: str
    depth: int

    def text(self, inner: str) -> str:
        return self.opening * self.depth + inner + self.closing * self.depth


def _with_twice_the_key(text: str, draw: random.Random) -> bytes:
    places = [i for i, letter in enumerate(text) if letter == ","]
    if len(places) < 2:
        return text.encode()
    first, second = sorted(draw.sample(places, 2))
    return (text[:second] + text[first:second] + text[second:]).encode()


def _with_other_states(data: bytes, draw: random.Random) -> bytes:
    try:
        value = msgspec.msgpack.decode(data)
    except (ValueError, msgspec.DecodeError, RecursionError):
        return _with_other_bytes(data, draw)
    found = _with_other_value(value, draw, nests=False)
    try:
        made = msgspec.msgpack.encode(found)
    except (OverflowError, TypeError, ValueError, msgspec.MsgspecError, RecursionError):
        return _with_other_bytes(data, draw)
    return made.replace(b"\xc0", b"\x91" * draw.choice(DEPTHS) + b"\xc0", draw.random() < 0.05)


def _with_other_value(value: Any, draw: random.Random, *, nests: bool = True) -> Any:
    """A copy with one change somewhere."""
    whole = [copy.deepcopy(value)]
    places = list(_places(whole))
    telling = [one for one in places if _is_telling(one[0][one[1]])]
    for _ in range(10):
        inside, key = draw.choice(telling if telling and draw.random() < 0.5 else places)
        if _change(inside, key, draw, places, nests=nests):
            break
    return whole[0] if whole else None


def _is_telling(value: Any) -> bool:
    """Whether a value is a number, or a list or a text of some: a count, a shape, an axis."""
    if isinstance(value, list):
        return all(type(one) is int for one in value)
    if isinstance(value, str):
        return value.strip("([ ").lstrip("-")[:1].isdigit()
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a nested value: what holds it, and its key there."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        keys: Any = one.keys() if isinstance(one, dict) else range(len(one))
        for key in keys:
            yield one, key
            if isinstance(one[key], (dict, list)):
                waiting.append(one[key])


def _change(
    inside: Any, key: Any, draw: random.Random, places: Sequence[Any], *, nests: bool
) -> bool:
    """Change what is at a place; false where there was nothing to change."""
    before = inside[key]
    kind = draw.randrange(12)
    if kind < 5:
        inside[key] = _other(before, draw)
    elif kind == 5:
        inside[key] = draw.choice(STRANGE)
    elif kind == 6 and isinstance(inside, dict):
        del inside[key]
    elif kind == 7 and isinstance(inside, list) and len(inside) < 200:
        inside[key : key + 1] = [before] * draw.choice((0, 2, 2, 50))
    elif kind == 8 and nests:
        opening, closing = draw.choice((("[", "]"), ('{"x": ', "}"), ('{"complex": [1, ', "]}")))
        inside[key] = _Nested(before, opening, closing, draw.choice(DEPTHS))
    elif kind == 9:
        other, at = draw.choice(places)
        alike = type(other[at]) is type(before) and not isinstance(before, (dict, list))
        inside[key] = other[at] if alike else before
        return alike
    elif kind == 10 and isinstance(inside, list):
        draw.shuffle(inside)
    elif kind == 11 and isinstance(inside, dict):
        other = draw.choice(list(inside))
        inside[key], inside[other] = inside[other], inside[key]
    else:
        return False
    return True


def _other(value: Any, draw: random.Random) -> Any:
    """Another value that looks like ``value``."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return draw.choice(NUMBERS)
    if isinstance(value, str):
        return _with_other_words(value.encode(), draw).decode(errors="replace")
    if isinstance(value, list):
        if all(isinstance(one, int) for one in value):
            return [draw.choice(NUMBERS) for _ in range(draw.randrange(5))]
        return value[: draw.randrange(len(value) + 1)]
    return draw.choice(STRANGE)


def _with_other_words(data: bytes, draw: random.Random) -> bytes:
    """A text with another word or number somewhere."""
    text = data.decode(errors="replace")
    words = _words(text)
    if not words:
        return draw.choice((b"", b"x", b"-1", b"9" * 400, b"(1, 2", b"1e9"))
    at = draw.randrange(len(words))
    match draw.randrange(6):
        case 0:
            words[at] = draw.choice(words)
        case 1:
            words[at] = ""
        case 2:
            words[at] = words[at] * draw.choice((2, 3, 3000))
        case 3:
            opening = draw.choice(("(", "[", "complex(", "@", "-", '"', "{"))
            words[at] = opening * draw.choice((1, 40, 3000)) + words[at]
        case _:
            numbers = [i for i, word in enumerate(words) if word[:1].isdigit()]
            at = draw.choice(numbers) if numbers else at
            words[at] = str(draw.choice(NUMBERS))
    return "".join(words).encode(errors="replace")


def _words(text: str) -> list[str]:
    """Runs of letters and digits, and what is between them."""
    found: list[str] = []
    for letter in text:
        if found and letter.isalnum() and found[-1][-1:].isalnum():
            found[-1] += letter
        else:
            found.append(letter)
    return found


# Reading ---------------------------------------------------------------------------------------


class _HangError(BaseException):
    """A file takes too long."""


def read(file: File, path: str) -> Outcome:
    """Read a file in this process, whose memory is limited."""
    names = {"data": file.data, "path": path}
    code = compile(READERS[file.kind], f"<{file.kind}>", "exec")
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            exec(code, names)  # one of the texts above
    except _HangError:
        return Outcome("hangs", f"after {CPU_SECONDS} s")
    except Exception as error:
        if any(isinstance(one, MemoryError) for one in _behind(error)):
            return Outcome("takes memory", str(error)[:300])
        wanted = ERRORS.get(file.kind, "FormatError")
        text_is_none = isinstance(error, UnicodeDecodeError) and "data.decode" in READERS[file.kind]
        if text_is_none or any(one.__name__ == wanted for one in type(error).__mro__):
            return Outcome("")
        return Outcome(type(error).__name__, str(error)[:300])
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return Outcome("")


def _behind(error: BaseException | None) -> Iterator[BaseException]:
    """An error and those in whose handling it was raised: the right error may hide another one."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def serve() -> None:
    """Read one file after the other that comes in on the standard input."""

    def hang(*_: object) -> None:
        raise _HangError

    signal.signal(signal.SIGPROF, hang)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with tempfile.TemporaryDirectory() as folder:
        while head := sys.stdin.buffer.read(8):
            kind, data = msgspec.msgpack.decode(
                sys.stdin.buffer.read(int.from_bytes(head, "little")), type=tuple[str, bytes]
            )
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            room = pages * resource.getpagesize() + (MEGABYTES << 20)
            resource.setrlimit(resource.RLIMIT_AS, (room, resource.RLIM_INFINITY))
            found = read(File(kind, data), f"{folder}/file")
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            replies.write(msgspec.msgpack.encode(found) + b"\n")
            replies.flush()


class Reader:
    """A process that reads files, made anew when it dies or has read many."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._count = 0

    def __call__(self, file: File) -> Outcome:
        """What becomes of reading ``file``."""
        if self._process is None or self._count >= PER_PROCESS:
            self.close()
            command = [sys.executable, __file__, "--serve"]
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, bufsize=0
            )
            self._count = 0
        self._count += 1
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        message = msgspec.msgpack.encode((file.kind, file.data))
        _write(self._process.stdin, len(message).to_bytes(8, "little") + message)
        ready, _, _ = select.select([self._process.stdout], [], [], WALL_SECONDS)
        line = self._process.stdout.read(1 << 16) if ready else b""
        if line:
            return msgspec.msgpack.decode(line[:-1], type=Outcome)
        self.close()
        return Outcome("dies" if ready else "hangs in one call")

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def _write(stream: Any, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[stream.write(view) :]


# Faults ----------------------------------------------------------------------------------------


def shrunk(file: File, fails: Callable[[File], bool], seconds: float = 120) -> File:
    """A smaller file that ``fails`` in the same way."""
    until, tries = time.monotonic() + seconds, 0
    smaller = True
    while smaller:
        smaller = False
        for data in _smaller(file):
            tries += 1
            if tries > TRIES or time.monotonic() > until:
                return file
            if len(data) < len(file.data) and fails(File(file.kind, data)):
                file, smaller = File(file.kind, data), True
                break
    return file


def _smaller(file: File) -> Iterator[bytes]:
    """``file`` with a part left out, large parts first."""
    if file.kind in _JSON:
        with contextlib.suppress(ValueError, RecursionError):
            whole = [json.loads(file.data)]
            places = [one for one in _places(whole) if one[0] is not whole]
            for inside, key in sorted(places, key=lambda one: -len(_written(one[0][one[1]]))):
                kept = copy.deepcopy(inside)
                del inside[key]
                yield _written(whole[0]).encode()
                inside.clear()
                inside.extend(kept) if isinstance(inside, list) else inside.update(kept)
    size = len(file.data) // 2
    while size:
        for at in range(0, len(file.data), size):
            yield file.data[:at] + file.data[at + size :]
        size //= 2


def script(file: File) -> str:
    """A script that reads ``file`` with the same limits."""
    return (
        'import os, resource\nos.environ["JAX_PLATFORMS"] = "cpu"\n'
        f"resource.setrlimit(resource.RLIMIT_CPU, ({CPU_SECONDS + 10}, {CPU_SECONDS + 10}))\n"
        "resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))\n"
        f'path = "/tmp/damaged"\ndata = {file.data!r}{READERS[file.kind]}'
    )


def campaign(seed: int, seconds: float, count: float = float("inf"), share: float = 1.0) -> int:
    """Read damaged files until the time is over; the number of different faults."""
    files, reader, faults = valid_files(share), Reader(), set[tuple[str, str]]()
    by_kind: dict[str, list[File]] = {}
    for file in files:
        by_kind.setdefault(file.kind, []).append(file)
    print(f"{len(files)} valid files of {len(by_kind)} kinds, seed {seed}", flush=True)
    until, number = time.monotonic() + seconds, 0
    try:
        while number < count and time.monotonic() < until:
            draw = random.Random(f"{seed} {number}")
            kinds = [kind for kind in by_kind for _ in range(4 if kind in _JSON else 1)]
            file = changed(draw.choice(by_kind[draw.choice(kinds)]), draw)
            number += 1
            outcome = reader(file)
            if not outcome.fault or (file.kind, outcome.fault + outcome.told[:40]) in faults:
                continue
            faults.add((file.kind, outcome.fault + outcome.told[:40]))
            _report(file, outcome, reader)
    finally:
        reader.close()
    print(f"{number} files, {len(faults)} faults")
    return len(faults)


def _report(file: File, outcome: Outcome, reader: Reader) -> None:
    slow = outcome.fault.startswith(("hangs", "dies"))
    small = shrunk(file, lambda one: reader(one).fault == outcome.fault, 300 if slow else 60)
    print(f"\n# {file.kind}: {outcome.fault}: {outcome.told}\n{script(small)}", flush=True)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve()
        return
    sys.exit(1 if campaign(given.seed, given.seconds) else 0)


if __name__ == "__main__":
    main()
