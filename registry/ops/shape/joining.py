"""Stacking and coordinate grids."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse, workload
from registry.errors import ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import unbroadcast
from registry.ops.core.reductions import sum as sum_over
from registry.ops.core.reshaping import axis_moved, expand_dims
from registry.ops.core.slicing import concat, said
from registry.pieces import Part, Piece
from registry.shapes import listed, normalize_axis, promote
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var
from registry.xla.unstack import taken_apart

# stack and unstack -----------------------------------------------------------------------------


def _stack_shape(xs: Sequence[Shape], *, axis: int) -> Shape:
    first = xs[0]
    if any(shape != first for shape in xs):
        raise ShapeError(f"the inputs must have the same shape, got {listed(xs)}")
    at = normalize_axis(axis, len(first) + 1)
    return (*first[:at], len(xs), *first[at:])


@op(
    rearranges=True,
    shape=_stack_shape,
    dtype=promote,
    reference=lambda *xs, axis=0: np.stack(xs, axis),
    cases=[
        case(xs=[(2, 3), (2, 3)]),
        case(xs=[(2, 3), (2, 3), (2, 3)], axis=-1),
        case(xs=[(), ()]),
        case(xs=[(0, 2)], axis=1),
        case(xs=[(2,), integers(2, high=9)]),
        workload(xs=[(512, 512)] * 4, axis=1),
        misuse("the inputs must have the same shape, got (2,) and (3,)", xs=[(2,), (3,)]),
        misuse("axis must be in [-2, 2), got 2", xs=[(2,), (2,)], axis=2),
    ],
)
def stack(*xs: Array, axis: int = 0) -> Array:
    """Joins arrays of the same shape along a new axis; ``axis`` refers to the result.

    Example:
        >>> import jax.numpy as jnp
        >>> stack(jnp.asarray([1, 2]), jnp.asarray([3, 4]), axis=1)
        Array([[1, 3],
               [2, 4]], dtype=int32)
    """
    return jnp.stack(xs, axis)


@stack.gradient
def _stack_gradient(xs: Sequence[Var], d_out: Var, *, axis: int) -> Grads:
    parts = unstack(d_out, axis=axis)
    return {"xs": [unbroadcast(part, x) for part, x in zip(parts, xs, strict=True)]}


@stack.joined
def _stack_joined(parts: Sequence[Part], *, axis: int) -> Any:
    return concat(*(_standing(one, axis) for one in parts), axis=axis)


def _standing(part: Part, axis: int) -> Any:
    """An array, or several stacked arrays, along the new axis of a stack."""
    if not part.several:
        return expand_dims(part.value, axis=axis)
    return axis_moved(part.value, 0, axis % part.value.ndim)


def _unstack_count(x: Any, *, axis: int) -> int:
    shape = x.shape if hasattr(x, "shape") else np.shape(x)
    legal = -len(shape) <= axis < len(shape)
    return max(shape[axis], 1) if legal else 1  # the shape rule rejects an illegal axis


def _unstack_shape(x: Shape, *, axis: int) -> Any:
    at = normalize_axis(axis, len(x))
    if x[at] == 0:
        raise ShapeError(f"x must have at least one entry along axis {axis}, got shape {x}")
    return said([(*x[:at], *x[at + 1 :])] * x[at])


@op(
    outputs=("*parts",),
    count=_unstack_count,
    shape=_unstack_shape,
    dtype=promote,
    reference=lambda x, *, axis=0: said(list(np.moveaxis(x, axis, 0))),
    aliases=["unbind"],
    cases=[
        case(x=(2, 3)),
        case(x=(2, 2, 3), axis=-1),
        case(x=(2,)),
        case(x=(1, 2)),
        case(x=(2, 0), axis=0),
        case(x=integers(2, 2, high=9), axis=1),
        workload(x=(512, 4, 512), axis=1),
        misuse("axis must be in [-1, 1), got 1", x=(2,), axis=1),
        misuse("x must have at least one entry along axis 0, got shape (0, 2)", x=(0, 2)),
    ],
)
def unstack(x: Array, *, axis: int = 0) -> tuple[Array, ...]:
    """Splits ``x`` along ``axis`` into arrays without that axis: the inverse of ``stack``.

    The number of results is the length of the axis, at least one. The shape of ``x`` must therefore
    be known when the call is made.

    Example:
        >>> import jax.numpy as jnp
        >>> unstack(jnp.asarray([[1, 2], [3, 4]]), axis=1)
        (Array([1, 3], dtype=int32), Array([2, 4], dtype=int32))
    """
    return taken_apart(jnp.asarray(x), axis)


@unstack.gradient
def _unstack_gradient(d_parts: tuple[Var, ...], *, axis: int) -> Grads:
    return {"x": stack(*d_parts, axis=axis)}


@unstack.piece
def _unstack_piece(x: Shape, *, axis: int) -> Callable[[int], Piece]:
    at = normalize_axis(axis, len(x))
    return lambda i: Piece(at, i, 1, kept=False)


# meshgrid --------------------------------------------------------------------------------------


def _grid_axes(count: int, indexing: str) -> list[int]:
    """The axis of the grids along which each input varies."""
    axes = list(range(count))
    return [1, 0, *axes[2:]] if indexing == "xy" and count > 1 else axes


def _grid_count(xs: Sequence[Any]) -> int:
    return len(xs)


def _meshgrid_shape(xs: Sequence[Shape], *, indexing: str) -> Any:
    if any(len(shape) != 1 for shape in xs):
        raise ShapeError(f"every input must have one axis, got {listed(xs)}")
    places = _grid_axes(len(xs), indexing)  # exchanging two axes is its own inverse
    return said([tuple(xs[i][0] for i in places)] * len(xs))


def _meshgrid_dtype(xs: Sequence[VarType]) -> list[tuple[DType, bool]]:
    return [(one.dtype, one.weak) for one in xs]


@op(
    outputs=("*grids",),
    count=_grid_count,
    shape=_meshgrid_shape,
    dtype=_meshgrid_dtype,
    reference=lambda *xs, indexing="xy": said(np.meshgrid(*xs, indexing=indexing)),
    cases=[
        case(xs=[(3,), (2,)]),
        case(xs=[(3,), (2,), (2,)], indexing="ij"),
        case(xs=[(2,), (1,), (3,)]),
        case(xs=[(3,)]),
        case(xs=[(0,), (2,)]),
        case(xs=[(2,), integers(3, high=9)]),
        workload(xs=[(1024,), (1024,)]),
        misuse("every input must have one axis, got (2, 2) and (3,)", xs=[(2, 2), (3,)]),
        misuse("attribute 'indexing' must be", xs=[(2,), (3,)], indexing="yx"),
    ],
)
def meshgrid(*xs: Array, indexing: Literal["xy", "ij"] = "xy") -> tuple[Array, ...]:
    """Coordinate arrays of a grid, from the coordinates along each axis.

    With ``ij``, entry ``[i, j, ...]`` of the first result is ``xs[0][i]``, of the second
    ``xs[1][j]``, and so on; with ``xy``, the first two axes of all results are exchanged.

    Example:
        >>> import jax.numpy as jnp
        >>> x, y = meshgrid(jnp.asarray([1, 2, 3]), jnp.asarray([4, 5]))
        >>> y
        Array([[4, 4, 4],
               [5, 5, 5]], dtype=int32)
    """
    return tuple(jnp.meshgrid(*xs, indexing=indexing))


@meshgrid.gradient
def _meshgrid_gradient(d_grids: tuple[Var | None, ...] | None, *, indexing: str) -> Grads:
    # An input is repeated along all axes of its grid but its own. Integer grids and unused grids
    # have no cotangent.
    assert d_grids is not None
    axes = _grid_axes(len(d_grids), indexing)
    return {
        "xs": [
            None if d is None else sum_over(d, axis=tuple(i for i in axes if i != own))
            for d, own in zip(d_grids, axes, strict=True)
        ]
    }
