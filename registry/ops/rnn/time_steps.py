"""Operations on time series, whose first axis is the step and whose second is the batch."""

from typing import Any, NamedTuple

from registry.ops.core.reductions import sum as sum_over
from registry.ops.core.reshaping import reshape, swapped
from registry.ops.core.slicing import concat, pad_slice
from registry.ops.indexing.getitem import getitem
from registry.var import Var


class Course(NamedTuple):
    """The order in which the steps of series are taken.

    Attributes:
        reverse: whether it runs from the last step to the first.
        taken: for sequences with lengths, ``(time, batch, 1)``, 1 at the steps of a sequence and 0
            beyond, where series are zero; None if all sequences have all steps.
    """

    reverse: bool = False
    taken: Any = None

    def own(self, x: Any) -> Any:
        """``x`` with zeros beyond a sequence's end; None is returned unchanged."""
        return x if x is None or self.taken is None else x * self.taken

    def before(self, x: Var) -> Any:
        """All steps but the last one."""
        return getitem(x, slice(1, None) if self.reverse else slice(0, -1))

    def after(self, x: Var) -> Any:
        """All steps but the first one."""
        return Course(not self.reverse).before(x)

    def first(self, x: Var) -> Any:
        """The first step, keeping its axis."""
        if self.reverse and self.taken is not None:
            return sum_over(x * self._end, axis=0, keepdims=True)
        return getitem(x, slice(len(x) - 1, len(x)) if self.reverse else slice(0, 1))

    def shifted(self, x: Var, first: Var | None = None) -> Any:
        """``x`` shifted by one step; the first step is ``first[0]``, or zero."""
        if len(x) == 0:
            return x
        rest = self.before(x)
        if first is not None and not (self.reverse and self.taken is not None):
            return concat(rest, first) if self.reverse else concat(first, rest)
        begin = (0 if self.reverse else 1, *[0] * (x.ndim - 1))
        moved = pad_slice(rest, shape=x.shape, begin=begin, step=(1,) * x.ndim)
        return moved if first is None else moved + self._end * first

    def at_last(self, x: Any, like: Any) -> Any:
        """``x[0]`` at the last step, and zeros at the other steps of ``like``."""
        if not self.reverse and self.taken is not None:
            return self._end * x
        begin = (0 if self.reverse else len(like) - 1, 0, 0)
        return self.own(pad_slice(x, shape=like.shape, begin=begin, step=(1, 1, 1)))

    def none_of(self, x: Any) -> Any:
        """``x[0]`` where a sequence has no step, and zero elsewhere; None if there is no such."""
        return (
            None
            if x is None or self.taken is None
            else x * (1.0 - getitem(self.taken, slice(0, 1)))
        )

    @property
    def _end(self) -> Any:
        """One at the highest-numbered step of each sequence."""
        return self.taken - Course(reverse=True).shifted(self.taken)


def summed_outer(x: Var, y: Var) -> Any:
    """``out[i, j] = sum over t, n of x[t, n, i] * y[t, n, j]``."""
    rows = x.shape[0] * x.shape[1]
    return swapped(reshape(x, shape=(rows, x.shape[2]))) @ reshape(y, shape=(rows, y.shape[2]))


def plus(x: Any, y: Any) -> Any:
    """The sum of two values, either of which may be None, which means zero."""
    if x is None or y is None:
        return y if x is None else x
    return x + y


def blocks(x: Any, count: int) -> list[Any]:
    """The last axis split into ``count`` equal parts."""
    length = x.shape[-1] // count
    return [getitem(x, (..., slice(i * length, (i + 1) * length))) for i in range(count)]
