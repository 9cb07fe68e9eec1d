"""A network that solves a differential equation: ``u'' = -pi^2 sin(pi x)``, zero at -1 and 1."""

import jax.numpy as jnp
import numpy as np
import optax

import symop as so
from symop import train


def solution(x: so.Symbol) -> so.Symbol:
    """The solution at a column of points, zero at both ends."""
    h = x
    for _ in range(3):
        h = so.tanh(so.fully_connected(h, units=32, weight_initial="glorot_normal"))
    u: so.Symbol = (1.0 - x * x) * so.fully_connected(h, units=1)
    return u


def run(steps: int = 1000) -> float:
    """Trains, and returns the largest error at 201 points."""
    x = so.var("x", shape=(256, 1))
    u = solution(x)
    u_xx = so.derivative(u, (x, x), direction=so.ones_like(x))
    loss = so.mean(so.square(u_xx + np.pi**2 * so.sin(np.pi * x)))
    schedule = optax.cosine_decay_schedule(5e-3, steps)
    trainer = train.Trainer(loss, optax.adam(schedule), inputs=["x"])
    state, points = trainer.init(0), jnp.linspace(-1, 1, 256)[:, None]
    for _ in range(steps):
        state, _ = trainer.step(state, {"x": points})
    fine = np.linspace(-1, 1, 201, dtype=np.float32)[:, None]
    found = u(x=fine).eval(**state.params)
    return float(np.abs(found - np.sin(np.pi * fine)).max())


if __name__ == "__main__":
    print(f"largest error {run():.1e}")
