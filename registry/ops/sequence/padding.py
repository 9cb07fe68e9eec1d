"""Conversion between ragged sequences and padded rows of equal length."""

import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse, workload
from registry.errors import ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.indexing import never_weak, take
from registry.ops.core.reshaping import reshape
from registry.ops.sequence.offsets import (
    INT32,
    Length,
    at,
    beyond,
    bounds_of,
    even,
    ids_of,
    offsets_of,
    require_offsets,
    require_steps,
    rows_at,
    sequence_count,
    sequence_lengths,
)
from registry.shapes import require_held
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var

# sequence_pad ----------------------------------------------------------------------------------


def _pad_shape(x: Shape, offsets: Shape, *, padded_length: int) -> tuple[Shape, ...]:
    require_steps(x)
    count = sequence_count(offsets)
    return (count, padded_length, *x[1:]), (count,), (x[0],)


def _pad_dtype(x: VarType, offsets: VarType, *, pad_value: float) -> list[DType]:
    require_offsets(offsets)
    require_held("pad_value", pad_value, x.dtype)
    return [x.dtype, INT32, INT32]


def _pad_reference(
    x: np.ndarray, offsets: np.ndarray, *, padded_length: int, pad_value: float
) -> tuple[np.ndarray, np.ndarray]:
    count = len(offsets) - 1
    out = np.full((count, padded_length, *x.shape[1:]), pad_value, x.dtype)
    length = np.zeros(count, INT32)
    for s in range(count):
        steps = x[offsets[s] : offsets[s + 1]][:padded_length]
        out[s, : len(steps)], length[s] = steps, len(steps)
    return out, length


@op(
    outputs=("out", "length", "places"),
    hidden=("places",),
    shape=_pad_shape,
    dtype=_pad_dtype,
    reference=_pad_reference,
    cases=[
        case(x=(6, 2), offsets=at(0, 2, 2, 5), padded_length=3),
        case(x=(5,), offsets=at(0, 1, 5), padded_length=2, pad_value=-1.5),
        case(x=(3, 2), offsets=at(0, 3, dtype="uint8"), padded_length=300, order=0),
        case(x=(2, 2), offsets=at(0), padded_length=3, order=1),
        case(x=(0,), offsets=at(0, 0), padded_length=2, order=1),
        case(x=(2,), offsets=at(0, 2), padded_length=0, order=1),
        case(x=integers(4, high=9), offsets=at(0, 1, 4), padded_length=3, pad_value=-1.0),
        workload(x=(20000, 64), offsets=even(20, 20000), padded_length=20),
        misuse("x must have an axis for the steps", x=(), offsets=at(0, 1), padded_length=2),
        misuse("'padded_length' must not be negative", x=(2,), offsets=at(0, 2), padded_length=-1),
        misuse("offsets must be integers, got float", x=(2,), offsets=(3,), padded_length=2),
        misuse(
            "pad_value must be of dtype int32, got 0.5",
            x=integers(2, high=9),
            offsets=at(0, 2),
            padded_length=2,
            pad_value=0.5,
        ),
    ],
)
def sequence_pad(
    x: Array, offsets: Array, *, padded_length: Length, pad_value: float = 0.0
) -> tuple[Array, Array, Array]:
    """Pads each sequence to a row of ``padded_length`` steps, and returns the lengths.

    ``out[s, t] = x[offsets[s] + t]`` for the steps ``t`` of sequence ``s``, followed by
    ``pad_value``. A longer sequence is truncated at its end, and ``length`` counts the remaining
    steps: ``length_mask(length, size=padded_length)`` is the mask of the steps. The lengths have
    dtype int32.

    Source: PaddlePaddle, operator ``sequence_pad``.

    Example:
        >>> import jax.numpy as jnp
        >>> out, length = sequence_pad(
        ...     jnp.asarray([1, 2, 3]), jnp.asarray([0, 1, 3]), padded_length=2
        ... )
        >>> out, length
        (Array([[1, 0],
               [2, 3]], dtype=int32), Array([1, 2], dtype=int32))
    """
    x, height = never_weak(x), jnp.shape(x)[0]
    length = jnp.minimum(sequence_lengths.kernel(offsets), padded_length)
    inside = jnp.arange(padded_length, dtype=INT32) < length[:, None]
    steps = offsets.astype(INT32)[:-1, None] + jnp.arange(padded_length, dtype=INT32)
    out = rows_at(x, beyond(inside, steps, height), pad_value)
    # The position of each step in the flattened rows, with which the gradient gathers.
    ids, begins, ends = bounds_of(offsets, height)
    within = jnp.arange(height, dtype=INT32) - begins
    kept = (within < ends - begins) & (within < padded_length)
    return out, length, beyond(kept, ids * padded_length + within, length.size * padded_length)


@sequence_pad.gradient
def _sequence_pad_gradient(
    places: Var, d_out: Var, d_length: Var | None, d_places: Var | None
) -> Grads:
    del d_length, d_places  # they are integers
    count, length, *element = d_out.shape
    rows = reshape(d_out, shape=(count * length, *element))
    return {"x": take(rows, places, fill_value=0.0), "offsets": None}


# sequence_unpad --------------------------------------------------------------------------------


def _unpad_shape(
    x: Shape, length: Shape, *, total_length: int | None
) -> tuple[Shape, Shape, Shape]:
    if len(x) < 2:
        raise ShapeError(f"x must have an axis for sequences and one for steps, got shape {x}")
    if length != x[:1]:
        raise ShapeError(f"length must hold one number for each of {x[0]} sequences, got {length}")
    total = x[0] * x[1] if total_length is None else total_length
    return (total, *x[2:]), (x[0] + 1,), x[:2]


def _unpad_dtype(x: VarType, length: VarType) -> list[DType]:
    require_offsets(length, "length")
    return [x.dtype, INT32, INT32]


def _unpad_reference(
    x: np.ndarray, length: np.ndarray, *, total_length: int | None
) -> tuple[np.ndarray, np.ndarray]:
    total = x.shape[0] * x.shape[1] if total_length is None else total_length
    parts = [row[: max(int(n), 0)] for row, n in zip(x, length, strict=True)]
    joined = np.concatenate([*parts, np.zeros((total, *x.shape[2:]), x.dtype)])[:total]
    ends = np.cumsum([0, *map(len, parts)])
    return joined.astype(x.dtype), np.minimum(ends, total).astype(INT32)


@op(
    outputs=("out", "out_offsets", "places"),
    hidden=("places",),
    shape=_unpad_shape,
    dtype=_unpad_dtype,
    reference=_unpad_reference,
    cases=[
        case(x=(3, 3, 2), length=at(2, 0, 3)),
        case(x=(3, 3), length=at(1, 5, -2), total_length=4),
        case(x=(3, 3), length=at(2, 2, 2), total_length=5),
        case(x=(2, 2), length=at(2, 1, dtype="uint8"), total_length=7),
        case(x=(2, 0), length=at(0, 3), total_length=2, order=1),
        case(x=(0, 2), length=integers(0, high=2), order=1),
        case(x=integers(2, 2, high=9), length=at(1, 2)),
        workload(x=(1000, 20, 64), length=integers(1000, high=21), total_length=10000),
        misuse("one for steps, got shape (3,)", x=(3,), length=at(1, 2, 3)),
        misuse("one number for each of 3 sequences", x=(3, 2), length=at(1, 2)),
        misuse("length must be integers, got float", x=(3, 2), length=(3,)),
        misuse("'total_length' must not be negative", x=(2, 2), length=at(1, 2), total_length=-1),
    ],
)
def sequence_unpad(
    x: Array, length: Array, *, total_length: Length | None = None
) -> tuple[Array, Array, Array]:
    """Concatenates the first ``length`` steps of each row, and returns the offsets of the rows.

    ``out[out_offsets[s] + t] = x[s, t]``; a negative length counts as zero, and one that exceeds
    the row as the row's length. ``out`` has ``total_length`` steps, by default as many as ``x``,
    with zeros after the last offset. Steps beyond ``total_length`` are dropped, and the offsets are
    clipped to it. Inverse of ``sequence_pad``.

    Source: PaddlePaddle, operator ``sequence_unpad``.

    Example:
        >>> import jax.numpy as jnp
        >>> x, length = jnp.asarray([[1, 0], [2, 3]]), jnp.asarray([1, 2])
        >>> out, offsets = sequence_unpad(x, length, total_length=3)
        >>> out, offsets
        (Array([1, 2, 3], dtype=int32), Array([0, 1, 3], dtype=int32))
    """
    x = never_weak(x)
    count, width, *element = x.shape
    total = count * width if total_length is None else total_length
    length = jnp.clip(length.astype(INT32), 0, width)
    offsets = offsets_of(length)
    ids = ids_of(offsets, total)
    within = jnp.arange(total, dtype=INT32) - rows_at(offsets[:-1], ids)
    flat = jnp.reshape(x, (count * width, *element))
    places = beyond(ids < count, ids * width + within, count * width)
    out = rows_at(flat, places)
    # The position of each step of a row in the result, with which the gradient gathers.
    steps = jnp.arange(width, dtype=INT32)
    back = beyond(steps < length[:, None], offsets[:-1, None] + steps, total)
    return out, jnp.minimum(offsets, total), back


@sequence_unpad.gradient
def _sequence_unpad_gradient(
    places: Var, d_out: Var, d_out_offsets: Var | None, d_places: Var | None
) -> Grads:
    del d_out_offsets, d_places  # they are integers
    return {"x": take(d_out, places, fill_value=0.0), "length": None}
