"""Tensors that are made of attributes."""

from typing import Any

import symop as so
from symop.interop.paddle.arrays import is_tensor_array
from symop.interop.paddle.control import zeros_like as zeros_of
from symop.interop.paddle.operators import Values, operator
from symop.interop.paddle.ops.dtypes import dtype_of
from symop.interop.paddle.values import numbers


@operator(no_gradient="ValueTensor ShapeTensor ShapeTensorList", ignored="place_type")
def fill_constant(
    ValueTensor: Any = None,
    ShapeTensor: Any = None,
    ShapeTensorList: Values = None,  # type: ignore[assignment]
    *,
    shape: list[int] = [],  # noqa: B006
    dtype: int = 5,
    value: float = 0.0,
    str_value: str = "",
) -> Any:
    if ShapeTensor is not None:
        shape = numbers("fill_constant: ShapeTensor", ShapeTensor)
    elif ShapeTensorList:
        shape = [numbers("fill_constant: ShapeTensorList", one)[0] for one in ShapeTensorList]
    kind = dtype_of(dtype)
    if ValueTensor is not None:
        return so.broadcast_to(so.cast(so.reshape(ValueTensor, shape=()), dtype=kind), shape=tuple(shape))
    number = float(str_value) if str_value else value
    return so.full(shape=tuple(shape), fill_value=kind.type(number).item(), dtype=kind)


@operator("fill_zeros_like", "zeros_like")
def fill_zeros_like(X: Any) -> Any:
    return zeros_of(X) if is_tensor_array(X) else so.zeros_like(X)


@operator("fill_any_like")
def fill_any_like(X: Any, *, value: float = 0.0, dtype: int = -1) -> Any:
    kind = X.dtype if dtype == -1 else dtype_of(dtype)
    return so.full(shape=X.shape, fill_value=value, dtype=kind)
