"""The tables of README, written from stored results."""

from pathlib import Path
from typing import Any

import measure

README = Path(__file__).parents[1] / "README.md"
BEGIN = "<!-- This table is written by `python benchmarks/run.py --table`. -->"
END = "<!-- The table ends here. -->"
ROWS = {
    "training step, MLP 784-512-512-10, batch 128": [("steps", "MLP: step")],
    "training step, the digits network of `make run`": [("steps", "digits convnet: step")],
    "trace and compile, MLP / digits": [
        ("steps", "MLP: trace and compile"),
        ("steps", "digits convnet: trace and compile"),
    ],
    "call of a lowered, jitted graph, 2 / 20 arrays": [
        ("calls", "lowered call, 2 arrays by position"),
        ("calls", "lowered call, 20 arrays by position"),
    ],
    "building a chain of 10,000 operators, against tracing it": [
        ("building", "chain of 10,000: against jnp.sin")
    ],
    "building its gradient, against tracing `jax.grad` of it": [
        ("building", "chain of 10,000: its gradient against jnp.sin")
    ],
    "eager training step, the MLP above, against the jitted step": [
        ("eager", "training step of an MLP, against a jitted step")
    ],
    "eager chain of 1,000 operators with its gradient, against un-jitted `jax.grad`": [
        ("eager", "chain of 1,000, recorded, with backward, against jax.grad")
    ],
    "the same, against PyTorch": [
        ("eager", "chain of 1,000, recorded, with backward, against PyTorch")
    ],
    "eager chain without its gradient, against PyTorch": [
        ("eager", "chain of 1,000, forward, against PyTorch")
    ],
    "run of a program that keeps 2 / 20 vectors, against a jitted call": [
        ("programs", "a run that updates 2 vectors, against jax.jit"),
        ("programs", "a run that updates 20 vectors, against jax.jit"),
    ],
    "training step of a program with Adam, against JAX and optax": [
        ("programs", "a training step with Adam, against JAX and optax")
    ],
    "step of a recommender with sparse tables, against dense gradients": [
        ("programs", "a step of the recommender, against dense gradients in JAX and optax")
    ],
    "training step of MXNet's `Module`, 512 units / LeNet, against JAX and optax": [
        (
            "mxnet",
            "a training step of a perceptron of 512 units by Module, against JAX and optax",
        ),
        ("mxnet", "a training step of LeNet by Module, against JAX and optax"),
    ],
    "SGD on 1,024 rows of a table of 1,000,000 x 64, against dense JAX / PyTorch's sparse": [
        ("sparse", "SGD, 1,000,000 x 64, 1,024 ids, against dense JAX"),
        ("sparse", "SGD, 1,000,000 x 64, 1,024 ids, against PyTorch's Embedding(sparse=True)"),
    ],
}
"""The rows of the first table: benchmarks and names of their figures."""


def write() -> None:
    """Replaces both tables: that of ratios, and that of models."""
    tables = [ratios(), measure.ratios(stored("models")["rows"])]
    parts = README.read_text(encoding="utf-8").split(BEGIN)
    if len(parts) != len(tables) + 1:
        raise ValueError(f"README: there must be {len(tables)} generated tables")
    after = [part.partition(END)[2] for part in parts[1:]]
    shown = [
        f"{BEGIN}\n\n{table}\n\n{END}{rest}" for table, rest in zip(tables, after, strict=True)
    ]
    README.write_text("".join([parts[0], *shown]), encoding="utf-8")


def ratios() -> str:
    """The first table."""
    lines = ["| | ratio | target |", "|---|---|---|"]
    for label, names in ROWS.items():
        found = [figure(*name) for name in names]
        targets = dict.fromkeys(f"{one['target']:.3g}" for one in found)
        shown = " / ".join(rounded(one["ratio"]) for one in found)
        lines.append(f"| {label} | {shown} | {' / '.join(targets)} |")
    return "\n".join(lines)


def rounded(ratio: float) -> str:
    """A ratio with two digits after the point, or one significant digit."""
    return f"{ratio:.2f}" if ratio >= 0.01 else f"{ratio:.1g}"


def figure(benchmark: str, name: str) -> dict[str, Any]:
    """A stored figure."""
    (found,) = (one for one in stored(benchmark)["figures"] if one["name"] == name)
    return dict(found)


def stored(benchmark: str) -> dict[str, Any]:
    """The stored result of a benchmark.

    Raises:
        FileNotFoundError: it never ran.
    """
    result = measure.read(benchmark)
    if result is None:
        raise FileNotFoundError(f"README: the benchmark {benchmark!r} must have run")
    return result
