"""Computes the ground state of the helium atom by variational Monte Carlo with a small network.

The logarithm of the trial function is a function in plain JAX of the places of both electrons.
Its local energy needs the Laplacian, which ``so.laplacian`` computes in one pass, inside
``jax.vmap``, ``jax.grad`` and ``jax.jit``. Electrons are sampled by the Metropolis algorithm;
the parameters descend along the covariance of local energy and logarithm. Energies are in hartree,
lengths in bohr.

Source: Foulkes, Mitas, Needs, Rajagopal, "Quantum Monte Carlo simulations of solids", 2001.
"""

import argparse
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

import symop as so

Params = dict[str, Any]

CHARGE = 2.0
"""The charge of the nucleus."""
EXACT = -2.903724377
"""The energy of the ground state, for a nucleus of infinite mass.

Source: Drake, "High precision theory of atomic helium", 1999.
"""


# Trial function ----------------------------------------------------------------------------------


def initial(units: int = 16, seed: int = 0) -> Params:
    """The parameters of a network of two layers, whose result is zero at first."""
    first, second = jax.random.split(jax.random.key(seed))
    return {
        "weights": [
            jax.random.normal(first, (3, units)) / 3**0.5,
            jax.random.normal(second, (units, units)) / units**0.5,
            jnp.zeros((units, 1)),
        ],
        "biases": [jnp.zeros(units), jnp.zeros(units), jnp.zeros(1)],
        "range": jnp.ones(()),
    }


def network(params: Params, features: jax.Array) -> jax.Array:
    """Layers of tanh, and a linear one."""
    hidden = features
    for weight, bias in zip(params["weights"][:-1], params["biases"][:-1], strict=True):
        hidden = jnp.tanh(hidden @ weight + bias)
    return (hidden @ params["weights"][-1] + params["biases"][-1])[0]


def log_psi(params: Params, x: jax.Array) -> jax.Array:
    """The logarithm of the trial function at the electrons' places, of shape ``(2, 3)``.

    Where two particles meet, the potential is infinite, and the kinetic energy must cancel it: the
    slope is ``-CHARGE`` by the distance from the nucleus, and 1/2 by that between the electrons
    (Kato's cusp conditions). The network keeps them, since its features are flat there; exchange of
    the electrons changes nothing, since it is applied in both orders.
    """
    radii, apart = jnp.linalg.norm(x, axis=1), jnp.linalg.norm(x[0] - x[1])
    near, far = flat(radii), flat(apart)
    both = jnp.stack([jnp.append(near, far), jnp.append(near[::-1], far)])
    correction = sum(network(params, one) for one in both)
    pair = 0.5 * apart / (1 + jax.nn.softplus(params["range"]) * apart)
    return -CHARGE * jnp.sum(radii) + pair + correction


def flat(distance: jax.Array) -> jax.Array:
    """A distance without a slope at zero."""
    return distance**2 / (1 + distance)


def potential(x: jax.Array) -> jax.Array:
    """Attraction by the nucleus, and repulsion of the electrons."""
    attraction = jnp.sum(CHARGE / jnp.linalg.norm(x, axis=1))
    return 1 / jnp.linalg.norm(x[0] - x[1]) - attraction


def local_energy(params: Params, x: jax.Array) -> jax.Array:
    """``H psi / psi``, where ``psi'' / psi`` is ``(log psi)'' + ((log psi)')^2``."""

    def logarithm(x: jax.Array) -> jax.Array:
        return log_psi(params, x)

    slope = jax.grad(logarithm)(x)
    return potential(x) - 0.5 * (so.laplacian(logarithm, x) + jnp.sum(slope**2))


# Sampling ----------------------------------------------------------------------------------------


def start(walkers: int, seed: int = 0) -> jax.Array:
    """Places of the electrons of independent walkers."""
    return jax.random.normal(jax.random.key(seed), (walkers, 2, 3))


@functools.partial(jax.jit, static_argnames=("steps", "width"))
def moved(
    params: Params, xs: jax.Array, key: jax.Array, steps: int = 10, width: float = 0.4
) -> tuple[jax.Array, jax.Array]:
    """Walkers after some steps of the Metropolis algorithm, and the rate of accepted moves."""
    value = jax.vmap(functools.partial(log_psi, params))

    def step(held: tuple[jax.Array, jax.Array], key: jax.Array) -> tuple[Any, jax.Array]:
        xs, logs = held
        move, accept = jax.random.split(key)
        proposed = xs + width * jax.random.normal(move, xs.shape)
        new = value(proposed)
        taken = jnp.log(jax.random.uniform(accept, new.shape)) < 2 * (new - logs)
        kept = jnp.where(taken[:, None, None], proposed, xs), jnp.where(taken, new, logs)
        return kept, jnp.mean(taken)

    (xs, _), rates = jax.lax.scan(step, (xs, value(xs)), jax.random.split(key, steps))
    return xs, jnp.mean(rates)


# Optimization ------------------------------------------------------------------------------------


def surrogate(params: Params, xs: jax.Array) -> tuple[jax.Array, jax.Array]:
    """A function whose gradient is that of the energy, and the local energies.

    The gradient of the mean energy is ``2 E[(E_L - E[E_L]) d log psi]``; that of the local energy
    itself has the mean zero. Few local energies far from the median are moved towards it.
    """
    energies = jax.lax.stop_gradient(jax.vmap(functools.partial(local_energy, params))(xs))
    middle = jnp.median(energies)
    spread = 5 * jnp.mean(jnp.abs(energies - middle))
    bounded = jnp.clip(energies, middle - spread, middle + spread)
    logs = jax.vmap(functools.partial(log_psi, params))(xs)
    return 2 * jnp.mean((bounded - jnp.mean(bounded)) * logs), energies


def optimized(
    params: Params, xs: jax.Array, *, steps: int = 400, rate: float = 1e-2, seed: int = 0
) -> tuple[Params, jax.Array, jax.Array]:
    """Parameters, walkers, and the mean energy at each step of Adam."""
    optimizer = optax.adam(optax.cosine_decay_schedule(rate, steps))

    def step(held: tuple[Any, ...], key: jax.Array) -> tuple[tuple[Any, ...], jax.Array]:
        params, state, xs = held
        xs, _ = moved(params, xs, key)
        slopes, energies = jax.grad(surrogate, has_aux=True)(params, xs)
        updates, state = optimizer.update(slopes, state)
        return (optax.apply_updates(params, updates), state, xs), jnp.mean(energies)

    @jax.jit
    def run(params: Params, xs: jax.Array) -> tuple[Params, jax.Array, jax.Array]:
        keys = jax.random.split(jax.random.key(seed), steps)
        (params, _, xs), energies = jax.lax.scan(step, (params, optimizer.init(params), xs), keys)
        return params, xs, energies

    result: tuple[Params, jax.Array, jax.Array] = run(params, xs)
    return result


class Energy(NamedTuple):
    """A mean, its standard error, and the standard deviation of the local energy."""

    mean: float
    error: float
    deviation: float


def measured(params: Params, xs: jax.Array, *, steps: int = 200, seed: int = 1) -> Energy:
    """The energy of a trial function.

    The places of one walker are correlated, those of different walkers are not: the error is that
    of the mean of the walkers' means.
    """

    @jax.jit
    def run(xs: jax.Array) -> jax.Array:
        def step(xs: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
            xs, _ = moved(params, xs, key)
            return xs, jax.vmap(functools.partial(local_energy, params))(xs)

        xs, _ = moved(params, xs, jax.random.key(seed), steps=200)
        keys = jax.random.split(jax.random.key(seed + 1), steps)
        energies: jax.Array = jax.lax.scan(step, xs, keys)[1]
        return energies

    energies = run(xs)
    means = jnp.mean(energies, axis=0)
    error = jnp.std(means, ddof=1) / means.size**0.5
    return Energy(float(jnp.mean(means)), float(error), float(jnp.std(energies)))


def main() -> None:
    """Optimizes the trial function, and prints its energy."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=400, help="steps of Adam")
    parser.add_argument("--walkers", type=int, default=1024)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    params, xs = initial(seed=options.seed), start(options.walkers, options.seed)
    for name in ("before", "after"):
        if name == "after":
            params, xs, _ = optimized(params, xs, steps=options.steps, seed=options.seed)
        energy = measured(params, xs)
        print(
            f"{name} optimization: {energy.mean:.5f} +- {energy.error:.5f} hartree, deviation of "
            f"the local energy {energy.deviation:.3f}"
        )
    print(f"exact: {EXACT:.5f}")


if __name__ == "__main__":
    main()
