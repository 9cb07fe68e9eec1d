"""Series: one array for a value that differs in each step of a loop."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from registry.pieces import Part
from registry.table import get
from registry.types import KEY_TYPE, VarKind, VarType
from symop.graph.nodes import CONSTANT, KEY, KEYS, Node, array, make
from symop.passes.roll_loops.listing import KnownSlice, cut_of

_NEIGHBORS = 4
"""The least number of adjacent slices that are read as one part rather than restacked."""


class Series(NamedTuple):
    """The values of all steps, along the first axis of one node.

    Attributes:
        node: The node that holds them.
        backwards: Whether the last step's value comes first.
        copied: Whether the values had to be copied together.
    """

    node: Node
    backwards: bool = False
    copied: bool = False


def series_of(values: Sequence[Node]) -> Series | None:
    """Returns the series of one value per step, all of the same type; None if impossible."""
    kinds = {one.type.kind for one in values}
    if kinds == {VarKind.RANDOM_KEY}:
        return Series(keys_of(values))
    if kinds != {VarKind.LOD_TENSOR} or len({one.type.strong() for one in values}) > 1:
        return None
    cuts = [cut_of(one) for one in values]
    pieces = [one for one in cuts if one is not None]
    result = _of_pieces(pieces) if len(pieces) == len(values) else None
    if result is not None:
        return result
    if all(one.op is CONSTANT and one.type.shape == () for one in values):
        return Series(array(np.array([one.attributes[0] for one in values], values[0].type.dtype)))
    stacked = get("stack")(*values)
    less = join_slices(stacked, values, _NEIGHBORS)
    return Series(stacked if less is None else less, copied=True)


def keys_of(values: Sequence[Node]) -> Node:
    """Returns random keys, or arrays of them of equal shape, along a new first axis."""
    type = VarType((len(values), *values[0].type.shape), KEY_TYPE.dtype, VarKind.RANDOM_KEY)
    members = tuple(one if one.op is KEY else one.attributes[0] for one in values)
    return make(KEYS, (), (members,), (type,), None)


def _of_pieces(cuts: Sequence[KnownSlice]) -> Series | None:
    """Returns the series of slices that are at equal distances in one array, else None."""
    source, first = cuts[0]
    if any(one.source is not source for one in cuts):
        return None
    starts = [one.piece.start for one in cuts]
    strides = {after - before for before, after in pairwise(starts)}
    if len({one.piece._replace(start=0) for one in cuts}) > 1 or len(strides) > 1:
        return None
    stride = strides.pop()
    if stride == 0 or (first.length > 1 and abs(stride) != first.length):
        return None
    low = min(starts)
    end = max(starts) + first.length
    step = abs(stride) if first.length == 1 else 1
    whole = _span(source, first.axis, low, end, step)
    return Series(_in_front(whole, cuts[0], len(cuts)), backwards=stride < 0)


def _span(x: Node, axis: int, start: int, end: int, step: int) -> Any:
    begins, ends, steps = [0] * x.ndim, list(x.shape), [1] * x.ndim
    begins[axis], ends[axis], steps[axis] = start, end, step
    return get("slice")(x, begin=tuple(begins), end=tuple(ends), step=tuple(steps))


def _in_front(x: Node, cut: KnownSlice, count: int) -> Any:
    """Moves the sliced axis to the front and leaves the slices behind it unchanged."""
    axis, length = cut.piece.axis, cut.piece.length
    if cut.piece.kept:
        shape = (*x.shape[:axis], count, length, *x.shape[axis + 1 :])
        x = get("reshape")(x, shape=shape)
    axes = (axis, *[i for i in range(x.ndim) if i != axis])
    return get("permute_dims")(x, axes=axes)


# Joining ---------------------------------------------------------------------------------------


def join_slices(node: Node, inputs: Sequence[Node | None], fewest: int) -> Node | None:
    """Returns ``node`` applied to ``inputs``, if many of them are adjacent slices of one array."""
    rule = getattr(node.op, "joined_rule", None)
    if rule is None or len(inputs) < fewest:
        return None
    parts = _parts([one for one in inputs if one is not None], fewest)
    if len(parts) == len(inputs):
        return None
    joined: Node = rule(parts, **node.op.attribute_dict(node.attributes))  # type: ignore[union-attr]
    return joined if joined.types == node.types else None


def _parts(inputs: Sequence[Node], fewest: int) -> list[Part]:
    """Returns the inputs with each ``fewest`` or more adjacent slices of one array as one part."""
    parts: list[Part] = []
    group: list[tuple[Node, KnownSlice]] = []
    for one in inputs:
        cut = cut_of(one)
        if cut is None or (group and not _follows(group, cut)):
            parts += _part(group, fewest)
            group = []
        if cut is None or cut.piece.kept or cut.piece.axis:
            parts.append(Part(one, several=False))
        else:
            group.append((one, cut))
    return parts + _part(group, fewest)


def _follows(group: Sequence[tuple[Node, KnownSlice]], cut: KnownSlice) -> bool:
    before = group[-1][1]
    step = cut.piece.start - before.piece.start
    if len(group) > 1 and step != before.piece.start - group[-2][1].piece.start:
        return False
    return cut.source is before.source and step in (1, -1) and not cut.piece.kept


def _part(group: Sequence[tuple[Node, KnownSlice]], fewest: int) -> list[Part]:
    if len(group) < fewest:
        return [Part(one, several=False) for one, _ in group]
    cuts = [cut for _, cut in group]
    starts = [one.piece.start for one in cuts]
    whole = _span(cuts[0].source, 0, min(starts), max(starts) + 1, 1)
    return [Part(get("flip")(whole, axis=0) if starts[0] > starts[-1] else whole, several=True)]
