"""``so.grad`` of functions of arrays against JAX's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from registry.errors import ArgumentError, DTypeError, GradientError, ShapeError
from symop import autograd, nd

X = np.array([0.5, -1.0, 2.0], np.float32)
Y = np.array([1.5, 0.25, -0.5], np.float32)


@pytest.mark.parametrize("kind", [np.asarray, jnp.asarray, nd.array])
def test_against_jax(kind):
    found = so.grad(lambda x: so.sum(so.sin(x) * x), kind(X))
    expected = jax.grad(lambda x: jnp.sum(jnp.sin(x) * x))(X)
    assert isinstance(found, nd.NDArray)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6)


def test_several_arguments():
    first, second = so.grad(lambda x, y: so.sum(x * x * y), [X, nd.array(Y)])
    np.testing.assert_allclose(np.asarray(first), 2 * X * Y, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(second), X * X, rtol=1e-6)


def test_head_gradients_of_nested_results():
    heads = {"a": nd.array(Y), "b": 2.0}
    found = so.grad(lambda x: {"a": x * x, "b": so.sum(x)}, X, heads)
    np.testing.assert_allclose(np.asarray(found), 2 * X * Y + 2.0, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(so.grad(lambda x: x * x, X)), 2 * X)


def test_as_a_function_of_every_order():
    slope = so.grad(lambda x, scale: so.sum(scale * x**3))
    np.testing.assert_allclose(np.asarray(slope(X, 2.0)), 6 * X * X, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(slope(X, scale=2.0)), 6 * X * X, rtol=1e-6)
    third = so.grad(so.grad(so.grad(lambda x: x**4)))
    assert third(2.0).item() == 48.0
    product = so.jvp(so.grad(lambda x: so.sum(x**3)), nd.array(X), nd.array(Y))[1]
    np.testing.assert_allclose(np.asarray(product), 6 * X * Y, rtol=1e-6)


def test_the_makers_are_used():
    found = so.grad(so.gradient_reversal, X)
    np.testing.assert_allclose(np.asarray(found), -np.ones(3))


def test_functions_of_jax_and_operators():
    np.testing.assert_allclose(np.asarray(so.grad(so.sin, X)), np.cos(X), rtol=1e-6)
    found = so.grad(lambda x: jnp.sum(jnp.sin(x.asjax())), nd.array(X))
    np.testing.assert_allclose(np.asarray(found), np.cos(X), rtol=1e-6)


def test_under_jit():
    f = jax.jit(lambda x: so.grad(lambda v: so.sum(v * v), x).asjax())
    np.testing.assert_allclose(f(X), 2 * X)


def test_errors():
    with pytest.raises(DTypeError, match="grad: result 0 must be floating"):
        so.grad(so.argmax, X)
    with pytest.raises(DTypeError, match="grad: x 1 must be floating"):
        so.grad(lambda x, y: x, [X, np.ones(3, np.int32)])
    with pytest.raises(ShapeError, match="grad: head 0 must have the shape of result 0"):
        so.grad(lambda x: x, X, np.ones(2, np.float32))
    with pytest.raises(ArgumentError, match="grad: remat is for symbols"):
        so.grad(lambda x: x, X, remat=so.remat.keep_none())
    a = nd.array(X)
    a.attach_grad()
    with autograd.record(), pytest.raises(GradientError, match="grad: the arrays must not be"):
        so.grad(lambda x: x, a)
