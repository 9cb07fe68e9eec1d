"""The lexer of programs as text: tokens with their positions."""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from registry.errors import FormatError
from symop.io.text import RESERVED, WORD

_TOKEN = re.compile(
    rf"""
    [ \t\r]*
    (?:
    (?P<comment>\#[^\n]*)
  | (?P<newline>\n)
  | (?P<string>"(?:[^"\\\n]|\\[^\n])*")
  | (?P<number>-inf\b|-?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)
  | (?P<word>{WORD})
  | (?P<sign>->|:=|\.\.\.|[(){{}}\[\],:=?@])
  | (?P<end>\Z)
  | (?P<other>.)
    )
    """,
    re.VERBOSE,
)


class Spot(NamedTuple):
    """A position in the text."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class Tokens:
    """A cursor over the tokens of a text.

    Attributes:
        kind: the kind of the current token.
        value: its text.
        spot: its position.
        position: the offset at which the next token begins.
    """

    def __init__(self, source: str, line: int) -> None:
        """Starts at the first token of ``source``, whose first line has number ``line``."""
        self.source = source
        self.position, self.line, self.line_start, self.depth = 0, line, 0, 0
        self.kind, self.value = "", ""
        self.spot = Spot(1, 1)
        self.advance()

    def advance(self) -> str:
        """Moves to the next token; returns the text of the previous one."""
        before = self.value
        while True:
            match = _TOKEN.match(self.source, self.position)
            assert match is not None
            self.kind = match.lastgroup or ""
            self.value = match[self.kind]
            self.spot = Spot(self.line, match.start(self.kind) - self.line_start + 1)
            self.position = match.end()
            if self.kind == "newline":
                self.line, self.line_start = self.line + 1, self.position
            # Inside parentheses a line may be broken anywhere.
            if not self.depth or self.kind not in ("newline", "comment"):
                break
        if self.kind == "other":
            self.fail(f"{self.value!r} has no meaning here")
        self.depth += (self.value in ("(", "[")) - (self.value in (")", "]"))
        return before

    def fail(self, message: str, spot: Spot | None = None) -> NoReturn:
        """Raises ``FormatError`` for the text at ``spot``, or for the current token."""
        raise FormatError(f"{spot or self.spot}: {message}")

    def expected(self, what: str) -> NoReturn:
        """Raises ``FormatError`` because the current token is not ``what``."""
        got = "the end of the text" if self.kind == "end" else repr(self.value)
        self.fail(f"{what} must stand here, got {got}")

    def at(self, sign: str) -> bool:
        """Whether the current token is ``sign``."""
        return self.kind in ("sign", "word") and self.value == sign

    def take(self, sign: str) -> bool:
        """Skips ``sign`` if it is the current token; returns whether it was."""
        if not self.at(sign):
            return False
        self.advance()
        return True

    def need(self, sign: str) -> None:
        """Skips ``sign``, which must be the current token."""
        if not self.take(sign):
            self.expected(repr(sign))

    def listed(self, end: str) -> Iterator[None]:
        """Iterates over comma-separated items up to ``end``; a trailing comma is allowed."""
        while not self.take(end):
            yield
            if not self.take(","):
                self.need(end)
                return

    # Names and types

    def name(self) -> str:
        """Reads a name, quoted or not."""
        if self.kind == "string":
            return self.string()
        if self.kind != "word" or self.value in RESERVED:
            self.expected("a name")
        return self.advance()

    def string(self) -> str:
        """Reads a quoted string."""
        try:
            result: str = json.loads(self.value)
        except ValueError:
            self.fail("the string has an escape that JSON does not have")
        self.advance()
        return result

    def integer(self) -> int:
        """Reads a non-negative integer."""
        if self.kind != "number" or not self.value.isdecimal():
            self.expected("a whole number")
        return int(self.number())

    def number(self) -> int | float:
        """Reads a number, as an integer if it is written as one."""
        spot, word = self.spot, self.advance()
        try:
            return int(word) if word.lstrip("-").isdecimal() else float(word)
        except ValueError:
            self.fail("the number is too long", spot)

    def lengths(self) -> list[int] | None:
        """Reads a shape in brackets; returns None for an unknown shape."""
        self.need("[")
        if self.take("?"):
            self.need("]")
            return None
        return [self.integer() for _ in self.listed("]")]
