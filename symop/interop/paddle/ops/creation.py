"""Tensors that are made of attributes."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

import symop as so
from symop.interop.paddle.arrays import is_tensor_array
from symop.interop.paddle.control import zeros_like as zeros_of
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.operators import Values, operator
from symop.interop.paddle.ops.dtypes import dtype_of
from symop.interop.paddle.ops.randomness import batch_shape, shape_of
from symop.interop.paddle.values import known, numbers


@operator(no_gradient="ValueTensor ShapeTensor ShapeTensorList", ignored="place_type")
def fill_constant(
    ValueTensor: Any = None,
    ShapeTensor: Any = None,
    ShapeTensorList: Values | None = None,
    *,
    shape: Sequence[int] = (),
    dtype: int = 5,
    value: float = 0.0,
    str_value: str = "",
) -> Any:
    lengths = shape_of("fill_constant", shape, ShapeTensor, ShapeTensorList)
    kind = dtype_of(dtype)
    if ValueTensor is not None:
        one = so.cast(so.reshape(ValueTensor, shape=()), dtype=kind)
        return so.broadcast_to(one, shape=lengths)
    return _full(lengths, float(str_value) if str_value else value, kind)


def _full(shape: Sequence[int], value: float, kind: Any) -> Any:
    return so.full(shape=tuple(shape), fill_value=kind.type(value).item(), dtype=kind)


@operator(no_gradient="Input", ignored="place_type")
def fill_constant_batch_size_like(
    Input: Any,
    *,
    shape: Sequence[int],
    input_dim_idx: int = 0,
    output_dim_idx: int = 0,
    dtype: int = 5,
    value: float = 0.0,
    str_value: str = "",
) -> Any:
    lengths = batch_shape(Input, shape, input_dim_idx, output_dim_idx)
    return _full(lengths, float(str_value) if str_value else value, dtype_of(dtype))


@operator("fill_zeros_like", "zeros_like")
def fill_zeros_like(X: Any) -> Any:
    return zeros_of(X) if is_tensor_array(X) else so.zeros_like(X)


@operator()
def fill_zeros_like2(X: Any, *, dtype: int = 5) -> Any:
    return fill_any_like(X, value=0.0, dtype=dtype)


@operator()
def fill_any_like(X: Any, *, value: float = 0.0, dtype: int = -1) -> Any:
    kind = np.dtype(X.dtype) if dtype == -1 else dtype_of(dtype)
    return _full(X.shape, value, kind)


@operator()
def assign_value(
    *,
    shape: Sequence[int],
    dtype: int,
    bool_values: Sequence[int] = (),
    fp32_values: Sequence[float] = (),
    int32_values: Sequence[int] = (),
    int64_values: Sequence[int] = (),
    fp64_values: Sequence[float] = (),
    values: Sequence[Any] = (),
) -> Any:
    every = (bool_values, fp32_values, int32_values, int64_values, fp64_values, values)
    given = [one for one in every if len(one)]
    array = np.asarray(given[0] if given else [], dtype_of(dtype))
    return jnp.asarray(array.reshape(tuple(shape)))


@operator(no_gradient="Start End Step")
def range(Start: Any, End: Any, Step: Any) -> Any:
    bounds: list[Any] = [
        known(f"range: {name}", one).reshape(()).item()
        for name, one in (("Start", Start), ("End", End), ("Step", Step))
    ]
    if bounds[2] == 0:
        raise PaddleError("range: Step must not be zero, got 0")
    values: Any = np.arange(*bounds, dtype=np.dtype(Start.dtype))
    return jnp.asarray(values)


@operator(no_gradient="Start Stop Num")
def linspace(Start: Any, Stop: Any, Num: Any, *, dtype: int = 5) -> Any:
    count, kind = numbers("linspace: Num", Num)[0], dtype_of(dtype)
    start, stop = (so.cast(so.reshape(one, shape=()), dtype=kind) for one in (Start, Stop))
    if count == 1:
        return so.reshape(start, shape=(1,))
    return start + (stop - start) * jnp.linspace(0.0, 1.0, count, dtype=kind)


@operator()
def eye(*, num_rows: int, num_columns: int = -1, dtype: int = 5) -> Any:
    columns = num_rows if num_columns == -1 else num_columns
    return so.eye(num_rows, columns, dtype=dtype_of(dtype))


@operator(outputs="Out")
def diag(Diagonal: Any) -> Any:
    return so.diag(Diagonal)


@operator()
def diag_v2(X: Any, *, offset: int = 0, padding_value: float = 0.0) -> Any:
    result = so.diag(X, k=offset)
    if X.ndim != 1 or padding_value == 0:
        return result
    inside = so.eye(result.shape[0], k=offset, dtype="bool")
    return so.where(inside, result, padding_value)


@operator(outputs="Out", several="Out")
def meshgrid(X: Values) -> Any:
    lengths = [one.size for one in X]
    return [
        so.broadcast_to(
            so.reshape(one, shape=tuple(n if i == j else 1 for j, n in enumerate(lengths))),
            shape=tuple(lengths),
        )
        for i, one in enumerate(X)
    ]


@operator(no_gradient="X depth_tensor", ignored="allow_out_of_range")
def one_hot(X: Any, depth_tensor: Any = None, *, depth: int = -1, dtype: int = 5) -> Any:
    ids = so.squeeze(X, axis=-1) if X.ndim > 1 and X.shape[-1] == 1 else X
    return one_hot_v2(ids, depth_tensor, depth=depth, dtype=dtype)


@operator(no_gradient="X depth_tensor", ignored="allow_out_of_range")
def one_hot_v2(X: Any, depth_tensor: Any = None, *, depth: int = -1, dtype: int = 5) -> Any:
    count = depth if depth_tensor is None else numbers("one_hot: depth_tensor", depth_tensor)[0]
    return so.one_hot(X, num_classes=count, dtype=dtype_of(dtype))


@operator()
def tril_triu(X: Any, *, diagonal: int = 0, lower: bool = False) -> Any:
    return so.tril(X, k=diagonal) if lower else so.triu(X, k=diagonal)
