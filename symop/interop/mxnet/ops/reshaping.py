"""Operators that change shapes: reshape, transpose, squeeze and others."""

import math
from typing import Any, Literal

import numpy as np

import symop as so
from symop.interop.mxnet import partial_dtypes
from symop.interop.mxnet.attributes import Shape
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.partial_shapes import Shapes, enter, is_known, product, same

_COPY, _INFER, _COPY_REST, _MERGE, _SPLIT = 0, -1, -2, -3, -4


def _taken(lengths: list[int], count: int, code: int) -> list[int]:
    """Removes and returns the first ``count`` of ``lengths``."""
    if len(lengths) < count:
        raise MXNetError(f"Reshape: data must have an axis for each {code} in shape, got too few")
    taken = lengths[:count]
    del lengths[:count]
    return taken


def _split(length: int, parts: list[int]) -> list[int]:
    """Two lengths whose product is ``length``; one of them may be -1."""
    if len(parts) < 2 or parts == [-1, -1]:
        raise MXNetError(f"Reshape: two lengths must follow -4, one not -1, got {parts}")
    first, second = parts
    if not length:
        return [max(first, 0), max(second, 0)]
    first = length // second if first == -1 else first
    second = length // first if second == -1 else second
    if first * second != length:
        raise MXNetError(f"Reshape: the lengths behind -4 must make {length}, got {parts}")
    return [first, second]


def _decoded(codes: Shape, lengths: Shape, reverse: bool) -> Shape:
    """The result of the codes of ``Reshape`` for ``lengths``, in which 0 is unknown."""
    direction = -1 if reverse else 1
    queue, rest = list(codes[::direction]), list(lengths[::direction])
    made: list[int] = []
    open_axis = None
    while queue:
        code = queue.pop(0)
        if code == _COPY:
            made += _taken(rest, 1, code)
        elif code == _COPY_REST:
            made += _taken(rest, len(rest), code)
        elif code == _MERGE:
            made.append(math.prod(_taken(rest, 2, code)))
        elif code == _SPLIT:
            made += _split(_taken(rest, 1, code)[0], queue[:2])
            del queue[:2]
        elif code == _INFER and open_axis is None:
            open_axis = len(made)
            made.append(1)
            del rest[:1]
        elif code > 0:
            made.append(code)
            del rest[:1]
        else:
            raise MXNetError(f"Reshape: shape must hold lengths, 0, one -1, -2 to -4, got {codes}")
    if open_axis is not None:
        known = is_known(lengths) and 0 not in made
        made[open_axis] = math.prod(lengths) // math.prod(made) if known else 0
    return tuple(made[::direction])


def _by_target(target: Shape, lengths: Shape, keep_highest: bool) -> Shape:
    """The result of the old attribute ``target_shape``, which infers a 0."""
    made = [*lengths[:1], *target[1:]] if keep_highest else list(target)
    if made[int(keep_highest) :].count(0) == 1 and is_known(lengths):
        at = made.index(0, int(keep_highest))
        made[at] = math.prod(lengths) // math.prod(one for i, one in enumerate(made) if i != at)
    return tuple(made)


def _wanted(
    lengths: Shape, shape: Shape, reverse: bool, target_shape: Shape, keep_highest: bool
) -> Shape | None:
    """The shape requested by the attributes of ``Reshape``; None if there are none."""
    if shape:
        return _decoded(shape, lengths, reverse)
    return _by_target(target_shape, lengths, keep_highest) if target_shape else None


def _reshape_shapes(
    given: Shapes,
    found: Shapes,
    shape: Shape,
    reverse: bool,
    target_shape: Shape,
    keep_highest: bool,
) -> None:
    data = given[0]
    if data is None:
        return
    enter(found, 0, _wanted(data, shape, reverse, target_shape, keep_highest))
    out = found[0]
    if out is not None and is_known(out) and data.count(0) == 1:
        others = math.prod(length for length in data if length)
        data = given[0] = tuple(length or product(out) // others for length in data)
        enter(found, 0, _wanted(data, shape, reverse, target_shape, keep_highest))


@operator("Reshape", "reshape", shapes=_reshape_shapes)
def reshape(
    data: Any,
    *,
    shape: Shape = (),
    reverse: bool = False,
    target_shape: Shape = (),
    keep_highest: bool = False,
) -> Any:
    """Reshapes; 0 copies a length, -1 infers, -2 copies the rest, -3 merges and -4 splits."""
    wanted = _wanted(data.shape, shape, reverse, target_shape, keep_highest)
    return data if wanted is None else so.reshape(data, shape=wanted)


@operator("Flatten", "flatten")
def flatten(data: Any) -> Any:
    """Flattens all axes but the first."""
    return so.reshape(data, shape=(data.shape[0], math.prod(data.shape[1:])))


def _expand_shapes(given: Shapes, found: Shapes, axis: int) -> None:
    data, out = given[0], found[0]
    if data is not None:
        at = axis % (len(data) + 1)
        enter(found, 0, (*data[:at], 1, *data[at:]))
    elif out is not None:
        at = axis % len(out)
        enter(given, 0, (*out[:at], *out[at + 1 :]))
    if data is not None and out is not None:
        enter(given, 0, (*out[:at], *out[at + 1 :]))


@operator("expand_dims", shapes=_expand_shapes)
def expand_dims(data: Any, *, axis: int) -> Any:
    """Inserts an axis of length 1."""
    return so.expand_dims(data, axis=axis)


@operator("squeeze")
def squeeze(data: Any, *, axis: Shape | None = None) -> Any:
    """Removes axes of length 1, all or those given; at least one axis is kept."""
    less = so.squeeze(data, axis=axis)
    return less if less.shape else so.reshape(less, shape=(1,))


def _permuted_shapes(given: Shapes, found: Shapes, axes: Shape) -> None:
    known = given[0] if given[0] is not None else found[0]
    if known is None:
        return
    order = [axis % len(known) for axis in axes] or range(len(known))[::-1]
    if given[0] is not None:
        enter(found, 0, tuple(given[0][axis] for axis in order))
    out = found[0]
    if out is not None:
        back = sorted(range(len(out)), key=order.__getitem__)
        enter(given, 0, tuple(out[place] for place in back))


@operator("transpose", shapes=_permuted_shapes)
def transpose(data: Any, *, axes: Shape = ()) -> Any:
    """Permutes the axes; reverses them by default."""
    return so.permute_dims(data, axes=axes or None)


def _swapped(lengths: Shape, dim1: int, dim2: int) -> Shape:
    made, count = list(lengths), len(lengths)
    made[dim1 % count], made[dim2 % count] = lengths[dim2 % count], lengths[dim1 % count]
    return tuple(made)


def _swap_shapes(given: Shapes, found: Shapes, dim1: int, dim2: int) -> None:
    if given[0] is not None:
        enter(found, 0, _swapped(given[0], dim1, dim2))
    if found[0] is not None:
        enter(given, 0, _swapped(found[0], dim1, dim2))


@operator("SwapAxis", "swapaxes", shapes=_swap_shapes)
def swap_axis(data: Any, *, dim1: int = 0, dim2: int = 0) -> Any:
    """Exchanges two axes."""
    return so.swapaxes(data, axis1=dim1, axis2=dim2)


def _range(count: int, begin: int | None, end: int | None) -> tuple[int, int]:
    """``begin`` and ``end`` among ``count`` axes, as non-negative numbers."""
    first, last, _ = slice(begin, end).indices(count)
    if first >= last:
        raise MXNetError(f"reshape_like: begin must lie before end, got {begin} and {end}")
    return first, last


@operator("reshape_like", dtypes=partial_dtypes.like_data)
def reshape_like(
    lhs: Any,
    rhs: Any,
    *,
    lhs_begin: int | None = None,
    lhs_end: int | None = None,
    rhs_begin: int | None = None,
    rhs_end: int | None = None,
) -> Any:
    """Reshapes axes ``lhs_begin`` to ``lhs_end`` of ``lhs`` to those of ``rhs``."""
    begin, end = _range(len(lhs.shape), lhs_begin, lhs_end)
    first, last = _range(len(rhs.shape), rhs_begin, rhs_end)
    return so.reshape(lhs, shape=(*lhs.shape[:begin], *rhs.shape[first:last], *lhs.shape[end:]))


def _require_blocks(name: str, shape: Shape, block_size: int, by: int) -> None:
    """Rejects images without entries, and numbers of channels that are not divisible."""
    if block_size < 1 or len(shape) != 4 or 0 in shape or shape[1] % by:  # axes
        raise MXNetError(
            f"{name}: images with entries, and channels divisible by the block, must be given, got "
            f"shape {tuple(shape)} and block_size {block_size}"
        )


@operator("depth_to_space")
def depth_to_space(data: Any, *, block_size: int) -> Any:
    """Rearranges channels into blocks of pixels."""
    _require_blocks("depth_to_space", data.shape, block_size, max(block_size, 1) ** 2)
    return so.depth_to_space(data, block_size=block_size)


@operator("space_to_depth")
def space_to_depth(data: Any, *, block_size: int) -> Any:
    """Rearranges blocks of pixels into channels."""
    _require_blocks("space_to_depth", data.shape, block_size, 1)
    return so.space_to_depth(data, block_size=block_size)


@operator("cast_storage", "_sparse_cast_storage", shapes=same)
def cast_storage(data: Any, *, stype: Literal["default", "row_sparse", "csr"]) -> Any:
    """The same entries in another storage type, which dense computations do not show."""
    del stype
    return so.identity(data)


@operator("shape_array", dtypes="free")
def shape_array(data: Any) -> Any:
    """The lengths of all axes."""
    return constant(np.asarray(data.shape, "int64"), data)


@operator("size_array", dtypes="free")
def size_array(data: Any) -> Any:
    """The number of entries."""
    return constant(np.asarray([math.prod(data.shape)], "int64"), data)


def constant(values: Any, like: Any) -> Any:
    """An array of constant ``values``, as a value of the kind of ``like``."""
    zero = so.cast(so.zeros_like(so.reshape(like, shape=(-1,))[:1]), dtype=values.dtype)
    return so.broadcast_to(so.reshape(zero, shape=(1,) * values.ndim), shape=values.shape) + values
