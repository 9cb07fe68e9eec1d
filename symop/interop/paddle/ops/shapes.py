"""Shapes: reshaping, transposing, slicing, joining and splitting."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp

import symop as so
from symop.interop.paddle.arrays import position
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.operators import Values, operator
from symop.interop.paddle.ops.versions import scalar
from symop.interop.paddle.values import data_of, is_constant, numbers


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


@operator("unsqueeze2", "unsqueeze", outputs="Out XShape", no_gradient="AxesTensor AxesTensorList")
def unsqueeze2(
    X: Any,
    AxesTensor: Any = None,
    AxesTensorList: Values | None = None,
    *,
    axes: Sequence[int] = (),
) -> Any:
    lengths = list(X.shape)
    for one in _given("unsqueeze2: axes", axes, AxesTensor, AxesTensorList):
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


@operator(
    no_gradient="StartsTensor EndsTensor StartsTensorList EndsTensorList", ignored="infer_flags"
)
def slice(
    Input: Any,
    StartsTensor: Any = None,
    EndsTensor: Any = None,
    StartsTensorList: Values | None = None,
    EndsTensorList: Values | None = None,
    *,
    axes: Sequence[int],
    starts: Sequence[int] = (),
    ends: Sequence[int] = (),
    decrease_axis: Sequence[int] = (),
) -> Any:
    """Takes a range of each axis; an entry of a dropped axis may have a computed place."""
    first = _positions(starts, StartsTensor, StartsTensorList)
    dropped = [at for at, one in zip(axes, first, strict=True) if not isinstance(one, int)]
    if dropped and set(dropped) <= set(decrease_axis):
        return _entries(Input, dict(zip(axes, first, strict=True)), axes, ends, decrease_axis)
    starts = _given("slice: starts", starts, StartsTensor, StartsTensorList)
    ends = _given("slice: ends", ends, EndsTensor, EndsTensorList)
    begin: list[int | None] = [None] * Input.ndim
    end: list[int | None] = [None] * Input.ndim
    for axis, start, stop in zip(axes, starts, ends, strict=True):
        length = Input.shape[axis]
        begin[axis] = min(max(start + length if start < 0 else start, 0), length)
        end[axis] = min(max(stop + length if stop < 0 else stop, 0), length)
    result = so.slice(Input, begin=tuple(begin), end=tuple(end))
    kept = [n for i, n in enumerate(result.shape) if i not in decrease_axis]
    return so.reshape(result, shape=tuple(kept)) if decrease_axis else result


def _positions(attribute: Sequence[int], tensor: Any, tensors: Values | None) -> list[Any]:
    """Returns numbers: ints where they are known, otherwise scalars."""
    if tensors:
        return [position(one) for one in tensors]
    if tensor is None:
        return list(attribute)
    if is_constant(tensor):
        return numbers("slice", tensor)
    return [position(so.slice_axis(tensor, axis=0, begin=i, end=i + 1)) for i in range(tensor.size)]


def _entries(
    x: Any, first: Mapping[int, Any], axes: Sequence[int], ends: Sequence[int], drop: Sequence[int]
) -> Any:
    """Returns a slice with one entry of each dropped axis, whose place may be computed."""
    kept = {axis: stop for axis, stop in zip(axes, ends, strict=True) if axis not in drop}
    starts = [first[axis] for axis in kept]
    result = slice(x, axes=[*kept], starts=starts, ends=[*kept.values()]) if kept else x
    for axis in sorted(drop, reverse=True):
        at = first[axis]
        if not isinstance(at, int):
            at = so.where(so.less(at, 0), so.add(at, x.shape[axis]), at)
        result = so.take(result, at, axis=axis)
    return result


@operator(no_gradient="ExpandTimes expand_times_tensor")
def expand(
    X: Any,
    ExpandTimes: Any = None,
    expand_times_tensor: Values | None = None,
    *,
    expand_times: Sequence[int] = (),
) -> Any:
    times = _given("expand", expand_times, ExpandTimes, expand_times_tensor)
    return so.tile(X, repetitions=tuple(times))


@operator(no_gradient="Input", ragged=True)
def shape(Input: Any) -> Any:
    return jnp.asarray(data_of(Input).shape, jnp.int32)


@operator(no_gradient="Input")
def size(Input: Any, *, call: Any) -> Any:
    return scalar(call, jnp.asarray(math.prod(Input.shape), jnp.int32))


@operator(no_gradient="repeat_times_tensor RepeatTimes")
def tile(
    X: Any,
    RepeatTimes: Any = None,
    repeat_times_tensor: Values | None = None,
    *,
    repeat_times: Sequence[int] = (),
) -> Any:
    times = _given("tile", repeat_times, RepeatTimes, repeat_times_tensor)
    times = [*(1 for _ in range(X.ndim - len(times))), *times]
    return so.tile(X, repetitions=tuple(times))


def _given(
    name: str, attribute: Sequence[int], tensor: Any, tensors: Values | None
) -> Sequence[int]:
    """Returns numbers that are an attribute, a tensor, or a tensor each."""
    if tensor is not None:
        return numbers(name, tensor)
    if tensors:
        return [numbers(name, one)[0] for one in tensors]
    return attribute


@operator(no_gradient="Shape expand_shapes_tensor")
def expand_v2(
    X: Any,
    Shape: Any = None,
    expand_shapes_tensor: Values | None = None,
    *,
    shape: Sequence[int] = (),
) -> Any:
    lengths = list(_given("expand_v2: shape", shape, Shape, expand_shapes_tensor))
    own = [*(1 for _ in range(len(lengths) - X.ndim)), *X.shape]
    wanted = tuple(n if one in (-1, 0) else one for n, one in zip(own, lengths, strict=True))
    return so.broadcast_to(X, shape=wanted)


@operator(no_gradient="Y target_tensor")
def expand_as_v2(X: Any, Y: Any = None, *, target_shape: Sequence[int] = ()) -> Any:
    return so.broadcast_to(X, shape=tuple(target_shape) if Y is None else Y.shape)


@operator(no_gradient="target_tensor")
def expand_as(X: Any, target_tensor: Any) -> Any:
    times = [n // m for n, m in zip(target_tensor.shape, X.shape, strict=True)]
    return so.tile(X, repetitions=tuple(times))


@operator(outputs="Y")
def stack(X: Values, *, axis: int = 0) -> Any:
    at = axis % (X[0].ndim + 1)
    return so.concat(*(so.expand_dims(one, axis=at) for one in X), axis=at)


@operator("unstack", outputs="Y", several="Y")
def unstack(X: Any, *, axis: int = 0, num: int = 0) -> Any:
    return _slices(X, axis)


@operator("unbind", outputs="Out", several="Out")
def unbind(X: Any, *, axis: int = 0) -> Any:
    return _slices(X, axis)


def _slices(x: Any, axis: int) -> Values:
    return [
        so.squeeze(so.slice_axis(x, axis=axis, begin=i, end=i + 1), axis=axis)
        for i in range(x.shape[axis])
    ]


@operator()
def flip(X: Any, *, axis: Sequence[int] = (), dims: Sequence[int] = ()) -> Any:
    """Reverses axes, which 1.8 calls ``dims``."""
    return so.flip(X, axis=tuple(axis) or tuple(dims))


@operator("reverse")
def reverse(X: Any, *, axis: Sequence[int]) -> Any:
    return so.flip(X, axis=tuple(axis))


@operator(no_gradient="ShiftsTensor")
def roll(
    X: Any,
    ShiftsTensor: Any = None,
    *,
    shifts: Sequence[int] = (),
    axis: Sequence[int] = (),
    dims: Sequence[int] = (),
) -> Any:
    """Moves entries along axes, which 1.8 calls ``dims``."""
    axis = axis or dims
    steps = shifts if ShiftsTensor is None else numbers("roll: ShiftsTensor", ShiftsTensor)
    return so.roll(X, shift=tuple(steps), axis=tuple(axis)) if axis else so.roll(X, shift=steps[0])


@operator(
    no_gradient="StartsTensor EndsTensor StridesTensor StartsTensorList EndsTensorList "
    "StridesTensorList",
    ignored="infer_flags",
)
def strided_slice(
    Input: Any,
    StartsTensor: Any = None,
    EndsTensor: Any = None,
    StridesTensor: Any = None,
    StartsTensorList: Values | None = None,
    EndsTensorList: Values | None = None,
    StridesTensorList: Values | None = None,
    *,
    axes: Sequence[int],
    starts: Sequence[int] = (),
    ends: Sequence[int] = (),
    strides: Sequence[int] = (),
    decrease_axis: Sequence[int] = (),
) -> Any:
    where = (
        _given("strided_slice", attribute, tensor, tensors)
        for attribute, tensor, tensors in (
            (starts, StartsTensor, StartsTensorList),
            (ends, EndsTensor, EndsTensorList),
            (strides, StridesTensor, StridesTensorList),
        )
    )
    result = Input
    for axis, start, stop, step in zip(axes, *where, strict=True):
        ids = range(Input.shape[axis])[start:stop:step]
        result = so.take(result, jnp.asarray(list(ids), jnp.int32), axis=axis)
    kept = [n for i, n in enumerate(result.shape) if i not in decrease_axis]
    return so.reshape(result, shape=tuple(kept)) if decrease_axis else result


@operator(no_gradient="Y Offsets")
def crop(
    X: Any,
    Y: Any = None,
    Offsets: Any = None,
    *,
    offsets: Sequence[int] = (),
    shape: Sequence[int] = (),
) -> Any:
    lengths = shape if Y is None else Y.shape
    return _cropped(X, _given("crop", offsets, Offsets, None), lengths)


@operator(no_gradient="Shape Offsets ShapeTensor OffsetsTensor")
def crop_tensor(
    X: Any,
    Shape: Any = None,
    Offsets: Any = None,
    ShapeTensor: Values | None = None,
    OffsetsTensor: Values | None = None,
    *,
    offsets: Sequence[int] = (),
    shape: Sequence[int] = (),
) -> Any:
    lengths = _given("crop_tensor: shape", shape, Shape, ShapeTensor)
    return _cropped(X, _given("crop_tensor: offsets", offsets, Offsets, OffsetsTensor), lengths)


def _cropped(x: Any, offsets: Sequence[int], lengths: Sequence[int]) -> Any:
    begin = tuple(offsets) or (0,) * x.ndim
    end = tuple(
        n if length == -1 else start + length
        for n, start, length in zip(x.shape, begin, lengths, strict=True)
    )
    return so.slice(x, begin=begin, end=end)


@operator()
def pad(X: Any, *, paddings: Sequence[int], pad_value: float = 0.0) -> Any:
    return so.pad(X, pad_width=_width_pairs(paddings), constant_value=pad_value)


def _width_pairs(widths: Sequence[int]) -> tuple[tuple[int, int], ...]:
    return tuple(zip(widths[::2], widths[1::2], strict=True))


_MODES: dict[str, Any] = {
    "constant": "constant",
    "reflect": "reflect",
    "edge": "edge",
    "replicate": "edge",
    "circular": "wrap",
}


@operator(no_gradient="Paddings")
def pad2d(
    X: Any,
    Paddings: Any = None,
    *,
    paddings: Sequence[int] = (0, 0, 0, 0),
    mode: str = "constant",
    pad_value: float = 0.0,
    data_format: str = "NCHW",
) -> Any:
    top, bottom, left, right = _given("pad2d: Paddings", paddings, Paddings, None)
    return _padded(X, ((top, bottom), (left, right)), mode, pad_value, data_format)


@operator(no_gradient="Paddings")
def pad3d(
    X: Any,
    Paddings: Any = None,
    *,
    paddings: Sequence[int] = (),
    mode: str = "constant",
    value: float = 0.0,
    data_format: str = "NCDHW",
) -> Any:
    pairs = _width_pairs(_given("pad3d: Paddings", paddings, Paddings, None))
    return _padded(X, tuple(reversed(pairs)), mode, value, data_format)


def _padded(
    x: Any, pairs: tuple[tuple[int, int], ...], mode: str, value: float, data_format: str
) -> Any:
    if mode not in _MODES:
        raise PaddleError(f"pad: mode must be one of {', '.join(_MODES)}, got {mode!r}")
    none = ((0, 0),)
    widths = (*none, *pairs, *none) if data_format.endswith("C") else (*none, *none, *pairs)
    filling: dict[str, Any] = {"constant_value": value} if mode == "constant" else {}
    return so.pad(x, pad_width=widths, mode=_MODES[mode], **filling)


@operator()
def pad_constant_like(X: Any, Y: Any, *, pad_value: float = 0.0) -> Any:
    widths = tuple((0, n - m) for n, m in zip(X.shape, Y.shape, strict=True))
    return so.pad(Y, pad_width=widths, constant_value=pad_value)


@operator()
def shard_index(
    X: Any, *, index_num: int, nshards: int, shard_id: int, ignore_value: int = -1
) -> Any:
    length = -(-index_num // nshards)
    inside = so.equal(so.floor_divide(X, length), shard_id)
    return so.where(inside, so.mod(X, length), ignore_value)
