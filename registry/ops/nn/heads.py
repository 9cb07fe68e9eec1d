"""Attention heads and positions: what surrounds attention in a transformer.

Each operator says how it computes a few positions at a time (``stepwise``), where the number of
positions before them differs between the examples of a batch.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse, workload
from registry.errors import AttributeValueError, DTypeError, ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import cast
from registry.ops.core.comparison import greater_equal, less, logical_and
from registry.ops.core.elementwise import where
from registry.ops.core.reductions import statistics_dtype
from registry.ops.core.reshaping import reshape
from registry.ops.indexing.gathering import take_along_axis
from registry.shapes import default_int, inexact, normalize_axis, promote, real
from registry.table import op
from registry.types import DType, Shape, VarType, is_complex, is_integer
from registry.var import Var

# Heads -------------------------------------------------------------------------------------------


def _split_heads_shape(x: Shape, *, heads: int) -> Shape:
    if len(x) < 2:
        raise ShapeError(f"x must have the axes of positions and features, got shape {x}")
    if heads < 1 or x[-1] % heads:
        raise AttributeValueError(f"heads must divide the {x[-1]} features, got {heads}")
    return (*x[:-2], heads, x[-2], x[-1] // heads)


def _split_heads_reference(x: np.ndarray, *, heads: int) -> np.ndarray:
    return np.stack(np.split(x, heads, axis=-1), axis=-3)


@op(
    shape=_split_heads_shape,
    dtype=promote,
    rearranges=True,
    reference=_split_heads_reference,
    cases=[
        case(x=(2, 3, 4), heads=2),
        case(x=(3, 6), heads=3),
        case(x=(2, 0, 4), heads=4),
        case(x=integers(2, 4, high=9), heads=2),
        workload(x=(8, 512, 512), heads=8),
        misuse("heads must divide the 4 features, got 3", x=(2, 3, 4), heads=3),
        misuse("x must have the axes of positions and features", x=(4,), heads=2),
    ],
)
def split_heads(x: Array, *, heads: int) -> Array:
    """Splits the features of each position into attention heads.

    The result has shape ``(..., heads, positions, features / heads)`` for ``x`` of shape
    ``(..., positions, features)``.

    Example:
        >>> import jax.numpy as jnp
        >>> split_heads(jnp.asarray([[1, 2, 3, 4]]), heads=2)
        Array([[[1, 2]],
        <BLANKLINE>
               [[3, 4]]], dtype=int32)
    """
    *_, positions, features = x.shape
    split = jnp.reshape(x, (*x.shape[:-2], positions, heads, features // heads))
    return jnp.swapaxes(split, -2, -3)


@split_heads.gradient
def _split_heads_gradient(d_out: Var) -> Grads:
    return {"x": merge_heads(d_out)}


def _merge_heads_shape(x: Shape) -> Shape:
    if len(x) < 3:
        raise ShapeError(f"x must have the axes of heads, positions and features, got shape {x}")
    return (*x[:-3], x[-2], x[-3] * x[-1])


def _merge_heads_reference(x: np.ndarray) -> np.ndarray:
    return np.concatenate(list(np.moveaxis(x, -3, 0)), axis=-1)


@op(
    shape=_merge_heads_shape,
    dtype=promote,
    rearranges=True,
    reference=_merge_heads_reference,
    cases=[
        case(x=(2, 3, 4, 2)),
        case(x=(2, 3, 4)),
        case(x=(2, 0, 4)),
        case(x=integers(2, 3, 2, high=9)),
        workload(x=(8, 8, 512, 64)),
        misuse("x must have the axes of heads, positions and features", x=(3, 4)),
    ],
)
def merge_heads(x: Array) -> Array:
    """Joins the features of attention heads; the inverse of ``split_heads``.

    Example:
        >>> import jax.numpy as jnp
        >>> merge_heads(jnp.asarray([[[1, 2]], [[3, 4]]]))
        Array([[1, 2, 3, 4]], dtype=int32)
    """
    heads, positions, features = x.shape[-3:]
    return jnp.swapaxes(x, -2, -3).reshape(*x.shape[:-3], positions, heads * features)


@merge_heads.gradient
def _merge_heads_gradient(x: Var, d_out: Var) -> Grads:
    return {"x": split_heads(d_out, heads=x.shape[-3])}


# Positions ---------------------------------------------------------------------------------------


def _require_start(start: Shape | None, batch: int | None) -> None:
    if start is not None and (len(start) != 1 or batch not in (None, start[0])):
        raise ShapeError(f"start must have one entry for each example, ({batch},), got {start}")


def _require_whole(start: VarType | None) -> None:
    if start is not None and not is_integer(start.dtype):
        raise DTypeError(f"start must be integers, got {start.dtype.name}")


def _position_ids_shape(x: Shape, start: Shape | None, *, axis: int) -> Shape:
    length = x[normalize_axis(axis, len(x))]
    _require_start(start, x[0] if x else None)
    return (length,) if start is None else (*start, length)


def _position_ids_dtype(start: VarType | None) -> DType:
    _require_whole(start)
    return default_int()


def _position_ids_reference(
    x: np.ndarray, start: np.ndarray | None = None, *, axis: int = 1
) -> np.ndarray:
    places = np.arange(x.shape[axis])
    return np.asarray(places if start is None else start[:, None] + places)


@op(
    shape=_position_ids_shape,
    dtype=_position_ids_dtype,
    reference=_position_ids_reference,
    cases=[
        case(x=integers(2, 3, high=9)),
        case(x=integers(2, 3, high=9), start=np.array([4, 0], np.int32)),
        case(x=(3, 2, 4), axis=-1),
        misuse("start must have one entry for each example, (2,), got (3,)",
               x=integers(2, 3, high=9), start=np.zeros(3, np.int32)),
        misuse("start must be integers, got float", x=integers(2, 3, high=9), start=(2,)),
    ],
)  # fmt: skip
def position_ids(x: Array, start: Array | None = None, *, axis: int = 1) -> Array:
    """The number of each position of ``x`` along an axis: ``0, 1, ...``, of shape ``(length,)``.

    With ``start``, the number of positions before the first one of each example, it has shape
    ``(batch, length)``. ``so.Generator`` supplies ``start``.

    Example:
        >>> import jax.numpy as jnp
        >>> position_ids(jnp.zeros((2, 3)))
        Array([0, 1, 2], dtype=int32)
    """
    places = jnp.arange(jnp.shape(x)[axis], dtype=default_int())
    return places if start is None else (start[:, None] + places).astype(default_int())


position_ids.zero_gradient("positions do not depend on values")


@position_ids.stepwise
def _position_ids_by_steps(x: Var, before: Var, *, axis: int) -> Any:
    return position_ids(x, before, axis=axis)


def _rotary_shape(x: Shape, start: Shape | None) -> Shape:
    if len(x) < 2 or x[-1] % 2:
        raise ShapeError(f"x must have positions and an even number of features, got shape {x}")
    _require_start(start, x[0] if len(x) > 2 else None)
    return x


def _rotary_dtype(x: VarType, start: VarType | None) -> DType:
    real(x)
    _require_whole(start)
    return inexact(x)[0]


def _rotary_reference(
    x: np.ndarray,
    start: np.ndarray | None = None,
    *,
    base: float = 10000.0,
    inverse: bool = False,
) -> np.ndarray:
    half = x.shape[-1] // 2
    before = np.zeros(1) if start is None else start
    places = np.arange(x.shape[-2]) + before.reshape(-1, *[1] * (x.ndim - 2))
    angles = places[..., None] / base ** (np.arange(half) / max(half, 1))
    z = (x[..., :half] + 1j * x[..., half:]) * np.exp(-1j * angles if inverse else 1j * angles)
    return np.concatenate([z.real, z.imag], axis=-1)


@op(
    shape=_rotary_shape,
    dtype=_rotary_dtype,
    reference=_rotary_reference,
    cases=[
        case(x=(2, 3, 4)),
        case(x=(2, 2, 3, 4), start=np.array([4, 0], np.int32), base=100.0),
        case(x=(3, 2), inverse=True),
        workload(x=(8, 8, 512, 64)),
        misuse("x must have positions and an even number of features, got shape (2, 3)", x=(2, 3)),
        misuse("start must have one entry for each example, (2,), got (3,)",
               x=(2, 3, 4), start=np.zeros(3, np.int32)),
    ],
)  # fmt: skip
def rotary_embedding(
    x: Array, start: Array | None = None, *, base: float = 10000.0, inverse: bool = False
) -> Array:
    """Rotates pairs of features by angles that grow with the position.

    Feature ``i`` of the first half and feature ``i`` of the second half are a point in the plane,
    which position ``p`` rotates by ``p / base ** (2 i / width)``, or backwards with ``inverse``.
    ``x`` has shape ``(..., positions, width)``; ``start`` is as in ``position_ids``. Products of
    rotated queries and keys then depend on the difference of their positions. The angles are
    computed in at least float32.

    Source: Su et al., "RoFormer: Enhanced transformer with rotary position embedding", 2021.

    Example:
        >>> import jax.numpy as jnp
        >>> rotary_embedding(jnp.array([[1.0, 0.0], [1.0, 0.0]])).round(1)
        Array([[1. , 0. ],
               [0.5, 0.8]], dtype=float32)
    """
    wide, half = statistics_dtype(x.dtype), x.shape[-1] // 2
    places = jnp.arange(x.shape[-2], dtype=wide)
    if start is not None:
        places = places + start.reshape(-1, *[1] * (x.ndim - 2)).astype(wide)
    rates = jnp.power(jnp.asarray(base, wide), jnp.arange(half, dtype=wide) / -max(half, 1))
    angles = places[..., None] * rates
    cosine, sine = jnp.cos(angles), jnp.sin(-angles if inverse else angles)
    left, right = x[..., :half].astype(wide), x[..., half:].astype(wide)
    turned = [left * cosine - right * sine, left * sine + right * cosine]
    return jnp.concatenate(turned, axis=-1).astype(x.dtype)


@rotary_embedding.gradient
def _rotary_gradient(start: Var | None, d_out: Var, *, base: float, inverse: bool) -> Grads:
    # The transpose of a rotation is the rotation backwards.
    return {"x": rotary_embedding(d_out, start, base=base, inverse=not inverse), "start": None}


@rotary_embedding.stepwise
def _rotary_by_steps(x: Var, before: Var, *, base: float, inverse: bool) -> Any:
    return rotary_embedding(x, before, base=base, inverse=inverse)


# Caches ------------------------------------------------------------------------------------------


def _write_steps_shape(cache: Shape, steps: Shape, start: Shape) -> Shape:
    alike = len(cache) == len(steps) >= 3 and cache[:-2] == steps[:-2] and cache[-1] == steps[-1]
    if not alike or steps[-2] > cache[-2]:
        raise ShapeError(
            "steps must have the axes of the cache, and be at most as many, got "
            f"{steps} and {cache}"
        )
    _require_start(start, cache[0])
    return cache


def _write_steps_dtype(cache: VarType, steps: VarType, start: VarType) -> tuple[DType, bool]:
    if is_complex(steps.dtype) and not is_complex(cache.dtype):
        raise DTypeError(f"steps must be real, as the cache is, got {steps.dtype.name}")
    _require_whole(start)
    return cache.dtype, cache.weak


def _write_steps_reference(cache: np.ndarray, steps: np.ndarray, start: np.ndarray) -> np.ndarray:
    result = cache.copy()
    for i, place in enumerate(start):
        first = min(max(int(place), 0), cache.shape[-2] - steps.shape[-2])
        result[i, ..., first : first + steps.shape[-2], :] = steps[i]
    return result


_FEW: dict[str, Any] = {"cache": (2, 2, 5, 3), "steps": (2, 2, 2, 3)}


@op(
    shape=_write_steps_shape,
    dtype=_write_steps_dtype,
    reference=_write_steps_reference,
    cases=[
        case(**_FEW, start=np.array([2, 0], np.int32)),
        case(**_FEW, start=np.array([9, -1], np.int32), order=1),
        case(cache=(2, 3, 2), steps=(2, 1, 2), start=np.array([2, 1], np.int32), order=1),
        workload(cache=(8, 8, 512, 64), steps=(8, 8, 1, 64), start=integers(8, high=512)),
        misuse("steps must have the axes of the cache, and be at most as many",
               cache=(2, 2, 2), steps=(2, 3, 2), start=np.zeros(2, np.int32)),
        misuse("start must have one entry for each example, (2,), got (1,)", **_FEW,
               start=np.zeros(1, np.int32)),
        misuse("start must be integers", **_FEW, start=(2,)),
    ],
)  # fmt: skip
def write_steps(cache: Array, steps: Array, start: Array) -> Array:
    """Writes consecutive steps into a cache, for each example at its own place.

    ``cache`` has shape ``(batch, ..., length, width)`` and ``steps``
    ``(batch, ..., count, width)``: ``out[b, ..., start[b] + i, :] = steps[b, ..., i, :]``. A place
    beyond an end is moved to it, as by ``jax.lax.dynamic_update_slice``.

    Example:
        >>> import jax.numpy as jnp
        >>> cache, steps = jnp.zeros((2, 3, 1)), jnp.ones((2, 1, 1))
        >>> write_steps(cache, steps, jnp.asarray([0, 2]))[..., 0]
        Array([[1., 0., 0.],
               [0., 0., 1.]], dtype=float32)
    """
    length, count = cache.shape[-2], steps.shape[-2]
    if not cache.size or not count:
        return cache
    first = jnp.clip(start, 0, length - count)
    # All axes but the last are indexed: then XLA scatters into the cache as it lies in memory.
    leading = jnp.indices(cache.shape[:-2], sparse=True)
    places = jnp.reshape(first, leading[0].shape)[..., None] + jnp.arange(count)
    at = cache.at[(*(one[..., None] for one in leading), places)]
    return at.set(steps.astype(cache.dtype), indices_are_sorted=True, unique_indices=True)


@write_steps.gradient
def _write_steps_gradient(cache: Var, steps: Var, start: Var, d_out: Var) -> Grads:
    # Steps receive the cotangent of the places that they fill, the cache that of all others.
    length, count, batch = cache.shape[-2], steps.shape[-2], cache.shape[0]
    ones = (1,) * (len(cache.shape) - 3)
    first = where(less(start, 0), 0, start)
    first = where(less(first, length - count), first, length - count)
    first = reshape(first, shape=(batch, *ones, 1, 1))
    places = reshape(position_ids(cache, axis=-2), shape=(1, *ones, length, 1))
    filled = logical_and(greater_equal(places, first), less(places, first + count))
    taken = first + reshape(position_ids(steps, axis=-2), shape=(1, *ones, count, 1))
    return {
        "cache": where(filled, 0.0, d_out),
        "steps": cast(take_along_axis(d_out, taken, axis=-2), dtype=steps.dtype),
        "start": None,
    }
