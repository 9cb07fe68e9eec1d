"""Masking, reversing and selecting in sequences of varying length, and masks of fixed size."""

import itertools
from typing import Literal

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import booleans, case, integers, misuse, workload
from registry.errors import AttributeValueError, DTypeError, ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.indexing import never_weak, require_integers, take, wide_index
from registry.ops.core.reshaping import reshape
from registry.ops.indexing.gathering import scatter_add
from registry.ops.sequence.offsets import (
    at,
    bounds_of,
    require_offsets,
    require_steps,
    rows_at,
    sequence_count,
)
from registry.shapes import normalize_axis, require_held
from registry.table import op
from registry.types import DType, Shape, VarType, integer_limits, is_exact, is_inexact
from registry.var import Var, filled

# boolean_mask ----------------------------------------------------------------------------------


def _boolean_mask_shape(x: Shape, mask: Shape, *, size: int, axis: int) -> tuple[Shape, Shape]:
    at = normalize_axis(axis, len(x))
    if size < 0:
        raise AttributeValueError(f"size must not be negative, got {size}")
    if mask != (x[at],):
        raise ShapeError(f"mask must have shape {(x[at],)}, got {mask}")
    return (*x[:at], size, *x[at + 1 :]), mask


def _boolean_mask_dtype(x: VarType, mask: VarType, *, fill_value: float) -> list[DType]:
    require_held("fill_value", fill_value, x.dtype)
    if not is_exact(mask.dtype):
        raise DTypeError(f"mask must be boolean or integers, got {mask.dtype.name}")
    return [x.dtype, np.dtype(np.int32)]


def _boolean_mask_reference(
    x: np.ndarray, mask: np.ndarray, *, size: int, fill_value: float, axis: int
) -> np.ndarray:
    rows = np.moveaxis(np.compress(mask, x, axis), axis, 0)[:size]
    out = np.full((size, *rows.shape[1:]), fill_value, x.dtype)
    out[: len(rows)] = rows
    return np.moveaxis(out, 0, axis)


@op(
    outputs=("out", "places"),
    hidden=("places",),
    shape=_boolean_mask_shape,
    dtype=_boolean_mask_dtype,
    reference=_boolean_mask_reference,
    cases=[
        case(x=(5, 3), mask=np.asarray([True, False, True, True, False]), size=4),
        case(x=(2, 5), mask=integers(5, high=3), size=2, fill_value=-1.0, axis=-1),
        case(x=(0, 2), mask=booleans(0), size=2, order=1),
        case(x=(3,), mask=booleans(3), size=0, order=1),
        case(x=integers(6, high=9), mask=booleans(6), size=6),
        workload(x=(100000, 64), mask=booleans(100000), size=50000),
        misuse("mask must have shape (5,), got (3,)", x=(5, 3), mask=booleans(3), size=2),
        misuse("size must not be negative, got -1", x=(5,), mask=booleans(5), size=-1),
        misuse(
            "fill_value must be of dtype int32, got 0.5",
            x=integers(3, high=9),
            mask=booleans(3),
            size=3,
            fill_value=0.5,
        ),
        misuse("mask must be boolean or integers, got float", x=(5,), mask=(5,), size=2),
        misuse("axis must be in [-1, 1), got 1", x=(5,), mask=booleans(5), size=2, axis=1),
    ],
)
def boolean_mask(
    x: Array, mask: Array, *, size: int, fill_value: float = 0.0, axis: int = 0
) -> tuple[Array, Array]:
    """The entries of ``x`` along ``axis`` where ``mask`` is true, in order, ``size`` of them.

    If fewer are true, the rest of the result is ``fill_value``; if more are true, the last ones are
    dropped and have gradient zero. ``sum(mask)`` is the number of true entries. ``mask`` has one
    axis; a number counts as true if it is not zero.

    Example:
        >>> import jax.numpy as jnp
        >>> boolean_mask(jnp.asarray([1.0, 2.0, 3.0]), jnp.asarray([True, False, True]), size=4)
        Array([1., 3., 0., 0.], dtype=float32)
    """
    x, held = never_weak(x), jnp.asarray(mask) != 0
    places = jnp.where(held, jnp.cumsum(held, dtype=np.int32) - 1, size).astype(np.int32)
    entries = jnp.arange(held.size, dtype=np.int32)
    chosen = jnp.full(size, held.size, np.int32).at[places].set(entries, mode="drop")
    return take.kernel(x, chosen, axis=axis, fill_value=fill_value), places


@boolean_mask.gradient
def _boolean_mask_gradient(places: Var, d_out: Var, d_places: Var | None, *, axis: int) -> Grads:
    # Entry i of x is at places[i] of the result, or out of bounds: this is a gather, whereas the
    # adjoint of the kernel's own gather would be a scatter.
    del d_places  # they are integers
    return {"x": take(d_out, places, axis=axis, fill_value=0.0), "mask": None}


# Sequences -------------------------------------------------------------------------------------


def _require_sequences(data: Shape, sequence_length: Shape | None, axis: int) -> None:
    if sequence_length is None:
        normalize_axis(axis, len(data))
    elif len(data) < 2:
        raise ShapeError(f"data must have an axis for steps and one for sequences, got {data}")
    elif sequence_length != (data[1 - axis],):
        raise ShapeError(
            f"sequence_length must be one number for each of {data[1 - axis]} sequences, got shape "
            f"{sequence_length}"
        )


def _sequence_shape(data: Shape, sequence_length: Shape | None, *, axis: int) -> Shape:
    _require_sequences(data, sequence_length, axis)
    return data


def _sequence_dtype(data: VarType, sequence_length: VarType | None) -> DType:
    if sequence_length is not None:
        require_integers(sequence_length, "sequence_length")
    return data.dtype


def _ends(sequence_length: Array, data: Array, axis: int) -> Array:
    """The lengths of the sequences, at most the number of steps, to broadcast against ``data``."""
    ends = jnp.minimum(wide_index(sequence_length), data.shape[axis]).astype(np.int32)
    return ends.reshape([ends.size if i == 1 - axis else 1 for i in range(data.ndim)])


def _steps(data: Array, axis: int) -> Array:
    """The index of each step, to broadcast against ``data``."""
    shape = [n if i == axis else 1 for i, n in enumerate(data.shape)]
    return lax.broadcasted_iota(np.int32, shape, axis)


def _sequence_mask_dtype(data: VarType, sequence_length: VarType | None, *, value: float) -> DType:
    require_held("value", value, data.dtype)
    return _sequence_dtype(data, sequence_length)


def _sequence_mask_reference(
    data: np.ndarray, sequence_length: np.ndarray | None, *, value: float, axis: int
) -> np.ndarray:
    out = data.copy()
    for n, length in enumerate([] if sequence_length is None else sequence_length):
        np.moveaxis(out, axis, 0)[max(int(length), 0) :, n] = value
    return out


@op(
    shape=_sequence_shape,
    dtype=_sequence_mask_dtype,
    reference=_sequence_mask_reference,
    cases=[
        case(data=(4, 3, 2), sequence_length=integers(3, low=-1, high=6)),
        case(data=(3, 4), sequence_length=integers(3, high=5, dtype="uint8"), value=-1.5, axis=1),
        case(data=(4,)),
        case(data=(0, 2), sequence_length=integers(2, high=3)),
        case(data=integers(4, 3, high=9), sequence_length=integers(3, high=5)),
        workload(data=(128, 64, 128), sequence_length=integers(64, high=129)),
        misuse(
            "one number for each of 3 sequences", data=(4, 3), sequence_length=integers(4, high=3)
        ),
        misuse(
            "must have an axis for steps and one", data=(4,), sequence_length=integers(4, high=3)
        ),
        misuse("sequence_length must be integers", data=(4, 3), sequence_length=(3,)),
        misuse("attribute 'axis' must be", data=(4, 3), axis=2),
        misuse("value must be of dtype int32, got 0.5", data=integers(4, 3, high=9), value=0.5),
    ],
)
def sequence_mask(
    data: Array,
    sequence_length: Array | None = None,
    *,
    value: float = 0.0,
    axis: Literal[0, 1] = 0,
) -> Array:
    """Replaces the entries of ``data`` after the end of each sequence by ``value``.

    ``axis`` counts the steps, and the other one of the first two axes counts the sequences: for
    ``axis=0``, ``out[t, n, ...] = data[t, n, ...]`` if ``t < sequence_length[n]``, otherwise
    ``value``. Without ``sequence_length`` every sequence has all steps.

    Example:
        >>> import jax.numpy as jnp
        >>> sequence_mask(jnp.ones((2, 3)), jnp.asarray([0, 1, 2]))
        Array([[0., 1., 1.],
               [0., 0., 1.]], dtype=float32)
    """
    data = never_weak(data)
    if sequence_length is None:
        return data
    inside = _steps(data, axis) < _ends(sequence_length, data, axis)
    return jnp.where(inside, data, jnp.asarray(value).astype(data.dtype))


@sequence_mask.gradient
def _sequence_mask_gradient(
    sequence_length: Var | None, d_out: Var, *, axis: Literal[0, 1]
) -> Grads:
    return {"data": sequence_mask(d_out, sequence_length, axis=axis), "sequence_length": None}


def _reverse_shape(
    data: Shape, sequence_length: Shape | None, offsets: Shape | None, *, axis: int
) -> Shape:
    if offsets is None:
        return _sequence_shape(data, sequence_length, axis=axis)
    if sequence_length is not None:
        raise ShapeError("sequence_length or offsets must tell the sequences, got both")
    if axis != 0:
        raise AttributeValueError(f"axis must be 0 with offsets, got {axis}")
    require_steps(data, "data")
    sequence_count(offsets)
    return data


def _reverse_dtype(
    data: VarType, sequence_length: VarType | None, offsets: VarType | None
) -> DType:
    if offsets is not None:
        require_offsets(offsets)
    return _sequence_dtype(data, sequence_length)


def _sequence_reverse_reference(
    data: np.ndarray,
    sequence_length: np.ndarray | None,
    offsets: np.ndarray | None,
    *,
    axis: int,
) -> np.ndarray:
    if offsets is not None:
        parts = [data[start:end][::-1] for start, end in itertools.pairwise(offsets)]
        return np.concatenate([*parts, data[offsets[-1] :]])
    if sequence_length is None:
        return np.flip(data, axis)
    out = data.copy()
    steps = np.moveaxis(out, axis, 0)
    for n, length in enumerate(sequence_length):
        end = max(int(length), 0)
        steps[:end, n] = np.flip(steps[:end, n], 0).copy()
    return out


@op(
    shape=_reverse_shape,
    dtype=_reverse_dtype,
    reference=_sequence_reverse_reference,
    cases=[
        case(data=(4, 3, 2), sequence_length=integers(3, low=-1, high=6)),
        case(data=(3, 4), sequence_length=integers(3, high=5, dtype="uint8"), axis=1),
        case(data=(4,)),
        case(data=(0, 2), sequence_length=integers(2, high=3)),
        case(data=integers(4, 3, high=9), sequence_length=integers(3, high=5)),
        case(data=(6, 2), offsets=at(0, 2, 2, 5)),
        case(data=(4,), offsets=at(0, 3, 4, dtype="uint8")),
        case(data=(0, 2), offsets=at(0, 0), order=1),
        case(data=(2,), offsets=at(0), order=1),
        workload(data=(128, 64, 128), sequence_length=integers(64, high=129)),
        misuse(
            "one number for each of 3 sequences", data=(4, 3), sequence_length=integers(4, high=3)
        ),
        misuse("sequence_length must be integers", data=(4, 3), sequence_length=(3,)),
        misuse("offsets must be integers", data=(4, 3), offsets=(3,)),
        misuse("a vector with one number more", data=(4, 3), offsets=integers(high=3)),
        misuse("axis must be 0 with offsets, got 1", data=(4, 3), offsets=at(0, 4), axis=1),
        misuse(
            "must tell the sequences, got both",
            data=(4, 3),
            sequence_length=integers(3, high=3),
            offsets=at(0, 4),
        ),
    ],
)
def sequence_reverse(
    data: Array,
    sequence_length: Array | None = None,
    offsets: Array | None = None,
    *,
    axis: Literal[0, 1] = 0,
) -> Array:
    """Reverses the steps of each sequence of ``data``; entries after its end are unchanged.

    ``axis`` counts the steps, and the other one of the first two axes counts the sequences: for
    ``axis=0``, ``out[t, n, ...] = data[sequence_length[n] - 1 - t, n, ...]`` if ``t <
    sequence_length[n]``, otherwise ``data[t, n, ...]``. Without ``sequence_length`` every sequence
    has all steps.

    With ``offsets`` the sequences are ragged: sequence ``s`` consists of the steps
    ``data[offsets[s]:offsets[s + 1]]``, and padding after the last offset is unchanged.

    Source: MXNet, operator ``SequenceReverse``; PaddlePaddle, operator ``sequence_reverse``.

    Example:
        >>> import jax.numpy as jnp
        >>> sequence_reverse(jnp.asarray([[1, 2], [3, 4], [5, 6]]), jnp.asarray([3, 2]))
        Array([[5, 4],
               [3, 2],
               [1, 6]], dtype=int32)
        >>> sequence_reverse(jnp.asarray([1, 2, 3, 4]), offsets=jnp.asarray([0, 3, 4]))
        Array([3, 2, 1, 4], dtype=int32)
    """
    data = never_weak(data)
    if offsets is not None:
        return rows_at(data, _reversed(offsets, data.shape[0]))
    if sequence_length is None or data.size == 0:
        return lax.rev(data, (axis,))
    steps, ends = _steps(data, axis), _ends(sequence_length, data, axis)
    places = jnp.where(steps < ends, ends - 1 - steps, steps)
    return jnp.take_along_axis(data, places, axis, mode="promise_in_bounds")


def _reversed(offsets: Array, height: int) -> Array:
    """The source step of each position when every sequence is reversed."""
    _, begins, ends = bounds_of(offsets, height)
    steps = jnp.arange(height, dtype=np.int32)
    return jnp.where(begins < ends, begins + ends - 1 - steps, steps)


@sequence_reverse.gradient
def _sequence_reverse_gradient(
    sequence_length: Var | None, offsets: Var | None, d_out: Var, *, axis: Literal[0, 1]
) -> Grads:
    # A permutation that swaps pairs is its own adjoint.
    d_data = sequence_reverse(d_out, sequence_length, offsets, axis=axis)
    return {"data": d_data, "sequence_length": None, "offsets": None}


def _sequence_last_shape(
    data: Shape, sequence_length: Shape | None, *, axis: int
) -> tuple[Shape, Shape]:
    _require_sequences(data, sequence_length, axis)
    if data[axis] == 0:
        raise ShapeError(f"there must be a step along axis {axis} of data, got shape {data}")
    beside = (*data[:axis], *data[axis + 1 :])
    return beside, tuple(n if i == 1 - axis else 1 for i, n in enumerate(data))


def _sequence_last_dtype(data: VarType, sequence_length: VarType | None) -> list[DType]:
    return [_sequence_dtype(data, sequence_length), np.dtype(np.int32)]


def _sequence_last_reference(
    data: np.ndarray, sequence_length: np.ndarray | None, *, axis: int
) -> np.ndarray:
    steps: np.ndarray = np.moveaxis(data, axis, 0)
    if sequence_length is None:
        return np.asarray(steps[-1])
    out: np.ndarray = np.full_like(
        steps[0], np.nan if is_inexact(data.dtype) else integer_limits(data.dtype)[0]
    )
    for n, length in enumerate(sequence_length):
        if length > 0:
            out[n] = steps[min(int(length), len(steps)) - 1, n]
    return out


@op(
    outputs=("out", "places"),
    hidden=("places",),
    shape=_sequence_last_shape,
    dtype=_sequence_last_dtype,
    reference=_sequence_last_reference,
    cases=[
        case(data=(4, 3, 2), sequence_length=integers(3, low=-1, high=6)),
        case(data=(3, 4), sequence_length=integers(3, low=1, high=5, dtype="uint8"), axis=1),
        case(data=(4,)),
        case(data=(2, 3), axis=1),
        case(data=(2, 0), sequence_length=integers(0, high=3)),
        case(data=integers(4, 3, high=9), sequence_length=integers(3, high=5)),
        workload(data=(128, 64, 128), sequence_length=integers(64, low=1, high=129)),
        misuse("there must be a step along axis 0 of data, got shape (0, 2)", data=(0, 2)),
        misuse(
            "one number for each of 3 sequences", data=(4, 3), sequence_length=integers(4, high=3)
        ),
        misuse("sequence_length must be integers", data=(4, 3), sequence_length=(3,)),
    ],
)
def sequence_last(
    data: Array, sequence_length: Array | None = None, *, axis: Literal[0, 1] = 0
) -> tuple[Array, Array]:
    """The last step of each sequence in ``data``.

    ``axis`` counts the steps, and the other one of the first two axes counts the sequences: for
    ``axis=0``, ``out[n, ...] = data[sequence_length[n] - 1, n, ...]``. Without ``sequence_length``
    every sequence has all steps. The result for an empty sequence is NaN, or the minimum of an
    integer dtype.

    Example:
        >>> import jax.numpy as jnp
        >>> sequence_last(jnp.asarray([[1, 2], [3, 4], [5, 6]]), jnp.asarray([3, 1]))
        Array([5, 2], dtype=int32)
    """
    data, length = never_weak(data), data.shape[axis]
    kept = [n if i == 1 - axis else 1 for i, n in enumerate(data.shape)]
    ends = jnp.full(kept, length) if sequence_length is None else _ends(sequence_length, data, axis)
    places = jnp.where(ends > 0, ends - 1, length).astype(np.int32)
    out = jnp.take_along_axis(data, places, axis, mode="fill")
    return jnp.squeeze(out, axis), places


@sequence_last.gradient
def _sequence_last_gradient(
    data: Var, places: Var, d_out: Var, d_places: Var | None, *, axis: Literal[0, 1]
) -> Grads:
    del d_places  # they are integers
    kept = (*d_out.shape[:axis], 1, *d_out.shape[axis:])
    d_last = reshape(d_out, shape=kept)
    d_data = scatter_add(filled(data, 0.0), places, d_last, axis=axis)
    return {"data": d_data, "sequence_length": None}
