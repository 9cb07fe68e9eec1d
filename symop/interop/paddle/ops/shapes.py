"""Shapes: reshaping, transposing, slicing, joining and splitting."""

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

import symop as so
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.operators import Values, operator
from symop.interop.paddle.values import numbers


def _shape_memory(x: Any) -> Any:
    """Returns an empty tensor that remembers a shape, the output ``XShape``."""
    return so.zeros(shape=(0, *x.shape), dtype=x.dtype)


def _lengths(X: Any, shape: Sequence[int]) -> tuple[int, ...]:
    """Returns lengths in which 0 is that of the same axis of ``X``."""
    return tuple(X.shape[i] if one == 0 else one for i, one in enumerate(shape))


@operator("reshape2", "reshape", outputs="Out XShape")
def reshape2(
    X: Any, Shape: Any = None, ShapeTensor: Values | None = None, *, shape: Sequence[int] = ()
) -> Any:
    if ShapeTensor:
        shape = [numbers("reshape2: ShapeTensor", one)[0] for one in ShapeTensor]
    elif Shape is not None:
        shape = numbers("reshape2: Shape", Shape)
    return so.reshape(X, shape=_lengths(X, shape)), _shape_memory(X)


@operator("transpose2", "transpose", outputs="Out XShape", ignored="data_format")
def transpose2(X: Any, *, axis: Sequence[int]) -> Any:
    return so.transpose(X, axes=tuple(axis)), _shape_memory(X)


@operator("flatten2", "flatten", outputs="Out XShape")
def flatten2(X: Any, *, axis: int = 1) -> Any:
    lengths = math.prod(X.shape[:axis]), math.prod(X.shape[axis:])
    return so.reshape(X, shape=lengths), _shape_memory(X)


@operator(outputs="Out XShape")
def flatten_contiguous_range(X: Any, *, start_axis: int = 1, stop_axis: int = 1) -> Any:
    start, stop = start_axis % max(X.ndim, 1), stop_axis % max(X.ndim, 1)
    middle = math.prod(X.shape[start : stop + 1])
    return so.reshape(X, shape=(*X.shape[:start], middle, *X.shape[stop + 1 :])), _shape_memory(X)


@operator("squeeze2", "squeeze", outputs="Out XShape")
def squeeze2(X: Any, *, axes: Sequence[int] = ()) -> Any:
    chosen = {one % X.ndim for one in axes} or set(range(X.ndim))
    lengths = [n for i, n in enumerate(X.shape) if i not in chosen or n != 1]
    return so.reshape(X, shape=tuple(lengths)), _shape_memory(X)


@operator("unsqueeze2", "unsqueeze", outputs="Out XShape")
def unsqueeze2(X: Any, *, axes: Sequence[int]) -> Any:
    lengths = list(X.shape)
    for one in axes:
        lengths.insert(one if one >= 0 else len(lengths) + 1 + one, 1)
    return so.reshape(X, shape=tuple(lengths)), _shape_memory(X)


@operator(no_gradient="AxisTensor")
def concat(
    X: Values,
    AxisTensor: Any = None,
    *,
    axis: int = 0,
    sections: Sequence[int] = (),
    num: int = 0,
) -> Any:
    at = axis if AxisTensor is None else numbers("concat: AxisTensor", AxisTensor)[0]
    return so.concat(*_filled(X, at, sections), axis=at)


def _filled(values: Values, axis: int, sections: Sequence[int]) -> Values:
    """Returns values with zeros in place of missing ones.

    A concat that is the gradient of a split has the attributes of the split, and no gradients of
    parts that nothing uses.
    """
    given = next((one for one in values if one is not None), None)
    if given is None:
        raise PaddleError("concat: X must have values, got none")

    def zeros(place: int) -> Any:
        lengths = list(given.shape)
        lengths[axis] = sections[place] if sections else lengths[axis]
        return so.zeros(shape=tuple(lengths), dtype=given.dtype)

    return [zeros(i) if one is None else one for i, one in enumerate(values)]


@operator(several="Out", no_gradient="AxisTensor SectionsTensorList")
def split(
    X: Any,
    AxisTensor: Any = None,
    SectionsTensorList: Values | None = None,
    *,
    axis: int = 0,
    num: int = 0,
    sections: Sequence[int] = (),
) -> Any:
    at = axis if AxisTensor is None else numbers("split: AxisTensor", AxisTensor)[0]
    parts = sections
    if SectionsTensorList:
        parts = [numbers("split: SectionsTensorList", one)[0] for one in SectionsTensorList]
    if not parts:
        return (
            [so.split(X, sections=num, axis=at)]
            if num == 1
            else list(so.split(X, sections=num, axis=at))
        )
    rest = X.shape[at] - sum(one for one in parts if one >= 0)
    parts = [rest if one < 0 else one for one in parts]
    ends = [sum(parts[: i + 1]) for i in range(len(parts))]
    return [
        so.slice_axis(X, axis=at, begin=end - n, end=end)
        for n, end in zip(parts, ends, strict=True)
    ]


@operator(ignored="infer_flags")
def slice(
    Input: Any,
    *,
    axes: Sequence[int],
    starts: Sequence[int] = (),
    ends: Sequence[int] = (),
    decrease_axis: Sequence[int] = (),
) -> Any:
    begin: list[int | None] = [None] * Input.ndim
    end: list[int | None] = [None] * Input.ndim
    for axis, start, stop in zip(axes, starts, ends, strict=True):
        length = Input.shape[axis]
        begin[axis] = min(max(start + length if start < 0 else start, 0), length)
        end[axis] = min(max(stop + length if stop < 0 else stop, 0), length)
    result = so.slice(Input, begin=tuple(begin), end=tuple(end))
    kept = [n for i, n in enumerate(result.shape) if i not in decrease_axis]
    return so.reshape(result, shape=tuple(kept)) if decrease_axis else result


@operator()
def expand(X: Any, *, expand_times: Sequence[int]) -> Any:
    return so.tile(X, repetitions=tuple(expand_times))


@operator(no_gradient="Input")
def shape(Input: Any) -> Any:
    return jnp.asarray(Input.shape, jnp.int32)
