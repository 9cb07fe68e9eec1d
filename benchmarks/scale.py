"""Training on a mesh of eight devices, against JAX written by hand with the same shardings.

The devices are those that the CPU plays, so times say what XLA does on one machine. Collectives and
memory are those of the compiled step.
"""

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from measure import Figure, brief, compare

from symop import train

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from collectives import calls, collectives
from mesh_models import HEADS, Model, language_model, perceptron

ROOT = Path(__file__).parents[1]
TITLE = "Many devices"
TARGET, MEMORY = 1.05, 1.02
DEVICES = "--xla_force_host_platform_device_count=8"
REMARKS = [
    "Eight devices that the CPU plays, a mesh of axes data (4) and model (2), Adam. JAX by hand "
    "has the same shardings of parameters and moments; where parameters are split over data, it "
    "constrains activations to stay split by examples, as an expert does. It scans over stacked "
    "weights, and symop rolls the blocks of a Python loop.",
    "A step ends when its whole state is there: what one side left unfinished would be charged to "
    "the other.",
    "Bytes are those of the results of all collectives of a step on a device, loops included; "
    "memory is that of arguments and temporary values.",
    "Where the axes of neighboring weights differ (perceptron, both), XLA exchanges activations to "
    "compute a gradient where its parameter is. symop computes it where the activations are, and "
    "exchanges the gradient.",
]
Arrays = dict[str, Any]


def run(*, quick: bool) -> tuple[list[Figure], dict[str, Any]]:
    """All figures of training on a mesh, from a process of eight devices."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} {DEVICES}".strip()
    child = subprocess.run(
        [sys.executable, __file__, "3" if quick else "12"],
        env={**os.environ, "XLA_FLAGS": flags, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"},
        check=True,
        capture_output=True,
        text=True,
    )
    rows = json.loads(child.stdout.splitlines()[-1])
    return [Figure(**row) for row in rows], {"remarks": REMARKS}


# JAX by hand -------------------------------------------------------------------------------------


def perceptron_by_hand(params: Arrays, batch: Arrays, keep: Callable[[Any], Any]) -> Any:
    """The loss of the perceptron."""
    hidden = keep(batch["x"] @ params["first_weight"].T + params["first_bias"])
    logits = keep(jax.nn.relu(hidden) @ params["last_weight"].T + params["last_bias"])
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"]))


def language_model_by_hand(params: Arrays, batch: Arrays, keep: Callable[[Any], Any]) -> Any:
    """The loss of the GPT, whose blocks are a scan over stacked weights."""

    def block(hidden: Any, p: Arrays) -> tuple[Any, None]:
        mean = jnp.mean(hidden, -1, keepdims=True)
        normal = (hidden - mean) * lax.rsqrt(jnp.var(hidden, -1, keepdims=True) + 1e-5)
        normal = normal * p["scale"] + p["shift"]
        shape = (*hidden.shape[:2], HEADS, hidden.shape[2] // HEADS)
        parts = [keep(normal @ p[one]).reshape(shape) for one in ("query", "keys", "values")]
        mixed = jax.nn.dot_product_attention(*parts, is_causal=True).reshape(hidden.shape)
        hidden = keep(hidden + mixed @ p["mix"])
        wide = jax.nn.gelu(keep(hidden @ p["up"]), approximate=False)
        return keep(hidden + wide @ p["down"]), None

    hidden = keep(params["table"][batch["ids"]]) + params["positions"]
    stacked = {k.removeprefix("block*_"): v for k, v in params.items() if k.startswith("block")}
    hidden, _ = lax.scan(block, hidden, stacked)
    logits = keep(hidden @ params["head"])
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, batch["labels"]))


class ByHand:
    """A training step in JAX.

    Attributes:
        step: takes and returns parameters, moments, and a batch.
        state: the parameters and moments.
        batch: the batch.
    """

    def __init__(self, loss: Any, params: Arrays, model: Model, layout: str, mesh: Any) -> None:
        optimizer = optax.adam(1e-3)
        rules = model.layouts[layout]
        places = {name: NamedSharding(mesh, _spec(name, rules)) for name in params}
        split = any("data" in str(one.spec) for one in places.values())

        def keep(value: Any) -> Any:
            if not split:
                return value
            free = [PartitionSpec.UNCONSTRAINED] * (value.ndim - 1)
            spec = PartitionSpec("data", *free)
            return lax.with_sharding_constraint(value, NamedSharding(mesh, spec))

        def like(path: Any, leaf: Any) -> Any:
            name = next((k.key for k in reversed(path) if hasattr(k, "key")), None)
            return places.get(name, NamedSharding(mesh, PartitionSpec()))

        def step(state: Any, batch: Arrays) -> Any:
            values, moments = state
            value, slopes = jax.value_and_grad(loss)(values, batch, keep)
            slopes = lax.with_sharding_constraint(slopes, places)
            updates, moments = optimizer.update(slopes, moments)
            return (optax.apply_updates(values, updates), moments), value

        values = {name: jax.device_put(one, places[name]) for name, one in params.items()}
        state = values, optimizer.init(values)
        where = jax.tree_util.tree_map_with_path(like, state)
        self.state = jax.device_put(state, where)
        rows = NamedSharding(mesh, PartitionSpec("data"))
        self.batch = {name: jax.device_put(one, rows) for name, one in model.batch.items()}
        whole = NamedSharding(mesh, PartitionSpec())
        self.step = jax.jit(step, donate_argnums=0, out_shardings=(where, whole))

    def __call__(self) -> Any:
        """Takes a step; returns the loss."""
        self.state, value = self.step(self.state, self.batch)
        return jax.block_until_ready((self.state, value))[1]


def _spec(name: str, rules: Mapping[str, tuple[Any, ...]]) -> Any:
    for pattern, entries in rules.items():
        start = pattern.removesuffix("*")
        if (
            name == pattern
            or (pattern.startswith("*") and name.endswith(pattern[1:]))
            or (pattern.endswith("*") and name.startswith(start))
        ):
            return PartitionSpec(*([None] if name.startswith("block") else []), *entries)
    return PartitionSpec()


# Figures -----------------------------------------------------------------------------------------


def figures_of(name: str, model: Model, by_hand: Any, layout: str, repeats: int) -> list[Figure]:
    """Step time, collectives and memory of a layout."""
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    trainer = train.Trainer(
        model.loss, optax.adam(1e-3), inputs=list(model.batch), mesh=mesh,
        rules=model.layouts[layout],
    )  # fmt: skip
    state = trainer.init(0)
    other = ByHand(by_hand, stacked(state.params), model, layout, mesh)
    batch = trainer.placement.put_feed("step", model.batch)
    with trainer.placement.current():
        ours = jax.jit(trainer._run, donate_argnums=0).lower(state.packed(), batch).compile()
    theirs = other.step.lower(other.state, other.batch).compile()
    np.testing.assert_allclose(trainer.step(state, batch)[1]["loss"], other(), rtol=1e-4)

    def step() -> Any:
        after, metrics = trainer.step(state, batch)
        return jax.block_until_ready((after.packed(), metrics))[1]["loss"]

    title = f"{name}, {layout}"
    timed = compare(
        f"{title}: step", step, other, repeats=repeats, target=TARGET, clock=brief, warm_up=6
    )
    texts = [one.as_text() for one in (ours, theirs)]
    bytes_of = [collectives(one).total() for one in texts]
    times = [calls(one).total() for one in texts]
    analyses = [one.memory_analysis() for one in (ours, theirs)]
    held = [one.argument_size_in_bytes + one.temp_size_in_bytes for one in analyses]
    return [
        timed,
        ratio(f"{title}: bytes exchanged", bytes_of, TARGET),
        ratio(f"{title}: collectives", times, 1.0),
        ratio(f"{title}: memory of a device", held, MEMORY),
    ]


def ratio(name: str, pair: list[int], target: float) -> Figure:
    """A figure of two counts."""
    return Figure(name, pair[0], pair[1], pair[0] / pair[1], target=target, unit="count")


def stacked(params: Arrays) -> Arrays:
    """Copies of the parameters, those of blocks stacked under the pattern of their names."""
    result: Arrays = {}
    for name, value in params.items():
        if not name.startswith("block"):
            result[name] = jnp.array(np.asarray(value))
    for part in {one.partition("_")[2] for one in params if one.startswith("block")}:
        each = [params[f"block{i}_{part}"] for i in range(4)]
        result[f"block*_{part}"] = jnp.stack([np.asarray(one) for one in each])
    return result


def main() -> None:
    """Measures in this process, which has eight devices; the last line is the result."""
    repeats = int(sys.argv[1])
    figures: list[Figure] = []
    for name, model, by_hand in (
        ("perceptron", perceptron(8192), perceptron_by_hand),
        ("GPT", language_model(examples=32, times=8), language_model_by_hand),
    ):
        for layout in ("data", "sharded", "tensor", "both"):
            # A step of the perceptron takes a few milliseconds, which a pause of a thread doubles.
            pairs = repeats * (20 if name == "perceptron" else 1)
            figures += figures_of(name, model, by_hand, layout, pairs)
    print(json.dumps([dataclasses.asdict(one) for one in figures]))


if __name__ == "__main__":
    main()
