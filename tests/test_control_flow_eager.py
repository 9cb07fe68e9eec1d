"""Control flow on eager arrays and on JAX arrays: the same as on symbols, recorded or traced."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import registry
import symop as so
from registry import TensorArray
from registry.errors import ArgumentError, KindError
from symop import autograd, nd
from symop.io.parsing import parse

V = np.array([0.3, -0.2, 0.5])
W = 0.7


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def near(got, wanted):
    np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=1e-9, atol=1e-11)


# One program on values of every kind ------------------------------------------------------------


def program(x, w):
    def step(c, one):
        h, n = c
        h = so.cond(h > 0.1, lambda h: so.sin(h * w) + one, lambda h: h * h + one * w, h)
        return (h, n + 1), h * one

    (last, n), rows = so.scan(step, (w * 0.5, 0), x, reverse=True)
    grown, _ = so.while_loop(
        lambda c: c[1] < 3, lambda c: (c[0] * w + x[0], c[1] + 1), (last, 0), max_steps=5
    )
    return so.sum(rows) * last + n + grown


def in_jax(x, w):
    def step(c, one):
        h = lax.cond(c > 0.1, lambda h: jnp.sin(h * w) + one, lambda h: h * h + one * w, c)
        return h, h * one

    last, rows = lax.scan(step, w * 0.5, x, reverse=True)
    grown = last
    for _ in range(3):
        grown = grown * w + x[0]
    return rows.sum() * last + 3 + grown


def test_symbols_arrays_and_jax_arrays_give_the_same():
    x, w = so.var("x", (3,), "float64"), so.var("w", (), "float64")
    wanted = in_jax(V, W)
    near(program(x, w).eval(x=V, w=W), wanted)
    near(program(nd.array(V), nd.array(W, dtype="float64")).asnumpy(), wanted)
    near(program(jnp.asarray(V), jnp.asarray(W)), wanted)
    near(jax.jit(program)(V, jnp.asarray(W)), wanted)


def test_autograd_records_it_at_every_order():
    x, w = nd.array(V), nd.array(W, dtype="float64")
    x.attach_grad()
    w.attach_grad()
    with autograd.record():
        y = program(x, w)
        (first,) = autograd.grad(y, [w], create_graph=True)
        (second,) = autograd.grad(first, [w], create_graph=True)
        third = autograd.grad(second, [x])[0]
    by_w = jax.grad(in_jax, 1)
    near(first.asnumpy(), by_w(V, W))
    near(second.asnumpy(), jax.jit(jax.grad(by_w, 1))(V, W))
    near(third.asnumpy(), jax.jit(jax.grad(jax.grad(by_w, 1)))(V, W))


def test_operators_with_bodies_are_recorded_as_any_operator():
    body = so.body(lambda c, one, w: ((c * w + one).tanh(), c * one), *[((), "float64")] * 3)
    x, w = nd.array(V), nd.array(W, dtype="float64")
    w.attach_grad()

    def by_hand(w):
        last, rows = lax.scan(lambda c, one: (jnp.tanh(c * w + one), c * one), w, V)
        return last * rows.sum()

    for _ in range(3):  # by parts at first, then compiled
        with autograd.record():
            last, rows = registry.get("scan")(w, x, w, body=body, n_carry=1, n_xs=1, length=3)
            y = last * rows.sum()
            (first,) = autograd.grad(y, [w], create_graph=True)
        first.backward()
        near(y.asnumpy(), by_hand(W))
        near(first.asnumpy(), jax.jit(jax.grad(by_hand))(W))
        near(w.grad.asnumpy(), jax.jit(jax.grad(jax.grad(by_hand)))(W))


def test_eager_draws_come_from_the_global_seed():
    so.random.seed(3)
    with autograd.train_mode():
        first = nd.scan(lambda c, _: (nd.dropout(c), None), nd.array(np.ones(8)), length=2)[0]
        so.random.seed(3)
        again = nd.scan(lambda c, _: (nd.dropout(c), None), nd.array(np.ones(8)), length=2)[0]
    near(first.asnumpy(), again.asnumpy())


# JAX's transformations --------------------------------------------------------------------------


def test_jax_differentiates_and_maps_it():
    near(jax.jit(jax.grad(program, (0, 1)))(V, W)[0], jax.jit(jax.grad(in_jax))(V, W))
    near(jax.jit(jax.hessian(program))(V, W), jax.jit(jax.hessian(in_jax))(V, W))
    batch = np.stack([V, -V])
    near(jax.vmap(program, (0, None))(batch, W), [in_jax(one, W) for one in batch])
    free = so.while_loop(lambda c: c < 10.0, lambda c: c * c, jnp.asarray(3.0))
    near(free, 81.0)
    near(
        jax.jvp(lambda x: so.while_loop(lambda c: c < 10.0, lambda c: c * c, x), (3.0,), (1.0,))[1],
        108,
    )


def test_eager_arrays_inside_of_a_transformation():
    def function(x, w):
        return program(nd.array(x), nd.array(w)).asjax()

    near(jax.jit(function)(V, W), in_jax(V, W))
    near(jax.jit(jax.grad(function))(V, W), jax.jit(jax.grad(in_jax))(V, W))

    def numbers(x):
        """Python numbers as carries, and a condition that is traced although the carry is not."""
        array = nd.array(x)
        last, _ = so.scan(lambda c, one: (c + one, None), 0.0, array)
        low = so.while_loop(lambda c: c < array.sum(), lambda c: c + 1.0, nd.array(np.float64(-1)))
        return so.cond(last > 0, lambda: 2.0, lambda: array[0]).asjax() + low.asjax()

    near(jax.jit(numbers)(V), 2.0 + 1.0)

    def recorded(pred):
        with autograd.record():
            return nd.cond(nd.array(pred), lambda: nd.array(1.0), lambda: nd.array(2.0)).asjax()

    with pytest.raises(ArgumentError, match="a choice by a traced value cannot be recorded"):
        jax.jit(recorded)(True)


# What is refused --------------------------------------------------------------------------------


def test_eager_carries_keep_their_types():
    x = nd.array(V)
    match = r"scan: carry\[0\] must keep its type, float64\[3\], got float64\[\] after a step"
    with pytest.raises(ArgumentError, match=match):
        so.scan(lambda c, one: ((one,), one), (x,), x)
    with pytest.raises(
        ArgumentError, match="must return carries that are nested as the first ones"
    ):
        so.while_loop(lambda c: c.sum() < 9, lambda c: (c, c), x)
    with pytest.raises(ArgumentError, match="the predicate must be a scalar"):
        so.cond(x, lambda: x, lambda: x)
    with pytest.raises(ArgumentError, match="a step must return a pair"):
        so.scan(lambda c, one: c, x, x)
    with pytest.raises(ArgumentError, match="cond: the predicate must be a scalar"):
        so.cond(jnp.asarray(V), lambda: 1.0, lambda: 2.0)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_a_graph_with_control_flow_is_saved(order):
    x = so.var("x", (3,), "float64")
    inner = so.cond(so.sum(x) > 0, lambda: so.exp(x), lambda: so.sin(x))
    y = so.sum(
        so.scan(lambda c, one: (c * one, so.cond(c > 0, lambda: c, lambda: one)), 1.0, inner)[1]
    )
    for _ in range(order):
        y = so.sum(so.grad(y, x))
    program = so.Program.parse(str(y.to_program()))
    for again in (so.load_json(y.tojson()), program.to_symbol(y.to_desc().fetch)):
        assert again.same_as(y)
        np.testing.assert_array_equal(again.eval(x=V[:3]), y.eval(x=V[:3]))


# Doors ------------------------------------------------------------------------------------------


def test_symbols_may_be_used_by_the_functions_alone():
    w = so.var("w", (), "float64")
    last, _ = so.sym.scan(lambda c, one: (c * w + one, None), 0.0, jnp.asarray(V))
    near(last.eval(w=W), (0.3 * W - 0.2) * W + 0.5)
    n = so.sym.while_loop(lambda c: c < 3, lambda c: c + 1, 0)
    assert int(n.eval()) == 3
    y = so.sym.cond(True, lambda: w, lambda: w * 2.0)
    near(y.eval(w=W), W)
    outputs, _ = so.sym.foreach(lambda one, s: (one * w, s), jnp.asarray(V), 0.0)
    near(outputs.eval(w=W), V * W)


# Tensor arrays ----------------------------------------------------------------------------------


def collected(x, w):
    """Each step writes what it computes, and reads what the one before wrote."""

    def step(state, one):
        array, i, h = state
        h = so.tanh(h * w + one)
        array = so.array_write(array, h, i)
        return (array, i + 1, h + so.array_read(array, i - 1) * w), None

    (array, _, h), _ = so.scan(step, (so.array_create(w, capacity=5), 0, w), x)
    return so.sum(so.array_stack(array) ** 2) + h * so.array_length(array)


def collected_in_jax(x, w):
    array, h = jnp.zeros(5), w
    for i in range(3):
        h = jnp.tanh(h * w + x[i])
        array = array.at[i].set(h)
        h = h + (array[i - 1] if i else 0.0) * w
    return (array**2).sum() + 3 * h


def test_tensor_arrays_are_carries_differentiated_at_every_order():
    x, w = so.var("x", (3,), "float64"), so.var("w", (), "float64")
    y = collected(x, w)
    near(y.eval(x=V, w=W), collected_in_jax(V, W))
    first = so.grad(y, w)
    near(first.eval(x=V, w=W), jax.jit(jax.grad(collected_in_jax, 1))(V, W))
    near(so.grad(first, x).eval(x=V, w=W), jax.jit(jax.grad(jax.grad(collected_in_jax, 1)))(V, W))
    third = jax.jit(jax.grad(jax.grad(jax.grad(collected_in_jax, 1), 1), 1))(V, W)
    near(so.grad(so.grad(first, w), w).eval(x=V, w=W), third)
    along = so.jvp(y, w, 1.0)
    near(along.eval(x=V, w=W), jax.jit(jax.grad(collected_in_jax, 1))(V, W))
    lowered = y.to_jax()
    near(jax.jit(jax.hessian(lambda x: lowered(x=x, w=W)))(V), jax.hessian(collected_in_jax)(V, W))


def test_tensor_arrays_in_a_loop_and_a_branch():
    x = so.var("x", (3,), "float64")
    empty = so.array_create(x[0], capacity=4)

    def step(state):
        array, i = state
        value = so.cond(i < 2, lambda: so.array_write(array, x[0] * x[1], i), lambda: array)
        return value, i + 1

    array, _ = so.while_loop(lambda s: s[1] < 4, step, (empty, 0), max_steps=6)
    y = (so.array_stack(array) * np.array([1.0, 2.0, 4.0, 8.0])).sum()
    near(y.eval(x=V), 3 * V[0] * V[1])
    near(so.grad(y, x).eval(x=V), [3 * V[1], 3 * V[0], 0])
    assert int(so.array_length(array).eval(x=V)) == 2
    lowered = y.to_jax()
    near(jax.jit(jax.grad(lambda x: lowered(x=x)))(V), [3 * V[1], 3 * V[0], 0])


def test_kinds_of_tensor_arrays():
    x = so.var("x", (2,), "float64")
    array = so.array_unstack(so.stack(x, x))
    assert str(array.type) == "lod_tensor_array float64[2,2]"
    assert str(so.add_n(array, array).type) == "lod_tensor_array float64[2,2]"
    near(so.array_stack(so.add_n(array, array, array)).eval(x=[1.0, 2.0]), [[3.0, 6.0]] * 2)
    with pytest.raises(
        KindError, match="tensor arrays must be added to tensor arrays only, got lod_t"
    ):
        so.add_n(array, so.stack(x, x))
    with pytest.raises(KindError, match="slot 'x' must hold a dense array"):
        so.sin(array)
    with pytest.raises(registry.errors.DTypeError, match="x must be float64"):
        so.array_write(array, x.astype("float32"), 0)
    unknown = so.var("unknown")
    assert so.array_create(unknown, capacity=3).nodes[0].kinds is not None


def test_graphs_of_tensor_arrays_are_saved():
    x = so.var("x", (3, 2), "float64")
    y = (so.array_read(so.array_unstack(x * x), 1) * so.array_stack(so.array_unstack(x))[2]).sum()
    gradient = so.grad(y, x)
    loaded = so.load_json(gradient.tojson())
    given = np.arange(6.0).reshape(3, 2)
    wanted = jax.jit(jax.grad(lambda x: (x[1] ** 2 * x[2]).sum()))(given)
    near(loaded.eval(x=given), wanted)
    near(gradient.eval(x=given), wanted)
    assert "lod_tensor_array float64[3,2](0.0)" in str(gradient)
    (read,) = parse(str(gradient))
    near(so.Symbol([read]).eval(x=given), wanted)


def test_tensor_arrays_of_jax_and_eager_arrays():
    made = so.array_write(so.array_create(jnp.zeros(2), capacity=3), jnp.ones(2), 1)
    assert isinstance(made, TensorArray)
    assert made.type.shape == (3, 2)
    assert int(so.array_length(made)) == 2
    near(so.array_read(made, 1), np.ones(2))
    near(so.array_read(made, 7), np.zeros(2))

    def by_rules(x):
        array = so.array_write(so.array_create(x, capacity=3), x * x, 1)
        return (so.array_read(array, 1) * so.array_stack(array)[1]).sum()

    near(jax.jit(jax.grad(by_rules))(V), 4 * V**3)
    near(jax.jvp(by_rules, (V,), (np.ones(3),))[1], (4 * V**3).sum())
    near(jax.jit(jax.hessian(by_rules))(V), np.diag(12 * V**2))
    x = nd.array(V)
    x.attach_grad()
    with autograd.record():
        array = nd.array_write(nd.array_create(x, capacity=3), x * x, 1)
        y = (nd.array_read(array, 1) * nd.array_stack(array)[1]).sum()
        (first,) = autograd.grad(y, [x], create_graph=True)
    first.backward(nd.array(np.ones(3)))
    near(first.asnumpy(), 4 * V**3)
    near(x.grad.asnumpy(), 12 * V**2)


def test_names_of_paddle():
    for name, own in {
        "create_array": "array_create",
        "write_to_array": "array_write",
        "read_from_array": "array_read",
        "lod_array_length": "array_length",
    }.items():
        assert registry.get(name) is registry.get(own)
