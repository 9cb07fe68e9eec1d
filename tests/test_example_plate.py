"""A network bends like a clamped plate: the biharmonic operator inside of JAX's transformations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest


def nested_biharmonic(u, x):
    """The trace of the Hessian of the trace of the Hessian."""

    def laplacian(f):
        return lambda x: jnp.trace(jax.hessian(f)(x))

    return laplacian(laplacian(u))(x)


def test_edges_are_clamped(example):
    params = example.initial((2, 5, 1))
    edges = jnp.array([[0.0, 0.3], [1.0, 0.6], [0.2, 0.0], [0.9, 1.0], [0.0, 0.0]])
    slopes = jax.vmap(jax.grad(example.deflection, 1), (None, 0))(params, edges)
    values = jax.vmap(example.deflection, (None, 0))(params, edges)
    np.testing.assert_array_equal(values, 0)
    np.testing.assert_array_equal(slopes, 0)


def test_residuals_are_those_of_nested_jax(example, x64):
    params = jax.tree.map(lambda one: one.astype("float64"), example.initial((2, 5, 1)))
    points = jnp.array([[0.2, 0.7], [0.5, 0.5]])
    got = jax.jit(lambda params: example.residuals(params, points, example.waves))(params)
    nested = jax.jit(lambda one: nested_biharmonic(lambda x: example.deflection(params, x), one))
    wanted = [nested(one) - example.waves(one) for one in points]
    np.testing.assert_allclose(got, wanted, rtol=1e-9)


def test_the_exact_deflection_has_the_load(example, x64):
    def exact(x):
        return example.SCALE * jnp.prod(jnp.sin(jnp.pi * x) ** 2)

    points = jnp.array([[0.2, 0.7], [0.35, 0.1]])
    nested = jax.jit(lambda one: nested_biharmonic(exact, one))
    for one in points:
        np.testing.assert_allclose(nested(one), example.waves(one), rtol=1e-9, atol=1e-12)
    wanted = example.exact_waves(np.asarray(points))
    np.testing.assert_allclose([exact(one) for one in points], wanted, rtol=1e-12)


@pytest.mark.thorough
def test_training_bends_the_plate(example):
    params = example.initial((2, 12, 1))
    before = example.error_of_waves(params)
    params = example.trained(params, example.waves, steps=150, count=8)
    assert before > 0.3
    assert example.error_of_waves(params) < 0.02
