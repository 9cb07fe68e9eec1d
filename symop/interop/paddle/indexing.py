"""Indexing of variables: ``x[:, 0]`` is a call of ``slice``."""

from collections.abc import Sequence
from typing import Any

from symop.interop.paddle.errors import PaddleError

_END = 1 << 31
"""An end beyond every length, as Paddle writes it."""


def slicing(name: str, shape: Sequence[int], index: Any) -> tuple[str, dict[str, Any]]:
    """Returns the operator and the attributes of an index.

    Args:
        name: the variable, for errors.
        shape: its shape.
        index: integers, slices and an ellipsis.

    Raises:
        PaddleError: the index has more axes than the variable, or something else in it.
    """
    axes: list[int] = []
    bounds: list[tuple[int, int, int]] = []
    dropped: list[int] = []
    for axis, one in enumerate(_full(name, shape, index)):
        if one == slice(None):
            continue
        axes.append(axis)
        bounds.append(_bounds(name, one))
        if not isinstance(one, slice):
            dropped.append(axis)
    starts, ends, strides = (
        (list(each) for each in zip(*bounds, strict=True)) if bounds else ([], [], [])
    )
    attrs = {"axes": axes, "starts": starts, "ends": ends}
    if any(one != 1 for one in strides):
        return "strided_slice", {**attrs, "strides": strides, "decrease_axis": dropped}
    return "slice", {**attrs, "decrease_axis": dropped}


def _full(name: str, shape: Sequence[int], index: Any) -> list[Any]:
    """Returns one index for each of the leading axes."""
    given = list(index) if isinstance(index, tuple) else [index]
    if any(one is Ellipsis for one in given):
        at = next(i for i, one in enumerate(given) if one is Ellipsis)
        missing = len(shape) - len(given) + 1
        given[at : at + 1] = [slice(None)] * missing
    if len(given) > len(shape):
        raise PaddleError(f"slice: {name} must have {len(given)} axes, got {len(shape)}")
    return given


def _bounds(name: str, one: Any) -> tuple[int, int, int]:
    if isinstance(one, int):
        return one, one + 1 if one != -1 else _END - 1, 1
    if not isinstance(one, slice):
        raise PaddleError(f"slice: an index of {name} must be an integer or a slice, got {one!r}")
    step = 1 if one.step is None else one.step
    start = (0 if step > 0 else -1) if one.start is None else one.start
    end = (_END - 1 if step > 0 else -_END) if one.stop is None else one.stop
    return start, end, step
