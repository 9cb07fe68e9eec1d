"""Determinants, cofactors, and the logarithms of determinants."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from registry.cases import case, definite, invertible, misuse, workload
from registry.differences import pulled_back
from registry.errors import ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import broadcast_to, cast
from registry.ops.core.matrices import (
    cast_back,
    imaginary,
    part_of,
    real_back,
    refuse_oblong,
    widened,
)
from registry.ops.core.reductions import sum as sum_over
from registry.ops.core.reshaping import expand_dims, swapped
from registry.ops.linalg.cofactors import (
    change_of_cofactors,
    cofactors_of,
    determinant_of,
    parity,
    pivots_of,
)
from registry.ops.linalg.factoring import (
    FACTORED,
    bits_dtype,
    factored,
    packed,
    refuse_other_bits,
    refuse_other_factors,
    solved,
    unpacked,
)
from registry.ops.linalg.solving import factored_solve
from registry.ops.shape.diagonals import diag_embed, diagonal
from registry.shapes import strong_inexact
from registry.table import op
from registry.types import DType, Shape, VarType, is_complex
from registry.var import Var

_REFUSED = [
    misuse("a must have as many rows as columns, got shape (3, 2)", a=(3, 2)),
    misuse("a must be a matrix or a stack of them, got shape (3,)", a=(3,)),
    misuse("the inputs must be floating, got int", a=np.eye(2, dtype=int)),
]


def _overall(numbers: Var) -> Any:
    """One number for each matrix, shaped to multiply the matrix."""
    return expand_dims(numbers, axis=(-2, -1))


# det -------------------------------------------------------------------------------------------


def _det_shape(a: Shape) -> tuple[Shape, Shape, Shape]:
    refuse_oblong(a=a)
    return a[:-2], a, a[:-1]


def _det_dtype(a: VarType) -> list[DType]:
    dtype = strong_inexact(a)
    return [dtype, bits_dtype(dtype), np.dtype(np.int32)]


@op(
    shape=_det_shape,
    dtype=_det_dtype,
    reference=np.linalg.det,
    outputs=("out", "factors", "permutation"),
    hidden=("factors", "permutation"),
    aliases=["linalg_det"],
    cases=[
        case(a=invertible(3, 3), rtol=256),
        case(a=invertible(2, 2, 2), order=2, rtol=256),
        case(a=(1, 1), order=1),  # the second derivative is zero, so rounding dominates
        case(a=invertible(0, 2, 2)),
        case(a=(0, 0)),
        workload(a=invertible(256, 256)),
        *_REFUSED,
    ],
    costly=True,
)
def det(a: Array) -> tuple[Array, Array, Array]:
    """Determinant of a square matrix, or of each matrix of a stack.

    ``d out / d a`` is the matrix of cofactors, also for singular matrices: it has rank one if the
    rank of ``a`` is one less than full, and is zero below that. Second derivatives are correct
    there, too; higher ones are NaN where ``a`` is singular. The determinant of an empty matrix is
    one. Half precision is computed in single precision.

    Example:
        >>> import jax.numpy as jnp
        >>> det(jnp.asarray([[2.0, 1.0], [1.0, 3.0]]))
        Array(5., dtype=float32)
    """
    (matrix,) = widened(a)
    factors = factored(matrix)
    return cast_back(determinant_of(matrix, *factors), a), packed(factors[0]), factors[1]


@det.gradient
def _det_gradient(a: Var, factors: Var, permutation: Var, d_out: Var) -> Grads:
    return {"a": _overall(d_out) * cofactor(a, factors, permutation)}


# cofactor --------------------------------------------------------------------------------------


def _cofactor_shape(a: Shape, factors: Shape, permutation: Shape) -> Shape:
    refuse_oblong(a=a)
    refuse_other_factors(a, factors, permutation)
    return a


def _cofactor_dtype(a: VarType, factors: VarType, permutation: VarType) -> DType:
    dtype = strong_inexact(a)
    refuse_other_bits(dtype, factors, permutation)
    return dtype


def _cofactor_reference(a: np.ndarray, factors: np.ndarray, permutation: np.ndarray) -> np.ndarray:
    del factors, permutation
    out = np.empty_like(a)
    for i, j in np.ndindex(*a.shape):
        minor = np.delete(np.delete(a, i, 0), j, 1)
        out[i, j] = (-1) ** (i + j) * np.linalg.det(minor)
    return out


def _cofactor_gradient_reference(
    a: np.ndarray, factors: np.ndarray, permutation: np.ndarray, *, d_out: np.ndarray
) -> dict[str, Any]:
    return {"a": pulled_back(lambda x: _cofactor_reference(x, factors, permutation), a, d_out)}


@op(
    shape=_cofactor_shape,
    dtype=_cofactor_dtype,
    reference=_cofactor_reference,
    gradient_reference=_cofactor_gradient_reference,
    cases=[
        # The factors stay fixed while finite differences move the matrix: order 1, which is
        # compared with the reference alone.
        case(**FACTORED, order=1, rtol=256),
        misuse("factors must have shape (3, 3)", **{**FACTORED, "factors": (2, 2)}),
        misuse("must be what solve keeps of a", **{**FACTORED, "factors": (3, 3)}),
    ],
    costly=True,
)
def cofactor(a: Array, factors: Array, permutation: Array) -> Array:
    """Cofactors of a matrix: ``(-1)^(i + j)`` times the determinant without row i and column j.

    ``factors`` and ``permutation`` are the residuals that ``det`` and ``solve`` keep for ``a``;
    they carry no derivative. Where ``a`` is regular the result is ``det(a) inv(a)^T``. Where a
    pivot is zero it is computed from singular values; its derivative is, too, where a pivot is
    close to zero.

    Example:
        >>> import registry
        >>> import jax.numpy as jnp
        >>> a = jnp.asarray([[2.0, 1.0], [4.0, 2.0]])
        >>> _, factors, permutation = registry.get("det").revealed(a)
        >>> print(cofactor(a, factors, permutation).round(4))
        [[ 2. -4.]
         [-1.  2.]]
    """
    (matrix,) = widened(a)
    return cast_back(cofactors_of(matrix, *unpacked(matrix, factors, permutation)), a)


@cofactor.gradient
def _cofactor_gradient(a: Var, factors: Var, permutation: Var, d_out: Var) -> Grads:
    # The derivative of the cofactors is the second derivative of det, which is symmetric:
    # self-adjoint.
    return {"a": cofactor_change(a, factors, permutation, d_out)}


def _change_shape(a: Shape, factors: Shape, permutation: Shape, direction: Shape) -> Shape:
    if direction != a:
        raise ShapeError(f"direction must have shape {a}, got {direction}")
    return _cofactor_shape(a, factors, permutation)


def _change_dtype(a: VarType, factors: VarType, permutation: VarType, direction: VarType) -> DType:
    _cofactor_dtype(a, factors, permutation)
    return strong_inexact(a, direction)


def _change_reference(
    a: np.ndarray, factors: np.ndarray, permutation: np.ndarray, direction: np.ndarray
) -> np.ndarray:
    out = np.zeros_like(a)
    for i, j in np.ndindex(*a.shape):
        moved = np.zeros_like(a)
        moved[i, j] = direction[i, j]
        # Cofactors are linear in each entry, so a step of this size is exact.
        out += _cofactor_reference(a + moved, factors, permutation)
        out -= _cofactor_reference(a, factors, permutation)
    return out


def _change_gradient_reference(
    a: np.ndarray,
    factors: np.ndarray,
    permutation: np.ndarray,
    direction: np.ndarray,
    *,
    d_out: np.ndarray,
) -> dict[str, Any]:
    def change(a: np.ndarray, direction: np.ndarray) -> np.ndarray:
        return _change_reference(a, factors, permutation, direction)

    return {
        "a": pulled_back(lambda x: change(x, direction), a, d_out),
        "direction": pulled_back(lambda x: change(a, x), direction, d_out),
    }


@op(
    shape=_change_shape,
    dtype=_change_dtype,
    reference=_change_reference,
    gradient_reference=_change_gradient_reference,
    native=False,  # JAX does not differentiate the decomposition of singular matrices
    cases=[
        # As in cofactor: order 1.
        case(**FACTORED, direction=(3, 3), order=1, rtol=256),
        misuse("direction must have shape (3, 3), got (3,)", **FACTORED, direction=(3,)),
    ],
    costly=True,
)
def cofactor_change(a: Array, factors: Array, permutation: Array, direction: Array) -> Array:
    """Directional derivative of the cofactors of ``a``.

    With the cofactors ``M`` and the direction ``D`` it is ``(<M, D> M - M D^T M) / det(a)``. Where
    the smallest pivot is negligible relative to the largest, it is computed from singular values
    without a division. ``factors`` and ``permutation`` are as in ``cofactor``.

    Example:
        >>> import registry
        >>> import jax.numpy as jnp
        >>> a = jnp.zeros((2, 2))
        >>> _, factors, permutation = registry.get("det").revealed(a)
        >>> direction = jnp.asarray([[1.0, 2.0], [3.0, 4.0]])
        >>> print(cofactor_change(a, factors, permutation, direction).round(4))
        [[ 4. -3.]
         [-2.  1.]]
    """
    dtype = jnp.result_type(a, direction)
    matrix, along = widened(a.astype(dtype), direction.astype(dtype))
    lu, permutation = unpacked(widened(a)[0], factors, permutation)
    return change_of_cofactors(matrix, lu.astype(matrix.dtype), permutation, along).astype(dtype)


@cofactor_change.gradient
def _cofactor_change_gradient(
    a: Var, factors: Var, permutation: Var, direction: Var, out: Var, d_out: Var
) -> Grads:
    # It is self-adjoint in the direction. With c = <M, D> M - M D^T M, the derivative of <d, c> by
    # M is w = <M, d> D + <M, D> d - d M^T D - D M^T d, and M changes as cofactors do; the
    # derivative of 1 / det by A is -M / det^2.
    def by_a() -> Var | None:
        cofactors, d, along = cofactor(a, factors, permutation), d_out, direction
        middle = swapped(cofactors)
        over = _overall(det(a))
        slope = _inner(cofactors, d) * along + _inner(cofactors, along) * d
        slope = slope - d @ middle @ along - along @ middle @ d
        moved = cofactor_change(a, factors, permutation, slope)
        gradient: Var = cast((moved - _inner(d, out) * cofactors) / over, dtype=a.dtype)
        return gradient

    return {
        "a": by_a,
        "direction": lambda: cast(
            cofactor_change(a, factors, permutation, d_out), dtype=direction.dtype
        ),
    }


def _inner(x: Var, y: Var) -> Any:
    """The sum of the products of the entries of two matrices."""
    return _overall(sum_over(x * y, axis=(-2, -1)))


# slogdet ---------------------------------------------------------------------------------------


def _slogdet_shape(a: Shape) -> tuple[Shape, ...]:
    refuse_oblong(a=a)
    return a[:-2], a[:-2], a, a[:-1]


def _slogdet_dtype(a: VarType) -> list[DType]:
    dtype = strong_inexact(a)
    return [dtype, part_of(dtype), bits_dtype(dtype), np.dtype(np.int32)]


@op(
    shape=_slogdet_shape,
    dtype=_slogdet_dtype,
    reference=np.linalg.slogdet,
    outputs=("sign", "logabsdet", "factors", "permutation"),
    hidden=("factors", "permutation"),
    aliases=["linalg_slogdet"],
    cases=[
        case(a=invertible(3, 3), rtol=256),
        case(a=invertible(2, 2, 2), order=2, rtol=256),
        case(a=(1, 1)),
        case(a=invertible(0, 2, 2)),
        workload(a=invertible(256, 256)),
        *_REFUSED,
    ],
    costly=True,
)
def slogdet(a: Array) -> tuple[Array, Array, Array, Array]:
    """Sign and log-absolute value of the determinant: ``det(a) = sign * exp(logabsdet)``.

    The result neither overflows nor underflows. The logarithm is real; the sign of a complex
    determinant has absolute value one. For a singular matrix the sign is zero, the logarithm minus
    infinity, and the gradient not finite. Half precision is computed in single precision.

    Example:
        >>> import jax.numpy as jnp
        >>> slogdet(jnp.asarray([[0.0, 1.0], [1.0, 0.0]]))
        (Array(-1., dtype=float32), Array(0., dtype=float32))
    """
    (matrix,) = widened(a)
    lu, permutation = factored(matrix)
    sign = _phase(matrix, lu, permutation)
    logarithm = _logarithm(matrix, lu, permutation)
    return cast_back(sign, a), real_back(logarithm, a), packed(lu), permutation


@slogdet.gradient
def _slogdet_gradient(
    a: Var, sign: Var, factors: Var, permutation: Var, d_sign: Var | None, d_logabsdet: Var
) -> Grads:
    # With t = <A^-T, dA>, d log |det A| = Re t and d sign = i Im(t) sign, which is zero for real
    # matrices. Re(u i Im(t)) = Re(i Im(u) t).
    factor = d_logabsdet
    if d_sign is not None and is_complex(a.dtype):
        factor = d_logabsdet + imaginary(d_sign * sign)
    entries = broadcast_to(expand_dims(factor, axis=-1), shape=a.shape[:-1])
    scaled = diag_embed(entries)
    return {"a": factored_solve(a, scaled, factors, permutation, transpose=True)}


@jax.custom_jvp
def _phase(a: Array, lu: Array, permutation: Array) -> Array:
    """The determinant divided by its absolute value."""
    del a
    return parity(permutation, lu.dtype) * jnp.prod(jnp.sign(pivots_of(lu)), axis=-1)


@_phase.defjvp
def _phase_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    sign = _phase(*primals)
    if not jnp.iscomplexobj(sign):
        return sign, jnp.zeros_like(sign)
    return sign, 1j * jnp.imag(_relative_change(primals, tangents)) * sign


def _relative_change(primals: Any, tangents: Any) -> Array:
    """The tangent of the determinant divided by the determinant."""
    a, lu, permutation = primals
    whole = solved(a, tangents[0], (lu, permutation), transpose=False)
    return jnp.trace(whole, axis1=-2, axis2=-1)


@jax.custom_jvp
def _logarithm(a: Array, lu: Array, permutation: Array) -> Array:
    """The logarithm of the determinant's absolute value."""
    del a, permutation
    return jnp.sum(jnp.log(jnp.abs(pivots_of(lu))), axis=-1)


@_logarithm.defjvp
def _logarithm_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    return _logarithm(*primals), jnp.real(_relative_change(primals, tangents))


# sumlogdiag ------------------------------------------------------------------------------------


def _sumlogdiag_shape(a: Shape) -> Shape:
    refuse_oblong(a=a)
    return a[:-2]


@op(
    shape=_sumlogdiag_shape,
    dtype=strong_inexact,
    reference=lambda a: np.log(np.diagonal(a, axis1=-2, axis2=-1)).sum(-1),
    aliases=["linalg_sumlogdiag"],
    cases=[
        case(a=definite(3, 3)),
        case(a=definite(2, 2, 2), order=2),
        case(a=(0, 0)),
        workload(a=definite(256, 256)),
        case(a=np.array([[-1 + 0.5j, 9.0], [7j, -2 + 1j]]), order=2),
        *_REFUSED,
    ],
)
def sumlogdiag(a: Array) -> Array:
    """Sum of the logarithms of the diagonal: half the ``log det`` of a matrix with factor ``a``.

    Off-diagonal entries are not read. For complex entries the principal logarithms are added, so
    the imaginary part of the sum may exceed pi. Half precision is computed in single precision.

    Example:
        >>> import jax.numpy as jnp
        >>> sumlogdiag(jnp.asarray([[1.0, 0.0], [5.0, 1.0]]))
        Array(0., dtype=float32)
    """
    (matrix,) = widened(a)
    return cast_back(jnp.sum(jnp.log(pivots_of(matrix)), axis=-1), a)


@sumlogdiag.gradient
def _sumlogdiag_gradient(a: Var, d_out: Var) -> Grads:
    return {"a": diag_embed(expand_dims(d_out, axis=-1) / diagonal(a))}
