"""Layers of object detectors: anchors, training targets, and detections."""

from typing import Any

import numpy as np

import symop as so
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.ops.boxes import (
    centers,
    corners,
    encoded,
    in_front,
    intersections,
    kept,
    listed,
    matches,
    rows_at,
    sides,
)
from symop.interop.mxnet.ops.reshaping import constant
from symop.interop.mxnet.partial_shapes import numbered, require_table

Numbers = tuple[float, ...]
_VARIANCES = (0.1, 0.1, 0.2, 0.2)


@operator("_contrib_MultiBoxPrior")
def multibox_prior(
    data: Any,
    *,
    sizes: Numbers = (1.0,),
    ratios: Numbers = (1.0,),
    clip: bool = False,
    steps: Numbers = (-1.0, -1.0),
    offsets: Numbers = (0.5, 0.5),
) -> Any:
    """Boxes around each pixel's center: of all sizes, and of all ratios for the first size."""
    height, width = data.shape[2:]
    if min(steps) <= 0:
        steps = (1.0 / height, 1.0 / width)
    roots = np.sqrt(np.asarray(ratios, "float32"))
    scales = np.asarray([*sizes, *[sizes[0]] * (len(ratios) - 1)], "float32")
    roots = np.asarray([*[roots[0]] * len(sizes), *roots[1:]], "float32")
    half = np.stack([scales * height / width * roots / 2, scales / roots / 2], axis=-1)
    require_table(height, width, len(scales), 4)
    y = (numbered(height, dtype="float32") + offsets[0]) * steps[0]
    x = (numbered(width, dtype="float32") + offsets[1]) * steps[1]
    middle = np.stack(np.meshgrid(x, y), axis=-1)[:, :, None]
    boxes = np.concatenate([middle - half, middle + half], axis=-1).reshape(1, -1, 4)
    return constant((boxes.clip(0, 1) if clip else boxes).astype(np.dtype(data.dtype)), data)


def _overlaps(one: Any, other: Any) -> Any:
    """Intersection over union, zero for an empty union."""
    shared = intersections(one, other)
    first, second = (
        (right - left) * (bottom - top) for left, top, right, bottom in map(sides, (one, other))
    )
    union = first + second - shared
    empty = union <= 0
    return so.where(
        empty, so.zeros_like(union), shared / so.where(empty, so.ones_like(union), union)
    )


def _hard_negatives(candidates: Any, positive: Any, scores: Any, ratio: float) -> Any:
    """The candidates least like the background, ``ratio`` for each positive anchor."""
    count = so.sum(so.cast(positive, dtype="float32"), axis=1, keepdims=True)
    wanted = so.minimum(so.floor(count * ratio), float(positive.shape[1]) - count)
    background = so.softmax(scores, axis=1)[:, 0]
    hidden = so.full_like(background, fill_value=-np.inf)
    hardest = so.argsort(
        so.where(candidates, so.negative(background), hidden), axis=1, descending=True
    )
    rank = so.cast(so.argsort(hardest, axis=1), dtype="float32")
    return so.logical_and(candidates, rank < wanted)


def _objects(anchor: Any, label: Any, there: Any, threshold: float) -> tuple[Any, Any, Any]:
    """The object of each anchor, whether the anchor is positive, and its largest overlap.

    Each object is matched to the anchor that overlaps it most; other anchors are matched to the
    object that they overlap by more than ``threshold``.
    """
    overlaps = _overlaps(so.expand_dims(anchor, axis=2), so.expand_dims(label[..., 1:5], axis=1))
    none = so.full_like(overlaps, fill_value=-1.0)
    overlaps = so.where(so.expand_dims(there, axis=1), overlaps, none)
    chosen, _ = matches(overlaps, 1e-6, label.shape[1])
    positive, highest = chosen >= 0, so.max(overlaps, axis=2)
    nearest = so.cast(so.argmax(overlaps, axis=2), dtype="int32")
    chosen = so.where(positive, chosen, nearest)
    if threshold > 0:
        positive = so.logical_or(positive, highest > threshold)
    return chosen, positive, highest


@operator(
    "_contrib_MultiBoxTarget",
    outputs=lambda: ("loc_target", "loc_mask", "cls_target"),
    ignored=("minimum_negative_samples",),
    note="no gradient, as in MXNet",
    at_once=True,
)
def multibox_target(
    anchor: Any,
    label: Any,
    cls_pred: Any,
    *,
    overlap_threshold: float = 0.5,
    ignore_label: float = -1.0,
    negative_mining_ratio: float = -1.0,
    negative_mining_thresh: float = 0.5,
    variances: Numbers = _VARIANCES,
) -> Any:
    """The box offsets, their mask, and the class to predict for each anchor.

    The labels of an image end at class -1.
    """
    anchor, label, cls_pred = map(so.stop_gradient, (anchor, label, cls_pred))
    there = so.cumprod(so.cast(so.not_equal(label[..., 0], -1.0), dtype="int32"), axis=1) > 0
    chosen, positive, highest = _objects(anchor, label, there, overlap_threshold)
    negative = so.logical_not(positive)
    if negative_mining_ratio > 0:
        negative = so.logical_and(negative, highest < negative_mining_thresh)
        negative = _hard_negatives(negative, positive, cls_pred, negative_mining_ratio)
    negative = so.logical_and(negative, there[:, :1])
    classes = so.take_along_axis(label[..., 0], chosen, axis=1)
    ignored = so.full_like(classes, fill_value=ignore_label)
    target = so.where(positive, classes + 1.0, so.where(negative, so.zeros_like(classes), ignored))
    deviations = np.asarray(variances, np.dtype(label.dtype))
    way = encoded(anchor, rows_at(label[..., 1:5], chosen), 0.0, deviations)
    mask = so.broadcast_to(so.expand_dims(positive, axis=2), shape=tuple(way.shape))
    flat = (label.shape[0], -1)
    return (
        so.reshape(so.where(mask, way, so.zeros_like(way)), shape=flat),
        so.reshape(so.cast(mask, dtype=label.dtype), shape=flat),
        target,
    )


def _decoded(anchor: Any, way: Any, variances: Numbers, clip: bool) -> Any:
    """Boxes decoded from offsets to anchors."""
    x, y, width, height = centers(anchor)
    dx, dy, dw, dh = (one * by for one, by in zip(sides(way), variances, strict=True))
    lengths = so.exp(dw) * width, so.exp(dh) * height
    boxes = so.stack(
        *corners(so.stack(dx * width + x, dy * height + y, *lengths, axis=-1), "center"), axis=-1
    )
    return so.clip(boxes, low=0.0, high=1.0) if clip else boxes


def _without_doubles(rows: Any, found: Any, least: float, any_class: bool, topk: int) -> Any:
    """Rows by descending score; class -1 marks rows that overlap another by ``least`` or more."""
    order, counts = in_front(found)
    hidden = so.full_like(rows[..., 1], fill_value=-np.inf)
    by_score = so.argsort(so.where(found, rows[..., 1], hidden), axis=1, descending=True)
    made, alive = listed(rows, by_score, counts), counts
    if topk > 0:  # the remaining rows keep their order
        within = numbered(rows.shape[1]) < topk
        made = so.where(within[:, None], made, listed(rows, order, counts))
        alive = so.logical_and(alive, within)

    def clashes(one: Any, other: Any) -> Any:
        over = _overlaps(one[..., 2:], other[..., 2:]) >= least
        return over if any_class else so.logical_and(over, so.equal(one[..., 0], other[..., 0]))

    left = kept(made, alive, clashes)
    classes = so.where(left, made[..., 0], so.full_like(made[..., 0], fill_value=-1.0))
    return so.concat(so.expand_dims(classes, axis=2), made[..., 1:], axis=2)


@operator(
    "_contrib_MultiBoxDetection",
    ignored=("background_id", "keep_topk"),
    note="no gradient, as in MXNet",
    at_once=True,
)
def multibox_detection(
    cls_prob: Any,
    loc_pred: Any,
    anchor: Any,
    *,
    clip: bool = True,
    threshold: float = 0.01,
    nms_threshold: float = 0.5,
    force_suppress: bool = False,
    variances: Numbers = _VARIANCES,
    nms_topk: int = -1,
) -> Any:
    """Class, score and box of each anchor's detection; class -1 marks suppressed ones."""
    cls_prob, loc_pred, anchor = map(so.stop_gradient, (cls_prob, loc_pred, anchor))
    batch, _, count = cls_prob.shape
    boxes = _decoded(anchor, so.reshape(loc_pred, shape=(batch, count, 4)), variances, clip)
    best = so.max(cls_prob[:, 1:], axis=1, keepdims=True)
    classes = so.cast(so.argmax(cls_prob[:, 1:], axis=1, keepdims=True), dtype=cls_prob.dtype)
    scored = so.swapaxes(so.concat(classes, best, axis=1), axis1=1, axis2=2)
    rows = so.concat(scored, boxes, axis=2)
    found = rows[..., 1] >= threshold
    if not 0 < nms_threshold <= 1:
        return listed(rows, *in_front(found))
    return _without_doubles(rows, found, nms_threshold, force_suppress, nms_topk)
