"""Linear systems, inverses and powers of square matrices."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from registry.cases import case, invertible, misuse, workload
from registry.differences import pulled_back
from registry.errors import ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import unbroadcast
from registry.ops.core.matrices import (
    cast_back,
    common_batch,
    refuse_flat,
    refuse_oblong,
    square_matrix,
    widened,
)
from registry.ops.core.reshaping import expand_dims, reshape, swapped
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
from registry.shapes import strong_inexact
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var

# solve -----------------------------------------------------------------------------------------


def _solve_shape(a: Shape, b: Shape) -> tuple[Shape, Shape, Shape]:
    return _solution_shape(a, b), a, a[:-1]


def _solution_shape(a: Shape, b: Shape) -> Shape:
    refuse_oblong(a=a)
    columns = (*b, 1) if len(b) == 1 else b
    refuse_flat(b=columns)
    if columns[-2] != a[-1]:
        raise ShapeError(f"b must have as many rows as a, got {b} and {a}")
    batch = common_batch(a, columns)
    return (*batch, *b[-1:]) if len(b) == 1 else (*batch, *b[-2:])


def _solve_dtype(a: VarType, b: VarType) -> list[DType]:
    dtype = strong_inexact(a, b)
    return [dtype, bits_dtype(dtype), np.dtype(np.int32)]


@op(
    shape=_solve_shape,
    dtype=_solve_dtype,
    reference=np.linalg.solve,
    outputs=("out", "factors", "permutation"),
    hidden=("factors", "permutation"),
    cases=[
        case(a=invertible(3, 3), b=(3, 2), rtol=512),
        case(a=invertible(3, 3), b=(3,), rtol=512),
        case(a=invertible(2, 2, 2), b=(2,), order=2, rtol=512),
        case(a=invertible(2, 1, 2, 2), b=(3, 2, 1), order=2, rtol=512),
        case(a=invertible(0, 2, 2), b=(2, 2)),
        workload(a=invertible(256, 256), b=(256, 256)),
        misuse("a must have as many rows as columns, got shape (3, 2)", a=(3, 2), b=(3,)),
        misuse("b must have as many rows as a, got (2,) and (3, 3)", a=(3, 3), b=(2,)),
        misuse("b must be a matrix or a stack of them, got shape ()", a=(3, 3), b=()),
        misuse("the batch axes of a and b must broadcast", a=(2, 3, 3), b=(4, 3, 3)),
        misuse("the inputs must be floating", a=np.eye(2, dtype=int), b=np.eye(2, dtype=int)),
    ],
    costly=True,
)
def solve(a: Array, b: Array) -> tuple[Array, Array, Array]:
    """Solution of a linear system: ``a @ out = b``.

    ``a`` is a square matrix or a stack of them. ``b`` is a vector if it has one axis, otherwise a
    matrix or a stack; batch axes broadcast. Where ``a`` is singular the result is not finite. The
    solution uses LU decomposition with partial pivoting, which the gradient reuses; half precision
    is computed in single precision.

    Example:
        >>> import jax.numpy as jnp
        >>> solve(jnp.asarray([[2.0, 0.0], [0.0, 4.0]]), jnp.asarray([2.0, 2.0]))
        Array([1. , 0.5], dtype=float32)
    """
    matrix, right = widened(a, b)
    factors = factored(matrix)
    columns = right[:, None] if right.ndim == 1 else right
    out = solved(matrix, columns, factors, transpose=False)
    out = out[..., 0] if right.ndim == 1 else out
    return cast_back(out, a, b), packed(factors[0]), factors[1]


@solve.gradient
def _solve_gradient(a: Var, b: Var, out: Var, factors: Var, permutation: Var, d_out: Var) -> Grads:
    # A X = B: dB = A^-T D and dA = -dB X^T
    d, x = (_columns(one, b) for one in (d_out, out))
    d_columns = factored_solve(a, d, factors, permutation, transpose=True)
    return {
        "a": lambda: unbroadcast(-(d_columns @ swapped(x)), a),
        "b": unbroadcast(reshape(d_columns, shape=d_out.shape), b),
    }


def _columns(x: Var, b: Var) -> Any:
    """``x`` as matrices of one column if the right-hand side ``b`` is a vector."""
    return expand_dims(x, axis=-1) if b.ndim == 1 else x


# factored_solve --------------------------------------------------------------------------------


def _factored_solve_shape(a: Shape, b: Shape, factors: Shape, permutation: Shape) -> Shape:
    refuse_flat(b=b)
    refuse_other_factors(a, factors, permutation)
    return _solution_shape(a, b)


def _factored_solve_dtype(a: VarType, b: VarType, factors: VarType, permutation: VarType) -> DType:
    dtype = strong_inexact(a, b)
    refuse_other_bits(dtype, factors, permutation)
    return dtype


def _factored_solve_reference(
    a: np.ndarray, b: np.ndarray, factors: np.ndarray, permutation: np.ndarray, *, transpose: bool
) -> np.ndarray:
    del factors, permutation
    return np.asarray(np.linalg.solve(a.swapaxes(-1, -2) if transpose else a, b))


def _factored_solve_gradient_reference(
    a: np.ndarray,
    b: np.ndarray,
    factors: np.ndarray,
    permutation: np.ndarray,
    *,
    d_out: np.ndarray,
    transpose: bool,
) -> dict[str, Any]:
    def solution(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return _factored_solve_reference(a, b, factors, permutation, transpose=transpose)

    return {
        "a": pulled_back(lambda x: solution(x, b), a, d_out),
        "b": pulled_back(lambda x: solution(a, x), b, d_out),
    }


@op(
    shape=_factored_solve_shape,
    dtype=_factored_solve_dtype,
    reference=_factored_solve_reference,
    gradient_reference=_factored_solve_gradient_reference,
    cases=[
        # The factors stay fixed while finite differences move the matrix: order 1, which is
        # compared with the reference alone.
        case(**FACTORED, b=(3, 2), transpose=True, order=1, rtol=512),
        case(**FACTORED, b=(2, 3, 1), order=1, rtol=512),
        case(**FACTORED, b=(3, 0), order=1),
        misuse("factors must have shape (3, 3)", **{**FACTORED, "factors": (2, 2)}, b=(3, 1)),
        misuse("must be what solve keeps of a", **{**FACTORED, "factors": (3, 3)}, b=(3, 1)),
    ],
    costly=True,
)
def factored_solve(
    a: Array, b: Array, factors: Array, permutation: Array, *, transpose: bool = False
) -> Array:
    """Solution of ``a @ out = b`` or ``a^T @ out = b`` with the LU factors that ``solve`` keeps.

    ``b`` is a matrix or a stack of them.
    ``factors`` holds the bits of the LU decomposition of ``a`` as integers: it carries no
    derivative, since it is determined by ``a``. Complex matrices are factored again.

    Example:
        >>> import registry
        >>> import jax.numpy as jnp
        >>> a = jnp.asarray([[2.0, 0.0], [1.0, 4.0]])
        >>> out, factors, permutation = registry.get("solve").revealed(a, jnp.ones(2))
        >>> b = jnp.asarray([[3.0], [4.0]])
        >>> factored_solve(a, b, factors, permutation, transpose=True)
        Array([[1.],
               [1.]], dtype=float32)
    """
    matrix, right = widened(a, b)
    known = unpacked(matrix, factors, permutation)
    return cast_back(solved(matrix, right, known, transpose=transpose), a, b)


@factored_solve.gradient
def _factored_solve_gradient(
    a: Var,
    b: Var,
    factors: Var,
    permutation: Var,
    out: Var,
    d_out: Var,
    *,
    transpose: bool,
) -> Grads:
    # op(A) X = B: dB = op(A)^-T D and d op(A) = -dB X^T, whose transpose is -X dB^T.
    d_b = factored_solve(a, d_out, factors, permutation, transpose=not transpose)
    left, right = (out, d_b) if transpose else (d_b, out)
    return {"a": lambda: unbroadcast(-(left @ swapped(right)), a), "b": unbroadcast(d_b, b)}


# inv -------------------------------------------------------------------------------------------


@op(
    shape=square_matrix,
    dtype=strong_inexact,
    reference=np.linalg.inv,
    aliases=["inverse", "linalg_inverse"],
    cases=[
        case(a=invertible(3, 3), rtol=512),
        case(a=invertible(2, 2, 2), order=2, rtol=512),
        case(a=invertible(1, 1)),
        case(a=invertible(2, 0, 0)),
        workload(a=invertible(256, 256)),
        misuse("a must have as many rows as columns, got shape (3, 2)", a=(3, 2)),
        misuse("a must be a matrix or a stack of them, got shape (3,)", a=(3,)),
        misuse("the inputs must be floating, got int", a=np.eye(2, dtype=int)),
    ],
    costly=True,
)
def inv(a: Array) -> Array:
    """Inverse of a square matrix, or of each matrix of a stack: ``a @ out`` is the identity.

    Where ``a`` is singular the result is not finite. Half precision is computed in single
    precision. To solve a system, ``solve`` is faster and more accurate.

    Example:
        >>> import jax.numpy as jnp
        >>> inv(jnp.asarray([[2.0, 0.0], [0.0, 4.0]]))
        Array([[0.5 , 0.  ],
               [0.  , 0.25]], dtype=float32)
    """
    return cast_back(jnp.linalg.inv(widened(a)[0]), a)


@inv.gradient
def _inv_gradient(out: Var, d_out: Var) -> Grads:
    # d A^-1 = -A^-1 dA A^-1
    transposed = swapped(out)
    return {"a": -(transposed @ d_out @ transposed)}


# matrix_power ----------------------------------------------------------------------------------


def _matrix_power_reference(a: np.ndarray, *, n: int) -> np.ndarray:
    return np.asarray(np.linalg.matrix_power(a, n))


@op(
    shape=square_matrix,
    dtype=strong_inexact,
    reference=_matrix_power_reference,
    cases=[
        case(a=(3, 3), n=3, rtol=512),
        case(a=invertible(2, 2), n=-2, order=2, rtol=512),
        case(a=(2, 2, 2), n=6, order=2, rtol=2048),
        case(a=(2, 2), n=0),
        case(a=(0, 2, 2), n=2),
        workload(a=invertible(256, 256), n=5),
        misuse("a must have as many rows as columns, got shape (3, 2)", a=(3, 2), n=2),
        misuse("attribute 'n' must be an int", a=(2, 2), n=0.5),
        misuse("the inputs must be floating, got int", a=np.eye(2, dtype=int), n=2),
    ],
    costly=True,
)
def matrix_power(a: Array, *, n: int) -> Array:
    """Integer power of a square matrix: ``out = a @ a @ ... @ a`` with ``n`` factors.

    The power zero is the identity; a negative power is a power of the inverse. The gradient repeats
    the squarings in reverse, so it also needs ``O(log n)`` products. Half precision is computed in
    single precision.

    Example:
        >>> import jax.numpy as jnp
        >>> matrix_power(jnp.asarray([[1.0, 1.0], [0.0, 1.0]]), n=5)
        Array([[1., 5.],
               [0., 1.]], dtype=float32)
    """
    return cast_back(jnp.linalg.matrix_power(widened(a)[0], n), a)


@matrix_power.gradient
def _matrix_power_gradient(a: Var, d_out: Var, *, n: int) -> Grads:
    if n == 0:
        return {"a": None}
    if n > 0:
        return {"a": _power_cotangent(a, n, d_out)}
    inverse = inv(a)
    transposed = swapped(inverse)
    return {"a": -(transposed @ _power_cotangent(inverse, -n, d_out) @ transposed)}


def _power_cotangent(a: Var, n: int, d: Var) -> Any:
    """The cotangent of ``a``, given that of its ``n``-th power, ``d``."""
    if n == 1:
        return d
    if n % 2:  # A^n = A^(n-1) A
        others = swapped(_power(a, n - 1)) @ d
        return others + _power_cotangent(a, n - 1, d @ swapped(a))
    half = swapped(_power(a, n // 2))  # A^n = A^(n/2) A^(n/2)
    return _power_cotangent(a, n // 2, d @ half + half @ d)


def _power(a: Var, n: int) -> Any:
    """The power as products that a graph shares with other powers."""
    if n == 1:
        return a
    return _power(a, n - 1) @ a if n % 2 else _power(a, n // 2) @ _power(a, n // 2)
