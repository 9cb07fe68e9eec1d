"""Loops and choices of ``mx.sym.contrib`` against those of ``mx.nd.contrib``, which Python runs."""

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
        np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), rtol=1e-6)


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
    with pytest.raises(MXNetError, match="use all"):
        sym.contrib.foreach(lambda row, states: (row, [row]), x, [s])
    with pytest.raises(MXNetError, match="1 states"):
        sym.contrib.foreach(lambda row, states: (row, []), x, [s])
    with pytest.raises(MXNetError, match="must use and return"):
        sym.contrib.while_loop(lambda i: i < 3, lambda i: ([], []), [x], 3)
    with pytest.raises(MXNetError, match="as many outputs"):
        sym.contrib.cond(x, lambda: [x, s], lambda: x)
    with pytest.raises(MXNetError, match="symbols must be given"):
        sym.contrib.foreach(lambda row, states: (row, [3]), x, [s])
