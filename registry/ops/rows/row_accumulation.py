"""Accumulation of gradients over steps, dense or row-sparse, and gating by a condition."""

from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, misuse
from registry.errors import DTypeError, ShapeError
from registry.operator.attributes import Check
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.optim.first_order import SOME_ROWS
from registry.ops.optim.updates import returned
from registry.row_samples import selected_rows
from registry.shapes import same
from registry.table import op
from registry.types import DType, Shape, VarKind, VarType, is_boolean
from registry.values import SelectedRows
from registry.var import Var

_NOTHING = selected_rows(0, 2, height=3)


def _let_through_shape(x: Shape, condition: Shape) -> Shape:
    if condition:
        raise ShapeError(f"condition must be one truth value, got shape {condition}")
    return x


def _let_through_dtype(x: VarType, condition: VarType) -> DType:
    if not is_boolean(condition.dtype):
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
    """``x`` if ``condition`` holds, else zeros; for rows, an array that names no rows.

    A lazy update by a gradient that names no rows changes nothing. The zeros are independent of the
    entries of ``x``, even of NaN.

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


def _accumulated_dtype(total: VarType, x: VarType) -> DType:
    if total.dtype != x.dtype:
        raise DTypeError(
            f"total and x must have one dtype, got {total.dtype.name} and {x.dtype.name}"
        )
    return total.dtype


@op(
    shape=same,
    dtype=_accumulated_dtype,
    reference=lambda total, x, *, places: total + x,
    cases=[
        case(total=(3, 2), x=(3, 2), places=2),
        case(total=_NOTHING, x=SOME_ROWS, places=2),
        case(total=selected_rows(10, 2, height=3), x=SOME_ROWS, places=3),
        case(total=(), x=(), places=1),
        misuse("must have the same shape", total=(3,), x=(2,), places=2),
        misuse("must have one dtype", total=(3,), x=np.arange(3), places=2),
        misuse("be positive", total=(3,), x=(3,), places=0),
    ],
)
def accumulate_rows(
    total: Array,
    x: Array,
    *,
    places: Annotated[int, Check("be positive", lambda count: count > 0)],
) -> Array:
    """``total + x``, where rows are concatenated in a buffer of ``places`` times the rows of ``x``.

    Concatenated ``SelectedRows`` grow, but shapes must be constant from step to step: the total has
    its full capacity from the first step on, which starts from a total without rows. The rows of
    ``x`` are placed after the last row that the total names. Dense arrays are added.

    Example:
        >>> import jax.numpy as jnp
        >>> from registry import SelectedRows
        >>> none = SelectedRows(jnp.zeros(0, int), jnp.zeros((0, 1)), height=4)
        >>> one = SelectedRows(jnp.array([2]), jnp.ones((1, 1)), height=4)
        >>> accumulate_rows(none, one, places=2).rows
        Array([2, 4], dtype=int32)
    """
    del places
    total = jnp.asarray(total)
    return total + jnp.asarray(x).astype(total.dtype)


@accumulate_rows.kind
def _accumulated_kind(total: VarKind, x: VarKind) -> VarKind:
    rows = total is VarKind.SELECTED_ROWS and x is VarKind.SELECTED_ROWS
    return VarKind.SELECTED_ROWS if rows else VarKind.LOD_TENSOR


@accumulate_rows.on_rows("total", "x")
def _accumulate_rows(total: Any, x: Any, *, places: int) -> Any:
    if not isinstance(total, SelectedRows):
        return x.added_to(total)
    if not isinstance(x, SelectedRows):
        return total.added_to(jnp.asarray(x, total.dtype))
    count, taken = x.held.shape[0], total.held.shape[0]
    # Each x may have a different number of rows: capacity for the largest one suffices.
    more = max(places * count - taken, 0)
    rows = jnp.pad(total.held, (0, more), constant_values=total.height)
    values = jnp.concatenate([total.values, jnp.zeros((more, *x.values.shape[1:]), total.dtype)])
    named = jnp.where(rows != total.height, jnp.arange(1, taken + more + 1), 0)
    first = jnp.max(named, initial=0)
    return SelectedRows(
        _placed(rows, x.held.astype(rows.dtype), first),
        _placed(values, jnp.asarray(x.values, total.dtype), first),
        total.height,
    )


def _placed(whole: Array, part: Array, first: Any) -> Any:
    return lax.dynamic_update_slice_in_dim(whole, part, first, 0)


@accumulate_rows.gradient
def _accumulate_rows_gradient(x: Var, d_out: Var) -> Grads:
    return {"total": d_out, "x": returned(d_out, x)}


accumulate_rows.declare_inplace({"total": "out"}, update=True)
