"""Matrix products with BLAS names and conventions."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse, workload
from registry.errors import ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.arithmetic import scale_by
from registry.ops.core.broadcasting import unbroadcast
from registry.ops.core.reshaping import swapped
from registry.ops.linalg.contractions import (
    factor_cotangents,
    matrix_labels,
    multiplied,
    multiplied_reference,
    multiplied_shape,
    turned,
)
from registry.ops.shape.diagonals import tril, triu
from registry.shapes import strong_inexact
from registry.table import op
from registry.types import Shape
from registry.var import Var

# General matrices ------------------------------------------------------------------------------


def _gemm2_shape(a: Shape, b: Shape, *, transpose_a: bool, transpose_b: bool) -> Shape:
    return multiplied_shape(a, b, transpose_a, transpose_b)


def _gemm2_reference(a: np.ndarray, b: np.ndarray, *, alpha: float, **how: Any) -> np.ndarray:
    return alpha * multiplied_reference(a, b, **how)


_NO_PRODUCTS = [
    misuse("must be as many as the rows of the right one, got 4 and 3", a=(3, 4), b=(3, 4)),
    misuse("a and b must have at least two axes, got (3,) and (3, 4)", a=(3,), b=(3, 4)),
    misuse("the inputs' shapes must broadcast together", a=(2, 3, 4), b=(3, 4, 2)),
]
_INTEGER_PRODUCT = {"a": integers(2, 2, high=9), "b": integers(2, 2, high=9)}


@op(
    shape=_gemm2_shape,
    dtype=strong_inexact,
    reference=_gemm2_reference,
    aliases=["linalg_gemm2"],
    cases=[
        case(a=(3, 4), b=(4, 2), alpha=0.5),
        case(a=(4, 3), b=(2, 4), transpose_a=True, transpose_b=True, order=2),
        case(a=(2, 3, 4), b=(2, 4), transpose_b=True, alpha=-2.0, order=2),
        case(a=(2, 1, 3, 2), b=(3, 3, 2), transpose_a=True, order=1),
        case(a=(3, 0), b=(0, 2), order=1),
        case(a=(2, 2), b=integers(2, 2, high=9), order=1),
        workload(a=(16, 256, 256), b=(256, 256), transpose_b=True, alpha=0.5),
        *_NO_PRODUCTS,
        misuse("the inputs must be floating, got int32", **_INTEGER_PRODUCT),
    ],
    costly=True,
)
def gemm2(
    a: Array,
    b: Array,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: float = 1.0,
) -> Array:
    """Scaled product of two matrices, either optionally transposed: ``alpha * op(a) @ op(b)``.

    Leading axes are batch axes and broadcast.

    Example:
        >>> import jax.numpy as jnp
        >>> gemm2(jnp.asarray([[1.0, 2.0]]), jnp.asarray([[3.0, 4.0]]), transpose_b=True, alpha=2.0)
        Array([[22.]], dtype=float32)
    """
    return alpha * multiplied(a, b, transpose_a, transpose_b)


@gemm2.gradient
def _gemm2_gradient(
    a: Var, b: Var, d_out: Var, *, transpose_a: bool, transpose_b: bool, alpha: float
) -> Grads:
    labels = matrix_labels(a.shape, b.shape, transpose_a, transpose_b)
    d_a, d_b = factor_cotangents(a, b, labels, scale_by(d_out, scale=alpha))
    return {"a": d_a, "b": d_b}


def _gemm_shape(a: Shape, b: Shape, c: Shape, *, transpose_a: bool, transpose_b: bool) -> Shape:
    out = multiplied_shape(a, b, transpose_a, transpose_b)
    aligned = zip(reversed(c), reversed(out), strict=False)
    if len(c) > len(out) or any(n not in (1, length) for n, length in aligned):
        raise ShapeError(f"c must broadcast to the shape of the product, {out}, got {c}")
    return out


def _gemm_reference(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, *, alpha: float, beta: float, **how: Any
) -> np.ndarray:
    return alpha * multiplied_reference(a, b, **how) + beta * c


@op(
    shape=_gemm_shape,
    dtype=strong_inexact,
    reference=_gemm_reference,
    aliases=["linalg_gemm"],
    cases=[
        case(a=(3, 4), b=(4, 2), c=(3, 2), alpha=0.5, beta=2.0, order=2),
        case(a=(4, 3), b=(2, 4), c=(3, 2), transpose_a=True, transpose_b=True, order=2),
        case(a=(2, 3, 4), b=(4, 2), c=(2,), order=2),
        case(a=(2, 1, 2), b=(2, 2, 1), c=(2, 1, 1), beta=0.0, order=1),
        case(a=(0, 2), b=(2, 3), c=(0, 3), order=1),
        case(a=(2, 2), b=(2, 2), c=integers(2, 2, high=9), order=1),
        case(a=(2, 2), b=(2, 2), c=(2,), alpha=0.5, beta=2.0),
        workload(a=(16, 256, 256), b=(16, 256, 256), c=(16, 256, 256), alpha=0.5, beta=2.0),
        misuse(
            "c must broadcast to the shape of the product, (3, 2), got (2, 3)",
            a=(3, 4),
            b=(4, 2),
            c=(2, 3),
        ),
        misuse("as many as the rows of the right one", a=(3, 4), b=(3, 4), c=(3, 4)),
        misuse(
            "the inputs must be floating, got int32", c=integers(2, 2, high=9), **_INTEGER_PRODUCT
        ),
    ],
    costly=True,
)
def gemm(
    a: Array,
    b: Array,
    c: Array,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: float = 1.0,
    beta: float = 1.0,
) -> Array:
    """Scaled matrix product plus a scaled matrix: ``alpha * op(a) @ op(b) + beta * c``.

    ``op`` transposes according to ``transpose_a`` and ``transpose_b``. Leading axes are batch axes
    and broadcast; ``c`` broadcasts to the product. With ``beta=0`` the entries of ``c`` have no
    effect, not even infinities and NaNs.

    Source: Dongarra et al., A set of level 3 basic linear algebra subprograms, ACM TOMS 16, 1990.

    Example:
        >>> import jax.numpy as jnp
        >>> a, b = jnp.asarray([[1.0, 2.0]]), jnp.asarray([[3.0], [4.0]])
        >>> gemm(a, b, jnp.asarray([[100.0]]), alpha=2.0)
        Array([[122.]], dtype=float32)
    """
    dtype = jnp.result_type(a, b, c)
    product = alpha * multiplied(jnp.asarray(a, dtype), b, transpose_a, transpose_b)
    return product if beta == 0 else product + beta * jnp.asarray(c, dtype)


@gemm.gradient
def _gemm_gradient(
    a: Var,
    b: Var,
    c: Var,
    d_out: Var,
    *,
    transpose_a: bool,
    transpose_b: bool,
    alpha: float,
    beta: float,
) -> Grads:
    labels = matrix_labels(a.shape, b.shape, transpose_a, transpose_b)
    d_a, d_b = factor_cotangents(a, b, labels, scale_by(d_out, scale=alpha))
    d_c = None if beta == 0 else unbroadcast(scale_by(d_out, scale=beta), c)
    return {"a": d_a, "b": d_b, "c": d_c}


# Symmetric results -----------------------------------------------------------------------------


def _syrk_shape(a: Shape, *, transpose: bool) -> Shape:
    if len(a) < 2:
        raise ShapeError(f"a must have at least two axes, got shape {a}")
    return (*a[:-2], *[turned(a, transpose)[-2]] * 2)


def _syrk_reference(a: np.ndarray, *, transpose: bool, alpha: float) -> np.ndarray:
    turned_a = np.swapaxes(a, -1, -2)
    product: np.ndarray = turned_a @ a if transpose else a @ turned_a
    return alpha * product


@op(
    shape=_syrk_shape,
    dtype=strong_inexact,
    reference=_syrk_reference,
    aliases=["linalg_syrk"],
    cases=[
        case(a=(3, 2)),
        case(a=(2, 3, 2), transpose=True, alpha=-0.5, order=2),
        case(a=(2, 0), order=1),
        case(a=(0, 2), transpose=True, order=1),
        workload(a=(512, 512), alpha=0.5),
        misuse("a must have at least two axes, got shape (3,)", a=(3,)),
        misuse("the inputs must be floating, got int32", a=integers(2, 2, high=9)),
    ],
    costly=True,
)
def syrk(a: Array, *, transpose: bool = False, alpha: float = 1.0) -> Array:
    """Symmetric rank-k product: ``alpha * a @ a^T``, or ``alpha * a^T @ a`` with ``transpose``.

    Leading axes are batch axes. The result is symmetric; nothing is conjugated.

    Source: Dongarra et al., A set of level 3 basic linear algebra subprograms, ACM TOMS 16, 1990.

    Example:
        >>> import jax.numpy as jnp
        >>> syrk(jnp.asarray([[1.0, 2.0]]), alpha=2.0)
        Array([[10.]], dtype=float32)
    """
    return alpha * multiplied(a, a, transpose, not transpose)


@syrk.gradient
def _syrk_gradient(a: Var, d_out: Var, *, transpose: bool, alpha: float) -> Grads:
    # d(A A^T) = dA A^T + A dA^T, so <D, d(A A^T)> = <(D + D^T) A, dA>: one product, where the two
    # terms computed separately need two. Likewise <D, d(A^T A)> = <A (D + D^T), dA>.
    both = d_out + swapped(d_out)
    left, right = (a, both) if transpose else (both, a)
    return {"a": gemm2(left, right, alpha=alpha)}


# Triangular factors ----------------------------------------------------------------------------


def _trmm_shape(a: Shape, b: Shape, *, rightside: bool) -> Shape:
    if len(a) < 2 or a[-2] != a[-1]:
        raise ShapeError(f"a must be square matrices, got shape {a}")
    return (
        multiplied_shape(b, a, False, False) if rightside else multiplied_shape(a, b, False, False)
    )


def _trmm_reference(
    a: np.ndarray,
    b: np.ndarray,
    *,
    transpose: bool,
    rightside: bool,
    lower: bool,
    alpha: float,
) -> np.ndarray:
    triangle = np.tril(a) if lower else np.triu(a)
    triangle = np.swapaxes(triangle, -1, -2) if transpose else triangle
    product: np.ndarray = b @ triangle if rightside else triangle @ b
    return alpha * product


@op(
    shape=_trmm_shape,
    dtype=strong_inexact,
    reference=_trmm_reference,
    aliases=["linalg_trmm"],
    cases=[
        case(a=(3, 3), b=(3, 2), alpha=0.5, order=2),
        case(a=(3, 3), b=(3, 2), transpose=True, lower=False, order=2),
        case(a=(2, 3, 3), b=(2, 2, 3), rightside=True, order=2),
        case(a=(3, 3), b=(2, 2, 3), rightside=True, transpose=True, order=1),
        case(a=(0, 0), b=(0, 2), order=1),
        case(a=(2, 2), b=(2, 1), alpha=0.5),
        workload(a=(16, 256, 256), b=(16, 256, 256)),
        misuse("a must be square matrices, got shape (3, 2)", a=(3, 2), b=(2, 2)),
        misuse("as many as the rows of the right one, got 3 and 2", a=(3, 3), b=(2, 3)),
        misuse("the inputs must be floating, got int32", **_INTEGER_PRODUCT),
    ],
    costly=True,
)
def trmm(
    a: Array,
    b: Array,
    *,
    transpose: bool = False,
    rightside: bool = False,
    lower: bool = True,
    alpha: float = 1.0,
) -> Array:
    """Triangular matrix product: ``alpha * op(a) @ b``, or ``alpha * b @ op(a)`` on the right.

    Only the lower triangle of ``a`` is used, or the upper one without ``lower``: the other entries
    may have any value, and their gradient is zero. ``op`` transposes the triangle if ``transpose``
    is set. Leading axes are batch axes and broadcast.

    Source: Dongarra et al., A set of level 3 basic linear algebra subprograms, ACM TOMS 16, 1990.

    Example:
        >>> import jax.numpy as jnp
        >>> trmm(jnp.asarray([[1.0, 9.0], [2.0, 3.0]]), jnp.asarray([[1.0], [10.0]]))
        Array([[ 1.],
               [32.]], dtype=float32)
    """
    triangle = jnp.tril(a) if lower else jnp.triu(a)
    if rightside:
        return alpha * multiplied(b, triangle, False, transpose)
    return alpha * multiplied(triangle, b, transpose, False)


@trmm.gradient
def _trmm_gradient(
    a: Var,
    b: Var,
    d_out: Var,
    *,
    transpose: bool,
    rightside: bool,
    lower: bool,
    alpha: float,
) -> Grads:
    # The product of b and the triangle of a; entries outside the triangle have no gradient.
    cut = tril if lower else triu
    d = scale_by(d_out, scale=alpha)
    if rightside:
        labels = matrix_labels(b.shape, a.shape, False, transpose)
        d_b, d_triangle = factor_cotangents(b, cut(a), labels, d)
    else:
        labels = matrix_labels(a.shape, b.shape, transpose, False)
        d_triangle, d_b = factor_cotangents(cut(a), b, labels, d)
    return {"a": lambda: cut(d_triangle()), "b": d_b}
