"""Shapes: reshaping, transposing, slicing, joining and splitting."""

from collections.abc import Sequence
from typing import Any

from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.programs import Variable
from symop.interop.paddle.static.helper import Layer


def _lengths(given: Any, slot: str) -> tuple[list[int], dict[str, Any]]:
    """Returns lengths, -1 where one is a variable, and the slot of those that are."""
    if isinstance(given, Variable):
        return [-1] * given.shape[0], {slot: given}
    return [-1 if isinstance(one, Variable) else int(one) for one in given], {}


def reshape(
    x: Variable,
    shape: Sequence[int] | Variable,
    actual_shape: Variable | None = None,
    act: str | None = None,
    inplace: bool = False,
    name: str | None = None,
) -> Variable:
    """Returns the values in another shape; 0 keeps the length of an axis, -1 fits one."""
    del inplace
    layer = Layer("reshape2", name)
    lengths, tensors = _lengths(actual_shape or shape, "Shape")
    found = layer.call("reshape2", {"X": x, **tensors}, "Out XShape", {"shape": lengths})
    return layer.activated(found, act)


def transpose(x: Variable, perm: Sequence[int], name: str | None = None) -> Variable:
    """Returns the values with the axes in another order."""
    layer = Layer("transpose", name)
    return layer.call("transpose2", {"X": x}, "Out XShape", {"axis": list(perm)})


def squeeze(input: Variable, axes: Sequence[int], name: str | None = None) -> Variable:
    """Removes axes of length one."""
    layer = Layer("squeeze2", name)
    return layer.call("squeeze2", {"X": input}, "Out XShape", {"axes": list(axes)})


def unsqueeze(input: Variable, axes: int | Sequence[int], name: str | None = None) -> Variable:
    """Inserts axes of length one."""
    given = [axes] if isinstance(axes, int) else list(axes)
    layer = Layer("unsqueeze2", name)
    return layer.call("unsqueeze2", {"X": input}, "Out XShape", {"axes": given})


def flatten(x: Variable, axis: int = 1, name: str | None = None) -> Variable:
    """Returns a matrix: the axes before ``axis`` are the rows."""
    return Layer("flatten", name).call("flatten2", {"X": x}, "Out XShape", {"axis": axis})


def concat(input: Sequence[Variable], axis: int = 0, name: str | None = None) -> Variable:
    """Joins variables along an axis."""
    return Layer("concat", name).call("concat", {"X": list(input)}, attrs={"axis": axis})


def stack(x: Sequence[Variable], axis: int = 0, name: str | None = None) -> Variable:
    """Joins variables along a new axis."""
    return Layer("stack", name).call("stack", {"X": list(x)}, "Y", {"axis": axis})


def unstack(x: Variable, axis: int = 0, num: int | None = None) -> list[Variable]:
    """Splits a variable along an axis, which is removed."""
    count = x.shape[axis] if num is None else num
    return Layer("unstack").several("unstack", {"X": x}, count, "Y", {"axis": axis, "num": count})


def split(
    input: Variable,
    num_or_sections: int | Sequence[int],
    dim: int = -1,
    name: str | None = None,
) -> list[Variable]:
    """Splits a variable along an axis into a number of equal parts, or parts of given lengths."""
    if isinstance(num_or_sections, int):
        count, sections = num_or_sections, []
    else:
        count, sections = len(num_or_sections), list(num_or_sections)
    axis = dim % len(input.shape)
    attrs = {"axis": axis, "num": 0 if sections else count, "sections": sections}
    return Layer("split", name).several("split", {"X": input}, count, "Out", attrs)


def slice(
    input: Variable, axes: Sequence[int], starts: Sequence[int], ends: Sequence[int]
) -> Variable:
    """Returns a range along each of some axes."""
    attrs = {"axes": list(axes), "starts": list(starts), "ends": list(ends), "decrease_axis": []}
    return Layer("slice").call("slice", {"Input": input}, attrs=attrs)


def strided_slice(
    input: Variable,
    axes: Sequence[int],
    starts: Sequence[int],
    ends: Sequence[int],
    strides: Sequence[int],
) -> Variable:
    """Returns a range with a step along each of some axes."""
    attrs = {"axes": list(axes), "starts": list(starts), "ends": list(ends)}
    return Layer("strided_slice").call(
        "strided_slice", {"Input": input}, attrs={**attrs, "strides": list(strides)}
    )


def expand(x: Variable, expand_times: Sequence[int], name: str | None = None) -> Variable:
    """Repeats a variable along each axis."""
    return Layer("expand", name).call(
        "expand", {"X": x}, attrs={"expand_times": list(expand_times)}
    )


def expand_as(x: Variable, target_tensor: Variable, name: str | None = None) -> Variable:
    """Repeats a variable to the shape of another."""
    inputs = {"X": x, "target_tensor": target_tensor}
    return Layer("expand_as", name).call("expand_as", inputs)


def gather(input: Variable, index: Variable, overwrite: bool = True) -> Variable:
    """Returns rows by their indices."""
    del overwrite
    return Layer("gather").call("gather", {"X": input, "Index": index})


def gather_nd(input: Variable, index: Variable, name: str | None = None) -> Variable:
    """Returns entries or slices by several indices each."""
    return Layer("gather_nd", name).call("gather_nd", {"X": input, "Index": index})


def scatter(
    input: Variable,
    index: Variable,
    updates: Variable,
    name: str | None = None,
    overwrite: bool = True,
) -> Variable:
    """Writes rows at indices, or adds them."""
    inputs = {"X": input, "Ids": index, "Updates": updates}
    return Layer("scatter", name).call("scatter", inputs, attrs={"overwrite": overwrite})


def pad(
    x: Variable, paddings: Sequence[int], pad_value: float = 0.0, name: str | None = None
) -> Variable:
    """Pads every axis with a value, before and behind."""
    attrs = {"paddings": list(paddings), "pad_value": pad_value}
    return Layer("pad", name).call("pad", {"X": x}, attrs=attrs)


def shape(input: Variable) -> Variable:
    """Returns the lengths of a variable."""
    return Layer("shape").call("shape", {"Input": input}, stop_gradient=True)


def lod_reset(x: Variable, y: Variable | None = None, target_lod: Any = None) -> Variable:
    """Gives the rows of a variable the sequences of another.

    Raises:
        PaddleError: neither sequences nor lengths are given.
    """
    if y is None and target_lod is None:
        raise PaddleError("lod_reset: y or target_lod must be given, got neither")
    attrs = {} if target_lod is None else {"target_lod": list(target_lod)}
    return Layer("lod_reset").call("lod_reset", {"X": x, "Y": y}, attrs=attrs)
