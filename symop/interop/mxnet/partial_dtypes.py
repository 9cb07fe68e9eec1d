"""Partially known dtypes, and rules by which the inputs and outputs of a call determine each other.

None is unknown. A rule completes two lists in place, of dtypes of inputs and of outputs; remaining
dtypes are determined by the call itself, once all inputs are known.
"""

import functools
from collections.abc import Callable, Iterable

from registry.shapes import canonical
from registry.types import DType, as_dtype
from symop.interop.mxnet.errors import MXNetError

Dtypes = list[DType | None]
Rule = Callable[[Dtypes, Dtypes], None]


def agreed(dtypes: Iterable[DType | None]) -> DType | None:
    """The common dtype of ``dtypes``, or None if all are unknown.

    Raises:
        MXNetError: they contradict each other.
    """
    result: DType | None = None
    for one in dtypes:
        # Names are compared because NumPy treats None as float64.
        if result is None:
            result = one
        elif one is not None and _name(one) != _name(result):
            raise MXNetError(f"dtypes must agree, got {result.name} and {one.name}")
    return result


def names(dtypes: Iterable[DType | None]) -> list[str | None]:
    """The names of dtypes, which can be compared."""
    return [None if one is None else _name(one) for one in dtypes]


@functools.cache
def _name(dtype: DType) -> str:
    """The name of a dtype, which NumPy composes anew in each call."""
    return dtype.name


def same(given: Dtypes, found: Dtypes) -> None:
    """All inputs and outputs have the same dtype."""
    dtype = agreed((*given, *found))
    given[:], found[:] = [dtype] * len(given), [dtype] * len(found)


def same_inputs(given: Dtypes, found: Dtypes) -> None:
    """All inputs have the same dtype, which outputs need not share."""
    del found
    given[:] = [agreed(given)] * len(given)


def free(given: Dtypes, found: Dtypes) -> None:
    """Only the call determines dtypes."""
    del given, found


def told(given: Dtypes, found: Dtypes, dtype: str | None) -> None:
    """The first output has the dtype named by an attribute."""
    del given
    if dtype is not None:
        found[0] = agreed((found[0], canonical(as_dtype(dtype))))


def alike(*places: int) -> Rule:
    """The rule that the inputs at ``places`` and all outputs have the same dtype."""

    def rule(given: Dtypes, found: Dtypes) -> None:
        dtype = agreed((*[given[i] for i in places], *found))
        for i in places:
            given[i] = dtype
        found[:] = [dtype] * len(found)

    return rule


like_data = alike(0)
"""The first input and all outputs have the same dtype, other inputs any."""


def whole_at(place: int, rule: Rule) -> Rule:
    """``rule``, with int32 as the default dtype of the input at ``place``."""

    def both(given: Dtypes, found: Dtypes) -> None:
        rule(given, found)
        given[place] = as_dtype("int32") if given[place] is None else given[place]

    return both


def labeled(given: Dtypes, found: Dtypes) -> None:
    """As ``like_data``, with the same dtype as the default of other inputs, such as labels."""
    like_data(given, found)
    given[1:] = [given[0] if one is None else one for one in given[1:]]
