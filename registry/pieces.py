"""Slice specifications: how operators that split or join arrays cut them, as data.

A pass that gathers many similar slices into one array reads them, and never names an operator.
"""

from typing import NamedTuple

from registry.var import Var


class Piece(NamedTuple):
    """One output as a slice of the only input: the entries ``start : start + length`` of an axis.

    Attributes:
        axis: the axis that is sliced, counted from the front.
        start: index of the first entry.
        length: number of entries.
        kept: whether the output keeps the axis; if not, the length is 1.
    """

    axis: int
    start: int
    length: int
    kept: bool


class Part(NamedTuple):
    """One or several neighboring inputs of an operator that joins its inputs.

    Attributes:
        value: the input; or, for several inputs, the array in which they are stacked along a new
            first axis.
        several: whether ``value`` stacks several inputs.
    """

    value: Var
    several: bool
