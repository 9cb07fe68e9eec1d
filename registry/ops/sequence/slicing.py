"""Repetition and slicing of ragged sequences."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse, workload
from registry.errors import ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.indexing import add_rows, never_weak, take, wide_index
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
from registry.shapes import listed
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var

# sequence_expand -------------------------------------------------------------------------------


def _expand_shape(
    x: Shape, x_offsets: Shape, offsets: Shape, *, total_length: int, n_sequences: int
) -> tuple[Shape, Shape, Shape]:
    require_steps(x)
    of_x, of_y = sequence_count(x_offsets, "x_offsets"), sequence_count(offsets)
    if of_x != of_y:
        raise ShapeError(
            f"x_offsets and offsets must be of as many sequences, got {of_x} and {of_y}"
        )
    return (total_length, *x[1:]), (n_sequences + 1,), (total_length,)


def _expand_dtype(x: VarType, x_offsets: VarType, offsets: VarType) -> list[DType]:
    require_offsets(x_offsets, "x_offsets")
    require_offsets(offsets)
    return [x.dtype, INT32, INT32]


def one_after_other(parts: Sequence[np.ndarray], total: int, like: np.ndarray) -> np.ndarray:
    """Concatenates the parts, padded with zeros or truncated to ``total`` steps."""
    rest = np.zeros((total, *like.shape[1:]), like.dtype)
    joined: np.ndarray = np.concatenate([*parts, rest])
    return joined[:total]


def ends_of(parts: Sequence[np.ndarray], total: int) -> np.ndarray:
    """Returns the offsets of the parts in their concatenation, clipped to ``total``."""
    return np.asarray(np.minimum(np.cumsum([0, *map(len, parts)]), total), np.int32)


def _expand_reference(
    x: np.ndarray,
    x_offsets: np.ndarray,
    offsets: np.ndarray,
    *,
    total_length: int,
    n_sequences: int,
) -> tuple[np.ndarray, np.ndarray]:
    parts = [
        x[x_offsets[s] : x_offsets[s + 1]]
        for s in range(len(offsets) - 1)
        for _ in range(int(offsets[s + 1]) - int(offsets[s]))
    ]
    parts = [*parts, *[x[:0]] * n_sequences][:n_sequences]
    return one_after_other(parts, total_length, x), ends_of(parts, total_length)


@op(
    outputs=("out", "out_offsets", "places"),
    hidden=("places",),
    shape=_expand_shape,
    dtype=_expand_dtype,
    reference=_expand_reference,
    cases=[
        case(
            x=(5, 2),
            x_offsets=at(0, 2, 2, 3),
            offsets=at(0, 2, 3, 6),
            total_length=7,
            n_sequences=6,
        ),
        case(x=(4,), x_offsets=at(0, 2, 4), offsets=at(0, 2, 2), total_length=9, n_sequences=4),
        case(
            x=(4,),
            x_offsets=at(0, 1, 4, dtype="uint8"),
            offsets=at(0, 200, 250, dtype="uint8"),
            total_length=205,
            n_sequences=202,
            order=1,
        ),
        case(x=(2,), x_offsets=at(0), offsets=at(0), total_length=2, n_sequences=1, order=1),
        case(
            x=(0, 2), x_offsets=at(0, 0), offsets=at(0, 2), total_length=2, n_sequences=2, order=1
        ),
        case(x=(2,), x_offsets=at(0, 2), offsets=at(0, 1), total_length=0, n_sequences=0, order=1),
        case(
            x=integers(3, high=9),
            x_offsets=at(0, 1, 3),
            offsets=at(0, 2, 3),
            total_length=4,
            n_sequences=3,
        ),
        workload(
            x=(10000, 64),
            x_offsets=even(10, 10000),
            offsets=even(2, 2000),
            total_length=20000,
            n_sequences=2000,
        ),
        misuse(
            "of as many sequences, got 1 and 2",
            x=(3,),
            x_offsets=at(0, 3),
            offsets=at(0, 1, 2),
            total_length=3,
            n_sequences=2,
        ),
        misuse(
            "x_offsets must be integers, got float",
            x=(3,),
            x_offsets=(2,),
            offsets=at(0, 1),
            total_length=3,
            n_sequences=2,
        ),
        misuse(
            "'n_sequences' must not be negative",
            x=(3,),
            x_offsets=at(0, 3),
            offsets=at(0, 1),
            total_length=3,
            n_sequences=-1,
        ),
    ],
)
def sequence_expand(
    x: Array, x_offsets: Array, offsets: Array, *, total_length: Length, n_sequences: Length
) -> tuple[Array, Array, Array]:
    """Repeats each sequence of ``x`` as many times as ``offsets`` has steps for it.

    Sequence ``s`` of ``x``, delimited by ``x_offsets``, is repeated ``offsets[s + 1] - offsets[s]``
    times. The result has ``n_sequences`` sequences and ``total_length`` steps: it is padded with
    empty sequences and with zeros after the last offset, or truncated. ``sequence_expand_as``
    repeats rows.

    Source: PaddlePaddle, operator ``sequence_expand``.

    Example:
        >>> import jax.numpy as jnp
        >>> out, offsets = sequence_expand(
        ...     jnp.asarray([1, 2, 3]), jnp.asarray([0, 2, 3]), jnp.asarray([0, 2, 3]),
        ...     total_length=5, n_sequences=3,
        ... )
        >>> out, offsets
        (Array([1, 2, 1, 2, 3], dtype=int32), Array([0, 2, 4, 5], dtype=int32))
    """
    x = never_weak(x)
    sources = ids_of(offsets, n_sequences)
    length = rows_at(sequence_lengths.kernel(x_offsets), sources)
    begins = rows_at(wide_index(x_offsets)[:-1], sources)
    new = offsets_of(length)
    ids = ids_of(new, total_length)
    moved = rows_at(begins - new[:-1], ids)
    steps = jnp.arange(total_length, dtype=INT32) + moved
    places = beyond(ids < n_sequences, steps, x.shape[0])
    return rows_at(x, places), jnp.minimum(new, total_length), places


@sequence_expand.gradient
def _sequence_expand_gradient(
    x: Var, places: Var, d_out: Var, d_out_offsets: Var | None, d_places: Var | None
) -> Grads:
    del d_out_offsets, d_places  # they are integers
    d_x = add_rows(d_out, places, height=x.shape[0])
    return {"x": d_x, "x_offsets": None, "offsets": None}


# sequence_slice --------------------------------------------------------------------------------


def _slice_shape(
    x: Shape, offsets: Shape, begin: Shape, length: Shape, *, total_length: int | None
) -> tuple[Shape, Shape, Shape]:
    require_steps(x)
    count = sequence_count(offsets)
    if begin != (count,) or length != (count,):
        raise ShapeError(
            f"begin and length must hold one number for each of {count} sequences, got "
            f"{listed([begin, length])}"
        )
    total = x[0] if total_length is None else total_length
    return (total, *x[1:]), offsets, x[:1]


def _slice_dtype(x: VarType, offsets: VarType, begin: VarType, length: VarType) -> list[DType]:
    require_offsets(offsets)
    require_offsets(begin, "begin")
    require_offsets(length, "length")
    return [x.dtype, INT32, INT32]


def _slice_reference(
    x: np.ndarray,
    offsets: np.ndarray,
    begin: np.ndarray,
    length: np.ndarray,
    *,
    total_length: int | None,
) -> tuple[np.ndarray, np.ndarray]:
    parts = []
    for s in range(len(begin)):
        steps = x[offsets[s] : offsets[s + 1]]
        chosen = range(int(begin[s]), int(begin[s]) + int(length[s]))
        parts.append(steps[[i for i in chosen if 0 <= i < len(steps)]])
    total = len(x) if total_length is None else total_length
    return one_after_other(parts, total, x), ends_of(parts, total)


@op(
    outputs=("out", "out_offsets", "places"),
    hidden=("places",),
    shape=_slice_shape,
    dtype=_slice_dtype,
    reference=_slice_reference,
    cases=[
        case(x=(6, 2), offsets=at(0, 3, 3, 5), begin=at(1, 0, 0), length=at(2, 1, 1)),
        case(x=(6,), offsets=at(0, 4, 6), begin=at(-1, 1), length=at(3, 9), total_length=4),
        case(x=(6,), offsets=at(0, 2, 4, 6), begin=at(0, 5, 0), length=at(2, 1, 2), total_length=3),
        case(x=(5,), offsets=at(0, 3, 5), begin=at(1, 1), length=at(-2, 1), total_length=7),
        case(
            x=(3,),
            offsets=at(0, 3, dtype="uint8"),
            begin=at(1, dtype="uint8"),
            length=at(255, dtype="uint8"),
            order=1,
        ),
        case(x=(0, 2), offsets=at(0, 0), begin=at(0), length=at(1), order=1),
        case(x=(2,), offsets=at(0), begin=integers(0, high=2), length=integers(0, high=2), order=1),
        case(x=integers(4, high=9), offsets=at(0, 4), begin=at(1), length=at(2)),
        workload(
            x=(20000, 64),
            offsets=even(20, 20000),
            begin=integers(1000, high=10),
            length=integers(1000, high=10),
        ),
        misuse(
            "one number for each of 2 sequences, got (2,) and (1,)",
            x=(3,),
            offsets=at(0, 1, 3),
            begin=at(0, 0),
            length=at(1),
        ),
        misuse(
            "begin must be integers, got float", x=(3,), offsets=at(0, 3), begin=(1,), length=at(1)
        ),
        misuse(
            "length must be integers, got float", x=(3,), offsets=at(0, 3), begin=at(1), length=(1,)
        ),
        misuse(
            "'total_length' must not be negative",
            x=(3,),
            offsets=at(0, 3),
            begin=at(1),
            length=at(1),
            total_length=-1,
        ),
    ],
)
def sequence_slice(
    x: Array, offsets: Array, begin: Array, length: Array, *, total_length: Length | None = None
) -> tuple[Array, Array, Array]:
    """Selects ``length`` steps of each sequence from step ``begin`` on, and returns the offsets.

    ``begin`` and ``length`` hold a number for each sequence, in steps relative to its start: of the
    steps from ``begin[s]`` up to ``begin[s] + length[s]``, the existing ones are selected. ``out``
    has ``total_length`` steps, by default as many as ``x``, with zeros after the last offset. Steps
    beyond ``total_length`` are dropped, and the offsets are clipped to it.

    Source: PaddlePaddle, operator ``sequence_slice``.

    Example:
        >>> import jax.numpy as jnp
        >>> out, offsets = sequence_slice(
        ...     jnp.asarray([1, 2, 3, 4]), jnp.asarray([0, 3, 4]), jnp.asarray([1, 0]),
        ...     jnp.asarray([2, 1]), total_length=3,
        ... )
        >>> out, offsets
        (Array([2, 3, 4], dtype=int32), Array([0, 2, 3], dtype=int32))
    """
    x = never_weak(x)
    height = x.shape[0]
    total = height if total_length is None else total_length
    old, begin, count = sequence_lengths.kernel(offsets), begin.astype(INT32), length.shape[0]
    first = jnp.clip(begin, 0, old)
    kept = jnp.clip(begin + length.astype(INT32), first, old) - first
    new, starts = offsets_of(kept), wide_index(offsets)[:-1] + first
    ids = ids_of(new, total)
    moved = rows_at(starts - new[:-1], ids)
    steps = beyond(ids < count, jnp.arange(total, dtype=INT32) + moved, height)
    # The position of each step of x in the result, with which the gradient gathers.
    own, *_ = bounds_of(offsets, height)
    lows, lengths, shifts = (rows_at(rows, own) for rows in (starts, kept, new[:-1] - starts))
    places = jnp.arange(height, dtype=INT32)
    inside = (lows <= places) & (places < lows + lengths)
    out = rows_at(x, steps)
    return out, jnp.minimum(new, total), beyond(inside, places + shifts, total)


@sequence_slice.gradient
def _sequence_slice_gradient(
    places: Var, d_out: Var, d_out_offsets: Var | None, d_places: Var | None
) -> Grads:
    del d_out_offsets, d_places  # they are integers
    d_x = take(d_out, places, fill_value=0.0)
    return {"x": d_x, "offsets": None, "begin": None, "length": None}
