"""Bends a clamped plate by a network written in plain JAX, whose loss is ``so.biharmonic`` of it.

A thin plate of stiffness one under the load ``q`` obeys ``Δ²w = q``; where it is clamped, ``w`` and
its slope vanish. The network is multiplied by a function that is zero, with its slope, along the
edges, and trained until the equation holds at the points of a grid (Raissi, Perdikaris and
Karniadakis, "Physics-informed neural networks", 2019). ``so.biharmonic`` runs inside ``jax.vmap``,
``jax.grad`` and ``jax.jit``.
"""

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import symop as so

Params = list[tuple[jax.Array, jax.Array]]
Load = Callable[[jax.Array], Any]

CENTER = 0.00126532
"""Deflection at the center of a clamped square plate under a uniform load of one.

Source: Taylor and Govindjee, "Solution of clamped rectangular plate problems", 2004.
"""
SCALE = 1e-3
"""The size of deflections under a load of one: the network is of the size of one."""


def initial(widths: Sequence[int] = (2, 32, 32, 1), seed: int = 0) -> Params:
    """Random weights, with a variance of one over their number of inputs, and zero biases."""
    keys = jax.random.split(jax.random.key(seed), len(widths))
    return [
        (jax.random.normal(key, (m, n)) / m**0.5, jnp.zeros(n))
        for key, m, n in zip(keys, widths[:-1], widths[1:], strict=False)
    ]


def deflection(params: Params, point: jax.Array) -> jax.Array:
    """The deflection at a point of the unit square, of shape ``(2,)``."""
    hidden = 2 * point - 1
    for weight, bias in params[:-1]:
        hidden = jnp.tanh(hidden @ weight + bias)
    weight, bias = params[-1]
    edge = jnp.prod(4 * point * (1 - point))  # one at the center, zero along the edges
    return SCALE * edge**2 * (hidden @ weight + bias)[0]


def residuals(params: Params, points: jax.Array, load: Load) -> jax.Array:
    """How much ``Δ²w`` differs from the load at each point."""
    bent = so.biharmonic(lambda point: deflection(params, point))
    return jax.vmap(lambda point: bent(point) - load(point))(points)


def loss(params: Params, points: jax.Array, weights: jax.Array, load: Load) -> jax.Array:
    """The integral of the squared residual over the plate."""
    return jnp.sum(weights * residuals(params, points, load) ** 2)


def grid(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of Gauss-Legendre quadrature on the unit square."""
    at, weight = np.polynomial.legendre.leggauss(count)
    x, y = np.meshgrid((at + 1) / 2, (at + 1) / 2, indexing="ij")
    points = np.stack([x.ravel(), y.ravel()], axis=1)
    return points.astype(np.float32), np.outer(weight, weight).ravel().astype(np.float32) / 4


def trained(params: Params, load: Load, *, steps: int = 1500, count: int = 20) -> Params:
    """The parameters after some steps of L-BFGS, all of which are one compiled loop."""
    points, weights = map(jnp.asarray, grid(count))
    optimizer = optax.lbfgs(memory_size=30)

    def value(params: Params) -> jax.Array:
        return loss(params, points, weights, load)

    def step(held: tuple[Params, Any], _: None) -> tuple[tuple[Params, Any], None]:
        params, state = held
        now, slopes = jax.value_and_grad(value)(params)
        updates, state = optimizer.update(
            slopes, state, params, value=now, grad=slopes, value_fn=value
        )
        return (optax.apply_updates(params, updates), state), None

    @jax.jit
    def run(params: Params) -> Params:
        return jax.lax.scan(step, (params, optimizer.init(params)), None, length=steps)[0][0]

    result: Params = run(params)
    return result


def uniform(point: jax.Array) -> float:
    """A load of one everywhere."""
    return 1.0


def waves(point: jax.Array) -> jax.Array:
    """The load under which the plate bends to ``SCALE sin²(πx) sin²(πy)``.

    With ``c = cos(2πx)`` and ``d = cos(2πy)``, ``sin²(πx) sin²(πy) = (1 - c) (1 - d) / 4``, whose
    biharmonic is ``4π⁴ (4 c d - c - d)``.
    """
    c, d = jnp.cos(2 * jnp.pi * point)
    return SCALE * 4 * jnp.pi**4 * (4 * c * d - c - d)


def exact_waves(points: np.ndarray) -> np.ndarray:
    """The deflection under the load ``waves``."""
    result: np.ndarray = SCALE * np.prod(np.sin(np.pi * points) ** 2, axis=1)
    return result


def error_of_waves(params: Params, count: int = 20) -> float:
    """The norm of the error under the load ``waves``, relative to that of the exact deflection."""
    points, weights = grid(count)
    wanted = exact_waves(points)
    got = np.asarray(jax.vmap(lambda point: deflection(params, point))(jnp.asarray(points)))
    return float(np.sqrt(np.sum(weights * (got - wanted) ** 2) / np.sum(weights * wanted**2)))


def main() -> None:
    """Trains for both loads, and prints errors."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=1500, help="steps of L-BFGS")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    params = trained(initial(seed=options.seed), uniform, steps=options.steps)
    center = float(deflection(params, jnp.array([0.5, 0.5])))
    print(f"uniform load: {center:.8f} at the center, exactly {CENTER:.8f}")
    params = trained(initial(seed=options.seed), waves, steps=options.steps)
    print(f"load with an exact solution: relative error {error_of_waves(params):.1e}")


if __name__ == "__main__":
    main()
