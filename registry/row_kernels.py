"""Kernels for rows: which kernel a call runs, and the arithmetic of rows."""

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
    """A kernel that runs ``rows`` where an input is ``SelectedRows``, or else ``dense``."""

    @functools.wraps(dense)
    def kernel(*inputs: Any, **attributes: Any) -> Any:
        sparse = any(isinstance(one, SelectedRows) for one in inputs)
        return (rows if sparse else dense)(*inputs, **attributes)

    return kernel


def entrywise(dense: Kernel, *, linear: bool) -> Kernel:
    """A kernel for rows from one that maps each entry by itself, and zero to zero.

    Unless it is linear, rows are merged first: the function of a sum is not the sum of those.
    """

    def kernel(x: SelectedRows, *others: Any, **attributes: Any) -> SelectedRows:
        merged = x if linear else x.merged()
        return merged.mapped(lambda values: dense(values, *others, **attributes))

    return kernel


# Kinds -----------------------------------------------------------------------------------------


def kind_of_first(kinds: Inputs, attributes: Attributes) -> VarKind:
    """The kind rule of an operator whose result has the kind of its first input."""
    del attributes
    kind: VarKind = kinds[0]
    return kind


def kind_of_sum(*kinds: VarKind) -> VarKind:
    """The kind of a sum: rows if all its terms are, dense if one of them is."""
    rows = all(kind is VarKind.SELECTED_ROWS for kind in kinds)
    return VarKind.SELECTED_ROWS if rows else VarKind.LOD_TENSOR


def kind_of_product(x: VarKind, y: VarKind) -> VarKind:
    """The kind of a product: rows if one factor is."""
    return x if x is VarKind.SELECTED_ROWS else y


# Arithmetic ------------------------------------------------------------------------------------


def total(*xs: Any) -> Any:
    """Sum of arrays, some of which are rows: the rows of all, or else a dense array."""
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
    """The rows of arrays of one shape, one after another: their sum."""
    if any(one.shape != rows[0].shape for one in rows):
        raise ShapeError(f"rows must be of one shape to be summed, got {[o.shape for o in rows]}")
    return SelectedRows(
        jnp.concatenate([one.held for one in rows]),
        jnp.concatenate([jnp.asarray(one.values, dtype) for one in rows]),
        rows[0].height,
    )


def product(x: Any, y: Any) -> SelectedRows:
    """Product of rows and what broadcasts to them: rows, a dense array or a number."""
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
    """Rows divided by a dense array or number that broadcasts to them and is nowhere zero."""
    beside = _beside(x, y)
    return x.mapped(lambda values: values / beside)


def _beside(rows: SelectedRows, other: Any) -> Any:
    """What of a dense array stands beside the values of ``rows``."""
    other, ndim = jnp.asarray(other), len(rows.shape)
    if other.ndim < ndim or (other.ndim == ndim and other.shape[0] == 1):
        return other
    if other.ndim > ndim or other.shape[0] != rows.height:
        raise ShapeError(f"the other factor must broadcast to {rows.shape}, got {other.shape}")
    return rows.of(other)


def summed(x: SelectedRows, shape: Shape, axes: tuple[int, ...]) -> Any:
    """Dense sum of rows over ``axes``, in ``shape``."""
    inside = (x.held < x.height).reshape(-1, *[1] * (len(x.shape) - 1))
    values = jnp.where(inside, x.values, jnp.zeros((), x.dtype))
    if 0 in axes:
        return jnp.sum(values, axis=axes, dtype=x.dtype).reshape(shape)
    kept = jnp.sum(values, axis=axes, dtype=x.dtype)
    return SelectedRows(x.rows, kept, x.height).to_dense().reshape(shape)


def found_in(rows: SelectedRows, ids: Any) -> Any:
    """The rows ``ids`` of the array that ``rows`` stand for; zeros beyond its height."""
    merged, ids = rows.merged(), jnp.asarray(ids)
    count = merged.rows.shape[0]
    if count == 0:
        return jnp.zeros((*ids.shape, *rows.values.shape[1:]), rows.values.dtype)
    ids = jnp.where((ids >= 0) & (ids < rows.height), ids, rows.height)
    places = jnp.minimum(jnp.searchsorted(merged.rows, ids), count - 1)
    present = (merged.rows[places] == ids) & (ids < rows.height)
    present = present.reshape(present.shape + (1,) * (rows.values.ndim - 1))
    return jnp.where(present, merged.values[places], jnp.zeros((), rows.values.dtype))
