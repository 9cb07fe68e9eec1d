"""Products of matrices."""

from typing import Any, Literal

import symop as so
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.partial_shapes import Shapes, enter, merged


def _dot_shapes(given: Shapes, found: Shapes, transpose_a: bool, transpose_b: bool) -> None:
    lhs, rhs = given
    if not lhs or not rhs:
        return
    kept = (*(lhs[1:] if transpose_a else lhs[:-1]), *(rhs[:-1] if transpose_b else rhs[1:]))
    enter(found, 0, kept or (1,))


def _batch_dot_shapes(given: Shapes, found: Shapes, transpose_a: bool, transpose_b: bool) -> None:
    lhs, rhs = given
    if lhs is None or rhs is None or not len(lhs) == len(rhs) >= 3 or not (lhs[-1] and rhs[-2]):
        return
    batch = merged(lhs[:-2], rhs[:-2])
    assert batch is not None
    enter(found, 0, (*batch, lhs[-1 if transpose_a else -2], rhs[-2 if transpose_b else -1]))


@operator("dot", "_sparse_dot", shapes=_dot_shapes)
def dot(
    lhs: Any,
    rhs: Any,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    forward_stype: Literal["default", "row_sparse", "csr"] | None = None,
) -> Any:
    """Contracts the last axis of ``lhs`` with the first of ``rhs``; transposition swaps ends."""
    del forward_stype  # the storage type of the result
    axes = ((0 if transpose_a else -1,), (-1 if transpose_b else 0,))
    product = so.tensordot(lhs, rhs, axes=axes)
    return product if product.shape else so.reshape(product, shape=(1,))


@operator("batch_dot", ignored=("forward_stype",), shapes=_batch_dot_shapes)
def batch_dot(lhs: Any, rhs: Any, *, transpose_a: bool = False, transpose_b: bool = False) -> Any:
    """Batched matrix product."""
    return so.batch_dot(lhs, rhs, transpose_a=transpose_a, transpose_b=transpose_b)


@operator("khatri_rao")
def khatri_rao(*args: Any, num_args: int) -> Any:
    """The column-wise Kronecker product."""
    return so.khatri_rao(*args[:num_args])
