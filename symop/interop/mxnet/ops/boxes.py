"""Operators on boxes: overlaps, and non-maximum suppression."""

import math
from collections.abc import Callable
from typing import Any, Literal

import symop as so
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.ops.indexing import whole
from symop.interop.mxnet.partial_shapes import like_data, numbered

Format = Literal["corner", "center"]


def sides(boxes: Any) -> list[Any]:
    """The four coordinates of each box, along the last axis."""
    return [boxes[..., i] for i in range(4)]


def corners(boxes: Any, kind: Format = "corner") -> list[Any]:
    """Left, top, right and bottom of each box."""
    if kind == "corner":
        return sides(boxes)
    x, y, width, height = sides(boxes)
    return [x - width / 2, y - height / 2, x + width / 2, y + height / 2]


def areas(boxes: Any, kind: Format = "corner") -> Any:
    """The area of each box, zero where a length is negative."""
    left, top, width, height = sides(boxes)
    if kind == "corner":
        width, height = width - left, height - top
    turned = so.logical_or(width < 0, height < 0)
    return so.where(turned, so.zeros_like(width), width * height)


def intersections(one: Any, other: Any, kind: Format = "corner") -> Any:
    """The areas of the intersections of boxes, which are broadcast."""
    left, top, right, bottom = corners(one, kind)
    left2, top2, right2, bottom2 = corners(other, kind)
    width = so.minimum(right, right2) - so.maximum(left, left2)
    height = so.minimum(bottom, bottom2) - so.maximum(top, top2)
    return so.clip(width, low=0.0) * so.clip(height, low=0.0)


def kept(items: Any, alive: Any, clashes: Callable[[Any, Any], Any]) -> Any:
    """The items of each batch that remain when each kept item removes later ones that clash.

    Args:
        items: ``(batch, count, numbers)``, the most important first.
        alive: ``(batch, count)``, whether each item exists.
        clashes: whether items ``(batch, 1, numbers)`` and each of all items clash.
    """
    places = numbered(items.shape[1], dtype="int32")

    def step(left: Any, series: Any) -> Any:
        place, one = series
        here = so.any(so.logical_and(left, so.equal(places, place)), axis=1, keepdims=True)
        gone = so.logical_and(here, so.greater(places, place))
        gone = so.logical_and(gone, clashes(so.expand_dims(one, axis=1), items))
        return so.logical_and(left, so.logical_not(gone)), ()

    left, _ = so.scan(step, alive, (places, so.swapaxes(items, axis1=0, axis2=1)))
    return left


def in_front(alive: Any) -> tuple[Any, Any]:
    """Indices of true entries, followed by false ones, and whether each index is valid."""
    _, order = so.topk(so.cast(alive, dtype="float32"), k=alive.shape[1], axis=1)
    return order, so.take_along_axis(alive, order, axis=1)


def rows_at(rows: Any, places: Any) -> Any:
    """The rows ``places`` of each batch."""
    return so.take_along_axis(rows, so.expand_dims(places, axis=2), axis=1)


def listed(rows: Any, places: Any, counts: Any) -> Any:
    """The rows ``places`` of each batch, with -1 in place of invalid ones."""
    chosen = rows_at(rows, places)
    return so.where(so.expand_dims(counts, axis=2), chosen, so.full_like(chosen, fill_value=-1.0))


def _other_format(rows: Any, start: int, kind: Format) -> Any:
    """``rows`` with boxes in the other format, except those with a negative first number."""
    boxes = rows[..., start : start + 4]
    left, top, right, bottom = sides(boxes)
    if kind == "center":
        made = corners(boxes, kind)
    else:
        made = [(left + right) / 2, (top + bottom) / 2, right - left, bottom - top]
    changed = so.where(so.expand_dims(left, axis=-1) < 0, boxes, so.stack(*made, axis=-1))
    return so.concat(rows[..., :start], changed, rows[..., start + 4 :], axis=-1)


def _eligible(rows: Any, score: int, least: float, class_: int, background: int) -> Any:
    """Whether rows have a score above ``least`` and a class other than ``background``."""
    there = rows[..., score] > least
    if class_ < 0:
        return there
    return so.logical_and(there, so.not_equal(rows[..., class_], background))


@operator(
    "_contrib_box_nms",
    "_contrib_box_non_maximum_suppression",
    outputs=lambda: ("output0", "output1"),
    visible=lambda: 1,
    shapes=like_data,
    note="where in_format is not out_format, the gradient is that of the conversion, too",
    at_once=True,
)
def box_nms(
    data: Any,
    *,
    overlap_thresh: float = 0.5,
    valid_thresh: float = 0.0,
    topk: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = -1,
    background_id: int = -1,
    force_suppress: bool = False,
    in_format: Format = "corner",
    out_format: Format = "corner",
) -> Any:
    """Non-maximum suppression: boxes by descending score, without overlapping ones."""
    count, width = data.shape[-2:]
    best = count if topk < 0 else min(topk, count)
    if not best:
        return so.identity(data)
    rows = so.reshape(data, shape=(-1, count, width))
    fixed = so.stop_gradient(rows)
    there = _eligible(fixed, score_index, valid_thresh, id_index, background_id)
    _, order = so.topk(so.where(there, fixed[..., score_index], -math.inf), k=best, axis=1)
    there = so.take_along_axis(there, order, axis=1)

    def clashes(one: Any, all_: Any) -> Any:
        a, b = (row[..., coord_start : coord_start + 4] for row in (one, all_))
        shared = intersections(a, b, in_format)
        over = shared / (areas(a, in_format) + areas(b, in_format) - shared) > overlap_thresh
        if id_index >= 0 and not force_suppress:
            same = so.equal(whole(one[..., id_index]), whole(all_[..., id_index]))
            over = so.logical_and(over, same)
        return over

    front, counts = in_front(kept(rows_at(fixed, order), there, clashes))
    chosen = listed(rows, so.take_along_axis(order, front, axis=1), counts)
    made = so.pad(chosen, pad_width=((0, 0), (0, count - best), (0, 0)), constant_value=-1.0)
    if in_format != out_format:
        made = _other_format(made, coord_start, in_format)
    return so.reshape(made, shape=tuple(data.shape))


@operator("_contrib_box_iou", note="no gradient, as in MXNet", at_once=True)
def box_iou(lhs: Any, rhs: Any, *, format: Format = "corner") -> Any:
    """Intersection over union of all pairs of boxes of ``lhs`` and ``rhs``."""
    one, other = (so.stop_gradient(so.reshape(x, shape=(-1, 4))) for x in (lhs, rhs))
    one = so.expand_dims(one, axis=1)
    shared = intersections(one, other, format)
    union = areas(one, format) + areas(other, format) - shared
    empty = shared <= 0
    ratio = so.where(empty, so.zeros_like(shared), shared / so.where(empty, 1.0, union))
    return so.reshape(ratio, shape=(*lhs.shape[:-1], *rhs.shape[:-1]))


def matches(scores: Any, least: float, most: int) -> tuple[Any, Any]:
    """Greedy matching of rows and columns, highest scores first.

    Args:
        scores: ``(batch, rows, columns)``.
        least: a strict lower bound on scores.
        most: the maximal number of pairs.

    Returns:
        The column of each row and the row of each column, -1 if there is none.
    """
    batch, rows, columns = scores.shape
    row_places, column_places = numbered(rows, dtype="int32"), numbered(columns, dtype="int32")
    none = so.cast(so.full_like(scores, fill_value=-1.0), dtype="int32")

    def step(carry: Any, _: Any) -> Any:
        open_, of_rows, of_columns = carry
        flat = so.reshape(open_, shape=(batch, rows * columns))
        place = so.cast(so.argmax(flat, axis=1, keepdims=True), dtype="int32")
        good = so.take_along_axis(flat, place, axis=1) > least
        row, column = so.floor_divide(place, columns), so.remainder(place, columns)
        row_hit = so.logical_and(so.equal(row_places, row), good)
        column_hit = so.logical_and(so.equal(column_places, column), good)
        used = so.logical_or(so.expand_dims(row_hit, axis=2), so.expand_dims(column_hit, axis=1))
        open_ = so.where(used, -math.inf, open_)
        return (
            open_,
            so.where(row_hit, column, of_rows),
            so.where(column_hit, row, of_columns),
        ), ()

    start = (scores, none[:, :, 0], none[:, 0, :])
    (_, of_rows, of_columns), _ = so.scan(step, start, length=min(rows, columns, most))
    return of_rows, of_columns


@operator("_contrib_bipartite_matching", outputs=lambda: ("output0", "output1"), at_once=True)
def bipartite_matching(
    data: Any, *, is_ascend: bool = False, threshold: float, topk: int = -1
) -> Any:
    """Greedy matching of rows and columns; as in MXNet, of up to ``topk + 1`` pairs."""
    if len(data.shape) < 2:
        raise MXNetError(f"_contrib_bipartite_matching: data must be matrices, got {data.shape}")
    scores = so.stop_gradient(so.reshape(data, shape=(-1, *data.shape[-2:])))
    if is_ascend:
        scores, threshold = so.negative(scores), -threshold
    most = topk + 1 if topk > 0 else math.prod(data.shape)
    of_rows, of_columns = matches(scores, threshold, most)
    shape, dtype = tuple(data.shape), data.dtype
    return (
        so.cast(so.reshape(of_rows, shape=shape[:-1]), dtype=dtype),
        so.cast(so.reshape(of_columns, shape=(*shape[:-2], shape[-1])), dtype=dtype),
    )


def centers(boxes: Any) -> list[Any]:
    """Center, width and height of boxes given by corners."""
    left, top, right, bottom = sides(boxes)
    width, height = right - left, bottom - top
    return [left + width * 0.5, top + height * 0.5, width, height]


def encoded(anchors: Any, boxes: Any, means: Any, deviations: Any) -> Any:
    """Offsets and log ratios of ``boxes`` relative to ``anchors``."""
    x, y, width, height = centers(anchors)
    x2, y2, width2, height2 = centers(boxes)
    made = [(x2 - x) / width, (y2 - y) / height, so.log(width2 / width), so.log(height2 / height)]
    return (so.stack(*made, axis=-1) - means) / deviations


@operator("_contrib_box_encode", outputs=lambda: ("output0", "output1"), at_once=True)
def box_encode(samples: Any, matches: Any, anchors: Any, refs: Any, means: Any, stds: Any) -> Any:
    """Regression targets of each anchor, and a mask of the valid ones."""
    samples, anchors, refs, means, stds = map(
        so.stop_gradient, (samples, anchors, refs, means, stds)
    )
    counts = so.broadcast_to(so.expand_dims(samples > 0.5, axis=-1), shape=tuple(anchors.shape))
    targets = encoded(anchors, rows_at(refs, whole(matches)), means, stds)
    zeros = so.zeros_like(targets)
    return so.where(counts, targets, zeros), so.cast(counts, dtype=anchors.dtype)


@operator("_contrib_box_decode", note="no gradient, as in MXNet", at_once=True)
def box_decode(
    data: Any,
    anchors: Any,
    *,
    std0: float = 1.0,
    std1: float = 1.0,
    std2: float = 1.0,
    std3: float = 1.0,
    clip: float = -1.0,
    format: Format = "center",
) -> Any:
    """Boxes by corners, decoded from predictions for each anchor."""
    data, anchors = so.stop_gradient(data), so.stop_gradient(anchors)
    x, y, width, height = centers(anchors) if format == "corner" else sides(anchors)
    dx, dy, dw, dh = sides(data)
    dw, dh = dw * std2, dh * std3
    if clip > 0:
        dw, dh = so.clip(dw, high=clip), so.clip(dh, high=clip)
    middle_x, middle_y = dx * std0 * width + x, dy * std1 * height + y
    half_width, half_height = so.exp(dw) * width * 0.5, so.exp(dh) * height * 0.5
    made = (
        middle_x - half_width,
        middle_y - half_height,
        middle_x + half_width,
        middle_y + half_height,
    )
    return so.stack(*made, axis=-1)
