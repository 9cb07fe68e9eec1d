"""Products of entries: reduced, cumulative, and over what is a number."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, misuse, workload
from registry.operator import Grads
from registry.ops.elementwise import where
from registry.ops.reductions import Axis, count, spread, sum_dtype
from registry.ops.rounding import isnan
from registry.ops.scans import (
    NEEDS_AXIS,
    by_numpy,
    linear_scan,
    scanned,
    scanned_axis,
    shifted,
    shifted_array,
    wide,
)
from registry.ops.shape import permute_dims, reshape
from registry.shapes import along_axis, normalize_axes, normalize_axis, reduced, strong_inexact
from registry.signature import Array
from registry.table import op
from registry.types import VarType
from registry.var import Var

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
    """``out[i] = x[0] ... x[i]`` along ``axis``, which may be left out if it is the only one.

    ``exclusive`` leaves out ``x[i]`` itself; ``reverse`` multiplies from the end. Small integers
    and booleans are multiplied in the default integer dtype. The gradient does not divide: zeros
    are like other numbers.

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
    if exclusive:
        array = shifted_array(array, at, reverse=reverse, fill=1)
    return lax.cumprod(array, at, reverse=reverse).astype(dtype)


@cumprod.gradient
def _cumprod_gradient(
    x: Var, out: Var, d_out: Var, *, axis: int | None, reverse: bool, exclusive: bool
) -> Grads:
    # d x[k] = sum over i >= k of d_out[i] times the product over j <= i without k: the product
    # before k, times what comes back to k by d[k] = d_out[k] + x[k + 1] d[k + 1]. If x[i] is left
    # out of out[i], d_out comes from one place further on.
    at, back = scanned_axis(axis, x.ndim), not reverse
    before = out if exclusive else shifted(out, at, reverse=reverse, fill=1.0)
    given = shifted(d_out, at, reverse=back) if exclusive else d_out
    return {"x": before * linear_scan(given, shifted(x, at, reverse=back), axis=axis, reverse=back)}


# Reduced ----------------------------------------------------------------------------------------


_ZEROS = np.array([[2.0, 0.0, 3.0], [0.0, 5.0, 0.0]])


def _others_reference(x: np.ndarray, *, axis: int = -1) -> np.ndarray:
    rows = np.moveaxis(x, axis, 0)
    out = np.ones_like(rows)
    for i in range(len(rows)):
        out[i] = np.prod(np.delete(rows, i, 0), 0)
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
    """``out[i] = prod(x[j] for j != i)`` along ``axis``: the gradient of ``prod``.

    No division is made, so zeros are like other numbers.

    Example:
        >>> import jax.numpy as jnp
        >>> product_of_others(jnp.asarray([2.0, 0.0, 3.0]))
        Array([0., 6., 0.], dtype=float32)
    """
    x = jnp.asarray(x)
    return lax.convert_element_type(_others(wide(x), normalize_axis(axis, x.ndim)), x.dtype)


def _others(x: Array, axis: int) -> Array:
    # The product of the others of a pair, times the other of the pair: as many products as there
    # are entries on the way to one pair, and twice as many on the way back.
    n = x.shape[axis]
    if n < 2:
        return jnp.ones_like(x)
    a, b, rest = lax.split(x, (n // 2, n // 2, n % 2), axis)
    of_pairs = _others(jnp.concatenate([a * b, rest], axis), axis)
    pair, last = lax.split(of_pairs, (n // 2, n % 2), axis)
    return jnp.concatenate([pair * b, pair * a, last], axis)


@product_of_others.gradient
def _product_of_others_gradient(x: Var, d_out: Var, *, axis: int) -> Grads:
    # d x[k] = sum over i != k of d_out[i] times the product without i and k. With the products
    # p[k] before and q[k] after k, the i before k add up to s[k] q[k], where s[k + 1] =
    # x[k] s[k] + p[k] d_out[k] is the sum over i <= k of d_out[i] times the product before k + 1
    # without i; and the i after k in the same way from the other end.
    def side(reverse: bool) -> tuple[Var, Var]:
        products = cumprod(x, axis=axis, reverse=reverse, exclusive=True)
        sums = linear_scan(products * d_out, x, axis=axis, reverse=reverse)
        return products, shifted(sums, axis, reverse=reverse)

    (before, sums_before), (after, sums_after) = side(reverse=False), side(reverse=True)
    return {"x": sums_before * after + before * sums_after}


def _others_over(x: Var, axis: Axis) -> Var:
    """At each entry the product of the others that are reduced with it."""
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
    """Product over ``axis``, by default over all axes; ``keepdims`` leaves them with length 1.

    Small integers and booleans are multiplied in the default integer dtype. The product of no
    entries is one. The gradient does not divide: zeros are like other numbers.

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


# Of what is a number ----------------------------------------------------------------------------


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
    """Product over ``axis`` of the entries that are numbers: a NaN counts as one.

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
