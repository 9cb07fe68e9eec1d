"""Sequence-wise concatenation of ragged arrays."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse, workload
from registry.errors import ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import unbroadcast
from registry.ops.core.indexing import never_weak, take, wide_index
from registry.ops.sequence.offsets import (
    INT32,
    at,
    beyond,
    ids_of,
    require_offsets,
    require_steps,
    rows_at,
)
from registry.ops.sequence.slicing import ends_of, one_after_other
from registry.ops.shape.dynamic_slicing import slice_axis
from registry.shapes import listed, promote
from registry.table import op
from registry.types import Shape, VarType
from registry.var import Var

# sequence_concat -------------------------------------------------------------------------------


def _concat_shape(offsets: Shape, xs: Sequence[Shape]) -> tuple[Shape, Shape, Shape]:
    for x in xs:
        require_steps(x, "xs")
    if len(offsets) != 2 or offsets[0] != len(xs) or offsets[1] == 0:
        raise ShapeError(
            f"offsets must hold a row of offsets for each of {len(xs)} arrays, got shape {offsets}"
        )
    if any(x[1:] != xs[0][1:] for x in xs):
        raise ShapeError(f"xs must agree in all axes but the first, got {listed(xs)}")
    total = sum(x[0] for x in xs)
    return (total, *xs[0][1:]), offsets[1:], (total,)


def _concat_dtype(offsets: VarType, xs: Sequence[VarType]) -> list[object]:
    require_offsets(offsets)
    return [promote(*xs)[0], INT32, INT32]


def _concat_reference(
    xs: Sequence[np.ndarray], offsets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    parts = [
        np.concatenate([x[row[s] : row[s + 1]] for x, row in zip(xs, offsets, strict=True)])
        for s in range(offsets.shape[1] - 1)
    ]
    total = sum(map(len, xs))
    like = np.zeros((0, *xs[0].shape[1:]), np.result_type(*xs))
    return one_after_other(parts, total, like), ends_of(parts, total)


_TWO = np.asarray([[0, 2, 2, 4], [0, 1, 3, 3]], INT32)


@op(
    outputs=("out", "out_offsets", "places"),
    hidden=("places",),
    order=("xs", "offsets"),
    shape=_concat_shape,
    dtype=_concat_dtype,
    reference=_concat_reference,
    cases=[
        case(xs=[(5, 2), (4, 2)], offsets=_TWO),
        case(xs=[(4,), (3,)], offsets=_TWO.astype(np.uint8), order=2),
        case(xs=[(3, 2)], offsets=np.asarray([[0, 1, 3]], INT32), order=2),
        case(
            xs=[(2,), (0,), (3,)],
            offsets=np.asarray([[0, 1, 1], [0, 0, 0], [0, 1, 3]], INT32),
            order=2,
        ),
        case(xs=[(2,), (1,)], offsets=np.asarray([[0], [0]], INT32), order=1),
        case(xs=[(4,), integers(3, high=9)], offsets=_TWO, order=1),
        workload(
            xs=[(10000, 64), (20000, 64)],
            offsets=np.stack([np.arange(0, 10001, 10), np.arange(0, 20001, 20)]).astype(INT32),
        ),
        misuse(
            "a row of offsets for each of 2 arrays, got shape (3,)",
            xs=[(4,), (3,)],
            offsets=at(0, 1, 2),
        ),
        misuse("a row of offsets for each of 1 arrays, got shape (2, 4)", xs=[(4,)], offsets=_TWO),
        misuse("agree in all axes but the first", xs=[(4, 2), (3,)], offsets=_TWO),
        misuse("xs must have an axis for the steps", xs=[(4,), ()], offsets=_TWO),
        misuse("offsets must be integers, got float", xs=[(4,)], offsets=(1, 3)),
    ],
)
def sequence_concat(offsets: Array, *xs: Array) -> tuple[Array, Array, Array]:
    """Concatenates the sequences of several arrays sequence by sequence, and returns their offsets.

    ``offsets`` has a row for each of ``xs``, all with the same number of sequences. Sequence ``s``
    of the result consists of the steps of sequence ``s`` of the first array, then of the second,
    and so on. The length of the result is the total length of ``xs``: their padding becomes zeros
    after the last offset.

    Source: PaddlePaddle, operator ``sequence_concat``.

    Example:
        >>> import jax.numpy as jnp
        >>> x, y = jnp.asarray([1, 2, 3]), jnp.asarray([10, 20])
        >>> out, offsets = sequence_concat([x, y], jnp.asarray([[0, 1, 3], [0, 1, 2]]))
        >>> out, offsets
        (Array([ 1, 10,  2,  3, 20], dtype=int32), Array([0, 2, 5], dtype=int32))
    """
    offsets = wide_index(offsets).astype(INT32)
    total, count = sum(x.shape[0] for x in xs), offsets.shape[1] - 1
    length = offsets[:, 1:] - offsets[:, :-1]
    new = offsets.sum(axis=0, dtype=INT32)
    # The steps of each array follow those of the arrays before it within the sequence.
    starts = new[:-1] + jnp.cumsum(length, axis=0, dtype=INT32) - length
    parts = []
    for x, row, start in zip(xs, offsets, starts, strict=True):
        ids = ids_of(row, x.shape[0])
        moved = rows_at(start - row[:-1], ids)
        parts.append(beyond(ids < count, jnp.arange(x.shape[0], dtype=INT32) + moved, total))
    places = jnp.concatenate(parts)
    sources = jnp.full(total, total, INT32)
    sources = sources.at[places].set(jnp.arange(total, dtype=INT32), mode="drop")
    joined = never_weak(jnp.concatenate(xs))
    return rows_at(joined, sources), new, places


@sequence_concat.gradient
def _sequence_concat_gradient(
    xs: Sequence[Var], places: Var, d_out: Var, d_out_offsets: Var | None, d_places: Var | None
) -> Grads:
    del d_out_offsets, d_places  # they are integers
    joined, d_xs, begin = take(d_out, places, fill_value=0.0), [], 0
    for x in xs:
        own = slice_axis(joined, axis=0, begin=begin, end=begin + x.shape[0])
        d_xs.append(unbroadcast(own, x))
        begin += x.shape[0]
    return {"offsets": None, "xs": d_xs}
