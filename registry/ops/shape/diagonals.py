"""Diagonals and triangles of matrices."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, misuse, workload
from registry.errors import AttributeValueError, ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import broadcast_to
from registry.ops.core.reductions import sum as total
from registry.ops.core.reshaping import expand_dims
from registry.shapes import normalize_axis, promote
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var


def matrix_axes(ndim: int, axis1: int, axis2: int) -> tuple[int, int]:
    """The axes of rows and columns, counted from the front.

    Raises:
        ShapeError: there are fewer than two axes.
        AttributeValueError: an axis does not exist, or both are the same.
    """
    if ndim < 2:
        raise ShapeError(f"x must have at least two axes, got {ndim}")
    rows, columns = normalize_axis(axis1, ndim), normalize_axis(axis2, ndim)
    if rows == columns:
        raise AttributeValueError(f"axis1 and axis2 must be distinct, got {axis1} and {axis2}")
    return rows, columns


def diagonal_length(rows: int, columns: int, offset: int) -> int:
    """The length of the diagonal ``offset`` places to the right of the main diagonal."""
    return max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)


def _start(columns: int, offset: int) -> int:
    """The row-major position of the diagonal's first entry in the matrix."""
    return offset if offset >= 0 else -offset * columns


def banded(x: Array, lower: int | None, upper: int | None) -> Array:
    """Zeroes entries outside ``i - j <= lower`` and ``j - i <= upper``; None sets no bound."""
    rows, columns = x.shape[-2:]
    above = _places_above(rows, columns)
    inside = np.ones((), bool)
    # A bound may exceed the range of array integers; one beyond the corners is equivalent to the
    # corner.
    if lower is not None:
        inside = inside & (above >= max(min(-lower, columns), -rows))
    if upper is not None:
        inside = inside & (above <= max(min(upper, columns), -rows))
    return jnp.where(inside, x, lax.full_like(x, 0))


def on_diagonal(x: Shape) -> Array:
    """A mask that is true on the diagonals of matrices of shape ``x``."""
    return _places_above(*x[-2:]) == 0


def _places_above(rows: int, columns: int) -> Array:
    """The distance of each entry of a matrix above the diagonal."""
    return jnp.arange(columns) - jnp.arange(rows)[:, None]


# diagonal and diag_embed -----------------------------------------------------------------------


def _diagonal_shape(x: Shape, *, offset: int, axis1: int, axis2: int) -> Shape:
    rows, columns = matrix_axes(len(x), axis1, axis2)
    batch = [length for i, length in enumerate(x) if i not in (rows, columns)]
    return (*batch, diagonal_length(x[rows], x[columns], offset))


def diagonal_of(x: Array, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Array:
    """The kernel of ``diagonal``."""
    x = jnp.moveaxis(jnp.asarray(x), (axis1, axis2), (-2, -1))
    *batch, rows, columns = x.shape
    length = diagonal_length(rows, columns, offset)
    if length == 0:
        return jnp.zeros((*batch, 0), x.dtype)
    # Every (columns + 1)-th entry in row-major order: a slice instead of a gather.
    start, step = _start(columns, offset), columns + 1
    flat = x.reshape(*batch, rows * columns)
    return lax.slice_in_dim(flat, start, start + (length - 1) * step + 1, step, axis=-1)


_MATRIX_MISUSES = [
    misuse("x must have at least two axes, got 1", x=(3,)),
    misuse("axis must be in [-2, 2), got 2", x=(3, 3), axis1=2),
    misuse("axis1 and axis2 must be distinct, got 1 and -1", x=(3, 3), axis1=1),
]


def _diagonal_dtype(x: VarType) -> DType:
    return x.dtype


@op(
    rearranges=True,
    shape=_diagonal_shape,
    dtype=_diagonal_dtype,
    reference=lambda x, *, offset, axis1, axis2: np.diagonal(x, offset, axis1, axis2),
    aliases=["linalg_extractdiag"],
    cases=[
        case(x=(3, 4)),
        case(x=(4, 3), offset=1, order=2),
        case(x=(2, 3, 2), offset=-1, axis1=0, axis2=1, order=2),
        case(x=(2, 3), offset=5),
        case(x=(0, 3, 3), order=1),
        case(x=integers(3, 3, high=9), axis1=1, axis2=0),
        workload(x=(64, 256, 256)),
        *_MATRIX_MISUSES,
    ],
)
def diagonal(x: Array, *, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Array:
    """Extracts diagonals of matrices: ``out[..., i] = x[..., i, i + offset]``.

    ``axis1`` is the axis of rows and ``axis2`` that of columns; the diagonal becomes the last axis
    of the result. ``offset`` is positive above the main diagonal and negative below. A diagonal
    outside the matrix is empty.

    Source: Python array API standard 2024.12, ``linalg.diagonal``.

    Example:
        >>> import jax.numpy as jnp
        >>> diagonal(jnp.asarray([[1, 2, 3], [4, 5, 6]]), offset=1)
        Array([2, 6], dtype=int32)
    """
    return lax.convert_element_type(diagonal_of(x, offset, axis1, axis2), jnp.asarray(x).dtype)


@diagonal.gradient
def _diagonal_gradient(x: Var, d_out: Var, *, offset: int, axis1: int, axis2: int) -> Grads:
    return {"x": diagonal_cotangent(d_out, x, offset, axis1, axis2)}


def diagonal_cotangent(d: Var, x: Var, offset: int, axis1: int, axis2: int) -> Any:
    """The cotangent of ``x``, given that of its diagonal: zero elsewhere."""
    rows, columns = matrix_axes(x.ndim, axis1, axis2)
    lengths = (x.shape[rows], x.shape[columns])
    return diag_embed(d, offset=offset, axis1=axis1, axis2=axis2, lengths=lengths)


def _embedded_lengths(length: int, offset: int, lengths: tuple[int, int] | None) -> tuple[int, int]:
    """The numbers of rows and columns of the matrix that contains a diagonal of ``length``."""
    rows, columns = lengths or (length + abs(offset),) * 2
    if rows * columns >= 2**63:
        raise AttributeValueError(
            f"the diagonal must lie in a matrix of less than 2^63 entries, got one of {rows} rows "
            f"and {columns} columns"
        )
    diagonal = diagonal_length(rows, columns, offset)
    if min(rows, columns) < 0 or diagonal != length:
        raise ShapeError(
            f"the diagonal at offset {offset} of matrices of {(rows, columns)} must be as long as "
            f"the last axis of x, {length}, got {diagonal}"
        )
    return rows, columns


def _diag_embed_shape(
    x: Shape, *, offset: int, axis1: int, axis2: int, lengths: tuple[int, int] | None
) -> Shape:
    if not x:
        raise ShapeError("x must have at least one axis, got shape ()")
    rows, columns = matrix_axes(len(x) + 1, axis1, axis2)
    new = dict(zip((rows, columns), _embedded_lengths(x[-1], offset, lengths), strict=True))
    batch = iter(x[:-1])
    return tuple(new[i] if i in new else next(batch) for i in range(len(x) + 1))


def embedded(x: Array, offset: int = 0, lengths: tuple[int, int] | None = None) -> Array:
    """The kernel of ``diag_embed`` for matrices along the last two axes."""
    x = jnp.asarray(x)
    *batch, length = x.shape
    rows, columns = _embedded_lengths(length, offset, lengths)
    place = np.arange(length)
    at = (..., place + max(-offset, 0), place + max(offset, 0))
    return (
        jnp.zeros((*batch, rows, columns), x.dtype)
        .at[at]
        .set(x, unique_indices=True, indices_are_sorted=True)
    )


def _diag_embed_reference(
    x: np.ndarray, *, offset: int, axis1: int, axis2: int, lengths: tuple[int, int] | None
) -> np.ndarray:
    rows, columns = lengths or (x.shape[-1] + abs(offset),) * 2
    out = np.zeros((*x.shape[:-1], rows, columns), x.dtype)
    for i in range(x.shape[-1]):
        out[..., i - min(offset, 0), i + max(offset, 0)] = x[..., i]
    return np.moveaxis(out, (-2, -1), (axis1, axis2))


@op(
    rearranges=True,
    shape=_diag_embed_shape,
    dtype=_diagonal_dtype,
    reference=_diag_embed_reference,
    aliases=["linalg_makediag"],
    cases=[
        case(x=(2, 3)),
        case(x=(2, 3), offset=1, order=2),
        case(x=(2,), offset=-1, lengths=(3, 4), order=2),
        case(x=(2, 3), axis1=0, axis2=-2, order=2),
        case(x=(2, 0), offset=4, lengths=(3, 3)),
        case(x=integers(3, high=9)),
        workload(x=(64, 256)),
        misuse("x must have at least one axis, got shape ()", x=()),
        misuse(
            "the diagonal at offset 1 of matrices of (3, 3) must be as long as the last axis of x, "
            "3, got 2",
            x=(3,),
            offset=1,
            lengths=(3, 3),
        ),
        misuse("axis1 and axis2 must be distinct, got -1 and -1", x=(3,), axis1=-1),
    ],
)
def diag_embed(
    x: Array,
    *,
    offset: int = 0,
    axis1: int = -2,
    axis2: int = -1,
    lengths: tuple[int, int] | None = None,
) -> Array:
    """Builds matrices with a given diagonal, else zero: ``out[..., i, i + offset] = x[..., i]``.

    ``axis1`` is the axis of rows in the result and ``axis2`` that of columns. ``lengths`` are the
    numbers of rows and columns, by default those of the smallest square matrix that holds the
    diagonal. This is the adjoint of ``diagonal``.

    Example:
        >>> import jax.numpy as jnp
        >>> diag_embed(jnp.asarray([1, 2]), offset=1)
        Array([[0, 1, 0],
               [0, 0, 2],
               [0, 0, 0]], dtype=int32)
    """
    matrices = embedded(x, offset, lengths)
    return jnp.moveaxis(matrices, (-2, -1), (axis1, axis2))


@diag_embed.gradient
def _diag_embed_gradient(d_out: Var, *, offset: int, axis1: int, axis2: int) -> Grads:
    return {"x": diagonal(d_out, offset=offset, axis1=axis1, axis2=axis2)}


# diag ------------------------------------------------------------------------------------------


def _diag_shape(x: Shape, *, k: int) -> Shape:
    if len(x) not in (1, 2):
        raise ShapeError(f"x must be a vector or a matrix, got shape {x}")
    return (diagonal_length(*x, k),) if len(x) == 2 else _embedded_lengths(x[0], k, None)


@op(
    rearranges=True,
    shape=_diag_shape,
    dtype=_diagonal_dtype,
    reference=np.diag,
    cases=[
        case(x=(3,)),
        case(x=(3, 4), order=2),
        case(x=(3, 4), k=1, order=2),
        case(x=(2,), k=-2, order=2),
        case(x=(0,)),
        case(x=integers(3, high=9)),
        workload(x=(1000,)),
        misuse("x must be a vector or a matrix, got shape (2, 3, 4)", x=(2, 3, 4)),
        misuse("x must be a vector or a matrix, got shape ()", x=()),
        misuse("the diagonal must lie in a matrix of less than 2^63 entries", x=(2,), k=2**40),
    ],
)
def diag(x: Array, *, k: int = 0) -> Array:
    """Builds a matrix with diagonal ``x``, or extracts the diagonal of the matrix ``x``.

    ``k`` is the offset of the diagonal: positive above the main diagonal, negative below. For
    batches see ``diag_embed`` and ``diagonal``.

    Example:
        >>> import jax.numpy as jnp
        >>> diag(jnp.asarray([1, 2]))
        Array([[1, 0],
               [0, 2]], dtype=int32)
    """
    x = jnp.asarray(x)
    result = diagonal_of(x, k) if x.ndim == 2 else embedded(x, k)
    return lax.convert_element_type(result, x.dtype)


@diag.gradient
def _diag_gradient(x: Var, d_out: Var, *, k: int) -> Grads:
    if x.ndim == 1:
        return {"x": diagonal(d_out, offset=k)}
    return {"x": diagonal_cotangent(d_out, x, k, -2, -1)}


# trace -----------------------------------------------------------------------------------------


def _trace_shape(x: Shape, *, offset: int, axis1: int, axis2: int) -> Shape:
    return _diagonal_shape(x, offset=offset, axis1=axis1, axis2=axis2)[:-1]


def _trace_dtype(x: VarType) -> DType:
    return total.infer((x,), total.defaults)[0].dtype


@op(
    shape=_trace_shape,
    dtype=_trace_dtype,
    reference=lambda x, *, offset, axis1, axis2: np.trace(x, offset, axis1, axis2),
    cases=[
        case(x=(3, 4)),
        case(x=(2, 4, 3), offset=-1, order=2),
        case(x=(3, 3), offset=-1, order=1),
        case(x=(3, 3), offset=1, order=1),
        case(x=(3, 2, 3), axis1=0, axis2=1, order=2),
        case(x=(2, 0, 3), offset=1),
        case(x=integers(3, 3, high=9)),
        workload(x=(64, 256, 256)),
        *_MATRIX_MISUSES,
    ],
)
def trace(x: Array, *, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Array:
    """Sums of the diagonals of matrices: ``out[...] = sum over i of x[..., i, i + offset]``.

    Axes and ``offset`` are as in ``diagonal``. Small integers and booleans are accumulated in the
    default integer dtype.

    Source: Python array API standard 2024.12, ``linalg.trace``.

    Example:
        >>> import jax.numpy as jnp
        >>> trace(jnp.asarray([[1.0, 2.0], [3.0, 4.0]]))
        Array(5., dtype=float32)
    """
    return jnp.sum(diagonal_of(x, offset, axis1, axis2), axis=-1)


@trace.gradient
def _trace_gradient(x: Var, d_out: Var, *, offset: int, axis1: int, axis2: int) -> Grads:
    # Each entry of the diagonal contributes once.
    shape = _diagonal_shape(x.shape, offset=offset, axis1=axis1, axis2=axis2)
    d_diagonal = broadcast_to(expand_dims(d_out, axis=-1), shape=shape)
    return {"x": diagonal_cotangent(d_diagonal, x, offset, axis1, axis2)}


# Triangles -------------------------------------------------------------------------------------


def _triangle_shape(x: Shape) -> Shape:
    matrix_axes(len(x), -2, -1)
    return x


_TRIANGLE_CASES = [
    case(x=(3, 4)),
    case(x=(2, 3, 3), k=1, order=2),
    case(x=(3, 2), k=-1, order=2),
    case(x=(2, 3), k=2**40, order=1),
    case(x=(2, 3), k=-(2**40), order=1),
    case(x=(0, 3)),
    case(x=integers(3, 3, high=9)),
    workload(x=(16, 256, 256)),
    misuse("x must have at least two axes, got 1", x=(3,)),
    misuse("attribute 'k' must be an int, got 0.5", x=(3, 3), k=0.5),
]


@op(shape=_triangle_shape, dtype=promote, reference=np.tril, cases=_TRIANGLE_CASES)
def tril(x: Array, *, k: int = 0) -> Array:
    """Lower triangles of matrices: ``out[..., i, j] = x[..., i, j]`` if ``j - i <= k``, else 0.

    Entries above the diagonal ``k`` may have any value, including infinities and NaNs.

    Source: Python array API standard 2024.12, ``tril``.

    Example:
        >>> import jax.numpy as jnp
        >>> tril(jnp.asarray([[1, 2], [3, 4]]))
        Array([[1, 0],
               [3, 4]], dtype=int32)
    """
    return banded(jnp.asarray(x), None, k)


@tril.gradient
def _tril_gradient(d_out: Var, *, k: int) -> Grads:
    return {"x": tril(d_out, k=k)}


@op(shape=_triangle_shape, dtype=promote, reference=np.triu, cases=_TRIANGLE_CASES)
def triu(x: Array, *, k: int = 0) -> Array:
    """Upper triangles of matrices: ``out[..., i, j] = x[..., i, j]`` if ``j - i >= k``, else 0.

    Entries below the diagonal ``k`` may have any value, including infinities and NaNs.

    Source: Python array API standard 2024.12, ``triu``.

    Example:
        >>> import jax.numpy as jnp
        >>> triu(jnp.asarray([[1, 2], [3, 4]]))
        Array([[1, 2],
               [0, 4]], dtype=int32)
    """
    return banded(jnp.asarray(x), -k, None)


@triu.gradient
def _triu_gradient(d_out: Var, *, k: int) -> Grads:
    return {"x": triu(d_out, k=k)}
