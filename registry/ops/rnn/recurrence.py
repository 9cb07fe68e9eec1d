"""Linear recurrences over time and their adjoints, the derivatives of recurrent layers.

The tangent of a recurrent layer is a recurrence that is linear in its state, with the layer's
residuals as coefficients. With three signals at each step, ``gates``, ``cell`` and ``out``, and a
source ``to_...`` added to each, it is

    gates[t] = to_gates[t] + W P out[t-1]
    cell[t]  = to_cell[t] + decay[t] cell[t-1] + sum over g of slopes[t, g] gates[t, g]
    out[t]   = to_out[t] + carry[t] cell[t] (+ slopes[t, last] gates[t, last])

Its adjoint runs the transposed steps backward. With ``<., .>`` for the sum of products over all
three signals, ``<sources, adjoint(others)> = <linear_recurrence(sources), others>``, so the
gradient of each with respect to its sources is the other. Both are multilinear in the coefficients,
and the gradients of these are products of a signal of one with a signal of the other.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse, uniform, workload
from registry.errors import ShapeError
from registry.operator.operator import Grads, Operator
from registry.operator.signature import Array
from registry.ops.core.broadcasting import unbroadcast
from registry.ops.core.reshaping import swapped
from registry.ops.core.slicing import concat
from registry.ops.rnn.time_steps import Course, summed_outer
from registry.shapes import at_least_single, inexact
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var
from registry.xla import device_types

Signals = tuple[Var, Var, Var]
"""The gates, the cell and the output at all steps."""


# Shared arguments -------------------------------------------------------------------------------


def _coefficients_fit(
    weight: Shape, slopes: Shape, decay: Shape | None, carry: Shape | None, projection: Shape | None
) -> tuple[Shape, Shape]:
    """The shapes of the gates and of the cell; raises if the coefficients do not fit."""
    if len(slopes) != 3 or len(weight) != 2:
        raise ShapeError(
            f"slopes must have the axes time, batch, gates and weight the axes gates, out, got "
            f"{slopes} and {weight}"
        )
    if projection is not None and (len(projection) != 2 or projection[0] != weight[1]):
        raise ShapeError(f"projection must have {weight[1]} rows, got shape {projection}")
    length = weight[1] if projection is None else projection[1]
    fewest = 1 if carry is None else 2
    if weight[0] != slopes[2] or slopes[2] % max(length, 1) or slopes[2] < fewest * length:
        raise ShapeError(
            f"slopes and weight must have one block of {length} for each gate, at least {fewest}, "
            f"got {slopes} and {weight}"
        )
    cell = (*slopes[:2], length)
    for name, shape in {"decay": decay, "carry": carry}.items():
        if shape not in (None, cell):
            raise ShapeError(f"{name} must have shape {cell}, got {shape}")
    return slopes, cell


def _recurrence_shape(
    weight: Shape,
    slopes: Shape,
    decay: Shape | None,
    carry: Shape | None,
    projection: Shape | None,
    to_gates: Shape | None,
    to_cell: Shape | None,
    to_out: Shape | None,
) -> tuple[Shape, Shape, Shape]:
    gates, cell = _coefficients_fit(weight, slopes, decay, carry, projection)
    sources = {"to_gates": (to_gates, gates), "to_cell": (to_cell, cell), "to_out": (to_out, cell)}
    for name, (shape, expected) in sources.items():
        if shape not in (None, expected):
            raise ShapeError(f"{name} must have shape {expected}, got {shape}")
    return gates, cell, cell


def _recurrence_dtype(*types: VarType) -> list[DType]:
    return [inexact(*types)[0]] * 3


def _alike(*arrays: Array | None) -> list[Any]:
    """The arrays in the dtype to which those that are present promote."""
    dtype = jnp.result_type(*(one for one in arrays if one is not None))
    return [None if one is None else jnp.asarray(one, dtype) for one in arrays]


def _plus(x: Array, source: Array | None) -> Array:
    return x if source is None else x + source


def product(x: Array, matrix: Array) -> Array:
    """``x @ matrix`` in the dtype of ``matrix``, with a result in at least single precision."""
    narrow = x.astype(matrix.dtype)
    return jnp.matmul(narrow, matrix, preferred_element_type=at_least_single(matrix.dtype))


def scanned(step: Callable[..., Any], start: Any, series: Any, dtype: DType, **how: Any) -> Any:
    """``lax.scan`` of a step that computes in a wide dtype; the results have ``dtype``."""

    def narrowed(state: Any, now: Any) -> Any:
        state, outputs = step(state, now)
        return state, [one.astype(dtype) for one in outputs]

    last, outputs = device_types.scan(narrowed, start, series, **how)
    return [None if one is None else one.astype(dtype) for one in last], outputs


def _start(series: Sequence[Any], length: int) -> tuple[Array | None, Array]:
    """The initial state: zeros for the cell, if there is a decay, and for the rest of the state."""
    slopes, decay, *_ = series
    zeros = jnp.zeros((slopes.shape[1], length), at_least_single(slopes.dtype))
    return None if decay is None else zeros, zeros


def _by_block(x: Array, length: int) -> Array:
    """Reshapes ``(batch, gates)`` to ``(batch, gate, place)``."""
    return x.reshape(x.shape[0], x.shape[1] // max(length, 1), length)


def _at_first(
    weight: np.ndarray,
    slopes: np.ndarray,
    decay: np.ndarray | None,
    carry: np.ndarray | None,
    projection: np.ndarray | None,
    *sources: np.ndarray | None,
) -> tuple[np.ndarray, list[np.ndarray]]:
    """For the references: ``weight @ projection``, and the signals before a step adds to them."""
    del decay, carry
    matrix = weight if projection is None else weight @ projection
    cell = (*slopes.shape[:2], matrix.shape[1])
    signals = [
        np.zeros(shape, slopes.dtype) if source is None else source.copy()
        for source, shape in zip(sources, (slopes.shape, cell, cell), strict=True)
    ]
    return matrix, signals


# linear_recurrence ------------------------------------------------------------------------------


def _recurrence_reference(*operands: Any, reverse: bool) -> tuple[np.ndarray, ...]:
    _, slopes, decay, carry, *_ = operands
    matrix, (gates, cell, out) = _at_first(*operands)
    steps = len(slopes)
    back = 1 if reverse else -1
    for t in range(steps)[::-back]:
        if 0 <= t + back < steps:
            gates[t] += out[t + back] @ matrix.T
            cell[t] += 0 if decay is None else decay[t] * cell[t + back]
        parts = np.split(slopes[t] * gates[t], gates.shape[2] // cell.shape[2], axis=1)
        cell[t] += sum(parts if carry is None else parts[:-1])
        out[t] += cell[t] if carry is None else carry[t] * cell[t] + parts[-1]
    return gates, cell, out


_ONE_GATE: dict[str, Any] = {"weight": (2, 2), "slopes": (3, 2, 2)}
_GATED: dict[str, Any] = {"weight": (6, 2), "slopes": (3, 2, 6), "decay": (3, 2, 2)}
_CARRIED: dict[str, Any] = {
    "weight": (6, 2),
    "slopes": (3, 1, 6),
    "decay": (3, 1, 2),
    "carry": (3, 1, 2),
}
_PROJECTED: dict[str, Any] = {**_CARRIED, "weight": (6, 1), "projection": (1, 2)}
_SOURCES: dict[str, Any] = {"to_gates": (3, 1, 6), "to_cell": (3, 1, 2), "to_out": (3, 1, 2)}
_CASES = [
    case(**_CARRIED, **_SOURCES, order=2),
    case(**_GATED, to_out=(3, 2, 2), reverse=True, order=2),
    case(**_ONE_GATE, to_gates=(3, 2, 2), order=2),
    case(**_PROJECTED, to_gates=(3, 1, 6), reverse=True, order=1),
    case(weight=(4, 2), slopes=(0, 2, 4), to_cell=(0, 2, 2), order=1),
    case(weight=(1, 1), slopes=(2, 1, 1), decay=(2, 1, 1), to_gates=(2, 1, 1)),
    workload(
        weight=uniform(512, 128, low=-0.05, high=0.05),
        slopes=(64, 32, 512),
        decay=uniform(64, 32, 128, low=0.0, high=1.0),
        carry=(64, 32, 128),
        to_gates=(64, 32, 512),
    ),
    misuse("slopes must have the axes time, batch, gates", weight=(2, 2), slopes=(3, 2)),
    misuse("must have one block of 2 for each gate", weight=(3, 2), slopes=(3, 2, 3)),
    misuse("at least 2, got (3, 2, 2)", **_ONE_GATE, carry=(3, 2, 2)),
    misuse("decay must have shape (3, 2, 2)", **_ONE_GATE, decay=(3, 2)),
    misuse("to_out must have shape (3, 2, 2)", **_ONE_GATE, to_out=(3, 2, 4)),
    misuse("projection must have 2 rows", **_ONE_GATE, projection=(3, 2)),
    misuse(
        "the inputs must be floating",
        weight=integers(2, 2, high=3),
        slopes=integers(3, 2, 2, high=3),
    ),
]


@op(
    shape=_recurrence_shape,
    dtype=_recurrence_dtype,
    reference=_recurrence_reference,
    outputs=("gates", "cell", "out"),
    cases=_CASES,
    costly=True,
)
def linear_recurrence(
    weight: Array,
    slopes: Array,
    decay: Array | None = None,
    carry: Array | None = None,
    projection: Array | None = None,
    to_gates: Array | None = None,
    to_cell: Array | None = None,
    to_out: Array | None = None,
    *,
    reverse: bool = False,
) -> tuple[Array, Array, Array]:
    """Linear recurrence over time that is the tangent of a recurrent layer.

    ``gates[t] = to_gates[t] + weight @ projection @ out[t-1]``

    ``cell[t] = to_cell[t] + decay[t] * cell[t-1] + sum over g of slopes[t, g] * gates[t, g]``

    ``out[t] = to_out[t] + carry[t] * cell[t] + slopes[t, last] * gates[t, last]``

    It starts from a state of zeros and runs over axes time, batch and unit; with ``reverse`` from
    the last step to the first. ``gates`` and ``slopes`` are blocks of units, one for each gate.
    With ``carry`` the last gate opens the output and is not in the sum; without it
    ``out[t] = to_out[t] + cell[t]``. Without ``decay`` the cell keeps nothing of the step before,
    without ``projection`` that factor is omitted, and a source that is omitted is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> weight, slopes = jnp.asarray([[2.0]]), jnp.ones((3, 1, 1))
        >>> source = jnp.asarray([1.0, 0.0, 0.0]).reshape(3, 1, 1)
        >>> linear_recurrence(weight, slopes, to_gates=source)[2].ravel()
        Array([1., 2., 4.], dtype=float32)
    """
    weight, projection, *series = _alike(
        weight, projection, slopes, decay, carry, to_gates, to_cell, to_out
    )
    matrix = weight if projection is None else projection
    length = matrix.shape[1]

    def step(state: tuple[Array | None, Array], now: Sequence[Any]) -> Any:
        slopes, decay, carry, to_gates, to_cell, to_out = now
        cell, out = state
        out = out if projection is None else product(out, projection.T)
        gates = _plus(product(out, weight.T), to_gates)
        parts = _by_block(slopes * gates, length)
        total = jnp.sum(parts if carry is None else parts[:, :-1], axis=1)
        cell = _plus(total if decay is None else decay * cell + total, to_cell)
        out = _plus(cell if carry is None else carry * cell + parts[:, -1], to_out)
        return (None if decay is None else cell, out), (gates, cell, out)

    start = _start(series, length)
    return tuple(scanned(step, start, series, weight.dtype, reverse=reverse)[1])


# linear_recurrence_adjoint ----------------------------------------------------------------------


def _adjoint_reference(*operands: Any, reverse: bool) -> tuple[np.ndarray, ...]:
    _, slopes, decay, carry, *_ = operands
    matrix, (gates, cell, out) = _at_first(*operands)
    steps = len(slopes)
    later = -1 if reverse else 1
    for t in range(steps)[::-later]:
        if 0 <= t + later < steps:
            out[t] += gates[t + later] @ matrix
            cell[t] += 0 if decay is None else decay[t + later] * cell[t + later]
        cell[t] += out[t] if carry is None else carry[t] * out[t]
        signals = [cell[t]] * (gates.shape[2] // cell.shape[2])
        if carry is not None:
            signals[-1] = out[t]
        gates[t] += slopes[t] * np.concatenate(signals, axis=1)
    return gates, cell, out


@op(
    shape=_recurrence_shape,
    dtype=_recurrence_dtype,
    reference=_adjoint_reference,
    outputs=("gates", "cell", "out"),
    cases=_CASES,
    costly=True,
)
def linear_recurrence_adjoint(
    weight: Array,
    slopes: Array,
    decay: Array | None = None,
    carry: Array | None = None,
    projection: Array | None = None,
    to_gates: Array | None = None,
    to_cell: Array | None = None,
    to_out: Array | None = None,
    *,
    reverse: bool = False,
) -> tuple[Array, Array, Array]:
    """Adjoint of ``linear_recurrence``: the transposed steps from the last one to the first.

    ``out[t] = to_out[t] + projection.T @ weight.T @ gates[t+1]``

    ``cell[t] = to_cell[t] + carry[t] * out[t] + decay[t+1] * cell[t+1]``

    ``gates[t, g] = to_gates[t, g] + slopes[t, g] * cell[t]``; with ``carry``, for the last gate
    ``to_gates[t, last] + slopes[t, last] * out[t]``.

    ``reverse`` is that of ``linear_recurrence``, so with it these steps run forward.

    Example:
        >>> import jax.numpy as jnp
        >>> weight, slopes = jnp.asarray([[2.0]]), jnp.ones((3, 1, 1))
        >>> source = jnp.asarray([0.0, 0.0, 1.0]).reshape(3, 1, 1)
        >>> linear_recurrence_adjoint(weight, slopes, to_out=source)[0].ravel()
        Array([4., 2., 1.], dtype=float32)
    """
    weight, projection, *series = _alike(
        weight, projection, slopes, decay, carry, to_gates, to_cell, to_out
    )
    length = weight.shape[1] if projection is None else projection.shape[1]
    count = series[0].shape[2] // max(length, 1)

    def step(state: tuple[Array | None, Array], now: Sequence[Any]) -> Any:
        slopes, decay, carry, to_gates, to_cell, to_out = now
        kept, fed = state
        out = _plus(fed, to_out)
        cell = _plus(_plus(out if carry is None else carry * out, kept), to_cell)
        blocks = [cell] * count if carry is None else [*[cell] * (count - 1), out]
        gates = _plus(slopes * jnp.concatenate(blocks, axis=1), to_gates)
        fed = product(gates, weight)
        fed = fed if projection is None else product(fed, projection)
        return (None if decay is None else decay * cell, fed), (gates, cell, out)

    start = _start(series, length)
    return tuple(scanned(step, start, series, weight.dtype, reverse=not reverse)[1])


# Their gradients --------------------------------------------------------------------------------


def _gradients(
    coefficients: Sequence[Any],
    sources: Sequence[Any],
    d_sources: Signals,
    forward: Signals,
    backward: Signals,
    *,
    reverse: bool,
) -> Grads:
    """Gradients of ``<linear_recurrence, others>`` with respect to coefficients and sources.

    ``forward`` are its signals, ``backward`` those of the adjoint, and ``d_sources`` those that
    reach the sources.
    """
    # At each step the form is
    #   <b_gates, W P f_out[t-1]> + <b_cell, decay f_cell[t-1] + sum of slopes f_gates>
    #   + <b_out, carry f_cell + slopes[last] f_gates[last]>,
    # in which every coefficient occurs once, between a signal of each kind.
    weight, slopes, decay, carry, projection = coefficients
    f_gates, f_cell, f_out = forward
    b_gates, b_cell, b_out = backward
    course = Course(reverse)
    fed, received = course.before(f_out), course.after(b_gates)

    def d_weight() -> Any:
        signal = fed if projection is None else fed @ swapped(projection)
        return unbroadcast(summed_outer(received, signal), weight)

    grads: Grads = {
        "weight": d_weight,
        "slopes": lambda: unbroadcast(
            f_gates * _spread(b_cell, None if carry is None else b_out, f_gates.shape[2]), slopes
        ),
    }
    if decay is not None:
        grads["decay"] = lambda: unbroadcast(b_cell * course.shifted(f_cell), decay)
    if carry is not None:
        grads["carry"] = lambda: unbroadcast(b_out * f_cell, carry)
    if projection is not None:
        grads["projection"] = lambda: unbroadcast(summed_outer(received @ weight, fed), projection)
    for name, source, d_source in zip(_NAMES, sources, d_sources, strict=True):
        grads[name] = None if source is None else unbroadcast(d_source, source)
    return grads


_NAMES = ("to_gates", "to_cell", "to_out")


def _spread(cell: Var, out: Var | None, width: int) -> Any:
    """The signal that each gate acts on: the cell, or ``out`` for the last gate if it is given."""
    count = width // max(cell.shape[2], 1)
    blocks = [cell] * count if out is None else [*[cell] * (count - 1), out]
    return concat(*blocks, axis=2)


def _gradient_by(other: Operator) -> Callable[..., Grads]:
    """The gradient of one recurrence, whose sources receive their cotangents from the ``other``."""

    def gradient(
        weight: Var,
        slopes: Var,
        decay: Var | None,
        carry: Var | None,
        projection: Var | None,
        to_gates: Var | None,
        to_cell: Var | None,
        to_out: Var | None,
        gates: Var,
        cell: Var,
        out: Var,
        d_gates: Var | None,
        d_cell: Var | None,
        d_out: Var | None,
        *,
        reverse: bool,
    ) -> Grads:
        how = (weight, slopes, decay, carry, projection)
        sources, own = (to_gates, to_cell, to_out), (gates, cell, out)
        adjoint = other(*how, d_gates, d_cell, d_out, reverse=reverse)
        forward, backward = (adjoint, own) if other is linear_recurrence else (own, adjoint)
        return _gradients(how, sources, adjoint, forward, backward, reverse=reverse)

    return gradient


linear_recurrence.gradient(_gradient_by(linear_recurrence_adjoint))
linear_recurrence_adjoint.gradient(_gradient_by(linear_recurrence))
