"""Operators on row-sparse arrays: merging duplicate rows, densifying, splitting and joining."""

from collections.abc import Sequence
from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse
from registry.errors import AttributeValueError, ShapeError
from registry.operator import row_kernels
from registry.operator.attributes import Check
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import unbroadcast
from registry.ops.optim.first_order import SOME_ROWS
from registry.shapes import HAS_NO_AXIS, listed, promote, same, strong
from registry.table import op
from registry.types import Shape, VarKind
from registry.values import SelectedRows
from registry.var import Var

_CASES = [case(x=(3, 2)), case(x=SOME_ROWS), case(x=(0, 2)), HAS_NO_AXIS]


@op(shape=same, dtype=strong, reference=np.positive, cases=_CASES)
def merge_selected_rows(x: Array) -> Array:
    """The same array with each row named once, in ascending order; dense arrays are unchanged.

    The number of rows stays the same, so that shapes are static when a program is compiled: the
    remaining rows have the height as their number, are thus dropped, and hold zeros.

    Example:
        >>> import jax.numpy as jnp
        >>> from registry import SelectedRows
        >>> twice = SelectedRows(jnp.array([2, 0, 2]), jnp.ones((3, 1)), height=4)
        >>> merge_selected_rows(twice).rows
        Array([0, 2, 4], dtype=int32)
    """
    x = jnp.asarray(x)
    return x.astype(x.dtype)


@merge_selected_rows.kind
def _merge_kind(x: VarKind) -> VarKind:
    return x


@merge_selected_rows.on_rows("x")
def _merge_rows(x: SelectedRows) -> SelectedRows:
    return x.merged()


@merge_selected_rows.gradient
def _merge_selected_rows_gradient(d_out: Var) -> Grads:
    return {"x": d_out}


@op(shape=same, dtype=strong, reference=np.positive, cases=_CASES)
def get_tensor_from_selected_rows(x: Array) -> Array:
    """The dense array whose rows ``x`` names, with zeros elsewhere; dense arrays are unchanged.

    This is how a program converts rows to a whole array. (Paddle's operator of this name returns
    only the values of the rows, whose number is not part of a type here.)

    Example:
        >>> import jax.numpy as jnp
        >>> from registry import SelectedRows
        >>> some = SelectedRows(jnp.array([2, 0, 2]), jnp.ones((3, 1)), height=4)
        >>> get_tensor_from_selected_rows(some).ravel()
        Array([1., 0., 2., 0.], dtype=float32)
    """
    x = jnp.asarray(x)
    return x.astype(x.dtype)


@get_tensor_from_selected_rows.on_rows("x")
def _make_dense(x: SelectedRows) -> Array:
    return x.to_dense()


@get_tensor_from_selected_rows.gradient
def _get_tensor_from_selected_rows_gradient(d_out: Var) -> Grads:
    return {"x": d_out}


# Cutting and joining -----------------------------------------------------------------------------

Heights = Annotated[
    tuple[int, ...], Check("hold heights of 0 or more", lambda all: min(all, default=-1) >= 0)
]


def _said(each: Sequence[Any]) -> Any:
    """The result of a rule for several parts, or for a single one."""
    return list(each) if len(each) > 1 else each[0]


def _split_shape(x: Shape, *, height_sections: tuple[int, ...]) -> Any:
    if not x or sum(height_sections) != x[0]:
        raise AttributeValueError(
            f"height_sections must add up to the height of x, got {height_sections} and shape {x}"
        )
    return _said([(height, *x[1:]) for height in height_sections])


def _split_reference(x: np.ndarray, *, height_sections: Sequence[int]) -> Any:
    return _said(np.split(x, np.cumsum(height_sections)[:-1]))


@op(
    outputs=["*outs"],
    count=lambda *, height_sections: len(height_sections),
    shape=_split_shape,
    dtype=strong,
    reference=_split_reference,
    cases=[
        case(x=(5, 2), height_sections=(2, 0, 3)),
        case(x=SOME_ROWS, height_sections=(2, 1)),
        case(x=SOME_ROWS, height_sections=(3,)),
        case(x=integers(3, high=9), height_sections=(1, 2)),
        misuse("must add up to the height of x, got (1, 1)", x=(3,), height_sections=(1, 1)),
        misuse("hold heights of 0 or more", x=(3,), height_sections=(4, -1)),
    ],
)
def split_selected_rows(x: Array, *, height_sections: Heights) -> tuple[Array, ...]:
    """Consecutive parts of ``x`` of the given heights, as for tables stored in several places.

    Row ``i`` of a part is row ``i`` after the heights of the preceding parts. Each part names as
    many rows as ``x``; those that belong to another part have the part's own height as their
    number, and are thus dropped. A dense array is split along its first axis.

    Example:
        >>> import jax.numpy as jnp
        >>> from registry import SelectedRows
        >>> some = SelectedRows(jnp.array([3, 0]), jnp.ones((2, 1)), height=4)
        >>> [part.rows.tolist() for part in split_selected_rows(some, height_sections=(2, 2))]
        [[2, 0], [1, 2]]
    """
    ends = np.cumsum(height_sections)[:-1].tolist()
    x = jnp.asarray(x)
    return tuple(jnp.split(x.astype(x.dtype), ends))


@split_selected_rows.kind
def _split_kind(x: VarKind) -> VarKind:
    return x


@split_selected_rows.on_rows("x")
def _split_rows(x: SelectedRows, *, height_sections: tuple[int, ...]) -> tuple[SelectedRows, ...]:
    rows, start, parts = x.held, 0, []
    for height in height_sections:
        own = (rows >= start) & (rows < start + height)
        parts.append(SelectedRows(jnp.where(own, rows - start, height), x.values, height))
        start += height
    return tuple(parts)


@split_selected_rows.gradient
def _split_selected_rows_gradient(d_outs: Sequence[Var]) -> Grads:
    return {"x": join_selected_rows(*d_outs)}


def _join_shape(*shapes: Shape) -> Shape:
    rows = {shape[1:] for shape in shapes}
    if len(rows) > 1 or not all(shapes):
        raise ShapeError(f"the inputs must have rows of one shape, got {listed(shapes)}")
    return (sum(shape[0] for shape in shapes), *shapes[0][1:])


@op(
    shape=_join_shape,
    dtype=promote,
    reference=lambda *xs: np.concatenate(xs),
    cases=[
        case(xs=[(2, 2), (0, 2), (1, 2)]),
        case(xs=[SOME_ROWS, SOME_ROWS]),
        case(xs=[SOME_ROWS, (1, 2)]),
        case(xs=[(3,)]),
        case(xs=[(2,), integers(3, high=9)]),
        misuse("must have rows of one shape, got (3, 2) and (3, 1)", xs=[(3, 2), (3, 1)]),
    ],
)
def join_selected_rows(*xs: Array) -> Array:
    """Concatenates ``xs`` along the first axis; the result is row-sparse if all of them are.

    This is the inverse of ``split_selected_rows``.

    Example:
        >>> import jax.numpy as jnp
        >>> from registry import SelectedRows
        >>> some = SelectedRows(jnp.array([1, 0]), jnp.ones((2, 1)), height=2)
        >>> join_selected_rows(some, some).rows
        Array([1, 0, 3, 2], dtype=int32)
    """
    return jnp.concatenate(list(map(jnp.asarray, xs)))


@join_selected_rows.kind
def _join_kind(xs: Sequence[VarKind]) -> VarKind:
    return row_kernels.kind_of_sum(*xs)


@join_selected_rows.on_rows("xs")
def _join_rows(*xs: Any) -> Any:
    if not all(isinstance(one, SelectedRows) for one in xs):
        return jnp.concatenate(
            [one.to_dense() if isinstance(one, SelectedRows) else one for one in xs]
        )
    height, start, rows = sum(one.height for one in xs), 0, []
    for one in xs:
        rows.append(jnp.where(one.held < one.height, one.held + start, height))
        start += one.height
    values = jnp.concatenate([one.values for one in xs])
    return SelectedRows(jnp.concatenate(rows), values, height)


@join_selected_rows.gradient
def _join_selected_rows_gradient(xs: Sequence[Var], d_out: Var) -> Grads:
    parts = split_selected_rows(d_out, height_sections=tuple(x.shape[0] for x in xs))
    return {"xs": [unbroadcast(part, x) for part, x in zip(parts, xs, strict=True)]}
