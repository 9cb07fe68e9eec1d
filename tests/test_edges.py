"""Derivatives at ties, bounds, zeros and infinities, where JAX's own is another or none."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so

INF = float("inf")


def gradients(operator, *values, **attributes):
    """The gradient with respect to each value, by the graph."""
    xs = [so.var(f"x{i}", shape=()) for i in range(len(values))]
    found = so.grad(operator(*xs, **attributes), xs)
    arrays = {f"x{i}": value for i, value in enumerate(values)}
    return [float(one.eval(**{n: arrays[n] for n in one.list_arguments()})) for one in found]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ((so.hypot, 0.0, 0.0), [0.0, 0.0]),
        ((so.hypot, 3.0, 4.0), [0.6, 0.8]),
        ((so.logaddexp, -INF, -INF), [0.5, 0.5]),
        ((so.logaddexp, INF, INF), [0.5, 0.5]),
        ((so.logaddexp, -INF, 1.0), [0.0, 1.0]),
        ((so.cbrt, 0.0), [INF]),
        ((so.softplus, 1000.0), [1.0]),
        ((so.softplus, -1000.0), [0.0]),
        ((so.log_sigmoid, -1000.0), [1.0]),
        ((so.elu, 1000.0), [1.0]),
        ((so.elu, 0.0), [1.0]),
        ((so.selu, 1000.0), [1.050701]),
        ((so.celu, 1000.0), [1.0]),
        ((so.silu, -1000.0), [0.0]),
        ((so.mish, 1000.0), [1.0]),
        ((so.gelu, 50.0), [1.0]),
        ((so.gelu, -50.0), [0.0]),
        ((so.leaky_relu, 0.0), [0.01]),
        ((so.relu6, 6.0), [0.0]),
        ((so.relu6, 0.0), [0.0]),
        ((so.hard_sigmoid, 3.0), [0.0]),
        ((so.asin, 1.0), [INF]),
        ((so.tan, 0.0), [1.0]),
        ((so.erf, INF), [0.0]),
        ((so.erfinv, 0.0), [np.sqrt(np.pi) / 2]),
        ((so.atan, INF), [0.0]),
    ],
    ids=lambda value: getattr(value[0], "name", "") if isinstance(value, tuple) else "",
)
def test_derivative(call, expected):
    operator, *values = call
    np.testing.assert_allclose(gradients(operator, *values), expected, rtol=1e-6)


def test_clip_counts_its_bounds_in():
    assert gradients(so.clip, 1.0, low=0.0, high=1.0) == [1.0]
    assert gradients(so.clip, 1.5, low=0.0, high=1.0) == [0.0]
    assert gradients(so.clip, 7.0) == [1.0]


@pytest.mark.parametrize("name", ["elu", "celu", "selu", "softplus", "silu", "mish", "gelu"])
def test_second_derivatives_stay_finite_far_out(name):
    operator = getattr(so, name)
    for value in (-200.0, 200.0):
        second = jax.jit(jax.grad(jax.grad(operator)))(jnp.float32(value))
        assert np.isfinite(second)
        assert abs(second) < 1e-6
