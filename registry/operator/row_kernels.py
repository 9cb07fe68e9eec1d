"""Row-sparse kernels: dispatch between kernels, and arithmetic of rows."""

import functools
import operator
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from registry.errors import ShapeError
from registry.types import Shape, VarKind
from registry.values import SelectedRows
from registry.var import Attributes, Inputs

Kernel = Callable[..., Any]


def dispatched(dense: Kernel, rows: Kernel) -> Kernel:
    """Returns a kernel that runs ``rows`` if an input is ``SelectedRows``, else ``dense``."""

    @functools.wraps(dense)
    def kernel(*inputs: Any, **attributes: Any) -> Any:
        sparse = any(isinstance(one, SelectedRows) for one in inputs)
        return (rows if sparse else dense)(*inputs, **attributes)

    return kernel


def entrywise(dense: Kernel, *, linear: bool) -> Kernel:
    """Returns a row-sparse kernel from an entrywise one that maps zero to zero.

    Unless it is linear, rows are merged first: the function of a sum is not the sum of the
    functions.
    """

    def kernel(x: SelectedRows, *others: Any, **attributes: Any) -> SelectedRows:
        merged = x if linear else x.merged()
        return merged.mapped(lambda values: dense(values, *others, **attributes))

    return kernel


# Kinds -----------------------------------------------------------------------------------------


def kind_of_first(kinds: Inputs, attributes: Attributes) -> VarKind:
    """Returns the kind rule of an operator whose result has the kind of its first input."""
    del attributes
    kind: VarKind = kinds[0]
    return kind


def kind_of_sum(*kinds: VarKind) -> VarKind:
    """Returns the kind of a sum: row-sparse if all terms are, dense otherwise."""
    rows = all(kind is VarKind.SELECTED_ROWS for kind in kinds)
    return VarKind.SELECTED_ROWS if rows else VarKind.LOD_TENSOR


def kind_of_product(x: VarKind, y: VarKind) -> VarKind:
    """Returns the kind of a product: row-sparse if one factor is."""
    return x if x is VarKind.SELECTED_ROWS else y


# Arithmetic ------------------------------------------------------------------------------------


def total(*xs: Any) -> Any:
    """Adds arrays, of which some are row-sparse: the sum is row-sparse if all are, else dense."""
    dtype = jnp.result_type(*[one.values if isinstance(one, SelectedRows) else one for one in xs])
    rows = [one for one in xs if isinstance(one, SelectedRows)]
    dense = [one for one in xs if not isinstance(one, SelectedRows)]
    if not dense:
        return _joined(rows, dtype)
    summed = jnp.asarray(functools.reduce(operator.add, dense), dtype)
    for one in rows:
        alike = summed.shape == one.shape
        summed = one.added_to(summed) if alike else summed + one.to_dense().astype(dtype)
    return summed


def _joined(rows: list[SelectedRows], dtype: Any) -> SelectedRows:
    """Returns the sum of row-sparse arrays of one shape: their rows, concatenated."""
    if any(one.shape != rows[0].shape for one in rows):
        raise ShapeError(f"rows must be of one shape to be summed, got {[o.shape for o in rows]}")
    return SelectedRows(
        jnp.concatenate([one.held for one in rows]),
        jnp.concatenate([jnp.asarray(one.values, dtype) for one in rows]),
        rows[0].height,
    )


def product(x: Any, y: Any) -> SelectedRows:
    """Multiplies a row-sparse array by an operand that broadcasts to it."""
    if not isinstance(x, SelectedRows):
        assert isinstance(y, SelectedRows)
        return product(y, x)
    if isinstance(y, SelectedRows):
        if x.shape != y.shape:
            raise ShapeError(
                f"rows must be of one shape to be multiplied, got {x.shape}, {y.shape}"
            )
        x = x.merged()
        beside = found_in(y, x.rows)
    else:
        beside = _beside(x, y)
    multiplied: SelectedRows = x.mapped(lambda values: values * beside)
    return multiplied


def quotient(x: SelectedRows, y: Any) -> SelectedRows:
    """Divides a row-sparse array by a nonzero dense array or number that broadcasts to it."""
    beside = _beside(x, y)
    return x.mapped(lambda values: values / beside)


def _beside(rows: SelectedRows, other: Any) -> Any:
    """Returns the entries of a dense array that correspond to the values of ``rows``."""
    other, ndim = jnp.asarray(other), len(rows.shape)
    if other.ndim < ndim or (other.ndim == ndim and other.shape[0] == 1):
        return other
    if other.ndim > ndim or other.shape[0] != rows.height:
        raise ShapeError(f"the other factor must broadcast to {rows.shape}, got {other.shape}")
    return rows.of(other)


def summed(x: SelectedRows, shape: Shape, axes: tuple[int, ...]) -> Any:
    """Sums a row-sparse array over ``axes``; the result is dense, of shape ``shape``."""
    inside = (x.held < x.height).reshape(-1, *[1] * (len(x.shape) - 1))
    values = jnp.where(inside, x.values, jnp.zeros((), x.dtype))
    if 0 in axes:
        return jnp.sum(values, axis=axes, dtype=x.dtype).reshape(shape)
    kept = jnp.sum(values, axis=axes, dtype=x.dtype)
    return SelectedRows(x.rows, kept, x.height).to_dense().reshape(shape)


def found_in(rows: SelectedRows, ids: Any) -> Any:
    """Returns rows ``ids`` of the row-sparse array ``rows``; zeros for ids beyond its height."""
    merged, ids = rows.merged(), jnp.asarray(ids)
    count = merged.rows.shape[0]
    if count == 0:
        return jnp.zeros((*ids.shape, *rows.values.shape[1:]), rows.values.dtype)
    ids = jnp.where((ids >= 0) & (ids < rows.height), ids, rows.height)
    places = jnp.minimum(jnp.searchsorted(merged.rows, ids), count - 1)
    present = (merged.rows[places] == ids) & (ids < rows.height)
    present = present.reshape(present.shape + (1,) * (rows.values.ndim - 1))
    return jnp.where(present, merged.values[places], jnp.zeros((), rows.values.dtype))
