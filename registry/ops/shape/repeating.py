"""Repeating entries, and broadcasting or reshaping to the shape of another array."""

import math
from typing import Annotated

import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse, workload
from registry.errors import AttributeValueError, ShapeError
from registry.operator.attributes import Check, ConvertedBy
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.arranging import moveaxis
from registry.ops.core.broadcasting import sum_to
from registry.ops.core.indexing import add_rows
from registry.ops.core.reductions import sum as sum_over
from registry.ops.core.reshaping import reshape, several
from registry.shapes import broadcast, normalize_axis, promote
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var


def dtype_of_x(x: VarType) -> tuple[DType, bool]:
    """The dtype of ``x``, regardless of the other inputs."""
    return x.dtype, x.weak


# Shapes of another array -----------------------------------------------------------------------


def _broadcast_like_shape(x: Shape, like: Shape) -> Shape:
    if len(x) > len(like) or broadcast(x, like) != like:
        raise ShapeError(f"x must broadcast to the shape of like, got {x} and {like}")
    return like


@op(
    shape=_broadcast_like_shape,
    dtype=dtype_of_x,
    reference=lambda x, like: np.broadcast_to(x, like.shape),
    aliases=["expand_as"],
    cases=[
        case(x=(3, 1), like=(2, 3, 2)),
        case(x=(), like=(2,)),
        case(x=(1,), like=(0,)),
        case(x=integers(2, high=9), like=(2, 2)),
        case(x=(2,), like=integers(3, 2, high=9)),
        workload(x=(1024, 1), like=(1024, 1024)),
        misuse("x must broadcast to the shape of like, got (2, 3) and (3,)", x=(2, 3), like=(3,)),
        misuse("the inputs' shapes must broadcast together", x=(2,), like=(3,)),
    ],
)
def broadcast_like(x: Array, like: Array) -> Array:
    """Broadcasts ``x`` to the shape of ``like`` by NumPy's rules: axes are aligned at the end.

    Only the shape of ``like`` matters; its gradient is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> broadcast_like(jnp.asarray([1, 2]), jnp.zeros((2, 2)))
        Array([[1, 2],
               [1, 2]], dtype=int32)
    """
    return jnp.broadcast_to(x, jnp.shape(like))


@broadcast_like.gradient
def _broadcast_like_gradient(x: Var, d_out: Var) -> Grads:
    return {"x": sum_to(d_out, shape=x.shape), "like": None}


def _reshape_like_shape(x: Shape, like: Shape) -> Shape:
    if math.prod(x) != math.prod(like):
        raise ShapeError(f"x must have as many entries as like, got {x} and {like}")
    return like


@op(
    shape=_reshape_like_shape,
    dtype=dtype_of_x,
    reference=lambda x, like: np.reshape(x, like.shape),
    aliases=["view_as"],
    cases=[
        case(x=(3, 4), like=(2, 6)),
        case(x=(1,), like=()),
        case(x=(0, 3), like=(2, 0)),
        case(x=integers(4, high=9), like=(2, 2)),
        case(x=(4,), like=integers(2, 2, high=9)),
        workload(x=(1024, 1024), like=(1048576,)),
        misuse("x must have as many entries as like, got (3,) and (2,)", x=(3,), like=(2,)),
    ],
)
def reshape_like(x: Array, like: Array) -> Array:
    """Reshapes ``x`` in row-major order to the shape of ``like``.

    Only the shape of ``like`` matters; its gradient is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> reshape_like(jnp.asarray([1, 2, 3, 4]), jnp.zeros((2, 2)))
        Array([[1, 2],
               [3, 4]], dtype=int32)
    """
    return jnp.reshape(x, jnp.shape(like))


@reshape_like.gradient
def _reshape_like_gradient(x: Var, d_out: Var) -> Grads:
    return {"x": reshape(d_out, shape=x.shape), "like": None}


# tile ------------------------------------------------------------------------------------------

Repetitions = Annotated[
    tuple[int, ...],
    ConvertedBy(several),
    Check("hold no negative number", lambda value: all(n >= 0 for n in value)),
]
"""The number of repetitions along each axis."""


def _aligned(x: Shape, repetitions: tuple[int, ...]) -> list[tuple[int, int]]:
    """For each axis of the tiled ``x``, the number of repetitions and the original length."""
    ndim = max(len(x), len(repetitions))
    times = (1,) * (ndim - len(repetitions)) + repetitions
    return list(zip(times, (1,) * (ndim - len(x)) + x, strict=True))


def _tile_shape(x: Shape, *, repetitions: tuple[int, ...]) -> Shape:
    return tuple(times * n for times, n in _aligned(x, repetitions))


@op(
    rearranges=True,
    shape=_tile_shape,
    dtype=promote,
    reference=lambda x, *, repetitions: np.tile(x, repetitions),
    cases=[
        case(x=(2, 3), repetitions=(2, 3)),
        case(x=(2,), repetitions=(2, 1, 2)),
        case(x=(2, 3), repetitions=(2,)),
        case(x=(2, 3), repetitions=2),
        case(x=(), repetitions=(2,)),
        case(x=(2, 3), repetitions=(0, 1)),
        case(x=(0, 2), repetitions=(2, 2)),
        case(x=integers(2, high=9), repetitions=()),
        workload(x=(256, 256), repetitions=(4, 4)),
        misuse("must hold no negative number, got (-1,)", x=(2,), repetitions=(-1,)),
    ],
)
def tile(x: Array, *, repetitions: Repetitions) -> Array:
    """Tiles ``x``, repeating it ``repetitions[i]`` times along axis ``i``.

    A single number applies to the last axis. The shorter of ``repetitions`` and the shape of ``x``
    is padded with leading ones.

    Example:
        >>> import jax.numpy as jnp
        >>> tile(jnp.asarray([1, 2]), repetitions=(2, 2))
        Array([[1, 2, 1, 2],
               [1, 2, 1, 2]], dtype=int32)
    """
    return jnp.tile(x, repetitions)


@tile.gradient
def _tile_gradient(x: Var, d_out: Var, *, repetitions: tuple[int, ...]) -> Grads:
    # An axis of the result is an axis of copies followed by the axis of x; the copies are summed.
    lengths: list[int] = []
    copies: list[int] = []
    for times, n in _aligned(x.shape, repetitions):
        if times != 1:
            copies.append(len(lengths))
            lengths.append(times)
        lengths.append(n)
    apart = reshape(d_out, shape=tuple(lengths))
    return {"x": reshape(sum_over(apart, axis=tuple(copies)), shape=x.shape)}


@tile.simplify
def _tile_simplify(x: Var, *, repetitions: tuple[int, ...]) -> Var | None:
    whole = len(repetitions) <= x.ndim and all(times == 1 for times in repetitions)
    return x if whole else None


# repeat ----------------------------------------------------------------------------------------

Repeats = Annotated[
    int | tuple[int, ...],
    Check("hold no negative number", lambda value: np.all(np.asarray(value) >= 0)),
]
"""The number of repetitions of each entry."""


def _repeat_shape(x: Shape, *, repeats: int | tuple[int, ...], axis: int | None) -> Shape:
    at = 0 if axis is None else normalize_axis(axis, len(x))
    before = (math.prod(x),) if axis is None else x
    if isinstance(repeats, int):
        return (*before[:at], before[at] * repeats, *before[at + 1 :])
    if len(repeats) != before[at]:
        raise AttributeValueError(
            f"repeats must have one number for each of {before[at]} entries, got {repeats}"
        )
    return (*before[:at], sum(repeats), *before[at + 1 :])


@op(
    rearranges=True,
    shape=_repeat_shape,
    dtype=promote,
    reference=lambda x, *, repeats, axis=None: np.repeat(x, repeats, axis),
    aliases=["repeat_interleave"],
    cases=[
        case(x=(2, 3), repeats=2, axis=-1),
        case(x=(2, 3), repeats=3),
        case(x=(2, 3), repeats=(2, 0, 1), axis=1),
        case(x=(3, 2), repeats=(0, 2, 1), axis=0),
        case(x=(2, 1), repeats=(1, 2)),
        case(x=(), repeats=2),
        case(x=(0, 2), repeats=2, axis=0),
        case(x=(2,), repeats=0),
        case(x=integers(3, high=9), repeats=2),
        workload(x=(256, 256), repeats=8, axis=0),
        misuse("axis must be in [-1, 1), got 1", x=(2,), repeats=2, axis=1),
        misuse("must have one number for each of 2 entries, got (1,)", x=(2,), repeats=(1,)),
        misuse("must hold no negative number, got -1", x=(2,), repeats=-1),
    ],
)
def repeat(x: Array, *, repeats: Repeats, axis: int | None = None) -> Array:
    """Repeats each entry of ``x`` along ``axis``; the copies of an entry are adjacent.

    ``repeats`` is the number of copies, or one number for each entry of the axis. Without ``axis``,
    ``x`` is flattened in row-major order first.

    Example:
        >>> import jax.numpy as jnp
        >>> repeat(jnp.asarray([1, 2, 3]), repeats=(2, 0, 1))
        Array([1, 1, 3], dtype=int32)
    """
    if isinstance(repeats, int):
        return jnp.repeat(x, repeats, axis)
    return jnp.repeat(x, np.array(repeats, int), axis, total_repeat_length=sum(repeats))


@repeat.gradient
def _repeat_gradient(
    x: Var, d_out: Var, *, repeats: int | tuple[int, ...], axis: int | None
) -> Grads:
    # Every entry receives the sum of the cotangents of its copies.
    before = (x.size,) if axis is None else x.shape
    at = 0 if axis is None else axis % x.ndim
    if isinstance(repeats, int):
        apart = reshape(d_out, shape=(*before[: at + 1], repeats, *before[at + 1 :]))
        summed = sum_over(apart, axis=at + 1)
    else:
        # Different numbers of copies do not form an axis: add them to the entries that they come
        # from.
        origins = np.repeat(np.arange(before[at], dtype=np.int32), repeats)
        rows = add_rows(moveaxis(d_out, source=at, destination=0), origins, height=before[at])
        summed = moveaxis(rows, source=0, destination=at)
    return {"x": reshape(summed, shape=x.shape)}


@repeat.simplify
def _repeat_simplify(x: Var, *, repeats: int | tuple[int, ...], axis: int | None) -> Var | None:
    once = repeats == 1 if isinstance(repeats, int) else all(n == 1 for n in repeats)
    return x if once and (axis is not None or x.ndim == 1) else None
