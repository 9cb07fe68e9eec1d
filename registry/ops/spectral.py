"""Eigenvalues, singular values and the pseudoinverse."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from registry.cases import case, definite, invertible, misuse, workload
from registry.operator import Grads
from registry.ops.masks import diagonal_matrix, fill_diagonal
from registry.ops.matrices import cast_back, refuse_flat, refuse_oblong, symmetric, widened
from registry.ops.shape import expand_dims, swapped
from registry.shapes import at_least_single, strong_real_inexact
from registry.signature import Array
from registry.table import op
from registry.types import Shape
from registry.var import Var


def _rows(numbers: Var) -> Any:
    """One number for each row of a matrix."""
    return expand_dims(numbers, axis=-1)


def _columns(numbers: Var) -> Any:
    """One number for each column of a matrix."""
    return expand_dims(numbers, axis=-2)


def _reciprocal_gaps(gaps: Var) -> Any:
    """``1 / gaps`` beside the diagonal, zeros on it."""
    return 1.0 / fill_diagonal(gaps, value=math.inf)


_REFUSED = [
    misuse("the inputs must be floating, got int", x=np.eye(2, dtype=int)),
    misuse("the inputs must be real, got complex64", x=np.eye(2, dtype=np.complex64)),
    misuse("x must be a matrix or a stack of them, got shape (3,)", x=(3,)),
]

# eigh ------------------------------------------------------------------------------------------


def _eigh_shape(x: Shape) -> tuple[Shape, Shape]:
    refuse_oblong(x=x)
    return x[:-1], x


def _eigh_reference(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values, vectors = np.linalg.eigh((x + x.swapaxes(-1, -2)) / 2)
    return values, vectors


_EIGH_CASES = [
    case(x=definite(3, 3), order=2, rtol=512),
    case(x=definite(2, 2, 2), order=1, rtol=512),
    case(x=definite(1, 1)),
    case(x=definite(0, 2, 2), order=1),
    workload(x=definite(256, 256)),
    *_REFUSED,
    misuse("x must have as many rows as columns, got shape (3, 2)", x=(3, 2)),
]


@op(
    shape=_eigh_shape,
    dtype=strong_real_inexact,
    reference=_eigh_reference,
    outputs=("eigenvalues", "eigenvectors"),
    cases=_EIGH_CASES,
)
def eigh(x: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors: ``x @ vectors = vectors * values``, for symmetric ``x``.

    The eigenvalues ascend; the columns of ``vectors`` are orthonormal, with LAPACK's signs. What is
    decomposed is the symmetric part ``(x + x^T) / 2``, so the gradient is symmetric. The gradient
    by the vectors needs distinct eigenvalues; where only the values are used it is finite with
    repeated ones, too. Half precision is computed in single.

    Source: Giles, Collected matrix derivative results, 2008, for the gradient.

    Example:
        >>> import jax.numpy as jnp
        >>> values, vectors = eigh(jnp.asarray([[3.0, 0.0], [0.0, 1.0]]))
        >>> values
        Array([1., 3.], dtype=float32)
    """
    values, vectors = jnp.linalg.eigh(widened(x)[0], symmetrize_input=True)
    return cast_back(values, x), cast_back(vectors, x)


def _eigh_gradient(
    eigenvalues: Var,
    eigenvectors: Var,
    d_eigenvalues: Var,
    d_eigenvectors: Var | None,
) -> Grads:
    # With S = V^T dX V: dw = diag S and dV = V (F S), where F_ij = 1 / (w_j - w_i) off the
    # diagonal and F S is taken entry by entry. So X's cotangent is V (diag(dw) + F (V^T dV)) V^T,
    # of which the symmetric part.
    v = eigenvectors
    if d_eigenvectors is None:
        return {"x": (v * _columns(d_eigenvalues)) @ swapped(v)}
    gaps = _columns(eigenvalues) - _rows(eigenvalues)
    mixing = _reciprocal_gaps(gaps) * (swapped(v) @ d_eigenvectors)
    inner = mixing + diagonal_matrix(d_eigenvalues)
    return {"x": symmetric(v @ inner @ swapped(v))}


eigh.gradient(_eigh_gradient)


@op(
    shape=_eigh_shape,
    dtype=strong_real_inexact,
    reference=_eigh_reference,
    outputs=("eigenvalues", "eigenvectors"),
    hidden=("eigenvectors",),
    cases=_EIGH_CASES,
)
def eigvalsh(x: Array) -> tuple[Array, Array]:
    """Eigenvalues of a symmetric matrix, in ascending order.

    They are those of the symmetric part ``(x + x^T) / 2``. The gradient is finite with repeated
    eigenvalues, second and higher derivatives need distinct ones. Half precision is computed in
    single.

    Example:
        >>> import jax.numpy as jnp
        >>> eigvalsh(jnp.asarray([[3.0, 0.0], [0.0, 1.0]]))
        Array([1., 3.], dtype=float32)
    """
    values, vectors = jnp.linalg.eigh(widened(x)[0], symmetrize_input=True)
    return cast_back(values, x), cast_back(vectors, x)


eigvalsh.gradient(_eigh_gradient)

# svd -------------------------------------------------------------------------------------------


def _svd_shape(x: Shape) -> tuple[Shape, Shape, Shape]:
    refuse_flat(x=x)
    *batch, rows, columns = x
    inner = min(rows, columns)
    return (*batch, rows, inner), (*batch, inner), (*batch, inner, columns)


def _svd_reference(x: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(np.linalg.svd(x, full_matrices=False))


@op(
    shape=_svd_shape,
    dtype=strong_real_inexact,
    reference=_svd_reference,
    outputs=("u", "s", "vh"),
    cases=[
        case(x=invertible(3, 3), order=2, rtol=512),
        case(x=(4, 2), order=1, rtol=512),
        case(x=(2, 2, 3), order=1, rtol=512),
        case(x=(0, 3, 2), order=1),
        case(x=(3, 0), order=1),
        workload(x=invertible(256, 256)),
        *_REFUSED,
    ],
)
def svd(x: Array) -> tuple[Array, Array, Array]:
    """Singular value decomposition ``x = (u * s) @ vh``, the reduced one.

    Of ``x`` of shape ``(..., m, n)`` with ``k = min(m, n)`` the matrix ``u`` has shape
    ``(..., m, k)`` and orthonormal columns, ``vh`` has ``(..., k, n)`` and orthonormal rows. The
    singular values ``s`` of shape ``(..., k)`` descend; signs are LAPACK's. The gradient by ``u``
    or ``vh`` needs distinct singular values, and positive ones where ``x`` is not square; where
    only ``s`` is used it is finite with repeated and zero ones, too. Half precision is computed in
    single.

    Source: Giles, Collected matrix derivative results, 2008, for the gradient.

    Example:
        >>> import jax.numpy as jnp
        >>> u, s, vh = svd(jnp.asarray([[0.0, 2.0], [3.0, 0.0]]))
        >>> s
        Array([3., 2.], dtype=float32)
    """
    u, s, vh = jnp.linalg.svd(widened(x)[0], full_matrices=False)
    return cast_back(u, x), cast_back(s, x), cast_back(vh, x)


@svd.gradient
def _svd_gradient(u: Var, s: Var, vh: Var, d_u: Var | None, d_s: Var, d_vh: Var | None) -> Grads:
    # With P = U^T dX V: ds = diag P and, with F_ij = 1 / (s_j^2 - s_i^2) off the diagonal,
    # dU = U (F (P S + S P^T)) + (1 - U U^T) dX V S^-1,
    # dV = V (F (S P + P^T S)) + (1 - V V^T) dX^T U S^-1.
    # F is antisymmetric, so the adjoint of the first terms is U (E_u S + S E_v) V^T, where
    # E_u = K + K^T with K = F (U^T dU), and E_v likewise with V^T dV.
    if d_u is None and d_vh is None:
        return {"x": (u * _columns(d_s)) @ vh}
    rows, columns = u.shape[-2], vh.shape[-1]
    gaps = (_columns(s) + _rows(s)) * (_columns(s) - _rows(s))
    factors = _reciprocal_gaps(gaps)
    inner = diagonal_matrix(d_s)
    if d_u is not None:
        inner = inner + _twice_symmetric(factors * (swapped(u) @ d_u)) * _columns(s)
    if d_vh is not None:
        inner = inner + _twice_symmetric(factors * (vh @ swapped(d_vh))) * _rows(s)
    left = u @ inner
    if d_u is not None and rows > columns:
        left = left + (d_u - u @ (swapped(u) @ d_u)) / _columns(s)
    d_x = left @ vh
    if d_vh is not None and columns > rows:
        d_x = d_x + u @ ((d_vh - (d_vh @ swapped(vh)) @ vh) / _rows(s))
    return {"x": d_x}


def _twice_symmetric(x: Var) -> Any:
    return x + swapped(x)


def _svdvals_shape(x: Shape) -> Shape:
    return _svd_shape(x)[1]


@op(
    shape=_svdvals_shape,
    dtype=strong_real_inexact,
    reference=lambda x: np.linalg.svd(x, compute_uv=False),
    cases=[
        case(x=invertible(3, 3), order=2, rtol=512),
        case(x=(2, 2, 3), order=1, rtol=512),
        case(x=(0, 3, 2), order=1),
        workload(x=invertible(256, 256)),
        *_REFUSED,
    ],
)
def svdvals(x: Array) -> Array:
    """Singular values of a matrix, in descending order.

    The gradient is finite with repeated and zero singular values, second and higher derivatives
    need distinct ones. Half precision is computed in single.

    Example:
        >>> import jax.numpy as jnp
        >>> svdvals(jnp.asarray([[0.0, 2.0], [3.0, 0.0]]))
        Array([3., 2.], dtype=float32)
    """
    return cast_back(jnp.linalg.svd(widened(x)[0], compute_uv=False), x)


@svdvals.gradient
def _svdvals_gradient(x: Var, d_out: Var) -> Grads:
    # d s = diag(U^T dX V)
    u, _, vh = svd(x)
    return {"x": (u * _columns(d_out)) @ vh}


# pinv ------------------------------------------------------------------------------------------


def _pinv_shape(x: Shape) -> Shape:
    refuse_flat(x=x)
    return (*x[:-2], x[-1], x[-2])


def _pinv_reference(x: np.ndarray, *, rcond: float | None) -> np.ndarray:
    usual = 10 * max(x.shape[-2:]) * np.finfo(at_least_single(x.dtype)).eps
    return np.asarray(np.linalg.pinv(x, usual if rcond is None else rcond))


@op(
    shape=_pinv_shape,
    dtype=strong_real_inexact,
    reference=_pinv_reference,
    aliases=["pseudo_inverse", "pinverse"],
    cases=[
        case(x=(3, 2), order=2, rtol=2048),
        case(x=(2, 2, 3), order=1, rtol=2048),
        case(x=invertible(2, 2), rcond=0.25, order=2, rtol=512),
        case(x=(3, 0), order=1),
        workload(x=(256, 256)),
        *_REFUSED,
    ],
)
def pinv(x: Array, *, rcond: float | None = None) -> Array:
    """Moore-Penrose pseudoinverse: the matrix of least norm that solves ``x @ out @ x = x``.

    Singular values up to ``rcond`` times the largest one count as zero; without ``rcond`` up to
    ``10 max(m, n)`` times the spacing of the dtype at one. The derivative is that among matrices
    of one rank, and takes what counts as zero for zero. Half precision is computed in single.

    Source: Golub and Pereyra, The differentiation of pseudo-inverses and nonlinear least squares
    problems whose variables separate, 1973.

    Example:
        >>> import jax.numpy as jnp
        >>> pinv(jnp.asarray([[2.0, 0.0], [0.0, 0.0]]))
        Array([[0.5, 0. ],
               [0. , 0. ]], dtype=float32)
    """
    return cast_back(jnp.linalg.pinv(widened(x)[0], rtol=rcond), x)


@pinv.gradient
def _pinv_gradient(x: Var, out: Var, d_out: Var) -> Grads:
    if x.shape[-2] >= x.shape[-1]:
        return {"x": _pinv_cotangent(x, out, swapped(d_out))}
    # The pseudoinverse of the transpose is the transpose.
    return {"x": swapped(_pinv_cotangent(swapped(x), swapped(out), d_out))}


def _pinv_cotangent(a: Var, p: Var, d: Var) -> Any:
    """The cotangent of ``a``, where ``p`` is its pseudoinverse and ``d`` the transposed cotangent.

    It computes no product of more rows and columns than ``a`` has.
    """
    # dP = -P dA P + P P^T dA^T (1 - A P) + (1 - P A) dA^T P^T P. With D the transpose of P's
    # cotangent the adjoint is -P^T D^T P^T + (1 - A P) D P P^T + P^T P D (1 - P A).
    inner = p @ d
    outer = d @ (p @ swapped(p))
    last = inner - swapped(inner) - inner @ (p @ a)
    return outer - a @ (p @ outer) + swapped(p) @ last
