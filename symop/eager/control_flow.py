"""Control flow on eager arrays: functions run step by step in Python."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax

from registry.errors import ArgumentError
from registry.table import get
from registry.types import VarType
from symop.eager.modes import mode
from symop.eager.ndarray import NDArray
from symop.eager.segments import local
from symop.symbol.control_flow import flat, is_value, places, steps_of

Function = Callable[..., Any]


def is_traced(values: Any) -> bool:
    """Whether JAX traces one of the nested values."""
    leaves, _ = flat(values)
    present = [one.value if isinstance(one, NDArray) else one for one in leaves]
    return any(isinstance(one, jax.core.Tracer) for one in present)


def require_unrecorded(what: str) -> None:
    """Rejects control flow that depends on a traced value if it would be recorded.

    Raises:
        ArgumentError: calls are being recorded.
    """
    if local.state.taped:
        raise ArgumentError(
            f"{what}: inside of a JAX transformation a choice by a traced value cannot be "
            "recorded; differentiate with jax.grad, or record outside of the transformation"
        )


def arrays_of(values: Any) -> Any:
    """Converts every leaf of nested values to an eager array."""
    leaves, tree = flat(values)
    return jax.tree_util.tree_unflatten(tree, [_array(one) for one in leaves])


def to_arrays(function: Function) -> Function:
    """Wraps ``function`` to convert every leaf of its results to an eager array."""
    return lambda *values: arrays_of(function(*values))


def _array(one: Any) -> NDArray:
    return one if isinstance(one, NDArray) else NDArray(one)


def cond(pred: Any, true_fn: Function, false_fn: Function, operands: Sequence[Any]) -> Any:
    """Implements ``control_flow.cond`` on eager arrays: runs the chosen function."""
    shape = _array(pred).shape
    if shape != ():
        raise ArgumentError(f"cond: the predicate must be a scalar, got shape {shape}")
    return arrays_of((true_fn if bool(pred) else false_fn)(*arrays_of(tuple(operands))))


def while_loop(cond_fn: Function, body_fn: Function, init: Any, max_steps: int | None) -> Any:
    """Implements ``control_flow.while_loop`` on eager arrays."""
    carry, taken = arrays_of(init), 0
    while (max_steps is None or taken < max_steps) and bool(cond_fn(carry)):
        carry = _next("while_loop", carry, arrays_of(body_fn(carry)), init if not taken else carry)
        taken += 1
    return carry


def scan(f: Function, init: Any, xs: Any, length: int | None, reverse: bool) -> Any:
    """Implements ``control_flow.scan`` on eager arrays."""
    series = arrays_of(xs)
    leaves, tree = flat(series)
    count = steps_of([one.type for one in leaves], places(series), length)
    carry, before, rows = arrays_of(init), init, []
    slices = [_Slices(array, count) for array in leaves]
    for i in range(count)[:: -1 if reverse else 1]:
        one = jax.tree_util.tree_unflatten(tree, [array[i] for array in slices])
        pair = f(carry, one)
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ArgumentError(
                f"scan: a step must return a pair of carries and results, got {pair!r}"
            )
        carry, before = _next("scan", carry, arrays_of(pair[0]), before), carry
        rows.append(arrays_of(pair[1]))
    if not rows:
        return carry, _of_no_steps(f, carry, series)
    return carry, _stacked(rows[::-1] if reverse else rows)


def _of_no_steps(f: Function, carry: Any, series: Any) -> Any:
    """Returns the empty results of a scan without steps; infers their types from ``f``."""
    held, slices = (jax.tree_util.tree_map(_value, v, is_leaf=is_value) for v in (carry, series))
    with mode(False):
        return arrays_of(jax.lax.scan(_on_values(f), held, slices, length=0)[1])


def _on_values(f: Function) -> Function:
    """Converts ``f`` to a function from JAX arrays to JAX arrays."""

    def run(*values: Any) -> Any:
        return jax.tree_util.tree_map(_value, f(*map(arrays_of, values)), is_leaf=is_value)

    return run


def _value(one: Any) -> Any:
    return one.value if isinstance(one, NDArray) else one


class _Slices:
    """The slices of an array along its first axis, computed in groups.

    One call per slice would need a separate program for each slice, with a gradient of the size of
    the array. One call for all slices would be a program with one result for each slice. The size
    of a group is therefore about the square root of the number of slices.
    """

    def __init__(self, array: NDArray, count: int) -> None:
        self._size = max(1, math.isqrt(count))
        even = count - count % self._size
        shape = (even // self._size, self._size, *array.shape[1:])
        self._groups = get("reshape")(array[:even], shape=shape)
        self._rest = array[even:]
        self._at, self._group = -1, ()

    def __getitem__(self, index: int) -> NDArray:
        at, place = divmod(index, self._size)
        if at != self._at:
            inside = at < self._groups.shape[0]
            chosen = get("array_read")(self._groups, at) if inside else self._rest
            self._at, self._group = at, get("unstack")(chosen)
        result: NDArray = self._group[place]
        return result


def _stacked(rows: Sequence[Any]) -> Any:
    """Stacks the results of all steps along a new first axis."""
    each = [flat(row)[0] for row in rows]
    return jax.tree_util.tree_unflatten(
        flat(rows[0])[1], [_joined(one) for one in zip(*each, strict=True)]
    )


def _joined(rows: Sequence[NDArray]) -> NDArray:
    """Stacks arrays along a new first axis, in groups as in ``_Slices``."""
    size = max(1, math.isqrt(len(rows)))
    groups = [get("stack")(*rows[i : i + size]) for i in range(0, len(rows), size)]
    joined: NDArray = groups[0] if len(groups) == 1 else get("concat")(*groups, axis=0)
    return joined


def _next(what: str, carry: Any, after: Any, given: Any) -> Any:
    """Checks and returns the carries after a step.

    Carries given as Python numbers may change their dtype.

    Raises:
        ArgumentError: the step changes the nesting of the carries, or the type of one.
    """
    (leaves, tree), (later, nested) = flat(carry), flat(after)
    if tree != nested:
        raise ArgumentError(
            f"{what}: a step must return carries that are nested as the first ones, {tree}, got "
            f"{nested}"
        )
    for name, old, new, first in zip(places(carry), leaves, later, flat(given)[0], strict=True):
        if not _fits(
            old.type.strong(), new.type.strong(), isinstance(first, (int, float, complex))
        ):
            raise ArgumentError(
                f"{what}: carry{name} must keep its type, {old.type.strong()}, got "
                f"{new.type.strong()} after a step"
            )
    return after


def _fits(old: VarType, new: VarType, number: bool) -> bool:
    return old is new or (number and old.shape == new.shape)


def is_taped() -> bool:
    """Whether calls are recorded for a backward pass."""
    return local.state.taped
