"""Pooling to a given output size with windows as even as integers allow.

Along an axis of length ``n``, the i-th of ``m`` windows begins at ``floor(i n / m)`` and ends
before ``ceil((i + 1) n / m)``. Neighboring windows may overlap by one entry where ``m`` does not
divide ``n``.
"""

import itertools
from collections.abc import Callable
from typing import Literal

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, distinct, integers, misuse, workload
from registry.errors import ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.conv.windows import Layout, Lengths, each_axis, full_layout
from registry.ops.core.indexing import add_rows
from registry.ops.core.reductions import statistics_dtype
from registry.ops.core.reshaping import reshape
from registry.shapes import default_int, real, strong_inexact, strong_real
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var


def _spatial(data: Shape, layout: Layout | None) -> tuple[int, ...]:
    return tuple(i for i, letter in enumerate(full_layout(data, layout)) if letter not in "NC")


def _pooled_shape(data: Shape, *, output_size: Lengths, layout: Layout | None) -> Shape:
    axes = _spatial(data, layout)
    sizes = each_axis("output_size", output_size, len(axes), at_least=1)
    if any(data[axis] == 0 for axis in axes):
        raise ShapeError(f"data's spatial axes must not be empty, got shape {data}")
    out = list(data)
    for axis, size in zip(axes, sizes, strict=True):
        out[axis] = size
    return tuple(out)


def _bounds(length: int, size: int) -> list[tuple[int, int]]:
    """The first entry of each window, and the position after its last."""
    return [(i * length // size, -(-(i + 1) * length // size)) for i in range(size)]


def _pooled_by(
    reduce: Callable[..., np.ndarray], data: np.ndarray, output_size: Lengths, layout: Layout | None
) -> np.ndarray:
    """Reference: each window reduced by a loop in NumPy; both reductions go axis by axis."""
    axes = _spatial(data.shape, layout)
    for axis, size in zip(axes, each_axis("", output_size, len(axes), at_least=1), strict=True):
        parts = [
            reduce(np.take(data, range(*ends), axis), axis, keepdims=True)
            for ends in _bounds(data.shape[axis], size)
        ]
        data = np.concatenate(parts, axis)
    return data


# The average -----------------------------------------------------------------------------------


def _means(length: int, size: int) -> np.ndarray:
    """The matrix that takes the mean of each window along one axis."""
    matrix = np.zeros((size, length))
    for row, (low, high) in zip(matrix, _bounds(length, size), strict=True):
        row[low:high] = 1 / (high - low)
    return matrix


def _along_axes(x: Array, before: Shape, after: Shape, *, adjoint: bool) -> Array:
    """The means along each axis that changes from ``before`` to ``after``, or their adjoint."""
    dtype, wide = x.dtype, statistics_dtype(x.dtype)
    x = x.astype(wide)
    axes = [axis for axis in range(x.ndim) if before[axis] != after[axis]]
    for axis in axes if adjoint else reversed(axes):
        matrix = jnp.asarray(_means(before[axis], after[axis]), wide)
        how = (((axis,), (0 if adjoint else 1,)), ((), ()))
        product = lax.dot_general(x, matrix, how, precision=lax.Precision.HIGHEST)
        x = jnp.moveaxis(product, -1, axis)
    return x.astype(dtype)


def _average_reference(
    data: np.ndarray, *, output_size: Lengths, layout: Layout | None
) -> np.ndarray:
    return _pooled_by(np.mean, data, output_size, layout)


@op(
    shape=_pooled_shape,
    dtype=strong_inexact,
    reference=_average_reference,
    aliases=["AdaptiveAvgPooling2D"],
    cases=[
        case(data=(2, 2, 5, 4), output_size=(3, 2), order=2),
        case(data=(1, 7, 2), output_size=3, layout="NWC", order=1),
        case(data=(1, 2, 2), output_size=5, order=1),
        case(data=(1, 2, 2, 3, 4), output_size=(2, 1, 3), order=1),
        case(data=(0, 2, 4), output_size=2, order=1),
        case(data=(1, 1, 3), output_size=2),
        workload(data=(16, 64, 32, 32), output_size=7),
        misuse("output_size must have 2 entries, got (1,)", data=(1, 2, 3, 3), output_size=(1,)),
        misuse("output_size must be at least 1, got 0", data=(1, 2, 3, 3), output_size=0),
        misuse("spatial axes must not be empty", data=(1, 2, 0), output_size=2),
        misuse("the inputs must be floating", data=integers(1, 2, 6, high=9), output_size=2),
    ],
    costly=True,
)
def adaptive_average_pooling(
    data: Array,
    *,
    output_size: int | tuple[int, ...],
    layout: Literal["NCW", "NWC", "NCHW", "NHWC", "NCDHW", "NDHWC"] | None = None,
) -> Array:
    """Average pooling to ``output_size`` windows over one to three spatial axes.

    Along an axis of length ``n`` the i-th of ``m`` windows begins at ``floor(i n / m)`` and ends
    before ``ceil((i + 1) n / m)``, as in PyTorch and MXNet.

    Example:
        >>> import jax.numpy as jnp
        >>> adaptive_average_pooling(jnp.asarray([[[1.0, 2.0, 6.0]]]), output_size=2)
        Array([[[1.5, 4. ]]], dtype=float32)
    """
    after = _pooled_shape(data.shape, output_size=output_size, layout=layout)
    return _along_axes(data, data.shape, after, adjoint=False)


@adaptive_average_pooling.gradient
def _adaptive_average_pooling_gradient(data: Var, d_out: Var, *, layout: Layout | None) -> Grads:
    by_data = adaptive_average_pooling_gradient(d_out, shape=data.shape, layout=layout)
    return {"data": by_data}


def _spread_shape(cotangent: Shape, *, shape: Shape, layout: Layout | None) -> Shape:
    axes = _spatial(shape, layout)
    sizes = tuple(cotangent[axis] for axis in axes) if len(cotangent) == len(shape) else ()
    if not sizes or _pooled_shape(shape, output_size=sizes, layout=layout) != cotangent:
        raise ShapeError(
            f"cotangent must have the batch and channels of {shape}, got shape {cotangent}"
        )
    return shape


@op(
    shape=_spread_shape,
    dtype=strong_inexact,
    cases=[
        case(cotangent=(2, 2, 3, 2), shape=(2, 2, 5, 4), order=2),
        case(cotangent=(1, 3, 2), shape=(1, 7, 2), layout="NWC", order=1),
        case(cotangent=(1, 1, 2), shape=(1, 1, 3)),
        workload(cotangent=(16, 64, 7, 7), shape=(16, 64, 32, 32)),
        misuse("cotangent must have the batch and channels", cotangent=(1, 3, 2), shape=(1, 2, 7)),
    ],
    costly=True,
)
def adaptive_average_pooling_gradient(
    cotangent: Array,
    *,
    shape: tuple[int, ...],
    layout: Literal["NCW", "NWC", "NCHW", "NHWC", "NCDHW", "NDHWC"] | None = None,
) -> Array:
    """Adjoint of ``adaptive_average_pooling``: spreads each mean over its window in ``shape``.

    Example:
        >>> import jax.numpy as jnp
        >>> adaptive_average_pooling_gradient(jnp.asarray([[[2.0, 4.0]]]), shape=(1, 1, 3))
        Array([[[1., 3., 2.]]], dtype=float32)
    """
    del layout  # it follows from the axes that change
    return _along_axes(cotangent, shape, cotangent.shape, adjoint=True)


@adaptive_average_pooling_gradient.gradient
def _adaptive_average_pooling_gradient_gradient(
    cotangent: Var, d_out: Var, *, layout: Layout | None
) -> Grads:
    sizes = tuple(cotangent.shape[axis] for axis in _spatial(d_out.shape, layout))
    return {"cotangent": adaptive_average_pooling(d_out, output_size=sizes, layout=layout)}


# The maximum -----------------------------------------------------------------------------------


def _seen(length: int, size: int) -> np.ndarray:
    """The entries that each window covers along one axis; shorter windows repeat their last."""
    bounds = _bounds(length, size)
    longest = max(high - low for low, high in bounds)
    return np.array([[min(low + i, high - 1) for i in range(longest)] for low, high in bounds])


def _places(data: Array, after: Shape) -> Array:
    """The flat position in the data of the largest entry of each window, the first of several."""
    largest = lax.stop_gradient(data)
    places = jnp.arange(data.size, dtype=default_int()).reshape(data.shape)
    # The last axis is reduced first, so that the first of several rows with the largest entry is
    # taken.
    for axis in reversed([axis for axis in range(data.ndim) if data.shape[axis] != after[axis]]):
        seen = _seen(data.shape[axis], after[axis])
        windows = jnp.take(largest, seen, axis=axis)
        best = jnp.argmax(windows, axis + 1, keepdims=True)
        largest = jnp.take_along_axis(windows, best, axis + 1).squeeze(axis + 1)
        best_places = jnp.take_along_axis(jnp.take(places, seen, axis=axis), best, axis + 1)
        places = best_places.squeeze(axis + 1)
    return places


def _max_reference(data: np.ndarray, *, output_size: Lengths, layout: Layout | None) -> np.ndarray:
    return _pooled_by(np.max, data, output_size, layout)


_MAX_MISUSES = [
    misuse("data must have 3, 4 or 5 axes, got shape (2, 3)", data=(2, 3), output_size=1),
    misuse("output_size must be at least 1, got 0", data=(1, 2, 3, 3), output_size=0),
    misuse("spatial axes must not be empty", data=(1, 2, 0), output_size=2),
    misuse("must be real", data=np.ones((1, 2, 4), np.complex64), output_size=2),
]


@op(
    shape=_pooled_shape,
    dtype=strong_real,
    reference=_max_reference,
    cases=[
        case(data=distinct(2, 2, 5, 4), output_size=(3, 2)),
        case(data=distinct(1, 7, 2), output_size=3, layout="NWC", order=1),
        case(data=distinct(1, 2, 2), output_size=5, order=1),
        case(data=distinct(1, 2, 2, 3, 4), output_size=(2, 1, 3), order=1),
        case(data=integers(2, 2, 4, low=-9, high=9), output_size=3),
        case(data=(0, 2, 4), output_size=2, order=1),
        workload(data=(16, 64, 32, 32), output_size=7),
        *_MAX_MISUSES,
    ],
)
def adaptive_max_pooling(
    data: Array,
    *,
    output_size: int | tuple[int, ...],
    layout: Literal["NCW", "NWC", "NCHW", "NHWC", "NCDHW", "NDHWC"] | None = None,
) -> Array:
    """Max pooling to ``output_size`` windows over one to three spatial axes.

    The windows are those of ``adaptive_average_pooling``. The first of several equal entries of a
    window receives the gradient.

    Example:
        >>> import jax.numpy as jnp
        >>> adaptive_max_pooling(jnp.asarray([[[1.0, 6.0, 2.0]]]), output_size=2)
        Array([[[6., 6.]]], dtype=float32)
    """
    after = _pooled_shape(data.shape, output_size=output_size, layout=layout)
    flat = lax.convert_element_type(data, data.dtype).reshape(-1)
    return flat.at[_places(data, after)].get(mode="promise_in_bounds")


@adaptive_max_pooling.gradient
def _adaptive_max_pooling_gradient(
    data: Var, d_out: Var, *, output_size: Lengths, layout: Layout | None
) -> Grads:
    # out is data at positions that are constant in the data, almost everywhere. (XLA shares them
    # with the kernel, which computed them before.)
    places = adaptive_max_pooling_places(data, output_size=output_size, layout=layout)
    added = add_rows(d_out, places, height=data.size)
    return {"data": reshape(added, shape=data.shape)}


def _places_dtype(data: VarType) -> DType:
    real(data)
    return default_int()


def _places_reference(
    data: np.ndarray, *, output_size: Lengths, layout: Layout | None
) -> np.ndarray:
    # Rows of the table are windows of positions: the largest entry, and of equal ones the first.
    axes = _spatial(data.shape, layout)
    sizes = each_axis("output_size", output_size, len(axes), at_least=1)
    bounds = [_bounds(data.shape[axis], size) for axis, size in zip(axes, sizes, strict=True)]
    numbers, out = np.arange(data.size).reshape(data.shape), []
    for window in itertools.product(*bounds):
        at = [slice(None)] * data.ndim
        for axis, ends in zip(axes, window, strict=True):
            at[axis] = slice(*ends)
        rest = [n for i, n in enumerate(data.shape) if i not in axes]
        values, places = (
            np.moveaxis(one[tuple(at)], axes, range(-len(axes), 0)).reshape(*rest, -1)
            for one in (data, numbers)
        )
        best = values.argmax(-1)[..., None]
        out.append(np.take_along_axis(places, best, -1)[..., 0])
    table = np.stack(out, -1).reshape(*out[0].shape, *sizes)
    return np.moveaxis(table, range(-len(axes), 0), axes).astype(default_int())


@op(
    shape=_pooled_shape,
    dtype=_places_dtype,
    reference=_places_reference,
    cases=[
        case(data=distinct(2, 2, 5, 4), output_size=(3, 2)),
        case(data=integers(1, 4, 5, 2, high=3), output_size=2, layout="NHWC"),
        case(data=(1, 2, 2), output_size=5),
        *_MAX_MISUSES,
    ],
)
def adaptive_max_pooling_places(
    data: Array,
    *,
    output_size: int | tuple[int, ...],
    layout: Literal["NCW", "NWC", "NCHW", "NHWC", "NCDHW", "NDHWC"] | None = None,
) -> Array:
    """Flat positions in ``data`` of the results of ``adaptive_max_pooling``.

    In case of ties it is the position of the first entry of the window.

    Example:
        >>> import jax.numpy as jnp
        >>> adaptive_max_pooling_places(jnp.asarray([[[6.0, 1.0, 2.0]]]), output_size=2)
        Array([[[0, 2]]], dtype=int32)
    """
    return _places(data, _pooled_shape(data.shape, output_size=output_size, layout=layout))


adaptive_max_pooling_places.zero_gradient("it is constant but where the largest entry changes")
