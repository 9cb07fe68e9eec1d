"""Triangular matrices: linear systems, and inverses from Cholesky factors."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, definite, misuse, workload
from registry.errors import ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import unbroadcast
from registry.ops.core.complex_parts import conj
from registry.ops.core.matrices import (
    adjoint,
    adjoint_kernel,
    cast_back,
    common_batch,
    refuse_flat,
    refuse_oblong,
    widened,
)
from registry.ops.core.reshaping import swapped
from registry.ops.shape.masks import triangle
from registry.shapes import strong_inexact
from registry.table import op
from registry.types import Shape
from registry.var import Var

# triangular_solve ------------------------------------------------------------------------------


def _triangular_solve_shape(a: Shape, b: Shape, *, rightside: bool) -> Shape:
    refuse_oblong(a=a)
    refuse_flat(b=b)
    if a[-1] != b[-1 if rightside else -2]:
        raise ShapeError(
            f"b must have as many {'columns' if rightside else 'rows'} as a, got {b} and {a}"
        )
    return (*common_batch(a, b), *b[-2:])


def _triangular_solve_reference(
    a: np.ndarray,
    b: np.ndarray,
    *,
    transpose: bool,
    rightside: bool,
    lower: bool,
    alpha: float,
    unit_diagonal: bool,
) -> np.ndarray:
    part = np.tril(a) if lower else np.triu(a)
    if unit_diagonal:
        part = part - part * np.eye(a.shape[-1], dtype=a.dtype) + np.eye(a.shape[-1], dtype=a.dtype)
    part = part.swapaxes(-1, -2) if transpose else part
    inverse = np.linalg.inv(part)
    return np.asarray((b @ inverse if rightside else inverse @ b) * alpha, a.dtype)


@op(
    shape=_triangular_solve_shape,
    dtype=strong_inexact,
    reference=_triangular_solve_reference,
    aliases=["linalg_trsm"],
    cases=[
        case(a=definite(3, 3), b=(3, 2), rtol=512),
        case(a=definite(2, 2), b=(3, 2), rightside=True, transpose=True, rtol=512),
        case(a=definite(2, 1, 2, 2), b=(3, 2, 2), lower=False, alpha=0.5, order=2, rtol=512),
        case(a=definite(3, 3), b=(3, 1), unit_diagonal=True, transpose=True, order=2, rtol=512),
        case(a=definite(2, 2), b=(2, 0)),
        workload(a=definite(256, 256), b=(256, 256)),
        misuse("a must have as many rows as columns, got shape (3, 2)", a=(3, 2), b=(3, 2)),
        misuse("b must have as many rows as a, got (2, 3) and (3, 3)", a=(3, 3), b=(2, 3)),
        misuse("b must be a matrix or a stack of them", a=(3, 3), b=(3,)),
        misuse("the batch axes of a and b must broadcast", a=(2, 3, 3), b=(4, 3, 3)),
        misuse("the inputs must be floating", a=np.eye(2, dtype=int), b=np.eye(2, dtype=int)),
    ],
    costly=True,
)
def triangular_solve(
    a: Array,
    b: Array,
    *,
    transpose: bool = False,
    rightside: bool = False,
    lower: bool = True,
    alpha: float = 1.0,
    unit_diagonal: bool = False,
) -> Array:
    """Solution of a triangular system: ``op(a) @ out = alpha * b``.

    ``op(a)`` is the lower triangle of ``a``, or the upper one without ``lower``, and is transposed
    with ``transpose``. With ``rightside`` the system is ``out @ op(a) = alpha * b``. With
    ``unit_diagonal`` the diagonal is taken as ones. The other entries of ``a`` are not read and
    have no gradient. Leading axes are batch axes and broadcast. A zero on the diagonal gives
    infinities. Complex matrices are transposed without conjugation. Half precision is computed in
    single precision.

    Example:
        >>> import jax.numpy as jnp
        >>> triangular_solve(jnp.asarray([[2.0, 0.0], [1.0, 1.0]]), jnp.asarray([[2.0], [3.0]]))
        Array([[1.],
               [2.]], dtype=float32)
    """
    matrix, right = _broadcast(*widened(a, b))
    out = lax.linalg.triangular_solve(
        matrix,
        right if alpha == 1 else right * alpha,
        left_side=not rightside,
        lower=lower,
        transpose_a=transpose,
        unit_diagonal=unit_diagonal,
    )
    return cast_back(out, a, b)


def _broadcast(a: Array, b: Array) -> tuple[Array, Array]:
    """Two stacks of matrices with the same batch axes."""
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    stacks = [jnp.broadcast_to(one, (*batch, *one.shape[-2:])) for one in (a, b)]
    return stacks[0], stacks[1]


@triangular_solve.gradient
def _triangular_solve_gradient(
    a: Var,
    b: Var,
    out: Var,
    d_out: Var,
    *,
    transpose: bool,
    rightside: bool,
    lower: bool,
    alpha: float,
    unit_diagonal: bool,
) -> Grads:
    # op(A) X = alpha B: with G = op(A)^-T D, dB = alpha G and d op(A) = -G X^T.
    # X op(A) = alpha B: with G = D op(A)^-T, dB = alpha G and d op(A) = -X^T G.
    inner = triangular_solve(
        a,
        d_out,
        transpose=not transpose,
        rightside=rightside,
        lower=lower,
        unit_diagonal=unit_diagonal,
    )
    # With A^T for op(A) both products are transposed: their factors are exchanged.
    first, second = (inner, out) if rightside == transpose else (out, inner)
    product = swapped(first) @ second if rightside else first @ swapped(second)
    return {
        "a": unbroadcast(triangle(-product, lower=lower, strict=unit_diagonal), a),
        "b": unbroadcast(inner if alpha == 1 else inner * alpha, b),
    }


# potri -----------------------------------------------------------------------------------------


def _potri_shape(a: Shape) -> tuple[Shape, Shape]:
    refuse_oblong(a=a)
    return a, a


def _potri_reference(a: np.ndarray, *, lower: bool) -> np.ndarray:
    factor = np.tril(a) if lower else np.triu(a).swapaxes(-1, -2).conj()
    return np.asarray(np.linalg.inv(factor @ factor.swapaxes(-1, -2).conj()))


@op(
    shape=_potri_shape,
    dtype=strong_inexact,
    reference=_potri_reference,
    outputs=("out", "inverse"),
    hidden=("inverse",),
    aliases=["linalg_potri"],
    cases=[
        case(a=definite(3, 3), rtol=512),
        case(a=definite(2, 2, 2), lower=False, order=2, rtol=512),
        case(a=definite(0, 2, 2)),
        workload(a=definite(256, 256)),
        misuse("a must have as many rows as columns, got shape (3, 2)", a=(3, 2)),
        misuse("the inputs must be floating, got int", a=np.eye(2, dtype=int)),
    ],
    costly=True,
)
def potri(a: Array, *, lower: bool = True) -> tuple[Array, Array]:
    """Inverse of a matrix from its Cholesky factor ``a``: ``out = (a @ a^H)^-1``.

    Without ``lower`` it is ``(a^H @ a)^-1`` for an upper factor. The other triangle of ``a`` is not
    read. Half precision is computed in single precision.

    Example:
        >>> import jax.numpy as jnp
        >>> potri(jnp.asarray([[2.0, 0.0], [0.0, 1.0]]))
        Array([[0.25, 0.  ],
               [0.  , 1.  ]], dtype=float32)
    """
    (factor,) = widened(a)
    eye = jnp.broadcast_to(jnp.eye(a.shape[-1], dtype=factor.dtype), factor.shape)
    inverse = lax.linalg.triangular_solve(factor, eye, left_side=True, lower=lower)
    turned = adjoint_kernel(inverse)
    out = turned @ inverse if lower else inverse @ turned
    return cast_back(out, a), cast_back(inverse, a)


@potri.gradient
def _potri_gradient(
    out: Var, inverse: Var, d_out: Var, d_inverse: Var | None, *, lower: bool
) -> Grads:
    # With S = L L^H, B = S^-1 and its gradient D: dS = -B D B and dL = (dS + dS^H) L, which is
    # -B (D + D^H) L^-H. With S = U^H U: dU = U (dS + dS^H) = -U^-H (D + D^H) B. Adjoints apply to
    # the conjugates of cotangents.
    d, turned = conj(d_out), adjoint(inverse)
    both = d + adjoint(d)
    d_a = out @ both @ turned if lower else turned @ both @ out
    if d_inverse is not None:
        d_a = d_a + turned @ conj(d_inverse) @ turned
    return {"a": conj(triangle(-d_a, lower=lower))}
