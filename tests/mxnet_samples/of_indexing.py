"""Samples of what looks entries up by numbers, and of steps of sequences of different lengths.

Where numbers are of a floating dtype, MXNet leaves out what is behind the point. Where a sample
has such fractions, it is differentiated by the numbers, too: that is zero.
"""

import numpy as np

from mxnet_samples.sample import Sample

MANY = np.asarray([-5, -1, 0, 2, 7])
AGAIN = np.asarray([[0, 2], [2, 2]])
POINTS = np.asarray([[0, 3, 1, 0], [2, 0, 1, 2]])
"""Places in a matrix; the first one is there twice."""
APART = POINTS[:, :3]
STEPS = np.asarray([1, 3, 2])

INDEX = ("float32", "float64", "int32", "int64", "uint8")


def whole(numbers):
    """What is before the point."""
    return np.asarray(numbers).astype(int)


def within(numbers, length, mode):
    """Numbers of entries that are there."""
    return whole(numbers) % length if mode == "wrap" else np.clip(whole(numbers), 0, length - 1)


def take(axis=0, mode="clip"):
    """Entries along ``axis``."""
    return lambda a, indices: np.take(a, within(indices, a.shape[axis], mode), axis)


def pick(axis=-1, keepdims=False, mode="clip"):
    """One entry along ``axis``."""

    def reference(data, index):
        numbers = within(index, data.shape[axis], mode)
        if numbers.ndim < data.ndim:
            numbers = np.expand_dims(numbers, axis)
        made = np.take_along_axis(data, numbers, axis)
        return made if keepdims else np.atleast_1d(made.squeeze(axis))

    return reference


def scattered(shape, add=False):
    """Zeros with ``data`` at coordinates."""

    def reference(data, indices):
        made, at = np.zeros(shape), tuple(whole(indices))
        if add:
            np.add.at(made, at, data)
        else:
            made[at] = data
        return made

    return reference


def put(lhs, rhs, indices):
    """``lhs`` with ``rhs`` at coordinates."""
    made = lhs.copy()
    made[tuple(whole(indices))] = rhs
    return made


def one_hot(depth, on=1.0, off=0.0):
    """``on`` at the place that a number names."""
    return lambda x: np.where(whole(x)[..., None] == np.arange(depth), on, off)


def filled(lhs, mhs, rhs):
    """``lhs`` with an entry of ``mhs`` in each row."""
    made = lhs.copy()
    made[np.arange(len(lhs)), whole(rhs)] = mhs
    return made


def copied(old, index, new):
    """``old`` with rows of ``new``."""
    made = old.copy()
    made[whole(index)] = new
    return made


def where(condition, x, y):
    """A choice of entries, or of rows."""
    behind = (1,) * (x.ndim - condition.ndim)
    return np.where(condition.reshape(condition.shape + behind) != 0, x, y)


def by_sequence(change, axis):
    """``change`` of each sequence ``(steps, ...)`` and its length."""

    def reference(data, lengths=None):
        steps = np.moveaxis(data, axis, 0)
        if lengths is None:
            lengths = np.full(steps.shape[1], len(steps))
        made = [change(steps[:, i], int(length)) for i, length in enumerate(lengths)]
        if made[0].ndim < steps.ndim - 1:
            return np.stack(made)
        return np.moveaxis(np.stack(made, 1), 0, axis)

    return reference


def masked(sequence, length):
    """-2 behind the end."""
    return np.concatenate([sequence[:length], np.full_like(sequence[length:], -2)])


def reversed_(sequence, length):
    """The opposite order up to the end."""
    return np.concatenate([sequence[:length][::-1], sequence[length:]])


def last(sequence, length):
    """The last step."""
    return sequence[length - 1]


SEQUENCES = [  # operator, change, attributes, axes
    ("SequenceMask", masked, {"value": -2.0}, (0, 1)),
    ("SequenceReverse", reversed_, {}, (0,)),
    ("SequenceLast", last, {}, (0, 1)),
]
LENGTHS = {0: (4, 3, 2), 1: (3, 4, 2)}


def sequences():
    """Samples of the operators of sequences."""
    for op, change, attributes, axes in SEQUENCES:
        yield Sample(op, {"data": (4, 3, 2)}, attributes, by_sequence(change, 0))
        for axis in axes:
            told = {**attributes, "use_sequence_length": True, "axis": axis}
            for lengths in (STEPS, STEPS + 0.4):
                inputs = {"data": LENGTHS[axis], "sequence_length": lengths}
                yield Sample(op, inputs, told, by_sequence(change, axis))
    numbers = np.arange(12, dtype="int32").reshape(4, 3)
    yield Sample(
        "SequenceMask",
        {"data": numbers, "sequence_length": STEPS},
        {"use_sequence_length": True, "value": -2.0},
        by_sequence(masked, 0),
        "zero",
        why="whole numbers",
    )


def choices():
    """Samples of ``take``, ``batch_take`` and ``pick``."""
    for index in INDEX:
        yield Sample("take", {"a": (3, 4), "indices": AGAIN.astype(index)}, {}, take(), by=["a"])
    yield Sample("take", {"a": (3, 4), "indices": AGAIN + 0.7}, {}, take())
    yield Sample("take", {"a": (3, 4), "indices": AGAIN}, {"mode": "raise"}, take())
    for axis, mode in ((1, "clip"), (-1, "wrap"), (0, "wrap"), (0, "clip")):
        inputs = {"a": (3, 4, 2), "indices": MANY}
        yield Sample("take", inputs, {"axis": axis, "mode": mode}, take(axis, mode))
    yield Sample("batch_take", {"a": (3, 4), "indices": np.asarray([0, 9, -1])}, {}, pick())
    rows = np.asarray([1, 9, 0])
    yield Sample("pick", {"data": (3, 4), "index": rows}, {}, pick())
    yield Sample("pick", {"data": (3, 4), "index": rows + 0.6}, {}, pick())
    yield Sample("pick", {"data": (3, 4), "index": -rows}, {"mode": "wrap"}, pick(mode="wrap"))
    for axis, keepdims, index in (
        (0, False, (1, 0, 2, 2)),
        (1, True, (1, 3, 2)),
        (1, True, ((1,), (3,), (2,))),
        (0, False, ((1, 0, 2, 2),)),
        (-2, True, (1, 0, 2, 2)),
    ):
        inputs = {"data": (3, 4), "index": np.asarray(index, "float32")}
        told = {"axis": axis, "keepdims": keepdims}
        yield Sample("pick", inputs, told, pick(axis, keepdims), by=["data"])
    yield Sample("pick", {"data": (4,), "index": np.asarray([2])}, {}, pick())


def coordinates():
    """Samples of what names entries by their coordinates."""
    cube = (4, 3, 2)
    for points in (POINTS, POINTS + 0.3, POINTS - np.asarray([[4], [3]])):
        at = {"data": cube, "indices": points}
        yield Sample("gather_nd", at, {}, lambda data, points: data[tuple(whole(points))])
    alone = {"data": (4, 3), "indices": POINTS[:1]}
    yield Sample("gather_nd", alone, {}, lambda data, points: data[whole(points)[0]])
    for points in (APART, APART + 0.3, POINTS[:, :1]):
        inputs = {"data": (points.shape[1], 2), "indices": points}
        yield Sample("scatter_nd", inputs, {"shape": cube}, scattered(cube))
        inputs = {"lhs": cube, "rhs": (points.shape[1], 2), "indices": points}
        yield Sample("_scatter_set_nd", inputs, {"shape": cube}, put)
    twice = {"data": (4, 2), "indices": POINTS}
    yield Sample("scatter_nd", twice, {"shape": cube}, scattered(cube))
    yield Sample("_backward_gather_nd", twice, {"shape": cube}, scattered(cube, add=True))
    numbers = {"data": np.arange(1, 4), "indices": APART[:1]}
    yield Sample(
        "scatter_nd", numbers, {"shape": (5,)}, scattered((5,)), "zero", why="whole numbers"
    )
    points, shape = np.asarray([[3, 6, 6], [4, 5, 1]]), (7, 6)
    flat = np.ravel_multi_index(tuple(points), shape)
    for kind in ("int64", "float32"):
        yield Sample(
            "_ravel_multi_index",
            {"data": points.astype(kind)},
            {"shape": shape},
            lambda x: np.ravel_multi_index(tuple(whole(x)), (7, 6)),
            "zero",
            why="whole numbers",
        )
        yield Sample(
            "_unravel_index",
            {"data": flat.astype(kind)},
            {"shape": shape},
            lambda x: np.stack(np.unravel_index(whole(x), (7, 6))),
            "zero",
            why="whole numbers",
        )


CONDITION = np.asarray([[1.5, 0.0], [0.0, -2.0]])

SAMPLES = [
    Sample("where", {"condition": CONDITION, "x": (2, 2), "y": (2, 2)}, {}, where, by=["x", "y"]),
    Sample(
        "where",
        {"condition": np.asarray([1, 0], "int32"), "x": (2, 3), "y": (2, 3)},
        {},
        where,
    ),
    Sample(
        "where",
        {"condition": np.asarray([0, 2]), "x": np.asarray([1, 2]), "y": np.asarray([3, 4])},
        {},
        where,
        "zero",
        why="whole numbers",
    ),
    *choices(),
    *coordinates(),
    Sample("one_hot", {"indices": np.asarray([[1.4, 0.2], [2.3, 5.5]])}, {"depth": 3}, one_hot(3)),
    Sample(
        "one_hot",
        {"indices": np.asarray([1, -1, 0])},
        {"depth": 3, "on_value": 8.0, "off_value": -1.0, "dtype": "int32"},
        one_hot(3, 8, -1),
        "zero",
        why="whole numbers",
    ),
    Sample(
        "fill_element_0index",
        {"lhs": (3, 4), "mhs": (3,), "rhs": np.asarray([1.2, 0.4, 3.3])},
        {},
        filled,
    ),
    Sample(
        "_contrib_index_copy",
        {"old_tensor": (4, 2), "index_vector": np.asarray([3, 0]), "new_tensor": (2, 2)},
        {},
        copied,
    ),
    Sample(
        "_contrib_index_copy",
        {"old_tensor": (4,), "index_vector": np.asarray([2.3]), "new_tensor": (1,)},
        {},
        copied,
    ),
    *[
        Sample(
            "_contrib_boolean_mask",
            {"data": (4, 4), "index": np.asarray([0, 1, 2, 0]).astype(index)},
            {"axis": axis},
            lambda data, index, axis=axis: np.compress(index != 0, data, axis),
            "zero",
            dtypes=("float32",),
            why="of arrays only: in a symbol the shape would depend on the entries of index",
        )
        for axis, index in ((0, "float32"), (1, "int32"))
    ],
    *sequences(),
]
