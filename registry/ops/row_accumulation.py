"""Gradients of several steps put together, dense or as rows, and let through under a condition."""

from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.attributes import Check
from registry.cases import case, misuse
from registry.errors import DTypeError, ShapeError
from registry.operator import Grads
from registry.ops.first_order_optimizers import SOME_ROWS
from registry.ops.updates import returned
from registry.row_samples import selected_rows
from registry.signature import Array
from registry.table import op
from registry.types import DType, Shape, VarKind, VarType
from registry.values import SelectedRows
from registry.var import Var

_NOTHING = selected_rows(0, 2, height=3)


def _let_through_shape(x: Shape, condition: Shape) -> Shape:
    if condition:
        raise ShapeError(f"condition must be one truth value, got shape {condition}")
    return x


def _let_through_dtype(x: VarType, condition: VarType) -> DType:
    if condition.dtype.kind != "b":
        raise DTypeError(f"condition must be a truth value, got {condition.dtype.name}")
    return x.dtype


@op(
    shape=_let_through_shape,
    dtype=_let_through_dtype,
    reference=lambda x, condition: x if condition else np.zeros_like(x),
    cases=[
        case(x=(3, 2), condition=np.array(True)),
        case(x=(3, 2), condition=np.array(False)),
        case(x=SOME_ROWS, condition=np.array(True)),
        case(x=SOME_ROWS, condition=np.array(False)),
        case(x=(), condition=np.array(True)),
        misuse("condition must be one truth value, got shape (3,)", x=(3,), condition=[True] * 3),
        misuse("condition must be a truth value, got float32", x=(3,), condition=()),
    ],
)
def let_through(x: Array, condition: Array) -> Array:
    """``x`` where ``condition`` holds, else zeros: of rows none, which lazy updates leave alone.

    The zeros do not depend on what ``x`` holds, NaN included.

    Example:
        >>> import jax.numpy as jnp
        >>> let_through(jnp.asarray([1.0, jnp.nan]), False)
        Array([0., 0.], dtype=float32)
    """
    x = jnp.asarray(x)
    return jnp.where(condition, x, jnp.zeros((), x.dtype))


@let_through.kind
def _let_through_kind(x: VarKind, condition: VarKind) -> VarKind:
    del condition
    return x


@let_through.on_rows("x")
def _let_rows_through(x: SelectedRows, condition: Array) -> SelectedRows:
    return SelectedRows(jnp.where(condition, x.held, x.height), x.values, x.height)


@let_through.gradient
def _let_through_gradient(condition: Var, d_out: Var) -> Grads:
    return {"x": let_through(d_out, condition), "condition": None}


def _accumulated_shape(total: Shape, x: Shape, place: Shape) -> Shape:
    if total != x or place:
        raise ShapeError(
            f"total and x must have one shape and place none, got {total}, {x} and {place}"
        )
    return total


def _accumulated_dtype(total: VarType, x: VarType, place: VarType) -> DType:
    if place.dtype.kind not in "iu":
        raise DTypeError(f"place must be an integer, got {place.dtype.name}")
    if total.dtype != x.dtype:
        raise DTypeError(
            f"total and x must have one dtype, got {total.dtype.name} and {x.dtype.name}"
        )
    return total.dtype


@op(
    shape=_accumulated_shape,
    dtype=_accumulated_dtype,
    reference=lambda total, x, place, *, places: total + x,
    cases=[
        case(total=(3, 2), x=(3, 2), place=np.int32(1), places=2),
        case(total=_NOTHING, x=SOME_ROWS, place=np.int32(0), places=2),
        case(total=_NOTHING, x=SOME_ROWS, place=np.int32(2), places=3),
        case(total=(), x=(), place=np.int32(0), places=1),
        misuse("must have one shape", total=(3,), x=(2,), place=np.int32(0), places=2),
        misuse("must have one dtype", total=(3,), x=np.arange(3), place=np.int32(0), places=2),
        misuse("place must be an integer", total=(3,), x=(3,), place=0.5, places=2),
        misuse("be positive", total=(3,), x=(3,), place=np.int32(0), places=0),
    ],
)
def accumulate_rows(
    total: Array,
    x: Array,
    place: Array,
    *,
    places: Annotated[int, Check("be positive", lambda count: count > 0)],
) -> Array:
    """``total + x``, where rows are kept side by side in a fixed number of ``places``.

    ``SelectedRows`` that were put together grow, and shapes must not change from step to step: the
    total has room for ``places`` times the rows of ``x``, made at the first step from a total that
    has none, and the rows of ``x`` replace what stands at ``place``. Dense arrays are added.

    Example:
        >>> import jax.numpy as jnp
        >>> from registry import SelectedRows
        >>> none = SelectedRows(jnp.zeros(0, int), jnp.zeros((0, 1)), height=4)
        >>> one = SelectedRows(jnp.array([2]), jnp.ones((1, 1)), height=4)
        >>> accumulate_rows(none, one, 1, places=2).rows
        Array([4, 2], dtype=int32)
    """
    del place, places
    total = jnp.asarray(total)
    return total + jnp.asarray(x).astype(total.dtype)


@accumulate_rows.kind
def _accumulated_kind(total: VarKind, x: VarKind, place: VarKind) -> VarKind:
    del place
    rows = total is VarKind.SELECTED_ROWS and x is VarKind.SELECTED_ROWS
    return VarKind.SELECTED_ROWS if rows else VarKind.LOD_TENSOR


@accumulate_rows.on_rows("total", "x")
def _accumulate_rows(total: Any, x: Any, place: Array, *, places: int) -> Any:
    if not isinstance(total, SelectedRows):
        return x.added_to(total)
    if not isinstance(x, SelectedRows):
        return total.added_to(jnp.asarray(x, total.dtype))
    count, values = x.held.shape[0], jnp.asarray(x.values, total.dtype)
    rows = jnp.full(places * count, total.height, x.held.dtype)
    held = jnp.zeros((places * count, *values.shape[1:]), values.dtype)
    if total.rows.shape == rows.shape:
        rows, held = total.held, jnp.asarray(total.values)
    return SelectedRows(
        _placed(rows, x.held, place * count), _placed(held, values, place * count), total.height
    )


def _placed(whole: Array, part: Array, first: Any) -> Any:
    return lax.dynamic_update_slice_in_dim(whole, part, first, 0)


@accumulate_rows.gradient
def _accumulate_rows_gradient(x: Var, d_out: Var) -> Grads:
    return {"total": d_out, "x": returned(d_out, x), "place": None}


accumulate_rows.declare_inplace({"total": "out"}, update=True)
