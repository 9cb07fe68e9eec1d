"""Control flow: recurrences and their gradients, against ``jax.grad`` of the same in JAX."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from measure import Figure, alone, compare, counted

import symop as so
from symop.graph.nodes import topological

TITLE = "Control flow"
TARGET = 1.1
Arrays = dict[str, Any]
Function = Callable[..., Any]


def run(*, quick: bool) -> tuple[list[Figure], dict[str, Any]]:
    """All figures of control flow."""
    repeats = 10 if quick else 200
    figures = []
    for steps, batch, width in ((100, 32, 128), (1000, 8, 32)):
        arrays = drawn(steps, batch, width)
        size = f"{steps} steps of {batch} rows, width {width}"
        figures.append(value(f"recurrent network, {size}", rnn(arrays), arrays, repeats))
        figures += gradients(f"recurrent network, {size}", rnn(arrays), arrays, repeats)
        figures += gradients(f"gated network, {size}", gated(arrays), arrays, repeats)
    figures.append(choice(repeats))
    figures.append(loop(repeats))
    figures += deep()
    return figures, {"remarks": []}


# Programs --------------------------------------------------------------------------------------


def drawn(steps: int, batch: int, width: int) -> Arrays:
    """A series and weights."""
    draw = np.random.default_rng(0).standard_normal
    return {
        "x": jnp.asarray(draw((steps, batch, width)), jnp.float32),
        "w": jnp.asarray(draw((width, width)) / width**0.5, jnp.float32),
        "u": jnp.asarray(draw((width, width)) / width**0.5 / 2, jnp.float32),
        "v": jnp.asarray(draw((width, width)) / width**0.5 / 2, jnp.float32),
        "b": jnp.zeros(width, jnp.float32),
    }


def variables(arrays: Arrays, names: str) -> list[Any]:
    """A variable for each array."""
    return [so.var(name, shape=arrays[name].shape) for name in names]


def rnn(arrays: Arrays) -> tuple[Any, Function, str]:
    """``h = tanh(x W + h U + b)``, by symop and by hand."""
    x, w, u, b = variables(arrays, "xwub")
    zero = jnp.zeros(arrays["x"].shape[1:], jnp.float32)

    def step(h: Any, x: Any) -> tuple[Any, Any]:
        h = (x @ w + h @ u + b).tanh()
        return h, h

    last, hs = so.scan(step, zero, x)
    loss = (hs * hs).mean() + last.sum()

    def by_hand(x: Any, w: Any, u: Any, b: Any) -> Any:
        def step(h: Any, x: Any) -> tuple[Any, Any]:
            h = jnp.tanh(x @ w + h @ u + b)
            return h, h

        last, hs = lax.scan(step, zero, x)
        return (hs * hs).mean() + last.sum()

    return loss, by_hand, "xwub"


def gated(arrays: Arrays) -> tuple[Any, Function, str]:
    """``h = z h + (1 - z) tanh(x W + h U)`` with ``z = sigmoid(x W + h V)``."""
    x, w, u, v = variables(arrays, "xwuv")
    zero = jnp.zeros(arrays["x"].shape[1:], jnp.float32)

    def step(h: Any, x: Any) -> tuple[Any, Any]:
        given = x @ w
        z = (given + h @ v).sigmoid()
        return z * h + (1.0 - z) * (given + h @ u).tanh(), h.sum()

    last, sums = so.scan(step, zero, x)

    def by_hand(x: Any, w: Any, u: Any, v: Any) -> Any:
        def step(h: Any, x: Any) -> tuple[Any, Any]:
            given = x @ w
            z = jax.nn.sigmoid(given + h @ v)
            return z * h + (1.0 - z) * jnp.tanh(given + h @ u), h.sum()

        last, sums = lax.scan(step, zero, x)
        return last.sum() + (sums * sums).mean()

    return last.sum() + (sums * sums).mean(), by_hand, "xwuv"


# Figures ---------------------------------------------------------------------------------------


def both(loss: Any, by_hand: Function, names: str, derived: bool) -> tuple[Function, Function]:
    """The value, with gradients if ``derived``, compiled on both sides."""
    if not derived:
        return jax.jit(loss.to_jax()), jax.jit(by_hand)
    found = so.grad(loss, variables_of(loss, names))
    ours = jax.jit(so.Group([loss, *found]).to_jax())
    return ours, jax.jit(jax.value_and_grad(by_hand, tuple(range(len(names)))))


def variables_of(loss: Any, names: str) -> list[Any]:
    """The variables of ``loss`` with these names."""
    inside = loss.get_internals()
    return [inside[name] for name in names]


def agreeing(ours: Function, theirs: Function, arrays: Arrays, names: str) -> tuple[Any, Any]:
    """One run of each side as a function, after checking that their results agree."""
    given = [arrays[name] for name in names]

    def run_ours() -> Any:
        return jax.block_until_ready(ours(**arrays_of(names, given)))

    def run_theirs() -> Any:
        return jax.block_until_ready(theirs(*given))

    for mine, other in zip(jax.tree.leaves(run_ours()), jax.tree.leaves(run_theirs()), strict=True):
        np.testing.assert_allclose(mine, other, rtol=2e-3, atol=1e-3)
    return run_ours, run_theirs


def arrays_of(names: str, given: list[Any]) -> Arrays:
    """Arrays by name."""
    return dict(zip(names, given, strict=True))


def value(name: str, program: tuple[Any, Function, str], arrays: Arrays, repeats: int) -> Figure:
    """The value alone; the residuals of a gradient are not stored."""
    loss, by_hand, names = program
    runs = agreeing(*both(loss, by_hand, names, False), arrays, names)
    return compare(f"{name}: value", *runs, repeats=repeats, target=TARGET)


def gradients(
    name: str, program: tuple[Any, Function, str], arrays: Arrays, repeats: int
) -> list[Figure]:
    """Value and gradients by the graph, and by ``jax.grad`` of the lowered function."""
    loss, by_hand, names = program
    ours, theirs = both(loss, by_hand, names, True)
    lowered = loss.to_jax()

    def function(*given: Any) -> Any:
        return lowered(**arrays_of(names, list(given)))

    places = tuple(range(len(names)))
    by_rules = jax.jit(jax.value_and_grad(function, places))
    graph = agreeing(ours, theirs, arrays, names)
    rules = agreeing(lambda **given: by_rules(*given.values()), theirs, arrays, names)
    return [
        compare(f"{name}: value and gradients", *graph, repeats=repeats, target=TARGET),
        compare(f"{name}: jax.grad of it", *rules, repeats=repeats, target=TARGET),
    ]


def choice(repeats: int) -> Figure:
    """A branch of matrix products and its gradient."""
    draw = np.random.default_rng(0).standard_normal
    arrays = {
        "x": jnp.asarray(draw((256, 256)), jnp.float32),
        "w": jnp.asarray(draw((256, 256)) / 16, jnp.float32),
    }
    x, w = variables(arrays, "xw")
    loss = so.cond(x.sum() < 1e9, lambda: (x @ w).tanh() @ w, lambda: x).sum()

    def by_hand(x: Any, w: Any) -> Any:
        return lax.cond(x.sum() < 1e9, lambda: jnp.tanh(x @ w) @ w, lambda: x).sum()

    runs = agreeing(*both(loss, by_hand, "xw", True), arrays, "xw")
    return compare("cond: value and gradients", *runs, repeats=repeats, target=None)


def loop(repeats: int) -> Figure:
    """A loop of 50 steps with a bound of 64 and its gradient, against a scan of 64 masked steps."""
    arrays = {"x": jnp.full((64,), 0.5, jnp.float32), "w": jnp.eye(64) * 0.9}
    x, w = variables(arrays, "xw")
    last = so.while_loop(
        lambda c: c[1] < 50, lambda c: ((c[0] @ w).tanh(), c[1] + 1), (x, 0), max_steps=64
    )[0]

    def by_hand(x: Any, w: Any) -> Any:
        def step(c: Any, _: None) -> tuple[Any, None]:
            moved = jnp.tanh(c[0] @ w), c[1] + 1
            return jax.tree.map(lambda new, old: jnp.where(c[1] < 50, new, old), moved, c), None

        return lax.scan(step, (x, 0), None, length=64)[0][0].sum()

    runs = agreeing(*both(last.sum(), by_hand, "xw", True), arrays, "xw")
    return compare("while_loop: value and gradients", *runs, repeats=repeats, target=TARGET)


def deep() -> list[Figure]:
    """A scan of 10,000 steps: the graph of its gradient is as large as for 10 steps."""

    def nodes(steps: int) -> int:
        loss, _, names = rnn(drawn(steps, 1, 4))
        return len(topological(so.Group(so.grad(loss, variables_of(loss, names))).nodes))

    return [
        counted("nodes of a gradient, 10,000 steps against 10", nodes(10_000), nodes(10)),
        alone("building it", lambda: nodes(10_000), repeats=5),
    ]
