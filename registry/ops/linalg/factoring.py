"""LU factors that an operator passes to its gradient as integers, which carry no derivative.

A gradient that solves with the same matrix again would otherwise repeat the decomposition. A
floating-point residual would be differentiated, although it is determined by the matrix: therefore
its bits are kept as integers of the same size. Complex factors have no integer dtype of their size
and are recomputed.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import fixed
from registry.errors import DTypeError, ShapeError
from registry.operator.signature import Array
from registry.shapes import at_least_single
from registry.types import DType, Shape, VarType, is_complex
from registry.xla.device_types import varied_alike

Factors = tuple[Array, Array]
"""``lu``, with L strictly below the diagonal and U on and above it, and the row order of L U."""


def factored(a: Array) -> Factors:
    """The LU decomposition of a stack of matrices: ``a[permutation] = L U``."""
    lu, _, permutation = lax.linalg.lu(lax.stop_gradient(a))
    return lu, permutation


def substituted(factors: Factors, b: Array, *, transpose: bool) -> Array:
    """The solution of ``A x = b``, or of ``A^T x = b``, for ``b`` with all batch axes."""
    lu, permutation = factors
    batch = b.shape[:-2]
    lu = jnp.broadcast_to(lu, (*batch, *lu.shape[-2:]))
    permutation = jnp.broadcast_to(permutation, (*batch, permutation.shape[-1]))

    def solved(b: Array, *, lower: bool) -> Array:
        return lax.linalg.triangular_solve(
            lu, b, left_side=True, lower=lower, transpose_a=transpose, unit_diagonal=lower
        )

    if transpose:
        rows = solved(solved(b, lower=False), lower=True)
        places = jnp.sum(_moves(permutation) * jnp.arange(permutation.shape[-1])[:, None], axis=-2)
        return _rows(rows, places)
    return solved(solved(_rows(b, permutation), lower=True), lower=False)


def inverted(factors: Factors) -> Array:
    """The inverses of factored matrices: the solutions for the identity, ``A X = 1``."""
    lu, permutation = factors
    moved = _moves(permutation).astype(lu.dtype)
    below = lax.linalg.triangular_solve(lu, moved, left_side=True, lower=True, unit_diagonal=True)
    return lax.linalg.triangular_solve(lu, below, left_side=True, lower=False)


def _moves(permutation: Array) -> Array:
    """True at ``[i, j]`` where row ``i`` of ``L U`` is row ``j`` of A. A sort would cost more."""
    return permutation[..., :, None] == jnp.arange(permutation.shape[-1])


def _rows(b: Array, order: Array) -> Array:
    return jnp.take_along_axis(b, order[..., None], axis=-2, mode="promise_in_bounds")


def solved(a: Array, b: Array, factors: Factors, *, transpose: bool) -> Array:
    """The solution of ``A x = b`` or ``A^T x = b``, which JAX differentiates with these factors."""
    a, b, lu, permutation = varied_alike([a, b, *factors])
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    matrix = jnp.swapaxes(a, -1, -2) if transpose else a
    result: Array = lax.custom_linear_solve(
        lambda x: matrix @ x,
        jnp.broadcast_to(b, (*batch, *b.shape[-2:])),
        solve=lambda _, x: substituted((lu, permutation), x, transpose=transpose),
        transpose_solve=lambda _, x: substituted((lu, permutation), x, transpose=not transpose),
    )
    return result


# Storage as integers ----------------------------------------------------------------------------


def bits_dtype(dtype: DType) -> DType:
    """The integer dtype that stores the factors of matrices of ``dtype``."""
    size = at_least_single(dtype).itemsize // (2 if is_complex(dtype) else 1)
    return np.dtype(f"i{size}")


def packed(lu: Array) -> Array:
    """The bits of real factors; a placeholder for complex ones."""
    return lax.bitcast_convert_type(jnp.real(lu), bits_dtype(lu.dtype))


def unpacked(a: Array, factors: Array, permutation: Array) -> Factors:
    """The factors of ``a`` that ``packed`` stored; inverse of ``packed``."""
    if is_complex(a.dtype):
        return factored(a)
    return lax.bitcast_convert_type(factors, a.dtype), permutation


def refuse_other_factors(a: Shape, factors: Shape, permutation: Shape) -> None:
    """Raises if the factors have a shape that those of ``a`` cannot have."""
    if factors != a:
        raise ShapeError(f"factors must have shape {a}, got {factors}")
    if permutation != a[:-1]:
        raise ShapeError(f"permutation must have shape {a[:-1]}, got {permutation}")


def refuse_other_bits(dtype: DType, factors: VarType, permutation: VarType) -> None:
    """Raises if the factors have a dtype that those of matrices of ``dtype`` cannot have."""
    expected = bits_dtype(dtype)
    if factors.dtype != expected or permutation.dtype != np.int32:
        raise DTypeError(
            "factors and permutation must be what solve keeps of a, "
            f"{expected.name} and int32, got {factors.dtype.name} and {permutation.dtype.name}"
        )


# Samples ----------------------------------------------------------------------------------------

_A = np.asarray([[1.0, 2.0, 0.5], [3.0, 1.0, -1.0], [0.5, -2.0, 2.0]])


def _factors() -> tuple[np.ndarray, np.ndarray]:
    """The factors of ``_A``, computed by elimination in NumPy."""
    lu, order = _A.copy(), np.arange(len(_A))
    for i in range(len(lu)):
        swap = i + int(np.argmax(np.abs(lu[i:, i])))
        lu[[i, swap]], order[[i, swap]] = lu[[swap, i]], order[[swap, i]]
        lu[i + 1 :, i] /= lu[i, i]
        lu[i + 1 :, i + 1 :] -= np.outer(lu[i + 1 :, i], lu[i, i + 1 :])
    return lu, order.astype(np.int32)


def _bits(dtype: DType) -> np.ndarray:
    bits = bits_dtype(dtype)
    return _factors()[0].astype(f"f{bits.itemsize}").view(bits)


FACTORED: dict[str, Any] = {
    "a": fixed("a", _A.astype),
    "factors": fixed("factors of a", _bits),
    "permutation": fixed("permutation of a", lambda _: _factors()[1]),
}
"""A matrix and the residuals that ``solve`` keeps for it, for cases."""
