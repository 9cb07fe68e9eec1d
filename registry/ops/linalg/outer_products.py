"""Outer, Kronecker and Khatri-Rao products."""

import functools
import math
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse, workload
from registry.errors import ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import sum_to, unbroadcast
from registry.ops.core.reductions import sum as total
from registry.ops.core.reshaping import expand_dims, reshape
from registry.ops.linalg.contractions import factor_cotangents, tensordot_labels
from registry.shapes import broadcast, listed, strong
from registry.table import op
from registry.types import Shape
from registry.var import Var


def _outer_shape(x: Shape, y: Shape) -> Shape:
    if len(x) != 1 or len(y) != 1:
        raise ShapeError(f"x and y must be vectors, got {x} and {y}")
    return x + y


@op(
    shape=_outer_shape,
    dtype=strong,
    reference=np.outer,
    aliases=["ger"],
    cases=[
        case(x=(3,), y=(4,)),
        case(x=(0,), y=(2,), order=1),
        case(x=(2,), y=integers(3, high=9), order=1),
        workload(x=(1000,), y=(1000,)),
        misuse("x and y must be vectors, got (3, 1) and (4,)", x=(3, 1), y=(4,)),
    ],
)
def outer(x: Array, y: Array) -> Array:
    """Outer product of two vectors: ``out[i, j] = x[i] * y[j]``.

    Source: Python array API standard 2024.12, ``linalg.outer``.

    Example:
        >>> import jax.numpy as jnp
        >>> outer(jnp.asarray([1, 2]), jnp.asarray([3, 4]))
        Array([[3, 4],
               [6, 8]], dtype=int32)
    """
    dtype = jnp.result_type(x, y)
    return jnp.asarray(x, dtype)[:, None] * jnp.asarray(y, dtype)[None, :]


@outer.gradient
def _outer_gradient(x: Var, y: Var, d_out: Var) -> Grads:
    d_x, d_y = factor_cotangents(x, y, tensordot_labels(x.shape, y.shape, 0), d_out)
    return {"x": d_x, "y": d_y}


def _interleaved(x: Shape, y: Shape) -> tuple[Shape, Shape]:
    """``x`` and ``y`` with interleaved axes of length 1; their product has all axes of both.

    The shorter shape is padded with leading axes of length 1.
    """
    ndim = max(len(x), len(y))
    x, y = (np.broadcast_shapes(shape, (1,) * ndim) for shape in (x, y))
    left = [n for length in x for n in (length, 1)]
    return tuple(left), tuple(n for length in y for n in (1, length))


def _kron_shape(x: Shape, y: Shape) -> Shape:
    left, right = _interleaved(x, y)
    both = broadcast(left, right)
    return tuple(map(math.prod, zip(both[::2], both[1::2], strict=True)))


@op(
    shape=_kron_shape,
    dtype=strong,
    reference=np.kron,
    cases=[
        case(x=(2, 3), y=(3, 2)),
        case(x=(3,), y=(2,)),
        case(x=(2,), y=(2, 1, 3), order=2),
        case(x=(), y=(3,), order=1),
        case(x=(2, 0), y=(1, 3), order=1),
        case(x=(2, 2), y=integers(2, 3, high=9), order=1),
        workload(x=(32, 32), y=(32, 32)),
        misuse("attributes among none, got 'axis'", x=(3,), y=(3,), axis=0),
    ],
)
def kron(x: Array, y: Array) -> Array:
    """Kronecker product: each entry of ``x`` times all of ``y``, arranged in blocks.

    ``out[i * m + k, j * n + l] = x[i, j] * y[k, l]`` for ``y`` of shape ``(m, n)``, and likewise
    for any number of axes; the shorter shape is padded with leading axes of length 1.

    Example:
        >>> import jax.numpy as jnp
        >>> kron(jnp.asarray([1, 10]), jnp.asarray([1, 2]))
        Array([ 1,  2, 10, 20], dtype=int32)
    """
    dtype = jnp.result_type(x, y)
    left, right = _interleaved(jnp.shape(x), jnp.shape(y))
    products = jnp.asarray(x, dtype).reshape(left) * jnp.asarray(y, dtype).reshape(right)
    return products.reshape(_kron_shape(jnp.shape(x), jnp.shape(y)))


@kron.gradient
def _kron_gradient(x: Var, y: Var, d_out: Var) -> Grads:
    # With separate axes for blocks and for entries within them, this is a broadcasting product. The
    # compiler fuses a multiplication and a sum into one loop; a contraction would transpose d
    # first.
    left, right = _interleaved(x.shape, y.shape)
    d = reshape(d_out, shape=broadcast(left, right))
    of_x, of_y = reshape(x, shape=left), reshape(y, shape=right)
    return {
        "x": lambda: unbroadcast(reshape(sum_to(d * of_y, shape=left), shape=x.shape), x),
        "y": lambda: unbroadcast(reshape(sum_to(d * of_x, shape=right), shape=y.shape), y),
    }


def _khatri_rao_shape(xs: Sequence[Shape]) -> Shape:
    if any(len(x) != 2 or x[1] != xs[0][-1] for x in xs):
        raise ShapeError(f"the inputs must be matrices with as many columns each, got {listed(xs)}")
    return (math.prod(x[0] for x in xs), xs[0][1])


def _columns_multiplied(x: Array, y: Array) -> Array:
    return (x[:, None, :] * y[None, :, :]).reshape(x.shape[0] * y.shape[0], x.shape[1])


def _khatri_rao_reference(*xs: np.ndarray) -> np.ndarray:
    columns = [functools.reduce(np.kron, [x[:, j] for x in xs]) for j in range(xs[0].shape[1])]
    return np.stack(columns, axis=1)


@op(
    shape=_khatri_rao_shape,
    dtype=strong,
    reference=_khatri_rao_reference,
    cases=[
        case(xs=[(2, 3), (3, 3)]),
        case(xs=[(2, 2), (3, 2), (2, 2)], order=2),
        case(xs=[(2, 3)], order=1),
        case(xs=[(0, 2), (3, 2)], order=1),
        case(xs=[(2, 2), integers(2, 2, high=9)], order=1),
        workload(xs=[(32, 64), (32, 64), (16, 64)]),
        misuse("must be matrices with as many columns each", xs=[(2, 3), (2, 4)]),
        misuse("must be matrices with as many columns each, got (3,)", xs=[(3,)]),
    ],
)
def khatri_rao(*xs: Array) -> Array:
    """Column-wise Kronecker product: ``out[:, j] = kron(x0[:, j], x1[:, j], ...)``.

    All inputs have the same number of columns; the number of rows of the result is the product of
    theirs.

    Example:
        >>> import jax.numpy as jnp
        >>> khatri_rao(jnp.asarray([[1, 2], [3, 4]]), jnp.asarray([[1, 10]]))
        Array([[ 1, 20],
               [ 3, 40]], dtype=int32)
    """
    dtype = jnp.result_type(*xs)
    return functools.reduce(_columns_multiplied, [jnp.asarray(x, dtype) for x in xs])


@khatri_rao.gradient
def _khatri_rao_gradient(xs: Sequence[Var], d_out: Var) -> Grads:
    # out[(i, k), j] = left[i, j] last[k, j], where left is the product of all factors before the
    # last: the cotangent of each of the two is the sum of d times the other, and left is treated in
    # the same way.
    gradients, d = [], d_out
    for count in range(len(xs) - 1, 0, -1):
        left, last = khatri_rao(*xs[:count]), xs[count]
        d = reshape(d, shape=(left.shape[0], *last.shape))
        gradients.append(total(d * expand_dims(left, axis=1), axis=0))
        d = total(d * expand_dims(last, axis=0), axis=1)
    both = zip([*gradients, d], reversed(xs), strict=True)
    return {"xs": [unbroadcast(one, x) for one, x in both][::-1]}


@khatri_rao.simplify
def _khatri_rao_simplify(xs: Sequence[Var]) -> Var | None:
    return xs[0] if len(xs) == 1 and not xs[0].type.weak else None
