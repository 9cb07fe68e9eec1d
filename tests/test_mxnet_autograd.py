"""MXNet's autograd: recording, gradients of every order, functions of one's own."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

import symop.interop.mxnet as mx
from symop.interop.mxnet import autograd, nd
from symop.interop.mxnet.base import MXNetError


def marked(*entries, req="write"):
    made = nd.array(entries)
    made.attach_grad(req)
    return made


def grads(x):
    return x.grad.asnumpy().tolist()


# Modes


def test_modes():
    assert not autograd.is_recording()
    with autograd.record():
        assert autograd.is_recording()
        assert autograd.is_training()
        with autograd.pause():
            assert not autograd.is_recording()
            assert not autograd.is_training()
        with autograd.predict_mode():
            assert autograd.is_recording()
            assert not autograd.is_training()
    with autograd.record(train_mode=False), autograd.train_mode():
        assert autograd.is_training()
    assert autograd.set_recording(True) is False
    assert autograd.set_recording(False) is True
    assert autograd.set_training(False) is False


def test_training_changes_what_layers_do():
    x = nd.ones((200,))
    with autograd.record():
        assert nd.Dropout(x, p=0.5).asnumpy().min() == 0
    with autograd.record(train_mode=False):
        assert nd.Dropout(x, p=0.5).asnumpy().min() == 1


# Gradients


def test_an_array_of_jax_on_the_left_of_a_recorded_one_is_refused():
    x, other = marked(1, 2), jnp.ones(2)
    assert (other * x).tolist() == [1, 2]
    with autograd.record(), pytest.raises(TypeError, match="operands must be arrays or numbers"):
        other * x  # MXNet's arrays take no others, and JAX would lose the gradient


def test_backward_writes_adds_and_leaves():
    x, y, z = marked(1, 2), marked(1, 2, req="add"), marked(1, 2, req="null")
    for _ in range(2):
        with autograd.record():
            loss = (x * x + 2 * y * z).sum()
        loss.backward()
    assert grads(x) == [2, 4]
    assert grads(y) == [4, 8]
    assert z.grad is None
    x.grad[:] = 0
    assert grads(x) == [0, 0]


def test_gradients_of_several_heads_and_along_given_ones():
    x = marked(1, 2)
    with autograd.record():
        y, z = x * 2, x * x
    autograd.backward([y, z], [nd.array([1, 10]), None])
    assert grads(x) == [4, 24]
    with autograd.record():
        y = x * 2
    y.backward(nd.array([3, 4], dtype="int32"))
    assert grads(x) == [6, 8]
    with pytest.raises(MXNetError, match="head gradient"):
        autograd.backward([y], [None, None])


def test_a_record_is_kept_if_asked():
    x = marked(3)
    with autograd.record():
        y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert grads(x) == [6]
    with pytest.raises(MXNetError):
        y.backward()


def test_a_record_is_freed_with_all_that_led_to_it():
    x = marked(1, 2, req="add")
    with autograd.record():
        y = x * x
        z = y * 3
    z.backward(retain_graph=True)
    z.backward(retain_graph=True)
    assert grads(x) == [12, 24]
    y.backward(retain_graph=True)
    assert grads(x) == [14, 28]
    z.backward()
    assert grads(x) == [20, 40]
    for one in (y, z):
        with pytest.raises(MXNetError, match="retain_graph"):
            one.backward()
    assert grads(x) == [20, 40]


def test_gradients_that_are_returned_free_the_record_too():
    x = marked(1, 2)
    with autograd.record():
        y = x * x
    for kept in (True, False):
        assert autograd.grad(y, x, retain_graph=kept)[0].asnumpy().tolist() == [2, 4]
    with pytest.raises(MXNetError, match="retain_graph"):
        autograd.grad(y, x)
    assert grads(x) == [0, 0]
    with autograd.record():
        y = x * x
        autograd.grad(y, x, create_graph=True)
    y.backward()
    assert grads(x) == [2, 4]


def test_a_cached_operator_takes_several_shapes():
    net = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=2, name="fc") * 3
    dense, draw = mx.nd.CachedOp(net), np.random.default_rng(0).normal
    for rows, columns in ((4, 3), (5, 2), (4, 3), (1, 6)):
        x, weight = draw(size=(rows, columns)), draw(size=(2, columns))
        given = [nd.array(one) for one in (x, weight, np.ones(2))]
        for one in given:
            one.attach_grad()
        with autograd.record():
            out = dense(*given)
        slope = draw(size=(rows, 2))
        out.backward(nd.array(slope), retain_graph=True)
        out.backward(nd.array(2 * slope))
        expected = 6 * slope @ weight, 6 * slope.T @ x, 6 * slope.sum(0)
        np.testing.assert_allclose(out.asnumpy(), 3 * (x @ weight.T + 1), rtol=1e-4, atol=1e-5)
        for one, known in zip(given, expected, strict=True):
            np.testing.assert_allclose(one.grad.asnumpy(), known, rtol=1e-4, atol=1e-5)
        with pytest.raises(MXNetError, match="retain_graph"):
            out.backward(nd.array(slope))


def test_mark_variables():
    x, gradient = nd.array([1, 2]), nd.zeros((2,))
    autograd.mark_variables(x, gradient)
    with autograd.record():
        y = nd.exp(x)
    y.backward()
    np.testing.assert_allclose(gradient.asnumpy(), np.exp([1, 2]), rtol=1e-6)


def test_gradients_of_every_order():
    x = marked(0.5, 2)
    with autograd.record():
        y = nd.sin(x) * x**2
        (first,) = autograd.grad(y, x, create_graph=True)
        (second,) = autograd.grad(first, [x], create_graph=True)
    second.backward()
    v = x.asnumpy()
    sin, cos = np.sin(v), np.cos(v)
    np.testing.assert_allclose(first.asnumpy(), cos * v**2 + 2 * v * sin, rtol=1e-5)
    np.testing.assert_allclose(second.asnumpy(), (2 - v**2) * sin + 4 * v * cos, rtol=1e-4)
    third = -(v**2) * cos - 6 * v * sin + 6 * cos
    np.testing.assert_allclose(x.grad.asnumpy(), third, rtol=1e-4)


def test_second_order_of_layers(x64):
    generator = np.random.default_rng(0)
    data, weight = (nd.array(generator.normal(size=s), dtype="float64") for s in ((3, 4), (2, 4)))
    weight.attach_grad()

    def slope(w):
        with autograd.record():
            out = nd.Activation(nd.FullyConnected(data, w, no_bias=True, num_hidden=2), "tanh")
            return autograd.grad((out * out).sum(), w, create_graph=True)[0]

    first = slope(weight)
    with autograd.record():
        total = (slope(weight) ** 2).sum()
    total.backward()
    step = 1e-6
    moved = np.zeros((2, 4))
    for at in np.ndindex(2, 4):
        parts = []
        for sign in (1, -1):
            shifted = weight.copy()
            shifted[at] = weight[at] + sign * step
            shifted.attach_grad()
            parts.append((slope(shifted).asnumpy() ** 2).sum())
        moved[at] = (parts[0] - parts[1]) / (2 * step)
    assert first.shape == (2, 4)
    np.testing.assert_allclose(weight.grad.asnumpy(), moved, rtol=1e-6, atol=1e-7)


def test_gradients_pass_indices_methods_and_assignment():
    x = marked(1, 2, 3)
    with autograd.record():
        rows = nd.zeros((2, 3))
        rows[:] = x
        part = nd.zeros((4,))
        part[1:3] = x[1:] * 10
        total = (rows * rows).sum() + part.reshape((2, 2)).sum() + x[0]
    total.backward()
    assert grads(x) == [5, 18, 22]
    assert part.asnumpy().tolist() == [0, 20, 30, 0]


def test_recorded_arrays_are_not_changed_in_place():
    x = marked(1, 2)
    with autograd.record():
        y = x * 2
        for change in (lambda: x.__setitem__(0, 3), lambda: y.__iadd__(1)):
            with pytest.raises(MXNetError, match="recorded"):
                change()
    x[:] = 5
    x += 1
    with autograd.record():
        y = x * x
    y.backward()
    assert grads(x) == [12, 12]


def test_detached_arrays_are_constants():
    x = marked(2)
    with autograd.record():
        y = x * x
        z = y.detach() * x + nd.BlockGrad(x) * x
    z.backward()
    assert grads(x) == [4 + 2]


def test_with_respect_to_the_result_of_a_call():
    x = marked(1, 2)
    with autograd.record():
        y = x * x
        z = y * y * 3
    (found,) = autograd.grad(z, [y])
    assert found.asnumpy().tolist() == [6, 24]


def test_what_cannot_be_differentiated():
    x, y = marked(1), marked(1)
    with pytest.raises(MXNetError):
        nd.ones(1).backward()
    with autograd.record():
        z = x * 2
    with pytest.raises(MXNetError):
        autograd.grad(z, y)
    with pytest.raises(MXNetError, match="variable"):
        autograd.grad(z, [])
    with pytest.raises(MXNetError, match="takes arrays"):
        autograd.grad(z, 3)


def test_loss_heads_ignore_what_comes_in():
    x = nd.array([[1, 2], [3, 1]])
    x.attach_grad()
    with autograd.record():
        out = nd.SoftmaxOutput(x, nd.array([0, 1]))
    out.backward()
    expected = out.asnumpy() - np.eye(2)
    np.testing.assert_allclose(x.grad.asnumpy(), expected, rtol=1e-5)


def test_get_symbol():
    x = marked(1, 2)
    with autograd.record():
        y = nd.sin(x) * x
    assert autograd.get_symbol(y).list_arguments() == ["var0"]


# Functions of one's own


class Sigmoid(autograd.Function):
    def forward(self, x):
        y = 1 / (1 + nd.exp(-x))
        self.save_for_backward(y)
        return y

    def backward(self, dy):
        (y,) = self.saved_tensors
        return dy * y * (1 - y)


def test_a_function_has_derivatives_of_every_order():
    x = marked(0.3, 1)
    with autograd.record():
        (first,) = autograd.grad(Sigmoid()(x), x, create_graph=True)
    first.backward()
    s = 1 / (1 + np.exp(-x.asnumpy()))
    np.testing.assert_allclose(x.grad.asnumpy(), s * (1 - s) * (1 - 2 * s), rtol=1e-4)


class Both(autograd.Function):
    def __init__(self, scale):
        self.scale = scale

    def forward(self, x, y):
        assert not autograd.is_recording()
        return x * self.scale, x + y

    def backward(self, dx, dy):
        return dx * self.scale + dy, dy.astype("float16")


def test_a_function_of_several_arrays():
    x, y = marked(1, 2), marked(3, 4)
    with autograd.record():
        scaled, total = Both(3)(x, y)
        loss = (scaled * 2 + total).sum()
    loss.backward()
    assert (grads(x), grads(y)) == ([7, 7], [1, 1])
    assert [one.shape for one in Both(2)(x, y)] == [(2,), (2,)]


def test_wrong_functions():
    class Wrong(autograd.Function):
        def forward(self, x, y):
            return x * y

        def backward(self, dy):
            return dy

    x = marked(1)
    once = Wrong()
    with autograd.record():
        y = once(x, x)
    with pytest.raises(MXNetError, match="each of 2 inputs"):
        y.backward()
    with pytest.raises(MXNetError, match="once"):
        once(x, x)
    with pytest.raises(NotImplementedError, match="forward"):
        autograd.Function()(x)


@pytest.mark.parametrize("order", range(1, 6))
def test_a_derivative_that_is_zero_has_derivatives(order):
    for function, known in ((nd.relu, [[1]]), (lambda x: x * x, [[6], [2]])):
        x = marked(3)
        with autograd.record():
            y = function(x)
            for _ in range(order - 1):
                (y,) = autograd.grad(y, x, create_graph=True)
        y.backward()
        assert grads(x) == (known[order - 1] if order <= len(known) else [0])


def test_get_symbol_has_mxnets_operators():
    x, w = marked(1, 2), marked(3, 4)
    with autograd.record():
        y = nd.FullyConnected(x.reshape((1, 2)), w.reshape((1, 2)), num_hidden=1, no_bias=True)
        z = 2 * y + nd.exp(y)
    nodes = json.loads(autograd.get_symbol(z).tojson())["nodes"]
    assert [one["op"] for one in nodes] == [
        *("null", "Reshape", "null", "Reshape", "FullyConnected", "_mul_scalar", "exp"),
        "broadcast_add",
    ]
    found = autograd.get_symbol(z).eval(var0=nd.array([1, 2]), var1=nd.array([3, 4]))[0]
    assert np.allclose(found.asnumpy(), z.asnumpy())
    with pytest.raises(MXNetError, match="get_symbol"):
        autograd.get_symbol(x)


def test_a_gradient_is_fresh_until_it_is_used():
    x, y = marked(1, 2), marked(3, 4)
    assert not x._fresh_grad
    assert x.grad is not None
    assert not x._fresh_grad
    with autograd.record():
        out = x * 2 + y
    out.backward()
    assert x._fresh_grad
    assert y._fresh_grad
    x._fresh_grad = y._fresh_grad = False
    with autograd.record():
        out = (x * 2).detach() + y
    out.backward()
    assert y._fresh_grad
    assert not x._fresh_grad


def test_older_names_record_and_train_at_once():
    old = mx.contrib.autograd
    slopes, out = old.grad_and_loss(lambda a, b: a * b, argnum=1)(nd.array([2]), nd.array([3]))
    assert (slopes[0].asscalar(), out.asscalar()) == (2, 6)
    x = nd.ones(100)
    with old.train_section():
        assert autograd.is_recording()
        assert nd.Dropout(x).asnumpy().min() == 0
        with old.test_section():
            assert nd.Dropout(x).asnumpy().min() == 1
    assert not autograd.is_training()
    dx = nd.zeros(3)
    y = nd.array([1, 2, 3])
    old.mark_variables([y], [dx])
    with old.train_section():
        parts = nd.split(y, num_outputs=3, axis=0)
        old.backward(parts, [None, nd.array([5]), nd.array([7])])
    assert dx.asnumpy().tolist() == [1, 5, 7]
    with pytest.raises(MXNetError, match="list of arrays"):
        old.backward(y)


def test_older_names_keep_a_record_if_asked():
    old = mx.contrib.autograd
    x, slope = nd.ones((2, 2)), nd.zeros((2, 2))
    old.mark_variables([x], [slope], grad_reqs="add")
    with old.train_section():
        y = x * 3
        old.backward([y], retain_graph=True)
        y.backward(retain_graph=True)
        old.compute_gradient([y])
        for again in (y.backward, lambda: old.backward([y]), lambda: old.compute_gradient([y])):
            with pytest.raises(MXNetError, match="retain_graph"):
                again()
    assert slope.asnumpy().tolist() == [[9, 9]] * 2


def test_integers_have_gradients():
    x = nd.array([[1, 2], [3, 4]], dtype="int32")
    x.attach_grad()
    assert x.grad.asnumpy().tolist() == [[0, 0], [0, 0]]
    with autograd.record():
        y = x[1] * 3
    y.backward()
    assert x.grad.dtype is np.int32
    assert x.grad.asnumpy().tolist() == [[0, 0], [3, 3]]
    with autograd.record():
        top = nd.topk(x, k=1, ret_typ="value", axis=1)
    top.backward(nd.array([[5], [7]], dtype="int32"))
    assert x.grad.asnumpy().tolist() == [[0, 5], [0, 7]]
    slope = nd.zeros((2, 2), dtype="int32")
    autograd.mark_variables([x], [slope], "add")
    for _ in range(2):
        with autograd.record():
            out = nd.contrib.boolean_mask(x, nd.array([0, 1]))
        out.backward()
    assert slope.asnumpy().tolist() == [[0, 0], [2, 2]]
    assert x.grad is slope
