"""Products of entries: reduced, cumulative, and ignoring NaNs."""

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, misuse, workload
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import unbroadcast
from registry.ops.core.elementwise import where
from registry.ops.core.reductions import Axis, count, spread, sum_dtype
from registry.ops.core.reshaping import permute_dims, reshape
from registry.ops.elementwise.rounding import isnan
from registry.ops.reduce.scans import (
    NEEDS_AXIS,
    by_numpy,
    scanned,
    scanned_axis,
    shifted_array,
    wide,
)
from registry.shapes import (
    along_axis,
    normalize_axes,
    normalize_axis,
    reduced,
    same,
    strong_inexact,
)
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var
from registry.xla.device_types import varied_alike

_ZEROS = np.array([[2.0, 0.0, 3.0], [0.0, 5.0, 0.0]])

# Cumulative -------------------------------------------------------------------------------------


@op(
    shape=scanned,
    dtype=sum_dtype,
    reference=by_numpy(np.cumprod, 1.0),
    aliases=["cumulative_prod"],
    cases=[
        case(x=(2, 4), axis=1),
        case(x=np.array([2.0, 0.0, 3.0, 0.0, 0.5])),
        case(x=(4,), reverse=True, exclusive=True, order=2),
        case(x=(3, 2), axis=-2, exclusive=True, order=2),
        case(x=(0,)),
        case(x=integers(5, low=-9, high=9, dtype="int8")),
        workload(x=(1000, 1000), axis=1),
        *NEEDS_AXIS,
    ],
)
def cumprod(
    x: Array, *, axis: int | None = None, reverse: bool = False, exclusive: bool = False
) -> Array:
    """Cumulative product along ``axis``: ``out[i] = x[0] ... x[i]``.

    ``axis`` may be omitted if there is only one. ``exclusive`` omits ``x[i]`` itself; ``reverse``
    multiplies from the end. Small integers and booleans are multiplied in the default integer
    dtype. The gradient does not divide, so it is correct for zeros.

    Example:
        >>> import jax.numpy as jnp
        >>> cumprod(jnp.asarray([2.0, 3.0, 4.0]))
        Array([ 2.,  6., 24.], dtype=float32)
        >>> cumprod(jnp.asarray([2.0, 3.0, 4.0]), reverse=True, exclusive=True)
        Array([12.,  4.,  1.], dtype=float32)
    """
    array = jnp.asarray(x)
    dtype = sum_dtype(VarType(array.shape, array.dtype))
    at = scanned_axis(axis, array.ndim)
    array = wide(lax.convert_element_type(array, dtype))
    return _running(array, at, reverse=reverse, exclusive=exclusive).astype(dtype)


def _running(x: Array, axis: int, *, reverse: bool, exclusive: bool) -> Array:
    if exclusive:
        x = shifted_array(x, axis, reverse=reverse, fill=1)
    # lax.cumprod is the same tree, but the compiler would not recognize that a gradient contains
    # it.
    out: Array = lax.associative_scan(lax.mul, x, reverse=reverse, axis=axis)
    return out


@cumprod.gradient
def _cumprod_gradient(x: Var, d_out: Var, **how: Any) -> Grads:
    return {"x": cumprod_gradient(x, d_out, **how)}


def _along_shape(x: Shape, along: Sequence[Shape], *, axis: int | None) -> Shape:
    return scanned(same(x, *along), axis=axis)


def _along_dtype(x: VarType, along: Sequence[VarType]) -> DType:
    return strong_inexact(x, *along)


def _in_front(axis: int, *arrays: np.ndarray) -> list[np.ndarray]:
    """The arrays in their common dtype, with the axis first."""
    dtype = np.result_type(*arrays)
    return [np.moveaxis(one.astype(dtype), axis, 0) for one in arrays]


def _mixed(rows: np.ndarray, *ways: np.ndarray) -> np.ndarray:
    """The mixed derivative of the product of all rows: each direction varies a different row."""
    total: np.ndarray = np.zeros_like(rows[:1].sum(axis=0))
    for places in itertools.permutations(range(len(rows)), len(ways)):
        moved = [way[place] for way, place in zip(ways, places, strict=True)]
        kept = np.delete(rows, list(places), 0)
        total = total + np.prod([*moved, *kept], axis=0, initial=1.0)
    return total


def _reached(n: int, i: int, *, reverse: bool, exclusive: bool) -> list[int]:
    """The positions of the entries that are multiplied in the i-th of ``n`` cumulative products."""
    return list(range(i + exclusive, n) if reverse else range(i + 1 - exclusive))


def _tangent_reference(
    x: np.ndarray, *along: np.ndarray, axis: int | None = None, **how: bool
) -> np.ndarray:
    at = -1 if axis is None else axis
    rows = _in_front(at, x, *along)
    out = np.zeros_like(rows[0])
    for i in range(len(out)):
        out[i] = _mixed(*(one[_reached(len(out), i, **how)] for one in rows))
    return np.moveaxis(out, 0, at)


def _gradient_reference(
    x: np.ndarray, *along: np.ndarray, axis: int | None = None, **how: bool
) -> np.ndarray:
    at = -1 if axis is None else axis
    first, cotangent, *rest = _in_front(at, x, *along)
    rows, out = [first, *rest], np.zeros_like(first)
    for i, d in enumerate(cotangent):
        reached = _reached(len(out), i, **how)
        for k in reached:
            out[k] += d * _mixed(*(one[[j for j in reached if j != k]] for one in rows))
    return np.moveaxis(out, 0, at)


def _alike(*arrays: Array, dtype: DType) -> list[Any]:
    """``arrays`` in the dtype in which those of ``dtype`` are multiplied, with one JAX type."""
    return varied_alike([wide(jnp.asarray(one).astype(dtype)) for one in arrays])


def _derivative(
    function: Callable[[Array], Array], tangents: Sequence[Array]
) -> Callable[[Array], Array]:
    """The mixed derivative of ``function`` along all tangents."""
    for one in tangents:
        function = _slope(function, one)
    return function


def _slope(function: Callable[[Array], Array], tangent: Array) -> Callable[[Array], Array]:
    return lambda x: jax.jvp(function, (x,), (tangent,))[1]


def _each_left_out(tangents: Sequence[Var]) -> list[tuple[Var, tuple[Var, ...]]]:
    """Each tangent paired with the others."""
    return [(one, (*tangents[:i], *tangents[i + 1 :])) for i, one in enumerate(tangents)]


@op(
    shape=_along_shape,
    dtype=_along_dtype,
    reference=_gradient_reference,
    cases=[
        case(x=(2, 4), along=[(2, 4)], axis=1, order=2),
        case(x=_ZEROS, along=[(2, 3)], axis=1, reverse=True, order=2),
        case(x=(2, 3), along=[(2, 3), (2, 3)], axis=1, exclusive=True, order=2),
        case(x=(4, 2), along=[(4, 2), (4, 2), (4, 2)], axis=0, order=1),
        case(x=(0,), along=[(0,)]),
        workload(x=(1000, 1000), along=[(1000, 1000)], axis=1),
        misuse("must have the same shape", x=(3,), along=[(4,)]),
        misuse("must be floating", x=integers(3, high=4), along=[integers(3, high=4)]),
    ],
)
def cumprod_gradient(
    x: Array,
    *along: Array,
    axis: int | None = None,
    reverse: bool = False,
    exclusive: bool = False,
) -> Array:
    """Gradient of ``cumprod``, where the first entry of ``along`` is the cotangent of the result.

    It does not divide. Further entries of ``along`` give its mixed derivative along them. All have
    the shape of ``x``.

    Example:
        >>> import jax.numpy as jnp
        >>> cumprod_gradient(jnp.asarray([2.0, 0.0, 3.0]), jnp.ones(3))
        Array([1., 8., 0.], dtype=float32)
    """
    dtype = jnp.result_type(x, *along)
    x, cotangent, *ways = _alike(x, *along, dtype=dtype)
    at = scanned_axis(axis, x.ndim)
    # Runs back through the tree of products of the kernel: a recurrence along the axis would carry
    # products of factors as well as the sums.
    running = partial(_running, axis=at, reverse=reverse, exclusive=exclusive)
    (out,) = jax.vjp(_derivative(running, ways), x)[1](cotangent)
    return jnp.asarray(out).astype(dtype)


@cumprod_gradient.gradient
def _cumprod_gradient_gradient(x: Var, along: Sequence[Var], d_out: Var, **how: Any) -> Grads:
    # sum(d_out * out) is the sum of the cotangent times the derivative of cumprod along d_out and
    # all tangents, and it is linear in each of them.
    cotangent, *tangents = along

    def derivative(*ways: Var, to: Var) -> Var | None:
        return unbroadcast(cumprod_gradient(x, cotangent, *ways, **how), to)

    return {
        "x": derivative(*tangents, d_out, to=x),
        "along": [
            unbroadcast(cumprod_tangent(x, *tangents, d_out, **how), cotangent),
            *[derivative(*others, d_out, to=left) for left, others in _each_left_out(tangents)],
        ],
    }


@op(
    shape=_along_shape,
    dtype=_along_dtype,
    reference=_tangent_reference,
    cases=[
        case(x=(2, 4), along=[(2, 4)], axis=1, order=2),
        case(x=_ZEROS, along=[(2, 3)], axis=1, reverse=True, exclusive=True, order=2),
        case(x=(4, 2), along=[(4, 2), (4, 2)], axis=0, order=1),
        case(x=(0,), along=[(0,)]),
        workload(x=(1000, 1000), along=[(1000, 1000)], axis=1),
        misuse("must have the same shape", x=(3,), along=[(4,)]),
        misuse("must be floating", x=integers(3, high=4), along=[integers(3, high=4)]),
    ],
)
def cumprod_tangent(
    x: Array,
    *along: Array,
    axis: int | None = None,
    reverse: bool = False,
    exclusive: bool = False,
) -> Array:
    """Mixed derivative of ``cumprod`` along all arrays in ``along``, which have the shape of ``x``.

    Example:
        >>> import jax.numpy as jnp
        >>> cumprod_tangent(jnp.asarray([2.0, 0.0, 3.0]), jnp.asarray([0.0, 1.0, 0.0]))
        Array([0., 2., 6.], dtype=float32)
    """
    dtype = jnp.result_type(x, *along)
    x, *ways = _alike(x, *along, dtype=dtype)
    at = scanned_axis(axis, x.ndim)
    running = partial(_running, axis=at, reverse=reverse, exclusive=exclusive)
    return _derivative(running, ways)(x).astype(dtype)


@cumprod_tangent.gradient
def _cumprod_tangent_gradient(x: Var, along: Sequence[Var], d_out: Var, **how: Any) -> Grads:
    def derivative(*ways: Var, to: Var) -> Var | None:
        return unbroadcast(cumprod_gradient(x, d_out, *ways, **how), to)

    return {
        "x": derivative(*along, to=x),
        "along": [derivative(*others, to=left) for left, others in _each_left_out(along)],
    }


# Reduced ----------------------------------------------------------------------------------------


def _others_reference(x: np.ndarray, *along: np.ndarray, axis: int = -1) -> np.ndarray:
    rows = _in_front(axis, x, *along)
    out = np.zeros_like(rows[0])
    for k in range(len(out)):
        out[k] = _mixed(*(np.delete(one, k, 0) for one in rows))
    return np.moveaxis(out, 0, axis)


@op(
    shape=along_axis,
    dtype=strong_inexact,
    reference=_others_reference,
    cases=[
        case(x=(2, 4), order=2),
        case(x=_ZEROS, order=2),
        case(x=(7, 2), axis=0, order=1),
        case(x=(1,)),
        case(x=(0,)),
        workload(x=(1000, 1000)),
        misuse("axis must be in [-2, 2), got 2", x=(3, 4), axis=2),
        misuse("the inputs must be floating, got int32", x=integers(3, high=4)),
    ],
)
def product_of_others(x: Array, *, axis: int = -1) -> Array:
    """Product of all other entries along ``axis``: ``out[i] = prod(x[j] for j != i)``.

    This is the gradient of ``prod``. It does not divide, so it is correct for zeros.

    Example:
        >>> import jax.numpy as jnp
        >>> product_of_others(jnp.asarray([2.0, 0.0, 3.0]))
        Array([0., 6., 0.], dtype=float32)
    """
    x = jnp.asarray(x)
    return lax.convert_element_type(_others(wide(x), normalize_axis(axis, x.ndim)), x.dtype)


def _others(x: Array, axis: int) -> Array:
    # The product of the other pairs, times the other entry of the pair: as many products as there
    # are entries on the way to a single pair, and twice as many on the way back.
    n = x.shape[axis]
    if n < 2:
        return jnp.ones_like(x)
    a, b, rest = lax.split(x, (n // 2, n // 2, n % 2), axis)
    of_pairs = _others(jnp.concatenate([a * b, rest], axis), axis)
    pair, last = lax.split(of_pairs, (n // 2, n % 2), axis)
    return jnp.concatenate([pair * b, pair * a, last], axis)


@product_of_others.gradient
def _product_of_others_gradient(x: Var, d_out: Var, *, axis: int) -> Grads:
    # The second derivative of the product is symmetric.
    return {"x": product_of_others_tangent(x, d_out, axis=axis)}


def _others_tangent_shape(x: Shape, along: Sequence[Shape], *, axis: int) -> Shape:
    return along_axis(same(x, *along), axis=axis)


@op(
    shape=_others_tangent_shape,
    dtype=_along_dtype,
    reference=_others_reference,
    cases=[
        case(x=(2, 4), along=[(2, 4)], order=2),
        case(x=_ZEROS, along=[(2, 3)], order=2),
        case(x=(5, 2), along=[(5, 2), (5, 2)], axis=0, order=1),
        case(x=(1,), along=[(1,)]),
        case(x=(0,), along=[(0,)]),
        workload(x=(1000, 1000), along=[(1000, 1000)]),
        misuse("axis must be in [-2, 2), got 2", x=(3, 4), along=[(3, 4)], axis=2),
        misuse("must be floating, got int32", x=integers(1, high=4), along=[integers(1, high=4)]),
        misuse("must have the same shape, got (3,) and (4,)", x=(3,), along=[(4,)]),
    ],
)
def product_of_others_tangent(x: Array, *along: Array, axis: int = -1) -> Array:
    """Mixed derivative of ``product_of_others`` along all arrays in ``along``.

    The arrays have the shape of ``x``. ``out[i]`` is the derivative of the product of all entries
    with respect to ``x[i]`` and along each of them.

    Example:
        >>> import jax.numpy as jnp
        >>> product_of_others_tangent(jnp.asarray([2.0, 0.0, 3.0]), jnp.asarray([0.0, 1.0, 0.0]))
        Array([3., 0., 2.], dtype=float32)
    """
    dtype = jnp.result_type(x, *along)
    x, *ways = _alike(x, *along, dtype=dtype)
    at = normalize_axis(axis, x.ndim)
    return _derivative(partial(_others, axis=at), ways)(x).astype(dtype)


@product_of_others_tangent.gradient
def _product_of_others_tangent_gradient(
    x: Var, along: Sequence[Var], d_out: Var, *, axis: int
) -> Grads:
    # sum(d_out * out) is the mixed derivative of the product along d_out and all tangents, and is
    # symmetric in them. Its gradient in x is its derivative along one more direction; it is linear
    # in each tangent, whose own gradient omits that tangent.
    def derivative(*ways: Var, to: Var) -> Var | None:
        return unbroadcast(product_of_others_tangent(x, *ways, axis=axis), to)

    return {
        "x": derivative(*along, d_out, to=x),
        "along": [derivative(*others, d_out, to=left) for left, others in _each_left_out(along)],
    }


def _others_over(x: Var, axis: Axis) -> Var:
    """At each entry, the product of the other entries reduced with it."""
    axes = normalize_axes(axis, x.ndim)
    if len(axes) == 1:
        one: Var = product_of_others(x, axis=axes[0])
        return one
    order = (*(i for i in range(x.ndim) if i not in axes), *axes)
    last = permute_dims(x, axes=order)
    flat = (*last.shape[: x.ndim - len(axes)], count(x.shape, axes))
    others = reshape(product_of_others(reshape(last, shape=flat)), shape=last.shape)
    back: Var = permute_dims(others, axes=tuple(np.argsort(order).tolist()))
    return back


_PRODUCT_CASES = [
    case(x=(2, 3)),
    case(x=_ZEROS, axis=1),
    case(x=(2, 3, 2), axis=(0, -1), keepdims=True, order=2),
    case(x=(2, 3), axis=(), order=1),
    case(x=()),
    case(x=(0, 2), axis=0),
    case(x=integers(3, low=1, high=9)),
    workload(x=(1000, 1000), axis=1),
    misuse("axis must be in [-2, 2), got 2", x=(3, 4), axis=2),
    misuse("axes must be distinct, got (0, -2)", x=(3, 4), axis=(0, -2)),
]


@op(
    shape=reduced,
    dtype=sum_dtype,
    reference=np.prod,
    aliases=["reduce_prod"],
    cases=_PRODUCT_CASES,
)
def prod(x: Array, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Array:
    """Product over ``axis``, by default over all axes; ``keepdims`` keeps the axes with length 1.

    Small integers and booleans are multiplied in the default integer dtype. The empty product is
    one. The gradient does not divide, so it is correct for zeros.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.value_and_grad(prod)(jnp.asarray([2.0, 0.0, 3.0]))
        (Array(0., dtype=float32), Array([0., 6., 0.], dtype=float32))
    """
    return jnp.prod(x, axis=axis, keepdims=keepdims)


@prod.gradient
def _prod_gradient(x: Var, d_out: Var, *, axis: Axis) -> Grads:
    return {"x": spread(d_out, x, axis) * _others_over(x, axis)}


@prod.simplify
def _prod_simplify(x: Var, *, axis: Axis) -> Var | None:
    return x if not normalize_axes(axis, x.ndim) and sum_dtype(x.type) == x.dtype else None


# Ignoring NaNs ----------------------------------------------------------------------------------


@op(
    shape=reduced,
    dtype=sum_dtype,
    reference=np.nanprod,
    cases=[
        case(x=np.array([[2.0, np.nan, 3.0], [np.nan, 5.0, 0.0]])),
        case(x=np.array([[2.0, np.nan, 3.0], [np.nan, 5.0, 0.0]]), axis=1, order=2),
        case(x=(2, 3, 2), axis=(0, -1), keepdims=True, order=1),
        case(x=()),
        case(x=(0, 2), axis=0),
        case(x=integers(3, low=1, high=9)),
        workload(x=(1000, 1000), axis=1),
        misuse("axis must be in [-2, 2), got 2", x=(3, 4), axis=2),
    ],
)
def nanprod(
    x: Array, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False
) -> Array:
    """Product over ``axis`` that ignores NaNs: a NaN counts as one.

    The gradient at a NaN is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> nanprod(jnp.asarray([2.0, jnp.nan, 3.0]))
        Array(6., dtype=float32)
    """
    x = jnp.asarray(x)
    return jnp.prod(jnp.where(jnp.isnan(x), jnp.ones_like(x), x), axis=axis, keepdims=keepdims)


@nanprod.gradient
def _nanprod_gradient(x: Var, d_out: Var, *, axis: Axis) -> Grads:
    missing = isnan(x)
    slope = spread(d_out, x, axis) * _others_over(where(missing, 1.0, x), axis)
    return {"x": where(missing, 0.0, slope)}
