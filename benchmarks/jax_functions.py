"""Functions of JAX as graphs against the same in plain JAX."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from measure import Figure, compare, counted, instructions

import symop as so

TITLE = "Functions of JAX"
Function = Callable[..., Any]


def run(*, quick: bool) -> tuple[list[Figure], dict[str, Any]]:
    """All figures of functions of JAX."""
    figures = list[Figure]()
    for name, (function, args) in models().items():
        figures += round_trip(name, function, args, repeats=3 if quick else 60)
    for name, function in RULES.items():
        figures.append(tracing(f"16 calls of {name}", sixteen(function), (jnp.ones(8),), repeats=9))
    return figures, {}


# Round trip --------------------------------------------------------------------------------------


def weights(*shape: int, seed: int = 0) -> Any:
    """Normal numbers scaled by the number of rows."""
    return jax.random.normal(jax.random.key(seed), shape) / shape[0] ** 0.5


def perceptron(params: Any, x: Any) -> Any:
    """Layers of tanh."""
    for w, b in params[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def attention_block(p: Any, x: Any) -> Any:
    """One transformer block with normalization before attention."""
    h = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)
    q, k, v = (jnp.einsum("btd,dhe->bthe", h, p[name]) for name in "qkv")
    a = jax.nn.softmax(jnp.einsum("bthe,bshe->bhts", q, k) / 4.0)
    x = x + jnp.einsum("bhts,bshe,hed->btd", a, v, p["o"])
    return x + jax.nn.gelu(x @ p["up"]) @ p["down"]


def lstm(params: Any, xs: Any) -> Any:
    """The last state of an LSTM written with ``lax.scan``."""
    wx, wh = params

    def step(state: Any, x: Any) -> tuple[Any, None]:
        h, c = state
        i, f, g, o = jnp.split(x @ wx + h @ wh, 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    zeros = jnp.zeros((xs.shape[1], wh.shape[0]))
    return lax.scan(step, (zeros, zeros), xs)[0][0]


def convnet(params: Any, x: Any) -> Any:
    """Two convolutions with pooling, and a dense layer."""
    for w in params[:2]:
        x = jax.nn.relu(lax.conv_general_dilated(x, w, (1, 1), "SAME"))
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return x.reshape(x.shape[0], -1) @ params[2]


def models() -> dict[str, tuple[Function, tuple[Any, Any]]]:
    """Losses of parameters and a batch."""
    widths = (64, 256, 256, 10)
    layers = [(weights(a, b), jnp.zeros(b)) for a, b in itertools.pairwise(widths)]
    block = {name: weights(64, 4, 16) for name in "qkv"}
    block |= {"o": weights(4, 16, 64), "up": weights(64, 256), "down": weights(256, 64)}
    filters = [weights(16, 3, 3, 3), weights(32, 16, 3, 3), weights(32 * 8 * 8, 10)]
    return {
        "MLP": (squared(perceptron), (layers, weights(128, 64))),
        "four transformer blocks": (squared(blocks), ([block] * 4, weights(4, 32, 64))),
        "LSTM": (squared(lstm), ((weights(32, 256), weights(64, 256)), weights(50, 16, 32))),
        "convnet": (squared(convnet), (filters, weights(16, 3, 32, 32))),
    }


def sixteen(function: Function) -> Function:
    """The function applied sixteen times."""

    def chain(x: Any) -> Any:
        for _ in range(16):
            x = function(x)
        return x

    return chain


@jax.custom_jvp
def own_square(x: Any) -> Any:
    """A function of the user with a rule of its own."""
    return x * x


own_square.defjvp(lambda values, ways: (own_square(*values), 2.0 * values[0] * ways[0]))
RULES = {"relu": jax.nn.relu, "softplus": jax.nn.softplus, "a custom_jvp": own_square}


def blocks(params: Any, x: Any) -> Any:
    """Blocks one after the other."""
    for p in params:
        x = attention_block(p, x)
    return x


def squared(model: Function) -> Function:
    """The mean square of the outputs."""
    return lambda params, x: jnp.mean(model(params, x) ** 2)


def round_trip(name: str, function: Function, args: Sequence[Any], repeats: int) -> list[Figure]:
    """Tracing, instructions, and a step, of a loss with its gradient."""
    ours, theirs = (
        jax.jit(jax.value_and_grad(one)).lower(*args).compile()
        for one in (so.transform(function), function)
    )
    return [
        tracing(name, function, args, max(3, repeats // 10)),
        counted(f"{name}: instructions of loss and gradient", instructions(ours.as_text()),
                instructions(theirs.as_text()), target=1.02),
        compare(f"{name}: loss and gradient", waiting(ours, args), waiting(theirs, args),
                repeats=repeats, target=1.03),
    ]  # fmt: skip


def tracing(name: str, function: Function, args: Sequence[Any], repeats: int) -> Figure:
    """The conversion of a function against its trace."""
    ours, theirs = (fresh(one, function, args) for one in (so.from_jax, jax.make_jaxpr))
    title = f"{name}: from_jax against make_jaxpr"
    return compare(title, ours, theirs, repeats=repeats, target=2.0)


def fresh(trace: Function, function: Function, args: Sequence[Any]) -> Callable[[], Any]:
    """One tracing with empty caches."""

    def once() -> Any:
        jax.clear_caches()
        if trace is jax.make_jaxpr:
            return jax.make_jaxpr(function)(*args)
        return trace(function, *args)

    return once


def waiting(compiled: Function, args: Sequence[Any]) -> Callable[[], Any]:
    """One run, until its results are there."""
    return lambda: jax.block_until_ready(compiled(*args))
