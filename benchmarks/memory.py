"""Rematerialization: peak memory and time of value and gradients, by policy against keep_all."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from measure import Figure, compare, counted

import symop as so
from symop.graph.naming import variables_of

TITLE = "Memory by choice"
PEAK, TIME = 1 / 8, 1.5
"""What the chain of 1,000 layers may take of the memory and the time of keep_all."""
Arrays = dict[str, Any]
remat = so.remat
POLICIES = [remat.keep_costly(), remat.segments()]


def run(*, quick: bool) -> tuple[list[Figure], dict[str, Any]]:
    """All figures of memory."""
    repeats = 3 if quick else 15
    figures = rolled_chain(repeats)
    with so.rolling(False):
        figures += compared("chain of 100 layers, unrolled", chain(100), repeats)
        figures.append(against_checkpoint(100))
        figures += compared("transformer of 6 layers, unrolled", transformer(6), repeats)
        figures += compared("ResNet of 8 blocks, unrolled", resnet(8), repeats)
    figures += compared("chain of 100 layers, rolled", chain(100), repeats)
    figures += compared("transformer of 6 layers, rolled", transformer(6), repeats)
    figures += compared("ResNet of 8 blocks, rolled", resnet(8), repeats)
    return figures, {"remarks": REMARKS}


REMARKS = [
    "the second column is keep_all, but for the lines that name JAX; both are rolled, or neither",
    "peak: what XLA takes beside arguments and results, in bytes, as `memory_analysis` tells",
    "estimate: the peak that `so.remat.estimate` counts on the graph, against the compiled one",
]


# Figures ---------------------------------------------------------------------------------------


def compiled(function: Callable[..., Any], arrays: Arrays) -> Any:
    """The program of a function of named arrays."""
    return jax.jit(function).lower(arrays).compile()


def program(loss: so.Symbol, arrays: Arrays, policy: Any) -> Any:
    """Value and gradients of the parameters, in training."""
    key = jax.random.key(0)
    function = so.value_and_grad(loss, is_train=True, remat=policy)
    return compiled(lambda given: function(key=key, **given), arrays)


def peak(program: Any) -> int:
    """Temporary memory, apart from arguments and results."""
    taken: int = program.memory_analysis().temp_size_in_bytes
    return taken


def agreeing(ours: Any, theirs: Any, arrays: Arrays) -> tuple[Any, Any]:
    """One run of each side as a function, after checking that their results agree."""

    def run(program: Any) -> Any:
        return lambda: jax.block_until_ready(program(arrays))

    for mine, other in zip(
        jax.tree.leaves(run(ours)()), jax.tree.leaves(run(theirs)()), strict=True
    ):
        np.testing.assert_allclose(mine, other, rtol=2e-3, atol=1e-4)
    return run(ours), run(theirs)


def compared(
    name: str,
    loss: so.Symbol,
    repeats: int,
    policies: Sequence[Any] = POLICIES,
    targets: tuple[float | None, float | None] = (None, None),
) -> list[Figure]:
    """Peak and time of each policy against keep_all, and its estimate."""
    arrays = drawn(loss)
    whole = program(loss, arrays, None)
    figures = []
    for policy in policies:
        chosen, title = program(loss, arrays, policy), f"{name}, {policy.name}"
        runs = agreeing(chosen, whole, arrays)
        estimate = remat.estimate(loss, remat=policy, is_train=True).peak
        figures += [
            counted(f"{title}: peak", peak(chosen), peak(whole), target=targets[0]),
            compare(f"{title}: time", *runs, repeats=repeats, target=targets[1]),
            counted(f"{title}: estimate", estimate, peak(chosen), target=None),
        ]
    return figures


def rolled_chain(repeats: int) -> list[Figure]:
    """1,000 layers as a scan, against itself and against ``jax.grad`` of ``lax.scan``."""
    rows, width, layers = 256, 64, 1000
    x, w = so.var("x", shape=(rows, width)), so.var("w", shape=(layers, width, width))
    last, _ = so.scan(lambda h, w: (so.tanh(so.matmul(h, w)), None), x, w)
    loss = so.mean(last * last)

    def by_hand(given: Arrays) -> Any:
        last, _ = lax.scan(lambda h, w: (jnp.tanh(h @ w), None), given["x"], given["w"])
        return jnp.mean(last * last)

    name = "chain of 1,000 layers"
    figures = compared(name, loss, repeats, [remat.segments()], (PEAK, TIME))
    arrays = drawn(loss)
    theirs = compiled(jax.value_and_grad(by_hand), arrays)
    ours = program(loss, arrays, remat.segments())
    times = compare(
        f"{name}, segments: time against JAX's lax.scan",
        *agreeing(ours, theirs, arrays),
        repeats=repeats,
    )
    against = f"{name}, segments: peak against JAX's lax.scan"
    return [*figures, counted(against, peak(ours), peak(theirs), target=None), times]


def against_checkpoint(layers: int) -> Figure:
    """Segments of an unrolled chain, against ``jax.checkpoint`` of every ten layers."""
    loss = chain(layers)
    arrays = drawn(loss)

    def by_hand(given: Arrays) -> Any:
        h = given["x"]
        for start in range(0, layers, 10):

            @jax.checkpoint
            def segment(h: Any, *weights: Any) -> Any:
                for w in weights:
                    h = jnp.tanh(h @ w)
                return h

            h = segment(h, *(given[f"w{i}"] for i in range(start, start + 10)))
        return jnp.mean(h * h)

    theirs = compiled(jax.value_and_grad(by_hand), arrays)
    ours = program(loss, arrays, remat.segments())
    agreeing(ours, theirs, arrays)
    name = f"chain of {layers} layers, unrolled, segments: peak against jax.checkpoint"
    return counted(name, peak(ours), peak(theirs), target=None)


# Models ----------------------------------------------------------------------------------------


def drawn(loss: so.Symbol) -> Arrays:
    """An array for each variable, scaled so that values keep about one size."""
    draw = np.random.default_rng(0).standard_normal
    found = {}
    for name, node in variables_of(loss.roots).items():
        shape = node.type.shape
        fan_in = int(np.prod(shape[1:])) if len(shape) == 4 else (1, *shape)[-2]
        scale = 1.0 if name == "x" else fan_in**-0.5
        one = np.asarray(draw(shape), np.float32) * np.float32(scale)
        positive = name.rstrip("12").endswith(("gain", "variance"))
        found[name] = jnp.asarray(1 + 0.1 * one * one if positive else one)
    return found


def chain(layers: int) -> so.Symbol:
    """``h = tanh(h w)`` with separate weights."""
    h = so.var("x", shape=(1024, 64))
    for i in range(layers):
        h = so.tanh(so.matmul(h, so.var(f"w{i}", shape=(64, 64))))
    return so.mean(h * h)


ROWS, STEPS, WIDTH, HEADS = 8, 64, 64, 4
SHAPES = {
    **dict.fromkeys(("q", "k", "v", "o"), (WIDTH, WIDTH)),
    **dict.fromkeys(("gain1", "bias1", "gain2", "bias2"), (WIDTH,)),
    "up": (WIDTH, 4 * WIDTH),
    "down": (4 * WIDTH, WIDTH),
}


def layer(h: Any, p: dict[str, Any]) -> Any:
    """Layer norm and attention, layer norm and two products; dropout."""

    def split(x: Any) -> Any:
        apart = so.reshape(x, shape=(ROWS, STEPS, HEADS, WIDTH // HEADS))
        return so.transpose(apart, axes=(0, 2, 1, 3))

    a = so.layer_norm(h, p["gain1"], p["bias1"])
    q, k, v = (split(so.matmul(a, p[n])) for n in "qkv")
    scores = so.matmul(q, so.transpose(k, axes=(0, 1, 3, 2))) * (WIDTH // HEADS) ** -0.5
    mixed = so.matmul(so.dropout(so.softmax(scores), rate=0.1), v)
    mixed = so.reshape(so.transpose(mixed, axes=(0, 2, 1, 3)), shape=(ROWS, STEPS, WIDTH))
    h = h + so.dropout(so.matmul(mixed, p["o"]), rate=0.1)
    a = so.layer_norm(h, p["gain2"], p["bias2"])
    return h + so.dropout(so.matmul(so.gelu(so.matmul(a, p["up"])), p["down"]), rate=0.1)


def transformer(layers: int) -> so.Symbol:
    """Encoder layers one after another."""
    h = so.var("x", shape=(ROWS, STEPS, WIDTH))
    for i in range(layers):
        with so.name_scope(f"layer{i}_"):
            h = layer(h, {name: so.var(name, shape=shape) for name, shape in SHAPES.items()})
    return so.mean(h * h)


def resnet(blocks: int) -> so.Symbol:
    """Residual blocks of two convolutions with ``batch_norm``."""
    channels = 16
    h = so.var("x", shape=(8, channels, 32, 32))

    def normalized(x: Any, number: int) -> Any:
        w = so.var(f"w{number}", shape=(channels, channels, 3, 3))
        y = so.convolution(
            x,
            w,
            so.var(f"b{number}", shape=(channels,)),
            channels=channels,
            kernel=(3, 3),
            padding=1,
        )
        return so.batch_norm(
            y,
            so.var(f"gain{number}", shape=(channels,)),
            so.var(f"bias{number}", shape=(channels,)),
            so.var(f"mean{number}", shape=(channels,), state=True),
            so.var(f"variance{number}", shape=(channels,), state=True),
        )

    for i in range(blocks):
        with so.name_scope(f"block{i}_"):
            h = so.relu(h + normalized(so.relu(normalized(h, 1)), 2))
    return so.mean(h * h)
