"""Eigenvalues, singular values and the pseudoinverse."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from registry.cases import case, definite, invertible, misuse, workload
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.complex_parts import conj, part_dtype
from registry.ops.core.elementwise import zeros_like
from registry.ops.core.matrices import (
    HERMITIAN,
    adjoint,
    adjoint_kernel,
    cast_back,
    completed,
    hermitian,
    hermitian_reference,
    real_back,
    refuse_flat,
    refuse_oblong,
    widened,
)
from registry.ops.core.reshaping import expand_dims, swapped
from registry.ops.linalg.decompositions import reduced
from registry.ops.shape.masks import band_part, diagonal_matrix, fill_diagonal
from registry.shapes import at_least_single, strong_inexact
from registry.table import op
from registry.types import DType, Shape, VarType, is_complex
from registry.var import Var


def _rows(numbers: Var) -> Any:
    """One number for each row of a matrix, shaped to multiply it."""
    return expand_dims(numbers, axis=-1)


def _columns(numbers: Var) -> Any:
    """One number for each column of a matrix, shaped to multiply it."""
    return expand_dims(numbers, axis=-2)


def _reciprocal_gaps(gaps: Var) -> Any:
    """``1 / gaps`` off the diagonal, zeros on it."""
    return 1.0 / fill_diagonal(gaps, value=math.inf)


_REFUSED = [
    misuse("the inputs must be floating, got int", x=np.eye(2, dtype=int)),
    misuse("x must be a matrix or a stack of them, got shape (3,)", x=(3,)),
]

# eigh ------------------------------------------------------------------------------------------


def _eigh_shape(x: Shape) -> tuple[Shape, Shape]:
    refuse_oblong(x=x)
    return x[:-1], x


def _eigh_dtype(x: VarType) -> list[DType]:
    return [part_dtype(x)[0], strong_inexact(x)]


def _eigh_reference(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values, vectors = np.linalg.eigh(hermitian_reference(x))
    return values, vectors


_EIGH_CASES = [
    case(x=definite(3, 3), order=2, rtol=512),
    case(x=definite(2, 2, 2), order=1, rtol=512),
    case(x=definite(1, 1)),
    case(x=definite(0, 2, 2), order=1),
    case(x=HERMITIAN, order=2, rtol=512),
    workload(x=definite(256, 256)),
    *_REFUSED,
    misuse("x must have as many rows as columns, got shape (3, 2)", x=(3, 2)),
]


@op(
    shape=_eigh_shape,
    dtype=_eigh_dtype,
    reference=_eigh_reference,
    outputs=("eigenvalues", "eigenvectors"),
    cases=_EIGH_CASES,
    costly=True,
)
def eigh(x: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of Hermitian matrices: ``x @ vectors = vectors * values``.

    The eigenvalues are real and ascending; the columns of ``vectors`` are orthonormal, with
    LAPACK's signs or phases. The Hermitian part ``(x + x^H) / 2`` is decomposed, so the gradient of
    a real matrix is symmetric, and that of a complex matrix is the conjugate of a Hermitian matrix,
    as is JAX's convention. The gradient through the vectors requires distinct eigenvalues; the
    gradient through the values alone is finite with repeated ones, too. Half precision is computed
    in single precision.

    The phases of complex vectors are arbitrary. Their derivative is chosen such that no vector
    moves along itself, ``v^H dv = 0``, which is correct for every function that does not depend on
    the phases.

    Source: Giles, Collected matrix derivative results, 2008, for the gradient.

    Example:
        >>> import jax.numpy as jnp
        >>> values, vectors = eigh(jnp.asarray([[3.0, 0.0], [0.0, 1.0]]))
        >>> values
        Array([1., 3.], dtype=float32)
    """
    values, vectors = jnp.linalg.eigh(widened(x)[0], symmetrize_input=True)
    return real_back(values, x), cast_back(vectors, x)


def _eigh_gradient(
    eigenvalues: Var,
    eigenvectors: Var,
    d_eigenvalues: Var,
    d_eigenvectors: Var | None,
) -> Grads:
    # With S = V^H dX V: dw = diag S and dV = V (F S), where F_ij = 1 / (w_j - w_i) off the diagonal
    # and F S is the element-wise product. So X's gradient is V (diag(dw) + F (V^H dV)) V^H, of
    # which the Hermitian part is taken. Adjoints apply to the conjugates of cotangents.
    v = eigenvectors
    if d_eigenvectors is None:
        return {"x": conj((v * _columns(d_eigenvalues)) @ adjoint(v))}
    gaps = _columns(eigenvalues) - _rows(eigenvalues)
    mixing = _reciprocal_gaps(gaps) * (adjoint(v) @ conj(d_eigenvectors))
    inner = mixing + diagonal_matrix(d_eigenvalues)
    return {"x": conj(hermitian(v @ inner @ adjoint(v)))}


eigh.gradient(_eigh_gradient)


@op(
    shape=_eigh_shape,
    dtype=_eigh_dtype,
    reference=_eigh_reference,
    outputs=("eigenvalues", "eigenvectors"),
    hidden=("eigenvectors",),
    cases=_EIGH_CASES,
    costly=True,
)
def eigvalsh(x: Array) -> tuple[Array, Array]:
    """Eigenvalues of a Hermitian matrix, real and in ascending order.

    They are those of the Hermitian part ``(x + x^H) / 2``. The gradient is finite with repeated
    eigenvalues; second and higher derivatives require distinct ones. Half precision is computed in
    single precision.

    Example:
        >>> import jax.numpy as jnp
        >>> eigvalsh(jnp.asarray([[3.0, 0.0], [0.0, 1.0]]))
        Array([1., 3.], dtype=float32)
    """
    values, vectors = jnp.linalg.eigh(widened(x)[0], symmetrize_input=True)
    return real_back(values, x), cast_back(vectors, x)


eigvalsh.gradient(_eigh_gradient)

# svd -------------------------------------------------------------------------------------------


def _svd_shape(x: Shape, *, full_matrices: bool) -> tuple[Shape, Shape, Shape]:
    refuse_flat(x=x)
    *batch, rows, columns = x
    inner = min(rows, columns)
    left, right = (rows, columns) if full_matrices else (inner, inner)
    return (*batch, rows, left), (*batch, inner), (*batch, right, columns)


def _svd_dtype(x: VarType) -> list[DType]:
    return [strong_inexact(x), part_dtype(x)[0], strong_inexact(x)]


def _svd_reference(x: np.ndarray, *, full_matrices: bool) -> tuple[np.ndarray, ...]:
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    if full_matrices:
        u, vh = _completed_reference(u), _completed_reference(vh.swapaxes(-1, -2).conj())
        vh = vh.swapaxes(-1, -2).conj()
    return u, s, vh


def _completed_reference(q: np.ndarray) -> np.ndarray:
    others = np.linalg.qr(q, "complete")[0][..., q.shape[-1] :]
    return np.concatenate([q, others], axis=-1)


@op(
    shape=_svd_shape,
    dtype=_svd_dtype,
    reference=_svd_reference,
    outputs=("u", "s", "vh"),
    cases=[
        case(x=invertible(3, 3), order=2, rtol=512),
        case(x=(4, 2), order=1, rtol=512),
        case(x=(2, 2, 3), order=1, rtol=512),
        case(x=(0, 3, 2), order=1),
        case(x=(3, 0), order=1),
        case(x=invertible(2, 2), full_matrices=True, order=2, rtol=512),
        # Finite differences would depend on the basis that LAPACK chooses for the other columns.
        case(x=(4, 2), full_matrices=True, order=0, rtol=512),
        case(x=(2, 1, 3), full_matrices=True, order=0, rtol=512),
        case(x=invertible(2, 2), rtol=512),
        workload(x=invertible(256, 256)),
        *_REFUSED,
    ],
    costly=True,
)
def svd(x: Array, *, full_matrices: bool = False) -> tuple[Array, Array, Array]:
    """Singular value decomposition ``x = (u * s) @ vh``, reduced by default.

    For ``x`` of shape ``(..., m, n)`` with ``k = min(m, n)``, ``u`` has shape ``(..., m, k)`` and
    orthonormal columns, and ``vh`` has shape ``(..., k, n)`` and orthonormal rows; with
    ``full_matrices`` both are square. The singular values ``s`` of shape ``(..., k)`` are real and
    descending; signs and phases are LAPACK's. Half precision is computed in single precision.

    The gradient through ``u`` or ``vh`` requires distinct singular values, and nonzero ones if
    ``x`` is not square or is complex; the gradient through ``s`` alone is finite with repeated and
    zero ones, too. The phases of a complex pair of vectors are arbitrary; in their derivative no
    column of ``v`` moves along itself, as in JAX. The vectors that ``full_matrices`` adds are an
    arbitrary orthonormal basis: their derivative is the smallest that keeps them orthogonal to the
    others. The gradient is correct for every function that depends on neither choice.

    Source: Giles, Collected matrix derivative results, 2008, for the gradient.

    Example:
        >>> import jax.numpy as jnp
        >>> u, s, vh = svd(jnp.asarray([[0.0, 2.0], [3.0, 0.0]]))
        >>> s
        Array([3., 2.], dtype=float32)
    """
    u, s, vh = jnp.linalg.svd(widened(x)[0], full_matrices=False)
    if full_matrices:
        rows, columns = x.shape[-2:]
        u = completed(u) if rows > columns else u
        vh = adjoint_kernel(completed(adjoint_kernel(vh))) if columns > rows else vh
    return cast_back(u, x), real_back(s, x), cast_back(vh, x)


@svd.gradient
def _svd_gradient(u: Var, s: Var, vh: Var, d_u: Var | None, d_s: Var, d_vh: Var | None) -> Grads:
    # With P = U^H dX V: ds = Re diag P and, with F_ij = 1 / (s_j^2 - s_i^2) off the diagonal,
    # dU = U (F (P S + S P^H) + i Im diag(P) S^-1) + (1 - U U^H) dX V S^-1,
    # dV = V (F (S P + P^H S)) + (1 - V V^H) dX^H U S^-1.
    # F is antisymmetric, so the adjoint of the first terms is U (E_u S + S E_v) V^H, where
    # E_u = K + K^H with K = F (U^H dU), and E_v likewise with V^H dV. Adjoints apply to the
    # conjugates of cotangents.
    inner_size = s.shape[-1]
    if d_u is not None:
        d_u = conj(d_u)
    if d_vh is not None:
        d_vh = conj(d_vh)
    if u.shape[-1] > inner_size:
        u, d_u = reduced(u, zeros_like(u) if d_u is None else d_u, inner_size)
    if vh.shape[-2] > inner_size:
        v, d_v = reduced(adjoint(vh), adjoint(zeros_like(vh) if d_vh is None else d_vh), inner_size)
        vh, d_vh = adjoint(v), adjoint(d_v)
    if d_u is None and d_vh is None:
        return {"x": conj((u * _columns(d_s)) @ vh)}
    rows, columns = u.shape[-2], vh.shape[-1]
    gaps = (_columns(s) + _rows(s)) * (_columns(s) - _rows(s))
    factors = _reciprocal_gaps(gaps)
    inner = diagonal_matrix(d_s)
    if d_u is not None:
        along = adjoint(u) @ d_u
        inner = inner + _twice_hermitian(factors * along) * _columns(s)
        if is_complex(u.dtype):
            turn = band_part(along - adjoint(along), lower=0, upper=0)
            inner = inner + turn * 0.5 / _columns(s)
    if d_vh is not None:
        inner = inner + _twice_hermitian(factors * (vh @ adjoint(d_vh))) * _rows(s)
    left = u @ inner
    if d_u is not None and rows > columns:
        left = left + (d_u - u @ (adjoint(u) @ d_u)) / _columns(s)
    d_x = left @ vh
    if d_vh is not None and columns > rows:
        d_x = d_x + u @ ((d_vh - (d_vh @ adjoint(vh)) @ vh) / _rows(s))
    return {"x": conj(d_x)}


def _twice_hermitian(x: Var) -> Any:
    return x + adjoint(x)


def _svdvals_shape(x: Shape) -> Shape:
    return _svd_shape(x, full_matrices=False)[1]


def _svdvals_dtype(x: VarType) -> DType:
    return part_dtype(x)[0]


@op(
    shape=_svdvals_shape,
    dtype=_svdvals_dtype,
    reference=lambda x: np.linalg.svd(x, compute_uv=False),
    cases=[
        case(x=invertible(3, 3), order=2, rtol=512),
        case(x=(2, 2, 3), order=1, rtol=512),
        case(x=(0, 3, 2), order=1),
        case(x=invertible(2, 2), rtol=512),
        workload(x=invertible(256, 256)),
        *_REFUSED,
    ],
    costly=True,
)
def svdvals(x: Array) -> Array:
    """Singular values of a matrix, in descending order.

    The gradient is finite with repeated and zero singular values; second and higher derivatives
    require distinct ones. Half precision is computed in single precision.

    Example:
        >>> import jax.numpy as jnp
        >>> svdvals(jnp.asarray([[0.0, 2.0], [3.0, 0.0]]))
        Array([3., 2.], dtype=float32)
    """
    return real_back(jnp.linalg.svd(widened(x)[0], compute_uv=False), x)


@svdvals.gradient
def _svdvals_gradient(x: Var, d_out: Var) -> Grads:
    # d s = Re diag(U^H dX V)
    u, _, vh = svd(x)
    return {"x": conj((u * _columns(d_out)) @ vh)}


# pinv ------------------------------------------------------------------------------------------


def _pinv_shape(x: Shape) -> Shape:
    refuse_flat(x=x)
    return (*x[:-2], x[-1], x[-2])


def _pinv_reference(x: np.ndarray, *, rcond: float | None) -> np.ndarray:
    usual = 10 * max(x.shape[-2:]) * np.finfo(at_least_single(x.dtype)).eps
    return np.asarray(np.linalg.pinv(x, usual if rcond is None else rcond))


@op(
    shape=_pinv_shape,
    dtype=strong_inexact,
    reference=_pinv_reference,
    aliases=["pseudo_inverse", "pinverse"],
    cases=[
        case(x=(3, 2), order=2, rtol=2048),
        case(x=(2, 2, 3), order=1, rtol=2048),
        case(x=invertible(2, 2), rcond=0.25, order=2, rtol=512),
        case(x=(3, 0), order=1),
        case(x=invertible(2, 2), rtol=512),
        workload(x=(256, 256)),
        *_REFUSED,
    ],
    costly=True,
)
def pinv(x: Array, *, rcond: float | None = None) -> Array:
    """Moore-Penrose pseudoinverse: the matrix of least norm with ``x @ out @ x = x``.

    Singular values up to ``rcond`` times the largest one count as zero; ``rcond`` defaults to
    ``10 max(m, n)`` times the machine epsilon of the dtype. The derivative is that among matrices
    of constant rank, and treats values that count as zero as zero. Half precision is computed in
    single precision.

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
        return {"x": conj(_pinv_cotangent(x, out, swapped(d_out)))}
    # The pseudoinverse of the adjoint is the adjoint.
    return {"x": swapped(_pinv_cotangent(adjoint(x), adjoint(out), conj(d_out)))}


def _pinv_cotangent(a: Var, p: Var, d: Var) -> Any:
    """The gradient of ``a``, in inner products ``x^H y``, where ``p`` is its pseudoinverse.

    ``d`` is the adjoint of the gradient of ``p``. No product with more rows and columns than those
    of ``a`` is computed.
    """
    # dP = -P dA P + P P^H dA^H (1 - A P) + (1 - P A) dA^H P^H P. With D the adjoint of P's
    # gradient the adjoint is -P^H D^H P^H + (1 - A P) D P P^H + P^H P D (1 - P A).
    inner = p @ d
    outer = d @ (p @ adjoint(p))
    last = inner - adjoint(inner) - inner @ (p @ a)
    return outer - a @ (p @ outer) + adjoint(p) @ last
