"""Loops and choices of ``mx.sym.contrib`` against those of ``mx.nd.contrib``, which Python runs."""

import json

import numpy as np
import pytest

import symop.interop.mxnet as mx
from symop.interop.mxnet import MXNetError, nd, sym

ARRAYS = {"x": np.arange(6.0).reshape(3, 2), "s": np.ones(2), "w": np.full(2, 0.5)}


@pytest.fixture
def given():
    return {name: nd.array(one) for name, one in ARRAYS.items()}


def close(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), rtol=1e-6, atol=1e-6)


def running(space, x, s, w):
    """A loop whose body reads a state, a variable, and what was computed outside of it."""
    twice = w * 2
    rows, (last,) = space.contrib.foreach(
        lambda row, states: (row * states[0] + twice, [states[0] + w]), x, [s]
    )
    return [rows, last]


def test_foreach(given):
    loop = sym.Group(running(sym, *map(sym.var, "xsw")))
    expected = running(nd, **given)
    assert loop.list_arguments() == ["x", "s", "w"]
    close(loop.eval(**given), expected)
    close(sym.load_json(loop.tojson()).eval(**given), expected)


def test_gradients_of_foreach(given):
    loop = sym.Group(running(sym, *map(sym.var, "xsw")))
    executor = loop.bind(mx.cpu(), given, {k: nd.zeros_like(one) for k, one in given.items()})
    executor.forward(is_train=True)
    executor.backward([nd.ones((3, 2)), nd.ones(2)])
    for one in given.values():
        one.attach_grad()
    with mx.autograd.record():
        rows, last = running(nd, **given)
        total = rows.sum() + last.sum()
    total.backward()
    close(executor.grad_dict.values(), [one.grad for one in given.values()])


def test_foreach_in_foreach():
    def body(row, states):
        found, (last,) = sym.contrib.foreach(
            lambda one, inner: (one * inner[0] + sym.var("w"), [inner[0] + 1]), row, states
        )
        return found, [last]

    rows, (last,) = sym.contrib.foreach(body, sym.var("m"), [sym.var("z")])
    found = sym.Group([rows, last]).eval(m=nd.ones((2, 3)), z=nd.ones(1), w=nd.ones(1))
    assert found[0].asnumpy().ravel().tolist() == [2, 3, 4, 5, 6, 7]
    assert found[1].asscalar() == 7


def test_while_loop():
    def loop(space, i, t, w):
        outputs, last = space.contrib.while_loop(
            lambda i, t: i < 3, lambda i, t: ([i * 2 + w], [i + 1, t + i]), [i, t], 5
        )
        return [*outputs, *last]

    arrays = {"i": nd.zeros(1), "t": nd.ones(1), "w": nd.ones(1)}
    made = sym.Group(loop(sym, *map(sym.var, "itw")))
    close(made.eval(**arrays), loop(nd, **arrays))
    with pytest.raises(MXNetError, match="max_iterations"):
        sym.contrib.while_loop(lambda i: i < 3, lambda i: ([], [i]), sym.var("i"))


@pytest.mark.parametrize(("entries", "expected"), [([1, 2], [0, 1]), ([1, 5], [2, 10])])
def test_cond(entries, expected):
    x, w = sym.var("x"), sym.var("w")
    made = sym.contrib.cond(x.sum() > 3, lambda: x * w, lambda: x - 1)
    found = made.eval(x=nd.array(entries), w=nd.array([2, 2]))[0]
    assert found.asnumpy().tolist() == expected


def test_wrong_bodies():
    x, s = sym.var("x"), sym.var("s")
    with pytest.raises(AssertionError, match="use all"):
        sym.contrib.foreach(lambda row, states: (row, [row]), x, [s])
    with pytest.raises(MXNetError, match="1 states"):
        sym.contrib.foreach(lambda row, states: (row, []), x, [s])
    with pytest.raises(ValueError, match="must use and return"):
        sym.contrib.while_loop(lambda i: i < 3, lambda i: ([], []), [x], 3)
    with pytest.raises(ValueError, match="as many outputs"):
        sym.contrib.cond(x, lambda: [x, s], lambda: x)
    with pytest.raises(MXNetError, match="symbols must be given"):
        sym.contrib.foreach(lambda row, states: (row, [3]), x, [s])


# Shapes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", [mx.rnn.RNNCell, mx.rnn.LSTMCell, mx.rnn.GRUCell])
def test_shapes_of_parameters_follow_from_a_body(cell):
    """Those of the weights, and of a state from another; values are those of the unrolled cell."""
    own = cell(4, prefix="cell_")
    states = [sym.var(f"s{i}") for i in range(len(own.state_info))]
    x = sym.var("x")
    out, last = sym.contrib.foreach(own, x, states)
    loop = sym.Group([out, *last])
    executor = loop.simple_bind(mx.cpu(), x=(3, 2, 5), s0=(2, 4))
    assert executor.arg_dict["cell_i2h_weight"].shape[1] == 5
    assert {executor.arg_dict[f"s{i}"].shape for i in range(len(states))} == {(2, 4)}
    draw = np.random.default_rng(0)
    for one in executor.arg_dict.values():
        one[:] = draw.normal(size=one.shape)
    slices = [sym.slice_axis(x, axis=0, begin=i, end=i + 1) for i in range(3)]
    steps, last = own.unroll(3, [sym.reshape(one, shape=(2, 5)) for one in slices], states)
    plain = sym.Group([sym.stack(*steps, axis=0), *last])
    close(executor.forward(), plain.eval(**executor.arg_dict))


def test_unknown_lengths_pass_through_a_loop():
    x, s = sym.var("x", shape=(0, 3, 0)), sym.var("s")
    out, last = sym.contrib.foreach(lambda row, state: (row + state, row), x, s)
    shapes, outputs, _ = sym.Group([out, last]).infer_shape_partial()
    assert (shapes, outputs) == ([(0, 3, 0), (3, 0)], [(0, 3, 0), (3, 0)])
    shapes, outputs, _ = sym.Group([out, last]).infer_shape_partial(s=(3, 4))
    assert (shapes, outputs) == ([(0, 3, 4), (3, 4)], [(0, 3, 4), (3, 4)])
    with pytest.raises(MXNetError, match=r"shapes must agree, got .* \(node '_foreach\d+'\)"):
        out.infer_shape(x=(5, 3, 4), s=(3, 2))


def test_shapes_follow_from_a_conditional_loop():
    weight = sym.var("w")
    out, last = sym.contrib.while_loop(
        lambda i, h: i < 3,
        lambda i, h: (h * 2, [i + 1, sym.FullyConnected(h, weight, num_hidden=4, no_bias=True)]),
        [sym.var("i"), sym.var("h")],
        max_iterations=5,
    )
    whole = sym.Group([out, *last])
    shapes, outputs, _ = whole.infer_shape(i=(1,), h=(2, 4))
    assert dict(zip(whole.list_arguments(), shapes, strict=True))["w"] == (4, 4)
    assert outputs == [(5, 2, 4), (1,), (2, 4)]


def test_shapes_follow_from_branches():
    x, w = sym.var("x"), sym.var("w")
    chosen = sym.contrib.cond(
        sym.sum(x) > 0,
        lambda: sym.FullyConnected(x, w, num_hidden=3, no_bias=True),
        lambda: sym.var("other"),
    )
    shapes, outputs, _ = chosen.infer_shape_partial(x=(2, 5))
    known = dict(zip(chosen.list_arguments(), shapes, strict=True))
    assert (known["w"], outputs) == ((3, 5), [(2, 3)])


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("func_var_locs", "(5,)"),
        ("func_var_locs", "(0, 1)"),
        ("func_input_locs", "(0, 9)"),
        ("cond_input_locs", "()"),
    ],
)
def test_wrong_places_in_a_file(name, places):
    w = sym.var("w")
    loop = sym.contrib.while_loop(lambda i: i < 3, lambda i: (i, i * w), sym.var("i"), 5)[0]
    record = json.loads(loop.tojson())
    node = next(one for one in record["nodes"] if one["op"] == "_while_loop")
    node["attrs"][name] = places
    with pytest.raises(MXNetError, match=r"_while_loop: the places .*_while_loop\d*'\)"):
        sym.load_json(json.dumps(record)).infer_shape(i=(1,), w=(1,))
