"""Operators that reorder entries: exchanging axes, flipping and rolling."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, misuse, workload
from registry.errors import AttributeValueError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.shapes import normalize_axes, normalize_axis, promote
from registry.table import op
from registry.types import Shape
from registry.var import Var

Axes = int | tuple[int, ...]
"""One axis or several."""

# swapaxes and moveaxis -------------------------------------------------------------------------


def _swapaxes_shape(x: Shape, *, axis1: int, axis2: int) -> Shape:
    first, second = normalize_axis(axis1, len(x)), normalize_axis(axis2, len(x))
    lengths = list(x)
    lengths[first], lengths[second] = x[second], x[first]
    return tuple(lengths)


@op(
    rearranges=True,
    shape=_swapaxes_shape,
    dtype=promote,
    reference=lambda x, *, axis1, axis2: np.swapaxes(x, axis1, axis2),
    cases=[
        case(x=(2, 3, 4), axis1=0, axis2=2),
        case(x=(3, 4), axis1=-1, axis2=-2),
        case(x=(0, 2), axis1=0, axis2=1),
        case(x=integers(3, 2, high=9), axis1=1, axis2=0),
        workload(x=(64, 128, 128), axis1=0, axis2=2),
        misuse("axis must be in [-2, 2), got 2", x=(3, 4), axis1=0, axis2=2),
    ],
)
def swapaxes(x: Array, *, axis1: int, axis2: int) -> Array:
    """Interchanges the axes ``axis1`` and ``axis2`` of ``x``.

    Example:
        >>> import jax.numpy as jnp
        >>> swapaxes(jnp.ones((2, 3, 4)), axis1=0, axis2=-1).shape
        (4, 3, 2)
    """
    return jnp.swapaxes(x, axis1, axis2)


@swapaxes.gradient
def _swapaxes_gradient(d_out: Var, *, axis1: int, axis2: int) -> Grads:
    return {"x": swapaxes(d_out, axis1=axis1, axis2=axis2)}


@swapaxes.simplify
def _swapaxes_simplify(x: Var, *, axis1: int, axis2: int) -> Any:
    exchanged = {axis1 % x.ndim, axis2 % x.ndim}
    if len(exchanged) == 1:
        return x
    inner = x.applied(swapaxes)
    again = inner is not None and {axis % x.ndim for axis in inner[1]} == exchanged
    return inner[0][0] if inner and again else None


def _moved(source: Axes, destination: Axes, ndim: int) -> tuple[int, ...]:
    """The axis of ``x`` that each axis of the result of ``moveaxis`` comes from."""
    old = (source,) if isinstance(source, int) else source
    new = (destination,) if isinstance(destination, int) else destination
    if len(old) != len(new):
        raise AttributeValueError(
            f"source and destination must have one length, got {source} and {destination}"
        )
    taken = set(normalize_axes(old, ndim))
    normalize_axes(new, ndim)
    order = [axis for axis in range(ndim) if axis not in taken]
    for to, axis in sorted(zip((one % ndim for one in new), old, strict=True)):
        order.insert(to, axis % ndim)
    return tuple(order)


def _moveaxis_shape(x: Shape, *, source: Axes, destination: Axes) -> Shape:
    return tuple(x[axis] for axis in _moved(source, destination, len(x)))


@op(
    rearranges=True,
    shape=_moveaxis_shape,
    dtype=promote,
    reference=lambda x, *, source, destination: np.moveaxis(x, source, destination),
    aliases=["movedim"],
    cases=[
        case(x=(2, 3, 4), source=0, destination=-1),
        case(x=(2, 1, 3, 2), source=(0, -1), destination=(2, 0)),
        case(x=(), source=(), destination=()),
        case(x=(0, 2), source=1, destination=0),
        workload(x=(64, 128, 128), source=0, destination=2),
        misuse("axis must be in [-2, 2), got 2", x=(3, 4), source=2, destination=0),
        misuse("axes must be distinct, got (0, 0)", x=(3, 4), source=(0, 0), destination=(0, 1)),
        misuse("must have one length, got 0 and (0, 1)", x=(3, 4), source=0, destination=(0, 1)),
    ],
)
def moveaxis(
    x: Array, *, source: int | tuple[int, ...], destination: int | tuple[int, ...]
) -> Array:
    """Moves the axes ``source`` of ``x`` to the positions ``destination``; the others keep order.

    Example:
        >>> import jax.numpy as jnp
        >>> moveaxis(jnp.ones((2, 3, 4)), source=0, destination=-1).shape
        (3, 4, 2)
    """
    return jnp.moveaxis(x, source, destination)


@moveaxis.gradient
def _moveaxis_gradient(d_out: Var, *, source: Axes, destination: Axes) -> Grads:
    return {"x": moveaxis(d_out, source=destination, destination=source)}


@moveaxis.simplify
def _moveaxis_simplify(x: Var, *, source: Axes, destination: Axes) -> Any:
    if _moved(source, destination, x.ndim) == tuple(range(x.ndim)):
        return x
    inner = x.applied(moveaxis)
    return inner[0][0] if inner and inner[1] == (destination, source) else None


# flip and roll ---------------------------------------------------------------------------------


def _flip_shape(x: Shape, *, axis: Axes | None) -> Shape:
    normalize_axes(axis, len(x))
    return x


@op(
    rearranges=True,
    shape=_flip_shape,
    dtype=promote,
    reference=lambda x, *, axis=None: np.flip(x, axis),
    aliases=["reverse"],
    cases=[
        case(x=(3, 4)),
        case(x=(3, 4), axis=-1),
        case(x=(2, 3, 2), axis=(0, 2)),
        case(x=()),
        case(x=(0, 2), axis=0),
        case(x=integers(4, high=9)),
        workload(x=(1024, 1024), axis=1),
        misuse("axis must be in [-2, 2), got 2", x=(3, 4), axis=2),
        misuse("axes must be distinct, got (1, -1)", x=(3, 4), axis=(1, -1)),
    ],
)
def flip(x: Array, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Reverses the order of the entries of ``x`` along ``axis``, by default along all axes.

    Example:
        >>> import jax.numpy as jnp
        >>> flip(jnp.asarray([1, 2, 3]))
        Array([3, 2, 1], dtype=int32)
    """
    return jnp.flip(x, axis)


@flip.gradient
def _flip_gradient(d_out: Var, *, axis: Axes | None) -> Grads:
    return {"x": flip(d_out, axis=axis)}


@flip.simplify
def _flip_simplify(x: Var, *, axis: Axes | None) -> Any:
    axes = normalize_axes(axis, x.ndim)
    if all(x.shape[i] <= 1 for i in axes):
        return x
    inner = x.applied(flip)
    return inner[0][0] if inner and normalize_axes(inner[1][0], x.ndim) == axes else None


def _roll_shape(x: Shape, *, shift: Axes, axis: Axes | None) -> Shape:
    shifts = 1 if isinstance(shift, int) else len(shift)
    axes = () if axis is None else (axis,) if isinstance(axis, int) else axis
    if not isinstance(shift, int) and shifts != len(axes):
        raise AttributeValueError(
            f"a tuple shift must have one number for each axis, got {shift} and {axis}"
        )
    for one in axes:
        normalize_axis(one, len(x))
    return x


@op(
    rearranges=True,
    shape=_roll_shape,
    dtype=promote,
    reference=lambda x, *, shift, axis=None: np.roll(x, shift, axis),
    cases=[
        case(x=(3, 4), shift=1, axis=-1),
        case(x=(3, 4), shift=-5),
        case(x=(3, 4), shift=(1, -2), axis=(0, 1)),
        case(x=(3, 4), shift=2, axis=(0, 1)),
        case(x=(4,), shift=(1, 2), axis=(0, 0)),
        case(x=(), shift=2),
        case(x=(2, 0), shift=1, axis=1),
        workload(x=(1024, 1024), shift=100, axis=1),
        misuse("axis must be in [-2, 2), got 2", x=(3, 4), shift=1, axis=2),
        misuse(
            "must have one number for each axis, got (1, 2) and 0", x=(3,), shift=(1, 2), axis=0
        ),
    ],
)
def roll(
    x: Array, *, shift: int | tuple[int, ...], axis: int | tuple[int, ...] | None = None
) -> Array:
    """Rolls ``x`` by ``shift`` places; entries that leave at one end reappear at the other.

    Each of several axes has its own entry of ``shift``, or all share one number; an axis that is
    named twice is rolled twice. Without ``axis`` the entries move in row-major order over all axes.

    Example:
        >>> import jax.numpy as jnp
        >>> roll(jnp.asarray([1, 2, 3, 4]), shift=1)
        Array([4, 1, 2, 3], dtype=int32)
    """
    if jnp.ndim(x) < 2 or axis not in (-1, jnp.ndim(x) - 1):
        return jnp.roll(x, shift, axis)
    x = jnp.asarray(x)
    return _rolled_rows(x, sum(np.ravel(shift).tolist()) % max(x.shape[-1], 1))


def _rolled_rows(x: Array, by: int) -> Array:
    """Rolls the last of several axes: entries moved right, and in front those that left there.

    XLA on CPUs computes this selection in one pass. ``jnp.roll`` joins two slices, which takes
    three.
    """
    n, zero, others = x.shape[-1], lax.full_like(x, 0, shape=()), [(0, 0, 0)] * (x.ndim - 1)
    right = lax.pad(x, zero, [*others, (by, -by, 0)])
    left = lax.pad(x, zero, [*others, (by - n, n - by, 0)])
    return jnp.where(np.arange(n) < by, left, right)


@roll.gradient
def _roll_gradient(d_out: Var, *, shift: Axes, axis: Axes | None) -> Grads:
    back = -shift if isinstance(shift, int) else tuple(-one for one in shift)
    return {"x": roll(d_out, shift=back, axis=axis)}


@roll.simplify
def _roll_simplify(x: Var, *, shift: Axes) -> Var | None:
    shifts = (shift,) if isinstance(shift, int) else shift
    return None if any(shifts) else x
