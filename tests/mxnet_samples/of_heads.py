"""Samples of output layers and losses."""

import itertools
import math

import numpy as np
from scipy import special

from mxnet_samples.sample import Sample


def single(number):
    """What an attribute in single precision is."""
    return float(np.float32(number))


def declared(op, data, label, told, reference, slopes, rtol=1e-9):
    """A sample of a head: ``slopes`` computes the gradient of data and label."""
    return Sample(
        op,
        {"data": data} if label is None else {"data": data, "label": label},
        told,
        lambda data, *label: reference(data),
        "declared",
        lambda *arrays: {"data": slopes(*arrays, **told)},
        rtol=rtol,
    )


def same(data):
    """The data."""
    return data


def slopes_of_loss(data, grad_scale=1.0, valid_thresh=0.0, normalization="null"):
    """The scale, divided by examples or by large entries."""
    rows = len(data) if data.ndim > 1 else 1
    large = max(int((data > single(valid_thresh)).sum()), 1)
    divisor = {"null": 1, "batch": rows, "valid": large}[normalization]
    return np.full_like(data, single(grad_scale) / divisor)


# SoftmaxOutput ---------------------------------------------------------------------------------


def class_axes(rank, multi_output=False, preserve_shape=False, **_):
    """The axes along which the shares add up to one."""
    if preserve_shape:
        return (rank - 1,)
    return (1,) if multi_output else tuple(range(1, rank))


def slopes_of_classes(data, label, told):
    """Shares less the truth, of data of shape (examples, classes, places)."""
    classes, label = data.shape[1], label.astype(int)
    alpha, ignored = single(told.get("smooth_alpha", 0)), int(told.get("ignore_label", -1))
    made = special.softmax(data, 1)
    for i, j in np.ndindex(*label.shape):
        if told.get("use_ignore") and label[i, j] == ignored:
            made[i, :, j] = 0
            continue
        for k in range(classes):
            made[i, k, j] -= 1 - alpha if k == label[i, j] else alpha / (classes - 1)
    places = 1 if told.get("normalization") == "valid" else data.shape[2]
    counted = {"null": 1, "batch": len(data), "valid": max((label != ignored).sum(), 1)}
    return made / counted[told.get("normalization", "null")] / places


def slopes_of_softmax(data, label, **told):
    """What the layer gives back, whatever flows in."""
    scale = single(told.get("grad_scale", 1))
    if label.shape == data.shape:
        return scale * (special.softmax(data, class_axes(data.ndim, **told)) - label)
    if told.get("multi_output"):
        apart = data.reshape(*data.shape[:2], -1)
        found = slopes_of_classes(apart, label.reshape(len(data), -1), told)
    else:
        width = data.shape[-1] if told.get("preserve_shape") else data[0].size
        apart = data.reshape(-1, width, 1)
        found = slopes_of_classes(apart, label.reshape(-1, 1), told)
    return scale * found.reshape(data.shape)


def softmax_output(data, label, told):
    """A sample; counts of valid labels are in single precision."""
    shape = np.shape(data) if isinstance(data, np.ndarray) else data
    axes = class_axes(len(shape), **told)
    rtol = 1e-6 if told.get("normalization") == "valid" else 1e-9
    return declared(
        "SoftmaxOutput",
        data,
        label,
        told,
        lambda data: special.softmax(data, axes),
        slopes_of_softmax,
        rtol,
    )


def shares(*shape):
    """Labels that are probabilities."""
    drawn = np.random.default_rng(4).normal(size=(shape[0], math.prod(shape[1:])))
    return special.softmax(drawn, 1).reshape(shape)


CLASSES = np.asarray([0.0, 1.0, 2.0, 1.0])
PLACES = np.asarray([[0.0, 1.0, 2.0, 1.0], [2.0, 2.0, 1.0, 0.0]])
ROWS = np.asarray([[0.0, 1.0, 3.0], [2.0, 1.0, 1.0]])
IGNORING = {"use_ignore": True, "ignore_label": 1}
FORMS = [
    ((4, 3), CLASSES, {}),
    ((4, 3), CLASSES, {"smooth_alpha": 0.1}),
    ((2, 3, 4), PLACES, {"multi_output": True}),
    ((2, 3, 4), ROWS, {"preserve_shape": True}),
]
COUNTS = ("null", "batch", "valid")
HEADS = [
    *[
        (data, label, {**form, **more, "normalization": count, "grad_scale": 0.7})
        for (data, label, form), more, count in itertools.product(FORMS, ({}, IGNORING), COUNTS)
    ],
    ((4, 3), CLASSES, {}),
    ((4, 3), CLASSES.astype("int32"), {}),
    ((4, 3), CLASSES, {"out_grad": True}),
    ((4, 3), CLASSES, {"use_ignore": True}),
    ((2, 3, 2, 2), PLACES.reshape(2, 2, 2), {"multi_output": True}),
    ((2, 3, 2, 2), PLACES.reshape(2, 1, 2, 2), {"multi_output": True}),
    ((2, 3), shares(2, 3), {"grad_scale": 0.3}),
    ((2, 3, 2), shares(2, 3, 2), {}),
    ((2, 3, 2), shares(2, 3, 2), {"multi_output": True, "out_grad": True}),
    ((2, 3, 2), shares(2, 3, 2), {"preserve_shape": True}),
]

# Regression ------------------------------------------------------------------------------------

REGRESSIONS = {
    "LinearRegressionOutput": (same, np.subtract),
    "LogisticRegressionOutput": (special.expit, np.subtract),
    "MAERegressionOutput": (same, lambda data, label: np.sign(data - label)),
}


def slopes_of_regression(function, error):
    """The errors, divided by the outputs of each example."""

    def slopes(data, label, grad_scale=1.0):
        found = error(function(data), label.reshape(data.shape))
        return found * single(grad_scale) / (data.size // len(data))

    return slopes


def slopes_of_margin(data, label, margin=1.0, regularization_coefficient=1.0, use_linear=False):
    """What is lacking of the margins, or only that it is."""
    signs = np.where(np.arange(data.shape[1]) == label[:, None], 1.0, -1.0)
    lack = single(margin) - signs * data
    slope = 1.0 if use_linear else 2 * lack
    return np.where(lack > 0, -signs * single(regularization_coefficient) * slope, 0)


# CTCLoss ---------------------------------------------------------------------------------------


def sequence_loss(frames, wanted, blank):
    """Less the logarithm of the sum over all paths; 0 if there is none."""
    shares_, total = special.softmax(frames, 1), 0.0
    for path in itertools.product(range(frames.shape[1]), repeat=len(frames)):
        short = [k for i, k in enumerate(path) if i == 0 or path[i - 1] != k]
        if [k for k in short if k != blank] == wanted:
            total += math.prod(shares_[t, k] for t, k in enumerate(path))
    return -math.log(total) if total else 0.0


def ctc_loss(blank_label="first", use_data_lengths=False, use_label_lengths=False):
    """The loss of each sequence."""

    def reference(data, label, *lengths):
        counts = list(lengths)
        frames = counts.pop(0) if use_data_lengths else [len(data)] * len(label)
        words = counts.pop(0) if use_label_lengths else [None] * len(label)
        padding, blank = (0, 0) if blank_label == "first" else (-1, data.shape[2] - 1)
        found = []
        for i, row in enumerate(label.astype(int).tolist()):
            wanted = [k for k in row if k != padding] if words[i] is None else row[: int(words[i])]
            found.append(sequence_loss(data[: int(frames[i]), i], wanted, blank))
        return np.asarray(found)

    return reference


FRAMES, WORDS = np.asarray([3.0, 4.0, 2.0]), np.asarray([2.0, 1.0, 2.0])
SEQUENCES = np.asarray([[1.0, 2.0], [2.0, 2.0], [2.0, 1.0]])
LOSSES = [
    ("CTCLoss", np.asarray([[1.0, 2.0, 0.0], [2.0, 2.0, 0.0], [1.0, 2.0, 1.0]]), {}, {}),
    ("CTCLoss", np.asarray([[1, 2], [0, 0], [2, 0]], "int32"), {}, {}),
    ("ctc_loss", np.asarray([[1.0, 0.0], [0.0, 0.0], [1.0, -1.0]]), {"blank_label": "last"}, {}),
    ("_contrib_CTCLoss", SEQUENCES, {"use_data_lengths": True}, {"data_lengths": FRAMES}),
    ("_contrib_ctc_loss", SEQUENCES, {"use_label_lengths": True}, {"label_lengths": WORDS}),
    (
        "CTCLoss",
        SEQUENCES,
        {"use_data_lengths": True, "use_label_lengths": True},
        {"data_lengths": FRAMES, "label_lengths": WORDS},
    ),
    (
        "CTCLoss",
        np.asarray([[1.0, 1.0], [2.0, 2.0], [2.0, 2.0]]),
        {"use_data_lengths": True},
        {"data_lengths": np.asarray([2.0, 3.0, 1.0])},
    ),
]

SAMPLES = [
    *[
        declared("MakeLoss", data, None, told, same, slopes_of_loss, 1e-7)
        for data, told in (
            ((3, 4), {}),
            ((3, 4), {"grad_scale": 0.3}),
            ((3, 4), {"grad_scale": 0.3, "normalization": "batch"}),
            ((4,), {"normalization": "batch"}),
            ((3, 4), {"normalization": "valid"}),
            ((3, 4), {"grad_scale": 0.3, "normalization": "valid", "valid_thresh": 0.1}),
        )
    ],
    *[softmax_output(data, label, told) for data, label, told in HEADS],
    *[
        declared(name, data, label, told, function, slopes_of_regression(function, error))
        for name, (function, error) in REGRESSIONS.items()
        for data, label, told in (
            ((3, 4), np.linspace(-1.5, 1.4, 12).reshape(3, 4), {"grad_scale": 0.3}),
            ((3, 1), np.asarray([0.4, -1.3, 2.0]), {}),
            ((3,), np.asarray([0.4, -1.3, 2.0]), {}),
            ((2, 2, 2), np.linspace(-1.5, 1.4, 8).reshape(2, 2, 2), {}),
        )
    ],
    *[
        declared("SVMOutput", (4, 3), CLASSES, told, same, slopes_of_margin)
        for told in (
            {},
            {"use_linear": True},
            {"margin": 0.6, "regularization_coefficient": 0.4},
            {"margin": 0.6, "regularization_coefficient": 0.4, "use_linear": True},
        )
    ],
    *[
        Sample(
            op,
            {"data": (4, 3, 3), "label": label, **lengths},
            told,
            ctc_loss(**told),
            by=["data"],
        )
        for op, label, told, lengths in LOSSES
    ],
]
