"""Linear algebra operators."""

import math
from typing import Any

import numpy as np

import symop as so
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.ops.values import at_least_1d
from symop.interop.mxnet.partial_shapes import numbered, require_table, same

_SYMMETRIC = "of A counts the symmetric part, not one triangle"


def _names(op: str) -> tuple[str, str]:
    return f"_linalg_{op}", f"linalg_{op}"


def _rows_second(matrices: Any, axis: int) -> Any:
    """``matrices`` with the row axis moved to the last but one."""
    return matrices if axis == -2 else so.swapaxes(matrices, axis1=axis, axis2=-2)


@operator(*_names("gemm"))
def gemm(
    A: Any,
    B: Any,
    C: Any,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: float = 1.0,
    beta: float = 1.0,
    axis: int = -2,
) -> Any:
    """``alpha * op(A) @ op(B) + beta * C``."""
    a, b, c = (_rows_second(one, axis) for one in (A, B, C))
    made = so.gemm(
        a, b, c, transpose_a=transpose_a, transpose_b=transpose_b, alpha=alpha, beta=beta
    )
    return _rows_second(made, axis)


@operator(*_names("gemm2"))
def gemm2(
    A: Any,
    B: Any,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: float = 1.0,
    axis: int = -2,
) -> Any:
    """``alpha * op(A) @ op(B)``."""
    a, b = _rows_second(A, axis), _rows_second(B, axis)
    made = so.gemm2(a, b, transpose_a=transpose_a, transpose_b=transpose_b, alpha=alpha)
    return _rows_second(made, axis)


@operator(*_names("potrf"), shapes=same, note=_SYMMETRIC)
def potrf(A: Any, *, lower: bool = True) -> Any:
    """Cholesky factor."""
    return so.cholesky(A, upper=not lower)


@operator(*_names("potri"), shapes=same)
def potri(A: Any, *, lower: bool = True) -> Any:
    """Inverse of the matrix whose Cholesky factor is ``A``."""
    return so.potri(A, lower=lower)


@operator(*_names("trmm"))
def trmm(
    A: Any,
    B: Any,
    *,
    transpose: bool = False,
    rightside: bool = False,
    lower: bool = True,
    alpha: float = 1.0,
) -> Any:
    """Multiplies by a triangular matrix."""
    return so.trmm(A, B, transpose=transpose, rightside=rightside, lower=lower, alpha=alpha)


@operator(*_names("trsm"))
def trsm(
    A: Any,
    B: Any,
    *,
    transpose: bool = False,
    rightside: bool = False,
    lower: bool = True,
    alpha: float = 1.0,
) -> Any:
    """Solves a triangular system."""
    return so.triangular_solve(
        A, B, transpose=transpose, rightside=rightside, lower=lower, alpha=alpha
    )


@operator(*_names("syrk"))
def syrk(A: Any, *, transpose: bool = False, alpha: float = 1.0) -> Any:
    """A matrix times its own transpose."""
    return so.syrk(A, transpose=transpose, alpha=alpha)


@operator(*_names("sumlogdiag"))
def sumlogdiag(A: Any) -> Any:
    """Sum of the logarithms on the diagonal."""
    return at_least_1d(so.sumlogdiag(A))


@operator(*_names("det"), outputs=lambda: ("output0", "output1", "output2"), visible=lambda: 1)
def det(A: Any) -> Any:
    """Determinant."""
    return at_least_1d(so.det(A))


@operator(
    *_names("slogdet"),
    outputs=lambda: ("output0", "output1", "output2", "output3"),
    visible=lambda: 2,
)
def slogdet(A: Any) -> Any:
    """Sign and logarithm of the determinant."""
    sign, logarithm = so.slogdet(A)
    return at_least_1d(sign), at_least_1d(logarithm)


@operator(*_names("inverse"), shapes=same)
def inverse(A: Any) -> Any:
    """Inverse matrix."""
    return so.inv(A)


@operator(*_names("gelqf"), outputs=lambda: ("output0", "output1"))
def gelqf(A: Any) -> Any:
    """``A = L @ Q``, where the rows of ``Q`` are orthonormal: first ``Q``, then ``L``."""
    if A.shape[-2] > A.shape[-1]:
        raise MXNetError(f"_linalg_gelqf: A must have no more rows than columns, got {A.shape}")
    q, lower = so.lq(A)
    return q, lower


@operator(*_names("syevd"), outputs=lambda: ("output0", "output1"), note=_SYMMETRIC)
def syevd(A: Any) -> Any:
    """Eigenvectors as rows, the largest entry of each positive, and eigenvalues."""
    values, vectors = so.eigh(A)
    rows = so.swapaxes(vectors, axis1=-1, axis2=-2)
    largest = so.argmax(so.abs(so.stop_gradient(rows)), axis=-1)
    signs = so.sign(so.stop_gradient(so.pick(rows, largest, keepdims=True)))
    return rows * signs, values


@operator(*_names("extractdiag"))
def extractdiag(A: Any, *, offset: int = 0) -> Any:
    """Diagonals of matrices."""
    return so.diagonal(A, offset=offset)


@operator(*_names("makediag"))
def makediag(A: Any, *, offset: int = 0) -> Any:
    """Matrices with ``A`` on a diagonal."""
    return so.diag_embed(A, offset=offset)


def _triangle(rows: int, offset: int, lower: bool) -> np.ndarray:
    """Flat indices of the entries of a triangle, in the order of the lower triangle."""
    short = rows - abs(offset)
    row, column = np.tril_indices(short)
    row = row + abs(offset)
    upper = offset > 0 or (offset == 0 and not lower)
    return (column * rows + row if upper else row * rows + column).astype("int32")


@operator(*_names("extracttrian"))
def extracttrian(A: Any, *, offset: int = 0, lower: bool = True) -> Any:
    """The entries of a triangle of each matrix."""
    rows = A.shape[-1]
    if abs(offset) >= rows:
        raise MXNetError(f"_linalg_extracttrian: offset must lie within {A.shape}, got {offset}")
    require_table(rows, rows)
    flat = so.reshape(A, shape=(*A.shape[:-2], rows * rows))
    return so.take(flat, _triangle(rows, offset, lower), axis=-1)


@operator(*_names("maketrian"))
def maketrian(A: Any, *, offset: int = 0, lower: bool = True) -> Any:
    """Matrices with the entries of ``A`` as a triangle."""
    count = A.shape[-1]
    short = (math.isqrt(8 * count + 1) - 1) // 2
    if short * (short + 1) // 2 != count:
        raise MXNetError(f"_linalg_maketrian: the entries must fill a triangle, got {A.shape}")
    rows = short + abs(offset)
    require_table(rows, rows)
    sources = np.full(rows * rows, count, "int32")  # out of range for A: zero
    sources[_triangle(rows, offset, lower)] = numbered(count)
    flat = so.take(A, sources, axis=-1, fill_value=0.0)
    return so.reshape(flat, shape=(*A.shape[:-1], rows, rows))
