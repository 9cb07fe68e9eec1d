"""MXNet's training half: data, initial values, metrics, modules, callbacks, drawings, checks."""

import json
import logging
import math
from collections import namedtuple
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop.interop.mxnet as mx
from symop.interop.mxnet import (
    callback,
    context,
    initializer,
    io,
    kvstore,
    metric,
    model,
    nd,
    optimizer,
    random,
    rnn,
    scopes,
    sym,
    test_utils,
    visualization,
)
from symop.interop.mxnet.arrays import array_of
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.initializer import InitDesc
from symop.interop.mxnet.module import BucketingModule, Module, SequentialModule
from symop.interop.mxnet.monitor import Monitor
from symop.interop.mxnet.rnn_parameters import parts_of, size_of

DATA = Path(__file__).parent / "data" / "mxnet"


def array(value, dtype=np.float32):
    return array_of(np.asarray(value), dtype)


def close(found, expected, rtol=1e-5, atol=1e-6):
    found = found.asnumpy() if hasattr(found, "asnumpy") else found
    expected = expected.asnumpy() if hasattr(expected, "asnumpy") else expected
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)


# Initial values --------------------------------------------------------------------------------


def filled(init, shape, name="fc_weight", attrs=None):
    made = array(np.full(shape, np.nan))
    init(InitDesc(name, attrs), made)
    return made.asnumpy()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("fc_bias", 0.0),
        ("bn_gamma", 1.0),
        ("bn_beta", 0.0),
        ("bn_moving_mean", 0.0),
        ("bn_moving_var", 1.0),
        ("quantized_min", 0.0),
        ("quantized_max", 1.0),
        ("fc_weight", 0.5),
    ],
)
def test_names_tell_what_is_filled(name, expected):
    assert filled(initializer.Constant(0.5), (3,), name).tolist() == [expected] * 3


def test_a_variables_own_initializer_comes_first():
    attrs = {"__init__": initializer.Constant(2.0).dumps()}
    assert filled(initializer.Zero(), (2,), "x_bias", attrs).tolist() == [2.0, 2.0]
    assert filled(initializer.Zero(), (2,), "any", {"__init__": '["One", {}]'}).tolist() == [1, 1]


def test_a_name_that_tells_nothing():
    with pytest.raises(MXNetError, match="'x' must end in weight"):
        filled(initializer.Zero(), (2,), "x")


def test_random_ones_follow_the_seed():
    random.seed(3)
    first = filled(initializer.Uniform(0.5), (1000,))
    second = filled(initializer.Uniform(0.5), (1000,))
    random.seed(3)
    assert (filled(initializer.Uniform(0.5), (1000,)) == first).all()
    assert (first != second).any()
    assert -0.5 <= first.min() < -0.45 < 0.45 < first.max() < 0.5


@pytest.mark.parametrize(
    ("init", "variance"),
    [
        (initializer.Normal(0.1), 0.01),
        (initializer.Xavier(), 3 / 150 / 3),
        (initializer.Xavier("gaussian", "in", 2), 2 / 100),
        (initializer.Xavier("gaussian", "out", 2), 2 / 200),
        (initializer.MSRAPrelu("in", 0.5), 2 / 1.25 / 100),
    ],
)
def test_variances(init, variance):
    found = filled(init, (200, 100))
    assert abs(found.var() / variance - 1) < 0.05
    assert abs(found.mean()) < 0.05 * math.sqrt(variance)


def test_fans_of_kernels():
    found = filled(initializer.Xavier("gaussian", "in", 1), (100, 10, 3, 3))
    assert abs(found.var() * 90 - 1) < 0.1


def test_xavier_needs_two_axes():
    with pytest.raises(MXNetError, match="2 axes"):
        filled(initializer.Xavier(), (3,))
    with pytest.raises(MXNetError, match="rnd_type"):
        initializer.Xavier("even")


@pytest.mark.parametrize("shape", [(3, 8), (8, 3), (4, 2, 2)])
def test_orthogonal(shape):
    found = filled(initializer.Orthogonal(2.0), shape).reshape(shape[0], -1)
    small = found @ found.T if found.shape[0] <= found.shape[1] else found.T @ found
    close(small, 4 * np.eye(len(small)), atol=1e-5)


def test_bilinear():
    found = filled(initializer.Bilinear(), (1, 1, 4, 4))[0, 0]
    close(found, np.outer([0.25, 0.75, 0.75, 0.25], [0.25, 0.75, 0.75, 0.25]))


def test_forget_gates():
    assert filled(initializer.LSTMBias(2.0), (8,)).tolist() == [0, 0, 2, 2, 0, 0, 0, 0]


def test_fused_parameters():
    size = size_of(3, 4, 2, "lstm", bidirectional=True)
    init = initializer.FusedRNN(initializer.Constant(0.5), 4, 2, "lstm", True, 7.0)
    found = filled(init, (size,), "lstm_parameters", {"__init__": init.dumps()})
    for part in parts_of(size, 4, 2, "lstm", bidirectional=True):
        expected = 0.5 if part.name.endswith("weight") else 0.0
        expected = 7.0 if part.name.endswith("_f_bias") else expected
        assert (found[part.place] == expected).all(), part.name
    with pytest.raises(MXNetError, match="cannot be 7"):
        parts_of(7, 4, 2, "lstm")


def test_patterns_and_arrays():
    mixed = initializer.Mixed([".*bias", ".*"], [initializer.One(), initializer.Constant(3.0)])
    assert filled(mixed, (1,), "a_weight").tolist() == [3.0]
    loaded = initializer.Load({"arg:a": array([5.0])}, initializer.Zero())
    assert filled(loaded, (1,), "a").tolist() == [5.0]
    assert filled(loaded, (1,), "b_weight").tolist() == [0.0]
    with pytest.raises(MXNetError, match="shape"):
        filled(loaded, (2,), "a")
    with pytest.raises(MXNetError, match="pattern"):
        initializer.Mixed(["a"], [initializer.One()])("b", array([1.0]))


def test_descriptions():
    for made in (initializer.Xavier("gaussian"), initializer.Constant([1.0, 2.0])):
        assert initializer.create(made.dumps()) == made
    assert initializer.create("zeros") == initializer.Zero()
    with pytest.raises(MXNetError, match="uniform"):
        initializer.create("unifrom")


@initializer.register
class Counting(initializer.Initializer):
    def _init_weight(self, name, arr):
        arr[:] = np.arange(arr.size).reshape(arr.shape)


def test_initializers_of_users():
    assert filled(initializer.create("counting"), (3,)).tolist() == [0, 1, 2]


# Batches ---------------------------------------------------------------------------------------


def seen(batches):
    return [(one.data[0].asnumpy().ravel().astype(int).tolist(), one.pad) for one in batches]


def test_padding():
    batches = io.NDArrayIter(np.arange(5), batch_size=2)
    expected = [([0, 1], 0), ([2, 3], 0), ([4, 0], 1)]
    assert seen(batches) == expected
    assert seen(batches) == []
    batches.reset()
    assert seen(batches) == expected
    assert seen(io.NDArrayIter(np.arange(2), batch_size=5)) == [([0, 1, 0, 1, 0], 3)]


def test_discarding():
    assert seen(io.NDArrayIter(np.arange(5), None, 2, False, "discard")) == [
        ([0, 1], 0),
        ([2, 3], 0),
    ]


def test_rolling_over():
    batches = io.NDArrayIter(np.arange(5), None, 2, False, "roll_over")
    assert seen(batches) == [([0, 1], 0), ([2, 3], 0)]
    batches.reset()
    assert seen(batches) == [([4, 0], 1), ([1, 2], 0), ([3, 4], 0)]
    batches.reset()
    assert seen(batches) == [([0, 1], 0), ([2, 3], 0)]
    batches.hard_reset()
    assert seen(batches)[0] == ([0, 1], 0)


def test_shuffling_is_numpys():
    np.random.seed(5)
    batches = io.NDArrayIter(np.arange(6), np.arange(6), 3, shuffle=True)
    np.random.seed(5)
    order = np.arange(6)
    np.random.shuffle(order)
    found = [(one.data[0].asnumpy(), one.label[0].asnumpy()) for one in batches]
    assert np.concatenate([data for data, _ in found]).tolist() == order.tolist()
    assert all((data == label).all() for data, label in found)


def test_several_arrays():
    data = {"b": np.zeros((4, 2)), "a": array(np.zeros((4, 3)), np.int32)}
    batches = io.NDArrayIter(data, [np.zeros(4), np.ones((4, 5))], 2)
    assert [tuple(one) for one in batches.provide_data] == [("a", (2, 3)), ("b", (2, 2))]
    assert batches.provide_data[0].dtype is np.int32
    assert batches.provide_data[1].dtype is np.float32
    names = [one.name for one in batches.provide_label]
    assert names == ["_0_softmax_label", "_1_softmax_label"]
    with pytest.raises(MXNetError, match="one length"):
        io.NDArrayIter(np.zeros(3), np.zeros(4))
    with pytest.raises(MXNetError, match="last_batch_handle"):
        io.NDArrayIter(np.zeros(3), last_batch_handle="drop")


def test_other_layouts():
    batches = io.NDArrayIter(np.arange(6).reshape(2, 3), batch_size=2, layout="TN")
    assert tuple(batches.provide_data[0]) == ("data", (2, 2))
    assert seen(batches) == [([0, 1, 3, 4], 0), ([2, 0, 5, 3], 1)]


def test_iterators_over_iterators():
    one = io.NDArrayIter(np.arange(4), np.arange(4), 2)
    resized = io.ResizeIter(one, 3)
    assert seen(resized) == [([0, 1], 0), ([2, 3], 0), ([0, 1], 0)]
    resized.reset()
    assert len(seen(resized)) == 3
    one.reset()
    both = io.PrefetchingIter(
        [one, io.NDArrayIter(np.arange(4) + 10, np.arange(4), 2)],
        [{"data": "a"}, {"data": "b"}],
        [{"softmax_label": "c"}, {"softmax_label": "d"}],
    )
    assert [desc.name for desc in both.provide_data + both.provide_label] == list("abcd")
    assert [[x.asnumpy()[0] for x in batch.data] for batch in both] == [[0, 10], [2, 12]]
    both.reset()
    assert len(list(both)) == 2


def test_text_files(tmp_path):
    np.savetxt(tmp_path / "x.csv", np.arange(12).reshape(3, 4), delimiter=",")
    np.savetxt(tmp_path / "y.csv", np.arange(3), delimiter=",")
    batches = io.CSVIter(
        data_csv=tmp_path / "x.csv", data_shape=(2, 2), label_csv=tmp_path / "y.csv", batch_size=2
    )
    assert [one.data[0].shape for one in batches] == [(2, 2, 2)] * 2
    assert tuple(batches.provide_label[0]) == ("softmax_label", (2, 1))
    with pytest.raises(MXNetError, match="NDArrayIter"):
        io.MNISTIter(image="x")


def test_descriptions_of_arrays():
    desc = io.DataDesc("x", (2, 3), np.int32, "TN")
    name, shape = desc
    assert (name, shape, desc.dtype, desc.layout) == ("x", (2, 3), np.int32, "TN")
    assert io.DataDesc.get_batch_axis("TNC") == 1
    assert io.DataDesc.get_list([("a", (1,))], [("a", np.int8)])[0].dtype is np.int8
    with pytest.raises(MXNetError, match="list"):
        io.DataBatch(array([1.0]))


# Metrics ---------------------------------------------------------------------------------------

LABEL = np.array([0, 2, 1, 1])
PRED = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.8, 0.1], [0.7, 0.2, 0.1]])


def measured(made, *pairs):
    made = metric.create(made)
    for label, pred in pairs:
        made.update([array(label)], [array(pred)])
    return made.get()[1]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("acc", 0.5),
        (metric.Accuracy(axis=-1), 0.5),
        (metric.TopKAccuracy(top_k=2), 1.0),
        ("ce", -np.log(PRED[range(4), LABEL]).mean()),
        ("nll_loss", -np.log(PRED[range(4), LABEL]).mean()),
        (metric.Perplexity(None), np.exp(-np.log(PRED[range(4), LABEL]).mean())),
        (metric.Perplexity(1), np.exp(-np.log([0.6, 0.3]).mean())),
        (metric.Loss(), PRED.mean()),
    ],
)
def test_metrics_of_classes(made, expected):
    assert measured(made, (LABEL, PRED)) == pytest.approx(expected, rel=1e-6)


def test_classes_may_be_given():
    assert measured("acc", ([1, 0, 1], [1, 1, 1])) == pytest.approx(2 / 3)


BINARY = [([0, 1, 1, 1], [1, 1, 0, 1]), ([0, 0, 1, 0], [0, 1, 1, 0])]


def scores(label, found):
    label, found = np.array(label), np.array(found)
    tp, fp = (label * found).sum(), ((1 - label) * found).sum()
    fn, tn = (label * (1 - found)).sum(), ((1 - label) * (1 - found)).sum()
    f1 = 2 * tp / (2 * tp + fp + fn)
    sides = np.array([tp + fp, tp + fn, tn + fp, tn + fn], float)
    return f1, (tp * tn - fp * fn) / np.sqrt(np.prod(sides[sides > 0]))


@pytest.mark.parametrize(("name", "at"), [("f1", 0), ("mcc", 1)])
def test_metrics_of_two_classes(name, at):
    pairs = [(label, np.eye(2)[found]) for label, found in BINARY]
    whole = [np.concatenate(parts) for parts in zip(*BINARY, strict=True)]
    mean = np.mean([scores(*one)[at] for one in BINARY])
    assert measured(name, *pairs) == pytest.approx(mean)
    made = metric.create(name, average="micro")
    assert measured(made, *pairs) == pytest.approx(scores(*whole)[at])
    made.reset_local()
    assert math.isnan(made.get()[1])
    assert made.get_global()[1] == pytest.approx(scores(*whole)[at])
    with pytest.raises(MXNetError, match="two labels"):
        measured(name, ([0, 1, 2], np.eye(2)[[0, 1, 1]]))


@pytest.mark.parametrize(
    ("name", "distance"),
    [
        ("mae", lambda d: np.abs(d).mean()),
        ("mse", lambda d: (d**2).mean()),
        ("rmse", lambda d: np.sqrt((d**2).mean())),
    ],
)
def test_metrics_of_numbers(name, distance):
    label, pred = np.arange(4.0), np.array([[1.0], [0.0], [2.5], [4.0]])
    pairs = [(label, pred), (label, pred * 2)]
    expected = np.mean([distance(label[:, None] - one) for _, one in pairs])
    assert measured(name, *pairs) == pytest.approx(expected, rel=1e-6)


def test_correlation():
    generator = np.random.default_rng(0)
    pairs = [tuple(generator.normal(size=(2, 20))) for _ in range(3)]
    each = [np.corrcoef(*pair)[0, 1] for pair in pairs]
    assert measured("pearsonr", *pairs) == pytest.approx(np.mean(each), rel=1e-5)
    whole = np.corrcoef(*np.concatenate(pairs, axis=1))[0, 1]
    made = metric.PearsonCorrelation(average="micro")
    assert measured(made, *pairs) == pytest.approx(whole, rel=1e-5)


def test_functions_and_several():
    def twice(label, pred):
        return 2 * pred.sum(), pred.size

    made = metric.create(["acc", twice, metric.np(lambda label, pred: 5.0)])
    made.update([array(LABEL)], [array(PRED)])
    assert dict(made.get_name_value()) == {
        "accuracy": 0.5,
        "twice": pytest.approx(2 * PRED.mean()),
        "custom(<lambda>)": 5.0,
    }
    made.reset_local()
    assert all(math.isnan(value) for _, value in made.get_name_value())
    assert dict(made.get_global_name_value())["accuracy"] == 0.5


def test_metrics_choose_by_name():
    made = metric.Accuracy(output_names=["softmax_output"], label_names=["label"])
    outputs = {"other": array(PRED[:1]), "softmax_output": array(PRED)}
    made.update_dict({"label": array(LABEL), "more": array([0])}, outputs)
    assert made.get() == ("accuracy", 0.5)
    config = json.loads(json.dumps(made.get_config()))
    assert metric.create(config).get_config() == config


def test_metrics_refuse():
    with pytest.raises(MXNetError, match="fit"):
        measured("acc", ([1, 2], np.eye(3)))
    with pytest.raises(MXNetError, match="accuracy"):
        metric.create("accuraccy")
    with pytest.raises(MXNetError, match="top_k"):
        metric.TopKAccuracy()
    with pytest.raises(MXNetError, match="ignore_label must be given"):
        metric.Perplexity()


# Modules ---------------------------------------------------------------------------------------

Batch = namedtuple("Batch", ["data", "label"])
needs_two = pytest.mark.skipif(len(jax.devices()) < 2, reason="of one device there are no others")


def network(*, batch_norm=False, dropout=0.0):
    net = sym.FullyConnected(sym.var("data"), num_hidden=8, name="fc1")
    if batch_norm:
        net = sym.BatchNorm(net, name="bn", fix_gamma=False)
    net = sym.Activation(net, act_type="tanh", name="act")
    if dropout:
        net = sym.Dropout(net, p=dropout)
    return sym.SoftmaxOutput(sym.FullyConnected(net, num_hidden=3, name="fc2"), name="softmax")


def problem(count=24, seed=0):
    x = np.random.default_rng(seed).normal(size=(count, 5))
    return x, (x[:, 0] > 0) + (x[:, 1] > 0)


def batch_of(count=8, seed=0):
    x, y = problem(count, seed)
    return Batch([array(x)], [array(y)])


def bound(
    net=None,
    batch=8,
    *,
    params=None,
    optimizer_=("sgd", {"momentum": 0.9}),
    **options,
):
    where = {name: options.pop(name) for name in ("context", "group2ctxs") if name in options}
    made = Module(network() if net is None else net, **where)
    made.bind([("data", (batch, 5))], [("softmax_label", (batch,))], **options)
    random.seed(0)
    made.init_params(initializer.Xavier(), *(params or ()))
    if optimizer_ is not None:
        made.init_optimizer(optimizer=optimizer_[0], optimizer_params=optimizer_[1])
    return made


def test_fit_learns(caplog):
    x, y = problem(64)
    batches = io.NDArrayIter(x, y, 16, shuffle=True)
    made, ended = Module(network()), []
    caplog.set_level(logging.INFO)
    made.fit(
        batches,
        batches,
        num_epoch=20,
        initializer=initializer.Xavier(),
        optimizer_params={"learning_rate": 1.0},
        batch_end_callback=[callback.Speedometer(16, 2), lambda at: ended.append(at.nbatch)],
        eval_batch_end_callback=callback.ProgressBar(4),
    )
    assert made.score(batches, "acc")[0][1] > 0.9
    assert ended == [0, 1, 2, 3] * 20
    assert "Epoch[19] Train-accuracy=" in caplog.text
    assert "Epoch[19] Validation-accuracy=" in caplog.text
    assert "samples/sec\taccuracy=" in caplog.text
    with pytest.raises(MXNetError, match="num_epoch"):
        made.fit(batches)


def weights(made):
    return {name: one.asnumpy() for part in made.get_params() for name, one in part.items()}


def steps(made, count=3, *, look=None):
    outputs = []
    for i in range(count):
        made.forward_backward(batch_of(seed=i))
        if look is not None:
            look(made)
        made.update()
        outputs.append(made.get_outputs()[0].asnumpy())
    return outputs


OPTIMIZERS = [
    ("sgd", {}),
    ("sgd", {"momentum": 0.9, "wd": 0.1, "clip_gradient": 0.01}),
    ("nadam", {"learning_rate": 0.1}),
    ("lamb", {"learning_rate": 0.1, "wd": 0.1}),
]


@pytest.mark.usefixtures("optimized")  # lamb amplifies the last bit
@pytest.mark.sampled(2)
@pytest.mark.parametrize("options", OPTIMIZERS)
def test_one_step_is_that_taken_apart(options):
    net = network(batch_norm=True, dropout=0.5)
    whole, apart = bound(net, optimizer_=options), bound(net, optimizer_=options)
    random.seed(7)
    first = steps(whole)
    random.seed(7)
    second = steps(apart, look=lambda made: made.get_outputs())
    assert whole._steps[id(whole._executor)]._compiled
    assert not apart._steps[id(apart._executor)]._compiled
    for one, other in zip(first, second, strict=True):
        close(one, other, rtol=2e-5)
    expected = weights(apart)
    for name, found in weights(whole).items():
        close(found, expected[name], rtol=2e-5)
    assert (expected["bn_moving_mean"] != 0).any()


@pytest.mark.parametrize(
    "look",
    [
        lambda made: made._exec_group.grad_arrays,
        lambda made: made.backward(),
        lambda made: made.update_metric(metric.Accuracy(), [array(np.zeros(8))]),
        lambda made: made.get_params(),
        lambda made: made.install_monitor(Monitor(1)),
        lambda made: made.init_optimizer(force_init=False),
    ],
)
def test_looking_in_between_changes_nothing(look):
    expected, found = bound(), bound()
    steps(expected)
    steps(found, look=look)
    for name, one in weights(found).items():
        close(one, weights(expected)[name])


def test_a_step_is_the_formula():
    made, batch = bound(optimizer_=("sgd", {"learning_rate": 0.5})), batch_of()
    before = weights(made)
    made.forward_backward(batch)
    made.update()
    x, y = batch.data[0].asnumpy(), batch.label[0].asnumpy().astype(int)
    hidden = np.tanh(x @ before["fc1_weight"].T + before["fc1_bias"])
    scores = hidden @ before["fc2_weight"].T + before["fc2_bias"]
    found = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    close(made.get_outputs()[0], found)
    slope = (found - np.eye(3)[y]) / 8  # gradients are divided by the batch
    after = weights(made)
    close(after["fc2_weight"], before["fc2_weight"] - 0.5 * slope.T @ hidden)
    close(after["fc2_bias"], before["fc2_bias"] - 0.5 * slope.sum(0))


def test_what_others_hold_outlives_training():
    given = {name: jnp.ones(one.shape) for name, one in weights(bound()).items()}
    made = bound(params=({name: array_of(one) for name, one in given.items()}, {}))
    steps(made, 1)
    held = made.get_params()[0]
    copies = {name: one.asnumpy() for name, one in held.items()}
    view = made._executor.arg_dict["fc1_weight"].copy()
    later = view + 1.0
    steps(made, 3)
    assert all((np.asarray(one) == 1).all() for one in given.values())
    for name, one in held.items():
        assert (one.asnumpy() == copies[name]).all()
    close(later, copies["fc1_weight"] + 1)
    assert (weights(made)["fc1_weight"] != copies["fc1_weight"]).any()


def test_memory_is_that_of_the_step_before():
    made = bound()
    steps(made, 2)
    held = made._executor.arg_dict["fc1_weight"].value
    del held
    before = made._executor.arg_dict["fc1_weight"].value.unsafe_buffer_pointer()
    steps(made, 1)
    assert made._executor.arg_dict["fc1_weight"].value.unsafe_buffer_pointer() == before


def test_rates_compile_nothing_new():
    made = bound()
    for rate in (0.1, 0.2, 0.3):
        made._optimizer.lr = rate
        steps(made, 1)
    (step,) = made._steps.values()
    (compiled,) = step._compiled.values()
    assert compiled._cache_size() == 1


def test_fixed_parameters_stay():
    made = Module(network(), fixed_param_names=["fc1_weight"])
    made.bind([("data", (8, 5))], [("softmax_label", (8,))])
    made.init_params(initializer.Xavier())
    made.init_optimizer()
    before = weights(made)
    steps(made, 2)
    after = weights(made)
    assert (before["fc1_weight"] == after["fc1_weight"]).all()
    assert (before["fc1_bias"] != after["fc1_bias"]).any()


def test_other_shapes_of_batches():
    made, other = bound(), bound(batch=4)
    for batch in (batch_of(8), batch_of(4), batch_of(8)):
        made.forward_backward(batch)
        made.update()
    assert len(made._steps) == 2
    assert made.data_shapes[0].shape == (8, 5)
    other.set_params(*made.get_params())
    made.forward(batch_of(4), is_train=False)
    other.forward(batch_of(4), is_train=False)
    close(made.get_outputs()[0], other.get_outputs()[0])
    assert made.output_shapes == [("softmax_output", (4, 3))]
    with pytest.raises(MXNetError, match="'fc1_weight' is of shape"):
        made.forward(Batch([array(np.zeros((8, 6)))], None))


def test_gradients_of_data():
    made = bound(inputs_need_grad=True)
    batch = batch_of()
    made.forward_backward(batch)
    (found,) = made.get_input_grads()
    before = weights(made)
    x = batch.data[0].asnumpy()
    hidden = np.tanh(x @ before["fc1_weight"].T + before["fc1_bias"])
    slope = made.get_outputs()[0].asnumpy() - np.eye(3)[batch.label[0].asnumpy().astype(int)]
    expected = (slope @ before["fc2_weight"] * (1 - hidden**2)) @ before["fc1_weight"]
    close(found, expected, rtol=1e-4)
    with pytest.raises(MXNetError, match="inputs_need_grad"):
        bound().get_input_grads()


def test_gradients_are_added():
    made = bound(grad_req="add", optimizer_=None)
    once = bound(optimizer_=None)
    once.forward_backward(batch_of())
    expected = once._exec_group.grad_arrays[0][0].asnumpy()
    for _ in range(2):
        made.forward_backward(batch_of())
    close(made._exec_group.grad_arrays[0][0], 2 * expected)


def test_gradients_of_outputs():
    net = sym.FullyConnected(sym.var("data"), num_hidden=2, name="fc")
    made = Module(net, label_names=None)
    made.bind([("data", (3, 5))])
    made.init_params(initializer.One())
    x = np.random.default_rng(0).normal(size=(3, 5))
    made.forward(Batch([array(x)], None), is_train=True)
    made.backward([array(np.ones((3, 2)) * 2)])
    gradients = made._executor.grad_dict
    close(gradients["fc_weight"], np.tile(2 * x.sum(0), (2, 1)))
    with pytest.raises(MXNetError, match="forward"):
        bound().backward()


def test_predict_leaves_out_what_fills_up():
    x, y = problem(10)
    batches, made = io.NDArrayIter(x, y, 8), bound()
    found = made.predict(batches)
    assert found.shape == (10, 3)
    parts = made.predict(batches, merge_batches=False)
    assert [one[0].shape for one in parts] == [(8, 3), (2, 3)]
    assert [outputs[0].shape[0] for outputs, _, _ in made.iter_predict(batches)] == [8, 2]
    close(made.predict(x.astype(np.float32)), found)
    assert isinstance(made.predict(batches, num_batch=1, always_output_list=True), list)
    with pytest.raises(MXNetError, match="DataIter"):
        made.predict(3)


def test_files(tmp_path):
    prefix = str(tmp_path / "net")
    made = bound(network(batch_norm=True), optimizer_=("adam", {}))
    steps(made, 2)
    made.save_checkpoint(prefix, 3, save_optimizer_states=True)
    again = Module.load(prefix, 3, load_optimizer_states=True)
    again.bind([("data", (8, 5))], [("softmax_label", (8,))])
    again.init_optimizer(
        optimizer="adam", optimizer_params={"begin_num_update": 2, "learning_rate": 0.001}
    )
    made.forward_backward(batch_of())
    again.forward_backward(batch_of())
    made.update()
    again.update()
    for name, one in weights(made).items():
        close(weights(again)[name], one, rtol=1e-6)
    symbol, args, states = model.load_checkpoint(prefix, 3)
    assert symbol.list_auxiliary_states() == list(states) == ["bn_moving_mean", "bn_moving_var"]
    made.load_params(f"{prefix}-0003.params")
    close(weights(made)["fc1_weight"], args["fc1_weight"])


@pytest.mark.parametrize("contexts", [1, pytest.param(2, marks=needs_two)])
@pytest.mark.parametrize("options", [("sgd", {"momentum": 0.9}), ("adam", {})])
def test_training_goes_on_from_saved_states(tmp_path, options, contexts):
    name, params = options
    where = [context.cpu(i) for i in range(contexts)]
    prefix, params = str(tmp_path / "net"), {"learning_rate": 0.1, **params}
    made = bound(context=where, optimizer_=(name, params))
    steps(made, 2)
    made.save_checkpoint(prefix, 2, save_optimizer_states=True)
    made.save_optimizer_states(f"{prefix}.states")
    after = steps(made, 2)
    for at_once in (True, False):
        again = Module.load(prefix, 2, load_optimizer_states=at_once, context=where)
        again.bind([("data", (8, 5))], [("softmax_label", (8,))])
        # Files hold no count of updates, which Adam needs.
        again.init_optimizer(optimizer=name, optimizer_params={**params, "begin_num_update": 2})
        if not at_once:
            again.load_optimizer_states(f"{prefix}.states")
        updater = again._updater if contexts == 1 else again._kvstore._updater
        assert set(updater.states) == set(range(4))
        for one, other in zip(steps(again, 2), after, strict=True):
            close(one, other)
        for key, one in weights(made).items():
            close(weights(again)[key], one)


def test_checkpoints_of_callbacks(tmp_path):
    x, y = problem(16)
    made, prefix = Module(network()), str(tmp_path / "net")
    saves = [
        callback.do_checkpoint(prefix, 2),
        callback.module_checkpoint(made, prefix + "m", 2, save_optimizer_states=True),
    ]
    made.fit(io.NDArrayIter(x, y, 8), num_epoch=2, epoch_end_callback=saves)
    assert sorted(one.name for one in tmp_path.iterdir()) == [
        "net-0002.params",
        "net-symbol.json",
        "netm-0002.params",
        "netm-0002.states",
        "netm-symbol.json",
    ]


def test_parameters():
    made = bound()
    args, states = made.get_params()
    with pytest.raises(MXNetError, match="'fc1_bias' must be among"):
        made.set_params({"fc1_weight": args["fc1_weight"]}, states)
    with pytest.raises(MXNetError, match="got 'more'"):
        made.set_params({**args, "more": args["fc1_bias"]}, states)
    with pytest.raises(MXNetError, match="shape"):
        made.set_params({**args, "fc1_bias": array(np.zeros(3))}, states)
    made.set_params({"fc1_bias": array(np.ones(8))}, {}, allow_missing=True)
    assert (weights(made)["fc1_bias"] == 1).all()
    assert (weights(made)["fc1_weight"] == args["fc1_weight"].asnumpy()).all()
    made.init_params(initializer.Zero(), force_init=True)
    assert (weights(made)["fc1_weight"] == 0).all()
    with pytest.warns(UserWarning, match="parameters stay"):
        made.init_params(None, args, states)


def test_what_comes_too_early():
    made = Module(network())
    with pytest.raises(MXNetError, match="bind must come first"):
        made.init_params()
    made.bind([("data", (8, 5))], [("softmax_label", (8,))])
    with pytest.raises(MXNetError, match="init_params must come first"):
        made.forward(batch_of())
    made.init_params()
    with pytest.raises(MXNetError, match="init_optimizer must come first"):
        made.update()


@pytest.mark.parametrize(
    ("data", "label", "error"),
    [
        (("data", array([8.0, 5.0])), ("softmax_label", (8,)), TypeError),
        (("x", (8, 5)), ("softmax_label", (8,)), MXNetError),
        (("data", (8, 5)), ("softmax_label", (7,)), MXNetError),
    ],
)
def test_a_module_that_could_not_be_bound_is_bound_later(data, label, error):
    made, expected = Module(network()), bound(optimizer_=None)
    with pytest.raises(error):
        made.bind([data], [label])
    assert not made.binded
    made.bind([("data", (8, 5))], [("softmax_label", (8,))])
    assert made.binded
    made.init_params(None, *expected.get_params())
    for one in (made, expected):
        one.forward_backward(batch_of())
    close(made.get_outputs()[0], expected.get_outputs()[0])


def test_a_module_is_bound_again_if_forced(caplog):
    made = bound(network(batch_norm=True), optimizer_=None)
    made.forward(batch_of(), is_train=True)
    before = weights(made)
    made.bind([("data", (2, 5))], for_training=False)
    assert "Already bound" in caplog.text
    assert made.data_shapes[0].shape == (8, 5)
    made.bind([("data", (2, 5))], for_training=False, force_rebind=True)
    assert (made.data_shapes[0].shape, made.for_training) == ((2, 5), False)
    for name, one in weights(made).items():
        assert (one == before[name]).all()
    made.forward(Batch(batch_of(2).data, None))
    assert made.get_outputs()[0].shape == (2, 3)
    with pytest.raises(MXNetError, match="bind for training"):
        made.backward()
    labels = [("softmax_label", (4,))]
    made.bind([("data", (4, 5))], labels, inputs_need_grad=True, force_rebind=True)
    made.forward_backward(batch_of(4))
    assert made.get_input_grads()[0].asnumpy().any()


@pytest.mark.parametrize("contexts", [1, pytest.param(2, marks=needs_two)])
def test_the_second_axis_of_a_layout_may_be_the_batch(contexts):
    net = sym.Activation(sym.var("data"), act_type="relu", __layout__="TNC")
    made = Module(net, label_names=None, context=[context.cpu(i) for i in range(contexts)])
    made.bind([io.DataDesc("data", (3, 8, 7), layout="TNC")], inputs_need_grad=True)
    made.init_params()
    x, slope = np.random.default_rng(0).normal(size=(2, 3, 8, 7)).astype(np.float32)
    made.forward(Batch([array(x)], None), is_train=True)
    made.backward([array(slope)])
    close(made.get_outputs()[0], np.maximum(x, 0))
    close(made.get_input_grads()[0], slope * (x > 0))
    (parts,) = made.get_outputs(merge_multi_context=False)
    for part, expected in zip(parts, np.split(np.maximum(x, 0), contexts, 1), strict=True):
        close(part, expected)


def test_names_of_inputs():
    with pytest.raises(MXNetError, match="data_names: must be among data, softmax_label"):
        Module(network(), data_names=["x"])
    with pytest.warns(UserWarning, match="label_names"):
        Module(network(), label_names=["y"])
    with pytest.raises(MXNetError, match="data must be called"):
        Module(network()).bind([("x", (8, 5))])


def test_modules_that_share():
    made = bound()
    other = Module(network())
    other.bind([("data", (2, 5))], [("softmax_label", (2,))], shared_module=made)
    assert other.optimizer_initialized
    other.forward_backward(batch_of(2))
    other.update()
    steps(made, 1)
    assert made._updater is other._updater
    for name, one in weights(made).items():
        assert (weights(other)[name] == one).all()


def test_states_of_modules():
    net = sym.elemwise_add(sym.var("data"), sym.var("state"), name="sum")
    made = Module(net, label_names=None, state_names=["state"])
    made.bind([("data", (2,))], for_training=False)
    made.init_params()
    made.set_states(value=3)
    made.forward(Batch([array([1, 2])], None))
    assert made.get_outputs()[0].asnumpy().tolist() == [4, 5]
    made.set_states([[array([1, 1])]])
    assert made.get_states(False)[0][0].asnumpy().tolist() == [1, 1]


def test_a_store_may_update():
    made, expected = bound(optimizer_=None), bound(optimizer_=("sgd", {}))
    made.init_optimizer(kvstore.create("device"))
    steps(made)
    steps(expected)
    for name, one in weights(made).items():
        close(one, weights(expected)[name])


def test_optimizers_of_users_in_modules():
    class Plain(optimizer.Optimizer):
        def update(self, index, weight, grad, state):
            self._update_count(index)
            weight.hold(weight.value - self._get_lr(index) * self.rescale_grad * grad.value)

    made, expected = bound(optimizer_=None), bound(optimizer_=("sgd", {"learning_rate": 0.1}))
    made.init_optimizer(optimizer=Plain(learning_rate=0.1, rescale_grad=1 / 8))
    steps(made)
    steps(expected)
    for name, one in weights(made).items():
        close(one, weights(expected)[name])


def test_monitor_sees_all(caplog):
    made, seen_by = bound(network(batch_norm=True)), Monitor(2, pattern=".*", sort=True)
    made.install_monitor(seen_by)
    names = []
    for i in range(3):
        seen_by.tic()
        made.forward_backward(batch_of(seed=i))
        made.update()
        names.append([name for _, name, _ in seen_by.toc()])
    assert names[1] == []
    assert names[0] == names[2] == sorted(names[0])
    expected = {"fc1_output", "bn_output", "act_output", "softmax_output", "fc1_weight", "data"}
    assert expected | {"bn_moving_mean"} <= set(names[0])
    caplog.set_level(logging.INFO)
    seen_by.tic()
    seen_by.tic()
    made.forward(batch_of(), is_train=False)
    seen_by.toc_print()
    assert "softmax_output" in caplog.text


def test_a_monitor_counts_one_statistic_for_each_array():
    data = sym.var("data")
    net = sym.FullyConnected(data, num_hidden=2, name="fc")
    net = sym.SoftmaxOutput(net, sym.var("softmax_label"), name="softmax")
    # Inputs of operators: data, weight and bias of fc, data and label of softmax; those that are
    # variables also by their own names.
    for every, beside in ((False, 0), (True, 5 + 4)):
        made = Module(net)
        made.bind([("data", (2, 3))], [("softmax_label", (2,))])
        made.init_params()
        seen_by = Monitor(1, monitor_all=every)
        made.install_monitor(seen_by)
        for _ in range(3):
            seen_by.tic()
            made.forward(io.DataBatch([nd.ones((2, 3))], [nd.zeros(2)]))
            # The outputs of two operators, and four arguments of the executor at the end.
            assert len(seen_by.toc()) == 2 + beside + 4


@pytest.mark.parametrize("every", [False, True])
def test_a_monitor_of_both_passes_sees_gradients_too(every):
    made, seen_by = bound(), Monitor(1, monitor_all=every)
    made.install_monitor(seen_by)
    seen_by.tic()
    made.forward_backward(batch_of())
    found = [name for _, name, _ in seen_by.toc()]
    calls = {
        "fc1": ["data", "weight", "bias"],
        "act": ["input0"],
        "fc2": ["data", "weight", "bias"],
        "softmax": ["data", "label"],
    }
    variables = network().list_arguments()
    expected = [*variables, *(f"{name}_output" for name in calls)]
    for name, inputs in calls.items():
        numbers = range(len(inputs)) if len(inputs) > 1 else [""]
        expected += [f"{name}_backward_output{number}" for number in numbers]
        expected += [f"{name}_{one}" for one in inputs] if every else []
    expected += variables if every else []  # as inputs of calls
    assert sorted(found) == sorted(expected)
    assert len(found) == len(variables) + 4 + 9 + every * (9 + len(variables))


@needs_two
@pytest.mark.parametrize(
    ("contexts", "groups"),
    [
        (1, {"first": context.cpu(1), "second": context.cpu(0)}),
        (1, [{"first": context.cpu(1), "second": context.cpu(0)}]),
        (2, {"first": [context.cpu(1)] * 2, "second": [context.cpu(0)] * 2}),
        (2, [{"first": context.cpu(1), "second": context.cpu(0)}] * 2),
    ],
)
def test_groups_of_a_module_in_each_form(contexts, groups):
    with scopes.AttrScope(ctx_group="first"):
        a = sym.var("a") * 2
    with scopes.AttrScope(ctx_group="second"):
        net = a * sym.var("b")
    where = [context.cpu(i) for i in range(contexts)]
    made = Module(net, ["a", "b"], None, context=where, group2ctxs=groups)
    made.bind([("a", (2, 3)), ("b", (2, 3))], inputs_need_grad=True)
    made.init_params()
    one, other = np.arange(12.0).reshape(2, 2, 3)
    made.forward(Batch([array(one), array(other)], None), is_train=True)
    made.backward([array(one)])
    slopes = made.get_input_grads()
    close(made.get_outputs()[0], 2 * one * other)
    close(slopes[0], 2 * one * other)
    close(slopes[1], 2 * one * one)
    assert [slope.context for slope in slopes] == [context.cpu(1), context.cpu(0)]


@needs_two
def test_a_module_on_another_device_and_one_with_groups():
    expected = bound()
    steps(expected)
    with scopes.AttrScope(ctx_group="first"):
        weight = sym.var("fc1_weight")
    net = sym.FullyConnected(sym.var("data"), weight, num_hidden=8, name="fc1")
    net = sym.FullyConnected(sym.Activation(net, act_type="tanh"), num_hidden=3, name="fc2")
    split = sym.SoftmaxOutput(net, name="softmax")
    for net, where, options in (
        (network(), [1, 1], {"context": context.cpu(1)}),
        (split, [1, 0], {"context": context.cpu(0), "group2ctxs": {"first": context.cpu(1)}}),
    ):
        made = bound(net, **options)
        executor = made._exec_group.execs[0]
        names = ("fc1_weight", "fc2_weight")
        assert [executor.arg_dict[name].context.device_id for name in names] == where
        steps(made)
        for name, one in weights(made).items():
            close(one, weights(expected)[name])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["mlp", "bn_cnn", "text_cnn"])
def test_recorded_models(name):
    index = {one["name"]: one for one in json.loads((DATA / "models_index.json").read_text())}
    held = np.load(DATA / f"{name}-io.npz")
    shapes = index[name]["inputs"]
    labels = [(key, tuple(one)) for key, one in shapes.items() if key.endswith("label")]
    made = Module.load(str(DATA / name), 0, label_names=[key for key, _ in labels])
    data = [(key, tuple(one)) for key, one in shapes.items() if not key.endswith("label")]
    made.bind(data, labels)
    batch = Batch(*([array(held[f"in|{key}"]) for key, _ in part] for part in (data, labels)))
    made.forward(batch, is_train=False)
    close(made.get_outputs()[0], held["out|0"], 1e-4, 1e-5)
    before = weights(made)
    made.init_optimizer(optimizer_params={"learning_rate": 0.5, "rescale_grad": 1.0})
    made.forward_backward(batch)
    made.update()
    close(made.get_outputs()[0], held["trainout|0"], 1e-4, 1e-5)
    for key, one in weights(made).items():
        if f"aux_after|{key}" in held:
            close(one, held[f"aux_after|{key}"], 1e-4, 1e-5)
        else:
            close(one, before[key] - 0.5 * held[f"grad|{key}"], 1e-4, 2e-5)


# Modules of modules ----------------------------------------------------------------------------


def test_a_chain_of_modules():
    first = sym.FullyConnected(sym.var("data"), num_hidden=8, name="fc1")
    second = sym.Activation(sym.var("hidden"), act_type="tanh", name="act")
    second = sym.FullyConnected(second, num_hidden=3, name="fc2")
    second = sym.SoftmaxOutput(second, name="softmax")
    chain = SequentialModule()
    chain.add(Module(first, label_names=None))
    chain.add(Module(second, data_names=["hidden"]), take_labels=True, auto_wiring=True)
    whole = bound(optimizer_=("sgd", {}))
    chain.bind([("data", (8, 5))], [("softmax_label", (8,))])
    chain.init_params(None, *whole.get_params(), allow_missing=True)
    chain.init_optimizer()
    steps(chain)
    steps(whole)
    for name, one in weights(chain).items():
        close(one, weights(whole)[name])
    made = metric.Accuracy()
    chain.update_metric(made, batch_of().label)
    assert made.num_inst == 8
    assert (chain.data_names, chain.output_names) == (["data"], ["softmax_output"])
    with pytest.raises(MXNetError, match="take_label"):
        chain.add(Module(first, label_names=None), labels=True)


def bucket(length):
    net = sym.sum(sym.var("data"), axis=1, keepdims=True)
    net = sym.FullyConnected(net, num_hidden=3, name="fc")
    return sym.SoftmaxOutput(net, name="softmax"), ("data",), ("softmax_label",)


def bucket_batch(length, count=4):
    data, label = array(np.ones((count, length)) * 0.1), array(np.zeros(count))
    provided = [io.DataDesc("data", data.shape)], [io.DataDesc("softmax_label", (count,))]
    return io.DataBatch(
        [data], [label], 0, None, length, provide_data=provided[0], provide_label=provided[1]
    )


def test_buckets_share(tmp_path):
    made = BucketingModule(bucket, default_bucket_key=6)
    made.bind([("data", (4, 6))], [("softmax_label", (4,))])
    made.init_params(initializer.One())
    made.init_optimizer(optimizer_params={"learning_rate": 0.5, "momentum": 0.5})
    plain = Module(bucket(6)[0])
    plain.bind([("data", (4, 6))], [("softmax_label", (4,))])
    plain.init_params(initializer.One())
    plain.init_optimizer(optimizer_params={"learning_rate": 0.5, "momentum": 0.5})
    for length in (6, 3, 6, 2):
        made.forward_backward(bucket_batch(length))
        made.update()
        plain.forward_backward(bucket_batch(length))
        plain.update()
    for name, one in weights(made).items():
        close(one, weights(plain)[name])
    assert sorted(made._buckets) == [2, 3, 6]
    made.save_checkpoint(str(tmp_path / "b"), 1)
    again = BucketingModule.load(str(tmp_path / "b"), 1, sym_gen=bucket, default_bucket_key=6)
    again.bind([("data", (4, 6))], [("softmax_label", (4,))], for_training=False)
    for length in (2, 6):
        again.forward(bucket_batch(length), is_train=False)
        made.forward(bucket_batch(length), is_train=False)
        close(again.get_outputs()[0], made.get_outputs()[0])


def sequence(length):
    data, label = sym.var("data"), sym.var("softmax_label")
    rows = sym.Embedding(data, input_dim=7, output_dim=3)
    stack = rnn.SequentialRNNCell()
    for i in range(2):
        stack.add(rnn.LSTMCell(num_hidden=4, prefix=f"l{i}_"))
    outputs, _ = stack.unroll(length, inputs=rows, merge_outputs=True)
    net = sym.FullyConnected(sym.reshape(outputs, shape=(-1, 4)), num_hidden=7, name="pred")
    net = sym.SoftmaxOutput(net, sym.reshape(label, shape=(-1,)), name="softmax")
    return net, ("data",), ("softmax_label",)


def test_a_bucket_that_was_dropped_is_made_again():
    def switch():
        made.switch_bucket(3, [("data", (2, 3))], [("softmax_label", (2, 3))])
        return made._curr_module

    made = BucketingModule(sequence, default_bucket_key=5)
    with pytest.raises(MXNetError, match="bind must come first"):
        switch()
    made.bind([("data", (2, 5))], [("softmax_label", (2, 5))])
    made.init_params(initializer.Xavier())
    assert made.symbol.list_arguments()[1] == "embedding0_weight"
    first, before = switch(), made._buckets[5]._total_exec_bytes
    assert made.symbol.list_arguments()[1] == "embedding0_weight"
    assert made.data_shapes[0].shape == (2, 3)
    del made._buckets[3]
    assert switch() is not first
    assert made._buckets[5]._total_exec_bytes == before
    assert switch() is made._buckets[3]
    tokens = np.random.default_rng(0).integers(7, size=(2, 5))
    made._curr_module.forward(Batch([array(tokens[:, :3])], None), is_train=False)
    short = made.get_outputs()[0].asnumpy().reshape(2, 3, 7)
    made.switch_bucket(5, None)
    made._curr_module.forward(Batch([array(tokens)], None), is_train=False)
    whole = made.get_outputs()[0].asnumpy().reshape(2, 5, 7)
    close(short, whole[:, :3])
    assert np.ptp(whole) > 1e-4


def test_what_waits_is_done_before_another_bucket():
    made = BucketingModule(bucket, default_bucket_key=6)
    made.bind([("data", (4, 6))], [("softmax_label", (4,))])
    made.init_params(initializer.One())
    made.init_optimizer()
    made.forward_backward(bucket_batch(6))
    first = made._curr_module
    made.forward_backward(bucket_batch(3))
    assert first._pending is None
    assert len(first.get_outputs()) == 1


def test_a_smaller_bucket_needs_less_memory():
    made = BucketingModule(bucket, default_bucket_key=6)
    made.bind([("data", (4, 6))], [("softmax_label", (4,))])
    made.init_params(initializer.One())
    whole = made._curr_module._total_exec_bytes
    made.switch_bucket(3, [("data", (4, 3))], [("softmax_label", (4,))])
    assert 0 < made._curr_module._total_exec_bytes < whole


@pytest.mark.parametrize(("request_", "expected"), [("write", [2, 2]), ("add", [2, 4])])
def test_buckets_have_one_request_of_gradients(request_, expected):
    def scaled(length):
        factor = sym.var("a_weight", shape=(1,))
        return sym.make_loss(sym.broadcast_mul(sym.var("data"), factor)), ("data",), None

    made = BucketingModule(scaled, default_bucket_key=6)
    made.bind([("data", (2,))], grad_req=request_)
    made.init_params(initializer.One())
    found = []
    for key in (6, 3):
        described = [io.DataDesc("data", (2,), layout="N")]
        made.forward_backward(
            io.DataBatch([array(np.ones(2))], None, bucket_key=key, provide_data=described)
        )
        assert made._curr_module._grad_req == request_
        found.append(made._curr_module._exec_group.execs[0].grad_dict["a_weight"].asscalar())
    assert found == expected


# Drawings --------------------------------------------------------------------------------------


def test_summary(capsys):
    net = sym.Convolution(sym.var("data"), kernel=(3, 3), num_filter=4, name="conv", no_bias=True)
    net = sym.FullyConnected(sym.BatchNorm(net, name="bn"), num_hidden=2, name="fc")
    net = sym.SoftmaxOutput(net, name="softmax")
    visualization.print_summary(net, {"data": (1, 3, 8, 8)})
    lines = capsys.readouterr().out.splitlines()
    rows = {line.split("(")[0]: line.split()[1:] for line in lines if "(" in line}
    assert rows["conv"] == ["4x6x6", "108", "data"]
    assert rows["bn"] == ["4x6x6", "8", "conv"]
    assert rows["fc"] == ["2", str(144 * 2 + 2), "bn"]
    assert rows["softmax"] == ["2", "0", "fc"]
    assert "Total params: 406" in lines
    visualization.print_summary(net)
    assert "Total params: ?" in capsys.readouterr().out


def test_pictures(tmp_path):
    net = network(batch_norm=True)
    drawing = visualization.plot_network(net, "net", shape={"data": (8, 5)})
    path = drawing.render(tmp_path / "picture")
    assert Path(path).name == "picture.svg"
    assert Path(path).read_text() == drawing.source == drawing._repr_svg_()
    assert "FullyConnected num_hidden=8" in drawing.source
    assert "fc1_weight</text>" not in drawing.source
    shown = visualization.plot_network(net, hide_weights=False).source
    assert "fc1_weight</text>" in shown
    with pytest.raises(TypeError, match="Symbol"):
        visualization.plot_network(3)


# Checks ----------------------------------------------------------------------------------------


def test_gradients_are_checked():
    x = sym.var("x")
    location = [np.random.default_rng(0).uniform(0.5, 1.5, (2, 3)).astype(np.float32)]
    test_utils.check_numeric_gradient(sym.square(x), location, rtol=1e-2, atol=1e-2)
    wrong = sym.BlockGrad(x) * x
    with pytest.raises(AssertionError, match="NUMERICAL_x and BACKWARD_x"):
        test_utils.check_numeric_gradient(wrong, {"x": location[0]}, rtol=1e-2, atol=1e-2)


def test_passes_are_checked():
    x, y = sym.var("x"), sym.var("y")
    one, other = np.array([1.0, 2.0]), np.array([3.0, 5.0])
    test_utils.check_symbolic_forward(x * y, [one, other], [one * other])
    found = test_utils.check_symbolic_backward(
        x * y,
        [one, other],
        [np.ones(2)],
        {"x": other, "y": one},
        grad_req={"x": "write", "y": "add"},
    )
    assert found["x"].asnumpy().tolist() == [3.0, 5.0]
    with pytest.raises(AssertionError, match="EXPECTED"):
        test_utils.check_symbolic_forward(x * y, {"x": one, "y": other}, [one])
    with pytest.raises(ValueError, match="location"):
        test_utils.check_symbolic_forward(x * y, {"x": one}, [one])
    assert test_utils.simple_forward(x * y, x=one, y=other).tolist() == [3.0, 10.0]


def test_several_dtypes_are_compared():
    net = sym.FullyConnected(sym.var("data"), num_hidden=3, name="fc")
    kinds = [np.float32, np.float16]
    places = [{"ctx": None, "data": (2, 4), "type_dict": {"data": one}} for one in kinds]
    truth = test_utils.check_consistency(net, places)
    assert set(truth) == {"fc_output", "data", "fc_weight", "fc_bias"}


def test_comparisons():
    assert test_utils.same(array([1, 2]), np.array([1.0, 2.0]))
    assert test_utils.almost_equal(np.ones(2), np.ones(2) + 1e-9)
    test_utils.assert_almost_equal(array([1.0]), np.array([1.0005]))
    test_utils.assert_almost_equal_ignore_nan([np.nan, 1.0], [2.0, 1.0])
    with pytest.raises(AssertionError, match=r"most at \(1,\)"):
        test_utils.assert_almost_equal(np.zeros(3), np.array([0.0, 2.0, 1.0]))
    with pytest.raises(AssertionError):
        test_utils.assert_almost_equal(np.array([np.nan]), np.array([np.nan]))
    test_utils.assert_exception(int, ValueError, "x")
    with pytest.raises(AssertionError, match="none"):
        test_utils.assert_exception(int, ValueError, "1")


def test_random_things():
    assert test_utils.random_arrays((2, 3), (4,))[1].shape == (4,)
    assert test_utils.rand_ndarray((2, 3)).shape == (2, 3)
    assert len(test_utils.rand_shape_3d()) == 3
    assert all(1 <= length <= 2 for length in test_utils.rand_shape_nd(5, 2))
    assert sorted(test_utils.random_sample([3, 1, 2], 3)) == [1, 2, 3]
    assert test_utils.default_dtype() is np.float32
    tries = []

    @test_utils.retry(3)
    def flaky():
        tries.append(1)
        assert len(tries) == 3

    flaky()
    assert str(test_utils.default_context()).startswith("cpu")
    assert list(test_utils.list_gpus()) == []


def test_arrays_of_the_interface_fit():
    made = bound()
    made.forward(io.DataBatch([nd.ones((8, 5))], [nd.zeros((8,))]), is_train=False)
    assert isinstance(made.get_outputs()[0], nd.NDArray)


def test_parameters_outlive_a_bind_that_fails():
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    module = Module(net, label_names=None)
    module.bind([("data", (4, 3))])
    module.init_params(initializer.One())
    with pytest.raises(MXNetError, match="shape"):
        module.bind([("data", (2, 7))], force_rebind=True)
    assert not module.binded
    module.bind([("data", (2, 3))])
    assert module.get_params()[0]["fc_weight"].asnumpy().tolist() == [[1, 1, 1], [1, 1, 1]]
    with pytest.raises(AssertionError, match="for_training=True"):
        module.bind([("data", (2, 3))], None, False, True, True)


def test_gradients_of_inputs_are_in_parts_of_several_contexts():
    module = Module(mx.sym.var("data") * 2, label_names=None, context=[mx.cpu(0), mx.cpu(1)])
    module.bind([("data", (4, 3))], inputs_need_grad=True)
    module.init_params()
    module.forward(mx.io.DataBatch([mx.nd.ones((4, 3))]), is_train=True)
    heads = np.arange(12.0).reshape(4, 3)
    module.backward([mx.nd.array(heads)])
    (parts,) = module.get_input_grads(merge_multi_context=False)
    for part, expected in zip(parts, np.split(2 * heads, 2), strict=True):
        np.testing.assert_array_equal(part.asnumpy(), expected)


def test_a_monitor_sees_batches_of_other_shapes():
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    module = Module(net, label_names=None)
    module.bind([("data", (3, 2))])
    module.init_params()
    monitor = mx.mon.Monitor(1)
    module.install_monitor(monitor)
    for rows in (5, 3, 5):
        module.reshape([("data", (rows, 2))])
        monitor.tic()
        module.forward(mx.io.DataBatch([mx.nd.ones((rows, 2))]))
        names = [name for _, name, _ in monitor.toc()]
        for name in ("fc_output", "fc_weight", "data"):
            assert names.count(name) == 1
