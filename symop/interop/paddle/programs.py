"""Programs of Paddle: their records, and conversions to symop's graphs."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import symop as so
from symop.interop.paddle.compiling import Type, translate
from symop.interop.paddle.framework import ProgramDesc, serialize


class Program:
    """A program of Paddle, loaded or built.

    Attributes:
        desc: its records.
        max_steps: the largest number of steps of loops whose number of steps is not known when the
            program is compiled; loops with gradients need one.
    """

    def __init__(self, desc: ProgramDesc, *, max_steps: int | None = None) -> None:
        """Wraps the records of a program."""
        self.desc = desc
        self.max_steps = max_steps

    def fingerprint(self) -> bytes:
        """Returns a digest of the records, by which compiled programs are found again."""
        return hashlib.sha256(serialize(self.desc)).digest()

    def to_symbol(
        self, fetch: Sequence[str], types: Mapping[str, tuple[Sequence[int], Any]]
    ) -> so.Symbol:
        """Returns variables of the program as a graph of its feeds and persistable variables.

        Args:
            fetch: names of variables.
            types: shape and dtype of each feed and of each persistable variable that is read.
        """
        known = {name: Type(tuple(shape), dtype) for name, (shape, dtype) in types.items()}
        return so.Group(translate(self.desc, {}, known, fetch, self.max_steps).fetched)
