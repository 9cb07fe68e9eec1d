"""``so.nd.linalg``: the linear algebra extension of the array API, made of operators."""

from typing import Any

import jax.numpy as jnp

from registry.table import get
from registry.types import as_dtype
from symop.array_api import Axis, Eigen, Factors, SignAndLog, Singular, matrix_transpose
from symop.array_calls import ArrayOperator
from symop.ndarray import NDArray

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve",
    "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip

cholesky = ArrayOperator(get("cholesky"))
cross = ArrayOperator(get("cross"))
det = ArrayOperator(get("det"))
diagonal = ArrayOperator(get("diagonal"))
eigvalsh = ArrayOperator(get("eigvalsh"))
inv = ArrayOperator(get("inv"))
matmul = ArrayOperator(get("matmul"))
matrix_power = ArrayOperator(get("matrix_power"))
outer = ArrayOperator(get("outer"))
solve = ArrayOperator(get("solve"))
svdvals = ArrayOperator(get("svdvals"))
tensordot = ArrayOperator(get("tensordot"))
vecdot = ArrayOperator(get("vecdot"))


def eigh(x: NDArray, /) -> Eigen:
    """Eigenvalues, ascending, and eigenvectors of symmetric matrices."""
    return Eigen(*get("eigh")(x))


def qr(x: NDArray, /, *, mode: str = "reduced") -> Factors:
    """``Q`` with orthonormal columns and triangular ``R`` whose product is ``x``."""
    return Factors(*get("qr")(x, **({} if mode == "reduced" else {"mode": mode})))


def slogdet(x: NDArray, /) -> SignAndLog:
    """Sign of the determinant, and logarithm of its magnitude."""
    return SignAndLog(*get("slogdet")(x))


def svd(x: NDArray, /, *, full_matrices: bool = True) -> Singular:
    """``U``, singular values and ``Vh`` whose product is ``x``."""
    square = x.shape[-1] == x.shape[-2]
    options = {"full_matrices": True} if full_matrices and not square else {}
    return Singular(*get("svd")(x, **options))


def pinv(x: NDArray, /, *, rtol: Any = None) -> NDArray:
    """The pseudoinverse; singular values below ``rtol`` times the largest count as zero."""
    found: NDArray = get("pinv")(x, rcond=rtol)
    return found


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sum of the diagonal that lies ``offset`` above the main one, of the last two axes."""
    if dtype is None:
        return ArrayOperator(get("trace"))(x, offset=offset)
    cast, known = ArrayOperator(get("cast")), as_dtype(dtype)
    return cast(ArrayOperator(get("trace"))(cast(x, dtype=known), offset=offset), dtype=known)


def matrix_rank(x: NDArray, /, *, rtol: Any = None) -> NDArray:
    """How many singular values exceed ``rtol`` times the largest."""
    return NDArray(jnp.linalg.matrix_rank(x.value, rtol=rtol))


def matrix_norm(x: NDArray, /, *, keepdims: bool = False, ord: Any = "fro") -> NDArray:
    """A norm of matrices: ``"fro"``, ``"nuc"``, 1, 2, inf or a negative of these."""
    if ord == "fro":
        found: NDArray = get("norm")(x, axis=(-2, -1), keepdims=keepdims)
        return found
    return NDArray(jnp.linalg.matrix_norm(x.value, keepdims=keepdims, ord=ord))


def vector_norm(
    x: NDArray, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2.0
) -> NDArray:
    """The norm of order ``ord`` over ``axis``."""
    found: NDArray = get("norm")(x, axis=axis, keepdims=keepdims, ord=float(ord))
    return found
