"""The parser of programs as text: ``parse(text(outputs))`` is the same graph; see ``text``."""

import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from registry.desc import SUB_BLOCK, BlockDesc, OpDesc, ProgramDesc, VarDesc
from registry.errors import SymopError
from registry.operator.attributes import dtype_named, to_plain
from registry.operator.operator import Operator
from registry.table import get
from symop.graph.nodes import ARRAY, CONSTANT, TRAINING, Node
from symop.io.definitions import Place
from symop.io.lexer import Spot, Tokens
from symop.io.rebuilding import fetch, rebuild
from symop.io.records import INPUTS, LEAVES, ArrayAttrs, ConstantAttrs
from symop.io.text import (
    BECOMES,
    DEFAULT_FLOAT,
    GRADIENT,
    STOP,
    SUB_BLOCK_SIGN,
    WORD,
    looks_automatic,
)

_ASSIGNS = re.compile(r"\s*=")
_CONSTANTS = {"True": True, "False": False, "inf": float("inf"), "nan": float("nan")}
_DEPTH_LIMIT = 32
_SHOWN_FILE = "<text>"


class Parsed(NamedTuple):
    """A parsed program.

    Attributes:
        desc: its records.
        places: functions that describe the location of a record, for each block.
        check: raises if a value is not of its annotated type.
    """

    desc: ProgramDesc
    places: list[Place]
    check: Callable[[Mapping[str, Node]], None]


def parse_records(text: str) -> Parsed:
    """Parses a printed program into records.

    Raises:
        FormatError: the text is not a valid program; the message gives the line and the column.
    """
    pieces = re.split(rf"(?m)^(?={SUB_BLOCK_SIGN})", text)
    parsers, line = [], 1
    for number, piece in enumerate(pieces):
        parser = _Parser(piece, line)
        if number:
            parser.numbered(number)
        parser.program()
        parsers.append(parser)
        line += piece.count("\n")
    descs = [parser.desc() for parser in parsers]
    for desc in descs[1:]:
        desc.blocks[0].parent, desc.blocks[0].fetch = 0, desc.fetch
    whole = ProgramDesc(blocks=[desc.blocks[0] for desc in descs], fetch=descs[0].fetch)
    return Parsed(whole, [parser.place for parser in parsers], parsers[0].check)


def parse(text: str) -> list[Node]:
    """Returns the outputs of the graph printed as ``text``; existing nodes are shared.

    Raises:
        FormatError: the text is not a valid program; the message gives the line and the column.
    """
    return parse_graph(text)[0]


def parse_graph(text: str) -> tuple[list[Node], list[Node]]:
    """Returns the outputs of the graph printed as ``text``, and all its variables in order.

    Raises:
        FormatError: the text is not a valid program; the message gives the line and the column.
    """
    desc, places, check = parse_records(text)
    values = rebuild(desc, places[0], places)
    check(values)
    variables = [values[var.name] for var in desc.blocks[0].vars]
    return fetch(desc, values, places[0]), variables


class _Parser(Tokens):
    """Parses a program into records, and keeps the position of each."""

    def __init__(self, source: str, line: int) -> None:
        self.vars: list[VarDesc] = []
        self.ops: list[OpDesc] = []
        self.fetch: list[str] = []
        self.updates: dict[str, str] = {}
        self.spots: dict[str, list[Spot]] = {"vars": [], "ops": [], "fetch": []}
        self.inline: dict[str, str] = {}
        self.renamed: dict[str, str] = {}
        self.annotations: list[tuple[str, str, Spot]] = []
        self.mark: str | None = None
        super().__init__(source, line)

    # The program

    def program(self) -> None:
        self.blank_lines()
        self.need("(")
        for _ in self.listed(")"):
            self.variable()
        self.need("{")
        while not self.take("}"):
            self.statement()
        self.need("->")
        while self.kind not in ("newline", "end"):
            self.spots["fetch"].append(self.spot)
            self.fetch.append(self.operand())
            if not self.take(","):
                break
        self.blank_lines()
        if self.kind != "end":
            self.expected("the end of the text")

    def numbered(self, number: int) -> None:
        """Parses the sign and the number that begin an additional block."""
        self.need(SUB_BLOCK_SIGN)
        spot = self.spot
        if self.integer() != number:
            self.fail(f"block {number} must stand here", spot)

    def blank_lines(self) -> None:
        while self.kind in ("newline", "comment"):
            self.advance()

    def variable(self) -> None:
        self.spots["vars"].append(self.spot)
        first = self.name()
        named = self.kind in ("word", "string")
        role, name = (first, self.name()) if named else ("argument", first)
        var = VarDesc(name, role=role)
        if self.take(":"):
            if self.kind != "word":
                self.expected("a dtype")
            dtype = self.advance()
            if self.kind == "word":
                var.kind, dtype = dtype, self.advance()
            var.dtype = None if dtype == DEFAULT_FLOAT else dtype
            var.shape = self.lengths()
        if self.take("{"):
            for _ in self.listed("}"):
                key = self.name()
                if key == STOP and not self.at("="):
                    var.stop_gradient = True
                    continue
                self.need("=")
                if self.kind != "string":
                    self.expected("a string")
                var.attrs[key] = self.string()
        self.vars.append(var)

    def statement(self) -> None:
        """Parses a line: a call, a comment, or an empty line, which ends a paragraph."""
        if self.kind == "comment":
            comment = self.advance()
            if comment.startswith(GRADIENT):
                self.mark = _unquoted(comment.removeprefix(GRADIENT).strip())
            self.end_of_line()
        elif self.kind == "newline":
            self.advance()
            if self.kind == "newline":
                self.mark = None
        else:
            self.call()
            if self.kind == "comment":
                self.advance()
            self.end_of_line()

    def end_of_line(self) -> None:
        if self.kind == "newline":
            # The next statement consumes the newline, to detect whether an empty line follows.
            return
        if not self.at("}"):
            self.expected("the end of the line")

    def targets(self) -> tuple[list[str], bool]:
        """Parses the names that a call defines (none for an update); and whether one is quoted."""
        quoted = self.kind == "string"
        spot, names = self.spot, [self.target()]
        if self.take(BECOMES):
            self.becomes(names[0], spot)
            return [], quoted
        while self.take(","):
            names.append(self.target())
        self.need("=")
        return names, quoted

    def target(self) -> str:
        if self.take("_"):
            return ""
        name = self.name()
        if self.take(":"):
            spot, words = self.spot, []
            while self.kind == "word":
                words.append(self.advance())
            shape = ",".join(map(str, self.lengths() or []))
            self.annotations.append((name, f"{' '.join(words)}[{shape}]", spot))
        if self.take("{"):
            spot = self.spot
            if self.name() != STOP:
                self.fail(f"{STOP} must stand here", spot)
            self.need("}")
            self.spots["vars"].append(spot)
            self.vars.append(VarDesc(name, stop_gradient=True))
        return name

    def becomes(self, state: str, spot: Spot) -> None:
        """Parses an update: the value that a variable holds after a run."""
        if state in self.updates:
            self.fail(f"{state!r} must be updated once, got it twice", spot)
        self.updates[state] = self.operand()

    def call(self) -> None:
        spot = self.spot
        names, quoted = self.targets()
        if not names:
            return
        kind_spot, kind = self.spot, self.name()
        op = OpDesc(kind, site=f"{_SHOWN_FILE}:{spot.line}", gradient_of=self.mark)
        keys = [str(self.integer()) for _ in self.listed("]")] if self.take("[") else ["out"]
        self.need("(")
        if kind == ARRAY.name:
            op.attrs = msgspec.to_builtins(self.array())
        elif kind in LEAVES:
            operands = self.arguments(op)
            if operands:
                op.inputs = {INPUTS: [name for name in operands if name is not None]}
        else:
            operator = self.operator(kind, len(names), kind_spot)
            keys = list(operator.outputs)
            op.inputs = self.slots(operator, self.arguments(op), kind_spot)
            op.name = _name_of_label(names[0], quoted, operator) if names[0] else None
        if len(names) != len(keys):
            self.fail(f"{kind} must have {len(keys)} outputs, got {len(names)} names", spot)
        op.outputs = {k: [name] if name else [] for k, name in zip(keys, names, strict=True)}
        self.add(op, spot)

    def add(self, op: OpDesc, spot: Spot) -> None:
        self.ops.append(op)
        self.spots["ops"].append(spot)

    def operator(self, name: str, count: int, spot: Spot) -> Operator:
        """Returns the operator called ``name``, sized for a call with ``count`` outputs."""
        try:
            return get(name).sized(count)
        except SymopError as error:
            self.fail(str(error), spot)

    def slots(
        self, operator: Operator, operands: Sequence[str | None], spot: Spot
    ) -> dict[str, list[str]]:
        if len(operands) > operator.n_fixed and not operator.variadic:
            self.fail(
                f"{operator.name} must have at most {operator.n_fixed} inputs, got {len(operands)}",
                spot,
            )
        groups = operator.input_groups(operands)
        return {slot.name: list(names) for slot, names in groups if names}

    def arguments(self, op: OpDesc) -> list[str | None]:
        """Parses the inputs of a call; stores its attributes in ``op``."""
        operands: list[str | None] = []
        for _ in self.listed(")"):
            if self.kind == "word" and _ASSIGNS.match(self.source, self.position):
                spot, key = self.spot, self.advance()
                self.need("=")
                if key in op.attrs:
                    self.fail(f"the attribute {key!r} must be given once, got it twice", spot)
                op.attrs[key] = self.attribute()
            elif op.attrs:
                self.fail("an input must stand before the attributes")
            else:
                operands.append(None if self.take("None") else self.operand())
        return operands

    def attribute(self, depth: int = 0) -> Any:
        """Parses a value into its JSON form."""
        if depth > _DEPTH_LIMIT:
            self.fail("the value nests too deeply")
        if self.take("("):
            return [self.attribute(depth + 1) for _ in self.listed(")")]
        if self.kind == "string":
            return self.string()
        if self.take(SUB_BLOCK_SIGN):
            return {SUB_BLOCK: self.integer()}
        if self.take("None"):
            return None
        if self.kind == "word" and self.value not in (*_CONSTANTS, "complex"):
            return {"dtype": self.advance()}
        return to_plain(self.scalar())

    def scalar(self) -> bool | int | float | complex:
        if self.kind == "number":
            return self.number()
        if self.kind == "word" and self.value in _CONSTANTS:
            return _CONSTANTS[self.advance()]
        self.need("complex")
        self.need("(")
        parts = [self.part() for _ in self.listed(")")]
        if len(parts) != 2:
            self.fail("a complex number must have two parts")
        return complex(*parts)

    def part(self) -> float:
        """Parses a part of a complex number."""
        if self.at("complex"):
            self.expected("a real number")
        try:
            return float(self.scalar().real)
        except OverflowError:
            self.fail("the number is too large")

    def operand(self) -> str:
        """Parses an input and returns its name; a literal gets its own record."""
        spot = self.spot
        if self.kind == "number" or (self.kind == "word" and self.value in _CONSTANTS):
            return self.inlined(CONSTANT.name, ConstantAttrs(to_plain(self.scalar())), spot)
        if self.take("training"):
            return self.inlined(TRAINING.name, None, spot)
        if self.kind == "word" and self.source.startswith("(", self.position):
            return self.inlined(CONSTANT.name, ConstantAttrs(to_plain(self.scalar())), spot)
        is_word, word = self.kind == "word", self.name()
        if is_word and (self.at("[") or self.kind == "word"):
            return self.inlined(CONSTANT.name, self.filled(word), spot)
        return word

    def filled(self, word: str) -> ConstantAttrs:
        """Parses ``float32[3](1.0)`` after its first word; a kind may precede the dtype."""
        kind, dtype = (word, self.name()) if self.kind == "word" else ("lod_tensor", word)
        shape = self.lengths() or []
        self.need("(")
        value = to_plain(self.scalar())
        self.need(")")
        return ConstantAttrs(value, dtype, shape, kind)

    def inlined(self, kind: str, attrs: ConstantAttrs | None, spot: Spot) -> str:
        plain = {} if attrs is None else msgspec.to_builtins(attrs)
        key = f"{kind} {json.dumps(plain)}"
        if key not in self.inline:
            # No name in a printed text begins with this character.
            self.inline[key] = f"\0{len(self.inline)}"
            self.add(OpDesc(kind, outputs={"out": [self.inline[key]]}, attrs=plain), spot)
        return self.inline[key]

    def array(self) -> ArrayAttrs:
        """Parses the contents of ``array(...)``: dtype, shape and entries."""
        spot, name = self.spot, self.name()
        shape = self.lengths() or []
        try:
            dtype = dtype_named(name)
        except ValueError as error:
            self.fail(str(error), spot)
        entries: list[Any] = []
        if not self.take(","):
            self.need(")")
        elif self.take("..."):
            self.need(")")
            return ArrayAttrs(name, shape)
        else:
            entries = [self.scalar() for _ in self.listed(")")]
        try:
            return ArrayAttrs(name, shape, np.asarray(entries, dtype).tobytes())
        except (TypeError, ValueError, OverflowError) as error:
            self.fail(f"the entries must be of dtype {name}; {error}", spot)

    # Building

    def place(self, part: str, index: int) -> str:
        return str(self.spots[part][index])

    def desc(self) -> ProgramDesc:
        """Returns the parsed records; literals get unused names."""
        names = {one for op in self.ops for given in op.outputs.values() for one in given}
        names |= {var.name for var in self.vars}
        numbers = itertools.count()
        for inline in self.inline.values():
            free = next(one for one in map("constant{}".format, numbers) if one not in names)
            self.renamed[inline] = free
        for op in self.ops:
            for groups in (op.inputs, op.outputs):
                for key, given in groups.items():
                    groups[key] = [self.renamed.get(one, one) for one in given]
        self.fetch = [self.renamed.get(one, one) for one in self.fetch]
        self.updates = {key: self.renamed.get(one, one) for key, one in self.updates.items()}
        block = BlockDesc(vars=self.vars, ops=self.ops, updates=self.updates)
        return ProgramDesc(blocks=[block], fetch=self.fetch)

    def check(self, values: Mapping[str, Node]) -> None:
        for name, shown, spot in self.annotations:
            types = values[name].types
            if types is None or str(types[0]) != shown:
                got = "a type that is not known yet" if types is None else str(types[0])
                self.fail(f"{name!r} must be of the type that is written, {shown}, got {got}", spot)


def _unquoted(shown: str) -> str:
    try:
        return str(json.loads(shown)) if shown.startswith('"') else shown
    except ValueError:
        return shown


def _name_of_label(label: str, quoted: bool, operator: Operator) -> str | None:
    """Returns the user's name for a call, from that of its first output; None if automatic."""
    base = label
    if not operator.single:
        match = re.fullmatch(rf"(.+)\.{re.escape(operator.outputs[0])}_*", label, re.DOTALL)
        base = label if match is None else match[1]
    if not looks_automatic(base, operator.name):
        return base
    # The automatic name of an operator whose own name is not a word is quoted, too.
    return base if quoted and re.fullmatch(WORD, operator.name) else None
