"""``so.nd.linalg``: the linear algebra extension of the array API, made of operators."""

from typing import Any

import jax.numpy as jnp

from registry.table import get
from registry.types import as_dtype
from symop.array_api import Axis, Eigen, Factors, SignAndLog, Singular, matrix_transpose
from symop.array_calls import array_function
from symop.ndarray import NDArray

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve",
    "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip

cholesky = array_function(get("cholesky"))
cross = array_function(get("cross"))
det = array_function(get("det"))
diagonal = array_function(get("diagonal"))
eigvalsh = array_function(get("eigvalsh"))
inv = array_function(get("inv"))
matmul = array_function(get("matmul"))
matrix_power = array_function(get("matrix_power"))
outer = array_function(get("outer"))
solve = array_function(get("solve"))
svdvals = array_function(get("svdvals"))
tensordot = array_function(get("tensordot"))
vecdot = array_function(get("vecdot"))


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
    given = x if dtype is None else array_function(get("cast"))(x, dtype=as_dtype(dtype))
    return array_function(get("trace"))(given, offset=offset)


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
