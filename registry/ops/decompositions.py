"""Cholesky, QR and LQ decompositions."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from registry.cases import case, definite, misuse, workload
from registry.operator import Grads
from registry.ops.masks import band_part
from registry.ops.matrices import cast_back, refuse_flat, square_matrix, symmetric, widened
from registry.ops.shape import swapped
from registry.ops.slicing import concat, slice_
from registry.ops.triangular import triangular_solve
from registry.shapes import strong_real_inexact
from registry.signature import Array
from registry.table import op
from registry.types import Shape
from registry.var import Var

# cholesky --------------------------------------------------------------------------------------


def _cholesky_reference(a: np.ndarray, *, upper: bool) -> np.ndarray:
    lower = np.linalg.cholesky((a + a.swapaxes(-1, -2)) / 2)
    return np.asarray(lower.swapaxes(-1, -2) if upper else lower)


@op(
    shape=square_matrix,
    dtype=strong_real_inexact,
    reference=_cholesky_reference,
    aliases=["potrf", "linalg_potrf"],
    cases=[
        case(a=definite(3, 3), rtol=256),
        case(a=definite(2, 2, 2), upper=True, order=2, rtol=256),
        case(a=definite(1, 1)),
        case(a=definite(0, 2, 2)),
        case(a=(0, 0)),
        workload(a=definite(256, 256)),
        misuse("a must have as many rows as columns, got shape (3, 2)", a=(3, 2)),
        misuse("a must be a matrix or a stack of them, got shape (3,)", a=(3,)),
        misuse("the inputs must be floating, got int", a=np.eye(2, dtype=int)),
        misuse("the inputs must be real, got complex64", a=np.eye(2, dtype=np.complex64)),
    ],
)
def cholesky(a: Array, *, upper: bool = False) -> Array:
    """Cholesky factor of a positive definite matrix: ``out @ out^T = a``, ``out`` lower triangular.

    With ``upper`` it is the transpose: ``out^T @ out = a``. What is factored is the symmetric part
    ``(a + a^T) / 2``, so the gradient is symmetric. Where that is not positive definite the result
    is not a number. Half precision is computed in single.

    Source: Murray, Differentiation of the Cholesky decomposition, 2016, for the gradient.

    Example:
        >>> import jax.numpy as jnp
        >>> cholesky(jnp.asarray([[4.0, 2.0], [2.0, 2.0]]))
        Array([[2., 0.],
               [1., 1.]], dtype=float32)
    """
    return cast_back(jnp.linalg.cholesky(widened(a)[0], upper=upper), a)


@cholesky.gradient
def _cholesky_gradient(out: Var, d_out: Var, *, upper: bool) -> Grads:
    # dL = L phi(L^-1 dA L^-T), where phi keeps the lower triangle and halves the diagonal. Its
    # adjoint is dA = L^-T phi(L^T D) L^-1 for symmetric dA: of that the symmetric part.
    factor, d = (swapped(out), swapped(d_out)) if upper else (out, d_out)
    inner = _half(swapped(factor) @ d)
    left = triangular_solve(factor, inner, transpose=True)
    return {"a": symmetric(triangular_solve(factor, left, rightside=True))}


def _half(x: Var) -> Any:
    """The lower triangle with its diagonal halved."""
    return (band_part(x, upper=0) + band_part(x, upper=-1)) * 0.5


# qr --------------------------------------------------------------------------------------------


def _qr_shape(x: Shape) -> tuple[Shape, Shape]:
    refuse_flat(x=x)
    *batch, rows, columns = x
    inner = min(rows, columns)
    return (*batch, rows, inner), (*batch, inner, columns)


_REFUSED = [
    misuse("x must be a matrix or a stack of them, got shape (3,)", x=(3,)),
    misuse("the inputs must be floating, got int", x=np.eye(2, dtype=int)),
    misuse("the inputs must be real, got complex64", x=np.eye(2, dtype=np.complex64)),
]


@op(
    shape=_qr_shape,
    dtype=strong_real_inexact,
    reference=np.linalg.qr,
    outputs=("q", "r"),
    cases=[
        case(x=(4, 3), rtol=512),
        case(x=(3, 3), order=2, rtol=512),
        case(x=(2, 2, 3), order=2, rtol=512),
        case(x=(0, 3, 2)),
        case(x=(3, 0)),
        workload(x=(256, 256)),
        *_REFUSED,
    ],
)
def qr(x: Array) -> tuple[Array, Array]:
    """QR decomposition ``x = q @ r``: ``q^T @ q`` is the identity and ``r`` upper triangular.

    It is the reduced one: of ``x`` of shape ``(..., m, n)`` with ``k = min(m, n)`` the matrix
    ``q`` has shape ``(..., m, k)`` and ``r`` has ``(..., k, n)``. The signs on the diagonal of
    ``r`` are LAPACK's, which are mostly negative. The gradient needs the first ``k`` columns of
    ``x`` to be linearly independent. Half precision is computed in single.

    Source: Seeger et al., Auto-differentiating linear algebra, 2017, for the gradient.

    Example:
        >>> import jax.numpy as jnp
        >>> q, r = qr(jnp.asarray([[3.0], [4.0]]))
        >>> print((q @ r).round(4))
        [[3.]
         [4.]]
    """
    q, r = jnp.linalg.qr(widened(x)[0])
    return cast_back(q, x), cast_back(r, x)


@qr.gradient
def _qr_gradient(x: Var, q: Var, r: Var, d_q: Var, d_r: Var) -> Grads:
    return {"x": _qr_cotangent(x, q, r, d_q, d_r)}


def _qr_cotangent(x: Var, q: Var, r: Var, d_q: Var, d_r: Var) -> Any:
    """The cotangent of ``x = q @ r``."""
    rows, columns = x.shape[-2:]
    if rows >= columns:
        return _tall_cotangent(q, r, d_q, d_r)
    # X = [X1, X2] with X1 = Q R1 square, and R2 = Q^T X2: dQ += X2 D2^T and dX2 = Q D2.
    x2, (r1, _), (d1, d2) = _cut(x, rows)[1], _cut(r, rows), _cut(d_r, rows)
    d_x1 = _tall_cotangent(q, r1, d_q + x2 @ swapped(d2), d1)
    return concat(d_x1, q @ d2, axis=-1)


def _tall_cotangent(q: Var, r: Var, d_q: Var, d_r: Var) -> Any:
    # dX = (dQ + Q S) R^-T, where S is symmetric, and on and below its diagonal R dR^T - dQ^T Q.
    m = r @ swapped(d_r) - swapped(d_q) @ q
    mirrored = band_part(m, upper=0) + swapped(band_part(m, upper=-1))
    inner = d_q + q @ mirrored
    return triangular_solve(r, inner, lower=False, transpose=True, rightside=True)


def _cut(x: Var, columns: int) -> tuple[Any, Any]:
    """The first columns of ``x`` and the others."""
    lead = (None,) * (x.ndim - 1)
    first = slice_(x, begin=(*lead, None), end=(*lead, columns))
    return first, slice_(x, begin=(*lead, columns), end=(*lead, None))


# lq --------------------------------------------------------------------------------------------


def _lq_shape(x: Shape) -> tuple[Shape, Shape]:
    refuse_flat(x=x)
    *batch, rows, columns = x
    inner = min(rows, columns)
    return (*batch, inner, columns), (*batch, rows, inner)


def _lq_reference(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    q, r = np.linalg.qr(x.swapaxes(-1, -2))
    return q.swapaxes(-1, -2), r.swapaxes(-1, -2)


@op(
    shape=_lq_shape,
    dtype=strong_real_inexact,
    reference=_lq_reference,
    outputs=("q", "lower"),
    aliases=["gelqf", "linalg_gelqf"],
    cases=[
        case(x=(2, 3), rtol=512),
        case(x=(2, 3, 2), order=2, rtol=512),
        case(x=(0, 2, 3)),
        workload(x=(256, 256)),
        *_REFUSED,
    ],
)
def lq(x: Array) -> tuple[Array, Array]:
    """LQ decomposition ``x = lower @ q``, where ``q @ q^T`` is the identity.

    The outputs are ``q`` and the triangular ``lower``, in this order. Of ``x`` of shape
    ``(..., m, n)`` with ``k = min(m, n)`` the matrix ``q`` has shape ``(..., k, n)`` and ``lower``
    has ``(..., m, k)``. It is the QR decomposition of the transpose, with its signs: the gradient
    needs the first ``k`` rows of ``x`` to be linearly independent. Half precision is computed in
    single.

    Example:
        >>> import jax.numpy as jnp
        >>> q, lower = lq(jnp.asarray([[3.0, 4.0]]))
        >>> print((lower @ q).round(4))
        [[3. 4.]]
    """
    q, r = jnp.linalg.qr(jnp.swapaxes(widened(x)[0], -1, -2))
    return cast_back(jnp.swapaxes(q, -1, -2), x), cast_back(jnp.swapaxes(r, -1, -2), x)


@lq.gradient
def _lq_gradient(x: Var, q: Var, lower: Var, d_q: Var, d_lower: Var) -> Grads:
    # X^T = Q^T L^T
    turned = [swapped(one) for one in (x, q, lower, d_q, d_lower)]
    return {"x": swapped(_qr_cotangent(*turned))}
