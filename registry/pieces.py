"""Pieces: what operators that cut arrays apart or join them say of the cuts, as data.

A pass that gathers many like pieces into one array asks for them, and never names an operator.
"""

from typing import NamedTuple

from registry.var import Var


class Piece(NamedTuple):
    """One output as a piece of the only input: the entries ``start : start + length`` of an axis.

    Attributes:
        axis: along which it is cut, counted from the front.
        start: its first entry.
        length: how many entries it has.
        kept: whether the output keeps the axis; if not, the length is 1.
    """

    axis: int
    start: int
    length: int
    kept: bool


class Part(NamedTuple):
    """What some neighboring inputs of an operator that joins its inputs are.

    Attributes:
        value: the input; or, for several of them, the array in which they lie stacked along a new
            first axis.
        several: whether it is the latter.
    """

    value: Var
    several: bool
