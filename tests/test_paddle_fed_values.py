"""Programs whose shapes follow from fed offsets, lengths and values."""

import numpy as np
import pytest

from registry.errors import FeedError
from symop.interop.paddle import specializing
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.executor import Executor, Scope
from symop.interop.paddle.framework import BlockDesc, OpDesc, ProgramDesc, VarDesc, VarKind
from symop.interop.paddle.programs import Program

BATCHES = ([2, 1, 3], [1, 4, 1], [3, 3, 0])


def program(*calls, lod=("x",), dense=(), width=2):
    """A program of calls: the operator, its inputs and outputs by slot, and its attributes."""
    result = Program()
    block = result.global_block()
    for name in lod:
        block.create_var(name, [-1, width], lod_level=1)
    for name, shape, dtype in dense:
        block.create_var(name, shape, dtype)
    for kind, inputs, outputs, attrs in calls:
        block.append_op(kind, inputs, {key: [one] for key, one in outputs.items()}, attrs)
    return result


def rows(count, width=2):
    return np.random.default_rng(count).normal(size=(count, width)).astype("float32")


def parts(data, lengths):
    return np.split(data, np.cumsum(lengths)[:-1])


def test_padding_follows_the_longest_sequence():
    one = program(
        ("sequence_pad", {"X": "x", "PadValue": "v"}, {"Out": "p", "Length": "n"}, {}),
        ("sequence_unpad", {"X": "p", "Length": "n"}, {"Out": "u"}, {}),
        ("sequence_mask", {"X": "n"}, {"Y": "m"}, {"out_dtype": 5}),
        dense=[("v", [1], "float32")],
    )
    assert one.global_block().var("p").shape == (-1, -1, 2)
    executor, data = Executor(), rows(6)
    for lengths in BATCHES:
        feed = {"x": (data, [lengths]), "v": np.array([7.0], np.float32)}
        padded, back, mask = executor.run(one, feed, ["p", "u", "m"], return_numpy=False)
        longest = max(lengths)
        truth = np.full((3, longest, 2), 7.0)
        for i, part in enumerate(parts(data, lengths)):
            truth[i, : len(part)] = part
        np.testing.assert_allclose(padded, truth)
        np.testing.assert_array_equal(back.data, data)
        np.testing.assert_array_equal(np.diff(back.lod[0]), lengths)
        inside = np.arange(longest) < np.asarray(lengths)[:, None]
        np.testing.assert_array_equal(mask, inside)


def test_static_shapes_need_no_values():
    one = program(("sequence_pool", {"X": "x"}, {"Out": "s"}, {"pooltype": "SUM"}))
    executor, data = Executor(), rows(6)
    for lengths in BATCHES[:2]:
        (found,) = executor.run(one, {"x": (data, [lengths])}, ["s"])
        np.testing.assert_allclose(found, [part.sum(0) for part in parts(data, lengths)], rtol=1e-5)
    (compiled,) = executor._compiled.values()
    assert len(compiled._compiled) == 1


def test_compiled_programs_are_bounded(monkeypatch):
    monkeypatch.setattr(specializing, "KEPT", 2)
    one = program(
        ("sequence_mask", {"X": "n"}, {"Y": "m"}, {"out_dtype": 3}),
        lod=(),
        dense=[("n", [2], "int64")],
    )
    executor = Executor()
    for longest in (1, 2, 3, 1):
        (found,) = executor.run(one, {"n": np.array([0, longest])}, ["m"])
        assert found.shape == (2, longest)
    (compiled,) = executor._compiled.values()
    assert len(compiled._compiled) == 2


def written(name, dtype, width, *ops):
    """A program of records, with one ragged variable."""
    variable = VarDesc(name, VarKind.LOD_TENSOR, np.dtype(dtype), (-1, width), 1)
    return Program(ProgramDesc([BlockDesc(0, -1, {name: variable}, list(ops))], 1_008_005))


def test_sequences_of_tokens():
    call = OpDesc("sequence_erase", {"X": ["x"]}, {"Out": ["e"]}, {"tokens": [2, 5]}, {})
    one = written("x", "int64", 1, call)
    ids = np.array([[1], [2], [2], [5], [6], [2]])
    (found,) = Executor().run(one, {"x": (ids, [[2, 1, 3]])}, ["e"], return_numpy=False)
    np.testing.assert_array_equal(np.ravel(found.data), [1, 6])
    np.testing.assert_array_equal(found.lod[0], [0, 1, 1, 2])


def test_values_of_floats_are_interpreted():
    one = program(
        ("scale", {"X": "x"}, {"Out": "y"}, {"scale": 2.0}),
        ("greater_than", {"X": "y", "Y": "z"}, {"Out": "c"}, {}),
        ("where_index", {"Condition": "c"}, {"Out": "at"}, {}),
        ("masked_select", {"X": "y", "Mask": "c"}, {"Y": "kept"}, {}),
        lod=(),
        dense=[("x", [4], "float32"), ("z", [4], "float32")],
    )
    executor, zero = Executor(), np.zeros(4, np.float32)
    for numbers in ([1, -1, 2, 3], [-1, -1, -1, 5]):
        x = np.asarray(numbers, np.float32)
        places, kept = executor.run(one, {"x": x, "z": zero}, ["at", "kept"])
        np.testing.assert_array_equal(places, np.argwhere(x > 0))
        np.testing.assert_allclose(kept, 2 * x[x > 0])


def test_updates_of_interpreted_programs_are_kept():
    one = program(
        ("greater_than", {"X": "w", "Y": "z"}, {"Out": "c"}, {}),
        ("masked_select", {"X": "w", "Mask": "c"}, {"Y": "kept"}, {}),
        ("scale", {"X": "w"}, {"Out": "w"}, {"scale": -1.0}),
        lod=(),
        dense=[("w", [2], "float32"), ("z", [2], "float32")],
    )
    one.global_block().var("w").persistable = True
    scope, executor = Scope(), Executor()
    scope["w"] = np.array([1.0, -3.0], np.float32)
    for expected in ([1.0], [3.0]):
        feed = {"z": np.zeros(2, np.float32)}
        (kept,) = executor.run(one, feed, ["kept"], scope=scope)
        np.testing.assert_allclose(kept, expected)


def test_without_feeds_shapes_must_be_known():
    one = program(
        ("sequence_mask", {"X": "n"}, {"Y": "m"}, {"out_dtype": 3}),
        lod=(),
        dense=[("n", [2], "int64")],
    )
    with pytest.raises(PaddleError, match="sequence_mask: without maxlen, X"):
        one.to_symbol(["m"], {"n": ((2,), "int32")})


def lstm_truth(x, weight, bias, lengths):
    """Rows of hidden states: candidate, input, forget, output."""

    def logistic(v):
        return 1 / (1 + np.exp(-v))

    out = []
    for part in parts(x, lengths):
        h = c = np.zeros(weight.shape[0])
        for row in part:
            g, i, f, o = np.split(row + h @ weight + bias[0], 4)
            c = np.tanh(g) * logistic(i) + c * logistic(f)
            h = logistic(o) * np.tanh(c)
            out.append(h)
    return np.asarray(out)


def test_layers_over_sequences_share_programs():
    """Sequences run side by side; lengths select a compiled program only through their bound."""
    one = program(
        (
            "lstm",
            {"Input": "x", "Weight": "w", "Bias": "b"},
            {"Hidden": "h", "Cell": "c", "BatchGate": "g", "BatchCellPreAct": "a"},
            {"use_peepholes": False},
        ),
        dense=[("w", [3, 12], "float32"), ("b", [1, 12], "float32")],
        width=12,
    )
    rng = np.random.default_rng(0)
    weight, bias = (rng.normal(size=s).astype("float32") for s in ((3, 12), (1, 12)))
    executor, data = Executor(), rows(40, 12)
    for lengths in ([17, 3, 20], [1, 20, 19], [18, 4, 18]):
        feed = {"x": (data, [lengths]), "w": weight, "b": bias}
        (found,) = executor.run(one, feed, ["h"])
        np.testing.assert_allclose(
            found, lstm_truth(data, weight, bias, lengths), rtol=1e-4, atol=1e-5
        )
    (compiled,) = executor._compiled.values()
    assert len(compiled._compiled) == 1


def test_dynamic_rnn_steps():
    """The operators of DynamicRNN: steps of the longest sequences first, and back."""
    rank = {"RankTable": ["table"]}
    one = written(
        "x",
        "float32",
        2,
        OpDesc("lod_rank_table", {"X": ["x"]}, {"Out": ["table"]}, {"level": 0}, {}),
        OpDesc("max_sequence_len", rank, {"Out": ["longest"]}, {}, {}),
        OpDesc("lod_tensor_to_array", {"X": ["x"], **rank}, {"Out": ["steps"]}, {}, {}),
        OpDesc("array_to_lod_tensor", {"X": ["steps"], **rank}, {"Out": ["back"]}, {}, {}),
        OpDesc("reorder_lod_tensor_by_rank", {"X": ["x"], **rank}, {"Out": ["sorted"]}, {}, {}),
    )
    data = rows(6)
    longest, steps, back, order = Executor().run(
        one, {"x": (data, [[2, 1, 3]])}, ["longest", "steps", "back", "sorted"], return_numpy=False
    )
    assert np.asarray(longest).tolist() == [3]
    expected = ([3, 0, 2], [4, 1], [5])
    for step, places in zip(steps, expected, strict=True):
        np.testing.assert_array_equal(step, data[places])
    np.testing.assert_array_equal(back.data, data)
    np.testing.assert_array_equal(back.lod[0], [0, 2, 3, 6])
    np.testing.assert_array_equal(order.data, data[[3, 4, 5, 0, 1, 2]])


@pytest.mark.parametrize("kind", ["sequence_mask", "cast"])
def test_an_integer_that_does_not_fit_is_an_error(kind):
    attrs = {"out_dtype": 3} if kind == "sequence_mask" else {"in_dtype": 3, "out_dtype": 5}
    output = {"Y" if kind == "sequence_mask" else "Out": "m"}
    one = program((kind, {"X": "n"}, output, attrs), lod=(), dense=[("n", [2], "int64")])
    executor = Executor()
    (found,) = executor.run(one, {"n": np.array([-1, 3])}, ["m"])
    wanted = [[0, 0, 0], [1, 1, 1]] if kind == "sequence_mask" else [-1, 3]
    np.testing.assert_array_equal(found, wanted)
    for wide in ([0, 2**31], [-(2**31) - 1, 0]):
        with pytest.raises(FeedError, match="n: numbers must fit int32"):
            executor.run(one, {"n": np.array(wide)}, ["m"])
