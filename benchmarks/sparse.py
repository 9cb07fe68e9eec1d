"""Row-sparse training steps of an embedding, against dense JAX, optax and PyTorch."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from measure import Figure, brief, compare, judged

import symop as so

try:
    import torch
except ImportError:  # its figures are omitted
    torch = None

TITLE = "Row-sparse steps of an embedding"
HEIGHT, WIDTH, COUNT = 1_000_000, 64, 1024
LOW, HIGH = 100_000, 4_000_000
RATE = 0.125
SEVERAL = 20
"""So many short steps are timed at once."""
STATES = {"sgd": ("table",), "adam": ("table", "moment1", "moment2", "step")}
Step = Callable[[], Any]


def run(*, quick: bool) -> tuple[list[Figure], dict[str, Any]]:
    """All figures of row-sparse steps."""
    repeats = 5 if quick else 40
    require_equal()
    figures = [
        against_dense("SGD", "sgd", optax.sgd(RATE), "dense JAX", 1 / 100, repeats),
        against_dense("lazy Adam", "adam", optax.adam(RATE), "optax's Adam", 1 / 50, repeats),
        *[taller(name, repeats) for name in STATES],
    ]
    remarks = ["Every step reads other rows; the table and its moments are donated."]
    if torch is None:
        remarks.append("PyTorch is not installed, so its figure is missing.")
        return figures, {"remarks": remarks}
    return [*figures, against_torch(repeats)], {"remarks": remarks}


def batches(height: int) -> list[np.ndarray]:
    """The ids of several steps, which may repeat."""
    generator = np.random.default_rng(0)
    return [generator.integers(0, height, COUNT).astype(np.int32) for _ in range(8)]


def rows_step(name: str, height: int) -> Step:
    """Row-sparse forward, backward and update in one compiled program."""
    step = jax.jit(updating(name, height), donate_argnums=0)
    start = {"step": jnp.int32(0)}
    held = {one: start.get(one, jnp.ones((height, WIDTH))) for one in STATES[name]}
    return _repeated(step, held, batches(height))


def updating(name: str, height: int) -> Callable[..., Any]:
    """Maps the table, its states, ids and rate to their new values."""
    table = so.var("table", shape=(height, WIDTH))
    ids, rate = so.var("ids", shape=(COUNT,), dtype="int32"), so.var("rate", shape=())
    rows = so.lookup_table(table, ids, sparse=True)
    gradient = so.grad(so.sum(rows * rows) * 0.5, table)
    if name == "sgd":
        new = [so.sgd(table, gradient, rate)]
    else:
        moments = [so.var(one, shape=(height, WIDTH)) for one in STATES[name][1:3]]
        count = so.var("step", shape=(), dtype="int32")
        new = [*so.adam(table, gradient, *moments, count, rate, lazy=True), count + 1]
    function = so.Group(new).to_jax(rules=False)

    def run(held: dict[str, Any], ids: Any) -> dict[str, Any]:
        results = function(**held, ids=ids, rate=jnp.float32(RATE))
        return dict(zip(STATES[name], results if name != "sgd" else [results], strict=True))

    return run


def dense_step(optimizer: Any, height: int) -> Step:
    """The same in JAX, with a gradient array of the table's height."""

    def run(held: Any, ids: Any) -> Any:
        table, state = held
        gradient = jax.grad(lambda table: 0.5 * jnp.sum(table[ids] ** 2))(table)
        updates, state = optimizer.update(gradient, state, table)
        return optax.apply_updates(table, updates), state

    table = jnp.ones((height, WIDTH))
    held = table, optimizer.init(table)
    return _repeated(jax.jit(run, donate_argnums=0), held, batches(height))


def _repeated(step: Callable[..., Any], held: Any, ids: list[np.ndarray]) -> Step:
    """Consecutive steps, each on the results of the last."""
    given, state = [jnp.asarray(one) for one in ids], {"held": held, "count": 0}

    def once() -> Any:
        ids = given[state["count"] % len(given)]
        state["held"], state["count"] = step(state["held"], ids), state["count"] + 1
        jax.block_until_ready(state["held"])

    return once


def against_dense(
    title: str, name: str, optimizer: Any, other: str, target: float, repeats: int
) -> Figure:
    """Several row-sparse steps in a row for each dense step; times are given per step."""
    ours, theirs = _several(SEVERAL, rows_step(name, HEIGHT)), dense_step(optimizer, HEIGHT)
    pairs = [(brief(ours) / SEVERAL, brief(theirs)) for _ in range(repeats + 2)]
    figure = f"{title}, 1,000,000 x 64, 1,024 ids, against {other}"
    return judged(figure, pairs[2:], target=target)


def require_equal() -> None:
    """Raise unless one row-sparse step of SGD equals the dense one."""
    table = jnp.asarray(np.random.default_rng(1).normal(size=(LOW, WIDTH)), jnp.float32)
    ids = jnp.asarray(batches(LOW)[0])
    slope = jax.grad(lambda table: 0.5 * jnp.sum(table[ids] ** 2))(table)
    found = updating("sgd", LOW)({"table": table}, ids)["table"]
    np.testing.assert_allclose(found, table - RATE * slope, rtol=1e-6)


def taller(name: str, repeats: int) -> Figure:
    """The step on a table of 4,000,000 rows against a table of 100,000."""
    tall, low = rows_step(name, HIGH), rows_step(name, LOW)
    timed = functools.partial(_several, SEVERAL)
    pairs = [(brief(timed(tall)), brief(timed(low))) for _ in range(repeats + 2)]
    figure = f"{'SGD' if name == 'sgd' else 'lazy Adam'}, 4,000,000 rows against 100,000"
    return judged(figure, pairs[2:], target=1.3, per=SEVERAL)


def _several(count: int, step: Step) -> Step:
    def program() -> None:
        for _ in range(count):
            step()

    return program


def against_torch(repeats: int) -> Figure:
    """SGD on ``Embedding(sparse=True)``."""
    embedding = torch.nn.Embedding(HEIGHT, WIDTH, sparse=True)
    optimizer = torch.optim.SGD(embedding.parameters(), lr=RATE)
    given = [torch.from_numpy(one.astype(np.int64)) for one in batches(HEIGHT)]
    state = {"count": 0}

    def once() -> None:
        rows = embedding(given[state["count"] % len(given)])
        optimizer.zero_grad()
        (0.5 * (rows * rows).sum()).backward()
        optimizer.step()
        state["count"] += 1

    return compare(
        "SGD, 1,000,000 x 64, 1,024 ids, against PyTorch's Embedding(sparse=True)",
        _several(SEVERAL, rows_step("sgd", HEIGHT)),
        _several(SEVERAL, once),
        repeats=repeats,
        target=1.0,
        clock=brief,
        per=SEVERAL,
    )
