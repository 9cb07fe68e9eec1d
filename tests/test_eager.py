"""Operators on plain arrays: compiled calls, derivative rules, errors at the call."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from registry import Array, op
from registry.errors import ArgumentError, ShapeError


def test_arrays_numbers_and_lists():
    assert so.sin(jnp.zeros(2)).tolist() == [0.0, 0.0]
    assert float(so.add(1.0, 2)) == 3.0
    assert so.add([1.0, 2.0], np.float32(1)).tolist() == [2.0, 3.0]


def test_results_are_arrays():
    assert isinstance(so.sin(1.0), jax.Array)


def test_dtypes_are_those_of_jax():
    for value in (np.int32(3), jnp.bfloat16(2), 2, 2.5, True):
        assert so.sin(value).dtype == jnp.sin(value).dtype
        assert so.add(value, 1).dtype == jnp.add(value, 1).dtype


def test_shape_errors_come_at_the_call():
    with pytest.raises(ShapeError, match=r"minus: x and y must have the same shape, got \(2,\)"):
        so.minus(jnp.zeros(2), jnp.zeros(3))
    with pytest.raises(ShapeError, match="minus"):
        jax.jit(so.minus)(jnp.zeros(2), jnp.zeros(3))


def test_other_inputs_are_refused():
    with pytest.raises(ArgumentError, match="slot 'x' must hold an array"):
        so.sin(object())
    with pytest.raises(ArgumentError, match="only symbols can be named"):
        so.sin(1.0, name="n")
    with pytest.raises(ArgumentError, match="slot 'weight' must be filled"):
        so.fully_connected(jnp.ones((2, 3)), units=2)
    with pytest.raises(ArgumentError, match="training must be True or False"):
        so.dropout(jnp.ones(3), training=jnp.ones(3))


def test_jax_differentiates_through_the_makers(temporary_operators):
    @op(name="marked_cube")
    def marked_cube(x: Array) -> Array:
        """The cube, whose maker is three times what it should be, so that one sees it used."""
        return x * x * x

    @marked_cube.gradient
    def marked_cube_gradient(x, d_out):
        return {"x": 9.0 * x * x * d_out}

    assert float(jax.grad(marked_cube)(2.0)) == 36.0
    assert float(jax.jvp(marked_cube, (2.0,), (1.0,))[1]) == 36.0
    assert float(jax.grad(jax.grad(marked_cube))(2.0)) == 36.0
    assert jax.vmap(jax.grad(marked_cube))(jnp.array([1.0, 2.0])).tolist() == [9.0, 36.0]
    x = so.var("x", shape=())
    assert float(so.grad(marked_cube(x), x).eval(x=2.0)) == 36.0


def test_states_come_back_from_eager_calls():
    data = jnp.array([[0.0], [2.0]])
    one, zero = jnp.ones(1), jnp.zeros(1)
    out, mean, var = so.batch_norm(data, one, zero, zero, one, momentum=0.5, training=True)
    assert out.shape == (2, 1)
    assert mean.tolist() == [0.5]
    same = so.batch_norm(data, one, zero, zero, one)
    assert same[1].tolist() == [0.0]
    assert var.shape == (1,)


def test_an_eager_call_compiles_once_for_each_type(temporary_operators):
    traced = []

    @op(name="counts_traces", shape=lambda x: x)
    def counts_traces(x: Array) -> Array:
        """The identity."""
        traced.append(x)
        return x

    for _ in range(3):
        counts_traces(jnp.ones(3))
    once = len(traced)
    counts_traces(jnp.ones(3))
    assert len(traced) == once


def test_a_key_must_be_given_inside_a_transformation():
    with pytest.raises(ArgumentError, match="dropout: key= must be given inside"):
        jax.jit(lambda x: so.dropout(x, training=True))(jnp.ones(3))
    assert jax.jit(so.dropout)(jnp.ones(3)).tolist() == [1.0] * 3
    key = jax.random.key(0)
    traced = jax.jit(lambda x: so.dropout(x, key=key, training=True))(jnp.ones(8))
    assert np.array_equal(traced, so.dropout(jnp.ones(8), key=key, training=True))
