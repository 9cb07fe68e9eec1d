"""Tensors of random numbers, which every run draws anew from the program's own generator.

The attribute ``seed`` chooses Paddle's generator and has no effect here.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

import symop as so
from symop.interop.paddle.operators import Values, operator
from symop.interop.paddle.ops.dtypes import dtype_of
from symop.interop.paddle.values import numbers

_SHAPES = "ShapeTensor ShapeTensorList"


def shape_of(
    name: str, shape: Sequence[int], tensor: Any, tensors: Values | None
) -> tuple[int, ...]:
    """Returns a shape that is an attribute, a tensor, or a tensor for each axis."""
    if tensor is not None:
        return tuple(numbers(f"{name}: ShapeTensor", tensor))
    if tensors:
        return tuple(numbers(f"{name}: ShapeTensorList", one)[0] for one in tensors)
    return tuple(shape)


def batch_shape(x: Any, shape: Sequence[int], input_axis: int, output_axis: int) -> tuple[int, ...]:
    """Returns a shape with the length of one axis of ``x``."""
    lengths = list(shape)
    lengths[output_axis] = x.shape[input_axis]
    return tuple(lengths)


@operator(no_gradient=_SHAPES, ignored="diag_num diag_step diag_val seed")
def uniform_random(
    ShapeTensor: Any = None,
    ShapeTensorList: Values | None = None,
    *,
    shape: Sequence[int] = (),
    min: float = -1.0,
    max: float = 1.0,
    dtype: int = 5,
) -> Any:
    lengths = shape_of("uniform_random", shape, ShapeTensor, ShapeTensorList)
    return so.sym.random_uniform(low=min, high=max, shape=lengths, dtype=dtype_of(dtype))


@operator(no_gradient=_SHAPES, ignored="seed")
def gaussian_random(
    ShapeTensor: Any = None,
    ShapeTensorList: Values | None = None,
    *,
    shape: Sequence[int] = (),
    mean: float = 0.0,
    std: float = 1.0,
    dtype: int = 5,
) -> Any:
    lengths = shape_of("gaussian_random", shape, ShapeTensor, ShapeTensorList)
    return so.sym.random_normal(loc=mean, scale=std, shape=lengths, dtype=dtype_of(dtype))


@operator(no_gradient=_SHAPES, ignored="seed")
def truncated_gaussian_random(
    ShapeTensor: Any = None,
    ShapeTensorList: Values | None = None,
    *,
    shape: Sequence[int] = (),
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    dtype: int = 5,
) -> Any:
    lengths = shape_of("truncated_gaussian_random", shape, ShapeTensor, ShapeTensorList)
    return so.sym.random_truncated_normal(
        loc=mean, scale=std, low=a, high=b, shape=lengths, dtype=dtype_of(dtype)
    )


@operator(no_gradient="Input", ignored="diag_num diag_step diag_val seed")
def uniform_random_batch_size_like(
    Input: Any,
    *,
    shape: Sequence[int],
    input_dim_idx: int = 0,
    output_dim_idx: int = 0,
    min: float = -1.0,
    max: float = 1.0,
    dtype: int = 5,
) -> Any:
    lengths = batch_shape(Input, shape, input_dim_idx, output_dim_idx)
    return so.sym.random_uniform(low=min, high=max, shape=lengths, dtype=dtype_of(dtype))


@operator(no_gradient="Input", ignored="seed")
def gaussian_random_batch_size_like(
    Input: Any,
    *,
    shape: Sequence[int],
    input_dim_idx: int = 0,
    output_dim_idx: int = 0,
    mean: float = 0.0,
    std: float = 1.0,
    dtype: int = 5,
) -> Any:
    lengths = batch_shape(Input, shape, input_dim_idx, output_dim_idx)
    return so.sym.random_normal(loc=mean, scale=std, shape=lengths, dtype=dtype_of(dtype))


@operator(no_gradient=_SHAPES, ignored="seed")
def randint(
    ShapeTensor: Any = None,
    ShapeTensorList: Values | None = None,
    *,
    shape: Sequence[int] = (),
    low: int,
    high: int,
    dtype: int = 3,
) -> Any:
    lengths = shape_of("randint", shape, ShapeTensor, ShapeTensorList)
    return so.cast(_whole(low, high, lengths), dtype=dtype_of(dtype))


def _whole(low: int, high: int, shape: tuple[int, ...]) -> Any:
    """Returns whole numbers from ``low`` up to but without ``high``."""
    return so.clip(so.floor(so.sym.random_uniform(low=low, high=high, shape=shape)), max=high - 1)


@operator(ignored="seed")
def randperm(*, n: int, dtype: int = 3) -> Any:
    drawn = so.sym.random_permutation(jnp.arange(n, dtype=jnp.int32))
    return so.cast(drawn, dtype=dtype_of(dtype))


@operator()
def bernoulli(X: Any) -> Any:
    drawn = so.less(so.sym.random_uniform(shape=X.shape, dtype=X.dtype), X)
    return so.cast(drawn, dtype=X.dtype)


@operator(ignored="seed", no_gradient="X")
def sampling_id(X: Any, *, min: float = 0.0, max: float = 1.0) -> Any:
    drawn = so.sym.random_uniform(low=min, high=max, shape=(X.shape[0], 1), dtype=X.dtype)
    below = so.less(so.cumsum(X, axis=1), drawn)
    places = so.sum(so.cast(below, dtype="int32"), axis=1)
    return so.clip(places, max=X.shape[1] - 1)
