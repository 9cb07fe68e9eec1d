"""Work-arounds for XLA's CPU backend whose symptoms only time shows, each against its absence.

Run it by ``python -m benchmarks.workarounds``; a ratio of at most one means that the work-around
does not pay on this machine, with the installed jaxlib.

- ``unstack``: compile time of 64 slices, each a kernel, against one kernel for all
  (``registry/xla/unstack.py``).
- ``in_turn``: time of a step of a perceptron whose operators run in parallel, against one in which
  they do not (``symop/xla/compiling.py``); it applies up to ``Tuning.few_cores`` cores.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np

from registry.xla.barrier import barrier
from registry.xla.unstack import taken_apart

PARTS, WIDTH, LAYERS, ROUNDS = 64, 512, 4, 7


def seconds(function):
    """The time of one call of ``function``, whose result is waited for."""
    start = time.perf_counter()
    jax.block_until_ready(function())
    return time.perf_counter() - start


def unstack():
    """How much longer slices compile."""
    x = np.ones((PARTS, 32), np.float32)

    def compiling(function):
        jax.clear_caches()
        return seconds(lambda: jax.jit(function)(x))

    pairs = [
        (compiling(lambda x: tuple(jnp.unstack(x))), compiling(lambda x: taken_apart(x, 0)))
        for _ in range(ROUNDS)
    ]
    return ratio(pairs)


def in_turn():
    """How much longer steps take in parallel."""
    weights = [jnp.full((WIDTH, WIDTH), 0.01) for _ in range(LAYERS)]
    x = jnp.ones((64, WIDTH))

    def loss(weights):
        h = x
        for one in weights:
            h = jnp.tanh(h @ one)
        return jnp.sum(h)

    def step(rate, weights):
        slopes = jax.grad(loss)(weights)
        return [one - rate * slope for one, slope in zip(weights, slopes, strict=True)]

    parallel = jax.jit(lambda weights: step(jnp.float32(0.1), weights))
    ordered = jax.jit(lambda weights: step(barrier(jnp.float32(0.1)), weights))
    seconds(lambda: parallel(weights)), seconds(lambda: ordered(weights))
    pairs = [
        (seconds(lambda: parallel(weights)), seconds(lambda: ordered(weights)))
        for _ in range(10 * ROUNDS)
    ]
    return ratio(pairs)


def ratio(pairs):
    """The ratio of the shortest times."""
    without, applied = zip(*pairs, strict=True)
    return min(without) / min(applied)


if __name__ == "__main__":
    for one in (unstack, in_turn):
        print(f"{one.__name__}: {one():.2f} times as long without it")
