"""Reductions over axes, and the sum of many arrays."""

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from registry.cases import case, distinct, integers, misuse, workload
from registry.errors import DTypeError, KindError, ShapeError
from registry.operator import row_kernels
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.arithmetic import add
from registry.ops.core.broadcasting import broadcast_to, cast, unbroadcast
from registry.ops.core.comparison import equal, logical_or, not_equal
from registry.ops.core.elementwise import where
from registry.ops.core.reshaping import reshape
from registry.pieces import Part
from registry.row_samples import selected_rows
from registry.shapes import (
    default_int,
    floating,
    listed,
    normalize_axes,
    promote,
    real,
    reduced,
    same,
)
from registry.table import op
from registry.types import DType, Shape, VarKind, VarType, is_exact, is_unsigned
from registry.var import Var

Axis = int | tuple[int, ...] | None


def kept(x: Shape, axis: Axis) -> Shape:
    """``x`` with length 1 at the reduced axes."""
    return reduced(x, axis=axis, keepdims=True)


def spread(reduction: Var, x: Var, axis: Axis) -> Any:
    """``d``, reduced over ``axis``, broadcast to the shape of ``x``."""
    return broadcast_to(reshape(reduction, shape=kept(x.shape, axis)), shape=x.shape)


# Sums ------------------------------------------------------------------------------------------


def sum_dtype(x: VarType) -> DType:
    """The dtype of ``x``; the default integer dtype for small integers and booleans."""
    size = default_int().itemsize
    if not is_exact(x.dtype) or x.dtype.itemsize > size:
        return x.dtype
    return np.dtype(f"{'u' if is_unsigned(x.dtype) else 'i'}{size}")


@op(
    shape=reduced,
    dtype=sum_dtype,
    reference=np.sum,
    aliases=["sum_along", "reduce_sum", "sum_axis"],
    cases=[
        case(x=(3, 4)),
        case(x=(3, 4), axis=0),
        case(x=(2, 3, 4), axis=(0, -1), keepdims=True),
        case(x=(2, 3), axis=()),
        case(x=()),
        case(x=(0, 2), axis=0),
        case(x=integers(3, high=9)),
        misuse("axis must be in [-2, 2), got 2", x=(3, 4), axis=2),
        misuse("axes must be distinct, got (0, -2)", x=(3, 4), axis=(0, -2)),
    ],
)
def sum(x: Array, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Array:
    """Sum over ``axis``, by default over all axes; ``keepdims`` keeps the axes with length 1.

    Small integers and booleans are accumulated in the default integer dtype.

    Example:
        >>> import jax.numpy as jnp
        >>> sum(jnp.ones((2, 3)), axis=0)
        Array([2., 2., 2.], dtype=float32)
    """
    return jnp.sum(x, axis=axis, keepdims=keepdims)


@sum.gradient
def _sum_gradient(x: Var, d_out: Var, *, axis: Axis) -> Grads:
    return {"x": spread(d_out, x, axis)}


@sum.simplify
def _sum_simplify(x: Var, *, axis: Axis) -> Var | None:
    return x if not normalize_axes(axis, x.ndim) else None


def _mean_dtype(x: VarType) -> DType:
    return floating(x)[0]


@op(
    shape=reduced,
    dtype=_mean_dtype,
    reference=np.mean,
    aliases=["reduce_mean"],
    cases=[
        case(x=(3, 4)),
        case(x=(3, 4), axis=0),
        case(x=(2, 3, 4), axis=(0, -1), keepdims=True),
        case(x=()),
        case(x=(0, 2), axis=1),
        case(x=integers(3, high=9), dtypes=("float32",)),
        misuse("axis must be in [-2, 2), got -3", x=(3, 4), axis=-3),
    ],
)
def mean(x: Array, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Array:
    """Arithmetic mean over ``axis``, by default over all axes; NaN if there are no entries.

    Example:
        >>> import jax.numpy as jnp
        >>> mean(jnp.asarray([[1.0, 2.0], [3.0, 6.0]]), axis=1)
        Array([1.5, 4.5], dtype=float32)
    """
    return jnp.mean(x, axis=axis, keepdims=keepdims)


@mean.gradient
def _mean_gradient(x: Var, d_out: Var, *, axis: Axis) -> Grads:
    n = count(x.shape, axis)
    if d_out.dtype.itemsize >= 4:
        return {"x": spread(d_out / n, x, axis)}
    # Forward mode accumulates where this broadcasts, which may overflow 16 bits before the
    # division.
    wide = spread(cast(d_out, dtype="float32") / n, x, axis)
    return {"x": cast(wide, dtype=d_out.dtype)}


def averaged(d: Var, n: float) -> Any:
    """``d / n``. A 16-bit dtype, in which ``n`` may overflow, is divided in float32 as in JAX."""
    if d.dtype.itemsize < 4:
        return cast(cast(d, dtype="float32") / n, dtype=d.dtype)
    return d / n


def statistics_dtype(data: DType) -> DType:
    """The dtype of statistics: that of ``data``, or float32 for a 16-bit dtype."""
    return np.dtype(jnp.promote_types(data, np.float32))


def count(x: Shape, axis: Axis) -> int:
    """The number of entries of ``x`` that each result of a reduction over ``axis`` depends on."""
    return math.prod(x[i] for i in normalize_axes(axis, len(x)))


def _add_n_reference(*xs: np.ndarray) -> np.ndarray:
    return functools.reduce(operator.add, xs)


@op(
    shape=same,
    dtype=promote,
    reference=_add_n_reference,
    aliases=["accumulate", "ElementWiseSum"],
    cases=[
        case(xs=[(3, 4), (3, 4), (3, 4)]),
        case(xs=[(2,)]),
        case(xs=[(), ()]),
        case(xs=[(0, 2), (0, 2)]),
        case(xs=[(3,), integers(3, high=9)]),
        case(xs=[selected_rows(5, 2, height=3), selected_rows(2, 2, height=3)]),
        case(xs=[selected_rows(5, 2, height=3), (3, 2), (3, 2)]),
        workload(xs=[(512, 1024), (512, 1024), (512, 1024)]),
        misuse("the inputs must have the same shape, got (3,) and (4,)", xs=[(3,), (4,)]),
    ],
)
def add_n(*xs: Array) -> Array:
    """Sum of arrays of the same shape, added from left to right.

    Example:
        >>> import jax.numpy as jnp
        >>> add_n(jnp.asarray(1.0), jnp.asarray(2.0), jnp.asarray(3.0))
        Array(6., dtype=float32, weak_type=True)
    """
    return functools.reduce(operator.add, xs)


@add_n.joined
def _add_n_joined(parts: Sequence[Part]) -> Any:
    return add_n(*(sum(one.value, axis=0) if one.several else one.value for one in parts))


@add_n.types
def add_n_types(xs: Sequence[VarType]) -> list[VarType]:
    """The type of the sum; tensor arrays must all have one type, which is also that of the sum."""
    kind, shape = add_n_kind([one.kind for one in xs]), same(*(one.shape for one in xs))
    if kind is not VarKind.LOD_TENSOR_ARRAY:
        dtype, weak = promote(*xs)
        return [VarType(shape, dtype, kind, weak)]
    if len(set(xs)) > 1:
        raise DTypeError(f"tensor arrays must be of one type, got {listed(xs)}")
    return [xs[0]]


@add_n.kind
def add_n_kind(xs: Sequence[VarKind]) -> VarKind:
    """Dense if any term is dense; tensor arrays can be added only to each other."""
    if VarKind.LOD_TENSOR_ARRAY not in xs:
        return row_kernels.kind_of_sum(*xs)
    if len(set(xs)) > 1:
        named = ", ".join(str(one.value) for one in xs)
        raise KindError(f"tensor arrays must be added to tensor arrays only, got {named}")
    return VarKind.LOD_TENSOR_ARRAY


@add_n.gradient
def _add_n_gradient(xs: Sequence[Var], d_out: Var) -> Grads:
    return {"xs": [unbroadcast(d_out, x) for x in xs]}


add_n.on_rows("xs")(row_kernels.total)


@add_n.simplify
def _add_n_simplify(xs: Sequence[Var]) -> Var | None:
    if len(xs) == 1:
        return xs[0]
    if len(xs) == 2 and xs[0].kind is VarKind.LOD_TENSOR:
        pair: Var = add(*xs)
        return pair
    terms = [x for x in xs if x.constant != 0]
    if not terms:
        return xs[0]
    shorter: Var | None = add_n(*terms) if len(terms) < len(xs) else None
    return shorter


# Extrema ---------------------------------------------------------------------------------------


def _extremum_shape(x: Shape, *, axis: Axis, keepdims: bool) -> Shape:
    if count(x, axis) == 0:
        raise ShapeError(f"the reduced axes must not be empty, got shape {x}")
    return reduced(x, axis=axis, keepdims=keepdims)


def _extremum_dtype(x: VarType) -> DType:
    return real(x)[0]


Ties = Literal["split", "all", "first"]
"""The rule for ties: equal shares of the gradient, all of it for each, or all for the first."""


def extremum_gradient(x: Var, out: Var, d_out: Var, axis: Axis) -> Grads:
    """Entries that tie for the extremum share its cotangent equally."""
    chosen = equal(x, spread(out, x, axis))
    ties = sum(cast(chosen, dtype=d_out.dtype), axis=axis)
    share = d_out / reshape(ties, shape=d_out.shape)
    # Zero elsewhere, but not next to a NaN: NaN equals nothing, and 0 times d_out / 0 is NaN. (XLA
    # would simplify this to 0 if the mask were a factor.)
    return {"x": where(chosen, spread(share, x, axis), spread(0.0 * share, x, axis))}


def _extremum_gradient(
    x: Var, out: Var, d_out: Var, axis: Axis, ties: Ties, *, smallest: bool
) -> Grads:
    if ties == "split":
        return extremum_gradient(x, out, d_out, axis)
    if ties == "all":
        chosen = logical_or(equal(x, spread(out, x, axis)), not_equal(x, x))
    else:
        chosen = argmax_mask(x, axis=axis, smallest=smallest)
    return {"x": where(chosen, spread(d_out, x, axis), 0.0)}


def _extremum(x: Array, out: Array, axis: Axis, ties: Ties, *, smallest: bool) -> Array:
    """``out``, the extremum of ``x``, with the derivative that ``ties`` prescribes."""
    if ties == "split" or not jnp.issubdtype(out.dtype, jnp.floating):
        return out
    if ties == "all":
        chosen = (x == jnp.reshape(out, kept(x.shape, axis))) | jnp.isnan(x)
    else:
        chosen = argmax_mask.kernel(x, axis=axis, smallest=smallest)
    return _moved_with(jax.lax.stop_gradient(out), x, chosen, axis)


@functools.partial(jax.custom_jvp, nondiff_argnums=(3,))
def _moved_with(out: Array, x: Array, chosen: Array, axis: Axis) -> Array:
    """``out``, whose tangent is the sum of the tangents of the ``chosen`` entries of ``x``."""
    del x, chosen, axis
    return out


@_moved_with.defjvp
def _moved_with_jvp(axis: Axis, primals: Any, tangents: Any) -> tuple[Array, Array]:
    out, _, chosen = primals
    moved = jnp.sum(jnp.where(chosen, tangents[1], 0), axis=axis)
    return _moved_with(*primals, axis), jnp.reshape(moved, out.shape)


def _argmax_mask_shape(x: Shape, *, axis: Axis) -> Shape:
    _extremum_shape(x, axis=axis, keepdims=True)
    return x


def _argmax_mask_dtype(x: VarType) -> DType:
    real(x)
    return np.dtype(np.bool_)


def _argmax_mask_reference(x: np.ndarray, *, axis: Axis, smallest: bool) -> np.ndarray:
    out = np.zeros(x.shape, bool)
    axes = normalize_axes(axis, x.ndim)
    for place in np.ndindex(*(1 if i in axes else n for i, n in enumerate(x.shape))):
        window = tuple(slice(None) if i in axes else slice(n, n + 1) for i, n in enumerate(place))
        best = np.argmin(x[window]) if smallest else np.argmax(x[window])
        part = np.zeros(x[window].size, bool)
        part[best] = True
        out[window] = part.reshape(x[window].shape)
    return out


@op(
    shape=_argmax_mask_shape,
    dtype=_argmax_mask_dtype,
    reference=_argmax_mask_reference,
    cases=[
        case(x=(3, 4)),
        case(x=(3, 4), axis=1, smallest=True),
        case(x=integers(2, 3, 4, high=2), axis=(0, -1)),
        case(x=integers(3, 4, high=2), axis=0, smallest=True),
        case(x=(), axis=()),
        case(x=(0, 2), axis=1),
        misuse("the reduced axes must not be empty, got shape (0, 2)", x=(0, 2), axis=0),
        misuse("the inputs must be real, got complex64", x=np.ones(2, np.complex64)),
    ],
)
def argmax_mask(
    x: Array, *, axis: int | tuple[int, ...] | None = None, smallest: bool = False
) -> Array:
    """A mask that is true at one entry for each result of ``max``: the first of the largest.

    "First" refers to the row-major order of the reduced axes. NaN counts as largest. With
    ``smallest`` the mask selects the first smallest entry, and NaN counts as smallest.

    Example:
        >>> import jax.numpy as jnp
        >>> argmax_mask(jnp.asarray([1, 3, 3]))
        Array([False,  True, False], dtype=bool)
    """
    # Plain reductions are several times faster than an argmax.
    array = jnp.asarray(x)
    axes, n = normalize_axes(axis, array.ndim), count(array.shape, axis)
    places = jnp.arange(n).reshape([m if i in axes else 1 for i, m in enumerate(array.shape)])
    extreme = (jnp.min if smallest else jnp.max)(array, axis=axes, keepdims=True)
    tied = (array == extreme) | jnp.isnan(array)
    first = jnp.min(jnp.where(tied, places, n), axis=axes, keepdims=True)
    return places == first


argmax_mask.zero_gradient("it is piecewise constant")


def _tied(ties: Ties, axis: Axis) -> Any:
    """Cases with ties, compared with JAX's derivative of the kernel, not finite differences."""
    x = np.array([[[1.0, 4.0, 4.0], [4.0, 1.0, 1.0]], [[2.0, 2.0, 3.0], [-1.0, 3.0, -1.0]]])
    return case(x=x, axis=axis, ties=ties, order=0)


_EXTREMUM_CASES = [
    case(x=distinct(3, 4)),
    case(x=distinct(3, 4), axis=0),
    case(x=distinct(2, 3, 4), axis=(0, -1), keepdims=True),
    case(x=()),
    case(x=(0, 2), axis=1),
    case(x=integers(3, high=9)),
    case(x=distinct(3, 2), axis=0, ties="all", order=2),
    case(x=distinct(2, 3, 2), axis=(0, 2), keepdims=True, ties="first", order=2),
    case(x=(0, 2), axis=1, ties="first", order=1),
    *[_tied(ties, axis) for ties in ("split", "all", "first") for axis in (None, (0, 2))],
    misuse("attribute 'ties' must be", x=(3,), ties="last"),
    misuse("axis must be in [-2, 2), got 2", x=(3, 4), axis=2),
    misuse("the reduced axes must not be empty, got shape (0, 2)", x=(0, 2), axis=0),
    misuse("the inputs must be real, got complex64", x=np.ones(2, np.complex64)),
]


@op(
    shape=_extremum_shape,
    dtype=_extremum_dtype,
    reference=lambda x, *, axis, keepdims, ties: np.max(x, axis=axis, keepdims=keepdims),
    aliases=["reduce_max", "amax", "max_axis"],
    cases=_EXTREMUM_CASES,
)
def max(
    x: Array,
    *,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
    ties: Ties = "split",
) -> Array:
    """Maximum of the entries over ``axis``, by default over all axes.

    ``ties`` determines the gradient of several equal extremal entries: with ``"split"`` they share
    it equally, as in JAX; with ``"all"`` each receives all of it, as in MXNet and Paddle; with
    ``"first"`` only the first in row-major order receives it, as when an entry is selected by its
    index. If an entry is NaN, so are the result and, with ``"split"``, the gradient.

    Example:
        >>> import jax.numpy as jnp
        >>> max(jnp.asarray([[1.0, 2.0], [4.0, 3.0]]), axis=1)
        Array([2., 4.], dtype=float32)
    """
    array = jnp.asarray(x)
    out = jnp.max(array, axis=axis, keepdims=keepdims)
    return _extremum(array, out, axis, ties, smallest=False)


@max.gradient
def _max_gradient(x: Var, out: Var, d_out: Var, *, axis: Axis, ties: Ties) -> Grads:
    return _extremum_gradient(x, out, d_out, axis, ties, smallest=False)


@op(
    shape=_extremum_shape,
    dtype=_extremum_dtype,
    reference=lambda x, *, axis, keepdims, ties: np.min(x, axis=axis, keepdims=keepdims),
    aliases=["reduce_min", "amin", "min_axis"],
    cases=_EXTREMUM_CASES,
)
def min(
    x: Array,
    *,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
    ties: Ties = "split",
) -> Array:
    """Minimum of the entries over ``axis``, by default over all axes.

    ``ties`` determines the gradient of several equal extremal entries: with ``"split"`` they share
    it equally, as in JAX; with ``"all"`` each receives all of it, as in MXNet and Paddle; with
    ``"first"`` only the first in row-major order receives it, as when an entry is selected by its
    index. If an entry is NaN, so are the result and, with ``"split"``, the gradient.

    Example:
        >>> import jax.numpy as jnp
        >>> min(jnp.asarray([[1.0, 2.0], [4.0, 3.0]]), axis=1)
        Array([1., 3.], dtype=float32)
    """
    array = jnp.asarray(x)
    out = jnp.min(array, axis=axis, keepdims=keepdims)
    return _extremum(array, out, axis, ties, smallest=True)


@min.gradient
def _min_gradient(x: Var, out: Var, d_out: Var, *, axis: Axis, ties: Ties) -> Grads:
    return _extremum_gradient(x, out, d_out, axis, ties, smallest=True)
