"""Pieces of series over time, whose first axis is the step."""

from typing import Any

from registry.ops.getitem import getitem
from registry.ops.shape import reshape, swapped
from registry.ops.slicing import concat, pad_slice
from registry.var import Var


def before(x: Var, *, reverse: bool = False) -> Any:
    """All steps but the last one that is taken."""
    return getitem(x, slice(1, None) if reverse else slice(0, -1))


def after(x: Var, *, reverse: bool = False) -> Any:
    """All steps but the first one that is taken."""
    return before(x, reverse=not reverse)


def shifted(x: Var, first: Var | None = None, *, reverse: bool = False) -> Any:
    """At each step what ``x`` was at the step before; at the first ``first[0]``, or zero."""
    if len(x) == 0:
        return x
    rest = before(x, reverse=reverse)
    if first is None:
        begin = (0 if reverse else 1, *[0] * (x.ndim - 1))
        return pad_slice(rest, shape=x.shape, begin=begin, step=(1,) * x.ndim)
    return concat(rest, first) if reverse else concat(first, rest)


def summed_outer(x: Var, y: Var) -> Any:
    """``out[i, j] = sum over t, n of x[t, n, i] * y[t, n, j]``."""
    rows = x.shape[0] * x.shape[1]
    return swapped(reshape(x, shape=(rows, x.shape[2]))) @ reshape(y, shape=(rows, y.shape[2]))


def plus(x: Any, y: Any) -> Any:
    """The sum of two values, either of which may be None for zero."""
    if x is None or y is None:
        return y if x is None else x
    return x + y


def blocks(x: Any, count: int) -> list[Any]:
    """The last axis cut into ``count`` equal parts."""
    length = x.shape[-1] // count
    return [getitem(x, (..., slice(i * length, (i + 1) * length))) for i in range(count)]


def at_first(x: Any, *, reverse: bool) -> Any:
    """The first step that is taken, with its axis."""
    return getitem(x, slice(len(x) - 1, len(x)) if reverse else slice(0, 1))


def at_end(x: Any, like: Any, *, reverse: bool) -> Any:
    """``x`` at the last step that is taken, and zeros at the others of ``like``."""
    begin = (0 if reverse else len(like) - 1, 0, 0)
    return pad_slice(x, shape=like.shape, begin=begin, step=(1, 1, 1))
