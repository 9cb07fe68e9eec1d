"""Executors: binding, requests, states, residuals, and what they refuse."""

import copy
import pickle
import weakref

import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from registry.errors import ArgumentError, FeedError, GradientError, UnknownTypeError


def network():
    data = so.var("data")
    hidden = so.relu(so.batch_norm(so.fully_connected(data, units=4, name="fc"), name="bn"))
    return so.mean(so.square(so.dropout(hidden, rate=0.25)))


def bound(**options):
    executor = network().simple_bind(data=(6, 3), **options)
    rng = np.random.default_rng(0)
    executor.copy_params_from(
        {n: rng.normal(size=a.shape).astype(np.float32) for n, a in executor.arg_dict.items()},
        {"bn_moving_var": np.ones(4, np.float32)},
    )
    return executor


def test_gradients_equal_the_gradient_graph():
    executor = bound()
    so.random.seed(3)
    executor.forward(is_train=True)
    executor.backward()
    net = network().with_types(data=(6, 3))
    names = net.list_arguments()
    so.random.seed(3)
    arrays = {**executor.arg_dict, **executor.aux_dict}
    arguments = [so.Symbol([net._variables()[name]]) for name in names]
    expected, _ = so.Group(so.grad(net, arguments)).eval(is_train=True, **arrays)
    for name, value in zip(names, expected, strict=True):
        np.testing.assert_allclose(executor.grad_dict[name], value, rtol=1e-5, atol=1e-6)


def test_requests():
    executor = bound(grad_req={"fc_weight": "add", "data": "write"})
    assert set(executor.grad_dict) == {"fc_weight", "data"}
    so.random.seed(0)
    executor.forward(is_train=True)
    executor.backward()
    once = {name: np.array(array) for name, array in executor.grad_dict.items()}
    executor.backward()
    np.testing.assert_allclose(executor.grad_dict["fc_weight"], 2 * once["fc_weight"], rtol=1e-6)
    np.testing.assert_allclose(executor.grad_dict["data"], once["data"])


def test_add_starts_from_what_was_given():
    x = so.var("x", shape=(2,))
    executor = so.square(x).bind({"x": [1.0, 2.0]}, {"x": [10.0, 10.0]}, grad_req="add")
    executor.forward(is_train=True)
    executor.backward()
    assert executor.grad_dict["x"].tolist() == [12.0, 14.0]


def test_null_computes_nothing():
    executor = bound(grad_req="null")
    executor.forward(is_train=True)
    executor.backward()
    assert executor.grad_dict == {}


def test_head_gradients():
    x = so.var("x", shape=(2,))
    executor = so.Group([so.sin(x), so.square(x)]).bind([np.zeros(2, np.float32)])
    executor.forward(is_train=True, x=np.array([0.0, 1.0], np.float32))
    executor.backward([jnp.array([2.0, 0.0]), jnp.array([0.0, 3.0])])
    assert executor.grad_dict["x"].tolist() == [2.0, 6.0]
    with pytest.raises(FeedError, match="one for each output"):
        executor.backward([jnp.zeros(2)])
    with pytest.raises(FeedError, match="cotangent 0"):
        executor.backward([jnp.zeros(3), jnp.zeros(2)])


def test_states_are_updated_by_training_only():
    executor = bound()
    before = np.array(executor.aux_dict["bn_moving_mean"])
    executor.forward()
    assert np.array_equal(executor.aux_dict["bn_moving_mean"], before)
    executor.forward(is_train=True)
    assert not np.array_equal(executor.aux_dict["bn_moving_mean"], before)


def test_prediction_ignores_dropout():
    executor = bound()
    first, second = (float(executor.forward()[0]) for _ in range(2))
    assert first == second
    training = {float(executor.forward(is_train=True)[0]) for _ in range(5)}
    assert len(training) > 1


def test_backward_runs_no_forward_operator_again():
    x = so.var("x", shape=(4, 4))
    y = so.exp(so.matmul(x, x))
    executor = y.bind({"x": np.eye(4, dtype=np.float32)})
    executor.forward(is_train=True)
    half = executor._modes[True].half(("x",))
    kept = executor._kept.variables
    residuals = executor._kept.residuals
    text = half._backward.lower(kept, residuals, [jnp.ones((4, 4))]).as_text()
    assert "exponential" not in text
    assert text.count("dot_general") == 2


def test_what_was_compiled_serves_the_next_executor_of_the_graph():
    def compiled():
        x = so.var("x", shape=(3, 5, 7))
        executor = so.sin(x).bind({"x": np.ones((3, 5, 7), np.float32)})
        executor.forward(is_train=True)
        return executor._modes[True].half(("x",)).forward

    assert compiled() is compiled()


def test_integers_have_no_gradient():
    table, ids = so.var("table", shape=(5, 2)), so.var("ids", shape=(3,), dtype="int32")
    y = so.take(table, ids, axis=0)
    arrays = {"table": np.ones((5, 2), np.float32), "ids": np.array([1, 1, 4], np.int32)}
    executor = y.bind(arrays)
    executor.forward(is_train=True)
    executor.backward()
    assert set(executor.grad_dict) == {"table"}
    assert executor.grad_dict["table"][:, 0].tolist() == [0.0, 2.0, 0.0, 0.0, 1.0]
    with pytest.raises(GradientError, match="'ids' must be of a floating dtype"):
        y.bind(arrays, grad_req={"ids": "write"})


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: network().simple_bind(), UnknownTypeError, "data"),
        (lambda: network().simple_bind(dta=(6, 3)), FeedError, "did you mean 'data'"),
        (lambda: network().simple_bind(grad_req="wrote", data=(6, 3)), ArgumentError, "'wrote'"),
        (lambda: network().bind({"data": np.zeros((6, 3))}), FeedError, "got no fc_weight"),
        (lambda: network().bind([np.zeros(3)]), FeedError, "one array for each"),
        (lambda: bound().forward(data=np.zeros((5, 3))), FeedError, r"\(6, 3\) must be fed"),
        (lambda: bound().backward(), GradientError, "must come first"),
    ],
)
def test_misuse(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_refused_feed_changes_nothing():
    executor = bound()
    before = {name: np.array(array) for name, array in executor.arg_dict.items()}
    good = np.ones((6, 3), np.float32)
    with pytest.raises(FeedError):
        executor.forward(data=good, fc_bias=np.zeros(99, np.float32))
    assert all(np.array_equal(before[n], a) for n, a in executor.arg_dict.items())


def test_only_what_the_gradient_reads_is_kept():
    x, y, z = (so.var(name, shape=(2,)) for name in "xyz")
    executor = (x * z + y).bind(dict.fromkeys("xyz", np.ones(2)), grad_req={"x": "write"})
    executor.forward(is_train=True, **{name: jnp.full(2, 3.0) for name in "xyz"})
    x_held, y_held, z_held = (weakref.ref(executor.arg_dict[name]) for name in "xyz")
    executor.arg_dict.update({name: jnp.zeros(2) for name in "xyz"})
    assert x_held() is None
    assert y_held() is None
    assert z_held() is not None
    executor.backward()
    assert executor.grad_dict["x"].tolist() == [3.0, 3.0]
    assert executor.forward()[0].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("copied", [copy.copy, lambda one: pickle.loads(pickle.dumps(one))])
def test_an_executor_is_pickled(copied):
    x, w = so.var("x", shape=(3,)), so.var("w", shape=(3,))
    loss = so.sum(so.batch_norm(so.reshape(x * w, shape=(3, 1)), name="bn"))
    arrays = {
        name: jnp.ones(shape)
        for name, shape in zip(loss.list_arguments(), loss.infer_shape()[0], strict=True)
    }
    states = {"bn_moving_mean": jnp.zeros(1), "bn_moving_var": jnp.ones(1)}
    requests = dict.fromkeys(arrays, "write_inplace") | {"x": "null", "w": "add"}
    executor = loss.bind(arrays, grad_req=requests, aux_states=states)
    executor.forward(is_train=True, x=jnp.arange(3.0))
    executor.backward()
    other = copied(executor)
    for one in (executor, other):
        one.forward(is_train=True)
        one.backward()
    for attribute in ("arg_dict", "aux_dict", "grad_dict", "output_dict"):
        mine, theirs = getattr(executor, attribute), getattr(other, attribute)
        assert list(mine) == list(theirs)
        assert all(np.array_equal(mine[name], theirs[name]) for name in mine)


def test_places_of_gradients_that_nobody_asks_for():
    a, b = so.var("a", shape=2), so.var("b", shape=2)
    arrays = {"a": np.array([1.0, 2.0], np.float32), "b": np.array([3.0, 4.0], np.float32)}
    places = {name: np.zeros(2, np.float32) for name in arrays}

    def gradients(requests):
        bound = so.sum(a * b).bind(arrays, args_grad=places, grad_req=requests)
        bound.forward(is_train=True)
        bound.backward()
        return {k: v.tolist() for k, v in bound.grad_dict.items()}

    assert gradients({"b": "null"}) == {}
    assert gradients({"a": "write", "b": "null"}) == gradients({"a": "write"}) == {"a": [3.0, 4.0]}
    assert gradients(["null", "add"]) == {"b": [1.0, 2.0]}
    places = [None, np.ones(2, np.float32)]
    assert gradients(["write", "add"]) == {"a": [3.0, 4.0], "b": [2.0, 3.0]}
    assert so.sum(a * b).bind(arrays, grad_req={"b": "add"}).grad_dict.keys() == {"b"}
