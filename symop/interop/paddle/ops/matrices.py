"""Products of matrices."""

import math
from typing import Any

import symop as so
from symop.interop.paddle.operators import operator


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
