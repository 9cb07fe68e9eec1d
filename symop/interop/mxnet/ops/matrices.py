"""Products of matrices."""

from typing import Any, Literal

import symop as so
from symop.interop.mxnet.operators import operator


@operator("dot", "_sparse_dot")
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


@operator("batch_dot", ignored=("forward_stype",))
def batch_dot(lhs: Any, rhs: Any, *, transpose_a: bool = False, transpose_b: bool = False) -> Any:
    """Batched matrix product."""
    return so.batch_dot(lhs, rhs, transpose_a=transpose_a, transpose_b=transpose_b)


@operator("khatri_rao")
def khatri_rao(*args: Any, num_args: int) -> Any:
    """The column-wise Kronecker product."""
    return so.khatri_rao(*args[:num_args])
