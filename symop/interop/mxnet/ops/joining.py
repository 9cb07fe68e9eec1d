"""Operators that concatenate, stack and split arrays."""

from typing import Any

import symop as so
from symop.interop.mxnet.attributes import Shape
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.partial_shapes import Partial, Shapes, enter, merged


def _with(shape: Partial, axis: int, length: int) -> Partial:
    """``shape`` with another length at ``axis``."""
    if shape is None:
        return None
    at = axis % len(shape)
    return (*shape[:at], length, *shape[at + 1 :])


def _concat_shapes(given: Shapes, found: Shapes, dim: int) -> None:
    other: Partial = None
    for shape in (*given, *found):
        other = merged(other, _with(shape, dim, 0))
    if other is None:
        return
    for at in range(len(given)):
        enter(given, at, other)
    lengths = [shape[dim] for shape in given if shape is not None]
    enter(found, 0, _with(other, dim, sum(lengths) if all(lengths) else 0))


def _parameter_shapes(given: Shapes, found: Shapes, dim: int) -> None:
    """As in ``Concat``; the rest of the result is divided among one or two unknown inputs."""
    _concat_shapes(given, found, dim)
    out = found[0]
    unknown = [at for at, shape in enumerate(given) if shape is not None and not shape[dim]]
    if out is None or not out[dim] or not unknown:
        return
    left = out[dim] - sum(shape[dim] for shape in given if shape is not None)
    for at in unknown:
        enter(given, at, _with(given[at], dim, left // len(unknown)))


def _joined(*args: Any, num_args: int, dim: int = 1) -> Any:
    """The inputs concatenated along an axis."""
    return so.concat(*args[:num_args], axis=dim)


operator("Concat", "concat", "_sparse_concat", shapes=_concat_shapes)(_joined)
operator("_rnn_param_concat", shapes=_parameter_shapes)(_joined)


def _stack_shapes(given: Shapes, found: Shapes, axis: int) -> None:
    shape: Partial = None
    for one in given:
        shape = merged(shape, one)
    out = found[0]
    if out is not None:
        at = axis % len(out)
        shape = merged(shape, (*out[:at], *out[at + 1 :]))
    if shape is not None:
        at = axis % (len(shape) + 1)
        enter(found, 0, (*shape[:at], len(given), *shape[at:]))
        given[:] = [shape] * len(given)


@operator("stack", shapes=_stack_shapes)
def stack(*args: Any, num_args: int, axis: int = 0) -> Any:
    """The inputs stacked along a new axis."""
    return so.stack(*args[:num_args], axis=axis)


def _numbered(num_outputs: int) -> tuple[str, ...]:
    return tuple(f"output{i}" for i in range(num_outputs))


def _channel_shapes(
    given: Shapes, found: Shapes, num_outputs: int, axis: int, squeeze_axis: bool
) -> None:
    data = given[0]
    if data is None:
        return
    if not -len(data) <= axis < len(data):
        raise MXNetError(f"axis must be in [{-len(data)}, {len(data)}), got {axis}")
    at = axis % len(data)
    if squeeze_axis:
        part: Partial = (*data[:at], *data[at + 1 :])
    else:
        part = _with(data, at, data[at] // num_outputs)
    for found_one in found:
        part = merged(part, found_one)
    found[:] = [part] * len(found)
    if part is not None:
        behind = part[at:] if squeeze_axis else part[at + 1 :]
        length = num_outputs if squeeze_axis else part[at] * num_outputs
        enter(given, 0, (*part[:at], length, *behind))


@operator("SliceChannel", "split", outputs=_numbered, shapes=_channel_shapes)
def slice_channel(data: Any, *, num_outputs: int, axis: int = 1, squeeze_axis: bool = False) -> Any:
    """Equal parts along an axis, which is removed if ``squeeze_axis`` is set."""
    if squeeze_axis and data.shape[axis] != num_outputs:
        raise MXNetError(
            f"SliceChannel: axis {axis} must have num_outputs = {num_outputs} entries "
            f"to be squeezed, got {data.shape}"
        )
    if squeeze_axis:
        return list(so.unstack(data, axis=axis)) if num_outputs > 1 else so.squeeze(data, axis=axis)
    if data.shape[axis] % num_outputs:
        raise MXNetError(
            f"SliceChannel: num_outputs must divide axis {axis} of {data.shape}, got {num_outputs}"
        )
    if num_outputs == 1:
        return so.identity(data)
    return list(so.split(data, sections=num_outputs, axis=axis))


def _sections(indices: Shape, sections: int) -> tuple[str, ...]:
    count = sections or len(indices)
    return _numbered(count) if count > 1 else ("output",)


@operator("_split_v2", outputs=_sections)
def split_v2(
    data: Any, *, indices: Shape, axis: int = 1, squeeze_axis: bool = False, sections: int = 0
) -> Any:
    """Parts that start at ``indices``, or ``sections`` parts, of which the first are longer."""
    length = data.shape[axis]
    if sections > 0:
        short, longer = divmod(length, sections)
        indices = tuple(i * short + min(i, longer) for i in range(sections))
    parts = [
        so.slice_axis(data, axis=axis, begin=begin, end=end)
        for begin, end in zip(indices, (*indices[1:], length), strict=True)
    ]
    return [so.squeeze(part, axis=axis) for part in parts] if squeeze_axis else parts
