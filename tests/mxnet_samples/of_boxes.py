"""Samples of operators over boxes."""

import numpy as np

from mxnet_samples.sample import Sample

DRAW = np.random.default_rng(3)


def drawn(*lengths, kind="corner", draw=DRAW):
    """Boxes within the unit square."""
    ends = np.sort(draw.uniform(size=(*lengths, 2, 2)), axis=-2)
    boxes = ends.reshape(*lengths, 4)
    return other_format(boxes, "center") if kind == "center" else boxes


def other_format(boxes, to):
    """Corners of boxes from centers and lengths, or the other way round."""
    first, second = boxes[..., :2], boxes[..., 2:]
    if to == "center":
        return np.concatenate([(first + second) / 2, second - first], -1)
    return np.concatenate([first - second / 2, first + second / 2], -1)


def iou(one, other, kind="corner"):
    """Intersection over union of two boxes."""
    if kind == "center":
        one, other = other_format(one, "corner"), other_format(other, "corner")
    lengths = np.minimum(one[2:], other[2:]) - np.maximum(one[:2], other[:2])
    shared = np.prod(np.maximum(lengths, 0))
    union = sum(np.prod(box[2:] - box[:2]) for box in (one, other)) - shared
    return shared / union if shared > 0 else 0.0


def box_iou(kind):
    """The overlap of each box with each."""

    def reference(lhs, rhs):
        rows = [[iou(one, other, kind) for other in rhs] for one in lhs.reshape(-1, 4)]
        return np.asarray(rows).reshape(*lhs.shape[:-1], len(rhs))

    return reference


def kept(rows, told):
    """Numbers of the rows that stay, the highest score first."""
    score, class_ = told.get("score_index", 1), told.get("id_index", -1)
    start, kind = told.get("coord_start", 2), told.get("in_format", "corner")
    there = rows[:, score] > told.get("valid_thresh", 0)
    if class_ >= 0:
        there &= rows[:, class_] != told.get("background_id", -1)
    order = np.argsort(-rows[:, score], kind="stable")
    order = [i for i in order if there[i]]
    order = order[: told["topk"]] if "topk" in told else order
    made = []
    for i in order:
        boxes = rows[:, start : start + 4]
        by_class = class_ >= 0 and not told.get("force_suppress", False)
        rivals = [j for j in made if not by_class or rows[i, class_] == rows[j, class_]]
        if all(iou(boxes[i], boxes[j], kind) <= told.get("overlap_thresh", 0.5) for j in rivals):
            made.append(i)
    return made


def box_nms(**told):
    """What is left, and -1 in the rows behind."""
    start, to = told.get("coord_start", 2), told.get("out_format", "corner")

    def reference(data):
        if told.get("topk") == 0:
            return data
        made = np.full_like(data, -1)
        for rows, one in zip(
            data.reshape(-1, *data.shape[-2:]), made.reshape(-1, *data.shape[-2:]), strict=True
        ):
            left = rows[kept(rows, told)]
            if to != told.get("in_format", "corner"):
                left[:, start : start + 4] = other_format(left[:, start : start + 4], to)
            one[: len(left)] = left
        return made

    return reference


def slopes_of_nms(**told):
    """Each entry of a row that stays goes to one output."""

    def slopes(data):
        made = np.zeros_like(data)
        made[kept(data, told)] = 1
        return {"data": made}

    return slopes


def rows(*lengths, kind="corner"):
    """Rows of a class, a score and a box."""
    count = int(np.prod(lengths))
    classes = DRAW.integers(0, 3, (*lengths, 1)).astype(float)
    scores = DRAW.permutation(np.linspace(0.05, 0.95, count)).reshape(*lengths, 1)
    return np.concatenate([classes, scores, drawn(*lengths, kind=kind)], -1)


ROWS, CENTERED, FEW = rows(2, 5), rows(2, 5, kind="center"), rows(7)
BY_BOX = FEW[:, [2, 3, 4, 5, 1]]
NEAR = np.asarray(
    [
        [0.0, 0.5, 0.1, 0.1, 0.2, 0.2],
        [1.0, 0.4, 0.1, 0.1, 0.2, 0.2],
        [0.0, 0.3, 0.1, 0.1, 0.14, 0.14],
        [2.0, 0.6, 0.5, 0.5, 0.7, 0.8],
    ]
)
TIES = NEAR.copy()
TIES[:, 1] = 0.5

SUPPRESSIONS = [
    (ROWS, {}),
    (ROWS, {"topk": 2}),
    (ROWS, {"topk": 0}),
    (ROWS, {"valid_thresh": 0.42, "overlap_thresh": 0.1}),
    (BY_BOX, {"coord_start": 0, "score_index": 4, "overlap_thresh": 0.1}),
    (ROWS, {"out_format": "center", "valid_thresh": 0.22}),
    (CENTERED, {"in_format": "center", "overlap_thresh": 0.1}),
    (CENTERED, {"in_format": "center", "out_format": "center", "overlap_thresh": 0.2}),
]

EXACT = [  # scores and classes that are the same
    (TIES, {}),
    (FEW, {"id_index": 0, "overlap_thresh": 0.05}),
    (FEW, {"id_index": 0, "overlap_thresh": 0.05, "background_id": 1, "force_suppress": True}),
    (NEAR, {"id_index": 0, "overlap_thresh": 0.1}),
    (NEAR, {"id_index": 0, "overlap_thresh": 0.1, "force_suppress": True}),
]


def pairs_of(scores, threshold, ascending, most):
    """Pairs of a row and a column, the best first."""
    of_rows, of_columns = -np.ones(len(scores)), -np.ones(scores.shape[1])
    sign, count = 1 if ascending else -1, 0
    for place in np.argsort(sign * scores.ravel(), kind="stable"):
        row, column = np.unravel_index(place, scores.shape)
        if of_rows[row] >= 0 or of_columns[column] >= 0:
            continue
        if sign * scores[row, column] >= sign * threshold:
            break
        of_rows[row], of_columns[column], count = column, row, count + 1
        if 0 < most < count:
            break
    return of_rows, of_columns


def bipartite_matching(threshold, is_ascend=False, topk=-1):
    """Pairs of each matrix."""

    def reference(data):
        found = [
            pairs_of(one, threshold, is_ascend, topk) for one in data.reshape(-1, *data.shape[-2:])
        ]
        return [np.stack(one).reshape(*data.shape[:-2], -1) for one in zip(*found, strict=True)]

    return reference


SCORES = np.asarray([[0.5, 0.6], [0.1, 0.2], [0.3, 0.4]])
EQUAL = np.asarray(
    [
        [[0.5, 0.5, 0.2], [0.5, 0.1, 0.2], [0.4, 0.4, 0.4], [0.8, 0.3, 0.3]],
        [[0.1, 0.1, 0.1], [0.9, 0.9, 0.7], [0.9, 0.2, 0.7], [0.6, 0.6, 0.7]],
    ]
)

MATCHINGS = [
    (SCORES, {"threshold": 1e-12}),
    (SCORES, {"threshold": 0.35}),
    (SCORES, {"threshold": 0.55, "is_ascend": True}),
    (EQUAL, {"threshold": 0.25}),
    (EQUAL, {"threshold": 0.25, "topk": 1}),
    (EQUAL.swapaxes(1, 2).copy(), {"threshold": 0.75, "is_ascend": True, "topk": 1}),
]


def centers(boxes):
    """Center and lengths of boxes that are given by corners."""
    return np.split(other_format(boxes, "center"), 2, -1)


def box_encode(samples, matches, anchors, *others):
    """What a detector is to predict, and where that counts."""
    refs, means, stds = others
    found = np.take_along_axis(refs, matches.astype(int)[..., None], 1)
    (middle, lengths), (middle2, lengths2) = centers(anchors), centers(found)
    way = np.concatenate([(middle2 - middle) / lengths, np.log(lengths2 / lengths)], -1)
    counts = np.broadcast_to(samples[..., None] > 0.5, anchors.shape)
    return np.where(counts, (way - means) / stds, 0), counts.astype(float)


def box_decode(std0=1.0, std1=1.0, std2=1.0, std3=1.0, clip=-1.0, **told):
    """Boxes by corners."""

    def reference(data, anchors):
        corner = told.get("format") == "corner"
        middle, lengths = centers(anchors) if corner else np.split(anchors, 2, -1)
        way, growth = data[..., :2] * [std0, std1], data[..., 2:] * [std2, std3]
        growth = np.minimum(growth, clip) if clip > 0 else growth
        boxes = np.concatenate([way * lengths + middle, np.exp(growth) * lengths], -1)
        return other_format(boxes, "corner")

    return reference


DECODINGS = [
    {},
    {"std0": 0.1, "std1": 0.3, "std2": 0.2, "std3": 0.4, "format": "corner"},
    {"clip": 0.3, "format": "center"},
]

SAMPLES = [
    *[
        Sample("_contrib_box_nms", {"data": one}, told, box_nms(**told))
        for one, told in SUPPRESSIONS
    ],
    *[
        Sample(
            "_contrib_box_nms",
            {"data": one},
            told,
            box_nms(**told),
            "declared",
            slopes_of_nms(**told),
            why="what is the same is no more when it is moved",
        )
        for one, told in EXACT
    ],
    *[
        Sample(
            "_contrib_box_iou",
            {"lhs": drawn(2, 2, kind=kind), "rhs": drawn(3, kind=kind)},
            {"format": kind},
            box_iou(kind),
            "zero",
            why="MXNet defines none",
        )
        for kind in ("corner", "center")
    ],
    *[
        Sample(
            "_contrib_bipartite_matching",
            {"data": one},
            told,
            bipartite_matching(**told),
            "zero",
            why="places, no values",
        )
        for one, told in MATCHINGS
    ],
    Sample(
        "_contrib_box_encode",
        {
            "samples": np.asarray([[1.0, 0.0, -1.0], [0.0, 1.0, 1.0]]),
            "matches": np.asarray([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
            "anchors": drawn(2, 3),
            "refs": drawn(2, 2),
            "means": np.asarray([0.1, 0.0, 0.0, 0.2]),
            "stds": np.asarray([0.1, 0.1, 0.2, 0.2]),
        },
        {},
        box_encode,
        "zero",
        why="MXNet defines none",
    ),
    *[
        Sample(
            "_contrib_box_decode",
            {"data": (2, 3, 4), "anchors": drawn(1, 3)},
            told,
            box_decode(**told),
            "zero",
            why="MXNet defines none",
        )
        for told in DECODINGS
    ],
]
