"""Chains of different elementwise operators, with gradient: compiled in linear time, and no slower.

No two operators of a chain are equal: each has its own number. Their order does not repeat,
because lowering would roll repetitions into loops.
"""

import gc
import random
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from measure import Figure, brief, compare, counted, equations, judged

import symop as so

TITLE = "Chains of different operators"
SHAPE = (64, 64)
Step = Callable[[Any, Any, Any, float], Any]
Compiled = Callable[..., Any]

STEPS: tuple[Step, ...] = (
    lambda lib, x, p, c: lib.sin(x * c),
    lambda lib, x, p, c: lib.tanh(x) + c * p,
    lambda lib, x, p, c: lib.exp(-lib.square(x) * c),
    lambda lib, x, p, c: x * p,
    lambda lib, x, p, c: lib.cos(x) - c,
    lambda lib, x, p, c: lib.log1p(lib.square(x)) * c,
    lambda lib, x, p, c: x / (c + x * x),
    lambda lib, x, p, c: lib.sqrt(c + x * x),
    lambda lib, x, p, c: lib.maximum(x, c * p),
)
CHEAP: tuple[Step, ...] = (
    lambda lib, x, p, c: x * p,
    lambda lib, x, p, c: 0.9 * x + c * p,
    lambda lib, x, p, c: lib.maximum(0.5 * x, p / c),
    lambda lib, x, p, c: lib.abs(x) - c * p,
)


def drawn(steps: Sequence[Step], length: int) -> Iterator[tuple[Step, float]]:
    """Steps in a fixed random order, each with a number."""
    draw = random.Random(0)
    for i in range(length):
        yield draw.choice(steps), 1 + i / 10_000


def mixed(lib: Any, x: Any, p: Any, length: int) -> Any:
    """Each operator reads the previous one."""
    for step, c in drawn(STEPS, length):
        x = step(lib, x, p, c)
    return x


def cheap(lib: Any, x: Any, p: Any, length: int) -> Any:
    """Only arithmetic, which XLA recomputes rather than stores."""
    for step, c in drawn(CHEAP, length):
        x = step(lib, x, p, c)
    return x


def residual(lib: Any, x: Any, p: Any, length: int) -> Any:
    """The mean of each value and of an operator of it, so that rounding errors do not grow."""
    for step, c in drawn(STEPS, length):
        x = 0.5 * (x + step(lib, x, p, c))
    return x


CHAINS: dict[str, Callable[..., Any]] = {"mixed": mixed, "arithmetic": cheap, "residual": residual}


def run(*, quick: bool) -> tuple[list[Figure], dict[str, Any]]:
    """All figures of chains."""
    length, repeats = (100, 1) if quick else (1_000, 3)
    short = 50 if quick else 100
    figures = []
    for name in CHAINS:
        ours(name, 10), theirs(name, 10)  # excludes the costs of a process's first compilation
        figures.append(growth(name, length, repeats))
        figures += against_jax(name, short, repeats)
    return [*figures, untouched()], {"remarks": REMARKS}


REMARKS = [
    "Of the figures of twice as many operators, the second column is the time of half as many.",
    "Trace + compile is in seconds of a core, those of all threads together.",
    "The step times of plain JAX are those of the same chain by `jax.value_and_grad`.",
]


def arrays() -> dict[str, Any]:
    """The inputs of a chain."""
    x = np.linspace(-1, 1, SHAPE[0] * SHAPE[1], dtype=np.float32).reshape(SHAPE)
    return {"x": jnp.asarray(x), "p": jnp.asarray(0.5 * x + 1)}


def ours(name: str, length: int) -> Compiled:
    """The value and its gradients by symop: built, differentiated, lowered and compiled."""
    x, p = so.var("x", SHAPE), so.var("p", SHAPE)
    y = so.mean(CHAINS[name](so, x, p, length))
    function = so.Group([y, *so.grad(y, [x, p])]).to_jax()
    given = arrays()
    return jax.jit(function).lower(given["x"], given["p"]).compile()


def theirs(name: str, length: int) -> Compiled:
    """The same in plain JAX."""

    def function(x: Any, p: Any) -> Any:
        return jnp.mean(CHAINS[name](jnp, x, p, length))

    given = arrays()
    compiled = jax.jit(jax.value_and_grad(function, (0, 1))).lower(given["x"], given["p"])
    return compiled.compile()


def processor_seconds(program: Callable[[], Any]) -> float:
    """Processor time of one run over all cores.

    Compilation takes long, and other programs may use the cores meanwhile.
    """
    gc.collect()
    start = time.process_time()
    program()
    return time.process_time() - start


def growth(name: str, length: int, repeats: int) -> Figure:
    """Build and compilation with empty caches: twice as many operators against as many."""
    pairs = []
    for _ in range(repeats):
        half = processor_seconds(partial(ours, name, length))
        pairs.append((processor_seconds(partial(ours, name, 2 * length)), half))
    title = f"{name}: {2 * length:,} operators against {length:,}, trace + compile"
    return judged(title, pairs, target=2.5)


def against_jax(name: str, length: int, repeats: int) -> list[Figure]:
    """Compile time and step time against plain JAX, at a length that JAX can compile."""
    title = f"{name}, {length:,} operators"
    compiled = compare(
        f"{title}: trace + compile",
        partial(ours, name, length),
        partial(theirs, name, length),
        repeats=repeats,
        warm_up=0,
        clock=processor_seconds,
    )
    mine, other, given = ours(name, length), theirs(name, length), list(arrays().values())
    check(mine(*given), other(*given))
    step = compare(
        f"{title}: a step",
        lambda: jax.block_until_ready(mine(*given)),
        lambda: jax.block_until_ready(other(*given)),
        repeats=30 * repeats,
        target=1.1,
        clock=brief,
    )
    return [compiled, step]


def check(found: Any, wanted: Any) -> None:
    """Raise unless values and gradients equal those of plain JAX."""
    leaves = zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True)
    for one, other in leaves:
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-6)


def untouched() -> Figure:
    """Equations of a chain that is too short for fusion barriers: none is added."""
    x, p = so.var("x", SHAPE), so.var("p", SHAPE)
    y = so.mean(cheap(so, x, p, 20))
    names = list(equations(jax.make_jaxpr(y.to_jax())(**arrays())))
    without = [name for name in names if name != "symop_barrier"]
    return counted("arithmetic, 20 operators: equations", len(names), len(without))
