"""MXNet's recurrent cells: names, values, weights of gates, sentences, checkpoints."""

import random
from pathlib import Path

import jax
import numpy as np
import pytest

from symop.interop.mxnet import initializer, io, metric, rnn, sym
from symop.interop.mxnet.arrays import array_of
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.module import BucketingModule
from symop.interop.mxnet.scopes import NameManager

DATA = Path(__file__).parent / "data" / "mxnet"
BATCH, STEPS, INPUTS, UNITS = 2, 3, 4, 5


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def random_params(symbol, **shapes):
    """Arrays for all arguments."""
    found, _, _ = symbol.infer_shape(**shapes)
    generator = np.random.default_rng(0)
    return {
        name: array_of(generator.normal(size=shape) * 0.5, np.float32)
        for name, shape in zip(symbol.list_arguments(), found, strict=True)
    }


def run(symbol, args, *, is_train=False):
    needed = {name: args[name] for name in symbol.list_arguments()}
    return [one.asnumpy() for one in symbol.bind(args=needed).forward(is_train)]


def unrolled(cell, *, layout="NTC", merge=True, states=None):
    outputs, after = cell.unroll(
        STEPS, sym.var("data"), begin_state=states, layout=layout, merge_outputs=merge
    )
    return (outputs if merge else sym.Group(outputs)), after


# Values ----------------------------------------------------------------------------------------


def plain(params, prefix, group, x):
    weight, bias = (params[f"{prefix}{group}_{kind}"].asnumpy() for kind in ("weight", "bias"))
    return x @ weight.T + bias if weight.ndim == 2 else convolved(x, weight) + bias[:, None, None]


def convolved(x, weight):
    """Images, padded with zeros so that their size remains, with each of the filters."""
    (height, width), (rows, cols) = x.shape[2:], weight.shape[2:]
    padded = np.pad(x, [(0, 0), (0, 0), (rows // 2,) * 2, (cols // 2,) * 2])
    return sum(
        np.einsum("nchw,fc->nfhw", padded[:, :, i : i + height, j : j + width], weight[:, :, i, j])
        for i in range(rows)
        for j in range(cols)
    )


def rnn_step(params, prefix, x, states, sums=plain, act=np.tanh):
    h = act(sums(params, prefix, "i2h", x) + sums(params, prefix, "h2h", states[0]))
    return h, [h]


def lstm_step(params, prefix, x, states, sums=plain, act=np.tanh):
    gates = sums(params, prefix, "i2h", x) + sums(params, prefix, "h2h", states[0])
    i, f, c, o = np.split(gates, 4, axis=1)
    memory = sigmoid(f) * states[1] + sigmoid(i) * act(c)
    h = sigmoid(o) * act(memory)
    return h, [h, memory]


def gru_step(params, prefix, x, states, sums=plain, act=np.tanh):
    r, z, o = np.split(sums(params, prefix, "i2h", x), 3, axis=1)
    hr, hz, ho = np.split(sums(params, prefix, "h2h", states[0]), 3, axis=1)
    new, update = act(o + sigmoid(r + hr) * ho), sigmoid(z + hz)
    h = (1 - update) * new + update * states[0]
    return h, [h]


CELLS = [
    (rnn.RNNCell, rnn_step, 1, "rnn_"),
    (rnn.LSTMCell, lstm_step, 2, "lstm_"),
    (rnn.GRUCell, gru_step, 1, "gru_"),
]


@pytest.mark.parametrize(("kind", "step", "count", "prefix"), CELLS)
def test_cells(kind, step, count, prefix):
    outputs, after = unrolled(kind(UNITS))
    both = sym.Group([outputs, *after])
    args = random_params(both, data=(BATCH, STEPS, INPUTS))
    x, states = args["data"].asnumpy(), [np.zeros((BATCH, UNITS))] * count
    expected = []
    for t in range(STEPS):
        h, states = step(args, prefix, x[:, t], states)
        expected.append(h)
    found = run(both, args)
    np.testing.assert_allclose(found[0], np.stack(expected, 1), rtol=1e-4, atol=1e-5)
    for one, other in zip(found[1:], states, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


CELLS_OF_IMAGES = [
    (rnn.ConvRNNCell, rnn_step, 1),
    (rnn.ConvLSTMCell, lstm_step, 2),
    (rnn.ConvGRUCell, gru_step, 1),
]


@pytest.mark.parametrize(("kind", "step", "count"), CELLS_OF_IMAGES)
def test_cells_of_images(kind, step, count):
    shape = (BATCH, 2, 4, 3)
    cell = kind(shape, UNITS, i2h_kernel=(3, 1), i2h_pad=(1, 0), activation="tanh", prefix="c_")
    names = [f"x{t}" for t in range(STEPS)]
    outputs, after = cell.unroll(STEPS, [sym.var(name) for name in names])
    both = sym.Group([*outputs, *after])
    args = random_params(both, **dict.fromkeys(names, shape))
    assert {name for name in args if name not in names} == {
        f"c_{one}_{other}" for one in ("i2h", "h2h") for other in ("weight", "bias")
    }
    states, expected = [np.zeros((BATCH, UNITS, 4, 3))] * count, []
    for name in names:
        h, states = step(args, "c_", args[name].asnumpy(), states)
        expected.append(h)
    for one, other in zip(run(both, args), [*expected, *states], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def strided(params, prefix, group, x):
    """Sums of a convolution with stride 2 of the input, or one with dilation of the state."""
    weight, bias = (params[f"{prefix}{group}_{kind}"].asnumpy() for kind in ("weight", "bias"))
    how = {"i2h": [(2, 2), [(1, 1)] * 2, (1, 1)], "h2h": [(1, 1), [(2, 2), (1, 1)], (2, 1)]}
    strides, padding, dilation = how[group]
    found = jax.lax.conv_general_dilated(
        x.astype(np.float32), weight, strides, padding, rhs_dilation=dilation
    )
    return np.asarray(found) + bias[:, None, None]


def leaky(x):
    return np.where(x > 0, x, 0.2 * x)


@pytest.mark.parametrize(("kind", "step", "count"), CELLS_OF_IMAGES)
def test_cells_of_images_are_leaky_and_may_step_over_pixels(kind, step, count):
    shape, small = (BATCH, 2, 5, 4), (BATCH, UNITS, 3, 2)
    cell, prefix = kind(shape, UNITS, h2h_dilate=(2, 1), i2h_stride=(2, 2)), kind.__name__[:-4]
    assert [one["shape"] for one in cell.state_info] == [(0, *small[1:])] * count
    outputs, after = cell.unroll(2, [sym.var("x0"), sym.var("x1")])
    both = sym.Group([*outputs, *after])
    args = random_params(both, x0=shape, x1=shape)
    assert args[f"{prefix}_i2h_weight"].shape == (UNITS * len(cell.gates), 2, 3, 3)
    assert args[f"{prefix}_h2h_weight"].shape == (UNITS * len(cell.gates), UNITS, 3, 3)
    states, expected = [np.zeros(small)] * count, []
    for name in ("x0", "x1"):
        x = args[name].asnumpy()
        h, states = step(args, f"{prefix}_", x, states, strided, leaky)
        expected.append(h)
    for one, other in zip(run(both, args), [*expected, *states], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_activations():
    cell = rnn.RNNCell(UNITS, activation="relu")
    outputs, _ = unrolled(cell)
    args = random_params(outputs, data=(BATCH, STEPS, INPUTS))
    assert run(outputs, args)[0].min() == 0
    own = rnn.RNNCell(UNITS, activation=lambda x, name: sym.LeakyReLU(x, slope=0.5, name=name))
    assert "rnn_t0_out_output" in unrolled(own)[0].get_internals().list_outputs()


@pytest.mark.parametrize("layout", ["NTC", "TNC"])
def test_layouts_and_lists(layout):
    shape = (BATCH, STEPS, INPUTS) if layout == "NTC" else (STEPS, BATCH, INPUTS)
    whole, _ = unrolled(rnn.GRUCell(UNITS), layout=layout)
    parts, _ = unrolled(rnn.GRUCell(UNITS), layout=layout, merge=False)
    args = random_params(whole, data=shape)
    axis = layout.index("T")
    np.testing.assert_allclose(
        run(whole, args)[0], np.stack(run(parts, args), axis), rtol=1e-5, atol=1e-6
    )
    steps = [sym.var(f"x{i}") for i in range(STEPS)]
    outputs, _ = rnn.GRUCell(UNITS).unroll(STEPS, steps, layout=layout)
    assert len(outputs) == STEPS
    with pytest.raises(MXNetError, match="3 inputs"):
        rnn.GRUCell(UNITS).unroll(STEPS, steps[:2])


def test_states_may_be_fed():
    cell = rnn.LSTMCell(UNITS, prefix="a_")
    states = cell.begin_state(func=sym.var)
    assert [one.name for one in states] == ["a_begin_state_0", "a_begin_state_1"]
    outputs, _ = unrolled(cell, states=states)
    args = random_params(outputs, data=(BATCH, STEPS, INPUTS))
    assert args["a_begin_state_0"].shape == (BATCH, UNITS)
    h, c = (args[f"a_begin_state_{i}"].asnumpy() for i in range(2))
    expected, _ = lstm_step(args, "a_", args["data"].asnumpy()[:, 0], [h, c])
    np.testing.assert_allclose(run(outputs, args)[0][:, 0], expected, rtol=1e-4, atol=1e-5)


def test_a_recorded_graph_is_made_anew():
    with NameManager():
        embed = sym.Embedding(sym.var("data"), input_dim=30, output_dim=8, name="embed")
        label = sym.var("softmax_label")
        stack = rnn.SequentialRNNCell()
        for i in range(2):
            stack.add(rnn.LSTMCell(12, prefix=f"l{i}_"))
        outputs, _ = stack.unroll(5, inputs=embed, merge_outputs=True)
        flat = sym.Reshape(outputs, shape=(-1, 12))
        scores = sym.FullyConnected(flat, num_hidden=30, name="pred")
        out = sym.SoftmaxOutput(scores, sym.Reshape(label, shape=(-1,)), name="softmax")
    assert out.tojson() == (DATA / "lstm_unroll-symbol.json").read_text()


def test_forget_gates_start_open():
    cell = rnn.LSTMCell(UNITS, forget_bias=3.0)
    outputs, _ = unrolled(cell)
    attributes = outputs.attr_dict()["lstm_i2h_bias"]
    made = array_of(np.zeros(4 * UNITS), np.float32)
    initializer.Uniform()(initializer.InitDesc("lstm_i2h_bias", attributes), made)
    assert made.asnumpy().reshape(4, -1)[:, 0].tolist() == [0, 3, 0, 0]


# Cells around cells ----------------------------------------------------------------------------


def test_stacks_share_parameters():
    stack = rnn.SequentialRNNCell()
    stack.add(rnn.RNNCell(UNITS, prefix="a_"))
    stack.add(rnn.DropoutCell(0.5))
    stack.add(rnn.LSTMCell(UNITS, prefix="b_"))
    assert stack.state_shape == [(0, UNITS)] * 3
    output, states = stack(sym.var("data"), stack.begin_state())
    assert len(states) == 3
    assert "a_i2h_weight" in output.list_arguments()
    shared = rnn.RNNParams("s_")
    one, other = rnn.RNNCell(UNITS, params=shared), rnn.RNNCell(UNITS, params=shared)
    first, _ = unrolled(one)
    second, _ = other.unroll(STEPS, first, merge_outputs=True)
    assert [n for n in second.list_arguments() if n != "data"] == [
        "s_i2h_weight",
        "s_i2h_bias",
        "s_h2h_weight",
        "s_h2h_bias",
    ]
    with pytest.raises(MXNetError, match="not both"):
        rnn.SequentialRNNCell(rnn.RNNParams()).add(one)


@pytest.mark.parametrize("merge", [True, False])
def test_both_directions(merge):
    cell = rnn.BidirectionalCell(rnn.RNNCell(UNITS, prefix="l_"), rnn.RNNCell(3, prefix="r_"))
    outputs, states = unrolled(cell, merge=merge)
    assert [len(one) for one in states] == [1, 1]
    args = random_params(outputs, data=(BATCH, STEPS, INPUTS))
    found = run(outputs, args)
    found = found[0] if merge else np.stack(found, 1)
    assert found.shape == (BATCH, STEPS, UNITS + 3)
    x, h = args["data"].asnumpy(), [np.zeros((BATCH, 3))]
    for t in reversed(range(STEPS)):
        expected, h = rnn_step(args, "r_", x[:, t], h)
        np.testing.assert_allclose(found[:, t, UNITS:], expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(NotImplementedError, match="unroll"):
        cell(sym.var("x"), [])


def test_residuals():
    base = rnn.RNNCell(INPUTS)
    cell = rnn.ResidualCell(base)
    outputs, _ = unrolled(cell, merge=False)
    plain_outputs, _ = unrolled(rnn.RNNCell(INPUTS), merge=False)
    args = random_params(outputs, data=(BATCH, STEPS, INPUTS))
    steps = np.moveaxis(args["data"].asnumpy(), 1, 0)
    for one, other, x in zip(run(outputs, args), run(plain_outputs, args), steps, strict=True):
        np.testing.assert_allclose(one, other + x, rtol=1e-5)
    assert outputs.list_outputs()[0] == "rnn_t0_out_plus_residual_output"
    with pytest.raises(MXNetError, match="modifies"):
        base.begin_state()


def test_zoneout():
    cell = rnn.ZoneoutCell(rnn.RNNCell(UNITS), zoneout_outputs=0.5, zoneout_states=0.5)
    outputs, _ = unrolled(cell, merge=False)
    args = random_params(outputs, data=(BATCH, STEPS, INPUTS))
    first, second, _ = run(outputs, args, is_train=True)
    same = first == second
    assert same.any()
    assert not same.all()
    expected, _ = unrolled(rnn.RNNCell(UNITS), merge=False)
    np.testing.assert_allclose(run(outputs, args)[1], run(expected, args)[1], rtol=1e-5)
    with pytest.raises(MXNetError, match="unfuse"):
        rnn.ZoneoutCell(rnn.FusedRNNCell(UNITS))


def test_dropout():
    outputs, _ = unrolled(rnn.DropoutCell(0.5))
    args = {"data": array_of(np.ones((BATCH, STEPS, INPUTS)), np.float32)}
    assert (run(outputs, args)[0] == 1).all()
    assert set(np.unique(run(outputs, args, is_train=True)[0])) == {0.0, 2.0}


# The fused operator ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "layers", "both"), [("lstm", 2, True), ("gru", 2, False), ("rnn_tanh", 1, True)]
)
def test_fused_is_the_same_as_single_cells(mode, layers, both):
    fused = rnn.FusedRNNCell(
        UNITS, layers, mode, bidirectional=both, get_next_state=True, prefix="n_"
    )
    outputs, states = unrolled(fused, layout="TNC")
    args = random_params(outputs, data=(STEPS, BATCH, INPUTS))
    found = run(sym.Group([outputs, *states]), args)
    single = fused.unfuse()
    expected, after = unrolled(single, layout="TNC")
    gates = fused.unpack_weights(args)
    assert f"n_l0_i2h{fused.gates[0]}_weight" in gates
    np.testing.assert_allclose(
        found[0], run(expected, single.pack_weights(gates))[0], rtol=1e-4, atol=1e-5
    )
    if not both:
        last = run(after[-1], single.pack_weights(gates))[0]
        np.testing.assert_allclose(found[-1][-1], last, rtol=1e-4, atol=1e-5)
    again = fused.pack_weights(single.unpack_weights(single.pack_weights(gates)))
    assert (again["n_parameters"].asnumpy() == args["n_parameters"].asnumpy()).all()


def test_fused_in_other_layouts():
    cell = rnn.FusedRNNCell(UNITS, mode="gru", prefix="n_")
    with pytest.warns(UserWarning, match="NTC"):
        outputs, states = unrolled(cell, merge=False)
    assert states == []
    assert len(outputs) == STEPS
    assert outputs.infer_shape(data=(BATCH, STEPS, INPUTS))[1] == [(BATCH, UNITS)] * STEPS
    with pytest.raises(NotImplementedError, match="unroll"):
        cell(sym.var("x"), [])
    with pytest.raises(MXNetError, match="mode"):
        rnn.FusedRNNCell(UNITS, mode="lstmp")


def test_unfused_names():
    stack = rnn.FusedRNNCell(UNITS, 2, "lstm", bidirectional=True, dropout=0.1).unfuse()
    outputs, _ = unrolled(stack)
    names = outputs.list_arguments()
    assert {"lstm_l0_i2h_weight", "lstm_r1_h2h_bias"} <= set(names)
    assert outputs.list_outputs() == ["lstm_bi_l1_out_output"]


def test_checkpoints(tmp_path):
    cell = rnn.FusedRNNCell(UNITS, 1, "lstm", prefix="n_")
    outputs, _ = unrolled(cell, layout="TNC")
    args = {"n_parameters": random_params(outputs, data=(STEPS, BATCH, INPUTS))["n_parameters"]}
    prefix = str(tmp_path / "net")
    rnn.do_rnn_checkpoint(cell, prefix, 2)(1, outputs, args, {})
    _, found, states = rnn.load_rnn_checkpoint(cell, prefix, 2)
    assert states == {}
    assert (found["n_parameters"].asnumpy() == args["n_parameters"].asnumpy()).all()
    stack = cell.unfuse()
    _, found, _ = rnn.load_rnn_checkpoint(stack, prefix, 2)
    assert sorted(found) == sorted(
        f"n_l0_{group}_{kind}" for group in ("i2h", "h2h") for kind in ("weight", "bias")
    )


# Sentences -------------------------------------------------------------------------------------


def test_words_become_numbers():
    found, vocab = rnn.encode_sentences([["a", "b", "a"], ["c"]], start_label=1, invalid_label=0)
    assert found == [[1, 2, 1], [3]]
    assert vocab == {"\n": 0, "a": 1, "b": 2, "c": 3}
    again, same = rnn.encode_sentences([["c", "a"]], vocab)
    assert again == [[3, 1]]
    assert same is vocab
    with pytest.raises(MXNetError, match="'z'"):
        rnn.encode_sentences([["z"]], vocab)
    assert rnn.encode_sentences([["a"]], invalid_label=0)[0] == [[1]]
    unknown, vocab = rnn.encode_sentences([["z", "a"]], {"a": 5}, unknown_token="?", start_label=9)
    assert unknown == [[9, 5]]
    assert vocab == {"a": 5, "?": 9}


@pytest.mark.parametrize("layout", ["NT", "TN"])
def test_buckets_of_sentences(layout):
    sentences = [[1, 2, 3]] * 4 + [[4, 5]] * 5 + [[6] * 9] * 2
    random.seed(0)
    batches = rnn.BucketSentenceIter(sentences, 2, [3, 5, 2], invalid_label=-1, layout=layout)
    assert batches.buckets == [2, 3]
    assert batches.default_bucket_key == 3
    assert batches.provide_data[0].shape == ((2, 3) if layout == "NT" else (3, 2))
    for _ in range(2):
        found = list(batches)
        assert sorted(one.bucket_key for one in found) == [2, 2, 3, 3]
        for one in found:
            data, label = one.data[0].asnumpy(), one.label[0].asnumpy()
            data, label = (data, label) if layout == "NT" else (data.T, label.T)
            assert (data[:, 1:] == label[:, :-1]).all()
            assert (label[:, -1] == -1).all()
            assert one.provide_data[0].shape == one.data[0].shape
        batches.reset()


def test_a_language_model_of_buckets():
    def generate(length):
        embed = sym.Embedding(sym.var("data"), input_dim=6, output_dim=8, name="embed")
        outputs, _ = rnn.GRUCell(16, prefix="gru_").unroll(length, embed, merge_outputs=True)
        scores = sym.FullyConnected(
            sym.Reshape(outputs, shape=(-1, 16)), num_hidden=6, name="scores"
        )
        label = sym.Reshape(sym.var("softmax_label"), shape=(-1,))
        out = sym.SoftmaxOutput(
            scores, label, use_ignore=True, ignore_label=0, normalization="valid", name="softmax"
        )
        return out, ("data",), ("softmax_label",)

    sentences = [[1, 2, 3, 4]] * 12 + [[5, 4, 3]] * 12
    random.seed(0)
    np.random.seed(0)
    batches = rnn.BucketSentenceIter(sentences, 4, [3, 4], invalid_label=0)
    made = BucketingModule(generate, default_bucket_key=batches.default_bucket_key)
    made.fit(
        batches,
        eval_metric=metric.Perplexity(0),
        num_epoch=12,
        optimizer="adam",
        optimizer_params={"learning_rate": 0.05, "rescale_grad": 1.0},
        initializer=initializer.Xavier(),
    )
    ((_, perplexity),) = made.score(batches, metric.Perplexity(0))
    assert perplexity < 1.3
    assert isinstance(batches, io.DataIter)
