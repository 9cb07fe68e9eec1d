"""Shape rules, dtype rules and wider arithmetic shared by operators on stacks of matrices."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import fixed
from registry.errors import ShapeError
from registry.operator.signature import Array
from registry.ops.core.complex_parts import conj
from registry.ops.core.reshaping import swapped
from registry.shapes import at_least_single
from registry.types import DType, Shape, is_complex
from registry.var import Var


def refuse_flat(**shapes: Shape) -> None:
    """Raises if an input has fewer than two axes."""
    for slot, shape in shapes.items():
        if len(shape) < 2:
            raise ShapeError(f"{slot} must be a matrix or a stack of them, got shape {shape}")


def refuse_oblong(**shapes: Shape) -> None:
    """Raises if an input does not consist of square matrices."""
    refuse_flat(**shapes)
    for slot, shape in shapes.items():
        if shape[-1] != shape[-2]:
            raise ShapeError(f"{slot} must have as many rows as columns, got shape {shape}")


def square_matrix(a: Shape) -> Shape:
    """The shape ``a``, which must be that of square matrices."""
    refuse_oblong(a=a)
    return a


def common_batch(a: Shape, b: Shape) -> Shape:
    """The batch axes of two stacks of matrices, broadcast together."""
    try:
        return np.broadcast_shapes(a[:-2], b[:-2])
    except ValueError:
        raise ShapeError(
            f"the batch axes of a and b must broadcast together, got {a} and {b}"
        ) from None


def widened(*arrays: Array) -> list[Array]:
    """The arrays in a common dtype that is wide enough for factorization and not weak."""
    dtype = at_least_single(jnp.result_type(*arrays))
    return [lax.convert_element_type(one, dtype) for one in arrays]


def cast_back(result: Array, *arrays: Array) -> Array:
    """A result computed from ``widened`` arrays, in the dtype of the original arrays."""
    return lax.convert_element_type(result, jnp.result_type(*arrays))


def part_of(dtype: DType) -> DType:
    """The dtype of the parts of complex numbers; for a real dtype itself."""
    return np.dtype(f"f{dtype.itemsize // 2}") if is_complex(dtype) else dtype


def real_back(numbers: Array, x: Array) -> Array:
    """Real numbers computed from a ``widened`` array, in the real dtype of the original array."""
    return lax.convert_element_type(numbers, part_of(np.dtype(jnp.result_type(x))))


# Adjoints ---------------------------------------------------------------------------------------


def adjoint(x: Var) -> Any:
    """The conjugate transposes of the matrices ``x``; the transposes if they are real."""
    return conj(swapped(x))


def hermitian(x: Var) -> Any:
    """The Hermitian part ``(x + x^H) / 2`` of square matrices; of real ones the symmetric part."""
    return (x + adjoint(x)) * 0.5


def imaginary(x: Var) -> Any:
    """``x`` with its real part set to zero: ``i Im(x)``."""
    return (x - conj(x)) * 0.5


def hermitian_reference(x: np.ndarray) -> np.ndarray:
    """``hermitian`` for NumPy arrays."""
    return np.asarray((x + x.swapaxes(-1, -2).conj()) / 2)


def adjoint_kernel(x: Array) -> Array:
    """``adjoint`` for JAX arrays."""
    return jnp.conj(jnp.swapaxes(x, -1, -2))


# Orthonormal bases ------------------------------------------------------------------------------


def completed(q: Array) -> Array:
    """A square unitary matrix whose first columns are the orthonormal columns ``q``."""
    return jnp.concatenate([q, _complement(q)], axis=-1)


@jax.custom_jvp
def _complement(q: Array) -> Array:
    """Orthonormal columns orthogonal to those of ``q``."""
    *batch, rows, columns = q.shape
    if columns == 0:
        return jnp.broadcast_to(jnp.eye(rows, dtype=q.dtype), (*batch, rows, rows))
    return jnp.linalg.qr(q, mode="complete")[0][..., columns:]


@_complement.defjvp
def _complement_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    # Q^H Q2 stays zero, so Q^H dQ2 = -dQ^H Q2. That is all of their derivative: the component of
    # dQ2 among the columns of Q2 depends on the choice of the basis.
    (q,), (moved,) = primals, tangents
    others = _complement(q)
    return others, -(q @ (adjoint_kernel(moved) @ others))


# Samples ----------------------------------------------------------------------------------------

_HERMITIAN = np.asarray(
    [
        [3.0, 0.5 - 1j, 0.75 + 0.25j],
        [0.5 + 1j, 2.0, -0.25 + 0.5j],
        [0.75 - 0.25j, -0.25 - 0.5j, 5.0],
    ]
)


def _hermitian_sample(dtype: DType) -> np.ndarray:
    return (_HERMITIAN if is_complex(dtype) else _HERMITIAN.real).astype(dtype)


HERMITIAN = fixed("a Hermitian matrix", _hermitian_sample)
"""A positive definite matrix with distinct eigenvalues; for a real dtype its real part."""
