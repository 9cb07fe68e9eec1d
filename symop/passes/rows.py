"""Which rows of a result depend on which rows of an operand.

Where an operator works row by row, its tangent along a direction that moves one row is zero off
this row. The primitives of a kernel tell whether it does, so that no operator declares it.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jax.extend.core import Literal

from registry.caches import memoized
from registry.jax_derivatives.calculus import program_of
from registry.operator.attributes import typed_key
from registry.operator.operator import Operator
from registry.primitives import CALLS, ENTRYWISE
from registry.types import TRAINING_TYPE, VarType
from registry.var import Attributes


class Rows(NamedTuple):
    """The rows of an array on which another array depends.

    Attributes:
        axis: an axis of the other array.
        rows: for each index along this axis the only row on which the entries there depend; -1
            where there is none.
    """

    axis: int
    rows: tuple[int, ...]

    def at(self, axis: int) -> "Rows":
        """The same rows along another axis."""
        return Rows(axis, self.rows)


class _MixedError(Exception):
    """An entry depends on several rows, or a primitive is not known."""


@memoized(4096, key=typed_key)
def rows_of_result(
    operator: Operator,
    types: tuple[VarType | None, ...],
    attributes: Attributes,
    places: tuple[int, ...],
    rows: Rows,
) -> Rows | None:
    """Returns the rows on which the result of an operator depends; None if rows are mixed.

    Args:
        operator: with one output.
        types: of its inputs.
        attributes: of the call.
        places: the inputs that depend on rows; all others do not.
        rows: how these inputs depend on them.
    """
    present = [i for i, one in enumerate(types) if one is not None and one is not TRAINING_TYPE]
    program = program_of(operator, types, attributes)
    try:
        (result,) = _followed(program.jaxpr, [rows if i in places else None for i in present])
    except _MixedError:
        return None
    return result


def _followed(jaxpr: Any, operands: Sequence[Rows | None]) -> list[Rows | None]:
    """Returns the rows of the outputs of a jaxpr for those of its inputs."""
    rows = dict(zip(jaxpr.invars, operands, strict=True))

    def rows_of(atom: Any) -> Rows | None:
        return None if isinstance(atom, Literal) else rows.get(atom)

    for equation in jaxpr.eqns:
        inputs = [rows_of(one) for one in equation.invars]
        if any(one is not None for one in inputs):
            rows.update(zip(equation.outvars, _step(equation, inputs), strict=True))
    return [rows_of(one) for one in jaxpr.outvars]


def _step(equation: Any, inputs: Sequence[Rows | None]) -> Sequence[Rows | None]:
    if equation.primitive in CALLS:
        inner = equation.params.get("jaxpr") or equation.params["call_jaxpr"]
        return _followed(getattr(inner, "jaxpr", inner), inputs)
    rule = _same if equation.primitive in ENTRYWISE else _RULES.get(equation.primitive.name)
    if rule is None:
        raise _MixedError
    return [rule(equation, inputs)]


# One rule for each primitive ---------------------------------------------------------------------


def _same(equation: Any, inputs: Sequence[Rows | None]) -> Rows:
    rows = {one for one in inputs if one is not None}
    if len(rows) > 1:
        raise _MixedError
    return rows.pop()


def _broadcast(equation: Any, inputs: Sequence[Rows | None]) -> Rows:
    rows = _same(equation, inputs[:1])
    axis = equation.params["broadcast_dimensions"][rows.axis]
    if equation.params["shape"][axis] != len(rows.rows):
        raise _MixedError
    return rows.at(int(axis))


def _reshape(equation: Any, inputs: Sequence[Rows | None]) -> Rows:
    rows = _same(equation, inputs[:1])
    before = math.prod(equation.invars[0].aval.shape[: rows.axis])
    shape = equation.outvars[0].aval.shape
    for axis, length in enumerate(shape):
        if length == len(rows.rows) and math.prod(shape[:axis]) == before:
            return rows.at(axis)
    raise _MixedError


def _transpose(equation: Any, inputs: Sequence[Rows | None]) -> Rows:
    rows = _same(equation, inputs)
    return rows.at(equation.params["permutation"].index(rows.axis))


def _without(parameter: str) -> Callable[[Any, Sequence[Rows | None]], Rows]:
    def rule(equation: Any, inputs: Sequence[Rows | None]) -> Rows:
        rows, axes = _same(equation, inputs), equation.params[parameter]
        if rows.axis in axes:
            raise _MixedError
        return rows.at(rows.axis - sum(axis < rows.axis for axis in axes))

    return rule


def _slice(equation: Any, inputs: Sequence[Rows | None]) -> Rows:
    rows = _same(equation, inputs)
    starts, limits, steps = (
        equation.params[name] for name in ("start_indices", "limit_indices", "strides")
    )
    step = 1 if steps is None else steps[rows.axis]
    return Rows(rows.axis, rows.rows[starts[rows.axis] : limits[rows.axis] : step])


def _pad(equation: Any, inputs: Sequence[Rows | None]) -> Rows:
    rows = _same(equation, inputs[:1])
    low, high, between = equation.params["padding_config"][rows.axis]
    if inputs[1] is not None or low < 0 or high < 0:
        raise _MixedError
    spread = np.full(len(rows.rows) + between * max(len(rows.rows) - 1, 0), -1)
    spread[:: between + 1] = rows.rows
    return Rows(rows.axis, tuple(np.pad(spread, (low, high), constant_values=-1).tolist()))


def _reverse(equation: Any, inputs: Sequence[Rows | None]) -> Rows:
    rows = _same(equation, inputs)
    return Rows(rows.axis, rows.rows[::-1]) if rows.axis in equation.params["dimensions"] else rows


def _concatenate(equation: Any, inputs: Sequence[Rows | None]) -> Rows:
    axis = equation.params["dimension"]
    if any(one is not None and one.axis != axis for one in inputs):
        return _same(equation, inputs)
    parts = [
        (-1,) * atom.aval.shape[axis] if one is None else one.rows
        for atom, one in zip(equation.invars, inputs, strict=True)
    ]
    return Rows(axis, tuple(row for part in parts for row in part))


def _product(equation: Any, inputs: Sequence[Rows | None]) -> Rows:
    if None not in inputs:
        raise _MixedError
    side = 0 if inputs[1] is None else 1
    rows = _same(equation, inputs)
    summed, batch = equation.params["dimension_numbers"]
    if rows.axis in summed[side]:
        raise _MixedError
    if rows.axis in batch[side]:
        return rows.at(list(batch[side]).index(rows.axis))
    bound = (*summed[side], *batch[side])
    free = rows.axis - sum(axis < rows.axis for axis in bound)
    x = equation.invars[0].aval.ndim - len(summed[0]) - len(batch[0])
    return rows.at(len(batch[side]) + side * x + free)


_RULES: dict[str, Callable[[Any, Sequence[Rows | None]], Rows]] = {
    "broadcast_in_dim": _broadcast,
    "concatenate": _concatenate,
    "dot_general": _product,
    "pad": _pad,
    "reduce_sum": _without("axes"),
    "reshape": _reshape,
    "rev": _reverse,
    "slice": _slice,
    "squeeze": _without("dimensions"),
    "transpose": _transpose,
}
