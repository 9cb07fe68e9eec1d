"""Cholesky, QR and LQ decompositions."""

from typing import Any, Literal

import jax.numpy as jnp
import numpy as np

from registry.cases import case, definite, misuse, workload
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.complex_parts import conj
from registry.ops.core.matrices import (
    HERMITIAN,
    adjoint,
    adjoint_kernel,
    cast_back,
    completed,
    hermitian,
    hermitian_reference,
    refuse_flat,
    square_matrix,
    widened,
)
from registry.ops.core.reshaping import swapped
from registry.ops.core.slicing import concat, slice_
from registry.ops.linalg.triangular import triangular_solve
from registry.ops.shape.masks import band_part
from registry.shapes import strong_inexact
from registry.table import op
from registry.types import Shape, is_complex
from registry.var import Var

# cholesky --------------------------------------------------------------------------------------


def _cholesky_reference(a: np.ndarray, *, upper: bool) -> np.ndarray:
    lower = np.linalg.cholesky(hermitian_reference(a))
    return np.asarray(lower.swapaxes(-1, -2).conj() if upper else lower)


@op(
    shape=square_matrix,
    dtype=strong_inexact,
    reference=_cholesky_reference,
    aliases=["potrf", "linalg_potrf"],
    cases=[
        case(a=definite(3, 3), rtol=256),
        case(a=definite(2, 2, 2), upper=True, order=2, rtol=256),
        case(a=definite(1, 1)),
        case(a=definite(0, 2, 2)),
        case(a=(0, 0)),
        case(a=HERMITIAN, order=2, rtol=256),
        case(a=HERMITIAN, upper=True, order=2, rtol=256),
        workload(a=definite(256, 256)),
        misuse("a must have as many rows as columns, got shape (3, 2)", a=(3, 2)),
        misuse("a must be a matrix or a stack of them, got shape (3,)", a=(3,)),
        misuse("the inputs must be floating, got int", a=np.eye(2, dtype=int)),
    ],
    costly=True,
)
def cholesky(a: Array, *, upper: bool = False) -> Array:
    """Cholesky factor of a positive definite matrix: lower triangular with ``out @ out^H = a``.

    With ``upper`` it is the conjugate transpose: ``out^H @ out = a``. The diagonal is real. The
    Hermitian part ``(a + a^H) / 2`` is factored, so the gradient of a real matrix is symmetric, and
    that of a complex matrix is the conjugate of a Hermitian matrix, as is JAX's convention. Where
    that part is not positive definite the result is NaN. Half precision is computed in single
    precision.

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
    # dL = L phi(L^-1 dA L^-H), where phi keeps the lower triangle and halves the diagonal. Its
    # adjoint is dA = L^-H phi(L^H D) L^-1 for Hermitian dA, of which the Hermitian part is taken.
    # Adjoints apply to the conjugates of cotangents.
    d = conj(d_out)
    factor, d = (adjoint(out), adjoint(d)) if upper else (out, d)
    inner = _half(adjoint(factor) @ d)
    left = triangular_solve(conj(factor), inner, transpose=True)
    return {"a": conj(hermitian(triangular_solve(factor, left, rightside=True)))}


def _half(x: Var) -> Any:
    """The lower triangle with its diagonal halved."""
    return (band_part(x, upper=0) + band_part(x, upper=-1)) * 0.5


# qr --------------------------------------------------------------------------------------------


Mode = Literal["reduced", "complete"]


def _qr_shape(x: Shape, *, mode: Mode) -> tuple[Shape, Shape]:
    refuse_flat(x=x)
    *batch, rows, columns = x
    inner = rows if mode == "complete" else min(rows, columns)
    return (*batch, rows, inner), (*batch, inner, columns)


def _qr_reference(x: np.ndarray, *, mode: Mode) -> tuple[np.ndarray, np.ndarray]:
    q, r = np.linalg.qr(x, mode)
    return q, r


_REFUSED = [
    misuse("x must be a matrix or a stack of them, got shape (3,)", x=(3,)),
    misuse("the inputs must be floating, got int", x=np.eye(2, dtype=int)),
]


@op(
    shape=_qr_shape,
    dtype=strong_inexact,
    reference=_qr_reference,
    outputs=("q", "r"),
    cases=[
        case(x=(4, 3), rtol=512),
        case(x=(3, 3), order=2, rtol=512),
        case(x=(2, 2, 3), order=2, rtol=512),
        case(x=(0, 3, 2)),
        case(x=(3, 0)),
        case(x=(2, 3), mode="complete", order=2, rtol=512),
        # Finite differences would depend on the basis that LAPACK chooses for the other columns.
        case(x=(4, 2), mode="complete", order=0, rtol=512),
        case(x=(2, 3, 1), mode="complete", order=0, rtol=512),
        workload(x=(256, 256)),
        *_REFUSED,
        misuse("attribute 'mode' must be", x=(3, 2), mode="raw"),
    ],
    costly=True,
)
def qr(x: Array, *, mode: Mode = "reduced") -> tuple[Array, Array]:
    """QR decomposition ``x = q @ r`` with ``q^H @ q`` the identity and ``r`` upper triangular.

    For ``x`` of shape ``(..., m, n)`` with ``k = min(m, n)``, ``q`` has shape ``(..., m, k)`` and
    ``r`` has shape ``(..., k, n)``; if ``mode`` is ``"complete"``, they have shapes ``(..., m, m)``
    and ``(..., m, n)``. The diagonal of ``r`` is real, and its signs are LAPACK's, mostly negative.
    Half precision is computed in single precision.

    The gradient requires the first ``k`` columns of ``x`` to be linearly independent. The further
    columns of a complete ``q`` are an arbitrary orthonormal basis: their derivative is the smallest
    that keeps them orthogonal to the first columns, which is correct for every function that does
    not depend on the choice of the basis.

    Source: Seeger et al., Auto-differentiating linear algebra, 2017, for the gradient.

    Example:
        >>> import jax.numpy as jnp
        >>> q, r = qr(jnp.asarray([[3.0], [4.0]]))
        >>> print((q @ r).round(4))
        [[3.]
         [4.]]
    """
    q, r = jnp.linalg.qr(widened(x)[0])
    rows, columns = x.shape[-2:]
    if mode == "complete" and rows > columns:
        below = [(0, 0)] * (x.ndim - 2) + [(0, rows - columns), (0, 0)]
        q, r = completed(q), jnp.pad(r, below)
    return cast_back(q, x), cast_back(r, x)


@qr.gradient
def _qr_gradient(x: Var, q: Var, r: Var, d_q: Var, d_r: Var) -> Grads:
    d_q, d_r = conj(d_q), conj(d_r)
    columns = x.shape[-1]
    if q.shape[-1] > columns:
        q, d_q = reduced(q, d_q, columns)
        r, d_r = (swapped(cut(swapped(one), columns)[0]) for one in (r, d_r))
    return {"x": conj(_qr_cotangent(x, q, r, d_q, d_r))}


def reduced(q: Var, d_q: Var, columns: int) -> tuple[Any, Any]:
    """The first columns of a unitary matrix, and their gradient from that of all columns."""
    # dQ2 = -Q1 dQ1^H Q2, as in the kernel.
    (q1, q2), (d1, d2) = cut(q, columns), cut(d_q, columns)
    return q1, d1 - q2 @ (adjoint(d2) @ q1)


def _qr_cotangent(x: Var, q: Var, r: Var, d_q: Var, d_r: Var) -> Any:
    """The gradient of ``x = q @ r`` from those of ``q`` and ``r``, in inner products ``a^H b``."""
    rows, columns = x.shape[-2:]
    if rows >= columns:
        return _tall_cotangent(q, r, d_q, d_r)
    # X = [X1, X2] with X1 = Q R1 square, and R2 = Q^H X2: dQ += X2 D2^H and dX2 = Q D2.
    x2, (r1, _), (d1, d2) = cut(x, rows)[1], cut(r, rows), cut(d_r, rows)
    d_x1 = _tall_cotangent(q, r1, d_q + x2 @ adjoint(d2), d1)
    return concat(d_x1, q @ d2, axis=-1)


def _tall_cotangent(q: Var, r: Var, d_q: Var, d_r: Var) -> Any:
    # dX = (dQ + Q S) R^-H, where S is Hermitian, and on and below its diagonal R dR^H - dQ^H Q,
    # of whose diagonal the real part.
    m = r @ adjoint(d_r) - adjoint(d_q) @ q
    mirrored = band_part(m, upper=0) + adjoint(band_part(m, upper=-1))
    mirrored = hermitian(mirrored) if is_complex(q.dtype) else mirrored
    inner = d_q + q @ mirrored
    return triangular_solve(conj(r), inner, lower=False, transpose=True, rightside=True)


def cut(x: Var, columns: int) -> tuple[Any, Any]:
    """The first columns of ``x``, and the others."""
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
    q, r = np.linalg.qr(x.swapaxes(-1, -2).conj())
    return q.swapaxes(-1, -2).conj(), r.swapaxes(-1, -2).conj()


@op(
    shape=_lq_shape,
    dtype=strong_inexact,
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
    costly=True,
)
def lq(x: Array) -> tuple[Array, Array]:
    """LQ decomposition ``x = lower @ q`` with ``q @ q^H`` the identity and ``lower`` triangular.

    The outputs are ``q`` and ``lower``, in this order. For ``x`` of shape ``(..., m, n)`` with
    ``k = min(m, n)``, ``q`` has shape ``(..., k, n)`` and ``lower`` has shape ``(..., m, k)``. The
    result is the QR decomposition of the conjugate transpose, with its signs: the gradient requires
    the first ``k`` rows of ``x`` to be linearly independent. Half precision is computed in single
    precision.

    Example:
        >>> import jax.numpy as jnp
        >>> q, lower = lq(jnp.asarray([[3.0, 4.0]]))
        >>> print((lower @ q).round(4))
        [[3. 4.]]
    """
    q, r = jnp.linalg.qr(adjoint_kernel(widened(x)[0]))
    return cast_back(adjoint_kernel(q), x), cast_back(adjoint_kernel(r), x)


@lq.gradient
def _lq_gradient(x: Var, q: Var, lower: Var, d_q: Var, d_lower: Var) -> Grads:
    # X^H = Q^H L^H
    turned = [adjoint(one) for one in (x, q, lower, conj(d_q), conj(d_lower))]
    return {"x": conj(adjoint(_qr_cotangent(*turned)))}
