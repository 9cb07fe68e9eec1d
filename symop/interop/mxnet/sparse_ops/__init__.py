"""Rules for sparse arrays: each computes an operator from arrays of some storage types.

Importing the package fills ``storage.RULES``. A rule takes arrays of ``mx.nd`` and the attributes
of the operator, and returns arrays.
"""

from symop.interop.mxnet.sparse_ops import (
    elementwise,
    indexing,
    pairs,
    products,
    reductions,
    updates,
)

__all__ = ["elementwise", "indexing", "pairs", "products", "reductions", "updates"]
