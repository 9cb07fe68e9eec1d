"""Offsets of ragged sequences: the positions where they begin in one array.

``n`` sequences of steps are concatenated along the first axis of an array. Their ``offsets`` are
``n + 1`` integers: sequence ``s`` is ``x[offsets[s]:offsets[s + 1]]``. Offsets start with zero and
never decrease; equal neighbors denote an empty sequence. Steps after the last offset are padding
and belong to no sequence, so an array may be longer than necessary.
"""

from typing import Annotated

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import Sample, case, fixed, integers, misuse
from registry.errors import DTypeError, ShapeError
from registry.operator.attributes import Check
from registry.operator.signature import Array
from registry.ops.core.indexing import take, wide_index
from registry.table import op
from registry.types import DType, Shape, VarType, is_integer

Length = Annotated[int, Check("not be negative", lambda value: value >= 0)]
"""A static length."""
INT32 = np.dtype(np.int32)

# Rules and kernels that the operators on sequences share ---------------------------------------


def sequence_count(offsets: Shape, slot: str = "offsets") -> int:
    """Returns the number of sequences.

    Raises:
        ShapeError: ``offsets`` is not a vector with at least one entry.
    """
    if len(offsets) != 1 or offsets[0] == 0:
        raise ShapeError(
            f"{slot} must be a vector with one number more than there are sequences, got shape "
            f"{offsets}"
        )
    return offsets[0] - 1


def require_steps(x: Shape, slot: str = "x") -> None:
    """Requires an axis for the steps."""
    if not x:
        raise ShapeError(f"{slot} must have an axis for the steps, got shape ()")


def require_offsets(offsets: VarType, slot: str = "offsets") -> None:
    """Requires integer offsets or lengths."""
    if not is_integer(offsets.dtype):
        raise DTypeError(f"{slot} must be integers, got {offsets.dtype.name}")


def ids_of(offsets: Array, total_length: int) -> Array:
    """Returns the sequence index of each of ``total_length`` steps; their number for padding."""
    # The number of sequences that end at or before a step: a cumulative sum of counted ends.
    ends = wide_index(offsets)[1:]
    counts = jnp.zeros(total_length, INT32).at[ends].add(1, mode="drop")
    return jnp.cumsum(counts, dtype=INT32)


def rows_at(x: Array, places: Array, fill_value: float = 0) -> Array:
    """Returns the rows of ``x`` at ``places``; rows of ``fill_value`` beyond its end."""
    rows: Array = take.kernel(x, places, axis=0, fill_value=fill_value)
    return rows


def bounds_of(offsets: Array, total_length: int) -> tuple[Array, Array, Array]:
    """Returns for each step its sequence, and that one's begin and end, both zero for padding."""
    ids, offsets = ids_of(offsets, total_length), wide_index(offsets)
    # After the last sequence both bounds are zero: they contain no step.
    begins, ends = (rows_at(side, ids) for side in (offsets[:-1], offsets[1:]))
    return ids, begins.astype(INT32), ends.astype(INT32)


def beyond(condition: Array, places: Array, height: int) -> Array:
    """Returns ``places`` where the condition holds, and ``height``, out of bounds, elsewhere."""
    return jnp.where(condition, places, height).astype(INT32)


def offsets_of(length: Array, limit: int | None = None) -> Array:
    """Returns the offsets of consecutive sequences of these lengths, clipped to ``limit``."""
    ends = jnp.cumsum(jnp.maximum(wide_index(length), 0), dtype=INT32)
    ends = ends if limit is None else jnp.minimum(ends, limit)
    return jnp.concatenate([jnp.zeros(1, INT32), ends])


def at(*numbers: int, dtype: str = "int32") -> Sample:
    """Offsets or lengths in a case, printed as they are written."""
    return fixed(
        f"at({', '.join(map(str, numbers))})", lambda _: np.asarray(numbers, np.dtype(dtype))
    )


def even(length: int, total: int) -> Sample:
    """Offsets of sequences of equal length in a case."""
    return fixed(
        f"even({length}, {total})", lambda _: np.arange(0, total + 1, length).astype(INT32)
    )


# sequence_ids ----------------------------------------------------------------------------------


def _ids_shape(offsets: Shape, *, total_length: int) -> Shape:
    sequence_count(offsets)
    return (total_length,)


def _offsets_dtype(offsets: VarType) -> DType:
    require_offsets(offsets)
    return INT32


def _ids_reference(offsets: np.ndarray, *, total_length: int) -> np.ndarray:
    count = len(offsets) - 1
    ids = [s for s in range(count) for _ in range(int(offsets[s + 1]) - int(offsets[s]))]
    return np.asarray((ids + [count] * total_length)[:total_length], INT32)


@op(
    shape=_ids_shape,
    dtype=_offsets_dtype,
    reference=_ids_reference,
    cases=[
        case(offsets=at(0, 2, 2, 5), total_length=5),
        case(offsets=at(0, 0, 3, 4, 4), total_length=7),
        case(offsets=at(0, 200, 200, 255, dtype="uint8"), total_length=300),
        case(offsets=at(0, 3), total_length=2),
        case(offsets=at(0), total_length=2),
        case(offsets=at(0, 0), total_length=0),
        misuse("a vector with one number more", offsets=integers(2, 2, high=3), total_length=2),
        misuse("a vector with one number more", offsets=integers(0, high=3), total_length=2),
        misuse("offsets must be integers, got float", offsets=(3,), total_length=2),
        misuse("'total_length' must not be negative", offsets=at(0, 1), total_length=-1),
    ],
)
def sequence_ids(offsets: Array, *, total_length: Length) -> Array:
    """The index of the sequence that each of ``total_length`` steps belongs to.

    Sequence ``s`` has the steps from ``offsets[s]`` up to ``offsets[s + 1]``. Padding after the
    last offset gets the number of sequences, which is not the index of any. The result is int32.

    Example:
        >>> import jax.numpy as jnp
        >>> sequence_ids(jnp.asarray([0, 2, 2, 5]), total_length=6)
        Array([0, 0, 2, 2, 2, 3], dtype=int32)
    """
    return ids_of(offsets, total_length)


sequence_ids.no_gradient("its input are integers")

# Offsets and lengths ---------------------------------------------------------------------------


def _lengths_shape(offsets: Shape) -> Shape:
    return (sequence_count(offsets),)


@op(
    shape=_lengths_shape,
    dtype=_offsets_dtype,
    reference=lambda offsets: np.diff(offsets.astype(INT32)),
    cases=[
        case(offsets=at(0, 2, 2, 5)),
        case(offsets=at(0, 3, 255, dtype="uint8")),
        case(offsets=at(0)),
        misuse("a vector with one number more", offsets=integers(high=3)),
        misuse("offsets must be integers, got float", offsets=(3,)),
    ],
)
def sequence_lengths(offsets: Array) -> Array:
    """The length of each sequence: ``offsets[s + 1] - offsets[s]``, of dtype int32.

    Example:
        >>> import jax.numpy as jnp
        >>> sequence_lengths(jnp.asarray([0, 2, 2, 5]))
        Array([2, 0, 3], dtype=int32)
    """
    offsets = wide_index(offsets)
    return lax.convert_element_type(offsets[1:] - offsets[:-1], INT32)


sequence_lengths.no_gradient("its input are integers")


def _offsets_shape(length: Shape) -> Shape:
    if len(length) != 1:
        raise ShapeError(f"length must be a vector, got shape {length}")
    return (length[0] + 1,)


def _length_dtype(length: VarType) -> DType:
    require_offsets(length, "length")
    return INT32


@op(
    shape=_offsets_shape,
    dtype=_length_dtype,
    reference=lambda length: np.cumsum([0, *np.maximum(length.astype(int), 0)]).astype(INT32),
    cases=[
        case(length=at(2, 0, 3)),
        case(length=integers(5, low=-2, high=4)),
        case(length=at(200, 200, dtype="uint8")),
        case(length=integers(0, high=3)),
        misuse("length must be a vector, got shape (2, 2)", length=integers(2, 2, high=3)),
        misuse("length must be integers, got float", length=(3,)),
    ],
)
def sequence_offsets(length: Array) -> Array:
    """The offsets of consecutive sequences of the given lengths.

    ``out[0] = 0`` and ``out[s + 1] = out[s] + length[s]``, of dtype int32; a negative length counts
    as zero. Inverse of ``sequence_lengths``.

    Example:
        >>> import jax.numpy as jnp
        >>> sequence_offsets(jnp.asarray([2, 0, 3]))
        Array([0, 2, 2, 5], dtype=int32)
    """
    return offsets_of(length)


sequence_offsets.no_gradient("its input are integers")
