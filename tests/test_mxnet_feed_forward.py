"""Models of older scripts, and modules that Python computes."""

import pickle

import numpy as np
import pytest

import symop.interop.mxnet as mx


def perceptron(classes=2):
    data = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=8, name="fc1")
    data = mx.sym.Activation(data, act_type="tanh")
    data = mx.sym.FullyConnected(data, num_hidden=classes, name="fc2")
    return mx.sym.SoftmaxOutput(data, name="softmax")


def points(count=64, seed=0):
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(count, 3)).astype("float32")
    return x, (x[:, 0] + x[:, 1] > 0).astype("float32")


@pytest.fixture
def model():
    mx.random.seed(0)
    np.random.seed(0)
    x, y = points()
    made = mx.model.FeedForward(
        perceptron(),
        ctx=mx.cpu(),
        num_epoch=30,
        numpy_batch_size=16,
        initializer=mx.init.Xavier(),
        learning_rate=0.5,
        momentum=0.9,
    )
    made.fit(x, y)
    return made


def test_a_model_learns_from_arrays(model):
    x, y = points(40, seed=1)
    found = model.predict(x)
    assert found.shape == (40, 2)
    np.testing.assert_allclose(found.sum(1), 1.0, rtol=1e-5)
    assert (found.argmax(1) == y).mean() > 0.9
    assert model.score(mx.io.NDArrayIter(x, y, 8)) == (found.argmax(1) == y).mean()


def test_predictions_are_those_of_the_parameters(model):
    x, _ = points(5, seed=2)
    held = {name: one.asnumpy() for name, one in model.arg_params.items()}
    hidden = np.tanh(x @ held["fc1_weight"].T + held["fc1_bias"])
    scores = hidden @ held["fc2_weight"].T + held["fc2_bias"]
    expected = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    np.testing.assert_allclose(model.predict(x), expected, rtol=1e-4)
    np.testing.assert_allclose(model.predict(mx.nd.array(x)), expected, rtol=1e-4)


def test_predictions_leave_out_what_fills_the_last_batch(model):
    x, y = points(10, seed=3)
    data = mx.io.NDArrayIter(x, y, 4)
    found, seen, labels = model.predict(data, return_data=True)
    assert (found.shape, seen.shape, labels.shape) == ((10, 2), (10, 3), (10,))
    np.testing.assert_array_equal(seen, x)
    np.testing.assert_array_equal(labels, y)
    assert model.predict(data, num_batch=2).shape == (8, 2)


def test_a_model_is_saved_and_loaded(model, tmp_path):
    x, _ = points(6, seed=4)
    expected = model.predict(x)
    model.save(str(tmp_path / "model"))
    assert (tmp_path / "model-0030.params").exists()
    loaded = mx.model.FeedForward.load(str(tmp_path / "model"), 30, num_epoch=31)
    assert loaded.begin_epoch == 30
    np.testing.assert_array_equal(loaded.predict(x), expected)
    loaded.fit(*points())  # goes on from the parameters that were loaded
    changed = loaded.predict(x)
    assert np.abs(changed - expected).max() < 0.5
    assert (changed != expected).any()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(x), expected)


def test_create_trains_with_callbacks_and_scores():
    x, y = points()
    seen = []
    model = mx.model.FeedForward.create(
        perceptron(),
        x,
        y,
        num_epoch=2,
        optimizer="adam",
        eval_data=(x[:16], y[:16]),
        epoch_end_callback=lambda epoch, sym, arg, aux: seen.append((epoch, sorted(arg))),
        batch_end_callback=lambda param: seen.append(param.nbatch),
        eval_end_callback=lambda param: seen.append(param.eval_metric.name),
        learning_rate=0.01,
        numpy_batch_size=32,
    )
    names = ["fc1_bias", "fc1_weight", "fc2_bias", "fc2_weight"]
    assert seen == [0, 1, (0, names), "accuracy", 0, 1, (1, names), "accuracy"]
    assert sorted(model.arg_params) == names


def test_an_epoch_has_as_many_batches_as_told():
    x, y = points(48)
    seen = []
    model = mx.model.FeedForward(perceptron(), num_epoch=2, epoch_size=5)
    data = mx.io.NDArrayIter(x, y, 16)
    model.fit(data, batch_end_callback=lambda param: seen.append(param.nbatch))
    assert seen == [0, 1, 2, 3, 4] * 2


def test_a_function_makes_the_graph_of_each_bucket():
    draw = np.random.default_rng(0)
    sentences = [list(draw.integers(1, 9, length)) for length in (3, 5) for _ in range(8)]
    data = mx.rnn.BucketSentenceIter(sentences, 4, buckets=[3, 5], invalid_label=0)

    def make(length):
        del length
        table = mx.sym.Embedding(mx.sym.var("data"), input_dim=9, output_dim=4, name="embed")
        flat = mx.sym.Reshape(table, shape=(-1, 4))
        scores = mx.sym.FullyConnected(flat, num_hidden=9, name="fc")
        label = mx.sym.Reshape(mx.sym.var("softmax_label"), shape=(-1,))
        return mx.sym.SoftmaxOutput(scores, label, name="softmax")

    model = mx.model.FeedForward(make, num_epoch=1, learning_rate=0.1)
    model.fit(data, eval_metric=mx.metric.Perplexity(0))
    assert sorted(model.arg_params) == ["embed_weight", "fc_bias", "fc_weight"]


def test_superfluous_parameters_are_left_out_if_told():
    arg_params = {
        "fc_weight": mx.nd.ones((1, 3)),
        "fc_bias": mx.nd.zeros((1,)),
        "other": mx.nd.ones((2,)),
    }
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, name="fc")
    how = {"arg_params": arg_params, "aux_params": {}}
    found = mx.model.FeedForward(net, allow_extra_params=True, **how).predict(np.ones((2, 3)))
    assert found.tolist() == [[3.0], [3.0]]
    with pytest.raises(mx.MXNetError, match="other"):
        mx.model.FeedForward(net, **how).predict(np.ones((2, 3)))


@pytest.mark.parametrize(
    ("x", "y", "match"),
    [
        ([[1.0]], None, "X must be"),
        (np.ones((2, 3)), None, "y must be given"),
        (np.ones((2, 3)), np.ones(3), "length 2"),
        (np.ones((2, 3)), [1, 0], "must be an array"),
        (np.ones((2, 3)), np.ones((2, 2)), "list of labels"),
    ],
)
def test_data_of_no_sense(x, y, match):
    with pytest.raises(mx.MXNetError, match=match):
        mx.model.FeedForward(perceptron(), num_epoch=1).fit(x, y)


def test_what_a_model_lacks():
    model = mx.model.FeedForward(perceptron())
    with pytest.raises(mx.MXNetError, match="num_epoch"):
        model.fit(*points())
    with pytest.raises(mx.MXNetError, match="parameters"):
        model.predict(np.ones((1, 3)))
    with pytest.raises(mx.MXNetError, match="epoch"):
        model.save("model")


# Modules of Python -----------------------------------------------------------------------------


def softmax_slope(scores, labels):
    """The gradient of the cross entropy."""
    plain = scores.asnumpy()
    shares = np.exp(plain) / np.exp(plain).sum(1, keepdims=True)
    return shares - np.eye(plain.shape[1])[labels.asnumpy().astype(int)]


def test_a_loss_in_python_trains_as_the_operator():
    x, y = points()
    results = []
    for is_python in (True, False):
        mx.random.seed(0)
        np.random.seed(0)
        net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
        if is_python:
            chain = mx.mod.SequentialModule()
            chain.add(mx.mod.Module(net, label_names=None))
            loss = mx.mod.PythonLossModule(grad_func=softmax_slope)
            chain.add(loss, take_labels=True, auto_wiring=True)
        else:
            chain = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"))
        data = mx.io.NDArrayIter(x, y, 16)
        chain.fit(data, num_epoch=3, optimizer_params={"learning_rate": 0.1, "momentum": 0.5})
        results.append(chain.get_params()[0])
    for name, one in results[0].items():
        np.testing.assert_allclose(one.asnumpy(), results[1][name].asnumpy(), rtol=1e-4, atol=1e-5)


def test_a_loss_module_hands_on_its_data():
    loss = mx.mod.PythonLossModule("own", ["scores"], ["label"], grad_func=lambda a, b: a - b)
    loss.bind([("scores", (2,))], [("label", (2,))])
    loss.init_params()
    loss.init_optimizer()
    assert loss.output_shapes == [("own_output", (2,))]
    batch = mx.io.DataBatch([mx.nd.array([1, 2])], [mx.nd.array([3, 3])])
    loss.forward(batch)
    loss.backward()
    loss.update()
    assert loss.get_outputs()[0].asnumpy().tolist() == [1.0, 2.0]
    assert loss.get_input_grads()[0].asnumpy().tolist() == [-2.0, -1.0]
    metric = mx.metric.MAE()
    loss.update_metric(metric, batch.label)
    assert metric.get() == ("mae", 1.5)
    assert loss.get_params() == ({}, {})


def test_what_modules_of_python_refuse():
    loss = mx.mod.PythonLossModule()
    with pytest.raises(mx.MXNetError, match="names must be"):
        loss.bind([("scores", (2,))])
    with pytest.raises(mx.MXNetError, match="grad_req"):
        loss.bind([("data", (2,))], grad_req="add")
    loss.bind([("data", (2,))], for_training=False)
    with pytest.raises(mx.MXNetError, match="head gradients"):
        loss.backward()
    with pytest.raises(NotImplementedError, match="output shapes"):
        mx.mod.PythonModule(["data"], None, ["out"]).bind([("data", (2,))])
    with pytest.raises(mx.MXNetError, match="one name"):
        mx.mod.PythonLossModule(data_names=["a", "b"])
