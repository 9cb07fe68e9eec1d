"""Tokens of programs as text, one after the other, each with its place."""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from registry.errors import FormatError
from symop.text import RESERVED, WORD

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
    """A place in the text."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class Tokens:
    """Goes through a text token by token.

    Attributes:
        kind: of the token that stands here.
        value: its text.
        spot: its place.
        position: where the next token begins.
    """

    def __init__(self, source: str, line: int) -> None:
        """Stand at the first token of ``source``, which begins at ``line``."""
        self.source = source
        self.position, self.line, self.line_start, self.depth = 0, line, 0, 0
        self.kind, self.value = "", ""
        self.spot = Spot(1, 1)
        self.advance()

    def advance(self) -> str:
        """Go to the next token; returns the text of the one before."""
        before = self.value
        while True:
            found = _TOKEN.match(self.source, self.position)
            assert found is not None
            self.kind = found.lastgroup or ""
            self.value = found[self.kind]
            self.spot = Spot(self.line, found.start(self.kind) - self.line_start + 1)
            self.position = found.end()
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
        """Refuse the text, for what stands at ``spot`` or here."""
        raise FormatError(f"{spot or self.spot}: {message}")

    def expected(self, what: str) -> NoReturn:
        """Refuse the token that stands here, where ``what`` must."""
        got = "the end of the text" if self.kind == "end" else repr(self.value)
        self.fail(f"{what} must stand here, got {got}")

    def at(self, sign: str) -> bool:
        """Whether ``sign`` stands here."""
        return self.kind in ("sign", "word") and self.value == sign

    def take(self, sign: str) -> bool:
        """Go past ``sign`` if it stands here."""
        if not self.at(sign):
            return False
        self.advance()
        return True

    def need(self, sign: str) -> None:
        """Go past ``sign``, which must stand here."""
        if not self.take(sign):
            self.expected(repr(sign))

    def listed(self, end: str) -> Iterator[None]:
        """Go through items that commas separate, up to ``end``; a comma may end the list."""
        while not self.take(end):
            yield
            if not self.take(","):
                self.need(end)
                return

    # Names and types

    def name(self) -> str:
        """Read a name, in quotes or not."""
        if self.kind == "string":
            return self.string()
        if self.kind != "word" or self.value in RESERVED:
            self.expected("a name")
        return self.advance()

    def string(self) -> str:
        """Read a string in quotes."""
        try:
            found: str = json.loads(self.value)
        except ValueError:
            self.fail("the string has an escape that JSON does not have")
        self.advance()
        return found

    def integer(self) -> int:
        """Read a whole number from zero on."""
        if self.kind != "number" or not self.value.isdecimal():
            self.expected("a whole number")
        return int(self.number())

    def number(self) -> int | float:
        """Read a number, which is whole if it is written so."""
        spot, word = self.spot, self.advance()
        try:
            return int(word) if word.lstrip("-").isdecimal() else float(word)
        except ValueError:
            self.fail("the number is too long", spot)

    def lengths(self) -> list[int] | None:
        """A shape in brackets; None for an unknown one."""
        self.need("[")
        if self.take("?"):
            self.need("]")
            return None
        return [self.integer() for _ in self.listed("]")]
