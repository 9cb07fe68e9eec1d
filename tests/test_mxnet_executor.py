"""Executors of MXNet's interface: modes, memory, cotangents, devices, monitors."""

import re

import jax
import numpy as np
import pytest

import symop.interop.mxnet as mx
from symop.interop.mxnet import MXNetError

needs_two = pytest.mark.skipif(len(jax.devices()) < 2, reason="of one device there are no others")


def bound(net, **shapes):
    executor = net.simple_bind(mx.cpu(), **shapes)
    for name, array in executor.arg_dict.items():
        array[:] = mx.nd.arange(1, array.size + 1).reshape(array.shape) / (len(name) + 1)
    return executor


def test_backward_may_follow_a_pass_for_prediction():
    executor = bound(mx.sym.Dropout(mx.sym.var("x") * 3, p=0.5), x=(4,))
    executor.forward()
    executor.backward(mx.nd.array([1, 2, 3, 4]))
    assert executor.grad_dict["x"].asnumpy().tolist() == [3, 6, 9, 12]
    executor.forward(is_train=True)
    executor.backward(mx.nd.ones(4))
    assert set(executor.grad_dict["x"].asnumpy()) <= {0.0, 6.0}


def test_backward_of_a_prediction_draws_what_the_pass_drew():
    executor = bound(mx.sym.Dropout(mx.sym.var("x"), p=0.5, mode="always"), x=(64,))
    executor.arg_dict["x"][:] = 1
    (out,) = executor.forward()
    executor.backward(mx.nd.ones(64))
    assert (executor.grad_dict["x"].asnumpy() == out.asnumpy()).all()


def test_only_losses_do_without_cotangents():
    x = mx.sym.var("x")
    executor = bound(x * 2, x=(2,))
    executor.forward(is_train=True)
    with pytest.raises(MXNetError, match="out_grads must be given"):
        executor.backward()
    loss = bound(mx.sym.make_loss(x * 2), x=(2,))
    loss.forward(is_train=True)
    loss.backward()
    assert loss.grad_dict["x"].asnumpy().tolist() == [2, 2]
    both = bound(mx.sym.Group([mx.sym.make_loss(x * 2), mx.sym.BlockGrad(x)]), x=(2,))
    both.forward(is_train=True)
    both.backward()
    assert both.grad_dict["x"].asnumpy().tolist() == [2, 2]


def test_a_module_refuses_a_head_that_is_no_loss():
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1)
    module = mx.mod.Module(net, label_names=None)
    module.bind([("data", (2, 3))])
    module.init_params()
    module.init_optimizer()
    batch = mx.io.DataBatch([mx.nd.ones((2, 3))])
    with pytest.raises(MXNetError, match="out_grads must be given"):
        module.forward_backward(batch)


def test_outputs_stay_the_same_arrays():
    executor = bound(mx.sym.square(mx.sym.var("x")), x=(2,))
    (kept,) = executor.outputs
    (first,) = executor.forward(x=mx.nd.array([1, 2]))
    (second,) = executor.forward(is_train=True, x=mx.nd.array([3, 4]))
    assert kept is first is second
    assert kept.asnumpy().tolist() == [9, 16]


def test_integers_have_gradients_of_zero():
    x, index = mx.sym.var("x"), mx.sym.var("index")
    net = mx.sym.take(x, index)
    executor = net.bind(
        mx.cpu(),
        {"x": mx.nd.ones((3,)), "index": mx.nd.array([0, 2], dtype="int32")},
        {"x": mx.nd.ones((3,)), "index": mx.nd.ones((2,), dtype="int32")},
    )
    executor.forward(is_train=True)
    executor.backward(mx.nd.ones(2))
    assert executor.grad_dict["index"].asnumpy().tolist() == [0, 0]
    assert executor.grad_dict["x"].asnumpy().tolist() == [1, 0, 1]
    shape = bound(mx.sym.shape_array(x), x=(2, 3))
    shape.grad_dict["x"][:] = 5
    shape.forward(is_train=True)
    shape.backward(mx.nd.ones(2))
    assert not shape.grad_dict["x"].asnumpy().any()


def test_what_reaches_the_loss_through_a_block_alone_has_gradients_of_zero():
    x, y, z = (mx.sym.var(name) for name in "xyz")
    net = mx.sym.make_loss(mx.sym.BlockGrad(x * y) * y + z)
    executor = net.simple_bind(
        mx.cpu(), grad_req={"x": "write", "y": "write", "z": "null"}, x=(3,), y=(3,), z=(3,)
    )
    given = {"x": mx.nd.array([1, 2, 3]), "y": mx.nd.array([4, 5, 6]), "z": mx.nd.ones(3)}
    executor.grad_dict["x"][:] = 7
    (found,) = executor.forward(is_train=True, **given)
    executor.backward()
    assert found.asnumpy().tolist() == [17, 51, 109]
    assert executor.grad_dict["x"].asnumpy().tolist() == [0, 0, 0]
    assert executor.grad_dict["y"].asnumpy().tolist() == [4, 10, 18]
    assert executor.grad_dict["z"] is None


def test_a_request_to_add_keeps_what_was_there_where_a_block_lets_nothing_through():
    x, y = mx.sym.var("x"), mx.sym.var("y")
    executor = bound(mx.sym.make_loss(mx.sym.BlockGrad(x) * y), x=(2,), y=(2,), grad_req="add")
    for one in executor.grad_dict.values():
        one[:] = 7
    for _ in range(2):
        executor.forward(is_train=True, x=mx.nd.array([1, 2]))
        executor.backward()
    assert executor.grad_dict["x"].asnumpy().tolist() == [7, 7]
    assert executor.grad_dict["y"].asnumpy().tolist() == [9, 11]


def test_a_blocked_choice_has_gradients_of_zero_for_array_and_indices():
    net = mx.sym.BlockGrad(mx.sym.batch_take(mx.sym.var("x"), mx.sym.var("index")))
    dtypes = {"x": np.float32, "index": np.int32}
    executor = net.simple_bind(mx.cpu(), type_dict=dtypes, x=(2, 3), index=(2,))
    for one in executor.grad_dict.values():
        one[:] = 7
    x, index = mx.nd.array([[1, 2, 3], [4, 5, 6]]), mx.nd.array([2, 0], dtype="int32")
    (found,) = executor.forward(is_train=True, x=x, index=index)
    executor.backward()
    assert found.asnumpy().tolist() == [3, 4]
    for name, dtype in dtypes.items():
        assert executor.grad_dict[name].dtype is dtype
        assert not executor.grad_dict[name].asnumpy().any()


def test_indices_of_a_graph_are_checked_if_told():
    x, index = mx.sym.var("x"), mx.sym.var("index")
    net = mx.sym.take(x, mx.sym.BlockGrad(index) + 1, axis=1, mode="raise", name="rows")
    executor = bound(net, x=(2, 3), index=(2,))
    executor.arg_dict["x"][:] = mx.nd.array([[1, 2, 3], [4, 5, 6]])
    (found,) = executor.forward(index=mx.nd.array([1, -1]))
    assert found.asnumpy().tolist() == [[3, 1], [6, 4]]
    for wrong in (2, -2):
        with pytest.raises(IndexError, match=r"'rows'.* axis 1 must be in \[0, 3\)"):
            executor.forward(is_train=True, index=mx.nd.array([0, wrong]))
    clipped = bound(mx.sym.take(x, index), x=(3,), index=(1,))
    clipped.arg_dict["x"][:] = mx.nd.array([1, 2, 3])
    assert clipped.forward(index=mx.nd.array([7]))[0].asnumpy().tolist() == [3]


def test_reshape_shares_memory():
    net = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=2, no_bias=True, name="fc")
    executor = net.simple_bind(mx.cpu(), x=(3, 2))
    executor.arg_dict["x"][:] = 1
    executor.arg_dict["fc_weight"][:] = 1
    smaller = executor.reshape(x=(2, 2))
    assert smaller.forward()[0].asnumpy().tolist() == [[2, 2]] * 2
    assert executor.outputs[0].asnumpy().tolist() == [[2, 2], [2, 2], [0, 0]]
    smaller.arg_dict["x"][:] = 5
    assert executor.arg_dict["x"].asnumpy().tolist() == [[5, 5], [5, 5], [1, 1]]
    larger = executor.reshape(allow_up_sizing=True, x=(4, 2))
    larger.arg_dict["x"][:] = 0
    assert executor.arg_dict["x"].asnumpy()[0, 0] == 5
    assert larger.arg_dict["fc_weight"] is executor.arg_dict["fc_weight"]


def test_debug_text_tells_the_memory():
    x = mx.sym.var("x")
    net = x
    for _ in range(4):
        net = net * net
    text = net.simple_bind(mx.cpu(), x=(1024, 1024)).debug_str()
    assert "Op:elemwise_mul" in text
    none = net.simple_bind(mx.cpu(), grad_req="null", x=(1024, 1024)).debug_str()
    blocked = mx.sym.BlockGrad(net).simple_bind(mx.cpu(), x=(1024, 1024)).debug_str()
    found = [int(re.search(r"Total (\d+) MB", one).group(1)) for one in (text, none, blocked)]
    assert found[0] > found[1] == found[2] == 4


@needs_two
def test_groups_are_on_the_devices_named():
    with mx.AttrScope(ctx_group="one"):
        a = mx.sym.var("a") * 2
    with mx.AttrScope(ctx_group="two"):
        net = mx.sym.var("b") + a
    executor = net.simple_bind(
        mx.cpu(0), group2ctx={"one": mx.cpu(1), "two": mx.cpu(0)}, a=(2,), b=(2,)
    )
    executor.forward(is_train=True, a=mx.nd.ones(2), b=mx.nd.ones(2))
    executor.backward(mx.nd.ones(2))
    assert executor.outputs[0].asnumpy().tolist() == [3, 3]
    assert executor.arg_dict["a"].context == executor.grad_dict["a"].context == mx.cpu(1)
    assert executor.arg_dict["b"].context == mx.cpu(0)
    assert executor.grad_dict["a"].asnumpy().tolist() == [2, 2]


@needs_two
def test_groups_hold_the_states_of_a_normalization_too():
    with mx.AttrScope(ctx_group="first"):
        net = mx.sym.BatchNorm(mx.sym.var("data"), fix_gamma=False, momentum=0.5, name="bn")
    with mx.AttrScope(ctx_group="second"):
        net = mx.sym.FullyConnected(net, num_hidden=2, no_bias=True, name="fc")
    draw = np.random.default_rng(0).normal
    data, weight, slope = (draw(size=shape) for shape in ((5, 3), (2, 3), (5, 2)))
    groups = {"first": mx.cpu(1), "second": mx.cpu(0)}
    executor = net.simple_bind(mx.cpu(0), group2ctx=groups, data=(5, 3))
    executor.copy_params_from(
        {"data": mx.nd.array(data), "fc_weight": mx.nd.array(weight), "bn_gamma": mx.nd.ones(3)}
    )
    (out,) = executor.forward(is_train=True)
    executor.backward(mx.nd.array(slope))
    normal = (data - data.mean(0)) / np.sqrt(data.var(0) + 1e-3)
    found = {name: one.asnumpy() for name, one in executor.grad_dict.items()}
    np.testing.assert_allclose(out.asnumpy(), normal @ weight.T, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found["fc_weight"], slope.T @ normal, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found["bn_beta"], (slope @ weight).sum(0), rtol=1e-4, atol=1e-5)
    means = executor.aux_dict["bn_moving_mean"].asnumpy()
    np.testing.assert_allclose(means, data.mean(0) / 2, rtol=1e-4)
    held = {**executor.arg_dict, **executor.aux_dict}
    places = {name: one.context for name, one in held.items()}
    assert places == {name: mx.cpu(0 if name == "fc_weight" else 1) for name in held}
    assert all(one.context == places[name] for name, one in executor.grad_dict.items())


def test_cotangents_beyond_the_outputs_are_ignored():
    net = mx.sym.LeakyReLU(mx.sym.var("x"), mx.sym.var("gamma"), act_type="prelu")
    executor = net.simple_bind(mx.cpu(), x=(2, 3))
    x, gamma = np.array([[-1, 2, -3], [4, -5, 6]]), np.array([0.5, 0.25, 2])
    given = {"x": mx.nd.array(x), "gamma": mx.nd.array(gamma)}
    slope = np.arange(1, 7).reshape(2, 3)
    for surplus in ([], [mx.nd.ones((2, 3))]):
        (out,) = executor.forward(is_train=True, **given)
        executor.backward([mx.nd.array(slope), *surplus])
        assert out.asnumpy().tolist() == np.where(x > 0, x, gamma * x).tolist()
        found = [one.asnumpy().tolist() for one in executor.grad_arrays]
        assert found[0] == (slope * np.where(x > 0, 1, gamma)).tolist()
        assert found[1] == (slope * np.minimum(x, 0)).sum(0).tolist()


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_a_softmax_of_given_lengths_has_gradients_within_them(dtype):
    net = mx.sym.softmax(mx.sym.var("x"), length=mx.sym.var("n"), use_length=True, axis=1)
    executor = net.simple_bind(mx.cpu(), type_dict={"n": dtype}, x=(4, 3), n=(4,))
    x, slope = np.random.default_rng(0).normal(size=(2, 4, 3))
    lengths = np.array([3, 2, 1, 0])
    executor.grad_dict["n"][:] = 7
    (out,) = executor.forward(is_train=True, x=x, n=mx.nd.array(lengths, dtype=dtype))
    executor.backward(mx.nd.array(slope))
    powers = np.exp(x) * (np.arange(3) < lengths[:, None])
    expected = powers / np.maximum(powers.sum(1, keepdims=True), 1e-9)
    np.testing.assert_allclose(out.asnumpy(), expected, rtol=1e-5)
    along = expected * (slope - (slope * expected).sum(1, keepdims=True))
    np.testing.assert_allclose(executor.grad_dict["x"].asnumpy(), along, rtol=1e-4, atol=1e-6)
    assert not executor.grad_dict["n"].asnumpy().any()


@pytest.mark.parametrize("kind", ["max", "avg", "sum"])
def test_windows_of_the_same_pooling_end_with_the_data(kind):
    options = {"kernel": (3,), "stride": (2,), "pooling_convention": "same", "pool_type": kind}
    executor = mx.sym.Pooling(mx.sym.var("x"), **options).simple_bind(mx.cpu(), x=(1, 1, 6))
    (out,) = executor.forward(is_train=True, x=mx.nd.array([[[1, 5, 2, 3, 4, 6]]]))
    executor.backward(mx.nd.array([[[1, 10, 100]]]))
    expected, slope = {
        "max": ([5, 4, 6], [0, 1, 0, 0, 10, 100]),
        "avg": ([8 / 3, 3, 5], [1 / 3, 1 / 3, 11 / 3, 10 / 3, 10 / 3 + 50, 50]),
        "sum": ([8, 9, 10], [1, 1, 11, 10, 110, 100]),
    }[kind]
    np.testing.assert_allclose(out.asnumpy(), [[expected]], rtol=1e-6)
    np.testing.assert_allclose(executor.grad_dict["x"].asnumpy(), [[slope]], rtol=1e-6)


@pytest.mark.parametrize("told", [{"pad": (1,), "kernel": (3,)}, {"kernel": (3, 3)}])
def test_the_same_pooling_is_along_one_axis_without_padding(told):
    net = mx.sym.Pooling(mx.sym.var("x"), pool_type="max", pooling_convention="same", **told)
    with pytest.raises(MXNetError, match="same"):
        net.infer_shape(x=(1, 1, *[6] * len(told["kernel"])))


def data():
    return mx.sym.var("data", shape=(2, 3, 4, 4))


MONITORED = {
    "Convolution": (
        lambda: mx.sym.Convolution(data(), kernel=(2, 2), num_filter=1, name="a"),
        "data a_data a_weight a_weight a_bias a_bias a_output",
    ),
    "Deconvolution": (
        lambda: mx.sym.Deconvolution(data(), kernel=(2, 2), num_filter=1, name="a"),
        "data a_data a_weight a_weight a_output",
    ),
    "FullyConnected": (
        lambda: mx.sym.FullyConnected(data(), num_hidden=2, name="a"),
        "data a_data a_weight a_weight a_bias a_bias a_output",
    ),
    "Activation": (
        lambda: mx.sym.Activation(data(), act_type="relu", name="a"),
        "data a_input0 a_output",
    ),
    "concat": (
        lambda: mx.sym.concat(data(), mx.sym.var("other", shape=(2, 3, 4, 4)), dim=0, name="a"),
        "data a_arg0 other a_arg1 a_output",
    ),
    "softmax": (lambda: mx.sym.softmax(data(), name="a"), "data a_data a_output"),
    "softmax of lengths": (
        lambda: mx.sym.softmax(data(), mx.sym.var("n"), use_length=True, axis=1, name="a"),
        "data a_data n a_length a_output",
    ),
    "SoftmaxActivation": (
        lambda: mx.sym.SoftmaxActivation(data(), name="a"),
        "data a_input0 a_output",
    ),
    "UpSampling": (
        lambda: mx.sym.UpSampling(data(), scale=2, sample_type="nearest", name="a"),
        "data a_arg0 a_output",
    ),
    "Pooling": (
        lambda: mx.sym.Pooling(data(), kernel=(2, 2), pool_type="avg", name="a"),
        "data a_data a_output",
    ),
    "SliceChannel": (
        lambda: mx.sym.SliceChannel(data(), num_outputs=3, name="a"),
        "data a_data a_output0 a_output1 a_output2",
    ),
    "two calls": (
        lambda: mx.sym.Activation(mx.sym.sqrt(data(), name="a"), act_type="relu", name="b"),
        "data a_data a_output b_input0 b_output",
    ),
}


@pytest.mark.parametrize(("make", "names"), MONITORED.values(), ids=MONITORED)
def test_a_monitor_of_all_names_the_inputs_of_operators(make, names):
    executor, seen = make().simple_bind(mx.cpu(), grad_req="null"), []
    executor.set_monitor_callback(lambda name, _: seen.append(name), monitor_all=True)
    executor.forward()
    assert seen == names.split()
    del seen[:]
    executor.set_monitor_callback(lambda name, _: seen.append(name), monitor_all=False)
    executor.forward()
    assert seen == [name for name in names.split() if "_output" in name]


def test_an_executor_of_other_shapes_has_the_monitor():
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, no_bias=True, name="fc")
    executor, seen = bound(net, data=(3, 2)), []
    executor.set_monitor_callback(lambda name, array: seen.append((name, array.shape)), True)
    smaller = executor.reshape(data=(2, 2))
    for one, count in ((smaller, 2), (executor, 3)):
        del seen[:]
        one.forward()
        assert seen[:2] == [("data", (count, 2)), ("fc_data", (count, 2))]
        assert seen[-1] == ("fc_output", (count, 2))
    smaller.set_monitor_callback(lambda name, array: None)
    del seen[:]
    smaller.forward()
    assert not seen
    executor.forward()
    assert seen


def test_monitors_see_gradients_and_inputs():
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    executor = bound(mx.sym.Activation(net, act_type="tanh", name="act"), data=(1, 2))
    seen = {}
    executor.set_monitor_callback(lambda name, array: seen.setdefault(name, array.asnumpy()), True)
    (out,) = executor.forward(is_train=True)
    assert list(seen)[:4] == ["data", "fc_data", "fc_weight", "fc_bias"]
    assert "act_input0" in seen
    executor.backward(mx.nd.ones((1, 2)))
    slope = 1 - out.asnumpy() ** 2
    np.testing.assert_allclose(seen["act_backward_output"], slope, rtol=1e-5)
    np.testing.assert_allclose(
        seen["fc_backward_output1"], executor.grad_dict["fc_weight"].asnumpy(), rtol=1e-5
    )


# The optimized symbol


def internals(net, monkeypatch=None):
    if monkeypatch is not None:
        monkeypatch.setenv("MXNET_ELIMINATE_COMMON_EXPR", "0")
    return len(bound(net, a=(2,), b=(2,)).get_optimized_symbol().get_internals())


def test_equal_calls_of_the_optimized_symbol_are_one(monkeypatch):
    a, b = mx.sym.var("a"), mx.sym.var("b")
    net = mx.sym.sin(a * b) + mx.sym.sin(a * b)
    assert internals(net) == 5  # a, b, the product, sin, the sum
    assert internals((a + 1) * (b + 2)) == 5
    assert internals(net, monkeypatch) == 7


def test_equal_outputs_of_the_optimized_symbol_are_copied():
    a, b = mx.sym.var("a"), mx.sym.var("b")
    found = bound(mx.sym.Group([a * b, a * b]), a=(2,), b=(2,)).get_optimized_symbol()
    assert len(found.list_outputs()) == 2
    assert len(found.get_internals()) == 4
    one, two = found.bind(mx.cpu(), {"a": mx.nd.array([2, 3]), "b": mx.nd.array([5, 7])}).forward()
    assert one.asnumpy().tolist() == two.asnumpy().tolist() == [10, 21]


def test_draws_are_not_merged():
    a, b = mx.sym.var("a"), mx.sym.var("b")
    assert internals(mx.sym.Dropout(a) + mx.sym.Dropout(a) + b) == 6


def test_the_optimized_symbol_of_sparse_arrays():
    net = mx.sym.dot(mx.sym.var("x", stype="csr"), mx.sym.var("w"))
    executor = net.simple_bind(mx.cpu(), x=(2, 3), w=(3, 1))
    assert executor.get_optimized_symbol().list_arguments() == ["x", "w"]


@needs_two
@pytest.mark.parametrize("loss", [False, True])
def test_gradients_are_on_the_device_of_their_array(loss):
    """Also where they depend on head gradients alone, or on nothing."""
    net = mx.sym.var("a") * 2
    executor = (mx.sym.make_loss(net) if loss else net).simple_bind(mx.cpu(1), a=(2,))
    executor.forward(is_train=True)
    executor.backward(None if loss else mx.nd.ones(2))
    assert executor.grad_dict["a"].context == executor.outputs[0].context == mx.cpu(1)
    assert executor.grad_dict["a"].asnumpy().tolist() == [2, 2]


@needs_two
def test_a_head_gradient_comes_from_another_device():
    executor = (mx.sym.var("a") * 2).simple_bind(mx.cpu(0), a=(2,))
    executor.forward(is_train=True)
    executor.backward(mx.nd.ones(2, ctx=mx.cpu(1)))
    assert executor.grad_dict["a"].context == mx.cpu(0)


@needs_two
def test_the_context_that_is_named_wins_over_the_current_one():
    with mx.cpu(1):
        executor = (mx.sym.var("a") * 2).simple_bind(mx.cpu(0), a=(2,))
    executor.arg_dict["a"][:] = 3
    (out,) = executor.forward()
    assert (out.context, out.asnumpy().tolist()) == (mx.cpu(0), [6, 6])


@pytest.mark.parametrize("turned", [False, True])
def test_outputs_of_groups_are_on_the_device_that_is_given(turned):
    with mx.AttrScope(ctx_group="one"):
        a = mx.sym.var("a") * 2
    with mx.AttrScope(ctx_group="two"):
        total = mx.sym.var("b") + a if turned else a + mx.sym.var("b")
    groups = {"one": mx.cpu(1), "two": mx.cpu(2)}
    executor = total.simple_bind(mx.cpu(0), group2ctx=groups, a=(2,), b=(2,))
    assert executor.outputs[0].context == mx.cpu(0)
    assert executor.forward()[0].context == executor.outputs[0].context == mx.cpu(0)
