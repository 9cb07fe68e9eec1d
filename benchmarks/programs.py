"""Programs: the overhead of a run over a call of ``jax.jit`` with the same arrays."""

import importlib.util
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from measure import Figure, brief, compare

import symop as so

TITLE = "Programs"
EXAMPLE = Path(__file__).parents[1] / "examples" / "recommender.py"


def run(*, quick: bool) -> tuple[list[Figure], dict[str, Any]]:
    """All figures of programs."""
    repeats = 5 if quick else 60
    figures = [overhead(repeats, count) for count in (2, 20)]
    return [*figures, training(repeats), recommender(max(3, repeats // 3))], {}


def overhead(repeats: int, count: int) -> Figure:
    """A run of a small program that keeps ``count`` vectors, against a jitted function."""
    program = so.Program()
    x = program.data("x", (10,))
    states = [program.parameter(f"w{i}", (10,), initial=1.0) for i in range(count)]
    for one in states:
        program.update(one, one * 0.5 + x)
    total = so.add_n(*states)
    array = jnp.ones(10)

    def step(kept: list[Any], x: Any) -> tuple[Any, list[Any]]:
        total = kept[0]
        for one in kept[1:]:
            total = total + one
        return total, [one * 0.5 + x for one in kept]

    jitted = jax.jit(step, donate_argnums=0)
    held = [[jnp.ones(10) for _ in range(count)]]

    def ours() -> None:
        for _ in range(100):
            found = program.run({"x": array}, total)
        found.block_until_ready()

    def theirs() -> None:
        for _ in range(100):
            found, held[0] = jitted(held[0], array)
        found.block_until_ready()

    return compare(
        f"a run that updates {count} vectors, against jax.jit",
        ours,
        theirs,
        repeats=repeats,
        # A run stores its new state in the call that computes it, so that no interrupt loses it.
        # This takes about a microsecond, visible only in the smallest run.
        target=1.3 if count == 2 else 1.15,
        clock=brief,
        per=100,
    )


def training(repeats: int) -> Figure:
    """A training step of a network, against a step of JAX and optax."""
    generator = np.random.default_rng(0)
    x = jnp.asarray(generator.normal(size=(128, 784)), jnp.float32)
    labels = jnp.asarray(generator.integers(0, 10, 128), jnp.int32)
    program = so.Program()
    hidden = program.data("x", (128, 784))
    for i, width in enumerate((512, 512)):
        hidden = so.relu(so.fully_connected(hidden, units=width, name=f"layer{i}"))
    out = so.fully_connected(hidden, units=10, name="out")
    loss = so.mean(so.softmax_cross_entropy(out, program.data("labels", (128,), "int32")))
    so.optim.Adam(1e-3).minimize(loss)
    program.initialize(0)
    optimizer = optax.adam(1e-3)
    params = {one.name: jnp.array(program.scope[one.name]) for one in program.parameters}

    def by_hand(params: Any, x: Any, labels: Any) -> Any:
        for name in ("layer0", "layer1"):
            x = jax.nn.relu(x @ params[f"{name}_weight"].T + params[f"{name}_bias"])
        out = x @ params["out_weight"].T + params["out_bias"]
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(out, labels))

    def step(kept: Any, x: Any, labels: Any) -> Any:
        params, moments = kept
        value, slopes = jax.value_and_grad(by_hand)(params, x, labels)
        moves, moments = optimizer.update(slopes, moments, params)
        return (optax.apply_updates(params, moves), moments), value

    jitted = jax.jit(step, donate_argnums=0)
    held = [(params, optimizer.init(params))]

    def theirs() -> Any:
        held[0], value = jitted(held[0], x, labels)
        return jax.block_until_ready(value)

    def ours() -> Any:
        return program.run({"x": x, "labels": labels}, loss).block_until_ready()

    np.testing.assert_allclose(ours(), theirs(), rtol=1e-5)
    return compare(
        "a training step with Adam, against JAX and optax",
        ours,
        theirs,
        repeats=repeats,
        target=1.05,
    )


def recommender(repeats: int) -> Figure:
    """A step of the wide-and-deep example, against the same with dense gradients in JAX."""
    spec = importlib.util.spec_from_file_location("recommender", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.USERS = example.ITEMS = 200_000
    program, loss, _ = example.recommender()
    function = jax.value_and_grad(by_name(program.to_symbol(loss).to_jax()))
    so.optim.Adam(0.002, lazy=True, clip=so.optim.ClipByGlobalNorm(5.0)).minimize(loss)
    program.initialize(0)
    batch = {
        name: jnp.asarray(values)
        for name, values in next(example.batches(example.clicks(4096, 1), 512, 0)).items()
    }
    optimizer = optax.chain(optax.clip_by_global_norm(5.0), optax.adam(0.002))
    params = {one.name: jnp.array(program.scope[one.name]) for one in program.parameters}

    def step(kept: Any, batch: Any) -> Any:
        params, moments = kept
        value, slopes = function(params, batch)
        moves, moments = optimizer.update(slopes, moments, params)
        return (optax.apply_updates(params, moves), moments), value

    jitted = jax.jit(step, donate_argnums=0)
    held = [(params, optimizer.init(params))]

    def theirs() -> Any:
        held[0], value = jitted(held[0], batch)
        return jax.block_until_ready(value)

    def ours() -> Any:
        return program.run(batch, loss).block_until_ready()

    np.testing.assert_allclose(ours(), theirs(), rtol=1e-4)
    return compare(
        "a step of the recommender, against dense gradients in JAX and optax",
        ours,
        theirs,
        repeats=repeats,
        target=0.1,
    )


def by_name(function: Any) -> Any:
    """A function of parameters and a batch."""
    return lambda params, batch: function(**params, **batch)
