"""Graphs for inference: what follows a layer becomes part of its weight and bias."""

import jax
import numpy as np
import pytest

import symop as so
from registry.errors import FeedError, UnknownTypeError

GENERATOR = np.random.default_rng(0)


def drawn(symbol, **types):
    """Arrays for the variables of a symbol: positive variances, and centered others."""
    shapes, _, states = symbol.infer_shape(**types)
    dtypes, _, wide = symbol.with_types(**types).infer_type()
    names = [*symbol.list_arguments(), *symbol.list_auxiliary_states()]
    arrays = {}
    for name, shape, dtype in zip(names, [*shapes, *states], [*dtypes, *wide], strict=True):
        low = 0.5 if name.endswith("var") else -1.0
        arrays[name] = GENERATOR.uniform(low, 1.5, shape).astype(dtype)
    return arrays


def calls(symbol):
    """How often the graph calls each operator."""
    counts = {}
    for line in str(symbol).splitlines():
        if " = " in line and "(" in line:
            name = line.partition(" = ")[2].partition("(")[0]
            counts[name] = counts.get(name, 0) + 1
    return counts


def both(symbol, inputs=("x",), **types):
    """The graph with folded parameters, after a check that it computes the same."""
    arrays = drawn(symbol, **types)
    lean = symbol.for_inference(**types)
    assert set(lean.list_inputs()) <= set(symbol.list_inputs())
    expected = symbol.eval(arrays)
    close(lean.eval({n: arrays[n] for n in lean.list_inputs()}), expected)
    small, own = lean.fold({n: one for n, one in arrays.items() if n not in inputs})
    fed = {n: arrays[n] for n in inputs}
    close(small.eval({**own, **fed}), expected)
    return small


def close(found, expected):
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-4)


def block(x, channels, name, stride=1):
    """A residual block, in the order of ResNet."""
    y = so.convolution(
        x, channels=channels, kernel=3, padding=1, stride=stride, use_bias=False, name=f"{name}_a"
    )
    y = so.relu(so.batch_norm(y, name=f"{name}_norm_a"))
    y = so.convolution(y, channels=channels, kernel=3, padding=1, name=f"{name}_b")
    y = so.batch_norm(y, name=f"{name}_norm_b")
    if stride > 1:
        x = so.convolution(x, channels=channels, kernel=1, stride=stride, name=f"{name}_c")
        x = so.batch_norm(x, name=f"{name}_norm_c")
    return so.relu(x + y)


def resnet(x):
    """A small residual network with dropout and a scaled head."""
    x = so.convolution(x, channels=8, kernel=3, padding=1, name="stem")
    x = so.relu(so.batch_norm(x, name="stem_norm"))
    x = block(block(x, 8, "one"), 16, "two", stride=2)
    x = so.dropout(so.mean(x, axis=(2, 3)), rate=0.5)
    return so.fully_connected(x, units=10, name="head") * 0.5


class TestNetworks:
    def test_a_residual_network_computes_the_same_by_fewer_operators(self):
        net = resnet(so.var("x", shape=(4, 3, 8, 8)))
        small = both(net)
        assert calls(small) == {
            "convolution": 6, "relu": 5, "add": 2, "mean": 1, "fully_connected": 1,
        }  # fmt: skip
        assert sum(calls(net).values()) == 24  # with the random key
        assert small.list_auxiliary_states() == []
        assert len(small.list_arguments()) == 1 + 2 * 7

    def test_the_parameters_keep_their_names(self):
        net = resnet(so.var("x", shape=(4, 3, 8, 8)))
        arrays = drawn(net)
        _, own = net.for_inference().fold({n: one for n, one in arrays.items() if n != "x"})
        assert {"stem_weight", "stem_bias", "one_a_weight", "one_a_bias", "head_bias"} <= set(own)
        assert own["stem_weight"].shape == arrays["stem_weight"].shape
        assert not np.allclose(own["stem_weight"], arrays["stem_weight"])

    def test_a_report_tells_what_was_folded(self):
        net = resnet(so.var("x", shape=(4, 3, 8, 8)))
        report = so.explain(net.for_inference())
        assert [str(one).partition(" at ")[0] for one in report.rewritten] == [
            *["batch_norm of convolution became convolution"] * 6,
            "multiply of fully_connected became fully_connected",
        ]
        assert str(report.rewritten[0]) in str(report)
        assert so.explain(net).rewritten == ()

    def test_shapes_may_be_left_open(self):
        net = resnet(so.var("x"))
        small = both(net, x=(4, 3, 8, 8))
        assert "batch_norm" not in calls(small)
        assert small.infer_shape(x=(7, 3, 8, 8))[1] == [(7, 10)]
        with pytest.raises(UnknownTypeError, match="those of x"):
            net.for_inference()

    def test_files(self):
        lean = resnet(so.var("x", shape=(4, 3, 8, 8))).for_inference()
        assert so.load_json(lean.tojson()).same_as(lean)

    def test_it_draws_nothing_and_updates_nothing(self):
        net = so.dropout(so.batch_norm(so.var("x", shape=(4, 3)), name="n"), rate=0.5)
        lean = net.for_inference()
        arrays = drawn(net)
        out, updates = lean.to_jax(is_train=True)(**arrays)
        close(out, net.eval(arrays))
        assert all(np.array_equal(updates[n], arrays[n]) for n in updates)

    def test_gradients_are_those_of_the_graph(self):
        net = so.sum(so.tanh(resnet(so.var("x", shape=(2, 3, 4, 4)))))
        arrays = drawn(net)
        names = ["x", "stem_weight", "one_norm_a_gamma", "head_bias"]
        close(
            so.value_and_grad(net.for_inference(), names)(**arrays),
            so.value_and_grad(net, names)(**arrays),
        )


def image(*shape):
    return so.var("x", shape=shape or (2, 6, 5, 5))


def s(*shape):
    return so.var("s", shape=shape)


def t(*shape):
    return so.var("t", shape=shape)


def conv(x, **how):
    return so.convolution(x, channels=4, kernel=3, name="c", **how)


FOLDED = {
    "channels last": lambda: so.batch_norm(
        conv(image(2, 5, 5, 3), layout="NHWC"), axis=-1, name="n"
    ),
    "channels of the weight last": lambda: so.batch_norm(
        conv(image(2, 5, 6, 3), layout="NHWC", weight_layout="HWIO"), axis=-1, name="n"
    ),
    "channels of the weight on both sides": lambda: conv(image(), weight_layout="OHWI") * 3.0,
    "groups": lambda: so.batch_norm(conv(image(), groups=2), name="n"),
    "transposed": lambda: so.batch_norm(
        so.transposed_convolution(image(), channels=4, kernel=2, use_bias=False, name="c"),
        name="n",
    ),
    "one axis": lambda: so.batch_norm(conv(image(2, 6, 9)), name="n", eps=0.1),
    "number": lambda: conv(image()) * 3.0 + 1.0,
    "scale": lambda: so.scale(-conv(image()), scale=0.5),
    "of channels": lambda: conv(image()) * s(4, 1, 1) - t(1, 4, 1, 1),
    "subtracted": lambda: t(4, 1, 1) - conv(image(), use_bias=False),
    "divided": lambda: conv(image()) / s(4, 1, 1) / 2.0,
    "one number": lambda: conv(image()) * s(1, 1) + t(),
    "dense": lambda: so.batch_norm(so.fully_connected(image(), units=4, name="f"), name="n"),
    "rows": lambda: so.fully_connected(image(2, 3, 6), units=4, flatten=False) * s(4) + t(4),
    "product": lambda: (image(3, 6) @ so.var("w", shape=(6, 4)) + t(4)) * s(4),
    "stack of products": lambda: so.batch_norm(
        so.dot(image(2, 3, 6), so.var("w", shape=(6, 4))), axis=2, name="n"
    ),
    "vector": lambda: (image(6) @ so.var("w", shape=(6, 4))) * s(4),
}


@pytest.mark.parametrize("build", FOLDED.values(), ids=FOLDED)
def test_what_is_folded(build):
    symbol = build()
    counts = calls(both(symbol))
    layer = set(counts) & {
        "convolution", "transposed_convolution", "fully_connected", "matmul", "dot"
    }  # fmt: skip
    product = bool(layer & {"matmul", "dot"})
    shifts = product and "vector" not in str(symbol)
    assert sum(counts.values()) == 1 + (shifts and "add" in counts)
    assert len(layer) == 1


KEPT = {
    "a result that is read twice": (lambda y: so.relu(y * 2.0) + y, "multiply"),
    "numbers of rows": (lambda y: y * s(3, 1), "multiply"),
    "numbers of examples": (lambda y: y * s(2, 1, 1, 1), "multiply"),
    "a wider result": (lambda y: so.cast(y, dtype="float16") * s(4, 1, 1), "multiply"),
    "statistics of another axis": (lambda y: so.batch_norm(y, axis=2, name="n"), "batch_norm"),
    "a number over the result": (lambda y: 1.0 / (y + 9.0), "divide"),
    "an activation in between": (lambda y: so.relu(y) * 2.0, "multiply"),
}


@pytest.mark.parametrize(("build", "remaining"), KEPT.values(), ids=KEPT)
def test_what_is_not_folded(build, remaining):
    small = both(build(conv(image())))
    assert calls(small)[remaining] == 1


def test_half_precision_is_folded_in_the_dtype_of_the_statistics():
    x = so.var("x", shape=(64, 16), dtype="bfloat16")
    w = so.var("w", shape=(4, 16), dtype="bfloat16")
    y = so.fully_connected(x, w, so.var("b", shape=(4,), dtype="bfloat16"), units=4)
    states = [so.var(n, shape=(4,)) for n in ("gamma", "beta", "mean", "var")]
    net = so.batch_norm(y, *states)
    arrays = drawn(net)
    lean = net.for_inference()
    assert "rsqrt" in calls(lean)
    out = lean.eval(arrays)
    assert out.dtype == jax.numpy.bfloat16
    np.testing.assert_allclose(
        np.asarray(out, np.float32), np.asarray(net.eval(arrays), np.float32), rtol=0.05, atol=0.1
    )


class TestInputs:
    def test_a_gate_that_depends_on_the_data_stays(self):
        x = image(1, 4, 5, 5)
        y = conv(x, padding=1)
        gate = so.sigmoid(so.mean(x, axis=(2, 3), keepdims=True))
        assert calls(both(y * gate))["multiply"] == 1
        assert calls(both(y + x, ("x",)))["add"] == 1

    def test_inputs_say_what_is_fed(self):
        y = conv(image(1, 6, 5, 5)) * s(1, 4, 1, 1)
        assert "multiply" in calls(y.for_inference())  # another batch may follow
        arrays = drawn(y)
        small, own = y.for_inference(["x"]).fold({n: arrays[n] for n in arrays if n != "x"})
        assert calls(small) == {"convolution": 1}
        close(small.eval({**own, "x": arrays["x"]}), y.eval(arrays))
        stays = y.for_inference(["x", "s"])
        assert stays.same_as(y)
        with pytest.raises(FeedError, match="'z'"):
            y.for_inference(["z"])


class TestFold:
    def test_named_after_the_call_that_reads_them(self):
        x, w = so.var("x", shape=(3,)), so.var("w", shape=(4, 3))
        rest, arrays = so.matmul(so.exp(w), x, name="y").fold({"w": np.zeros((4, 3))})
        assert rest.list_arguments() == ["y_x", "x"]
        np.testing.assert_array_equal(arrays["y_x"], np.ones((4, 3), np.float32))

    def test_names_are_distinct(self):
        x, w = so.var("y_x", shape=(3,)), so.var("w", shape=(4, 3))
        y = so.matmul(so.exp(w), x, name="y")
        rest, arrays = (y * so.sin(w[:, 0]) * so.cos(w[:, 1])).fold({"w": np.ones((4, 3))})
        assert rest.list_arguments() == ["y_x0", "y_x", "folded", "folded0"]
        assert set(arrays) == {"y_x0", "folded", "folded0"}

    def test_a_variable_that_remains_keeps_its_array(self):
        x, w = so.var("x", shape=(3,)), so.var("w", shape=(3,))
        rest, arrays = (x * w + so.exp(w)).fold({"w": np.ones(3)})
        assert sorted(arrays) == ["folded", "w"]
        close(rest.eval({**arrays, "x": np.ones(3)}), np.float32(1 + np.e) * np.ones(3, np.float32))

    def test_large_values_and_draws_are_computed_in_each_run(self):
        x, w = so.var("x", shape=(9, 3)), so.var("w", shape=(3,))
        y = x + so.broadcast_to(w, shape=(9, 3)) + so.random.normal(shape=(3,))
        rest, arrays = y.fold({"w": np.ones(3)})
        assert list(arrays) == ["w"]
        assert rest.same_as(y)

    def test_a_costly_value_may_be_large(self):
        a, b, x = so.var("a", shape=(9, 1)), so.var("b", shape=(1, 9)), so.var("x", shape=(9, 9))
        rest, arrays = (x + a @ b).fold({"a": np.ones((9, 1)), "b": np.ones((1, 9))})
        assert [one.shape for one in arrays.values()] == [(9, 9)]
        assert calls(rest) == {"add": 1}

    def test_a_whole_graph(self):
        rest, arrays = so.exp(so.var("w", shape=(2,))).fold({"w": np.zeros(2)})
        assert rest.list_arguments() == list(arrays)
        close(rest.eval(arrays), np.ones(2, np.float32))

    def test_names_are_checked(self):
        with pytest.raises(FeedError, match="'v'"):
            so.var("w").exp().fold({"v": 1.0})
        with pytest.raises(FeedError, match="shape"):
            so.var("w", shape=(2,)).exp().fold({"w": np.ones(3)})
