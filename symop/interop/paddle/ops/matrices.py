"""Products of matrices."""

import math
from typing import Any

import symop as so
from symop.interop.paddle.operators import operator
from symop.interop.paddle.ops.versions import keeps_axis, scalar


@operator()
def mul(X: Any, Y: Any, *, x_num_col_dims: int = 1, y_num_col_dims: int = 1) -> Any:
    rows, columns = X.shape[:x_num_col_dims], Y.shape[y_num_col_dims:]
    x = so.reshape(X, shape=(math.prod(rows), -1))
    y = so.reshape(Y, shape=(math.prod(Y.shape[:y_num_col_dims]), math.prod(columns)))
    return so.reshape(so.matmul(x, y), shape=(*rows, *columns))


@operator(
    ignored="head_number fused_reshape_Out fused_transpose_Out fused_reshape_X "
    "fused_transpose_X fused_reshape_Y fused_transpose_Y"
)
def matmul(
    X: Any, Y: Any, *, transpose_X: bool = False, transpose_Y: bool = False, alpha: float = 1.0
) -> Any:
    product = _product(X, Y, transpose_X, transpose_Y)
    # The product of two vectors has shape (1,) in Paddle 1.8.
    product = so.reshape(product, shape=(1,)) if not product.ndim else product
    return product if alpha == 1 else so.multiply(product, alpha)


@operator(
    ignored="fused_reshape_Out fused_transpose_Out fused_reshape_X fused_transpose_X "
    "fused_reshape_Y fused_transpose_Y"
)
def matmul_v2(X: Any, Y: Any, *, trans_x: bool = False, trans_y: bool = False) -> Any:
    return _product(X, Y, trans_x, trans_y)


def _product(x: Any, y: Any, transpose_x: bool, transpose_y: bool) -> Any:
    x = so.swapaxes(x, -1, -2) if transpose_x and x.ndim > 1 else x
    y = so.swapaxes(y, -1, -2) if transpose_y and y.ndim > 1 else y
    return so.matmul(x, y)


@operator()
def bmm(X: Any, Y: Any) -> Any:
    return so.matmul(X, Y)


@operator()
def mv(X: Any, Vec: Any) -> Any:
    return so.matmul(X, Vec)


@operator()
def dot(X: Any, Y: Any, *, call: Any) -> Any:
    return scalar(call, so.sum(X * Y, axis=-1, keepdims=X.ndim > 1 and keeps_axis(call)))


@operator()
def addmm(
    Input: Any,
    X: Any,
    Y: Any,
    *,
    Alpha: float = 1.0,
    Beta: float = 1.0,
) -> Any:
    return Beta * Input + Alpha * so.matmul(X, Y)


@operator()
def kron(X: Any, Y: Any) -> Any:
    return so.kron(X, Y)


@operator()
def cross(X: Any, Y: Any, *, dim: int = 9) -> Any:
    axis = next(i for i, n in enumerate(X.shape) if n == 3) if dim == 9 else dim
    return so.cross(X, Y, axis=axis)


@operator()
def bilinear_tensor_product(X: Any, Y: Any, Weight: Any, Bias: Any = None) -> Any:
    out = so.einsum("bi,kij,bj->bk", X, Weight, Y)
    return out if Bias is None else out + Bias


@operator()
def trace(
    Input: Any,
    *,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dim1: int | None = None,
    dim2: int | None = None,
    call: Any,
) -> Any:
    """Sums a diagonal of two axes, which 1.8 calls ``dim1`` and ``dim2``."""
    first, second = axis1 if dim1 is None else dim1, axis2 if dim2 is None else dim2
    diagonal = so.diagonal(Input, offset=offset, axis1=first, axis2=second)
    return scalar(call, so.sum(diagonal, axis=-1))


@operator(outputs="Output")
def inverse(Input: Any) -> Any:
    return so.inverse(Input)


@operator()
def cholesky(X: Any, *, upper: bool = False) -> Any:
    lower = so.cholesky(X)
    return so.swapaxes(lower, -1, -2) if upper else lower


@operator()
def dist(X: Any, Y: Any, *, p: float = 2.0, call: Any) -> Any:
    return scalar(call, so.vector_norm(X - Y, ord=p))
