"""Operators that slice arrays, and that assign to slices."""

import math
from typing import Any, Literal

import symop as so
from symop.interop.mxnet import partial_dtypes
from symop.interop.mxnet.attributes import Shape
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.ops.values import axis_of, require_fits
from symop.interop.mxnet.partial_shapes import Shapes, enter, is_known, like_data

Bounds = tuple[int | None, ...]


def _pieces(begin: Bounds, end: Bounds, step: Bounds) -> tuple[slice, ...]:
    """The slices given by the attributes of ``slice``."""
    step = step or (None,) * len(begin)
    if not len(begin) == len(end) == len(step) or 0 in step:
        raise MXNetError(
            "slice: begin, end and step must have one length, and no step be 0, "
            f"got {begin}, {end} and {step}"
        )
    return tuple(slice(*bounds) for bounds in zip(begin, end, step, strict=True))


def _lengths(shape: Shape, pieces: tuple[slice, ...]) -> Shape:
    """The shape of a slice."""
    taken = [len(range(*piece.indices(n))) for n, piece in zip(shape, pieces, strict=False)]
    return (*taken, *shape[len(pieces) :])


def _slice_shapes(given: Shapes, found: Shapes, begin: Bounds, end: Bounds, step: Bounds) -> None:
    if given[0] is not None:  # an unknown length stays one: nothing is left of it
        enter(found, 0, _lengths(given[0], _pieces(begin, end, step)))


@operator("slice", "crop", "_sparse_slice", shapes=_slice_shapes)
def slice_(data: Any, *, begin: Bounds, end: Bounds, step: Bounds = ()) -> Any:
    """A slice by Python's rules; steps may be negative."""
    pieces = _pieces(begin, end, step)
    if 0 in _lengths(data.shape, pieces):
        raise MXNetError(f"slice: something must be left, got {begin} to {end} of {data.shape}")
    return data[pieces]


def _put(data: Any, piece: Any, pieces: tuple[slice, ...]) -> Any:
    """``data`` with ``data[pieces]`` replaced by ``piece``."""
    spans = [range(*one.indices(n)) for n, one in zip(data.shape, pieces, strict=False)]
    back = [axis for axis, span in enumerate(spans) if span.step < 0]
    ascending = [span[::-1] if span.step < 0 else span for span in spans]
    whole = [range(n) for n in data.shape[len(spans) :]]
    ascending += whole
    piece = so.flip(piece, axis=tuple(back)) if back else piece
    placed = {
        "shape": tuple(data.shape),
        "begin": tuple(span.start for span in ascending),
        "step": tuple(span.step for span in ascending),
    }
    inside = so.pad_slice(so.ones_like(piece), **placed)
    return so.where(inside, so.pad_slice(piece, **placed), data)


def _assign_shapes(given: Shapes, found: Shapes, begin: Bounds, end: Bounds, step: Bounds) -> None:
    like_data(given, found)
    if given[0] is not None and is_known(given[0]):
        enter(given, 1, _lengths(given[0], _pieces(begin, end, step)))


@operator("_slice_assign", "_crop_assign", shapes=_assign_shapes)
def slice_assign(lhs: Any, rhs: Any, *, begin: Bounds, end: Bounds, step: Bounds = ()) -> Any:
    """``lhs`` with a slice replaced by ``rhs``."""
    pieces = _pieces(begin, end, step)
    if tuple(rhs.shape) != _lengths(lhs.shape, pieces):
        raise MXNetError(
            f"_slice_assign: rhs must have shape {_lengths(lhs.shape, pieces)}, got {rhs.shape}"
        )
    return _put(lhs, rhs, pieces)


@operator("_slice_assign_scalar", "_crop_assign_scalar", shapes=like_data)
def slice_assign_scalar(
    data: Any, *, scalar: float = 0.0, begin: Bounds, end: Bounds, step: Bounds = ()
) -> Any:
    """``data`` with a slice filled with a number."""
    pieces = _pieces(begin, end, step)
    number = so.cast(
        so.full_like(data[pieces], fill_value=scalar, dtype="float64"), dtype=data.dtype
    )
    return _put(data, number, pieces)


def _slice_axis_shapes(
    given: Shapes, found: Shapes, axis: int, begin: int, end: int | None
) -> None:
    if given[0] is None:
        return
    lengths, at = list(given[0]), axis_of("slice_axis", axis, len(given[0]))
    lengths[at] = len(range(*slice(begin, end).indices(lengths[at])))
    enter(found, 0, tuple(lengths))


@operator("slice_axis", shapes=_slice_axis_shapes)
def slice_axis(data: Any, *, axis: int, begin: int, end: int | None) -> Any:
    """A slice along one axis."""
    length = data.shape[axis_of("slice_axis", axis, len(data.shape))]
    first, last, _ = slice(begin, end).indices(length)
    if first >= last:
        raise MXNetError(f"slice_axis: something must be left, got {begin} to {end} of {length}")
    return so.slice_axis(data, axis=axis, begin=begin, end=end)


@operator("slice_like", dtypes=partial_dtypes.like_data)
def slice_like(data: Any, shape_like: Any, *, axes: Shape = ()) -> Any:
    """The leading entries along ``axes``, with the lengths of ``shape_like``."""
    return so.slice_like(data, shape_like, axes=axes)


@operator("Crop")
def crop(
    *args: Any,
    num_args: int,
    offset: Shape = (0, 0),
    h_w: Shape = (0, 0),
    center_crop: bool = False,
) -> Any:
    """Crops images to the size of a second input or to ``h_w``."""
    data, *like = args[:num_args]
    height, width = like[0].shape[2:] if like else h_w
    rows, columns = data.shape[2] - height, data.shape[3] - width
    top, left = (rows // 2, columns // 2) if center_crop else offset
    if min(height, width) < 1 or not (0 <= top <= rows and 0 <= left <= columns):
        raise MXNetError(
            f"Crop: {height} x {width} at {(top, left)} must lie inside of images, got {data.shape}"
        )
    return data[:, :, top : top + height, left : left + width]


@operator("Pad", "pad")
def pad(
    data: Any,
    *,
    mode: Literal["constant", "edge", "reflect"],
    pad_width: Shape,
    constant_value: float = 0.0,
) -> Any:
    """Pads the ends of axes; there are two widths for each axis."""
    if len(pad_width) != 2 * len(data.shape):
        raise MXNetError(f"Pad: pad_width must have two entries an axis, got {pad_width}")
    widths = tuple(zip(pad_width[::2], pad_width[1::2], strict=True))
    if mode != "constant":
        return so.pad(data, pad_width=widths, mode=mode)
    return so.pad(data, pad_width=widths, constant_value=constant_value)


@operator("reverse", "flip", shapes=like_data)
def reverse(data: Any, *, axis: Shape) -> Any:
    """Reverses the order along ``axis``."""
    return so.flip(data, axis=axis)


@operator("tile")
def tile(data: Any, *, reps: Shape) -> Any:
    """Repeats ``data`` as a whole."""
    if any(one < 1 for one in reps):
        raise MXNetError(f"tile: reps must be at least 1, got {reps}")
    require_fits("tile", (*data.shape, *reps))
    return so.tile(data, repetitions=reps) if reps else so.identity(data)


@operator("repeat")
def repeat(data: Any, *, repeats: int, axis: int | None = None) -> Any:
    """Repeats each entry along ``axis``, by default of the flattened array."""
    if repeats < 1:
        raise MXNetError(f"repeat: repeats must be at least 1, got {repeats}")
    require_fits("repeat", (*data.shape, repeats))
    return so.repeat(data, repeats=repeats, axis=axis)


@operator("diag")
def diag(data: Any, *, k: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """A matrix with ``data`` on a diagonal, or the diagonals of ``data``."""
    if len(data.shape) == 1:
        return so.diag(data, k=k)
    rows, columns = (data.shape[axis_of("diag", one, len(data.shape))] for one in (axis1, axis2))
    if not -rows < k < columns:
        raise MXNetError(
            f"diag: k must be between {1 - rows} and {columns - 1}, within the matrix, got {k}"
        )
    return so.diagonal(data, offset=k, axis1=axis1, axis2=axis2)


_SCALE = 1000


def _up_sampling_shapes(given: Shapes, found: Shapes, sample_type: str, scale: int) -> None:
    data = given[0]
    if data is not None and sample_type == "bilinear":
        kernel = 2 * scale - scale % 2
        enter(given, 1, (data[1], 1, kernel, kernel))
        enter(found, 0, (*data[:2], data[2] * scale, data[3] * scale))


def _up_sampling_inputs(sample_type: str, num_args: int) -> tuple[str, ...]:
    if sample_type == "bilinear":
        return ("data", "weight")
    return tuple(f"arg{i}" for i in range(num_args))


@operator(
    "UpSampling",
    present=_up_sampling_inputs,
    shapes=_up_sampling_shapes,
    initial={"weight": '["bilinear", {}]'},
    ignored=("workspace",),
)
def up_sampling(
    *args: Any,
    scale: int,
    num_filter: int = 0,
    sample_type: Literal["nearest", "bilinear"],
    multi_input_mode: Literal["concat", "sum"] = "concat",
    num_args: int,
) -> Any:
    """Images enlarged to ``scale`` times the size of the first input."""
    if not 1 <= scale <= _SCALE:
        raise MXNetError(f"UpSampling: scale must be in [1, {_SCALE}], got {scale}")
    if sample_type == "bilinear":
        return _learned_up_sampling(*args, scale=scale, channels=num_filter)
    height = args[0].shape[2] * scale
    large = [_larger(data, height // data.shape[2]) for data in args]
    if multi_input_mode == "sum":
        return so.add_n(*large)
    return so.concat(*large, axis=1) if len(large) > 1 else large[0]


def _larger(data: Any, factor: int) -> Any:
    """Repeats each pixel as a square of ``factor * factor`` pixels."""
    return so.repeat(so.repeat(data, repeats=factor, axis=2), repeats=factor, axis=3)


def _learned_up_sampling(data: Any, weight: Any, *, scale: int, channels: int) -> Any:
    """A transposed convolution of each channel with its own kernel."""
    return so.transposed_convolution(
        data,
        weight,
        channels=channels,
        kernel=(2 * scale - scale % 2,) * 2,
        stride=scale,
        padding=math.ceil((scale - 1) / 2),
        groups=channels,
        use_bias=False,
    )
