"""Products of arrays with sums over shared axes."""

import functools
import operator
import string
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, misuse, workload
from registry.errors import AttributeValueError, ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import unbroadcast
from registry.ops.core.complex_parts import conj
from registry.ops.core.reshaping import expand_dims
from registry.ops.linalg.einsum import Labels, cotangent_of
from registry.shapes import broadcast, listed, normalize_axes, normalize_axis, numeric, strong
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var

# tensordot -------------------------------------------------------------------------------------

Axes = int | tuple[int | tuple[int, ...], int | tuple[int, ...]]
"""The number of summed axes (last of x, first of y), or the axes of x and of y."""


def _summed_axes(x: Shape, y: Shape, axes: Axes) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The axes of ``x`` and those of ``y`` that are summed, in pairs."""
    if isinstance(axes, int):
        if not 0 <= axes <= min(len(x), len(y)):
            raise AttributeValueError(
                f"axes must be in [0, {min(len(x), len(y))}] for {x} and {y}, got {axes}"
            )
        return tuple(range(len(x) - axes, len(x))), tuple(range(axes))
    of_x, of_y = (_each(one, shape) for one, shape in zip(axes, (x, y), strict=True))
    if len(of_x) != len(of_y):
        raise AttributeValueError(f"axes must name as many axes of x as of y, got {axes}")
    return of_x, of_y


def _each(axes: int | tuple[int, ...], shape: Shape) -> tuple[int, ...]:
    each = (axes,) if isinstance(axes, int) else axes
    normalize_axes(each, len(shape))
    return tuple(axis % len(shape) for axis in each)


def _tensordot_shape(x: Shape, y: Shape, *, axes: Axes) -> Shape:
    of_x, of_y = _summed_axes(x, y, axes)
    if [x[i] for i in of_x] != [y[i] for i in of_y]:
        raise ShapeError(f"the summed axes of x and y must be equally long, got {x} and {y}")
    left = [n for i, n in enumerate(x) if i not in of_x]
    return (*left, *[n for i, n in enumerate(y) if i not in of_y])


@op(
    shape=_tensordot_shape,
    dtype=strong,
    reference=np.tensordot,
    cases=[
        case(x=(2, 3, 4), y=(3, 4, 2)),
        case(x=(2, 3), y=(3, 2), axes=1, order=2),
        case(x=(2, 3, 4), y=(4, 5, 3), axes=((1, -1), (2, 0)), order=2),
        case(x=(2, 3), y=(2,), axes=(0, 0), order=2),
        case(x=(2,), y=(3,), axes=0),
        case(x=(), y=(3,), axes=0, order=1),
        case(x=(2, 0), y=(0, 3), axes=1, order=1),
        case(x=(2, 3), y=integers(3, high=9), axes=1, order=1),
        workload(x=(32, 32, 256), y=(256, 32, 32), axes=1),
        misuse("axes must be in [0, 1] for (2, 3) and (3,), got 2", x=(2, 3), y=(3,)),
        misuse("the summed axes of x and y must be equally long", x=(2, 3), y=(4, 3), axes=1),
        misuse("as many axes of x as of y", x=(2, 3), y=(2, 3), axes=((0, 1), (0,))),
        misuse("axes must be distinct, got (0, 0)", x=(2, 2), y=(2, 2), axes=((0, 0), (0, 1))),
    ],
    costly=True,
)
def tensordot(x: Array, y: Array, *, axes: Axes = 2) -> Array:
    """Tensor contraction: the sum of products over given axes of both arrays.

    ``axes`` is the number of summed axes, the last of ``x`` and the first of ``y``, or the axes of
    ``x`` and, in the same order, those of ``y``. The result has the remaining axes, those of ``x``
    first. With no summed axes it is the outer product.

    Source: Python array API standard 2024.12, ``tensordot``.

    Example:
        >>> import jax.numpy as jnp
        >>> tensordot(jnp.asarray([[1, 2], [3, 4]]), jnp.asarray([1, 10]), axes=((0,), (0,)))
        Array([31, 42], dtype=int32)
    """
    of_x, of_y = _summed_axes(jnp.shape(x), jnp.shape(y), axes)
    dtype = jnp.result_type(x, y)
    return lax.dot_general(jnp.asarray(x, dtype), jnp.asarray(y, dtype), ((of_x, of_y), ((), ())))


@tensordot.gradient
def _tensordot_gradient(x: Var, y: Var, d_out: Var, *, axes: Axes) -> Grads:
    d_x, d_y = factor_cotangents(x, y, tensordot_labels(x.shape, y.shape, axes), d_out)
    return {"x": d_x, "y": d_y}


def tensordot_labels(x: Shape, y: Shape, axes: Axes) -> Labels:
    """Letters for the axes; those of ``y`` continue where those of ``x`` end."""
    of_x, of_y = _summed_axes(x, y, axes)
    term_x = list(string.ascii_letters[: len(x)])
    term_y = list(string.ascii_letters[len(x) : len(x) + len(y)])
    for i, j in zip(of_x, of_y, strict=True):
        term_y[j] = term_x[i]
    out = [c for c in term_x if c not in term_y] + [c for c in term_y if c not in term_x]
    lengths = {**dict(zip(term_x, x, strict=True)), **dict(zip(term_y, y, strict=True))}
    return Labels(("".join(term_x), "".join(term_y)), "".join(out), lengths)


def factor_cotangents(
    x: Var, y: Var, labels: Labels, d: Any
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Functions that compute the cotangent of either factor of a product, if it is requested."""
    of = functools.partial(cotangent_of, operands=(x, y), labels=labels, d=d)
    return functools.partial(of, 0), functools.partial(of, 1)


# batch_dot -------------------------------------------------------------------------------------


def turned(shape: Shape, transpose: bool) -> Shape:
    """``shape`` with its last two axes exchanged if requested."""
    return (*shape[:-2], shape[-1], shape[-2]) if transpose else shape


def _batch_dot_shape(a: Shape, b: Shape, *, transpose_a: bool, transpose_b: bool) -> Shape:
    if len(a) < 3 or len(b) < 3 or a[:-2] != b[:-2]:
        raise ShapeError(f"a and b must be matrices with the same batch axes, got {a} and {b}")
    return multiplied_shape(a, b, transpose_a, transpose_b)


def multiplied_shape(a: Shape, b: Shape, transpose_a: bool, transpose_b: bool) -> Shape:
    """The shape of a product of matrices, whose batch axes broadcast.

    Raises:
        ShapeError: the matrices cannot be multiplied.
    """
    if len(a) < 2 or len(b) < 2:
        raise ShapeError(f"a and b must have at least two axes, got {a} and {b}")
    (*batch_a, rows, inner), (*batch_b, same, columns) = (
        turned(a, transpose_a),
        turned(b, transpose_b),
    )
    if inner != same:
        raise ShapeError(
            f"the columns of the left matrix must be as many as the rows of the right one, got "
            f"{inner} and {same} for {a} and {b}"
        )
    return (*_batch_shape(batch_a, batch_b), rows, columns)


def _batch_shape(a: Sequence[int], b: Sequence[int]) -> Shape:
    """The shape to which batch axes broadcast; NumPy's function rejects symbolic lengths."""
    try:
        return tuple(jnp.broadcast_shapes(tuple(a), tuple(b)))
    except ValueError:
        shapes = listed((tuple(a), tuple(b)))
        raise ShapeError(f"the inputs' shapes must broadcast together, got {shapes}") from None


def matrix_labels(a: Shape, b: Shape, transpose_a: bool, transpose_b: bool) -> Labels:
    """Labels for the axes of a matrix product: capital letters are batch axes, which broadcast."""
    out = multiplied_shape(a, b, transpose_a, transpose_b)
    batch = string.ascii_uppercase[: len(out) - 2]
    of_a = batch[len(out) - len(a) :] + ("ki" if transpose_a else "ik")
    of_b = batch[len(out) - len(b) :] + ("jk" if transpose_b else "kj")
    lengths = {**dict(zip(batch + "ij", out, strict=True)), "k": turned(a, transpose_a)[-1]}
    return Labels((of_a, of_b), batch + "ij", lengths)


def multiplied(a: Array, b: Array, transpose_a: bool, transpose_b: bool) -> Array:
    """The product of matrices, either optionally transposed."""
    dtype = jnp.result_type(a, b)
    a, b = jnp.asarray(a, dtype), jnp.asarray(b, dtype)
    left = jnp.matrix_transpose(a) if transpose_a else a
    return jnp.matmul(left, jnp.matrix_transpose(b) if transpose_b else b)


def multiplied_reference(
    a: np.ndarray, b: np.ndarray, *, transpose_a: bool, transpose_b: bool
) -> np.ndarray:
    """The product of matrices in NumPy."""
    left = np.swapaxes(a, -1, -2) if transpose_a else a
    product: np.ndarray = left @ (np.swapaxes(b, -1, -2) if transpose_b else b)
    return product


@op(
    shape=_batch_dot_shape,
    dtype=strong,
    reference=multiplied_reference,
    aliases=["bmm"],
    cases=[
        case(a=(2, 3, 4), b=(2, 4, 2)),
        case(a=(2, 4, 3), b=(2, 4, 2), transpose_a=True, order=2),
        case(a=(2, 3, 4), b=(2, 2, 4), transpose_b=True, order=2),
        case(a=(2, 1, 4, 3), b=(2, 1, 2, 4), transpose_a=True, transpose_b=True, order=1),
        case(a=(0, 3, 4), b=(0, 4, 2), order=1),
        case(a=integers(2, 2, 3, high=9), b=integers(2, 3, 2, high=9)),
        workload(a=(32, 128, 128), b=(32, 128, 128), transpose_b=True),
        misuse("with the same batch axes, got (2, 3, 4) and (3, 4, 2)", a=(2, 3, 4), b=(3, 4, 2)),
        misuse("must be matrices with the same batch axes", a=(3, 4), b=(4, 2)),
        misuse(
            "must be as many as the rows of the right one, got 4 and 3", a=(2, 3, 4), b=(2, 3, 4)
        ),
    ],
    costly=True,
)
def batch_dot(a: Array, b: Array, *, transpose_a: bool = False, transpose_b: bool = False) -> Array:
    """Batched matrix product: ``out[n] = a[n] @ b[n]``.

    ``transpose_a`` and ``transpose_b`` transpose the matrices first. All axes but the last two are
    batch axes and must be the same in both; ``matmul`` broadcasts them.

    Example:
        >>> import jax.numpy as jnp
        >>> x = jnp.asarray([[[1.0, 2.0]], [[3.0, 4.0]]])
        >>> batch_dot(x, x, transpose_b=True)
        Array([[[ 5.]],
        <BLANKLINE>
               [[25.]]], dtype=float32)
    """
    return multiplied(a, b, transpose_a, transpose_b)


@batch_dot.gradient
def _batch_dot_gradient(
    a: Var, b: Var, d_out: Var, *, transpose_a: bool, transpose_b: bool
) -> Grads:
    # out = A B gives dA = D B^T and dB = A^T D; the cotangent of a transposed matrix is transposed:
    # A = a^T gives da = B D^T. No transpose is computed: a product reads its factors either way.
    if transpose_a:
        d_a = batch_dot(b, d_out, transpose_a=transpose_b, transpose_b=True)
    else:
        d_a = batch_dot(d_out, b, transpose_b=not transpose_b)
    if transpose_b:
        d_b = batch_dot(d_out, a, transpose_a=True, transpose_b=transpose_a)
    else:
        d_b = batch_dot(a, d_out, transpose_a=not transpose_a)
    return {"a": unbroadcast(d_a, a), "b": unbroadcast(d_b, b)}


# vecdot and cross ------------------------------------------------------------------------------


def _along(x: Shape, y: Shape, axis: int) -> int:
    """The axis of the vectors, counted from the end; it has the same length in both arrays."""
    ndim = max(len(x), len(y))
    at = normalize_axis(axis, ndim) - ndim
    lengths = [shape[at] if len(shape) >= abs(at) else None for shape in (x, y)]
    if lengths[0] != lengths[1] or None in lengths:
        raise ShapeError(f"x and y must be equally long along axis {axis}, got {x} and {y}")
    return at


def _numeric(*types: VarType) -> DType:
    return numeric(*types)[0]


def _vecdot_shape(x: Shape, y: Shape, *, axis: int) -> Shape:
    at = _along(x, y, axis)
    out = broadcast(x, y)
    return (*out[:at], *out[len(out) + at + 1 :])


def _vecdot_reference(x: np.ndarray, y: np.ndarray, *, axis: int) -> np.ndarray:
    products = np.sum(np.conj(x) * y, axis=axis, dtype=np.result_type(x, y))
    return np.asarray(products)


@op(
    shape=_vecdot_shape,
    dtype=_numeric,
    reference=_vecdot_reference,
    cases=[
        case(x=(3, 4), y=(3, 4)),
        case(x=(4,), y=(4,)),
        case(x=(3, 1, 2), y=(3, 4, 1), axis=0, order=2),
        case(x=(3,), y=(2, 3), order=2),
        case(x=(2, 0), y=(0,), order=1),
        case(x=integers(2, 3, high=9), y=integers(2, 3, high=9)),
        workload(x=(2048, 512), y=(2048, 512)),
        misuse("must be equally long along axis -1, got (3,) and (1,)", x=(3,), y=(1,)),
        misuse("must be equally long along axis 0, got (2, 3) and (3,)", x=(2, 3), y=(3,), axis=0),
        misuse("axis must be in [-1, 1), got 1", x=(3,), y=(3,), axis=1),
        misuse("the inputs must be numbers, got bool", x=np.ones(2, bool), y=np.ones(2, bool)),
    ],
)
def vecdot(x: Array, y: Array, *, axis: int = -1) -> Array:
    """Inner product of vectors along an axis: ``out = sum over axis of conj(x) * y``.

    The other axes broadcast, and ``axis`` refers to the broadcast shape. ``x`` is conjugated if it
    is complex. The gradients are those of JAX: ``conj(d * y)`` and ``d * conj(x)``.

    Source: Python array API standard 2024.12, ``vecdot``.

    Example:
        >>> import jax.numpy as jnp
        >>> vecdot(jnp.asarray([[1.0, 2.0], [3.0, 4.0]]), jnp.asarray([1.0, 10.0]))
        Array([21., 43.], dtype=float32)
    """
    at = _along(jnp.shape(x), jnp.shape(y), axis)
    dtype = jnp.result_type(x, y)
    wide = np.float32 if jnp.issubdtype(dtype, jnp.floating) and dtype.itemsize < 4 else dtype
    products = jnp.conj(jnp.asarray(x, wide)) * jnp.asarray(y, wide)
    return jnp.asarray(jnp.sum(products, axis=at, dtype=wide), dtype)


@vecdot.gradient
def _vecdot_gradient(x: Var, y: Var, d_out: Var, *, axis: int) -> Grads:
    d = expand_dims(d_out, axis=_along(x.shape, y.shape, axis))
    return {
        "x": lambda: unbroadcast(conj(d * y), x),
        "y": lambda: unbroadcast(d * conj(x), y),
    }


def _cross_shape(x: Shape, y: Shape, *, axis: int) -> Shape:
    at = _along(x, y, axis)
    if x[at] != 3:
        raise ShapeError(f"x and y must have length 3 along axis {axis}, got {x} and {y}")
    return broadcast(x, y)


def _cross_reference(x: np.ndarray, y: np.ndarray, *, axis: int) -> np.ndarray:
    x, y = np.broadcast_arrays(x, y)
    return np.cross(x, y, axis=axis)


@op(
    shape=_cross_shape,
    dtype=_numeric,
    reference=_cross_reference,
    cases=[
        case(x=(2, 3), y=(2, 3)),
        case(x=(3,), y=(3,)),
        case(x=(3, 1), y=(2, 3, 4), axis=1, order=2),
        case(x=(0, 3), y=(3,), order=1),
        case(x=integers(2, 3, high=9), y=integers(2, 3, high=9)),
        workload(x=(300000, 3), y=(300000, 3)),
        misuse("must have length 3 along axis -1, got (2,) and (2,)", x=(2,), y=(2,)),
        misuse("must be equally long along axis -1, got (3,) and (1,)", x=(3,), y=(1,)),
        misuse("the inputs must be numbers, got bool", x=np.ones(3, bool), y=np.ones(3, bool)),
    ],
)
def cross(x: Array, y: Array, *, axis: int = -1) -> Array:
    """Cross product of vectors of length 3 along an axis.

    ``out[0] = x[1] y[2] - x[2] y[1]``, and cyclically for the other components. The other axes
    broadcast, and ``axis`` refers to the broadcast shape.

    Source: Python array API standard 2024.12, ``linalg.cross``.

    Example:
        >>> import jax.numpy as jnp
        >>> cross(jnp.asarray([1, 0, 0]), jnp.asarray([0, 1, 0]))
        Array([0, 0, 1], dtype=int32)
    """
    dtype = jnp.result_type(x, y)
    at = _along(jnp.shape(x), jnp.shape(y), axis)
    x0, x1, x2 = _components(jnp.asarray(x, dtype), at)
    y0, y1, y2 = _components(jnp.asarray(y, dtype), at)
    parts = [x1 * y2 - x2 * y1, x2 * y0 - x0 * y2, x0 * y1 - x1 * y0]
    # The compiler fuses this sum and its derivative into one loop, which it does not for a
    # concatenation.
    return functools.reduce(operator.add, [_component(v, i, at) for i, v in enumerate(parts)])


def _components(x: Array, axis: int) -> list[Array]:
    return [lax.slice_in_dim(x, i, i + 1, axis=x.ndim + axis) for i in range(3)]


def _component(x: Array, index: int, axis: int) -> Array:
    """``x``, of length 1 along the axis, as one component of vectors whose others are zero."""
    edges = [(0, 0, 0)] * x.ndim
    edges[axis] = (index, 2 - index, 0)
    return lax.pad(x, np.zeros((), x.dtype), edges)


@cross.gradient
def _cross_gradient(x: Var, y: Var, d_out: Var, *, axis: int) -> Grads:
    # A triple product is invariant under cyclic permutation:
    # <d, dx × y> = <dx, y × d> and <d, x × dy> = <dy, d × x>.
    at = _along(x.shape, y.shape, axis)
    return {
        "x": lambda: unbroadcast(cross(y, d_out, axis=at), x),
        "y": lambda: unbroadcast(cross(d_out, x, axis=at), y),
    }
