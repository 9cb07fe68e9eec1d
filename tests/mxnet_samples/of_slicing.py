"""Samples of what takes pieces of arrays, puts pieces in and repeats entries."""

import numpy as np

from mxnet_samples.sample import Sample

CUBE = {"data": (2, 3, 4)}
IMAGE = {"data": (1, 2, 3, 4)}
WHOLE = np.arange(24, dtype="int32").reshape(2, 3, 4)

PIECES = [  # begin, end, step
    ((0, 1), (2, 3), ()),
    ((None, -2, 1), (None, None, -1), ()),
    ((1,), (2,), ()),
    ((0, None, 3), (2, -1, None), (None, 2, -2)),
    ((1, 2), (None, 0), (-1, -1)),
]

PADS = ((0, 0), (0, 0), (2, 1), (1, 3))
PAD_WIDTH = tuple(width for pair in PADS for width in pair)


def places(begin, end, step):
    """What stands in the brackets of ``data[...]``."""
    return tuple(map(slice, begin, end, step or (None,) * len(begin)))


def assigned(*bounds):
    """The first array with what comes next in the place of a piece."""

    def reference(array, piece=2.5):
        made = array.copy()
        made[places(*bounds)] = piece
        return made

    return reference


def larger(images, factor):
    """Each pixel as a square."""
    return images.repeat(factor, 2).repeat(factor, 3)


def up_sampled(*images):
    """All as large as twice the first, one after the other."""
    height = 2 * images[0].shape[2]
    return np.concatenate([larger(one, height // one.shape[2]) for one in images], 1)


def learned(scale):
    """Each pixel as a window of its channel's kernel, the windows added where they overlap."""

    def reference(data, weight):
        count, channels, height, width = data.shape
        kernel, border = weight.shape[2], -(-(scale - 1) // 2)
        made = np.zeros(
            (count, channels, (height - 1) * scale + kernel, (width - 1) * scale + kernel)
        )
        for y, x in np.ndindex(height, width):
            window = (slice(y * scale, y * scale + kernel), slice(x * scale, x * scale + kernel))
            made[(..., *window)] += data[:, :, y, x, None, None] * weight[:, 0]
        inside = slice(border, -border or None)
        return made[:, :, inside, inside]

    return reference


def bounds_of(begin, end, step):
    """The attributes of ``slice``."""
    return {"begin": begin, "end": end, "step": step} if step else {"begin": begin, "end": end}


def piece_of(bounds):
    """The lengths of a piece of ``CUBE``."""
    return np.empty((2, 3, 4))[places(*bounds)].shape


SAMPLES = [
    *[Sample("slice", CUBE, bounds_of(*one), lambda x, one=one: x[places(*one)]) for one in PIECES],
    *[
        Sample(
            "_slice_assign",
            {"lhs": (2, 3, 4), "rhs": piece_of(one)},
            bounds_of(*one),
            assigned(*one),
        )
        for one in PIECES
    ],
    *[
        Sample("_slice_assign_scalar", CUBE, {"scalar": 2.5, **bounds_of(*one)}, assigned(*one))
        for one in PIECES[::2]
    ],
    Sample(
        "slice", {"data": WHOLE}, {"begin": (1,), "end": (2,)}, lambda x: x[1:2], "zero", why="int"
    ),
    Sample("slice_axis", CUBE, {"axis": 1, "begin": 1, "end": 3}, lambda x: x[:, 1:3]),
    Sample("slice_axis", CUBE, {"axis": -1, "begin": -3, "end": "None"}, lambda x: x[..., -3:]),
    Sample("slice_axis", CUBE, {"axis": 2, "begin": 0, "end": -1}, lambda x: x[..., :-1]),
    Sample(
        "slice_like", {"data": (2, 3, 4), "shape_like": (1, 2, 3)}, {}, lambda x, y: x[:1, :2, :3]
    ),
    Sample(
        "slice_like",
        {"data": (2, 3, 4), "shape_like": (1, 2, 9)},
        {"axes": (0, -2)},
        lambda x, y: x[:1, :2],
    ),
    Sample(
        "slice_like",
        {"data": (2, 3), "shape_like": np.zeros((5, 2), "int32")},
        {"axes": (1,)},
        lambda x, y: x[:, :2],
    ),
    Sample("Crop", {"arg0": (1, 2, 4, 5)}, {"h_w": (2, 3)}, lambda x: x[:, :, :2, :3]),
    Sample(
        "Crop",
        {"arg0": (1, 2, 4, 5)},
        {"h_w": (2, 3), "offset": (1, 2)},
        lambda x: x[:, :, 1:3, 2:],
    ),
    Sample(
        "Crop",
        {"arg0": (1, 2, 5, 4), "arg1": (1, 1, 2, 1)},
        {"center_crop": True},
        lambda x, y: x[:, :, 1:3, 1:2],
    ),
    Sample(
        "Pad",
        IMAGE,
        {"mode": "constant", "pad_width": PAD_WIDTH, "constant_value": 1.5},
        lambda x: np.pad(x, PADS, constant_values=1.5),
    ),
    *[
        Sample(
            "Pad",
            IMAGE,
            {"mode": mode, "pad_width": PAD_WIDTH},
            lambda x, mode=mode: np.pad(x, PADS, mode),
        )
        for mode in ("constant", "edge", "reflect")
    ],
    Sample(
        "Pad",
        {"data": (1, 1, 2, 2, 3)},
        {"mode": "edge", "pad_width": (0, 0, 0, 0, 1, 0, 0, 1, 0, 2)},
        lambda x: np.pad(x, ((0, 0), (0, 0), (1, 0), (0, 1), (0, 2)), "edge"),
    ),
    Sample("reverse", CUBE, {"axis": 1}, lambda x: x[:, ::-1]),
    Sample("reverse", CUBE, {"axis": (0, 2)}, lambda x: x[::-1, :, ::-1]),
    Sample("tile", CUBE, {"reps": (2,)}, lambda x: np.tile(x, 2)),
    Sample("tile", {"data": (2, 3)}, {"reps": (2, 1, 2)}, lambda x: np.tile(x, (2, 1, 2))),
    Sample("tile", {"data": (2, 3)}, {"reps": (3, 1)}, lambda x: np.tile(x, (3, 1))),
    Sample("tile", {"data": (2, 3)}, {"reps": ()}, np.copy),
    Sample("repeat", CUBE, {"repeats": 2}, lambda x: np.repeat(x, 2)),
    Sample("repeat", CUBE, {"repeats": 2, "axis": 1}, lambda x: np.repeat(x, 2, 1)),
    Sample("repeat", {"data": (2, 3)}, {"repeats": 3, "axis": -1}, lambda x: np.repeat(x, 3, -1)),
    *[
        Sample("diag", {"data": (3, 4)}, {"k": k}, lambda x, k=k: np.diag(x, k).copy())
        for k in (0, 1, -1)
    ],
    *[Sample("diag", {"data": (3,)}, {"k": k}, lambda x, k=k: np.diag(x, k)) for k in (0, -2, 1)],
    Sample("diag", CUBE, {"k": 1}, lambda x: np.diagonal(x, 1)),
    Sample(
        "diag", CUBE, {"k": -1, "axis1": -1, "axis2": 1}, lambda x: np.diagonal(x, -1, 2, 1).copy()
    ),
    Sample(
        "UpSampling",
        {"arg0": (2, 2, 2, 3)},
        {"scale": 2, "sample_type": "nearest"},
        lambda x: larger(x, 2),
    ),
    Sample(
        "UpSampling",
        {"arg0": (1, 2, 2, 2), "arg1": (1, 1, 1, 1)},
        {"scale": 2, "sample_type": "nearest"},
        up_sampled,
    ),
    Sample(
        "UpSampling",
        {"arg0": (1, 2, 2, 2), "arg1": (1, 2, 2, 2)},
        {"scale": 3, "sample_type": "nearest", "multi_input_mode": "sum"},
        lambda x, y: larger(x + y, 3),
    ),
    *[
        Sample(
            "UpSampling",
            {"data": (1, 2, 3, 2), "weight": (2, 1, kernel, kernel)},
            {"scale": scale, "sample_type": "bilinear", "num_filter": 2, "num_args": 2},
            learned(scale),
        )
        for scale, kernel in ((2, 4), (3, 5))
    ],
]
