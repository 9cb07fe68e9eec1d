"""Detection of objects: prior boxes, their codes, regions, and the selection of boxes."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

import symop as so
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.operators import operator
from symop.interop.paddle.ops.sequences import last_offsets, ragged
from symop.interop.paddle.values import data_of, known

# Boxes that depend on shapes alone ---------------------------------------------------------------


def _repeated(boxes: np.ndarray, variances: Sequence[float]) -> tuple[Any, Any]:
    """Returns boxes, and variances of the same shape."""
    spread = np.broadcast_to(np.asarray(variances, np.float32), boxes.shape)
    return jnp.asarray(boxes, jnp.float32), jnp.asarray(spread)


def _grid(lengths: Sequence[int], steps: Sequence[float], offset: float) -> np.ndarray:
    """Returns the centers of cells, of shape (height, width, 1, 2): x, then y."""
    ys, xs = (
        (np.arange(n, dtype=np.float32) + offset) * step
        for n, step in zip(lengths, steps, strict=True)
    )
    return np.stack(np.meshgrid(xs, ys), axis=-1)[:, :, None, :]


def _steps(feature: Any, image: Any, step_h: float, step_w: float) -> tuple[float, float]:
    if step_h == 0 or step_w == 0:
        return image.shape[2] / feature.shape[2], image.shape[3] / feature.shape[3]
    return step_h, step_w


def _relative(centers: np.ndarray, halves: np.ndarray, image: Any, clip: bool) -> np.ndarray:
    """Returns corners in units of the image; ``halves`` are halves of widths and heights."""
    size = np.asarray([image.shape[3], image.shape[2]], np.float32)
    boxes = np.concatenate([(centers - halves) / size, (centers + halves) / size], axis=-1)
    return np.clip(boxes, 0, 1) if clip else boxes


@operator(outputs="Boxes Variances", no_gradient="Input Image")
def prior_box(
    Input: Any,
    Image: Any,
    *,
    min_sizes: Sequence[float],
    max_sizes: Sequence[float] = (),
    aspect_ratios: Sequence[float] = (),
    variances: Sequence[float] = (),
    flip: bool = True,
    clip: bool = True,
    step_w: float = 0.0,
    step_h: float = 0.0,
    offset: float = 0.5,
    min_max_aspect_ratios_order: bool = False,
) -> Any:
    ratios = [1.0]
    for one in aspect_ratios:
        if all(abs(one - other) >= 1e-6 for other in ratios):
            ratios += [one, 1 / one] if flip else [one]
    sides: list[tuple[float, float]] = []
    for i, least in enumerate(min_sizes):
        shaped = [(least * math.sqrt(one), least / math.sqrt(one)) for one in ratios]
        square = [(math.sqrt(least * max_sizes[i]),) * 2] if max_sizes else []
        if min_max_aspect_ratios_order:
            sides += [*shaped[:1], *square, *shaped[1:]]
        else:
            sides += [*shaped, *square]
    centers = _grid(Input.shape[2:], _steps(Input, Image, step_h, step_w), offset)
    halves = np.asarray(sides, np.float32) / 2
    return _repeated(_relative(centers, halves, Image, clip), variances)


@operator(outputs="Boxes Variances", no_gradient="Input Image")
def density_prior_box(
    Input: Any,
    Image: Any,
    *,
    variances: Sequence[float],
    clip: bool = True,
    flatten_to_2d: bool = False,
    step_w: float = 0.0,
    step_h: float = 0.0,
    offset: float = 0.5,
    fixed_sizes: Sequence[float] = (),
    fixed_ratios: Sequence[float] = (),
    densities: Sequence[int] = (),
) -> Any:
    steps = _steps(Input, Image, step_h, step_w)
    average = int((steps[0] + steps[1]) * 0.5)
    shifts, sides = [], []
    for size, density in zip(fixed_sizes, densities, strict=True):
        shift = average // density
        ticks = -average / 2 + shift / 2 + shift * np.arange(density)
        for ratio in fixed_ratios:
            shifts += [(x, y) for y in ticks for x in ticks]
            sides += [(size * math.sqrt(ratio), size / math.sqrt(ratio))] * density**2
    centers = _grid(Input.shape[2:], steps, offset) + np.asarray(shifts, np.float32)
    boxes = _relative(centers, np.asarray(sides, np.float32) / 2, Image, False)
    # As in Paddle, first corners are not negative and second ones at most 1 in any case.
    boxes = np.concatenate([np.maximum(boxes[..., :2], 0), np.minimum(boxes[..., 2:], 1)], -1)
    boxes = np.clip(boxes, 0, 1) if clip else boxes
    return _repeated(boxes.reshape(-1, 4) if flatten_to_2d else boxes, variances)


@operator(outputs="Anchors Variances", no_gradient="Input")
def anchor_generator(
    Input: Any,
    *,
    anchor_sizes: Sequence[float],
    aspect_ratios: Sequence[float],
    variances: Sequence[float],
    stride: Sequence[float] = (16.0, 16.0),
    offset: float = 0.5,
) -> Any:
    width, height = stride
    sides = []
    for ratio in aspect_ratios:
        base = _rounded(math.sqrt(width * height / ratio))
        sides += [
            (size / width * base, size / height * _rounded(base * ratio)) for size in anchor_sizes
        ]
    lengths = Input.shape[2:]
    ys, xs = (
        np.arange(n, dtype=np.float32) * step + offset * (step - 1)
        for n, step in zip(lengths, (height, width), strict=True)
    )
    centers = np.stack(np.meshgrid(xs, ys), axis=-1)[:, :, None, :]
    halves = (np.asarray(sides, np.float32) - 1) / 2
    return _repeated(np.concatenate([centers - halves, centers + halves], axis=-1), variances)


def _rounded(value: float) -> float:
    """Returns the nearest integer, halves away from zero."""
    return math.floor(value + 0.5)


# Codes of boxes --------------------------------------------------------------------------------


def _corners(boxes: Any) -> list[Any]:
    return [
        so.squeeze(so.slice_axis(boxes, axis=-1, begin=i, end=i + 1), axis=-1) for i in range(4)
    ]


def _centered(boxes: Any, extra: float) -> tuple[Any, Any, Any, Any]:
    """Returns centers and sides of boxes."""
    left, top, right, bottom = _corners(boxes)
    width, height = right - left + extra, bottom - top + extra
    return left + width / 2, top + height / 2, width, height


def _stacked(parts: Sequence[Any]) -> Any:
    return so.concat(*(so.expand_dims(one, axis=-1) for one in parts), axis=-1)


@operator(outputs="OutputBox", no_gradient="PriorBox PriorBoxVar")
def box_coder(
    PriorBox: Any,
    TargetBox: Any,
    PriorBoxVar: Any = None,
    *,
    code_type: str = "encode_center_size",
    box_normalized: bool = True,
    axis: int = 0,
    variance: Sequence[float] = (),
) -> Any:
    extra = 0.0 if box_normalized else 1.0
    encodes = code_type.lower() == "encode_center_size"
    along = 0 if encodes else axis
    priors = [so.expand_dims(one, axis=along) for one in _centered(PriorBox, extra)]
    if PriorBoxVar is not None:
        spread = [so.expand_dims(one, axis=along) for one in _corners(PriorBoxVar)]
    else:
        spread = list(variance) or [1.0] * 4
    x, y, width, height = priors
    if encodes:
        left, top, right, bottom = (so.expand_dims(one, axis=1) for one in _corners(TargetBox))
        center = ((left + right) / 2 - x) / width, ((top + bottom) / 2 - y) / height
        sides = (right - left + extra) / width, (bottom - top + extra) / height
        codes = [*center, *(so.log(so.abs(one)) for one in sides)]
        return _stacked([one / each for one, each in zip(codes, spread, strict=True)])
    codes = [one * each for one, each in zip(_corners(TargetBox), spread, strict=True)]
    across, down = codes[0] * width + x, codes[1] * height + y
    wide, high = so.exp(codes[2]) * width, so.exp(codes[3]) * height
    ends = across + wide / 2 - extra, down + high / 2 - extra
    return _stacked([across - wide / 2, down - high / 2, *ends])


@operator(no_gradient="X Y")
def iou_similarity(X: Any, Y: Any, *, box_normalized: bool = True) -> Any:
    extra = 0.0 if box_normalized else 1.0
    one = [so.expand_dims(part, axis=1) for part in _corners(X)]
    other = [so.expand_dims(part, axis=0) for part in _corners(Y)]
    sides = [
        so.maximum(so.minimum(one[i + 2], other[i + 2]) - so.maximum(one[i], other[i]) + extra, 0.0)
        for i in range(2)
    ]
    shared = sides[0] * sides[1]
    first, second = ((box[2] - box[0] + extra) * (box[3] - box[1] + extra) for box in (one, other))
    return shared / (first + second - shared)


@operator(outputs="Output", ragged=True, no_gradient="ImInfo")
def box_clip(Input: Any, ImInfo: Any) -> Any:
    """Clips boxes to their images, whose sizes are given with a scale."""
    x = ragged("box_clip", Input)
    info = data_of(ImInfo)
    sizes = so.round(info[:, :2] / info[:, 2:3]) - 1
    rows = so.take(sizes, so.sequence_ids(last_offsets(x), total_length=x.data.shape[0]), axis=0)
    high = so.concat(rows[:, 1:2], rows[:, :1], rows[:, 1:2], rows[:, :1], axis=1)
    return so.LoDTensor(so.maximum(so.minimum(x.data, high), 0.0), x.lod)


@operator(outputs="Boxes Scores", no_gradient="ImgSize")
def yolo_box(
    X: Any,
    ImgSize: Any,
    *,
    anchors: Sequence[int] = (),
    class_num: int = 1,
    conf_thresh: float = 0.01,
    downsample_ratio: int = 32,
    clip_bbox: bool = True,
    scale_x_y: float = 1.0,
    iou_aware: bool = False,
    iou_aware_factor: float = 0.5,
) -> Any:
    batch, _, height, width = X.shape
    count = len(anchors) // 2
    x = X
    if iou_aware:
        overlap = so.sigmoid(so.expand_dims(X[:, :count], axis=2))
        x = X[:, count:]
    cells = so.reshape(x, shape=(batch, count, 5 + class_num, height, width))
    parts = [so.squeeze(so.slice_axis(cells, axis=2, begin=i, end=i + 1), axis=2) for i in range(5)]
    image = so.cast(ImgSize, dtype=X.dtype)
    tall, wide = (so.reshape(image[:, i], shape=(-1, 1, 1, 1)) for i in range(2))
    sizes = np.asarray(anchors, np.float32).reshape(1, count, 2, 1, 1)
    bias = -0.5 * (scale_x_y - 1)
    columns = np.arange(width, dtype=np.float32)
    rows = np.arange(height, dtype=np.float32)[:, None]
    across = (columns + so.sigmoid(parts[0]) * scale_x_y + bias) * wide / width
    down = (rows + so.sigmoid(parts[1]) * scale_x_y + bias) * tall / height
    half_wide = so.exp(parts[2]) * sizes[:, :, 0] * wide / (2 * downsample_ratio * width)
    half_tall = so.exp(parts[3]) * sizes[:, :, 1] * tall / (2 * downsample_ratio * height)
    sure = so.sigmoid(so.expand_dims(parts[4], axis=2))
    if iou_aware:
        sure = so.power(sure, 1 - iou_aware_factor) * so.power(overlap, iou_aware_factor)
    kept = so.greater_equal(sure, conf_thresh)
    corners = [across - half_wide, down - half_tall, across + half_wide, down + half_tall]
    if clip_bbox:
        corners = [so.maximum(one, 0.0) for one in corners[:2]] + [
            so.minimum(one, limit - 1) for one, limit in zip(corners[2:], (wide, tall), strict=True)
        ]
    boxes = so.concat(*(so.expand_dims(one, axis=2) for one in corners), axis=2)
    scores = so.sigmoid(so.slice_axis(cells, axis=2, begin=5, end=5 + class_num)) * sure
    return tuple(
        so.reshape(
            so.transpose(so.where(kept, one, so.zeros_like(one)), axes=(0, 1, 3, 4, 2)),
            shape=(batch, count * height * width, one.shape[2]),
        )
        for one in (boxes, scores)
    )


# Regions ---------------------------------------------------------------------------------------


def _regions(name: str, rois: Any, counts: Any) -> Any:
    """Returns regions with the numbers of their images in front.

    Raises:
        PaddleError: nothing tells to which image a region belongs.
    """
    data = data_of(rois)
    if counts is not None:
        bounds = so.concat(
            jnp.zeros(1, jnp.int32),
            so.cumsum(so.cast(data_of(counts), dtype="int32"), axis=0),
            axis=0,
        )
    elif isinstance(rois, so.LoDTensor):
        bounds = last_offsets(rois)
    else:
        raise PaddleError(f"{name}: ROIs must have offsets, or RoisNum be given, got neither")
    ids = so.sequence_ids(bounds, total_length=data.shape[0])
    return so.concat(so.expand_dims(so.cast(ids, dtype=data.dtype), axis=1), data, axis=1)


@operator(ragged=True, no_gradient="ROIs RoisNum RoisLod")
def roi_align(
    X: Any,
    ROIs: Any,
    RoisNum: Any = None,
    RoisLod: Any = None,
    *,
    pooled_height: int = 1,
    pooled_width: int = 1,
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    aligned: bool = False,
) -> Any:
    """Returns means of samples in the bins of regions.

    Without a ratio, the number of samples follows from the sizes of regions, as far as they are
    known when the program is compiled.
    """
    size = (pooled_height, pooled_width)
    settings: dict[str, Any] = {"pooled_size": size, "spatial_scale": spatial_scale}
    rois = _lod_of(ROIs, RoisLod)
    regions = so.stop_gradient(_regions("roi_align", rois, RoisNum))
    if sampling_ratio > 0:
        return so.roi_align(
            data_of(X), regions, sample_ratio=sampling_ratio, aligned=aligned, **settings
        )
    boxes = known("roi_align: without sampling_ratio, ROIs", ROIs)
    counts = [_samples(box, size, spatial_scale, aligned) for box in boxes]
    return _sampled_apart(data_of(X), regions, counts, size, spatial_scale, aligned)


def _lod_of(rois: Any, offsets: Any) -> Any:
    if offsets is None:
        return rois
    bounds = so.cast(so.reshape(data_of(offsets), shape=(-1,)), dtype="int32")
    return so.LoDTensor(data_of(rois), [bounds])


def _samples(
    box: np.ndarray, size: tuple[int, int], scale: float, aligned: bool
) -> tuple[int, int]:
    """Returns the number of samples along the axes of a bin."""
    wide, tall = (box[2] - box[0]) * scale, (box[3] - box[1]) * scale
    if not aligned:
        wide, tall = max(wide, 1.0), max(tall, 1.0)
    return math.ceil(tall / size[0]), math.ceil(wide / size[1])


def _sampled_apart(
    x: Any,
    regions: Any,
    counts: Sequence[tuple[int, int]],
    size: tuple[int, int],
    scale: float,
    aligned: bool,
) -> Any:
    """Returns ``roi_align`` with another number of samples along each axis of each region."""
    results = []
    for i, (down, across) in enumerate(counts):
        # As many bins as samples, each with one sample in its middle, averaged over the bins.
        fine = so.roi_align(
            x,
            regions[i : i + 1],
            pooled_size=(size[0] * down, size[1] * across),
            spatial_scale=scale,
            sample_ratio=1,
            aligned=aligned,
        )
        parts = so.reshape(fine, shape=(1, x.shape[1], size[0], down, size[1], across))
        results.append(so.mean(parts, axis=(3, 5)))
    return so.concat(*results, axis=0) if len(results) > 1 else results[0]


@operator(outputs="Out Argmax", ragged=True, no_gradient="ROIs RoisNum RoisLod")
def roi_pool(
    X: Any,
    ROIs: Any,
    RoisNum: Any = None,
    RoisLod: Any = None,
    *,
    pooled_height: int = 1,
    pooled_width: int = 1,
    spatial_scale: float = 1.0,
) -> Any:
    """Returns the largest entries of bins; their places are not computed, and stand as zeros."""
    regions = so.stop_gradient(_regions("roi_pool", _lod_of(ROIs, RoisLod), RoisNum))
    size = (pooled_height, pooled_width)
    out = so.roi_pooling(data_of(X), regions, pooled_size=size, spatial_scale=spatial_scale)
    return out, so.zeros(shape=out.shape, dtype="int32")


# Selection of boxes ------------------------------------------------------------------------------


def _overlap(one: np.ndarray, others: np.ndarray, extra: float) -> np.ndarray:
    """Returns intersections over unions of a box with others."""
    low, high = np.maximum(one[:2], others[:, :2]), np.minimum(one[2:], others[:, 2:])
    sides = np.maximum(high - low + extra, 0)
    apart = (high < low).any(axis=1)
    shared = np.where(apart, 0, sides.prod(axis=1))
    areas = (others[:, 2:] - others[:, :2] + extra).prod(axis=1)
    total = (one[2:] - one[:2] + extra).prod() + areas - shared
    return np.asarray(shared / np.where(total > 0, total, 1))


def _suppressed(
    boxes: np.ndarray,
    scores: np.ndarray,
    least: float,
    first: int,
    threshold: float,
    eta: float,
    extra: float,
) -> list[int]:
    """Returns the boxes that no better one covers, the best first."""
    order = [int(i) for i in np.argsort(-scores, kind="stable") if scores[i] > least]
    kept: list[int] = []
    for i in order[: first if first > -1 else None]:
        if not kept or (_overlap(boxes[i], boxes[kept], extra) <= threshold).all():
            kept.append(i)
            threshold *= eta if eta < 1 and threshold > 0.5 else 1
    return kept


@operator(
    "multiclass_nms",
    "multiclass_nms2",
    "multiclass_nms3",
    outputs="Out Index NmsRoisNum",
    ragged=True,
    no_gradient="BBoxes Scores RoisNum",
)
def multiclass_nms(
    BBoxes: Any,
    Scores: Any,
    RoisNum: Any = None,
    *,
    background_label: int = 0,
    score_threshold: float,
    nms_top_k: int,
    nms_threshold: float = 0.3,
    nms_eta: float = 1.0,
    keep_top_k: int,
    normalized: bool = True,
    call: Any,
) -> Any:
    """Returns rows of label, score and box. Their number depends on scores: it is interpreted."""
    boxes, scores = (
        known(f"{call.op.type}: {name}", one)
        for name, one in (("BBoxes", BBoxes), ("Scores", Scores))
    )
    groups = [*zip(boxes, scores, strict=True)]
    if boxes.ndim == 3 and scores.ndim == 2:
        groups = _of_regions(call, boxes, scores, BBoxes, RoisNum)
    settings = (score_threshold, nms_top_k, nms_threshold, nms_eta, 0.0 if normalized else 1.0)
    rows, places, counts, begin = [], [], [], 0
    for own, each in groups:
        found = _detected(own, each, background_label, keep_top_k, settings)
        rows += [[label, each[label, i], *_box(own, label, i)] for label, i in found]
        places += [begin + (i if own.ndim == 2 else i * own.shape[1] + label) for label, i in found]
        begin += len(own) if own.ndim == 2 else own.shape[0] * own.shape[1]
        counts.append(len(found))
    bounds = jnp.asarray(np.concatenate([[0], np.cumsum(counts)]), jnp.int32)
    table = np.asarray(rows, boxes.dtype).reshape(len(rows), -1 if rows else boxes.shape[-1] + 2)
    index = jnp.asarray(places, jnp.int32).reshape(-1, 1)
    numbers = jnp.asarray(counts, jnp.int32)
    if not rows and call.op.type == "multiclass_nms":
        return so.LoDTensor(jnp.full((1, 1), -1, boxes.dtype), [jnp.asarray([0, 1])]), None, None
    out, at = (so.LoDTensor(one, [bounds]) for one in (jnp.asarray(table), index))
    return out, at, numbers


def _of_regions(
    call: Any, boxes: np.ndarray, scores: np.ndarray, ragged_boxes: Any, counts: Any
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns boxes of each class and their scores for each image."""
    name = f"{call.op.type}: RoisNum"
    if counts is not None:
        bounds = np.concatenate([[0], np.cumsum(known(name, counts))])
    else:
        offsets = last_offsets(ragged(call.op.type, ragged_boxes))
        bounds = known(f"{call.op.type}: the offsets of BBoxes", offsets)
    pairs = itertools.pairwise(bounds)
    return [(boxes[start:stop], scores[start:stop].T) for start, stop in pairs]


def _box(boxes: np.ndarray, label: int, i: int) -> np.ndarray:
    return np.asarray(boxes[i] if boxes.ndim == 2 else boxes[i, label])


def _detected(
    boxes: np.ndarray, scores: np.ndarray, background: int, limit: int, settings: Any
) -> list[tuple[int, int]]:
    """Returns the labels and numbers of the boxes of an image that remain, by label."""
    least, first, threshold, eta, extra = settings
    found = [
        (label, i)
        for label, own in enumerate(scores)
        if label != background
        for i in _suppressed(
            boxes if boxes.ndim == 2 else boxes[:, label], own, least, first, threshold, eta, extra
        )
    ]
    if -1 < limit < len(found):
        best = sorted(found, key=lambda one: -scores[one])[:limit]
        found = sorted(best, key=lambda one: one[0])
    return found
