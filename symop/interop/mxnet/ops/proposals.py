"""Region proposals of object detectors."""

from typing import Any

import numpy as np

import symop as so
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.ops.boxes import in_front, kept, rows_at, sides
from symop.interop.mxnet.partial_dtypes import Dtypes, same_inputs
from symop.interop.mxnet.partial_shapes import Shapes, enter, numbered, require_table

Numbers = tuple[float, ...]


def _anchors(stride: int, ratios: Numbers, scales: Numbers) -> np.ndarray:
    """Boxes around the first cell; lengths are integers times the scales."""
    made = []
    for ratio in np.asarray(ratios, "float32"):
        width = np.floor(np.sqrt(np.floor(np.float32(stride * stride) / ratio)) + np.float32(0.5))
        for scale in np.asarray(scales, "float32"):
            wide, high = width * scale, np.floor(width * ratio + np.float32(0.5)) * scale
            half = np.asarray([wide - 1, high - 1], "float32") / 2
            made.append(np.concatenate([(stride - 1) / 2 - half, (stride - 1) / 2 + half]))
    return np.asarray(made, "float32")


def _everywhere(anchors: np.ndarray, stride: int, height: int, width: int) -> np.ndarray:
    """The anchors shifted to each cell: ``(height * width * anchors, 4)``."""
    y, x = np.mgrid[:height, :width].astype("float32") * stride
    moves = np.stack([x, y, x, y], axis=-1)[:, :, None]
    return np.reshape(moves + anchors, (-1, 4))


def _moved(anchors: np.ndarray, deltas: Any, iou_loss: bool) -> list[Any]:
    """The sides of the boxes decoded from ``deltas`` relative to anchors."""
    left, top, right, bottom = anchors.T
    dx, dy, dw, dh = sides(deltas)
    if iou_loss:
        return [dx + left, dy + top, dw + right, dh + bottom]
    width, height = right - left + 1, bottom - top + 1
    x, y = dx * width + (left + (width - 1) / 2), dy * height + (top + (height - 1) / 2)
    half_width = (so.exp(dw) * width - 1.0) * 0.5
    half_height = (so.exp(dh) * height - 1.0) * 0.5
    return [x - half_width, y - half_height, x + half_width, y + half_height]


def _clash(threshold: float) -> Any:
    """Whether boxes overlap by more than ``threshold``; boxes include both ends."""

    def clashes(one: Any, other: Any) -> Any:
        left, top, right, bottom = sides(one)
        left2, top2, right2, bottom2 = sides(other)
        width = so.minimum(right, right2) - so.maximum(left, left2) + 1.0
        height = so.minimum(bottom, bottom2) - so.maximum(top, top2) + 1.0
        shared = so.clip(width, low=0.0) * so.clip(height, low=0.0)
        first = (right - left + 1.0) * (bottom - top + 1.0)
        second = (right2 - left2 + 1.0) * (bottom2 - top2 + 1.0)
        return shared / (first + second - shared) > threshold

    return clashes


def _scored(
    cls_prob: Any,
    bbox_pred: Any,
    im_info: Any,
    anchors: np.ndarray,
    stride: int,
    least: int,
    iou_loss: bool,
) -> tuple[Any, Any]:
    """A box and a score for each anchor at each cell; invalid boxes have score -1."""
    batch, _, height, width = cls_prob.shape
    count = len(anchors)
    scores = so.reshape(
        so.permute_dims(cls_prob[:, count:], axes=(0, 2, 3, 1)),
        shape=(batch, height * width * count),
    )
    require_table(height, width, count)
    deltas = so.reshape(bbox_pred, shape=(batch, count, 4, height, width))
    deltas = so.reshape(so.permute_dims(deltas, axes=(0, 3, 4, 1, 2)), shape=(batch, -1, 4))
    high, wide, scale = im_info[:, 0:1], im_info[:, 1:2], im_info[:, 2:3]
    ends = [wide - 1.0, high - 1.0] * 2
    moved = _moved(_everywhere(anchors, stride, height, width), deltas, iou_loss)
    left, top, right, bottom = (
        so.clip(so.minimum(side, end), low=0.0) for side, end in zip(moved, ends, strict=True)
    )
    rows, columns = (np.repeat(one.ravel(), count) for one in np.mgrid[:height, :width])
    outside = so.logical_or(
        so.less_equal(so.floor(high / stride), rows.astype("float32")),
        so.less_equal(so.floor(wide / stride), columns.astype("float32")),
    )
    smallest = scale * float(least)
    small = so.logical_or(right - left + 1.0 < smallest, bottom - top + 1.0 < smallest)
    more = so.where(
        small, so.broadcast_to(smallest, shape=tuple(left.shape)) / 2, so.zeros_like(left)
    )
    boxes = so.stack(left - more, top - more, right + more, bottom + more, axis=-1)
    none = so.full_like(scores, fill_value=-1.0)
    return boxes, so.where(so.logical_or(outside, small), none, scores)


def _shapes(given: Shapes, found: Shapes) -> None:
    if given[0] is not None:
        batch, channels, height, width = given[0]
        enter(given, 1, (batch, channels * 2, height, width))
        enter(given, 2, (batch, 3))


def _dtypes(given: Dtypes, found: Dtypes) -> None:
    same_inputs(given, found)
    if given[0] is not None:  # the anchors are in single precision
        found[:] = [np.promote_types(given[0], np.float32), given[0]][: len(found)]


def _repeated(left: Any, most: int, count: int) -> Any:
    """The indices of ``count`` boxes: the first ``most`` remaining ones, repeated cyclically."""
    front, counts = in_front(left)
    number = so.cast(so.count_nonzero(counts, axis=1, keepdims=True), dtype="int32")
    places = so.remainder(numbered(count, dtype="int32"), so.minimum(number, most))
    return so.take_along_axis(front, places, axis=1)


def _with_images(boxes: Any) -> Any:
    """Boxes ``(batch, count, 4)`` as rows of five numbers, with the image index first."""
    batch, count, _ = boxes.shape
    require_table(batch, count, 5)
    numbers = np.zeros((batch, count, 5), np.dtype(boxes.dtype))
    numbers[..., 0] = numbered(batch)[:, None]
    rows = so.pad(boxes, pad_width=((0, 0), (0, 0), (1, 0))) + numbers
    return so.reshape(rows, shape=(-1, 5))


def _propose(
    cls_prob: Any,
    bbox_pred: Any,
    im_info: Any,
    *,
    rpn_pre_nms_top_n: int = 6000,
    rpn_post_nms_top_n: int = 300,
    threshold: float = 0.7,
    rpn_min_size: int = 16,
    scales: Numbers = (4.0, 8.0, 16.0, 32.0),
    ratios: Numbers = (0.5, 1.0, 2.0),
    feature_stride: int = 16,
    output_score: bool = False,
    iou_loss: bool = False,
) -> Any:
    """The boxes with the highest scores after non-maximum suppression.

    If there are too few, they are repeated. The first of the five numbers of a box is the index of
    its image.
    """
    anchors = _anchors(feature_stride, ratios, scales)
    if cls_prob.shape[1] != 2 * len(anchors):
        raise MXNetError(
            f"_contrib_Proposal: cls_prob must have {2 * len(anchors)} channels, two for each "
            f"ratio and scale, got {cls_prob.shape}"
        )
    cls_prob, bbox_pred, im_info = map(so.stop_gradient, (cls_prob, bbox_pred, im_info))
    boxes, scores = _scored(
        cls_prob, bbox_pred, im_info, anchors, feature_stride, rpn_min_size, iou_loss
    )
    count = scores.shape[1]
    before = min(rpn_pre_nms_top_n, count) if rpn_pre_nms_top_n > 0 else count
    scores, order = so.topk(scores, k=before, axis=1)
    boxes = rows_at(boxes, order)
    left = kept(boxes, so.equal(order, order), _clash(threshold))
    chosen = _repeated(left, min(rpn_post_nms_top_n, before), rpn_post_nms_top_n)
    result = _with_images(rows_at(boxes, chosen))
    if not output_score:
        return result
    return result, so.reshape(so.take_along_axis(scores, chosen, axis=1), shape=(-1, 1))


for _name in ("_contrib_Proposal", "_contrib_MultiProposal"):
    operator(
        _name,
        outputs=lambda: ("output", "score"),
        visible=lambda output_score: 1 + output_score,
        shapes=_shapes,
        dtypes=_dtypes,
        note="no gradient, as in MXNet",
        at_once=True,
    )(_propose)
