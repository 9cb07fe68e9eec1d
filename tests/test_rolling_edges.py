"""Loops of repeated blocks at their edges: loss layers, names of stacks, dicts of arrays, NaNs."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from registry.errors import FeedError, NotLinearError
from registry.xla.unstack import put_together
from symop.lowering.steps import Schedule
from symop.passes.roll_loops.switch import is_rolling

STEPS, SHAPE = 12, (4, 5)
LAYERS = {
    "linear_regression_output": so.linear_regression_output,
    "logistic_regression_output": so.logistic_regression_output,
    "mae_regression_output": so.mae_regression_output,
    "svm_output": lambda h, label: so.svm_output(h, so.sum(label, axis=1) * 0.0),
    "softmax_output": lambda h, label: so.softmax_output(h, so.sum(label, axis=1) * 0.0),
    "make_loss": lambda h, label: so.make_loss(so.square(h - label)),
}


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def drawn(symbol):
    """An array for each argument."""
    draw, (shapes, *_) = np.random.default_rng(0), symbol.infer_shape()
    names = symbol.list_arguments()
    return {n: jnp.asarray(0.3 * draw.normal(size=s)) for n, s in zip(names, shapes, strict=True)}


def losing(layer):
    """A net with a loss layer at each step, which hands its own gradient back."""
    h, label = (so.var(name, shape=SHAPE, dtype="float64") for name in ("x", "label"))
    losses = []
    for i in range(STEPS):
        h = so.tanh(h @ so.var(f"w{i}", shape=(5, 5), dtype="float64"))
        losses.append(LAYERS[layer](h, label))
    return so.sum(so.add_n(*losses))


def by_jax(symbol, arrays):
    """JAX's gradient by ``x`` of what the symbol lowers to."""
    function = symbol.to_jax()
    return jax.grad(lambda x: function(**{**arrays, "x": x}))(arrays["x"])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("layer", LAYERS)
def test_loss_layers_in_steps_have_their_gradients_under_jax(layer):
    loss = losing(layer)
    arrays = drawn(loss)
    assert so.loops(loss).made
    with so.rolling(False):
        expected = by_jax(loss, arrays)
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(by_jax(loss, arrays), expected, rtol=1e-12)
    found = so.value_and_grad(loss, ["x"])(**arrays)[1]["x"]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("layer", LAYERS)
def test_loss_layers_in_steps_have_no_forward_mode(layer):
    loss = losing(layer)
    arrays = drawn(loss)
    x = so.var("x", shape=SHAPE, dtype="float64")
    with pytest.raises(NotLinearError):
        so.jvp(loss, [x], [so.var("t", shape=SHAPE, dtype="float64")])
    function = loss.to_jax()
    with pytest.raises(NotLinearError, match="reverse mode"):
        jax.jvp(lambda x: function(**{**arrays, "x": x}), (arrays["x"],), (arrays["x"],))


def test_a_scan_that_collects_a_loss_layer_is_not_linear_either():
    h, label = (so.var(name, shape=SHAPE, dtype="float64") for name in ("x", "label"))
    w = so.var("w", shape=(STEPS, 5, 5), dtype="float64")

    def step(h, w):
        h = so.tanh(h @ w)
        return h, so.linear_regression_output(h, label)

    loss = so.sum(so.scan(step, h, w)[1])
    arrays = drawn(loss)
    expected = so.value_and_grad(loss, ["x"])(**arrays)[1]["x"]
    np.testing.assert_allclose(by_jax(loss, arrays), expected, rtol=1e-12)
    assert np.abs(expected).max() > 1e-3
    with pytest.raises(NotLinearError):
        so.jvp(loss, [h], [so.var("t", shape=SHAPE, dtype="float64")])


def residual(first="x", layers=STEPS):
    h = so.var(first, shape=SHAPE)
    for i in range(layers):
        h = so.tanh(h @ so.var(f"w{i}", shape=(5, 5)))
    return so.mean(h)


def test_a_stack_does_not_take_the_name_of_a_variable():
    loss = residual(first="w0..w11")
    function = so.value_and_grad(loss, stacked=True)
    assert function.arguments == ["w0..w11", "w0..w11'"]
    arrays = drawn(loss)
    found = function.unstack(function(**function.stack(arrays))[1])
    expected = so.value_and_grad(loss)(**arrays)[1]
    assert found.keys() == expected.keys()
    for name, other in expected.items():
        np.testing.assert_allclose(found[name], other, rtol=1e-12)


def test_a_stack_is_not_made_of_some_of_its_arrays():
    function = so.value_and_grad(residual(), stacked=True)
    arrays = drawn(residual())
    del arrays["w7"]
    with pytest.raises(FeedError, match=r"all must be given or none, got no w7"):
        function.stack(arrays)
    assert function.stack({"x": arrays["x"]}).keys() == {"x"}


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 200, 64 * 64 + 1])
def test_arrays_are_put_together_in_their_order(count):
    parts = [np.full((2,), i) for i in range(count)]
    np.testing.assert_array_equal(put_together(parts), np.stack(parts))


def test_the_arrays_of_a_stacked_executor_are_a_tree_and_a_dict():
    loss = residual()
    executor = loss.simple_bind(stacked=True)
    executor.copy_params_from(drawn(loss))
    executor.forward(is_train=True)
    executor.backward()
    held = executor.grad_dict
    doubled = jax.tree.map(lambda one: 2 * one, held)
    assert isinstance(doubled, dict)
    assert doubled.keys() == held.keys() == held.copy().keys()
    for name, one in held.items():
        np.testing.assert_array_equal(doubled[name], 2 * one)
    assert (held | {"more": 1})["more"] == 1
    assert ({"w0": 1} | held)["w0"] is not None
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(held)]
    assert "['w3']" in paths


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="only XLA's CPU loops are slow there")
def test_what_jax_differentiates_is_told_apart():
    h = so.var("x", shape=(1, 3, 8, 8))
    for i in range(16):
        w, b = so.var(f"w{i}", shape=(3, 3, 3, 3)), so.var(f"b{i}", shape=(3,))
        h = so.relu(so.convolution(h, w, b, channels=3, kernel=(3, 3), padding=(1, 1)))
    loss = so.sum(h)
    assert so.loops(loss).made
    told = so.loops(loss, by_jax=True)
    assert not told.made
    assert "JAX would transpose convolutions" in str(told)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="the runtime of XLA's CPU backend")
def test_few_steps_with_convolutions_are_no_loop_unless_they_are_stacked():
    def loss(times):
        h = so.var("x", shape=(1, 3, 8, 8))
        for i in range(times):
            h = so.tanh(so.convolution(h, channels=3, kernel=3, padding=1, name=f"layer{i}"))
        return so.sum(h)

    assert "few steps with convolutions run faster" in str(so.loops(loss(15)))
    assert so.loops(loss(15), stacked=True).made
    assert so.loops(loss(16)).made
    for times, loops in ((15, 0), (16, 2)):
        names = [one for one in loss(times).list_arguments() if one.endswith("weight")]
        graph = so.Group([loss(times), *so.grad(loss(times), names)])
        assert len(so.loops(graph).made) == loops


@pytest.mark.parametrize("option", ["jax_debug_nans", "jax_debug_infs"])
def test_nothing_rolls_while_jax_looks_for_nans(option):
    assert is_rolling()
    before = getattr(jax.config, option)
    jax.config.update(option, True)
    try:
        assert not is_rolling()
    finally:
        jax.config.update(option, before)
    assert is_rolling()


def test_an_error_tells_which_of_the_like_operators_it_is():
    h = x = so.var("x", shape=())
    for _ in range(20):
        h = so.log(so.exp(h) - 0.25)
    logs = itertools.count(1)

    def how(node):
        def call(value, *_):
            if node.op.name == "log" and next(logs) == 8:
                raise ValueError("as this test wants it")
            return value

        return call

    schedule = Schedule(h.nodes, x.nodes, how, training=False)
    with pytest.raises(ValueError, match="as this test wants it") as raised:
        schedule([1.0])
    (note,) = raised.value.__notes__
    assert note.startswith("  in log, number 8 of 20\n  built at ")
    assert "test_rolling_edges.py" in note
