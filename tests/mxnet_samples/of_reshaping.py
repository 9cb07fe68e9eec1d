"""Samples of what gives the same entries another shape, joins arrays and takes them apart."""

import numpy as np

from mxnet_samples.sample import Sample

CUBE = {"data": (2, 3, 4)}
WHOLE = np.arange(24, dtype="int32").reshape(2, 3, 4)

RESHAPES = [  # lengths, shape, reverse, lengths of the result
    ((2, 3, 4), (4, 0, 2), False, (4, 3, 2)),
    ((2, 3, 4), (3, -1, 8), False, (3, 1, 8)),
    ((2, 3, 4), (2, -2), False, (2, 3, 4)),
    ((2, 3, 4), (-2, 1, 1), False, (2, 3, 4, 1, 1)),
    ((2, 3, 4), (0, -3), False, (2, 12)),
    ((2, 3, 4), (-3, -2), False, (6, 4)),
    ((2, 3, 4), (2, -4, -1, 3, -2), False, (2, 1, 3, 4)),
    ((2, 3, 4), (-4, 1, 2, -2), False, (1, 2, 3, 4)),
    ((2, 3, 4), (-1, 0), False, (8, 3)),
    ((2, 3, 4), (-1, 0), True, (6, 4)),
    ((2, 3, 4), (-3, 0), True, (6, 4)),
    ((2, 6, 4), (0, 2, 3, -4, 0), True, (2, 2, 3, 4)),
]

TARGETS = [  # target_shape, keep_highest, lengths of the result
    ((0, 12), False, (2, 12)),
    ((0, 0), True, (2, 12)),
]

LIKES = [  # lengths of lhs and of rhs, attributes, lengths of the result
    ((2, 6), (3, 4), {}, (3, 4)),
    ((6, 4), (3, 2, 5), {"lhs_begin": 0, "lhs_end": 1, "rhs_begin": 0, "rhs_end": 2}, (3, 2, 4)),
    ((4, 6), (9, 2, 3), {"lhs_begin": -1, "rhs_begin": 1}, (4, 2, 3)),
    ((2, 3, 4), (6, 7), {"lhs_end": -1, "rhs_end": 1}, (6, 4)),
]


def depth_to_space(data, size=2):
    """Pixels of ``size * size`` channels, those of one block far apart."""
    count, channels, height, width = data.shape
    blocks = data.reshape(count, size, size, channels // size**2, height, width)
    return blocks.transpose(0, 3, 4, 1, 5, 2).reshape(count, -1, height * size, width * size)


def space_to_depth(data, size=2):
    """The inverse of ``depth_to_space``."""
    count, channels, height, width = data.shape
    blocks = data.reshape(count, channels, height // size, size, width // size, size)
    return blocks.transpose(0, 3, 5, 1, 2, 4).reshape(count, -1, height // size, width // size)


def joined(axis):
    """The inputs joined along ``axis``."""
    return lambda *arrays: np.concatenate(arrays, axis)


def parts(places, axis):
    """Parts along ``axis``, as many as ``places`` says or divided there."""
    return lambda data: np.array_split(data, places, axis)


def slices(axis):
    """Parts of length 1 along ``axis``, without that axis."""
    return lambda data: list(np.moveaxis(data, axis, 0))


SAMPLES = [
    *[
        Sample(
            "Reshape",
            {"data": lengths},
            {"shape": shape, "reverse": reverse},
            lambda data, wanted=wanted: data.reshape(wanted),
        )
        for lengths, shape, reverse, wanted in RESHAPES
    ],
    *[
        Sample(
            "Reshape",
            CUBE,
            {"target_shape": target, "keep_highest": keep},
            lambda data, wanted=wanted: data.reshape(wanted),
        )
        for target, keep, wanted in TARGETS
    ],
    *[
        Sample(
            "reshape_like",
            {"lhs": lhs, "rhs": rhs},
            attributes,
            lambda lhs, rhs, wanted=wanted: lhs.reshape(wanted),
        )
        for lhs, rhs, attributes, wanted in LIKES
    ],
    Sample("Flatten", CUBE, {}, lambda x: x.reshape(2, 12)),
    Sample("Flatten", {"data": (3,)}, {}, lambda x: x.reshape(3, 1)),
    Sample("expand_dims", CUBE, {"axis": 1}, lambda x: x[:, None]),
    Sample("expand_dims", CUBE, {"axis": -1}, lambda x: x[..., None]),
    Sample("squeeze", {"data": (1, 3, 1)}, {}, lambda x: x[0, :, 0]),
    Sample("squeeze", {"data": (1, 3, 1)}, {"axis": -1}, lambda x: x[..., 0]),
    Sample("squeeze", {"data": (1, 3, 1, 2)}, {"axis": (0, 2)}, lambda x: x[0, :, 0]),
    Sample("squeeze", {"data": (1, 1)}, {}, lambda x: x[0]),
    Sample("transpose", CUBE, {}, np.transpose),
    Sample("transpose", CUBE, {"axes": (1, 2, 0)}, lambda x: x.transpose(1, 2, 0)),
    Sample("transpose", {"data": WHOLE}, {}, np.transpose, "zero", why="whole numbers"),
    Sample("SwapAxis", CUBE, {"dim1": 0, "dim2": 2}, lambda x: x.swapaxes(0, 2)),
    Sample("SwapAxis", CUBE, {"dim1": -1, "dim2": 1}, lambda x: x.swapaxes(1, 2)),
    Sample("depth_to_space", {"data": (1, 8, 2, 3)}, {"block_size": 2}, depth_to_space),
    Sample("space_to_depth", {"data": (1, 2, 4, 6)}, {"block_size": 2}, space_to_depth),
    Sample("cast_storage", CUBE, {"stype": "default"}, np.copy),
    Sample("cast_storage", {"data": (3, 4)}, {"stype": "csr"}, np.copy),
    Sample("shape_array", CUBE, {}, lambda x: np.asarray(x.shape), "zero", why="whole numbers"),
    Sample("size_array", CUBE, {}, lambda x: np.asarray([x.size]), "zero", why="whole numbers"),
    Sample("Concat", {"arg0": (2, 3), "arg1": (2, 1), "arg2": (2, 2)}, {}, joined(1)),
    Sample("Concat", {"arg0": (2, 3), "arg1": (1, 3)}, {"dim": 0}, joined(0)),
    Sample("Concat", {"arg0": (2, 3, 2), "arg1": (2, 3, 1)}, {"dim": -1}, joined(-1)),
    Sample("Concat", {"arg0": (2, 3)}, {"dim": 1, "num_args": 1}, np.copy),
    Sample("_rnn_param_concat", {"arg0": (3,), "arg1": (4,)}, {"dim": 0}, joined(0)),
    Sample("stack", {"arg0": (2, 3), "arg1": (2, 3)}, {}, lambda *x: np.stack(x)),
    Sample("stack", {"arg0": (2, 3), "arg1": (2, 3)}, {"axis": -1}, lambda *x: np.stack(x, -1)),
    Sample("stack", {"arg0": (2,)}, {"axis": 1}, lambda x: x[:, None]),
    Sample("SliceChannel", CUBE, {"num_outputs": 3}, parts(3, 1)),
    Sample("SliceChannel", CUBE, {"num_outputs": 2, "axis": -1}, parts(2, -1)),
    Sample("SliceChannel", CUBE, {"num_outputs": 3, "squeeze_axis": True}, slices(1)),
    Sample("SliceChannel", CUBE, {"num_outputs": 2, "axis": 0, "squeeze_axis": True}, slices(0)),
    Sample("SliceChannel", CUBE, {"num_outputs": 1}, np.copy),
    Sample(
        "SliceChannel",
        {"data": (2, 1, 3)},
        {"num_outputs": 1, "squeeze_axis": True},
        lambda x: x[:, 0],
    ),
    Sample("_split_v2", CUBE, {"indices": (0, 1, 3), "axis": 2}, parts([1, 3], 2)),
    Sample("_split_v2", CUBE, {"indices": (), "axis": 2, "sections": 2}, parts(2, 2)),
    Sample("_split_v2", {"data": (5, 2)}, {"indices": (), "axis": 0, "sections": 3}, parts(3, 0)),
    Sample(
        "_split_v2",
        CUBE,
        {"indices": (0, 1, 2), "axis": -2, "squeeze_axis": True},
        slices(1),
    ),
]
