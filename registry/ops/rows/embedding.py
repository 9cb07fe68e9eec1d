"""Embedding lookup: rows of a table by id, with an optionally row-sparse gradient."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse, workload
from registry.errors import ArgumentError, AttributeValueError, ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array, Parameter
from registry.ops.core.broadcasting import cast
from registry.ops.core.comparison import equal, less, logical_or
from registry.ops.core.elementwise import where
from registry.ops.core.indexing import add_rows, require_integers, wide_index
from registry.table import op
from registry.types import DType, Shape, VarType, is_integer
from registry.values import known
from registry.var import Var


def _lookup_table_shape(
    table: Shape, ids: Shape, *, padding_idx: int | None, rows: int | None, width: int | None
) -> Shape:
    if len(table) != 2:
        raise ShapeError(f"table must have two axes, got shape {table}")
    for name, said, length in (("rows", rows, table[0]), ("width", width, table[1])):
        if said not in (None, length):
            raise ShapeError(f"{name} must be that of the table, {length}, got {said}")
    if padding_idx is not None and not -table[0] <= padding_idx < table[0]:
        raise AttributeValueError(
            f"padding_idx must be in [{-table[0]}, {table[0]}), got {padding_idx}"
        )
    return (*ids, table[1])


def _lookup_table_dtype(table: VarType, ids: VarType) -> tuple[DType, bool]:
    require_integers(ids)
    return table.dtype, table.weak


def _lookup_table_reference(
    table: np.ndarray, ids: np.ndarray, *, padding_idx: int | None = None, **how: Any
) -> np.ndarray:
    del how
    rows = table[ids].copy()
    if padding_idx is not None:
        rows[ids == padding_idx % len(table)] = 0
    return np.asarray(rows)


@op(
    shape=_lookup_table_shape,
    dtype=_lookup_table_dtype,
    reference=_lookup_table_reference,
    aliases=["embedding"],
    cases=[
        case(table=(5, 3), ids=integers(4, high=5)),
        case(table=(5, 3), ids=integers(2, 4, high=5), padding_idx=1),
        case(table=(3, 2), ids=integers(8, high=3), padding_idx=-1),
        case(table=(5, 3), ids=integers(high=5)),
        case(table=(5, 3), ids=integers(0, high=5), rows=5, width=3),
        case(table=(300, 2), ids=integers(4, high=256, dtype="uint8"), padding_idx=299, order=1),
        case(table=(300, 2), ids=integers(4, high=128, dtype="int8"), padding_idx=-44, order=1),
        case(table=(5, 3), ids=integers(2, 4, high=5), padding_idx=1, sparse=True),
        workload(table=(100000, 64), ids=integers(20000, high=100000), padding_idx=0),
        misuse(
            "rows must be that of the table, 5, got 4",
            table=(5, 3),
            ids=integers(4, high=5),
            rows=4,
        ),
        misuse("table must have two axes, got shape (5,)", table=(5,), ids=integers(4, high=5)),
        misuse("ids must be integers, got float", table=(5, 3), ids=(4,)),
        misuse(
            "padding_idx must be in [-5, 5), got 5",
            table=(5, 3),
            ids=integers(4, high=5),
            padding_idx=5,
        ),
    ],
)
def lookup_table(
    table: Parameter,
    ids: Array,
    *,
    padding_idx: int | None = None,
    sparse: bool = False,
    rows: int | None = None,
    width: int | None = None,
) -> Array:
    """Rows ``ids`` of ``table``: the embedding of each id.

    Where an id equals ``padding_idx`` (counted from the end if negative), the row is zero and no
    gradient reaches the table. Ids must be in ``range(table.shape[0])``: a call on eager arrays
    raises an error for others; in a compiled program such an id is dropped: its row is zero, and it
    contributes no gradient.

    A symbolic call may leave the table out: ``lookup_table(ids, rows=..., width=...)`` creates it.

    With ``sparse`` the gradient of the table is a ``SelectedRows``, which names the rows that were
    looked up; its cost does not depend on the height of the table. (``jax.grad`` returns a dense
    gradient anyway: in JAX a gradient has the type of its primal.)

    Raises:
        ArgumentError: an id of an eager call is out of range.

    Example:
        >>> import jax.numpy as jnp
        >>> lookup_table(jnp.asarray([[1.0, 2.0], [3.0, 4.0]]), jnp.asarray([1, 0]), padding_idx=0)
        Array([[3., 4.],
               [0., 0.]], dtype=float32)
    """
    del sparse, rows, width
    table, ids = jnp.asarray(table), wide_index(ids)
    height = table.shape[0]
    if height == 0:
        return jnp.zeros((*ids.shape, table.shape[1]), table.dtype)
    if padding_idx is not None:
        ids = jnp.where(ids == padding_idx % height, height, ids)
    return table.at[ids].get(mode="fill", fill_value=0, wrap_negative_indices=False)


@lookup_table.check
def _require_rows(table: Var, ids: Var) -> None:
    numbers = known(ids)
    if numbers is None or numbers.size == 0 or not is_integer(numbers.dtype) or not table.shape:
        return  # otherwise the type rules raise the error
    height = table.shape[0]
    least, most = int(numbers.min()), int(numbers.max())
    if least < 0 or most >= height:
        wrong = least if least < 0 else most
        raise ArgumentError(f"ids must be in [0, {height}), the rows of the table, got {wrong}")


@lookup_table.complete
def _lookup_table_complete(*, rows: int | None, width: int | None) -> dict[str, Shape]:
    return {} if rows is None or width is None else {"table": (rows, width)}


@lookup_table.gradient
def _lookup_table_gradient(
    table: Var, ids: Var, d_out: Var, *, padding_idx: int | None, sparse: bool
) -> Grads:
    height = table.shape[0]
    if ids.dtype.itemsize < 4:  # the number of a row may exceed the range of the dtype
        ids = cast(ids, dtype="int32")
    dropped = less(ids, 0)  # add_rows would count them from the end
    if padding_idx is not None:
        dropped = logical_or(dropped, equal(ids, padding_idx % height))
    ids = where(dropped, height, ids)
    return {"table": add_rows(d_out, ids, height=height, sparse=sparse), "ids": None}
