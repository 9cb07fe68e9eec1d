"""Sorting, top-k, and binary search in a sorted array."""

from typing import Literal

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, distinct, integers, misuse, workload
from registry.errors import AttributeValueError, ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.indexing import never_weak
from registry.ops.indexing.gathering import scatter_add
from registry.shapes import along_axis, default_int, normalize_axis, real
from registry.table import op
from registry.types import DType, Shape, VarType, is_inexact
from registry.var import Var, filled

_COMPLEX = misuse("the inputs must be real, got complex64", x=np.ones(2, np.complex64))
_NO_AXIS = [
    misuse("axis must be in [-2, 2), got 2", x=(3, 4), axis=2),
    misuse("axis must be in [0, 0), got -1", x=()),
]


# sort and argsort ------------------------------------------------------------------------------


def _sort_shape(x: Shape, *, axis: int) -> tuple[Shape, Shape]:
    return along_axis(x, axis=axis), x


def _sort_dtype(x: VarType) -> list[DType]:
    return [real(x)[0], default_int()]


def _sorted_with_places(x: Array, axis: int, descending: bool, stable: bool) -> tuple[Array, Array]:
    """The sorted entries, and their original positions.

    Descending order is ascending order of the reversed array, read backwards: reversing the result
    restores the stable order of equal entries.
    """
    at = axis % x.ndim
    places = lax.broadcasted_iota(default_int(), x.shape, at)
    if descending:
        x, places = lax.rev(x, (at,)), lax.rev(places, (at,))
    out, places = lax.sort((x, places), dimension=at, is_stable=stable, num_keys=1)
    return (lax.rev(out, (at,)), lax.rev(places, (at,))) if descending else (out, places)


def _places_reference(x: np.ndarray, *, axis: int, descending: bool, stable: bool) -> np.ndarray:
    del stable
    if not descending:
        return np.argsort(x, axis, kind="stable").astype(default_int())
    backwards = np.argsort(np.flip(x, axis), axis, kind="stable")
    places = x.shape[axis] - 1 - np.flip(backwards, axis)
    return np.asarray(places, default_int())


def _sort_reference(x: np.ndarray, *, axis: int, descending: bool, stable: bool) -> np.ndarray:
    places = _places_reference(x, axis=axis, descending=descending, stable=stable)
    return np.take_along_axis(x, places, axis)


@op(
    outputs=("out", "places"),
    hidden=("places",),
    shape=_sort_shape,
    dtype=_sort_dtype,
    reference=_sort_reference,
    cases=[
        case(x=distinct(3, 4)),
        case(x=distinct(4, 2), axis=0, descending=True, stable=False),
        case(x=(3, 0)),
        case(x=integers(7, high=4)),
        case(x=np.asarray([True, False, True])),
        workload(x=(1000, 1000)),
        *_NO_AXIS,
        _COMPLEX,
    ],
)
def sort(
    x: Array, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> tuple[Array, Array]:
    """Sorts the entries of ``x`` along ``axis`` in ascending or descending order.

    NaN counts as largest. Each entry receives the gradient of its position in the result. Equal
    entries keep their order, unless ``stable`` is false: then their order is unspecified.

    Source: Python array API standard 2024.12, ``sort``.

    Example:
        >>> import jax.numpy as jnp
        >>> sort(jnp.asarray([3.0, 1.0, 2.0]), descending=True)
        Array([3., 2., 1.], dtype=float32)
    """
    return _sorted_with_places(never_weak(x), axis, descending, stable)


@sort.gradient
def _sort_gradient(places: Var, d_out: Var, d_places: Var | None, *, axis: int) -> Grads:
    # out[j] = x[places[j]], and places are constant in x almost everywhere.
    del d_places  # they are integers
    return {"x": scatter_add(filled(d_out, 0.0), places, d_out, axis=axis)}


def _argsort_dtype(x: VarType) -> DType:
    real(x)
    return default_int()


@op(
    shape=along_axis,
    dtype=_argsort_dtype,
    reference=_places_reference,
    cases=[
        case(x=distinct(3, 4)),
        case(x=integers(7, high=4), descending=True),
        case(x=distinct(4, 2), axis=0, stable=False),
        case(x=(3, 0)),
        *_NO_AXIS,
        _COMPLEX,
    ],
)
def argsort(x: Array, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Indices that sort the entries of ``x`` along ``axis`` in ascending or descending order.

    ``take_along_axis(x, argsort(x, axis=axis), axis=axis)`` is ``sort(x, axis=axis)``, with the
    same conventions. The result has the default integer dtype.

    Source: Python array API standard 2024.12, ``argsort``.

    Example:
        >>> import jax.numpy as jnp
        >>> argsort(jnp.asarray([3.0, 1.0, 2.0]))
        Array([1, 2, 0], dtype=int32)
    """
    return _sorted_with_places(jnp.asarray(x), axis, descending, stable)[1]


argsort.no_gradient("its result is an integer")

# topk ------------------------------------------------------------------------------------------


def _topk_shape(x: Shape, *, k: int, axis: int) -> tuple[Shape, Shape]:
    at = normalize_axis(axis, len(x))
    if not 0 <= k <= x[at]:
        raise AttributeValueError(f"k must be in [0, {x[at]}], got {k}")
    out = (*x[:at], k, *x[at + 1 :])
    return out, out


def _topk_dtype(x: VarType) -> list[DType]:
    return [real(x)[0], np.dtype(np.int32)]


def _topk_reference(
    x: np.ndarray, *, k: int, axis: int, largest: bool
) -> tuple[np.ndarray, np.ndarray]:
    # The first of equal entries must come first in either order: indices from the end sort after
    # it.
    order = np.argsort(-x.astype(np.float64) if largest else x, axis, kind="stable")
    places = np.take(order, range(k), axis)
    return np.take_along_axis(x, places, axis), places.astype(np.int32)


@op(
    outputs=("values", "indices"),
    shape=_topk_shape,
    dtype=_topk_dtype,
    reference=_topk_reference,
    aliases=["top_k"],
    cases=[
        case(x=distinct(3, 5), k=2),
        case(x=distinct(4, 2), k=3, axis=0, largest=False),
        case(x=distinct(4), k=0, order=1),
        case(x=(0, 3), k=2, order=1),
        case(x=integers(9, low=-4, high=4), k=4),
        case(x=integers(9, high=4, dtype="uint8"), k=4, largest=False),
        case(x=np.asarray([False, True, True]), k=2, largest=False),
        workload(x=(1000, 1000), k=10),
        misuse("k must be in [0, 3], got 4", x=(3,), k=4),
        misuse("k must be in [0, 3], got -1", x=(3,), k=-1),
        misuse("axis must be in [-1, 1), got 1", x=(3,), k=1, axis=1),
        misuse("the inputs must be real, got complex64", x=np.ones(2, np.complex64), k=1),
    ],
)
def topk(x: Array, *, k: int, axis: int = -1, largest: bool = True) -> tuple[Array, Array]:
    """The ``k`` largest entries of ``x`` along ``axis`` in descending order, and their indices.

    With ``largest=False``, the ``k`` smallest entries in ascending order. Of equal entries the
    first comes first, and receives the gradient if only one of them is among the ``k``. NaN counts
    as largest; with ``largest=False`` it counts as infinity. The indices have dtype int32.

    Example:
        >>> import jax.numpy as jnp
        >>> values, indices = topk(jnp.asarray([3.0, 1.0, 2.0]), k=2)
        >>> values, indices
        (Array([3., 2.], dtype=float32), Array([0, 2], dtype=int32))
    """
    x = never_weak(x)
    _, places = lax.top_k(_rank(x, largest), k, axis=axis)
    return jnp.take_along_axis(x, places, axis, mode="promise_in_bounds"), places


def _rank(x: Array, largest: bool) -> Array:
    """A key that is largest where ``x`` is largest (or smallest); zeros tie, NaN has no sign."""
    x = lax.stop_gradient(x)
    if not is_inexact(x.dtype):
        x = x.astype(np.uint8) if x.dtype == np.bool_ else x
        return x if largest else ~x
    x = jnp.where(x == 0, jnp.zeros_like(x), x)
    top = jnp.full_like(x, np.nan if largest else -np.inf)
    return jnp.where(jnp.isnan(x), top, x if largest else -x)


@topk.gradient
def _topk_gradient(
    x: Var, indices: Var, d_values: Var, d_indices: Var | None, *, axis: int
) -> Grads:
    # values[j] = x[indices[j]], and indices do not change with x almost everywhere.
    del d_indices  # they are integers
    return {"x": scatter_add(filled(x, 0.0), indices, d_values, axis=axis)}


# searchsorted ----------------------------------------------------------------------------------


def _searchsorted_shape(sorted: Shape, values: Shape) -> Shape:
    if len(sorted) != 1:
        raise ShapeError(f"sorted must have one axis, got shape {sorted}")
    return values


def _searchsorted_dtype(sorted: VarType, values: VarType) -> DType:
    real(sorted, values)
    return np.dtype(np.int32)


@op(
    shape=_searchsorted_shape,
    dtype=_searchsorted_dtype,
    reference=lambda sorted, values, *, side: np.searchsorted(sorted, values, side).astype("int32"),
    cases=[
        case(sorted=np.asarray([-1.0, 0.0, 0.5], np.float32), values=(3, 4)),
        case(sorted=np.asarray([1, 2, 2, 4]), values=integers(9, high=6), side="right"),
        case(sorted=np.asarray([1, 2, 2, 4]), values=integers(9, high=6)),
        case(sorted=(0,), values=()),
        misuse("sorted must have one axis, got shape (2, 2)", sorted=(2, 2), values=(3,)),
        misuse("must be real, got complex64", sorted=(3,), values=np.ones(2, np.complex64)),
        misuse("attribute 'side' must be", sorted=(3,), values=(3,), side="middle"),
    ],
)
def searchsorted(sorted: Array, values: Array, *, side: Literal["left", "right"] = "left") -> Array:
    """Indices at which ``values`` would be inserted into ``sorted`` to keep it in order.

    ``sorted`` is one-dimensional and in ascending order. With ``side="left"`` the result counts the
    entries less than the value, so that ``sorted[i - 1] < value <= sorted[i]``; with
    ``side="right"`` it also counts those equal to it. The result has dtype int32.

    Source: Python array API standard 2024.12, ``searchsorted``.

    Example:
        >>> import jax.numpy as jnp
        >>> searchsorted(jnp.asarray([1.0, 2.0, 2.0, 4.0]), jnp.asarray([2.0, 3.0]), side="right")
        Array([3, 3], dtype=int32)
    """
    return jnp.searchsorted(sorted, values, side=side)


searchsorted.no_gradient("its result is an integer")
