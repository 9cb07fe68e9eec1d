"""Samples of layers of object detectors: anchors, targets, what was found, proposals."""

import itertools

import numpy as np
import scipy.special

from mxnet_samples.of_boxes import box_decode, centers, drawn, iou
from mxnet_samples.sample import Sample

DRAW = np.random.default_rng(5)
VARIANCES = (0.1, 0.1, 0.2, 0.2)


def multibox_prior(sizes=(1.0,), ratios=(1.0,), clip=False, **told):
    """Boxes around each pixel."""

    def reference(data):
        height, width = data.shape[2:]
        steps = told.get("steps", (1 / height, 1 / width))
        offsets = told.get("offsets", (0.5, 0.5))
        kinds = [(size, ratios[0]) for size in sizes] + [(sizes[0], one) for one in ratios[1:]]
        made = []
        for row, column in np.ndindex(height, width):
            middle = (np.asarray([column, row]) + offsets[::-1]) * steps[::-1]
            for size, ratio in kinds:
                half = np.asarray([size * height / width * ratio**0.5, size / ratio**0.5]) / 2
                made.append([*middle - half, *middle + half])
        return np.clip([made], 0, 1) if clip else np.asarray([made])

    return reference


PRIORS = [
    {},
    {"sizes": (0.5, 0.25), "ratios": (1.0, 2.0, 0.5), "clip": True},
    {"sizes": (0.2,), "ratios": (2.0, 1.0), "steps": (0.1, 0.2), "offsets": (0.0, 1.0)},
]


def objects_of(overlaps, threshold):
    """The object of each anchor, -1 where there is none."""
    found, free = np.full(len(overlaps), -1), overlaps.copy()
    while free.max() > 1e-6:
        anchor, thing = np.unravel_index(free.argmax(), free.shape)
        found[anchor] = thing
        free[anchor], free[:, thing] = 0, 0
    if threshold > 0:
        more = (found < 0) & (overlaps.max(1) > threshold)
        found[more] = overlaps.argmax(1)[more]
    return found


def negatives_of(found, overlaps, scores, ratio, threshold):
    """The anchors that are to find the background."""
    if ratio <= 0:
        return found < 0
    wanted = int(min((found >= 0).sum() * ratio, (found < 0).sum()))
    able = np.flatnonzero((found < 0) & (overlaps.max(1) < threshold))
    assert len(able) >= wanted
    background = scipy.special.softmax(scores, 0)[0]
    return able[np.argsort(background[able], kind="stable")[:wanted]]


def targets_of(anchors, label, scores, **told):
    """Way, mask and class of each anchor of one image."""
    way, mask = np.zeros_like(anchors), np.zeros_like(anchors)
    classes = np.full(len(anchors), told.get("ignore_label", -1.0))
    label = np.asarray(list(itertools.takewhile(lambda one: one[0] != -1, label)))
    if label.size:
        overlaps = np.asarray([[iou(one, other[1:5]) for other in label] for one in anchors])
        found = objects_of(overlaps, told.get("overlap_threshold", 0.5))
        ratio = told.get("negative_mining_ratio", -1.0)
        threshold = told.get("negative_mining_thresh", 0.5)
        classes[negatives_of(found, overlaps, scores, ratio, threshold)] = 0
        hit = found >= 0
        mask[hit], classes[hit] = 1, label[found[hit], 0] + 1
        (middle, lengths), (middle2, lengths2) = (
            centers(one) for one in (anchors[hit], label[found[hit], 1:5])
        )
        ways = np.concatenate([(middle2 - middle) / lengths, np.log(lengths2 / lengths)], -1)
        way[hit] = ways / told.get("variances", VARIANCES)
    return way.ravel(), mask.ravel(), classes


def multibox_target(**told):
    """Targets of all images."""

    def reference(anchor, label, cls_pred):
        found = [targets_of(anchor[0], *one, **told) for one in zip(label, cls_pred, strict=True)]
        return [np.stack(one) for one in zip(*found, strict=True)]

    return reference


def labels():
    """Three objects, two, and none."""
    made = np.concatenate([np.asarray([[2.0], [0.0], [1.0]]), drawn(3, draw=DRAW)], -1)
    made = np.stack([made, made[::-1], made])
    made[1, 2:], made[2] = -1, -1
    return made


TARGETS = [
    {},
    {"overlap_threshold": 0.2},
    {"overlap_threshold": -1.0, "variances": (0.2, 0.1, 0.3, 0.4)},
    {"negative_mining_ratio": 1.0, "negative_mining_thresh": 0.9, "ignore_label": -2.0},
]


def detected(scores, way, anchors, told):
    """Class, score and box of what is found in one image."""
    boxes = box_decode(*told["variances"], format="corner")(way.reshape(-1, 4), anchors)
    boxes = np.clip(boxes, 0, 1) if told["clip"] else boxes
    rows = np.column_stack([scores[1:].argmax(0), scores[1:].max(0), boxes])
    rows = rows[rows[:, 1] >= told["threshold"]]
    made = np.full((len(anchors), 6), -1.0)
    made[: len(rows)] = rows
    if not 0 < told["nms_threshold"] <= 1:
        return made
    count = min(told["nms_topk"], len(rows)) if told["nms_topk"] > 0 else len(rows)
    made[count : len(rows), 0] = -1
    made[:count] = rows[np.argsort(-rows[:, 1], kind="stable")[:count]]
    for one, other in itertools.combinations(made[:count], 2):
        rivals = told["force_suppress"] or one[0] == other[0]
        if min(one[0], other[0]) >= 0 and rivals:
            other[0] = -1 if iou(one[2:], other[2:]) >= told["nms_threshold"] else other[0]
    return made


def multibox_detection(**told):
    """What is found in all images."""
    told = {
        **{"clip": True, "threshold": 0.01, "nms_threshold": 0.5, "force_suppress": False},
        **{"variances": VARIANCES, "nms_topk": -1},
        **told,
    }

    def reference(cls_prob, loc_pred, anchor):
        pairs = zip(cls_prob, loc_pred, strict=True)
        return np.stack([detected(scores, way, anchor[0], told) for scores, way in pairs])

    return reference


DETECTIONS = [
    {},
    {"threshold": 0.6, "nms_threshold": 0.1},
    {"nms_topk": 3, "nms_threshold": 0.2, "threshold": 0.3},
    {"force_suppress": True, "nms_threshold": 0.1, "clip": False},
    {"nms_threshold": -1.0, "threshold": 0.7},
    {"threshold": 2.0},
]

SCALES, RATIOS, STRIDE = (2.0, 4.0), (0.5, 2.0), 16


def regions():
    """The anchors around the first cell."""
    for ratio, scale in itertools.product(RATIOS, SCALES):
        width = np.floor(np.sqrt(np.floor(STRIDE**2 / ratio)) + 0.5)
        lengths = np.asarray([width, np.floor(width * ratio + 0.5)]) * scale - 1
        yield np.concatenate([STRIDE - 1 - lengths, STRIDE - 1 + lengths]) / 2


def moved(box, delta, iou_loss):
    """Where ``delta`` takes a box; both ends belong to it."""
    if iou_loss:
        return box + delta
    lengths = box[2:] - box[:2] + 1
    middle = delta[:2] * lengths + box[:2] + (lengths - 1) / 2
    half = (np.exp(delta[2:]) * lengths - 1) / 2
    return np.concatenate([middle - half, middle + half])


def candidates(scores, deltas, info, least, iou_loss):
    """A box and a score for each anchor at each cell."""
    _, height, width = scores.shape
    for row, column in np.ndindex(height, width):
        cell = STRIDE * np.asarray([column, row] * 2)
        outside = row >= int(info[0] / STRIDE) or column >= int(info[1] / STRIDE)
        for i, anchor in enumerate(regions()):
            box = moved(anchor + cell, deltas[4 * i : 4 * i + 4, row, column], iou_loss)
            box = np.clip(box, 0, [info[1] - 1, info[0] - 1] * 2)
            small = min(box[2:] - box[:2] + 1) < least * info[2]
            box += np.asarray([-1, -1, 1, 1]) * small * least * info[2] / 2
            score = -1 if outside or small else scores[len(SCALES) * len(RATIOS) + i, row, column]
            yield [*box, score]


def proposed(found, told):
    """Those with the highest scores that do not overlap much, again and again."""
    found = found[np.argsort(-found[:, 4], kind="stable")]
    found = found[: told.get("rpn_pre_nms_top_n", 6000)]
    wanted, made = told["rpn_post_nms_top_n"], []
    ends = found[:, :4] + [0, 0, 1, 1]
    for i, one in enumerate(ends):
        if all(iou(one, ends[j]) <= told.get("threshold", 0.7) for j in made):
            made.append(i)
    return found[list(itertools.islice(itertools.cycle(made[:wanted]), wanted))]


def proposal(**told):
    """Regions of all images, and their scores if they are asked for."""

    def reference(cls_prob, bbox_pred, im_info):
        least, iou_loss = told.get("rpn_min_size", 16), told.get("iou_loss", False)
        made, scores = [], []
        for i, one in enumerate(zip(cls_prob, bbox_pred, im_info, strict=True)):
            found = proposed(np.asarray(list(candidates(*one, least, iou_loss))), told)
            made.append(np.column_stack([np.full(len(found), i), found[:, :4]]))
            scores.append(found[:, 4:])
        both = [np.concatenate(made), np.concatenate(scores)]
        return both if told.get("output_score") else both[0]

    return reference


PROPOSALS = [
    ("_contrib_Proposal", 1, {"rpn_post_nms_top_n": 5}),
    (
        "_contrib_Proposal",
        1,
        {"rpn_pre_nms_top_n": 8, "rpn_post_nms_top_n": 10, "threshold": 0.3, "output_score": True},
    ),
    (
        "_contrib_MultiProposal",
        2,
        {"rpn_post_nms_top_n": 4, "rpn_min_size": 4, "iou_loss": True, "output_score": True},
    ),
]
IMAGES = np.asarray([[32.0, 50.0, 1.0], [30.0, 40.0, 1.5]])


def proposals():
    """Samples of ``_contrib_Proposal`` and ``_contrib_MultiProposal``."""
    for op, count, told in PROPOSALS:
        inputs = {
            "cls_prob": DRAW.uniform(size=(count, 8, 2, 3)),
            "bbox_pred": 0.3 * DRAW.normal(size=(count, 16, 2, 3)),
            "im_info": IMAGES[:count],
        }
        kind = {"scales": SCALES, "ratios": RATIOS, "feature_stride": STRIDE}
        yield Sample(op, inputs, {**kind, **told}, proposal(**told), "zero", why="as in MXNet")


ANCHORS = drawn(1, 6, draw=DRAW)

SAMPLES = [
    *[
        Sample(
            "_contrib_MultiBoxPrior",
            {"data": (1, 2, 2, 3)},
            told,
            multibox_prior(**told),
            "zero",
            rtol=1e-6,
            why="the values of data do not matter; MXNet computes in float32",
        )
        for told in PRIORS
    ],
    *[
        Sample(
            "_contrib_MultiBoxTarget",
            {"anchor": ANCHORS, "label": labels(), "cls_pred": (3, 3, 6)},
            told,
            multibox_target(**told),
            "zero",
            why="as in MXNet",
        )
        for told in TARGETS
    ],
    *[
        Sample(
            "_contrib_MultiBoxDetection",
            {
                "cls_prob": DRAW.uniform(size=(2, 3, 6)),
                "loc_pred": (2, 24),
                "anchor": ANCHORS,
            },
            told,
            multibox_detection(**told),
            "zero",
            why="as in MXNet",
        )
        for told in DETECTIONS
    ],
    *proposals(),
]
