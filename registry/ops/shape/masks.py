"""Parts of matrices: bands and diagonals."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, integers, misuse
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.matrices import refuse_flat, refuse_oblong
from registry.ops.shape.diagonals import banded, diag_embed, on_diagonal
from registry.shapes import promote, require_held
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var

# band_part -------------------------------------------------------------------------------------


def _matrix(x: Shape) -> Shape:
    refuse_flat(x=x)
    return x


def _strong(x: VarType) -> DType:
    return promote(x)[0]


def _band_part_reference(x: np.ndarray, *, lower: int | None, upper: int | None) -> np.ndarray:
    out = np.zeros_like(x)
    for i, j in np.ndindex(*x.shape[-2:]):
        if (lower is None or i - j <= lower) and (upper is None or j - i <= upper):
            out[..., i, j] = x[..., i, j]
    return out


@op(
    shape=_matrix,
    dtype=_strong,
    reference=_band_part_reference,
    cases=[
        case(x=(3, 4), lower=1, upper=0),
        case(x=(4, 3), upper=-1),
        case(x=(2, 3, 3), lower=0),
        case(x=(0, 2)),
        case(x=integers(3, 3, low=1, high=9), lower=0, upper=1),
        misuse("x must be a matrix or a stack of them, got shape (3,)", x=(3,)),
    ],
)
def band_part(x: Array, *, lower: int | None = None, upper: int | None = None) -> Array:
    """Keeps the entries of matrices within a band of diagonals and sets the others to zero.

    The band is where ``i - j <= lower`` and ``j - i <= upper``; None sets no bound. So ``upper=0``
    gives the lower triangle, ``upper=-1`` the lower triangle without the diagonal, and zero for
    both the diagonal.

    Example:
        >>> import jax.numpy as jnp
        >>> band_part(jnp.asarray([[1, 2], [3, 4]]), upper=0)
        Array([[1, 0],
               [3, 4]], dtype=int32)
    """
    x = jnp.asarray(x)
    return lax.convert_element_type(banded(x, lower, upper), x.dtype)


@band_part.gradient
def _band_part_gradient(d_out: Var, *, lower: int | None, upper: int | None) -> Grads:
    return {"x": band_part(d_out, lower=lower, upper=upper)}


# fill_diagonal ---------------------------------------------------------------------------------


def _square(x: Shape) -> Shape:
    refuse_oblong(x=x)
    return x


def _fill_diagonal_reference(x: np.ndarray, *, value: float) -> np.ndarray:
    out = x.copy()
    out[..., np.arange(x.shape[-1]), np.arange(x.shape[-1])] = value
    return out


def _fill_diagonal_dtype(x: VarType, *, value: float) -> DType:
    require_held("value", value, x.dtype)
    return x.dtype


@op(
    shape=_square,
    dtype=_fill_diagonal_dtype,
    reference=_fill_diagonal_reference,
    cases=[
        case(x=(3, 3), value=0.5),
        case(x=(2, 2, 2)),
        case(x=(0, 0), value=2),
        misuse("x must have as many rows as columns, got shape (3, 2)", x=(3, 2)),
        misuse("value must be of dtype int32, got 0.5", x=integers(2, 2, high=9), value=0.5),
    ],
)
def fill_diagonal(x: Array, *, value: float = 0.0) -> Array:
    """Fills the diagonals of square matrices with one number: ``out[i, i] = value``.

    The other entries and the dtype are those of ``x``.

    Example:
        >>> import jax.numpy as jnp
        >>> fill_diagonal(jnp.ones((2, 2)), value=5)
        Array([[5., 1.],
               [1., 5.]], dtype=float32)
    """
    x = jnp.asarray(x)
    return jnp.where(on_diagonal(x.shape), jnp.asarray(value).astype(x.dtype), x)


@fill_diagonal.gradient
def _fill_diagonal_gradient(d_out: Var) -> Grads:
    return {"x": fill_diagonal(d_out, value=0.0)}


# Compositions ----------------------------------------------------------------------------------


def triangle(x: Var, *, lower: bool, strict: bool = False) -> Any:
    """The lower or upper triangles of the matrices ``x``, with or without their diagonals."""
    bound = -int(strict)
    return band_part(x, upper=bound) if lower else band_part(x, lower=bound)


def diagonal_matrix(entries: Var) -> Any:
    """Square matrices with the vectors ``entries`` on their diagonals and zeros elsewhere."""
    return diag_embed(entries)
