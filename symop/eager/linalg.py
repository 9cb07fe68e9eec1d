"""``so.nd.linalg``: the linear algebra extension of the array API, built from operators."""

from typing import Any

import jax.numpy as jnp

from registry.errors import ArgumentError
from registry.table import get
from registry.types import as_dtype
from symop.eager.array_api import Axis, Eigen, Factors, SignAndLog, Singular, matrix_transpose
from symop.eager.array_calls import array_function
from symop.eager.ndarray import NDArray

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
    """Returns the eigenvalues, in ascending order, and eigenvectors of symmetric matrices."""
    return Eigen(*get("eigh")(x))


def qr(x: NDArray, /, *, mode: str = "reduced") -> Factors:
    """Returns the decomposition ``x = Q R``: ``Q`` has orthonormal columns, ``R`` is triangular."""
    return Factors(*get("qr")(x, **({} if mode == "reduced" else {"mode": mode})))


def slogdet(x: NDArray, /) -> SignAndLog:
    """Returns the sign of the determinant, and the logarithm of its magnitude."""
    return SignAndLog(*get("slogdet")(x))


def svd(x: NDArray, /, *, full_matrices: bool = True) -> Singular:
    """Returns the singular value decomposition ``x = U diag(S) Vh``."""
    square = x.shape[-1] == x.shape[-2]
    options = {"full_matrices": True} if full_matrices and not square else {}
    return Singular(*get("svd")(x, **options))


def pinv(x: NDArray, /, *, rtol: Any = None) -> NDArray:
    """Returns the pseudoinverse; singular values up to ``rtol`` times the largest count as zero.

    If ``rtol`` is an array, with a number for each matrix, the gradient is that of ``svd``.
    """
    if rtol is None or isinstance(rtol, (int, float)):
        result: NDArray = get("pinv")(x, rcond=None if rtol is None else float(rtol))
        return result
    u, values, vh = svd(x, full_matrices=False)
    limits = NDArray(rtol).astype(values.dtype)
    counted = values > limits[..., None] * values.max(axis=-1, keepdims=True)
    inverses = get("where")(counted, 1 / get("where")(counted, values, 1.0), 0.0)
    product: NDArray = _adjoint(vh) @ (inverses[..., None].astype(x.dtype) * _adjoint(u))
    return product


def _adjoint(x: NDArray) -> NDArray:
    result: NDArray = get("conj")(x).mT
    return result


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """Returns the sum of the ``offset``-th diagonal of the last two axes."""
    if dtype is None:
        return array_function(get("trace"))(x, offset=offset)
    cast, known = array_function(get("cast")), as_dtype(dtype)
    return cast(array_function(get("trace"))(cast(x, dtype=known), offset=offset), dtype=known)


def matrix_rank(x: NDArray, /, *, rtol: Any = None) -> NDArray:
    """Returns the number of singular values that exceed ``rtol`` times the largest."""
    return NDArray(jnp.linalg.matrix_rank(x.value, rtol=rtol))


def matrix_norm(x: NDArray, /, *, keepdims: bool = False, ord: Any = "fro") -> NDArray:
    """Returns a norm of matrices: ``"fro"``, ``"nuc"``, 1, 2, inf, -1, -2 or -inf."""
    if ord == "fro":
        result: NDArray = get("norm")(x, axis=(-2, -1), keepdims=keepdims)
        return result
    if ord not in _NORMS:
        raise ArgumentError(
            f"matrix_norm: ord must be one of {', '.join(map(repr, ('fro', *_NORMS)))}, got {ord!r}"
        )
    which, along = _NORMS[ord]
    sizes = svdvals(x) if along is None else get("sum")(get("abs")(x), axis=along)
    empty = which == "max" and sizes.shape[-1] == 0  # the norm of an empty matrix is zero
    norms: NDArray = get("sum" if empty else which)(sizes, axis=-1)
    return norms[..., None, None] if keepdims else norms


_NORMS: dict[Any, tuple[str, int | None]] = {
    "nuc": ("sum", None), 2: ("max", None), -2: ("min", None), 1: ("max", -2), -1: ("min", -2),
    float("inf"): ("max", -1), -float("inf"): ("min", -1),
}  # fmt: skip
"""The reduction of each norm: of singular values, or of sums of magnitudes along an axis."""


def vector_norm(
    x: NDArray, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2.0
) -> NDArray:
    """Returns the norm of order ``ord`` over ``axis``."""
    result: NDArray = get("norm")(x, axis=axis, keepdims=keepdims, ord=float(ord))
    return result
