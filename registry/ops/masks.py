"""Parts of matrices: triangles and diagonals, taken by masks that broadcast over stacks."""

from typing import Annotated

import jax.numpy as jnp
import numpy as np

from registry.attributes import Check
from registry.cases import case, misuse
from registry.ops.broadcasting import cast
from registry.ops.comparison import not_equal
from registry.ops.elementwise import where
from registry.ops.shape import expand_dims, reshape
from registry.ops.slicing import slice_
from registry.shapes import default_float
from registry.signature import Array
from registry.table import op
from registry.types import DType, Shape
from registry.var import Var, emitter_of

Length = Annotated[int, Check("not be negative", lambda length: length >= 0)]


def _tri_shape(*, n: int, m: int | None) -> Shape:
    return n, n if m is None else m


def _tri_reference(*, n: int, m: int | None, k: int, dtype: DType | None) -> np.ndarray:
    return np.tri(n, m, k, dtype or default_float())


@op(
    shape=_tri_shape,
    reference=_tri_reference,
    cases=[
        case(n=3),
        case(n=2, m=4, k=1, dtype="bool"),
        case(n=3, k=-1, dtype="int32"),
        case(n=0, m=2),
        misuse("attribute 'n' must not be negative, got -1", n=-1),
    ],
)
def tri(*, n: Length, m: Length | None = None, k: int = 0, dtype: np.dtype | None = None) -> Array:
    """Ones at and below the ``k``-th diagonal of ``n`` rows and ``m`` columns, zeros above.

    Without ``m`` it is square, without ``dtype`` of the default floating one.

    Example:
        >>> tri(n=2, m=3, dtype="int32")
        Array([[1, 0, 0],
               [1, 1, 0]], dtype=int32)
    """
    return jnp.tri(n, m, k, default_float() if dtype is None else dtype)


tri.zero_gradient("it has no inputs")


def _below(x: Var, rows: int, columns: int, k: int) -> Var:
    """Where entries lie at or below the ``k``-th diagonal, as a value of the kind of ``x``."""
    mask: Var = emitter_of((x,)).emit(tri, (), (rows, columns, k, np.dtype(np.bool_)), None)
    return mask


def _diagonal(x: Var, n: int) -> Var:
    """Where entries lie on the diagonal of ``n`` rows and columns."""
    on: Var = not_equal(_below(x, n, n, 0), _below(x, n, n, -1))
    return on


def lower_part(x: Var, k: int = 0) -> Var:
    """The entries of the matrices ``x`` at and below the ``k``-th diagonal, zeros above."""
    part: Var = where(_below(x, x.shape[-2], x.shape[-1], k), x, 0.0)
    return part


def upper_part(x: Var, k: int = 0) -> Var:
    """The entries of the matrices ``x`` at and above the ``k``-th diagonal, zeros below."""
    part: Var = where(_below(x, x.shape[-2], x.shape[-1], k - 1), 0.0, x)
    return part


def triangle(x: Var, *, lower: bool, strict: bool = False) -> Var:
    """The lower or the upper triangle of the matrices ``x``, with their diagonals or without."""
    return lower_part(x, -int(strict)) if lower else upper_part(x, int(strict))


def off_diagonal(x: Var) -> Var:
    """The square matrices ``x`` with zeros on their diagonals."""
    part: Var = where(_diagonal(x, x.shape[-1]), 0.0, x)
    return part


def diagonal_matrix(entries: Var) -> Var:
    """Square matrices with the vectors ``entries`` on their diagonals and zeros elsewhere."""
    rows = expand_dims(entries, axis=-1)
    matrix: Var = where(_diagonal(entries, entries.shape[-1]), rows, 0.0)
    return matrix


def diagonal_entries(x: Var) -> Var:
    """The diagonals of the square matrices ``x``."""
    *batch, n, _ = x.shape
    in_a_row = reshape(x, shape=(*batch, n * n))
    lead = (None,) * len(batch)
    entries: Var = slice_(in_a_row, begin=(*lead, None), end=(*lead, None), step=(*lead, n + 1))
    return entries


def identity_matrix(like: Var, n: int) -> Var:
    """The identity matrix of ``n`` rows, in the dtype of ``like``."""
    matrix: Var = cast(_diagonal(like, n), dtype=like.dtype)
    return matrix
