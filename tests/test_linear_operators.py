"""Linear combinations of partial derivatives against nested JAX, in double precision."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from registry.errors import ArgumentError, DTypeError, GradientError
from symop.differential_operators import planning
from symop.graph.nodes import topological
from symop.regions.bodies import GraphBody


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


MIX = np.sin(np.arange(20.0)).reshape(4, 5)
POINT = np.array([0.7, 0.2, 1.1, 0.45])


def _network(x):
    return jnp.sum(jnp.tanh(x @ MIX) ** 2) * jnp.exp(-0.1 * jnp.sum(x * x)) + x[0] * x[3]


def _nested(u, monomial):
    """The partial derivative of a function of a vector, by nested ``jax.jvp``."""
    for i in monomial:
        u = _along(u, i)
    return u


def _along(u, i):
    return lambda x: jax.jvp(u, (x,), (jnp.zeros_like(x).at[i].set(1.0),))[1]


def _orders(monomial):
    return {(0, i): monomial.count(i) for i in dict.fromkeys(monomial)}


def _combined(u, terms, x):
    values = jax.jit(lambda x: [_nested(u, one)(x) for _, one in terms])(x)
    return sum(
        (c(x) if callable(c) else c) * value for (c, _), value in zip(terms, values, strict=True)
    )


def _depends(i):
    return lambda x: jnp.cos(x[i]) + x[(i + 1) % 4]


PAIRS = [one for one in itertools.combinations_with_replacement(range(4), 2)]
OPERATORS = {
    "Laplacian": [(1.0, (i, i)) for i in range(4)],
    "scaled Laplacian": [(-0.5, (i, i)) for i in range(4)],
    "anisotropic": [(1.0 + i, (i, i)) for i in range(4)],
    "wave": [(1.0, (3, 3)), *((-4.0, (i, i)) for i in range(3))],
    "mixed": [(2.0, (0, 1))],
    "general of order 2": [(np.cos(3.0 * i + j), (i, j)) for i, j in PAIRS],
    "of rank 1": [((1.0 + (i != j)) * (i + 1) * (j + 2), (i, j)) for i, j in PAIRS],
    "convection and diffusion": [
        *((0.3, (i, i)) for i in range(4)), *((1.0 - i, (i,)) for i in range(4)), (2.0, ()),
    ],
    "heat": [(1.0, (3,)), (-0.7, (0, 0))],
    "one order only": [(1.0, (0,)), (-0.7, (2,))],
    "coefficients of x": [(_depends(i), (i, i)) for i in range(4)],
    "one coefficient of x": [*((_depends(0), (i, i)) for i in range(4)), (_depends(1), (2,))],
    "Fokker-Planck": [
        (_depends(0), (0, 0)), (_depends(1), (0, 1)), (_depends(2), (1, 1)), (_depends(3), (1,)),
    ],
    "general of x": [
        *((_depends((i + j) % 4), (i, j)) for i, j in PAIRS), *((_depends(i), (i,)) for i in range(4)),
        (_depends(2), ()),
    ],
    "star of x": [(_depends(i), (0, i)) for i in range(1, 4)],
    "order 3": [(1.0, (0, 0, 1)), (_depends(1), (0, 1, 2)), (-2.0, (3, 3, 3)), (0.5, (0, 0, 2))],
    "plate": [(1.0, (0, 0, 0, 0)), (2.0, (0, 0, 1, 1)), (1.0, (1, 1, 1, 1))],
    "plate of x": [(_depends(0), (0, 0, 0, 0)), (_depends(1), (0, 0, 1, 1)), (1.0, (1, 1, 1, 1))],
    "Kuramoto-Sivashinsky": [(1.0, (0, 0, 0, 0)), (1.0, (0, 0)), (1.0, (1,))],
    "order 4": [
        (1.0, (0, 1, 2, 3)), (2.0, (0, 0, 0, 1)), (_depends(3), (0, 0, 1, 2)), (0.3, (1, 1, 2, 2)),
    ],
    "all orders": [(1.5, (2,) * n) for n in range(5)],
    "repeated": [(1.0, (0, 1)), (_depends(2), (1, 0)), (2.0, (0, 1)), (1.0, (0,)), (2.0, (0,))],
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_linear_operators_are_nested_derivatives(name):
    terms = OPERATORS[name]
    x = jnp.asarray(POINT)
    operator = so.linear_operator(_network, [(c, _orders(one)) for c, one in terms])
    wanted = _combined(_network, terms, x)
    np.testing.assert_allclose(jax.jit(operator)(x), wanted, rtol=1e-9, atol=1e-11)
