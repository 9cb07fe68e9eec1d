"""Compiled graphs: XLA's own analysis, its instructions by label, and a profile of them."""

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from registry.errors import FormatError
from symop.io.files import PathLike
from symop.lowering.labels import label_in

_BITS = {
    **{"pred": 8, "s2": 2, "u2": 2, "s4": 4, "u4": 4, "s8": 8, "u8": 8, "s16": 16, "u16": 16},
    **{"s32": 32, "u32": 32, "s64": 64, "u64": 64, "bf16": 16, "f16": 16, "f32": 32, "f64": 64},
    **{"c64": 64, "c128": 128},
}
_SHAPE = re.compile(r"\b([a-z]+[0-9]*(?:e[0-9]m[0-9]\w*)?)\[([0-9,]*)\]")
_HEAD = re.compile(r"^(?:ENTRY )?%?([\w.-]+) (?:\(.*)?\{$")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?([\w.-]+) = (.*?) ([a-z][\w-]*)\((.*?)\)(?:, (.*))?$")
_OP_NAME = re.compile(r'op_name="([^"]*)"')
_INSIDE = re.compile(
    r"(?:body|condition|to_apply|branch_computations|calls)=\{?%?([\w.-]+(?:, ?%[\w.-]+)*)"
)
_TRIPS = re.compile(r'"known_trip_count":\{"n":"([0-9]+)"\}')
_CONTAINERS = ("while", "conditional", "call")
"""Instructions that run others; the time of one contains that of the others."""
_FREE = ("parameter", "constant", "tuple", "get-tuple-element", "bitcast", *_CONTAINERS)


class Compiled(NamedTuple):
    """XLA's analysis of the compiled function; None where a backend has none.

    Attributes:
        flops: floating-point operations and transcendental functions; of a loop, one step counts.
        bytes: the bytes that its instructions read and write.
        arguments: the size of the arguments, in bytes.
        outputs: the size of the results, in bytes, without those that reuse arguments.
        temporaries: the size of the memory for everything else, in bytes.
        code: the number of instructions that compute something.
    """

    flops: float | None
    bytes: float | None
    arguments: int | None
    outputs: int | None
    temporaries: int | None
    code: int


class Instruction(NamedTuple):
    """An instruction of the compiled function.

    Attributes:
        name: its name, which profiles show.
        label: the label of the operator that it computes; None for others.
        moved: the bytes that it reads and writes in one call of the function.
        contains: whether it runs other instructions.
    """

    name: str
    label: str | None
    moved: int
    contains: bool


def analysis_of(executable: Any, instructions: Mapping[str, Instruction]) -> Compiled:
    """Returns XLA's analysis of an executable of JAX."""
    costs = executable.cost_analysis()
    costs = costs[0] if isinstance(costs, list) else costs or {}
    memory = executable.memory_analysis()
    known = "flops" in costs or "transcendentals" in costs
    flops = costs.get("flops", 0.0) + costs.get("transcendentals", 0.0)
    return Compiled(
        flops if known else None,
        costs.get("bytes accessed"),
        None if memory is None else memory.argument_size_in_bytes,
        None if memory is None else memory.output_size_in_bytes - memory.alias_size_in_bytes,
        None if memory is None else memory.temp_size_in_bytes,
        sum(not one.contains for one in instructions.values()),
    )


# The text of a compiled program ------------------------------------------------------------------


class _Line(NamedTuple):
    name: str
    size: int
    opcode: str
    operands: list[str]
    rest: str


def instructions_of(text: str) -> dict[str, Instruction]:
    """Returns the instructions that an executable runs, by name, from the text of its program.

    Those inside of fusions are not listed, since they run as one.
    """
    computations, entry = _computations(text)
    return {one.name: one for one in _run_in(computations, entry, 1)}


def _computations(text: str) -> tuple[dict[str, list[_Line]], str]:
    """Returns the lines of each computation by its name, and the name of the first to run."""
    computations: dict[str, list[_Line]] = {}
    entry = name = ""
    for line in text.splitlines():
        head = _HEAD.match(line)
        if head is not None:
            name = head[1]
            computations[name] = []
            entry = name if line.startswith("ENTRY") else entry
            continue
        match = _INSTRUCTION.match(line)
        if match is not None and name:
            own, shape, opcode, operands, rest = match.groups()
            reads = re.findall(r"%([\w.-]+)", operands)
            computations[name].append(_Line(own, size_of(shape), opcode, reads, rest or ""))
    return computations, entry


def size_of(shape: str) -> int:
    """Returns the size in bytes of a shape as XLA writes it, such as ``f32[8,4]{1,0}``."""
    total = 0
    for dtype, lengths in _SHAPE.findall(shape):
        count = 1
        for length in lengths.split(",") if lengths else []:
            count *= int(length)
        bits = 8 if dtype.startswith("f8") else _BITS.get(dtype, 0)
        total += -(-count * bits // 8)
    return total


def _run_in(
    computations: Mapping[str, list[_Line]], name: str, times: int
) -> Iterator[Instruction]:
    """Yields the instructions that a computation runs, with those of its loops and branches."""
    lines = computations.get(name, [])
    sizes = {line.name: line.size for line in lines}
    for line in lines:
        label = _OP_NAME.search(line.rest)
        known = None if label is None else label_in(label[1])
        contains = line.opcode in _CONTAINERS
        moved = line.size + sum(sizes.get(one, 0) for one in line.operands)
        if line.opcode not in _FREE or contains:
            moved = 0 if contains else moved * times
            yield Instruction(line.name, known, moved, contains)
        if contains:
            trips = _TRIPS.search(line.rest)
            inside = times * (int(trips[1]) if trips is not None else 1)
            for names in _INSIDE.findall(line.rest):
                for one in re.findall(r"[\w.-]+", names):
                    yield from _run_in(computations, one, inside)


def module_of(text: str) -> str:
    """Returns the name of a compiled program, as profiles show it."""
    match = re.match(r"HloModule ([\w.-]+)", text)
    return match[1] if match is not None else ""


def moved_by_label(instructions: Mapping[str, Instruction]) -> dict[str | None, int]:
    """Returns the bytes that instructions read and write, by label."""
    result: dict[str | None, int] = defaultdict(int)
    for one in instructions.values():
        result[one.label] += one.moved
    return dict(result)


# Profiles ----------------------------------------------------------------------------------------


def seconds_by_label(
    path: PathLike, instructions: Mapping[str, Instruction], module: str
) -> dict[str | None, float]:
    """Returns the measured time of one run, by label, from a profile of ``jax.profiler``.

    Args:
        path: the folder given to ``jax.profiler.trace``, or its file ``*.trace.json.gz``.
        instructions: the instructions of the compiled function.
        module: its name in profiles.

    Raises:
        FormatError: there is no profile, or it contains no run of the function.
        OSError: the file cannot be read.
    """
    spent: dict[str | None, float] = defaultdict(float)
    runs: set[Any] = set()
    for event in _events(_newest(path)):
        known = instructions.get(event["args"]["hlo_op"])
        if known is not None and event["args"].get("hlo_module") == module:
            runs.add(event["args"].get("run_id"))
            if not known.contains:
                spent[known.label] += event.get("dur", 0.0) * 1e-6
    if not runs:
        raise FormatError(
            f"explain: the profile must contain a run of the function, {module}, got none in {path}"
        )
    return {label: seconds / len(runs) for label, seconds in spent.items()}


def _newest(path: PathLike) -> Path:
    place = Path(path)
    if not place.is_dir():
        return place
    files = sorted(place.rglob("*.trace.json.gz"), key=lambda one: one.stat().st_mtime)
    if not files:
        raise FormatError(f"explain: the folder must contain *.trace.json.gz, got none in {path}")
    return files[-1]


def _events(file: Path) -> Iterator[dict[str, Any]]:
    """Yields the events of instructions."""
    try:
        events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    except (ValueError, KeyError, TypeError, EOFError, gzip.BadGzipFile) as error:
        raise FormatError(f"explain: {file} must be a profile of JAX, got {error}") from error
    for event in events:
        if isinstance(event, dict) and "hlo_op" in event.get("args", {}):
            yield event
