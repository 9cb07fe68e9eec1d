"""so.vmap on values of every kind, against jax.vmap."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from registry.errors import ArgumentError

X = np.random.default_rng(0).normal(size=(4, 3)).astype("f")
W = np.array([0.5, -1.0, 2.0], "f")


def ours(x, w):
    return so.sum(so.sin(x * w)), {"twice": x * 2}


def theirs(x, w):
    return jnp.sum(jnp.sin(x * w)), {"twice": x * 2}


def mapped_symbols():
    x, w = so.var("x", (4, 3)), so.var("w", (3,))
    return x, w, *so.vmap(lambda one: ours(one, w))(x)


def test_values_and_gradients_of_symbols():
    x, w, total, more = mapped_symbols()
    wanted, others = jax.vmap(theirs, (0, None))(X, W)
    np.testing.assert_allclose(total.eval(x=X, w=W), wanted, rtol=1e-6)
    np.testing.assert_array_equal(more["twice"].eval(x=X, w=W), others["twice"])

    def loss(x, w):
        return jnp.sum(jnp.square(jax.vmap(theirs, (0, None))(x, w)[0]))

    found = so.grad(so.sum(so.square(total)), [x, w])
    for one, other in zip(found, jax.grad(loss, (0, 1))(X, W), strict=True):
        np.testing.assert_allclose(one.eval(x=X, w=W), other, rtol=1e-5)
    second = so.grad(so.sum(so.square(found[1])), x)
    again = jax.grad(lambda x: jnp.sum(jnp.square(jax.grad(loss, 1)(x, W))))(X)
    np.testing.assert_allclose(second.eval(x=X, w=W), again, rtol=1e-4)
    tangent = so.jvp(total, w, np.ones(3, "f"))
    moved = jax.jvp(lambda w: jax.vmap(theirs, (0, None))(X, w)[0], (W,), (np.ones(3, "f"),))[1]
    np.testing.assert_allclose(tangent.eval(x=X, w=W), moved, rtol=1e-5)


def test_saved_and_loaded():
    x, w, total, _ = mapped_symbols()
    slope = so.grad(so.sum(total), w)
    again = so.load_json(slope.tojson())
    assert str(again) == str(slope)
    np.testing.assert_array_equal(again.eval(x=X, w=W), slope.eval(x=X, w=W))
    further = so.grad(so.sum(again), so.var("x", (4, 3)))
    assert further.shape == x.shape


@pytest.mark.parametrize("in_axes", [(1, None), (-1, 0), (0, 0)])
def test_axes(in_axes):
    def f(a, b):
        return so.sum(a * 2) * b

    a, b = X, np.arange(4, dtype="f") if in_axes[0] == 0 else np.arange(3, dtype="f")
    wanted = jax.vmap(lambda a, b: jnp.sum(a * 2) * b, in_axes)(a, b)
    symbols = so.vmap(f, in_axes)(so.var("a", a.shape), so.var("b", b.shape))
    np.testing.assert_allclose(symbols.eval(a=a, b=b), wanted, rtol=1e-6)
    np.testing.assert_allclose(so.vmap(f, in_axes)(so.nd.array(a), b).value, wanted, rtol=1e-6)
    np.testing.assert_allclose(so.vmap(f, in_axes)(a, b), wanted, rtol=1e-6)


def test_what_is_recorded_is_differentiated():
    x, w = so.nd.array(X), so.nd.array(W)
    w.attach_grad()
    with so.autograd.record():
        total = so.sum(so.vmap(lambda one: so.sum(so.sin(one * w)))(x))
    total.backward()
    wanted = jax.grad(lambda w: jnp.sum(jnp.sin(X * w)))(W)
    np.testing.assert_allclose(w.grad.value, wanted, rtol=1e-5)


def test_in_a_program():
    program = so.Program()
    x, w = program.data("x", (4, 3)), program.parameter("w", (3,), initial=1.0)
    loss = so.mean(so.vmap(lambda one: so.sum(so.square(one * w)))(x))
    ((_, slope),) = so.append_backward(loss)
    wanted = jax.grad(lambda w: jnp.mean(jnp.sum(jnp.square(X * w), 1)))(np.ones(3, "f"))
    np.testing.assert_allclose(program.run({"x": X}, slope), wanted, rtol=1e-6)
    assert so.Program.parse(str(program)) == program


def test_each_slice_draws_its_own_numbers():
    x = so.var("x", (50, 3))
    y = so.vmap(lambda one: so.dropout(one, rate=0.5))(x)
    slope = so.grad(so.sum(y), x)
    so.random.seed(3)
    ones = np.ones((50, 3), "f")
    value, factor = so.Group([y, slope]).eval(x=ones, is_train=True)
    np.testing.assert_array_equal(value, factor)
    assert len({tuple(row) for row in value.tolist()}) > 2
    so.random.seed(3)
    np.testing.assert_array_equal(value, y.eval(x=ones, is_train=True))


def test_inside_of_itself_and_of_a_scan():
    x = so.var("x", (4, 3))
    outer = so.vmap(lambda row: so.vmap(lambda a: so.square(a) * so.sum(row))(row))(x)
    wanted = np.square(X) * X.sum(1, keepdims=True)
    np.testing.assert_allclose(outer.eval(x=X), wanted, rtol=1e-5)
    last, _ = so.scan(lambda c, row: (so.vmap(so.tanh)(c + row), ()), so.zeros_like(x[0]), x)
    held = np.zeros(3, "f")
    for row in X:
        held = np.tanh(held + row)
    np.testing.assert_allclose(last.eval(x=X), held, rtol=1e-5)
    assert so.grad(so.sum(last), x).eval(x=X).shape == (4, 3)


def test_no_slices():
    x = so.var("x", (0, 3))
    y = so.vmap(so.sum)(x)
    assert y.eval(x=np.zeros((0, 3), "f")).shape == (0,)
    assert so.grad(so.sum(y), x).eval(x=np.zeros((0, 3), "f")).shape == (0, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (so.vmap(so.sin, None), "an argument must be sliced, got in_axes=None"),
        (so.vmap(so.sin, (None,)), "an argument must be sliced"),
        (lambda x: so.vmap(so.add, (0,))(x, x), "one for each argument"),
        (lambda x: so.vmap(so.add)(x, so.var("y", (5,))), "vmap: all must give the same number"),
        (lambda x: so.vmap(so.sin)(so.var("s", ())), "must have an axis of steps"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ArgumentError, match=message):
        call(so.var("x", (4,)))


def test_derivatives_of_variables_inside():
    program = so.Program()
    x, ways = program.data("x", ()), program.data("ways", (3,))
    y = so.sin(x)
    found = so.vmap(lambda way: so.jvp(y, x, way))(ways)
    given = {"x": 0.5, "ways": np.arange(3, dtype="f")}
    np.testing.assert_allclose(program.run(given, found), np.arange(3) * np.cos(0.5), rtol=1e-6)
    assert so.Program.parse(str(program)) == program


# Gradients by values that are the same for all slices ---------------------------------------------


@pytest.mark.parametrize("product", ["matmul", "einsum", "rows"])
def test_gradients_by_constants_contract_over_slices(product):
    """A layer of each slice: its gradient by the weights is one product, to each order."""
    x, w = so.var("x", shape=(5, 6), dtype="float32"), so.var("w", shape=(6, 7), dtype="float32")

    def layer(row):
        if product == "matmul":
            return so.tanh(so.matmul(row, w))
        if product == "einsum":
            return so.tanh(2.0 * so.einsum(row, w, equation="a,ab->b") - so.sum(row))
        return so.tanh(so.matmul(so.reshape(row, shape=(2, 3)), w[:3])) * so.sum(w)

    def by_jax(w, x):
        if product == "einsum":
            return jnp.sum(jnp.tanh(2.0 * x @ w - x.sum(1, keepdims=True)))
        if product == "rows":
            return jnp.sum(jnp.tanh(x.reshape(5, 2, 3) @ w[:3]) * w.sum())
        return jnp.sum(jnp.tanh(x @ w))

    loss = so.sum(so.vmap(layer)(x))
    slope = so.grad(loss, w)
    twice = so.grad(so.sum(slope * slope), w)
    values = np.sin(np.arange(30.0)).reshape(5, 6), np.cos(np.arange(42.0)).reshape(6, 7)
    at = dict(zip("xw", (one.astype("float32") for one in values), strict=True))
    first = jax.grad(by_jax)
    second = jax.grad(lambda w, x: jnp.sum(first(w, x) ** 2))
    np.testing.assert_allclose(slope.eval(**at), first(at["w"], at["x"]), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(twice.eval(**at), second(at["w"], at["x"]), rtol=1e-3, atol=1e-3)
    forward = so.jvp(slope, w, so.ones_like(w)).eval(**at)
    wanted = jax.jvp(lambda w: first(w, at["x"]), (at["w"],), (jnp.ones((6, 7)),))[1]
    np.testing.assert_allclose(forward, wanted, rtol=1e-3, atol=1e-3)
    assert product == "rows" or "[5,6,7]" not in str(slope)


def test_contracted_gradients_draw_the_same_numbers():
    x, w = so.var("x", shape=(5, 6), dtype="float32"), so.var("w", shape=(6, 7), dtype="float32")
    loss = so.sum(so.vmap(lambda row: so.tanh(so.matmul(so.dropout(row, rate=0.5), w)))(x))
    slope = so.grad(loss, w).to_jax(is_train=True)
    run, key = loss.to_jax(is_train=True, rules=False), jax.random.key(3)
    x, w = jnp.ones((5, 6)), jnp.sin(jnp.arange(42.0)).reshape(6, 7)
    wanted = jax.grad(lambda w: run(x=x, w=w, key=key))(w)
    np.testing.assert_allclose(slope(x=x, w=w, key=key), wanted, rtol=1e-5)
    assert np.unique(wanted).size > 7
