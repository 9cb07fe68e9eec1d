"""Operators of ``mx.nd`` that read their values to check them, as a symbol's operators cannot."""

from typing import Any

import numpy as np

from symop.interop.mxnet.array_calls import function_of
from symop.interop.mxnet.arrays import NDArray
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.index_checks import require_within

_gather_nd, _potrf, _take = map(function_of, ("gather_nd", "_linalg_potrf", "take"))


def gather_nd(data: NDArray, indices: NDArray, **options: Any) -> NDArray:
    """The entries of ``data`` at columns of ``indices``; negative ones count from the end.

    Raises:
        MXNetIndexError: an index is out of bounds, which is checked when it is called.
    """
    places = indices.asnumpy()
    for axis, (row, length) in enumerate(zip(places, data.shape, strict=False)):
        require_within("gather_nd", axis, row, (-length, length))
    result: NDArray = _gather_nd(data, indices, **options)
    return result


def take(
    a: NDArray, indices: NDArray, axis: int = 0, mode: str = "clip", **options: Any
) -> NDArray:
    """Entries of ``a`` along ``axis``.

    Args:
        a: the array.
        indices: the indices, in any shape.
        axis: the axis.
        mode: the meaning of an index out of bounds: ``"clip"`` takes the nearest, ``"wrap"`` counts
            around, ``"raise"`` raises an error.
        **options: ``out``, the array to write to, and ``name``.

    Raises:
        MXNetIndexError: ``mode`` is ``"raise"`` and an index is out of bounds, which is checked
            when it is called.
    """
    if mode == "raise" and -a.ndim <= axis < a.ndim:
        require_within("take", axis, indices.asnumpy(), (0, a.shape[axis]))
    result: NDArray = _take(a, indices, axis=axis, mode=mode, **options)
    return result


def potrf(A: NDArray, **options: Any) -> NDArray:  # MXNet's name
    """Cholesky factors of matrices.

    Raises:
        MXNetError: a matrix is not positive definite, which is checked when it is called.
    """
    result: NDArray = _potrf(A, **options)
    if not np.isfinite(result.asnumpy()).all():
        raise MXNetError("potrf: the matrices must be positive definite")
    return result
