"""``x.at[index].set(value)`` and its like against JAX's, on values of every kind."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from registry.errors import ArgumentError, BoundsError, DTypeError
from symop import autograd, nd

X = np.arange(12, dtype=np.float32).reshape(3, 4) + 1
BOXES = {
    "integer": 1,
    "negative": -1,
    "slice": slice(1, None),
    "corner": (slice(None, 2), slice(1, 3)),
    "entry": (2, 3),
    "dots": (..., 2),
    "new axis": (None, 1),
    "all": ...,
}
SCATTERED = {
    "step": slice(None, None, 2),
    "reversed": (slice(None), slice(None, None, -1)),
    "rows": np.array([2, 0]),
    "columns": (slice(None), np.array([3, 1])),
    "empty": slice(3, 3),
}
INDICES = BOXES | SCATTERED
METHODS = ("set", "add", "subtract", "multiply", "divide", "power", "min", "max")


def value_for(index, *, number=False):
    shape = () if number else X[index].shape
    return np.linspace(0.5, 2.5, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def kinds(change, value):
    """The result of a change of each kind of value."""
    known, open_ = so.var("x", shape=X.shape), so.var("x")
    program = so.Program()
    x, v = program.data("x", X.shape), program.data("v", np.shape(value))
    fetched = change(x, v)
    feed = {"x": X, "v": value}
    return {
        "symbol": change(known, value).eval(x=X),
        "two symbols": change(known, so.var("v", shape=np.shape(value))).eval(**feed),
        "unknown shapes": change(open_, so.var("v")).eval(**feed),
        "program": program.run(feed if "v" in str(program) else {"x": X}, fetched),
        "array": np.asarray(change(nd.array(X), nd.array(value))),
    }


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.sampled(5)
def test_values(method, name):
    index = INDICES[name]
    value = value_for(index)
    expected = getattr(jnp.asarray(X).at[index], method)(value)
    for kind, found in kinds(lambda x, v: getattr(x.at[index], method)(v), value).items():
        np.testing.assert_allclose(found, expected, rtol=1e-6, err_msg=kind)


@pytest.mark.parametrize("name", INDICES)
def test_numbers_broadcast(name):
    index = INDICES[name]
    x = so.var("x", shape=X.shape)
    expected = jnp.asarray(X).at[index].set(7.0)
    np.testing.assert_allclose(x.at[index].set(7).eval(x=X), expected)
    assert x.at[index].set(7).dtype == np.float32


def test_repeated_positions():
    index = np.array([1, 1, 2])
    values = np.array([[1.0], [2.0], [3.0]], np.float32)
    x = so.var("x", shape=X.shape)
    expected = jnp.asarray(X).at[index].add(values)
    np.testing.assert_allclose(x.at[index].add(values).eval(x=X), expected)
    last = x.at[index].set(values).eval(x=X)
    np.testing.assert_allclose(last[1:], [[2.0] * 4, [3.0] * 4])
    for refused in (x.at[index].multiply, x.at[so.var("i", shape=(2,), dtype="int32")].max):
        with pytest.raises(ArgumentError, match="positions must be"):
            refused(2.0)


def test_positions_that_a_graph_computes():
    x, i = so.var("x", shape=X.shape), so.var("i", shape=(2,), dtype="int32")
    rows = np.array([2, -3], np.int32)
    for method in ("set", "add"):
        found = getattr(x.at[i], method)(5.0).eval(x=X, i=rows)
        np.testing.assert_allclose(found, getattr(jnp.asarray(X).at[rows], method)(5.0))
    beyond = x.at[i].set(5.0).eval(x=X, i=np.array([7, 1], np.int32))
    np.testing.assert_allclose(beyond, jnp.asarray(X).at[1].set(5.0))
    eager = nd.array(X).at[nd.array(rows)].set(5.0)
    np.testing.assert_allclose(np.asarray(eager), jnp.asarray(X).at[rows].set(5.0))


@pytest.mark.parametrize("name", ["corner", "rows", "step"])
@pytest.mark.parametrize("method", ["set", "add", "multiply"])
def test_gradients(method, name):
    index = INDICES[name]
    value, weights = value_for(index), np.cos(X)

    def loss(x, v):  # JAX multiplies by the gradient only at positions that are known to differ
        return jnp.sum(weights * getattr(x.at[index], method)(v, unique_indices=True))

    expected = jax.grad(loss, argnums=(0, 1))(jnp.asarray(X), jnp.asarray(value))
    x, v = so.var("x", shape=X.shape), so.var("v", shape=value.shape)
    changed = so.sum(getattr(x.at[index], method)(v) * weights)
    for gradient, wanted in zip(so.grad(changed, [x, v]), expected, strict=True):
        found = gradient.eval({name: {"x": X, "v": value}[name] for name in ("x", "v")})
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
    a, b = nd.array(X), nd.array(value)
    a.attach_grad()
    b.attach_grad()
    with autograd.record():
        total = (getattr(a.at[index], method)(b) * nd.array(weights)).sum()
    total.backward()
    for array, wanted in zip((a, b), expected, strict=True):
        np.testing.assert_allclose(np.asarray(array.grad), wanted, rtol=1e-6)


def test_get_apply_and_errors():
    x = so.var("x", shape=X.shape)
    np.testing.assert_allclose(x.at[1].get().eval(x=X), X[1])
    squared = jnp.asarray(X).at[1].apply(jnp.square)
    np.testing.assert_allclose(x.at[1].apply(so.square).eval(x=X), squared)
    with pytest.raises(DTypeError, match="must be real"):
        x.at[1].set(1j)
    with pytest.raises(BoundsError):
        x.at[5].set(1.0)
    with pytest.raises(BoundsError, match=r"x.at\[...\]"):
        x.at[np.array([5])].set(1.0)
    integers = so.var("i", shape=(2,), dtype="int32")
    assert integers.at[0].set(2.7).eval(i=[1, 1]).tolist() == [2, 1]


def test_methods_of_arrays_on_symbols():
    x = so.var("x", shape=(3, 4))
    np.testing.assert_allclose(x.reshape(2, 6).eval(x=X), X.reshape(2, 6))
    np.testing.assert_allclose(x.reshape((2, -1)).eval(x=X), X.reshape(2, -1))
    np.testing.assert_allclose(x.reshape(shape=(12,)).eval(x=X), X.ravel())
    np.testing.assert_allclose(x.transpose(1, 0).eval(x=X), X.T)
    np.testing.assert_allclose(x.transpose((1, 0)).eval(x=X), X.T)
    np.testing.assert_allclose(x.transpose().eval(x=X), X.T)
    np.testing.assert_allclose(x.T.eval(x=X), X.T)
    stack = so.var("x", shape=(2, 3, 4))
    assert stack.mT.shape == (2, 4, 3)
    assert stack.reshape(6, 4, name="flat").name == "flat"
    unknown = so.var("x")
    np.testing.assert_allclose(unknown.T.eval(x=X), X.T)
    np.testing.assert_allclose(unknown.mT.eval(x=X), X.T)
    np.testing.assert_allclose(unknown.reshape(-1).eval(x=X), X.ravel())
    program = so.Program()
    variable = program.data("x", X.shape)
    np.testing.assert_allclose(program.run({"x": X}, variable.T.reshape(2, 6)), X.T.reshape(2, 6))
