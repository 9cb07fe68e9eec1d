"""Samples of layers with weights: fully connected, convolutions and their adjoints, embeddings."""

import numpy as np

from mxnet_samples.sample import Sample


def fully_connected(flatten=True):
    """``data @ weight.T``."""

    def reference(data, weight, bias=0.0):
        rows = data.reshape(len(data), -1) if flatten else data
        return rows @ weight.T + bias

    return reference


def strip(position, stride, dilate, kernel):
    """Where the taps of a window lie."""
    return tuple(
        slice(p * s, p * s + d * (k - 1) + 1, d)
        for p, s, d, k in zip(position, stride, dilate, kernel, strict=True)
    )


def each_axis(kernel, told):
    """Stride, dilation, padding and number of groups."""
    ones, zeros = (1,) * len(kernel), (0,) * len(kernel)
    stride, dilate = told.get("stride", ones), told.get("dilate", ones)
    return stride, dilate, told.get("pad", zeros), told.get("num_group", 1)


def spread(bias, rank):
    """A bias along the channels, if there is one."""
    return 0.0 if bias is None else bias.reshape(-1, *[1] * rank)


def to_first(data, weight):
    """Both with the channels on axis 1."""
    return np.moveaxis(data, -1, 1), np.moveaxis(weight, -1, 1)


def convolution(**told):
    """Each window times each filter."""
    kernel = told["kernel"]
    stride, dilate, pad, groups = each_axis(kernel, told)

    def reference(data, weight, bias=None):
        if told.get("layout", "").endswith("C"):
            data, weight = to_first(data, weight)
        data = np.pad(data, [(0, 0), (0, 0), *[(p, p) for p in pad]])
        lengths = [
            (n - d * (k - 1) - 1) // s + 1
            for n, d, k, s in zip(data.shape[2:], dilate, kernel, stride, strict=True)
        ]
        made = np.zeros((len(data), len(weight), *lengths))
        parts, each = np.split(data, groups, 1), len(weight) // groups
        for channel, one in enumerate(weight):
            for position in np.ndindex(*lengths):
                seen = parts[channel // each][:, :, *strip(position, stride, dilate, kernel)]
                made[:, channel, *position] = (seen * one).sum(tuple(range(1, seen.ndim)))
        made += spread(bias, len(kernel))
        return np.moveaxis(made, 1, -1) if told.get("layout", "").endswith("C") else made

    return reference


def margins(lengths, kernel, told):
    """What is cut off and what is added, if a shape is the target."""
    stride, dilate, pad, _ = each_axis(kernel, told)
    if "target_shape" not in told:
        return pad, told.get("adj", (0,) * len(kernel))
    whole = [
        (n - 1) * s + (k - 1) * d + 1
        for n, s, k, d in zip(lengths, stride, kernel, dilate, strict=True)
    ]
    over = [n - wanted for n, wanted in zip(whole, told["target_shape"], strict=True)]
    return [(n + 1) // 2 for n in over], [n % 2 for n in over]


def deconvolution(**told):
    """Each entry times each filter, summed where they overlap."""
    kernel = told["kernel"]
    stride, dilate, _, groups = each_axis(kernel, told)

    def reference(data, weight, bias=None):
        if told.get("layout", "").endswith("C"):
            data, weight = to_first(data, weight)
        pad, adj = margins(data.shape[2:], kernel, told)
        lengths = [
            (n - 1) * s + d * (k - 1) + 1 + a
            for n, s, d, k, a in zip(data.shape[2:], stride, dilate, kernel, adj, strict=True)
        ]
        rows = weight.shape[1]
        made = np.zeros((len(data), rows * groups, *lengths))
        for channel, one in enumerate(weight):
            first = channel // (len(weight) // groups) * rows
            for position in np.ndindex(*data.shape[2:]):
                entry = data[:, channel, *position].reshape(-1, *[1] * one.ndim)
                to = strip(position, stride, dilate, kernel)
                made[:, first : first + rows, *to] += entry * one
        inside = [slice(p, n - p) for p, n in zip(pad, lengths, strict=True)]
        made = made[:, :, *inside] + spread(bias, len(kernel))
        return np.moveaxis(made, 1, -1) if told.get("layout", "").endswith("C") else made

    return reference


def layer(op, make, data, weight, bias=None, **told):
    """A sample of a layer with or without a bias."""
    inputs = {"data": data, "weight": weight} | ({"bias": bias} if bias else {})
    if not bias:
        told["no_bias"] = True
    elif op == "Deconvolution":
        told["no_bias"] = False
    return Sample(op, inputs, told, make(**told))


def convolved(*arguments, **told):
    """A sample of a convolution."""
    return layer("Convolution", convolution, *arguments, **told)


def deconvolved(*arguments, **told):
    """A sample of its adjoint."""
    return layer("Deconvolution", deconvolution, *arguments, **told)


IDS = np.asarray([[0.0, 3.0], [4.0, 3.0], [1.0, 0.0]])
BEYOND = np.asarray([0.0, 4.9, 7.0, -2.0])


def rows_of(data, weight):
    """The rows, beyond them the first or the last one."""
    return weight[np.clip(data.astype(int), 0, len(weight) - 1)]


def embedded(op, ids, **told):
    """A sample of an embedding of five words."""
    told = {"input_dim": 5, "output_dim": 3, **told}
    return Sample(op, {"data": ids, "weight": (5, 3)}, told, rows_of, by=["weight"])


DENSE = [
    ((3, 4), (2, 4), (2,), {}),
    ((3, 2, 4), (5, 8), (5,), {}),
    ((3, 2, 4), (5, 4), (5,), {"flatten": False}),
    ((3, 2, 4), (5, 4), None, {"flatten": False, "no_bias": True}),
    ((3,), (2, 1), (2,), {}),
]

SAMPLES = [
    *[
        Sample(
            "FullyConnected",
            {"data": data, "weight": weight} | ({"bias": bias} if bias else {}),
            {"num_hidden": weight[0], **told},
            fully_connected(told.get("flatten", True)),
        )
        for data, weight, bias, told in DENSE
    ],
    convolved((2, 3, 7), (4, 3, 3), (4,), kernel=(3,), num_filter=4, stride=(2,), pad=(1,)),
    convolved((1, 2, 4, 5), (3, 2, 2, 3), (3,), kernel=(2, 3), num_filter=3),
    convolved(
        (1, 4, 5, 6),
        (6, 2, 3, 2),
        (6,),
        kernel=(3, 2),
        num_filter=6,
        num_group=2,
        stride=(2, 1),
        pad=(1, 1),
        dilate=(1, 2),
        workspace=256,
        cudnn_tune="off",
    ),
    convolved((2, 3, 3, 3), (3, 1, 2, 2), kernel=(2, 2), num_filter=3, num_group=3),
    convolved((1, 4, 3, 2), (3, 2, 2, 2), (3,), kernel=(2, 2), num_filter=3, layout="NHWC"),
    convolved((1, 2, 3, 3, 3), (2, 2, 2, 2, 2), (2,), kernel=(2, 2, 2), num_filter=2),
    convolved((1, 3, 3, 3, 2), (2, 2, 2, 2, 2), kernel=(2, 2, 2), num_filter=2, layout="NDHWC"),
    layer(
        "Convolution_v1",
        convolution,
        (2, 2, 4, 4),
        (4, 1, 3, 3),
        (4,),
        kernel=(3, 3),
        num_filter=4,
        num_group=2,
        pad=(1, 1),
        stride=(2, 2),
    ),
    layer("Convolution_v1", convolution, (1, 2, 4, 4), (2, 2, 2, 2), kernel=(2, 2), num_filter=2),
    deconvolved((1, 2, 3, 3), (2, 3, 2, 2), kernel=(2, 2), num_filter=3),
    deconvolved((2, 3, 5), (3, 2, 3), (2,), kernel=(3,), num_filter=2, stride=(2,), adj=(1,)),
    deconvolved(
        (1, 4, 4, 3),
        (4, 3, 3, 2),
        (6,),
        kernel=(3, 2),
        num_filter=6,
        num_group=2,
        stride=(2, 3),
        pad=(1, 0),
        adj=(1, 1),
    ),
    deconvolved(
        (1, 2, 4, 3), (2, 3, 3, 2), kernel=(3, 2), num_filter=3, stride=(2, 2), dilate=(2, 1)
    ),
    deconvolved(
        (1, 2, 4, 3),
        (2, 3, 3, 2),
        kernel=(3, 2),
        num_filter=3,
        stride=(2, 2),
        target_shape=(8, 5),
        pad=(9, 9),
        adj=(7, 7),
    ),
    deconvolved((1, 3, 3, 2), (2, 2, 2, 3), kernel=(2, 2), num_filter=3, layout="NHWC"),
    deconvolved((1, 1, 2, 3, 2), (1, 2, 2, 2, 2), kernel=(2, 2, 2), num_filter=2, stride=(1, 2, 1)),
    embedded("Embedding", IDS),
    embedded("Embedding", IDS.astype("int32"), dtype="float32", sparse_grad=True),
    embedded("Embedding", BEYOND),
    embedded("_contrib_SparseEmbedding", BEYOND, deterministic=True),
]
