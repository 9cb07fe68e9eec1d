"""Smaller names of MXNet: metrics, the environment, engine, profiler, log, older paths."""

import json
import logging
import math
import os
import threading

import jax
import numpy as np
import pytest

import symop as so
import symop.interop.mxnet as mx
from symop.interop.mxnet.executor import Executor

# Metrics ---------------------------------------------------------------------------------------


def matthews(labels, found, classes):
    """The correlation of the marks of labels and classes, by their covariances."""
    marks = [np.eye(classes)[one] - np.eye(classes)[one].mean(0) for one in (labels, found)]
    products = [[np.sum(a * b) for b in marks] for a in marks]
    return products[0][1] / math.sqrt(products[0][0] * products[1][1])


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_pcc_is_the_correlation_of_marks(classes):
    draw = np.random.default_rng(classes)
    batches = [(draw.integers(0, classes, 20), draw.normal(size=(20, classes))) for _ in range(2)]
    metric = mx.metric.create("pcc")
    for labels, outputs in batches:
        metric.update([mx.nd.array(labels)], [mx.nd.array(outputs)])
    labels, outputs = (np.concatenate(one) for one in zip(*batches, strict=True))
    expected = matthews(labels, outputs.argmax(1), classes)
    assert metric.get()[0] == "pcc"
    np.testing.assert_allclose(metric.get()[1], expected, rtol=1e-9)
    metric.reset_local()
    metric.update([mx.nd.array([0, 1, 1])], [mx.nd.array([0, 1, 0])])
    np.testing.assert_allclose(metric.get()[1], matthews([0, 1, 1], [0, 1, 0], 2), rtol=1e-9)
    every = np.concatenate([labels, [0, 1, 1]]), np.concatenate([outputs.argmax(1), [0, 1, 0]])
    np.testing.assert_allclose(metric.get_global()[1], matthews(*every, classes), rtol=1e-9)
    metric.reset()
    assert math.isnan(metric.get()[1])


def test_pcc_of_two_classes_is_mcc():
    draw = np.random.default_rng(0)
    labels, outputs = mx.nd.array(draw.integers(0, 2, 30)), mx.nd.array(draw.normal(size=(30, 2)))
    found = []
    for name in ("pcc", "mcc"):
        metric = mx.metric.create(name)
        metric.update([labels], [outputs])
        found.append(metric.get()[1])
    np.testing.assert_allclose(*found, rtol=1e-9)


@pytest.mark.parametrize("name", ["torch", "caffe"])
def test_losses_of_other_frameworks(name):
    metric = mx.metric.create(name)
    metric.update(None, [mx.nd.array([1, 2, 6])])
    assert metric.get() == (name, 3.0)


# Util, engine, log, older paths ----------------------------------------------------------------


def test_environment_and_folders(tmp_path, monkeypatch):
    monkeypatch.delenv("OF_THIS_TEST", raising=False)
    assert mx.util.getenv("OF_THIS_TEST") is None
    mx.util.setenv("OF_THIS_TEST", "1")
    assert (mx.util.getenv("OF_THIS_TEST"), os.environ["OF_THIS_TEST"]) == ("1", "1")
    mx.util.setenv("OF_THIS_TEST", None)
    assert "OF_THIS_TEST" not in os.environ
    for _ in range(2):
        mx.util.makedirs(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").is_dir()
    assert mx.util.get_gpu_count() == mx.num_gpus()


def test_arrays_of_numpy_are_refused():
    assert not mx.is_np_array()
    with mx.np_shape(False), mx.np_array(False):
        pass
    for ask in (mx.util.set_np, lambda: mx.use_np(int), lambda: mx.np_array().__enter__()):
        with pytest.raises(mx.MXNetError, match=r"symop\.nd"):
            ask()


def test_shapes_of_numpy():
    assert mx.set_np_shape(True) is False
    assert mx.is_np_shape()
    with mx.np_shape(False):
        assert not mx.is_np_shape()
    mx.util.reset_np()
    assert not mx.is_np_shape()
    for shape in ((), (2, 0)):
        for make in (mx.nd.zeros, mx.nd.ones):
            with pytest.raises(mx.MXNetError, match="np_shape"):
                make(shape)
            assert mx.use_np_shape(make)(shape).shape == shape
    x = mx.sym.var("x")
    net = mx.sym.FullyConnected(x, num_hidden=2, no_bias=True)
    assert net.infer_shape_partial()[0] == [(), ()]
    with mx.np_shape():
        assert net.infer_shape_partial()[0] == [None, None]
        assert net.infer_shape_partial(x=(-1, 3))[:2] == ([(-1, 3), (2, 3)], [(-1, 2)])
        assert "is_np_shape" in json.loads(net.tojson())["attrs"]
    assert "is_np_shape" not in json.loads(net.tojson())["attrs"]


def test_numpys_shapes_in_all_threads():
    def ask():
        seen.append(mx.is_np_shape())

    seen: list[bool] = []
    for active in (1, 2, 0):
        mx.set_np_shape(active)
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
    assert seen == [False, True, False]


def test_bulk_sizes_are_kept():
    before = mx.engine.set_bulk_size(20)
    with mx.engine.bulk(5):
        assert mx.engine.set_bulk_size(6) == 5
    assert mx.engine.set_bulk_size(before) == 20


def test_loggers_write_into_files(tmp_path):
    path = tmp_path / "log"
    logger = mx.log.get_logger("of.this.test", str(path), level=mx.log.INFO)
    assert mx.log.getLogger("of.this.test") is logger
    logger.info("hello %d", 1)
    logger.debug("nothing")
    for handler in logger.handlers:
        handler.close()
    assert path.read_text().startswith("I")
    assert path.read_text().endswith("hello 1\n")
    assert logger.level == logging.INFO


def test_older_paths_to_contrib():
    assert mx.contrib.nd is mx.contrib.ndarray is mx.nd.contrib
    prior = mx.contrib.symbol.MultiBoxPrior(mx.sym.var("data"), sizes=(0.5,))
    assert prior.infer_shape(data=(1, 3, 2, 2))[1] == [(1, 4, 4)]
    with pytest.raises(AttributeError, match="operators-guide"):
        mx.th  # noqa: B018


# Profiler --------------------------------------------------------------------------------------


def test_a_trace_is_written(tmp_path):
    mx.profiler.set_config(profile_all=True, filename=str(tmp_path / "profile.json"))
    mx.profiler.set_state("run")
    domain = mx.profiler.Domain("script")
    task = domain.new_task("work")
    task.start()
    (mx.nd.ones((3,)) + 1).wait_to_read()
    task.stop()
    domain.new_marker("now").mark()
    mx.profiler.dump()
    assert list((tmp_path / "profile").rglob("*.xplane.pb"))
    mx.profiler.set_state("stop")  # nothing runs any more
    counter = domain.new_counter("count", 1)
    counter += 2
    counter.decrement()
    assert (counter.value, str(counter), str(task)) == (2, "count", "script/work")
    with pytest.raises(mx.MXNetError, match="run"):
        mx.profiler.set_state("go")
    with pytest.raises(mx.MXNetError, match="TensorBoard"):
        mx.profiler.dumps()


# Casts through integers ------------------------------------------------------------------------


@pytest.mark.parametrize(("via", "passed"), [("int32", [1, 0, -2, 3]), ("bool", [1, 1, 1, 1])])
def test_gradients_are_cast_through_integers(via, passed):
    x = mx.sym.var("x")
    whole = mx.sym.Cast(mx.sym.Cast(x * 2, dtype=via), dtype="float32")
    executor = whole.simple_bind(mx.cpu(), x=(4,))
    executor.arg_dict["x"][:] = mx.nd.array([0.2, 0.7, 1.3, -1.1])
    found = executor.forward(is_train=True)[0].asnumpy()
    expected = np.array([0.4, 1.4, 2.6, -2.2]).astype(via).astype("float32")
    np.testing.assert_array_equal(found, expected)
    executor.backward([mx.nd.array([1, 0.6, -2.4, 3])])
    np.testing.assert_array_equal(executor.grad_dict["x"].asnumpy(), 2.0 * np.array(passed))


def test_gradients_through_integers_under_jax_and_twice():
    whole = mx.sym.Cast(mx.sym.Cast(mx.sym.var("x") ** 2, dtype="int32"), dtype="float32")
    function, x = mx.sym.sum(whole).to_jax(), np.array([1.5, 2.5], np.float32)

    def total(x):
        return function(x=x)[0]

    np.testing.assert_allclose(jax.jit(jax.grad(total))(x), [3.0, 5.0])
    np.testing.assert_allclose(jax.hessian(total)(x), 2 * np.eye(2))
    graph = whole.to_graph(x=(2,))
    first = so.grad(graph, "x")
    np.testing.assert_allclose(first.eval(x=x), [3.0, 5.0])
    np.testing.assert_allclose(so.grad(first, "x").eval(x=x), [2.0, 2.0])


def test_integers_that_are_used_otherwise_pass_nothing():
    x = mx.sym.var("x")
    whole = mx.sym.Cast(mx.sym.Cast(x, dtype="int32") + 1, dtype="float32") + 0 * x
    executor = whole.simple_bind(mx.cpu(), x=(1,))
    executor.forward(is_train=True)
    executor.backward([mx.nd.ones((1,))])
    assert executor.grad_dict["x"].asscalar() == 0.0


NUMBERS = np.array([[0.2, 0.7, 1.3], [3.6, 5.1, 9.9]])


@pytest.mark.parametrize("source", ["int32", "uint8", "float32", "float16"])
@pytest.mark.parametrize("target", ["int32", "int8", "float32", "float16"])
def test_the_gradient_of_a_cast_is_the_head_gradient_in_the_other_dtype(source, target):
    y = mx.sym.Cast(mx.sym.var("x", dtype=source), dtype=target)
    executor = y.simple_bind(mx.cpu(), x=NUMBERS.shape)
    executor.arg_dict["x"][:] = NUMBERS
    (found,) = executor.forward(is_train=True)
    np.testing.assert_array_equal(found.asnumpy(), NUMBERS.astype(source).astype(target))
    executor.backward(mx.nd.array(NUMBERS, dtype=target))
    gradient = executor.grad_dict["x"]
    assert gradient.dtype == np.dtype(source)
    assert (list(executor.arg_dict), len(executor.outputs)) == (["x"], 1)
    np.testing.assert_array_equal(gradient.asnumpy(), NUMBERS.astype(target).astype(source))


@pytest.mark.parametrize(("request_", "expected"), [("write", [8, 4]), ("add", [16, 8])])
def test_gradients_of_integers_inside_of_a_graph(request_, expected):
    """An integer argument that is cast twice, and an integer output beside one of floats."""
    x, w = mx.sym.var("x", dtype="int32"), mx.sym.var("w")
    product = mx.sym.Cast(mx.sym.Cast(x, dtype="int64"), dtype="float32") * w
    both = mx.sym.Group([mx.sym.Cast(product, dtype="int32"), product, x])
    executor = both.simple_bind(mx.cpu(), grad_req=request_, x=(2,), w=(2,))
    executor.arg_dict["x"][:], executor.arg_dict["w"][:] = [3, 5], [2.0, 0.5]
    for _ in range(2):
        found = [one.asnumpy().tolist() for one in executor.forward(is_train=True)]
        executor.backward([mx.nd.array(one) for one in ([1, 2], [2.0, 4.0], [2, 1])])
    assert found == [[6, 2], [6.0, 2.5], [3, 5]]
    assert executor.grad_dict["x"].asnumpy().tolist() == expected
    slopes = np.array([9.0, 30.0]) * (2 if request_ == "add" else 1)
    np.testing.assert_allclose(executor.grad_dict["w"].asnumpy(), slopes)
    with pytest.raises(mx.MXNetError, match=r"out_grads must be given for 'cast\d+_output'"):
        executor.backward([None, mx.nd.array([1, 1]), mx.nd.array([1, 1])])
    with pytest.raises(mx.MXNetError, match="shape"):
        executor.backward([mx.nd.ones((3,)), mx.nd.ones((2,)), mx.nd.ones((2,))])


def test_a_head_gradient_that_nothing_reads_need_not_be_given():
    """That of a prediction in integers beside a loss."""
    x, label = mx.sym.var("x"), mx.sym.var("label")
    best = mx.sym.Cast(mx.sym.argmax(x, axis=1), dtype="int32")
    both = mx.sym.Group([mx.sym.SoftmaxOutput(x, label), best])
    executor = both.simple_bind(mx.cpu(), x=(2, 3), label=(2,))
    executor.arg_dict["x"][:] = mx.nd.array([[0, 2, 1], [3, 0, 0]])
    _, found = executor.forward(is_train=True)
    executor.backward()
    assert found.asnumpy().tolist() == [1, 0]
    assert np.abs(executor.grad_dict["x"].asnumpy()).max() > 0.1


def test_integers_of_which_nothing_is_cast_have_zero_gradients():
    total = mx.sym.var("x", dtype="int32") + mx.sym.var("y", dtype="int32")
    executor = total.simple_bind(mx.cpu(), x=(2,), y=(2,))
    executor.forward(is_train=True)
    executor.backward(mx.nd.ones((2,), dtype="int32"))
    assert type(executor) is Executor
    assert executor.grad_dict["x"].asnumpy().tolist() == [0, 0]


# Draws -----------------------------------------------------------------------------------------


def draws_with_repetition(rows, count, classes):
    """What MXNet does: draw until there are as many different ones."""
    draw, found, tries = np.random.default_rng(0), [], []
    for _ in range(rows):
        seen, taken = [], 0
        while len(seen) < count:
            one = math.floor(math.exp(draw.uniform() * math.log(classes)) + 0.5) - 1
            taken += 1
            if one not in seen:
                seen.append(one)
        found.append(seen)
        tries.append(taken)
    return np.array(found), np.array(tries)


def test_draws_without_repetition_are_distributed_as_mxnets():
    rows, count, classes = 20_000, 4, 8
    mx.random.seed(3)
    found, tries = mx.nd.op._sample_unique_zipfian(range_max=classes, shape=(rows, count))
    found, tries = found.asnumpy(), tries.asnumpy()
    expected, taken = draws_with_repetition(rows, count, classes)
    assert all(len(set(row)) == count for row in found)
    for i in range(count):
        shares = [np.bincount(one[:, i], minlength=classes) / rows for one in (found, expected)]
        np.testing.assert_allclose(*shares, atol=0.02)
    np.testing.assert_allclose(tries.mean(), taken.mean(), rtol=0.02)
    np.testing.assert_allclose(tries.var(), taken.var(), rtol=0.1)
    assert tries.min() >= count


def test_draws_without_repetition_at_their_limits():
    every, _ = mx.nd.op._sample_unique_zipfian(range_max=5, shape=(3, 5))
    np.testing.assert_array_equal(np.sort(every.asnumpy()), [list(range(5))] * 3)
    one, tries = mx.nd.op._sample_unique_zipfian(range_max=1, shape=(2, 1))
    assert (one.asnumpy().tolist(), tries.asnumpy().tolist()) == ([[0], [0]], [1, 1])
    for shape in ((2, 6), (3,), (2, 0)):
        with pytest.raises(mx.MXNetError, match="shape must be"):
            mx.nd.op._sample_unique_zipfian(range_max=5, shape=shape)


def test_zipfian_draws_in_symbols():
    true = mx.sym.var("true")
    sampled, of_true, of_sampled = mx.sym.contrib.rand_zipfian(true, 50, 9)
    group = mx.sym.Group([sampled, of_true, of_sampled])
    found = group.bind(mx.cpu(), {"true": mx.nd.array([3])}).forward()
    classes, expected, others = (one.asnumpy() for one in found)
    assert classes.shape == (50,)
    assert 0 <= classes.min() <= classes.max() < 9
    np.testing.assert_allclose(expected, [50 * math.log(5 / 4) / math.log(10)], rtol=1e-5)
    chance = np.log((classes + 2) / (classes + 1)) / math.log(10)
    np.testing.assert_allclose(others, 50 * chance, rtol=1e-5)


# What is not mapped ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("_contrib_quantized_conv", "8-bit"),
        ("_contrib_dgl_subgraph", "csr"),
        ("_npi_add", r"symop\.nd"),
        ("FulyConnected", "FullyConnected"),
    ],
)
def test_what_is_not_mapped_is_told_with_the_reason(name, match):
    with pytest.raises(mx.MXNetError, match=f"{name}: no such operator is mapped.*{match}"):
        mx.sym.load_json(
            f'{{"nodes": [{{"op": "{name}", "name": "a", "inputs": []}}], '
            '"arg_nodes": [], "heads": [[0, 0, 0]]}'
        )
