"""Operators that change shapes and the order of axes without computing on entries."""

import math
from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse, workload
from registry.errors import AttributeValueError, ShapeError
from registry.operator.attributes import ConvertedBy, converter
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.shapes import normalize_axes, promote
from registry.table import op
from registry.types import Shape
from registry.var import Var

# Reshaping -------------------------------------------------------------------------------------

_lengths = converter(tuple[int, ...])


def several(value: Any) -> tuple[int, ...]:
    """Converts an integer or several integers to a tuple of integers."""
    alone = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    result: tuple[int, ...] = _lengths((value,) if alone else value)
    return result


Several = Annotated[tuple[int, ...], ConvertedBy(several)]
"""An attribute of several integers, which may be given as a single one."""


def _reshape_shape(x: Shape, *, shape: Shape) -> Shape:
    size, known = math.prod(x), math.prod(n for n in shape if n != -1)
    if any(n < -1 for n in shape) or shape.count(-1) > 1:
        raise AttributeValueError(f"shape must hold lengths and at most one -1, got {shape}")
    if -1 not in shape:
        if known != size:
            raise ShapeError(f"shape {shape} must have as many entries as x, got {x}")
        return shape
    if known == 0 or size % known:
        raise ShapeError(f"the lengths in {shape} must divide the size of x, got {x}")
    return tuple(size // known if n == -1 else n for n in shape)


@op(
    rearranges=True,
    shape=_reshape_shape,
    dtype=promote,
    reference=lambda x, *, shape: np.reshape(x, shape),
    cases=[
        case(x=(3, 4), shape=(2, 6)),
        case(x=(3, 4), shape=(-1,)),
        case(x=(2, 3), shape=6),
        case(x=(2, 3, 4), shape=(4, -1, 2)),
        case(x=(), shape=(1, 1)),
        case(x=(0, 2), shape=(-1, 2)),
        case(x=integers(4, high=9), shape=(2, 2)),
        workload(x=(1024, 1024), shape=(512, 2048)),
        misuse("shape (5,) must have as many entries as x, got (3, 4)", x=(3, 4), shape=(5,)),
        misuse("the lengths in (5, -1) must divide the size of x", x=(3, 4), shape=(5, -1)),
        misuse("at most one -1, got (-1, -1)", x=(3, 4), shape=(-1, -1)),
    ],
)
def reshape(x: Array, *, shape: Several) -> Array:
    """Reshapes ``x`` in row-major order; one length may be -1 and is inferred.

    A single number is the length of a one-dimensional result.

    Example:
        >>> import jax.numpy as jnp
        >>> reshape(jnp.asarray([1, 2, 3, 4]), shape=(2, -1))
        Array([[1, 2],
               [3, 4]], dtype=int32)
    """
    return jnp.reshape(x, shape)


def _reshaped_back(x: Var, d_out: Var) -> Grads:
    return {"x": reshape(d_out, shape=x.shape)}


reshape.gradient(_reshaped_back)


@reshape.simplify
def _reshape_simplify(x: Var, *, shape: Shape) -> Var | None:
    if _reshape_shape(x.shape, shape=shape) == x.shape:
        return x
    inner = x.applied(reshape)
    return reshape(inner[0][0], shape=_reshape_shape(x.shape, shape=shape)) if inner else None


def _expand_dims_shape(x: Shape, *, axis: int | tuple[int, ...]) -> Shape:
    added = (axis,) if isinstance(axis, int) else axis
    ndim = len(x) + len(added)
    axes = normalize_axes(added, ndim)
    lengths = iter(x)
    return tuple(1 if i in axes else next(lengths) for i in range(ndim))


@op(
    rearranges=True,
    shape=_expand_dims_shape,
    dtype=promote,
    reference=lambda x, *, axis: np.expand_dims(x, axis),
    cases=[
        case(x=(3, 4), axis=0),
        case(x=(3, 4), axis=-1),
        case(x=(3, 4), axis=(0, 2)),
        case(x=(), axis=0),
        case(x=(0,), axis=1),
        workload(x=(1024, 1024), axis=1),
        misuse("axis must be in [-3, 3), got 3", x=(3, 4), axis=3),
    ],
)
def expand_dims(x: Array, *, axis: int | tuple[int, ...]) -> Array:
    """Inserts axes of length 1 into ``x``; ``axis`` refers to positions in the result.

    Example:
        >>> import jax.numpy as jnp
        >>> expand_dims(jnp.asarray([1, 2]), axis=0)
        Array([[1, 2]], dtype=int32)
    """
    return jnp.expand_dims(x, axis)


expand_dims.gradient(_reshaped_back)


def _squeeze_shape(x: Shape, *, axis: int | tuple[int, ...] | None) -> Shape:
    if axis is None:
        return tuple(n for n in x if n != 1)
    axes = normalize_axes(axis, len(x))
    if any(x[i] != 1 for i in axes):
        raise ShapeError(f"the axes {axis} must have length 1, got shape {x}")
    return tuple(n for i, n in enumerate(x) if i not in axes)


@op(
    rearranges=True,
    shape=_squeeze_shape,
    dtype=promote,
    reference=lambda x, *, axis=None: np.squeeze(x, axis),
    cases=[
        case(x=(3, 1, 4, 1)),
        case(x=(3, 1, 4, 1), axis=1),
        case(x=(1, 1), axis=(0, -1)),
        case(x=()),
        case(x=(0, 1), axis=-1),
        misuse("the axes 0 must have length 1, got shape (3, 1)", x=(3, 1), axis=0),
        misuse("axis must be in [-2, 2), got 2", x=(3, 1), axis=2),
    ],
)
def squeeze(x: Array, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Removes axes of length 1 from ``x``: those named, or all of them.

    Example:
        >>> import jax.numpy as jnp
        >>> squeeze(jnp.asarray([[1], [2]]))
        Array([1, 2], dtype=int32)
    """
    return jnp.squeeze(x, axis)


squeeze.gradient(_reshaped_back)


def _flatten_shape(x: Shape) -> Shape:
    if not x:
        raise ShapeError("x must have at least one axis, got shape ()")
    return (x[0], math.prod(x[1:]))


@op(
    rearranges=True,
    shape=_flatten_shape,
    dtype=promote,
    reference=lambda x: x.reshape(x.shape[0], math.prod(x.shape[1:])),
    aliases=["Flatten"],
    cases=[
        case(x=(2, 3, 4)),
        case(x=(3,)),
        case(x=(0, 2)),
        case(x=(2, 0)),
        misuse("x must have at least one axis, got shape ()", x=()),
    ],
)
def flatten(x: Array) -> Array:
    """Flattens all axes of ``x`` but the first into one: the result has one row per batch entry.

    Example:
        >>> import jax.numpy as jnp
        >>> flatten(jnp.ones((2, 3, 4))).shape
        (2, 12)
    """
    return jnp.reshape(x, _flatten_shape(jnp.shape(x)))


flatten.gradient(_reshaped_back)


# Orders of axes --------------------------------------------------------------------------------


def _order(axes: tuple[int, ...] | None, ndim: int) -> tuple[int, ...]:
    """The axis of ``x`` that each axis of the result comes from."""
    if axes is None:
        return tuple(reversed(range(ndim)))
    if len(axes) != ndim:
        raise AttributeValueError(f"axes must name each of {ndim} axes once, got {axes}")
    normalize_axes(axes, ndim)
    return tuple(axis % ndim for axis in axes)


def _permute_dims_shape(x: Shape, *, axes: tuple[int, ...] | None) -> Shape:
    return tuple(x[i] for i in _order(axes, len(x)))


@op(
    rearranges=True,
    shape=_permute_dims_shape,
    dtype=promote,
    reference=lambda x, *, axes=None: np.transpose(x, axes),
    aliases=["transpose"],
    cases=[
        case(x=(3, 4)),
        case(x=(2, 3, 4), axes=(1, -1, 0)),
        case(x=()),
        case(x=(0, 2), axes=(1, 0)),
        misuse("axes must name each of 2 axes once, got (0,)", x=(3, 4), axes=(0,)),
        misuse("axes must be distinct, got (0, 0)", x=(3, 4), axes=(0, 0)),
    ],
)
def permute_dims(x: Array, *, axes: tuple[int, ...] | None = None) -> Array:
    """Permutes the axes of ``x``, by default reversing them: axis ``axes[i]`` becomes axis ``i``.

    Example:
        >>> import jax.numpy as jnp
        >>> permute_dims(jnp.asarray([[1, 2], [3, 4]]))
        Array([[1, 3],
               [2, 4]], dtype=int32)
    """
    return jnp.transpose(x, axes)


@permute_dims.gradient
def _permute_dims_gradient(x: Var, d_out: Var, *, axes: tuple[int, ...] | None) -> Grads:
    inverse = np.argsort(_order(axes, x.ndim))
    return {"x": permute_dims(d_out, axes=tuple(inverse.tolist()))}


@permute_dims.simplify
def _permute_dims_simplify(x: Var, *, axes: tuple[int, ...] | None) -> Var | None:
    order = _order(axes, x.ndim)
    if order == tuple(range(x.ndim)):
        return x
    inner = x.applied(permute_dims)
    if inner is None:
        return None
    (source,), (inner_axes,) = inner
    before = _order(inner_axes, x.ndim)
    simpler: Var = permute_dims(source, axes=tuple(before[i] for i in order))
    return simpler


def axis_moved(x: Var, source: int, destination: int) -> Any:
    """``x`` with one axis, counted from the front, moved to another position."""
    axes = [i for i in range(x.ndim) if i != source]
    axes.insert(destination, source)
    return permute_dims(x, axes=tuple(axes))


def swapped(x: Var) -> Any:
    """``x`` with its last two axes exchanged."""
    *batch, rows, columns = range(x.ndim)
    return permute_dims(x, axes=(*batch, columns, rows))
