"""The helium atom: local energies are right, and optimization reaches the known ground state."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest


def nested_local_energy(example, params, x):
    """By the trace of the Hessian of the trial function itself, not of its logarithm."""

    def psi(x):
        return jnp.exp(example.log_psi(params, x))

    bent = jnp.trace(jax.hessian(psi)(x).reshape(6, 6))
    return example.potential(x) - 0.5 * bent / psi(x)


def local_energies(example, params, xs):
    return jax.jit(jax.vmap(functools.partial(example.local_energy, params)))(xs)


def random_params(example):
    keys = iter(jax.random.split(jax.random.key(5), 16))
    return jax.tree.map(
        lambda one: one + 0.1 * jax.random.normal(next(keys), one.shape), example.initial(units=6)
    )


def test_local_energy_is_that_of_nested_jax(example, x64):
    params, xs = random_params(example), example.start(5, seed=2)
    energies = local_energies(example, params, xs)
    wanted = jax.jit(jax.vmap(functools.partial(nested_local_energy, example, params)))(xs)
    np.testing.assert_allclose(energies, wanted, rtol=1e-8)


def test_without_repulsion_the_local_energy_is_constant(example, x64, monkeypatch):
    """Two electrons in the ground state of a hydrogen-like ion: -Z^2 / 2 each, at every place."""
    monkeypatch.setattr(
        example, "log_psi", lambda params, x: -example.CHARGE * jnp.sum(jnp.linalg.norm(x, axis=1))
    )
    monkeypatch.setattr(
        example, "potential", lambda x: -jnp.sum(example.CHARGE / jnp.linalg.norm(x, axis=1))
    )
    energies = local_energies(example, None, example.start(20))
    np.testing.assert_allclose(energies, -(example.CHARGE**2), rtol=1e-9)


def test_local_energy_is_finite_where_particles_meet(example, x64):
    """Kato's cusp conditions: the kinetic energy cancels the potential."""
    params = random_params(example)
    near = jnp.array([[[1e-5, 0, 0], [0.5, 0.4, 0.3]], [[0.5, 0.4, 0.3], [0.5, 0.4, 0.30001]]])
    energies = local_energies(example, params, near)
    assert np.all(np.abs(energies) < 50)  # 1 / distance is 100,000


def test_exchange_of_electrons_changes_nothing(example):
    params, x = random_params(example), example.start(1)[0]
    log_psi = jax.jit(example.log_psi)
    np.testing.assert_allclose(log_psi(params, x), log_psi(params, x[::-1]), rtol=1e-6)


@pytest.mark.thorough
def test_optimization_reaches_the_ground_state(example):
    params, xs = example.initial(units=8), example.start(256)
    before = example.measured(params, xs, steps=50)
    params, xs, energies = example.optimized(params, xs, steps=120)
    after = example.measured(params, xs, steps=150)
    assert energies.shape == (120,)
    assert before.mean - 4 * before.error > example.EXACT + 0.03
    assert after.deviation < before.deviation / 2
    # By the variational principle the expectation lies above the exact energy; this much at most.
    assert -4 * after.error < after.mean - example.EXACT < 0.01 + 4 * after.error
