"""Calls of bodies without duplicates: equal operands are one operand, equal results one result.

Derivatives make duplicates. The tangent of a loop reads the series that the loop and its tangents
read, and the second tangent reads each of them twice: by the product rule, the derivative of the
body reads what the body read, once for each factor. Without merging, operands double with each
order; with it, a derivative of order ``n`` has as many as a Taylor series of ``n`` terms.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from registry.operator.bodies import Body, Places, firsts


class Merging(NamedTuple):
    """Which operands and results of a call are kept.

    Attributes:
        same: for each operand the first one that is equal to it.
        results: for each result the first one that is equal to it.
    """

    same: Places
    results: Places

    @property
    def operands(self) -> Places:
        """The indices of the operands that are kept."""
        return distinct(self.same)

    def body(self, body: Body) -> Body:
        """Returns ``body`` for the operands that are kept, with the results that are kept."""
        return body.identified(self.same, distinct(self.results))

    def places(self, operands: Places) -> Places:
        """Returns where the operands at these indices are among those that are kept."""
        kept = {one: i for i, one in enumerate(self.operands)}
        return tuple(dict.fromkeys(kept[self.same[i]] for i in operands))

    def every(self, values: Sequence[Any]) -> list[Any]:
        """Returns every result, for the values of those that are kept."""
        places = {result: i for i, result in enumerate(distinct(self.results))}
        return [values[places[one]] for one in self.results]


def distinct(firsts: Places) -> Places:
    """Returns the indices that are the first of their class."""
    return tuple(i for i, first in enumerate(firsts) if i == first)


def count_within(places: Places, start: int, end: int) -> int:
    """Returns how many of ``places`` lie in the range."""
    return sum(start <= one < end for one in places)


def merging(
    operands: Sequence[Any],
    body: Body,
    *others: Body,
    n_carry: int = 0,
    input_groups: Places = (),
    output_groups: Places = (),
) -> Merging | None:
    """Returns how the duplicates of a call are merged; None if it has none.

    Args:
        operands: the operands of the call, of which equal ones are one object.
        body: the body that it runs.
        others: bodies of the same operands; results are equal if they are equal in each of these.
        n_carry: the number of carries, if the call is a loop.
        input_groups: where the second and each further group of operands starts. Operands of
            different groups, such as a series and a constant, are not merged.
        output_groups: the same for results.
    """
    same = firsts([id(one) for one in operands], input_groups)
    same, *results = body.equal_values(same, n_carry)
    results += [one.equal_values(same)[1] for one in others]
    merged = Merging(same, firsts(list(zip(*results, strict=True)), output_groups))
    kept = len(merged.operands), len(distinct(merged.results))
    return None if kept == (len(operands), len(body.outputs)) else merged
